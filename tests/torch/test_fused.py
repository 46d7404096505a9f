"""The losses as one operator, in Triton's interpreter or on a GPU, against the general path."""

from itertools import product

import pytest

from fused_cases import DEVICE, LOGITS, LOSSES, QUIET, RAGGED, check, everything, sequences, thorough

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw import orders  # noqa: E402
from dropdtw.torch import DropDTWLoss, LearnedDrop, SoftDTWDivergence, SoftDTWLoss, costs, fused  # noqa: E402
from dropdtw.torch.batch import pairs  # noqa: E402

pytestmark = QUIET
EVERY = [(name, match) for name, match in product(LOSSES, ("softmax", "cosine", "sqeuclidean"))]
EVERY += [(name, "softmax") for name in LOGITS]
USUAL = [("percentile", "softmax"), ("both sides", "cosine"), ("only z", "softmax"), ("openings", "sqeuclidean")]
USUAL += [("learned cost", "cosine"), ("free ends", "sqeuclidean"), *((name, "softmax") for name in LOGITS)]


@pytest.mark.parametrize(("name", "match"), thorough(EVERY, USUAL))
def test_every_loss_is_the_general_one(quick, switch, name, match):
    number = EVERY.index((name, match))
    options = {"match": match, "normalize": (None, "x", "z", "both")[number % 4]}
    options |= {"match": "softmax:2"} if match == "softmax" else {}
    options |= {"reducer": ("smooth", "soft", "hard")[number % 3], "gamma": 0.5}
    ragged = number % 2 == 0
    check(switch, (LOSSES | LOGITS)[name](**options), *sequences(seed=number), **(RAGGED if ragged else {}))


SHAPES = [(1, 1, 1, 1), (1, 1, 9, 3), (1, 9, 1, 2), (1, 17, 3, 5), (1, 3, 66, 17)]
SIZES = list(product(SHAPES, ("softmax", "cosine", "sqeuclidean")))


@pytest.mark.parametrize(("shape", "match"), thorough(SIZES, [*SIZES[::4], SIZES[9]]))
def test_awkward_sizes(quick, switch, shape, match):
    check(switch, DropDTWLoss("percentile:40", match=match), *sequences(*shape))
    if match == "softmax" and shape[1] < 10:
        check(switch, DropDTWLoss("logit:40"), *sequences(*shape))


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("name", ["percentile", "logit"])
def test_rows_of_one_kind_count_once(quick, switch, name, named):
    Z, X = sequences(2, 18, 5)
    with torch.no_grad():
        Z[0, [3, 7, 17]] = Z[0, 1].clone()
        Z[1, 9] = -Z[1, 9] * 0  # −0 is 0
        Z[1, 16] = 0.0
    ids = torch.arange(36, device=DEVICE).reshape(2, 18) % 7 if named else None
    ours = check(switch, (LOSSES | LOGITS)[name](), Z, X, ids=ids)
    if not named:
        assert not ours[1][0, [3, 7, 17]].any()
        assert ours[1][0, 1].any()


