"""Random problems with every executor, method and option: against the oracle if they are small, and by laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import dropdtw
import oracle
from cases import EVERY_VARIANT as VARIANTS
from cases import same
from dropdtw.executors import EXECUTORS
from dropdtw.tables.table import CHARGES
from random_tables import random_table

RELATIVE = {np.float32: 2e-4, np.float64: 1e-9}
Law = Callable[[np.random.Generator], None]


def case(rng: np.random.Generator) -> str:
    """One law on one random problem."""
    law = LAWS[rng.integers(len(LAWS))]
    law(rng)
    return law.__name__.replace("_", " ")


def random_costs(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Costs of any kind: of both signs, tied, partly forbidden, or huge and tiny side by side."""
    kind = rng.choice(["positive", "signed", "tied", "holes", "wide", "zero"])
    if kind == "tied":
        values = rng.integers(-1, 3, shape).astype(float)
    elif kind == "wide":
        values = rng.normal(size=shape) * 10.0 ** rng.integers(-6, 7, shape)
    elif kind == "zero":
        values = np.zeros(shape)
    else:
        values = rng.random(shape) if kind == "positive" else rng.normal(size=shape)
    if kind == "holes":
        values[rng.random(shape) < rng.random()] = np.inf
    values = values.astype(dtype)
    if len(shape) == 2 and rng.random() < 0.3:  # other memory layouts
        values = np.asfortranarray(values) if rng.random() < 0.5 else np.repeat(values, 2, axis=1)[:, ::2]
    return values


def random_request(rng: np.random.Generator, K: int, N: int, dtype: Any) -> dict[str, Any]:
    """A method, its options, and drop costs that it supports."""
    variant = dict(VARIANTS[rng.integers(len(VARIANTS))])
    x, z = variant.pop("sides")
    variant.pop("window", None)
    if rng.random() < 0.3:
        variant["window"] = [int(rng.integers(0, max(K, N) + 1)), float(rng.uniform(0.01, 1))][rng.integers(2)]
    if "threshold" in variant:
        variant["threshold"] = [0.4, "percentile:30"][rng.integers(2)]
    for name, wanted, length in (("drop_x", x, N), ("drop_z", z, K)):
        if wanted:
            rules = [f"percentile:{rng.integers(0, 101)}", "suggest"]
            variant[name] = [float(rng.normal()), random_costs(rng, (length,), dtype), *rules][rng.integers(4)]
    for name in CHARGES:
        if name in variant:
            suggested = "suggest" if name != "warp" else 0.0
            variant[name] = [variant[name], float(10 ** rng.uniform(-2, 2)), suggested][rng.integers(3)]
    return variant


def random_problem(rng: np.random.Generator, most: int) -> tuple[np.ndarray, dict[str, Any]]:
    """Match costs and a request."""
    K, N = (int(n) for n in rng.integers(1, most + 1, 2))
    dtype = [np.float32, np.float64][rng.integers(2)]
    return random_costs(rng, (K, N), dtype), random_request(rng, K, N, dtype)


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a call, or its error message."""
    try:
        return function(*args, **options)
    except ValueError as error:
        return str(error)


def close(a: float, b: float, C: np.ndarray, *more: Any) -> bool:
    """Whether two values agree up to the rounding of sums of such costs."""
    if a == b:
        return True
    if not (np.isfinite(a) and np.isfinite(b)):
        return False
    finite = [np.abs(v[np.isfinite(v)]).max(initial=0) for v in (C, *(np.asarray(m, float) for m in more))]
    return abs(a - b) <= RELATIVE[C.dtype.type] * max(1e-30, abs(a), abs(b), max(finite) * sum(C.shape))


def numbers(request: dict[str, Any]) -> list[Any]:
    """The drop costs and charges that are numbers."""
    return [request[n] for n in ("drop_x", "drop_z", *CHARGES) if n in request and not isinstance(request[n], str)]


def executors_agree(rng: np.random.Generator) -> None:
    """Every executor gives the reference's hard, soft and smooth value, or the same error message."""
    C, request = random_problem(rng, 30)
    kind, gamma = ["hard", "soft", "smooth"][rng.integers(3)], float(10.0 ** rng.uniform(-2, 1))
    before = C.copy()
    found = {name: outcome(dropdtw.cost, C, reducer=kind, gamma=gamma, executor=name, **request) for name in EXECUTORS}
    truth = found["reference"]
    for name, value in found.items():
        if isinstance(truth, str) or isinstance(value, str):
            assert value == truth, (name, value, truth)
        else:
            assert close(value, truth, C, *numbers(request)), (name, value, truth, kind, gamma, request)
    np.testing.assert_array_equal(before, C)


