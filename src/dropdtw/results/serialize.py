"""Alignments as dictionaries that JSON can hold."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dropdtw import orders
from dropdtw.problem.charges import Charges
from dropdtw.problem.clock import Clock, Clocks, plain
from dropdtw.problem.costs import Costs
from dropdtw.problem.inputs import Array, as_drop_costs, as_match_costs
from dropdtw.problem.match import Matrix
from dropdtw.problem.missing import Kept
from dropdtw.problem.options import Options
from dropdtw.problem.problem import Problem, without_repeats
from dropdtw.problem.symbols import Symbols
from dropdtw.results.alignment import Alignment, Segment
from dropdtw.results.walked import arcs_cost
from dropdtw.tables.methods import METHODS, Matching
from dropdtw.tables.table import Edge, Recurrence

FORMAT = 1
"""Version of the format. Increase it when dictionaries of older versions can no longer be read."""


def to_dict(a: Alignment, costs: bool) -> dict[str, Any]:
    """See `Alignment.to_dict`."""
    data: dict[str, Any] = {
        "format": FORMAT,
        "method": a.method,
        "shape": list(a.shape),
        "cost": a.cost,
        "pairs": a.pairs.tolist(),
        "labels": a.labels.tolist(),
        "segments": [s._asdict() for s in a.segments()],
        "paid_x": a.paid_x.tolist(),
        "paid_z": a.paid_z.tolist(),
    }
    if a.clocks is not None:
        data["times"] = {side: clock.to_dict() for side, clock in a.clocks._asdict().items() if clock is not None}
        for each, segment in zip(data["segments"], a.segments(), strict=True):
            each |= {"start_time": plain(segment.start_time), "stop_time": plain(segment.stop_time)}
    if a.match is not None:
        data["match"] = a.match
    if a.symbols is not None and all(map(_plain_symbol, (*a.symbols[0], *a.symbols[1]))):
        data["symbols"] = {side: list(symbols) for side, symbols in zip("zx", a.symbols, strict=True)}
    if a.weights is not None:
        data["weights"] = a.weights.tolist()
    if any(a.charged):
        data["charged"] = a.charged._asdict()
    if a.walked is not None:
        data["walk"], data["visit"] = a.walk.tolist(), a.visit.tolist()
    if a.kept is not None:
        data["missing_x"], data["missing_z"] = (np.flatnonzero(m).tolist() for m in (a.missing_x, a.missing_z))
    if costs:  # only those of elements that are present
        p = a.solved()
        data["problem"] = {
            "table": asdict(p.table),
            "C": _lists(p.C),
            "match": _lists(p.costs.matrix),
            "drop_x": _lists(p.costs.drop_x),
            "drop_z": _lists(p.costs.drop_z),
            "band": None if p.costs.band is None else [limit.tolist() for limit in p.costs.band],
            "charges": p.costs.charges._asdict(),
        }
        if p.anchors:
            data["problem"]["anchors"] = [list(pair) for pair in p.anchors]
        if p.order is not None:
            data["problem"]["order"] = p.order.to_dict()
        if p.ids is not None:
            data["problem"]["ids"] = list(p.ids)
            if p.order is None and p.graph is not None:
                data["problem"]["skips"] = _lists(p.given.drop_z)
    return data


def from_dict(data: Mapping[str, Any]) -> Alignment:
    """See `Alignment.from_dict`."""
    try:
        return _read(data)
    except (TypeError, ValueError, KeyError, IndexError, OverflowError) as error:
        what = f"{error.args[0]} missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"this is not an alignment in format {FORMAT} ({what}); give a dictionary that Alignment.to_dict wrote"
        ) from error


def _read(data: Mapping[str, Any]) -> Alignment:
    if _mapping(data, "it")["format"] != FORMAT or isinstance(data["format"], bool):
        raise ValueError(f"its format is {data['format']!r}")
    K, N = (operator.index(n) for n in data["shape"])
    shape = (K, N)
    if min(shape) < 1:
        raise ValueError(f"its shape is {shape}")
    cost = float(_numbers(data["cost"], "its cost is").reshape(()))
    if not np.isfinite(cost):
        raise ValueError(f"its cost is {cost}")
    pairs, labels = _whole(data["pairs"], "its pairs are").reshape(-1, 2), _whole(data["labels"], "its labels are")
    labels = labels.reshape(N)
    paid_x, paid_z = (_numbers(data[n], f"its {n} is").reshape(size) for n, size in (("paid_x", N), ("paid_z", K)))
    walked = _walked(data, pairs, shape)
    kept = _kept(data, shape)
    _check_pairs(pairs, shape, walked)
    _check_labels(labels, pairs)
    most = np.ones(K) if walked is None else _unmatched(walked, K)
    for name, paid, limit in (("paid_x", paid_x, np.ones(N)), ("paid_z", paid_z, most)):
        if not ((paid >= 0) & (paid <= limit) & (paid == np.floor(paid))).all():
            flaw = "is not all 0 or 1" if walked is None or name == "paid_x" else "contradicts walk"
            raise ValueError(f"{name} {flaw}")
    method = _text(data["method"], "its method")
    problem = _problem(data["problem"], method, shape, kept) if data.get("problem") is not None else None
    weights = None if data.get("weights") is None else _numbers(data["weights"], "its weights are").reshape(len(pairs))
    if weights is not None and not ((weights > 0) & (weights < np.inf)).all():
        raise ValueError("its weights are not all finite and > 0")
    charged = _charges(data.get("charged", {}), "charged")
    if any(count != np.floor(count) or count > len(pairs) + paid_x.sum() + paid_z.sum() for count in charged):
        raise ValueError("charged has numbers that do not count its matches or drops")
    if not isinstance(match := data.get("match"), str | None):
        raise ValueError(f"its match is {match!r}, which is no name")
    clocks, symbols = _clocks(data, shape), _symbols(data, shape)
    if problem is not None:
        problem = replace(problem, match=match, clocks=clocks, symbols=symbols)
    found = Alignment(
        cost, pairs, shape, labels, method, paid_x, paid_z, problem, weights, charged, walked, kept, match,
        clocks=clocks, symbols=symbols,
    )  # fmt: skip
    if kept is not None:
        _check_missing(found)
    if "segments" in data:
        _check_segments(data["segments"], found)
    if problem is not None:
        _check_walk(found.compact, problem)
        _check_costs(found.compact, problem.costs)
    return found


def _plain_symbol(symbol: object) -> bool:
    """Whether JSON can hold a symbol."""
    return symbol is None or isinstance(symbol, (str, int))


def _symbols(data: Mapping[str, Any], shape: tuple[int, int]) -> tuple[Symbols, Symbols] | None:
    """The elements of Z and X, if they are symbols."""
    if data.get("symbols") is None:
        return None
    held = _mapping(data["symbols"], "its symbols")
    of_z, of_x = (tuple(held[side]) for side in "zx")
    if (len(of_z), len(of_x)) != shape or not all(map(_plain_symbol, of_z + of_x)):
        raise ValueError(f"its symbols are not {shape[0]} and {shape[1]} strings or whole numbers")
    return of_z, of_x


def _clocks(data: Mapping[str, Any], shape: tuple[int, int]) -> Clocks | None:
    """The times of Z and X; None without times."""
    if data.get("times") is None:
        return None
    held = _mapping(data["times"], "its times")
    found = (
        Clock.from_dict(_mapping(held[side], f"its times of {side}"), side, n) if held.get(side) is not None else None
        for side, n in zip("zx", shape, strict=True)
    )
    return Clocks(*found)


def _charges(data: Mapping[str, Any], name: str) -> Charges:
    """Charges, or how often they are paid. Dictionaries of older versions have none."""
    found = Charges(**{plus: float(_numbers(v, f"{name} has")) for plus, v in _mapping(data, name).items()})
    if not all(0 <= value < np.inf for value in found):
        raise ValueError(f"{name} has numbers that are not finite and ≥ 0")
    return found


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} is {reprlib.repr(value)}, which is not a dictionary")
    return value


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {reprlib.repr(value)}, which is not a string")
    return value


def _numbers(values: Any, what: str) -> Array:
    """Numbers, in which the string "inf" is +∞."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iuf":
        array = np.asarray(values, object)
        if not all(v == "inf" or (isinstance(v, Real) and not isinstance(v, bool)) for v in array.flat):
            raise ValueError(f"{what} {reprlib.repr(values)}, which is not numbers")
    return array.astype(float)


