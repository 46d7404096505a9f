"""Small problems for the tests: all methods, all options, all kinds of costs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

import dropdtw
import oracle
from dropdtw.problem.charges import NO_CHARGES, Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.match import Matrix
from dropdtw.problem.spec import Spec
from dropdtw.tables.table import CHARGES

SHAPES = [(1, 1), (1, 4), (4, 1), (2, 2), (2, 3), (3, 2), (3, 5), (4, 4)]
KINDS = ["positive", "signed", "tied", "holes"]


@dataclass(frozen=True)
class Case:
    """One problem, in the form of the library and in that of the oracle."""

    C: np.ndarray
    drop_x: np.ndarray | None
    drop_z: np.ndarray | None
    options: dict[str, Any] = field(default_factory=dict)

    def library(self, **more: Any) -> dict[str, Any]:
        return {"C": self.C, "drop_x": self.drop_x, "drop_z": self.drop_z, **self.options, **more}

    def oracle(self) -> dict[str, Any]:
        options = dict(self.options)
        if options.get("method") == "drop_dtw_paper":
            options["method"] = "drop_dtw"
        if "window" in options:
            options["band"] = oracle.band(*self.C.shape, options.pop("window"))
        return {"C": self.C, "d_x": self.drop_x, "d_z": self.drop_z, **options}


def spec_of(variant: dict[str, Any], drop_x: Any = None, drop_z: Any = None, **more: Any) -> Spec:
    """The request for a variant, with these drop costs on the sides that it may drop from."""
    options = {k: v for k, v in variant.items() if k != "sides"} | more
    x, z = variant["sides"]
    return Spec.of(drop_x if x else None, drop_z if z else None, **options)


def paid(
    C: np.ndarray, drop_x: np.ndarray, drop_z: np.ndarray, band: Any = None, charges: Charges = NO_CHARGES
) -> Costs:
    """Costs for an executor, from a matrix."""
    return Costs(Matrix(C), drop_x, drop_z, charges, band=band)


def costs(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Random costs of one kind: positive, signed, with many ties, or with some +∞."""
    if kind == "tied":
        return rng.integers(-1, 2, shape).astype(float)
    values = rng.random(shape) if kind == "positive" else rng.normal(size=shape)
    if kind == "holes":
        values[rng.random(shape) < 0.25] = np.inf
    return values


def variants(method: str) -> list[dict[str, Any]]:
    """Every meaningful combination of options for a method, with the sides it may drop from."""
    entry = dropdtw.METHODS[method]
    sides = [(True, True), (True, False), (False, True), (False, False)] if entry.takes_drops else [(False, False)]
    moves = [(True, True)] if entry.one_to_one or entry.fixes_moves else list(product((True, False), repeat=2))
    if entry.moves is not None:
        moves = [(o, m) for o, m in moves if m == entry.moves.many_to_one]
    contiguous = (
        (True,) if method in ("steps", "ctc") else (False, True) if method.startswith(("drop", "greedy")) else (False,)
    )
    plain = [
        {
            "sides": s,
            "method": method,
            "one_to_many": o,
            "many_to_one": m,
            "contiguous": c,
            **({"window": w} if w else {}),
            **({"threshold": 0.4} if entry.takes_threshold else {}),
        }
        for s, (o, m), c, w in product(sides, moves, contiguous, (None, 1))
    ]
    charging = [(v, charges(method, v["sides"])) for v in plain]
    return plain + [v | charged for v, charged in charging if charged]


def charges(method: str, sides: tuple[bool, bool]) -> dict[str, float]:
    """Charges that a method supports; their sums are exact in floating point."""
    entry = dropdtw.METHODS[method]
    found = {"open_x": 0.5, "open_z": 0.25, "warp": 0.125}
    taken = {"open_x": entry.takes_opening and sides[0], "open_z": entry.takes_opening and sides[1]}
    return {name: value for name, value in found.items() if taken.get(name, entry.takes_warp)}


