"""The losses as one operator, in Triton's interpreter or on a GPU: the general path is the truth."""

from itertools import product

import pytest

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")
pytest.importorskip("triton", reason="the CUDA kernels need Triton, which is for Linux")

from dropdtw import orders  # noqa: E402
from dropdtw.executors import triton as kernels  # noqa: E402
from dropdtw.torch import (  # noqa: E402
    DropDTWLoss,
    LearnedDrop,
    OTAMLoss,
    SmoothDTWLoss,
    SoftDTWDivergence,
    SoftDTWLoss,
    costs,
    fused,
    ops,
    stages,
)

DEVICE = "cpu" if kernels.INTERPRETED else "cuda"
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞ and log 0, inside the interpreter


class Compiled:
    """The alignment by compiled CPU kernels: those for CUDA have tests of their own, and the interpreter is slow."""

    @staticmethod
    def forward(table, reducer, gamma, *given):
        *tensors, gradient, normalize = given
        found, saved = ops._solve(ops.Given(*tensors), ops.Call(ops.register(table), reducer, gamma), gradient)
        return found / Compiled.length(tensors, normalize), saved

    @staticmethod
    def backward(table, reducer, gamma, *given):
        *tensors, saved, grad, normalize = given
        call = ops.Call(ops.register(table), reducer, gamma)
        grad = grad / Compiled.length(tensors, normalize).to(tensors[0].dtype)
        return ops._pull(grad.expand(len(tensors[0])), ops.Given(*tensors), list(saved), call)

    @staticmethod
    def length(tensors, normalize):
        C, *_, lengths = tensors
        K, N = (torch.tensor([n]) for n in C.shape[1:]) if lengths is None else lengths
        return {None: torch.tensor([1]), "x": N, "z": K, "both": K + N}[normalize]


@pytest.fixture
def quick(monkeypatch):
    """Alignments by the CPU, where there is no GPU."""
    if kernels.INTERPRETED:
        found = stages.kernels()
        monkeypatch.setattr(found, "align", Compiled)


@pytest.fixture
def switch(monkeypatch):
    """Turns the fused path on or off."""
    ran = []
    forward = stages.forward

    def counted(*given):
        ran.append(1)
        return forward(*given)

    monkeypatch.setattr(stages, "forward", counted)

    def turn(on):
        ran.clear()
        monkeypatch.setattr(fused, "runs_on", lambda A: on)
        return ran

    return turn


def sequences(B=2, K=3, N=6, d=4, seed=0, dtype=torch.float64, repeats=True):
    generator = torch.Generator().manual_seed(seed)
    Z, X = (torch.randn(B, n, d, generator=generator, dtype=dtype) for n in (K, N))
    if repeats and K > 2:
        Z[0, 2] = Z[0, 0]
    return Z.to(DEVICE).requires_grad_(), X.to(DEVICE).requires_grad_()


def everything(loss, Z, X, **how):
    value = loss.per_item(Z, X, **how)
    weights = torch.arange(1, len(value) + 1, dtype=value.dtype, device=value.device)
    wanted = [Z, X, *loss.parameters()]
    found = torch.autograd.grad((value * weights).nan_to_num(0, 0, 0).sum(), wanted, allow_unused=True)
    return [value.detach(), *(torch.zeros_like(a) if f is None else f for f, a in zip(found, wanted, strict=True))]


def check(switch, loss, Z, X, atol=1e-10, fuses=True, **how):
    loss = loss.to(DEVICE, Z.dtype)
    ran = switch(False)
    truth = everything(loss, Z, X, **how)
    assert not ran
    ran = switch(True)
    ours = everything(loss, Z, X, **how)
    assert bool(ran) == fuses
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=atol, atol=atol)
    if fuses:
        with torch.no_grad():  # without derivatives another kernel runs
            assert torch.equal(loss.per_item(Z, X, **how), ours[0])
    return ours


RAGGED = {"z_lengths": [3, 2], "x_lengths": [5, 6]}


def learned(**how):
    torch.manual_seed(0)
    return LearnedDrop(4, **how)


LOSSES = {
    "percentile": lambda **o: DropDTWLoss("percentile:30", **o),
    "number": lambda **o: DropDTWLoss(0.7, **o),
    "both sides": lambda **o: DropDTWLoss(0.7, "percentile:80", **o),
    "only z": lambda **o: DropDTWLoss(None, 0.7, **o),
    "openings": lambda **o: DropDTWLoss("percentile:30", open_x=0.3, warp=torch.nn.Parameter(torch.tensor(0.2)), **o),
    "learned cost": lambda **o: DropDTWLoss(learned(output="cost"), learned(output="cost"), **o),
    "nothing dropped": lambda **o: SmoothDTWLoss(**o),
    "free ends": lambda **o: OTAMLoss(**o),
}
LOGITS = {
    "logit": lambda **o: DropDTWLoss("logit:30", **o),
    "learned logit": lambda **o: DropDTWLoss(learned(), **o),
    "anchored logit": lambda **o: DropDTWLoss(learned(anchor=30, scale=0.5), 1.0, **o),
}
EVERY = [(name, match) for name, match in product(LOSSES, ("softmax", "cosine", "sqeuclidean"))]
EVERY += [(name, "softmax") for name in LOGITS]
USUAL = [("percentile", "softmax"), ("both sides", "cosine"), ("only z", "softmax"), ("openings", "sqeuclidean")]
USUAL += [("learned cost", "cosine"), ("free ends", "sqeuclidean"), *((name, "softmax") for name in LOGITS)]


