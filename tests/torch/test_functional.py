"""`drop_dtw` on the CPU: against the NumPy implementation, and against autograd."""

import warnings

import numpy as np
import pytest

import cases
import dropdtw
import dropdtw.executors
from dropdtw import orders

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import DropDTWLoss, drop_dtw, functional, wavefront  # noqa: E402
from torch_cases import EXECUTORS, GAMMA, REDUCERS, assert_same, everything, random, supporting, tensors  # noqa: E402


@pytest.mark.sweep
@pytest.mark.parametrize(
    "variant", [v for v in cases.VARIANTS[::5] if not cases.spec_of(v, 0.0, 0.0).on_graph], ids=cases.name
)
@pytest.mark.parametrize("kind", REDUCERS)
def test_values_are_the_librarys_and_executors_agree(variant, kind):
    for case in cases.cases(variant)[::5]:
        given = tensors(case)
        options = {k: v for k, v in case.options.items() if k != "method"}
        how = {"method": case.options["method"], "reducer": kind, "gamma": GAMMA, **options}
        truth = dropdtw.cost(**case.library(reducer=kind, gamma=GAMMA))
        found = {name: everything(given, **how, executor=name) for name in supporting(case)}
        for value, *_ in found.values():
            assert value.item() == pytest.approx(truth, abs=1e-12)
        for name, other in found.items():
            if (name, kind) != ("wavefront", "hard"):  # autograd may choose another of several optimal alignments
                assert_same(found["reference"], other, atol=1e-10)


def sides(method):
    """How many of C, drop_x and drop_z a method takes for a batch."""
    entry = dropdtw.METHODS[method]
    return (2 if entry.takes_ids else 3) if entry.takes_drops else 1


@pytest.mark.parametrize("method", [m for m in cases.OF_COSTS if not dropdtw.METHODS[m].takes_threshold])
@pytest.mark.parametrize("kind", REDUCERS)
def test_gradcheck(method, kind):
    C, d_x, d_z = random(1, 2, 3, 4)
    given = (C, d_x, d_z)[: sides(method)]
    assert torch.autograd.gradcheck(lambda *g: drop_dtw(*g, method=method, reducer=kind, gamma=GAMMA), given)


@pytest.mark.parametrize("sides", ["x", "z"])
def test_gradcheck_of_one_side(sides):
    C, d_x, d_z = random(2, 2, 4, 3)

    def value(C, d):
        return drop_dtw(C, **{f"drop_{sides}": d}, gamma=GAMMA)

    assert torch.autograd.gradcheck(value, (C, d_x if sides == "x" else d_z))


def test_lcss_counts_and_has_no_derivative():
    C, _, _ = random(3, 2, 5, 6)
    value = drop_dtw(C, method="lcss", threshold="percentile:40", reducer="hard")
    assert not value.requires_grad
    for b in range(2):
        wanted = dropdtw.cost(C[b].detach().numpy(), method="lcss", threshold="percentile:40")
        assert value[b].item() == wanted


def test_the_hard_derivative_is_the_alignment():
    C, d_x, d_z = random(4, 3, 6, 9)
    _, by_c, by_x, by_z = everything((C, d_x, d_z), reducer="hard")
    for b in range(3):
        a = dropdtw.solve(*(t[b].detach().numpy() for t in (C, d_x, d_z)))
        np.testing.assert_array_equal(by_c[b].numpy(), a.M)
        np.testing.assert_array_equal(by_x[b].numpy(), a.dropped_x)
        np.testing.assert_array_equal(by_z[b].numpy(), a.dropped_z)


