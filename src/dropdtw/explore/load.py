"""The data to explore: two sequences or a matrix of match costs, and the code that loads them again."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dropdtw.files import arrays, formats, jsons
from dropdtw.orders.blocks import Steps
from dropdtw.problem import charges
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.clock import Clock
from dropdtw.problem.errors import OptionError
from dropdtw.problem.inputs import Array, as_drop_costs, as_match_costs, as_pair
from dropdtw.problem.missing import present
from dropdtw.results.alignment import Alignment

MOST_CELLS: Final = 1 << 24
"""Maximum number of pairs K · N; the explorer holds several matrices of this size."""

NO_STREAM: Final = (
    "explore cannot read standard input, because the code that it exports has to read the data again; give a file"
)


@dataclass(frozen=True, eq=False)
class Data:
    """The data behind a page; immutable once loaded.

    Z, X : the sequences, or None if only C is known.   C : the match costs, or None if the sequences are known.
    title : title of the page.   lines : code that creates Z and X, or C.
    given : drop costs loaded with the data, one per element.   given_code : the code for them.
    charges : opening costs and warp penalty loaded with the data.
    method, cost : method and cost of the alignment loaded with the data, if any.
    truth : (N,) the true z of each x, −1 for none.   fps : elements of X per second.
    steps : the order of Z; None if Z is a plain list.
    names : names of the elements of Z; if empty, they are numbered.
    said : the text of each x; empty unless X is a talk, whose page speaks of steps and sentences.
    times : the start of each x in seconds; empty if unknown or given by fps.
    stops : the end of each x in seconds; empty unless X is a talk.
    reading : code that reads the steps and the talk, for `find_steps`.
    begin : initial settings that differ from the defaults.
    skip : initial drop cost of a z, as a multiple of the drop cost of an x; None if no z is dropped.
    """

    title: str
    lines: tuple[str, ...]
    Z: Array | None = None
    X: Array | None = None
    C: Array | None = None
    given: Mapping[str, Array] = field(default_factory=dict)
    given_code: Mapping[str, str] = field(default_factory=dict)
    charges: Charges = NO_CHARGES
    method: str | None = None
    cost: float | None = None
    truth: Array | None = None
    fps: float | None = None
    steps: Steps | None = None
    names: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    times: tuple[float, ...] = ()
    stops: tuple[float, ...] = ()
    reading: tuple[str, ...] = ()
    begin: Mapping[str, bool] = field(default_factory=dict)
    skip: float | None = None

    def __post_init__(self) -> None:
        K, N = self.shape
        if K * N > MOST_CELLS:
            raise ValueError(
                f"{K} × {N} are {K * N:,} pairs, but the explorer holds at most {MOST_CELLS:,}; "
                "give a part of X or every n-th element of it, or use `dropdtw align`, which has no fixed limit"
            )
        if self.truth is not None and self.truth.shape != (N,):
            raise ValueError(f"truth has shape {self.truth.shape}; give one label for each of the {N} x, −1 for none")
        if self.fps is not None and not 0 < self.fps < np.inf:
            raise OptionError("fps", self.fps, "give the number of elements of X per second, > 0")

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N)."""
        if self.C is not None:
            return self.C.shape[0], self.C.shape[1]
        assert self.Z is not None
        assert self.X is not None
        return len(self.Z), len(self.X)


def from_sequences(Z: npt.ArrayLike, X: npt.ArrayLike, **more: Any) -> Data:
    """Explore two sequences, (K, d) and (N, d)."""
    A, B = as_pair(Z, X)
    return Data(**{"title": "Z and X", "lines": ("# Z (K, d) and X (N, d) are your sequences",), "Z": A, "X": B} | more)


def from_costs(C: npt.ArrayLike, **more: Any) -> Data:
    """Explore match costs, (K, N)."""
    return Data(**{"title": "C", "lines": ("# C (K, N) are your match costs",), "C": as_match_costs(C)} | more)


