"""`drop_dtw` as PyTorch code uses it: compilers, autocast, several processes, custom tables, and errors."""

import subprocess
import sys

import pytest

import dropdtw
import dropdtw.executors
from dropdtw import orders

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import drop_dtw, functional, ops  # noqa: E402
from torch_cases import GAMMA, assert_same, everything, grads, random  # noqa: E402


@pytest.mark.parametrize(("ragged", "charged"), [(False, False), (True, True)])
def test_the_operator_is_registered_as_compilers_want_it(ragged, charged):
    C, d_x, d_z = random(15, 2, 3, 4)
    charges = torch.full((2, 3), 0.3, dtype=torch.float64, requires_grad=True) if charged else None
    lengths = [torch.tensor(n) if ragged else None for n in ([3, 2], [4, 4])]
    call = (ops.register(dropdtw.tables.recurrence.two_sided(charged=charged)), "smooth", 0.5, "", "")
    torch.library.opcheck(
        ops.forward,
        (C, d_x, d_z, charges, *lengths, *call, True),
        test_utils=("test_schema", "test_faketensor", "test_autograd_registration", "test_aot_dispatch_static"),
    )
    value, saved = ops.forward(C, d_x, d_z, charges, *lengths, *call, True)
    tensors = (torch.ones_like(value), C, d_x, d_z, charges)
    torch.library.opcheck(
        ops.backward,
        (*(None if t is None else t.detach() for t in tensors), *lengths, saved, *call),
        test_utils=("test_schema", "test_faketensor"),
    )
    first = torch.autograd.grad(value.sum(), C, create_graph=True)[0]
    with pytest.raises(RuntimeError, match="differentiated only once"):
        torch.autograd.grad(first.sum(), C)


@pytest.mark.filterwarnings("ignore")  # torch.compile emits many warnings
def test_compiled_code_gives_the_same():
    C, d_x, d_z = random(16, 2, 3, 4)

    def loss(C, d_x, d_z):
        value = drop_dtw(C * 2, d_x, d_z, z_lengths=[3, 2], x_lengths=[4, 4], reducer="soft", gamma=GAMMA)
        return (value / 3).mean()

    plain = loss(C, d_x, d_z)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(C, d_x, d_z)
    torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-14)
    assert_same(grads(compiled, (C, d_x, d_z)), grads(plain, (C, d_x, d_z)), atol=1e-14)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("each", [False, True])
