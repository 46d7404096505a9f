"""Opening costs and the warp penalty on batches: numbers, or tensors with derivatives."""

import math

import numpy as np
import pytest

import cases
import dropdtw
import oracle

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw import torch as dt  # noqa: E402
from dropdtw.tables.table import CHARGES, Recurrence, edges  # noqa: E402
from dropdtw.torch import drop_dtw, ops  # noqa: E402
from loss_cases import LENGTHS, batch, items  # noqa: E402
from torch_cases import GAMMA, REDUCERS, assert_same, random, supporting, tensors  # noqa: E402

CHARGED = [v for v in cases.VARIANTS if "charged" in cases.name(v)]
COUNTED = [v for v in CHARGED if "window" not in v and v["method"] != "greedy"]  # greedy chooses drops from the costs
TAKING = {v["method"] for v in CHARGED}


def charged(variant, B=1, values=None):
    """The charges of a variant, or other values for them, as tensors (B,) that require gradients."""
    made = {name: variant[name] if values is None else values for name in CHARGES if name in variant}
    return {name: torch.full((B,), v, dtype=torch.float64, requires_grad=True) for name, v in made.items()}


def everything(given, charges, **how):
    """Value and derivatives with respect to costs and charges; 0 if there is none."""
    value = drop_dtw(*given, **charges, **how)
    wanted = [g for g in (*given, *charges.values()) if isinstance(g, torch.Tensor)]
    finite = torch.where(torch.isfinite(value), value, 0.0).sum()
    found = torch.autograd.grad(finite, wanted, allow_unused=True) if finite.requires_grad else [None] * len(wanted)
    return [value.detach(), *(torch.zeros_like(g) if f is None else f for f, g in zip(found, wanted, strict=True))]


def plain(options):
    return {k: v for k, v in options.items() if k not in (*CHARGES, "sides")}


def check_against_the_oracle(variant, each):
    for case in cases.cases(variant)[::each]:
        given, charges, how = tensors(case), charged(variant), plain(case.options)
        for kind in REDUCERS:
            names = supporting(case)
            found = {e: everything(given, charges, reducer=kind, gamma=GAMMA, executor=e, **how) for e in names}
            if kind == "smooth":
                truth = dropdtw.cost(**case.library(reducer=kind, gamma=GAMMA, executor="reference"))
            else:
                truth = getattr(oracle, kind)(**case.oracle(), **({"gamma": GAMMA} if kind == "soft" else {}))
            for name, (value, *rest) in found.items():
                assert value.item() == pytest.approx(truth, abs=1e-11)
                if (name, kind) != ("wavefront", "hard"):  # autograd may choose another of several optimal alignments
                    assert_same(rest, found["reference"][1:], atol=1e-10)


@pytest.mark.parametrize("variant", CHARGED[::5], ids=cases.name)
def test_values_are_the_oracles_and_executors_agree_on_derivatives(variant):
    check_against_the_oracle(variant, each=11)


@pytest.mark.exhaustive
@pytest.mark.parametrize("variant", CHARGED, ids=cases.name)
def test_values_of_every_variant_are_the_oracles(variant):
    check_against_the_oracle(variant, each=1)


def problem(seed, method, B=2, K=3, N=4, values=0.3):
    """Costs, charges and argument names of a method."""
    entry = dropdtw.METHODS[method]
    given = random(seed, B, K, N)[: 3 if entry.takes_drops else 1]
    sides = (entry.takes_drops,) * 2
    charges = {
        name: torch.full((B,), values * (k + 1), dtype=torch.float64, requires_grad=True)
        for k, name in enumerate(cases.charges(method, sides))
    }
    return given, charges


GRADCHECKED = [(m, k) for m in sorted(TAKING) for k in REDUCERS if k == "soft" or m in ("drop_dtw", "dtw")]