def cases(variant: dict[str, Any], seed: int = 0) -> list[Case]:
    """A variant with every shape that it supports and every kind of costs; tests must not change them."""
    key = repr((variant, seed))
    if key not in _MADE:
        _MADE[key] = _made(variant, seed)
    return _MADE[key]


_MADE: dict[str, list[Case]] = {}


def _made(variant: dict[str, Any], seed: int) -> list[Case]:
    x, z = variant["sides"]
    options = {k: v for k, v in variant.items() if k != "sides"}
    rng = np.random.default_rng(seed)
    found = []
    for (K, N), kind in product(SHAPES, KINDS):
        C, d_x, d_z = costs(kind, (K, N), rng), costs(kind, (N,), rng), costs(kind, (K,), rng)
        case = Case(C, d_x if x else None, d_z if z else None, options)
        if fits(case):
            found.append(case)
            for part in (C, d_x, d_z):
                part.flags.writeable = False
    return found


def fits(case: Case) -> bool:
    """Whether the shape allows any alignment, whatever the costs."""
    options = {k: v for k, v in case.oracle().items() if k != "band"}
    options |= {"C": np.zeros_like(case.C)}
    for d in ("d_x", "d_z"):
        if options[d] is not None:
            options[d] = np.zeros_like(options[d])
    return bool(oracle.alignments(**options))


OF_COSTS = [name for name, entry in dropdtw.METHODS.items() if not entry.needs_sequences]
"""Methods that need only match costs; `tests/tables/test_relatives.py` has the others."""

EVERY_VARIANT = [v for method in OF_COSTS for v in variants(method)]


def _enough() -> list[dict[str, Any]]:
    """Some of the variants that run the same tables: every pair of options occurs together, but not every combination.

    "drop_dtw_paper" has its own table only for drops on both sides; "greedy" and "wdtw" have none.
    """
    found, seen = [], Counter[tuple[Any, ...]]()
    for v in EVERY_VARIANT:
        charged = bool(CHARGES.keys() & v.keys())
        shared = v["method"] in ("greedy", "wdtw") or (v["method"] == "drop_dtw_paper" and not all(v["sides"]))
        k = seen[v["method"], charged]
        seen[v["method"], charged] += 1
        every = (8 if charged else 3) if shared else 3 if charged and v["method"] == "drop_dtw" else 1
        if k % every == 0:
            found.append(v)
    return found


VARIANTS = _enough()


def name(variant: dict[str, Any]) -> str:
    """A short id for pytest."""
    sides = "".join(n for n, s in zip("xz", variant["sides"], strict=True) if s) or "none"
    flags = [k for k in ("one_to_many", "many_to_one") if not variant[k]]
    return "-".join(
        [variant["method"], f"drop_{sides}", *(f"not_{f}" for f in flags)]
        + ["contiguous"] * variant["contiguous"]
        + ["window"] * ("window" in variant)
        + ["charged"] * bool({"open_x", "open_z", "warp"} & set(variant))
    )


def arguments(method, K, N, rng):
    """Costs and options for a method: match costs of both signs, and one drop cost per element if it takes any."""
    entry = dropdtw.METHODS[method if isinstance(method, str) else "drop_dtw"]
    given = {"C": rng.uniform(-0.5, 1, (K, N)), "method": method}
    if entry.takes_drops:
        given |= {"drop_x": rng.uniform(0, 0.5, N), "drop_z": rng.uniform(0, 0.5, K)}
    if entry.takes_threshold:
        given |= {"threshold": 0.3}
    return given


def solved(method="drop_dtw", K=4, N=7, seed=0, **more):
    return dropdtw.solve(**arguments(method, K, N, np.random.default_rng(seed)) | more)


def same(a, b):
    """Whether two alignments match the same elements at the same cost."""
    return (
        a.cost == b.cost
        and a.method == b.method
        and a.shape == b.shape
        and np.array_equal(a.pairs, b.pairs)
        and np.array_equal(a.labels, b.labels)
        and np.array_equal(a.paid_x, b.paid_x)
        and np.array_equal(a.paid_z, b.paid_z)
    )
