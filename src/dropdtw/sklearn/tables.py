"""An alignment as columns, for data frames: `pandas.DataFrame(columns(a))` or `polars.DataFrame(columns(a))`."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dropdtw.problem.inputs import Array
from dropdtw.results.alignment import Alignment


def columns(a: Alignment, of: Literal["pairs", "x", "z", "segments"] = "pairs") -> dict[str, Array]:
    """Convert an alignment to columns of equal length, for a data frame.

    a : the alignment.
    of : what a row stands for. "pairs": a match, with columns z, x and, if the alignment has its costs, cost. "x" or
        "z": an element, matched, dropped or missing. "segments": an unbroken run, with columns label, start and stop.

    Returns a dictionary from names to arrays. Raises ValueError if `of` is none of these.

    >>> import dropdtw
    >>> from dropdtw.sklearn import columns
    >>> a = dropdtw.solve([[0.1, 0.9, 0.2]], drop_x=0.3)
    >>> columns(a)
    {'z': array([0, 0]), 'x': array([0, 2]), 'cost': array([0.1, 0.2])}
    >>> columns(a, "x")["dropped"]
    array([False,  True, False])
    """
    i, j = a.pairs.T
    if of == "pairs":
        return {"z": i, "x": j} | ({} if a.problem is None else {"cost": a.problem.costs.match.at(*a.compact.pairs.T)})
    if of == "x":
        missing = {} if a.kept is None else {"missing": a.missing_x}
        return {"x": np.arange(a.shape[1]), "label": a.labels, "dropped": a.dropped_x, **missing}
    if of == "z":
        matches = np.bincount(i, minlength=a.shape[0])
        missing = {} if a.kept is None else {"missing": a.missing_z}
        return {"z": np.arange(a.shape[0]), "matches": matches, "dropped": a.dropped_z, **missing}
    if of == "segments":
        runs = np.array(a.segments(), np.int64).reshape(-1, 3).T
        return dict(zip(("label", "start", "stop"), runs, strict=True))
    raise ValueError(f"of is {of!r}; give 'pairs', 'x', 'z' or 'segments'")
