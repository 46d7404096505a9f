"""Results as data frames, CSV and JSON, and back from files."""

from __future__ import annotations

import csv
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Self, overload

from dropdtw.files import atomic, jsons
from dropdtw.problem.clock import Clock, plain


class Exported(ABC):
    """A result that can leave this library: as a data frame, as a table, or as a file that `load` reads.

    Nothing is pickled. Files are written atomically.
    """

    @abstractmethod
    def to_columns(self, *args: Any, **how: Any) -> dict[str, list[Any]]:
        """The columns of the table by name; None stands for an empty cell."""

    @abstractmethod
    def to_dict(self, *, costs: bool = False) -> dict[str, Any]:
        """The result as JSON can hold it."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read what `to_dict(costs=True)` wrote."""

    def to_frame(self, **how: Any) -> Any:
        """The table of `to_csv` as a data frame of pandas, or of polars if pandas is not installed.

        how : keyword arguments of `to_columns`.

        Raises ImportError if neither is installed.
        """
        for name in ("pandas", "polars"):
            try:
                library = import_module(name)
            except ImportError:
                continue
            columns = self.to_columns(**how)
            if name == "pandas":  # which would turn indices with holes into floats
                columns = {of: library.array(v, "Int64") if of in ("z", "x") else v for of, v in columns.items()}
            return library.DataFrame(columns)
        raise ImportError("to_frame needs a library for data frames; run pip install pandas, or use to_csv")

    @overload
    def to_csv(self, place: None = None, **how: Any) -> str: ...
    @overload
    def to_csv(self, place: str | os.PathLike[str], **how: Any) -> None: ...
    def to_csv(self, place: str | os.PathLike[str] | None = None, **how: Any) -> str | None:
        """Write the table to a CSV file, or return it as text.

        place : the file, in a folder that is made if it does not exist; None returns the text.
        how : keyword arguments of `to_columns`.
        """
        columns = self.to_columns(**how)
        out = io.StringIO()
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        table.writerows(
            [_cell(name, value) for name, value in zip(columns, row, strict=True)]
            for row in zip(*columns.values(), strict=True)
        )
        return _kept(out.getvalue(), place)

    @overload
    def to_json(self, place: None = None, *, costs: bool = False) -> str: ...
    @overload
    def to_json(self, place: str | os.PathLike[str], *, costs: bool = False) -> None: ...
    def to_json(self, place: str | os.PathLike[str] | None = None, *, costs: bool = False) -> str | None:
        """Write the dictionary of `to_dict` to a JSON file, or return it as text.

        place : the file, in a folder that is made if it does not exist; None returns the text.
        costs : whether to include the costs, which `load` may need.
        """
        return _kept(json.dumps(self.to_dict(costs=costs), allow_nan=False) + "\n", place)

    def save(self, place: str | os.PathLike[str]) -> None:
        """Write everything to a JSON file, for `load`. Symbols are left out unless all are strings or numbers.

        Raises ValueError if the name does not end in .json.
        """
        if Path(place).suffix.lower() != ".json":
            raise ValueError(f"{os.fspath(place)} does not end in .json; results are saved as JSON")
        self.to_json(place, costs=self._has_costs())

    @classmethod
    def load(cls, place: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote. Raises ValueError if the file is damaged, or holds something else."""
        try:
            data = jsons.loads(Path(place).read_bytes())
        except ValueError as error:
            raise ValueError(f"{os.fspath(place)} is not JSON ({error}); give a file that save wrote") from None
        return cls.from_dict(data)

    def _has_costs(self) -> bool:
        return True


def times_of(clock: Clock | None, spans: list[tuple[int, int] | None], end: str = "") -> dict[str, list[Any]]:
    """Two columns with the times at which stretches [start, stop) begin and end; none without a clock.

    end : what the names of the columns end in.
    """
    if clock is None:
        return {}
    found = [(None, None) if span is None else clock.span(*span) for span in spans]
    return {f"start_time{end}": [a for a, _ in found], f"stop_time{end}": [b for _, b in found]}


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    if "_time" not in name:
        return value
    time = plain(value)
    return f"{time:.9g}" if isinstance(time, float) else time


def _kept(content: str, place: str | os.PathLike[str] | None) -> str | None:
    if place is None:
        return content
    atomic.write(place, content)
    return None
