"""Each loss by itself: divergence, wrong orders, margins, clusters, learned drops; and training with them."""

import numpy as np
import pytest

pytest.importorskip("torch")
import torch

import dropdtw
from dropdtw import torch as dt
from dropdtw.costs import Softmax
from dropdtw.drops import LogitPercentile
from dropdtw.torch.batch import pairs
from dropdtw.torch.discriminative import shuffled
from loss_cases import LENGTHS, ORDER, X_LENGTHS, Z_LENGTHS, batch, items, learned


def test_surface_is_what_we_mean_to_offer():
    speech = {"CTCLoss", "ctc_loss", "forced_align", "monotonic_align"}
    functions = {"cosine", "drop_dtw", "percentile_drop", "percentile_logit", "softmax", "softmax_with_drop"}
    losses = {"DropDTWLoss", "SmoothDTWLoss", "SoftDTWLoss", "SoftDTWDivergence", "OTAMLoss", "D3TWLoss"}
    batches = {"align", "posterior", "BatchAlignment", "BatchPosterior"}
    assert set(dt.__all__) == functions | losses | speech | batches | {
        "sqeuclidean",
        "cityblock",
        "chebyshev",
        "correlation",
        "AlignmentLoss",
        "MarginLoss",
        "ClusteringLoss",
        "LearnedDrop",
    }
    assert all(len(getattr(dt, name).__doc__) > 40 for name in dt.__all__)


# --- soft-DTW divergence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("d", [1, 3, 16, 17, 64])
@pytest.mark.parametrize("offset", [0, 100])
def test_divergence_of_equal_sequences_is_nothing_at_all(dtype, d, offset):
    A = torch.randn(3, 9, d, generator=torch.Generator().manual_seed(d)).to(dtype) + offset
    lengths = {"z_lengths": [9, 4, 1], "x_lengths": [9, 4, 1]}
    for gamma in (0.1, 1.0, 10.0):
        assert dt.SoftDTWDivergence(gamma=gamma, reduction="none")(A, A.clone(), **lengths).tolist() == [0, 0, 0]
    C = dt.sqeuclidean(A, A)
    assert (C.diagonal(dim1=1, dim2=2) == 0).all()
    assert (C >= 0).all()


def test_divergence_of_equal_sequences_is_nothing_whatever_their_padding():
    A = torch.randn(3, 9, 5, generator=torch.Generator().manual_seed(0))
    more = torch.nn.functional.pad(A, (0, 0, 0, 6), value=7.0)
    lengths = {"z_lengths": [9, 4, 1], "x_lengths": [9, 4, 1]}
    assert dt.SoftDTWDivergence(reduction="none")(A, more, **lengths).tolist() == [0, 0, 0]


@pytest.mark.parametrize("gamma", [0.01, 0.3, 1.0, 30.0])
@pytest.mark.parametrize("d", [1, 4])
def test_divergence_is_never_below_zero(gamma, d):
    draw = torch.Generator().manual_seed(0)
    K, N = (torch.randint(1, 9, (300,), generator=draw) for _ in range(2))
    Z, X = (torch.randn(300, 8, d, generator=draw, dtype=torch.float64) for _ in range(2))
    Z, X = (torch.where(torch.rand(300, 1, 1, generator=draw) < 0.3, a.round(), a) for a in (Z, X))
    found = dt.SoftDTWDivergence(gamma=gamma, reduction="none")(Z, X, z_lengths=K, x_lengths=N)
    assert found.min() >= -1e-10 * gamma
    assert found.max() > 1


def test_divergence_is_its_definition():
    Z, X = batch()
    found = dt.SoftDTWDivergence(gamma=0.5, normalize="z", reduction="none")(Z, X, **LENGTHS)

    def soft_dtw(a, b):
        C = ((a[:, None] - b) ** 2).sum(-1)
        return dropdtw.cost(C, method="dtw", reducer="soft", gamma=0.5, executor="reference")

    for value, (z, x) in zip(found.tolist(), items(Z, X), strict=True):
        expected = soft_dtw(z, x) - soft_dtw(z, z) / 2 - soft_dtw(x, x) / 2
        assert value == pytest.approx(expected / len(z), rel=1e-9)


