"""`drop_dtw` on the CPU: against the oracle's kin (the NumPy side), against autograd, and as PyTorch code uses it."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import cases
import dropdtw
import dropdtw.executors

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import drop_dtw, ops  # noqa: E402

REDUCERS = ["hard", "soft", "smooth"]
EXECUTORS = [*dropdtw.executors.EXECUTORS, "wavefront"]
GAMMA = 0.4


def tensors(case):
    """The costs of a case as a batch of one, with derivatives wanted."""
    parts = (case.C, case.drop_x, case.drop_z)
    return [None if p is None else torch.tensor(p[None], requires_grad=True) for p in parts]


def random(seed, B, K, N, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((B, K, N), (B, N), (B, K))
    return [torch.rand(s, generator=generator, dtype=dtype, requires_grad=True) for s in shapes]


def grads(value, given):
    """Derivatives of the finite values' sum, 0 where there is none."""
    total = torch.where(torch.isfinite(value), value, 0.0).sum()
    given = [g for g in given if g is not None]
    found = torch.autograd.grad(total, given, allow_unused=True) if total.requires_grad else [None] * len(given)
    return [torch.zeros_like(g) if f is None else f for f, g in zip(found, given, strict=True)]


def everything(given, **how):
    value = drop_dtw(*given, **how)
    return [value.detach(), *grads(value, given)]


def assert_same(one, other, **close):
    for a, b in zip(one, other, strict=True):
        torch.testing.assert_close(a, b, **{"rtol": 0, "atol": 0, **close})


@pytest.mark.parametrize("variant", cases.VARIANTS[::5], ids=cases.name)
@pytest.mark.parametrize("kind", REDUCERS)
def test_values_are_the_librarys_and_executors_agree(variant, kind):
    for case in cases.cases(variant)[::5]:
        given = tensors(case)
        options = {k: v for k, v in case.options.items() if k != "method"}
        how = {"method": case.options["method"], "reducer": kind, "gamma": GAMMA, **options}
        truth = dropdtw.cost(**case.library(reducer=kind, gamma=GAMMA))
        found = [everything(given, **how, executor=e) for e in EXECUTORS]
        for value, *_ in found:
            assert value.item() == pytest.approx(truth, abs=1e-12)
        for name, other in zip(EXECUTORS[1:], found[1:], strict=True):
            if (name, kind) != ("wavefront", "hard"):  # of equally good alignments autograd may take another
                assert_same(found[0], other, atol=1e-10)


@pytest.mark.parametrize("method", [m for m in dropdtw.METHODS if m != "lcss"])
@pytest.mark.parametrize("kind", REDUCERS)
def test_gradcheck(method, kind):
    C, d_x, d_z = random(1, 2, 3, 4)
    takes = dropdtw.METHODS[method].takes_drops
    given = (C, d_x, d_z) if takes else (C,)
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
    p = dropdtw.posterior(*(t[0].detach().numpy() for t in (C, d_x, d_z)), gamma=GAMMA)
    for ours, theirs in ((by_c, p.match), (by_x, p.drop_x), (by_z, p.drop_z)):
        np.testing.assert_allclose(ours[0].numpy(), theirs, atol=1e-12)


@pytest.mark.parametrize("kind", REDUCERS)
@pytest.mark.parametrize("executor", [None, "reference", "wavefront"])
def test_padding_order_and_neighbours_change_nothing(kind, executor):
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


@pytest.mark.parametrize("method", dropdtw.METHODS)
@pytest.mark.parametrize("content", [0.0, -9.0, torch.nan])
def test_no_method_looks_at_the_padding(method, content):
    entry = dropdtw.METHODS[method]
    how = {"method": method, "reducer": "hard", "threshold": "percentile:40" if entry.takes_threshold else None}
    sizes = [(3, 7), (2, 3), (5, 6)]
    items = [torch.rand(size, generator=torch.Generator().manual_seed(k)) + 0.1 for k, size in enumerate(sizes)]
    for drop in (0.2, 0.4, 0.8) if entry.takes_drops else (None,):
        C = torch.full((3, 6, 9), content)
        for whole, item in zip(C, items, strict=True):
            whole[: item.shape[0], : item.shape[1]] = item
        z_lengths, x_lengths = zip(*sizes, strict=True)
        found = drop_dtw(C, drop, drop, z_lengths=z_lengths, x_lengths=x_lengths, **how)
        wanted = [dropdtw.cost(item.numpy(), drop, drop, method=method, threshold=how["threshold"]) for item in items]
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


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
    with pytest.raises(RuntimeError, match=r"differentiated once.*executor='wavefront'"):
        torch.autograd.grad(first, given[0])
    assert torch.autograd.gradgradcheck(
        lambda *g: drop_dtw(*g, reducer="soft", gamma=GAMMA, executor="wavefront"), tuple(given)
    )