def test_zero_rows_ties_and_infinity(quick, switch):
    Z, X = sequences(repeats=False)
    with torch.no_grad():
        Z[0, 0] = 0
        X[1, 2] = 0
        X[1, 3:] = X[1, :1]
    for match in ("cosine", "softmax", "sqeuclidean"):
        switch(False)
        loss = DropDTWLoss("percentile:50", match=match)
        truth = loss.per_item(Z, X)
        switch(True)
        torch.testing.assert_close(loss.per_item(Z, X), truth)
    none = DropDTWLoss(None, 0.5, many_to_one=False, one_to_many=False, match="cosine")  # five x for two z
    found = []
    for on in (False, True):
        switch(on)
        p = pairs(Z, X, x_lengths=[3, 5], z_lengths=[3, 2])
        p.strict = False
        value = none.values(p)
        assert torch.isinf(value[1])
        found.append((value, *torch.autograd.grad(value[0], (Z, X))))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    "name", ["percentile", "logit", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (*LOSSES, *LOGITS))]
)
def test_neighbors_and_padding_change_no_bit(quick, switch, name):
    """Features have few digits, so their products are exact in any order of summation."""
    switch(True)
    loss = (LOSSES | LOGITS)[name](normalize="x").to(DEVICE)
    for module in loss.modules():
        if isinstance(module, LearnedDrop):
            for p in module.parameters():
                torch.nn.init.zeros_(p)
    Z, X = ((a.detach() * 4).round().float() / 4 for a in sequences(2, 4, 66))
    whole = everything(loss, Z.requires_grad_(), X.requires_grad_(), z_lengths=[3, 4], x_lengths=[66, 9])
    for b, (k, n) in enumerate([(3, 66), (4, 9)]):
        z, x = (a.detach()[b : b + 1, :m].requires_grad_() for a, m in ((Z, k), (X, n)))
        value = loss.per_item(z, x)
        by_z, by_x = torch.autograd.grad((b + 1) * value.sum(), (z, x))
        if "learned" not in name and "anchored" not in name:  # a mean over z is divided by its length
            assert torch.equal(whole[0][b], value[0])
            if name in ("number", "nothing dropped", "percentile"):
                torch.testing.assert_close(whole[1][b, :k], by_z[0], rtol=0, atol=1e-6)  # matrix products
        torch.testing.assert_close(whole[2][b, :n], by_x[0], rtol=1e-5, atol=1e-6)
        assert not whole[1][b, k:].any()
        assert not whole[2][b, n:].any()


@pytest.mark.parametrize(("name", "match"), thorough(EVERY, [*USUAL[:2], USUAL[3], ("logit", "softmax")]))
def test_what_stands_in_the_padding_counts_for_nothing(quick, switch, name, match):
    """Not even NaN and infinity matter, and ignoring them takes no extra pass over the sequences."""
    switch(True)
    loss = (LOSSES | LOGITS)[name](match=match, normalize="both").to(DEVICE, torch.float64)
    Z, X = sequences(d=20 if match == "sqeuclidean" and "learned" not in name else 4)  # those are made for 4
    truth = everything(loss, Z, X, **RAGGED)
    with torch.no_grad():
        for b in range(2):
            Z[b, RAGGED["z_lengths"][b] :] = torch.nan
            X[b, RAGGED["x_lengths"][b] :] = torch.inf
    for a, b in zip(everything(loss, Z, X, **RAGGED), truth, strict=True):
        assert torch.equal(a, b)


def test_half_precision_is_computed_in_single(quick, switch):
    for match in ("softmax", "cosine", "sqeuclidean"):
        Z, X = (a.detach().half().requires_grad_() for a in sequences())
        check(switch, DropDTWLoss("percentile:30", match=match), Z, X, atol=2e-3)


def test_what_a_user_supplies_takes_the_general_path(quick, switch):
    Z, X = sequences()
    own = [DropDTWLoss(torch.tensor(0.5)), DropDTWLoss(0.5, match=costs.cosine), DropDTWLoss(0.5, window=3)]

    class Own(DropDTWLoss):
        def costs(self, p):
            C, x, z = super().costs(p)
            return 2 * C, x, z

    for loss in (*own, Own(0.5)):
        check(switch, loss, Z, X, fuses=False)
    check(switch, SoftDTWDivergence(normalize="x"), Z, X)


def test_errors_are_those_of_the_general_path(quick, switch):
    Z, X = (a.float() for a in sequences(1, 4, 3))
    for loss in (DropDTWLoss(1e39), DropDTWLoss(0.5, many_to_one=False)):
        said = []
        for on in (False, True):
            switch(on)
            with pytest.raises(ValueError, match=r"1e\+39|x of their own") as error:
                loss(Z, X)
            said.append(str(error.value))
        assert said[0] == said[1]


def test_lengths_that_make_no_sense_come_out_as_nan(switch):
    switch(True)
    Z, X = sequences(3, 3, 5)
    p = fused.Pairs(Z, X, torch.tensor([3, 4, 3], device=DEVICE), torch.tensor([5, 5, 0], device=DEVICE), None)
    for loss in (
        DropDTWLoss("percentile:30"),
        DropDTWLoss("logit:30"),
        SoftDTWLoss(),
        DropDTWLoss(0.5, match="cosine"),
    ):
        value = loss.values(p)
        assert torch.isnan(value).tolist() == [False, True, True]
        by_z, by_x = torch.autograd.grad(value[0], (Z, X))
        assert torch.isfinite(by_z).all()
        assert by_x[0].any()
        assert not by_x[1:].any()


