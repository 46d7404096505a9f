"""Input validation: turn inputs into clean float arrays, or raise an error that says what arrived and what to do."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
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
        bad = int(np.flatnonzero(wrong.any(axis=1))[0])
        what = "infinity" if holes else "NaN or infinity"
        raise ValueError(f"{name} has {what} in element {bad}; remove such elements or fill them in{or_else}")
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


def same_columns(Z: Any, X: Any) -> tuple[Any, Any]:
    """Two sequences, X with the columns of Z if both are data frames. Raises if their columns have other names."""
    Z, X = without_times(Z), without_times(X)
    of_z, of_x = ([str(name) for name in getattr(A, "columns", ())] for A in (Z, X))
    order = column_order(of_z, of_x, "Z", "X")
    return (Z, X) if order is None else (Z, X[[X.columns[k] for k in order]])


def column_order(of_z: Sequence[str], of_x: Sequence[str], z: str, x: str) -> list[int] | None:
    """Where the columns of Z are among those of X; None if nothing has to move. Raises if their names differ.

    of_z, of_x : their names, none if they have no names. The name of a single column does not matter.
    z, x : what to call the two in the error.
    """
    named = min(len(of_z), len(of_x)) > 1 and len(of_z) == len(of_x)
    if not named or list(of_z) == list(of_x):
        return None
    if sorted(of_z) != sorted(of_x) or len(set(of_z)) < len(of_z):
        raise ValueError(
            f"{z} has the columns {shortened(of_z)} and {x} has {shortened(of_x)}; "
            "give both the same columns, or remove the names"
        )
    return [of_x.index(name) for name in of_z]


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
