"""Random orders of steps: against an enumeration of all alignments, across executors, and by laws."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from problems import close, outcome, random_costs

import dropdtw
from dropdtw import orders
from dropdtw.executors import EXECUTORS
from dropdtw.orders.graph import Graph
from dropdtw.orders.merge import merged
from order_cases import OPTIONS, Case, build, fits, holds_any, random_poset, random_walks, repeats_any, steps_of

Law = Callable[[np.random.Generator], None]


def case(rng: np.random.Generator) -> str:
    """One law on one random order."""
    law = LAWS[rng.integers(len(LAWS))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        law(rng)
    return law.__name__.replace("_", " ")


def random_order(rng: np.random.Generator, steps: list[int], *, partial: bool = False, deep: int = 2) -> Any:
    """An order of these steps in the oracle's notation; `partial`: without alternatives or repeats."""
    if len(steps) == 1 or deep == 0:
        return steps if len(steps) > 1 else steps[0]
    cuts = sorted(int(n) for n in rng.choice(len(steps) - 1, int(rng.integers(1, min(3, len(steps)))), replace=False))
    parts = [steps[a:b] for a, b in zip([0, *(c + 1 for c in cuts)], [*(c + 1 for c in cuts), None], strict=True)]
    kind = str(rng.choice(["list", "any"] if partial else ["list", "any", "one", "repeat", "list", "any"]))
    inner = [random_order(rng, part, partial=partial or kind == "any", deep=deep - 1) for part in parts]
    if kind == "list":
        return inner
    if kind == "repeat":
        return kind, inner, float(rng.choice([0.0, 0.25]))
    return kind, *inner


def random_case(rng: np.random.Generator, most: int = 4, longest: int = 3) -> Case:
    """A small order with options that it supports, and random costs."""
    kind = rng.integers(4)
    K = int(rng.integers(1, most + 1))
    said = random_poset(rng, K) if kind == 0 else random_walks(rng, most) if kind == 1 else None
    if said is None:
        said = random_order(rng, [int(n) for n in rng.permutation(K)])
        said = said if isinstance(said, (list, tuple)) else [said]
    allowed = [o for o in OPTIONS if fits(said, o)]
    options = dict(allowed[rng.integers(len(allowed))])
    x, z = options.pop("sides")
    options |= random_charges(rng, said, x, z)
    K, N = steps_of(said), int(rng.integers(1, longest + 1))
    d_x, d_z = (random_costs(rng, (n,), np.float64) for n in (N, K))
    return Case(said, random_costs(rng, (K, N), np.float64), d_x if x else None, d_z if z else None, options)


def random_charges(rng: np.random.Generator, said: Any, x: bool, z: bool) -> dict[str, float]:
    """Sometimes, charges that an order supports."""
    if rng.random() < 0.6:
        return {}
    found = {"warp": 0.125} | ({"open_x": 0.5} if x else {})
    return found | ({"open_z": 0.25} if z and not holds_any(said) else {})


def value_of(c: Case, **more: Any) -> float:
    """The value; +∞ if the library refuses because the lengths allow no alignment."""
    found = outcome(dropdtw.cost, **c.given, **more)
    if isinstance(found, str):
        assert "cannot each have" in found, found
        return np.inf
    return float(found)


def counts_walks_twice(c: Case) -> bool:
    """Whether soft values count some walks several times, of which the library warns, because it cannot merge them."""
    graph = outcome(lambda: c.problem().graph) if c.said[0] == "walks" else None
    return isinstance(graph, Graph) and merged(graph).repeats


def oracle_agrees(rng: np.random.Generator) -> None:
    """Hard and soft values and probabilities agree with an enumeration of all alignments."""
    c = random_case(rng)
    answer, gamma = c.answer, 0.7
    executor = list(EXECUTORS)[rng.integers(len(EXECUTORS))]
    paid = [d for d in (c.drop_x, c.drop_z) if d is not None]
    hard = value_of(c, executor=executor)
    assert close(hard, answer.hard, c.C, *paid, 1.0), (c, hard, answer.hard)
    if counts_walks_twice(c):
        return
    soft = value_of(c, executor=executor, reducer="soft", gamma=gamma)
    assert close(soft, answer.soft(gamma), c.C, *paid, 1.0), (c, soft, answer.soft(gamma))
    if np.isfinite(hard) and np.abs(c.C[np.isfinite(c.C)]).max(initial=0) < 1e3:
        p = dropdtw.posterior(**c.given, gamma=gamma, executor=executor)
        np.testing.assert_allclose(p.match, answer.mean(answer.all.match, gamma), atol=1e-6)
        np.testing.assert_allclose(p.visit, answer.mean(answer.all.visit, gamma), atol=1e-6)


def executors_agree(rng: np.random.Generator) -> None:
    """Every executor gives the reference's hard, soft and smooth value on orders too large to enumerate."""
    c = random_case(rng, most=7, longest=25)
    kind, gamma = ["hard", "soft", "smooth"][rng.integers(3)], float(10.0 ** rng.uniform(-2, 1))
    found = {name: value_of(c, executor=name, reducer=kind, gamma=gamma) for name in EXECUTORS}
    paid = [d for d in (c.drop_x, c.drop_z) if d is not None]
    for name, value in found.items():
        assert close(value, found["reference"], c.C, *paid, 1.0), (name, found, kind, gamma, c)