def test_it_can_be_differentiated_once(switch):
    switch(True)
    Z, X = sequences()
    (first,) = torch.autograd.grad(SoftDTWLoss()(Z, X), Z, create_graph=True)
    with pytest.raises(RuntimeError, match="differentiated only once"):
        torch.autograd.grad(first.sum(), Z)


@pytest.mark.parametrize(
    "name",
    [
        "percentile",
        pytest.param("openings", marks=pytest.mark.exhaustive),
        pytest.param("anchored logit", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_compiled_code_gives_the_same(switch, name):
    Z, X = sequences()
    loss = (LOSSES | LOGITS)[name](normalize="x").to(DEVICE, torch.float64)
    switch(True)
    z, x = (torch.tensor(RAGGED[n], device=DEVICE) for n in ("z_lengths", "x_lengths"))
    plain = everything(loss, Z, X, z_lengths=z, x_lengths=x)
    compiled = torch.compile(loss.per_item, fullgraph=True, backend="aot_eager")
    value = compiled(Z, X, z_lengths=z, x_lengths=x)
    by = torch.autograd.grad((value * torch.tensor([1.0, 2.0], device=DEVICE)).sum(), (Z, X))
    for a, b in zip((value, *by), plain, strict=False):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_compiled_code_that_aligns_sequences_with_themselves_gives_the_same(quick, switch, ragged):
    """One tensor given twice to a traced operator has wrong derivatives in PyTorch 2.11 and is refused in 2.13."""
    Z, X = sequences()
    loss = SoftDTWDivergence(gamma=5.0)
    switch(True)
    how = {n: torch.tensor(RAGGED[n], device=DEVICE) for n in RAGGED} if ragged else {}
    plain = everything(loss, Z, X, **how)
    torch.compiler.reset()  # other tests compiled the same method, and its number of versions is limited
    value = torch.compile(loss.per_item, fullgraph=True, backend="aot_eager")(Z, X, **how)
    by = torch.autograd.grad((value * torch.tensor([1.0, 2.0], device=DEVICE)).sum(), (Z, X))
    for a, b in zip((value, *by), plain, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "ragged"), [("percentile", True), ("percentile", False), ("anchored logit", True), ("only z", False)]
)
def test_the_operators_are_registered_as_compilers_want_them(switch, monkeypatch, name, ragged):
    """The fake implementations agree with the real ones."""
    switch(True)
    given = []
    monkeypatch.setattr(fused, "_value", lambda *args: given.append(args) or torch.zeros(1))
    Z, X = sequences(1, 2, 3)
    match = "cosine" if name == "only z" else "softmax"
    how = {"x_lengths": torch.tensor([2], device=DEVICE)} if ragged else {}
    (LOSSES | LOGITS)[name](match=match).to(DEVICE, torch.float64).per_item(Z, X, **how)
    ((inputs, _, plan, _),) = given
    arguments = (*(None if a is None else a.detach() for a in inputs), plan)
    for wanted in {2, sum(1 << n for n, a in enumerate(inputs[:5]) if a is not None)}:
        value, made = fused.forward(*arguments, wanted)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            fake, said = fused.forward(*arguments, wanted)
        ours, theirs = ([(t.shape, t.dtype, t.stride()) for t in found] for found in ((value, *made), (fake, *said)))
        assert ours == theirs


def test_a_loss_with_an_order_takes_the_general_path(switch):
    """The fused operator aligns lists only."""
    Z, X = sequences(K=3)
    loss = DropDTWLoss(0.5, match="sqeuclidean", reducer="soft")
    ran = switch(False)
    truth = loss(Z, X, order=orders.any_order(0, 1, 2))
    ran = switch(True)
    assert torch.equal(loss(Z, X, order=orders.any_order(0, 1, 2)), truth)
    assert not ran
    assert not torch.equal(loss(Z, X), truth)
    assert ran
