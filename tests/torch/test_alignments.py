"""`dropdtw.torch.align` and `posterior`: batches on their device against single problems of the library."""

import inspect

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the functions need PyTorch: pip install dropdtw[torch]")

import dropdtw  # noqa: E402
from cases import EVERY_VARIANT, OF_COSTS, spec_of  # noqa: E402
from dropdtw import orders  # noqa: E402
from dropdtw.torch import align, drop_dtw, posterior  # noqa: E402

K, N = 4, 7
LENGTHS = {"z_lengths": [4, 3, 2], "x_lengths": [7, 4, 7]}
VARIANTS = [v for v in EVERY_VARIANT if not (v["method"] == "ctc" and v["sides"][1])]
WEIGHTED = {v["method"] for v in VARIANTS if not spec_of(v, 0.0, 0.0).table.weights <= {1.0}}
NO_ALIGNMENT = "no alignment|no path|every alignment is forbidden|pass|give drop|cannot"
ORDERS = {
    "free": orders.any_order(0, 1, 2, 3),
    "reversed": [3, 2, 1, 0],
    "alternatives": [0, orders.one_of(1, 2), 3],
    "own": [orders.any_order(0, 1, 2, 3), None, [1, 0, 2, 3]],
}


def random(kind="positive", B=3, dtype=torch.float64):
    rng = np.random.default_rng(B)
    parts = [rng.integers(-1, 2, s) if kind == "tied" else rng.random(s) for s in ((B, K, N), (B, N), (B, K))]
    return [torch.tensor(part, dtype=dtype) for part in parts]


def single(f, given, b, how, k=K, n=N, **more):
    """What the library finds for one item."""
    C, d_x, d_z = (None if part is None else part[b].numpy() for part in given)
    own = {name: value[b] if name == "order" and isinstance(value, list) and not isinstance(value[0], int) else value
           for name, value in how.items()}  # fmt: skip
    return f(C[:k, :n], drop_x=None if d_x is None else d_x[:n], drop_z=None if d_z is None else d_z[:k], **own, **more)


def check(found, given, how, sizes):
    M, labels = found.M.numpy(), found.labels.numpy()
    for b, (k, n) in enumerate(sizes):
        a = single(dropdtw.solve, given, b, how, k, n)
        assert found.values[b].item() == pytest.approx(a.cost, abs=1e-9)
        assert np.array_equal(M[b, :k, :n], a.M)
        assert not M[b, k:].any()
        assert not M[b, :, n:].any()
        assert np.array_equal(labels[b, :n], a.labels)
        assert (labels[b, n:] == -1).all()
        assert {tuple(p) for p in found.pairs[b].tolist()} == {tuple(p) for p in a.pairs.tolist()}
        assert (np.diff(found.pairs[b][:, 1]) >= 0).all()
        assert found.durations[b, :k].tolist() == a.M.sum(1).tolist()


@pytest.mark.sweep
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("kind", ["positive", "tied"])
def test_each_item_is_aligned_as_on_its_own(variant, kind):
    how = {name: value for name, value in variant.items() if name != "sides"}
    C, d_x, d_z = random(kind)
    given = [C, *(d if used else None for d, used in zip((d_x, d_z), variant["sides"], strict=True))]
    found = align(given[0], drop_x=given[1], drop_z=given[2], **how, **LENGTHS, strict=False)
    fits = [b for b in range(3) if found.values[b].isfinite()]
    sizes = list(zip(*LENGTHS.values(), strict=True))
    for b in set(range(3)) - set(fits):
        assert (found.labels[b] == -1).all()
        assert not found.M[b].any()
        with pytest.raises(ValueError, match=NO_ALIGNMENT):
            single(dropdtw.solve, given, b, how, *sizes[b])
    some = [None if part is None else part[fits] for part in given]
    keep = {name: [lengths[b] for b in fits] for name, lengths in LENGTHS.items()}
    if fits:
        found = align(some[0], drop_x=some[1], drop_z=some[2], **how, **keep)
        check(found, some, how, [sizes[b] for b in fits])


@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("many_to_one", [True, False])
def test_orders(name, many_to_one):
    given = random()
    how = {"order": ORDERS[name], "many_to_one": many_to_one}
    check(align(given[0], drop_x=given[1], drop_z=given[2], **how), given, how, [(K, N)] * 3)
    found = posterior(given[0], drop_x=given[1], drop_z=given[2], gamma=0.3, **how)
    for b in range(3):
        p = single(dropdtw.posterior, given, b, how, gamma=0.3)
        assert found.match[b].numpy() == pytest.approx(p.match)
        assert found.drop_x[b].numpy() == pytest.approx(p.drop_x)