@pytest.mark.parametrize(("method", "kind"), GRADCHECKED)
def test_gradcheck_by_costs_and_charges(method, kind):
    given, charges = problem(1, method, K=2, N=3)

    def value(*all_of_them):
        parts = dict(zip(charges, all_of_them[len(given) :], strict=True))
        return drop_dtw(*all_of_them[: len(given)], **parts, method=method, reducer=kind, gamma=GAMMA)

    assert torch.autograd.gradcheck(value, (*given, *charges.values()))


def test_second_derivatives_by_charges_come_from_the_wavefront():
    given, charges = problem(2, "drop_dtw", B=1, K=2, N=2)

    def value(*g, executor="wavefront"):
        parts = dict(zip(charges, g[3:], strict=True))
        return drop_dtw(*g[:3], **parts, reducer="soft", gamma=GAMMA, executor=executor)

    everyone = (*given, *charges.values())
    assert torch.autograd.gradgradcheck(value, everyone)
    first = torch.autograd.grad(value(*everyone, executor=None).sum(), everyone[3], create_graph=True)[0].sum()
    with pytest.raises(RuntimeError, match="differentiated only once"):
        torch.autograd.grad(first, everyone[3])


@pytest.mark.parametrize("sides", ["x", "z", "xz"])
def test_the_hard_derivative_counts_runs_and_repeats(sides):
    C, d_x, d_z = random(3, 3, 5, 9)
    drops = {f"drop_{s}": d for s, d in zip("xz", (d_x, d_z), strict=True) if s in sides}
    charges = {f"open_{s}": torch.full((3,), 0.1, dtype=torch.float64, requires_grad=True) for s in sides}
    charges["warp"] = torch.full((3,), 0.05, dtype=torch.float64, requires_grad=True)
    value = drop_dtw(C, **drops, **charges, reducer="hard")
    found = dict(zip(charges, torch.autograd.grad(value.sum(), charges.values()), strict=True))

    def runs(free):
        return int((free & ~np.pad(free, (1, 0))[:-1]).sum())

    for b in range(3):
        numbers = {name: v[b].item() for name, v in charges.items()}
        a = dropdtw.solve(C[b].detach().numpy(), **{n: d[b].detach().numpy() for n, d in drops.items()}, **numbers)
        assert value[b].item() == pytest.approx(a.cost, abs=1e-12)
        repeats = int((np.diff(a.pairs, axis=0) == 0).any(axis=1).sum())
        counted = {"open_x": runs(~a.M.any(axis=0)), "open_z": runs(~a.M.any(axis=1)), "warp": repeats}
        for name, by in found.items():
            assert by[b] == counted[name]


@pytest.mark.parametrize("method", sorted(TAKING))
@pytest.mark.parametrize("kind", REDUCERS)
def test_a_tensor_of_0_is_the_number_0_to_rounding(method, kind):
    given, charges = problem(4, method, K=4, N=7, values=0.0)
    how = {"method": method, "reducer": kind, "gamma": GAMMA}
    plain = everything(given, {}, **how)
    assert_same(everything(given, charges, **how)[: len(plain)], plain, atol=1e-12)
    one = {name: torch.tensor(0.0) for name in charges}
    torch.testing.assert_close(drop_dtw(*given, **one, **how).detach(), plain[0], rtol=0, atol=1e-12)


def test_numbers_of_0_run_the_table_that_charges_nothing(monkeypatch):
    """The same kernel runs on the same tensors: results are bitwise those of a call without charges."""
    seen = []

    def spy(*given, value=ops.value):
        seen.append((given[0].charges, ops.table(given[1].table).name))
        return value(*given)

    monkeypatch.setattr(ops, "value", spy)
    given = random(5, 2, 4, 6)
    for drops in ((), given[1:2], given[1:]):
        before = drop_dtw(given[0], *drops)
        for zeros in ({"open_x": 0, "open_z": 0.0, "warp": 0}, {"warp": -0.0}, {"open_x": np.float32(0)}):
            assert torch.equal(drop_dtw(given[0], *drops, **zeros), before)
    assert {charges for charges, _ in seen} == {None}
    assert not any("charged" in name for _, name in seen)
    drop_dtw(*given, open_x=torch.tensor(0.0))
    assert seen[-1][0].shape == (2, 3)
    assert "charged" in seen[-1][1]