def torch_agrees(rng: np.random.Generator) -> None:
    """`drop_dtw` gives each item of a ragged batch, with its own order, the value of `dropdtw.cost`.

    With the soft minimum, the gradient of the match costs is the probability of matches.
    """
    try:
        import torch

        from dropdtw.torch import drop_dtw
    except ImportError:
        return
    batch = random_batch(rng)
    kind, gamma = ["hard", "soft", "smooth"][rng.integers(3)], float(10.0 ** rng.uniform(-2, 1))
    how: dict[str, Any] = {**batch[0].options, "reducer": kind, "gamma": gamma}
    how["executor"] = [None, "cpp", "reference", "wavefront"][rng.integers(4)]

    def tensors(name: str) -> Any:
        if getattr(batch[0], name) is None:
            return None
        return [torch.tensor(getattr(c, name), requires_grad=True) for c in batch]

    C, x, z = map(tensors, ("C", "drop_x", "drop_z"))
    found = drop_dtw(C, x, z, order=[build(c.said) for c in batch], strict=False, **how)
    gradients = torch.autograd.grad(found[torch.isfinite(found)].sum(), C) if kind == "soft" else []
    for k, c in enumerate(batch):
        paid = [d for d in (c.drop_x, c.drop_z) if d is not None]
        value = value_of(c, reducer=kind, gamma=gamma)
        assert close(float(found[k]), value, c.C, *paid, 1.0), (k, found, value, how, batch)
        if kind == "soft" and np.isfinite(value) and np.abs(c.C[np.isfinite(c.C)]).max(initial=0) < 1e3:
            p = dropdtw.posterior(**c.given, gamma=gamma)
            np.testing.assert_allclose(gradients[k].numpy(), p.match, atol=1e-6, err_msg=repr((k, how, batch)))


def random_batch(rng: np.random.Generator) -> list[Case]:
    """One to four random cases with the options of the first."""
    first = random_case(rng, most=6, longest=15)
    options, sides = first.options, (first.drop_x is not None, first.drop_z is not None)
    batch = [first]
    for _ in range(int(rng.integers(4))):
        c = random_case(rng, most=6, longest=15)
        if not fits(c.said, {**options, "sides": sides}) or ("open_z" in options and holds_any(c.said)):
            continue
        K, N = c.C.shape
        x, z = (random_costs(rng, (n,), np.float64) if side else None for n, side in zip((N, K), sides, strict=True))
        batch.append(Case(c.said, c.C, x, z, options))
    return batch


def path_costs_what_it_says(rng: np.random.Generator) -> None:
    """An alignment re-scores to its cost, which is the value, and follows its own walk."""
    c = random_case(rng, most=7, longest=25)
    a = outcome(dropdtw.solve, **c.given)
    if isinstance(a, str):
        return
    paid = [d for d in (c.drop_x, c.drop_z) if d is not None]
    assert close(a.rescore(), a.cost, c.C, *paid, 1.0), (a.rescore(), a.cost, c)
    assert close(value_of(c), a.cost, c.C, *paid, 1.0)
    assert (a.walk[a.visit] == a.pairs[:, 0]).all()
    assert (np.diff(a.pairs[:, 1]) >= 0).all()
    assert (np.diff(a.visit) >= 0).all()


def orders_read_back(rng: np.random.Generator) -> None:
    """The repr of an order evaluates to the same order."""
    order = build(random_case(rng).said)
    assert orders.as_order(eval(repr(order), vars(orders).copy())) == order


def nonsense_is_refused(rng: np.random.Generator) -> None:
    """Builders accept any argument, or refuse it in one line."""
    things: list[Any] = [0, 1, 2, -1, 7.5, True, None, "a", [], [0], [[1]], np.nan, np.arange(3), {}, (0, 1), 10**20]
    things += [[(0, 1)], [(1, 0), (0, 1)], [(0, 1, 0.5)], [(0, 0)], orders.any_order(0, 1), orders.repeat(2)]
    builder = [orders.before, orders.any_order, orders.one_of, orders.repeat, orders.jumps, orders.walks][
        rng.integers(6)
    ]
    most = {orders.before: (2, 2), orders.repeat: (1, 2), orders.jumps: (2, 2), orders.walks: (3, 4)}
    low, high = most.get(builder, (0, 4))
    given = [things[rng.integers(len(things))] for _ in range(int(rng.integers(low, high + 1)))]
    said = outcome(builder, *given)
    if isinstance(said, str):
        assert said
        assert "\n" not in said
    else:
        order = orders.as_order(said)
        refused = outcome(dropdtw.cost, np.zeros((order.K, 3)), 1.0, order=order)
        assert not isinstance(refused, str) or "\n" not in refused


def repeated_partial_orders_are_refused(rng: np.random.Generator) -> None:
    """Steps in any order inside a loop cannot be dropped."""
    c = random_case(rng)
    if repeats_any(c.said):
        found = outcome(dropdtw.cost, **{**c.given, "drop_z": 1.0})
        assert isinstance(found, str)
        assert "repeats steps in any order" in found


LAWS: list[Law] = [
    oracle_agrees,
    oracle_agrees,
    oracle_agrees,
    executors_agree,
    executors_agree,
    torch_agrees,
    torch_agrees,
    path_costs_what_it_says,
    orders_read_back,
    nonsense_is_refused,
    repeated_partial_orders_are_refused,
]