@pytest.mark.parametrize("ragged", [False, True])
def test_the_operator_is_registered_as_compilers_want_it(ragged):
    C, d_x, d_z = random(15, 2, 3, 4)
    lengths = [torch.tensor(n) if ragged else torch.empty(0, dtype=torch.int64) for n in ([3, 2], [4, 4])]
    key = ops.register(dropdtw.recurrence.two_sided())
    torch.library.opcheck(
        ops.forward,
        (C, d_x, d_z, *lengths, key, "smooth", 0.5, "", True),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration", "test_aot_dispatch_static"),
    )
    value, saved = ops.forward(C, d_x, d_z, *lengths, key, "smooth", 0.5, "", True)
    torch.library.opcheck(
        ops.backward,
        (*(t.detach() for t in (torch.ones_like(value), C, d_x, d_z)), *lengths, saved, key, "smooth", 0.5, ""),
        test_utils=("test_schema", "test_faketensor"),
    )
    first = torch.autograd.grad(value.sum(), C, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="differentiated once"):
        torch.autograd.grad(first.sum(), C)


@pytest.mark.filterwarnings("ignore")  # compilers have much to say
def test_compiled_code_gives_the_same():
    C, d_x, d_z = random(16, 2, 3, 4)

    def loss(C, d_x, d_z):
        value = drop_dtw(C * 2, d_x, d_z, z_lengths=[3, 2], x_lengths=[4, 4], reducer="soft", gamma=GAMMA)
        return (value / 3).mean()

    plain = loss(C, d_x, d_z)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(C, d_x, d_z)
    torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-14)
    assert_same(grads(compiled, (C, d_x, d_z)), grads(plain, (C, d_x, d_z)), atol=1e-14)


def test_autocast_leaves_the_loss_in_single_precision():
    Z, X = (torch.rand(2, n, 8, requires_grad=True) for n in (3, 5))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        C = Z @ X.mT
        value = drop_dtw(C, 0.3)
    assert C.dtype == torch.bfloat16
    assert value.dtype == torch.float32
    value.sum().backward()
    assert Z.grad.dtype == torch.float32
    assert torch.isfinite(Z.grad).all()


def step(seed):
    torch.manual_seed(seed)
    net = torch.nn.Linear(6, 4)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    for _ in range(3):
        Z, X = net(torch.randn(4, 3, 6)), net(torch.randn(4, 9, 6))
        optimizer.zero_grad()
        drop_dtw(torch.cdist(Z, X), 0.5, gamma=0.1).mean().backward()
        optimizer.step()
    return [p.detach().clone() for p in net.parameters()]


def test_training_reproduces_bit_for_bit():
    assert_same(step(0), step(0))
    assert not torch.equal(step(0)[0], step(1)[0])


