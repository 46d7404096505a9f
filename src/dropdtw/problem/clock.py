"""When the elements of a sequence begin and end, in the caller's type of time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from importlib import import_module
from numbers import Real
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from dropdtw.problem.errors import OptionError, choices, described
from dropdtw.problem.warn import warn

Array = npt.NDArray[Any]

Kind = Literal["plain", "python", "pandas"]
"""How a clock gives a time: as NumPy does (numbers as floats), as a datetime, or as a pandas Timestamp."""

Times = Any
"""What `times=` takes: (length,) or (length, 2) times, the name of a column, or a tuple of two of these for Z and X."""

Fps = float | tuple[float | None, float | None] | None
"""What `fps=` takes: elements per second, of X or of (Z, X)."""

ADVICE = "give seconds, datetime64 or timedelta64, datetimes, or a time index of pandas or polars"


@dataclass(frozen=True, eq=False)
class Clock:
    """When each element of a sequence begins and ends.

    begin, end : (length,), both float64 (seconds), datetime64 or timedelta64.
    kind, zone : the type of a single time: what makes it, and its time zone, if it has one.

    >>> clock = Clock.of([0.0, 2.0, 2.5], "x")
    >>> clock.end, clock.span(1, 3)
    (array([2.  , 2.5 , 3.75]), (2.0, 3.75))
    """

    begin: Array
    end: Array
    kind: Kind = "plain"
    zone: tzinfo | None = None

    @classmethod
    def of(cls, times: Times, side: str, name: str = "times") -> Clock:
        """Validate the times of a sequence, (length,) or, with their ends, (length, 2).

        An element ends where the next one begins. The last one lasts as long as the median of the others.

        side : "z" or "x", for messages.   name : the argument that the times come from.

        Raises ValueError unless the times are finite and increase.
        """
        if isinstance(times, Clock):
            return times
        found, kind, zone = _read(times, side, name)
        begin = found[:, 0] if found.ndim == 2 else found
        bad = np.isnat(found) if found.dtype.kind in "mM" else ~np.isfinite(found)
        if bad.any():
            at = int(np.argwhere(bad)[0][0])
            raise ValueError(f"{name} of {side}_{at} is {found[at]}; give every element a time")
        late = np.flatnonzero(begin[1:] <= begin[:-1])
        if len(late):
            j, utc = int(late[0]), "" if zone is None else " UTC"
            before, now = (f"{time}{utc}" for time in begin[j : j + 2])
            raise ValueError(
                f"{name} must increase, but {side}_{j} is at {before} and {side}_{j + 1} at {now}; "
                "sort the elements by time and remove duplicates, or convert the sequence to a plain array"
            )
        if found.ndim == 2:
            end = found[:, 1]
            wrong = np.flatnonzero((end < begin) | np.r_[False, end[1:] < end[:-1]])
            if len(wrong):
                j = int(wrong[0])
                raise ValueError(
                    f"{name} of {side}_{j} end at {end[j]}; "
                    "no element may end before it begins, or before the previous one"
                )
            return cls(begin, end, kind, zone)
        steps = np.diff(begin)
        last = np.median(steps) if len(steps) else begin[0] - begin[0]
        return cls(begin, np.append(begin[1:], begin[-1:] + last), kind, zone)

    @classmethod
    def at_rate(cls, fps: Any, n: int) -> Clock:
        """The clock of n elements, `fps` per second, the first at 0."""
        if isinstance(fps, bool) or not isinstance(fps, Real) or not 0 < float(fps) < np.inf:
            raise OptionError("fps", fps, "give the number of elements per second, > 0")
        ticks = np.arange(n + 1) / float(fps)
        return cls(ticks[:-1], ticks[1:])

    def __len__(self) -> int:
        return len(self.begin)

    def __getitem__(self, chosen: slice | Array) -> Clock:
        """The clock of some elements."""
        return replace(self, begin=self.begin[chosen], end=self.end[chosen])

    def time(self, value: Any) -> Any:
        """A single time, in the caller's type."""
        if self.kind == "pandas":
            pandas = import_module("pandas")
            found = (pandas.Timestamp if value.dtype.kind == "M" else pandas.Timedelta)(value)
            return found if self.zone is None else found.tz_localize("UTC").tz_convert(self.zone)
        if self.kind == "python":
            found = value.astype(f"{value.dtype.kind}8[us]").item()
            return found if self.zone is None else found.replace(tzinfo=UTC).astimezone(self.zone)
        return float(value) if value.dtype.kind == "f" else value

    def span(self, start: int, stop: int) -> tuple[Any, Any]:
        """When the elements [start, stop) begin and end, in the caller's type."""
        return self.time(self.begin[start]), self.time(self.end[stop - 1])

    @property
    def times(self) -> Any:
        """When each element begins: an array, or an index if the caller's times were pandas'."""
        if self.kind == "pandas":
            index = import_module("pandas").Index(self.begin)
            return index if self.zone is None else index.tz_localize("UTC").tz_convert(self.zone)
        return self.begin

    @property
    def durations(self) -> Array:
        """(length,) how long each element lasts, in seconds."""
        return np.asarray(np.diff(self.seconds)[:, 0])

    @property
    def seconds(self) -> Array:
        """(length, 2) when each element begins and ends, in seconds; dates are counted from the first one."""
        both = np.stack([self.begin, self.end], axis=1)
        from_start = both - both[0, 0] if both.dtype.kind == "M" else both
        return from_start if both.dtype.kind == "f" else np.asarray(from_start / np.timedelta64(1, "s"))

    def to_dict(self) -> dict[str, Any]:
        """The clock as JSON can hold it; `from_dict` reads it."""
        held: dict[str, Any] = {"begin": self.begin, "end": self.end}
        if self.begin.dtype.kind != "f":
            held = {name: each.view(np.int64) for name, each in held.items()} | {"unit": self.begin.dtype.str[1:]}
        zone = (
            None
            if self.zone is None
            else getattr(self.zone, "key", None) or getattr(self.zone, "zone", None) or self.zone.utcoffset(None)
        )
        if isinstance(zone, timedelta):
            zone = zone.total_seconds()
        held |= {"kind": self.kind, "zone": zone}
        return {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in held.items()}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], side: str, length: int) -> Clock:
        """Read what `to_dict` wrote. Raises ValueError if it is damaged."""
        unit, kind, zone = data.get("unit"), data.get("kind", "plain"), data.get("zone")
        if kind not in ("plain", "python", "pandas") or not (
            unit is None or re.fullmatch(r"[mM]8\[[DhmsunWf]s?\]", unit)
        ):
            raise ValueError(f"its times of {side} are of an unknown type")
        both = np.stack([np.asarray(data[name], np.float64 if unit is None else np.int64) for name in ("begin", "end")])
        if both.shape != (2, length):
            raise ValueError(f"its times of {side} have shape {both.shape}")
        found = cls.of((both if unit is None else both.view(unit)).T, side)
        if isinstance(zone, (int, float)):
            return replace(found, kind=kind, zone=timezone(timedelta(seconds=zone)))
        return replace(found, kind=kind, zone=None if zone is None else ZoneInfo(zone))

    @property
    def uniform(self) -> float | None:
        """How long every element lasts, in seconds; None if durations differ by more than rounding."""
        lasting = self.durations
        typical = float(np.median(lasting))
        return typical if typical > 0 and np.abs(lasting - typical).max() <= 1e-3 * typical else None


