"""Nonsense arguments to the API: each call returns, or raises a ValueError or TypeError with a message."""

from __future__ import annotations

from typing import Any

import numpy as np

import dropdtw
from dropdtw import drops


def case(rng: np.random.Generator) -> str:
    """One call with random arguments, some of them nonsense."""
    name = str(rng.choice(list(DOORS)))
    options = {k: anything(rng) for k in rng.choice(OPTIONS, rng.integers(0, 4), replace=False)}
    if name not in ("align", "distance", "pairwise", "nearest"):
        options.pop("match", None)
    if name in ("nearest", "Online", "suggest"):
        for key in ("executor", "drop_x", "drop_z", "method", "threshold") if name == "suggest" else ("executor",):
            options.pop(key, None)
    positional = [sequence(rng) if rng.random() < 0.8 else anything(rng) for _ in range(DOORS[name][1])]
    kept = [p.copy() if isinstance(p, np.ndarray) else None for p in positional]
    try:
        DOORS[name][0](*positional, **options)
    except (ValueError, TypeError) as error:
        words = str(error)
    else:
        words = ""
    for was, now in zip(kept, positional, strict=True):
        if was is not None and was.dtype.kind == "f":
            np.testing.assert_array_equal(was, now)
    if not words:
        return "answered"
    assert len(words) > 5, (name, positional, options)
    return "refused"


OPTIONS = (
    *("drop_x", "drop_z", "match", "method", "one_to_many", "many_to_one"),
    *("contiguous", "window", "threshold", "executor"),
)
DOORS: dict[str, tuple[Any, int]] = {
    "align": (dropdtw.align, 2),
    "solve": (dropdtw.solve, 1),
    "cost": (dropdtw.cost, 1),
    "distance": (dropdtw.distance, 2),
    "posterior": (dropdtw.posterior, 1),
    "pairwise": (lambda Z, X, **o: dropdtw.pairwise([Z, X], progress=False, **o), 2),
    "nearest": (lambda Z, X, **o: dropdtw.nearest(Z, [X, X], 1, progress=False, **o), 2),
    "Online": (lambda Z, X, **o: [dropdtw.Online(Z, **o).push(x) for x in list(X)[:3]], 2),
    "suggest": (lambda Z, X, **o: dropdtw.suggest_drop(Z, X, **o), 2),
}


def sequence(rng: np.random.Generator) -> np.ndarray:
    """An array of any numeric type, size, scale and number of dimensions, sometimes with NaN or infinity."""
    shape = tuple(int(n) for n in rng.integers(0 if rng.random() < 0.05 else 1, 7, int(rng.choice([1, 2, 2, 2, 3]))))
    values = rng.normal(size=shape) * 10.0 ** rng.choice([0, 0, 0, -200, 30, 200])
    if values.size and rng.random() < 0.15:
        values.flat[rng.integers(values.size)] = rng.choice([np.nan, np.inf, -np.inf])
    kind = rng.choice(["f4", "f8", "f2", "i4", "u1", "?", "f8", "f8"])
    with np.errstate(all="ignore"):
        return values.astype(kind)


def anything(rng: np.random.Generator) -> Any:
    """A value that a caller might pass, by mistake or on purpose."""
    some: list[Any] = [
        *(None, True, False, 0, 1, -1, 3, 0.0, 0.3, -0.3, 1e300, np.nan, np.inf, -np.inf, 10**400, "", "magic", "none"),
        *("suggest", "percentile:30", "percentile:130", "percentile:", "logit:30", "auto", "cosine", "softmax:0.1"),
        *("softmax:0", "dtw", "lcss", "cpp", "reference", [], [1.0, 2.0], [[1.0], [1.0, 2.0]], {}, object(), b"x"),
        *(np.float32(0.5), np.array(0.5), np.array([]), np.ma.masked_array([1.0, 2.0], [True, False]), 1 + 2j),
        *(drops.Constant(0.3), drops.Percentile(20), drops.Suggest(), lambda C: 0.5, lambda *a: np.ones((2, 2))),
    ]
    return some[rng.integers(len(some))]