# --- D³TW --------------------------------------------------------------------------------------------------------


def costs_of(Z, X, **more):
    """The DTW of each item, computed with NumPy."""
    return [dropdtw.cost(Softmax()(z, x), method="dtw", reducer="soft", **more) for z, x in items(Z, X)]


def test_d3tw_is_a_hinge_between_orders():
    Z, X = batch()
    right = costs_of(Z, X)
    turned = torch.stack([z[list(order)] for z, order in zip(Z, ORDER.tolist(), strict=True)])
    wrong = costs_of(turned, X)
    for margin in (0.0, 0.5, 4.0):
        expected = [max(0.0, margin + r - w) for r, w in zip(right, wrong, strict=True)]
        loss = dt.D3TWLoss(margin, reduction="none")
        assert loss(Z, X, **LENGTHS, wrong=ORDER).tolist() == pytest.approx(expected)
        given = loss(Z, X, **LENGTHS, wrong=turned, wrong_lengths=Z_LENGTHS)
        assert given.tolist() == pytest.approx(expected)
    assert min(map(float.__sub__, right, wrong)) < -0.5 < 0 < max(map(float.__sub__, right, wrong))


def test_ids_move_with_the_steps_of_a_wrong_order():
    Z, X = batch()
    ids = torch.tensor([[0, 1, 1, 0], [5, 6, 0, 0], [1, 2, 3, 1]])
    found = dt.D3TWLoss(9.0, reduction="none")(Z, X, **LENGTHS, ids=ids, wrong=ORDER)
    for value, (z, x), names, order in zip(found.tolist(), items(Z, X), ids.tolist(), ORDER.tolist(), strict=True):
        k = len(z)
        C = [Softmax(ids=tuple(names[i] for i in o[:k]))(z[o[:k]], x) for o in (list(range(4)), order)]
        right, wrong = (dropdtw.cost(c, method="dtw", reducer="soft") for c in C)
        assert value == pytest.approx(9 + right - wrong)


def test_d3tw_against_sequences_of_other_lengths():
    Z, X = batch()
    other = [torch.randn(n, 3, generator=torch.Generator().manual_seed(n), dtype=torch.float64) for n in (1, 5, 2)]
    found = dt.D3TWLoss(9.0, reduction="none")(Z, X, **LENGTHS, wrong=other, wrong_ids=[[0], [0, 1, 0, 2, 3], [0, 0]])
    for value, right, o, names, (_, x) in zip(
        found.tolist(), costs_of(Z, X), other, [(0,), (0, 1, 0, 2, 3), (0, 0)], items(Z, X), strict=True
    ):
        wrong = dropdtw.cost(Softmax(ids=names)(o.numpy(), x), method="dtw", reducer="soft")
        assert value == pytest.approx(9 + right - wrong)


def test_drawn_orders_always_differ():
    Z, X = batch()
    for ids in (None, [[1, 1, 2], [4, 5], [7, 7, 7, 8]]):
        p = pairs(Z, X, **LENGTHS, ids=ids)
        names, draw, seen = p.first_of_kind(), torch.Generator().manual_seed(0), set()
        for _ in range(200):
            order = shuffled(p, draw)
            assert torch.equal(order.sort(dim=1).values, torch.arange(4).expand(3, 4))
            assert all(order[b, k:].tolist() == list(range(k, 4)) for b, k in enumerate(Z_LENGTHS))
            assert (names.gather(1, order) != names).any(dim=1).all()
            seen.add(tuple(order[2].tolist()))
        assert len(seen) == (23 if ids is None else 18)  # all distinct wrong orders of four steps