def test_compiled_code_gives_the_same_with_orders(each):
    C, d_x, _ = random(17, 2, 3, 5)
    order = orders.any_order(0, [1, 2])

    def loss(C, d_x):
        said = [order, [2, 1, 0]] if each else order
        return drop_dtw(C * 2, d_x, reducer="soft", gamma=GAMMA, order=said).mean()

    plain = loss(C, d_x)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(C, d_x)
    torch.testing.assert_close(compiled, plain, rtol=0, atol=1e-14)
    assert_same(grads(compiled, (C, d_x)), grads(plain, (C, d_x)), atol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_a_compiler_can_follow_the_choice_of_an_executor():
    """On CUDA this checks for Triton, and that check cannot be traced."""

    def chosen(C):
        return C + (1 if ops.has_triton() else 2)

    C = torch.zeros(1)
    assert torch.equal(torch.compile(chosen, fullgraph=True, backend="eager")(C), chosen(C))


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


TRAINING = """
import torch
from dropdtw.torch import drop_dtw

def train(rank, size):
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
    return net.weight.sum().item(), net.bias.sum().item()
"""

IN_A_GROUP = """
import os, sys, torch.distributed as dist
rank, size, where = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=f"file://{where}", rank=rank, world_size=size)
found = train(rank, size)
if rank == 0:
    print(*found, flush=True)
dist.barrier()
os._exit(0)  # gloo's threads can abort an interpreter that takes its time to end, with any loss or none
"""


def test_several_processes_train_as_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(TRAINING + IN_A_GROUP)
    begun = [
        subprocess.Popen(
            [sys.executable, str(script), str(rank), "2", str(tmp_path / "meet")], stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    out = [p.communicate(timeout=120)[0] for p in begun]
    assert all(p.returncode == 0 for p in begun)
    here = {}
    exec(TRAINING, here)
    assert [float(n) for n in out[0].split()] == pytest.approx(here["train"](0, 1), abs=1e-12)


def test_importing_the_library_does_not_import_torch():
    code = "import sys, dropdtw; assert 'torch' not in sys.modules and 'triton' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


ONE = torch.ones(1, 2, 3)
WRONG = [
    (lambda: drop_dtw(torch.ones(2, 3)), r"C has shape \(2, 3\); give a batch.*C\[None\]"),
    (lambda: drop_dtw(torch.ones(0, 2, 3)), r"C has shape \(0, 2, 3\)"),
    (lambda: drop_dtw(torch.ones(1, 2, 3, dtype=torch.int64)), "C has dtype torch.int64.*C.float()"),
    (lambda: drop_dtw([]), "C is a list, but not of matrices"),
    (lambda: drop_dtw([torch.ones(3)]), "C is a list, but not of matrices"),
    (lambda: drop_dtw([torch.ones(2, 3)], x_lengths=[3]), "lengths belong to a padded batch"),
    (lambda: drop_dtw(ONE, x_lengths=[1, 2]), r"x_lengths has shape \(2,\).*give 1 whole numbers"),
    (lambda: drop_dtw(ONE, z_lengths=[1.5]), "z_lengths has shape.*float32; give 1 whole"),
    (lambda: drop_dtw(ONE, z_lengths=[0]), r"z_lengths is \[0\], but C has 2 rows; give lengths from 1 to 2"),
    (lambda: drop_dtw(ONE, x_lengths=[4]), r"x_lengths is \[4\], but C has 3 columns; give lengths from 1 to 3"),
    (lambda: drop_dtw(ONE, torch.ones(2)), r"drop_x has shape \(2,\).*broadcasts to \(1, 3\)"),
    (lambda: drop_dtw(ONE, None, torch.ones(2, 2)), r"drop_z has shape \(2, 2\).*broadcasts to \(1, 2\)"),
    (lambda: drop_dtw(ONE, True), r"drop_x is True; give None, a number"),
    (lambda: drop_dtw(ONE, [torch.ones(3)] * 2), "drop_x is .*a list of 1 vectors"),
    (lambda: drop_dtw(ONE, [torch.ones(2)]), r"drop_x\[0\] has 2 entries, but item 0 has 3 elements x_j; give one"),
    (lambda: drop_dtw(ONE, None, [torch.ones(3)]), r"drop_z\[0\] has 3 entries, but item 0 has 2 elements z_i; give"),
    (lambda: drop_dtw(ONE, 1e300), "drop_x is 1e\\+300, which float32 cannot hold; give the match costs as float64"),
    (lambda: drop_dtw(ONE, None, 10**400), "drop_z is 1000.*, which float32 cannot hold; give the match costs as"),
    (
        lambda: drop_dtw(ONE, torch.tensor([1.0, 1e300, 1.0], dtype=torch.float64)),
        "drop_x has values that float32 cannot hold; give the match costs as float64",
    ),
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
    (
        lambda: drop_dtw(ONE.mT, many_to_one=False),
        "Z has 3 elements and X has 2, so the z cannot each have an x of their own",
    ),
    (lambda: drop_dtw(ONE * torch.nan), r"C\[0\] has NaN at \(0, 0\)"),
    (lambda: drop_dtw(ONE, -torch.inf), r"drop_x\[0\] has -inf at 0"),
    (lambda: drop_dtw(torch.ones(1, 2, 3, device="meta"), executor="cpp"), "works on the CPU, but C is on meta"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_errors_say_what_to_do(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_a_device_without_kernels_is_served_slowly_and_says_so():
    with pytest.warns(RuntimeWarning, match="no kernels are available for tensors on meta.*slow PyTorch operations"):
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


def test_what_is_kept_does_not_grow_with_the_temperatures():
    C = torch.rand(1, 2, 3)
    drop_dtw(C, 0.5)
    tables = len(ops._TABLES)
    for k in range(1500):
        drop_dtw(C, 0.5, gamma=1 + k / 1000)
    kept = functional._cached_spec.cache_info()
    assert kept.maxsize is not None
    assert kept.currsize <= kept.maxsize <= 1024
    assert len(ops._TABLES) == tables