def read(
    first: str,
    second: str | None = None,
    *,
    truth: str | None = None,
    fps: float | None = None,
    header: bool | None = None,
    time: str | None = None,
    missing: str | None = None,
) -> Data:
    """Read the data to explore.

    first, second : two sequences, in any format that `dropdtw align` reads. Without `second`, one file: an .npz with
        Z and X or with C (as written by `dropdtw align --out a.npz`), a .json written by
        `dropdtw align --out a.json --costs`, or a matrix of match costs.
    truth : a file with the true z of each x, −1 for none.
    header : whether text files begin with a line of column names, see `formats.read`.
    time : the column of the times of X, see `formats.read_pair`.
    missing : "drop" deletes elements with NaN from Z and X, so that the page counts those that are left.
    """
    if "-" in (first, second):
        raise ValueError(NO_STREAM)
    if second is None and (time or missing):
        raise ValueError(f"{'time' if time else 'missing'} is for two sequences; give X, too, or omit it")
    more: dict[str, Any] = {} if fps is None else {"fps": fps}
    if truth is not None:
        more["truth"] = read_truth(truth)
    if second is not None:
        more["title"] = f"{Path(first).name} × {Path(second).name}"
        return _pair(first, second, {"header": header, "time": time}, missing, more)
    kind = Path(first).suffix.lower()
    more |= {"title": Path(first).name}
    if kind == ".npz":
        return _archive(first, more)
    if kind == ".json":
        try:
            content: object = jsons.loads(Path(first).read_text("utf-8"))
        except ValueError as error:
            raise ValueError(f"{first} cannot be read as .json: {error}") from None
        if isinstance(content, dict):
            return _written(first, content, more)
    if kind == ".npy":  # match costs may be infinite, which sequences may not
        content = Path(first).read_bytes()
        try:
            C = arrays.npy(content)
        except ValueError as error:
            raise ValueError(f"{first} cannot be read as .npy: {error}") from None
    else:
        C = formats.read(first, header=header)
    return from_costs(C, lines=_imports((_loading("C", first, header),)), **more)


def _pair(first: str, second: str, how: dict[str, Any], missing: str | None, more: dict[str, Any]) -> Data:
    """Two sequences, without their missing elements.

    how : keyword arguments of `formats.read_pair`.   more : those of `Data`, of which those of each x are cut as X is.
    """
    holes: dict[str, Any] = {"holes": True} if missing else {"or_else": ", or give --missing drop to ignore them"}
    Z, X, clocks = formats.read_pair(first, second, **how, **holes)
    clock = None if clocks is None else clocks.x
    (A, _), (B, kept) = present(Z, first, missing), present(X, second, missing)
    if kept is not None:
        fps, truth = more.get("fps"), more.get("truth")
        if fps is not None and fps > 0:  # otherwise `Data` says what is wrong; the same goes for truth
            clock = Clock.at_rate(more.pop("fps"), len(X))
        clock = None if clock is None else clock[kept[0]]
        if truth is not None and len(truth) == len(X):
            more["truth"] = truth[kept[0]]
    if clock is not None:
        more["times"] = _starts(clock.seconds)
    lines = _loading_both(first, second, {**how, "holes": bool(missing) or None})
    return from_sequences(A, B, lines=_imports(lines), **more)


def _starts(seconds: Array) -> tuple[float, ...]:
    """When each x begins. seconds : (N, 2) with their ends."""
    return tuple(seconds[:, 0].tolist())


def read_truth(place: str) -> Array:
    """Read the true z of each x, −1 for none."""
    return _labels(formats.read(place))


def _archive(place: str, more: dict[str, Any]) -> Data:
    content = Path(place).read_bytes()
    try:
        held = {name: arrays.npz(content, name) for name in arrays.npz_names(content)}
    except ValueError as error:
        raise ValueError(f"{place} cannot be read as .npz: {error}") from None
    data = f"data = np.load({os.path.abspath(place)!r})"
    if "truth" in held:
        more.setdefault("truth", _labels(held["truth"]))
    if "times_x" in held and "fps" not in more:
        more.setdefault("times", _starts(Clock.of(held["times_x"], "x", f"times_x in {place}").seconds))
    elif "fps" in held:
        more.setdefault("fps", _number(held["fps"], f"fps in {place}"))
    if {"Z", "X"} <= set(held):
        return from_sequences(held["Z"], held["X"], lines=_imports((data, 'Z, X = data["Z"], data["X"]')), **more)
    if "C" not in held:
        raise ValueError(
            f"{place} holds {', '.join(held) or 'nothing'}; the explorer needs C, or Z and X; "
            "give two sequences, or an .npz that `dropdtw align Z X --out a.npz` wrote"
        )
    lines = _imports((data, 'C = data["C"]'))
    code = {name: f'data["{name}"]' for name in ("drop_x", "drop_z") if name in held}
    return from_costs(
        held["C"],
        lines=lines,
        given=_drops({name: held[name] for name in code}, held["C"]),
        given_code=code,
        charges=_charges({name: held[name] for name in Charges._fields if name in held}),
        method=str(held["method"]) if "method" in held else None,
        cost=_number(held["cost"], f"cost in {place}") if "cost" in held else None,
        **more,
    )