def plain(time: Any) -> float | str | None:
    """A time as JSON and CSV hold it: seconds as a number, anything else in ISO 8601.

    >>> plain(np.datetime64("2024-05-01T12:00", "ms")), plain(timedelta(seconds=2.5)), plain(1.5)
    ('2024-05-01T12:00:00.000', 2.5, 1.5)
    """
    if time is None or isinstance(time, float):
        return time
    if isinstance(time, timedelta):
        return time.total_seconds()
    if isinstance(time, np.timedelta64):
        return float(time / np.timedelta64(1, "s"))
    return str(time) if isinstance(time, np.datetime64) else str(time.isoformat())


def spoken(time: Any) -> str:
    """A time as people read it, to a hundredth of a second."""
    value = plain(time)
    return f"{value:.2f} s" if isinstance(value, float) else str(value).replace("T", " ")


class Clocks(NamedTuple):
    """The clocks of Z and X; None for a sequence without times."""

    z: Clock | None
    x: Clock | None

    def of_x(self, chosen: slice) -> Clocks:
        """The clocks of Z and of a stretch of X."""
        return Clocks(self.z, None if self.x is None else self.x[chosen])


def timed(Z: Any, X: Any, times: Times = None, fps: Fps = None) -> tuple[Any, Any, Clocks | None]:
    """Two sequences without their columns of times, and their clocks; None if neither has one.

    times, fps : as in `dropdtw.align`. Without them, clocks come from time indexes and time columns of data frames.
    """
    if times is not None and fps is not None:
        raise OptionError("fps", fps, "give only one of them", ", and {times} are given as well")
    at, rate = _of_both(times), fps if isinstance(fps, tuple) and len(fps) == 2 else (None, fps)
    (A, z), (B, x) = _of_one(Z, "z", at[0], rate[0]), _of_one(X, "x", at[1], rate[1])
    if isinstance(times, str) and z is None and x is None:
        raise OptionError("times", times, "give Z or X as a data frame that has it", ", but neither has such a column")
    return A, B, None if z is None and x is None else Clocks(z, x)