def thorough(cases, usual):
    """All cases; those that others stand for only in the long run, as the interpreter is slow."""
    return [case if case in usual else pytest.param(*case, marks=pytest.mark.exhaustive) for case in cases]


@pytest.mark.parametrize(("name", "match"), thorough(EVERY, USUAL))
def test_every_loss_is_the_general_one(quick, switch, name, match):
    number = EVERY.index((name, match))
    options = {"match": match, "normalize": (None, "x", "z", "both")[number % 4]}
    options |= {"gamma_match": 2.0} if match == "softmax" else {}
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
    check(switch, none, Z, X, x_lengths=[3, 5], z_lengths=[3, 2])
    assert torch.isinf(none.per_item(Z, X, x_lengths=[3, 5], z_lengths=[3, 2])[1])


@pytest.mark.parametrize(
    "name", ["percentile", "logit", *(pytest.param(n, marks=pytest.mark.exhaustive) for n in (*LOSSES, *LOGITS))]
)
def test_neighbours_and_padding_change_no_bit(quick, switch, name):
    """With features of few digits, whose products are exact in every order."""
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
    with pytest.raises(RuntimeError, match="differentiated once"):
        torch.autograd.grad(first.sum(), Z)


@pytest.mark.parametrize(
    "name",
    [
        "percentile",
        pytest.param("openings", marks=pytest.mark.exhaustive),
        pytest.param("anchored logit", marks=pytest.mark.exhaustive),
    ],
)
@pytest.mark.filterwarnings("ignore")  # compilers have much to say
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


@pytest.mark.parametrize("name", ["percentile", "anchored logit", "only z"])
def test_the_operators_are_registered_as_compilers_want_them(switch, monkeypatch, name):
    """What they are said to return is what they return."""
    switch(True)
    given = []
    monkeypatch.setattr(fused, "_value", lambda *args: given.append(args) or torch.zeros(1))
    Z, X = sequences(1, 2, 3)
    match = "cosine" if name == "only z" else "softmax"
    (LOSSES | LOGITS)[name](match=match).to(DEVICE, torch.float64).per_item(Z, X)
    ((inputs, _, plan),) = given
    arguments = (*(None if a is None else a.detach() for a in inputs), plan)
    for wanted in {2, sum(1 << n for n, a in enumerate(inputs[:5]) if a is not None)}:
        value, made = fused.forward(*arguments, wanted)
        with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
            fake, said = fused.forward(*arguments, wanted)
        ours, theirs = ([(t.shape, t.dtype, t.stride()) for t in found] for found in ((value, *made), (fake, *said)))
        assert ours == theirs


# --- The kernels, one by one --------------------------------------------------------------------------------------


KINDS = list(product(("signed", "tied", "holes", "equal", "nothing"), (torch.float32, torch.float64)))


@pytest.mark.parametrize(("kind", "dtype"), thorough(KINDS, KINDS[::4]))
def test_percentiles_are_exact(kind, dtype, monkeypatch):
    from dropdtw.executors.triton import select

    C = torch.randn(2, 5, 30, dtype=dtype, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    if kind == "tied":
        C = C.round()
    elif kind == "holes":
        C[C > 0.5] = torch.inf
        C[:, 1] = torch.nan
    elif kind == "equal":
        C[:] = -1.5
    elif kind == "nothing":
        C[0] = torch.inf
    z, x = (torch.tensor(n, device=DEVICE) for n in ([5, 4], [30, 23]))
    first = (torch.arange(5, device=DEVICE) // 2 * 2).to(torch.int32).expand(2, 5).contiguous()
    masked = C.masked_fill(~costs.is_first(first)[..., None], -torch.inf)
    for registers, p, lengths in (
        (1 << 14, 0, (z, x)),
        (1 << 14, 30, (None, None)),
        (128, 12.5, (z, x)),
        (128, 100, (z, x)),
    ):
        monkeypatch.setattr(select, "REGISTERS", registers)  # 128: tile by tile
        found = select.percentile(C, p, *lengths)[:, None]
        assert torch.equal(found, costs.percentile_drop(C, p, *lengths))
        found = select.percentile(C, p, *lengths, first, True)[:, None]
        assert torch.equal(found, costs.percentile_logit(masked, p, *lengths))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_squared_distances_by_differences_are_exact(dtype):
    from dropdtw.executors.triton import squares

    for d in (1, 8, 16, 40):
        Z, X = (a.detach().to(dtype) + 100 for a in sequences(1, 3, 5, d))
        X[0, 1] = Z[0, 2]
        found = squares.costs(Z, X, None, None)
        assert found.dtype == dtype
        assert found[0, 2, 1] == 0
        truth = ((Z.double()[:, :, None] - X.double()[:, None]) ** 2).sum(-1)
        torch.testing.assert_close(found.double(), truth, rtol=8 * torch.finfo(dtype).eps, atol=0)


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