@pytest.mark.parametrize("variant", COUNTED, ids=cases.name)
def test_tables_that_charge_count_the_alignments_that_plain_ones_do(variant):
    """With all costs 0, e^(−soft minimum) is the number of paths, which is the number of alignments."""
    options, (x, z) = plain(variant), variant["sides"]
    drops = {name: 0.0 for name, given in (("drop_x", x), ("drop_z", z)) if given}
    for K, N in ((3, 4), (3, 3), (4, 3)):
        C = torch.zeros(1, K, N, dtype=torch.float64)
        if not cases.fits(
            cases.Case(C[0].numpy(), *(np.zeros(n) if g else None for n, g in ((N, x), (K, z))), options)
        ):
            continue
        counts = [
            math.exp(-drop_dtw(C, **drops, **options, **charges, reducer="soft").item())
            for charges in ({}, {name: torch.zeros(()) for name in CHARGES if name in variant})
        ]
        assert counts[1] == pytest.approx(counts[0], rel=1e-9)
        assert counts[0] == pytest.approx(round(counts[0]), rel=1e-9)


@pytest.mark.parametrize("executor", [None, "wavefront"])
def test_each_item_has_its_own_charges_and_padding_changes_nothing(executor):
    sizes = [(3, 7), (1, 1), (5, 2), (4, 9)]
    parts = [random(k, 1, *size) for k, size in enumerate(sizes)]
    charges = {
        n: torch.linspace(0.1, 0.4, 4, dtype=torch.float64).roll(k).requires_grad_() for k, n in enumerate(CHARGES)
    }
    how = {"gamma": GAMMA, "executor": executor}
    lists = [[part[k][0] for part in parts] for k in range(3)]
    value = drop_dtw(*lists, **charges, **how)
    found = torch.autograd.grad(value.sum(), charges.values())
    close = {"atol": 1e-12} if executor == "wavefront" else {}
    for b, part in enumerate(parts):
        alone = everything(part, {n: v.detach()[b].requires_grad_() for n, v in charges.items()}, **how)
        assert_same([value[b].detach(), *(f[b] for f in found)], [alone[0][0], *alone[-3:]], **close)


def test_a_number_for_all_items_gathers_their_derivatives():
    given, charges = problem(6, "drop_dtw", B=3)
    single = {name: v.detach()[0].requires_grad_() for name, v in charges.items()}
    one, many = everything(given, single, gamma=GAMMA), everything(given, charges, gamma=GAMMA)
    assert_same(one[:4], many[:4])
    for few, each in zip(one[4:], many[4:], strict=True):
        torch.testing.assert_close(few, each.sum(), rtol=0, atol=1e-14)
    numbers = {name: v.item() for name, v in single.items()}
    assert torch.equal(drop_dtw(*given, **numbers, gamma=GAMMA), one[0])


def test_half_precision_and_other_dtypes_of_charges():
    half = [t.detach().half() for t in random(7, 2, 4, 5)]
    wanted = drop_dtw(*(t.float() for t in half), open_x=0.5, warp=1)
    found = drop_dtw(*half, open_x=torch.tensor([0.5, 0.5], dtype=torch.float64), warp=torch.tensor(1))
    assert found.dtype == torch.float32
    assert torch.equal(found, wanted)