def clocks_of(shape: tuple[int, int], times: Times = None, fps: Fps = None) -> Clocks | None:
    """The clocks of sequences with these lengths; None without `times` and `fps`."""
    if times is None and fps is None:
        return None
    Z, X = (np.empty((n, 0)) for n in shape)
    return timed(Z, X, times, fps)[2]


def _of_both(times: Times) -> tuple[Times, Times]:
    """The times of Z and of X: a tuple names both, a column's name may be in both, anything else is X's."""
    single = (Real, date, timedelta, np.generic)
    if isinstance(times, tuple) and len(times) == 2 and not any(isinstance(each, single) for each in times):
        return times
    return (times, times) if isinstance(times, str) else (None, times)


def _of_one(values: Any, side: str, times: Any, fps: float | None) -> tuple[Any, Clock | None]:
    """A sequence without its times, and its clock."""
    if isinstance(times, str):
        names = getattr(values, "columns", None)
        if names is None or times not in names:
            if names is not None and side == "x":
                raise OptionError("times", times, choices(times, map(str, names)), ", which is no column of X")
            return values, None
        column, rest = values[times], values[[name for name in names if name != times]]
        return without_times(rest), Clock.of(column, side, times)
    plain_values = without_times(values)
    if fps is not None:
        return plain_values, Clock.at_rate(fps, _length(values))
    if times is None:
        return plain_values, _own(values, side)
    clock = Clock.of(times, side)
    if len(clock) != _length(values):
        raise ValueError(
            f"times has {len(clock)} entries for {side.upper()}, which has {_length(values)} elements; "
            f"give one time per {side}" + ("; for times of both sequences, give a tuple (z, x)" if side == "x" else "")
        )
    return plain_values, clock


def _length(values: Any) -> int:
    try:
        return len(values)
    except TypeError:
        raise ValueError(
            f"times are given for {described(values)}; give a sequence, (length, d) or (length,)"
        ) from None


def _own(values: Any, side: str) -> Clock | None:
    """The clock in a data frame or series: its time index, or its only column of times."""
    index = getattr(values, "index", None)
    if getattr(getattr(index, "dtype", None), "kind", "") in ("m", "M") or type(index).__name__ in _SPANS:
        return Clock.of(index, side, f"the index of {side.upper()}")
    label = next(iter(index), None) if index is not None and hasattr(index, "dtype") else None
    if isinstance(label, str) and _DATE.match(label):
        warn(f"the index of {side.upper()} holds strings and is not used as times; parse it with pd.to_datetime")
    columns = time_columns(values)
    if len(columns) > 1:
        names = ", ".join(map(str, columns))
        raise OptionError("times", None, f"choose one of {names}", f", and {side.upper()} has several columns of times")
    return Clock.of(values[columns[0]], side, f"column {columns[0]!r}") if columns else None


