"""Input validation: turn inputs into clean float arrays, or raise an error that says what arrived and what to do."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw.problem.clock import without_times
from dropdtw.problem.errors import MismatchError, described

Array = npt.NDArray[Any]


def as_floats(values: npt.ArrayLike, name: str, masked: float | None = None) -> Array:
    """Convert values to an array: float32 stays, half precision becomes float32, everything else float64.

    PyTorch tensors may have any float type, be on any device, and require a gradient.

    masked : the number that replaces masked values; None rejects them.
    """
    values = detached(values)
    if masked is None:
        refuse_masked(values, name)
    elif (hidden := _hidden(values)) is not None:
        array = as_floats(np.ma.getdata(np.ma.array(values)), name)
        return np.where(hidden, array.dtype.type(masked), array)
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):  # ValueError: rows of different lengths
        for column, dtype in zip(getattr(values, "columns", ()), getattr(values, "dtypes", ()), strict=False):
            if not (getattr(dtype, "is_numeric", bool)() or getattr(dtype, "kind", "O") in "biuf"):
                raise ValueError(
                    f"column {column!r} of {name} is not numeric; drop it, or, if it holds times, make it the index: "
                    f"pd.read_csv(..., index_col={column!r}, parse_dates=True); "
                    f"if it holds symbols, give it alone: {name}[{column!r}]"
                ) from None
        if hasattr(values, "columns") and hasattr(values, "astype"):  # pandas: booleans or pd.NA beside numbers
            return as_floats(values.astype(np.float64), name, masked)
        raise ValueError(f"{name} is {described(values)}; give a rectangular array of real numbers") from None
    if array.dtype.kind == "f" and array.dtype.itemsize <= 4:
        return array.astype(np.float32, copy=False)
    return array.astype(np.float64, copy=False)


def detached(values: Any) -> Any:
    """Turn a PyTorch tensor of any float type, on any device, into an array or number without gradient.

    Everything else is returned unchanged.
    """
    if not hasattr(values, "detach"):
        return values
    found = values.detach().cpu()
    if found.is_floating_point() and found.element_size() < 4:  # NumPy has no bfloat16
        found = found.float()
    return found.numpy() if found.ndim else found.item()


def as_sequence(values: npt.ArrayLike, name: str, *, holes: bool = False, or_else: str = "") -> Array:
    """Validate a sequence (length, d). A one-dimensional array is a sequence of numbers, d = 1.

    Columns of a data frame that hold dates or durations are left out.

    holes : whether NaN is allowed; masked values then become NaN.
    or_else : further advice for the error message.
    """
    values = without_times(values)
    if not holes:
        refuse_masked(values, name, or_else)
    array = as_floats(values, name, np.nan if holes else None)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; give one sequence, (length, d) or (length,)")
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; give at least one element with at least one feature")
    with np.errstate(over="ignore", invalid="ignore"):
        suspicious = not np.isfinite(array.sum())  # one fast pass; the sum may also overflow, so check again below
    if suspicious and (wrong := np.isinf(array) if holes else ~np.isfinite(array)).any():
        bad, column = (int(k) for k in np.argwhere(wrong)[0])
        what = "infinity" if holes else "NaN or infinity"
        at = f"element {bad}" + (f", column {values.columns[column]!r}" if hasattr(values, "columns") else "")
        raise ValueError(f"{name} has {what} in {at}; remove such elements or fill them in{or_else}")
    return array


def as_match_costs(values: npt.ArrayLike, name: str = "C") -> Array:
    """Validate a (K, N) matrix of match costs. +∞ forbids a match; masked entries become +∞."""
    array = as_floats(values, name, masked=np.inf)
    if array.ndim != 2:
        raise ValueError(f"{name} has shape {array.shape}; give one matrix (K, N): a row per z_i, a column per x_j")
    if 0 in array.shape:
        raise ValueError(f"{name} has shape {array.shape}; give at least one row and one column")
    refuse_nan_and_minus_inf(array, name)
    return array


def as_mask(values: npt.ArrayLike) -> Array:
    """Validate a (K, N) matrix of booleans, True where z_i may match x_j."""
    refuse_masked(values, "mask")
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.dtype != bool or array.ndim != 2:
        what = f"has shape {array.shape}" if array.dtype == bool else f"is {described(values)}"
        raise ValueError(f"mask {what}; give booleans (K, N), True where z_i may match x_j")
    return array


def as_drop_costs(values: npt.ArrayLike, name: str, length: int, element: str) -> Array:
    """Convert a number, or one number per element, to a vector (length,); +∞ forbids a drop."""
    if isinstance(values, float):
        array = np.full(length, values)  # fast path for the most common case
        refuse_nan_and_minus_inf(array[:1], name)
        return array
    array = as_floats(values, name)
    if np.asarray(values).dtype == bool:
        raise MismatchError(
            f"{{{name}}} is {{given}}; give the drop cost itself, a number",
            in_python=", or None for no drops",
            given=described(values),
        )
    if array.ndim == 0:
        array = np.full(length, array)
    if array.shape != (length,):
        raise MismatchError(
            f"{{{name}}} has shape {array.shape}, but there are {length} elements {element}; "
            f"give a number or one drop cost per {element}, shape ({length},)"
        )
    refuse_nan_and_minus_inf(array, name)
    return array


def as_pair(Z: npt.ArrayLike, X: npt.ArrayLike) -> tuple[Array, Array]:
    """Validate two sequences and convert them to their common precision. Raises if their numbers of features differ."""
    Z, X = same_columns(Z, X)
    return paired(as_sequence(Z, "Z"), as_sequence(X, "X"))


def same_columns(Z: Any, X: Any, z: str = "Z", x: str = "X") -> tuple[Any, Any]:
    """Two sequences, X with the columns of Z if both are data frames; z and x are what errors call them."""
    columns = Columns()
    return columns.sort(Z, z), columns.sort(X, x)


@dataclass
class Columns:
    """The columns that data frames have in common, in the order of the first one. Other sequences have no names.

    names : their names, without those of times.   of : what errors call the first data frame.
    """

    names: tuple[str, ...] = ()
    of: str = ""

    def sort(self, values: Any, name: str) -> Any:
        """A sequence without columns of times; a data frame with its columns in the order of the first one."""
        values = without_times(values)
        if not hasattr(values, "columns"):
            return values
        names = [str(column) for column in values.columns]
        if not self.names:
            self.names, self.of = tuple(names), name
        order = self.order(names, name)
        return values if order is None else values[[values.columns[k] for k in order]]

    def order(self, names: Sequence[str], name: str) -> list[int] | None:
        """Where these columns are among others; None if nothing has to move.

        Raises ValueError if the others have different names. The name of a single column does not matter.
        """
        mine = self.names
        if not mine or not names or len(mine) == len(names) == 1 or mine == tuple(names):
            return None
        if sorted(mine) == sorted(names) and len(set(mine)) == len(mine):
            return [names.index(each) for each in mine]
        for more, of, fewer, without in ((names, name, mine, self.of), (mine, self.of, names, name)):
            if set(fewer) < set(more):
                extra = [each for each in more if each not in fewer]
                which = f"the columns {shortened(extra)}" if len(extra) > 1 else f"the column {extra[0]}"
                raise ValueError(f"{of} also has {which}, which {without} lacks; give both the same columns")
        raise ValueError(
            f"{self.of} has the columns {shortened(mine)} and {name} has {shortened(names)}; "
            "give both the same columns, or remove the names"
        )


def shortened(names: Sequence[str]) -> str:
    """A list of names, without those in the middle."""
    return ",".join(names if len(names) < 6 else [*names[:2], "…", names[-1]])


def paired(Za: Array, Xa: Array) -> tuple[Array, Array]:
    """Convert two validated sequences to their common precision. Raises if their numbers of features differ."""
    if Za.shape[1] != Xa.shape[1]:
        raise ValueError(
            f"Z has {Za.shape[1]} features and X has {Xa.shape[1]}; both need the same number, as (length, d)"
            + ("; if time runs along the second axis, transpose both (Z.T and X.T)" if len(Za) == len(Xa) else "")
        )
    return same_precision(Za, Xa)


def same_precision(Z: Array, X: Array) -> tuple[Array, Array]:
    """Convert two arrays to their common precision."""
    dtype = np.result_type(Z, X)
    return Z.astype(dtype, copy=False), X.astype(dtype, copy=False)


def refuse_masked(values: object, name: str, or_else: str = "") -> None:
    """Raise if values are masked, because the numbers behind a mask are not data."""
    hidden = _hidden(values)
    if hidden is not None:
        where = tuple(int(k) for k in np.argwhere(hidden)[0])
        at = where if len(where) != 1 else where[0]
        raise ValueError(f"{name} has masked values, the first at {at}; remove them or fill them in{or_else}")


def _hidden(values: Any) -> Array | None:
    """Which values are masked, in a masked array or a list of such arrays; None if none is."""
    rows = values if isinstance(values, (list, tuple)) else (values,)
    if not any(isinstance(row, np.ma.MaskedArray) for row in rows):
        return None
    try:
        hidden = np.ma.getmaskarray(np.ma.array(values))
    except ValueError:  # rows of different lengths, which are rejected later
        return None
    return hidden if hidden.any() else None


def owned(array: Array) -> Array:
    """A copy, or the array itself if nobody can write to it (such as a read-only memory map)."""
    base: object = array
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return array if base is None or isinstance(base, (mmap.mmap, bytes)) else array.copy()


def refuse_nan_and_minus_inf(array: Array, name: str) -> None:
    """Raise if costs are NaN or −∞."""
    if array.min() > -np.inf:  # False for NaN as well
        return
    for what, bad, instead in (
        ("NaN", np.isnan(array), "fill it in, or use +inf to forbid that choice"),
        ("-inf", np.isneginf(array), "an infinite reward has no best alignment; use a finite cost"),
    ):
        if bad.any():
            where = tuple(int(k) for k in np.argwhere(bad)[0])
            raise ValueError(f"{name} has {what} at {where if len(where) > 1 else where[0]}; {instead}")


def runs(mask: Array) -> list[tuple[int, int]]:
    """The runs of True as half-open intervals (start, stop).

    >>> runs(np.array([True, True, False, True]))
    [(0, 2), (3, 4)]
    """
    edges = np.flatnonzero(np.diff(np.r_[False, mask, False]))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