@pytest.mark.parametrize("variant", VARIANTS[:: len(VARIANTS) // 25], ids=str)
def test_posteriors_are_those_of_each_item(variant):
    how = {name: value for name, value in variant.items() if name != "sides"}
    C, d_x, d_z = random()
    given = [C, *(d if used else None for d, used in zip((d_x, d_z), variant["sides"], strict=True))]
    if how["method"] in WEIGHTED:
        with pytest.raises(ValueError, match="weighs its matches"):
            posterior(C, drop_x=given[1], drop_z=given[2], **how, strict=False)
        return
    found = posterior(given[0], drop_x=given[1], drop_z=given[2], gamma=0.4, **how, strict=False)
    for b in range(3):
        if found.values[b] == torch.inf:
            assert not any(part[b].any() for part in found[1:])
            with pytest.raises(ValueError, match=NO_ALIGNMENT):
                single(dropdtw.posterior, given, b, how, gamma=0.4)
            continue
        p = single(dropdtw.posterior, given, b, how, gamma=0.4)
        assert found.values[b].item() == pytest.approx(p.cost)
        assert found.match[b].numpy() == pytest.approx(p.match)
        if how["method"] == "drop_dtw":
            assert found.drop_x[b].numpy() == pytest.approx(p.drop_x)
            assert found.drop_z[b].numpy() == pytest.approx(p.drop_z)


def test_weighted_matches_are_aligned_but_have_no_posterior():
    given = [random()[0][:, :, :5], None, None]
    assert {"symmetric2", "symmetricP1", "asymmetricP1"} <= WEIGHTED
    for method in sorted(WEIGHTED):
        check(align(given[0], method=method), given, {"method": method}, [(K, 5)] * 3)
        with pytest.raises(ValueError, match=f"method is '{method}', which weighs its matches"):
            posterior(given[0], method=method)


def test_a_posterior_of_ctc_counts_no_drops_of_z():
    C = random()[0]
    C[:, 1] = C[:, 0]  # equal z
    found = posterior(C, drop_x=0.5, method="ctc")
    assert not found.drop_z.any()
    p = dropdtw.posterior(C[0].numpy(), drop_x=0.5, method="ctc")
    assert found.match[0].numpy() == pytest.approx(p.match)
    assert found.drop_x[0].numpy() == pytest.approx(p.drop_x)


@pytest.mark.parametrize(
    "how",
    [
        {"drop_x": 0.3, "drop_z": 0.4},
        {"drop_x": 0.3, "open_x": 0.2, "many_to_one": False},
        {"method": "otam"},
        {"drop_x": 0.3, "order": [orders.any_order(0, 1, 2), None]},
    ],
    ids=str,
)
def test_posteriors_can_be_differentiated(how):
    torch.manual_seed(0)
    C = torch.rand(2, 3, 4, dtype=torch.float64, requires_grad=True)
    drop = torch.rand(2, 4, dtype=torch.float64, requires_grad=True)

    def probabilities(C, drop, *_):
        own = how | {"drop_x": drop} if "drop_x" in how else how
        return posterior(C, gamma=0.7, **own)

    given = (C, drop) if "drop_x" in how else (C,)
    assert torch.autograd.gradcheck(lambda *both: probabilities(*both, None), given, fast_mode=True)


def test_items_without_an_alignment_get_no_gradient():
    C = torch.rand(2, 3, 4, dtype=torch.float64)
    C[1] = torch.inf
    C.requires_grad_()
    found = posterior(C, drop_x=0.3)
    assert found.values[1] == torch.inf
    assert not found.match[1].any()
    (grad,) = torch.autograd.grad(found.match.square().sum(), C)
    assert grad[0].any()
    assert not grad[1].any()


@pytest.mark.parametrize("d", [3, 20])
@pytest.mark.parametrize("drop", [0.4, "percentile:40"])
def test_sequences_are_compared_as_the_library_does(d, drop):
    torch.manual_seed(d)
    Zs, Xs = ([torch.rand(n, d, dtype=torch.float64) for n in lengths] for lengths in ((3, 4, 2), (7, 6, 9)))
    found = align(Zs, Xs, drop_x=drop)
    p = posterior(Zs, Xs, drop_x=drop, match="sqeuclidean", gamma=0.2)
    for b, (Z, X) in enumerate(zip(Zs, Xs, strict=True)):
        a = dropdtw.align(Z.numpy(), X.numpy(), drop)
        assert found.values[b].item() == pytest.approx(a.cost)
        assert found.labels[b, : len(X)].tolist() == a.labels.tolist()
        q = dropdtw.posterior(Z.numpy(), X.numpy(), drop_x=drop, match="sqeuclidean", gamma=0.2)
        assert p.match[b, : len(Z), : len(X)].numpy() == pytest.approx(q.match)
        assert not p.match[b, len(Z) :].any()


def test_positions_are_those_of_the_caller_whatever_a_mask_leaves_out():
    C, d_x, d_z = random()
    there = torch.tensor([[1, 1, 0, 1, 1, 0, 1], [1] * 7, [0, 0, 1, 1, 1, 1, 1]], dtype=torch.bool)
    found = align(C, drop_x=d_x, drop_z=d_z, x_mask=there)
    p = posterior(C, drop_x=d_x, drop_z=d_z, x_mask=there)
    for b in range(3):
        own = there[b].numpy()
        how = {"drop_x": d_x[b].numpy()[own], "drop_z": d_z[b].numpy()}
        a, q = dropdtw.solve(C[b].numpy()[:, own], **how), dropdtw.posterior(C[b].numpy()[:, own], gamma=1.0, **how)
        assert found.labels[b, own].tolist() == a.labels.tolist()
        assert (found.labels[b, ~own] == -1).all()
        assert p.match[b][:, own].numpy() == pytest.approx(q.match)
        assert p.drop_x[b, own].numpy() == pytest.approx(q.drop_x)
        assert not p.match[b][:, ~own].any()
        assert not p.drop_x[b, ~own].any()
    Z, X = torch.rand(1, 2, 2), torch.rand(1, 4, 2)
    X[0, 1] = torch.nan
    assert align(Z, X, drop_x=0.1, x_mask=~X.isnan().any(-1)).labels[0, 1] == -1


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞, inside the interpreter
@pytest.mark.parametrize("how", [{}, {"method": "ctc"}, {"order": ORDERS["own"]}, {"many_to_one": False}], ids=str)
def test_the_cuda_kernels_find_the_same(how):
    triton = pytest.importorskip("dropdtw.executors.triton", reason="Triton is not installed")
    C, d_x, _ = random()
    told = how if "order" in how else how | LENGTHS
    device = "cpu" if triton.INTERPRETED else "cuda"
    fast = align(C.to(device), drop_x=d_x.to(device), executor="triton", **told)
    slow = align(C, drop_x=d_x, **told)
    assert torch.equal(fast.labels.cpu(), slow.labels)
    assert torch.equal(fast.M.cpu(), slow.M)
    torch.testing.assert_close(fast.values.cpu(), slow.values)
    fast = posterior(C.to(device), drop_x=d_x.to(device), executor="triton", **told)
    for a, b in zip(fast, posterior(C, drop_x=d_x, **told), strict=True):
        torch.testing.assert_close(a.cpu(), b)


def test_an_alignment_prints_its_sizes():
    assert repr(align(random()[0], drop_x=0.3)) == "<BatchAlignment of 3 × 4 z with 7 x, on cpu>"


def test_no_gradient_is_tracked_by_align():
    C = random()[0].requires_grad_()
    found = align(C, drop_x=0.3)
    assert not found.values.requires_grad
    assert C.grad is None


def test_the_signatures_list_the_options_of_drop_dtw():
    known = set(inspect.signature(drop_dtw).parameters) - {"unknown", "reducer"}
    assert set(inspect.signature(posterior).parameters) == known | {"X", "ids", "match"}
    assert set(inspect.signature(align).parameters) == (known | {"X", "ids", "match"}) - {"gamma"}


@pytest.mark.parametrize(
    ("f", "how", "message"),
    [
        (align, {"dropx": 0.3}, "align has no option dropx; did you mean drop_x?"),
        (posterior, {"gama": 0.3}, "posterior has no option gama; did you mean gamma?"),
        (align, {"reducer": "soft"}, "reducer"),
        (align, {"match": "cosine"}, "match"),
        (align, {"ids": [[0, 1, 2]]}, "ids belong to sequences"),
        (posterior, {"gamma": 0}, "gamma is 0; give a number > 0"),
        (posterior, {"gamma": None}, "gamma is None; give a number > 0"),
        (align, {"method": "ctc", "drop_z": 0.1, "drop_x": 0.2}, "method 'ctc' takes drop_z"),
    ],
)
def test_errors_say_what_to_do(f, how, message):
    with pytest.raises((ValueError, TypeError), match=message):
        f(torch.rand(1, 3, 4), **how)


def test_the_registered_methods_are_covered():
    assert {v["method"] for v in VARIANTS} == set(OF_COSTS)


def test_probabilities_refuse_a_second_derivative():
    C = random()[0].requires_grad_()
    (first,) = torch.autograd.grad(posterior(C, drop_x=0.5).match.square().sum(), C, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated only once"):
        first.sum().backward()