def test_the_soft_derivative_is_the_posterior():
    C, d_x, d_z = random(5, 1, 4, 7)
    _, by_c, by_x, by_z = everything((C, d_x, d_z), reducer="soft", gamma=GAMMA)
    costs, price_x, price_z = (t[0].detach().numpy() for t in (C, d_x, d_z))
    p = dropdtw.posterior(costs, drop_x=price_x, drop_z=price_z, gamma=GAMMA)
    for ours, theirs in ((by_c, p.match), (by_x, p.drop_x), (by_z, p.drop_z)):
        np.testing.assert_allclose(ours[0].numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("kind", REDUCERS)
@pytest.mark.parametrize("executor", [None, "reference", "wavefront"])
def test_padding_order_and_neighbors_change_nothing(kind, executor):
    sizes = [(3, 7), (1, 1), (5, 2), (4, 9)]
    items = [random(k, 1, *size) for k, size in enumerate(sizes)]
    how = {"reducer": kind, "gamma": GAMMA, "executor": executor}
    alone = [everything(item, **how) for item in items]
    order = [2, 0, 3, 1]
    padded = [torch.full(shape, torch.nan, dtype=torch.float64) for shape in ((4, 6, 11), (4, 11), (4, 6))]
    for b, k in enumerate(order):
        for whole, part in zip(padded, items[k], strict=True):
            whole[(b, *map(slice, part.shape[1:]))] = part.detach()[0]
    for part in padded:
        part.requires_grad_()
    lengths = torch.tensor([sizes[k] for k in order])
    value, *parts = everything(padded, **how, z_lengths=lengths[:, 0], x_lengths=lengths[:, 1].int())
    close = {"atol": 1e-12} if executor == "wavefront" else {}
    for b, k in enumerate(order):
        assert_same([value[b]], [alone[k][0][0]], **close)
        for whole, part in zip(parts, alone[k][1:], strict=True):
            inside = whole[(b, *map(slice, part.shape[1:]))]
            assert_same([inside], [part[0]], **close)
            assert (whole[b] != 0).sum() == (inside != 0).sum()


@pytest.mark.parametrize("method", cases.OF_COSTS)
@pytest.mark.parametrize("content", [0.0, -9.0, torch.nan])
def test_no_method_looks_at_the_padding(method, content):
    entry = dropdtw.METHODS[method]
    how = {"method": method, "reducer": "hard", "threshold": "percentile:40" if entry.takes_threshold else None}
    sizes = [(3, 5), (2, 3), (5, 6)]  # slopes that every step pattern allows
    items = [torch.rand(size, generator=torch.Generator().manual_seed(k)) + 0.1 for k, size in enumerate(sizes)]
    for drop in (0.2, 0.4, 0.8) if entry.takes_drops else (None,):
        C = torch.full((3, 6, 9), content)
        for whole, item in zip(C, items, strict=True):
            whole[: item.shape[0], : item.shape[1]] = item
        z_lengths, x_lengths = zip(*sizes, strict=True)
        drops = (drop, drop)[: sides(method) - 1]
        found = drop_dtw(C, *drops, z_lengths=z_lengths, x_lengths=x_lengths, **how)
        wanted = [dropdtw.cost(item.numpy(), *drops, method=method, threshold=how["threshold"]) for item in items]
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"drop_z": 0.4}, {"order": orders.any_order(0, 1, 2)}], ids=["drop_z", "order"])
def test_ctc_of_a_batch_refuses_what_needs_a_graph_of_equal_steps(wrong):
    C, d_x, _ = random(3, 2, 3, 5)
    with pytest.raises(ValueError, match=f"takes {next(iter(wrong))} for one pair.*use 'steps', or align one pair"):
        drop_dtw(C, d_x, method="ctc", **wrong)
    with pytest.raises(ValueError, match="'ctc'"):
        DropDTWLoss(0.3, method="ctc", **wrong)(torch.rand(2, 3, 4), torch.rand(2, 5, 4))


def test_a_ragged_list_is_a_padded_batch():
    items = [random(k, 1, *size) for k, size in enumerate([(3, 7), (1, 4), (5, 2)])]
    lists = [[item[part][0] for item in items] for part in range(3)]
    value = drop_dtw(*lists, gamma=GAMMA)
    found = torch.autograd.grad(value.sum(), [t for part in lists for t in part])
    alone = [everything(item, gamma=GAMMA) for item in items]
    assert value.tolist() == [a[0].item() for a in alone]
    for k in range(3):
        for part in range(3):
            assert_same([found[part * 3 + k]], [alone[k][1 + part][0]])