def test_a_table_of_the_callers_charges_what_it_says():
    table = Recurrence(
        name="gotoh",
        states=("match", "gap"),
        edges=edges("match gap", to="match", moves="diag", cost="match", weight=2.0)
        + edges("match", to="gap", moves="left", cost="drop_x", plus="open_x")
        + edges("gap", to="gap", moves="left", cost="drop_x", weight=0.5),
        start="match",
        final=("match", "gap"),
    )
    C, d_x, _ = random(8, 2, 2, 5)
    for opening in (0, 0.25, torch.tensor(0.25, dtype=torch.float64)):
        value = drop_dtw(C, d_x, method=table, open_x=opening, reducer="hard")
        for b in range(2):
            wanted = dropdtw.cost(C[b].detach().numpy(), d_x[b].detach().numpy(), method=table, open_x=float(opening))
            assert value[b].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_compiled_code_charges_alike_and_looks_at_no_value():
    given, charges = problem(9, "drop_dtw")

    def value(*g):
        return drop_dtw(*g[:3], open_x=g[3], open_z=g[4], warp=0.2, gamma=GAMMA)

    everyone = (*given, charges["open_x"], charges["open_z"])
    compiled = torch.compile(value, fullgraph=True, backend="aot_eager")
    ours, theirs = ((f(*everyone), *torch.autograd.grad(f(*everyone).sum(), everyone)) for f in (compiled, value))
    assert_same(ours, theirs)


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_where_values_cannot_be_looked_at_a_charge_below_0_makes_its_item_nan():
    C, d_x, _ = random(10, 4, 1, 2)
    opening = torch.tensor([0.5, -0.5, torch.nan, torch.inf], dtype=torch.float64)
    value = lambda *g: drop_dtw(*g[:2], open_x=g[2], executor="wavefront")  # noqa: E731
    found = torch.compile(value, fullgraph=True, backend="eager")(C, d_x, opening)
    assert found.isnan().tolist() == [False, True, True, True]
    assert found[0] == value(C[:1], d_x[:1], opening[:1])


# --- Losses ------------------------------------------------------------------------------------------------------


def test_losses_charge_what_the_library_charges():
    Z, X = batch()
    how = {"match": "cosine", "reducer": "soft", "gamma": GAMMA}
    drops = {"drop_x": 0.3, "drop_z": 0.4}
    charges = {"open_x": 0.2, "open_z": 0.1, "warp": 0.05}
    found = dt.DropDTWLoss(**drops, **charges, **how, reduction="none")(Z, X, **LENGTHS)
    dtw = dt.SmoothDTWLoss(**how, warp=0.05, reduction="none")(Z, X, **LENGTHS)
    for value, other, (z, x) in zip(found.tolist(), dtw.tolist(), items(Z, X), strict=True):
        assert value == pytest.approx(dropdtw.distance(z, x, **drops, **charges, **how))
        assert other == pytest.approx(dropdtw.distance(z, x, method="dtw", warp=0.05, **how))


@pytest.mark.parametrize("loss", ["SmoothDTWLoss", "SoftDTWLoss", "SoftDTWDivergence", "OTAMLoss", "DropDTWLoss"])
def test_every_alignment_loss_takes_a_warp_penalty(loss):
    Z, X = batch()
    none, some = (getattr(dt, loss)(warp=w, reducer="hard", match="cosine")(Z, X, **LENGTHS) for w in (0.0, 0.5))
    assert some > none


def test_parameters_are_learned_along():
    Z, X = batch()
    opening, penalty = (torch.nn.Parameter(torch.tensor(v, dtype=torch.float64)) for v in (0.2, 0.1))
    loss = dt.DropDTWLoss(0.3, match="cosine", open_x=opening, warp=penalty)
    assert dict(loss.named_parameters()) == {"open_x": opening, "warp": penalty}
    loss(Z, X, **LENGTHS).backward()
    assert opening.grad > 0
    assert penalty.grad > 0
    assert "open_x" not in repr(loss)
    assert "open_x=0.2" in repr(dt.DropDTWLoss(0.3, open_x=0.2))
    assert "warp" not in repr(dt.DropDTWLoss(0.3))