def tables_of_ones_own_agree(rng: np.random.Generator) -> None:
    """A random table has the reference's values, path, probabilities and pairs in every executor."""
    table = random_table(rng)
    C, given = random_problem(rng, 24)
    request: dict[str, Any] = {"method": table} | {
        k: v for k, v in given.items() if k in ("window", "drop_x", "drop_z")
    }
    request |= {name: float(rng.random()) for name in CHARGES if name in {e.plus for e in table.every_edge}}
    gamma = float(10.0 ** rng.uniform(-1, 1))
    found: dict[str, list[Any]] = {}
    for name in EXECUTORS:
        asked = request | {"executor": name}
        kinds = [outcome(dropdtw.cost, C, reducer=kind, gamma=gamma, **asked) for kind in ("hard", "soft", "smooth")]
        path = outcome(dropdtw.solve, C, **asked)
        chances = outcome(dropdtw.posterior, C, gamma=gamma, **asked)
        found[name] = [*kinds, path if isinstance(path, str) else path.cost, chances]
    *values, chances = found.pop("reference")
    for *others, other in found.values():
        for value, truth in zip(others, values, strict=True):
            assert value == truth if isinstance(truth, str) else close(value, truth, C, *numbers(request)), (
                table,
                value,
            )
        assert isinstance(other, str) == isinstance(chances, str), (table, other, chances)
        if not isinstance(other, str) and np.abs(C[np.isfinite(C)]).max(initial=0) < 1e3:
            assert np.allclose(other.match, chances.match, atol=1e-3), table


def oracle_agrees(rng: np.random.Generator) -> None:
    """The value is the minimum over all alignments, enumerated one by one."""
    variant = dict(VARIANTS[rng.integers(len(VARIANTS))])
    x, z = variant.pop("sides")
    K, N = (int(n) for n in rng.integers(1, 5, 2))
    C = random_costs(rng, (K, N), np.float64)
    d_x = random_costs(rng, (N,), np.float64) if x else None
    d_z = random_costs(rng, (K,), np.float64) if z else None
    window = variant.pop("window", None)
    options = {**variant, "method": "drop_dtw" if variant["method"] == "drop_dtw_paper" else variant["method"]}
    band = None if window is None else oracle.band(K, N, window)
    listed = oracle.alignments(C=C, d_x=d_x, d_z=d_z, **options, **({} if band is None else {"band": band}))
    best = min((cost for _, cost in listed), default=np.inf)
    more = {} if window is None else {"window": window}
    value = outcome(dropdtw.cost, C, d_x, d_z, **variant, **more)
    if isinstance(value, str):
        assert not np.isfinite(best), (value, best)
    else:
        assert close(value, best, C, *(d for d in (d_x, d_z) if d is not None)), (value, best)


def path_costs_what_it_says(rng: np.random.Generator) -> None:
    """An alignment re-scores to its cost, which is the value; its views agree; it survives a JSON round trip."""
    C, request = random_problem(rng, 40)
    a = outcome(dropdtw.solve, C, **request)
    if isinstance(a, str):
        return
    assert close(a.rescore(), a.cost, C, *numbers(request))
    assert close(dropdtw.cost(C, **request), a.cost, C, *numbers(request))
    assert (np.diff(a.pairs, axis=0) >= 0).all()
    assert ((a.labels >= 0) == ~a.dropped_x).all()
    assert same(a, dropdtw.Alignment.from_dict(a.to_dict(costs=bool(rng.integers(2)))))


