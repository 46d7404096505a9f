"""Collections of series in the shapes of scikit-learn, tslearn and aeon. The time axis is never guessed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from dropdtw.problem.clock import without_times
from dropdtw.problem.inputs import Array, Columns, as_sequence, refuse_masked
from dropdtw.problem.missing import OR_DROP, present
from dropdtw.problem.symbols import Symbols, listing, symbolic

Layout = Literal["ntd", "nct"] | None
Panel = npt.ArrayLike | Sequence[npt.ArrayLike]


def as_series(
    X: Panel, layout: Layout = None, name: str = "X", *, missing: str | None = None, columns: Columns | None = None
) -> list[Array]:
    """Convert a collection in any usual shape to a list of series (t, d).

    X : (n, t), one series of numbers per row; a list of n series (t,) or (t, d), whose lengths may differ; a list of n
        strings or lists of symbols, which become arrays of objects (t, 1); or an array with three axes, which requires
        `layout`.
    layout : "ntd" if time comes before features, as in tslearn and everywhere in this library: (n, t, d), or a list of
        (t, d). In an array with three axes, trailing steps that are all NaN are tslearn's padding and are cut off.
        "nct" if channels come before time, as in aeon and sktime: (n, c, t), or a list of (c, t). None: lists are read
        as "ntd", and arrays with three axes raise an error.
    name : what to call X in error messages.
    missing : "drop" allows NaN, for functions that leave such steps out; None raises on NaN.
    columns : what data frames have in common with others; None for those of the first one.

    Returns a list of n arrays (t, d). Raises ValueError if X or its layout is invalid.

    >>> import numpy as np
    >>> from dropdtw.sklearn import as_series
    >>> [s.shape for s in as_series(np.zeros((2, 3, 50)), layout="nct")]
    [(50, 3), (50, 3)]
    >>> [s.shape for s in as_series([[1, 2, 3], [1, 2]])]
    [(3, 1), (2, 1)]
    """
    if layout not in (None, "ntd", "nct"):
        raise ValueError(f"layout is {layout!r}; give 'ntd' (time, then features), 'nct' (channels, then time) or None")
    if holds_symbols(X):
        return [_symbols(listing(each, f"{name}[{k}]")) for k, each in enumerate(X)]  # type: ignore[arg-type]
    if not is_collection(X):
        refuse_masked(X, name)
        rows = [row[:, None] for row in as_table(X, missing)]
        return rows if missing is None else [_checked(row, f"{name}[{k}]", missing) for k, row in enumerate(rows)]
    if isinstance(X, np.ndarray) and X.ndim == 3:
        if layout is None:
            n, a, b = X.shape
            raise ValueError(
                f"{name} has shape {X.shape}, which can be read in two ways; give layout='ntd' for {n} series of {a} "
                f"steps with {b} features (tslearn), or layout='nct' for {n} series of {a} channels with {b} steps "
                "(aeon)"
            )
        if layout == "ntd":
            X = [_unpadded(each) for each in X]
    elif isinstance(X, np.ndarray) and X.dtype != object:
        raise ValueError(
            f"{name} has shape {X.shape}; give (n, t), (n, t, d) with layout='ntd', (n, c, t) with layout='nct', "
            "or a list of series"
        )
    for k, each in enumerate(X):  # type: ignore[arg-type]
        refuse_masked(each, f"{name}[{k}]")
    columns = columns or Columns()
    sort = columns.sort if layout != "nct" else lambda each, name: without_times(each)
    given = [np.asarray(sort(each, f"{name}[{k}]")) for k, each in enumerate(X)]  # type: ignore[arg-type]
    if layout == "nct":
        given = [each.T if each.ndim == 2 else each for each in given]
    series = [_checked(each, f"{name}[{k}]", missing) for k, each in enumerate(given)]
    if not series:
        raise ValueError(f"{name} is empty; give at least one series")
    check_features(series, series[0].shape[1], f"{name}[0] has", layout, name)
    return series


def is_collection(X: Panel) -> bool:
    """Whether X is a list of series or has three axes, rather than a table with one series per row."""
    if hasattr(X, "toarray") or hasattr(X, "columns"):  # a sparse matrix; a data frame
        return False
    if holds_symbols(X):
        return True
    if isinstance(X, np.ndarray):
        return X.ndim > 2 or (X.dtype == object and X.ndim == 1 and X.size > 0 and np.ndim(X[0]) > 0)
    if not isinstance(X, (list, tuple)) or not X:
        return False
    shapes = {np.shape(each) for each in X} if all(_is_regular(each) for each in X) else {()}
    return shapes != {()} and (len(shapes) > 1 or len(next(iter(shapes))) != 1)


def holds_symbols(X: Panel) -> bool:
    """Whether X is a list of strings, or of other sequences of symbols."""
    return isinstance(X, (list, tuple)) and any(map(symbolic, X))


def _symbols(symbols: Symbols) -> Array:
    """Symbols as an array of objects, (t, 1)."""
    found = np.empty((len(symbols), 1), object)
    for k, symbol in enumerate(symbols):
        found[k, 0] = symbol
    return found


def as_table(X: Any, missing: str | None = None) -> Array:
    """(n, t) floats; anything else raises scikit-learn's own errors. A series may have only one step."""
    try:
        return np.asarray(check_array(X, dtype=(np.float64, np.float32), ensure_all_finite=finite(missing)))
    except ValueError as error:
        if "NaN" in str(error):
            raise ValueError(f"{error}\nRemove such series or fill them in{OR_DROP}.") from None
        raise


def finite(missing: str | None) -> bool | str:
    """The value of `ensure_all_finite` for scikit-learn's checks."""
    return True if missing is None else "allow-nan"


def _checked(series: Array, name: str, missing: str | None) -> Array:
    """A series, which may have missing steps as long as some are present."""
    found, places = present(series, name, missing)
    return found if places is None else as_sequence(series, name, holes=True)


def check_features(series: list[Array], d: int, known: str, layout: Layout, name: str = "X") -> None:
    """Raise if a series does not have d features, and suggest the layout that would fit."""
    for k, each in enumerate(series):
        if each.shape[1] != d:
            other = "nct" if layout != "nct" else "ntd"
            raise ValueError(
                f"{known} {d} features and {name}[{k}] has {each.shape[1]}, read as {layout or 'ntd'!r}; all series "
                f"need the same number (if {'channels come' if other == 'nct' else 'time comes'} first, "
                f"give layout={other!r})"
            )


def _is_regular(each: Any) -> bool:
    try:
        np.asarray(each)
    except ValueError:
        return False
    return True


def _unpadded(series: Array) -> Array:
    """Cut off the trailing steps that are all NaN."""
    if series.dtype.kind != "f":
        return series
    there = np.flatnonzero(~np.isnan(series).all(axis=1))
    return series[: there[-1] + 1] if len(there) else series