def test_drop_costs_broadcast_and_their_derivatives_add_up():
    C, d_x, _ = random(6, 3, 4, 5)
    number = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)
    shared = d_x[0].detach().requires_grad_()
    by_item = torch.tensor([[0.1], [0.2], [0.3]], dtype=torch.float64, requires_grad=True)
    for drop in (number, shared, by_item):
        whole = drop.detach().expand(3, 5).clone().requires_grad_()
        _, _, few = everything((C, drop), gamma=GAMMA)
        _, _, many = everything((C, whole), gamma=GAMMA)
        torch.testing.assert_close(few, many.sum_to_size(drop.shape), rtol=0, atol=1e-14)
    assert torch.equal(drop_dtw(C, 0.3), drop_dtw(C, number))


def test_a_percentile_is_each_items_own():
    C, _, _ = random(7, 2, 4, 6)
    value = drop_dtw(C, "percentile:30", "percentile:60", z_lengths=[4, 2], x_lengths=[6, 5])
    for b, (k, n) in enumerate([(4, 6), (2, 5)]):
        item = C[b, :k, :n].detach().numpy()
        wanted = dropdtw.cost(item, "percentile:30", "percentile:60", reducer="smooth")
        assert value[b].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("window", [0, 1, 3, 0.3])
def test_a_window_is_the_librarys(window):
    C, d_x, d_z = random(8, 3, 5, 9)
    lengths = [(5, 9), (3, 4), (1, 7)]
    z, x = zip(*lengths, strict=True)
    value = drop_dtw(C, d_x, d_z, z_lengths=z, x_lengths=x, window=window, reducer="soft")
    for b, (k, n) in enumerate(lengths):
        item = [t.detach().numpy() for t in (C[b, :k, :n], d_x[b, :n], d_z[b, :k])]
        assert value[b].item() == pytest.approx(dropdtw.cost(*item, window=window, reducer="soft"), abs=1e-12)


def test_rules_look_at_all_costs_whatever_the_window():
    C, _, _ = random(18, 1, 5, 9)
    item = C[0].detach().numpy()
    for how in (
        {"drop_x": "percentile:30", "drop_z": "percentile:70"},
        {"method": "lcss", "threshold": "percentile:40"},
    ):
        value = drop_dtw(C, window=2, reducer="hard", **how)
        assert value.item() == pytest.approx(dropdtw.cost(item, window=2, **how), abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype):
    half = [t.detach().to(dtype).requires_grad_() for t in random(9, 2, 5, 8)]
    single = [t.detach().float().requires_grad_() for t in half]
    value, *parts = everything(half, gamma=GAMMA)
    truth, *wanted = everything(single, gamma=GAMMA)
    assert value.dtype == torch.float32
    assert torch.equal(value, truth)
    for part, exact in zip(parts, wanted, strict=True):
        assert part.dtype == dtype
        assert torch.equal(part, exact.to(dtype))


def test_single_precision_errs_by_rounding_alone():
    double = random(10, 2, 30, 50)
    single = [t.detach().float().requires_grad_() for t in double]
    assert_same(
        [t.double() for t in everything(single, gamma=GAMMA)],
        everything([t.detach().double().requires_grad_() for t in single], gamma=GAMMA),
        rtol=2e-5,
        atol=2e-5,
    )


def test_memory_layout_does_not_matter():
    C, d_x, d_z = random(11, 3, 4, 6)
    odd = [
        C.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0).requires_grad_(),
        torch.stack([d_x.detach()] * 2, dim=-1)[..., 0].requires_grad_(),
        d_z.detach().flip(0).flip(0).requires_grad_(),
    ]
    assert not odd[0].is_contiguous()
    assert_same(everything(odd, gamma=GAMMA), everything((C, d_x, d_z), gamma=GAMMA))


@pytest.mark.parametrize("order", [None, [0, 1, 2], [None, [2, 1, 0]]])
def test_lengths_that_no_alignment_fits_are_refused_padded_or_not(order):
    C = torch.rand(2, 3, 4, dtype=torch.float64)
    how = {"many_to_one": False, "order": order}
    said = "Z has 3 elements and X has 2, so the z cannot each have an x of their own"
    with pytest.raises(ValueError, match=said):
        drop_dtw(C[..., :2], **how)
    with pytest.raises(ValueError, match=f"item 1: {said}"):
        drop_dtw(C, x_lengths=[4, 2], **how)
    with pytest.raises(ValueError, match=f"item 1: {said}"):
        DropDTWLoss(many_to_one=False)(C.mT, C.mT, z_lengths=[3, 3], x_lengths=[4, 2])
    for some in (drop_dtw(C, x_lengths=[4, 2], **how, strict=False), drop_dtw(C, x_lengths=[4, 4], **how)):
        assert torch.isfinite(some).tolist() in ([True, False], [True, True])
    assert drop_dtw(C[..., :2], **how, strict=False).tolist() == [torch.inf] * 2