def batches_are_their_items(rng: np.random.Generator) -> None:
    """A padded batch of tensors gives each item's own value, whatever the padding contains."""
    try:
        import torch

        from dropdtw.torch import drop_dtw
    except ImportError:
        return
    C, request = random_problem(rng, 16)
    if request.get("method") == "ctc" and "drop_z" in request:  # refused for a batch
        return
    if not all(isinstance(v, (int, float, bool, str)) and v != "suggest" for v in request.values()):
        return
    alone = outcome(dropdtw.cost, C, reducer="soft", gamma=0.5, **request)
    if isinstance(alone, str):
        return
    K, N = C.shape
    padded = torch.full((2, K + 3, N + 2), float(rng.choice([0.0, 7.0, 1e30])), dtype=torch.from_numpy(C.copy()).dtype)
    padded[1, :K, :N] = torch.from_numpy(np.ascontiguousarray(C))
    found = drop_dtw(padded, reducer="soft", gamma=0.5, z_lengths=[1, K], x_lengths=[1, N], **request)
    assert close(float(found[1]), alone, C, *numbers(request)), (float(found[1]), alone)


def sequences(rng: np.random.Generator, count: int, d: int) -> list[np.ndarray]:
    """Sequences of any length, some of them constant or far from 0."""
    dtype = [np.float32, np.float64][rng.integers(2)]
    made = [rng.normal(size=(int(rng.integers(1, 25)), d)) for _ in range(count)]
    return [(s * 0 if rng.random() < 0.05 else s + rng.choice([0, 0, 0, 100])).astype(dtype) for s in made]


def many_are_one_by_one(rng: np.random.Generator) -> None:
    """`pairwise` equals `distance` for each pair, and `nearest` equals sorted `pairwise`."""
    d = int(rng.choice([1, 2, 8, 9, 20]))
    Xs = sequences(rng, int(rng.integers(1, 7)), d)
    Z = Xs[0][: int(rng.integers(1, 20))]
    request = random_request(rng, 1, 1, np.float64)
    request = {k: 0.3 if isinstance(v, np.ndarray) else v for k, v in request.items()}
    request["match"] = str(rng.choice(["auto", "euclidean", "sqeuclidean", "softmax"] + ["cosine"] * (d > 1)))
    row = outcome(dropdtw.pairwise, [Z], Xs, n_jobs=1, progress=False, **request)
    if isinstance(row, str):
        return
    for X, value in zip(Xs, row[0], strict=True):
        single = outcome(dropdtw.distance, Z, X, **request)
        assert not isinstance(single, str), single
        assert np.isclose(value, single, rtol=1e-3, atol=1e-3) or value == single, (value, single, request)
    found = outcome(dropdtw.nearest, Z, Xs, 2, n_jobs=1, progress=False, **request)
    if not isinstance(found, str):
        np.testing.assert_array_equal(found.costs, np.sort(row[0])[:2])


def streams_end_with_the_batch_answer(rng: np.random.Generator) -> None:
    """`Online` ends with the result of `align`."""
    Z, X = (rng.normal(size=(int(n), 3)) for n in rng.integers(1, 12, 2))
    request = random_request(rng, len(Z), len(X), np.float64)
    request.pop("window", None)
    request["match"] = "euclidean"
    stream = outcome(dropdtw.Online, Z, **request, gamma=None)
    if isinstance(stream, str):
        return
    for x in X:
        stream.push(x)
    ours, theirs = outcome(stream.finish), outcome(dropdtw.align, Z, X, **request)
    if isinstance(ours, str) or isinstance(theirs, str):
        assert isinstance(ours, str) == isinstance(theirs, str), (ours, theirs)
    else:
        assert np.isclose(ours.cost, theirs.cost), (ours.cost, theirs.cost)


def explanations_cost_no_less(rng: np.random.Generator) -> None:
    """The alternatives in `explain` never cost less than the best alignment."""
    C, request = random_problem(rng, 9)
    if C.dtype != np.float64:
        return
    a = outcome(dropdtw.solve, C, **request)
    if isinstance(a, str):
        return
    explained = a.explain(int(rng.integers(C.shape[1])))
    finite = C[np.isfinite(C)]
    scale = max(1.0, float(np.abs(finite).max(initial=0)) * sum(C.shape))
    assert explained.margin >= -1e-9 * scale, explained


LAWS: list[Law] = [
    executors_agree,
    executors_agree,
    tables_of_ones_own_agree,
    oracle_agrees,
    path_costs_what_it_says,
    batches_are_their_items,
    many_are_one_by_one,
    streams_end_with_the_batch_answer,
    explanations_cost_no_less,
]
