"""Orders of steps in `drop_dtw` and the losses: one for all items or one per item, on every executor."""

import numpy as np
import pytest

import dropdtw
from dropdtw import orders

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw import torch as dt  # noqa: E402
from dropdtw.torch import drop_dtw  # noqa: E402
from dropdtw.torch.orders import of_items  # noqa: E402
from torch_cases import EXECUTORS, GAMMA, ORDERS, REDUCERS, assert_same, everything, grads, random  # noqa: E402

EXCLUSIVE = {"many_to_one": False, "contiguous": True}
TABLES = {
    "one-sided, exclusive": ("x", EXCLUSIVE),
    "one-sided": ("x", {}),
    "two-sided": ("xz", {}),
    "drop z": ("z", {}),
    "DTW": ("", {}),
    "subsequence": ("", {"method": "subsequence"}),
    "charged": ("x", {"open_x": 0.2, "warp": 0.1}),
}


def problem(seed, B, sides, K=4, N=5):
    C, d_x, d_z = random(seed, B, K, N)
    return [C, d_x if "x" in sides else None, d_z if "z" in sides else None]


def arrays(given, b):
    return [None if part is None else part[b].detach().numpy() for part in given]


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ORDERS)
def test_values_are_the_librarys_and_executors_agree(table, name):
    sides, options = TABLES[table]
    for kind in REDUCERS if name == "partial" else ["smooth"]:
        given = problem(1, 1, sides)
        how = {"reducer": kind, "gamma": GAMMA, "order": ORDERS[name], **options}
        wanted = dropdtw.cost(*arrays(given, 0), **how)
        found = {executor: everything(given, **how, executor=executor) for executor in EXECUTORS}
        for executor, other in found.items():
            assert other[0].item() == pytest.approx(wanted, abs=1e-12)
            if (executor, kind) != ("wavefront", "hard"):  # autograd may choose another of several optimal alignments
                assert_same(found["reference"], other, atol=1e-10)


@pytest.mark.parametrize(
    ("name", "kind"), [("partial", "soft"), ("partial", "hard"), ("jumps", "smooth"), ("permuted", "soft")]
)
def test_gradcheck(name, kind):
    given = problem(2, 1, "xz", N=3)

    def value(*given):
        return drop_dtw(*given, reducer=kind, gamma=GAMMA, order=ORDERS[name])

    assert torch.autograd.gradcheck(value, given)


@pytest.mark.parametrize("kind", ["soft", "smooth"])
def test_plain_operations_have_second_derivatives(kind):
    C, d_x, _ = problem(3, 1, "x", K=3, N=3)
    opening = torch.tensor(0.3, dtype=torch.float64, requires_grad=True)

    def value(C, d_x, opening):
        order = orders.any_order(0, [1, 2])
        return drop_dtw(C, d_x, open_x=opening, reducer=kind, gamma=GAMMA, order=order, executor="wavefront")

    assert torch.autograd.gradgradcheck(value, (C, d_x, opening))


@pytest.mark.parametrize("executor", [None, "wavefront"])
def test_a_plain_list_changes_no_bit(executor):
    given = random(4, 2, 4, 6)
    wanted = everything(given, gamma=GAMMA, executor=executor)
    for order in ([0, 1, 2, 3], orders.as_order(range(4)), [None, [0, 1, 2, 3]]):
        assert_same(everything(given, gamma=GAMMA, executor=executor, order=order), wanted)


def test_a_permuted_list_is_the_list_of_permuted_rows():
    C, d_x, d_z = random(5, 2, 4, 6)
    rows = [2, 0, 3, 1]
    value, by_c, by_x, by_z = everything((C, d_x, d_z), gamma=GAMMA, order=rows)
    turned = [part.detach()[:, rows].requires_grad_() for part in (C, d_z)]
    wanted = everything((turned[0], d_x, turned[1]), gamma=GAMMA)
    assert_same((value, by_c[:, rows], by_x, by_z[:, rows]), wanted)