def test_no_alignment_is_infinite_and_has_no_derivative():
    C = torch.full((2, 2, 3), torch.inf, dtype=torch.float64)
    C[1] = 0.5
    C.requires_grad_()
    for kind in REDUCERS:
        for executor in (None, "reference", "wavefront"):
            value, by_c = everything((C,), reducer=kind, executor=executor)
            assert value[0] == torch.inf
            assert torch.isfinite(value[1])
            assert not by_c[0].any()
            assert not torch.isnan(by_c).any()
            assert by_c[1].any()


def test_gamma_zero_is_the_hard_minimum():
    given = random(12, 2, 4, 5)
    for kind in ("soft", "smooth"):
        assert_same(everything(given, reducer=kind, gamma=0), everything(given, reducer="hard"))


def test_the_graph_does_not_grow_with_the_problem():
    def nodes(value):
        seen, todo = set(), [value.grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo += [n for n, _ in node.next_functions]
        return len(seen)

    sizes = [nodes(drop_dtw(*random(13, 2, n, n))) for n in (2, 40)]
    assert sizes[0] == sizes[1] < 8


def test_second_derivatives_raise_or_come_from_the_wavefront():
    given = random(14, 1, 3, 3)
    first = torch.autograd.grad(drop_dtw(*given).sum(), given[0], create_graph=True)[0].sum()
    with pytest.raises(RuntimeError, match=r"differentiated only once.*executor='wavefront'"):
        torch.autograd.grad(first, given[0])
    assert torch.autograd.gradgradcheck(
        lambda *g: drop_dtw(*g, reducer="soft", gamma=GAMMA, executor="wavefront"), tuple(given)
    )


RAGGED = [torch.rand(2, 4), torch.rand(3, 2)]
EVERY = [None, *EXECUTORS]


@pytest.mark.parametrize("executor", EVERY)
@pytest.mark.parametrize("lengths", [(4, 3), (3, 2), (4, 4), (4, 1), (2, 4)])
def test_drop_vectors_of_another_length_than_their_item_are_refused(executor, lengths):
    vectors = [torch.rand(n) for n in lengths]
    b = next(b for b, c in enumerate(RAGGED) if c.shape[1] != lengths[b])
    wrong = rf"drop_x\[{b}\] has {lengths[b]} entries, but item {b} has {RAGGED[b].shape[1]} elements x_j; give one"
    with pytest.raises(ValueError, match=wrong):
        drop_dtw(RAGGED, vectors, executor=executor)
    padded = torch.zeros(2, 3, 4)
    with pytest.raises(ValueError, match=wrong):
        drop_dtw(padded, vectors, z_lengths=[2, 3], x_lengths=[4, 2], executor=executor)


@pytest.mark.parametrize("executor", EVERY)
def test_drop_vectors_of_the_length_of_their_item_are_its_drop_costs(executor):
    vectors = [torch.rand(4), torch.rand(2)]
    found = drop_dtw(RAGGED, vectors, reducer="hard", executor=executor)
    for value, C, d in zip(found.tolist(), RAGGED, vectors, strict=True):
        assert value == pytest.approx(dropdtw.cost(C.numpy(), d.numpy()), rel=1e-6)


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_where_lengths_cannot_be_looked_at_a_drop_vector_of_another_length_makes_its_item_nan():
    C = torch.rand(2, 3, 4)
    loss = torch.compile(
        lambda n, *d: drop_dtw(C, list(d), x_lengths=n, reducer="hard"), fullgraph=True, backend="eager"
    )
    vectors = [torch.rand(4), torch.rand(2)]
    right = drop_dtw(C, vectors, x_lengths=[4, 2], reducer="hard")
    assert torch.equal(loss(torch.tensor([4, 2]), *vectors), right)
    with pytest.raises(ValueError, match=r"drop_x\[1\] has NaN at 0"):
        loss(torch.tensor([4, 3]), *vectors)


@pytest.mark.parametrize("executor", EVERY)
@pytest.mark.parametrize("reducer", REDUCERS)
def test_every_executor_refuses_nan_and_lengths_out_of_room(executor, reducer):
    def value(C, d=0.5, **lengths):
        return drop_dtw(C, d, reducer=reducer, executor=executor, **lengths)

    C = torch.rand(2, 3, 4)
    spoilt = C.clone()
    spoilt[1, 2, 1] = torch.nan
    with pytest.raises(ValueError, match=r"C\[1\] has NaN at \(2, 1\)"):
        value(spoilt)
    with pytest.raises(ValueError, match=r"C\[1\] has -inf at \(2, 1\)"):
        value(torch.where(spoilt.isnan(), -torch.inf, C))
    with pytest.raises(ValueError, match=r"drop_x\[0\] has NaN at 0"):
        value(C, torch.nan)
    for lengths in ([0, 3], [-1, 3], [3, 4]):
        with pytest.raises(ValueError, match=r"z_lengths is \[.*\], but C has 3 rows; give lengths from 1 to 3"):
            value(C, z_lengths=lengths)
    beyond = value(spoilt, z_lengths=[3, 2], x_lengths=[4, 4])  # padding does not matter
    assert torch.equal(beyond, value(C, z_lengths=[3, 2], x_lengths=[4, 4]))


@pytest.mark.parametrize("reducer", REDUCERS)
@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_where_values_cannot_be_looked_at_nan_makes_its_item_nan(reducer):
    C = torch.rand(4, 3, 4)
    C[1, 2, 1] = torch.nan
    C[2, 0, 3] = -torch.inf
    drop = torch.rand(4, 4)
    drop[3, 0] = torch.nan
    plain = lambda C, *given: drop_dtw(C, *given, reducer=reducer, executor="wavefront")  # noqa: E731
    found = torch.compile(plain, fullgraph=True, backend="eager")(C, drop)
    assert found[0] == plain(C[:1], drop[:1])
    assert found[1:].isnan().all()
    assert torch.func.vmap(plain)(C[None], drop[None])[0].isnan().tolist() == [False, True, True, True]


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
@pytest.mark.parametrize("name", ["gamma", "open_x", "drop_x"])
def test_compiled_code_takes_numbers_that_change(name):
    """torch.compile turns numbers that change from call to call into variables; settings must stay constants."""
    torch._dynamo.reset()
    C = torch.rand(1, 2, 4)

    def value(C, number):
        return drop_dtw(C, **({"drop_x": 0.3} | {name: number}))

    compiled = torch.compile(value, fullgraph=True, backend="eager")
    for number in (1.0, 0.5, 2):
        assert torch.equal(compiled(C, number), value(C, number))


@pytest.mark.parametrize("order", [None, orders.any_order(0, 1, 2)])
def test_plain_operations_never_read_a_drop_cost_that_no_edge_pays(order, monkeypatch):
    """On a GPU such a cost is memory that nobody filled, where NaN would make the value NaN."""
    C = torch.rand(2, 3, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    how = {"executor": "wavefront", "order": order}
    wanted = drop_dtw(C, 0.3, **how)
    filled = functional._drops

    def unfilled(drop, name, *more):
        found = filled(drop, name, *more)
        return torch.full_like(found, torch.nan) if drop is None else found

    monkeypatch.setattr(functional, "_drops", unfilled)
    monkeypatch.setattr(wavefront, "can_look", lambda A: False)
    assert torch.equal(drop_dtw(C, 0.3, **how), wanted)
    assert wanted.isfinite().all()


def test_a_temperature_of_the_hard_minimum_is_doubted():
    C = torch.eye(2)[None]
    with pytest.warns(UserWarning, match="gamma is 0.1, but the minimum is hard"):
        drop_dtw(C, reducer="hard", gamma=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        drop_dtw(C, reducer="hard")
        drop_dtw(C, gamma=0.1)