def test_several_processes_train_as_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import os, sys, torch, torch.distributed as dist
            from dropdtw.torch import drop_dtw
            rank, size, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
            torch.set_num_threads(1)
            dist.init_process_group("gloo", init_method=f"file://{where}", rank=rank, world_size=size)
            torch.manual_seed(0)
            net = torch.nn.Linear(6, 4).double()
            model = torch.nn.parallel.DistributedDataParallel(net) if size > 1 else net
            data = torch.randn(3, 4, 12, 6).double()
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for batch in data:
                codes = model(batch[rank::size])
                optimizer.zero_grad()
                drop_dtw(torch.cdist(codes[:, :3], codes[:, 3:]), 0.5, gamma=0.1).mean().backward()
                optimizer.step()
            if rank == 0:
                print(net.weight.sum().item(), net.bias.sum().item(), flush=True)
            dist.barrier()
            os._exit(0)  # gloo's threads can abort an interpreter that takes its time to end, with any loss or none
            """
        )
    )

    def run(size):
        begun = [
            subprocess.Popen(
                [sys.executable, str(script), str(rank), str(size), str(tmp_path / f"meet{size}")],
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in range(size)
        ]
        out = [p.communicate(timeout=120)[0] for p in begun]
        assert all(p.returncode == 0 for p in begun)
        return [float(n) for n in out[0].split()]

    assert run(2) == pytest.approx(run(1), abs=1e-12)


def test_importing_the_library_does_not_import_torch():
    code = "import sys, dropdtw; assert 'torch' not in sys.modules and 'triton' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


ONE = torch.ones(1, 2, 3)
WRONG = [
    (lambda: drop_dtw(torch.ones(2, 3)), r"C has shape \(2, 3\); give a batch.*C\[None\]"),
    (lambda: drop_dtw(torch.ones(0, 2, 3)), r"C has shape \(0, 2, 3\)"),
    (lambda: drop_dtw(torch.ones(1, 2, 3, dtype=torch.int64)), "C is of dtype torch.int64.*C.float()"),
    (lambda: drop_dtw([]), "C is a list, but not of matrices"),
    (lambda: drop_dtw([torch.ones(3)]), "C is a list, but not of matrices"),
    (lambda: drop_dtw([torch.ones(2, 3)], x_lengths=[3]), "lengths belong to a padded batch"),
    (lambda: drop_dtw(ONE, x_lengths=[1, 2]), r"x_lengths has shape \(2,\).*give 1 whole numbers"),
    (lambda: drop_dtw(ONE, z_lengths=[1.5]), "z_lengths has shape.*float32; give 1 whole"),
    (lambda: drop_dtw(ONE, z_lengths=[0]), r"z_lengths is \[0\], but the batch has room for 1 to 2"),
    (lambda: drop_dtw(ONE, x_lengths=[4]), r"x_lengths is \[4\], but the batch has room for 1 to 3"),
    (lambda: drop_dtw(ONE, torch.ones(2)), r"drop_x has shape \(2,\).*broadcasts to \(1, 3\)"),
    (lambda: drop_dtw(ONE, None, torch.ones(2, 2)), r"drop_z has shape \(2, 2\).*broadcasts to \(1, 2\)"),
    (lambda: drop_dtw(ONE, True), r"drop_x is True; give None, a number"),
    (lambda: drop_dtw(ONE, [torch.ones(3)] * 2), "drop_x is .*a list of 1 vectors"),
    (lambda: drop_dtw(ONE, "logit:30"), "drop_x is 'logit:30', which is part of the softmax.*softmax_with_drop"),
    (lambda: drop_dtw(ONE, "half"), "drop_x is 'half'; give None"),
    (lambda: drop_dtw(ONE, 0.1, method="dtw"), "method 'dtw' takes no drop costs"),
    (lambda: drop_dtw(ONE, method="lcss"), "method 'lcss' needs threshold="),
    (lambda: drop_dtw(ONE, threshold=0.1), "method 'drop_dtw' takes no threshold"),
    (lambda: drop_dtw(ONE, method="lcss", threshold=True), "threshold is True; give a number"),
    (lambda: drop_dtw(ONE, method="best"), "method is 'best'; choose one of"),
    (lambda: drop_dtw(ONE, reducer="mean"), "reducer is 'mean'; choose one of"),
    (lambda: drop_dtw(ONE, gamma=-1.0), "gamma is -1.0"),
    (lambda: drop_dtw(ONE, window=-1), "window is -1"),
    (lambda: drop_dtw(ONE, executor="gpu"), "executor is 'gpu'; choose one of.*'triton', 'wavefront'"),
    (lambda: drop_dtw(ONE.mT, many_to_one=False), "3 elements of Z cannot each have an x of their own among 2"),
    (lambda: drop_dtw(ONE * torch.nan), r"C\[0\] has NaN at \(0, 0\)"),
    (lambda: drop_dtw(ONE, -torch.inf), r"drop_x\[0\] has -inf at 0"),
    (lambda: drop_dtw(torch.ones(1, 2, 3, device="meta"), executor="cpp"), "works on the CPU, but C is on meta"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_device_without_kernels_is_served_slowly_and_says_so():
    with pytest.warns(RuntimeWarning, match="no kernels for tensors on meta.*PyTorch operations"):
        assert drop_dtw(torch.ones(2, 2, 3, device="meta"), 0.3).shape == (2,)


def test_a_table_of_ones_own_works_and_is_differentiable():
    lockstep = dropdtw.Recurrence(
        states=("match",),
        start="match",
        final=("match",),
        edges=dropdtw.edges("match", to="match", moves="diag", cost="match"),
    )
    C, _, _ = random(17, 2, 4, 4)
    value, by_c = everything((C,), method=lockstep)
    torch.testing.assert_close(value, C.detach().diagonal(dim1=1, dim2=2).sum(1))
    assert torch.equal(by_c, torch.eye(4, dtype=torch.float64).expand(2, 4, 4))