@pytest.mark.parametrize("executor", [None, "wavefront"])
def test_each_item_drops_z_at_the_price_of_its_own_order(executor):
    given = random(6, 3, 4, 5)
    each = [[2, 0, 3, 1], [1, 3, 0, 2], [0, 1, 2, 3]]
    how = {"gamma": GAMMA, "executor": executor}
    together = everything(given, order=each, **how)
    for b, order in enumerate(each):
        alone = everything([part.detach()[b : b + 1].requires_grad_() for part in given], order=order, **how)
        assert_same([part[b : b + 1] for part in together], alone)


@pytest.mark.parametrize("executor", [None, "wavefront"])
def test_items_are_as_they_are_alone_whatever_their_orders(executor):
    """A batch with graphs, permuted and repeated lists, padded with NaN."""
    each = [orders.any_order(0, 1, 2), [3, 0, 2, 1], None, [0, 1, 0], orders.jumps(4, [(3, 1, 0.2)])]
    sizes = [(3, 6), (4, 5), (2, 7), (2, 6), (4, 7)]
    items = [random(10 + b, 1, *size) for b, size in enumerate(sizes)]
    padded = [torch.full(shape, torch.nan, dtype=torch.float64) for shape in ((5, 4, 7), (5, 7))]
    for b, (C, d_x, _) in enumerate(items):
        padded[0][(b, *map(slice, C.shape[1:]))] = C.detach()[0]
        padded[1][b, : d_x.shape[1]] = d_x.detach()[0]
    padded = [part.requires_grad_() for part in padded]
    z, x = zip(*sizes, strict=True)
    how = {"gamma": GAMMA, "executor": executor}
    value = drop_dtw(*padded, z_lengths=z, x_lengths=x, order=each, **how)
    by_c, by_x = grads(value, padded)
    for b, (C, d_x, _) in enumerate(items):
        wanted = everything((C, d_x), order=each[b], **how)
        found = (value[b : b + 1], by_c[b : b + 1, : z[b], : x[b]], by_x[b : b + 1, : x[b]])
        assert_same([part.detach() for part in found], wanted, atol=0 if executor is None else 1e-14)
        assert not by_c[b, z[b] :].any()
        assert not by_c[b, :, x[b] :].any()
        assert not by_x[b, x[b] :].any()


def test_a_list_of_matrices_takes_an_order_for_each():
    matrices = [torch.rand(2, 4), torch.rand(3, 5)]
    found = drop_dtw(matrices, 0.3, order=[orders.any_order(0, 1), [2, 1, 0]])
    for b, order in enumerate((orders.any_order(0, 1), [2, 1, 0])):
        assert found[b] == drop_dtw(matrices[b][None], 0.3, order=order)[0]


def test_a_list_with_step_numbers_is_one_order_and_one_of_orders_is_one_per_item():
    a, b = orders.any_order(0, 1), orders.any_order(1, 0)
    assert of_items([0, 1], 2) == (orders.as_order([0, 1]),)
    assert of_items([a, 2], 2) == (orders.as_order([a, 2]),)
    assert of_items(a, 2) == (a,)
    assert of_items(np.array([1, 0]), 2) == (orders.as_order([1, 0]),)
    assert of_items([a, b], 2) == (a, b)
    assert of_items(([1, 0], None), 2) == (orders.as_order([1, 0]), None)
    assert of_items(orders.as_order([[0], [1]]), 2) == (orders.as_order([0, 1]),)


def test_a_constraint_more_never_lowers_the_loss():
    Z, X = torch.randn(3, 4, 6), torch.randn(3, 9, 6)
    for kind in ("hard", "soft"):
        loss = dt.DropDTWLoss(reducer=kind, reduction="none")
        free, half = (loss(Z, X, order=order) for order in (orders.any_order(0, 1, 2, 3), ORDERS["partial"]))
        assert (loss(Z, X) >= half - 1e-5).all()
        assert (half >= free - 1e-5).all()