_SPANS = ("PeriodIndex", "IntervalIndex")
"""Indexes of pandas whose elements have a beginning and an end."""


_DATE = re.compile(r"\s*(\d{1,4}[-./]\d{1,2}[-./]\d{1,4}|\d{1,2}:\d\d)")
"""How dates and times of day begin, in most notations."""


def time_columns(values: Any) -> list[Any]:
    """The names of a data frame's columns that hold dates or durations, in pandas or polars."""
    names = getattr(values, "columns", None)
    if names is None or not hasattr(values, "dtypes"):
        return []
    return [name for name, dtype in zip(names, values.dtypes, strict=True) if _is_temporal(dtype)]


def without_times(values: Any) -> Any:
    """A data frame without the columns that hold dates or durations, which are no features."""
    lost = time_columns(values)
    return values[[name for name in values.columns if name not in lost]] if lost else values


def _is_temporal(dtype: Any) -> bool:
    return getattr(dtype, "kind", "") in ("m", "M") or bool(getattr(dtype, "is_temporal", bool)())


def _read(times: Any, side: str, name: str) -> tuple[Array, Kind, tzinfo | None]:
    """Times as an array, with the type of a single one."""
    from dropdtw.problem.inputs import detached

    if isinstance(times, (list, tuple)) and times and _library(times[0]) == "pandas":
        times = import_module("pandas").Index(times)
    if _library(times) == "pandas":
        return _of_pandas(times, side, name)
    polars = _library(times) == "polars"
    named = getattr(times.dtype, "time_zone", None) if polars else None
    try:
        array = np.asarray(detached(times))
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    kind: Kind = "python" if polars and array.dtype.kind in "mM" else "plain"
    zone: tzinfo | None = None if named is None else ZoneInfo(named)
    if array.dtype == object and array.size and all(isinstance(t, (datetime, timedelta)) for t in array.flat):
        first, kind = array.flat[0], "python"
        zone = getattr(first, "tzinfo", None)
        if zone is not None:
            array = np.array([t.astimezone(UTC).replace(tzinfo=None) for t in array.flat]).reshape(array.shape)
        array = array.astype("M8[us]" if isinstance(first, datetime) else "m8[us]")
    if (
        array.dtype.kind not in "iufmM"
        or array.ndim not in (1, 2)
        or array.shape[1:] not in ((), (2,))
        or not len(array)
    ):
        raise ValueError(
            f"{name} of {side.upper()} is {described(times)}; {ADVICE}: (length,), or (length, 2) with ends"
        )
    if array.dtype.kind in "mM":
        return array.astype(f"{array.dtype.kind}8[D]") if _is_calendar(array) else array, kind, zone
    return array.astype(np.float64), kind, None


def _library(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_calendar(array: Array) -> bool:
    """Whether times are in years or months, which have no fixed number of seconds."""
    return np.datetime_data(array.dtype)[0] in ("Y", "M")


def _of_pandas(times: Any, side: str, name: str) -> tuple[Array, Kind, tzinfo | None]:
    """The times of an index or a series of pandas."""
    pandas = import_module("pandas")
    if isinstance(times, pandas.DataFrame):
        return _read(times.to_numpy(), side, name)
    index = pandas.Index(times)
    if isinstance(index, pandas.PeriodIndex):
        index = index.to_timestamp()
    if isinstance(index, pandas.IntervalIndex):
        (begin, kind, zone), (end, *_) = (_of_pandas(each, side, name) for each in (index.left, index.right))
        return np.stack([begin, end], axis=1), kind, zone
    if index.dtype.kind not in "mM":
        return _read(index.to_numpy(), side, name)
    zone = getattr(index, "tz", None)
    return (index if zone is None else index.tz_convert(None)).to_numpy(), "pandas", zone
