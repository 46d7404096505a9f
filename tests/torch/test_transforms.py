"""`drop_dtw` and the losses under `torch.func`: the same numbers as by autograd, or an error that says what to do."""

import pytest

torch = pytest.importorskip("torch", reason="drop_dtw needs PyTorch: pip install dropdtw[torch]")

from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap  # noqa: E402

from dropdtw import orders  # noqa: E402
from dropdtw.torch import ClusteringLoss, DropDTWLoss, SoftDTWLoss, drop_dtw  # noqa: E402
from dropdtw.torch.costs import first_of_kind  # noqa: E402


def costs(*shape, seed=0):
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


FREE = orders.any_order(0, 1, 2)
CALLS = {
    "drops": {"drop_x": 0.3},
    "both sides, charged": {"drop_x": 0.3, "drop_z": "percentile:40", "open_x": 0.1, "warp": torch.tensor(0.2)},
    "ragged": {"drop_x": 0.3, "z_lengths": [3, 2], "x_lengths": [4, 5]},
    "an order": {"drop_x": 0.3, "order": FREE},
    "orders": {"drop_x": 0.3, "order": [FREE, None]},
}


def slopes(f, C):
    C = C.clone().requires_grad_()
    return torch.autograd.grad(f(C).sum(), C)[0]


@pytest.mark.parametrize("name", CALLS)
def test_grad_and_jacrev_are_what_autograd_finds(name):
    def f(C):
        return drop_dtw(C, **CALLS[name])

    C = costs(2, 3, 5)
    assert torch.equal(grad(lambda C: f(C).sum())(C), slopes(f, C))
    jacobian = jacrev(f)(C)  # items do not depend on each other
    assert torch.equal(jacobian.sum(0), slopes(f, C))
    assert not jacobian[0, 1].any()
    assert not jacobian[1, 0].any()


@pytest.mark.parametrize("name", CALLS)
def test_vmap_is_one_batch_after_the_other(name):
    def f(C):
        return drop_dtw(C, **CALLS[name])

    C = costs(4, 2, 3, 5)
    assert torch.equal(vmap(f)(C), torch.stack([f(c) for c in C]))
    assert torch.equal(vmap(f, in_dims=1)(C.movedim(0, 1)), torch.stack([f(c) for c in C]))
    assert torch.equal(vmap(grad(lambda c: f(c).sum()))(C), torch.stack([slopes(f, c) for c in C]))
    assert torch.equal(vmap(jacrev(f))(C), torch.stack([jacrev(f)(c) for c in C]))
    assert torch.equal(vmap(vmap(f))(C.reshape(2, 2, 2, 3, 5)), vmap(f)(C).reshape(2, 2, 2))


def test_vmap_over_anything_but_the_match_costs():
    C, drops, lengths = costs(2, 3, 5), costs(4, 5, seed=1), torch.tensor([[5, 2], [1, 3], [4, 4], [5, 5]])
    found = vmap(lambda d, n: drop_dtw(C, d, x_lengths=n))(drops, lengths)
    assert torch.equal(found, torch.stack([drop_dtw(C, d, x_lengths=n) for d, n in zip(drops, lengths, strict=True)]))
    charge = torch.tensor([0.1, 0.2], dtype=torch.float64)
    found = vmap(lambda o: drop_dtw(C, 0.3, open_x=o))(charge)
    assert torch.equal(found, torch.stack([drop_dtw(C, 0.3, open_x=o) for o in charge]))
    assert torch.equal(vmap(grad(lambda o: drop_dtw(C, 0.3, open_x=o).sum()))(charge)[0], slopes(
        lambda o: drop_dtw(C, 0.3, open_x=o), charge[0]
    ))  # fmt: skip


@pytest.mark.parametrize("match", ["softmax", "cosine", "sqeuclidean", "cityblock", "chebyshev", "correlation"])
def test_jacrev_of_a_loss_is_what_autograd_finds(match):
    loss = DropDTWLoss(9.0, match=match, reducer="hard", reduction="none")
    Z, X = costs(2, 2, 3), costs(2, 4, 3, seed=1)
    jacobian = jacrev(lambda Z: loss(Z, X))(Z)
    for b in range(2):
        torch.testing.assert_close(jacobian[b, b], slopes(lambda Z: loss(Z, X), Z)[b])
        assert not jacobian[b, 1 - b].any()


@pytest.mark.parametrize("which", ["z_lengths", "x_lengths"])
def test_vmap_over_the_lengths_of_a_loss(which):
    Z, X, lengths = costs(3, 2, 4, 3), costs(3, 2, 4, 3, seed=1), torch.tensor([[4, 2], [1, 3], [4, 4]])
    loss = DropDTWLoss(0.3, reduction="none")
    found = vmap(lambda z, x, n: loss(z, x, **{which: n}))(Z, X, lengths)
    expected = [loss(z, x, **{which: n}) for z, x, n in zip(Z, X, lengths, strict=True)]
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # PyTorch's own forward mode
def test_second_derivatives_and_forward_mode_are_refused_but_by_wavefront():
    C = costs(1, 2, 3)

    def f(C, executor=None):
        return drop_dtw(C, 0.3, executor=executor).sum()

    for transformed in (hessian(f), jacfwd(f), lambda C: jvp(f, (C,), (C,))):
        with pytest.raises(RuntimeError, match=r"forward-mode.*wavefront"):
            transformed(C)
    with pytest.raises(RuntimeError, match=r"differentiated only once.*wavefront"):
        jacrev(jacrev(f))(C)
    truth = torch.autograd.functional.hessian(lambda C: f(C, "wavefront"), C)
    for twice in (hessian, lambda f: jacrev(jacrev(f))):
        torch.testing.assert_close(twice(lambda C: f(C, "wavefront"))(C), truth)
    assert truth.any()


def test_what_makes_no_sense_is_refused_under_transforms_too():
    C = costs(1, 2, 3)
    C[0, 0, 1] = torch.nan
    with pytest.raises(ValueError, match="NaN"):
        grad(lambda C: drop_dtw(C, 0.3).sum())(C)


@pytest.mark.parametrize(
    "loss", [DropDTWLoss(), DropDTWLoss("logit:30"), SoftDTWLoss(), ClusteringLoss()], ids=lambda loss: str(loss)[:16]
)
def test_losses_under_grad_and_vmap(loss):
    Z, X = costs(3, 1, 2, 4), costs(1, 5, 4, seed=1)

    def f(z):
        return loss(z, X)

    truth = torch.stack([slopes(f, z) for z in Z])
    torch.testing.assert_close(vmap(grad(f))(Z), truth)
    torch.testing.assert_close(vmap(f)(Z), torch.stack([f(z) for z in Z]))


def test_equal_rows_are_found_under_vmap_too():
    """Rows that agree in some features only are not equal, even if one of them comes first."""
    Z = torch.tensor(
        [[[1.0, 2.0], [1.0, 3.0], [1.0, 3.0], [torch.nan, 3.0]], [[5.0, 0.0], [4.0, -0.0], [5.0, -0.0], [5.0, 1.0]]]
    )
    wanted = [[0, 1, 1, 3], [0, 1, 0, 3]]
    assert first_of_kind(Z).tolist() == wanted
    assert vmap(first_of_kind)(Z).tolist() == wanted