@pytest.mark.parametrize("loss", [dt.DropDTWLoss(), dt.SmoothDTWLoss(), dt.SoftDTWLoss(), dt.OTAMLoss()], ids=type)
def test_losses_take_an_order_for_all_and_one_for_each(loss):
    Z, X = torch.randn(2, 4, 6, requires_grad=True), torch.randn(2, 9, 6)
    one, other = ORDERS["partial"], [3, 2, 1, 0]
    each = loss.per_item(Z, X, order=[one, other])
    for b, order in enumerate((one, other)):
        assert torch.equal(each[b], loss.per_item(Z, X, order=order)[b])
    assert torch.equal(loss(Z, X, order=[one, other]), each.mean())
    assert not torch.equal(loss(Z, X, order=one), loss(Z, X))
    assert torch.isfinite(torch.autograd.grad(each.sum(), Z)[0]).all()


@pytest.mark.parametrize("order", [orders.before(2, [(0, 1)]), orders.walks([0, 1], [(0, 1), (1, 2)], [2]), [0, 1]])
def test_orders_that_compile_to_the_list_are_the_list(order):
    Z, X = torch.randn(2, 2, 6), torch.randn(2, 5, 6)
    loss = dt.DropDTWLoss(0.3)
    assert torch.equal(loss.per_item(Z, X, order=order), loss.per_item(Z, X))
    other = orders.any_order(0, 1)
    mixed = loss.per_item(Z, X, order=[order, other])
    assert torch.equal(mixed, torch.cat([loss.per_item(Z[:1], X[:1]), loss.per_item(Z[1:], X[1:], order=other)]))
    one = orders.before(1, [])
    assert torch.equal(loss.per_item(Z[:, :1], X, order=one), loss.per_item(Z[:, :1], X))


def test_a_wrong_z_of_another_item_has_that_items_order():
    Z, X = torch.randn(3, 4, 6), torch.randn(3, 9, 6)
    each = [ORDERS["partial"], [3, 2, 1, 0], None]
    for negatives, others in (("roll", [[2], [0], [1]]), ("all", [[2, 1], [0, 2], [1, 0]])):
        inner = dt.DropDTWLoss(0.3)
        found = dt.MarginLoss(inner, negatives=negatives, reduction="none")(Z, X, order=each)
        for b in range(3):
            right = inner.per_item(Z[b : b + 1], X[b : b + 1], order=[each[b]])
            wrong = [inner.per_item(Z[o : o + 1], X[b : b + 1], order=[each[o]]) for o in others[b]]
            hinge = torch.stack([torch.relu(right - w + 0.5) for w in wrong]).mean()
            torch.testing.assert_close(found[b], hinge)
    found = dt.MarginLoss(inner)(Z, X, order=each, wrong=X[:, :2], wrong_order=[1, 0])
    costs = inner.per_item(Z, X, order=each) - inner.per_item(X[:, :2], X, order=[1, 0])
    torch.testing.assert_close(found, torch.relu(costs + 0.5).mean())


def test_shuffled_steps_take_each_others_places():
    Z, X = torch.randn(2, 3, 6), torch.randn(2, 7, 6)
    loss = dt.D3TWLoss(match="sqeuclidean", reduction="none")
    order, swap = orders.as_order([orders.any_order(0, 1), 2]), torch.tensor([[2, 1, 0]] * 2)
    right, wrong = loss.per_item(Z, X, order=order), loss.per_item(Z[:, [2, 1, 0]], X, order=order)
    torch.testing.assert_close(loss(Z, X, order=order, wrong=swap), torch.relu(1 + right - wrong))
    same = torch.tensor([[1, 0, 2]] * 2)
    torch.testing.assert_close(loss(Z, X, order=order, wrong=same), torch.ones(2))