def test_steps_of_one_kind_have_no_wrong_order():
    Z, X = batch()
    found = dt.D3TWLoss(0.7, reduction="none")(Z[:, :1], X)
    assert found.tolist() == pytest.approx([0.7] * 3)
    alike = dt.D3TWLoss(0.7, reduction="none")(Z, X, ids=torch.zeros(3, 4, dtype=torch.int64))
    assert alike.tolist() == pytest.approx([0.7] * 3)


def test_drawn_orders_come_from_the_generator():
    Z, X = batch()
    loss = dt.D3TWLoss(9.0)
    first, again = (loss(Z, X, **LENGTHS, generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, again)
    draw = torch.Generator().manual_seed(0)
    assert len({loss(Z, X, **LENGTHS, generator=draw).item() for _ in range(9)}) > 1
    torch.manual_seed(5)
    from_global = loss(Z, X, **LENGTHS)
    torch.manual_seed(5)
    assert torch.equal(loss(Z, X, **LENGTHS), from_global)


# --- Margin ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("negatives", ["roll", "all"])
def test_margin_loss_takes_wrong_sequences_from_the_batch(negatives):
    Z, X = batch()
    inner = dt.DropDTWLoss("percentile:50", "percentile:50", match="cosine", normalize="both")
    found = dt.MarginLoss(inner, 0.02, negatives=negatives, reduction="none")(Z, X, **LENGTHS)
    parts, hinges = items(Z, X), []

    def cost(z, x):
        p = "percentile:50"
        return dropdtw.distance(z, x, p, p, match="cosine", reducer="smooth") / (len(z) + len(x))

    for b, (z, x) in enumerate(parts):
        others = [(b - 1) % 3] if negatives == "roll" else [c for c in range(3) if c != b]
        hinges.append([max(0.0, cost(z, x) - cost(parts[c][0], x) + 0.02) for c in others])
    assert found.tolist() == pytest.approx([np.mean(h) for h in hinges])
    assert 0 < sum(h == 0 for row in hinges for h in row) < sum(map(len, hinges))


@pytest.mark.parametrize("negatives", ["roll", "all"])
def test_each_sequence_of_a_margin_loss_keeps_what_is_its_own(negatives):
    """Z its drop costs, opening cost and ids; X its drop costs, opening cost and warp penalty."""
    Z, X = batch()
    draw = torch.Generator().manual_seed(1)
    ids = torch.tensor([[0, 0, 1, 2], [0, 1, 2, 3], [0, 1, 0, 2]])
    drop_x, drop_z = (torch.rand(3, n, generator=draw, dtype=torch.float64) for n in (7, 4))
    charges = dict(zip(("open_x", "open_z", "warp"), torch.rand(3, 3, generator=draw), strict=True))

    def loss(x=slice(None), z=slice(None)):
        own = {name: value[z if name == "open_z" else x] for name, value in charges.items()}
        return dt.DropDTWLoss(drop_x[x], drop_z[z], **own)

    found = dt.MarginLoss(loss(), 1.0, negatives=negatives, reduction="none")(Z, X, **LENGTHS, ids=ids)
    for b in range(3):
        x, hinges = slice(b, b + 1), []
        for o in [(b - 1) % 3] if negatives == "roll" else [c for c in range(3) if c != b]:
            right, wrong = (
                loss(x, z).per_item(Z[z], X[x], z_lengths=Z_LENGTHS[z], x_lengths=X_LENGTHS[x], ids=ids[z])
                for z in (x, slice(o, o + 1))
            )
            hinges.append(torch.relu(right - wrong + 1.0))
        torch.testing.assert_close(found[b], torch.stack(hinges).mean())


def test_a_wrong_z_that_cannot_be_aligned_adds_nothing():
    Z, X = batch()
    loss = dt.MarginLoss(dt.DropDTWLoss(0.3, many_to_one=False), negatives="all", reduction="none")
    lengths = {"z_lengths": [3, 2, 4], "x_lengths": [3, 7, 4]}  # the third Z has too many elements for the first X
    of_two = loss(Z[:2], X[:2], z_lengths=[3, 2], x_lengths=[3, 7])
    torch.testing.assert_close(loss(Z, X, **lengths)[0], of_two[0] / 2)


def test_margin_loss_takes_wrong_sequences_as_given():
    Z, X = batch()
    loss = dt.MarginLoss(dt.SoftDTWLoss(), 0.5, reduction="none")
    rolled = loss(Z, X, **LENGTHS)
    given = loss(Z, X, **LENGTHS, wrong=Z.roll(1, 0), wrong_lengths=[4, 3, 2])
    torch.testing.assert_close(given, rolled)
    as_list = loss(Z, X, **LENGTHS, wrong=[Z[2], Z[0, :3], Z[1, :2]])
    torch.testing.assert_close(as_list, rolled)
    assert loss(Z[:1], X[:1], wrong=Z[1:2]).shape == (1,)


# --- Clustering --------------------------------------------------------------------------------------------------


def pooled(z, x, gamma):
    """Frames pooled by attention for one step."""
    logits = np.array([frame @ z / gamma for frame in x])
    weights = np.exp(logits - logits.max())
    return sum(w * frame for w, frame in zip(weights / weights.sum(), x, strict=True))


def test_frobenius_form_is_the_papers():
    Z, X = batch(scale=0.5)
    Z[2, 3] = Z[2, 1]
    found = dt.ClusteringLoss(gamma=0.3, reduction="none")(Z, X, **LENGTHS)
    for value, (z, x), own in zip(found.tolist(), items(Z, X), ([0, 1, 2], [0, 1], [0, 1, 2]), strict=True):
        squares = 0.0
        for i in own:
            for k in own:
                squares += ((i == k) - pooled(z[i], x, 0.3) @ z[k]) ** 2
        assert value == pytest.approx(squares**0.5)


@pytest.mark.parametrize("negatives", ["item", "batch"])
def test_contrastive_form_is_info_nce(negatives):
    Z, X = batch(scale=3.0)
    Z[2, 3] = Z[2, 1]
    Z[1, 1] = Z[0, 0]
    Z[0, 3] = Z[1, 0]  # padding that looks like a step
    loss = dt.ClusteringLoss("contrastive", negatives=negatives, reduction="none")
    parts = items(Z, X)
    own = [[0, 1, 2], [0, 1], [0, 1, 2]]
    batch_steps = [parts[0][0][i] for i in own[0]] + [parts[1][0][0]] + [parts[2][0][i] for i in own[2]]
    for value, (z, x), steps in zip(loss(Z, X, **LENGTHS).tolist(), parts, own, strict=True):
        rivals = [z[i] for i in steps] if negatives == "item" else batch_steps
        terms = []
        for i in steps:
            x_hat = pooled(z[i], x, 10.0)
            logits = [x_hat @ rival / 30.0 for rival in rivals]
            terms.append(np.log(np.exp(logits).sum()) - x_hat @ z[i] / 30.0)
        assert value == pytest.approx(np.mean(terms))
    names = [[0, 1, 2], [3, 0], [5, 6, 7, 6]]
    torch.testing.assert_close(loss(Z, X, **LENGTHS, ids=names), loss(Z, X, **LENGTHS))
    if negatives == "batch":  # the first step of an id represents them all
        same = loss(Z, X, **LENGTHS, ids=[[0, 1, 2], [1, 0], [5, 6, 7, 6]])
        x_hat, rivals = pooled(parts[1][0][0], parts[1][1], 10.0), batch_steps[:3] + batch_steps[4:]
        first = np.log(sum(np.exp(x_hat @ r / 30) for r in rivals)) - x_hat @ parts[0][0][1] / 30
        x_hat = pooled(parts[1][0][1], parts[1][1], 10.0)
        second = np.log(sum(np.exp(x_hat @ r / 30) for r in rivals)) - x_hat @ parts[0][0][0] / 30
        assert same[1].item() == pytest.approx((first + second) / 2)
        apart = loss(Z, X, **LENGTHS, ids=[[0, 1, 2], [3, 4], [5, 6, 7, 6]])
        assert (apart > loss(Z, X, **LENGTHS)).all()


@pytest.mark.parametrize("negatives", ["item", "batch"])
def test_the_background_is_one_more_class(negatives):
    """Its vector pools frames and joins the rivals of every step; in a batch, it is the mean over the items."""
    Z, X = batch(scale=3.0)
    drop = dt.LearnedDrop(Z.shape[2], scale=0.5).double()
    loss = dt.ClusteringLoss("contrastive", negatives=negatives, background=drop, reduction="none")
    found = loss(Z, X, **LENGTHS)
    parts = items(Z, X)
    means = torch.stack([torch.from_numpy(z).mean(dim=0) for z, _ in parts])
    vectors = 0.5 * (means + drop.network(means)).detach().numpy()
    for b, (value, (z, x)) in enumerate(zip(found.tolist(), parts, strict=True)):
        rivals = list(z) if negatives == "item" else [step for steps, _ in parts for step in steps]
        background = vectors[b] if negatives == "item" else vectors.mean(axis=0)
        rivals.append(background)
        terms = []
        for step in [*z, background]:
            x_hat = pooled(step, x, 10.0)
            terms.append(np.log(sum(np.exp(x_hat @ rival / 30.0) for rival in rivals)) - x_hat @ step / 30.0)
        assert value == pytest.approx(np.mean(terms))
    (slope,) = torch.autograd.grad(found.sum(), drop.network[0].weight)
    assert slope.abs().max() > 0


def test_clustering_at_its_best_has_a_derivative():
    X = torch.eye(3, dtype=torch.float64)[None].requires_grad_()
    value = dt.ClusteringLoss(gamma=1e-4)(X.detach(), X)
    value.backward()
    assert value == 0
    assert torch.isfinite(X.grad).all()


# --- Learned drop costs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize(("depth", "hidden"), [(1, None), (2, None), (3, 5)])
def test_learned_drop_is_equation_6(depth, hidden, residual):
    torch.manual_seed(0)
    drop = dt.LearnedDrop(3, depth, hidden, output="cost", residual=residual).double()
    assert [p.shape[0] for n, p in drop.named_parameters() if "weight" in n] == [hidden or 3] * (depth - 1) + [3]
    Z, X = batch()
    found = drop(Z, X, **LENGTHS)
    layers = [m for m in drop.network if isinstance(m, torch.nn.Linear)]
    for row, (z, x) in zip(found.detach().numpy(), items(Z, X), strict=True):
        mean = f = z.mean(axis=0)
        for n, layer in enumerate(layers):
            f = layer.weight.detach().numpy() @ f + layer.bias.detach().numpy()
            if n < depth - 1:
                f = np.maximum(f, 0)
        expected = [frame @ (f + mean if residual else f) for frame in x]
        np.testing.assert_allclose(row[: len(x)], expected)
        assert (row[len(x) :] == 0).all()


def test_an_anchored_drop_has_the_level_of_its_percentile():
    """The logits of real frames average to the percentile logit, and their differences are the learned ones."""
    torch.manual_seed(0)
    Z, X = batch()
    drop = dt.LearnedDrop(3, residual=False, scale=0.5, anchor=40).double()
    plain = dt.LearnedDrop(3, residual=False).double()
    plain.load_state_dict(drop.state_dict())
    own = plain(Z, X, **LENGTHS).detach().numpy()
    p = pairs(Z, X, LENGTHS["z_lengths"], LENGTHS["x_lengths"])
    S = Z @ X.mT
    found = drop.logit(p)(S).detach().numpy()
    for b, (z, x) in enumerate(items(Z, X)):
        level = LogitPercentile(40).logits(z @ x.T)
        learned = 0.5 * own[b, : len(x)]
        np.testing.assert_allclose(found[b, : len(x)], level + learned - learned.mean())
    loss = dt.DropDTWLoss(drop, reduction="none")
    alone = [loss(torch.tensor(z)[None], torch.tensor(x)[None])[0].item() for z, x in items(Z, X)]
    np.testing.assert_allclose(loss(Z, X, **LENGTHS).detach().numpy(), alone)
    torch.nn.init.zeros_(drop.network[0].weight)
    torch.nn.init.zeros_(drop.network[0].bias)
    percentile = dt.DropDTWLoss("logit:40", reduction="none")(Z, X, **LENGTHS)
    np.testing.assert_allclose(loss(Z, X, **LENGTHS).detach().numpy(), percentile.detach().numpy())


def test_learned_drops_enter_the_loss():
    Z, X = batch()
    of_x, of_z, logit = learned("cost").double(), learned("cost", depth=2).double(), learned("logit").double()
    both = dt.DropDTWLoss(of_x, of_z, reduction="none")(Z, X, **LENGTHS)
    competing = dt.DropDTWLoss(logit, match="softmax:0.5", reduction="none")(Z, X, **LENGTHS)
    with torch.no_grad():
        d_x, l_x = (f(Z, X, **LENGTHS).numpy() for f in (of_x, logit))
        d_z = of_z(X, Z, z_lengths=X_LENGTHS, x_lengths=Z_LENGTHS).numpy()
    for b, (z, x) in enumerate(items(Z, X)):
        expected = dropdtw.cost(Softmax()(z, x), d_x[b, : len(x)], d_z[b, : len(z)], reducer="smooth")
        assert both[b].item() == pytest.approx(expected)
        C, d = Softmax(0.5).with_drop_logits(z, x, lambda S, row=l_x[b]: row[: S.shape[1]], 1e-5)
        assert competing[b].item() == pytest.approx(dropdtw.cost(C, d, reducer="smooth"))


def test_strong_similarities_do_not_overflow_through_the_padding():
    # A padded row's similarity of 0, over a total near exp(−1000), would be infinite, and its derivative NaN.
    Z, X = -torch.ones(1, 3, 1), torch.full((1, 2, 1), 1000.0, requires_grad=True)
    loss = dt.DropDTWLoss("logit:30")(Z, X, z_lengths=[1])
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(X.grad).all()


def test_half_precision_modules_take_any_input():
    Z, X = batch(dtype=torch.bfloat16)
    loss = dt.DropDTWLoss(learned("logit")).to(torch.bfloat16)
    value = loss(Z, X, **LENGTHS)
    value.backward()
    assert value.dtype == torch.float32
    assert all(p.grad.dtype == torch.bfloat16 and p.grad.isfinite().all() for p in loss.parameters())


# --- Training ----------------------------------------------------------------------------------------------------


def trained(loss, seed):
    """The values of a loss while a linear encoder of ragged noisy sequences is trained with it."""
    torch.manual_seed(seed)
    steps = torch.eye(4)[None].repeat(6, 1, 1)
    hidden = torch.randn(4, 8)
    X = [torch.cat([torch.eye(4).repeat_interleave(2, 0) @ hidden, torch.randn(n, 8)]) for n in range(1, 7)]
    encoder = torch.nn.Linear(8, 4)
    optimizer = torch.optim.Adam([*encoder.parameters(), *loss.parameters()], lr=0.05)
    values = []
    for _ in range(40):
        value = loss(steps, [encoder(x) for x in X])
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        values.append(value.item())
    return values


@pytest.mark.parametrize(
    "make",
    [
        lambda: dt.DropDTWLoss("logit:60", normalize="x"),
        lambda: dt.DropDTWLoss(dt.LearnedDrop(4), normalize="x"),
        lambda: dt.SmoothDTWLoss(normalize="x"),
        lambda: dt.D3TWLoss(normalize="x"),
        lambda: dt.ClusteringLoss(),
    ],
    ids=["drop-dtw", "learned", "smooth-dtw", "d3tw", "clustering"],
)
def test_training_lowers_the_loss_and_repeats_bit_for_bit(make):
    runs = []
    for _ in range(2):
        torch.manual_seed(1)
        runs.append(trained(make(), seed=0))
    assert runs[0] == runs[1]
    assert runs[0][-1] < 0.7 * runs[0][0]