def _number(value: Any, name: str) -> float:
    """A number that was read from a file."""
    if np.ndim(value) or not isinstance(np.asarray(value).item(), (int, float)):
        raise ValueError(f"{name} is {reprlib.repr(value)}; give a number")
    return float(value)


def _written(place: str, content: dict[str, Any], more: dict[str, Any]) -> Data:
    a = Alignment.from_dict(content)
    if a.problem is None:
        raise ValueError(f"{place} contains no match costs; write it with `dropdtw align Z X --out a.json --costs`")
    if a.clock_x is not None and "fps" not in more:
        more["times"] = _starts(a.clock_x.seconds)
    lines = (
        "import json",
        "",
        "import dropdtw",
        "",
        f"with open({os.path.abspath(place)!r}) as file:",
        "    problem = dropdtw.Alignment.from_dict(json.load(file)).problem",
        "C = problem.C",
    )
    given = a.problem.given
    return from_costs(
        a.problem.C,
        lines=lines,
        given=_drops({"drop_x": given.drop_x, "drop_z": given.drop_z}, a.problem.C),
        given_code={name: f"problem.given.{name}" for name in ("drop_x", "drop_z")},
        charges=given.charges,
        method=a.method,
        cost=a.cost,
        **more,
    )


def _drops(held: dict[str, Array], C: Array) -> dict[str, Array]:
    """The drop costs stored with C, without those that are all infinite, which mean that nothing may be dropped."""
    sides = {"drop_x": (C.shape[1], "x_j"), "drop_z": (C.shape[0], "z_i")}
    found = {name: as_drop_costs(values, name, *sides[name]) for name, values in held.items()}
    return {name: values for name, values in found.items() if np.isfinite(values).any()}


def _charges(held: dict[str, Array]) -> Charges:
    """The charges stored with C."""
    return Charges(*map(float, charges.resolve(**{name: values.tolist() for name, values in held.items()})))


def _labels(values: Array) -> Array:
    flat = np.asarray(values, np.float64).reshape(-1)
    if (flat != np.round(flat)).any():
        raise ValueError("truth contains numbers that are not integers; give the z of each x, −1 for none")
    return flat.astype(np.int64)


def _loading(name: str, place: str, header: bool | None) -> str:
    told = "" if header is None else f", header={header}"
    return _of_numpy(name, place) or f"{name} = formats.read({os.path.abspath(place)!r}{told})"


def _of_numpy(name: str, place: str) -> str | None:
    """The line that loads an array of NumPy; None for other files."""
    head, mark, member = place.rpartition(".npz:")
    if mark:
        return f"{name} = np.load({os.path.abspath(head + '.npz')!r})[{member!r}]"
    return f"{name} = np.load({os.path.abspath(place)!r})" if place.lower().endswith(".npy") else None


def _loading_both(first: str, second: str, how: Mapping[str, Any]) -> tuple[str, ...]:
    """The lines that load Z and X. how : keyword arguments of `formats.read_pair`; None where not given."""
    lines = (_of_numpy("Z", first), _of_numpy("X", second))
    if all(lines) and not how["holes"]:
        return tuple(filter(None, lines))
    told = "".join(f", {name}={value!r}" for name, value in how.items() if value is not None)
    return (
        f"Z, X, _ = formats.read_pair({os.path.abspath(first)!r}, {os.path.abspath(second)!r}{told})",
        *(("Z, X = (A[~np.isnan(A).any(axis=1)] for A in (Z, X))",) if how["holes"] else ()),
    )


def _imports(lines: tuple[str, ...]) -> tuple[str, ...]:
    text = "\n".join(lines)
    return (
        *(("import numpy as np",) if "np." in text else ()),
        "import dropdtw",
        *(("from dropdtw.files import formats",) if "formats.read" in text else ()),
        "",
        *lines,
    )