def _whole(values: Any, what: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{what} not whole numbers")
    return array.astype(np.int64)


def _check_pairs(pairs: Array, shape: tuple[int, int], walked: tuple[Array, Array] | None) -> None:
    if ((pairs < 0) | (pairs >= shape)).any():
        raise ValueError(f"a pair lies outside shape {shape}")
    # With a walk, pairs may visit z in any order, but must follow the entries of the walk.
    places = pairs if walked is None else np.stack([walked[1], pairs[:, 1]], axis=1)
    steps = np.diff(places, axis=0)
    if (steps < 0).any() or (steps.sum(axis=1) == 0).any():
        raise ValueError("its pairs cross, or repeat")


def _walked(data: Mapping[str, Any], pairs: Array, shape: tuple[int, int]) -> tuple[Array, Array] | None:
    """The walk, and the entry of it that each pair belongs to; None if the steps are a list."""
    if data.get("walk") is None and data.get("visit") is None:
        return None
    walk, visit = _whole(data["walk"], "its walk is").reshape(-1), _whole(data["visit"], "its visits are").reshape(-1)
    if len(visit) != len(pairs):
        raise ValueError(f"it has {len(visit)} visits for {len(pairs)} pairs")
    if ((walk < 0) | (walk >= shape[0])).any():
        raise ValueError(f"its walk lies outside shape {shape}")
    if ((visit < 0) | (visit >= len(walk))).any() or (walk[visit] != pairs[:, 0]).any():
        raise ValueError("visit contradicts pairs")
    return walk, visit


def _kept(data: Mapping[str, Any], shape: tuple[int, int]) -> Kept | None:
    """Which elements are present; None if none is missing."""
    if data.get("missing_x") is None and data.get("missing_z") is None:
        return None
    there = []
    for side, length in zip("zx", shape, strict=True):
        missing = _whole(data[f"missing_{side}"], f"its missing_{side} are")
        if missing.ndim != 1 or not np.isin(missing, np.arange(length)).all():
            raise ValueError(f"missing_{side} has indices outside shape {shape}")
        there.append(np.setdiff1d(np.arange(length), missing))
        if not len(there[-1]):
            raise ValueError(f"every {side} is missing")
    return Kept(there[0], there[1], shape)


def _check_missing(a: Alignment) -> None:
    """Check that missing elements match nothing, pay nothing and are not on the walk."""
    i, j = a.pairs.T
    lost_x, lost_z = a.missing_x, a.missing_z
    if lost_x[j].any() or lost_z[i].any() or a.paid_x[lost_x].any() or a.paid_z[lost_z].any() or lost_z[a.walk].any():
        raise ValueError("its missing elements are matched or dropped")


def _unmatched(walked: tuple[Array, Array], K: int) -> npt.NDArray[np.int64]:
    """(K,) how often the walk visits each z without a match."""
    walk, visit = walked
    return np.bincount(walk, minlength=K) - np.bincount(walk[np.unique(visit)], minlength=K)


def _check_walk(a: Alignment, problem: Problem) -> None:
    """Check that the order allows the walk."""
    if (a.walked is None) is not (problem.order is None):
        raise ValueError("it has a walk without an order" if problem.order is None else "its order has no walk")
    graph = None if problem.order is None else problem.graph
    if graph is not None and arcs_cost(graph, a.walk, a.visit, a.pairs) is None:
        raise ValueError("its order allows no such walk")


def _check_labels(labels: Array, pairs: Array) -> None:
    """Check that each label is a z that its x matches, or −1 if there is none."""
    i, j = pairs.T
    known = labels == -1
    known[j] = False
    known[j[labels[j] == i]] = True
    if not known.all():
        raise ValueError("labels contradict pairs")


def _check_segments(said: Any, found: Alignment) -> None:
    """Check that segments are those of the labels. They may hold more, such as times."""
    if not isinstance(said, (list, tuple)):
        raise ValueError(f"its segments are {reprlib.repr(said)}, which is no list")
    fields = [tuple(_mapping(s, "a segment").get(name) for name in Segment._fields) for s in said]
    if fields != [tuple(s) for s in found.segments()]:
        raise ValueError("segments contradict labels")


def _check_costs(a: Alignment, costs: Costs) -> None:
    """Check that the pairs lie in the band, and that pairs and drops add up to the cost, up to rounding."""
    i, j = a.pairs.T
    if costs.band is not None:
        start, stop = costs.band
        if ((j < start[i]) | (j >= stop[i])).any():
            raise ValueError("a pair lies outside the band")
    matched = costs.match.at(i, j) * (1.0 if a.weights is None else a.weights)
    charged = np.repeat(costs.charges, np.asarray(a.charged).astype(int))
    dropped_z = np.repeat(costs.drop_z, a.paid_z.astype(int))
    paid = np.concatenate([matched, costs.drop_x[a.paid_x == 1], dropped_z, charged, [a.paid_arcs()]])
    # Rounding errors in single precision grow with the number of terms. The costs themselves may also have been
    # computed in two ways, so we allow for an error relative to the median cost as well.
    finite = costs.matrix[np.isfinite(costs.matrix)]
    typical = float(np.median(np.abs(finite))) if finite.size else 0.0
    single = float(np.finfo(np.float32).eps)
    room = (1e-4 + len(paid) * single) * np.abs(paid).sum() + len(paid) * single * typical
    total = a.rescore()
    if not abs(total - a.cost) <= room:
        raise ValueError(f"its cost is {a.cost}, but its pairs and drops cost {total}")


def _problem(data: Mapping[str, Any], method: str, shape: tuple[int, int], kept: Kept | None) -> Problem:
    shape = shape if kept is None else (len(kept.z), len(kept.x))
    table = dict(_mapping(_mapping(data, "its problem")["table"], "its table"))
    _text(table["name"], "the name of its table")
    for key in ("edges", "border"):
        if not (table[key] is None or (table[key] and isinstance(table[key], (list, tuple)))):
            raise ValueError(f"its table has the {key} {reprlib.repr(table[key])}")
        table[key] = None if table[key] is None else tuple(Edge(*e) for e in table[key])
    for key in ("states", "final"):
        table[key] = tuple(table[key])
    if not isinstance(table["start"], str):
        table["start"] = tuple(table["start"])
    K, N = shape
    C, match = (as_match_costs(_numbers(data[key], f"its {key} is").reshape(shape)) for key in ("C", "match"))
    drop_x = as_drop_costs(_numbers(data["drop_x"], "its drop_x is").reshape(N), "drop_x", N, "x_j")
    drop_z = as_drop_costs(_numbers(data["drop_z"], "its drop_z is").reshape(K), "drop_z", K, "z_i")
    band = None
    if data["band"] is not None:
        start, stop = (_whole(limit, "its band is").reshape(K) for limit in data["band"])
        if not ((start >= 0) & (start <= stop) & (stop <= N)).all():
            raise ValueError("its band does not lie in its shape")
        if (np.diff(start) < 0).any() or (np.diff(stop) < 0).any():
            raise ValueError("its band moves back from one row to the next")
        band = (start, stop)
    charges = _charges(data.get("charges", {}), "charges")
    costs = Costs(Matrix(match), drop_x, drop_z, charges, band=band)
    found = Problem(method, Recurrence(**table), costs, costs.with_match(C), lambda given: costs, kept=kept)
    if data.get("anchors") is not None:
        anchors = Options(anchors=data["anchors"]).anchors or ()
        if any(i >= K or j >= N for i, j in anchors):
            raise ValueError("its anchors do not lie in its shape")
        found = replace(found, anchors=tuple(anchors))
    found = found if data.get("order") is None else _ordered(found, data["order"], data.get("ids") is not None)
    return found if data.get("ids") is None else _without_repeats(found, data)


def _without_repeats(problem: Problem, data: Mapping[str, Any]) -> Problem:
    """The problem of a method that takes ids."""
    K = len(problem.costs.drop_z)
    ids = tuple(_whole(data["ids"], "its ids are").reshape(K).tolist())
    if data.get("skips") is None:
        return replace(problem, ids=ids, graph=without_repeats(problem.graph, ids, None))
    skips = as_drop_costs(_numbers(data["skips"], "its skips are").reshape(K), "skips", K, "z_i")
    given = problem.given._replace(drop_z=skips)
    return replace(problem, ids=ids, given=given, graph=without_repeats(None, ids, skips))


def _ordered(problem: Problem, data: Mapping[str, Any], entered: bool) -> Problem:
    """The problem with the order of its steps."""
    if problem.table.border is not None or problem.costs.band is not None:
        raise ValueError("its steps have an order, but its table has a border or its costs have a band")
    order = orders.parse(data, len(problem.costs.drop_z))
    table = METHODS["steps"].table(True, False, Matching(), False) if entered else problem.table
    return problem if order.is_plain else replace(problem, order=order, graph=order.graph(table))


def _lists(array: npt.NDArray[Any]) -> list[Any]:
    """Nested lists with the string "inf" for +∞, which JSON lacks."""
    values: npt.NDArray[Any] = array.astype(object)
    values[np.isinf(array)] = "inf"
    return values.tolist()  # type: ignore[no-any-return]
