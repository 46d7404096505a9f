"""The CUDA kernels: on a GPU if available, otherwise in Triton's interpreter, at sizes it can handle."""

import os
import subprocess
import sys
from itertools import product

import numpy as np
import pytest

import dropdtw
from cases import OF_COSTS
from dropdtw.tables import recurrence

torch = pytest.importorskip("torch", reason="the kernels need PyTorch: pip install dropdtw[torch]")
pytest.importorskip("triton", reason="the CUDA kernels need Triton, which is for Linux")

from dropdtw.executors import triton as kernels  # noqa: E402
from dropdtw.torch import drop_dtw  # noqa: E402

DEVICE = "cpu" if kernels.INTERPRETED else "cuda"
TRUTH = {"cpu": None, "cuda": "wavefront"}[DEVICE]
GAMMA = 0.4

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞ and log 0, inside the interpreter
on_gpu = pytest.mark.skipif(DEVICE == "cpu", reason="needs a CUDA device")


@pytest.fixture
def narrow(monkeypatch):
    """Use strips of few rows, so that small problems have several; a GPU needs at least a warp."""
    rows = 32 if DEVICE == "cuda" else 4
    monkeypatch.setattr(kernels, "LARGEST", rows)
    monkeypatch.setattr(kernels, "LANES", rows)
    kernels.schedule.cache_clear()
    yield rows
    kernels.schedule.cache_clear()


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Fill fresh memory with NaN."""
    empty = torch.empty

    def nan(*size, **how):
        made = empty(*size, **how)
        return made.fill_(torch.nan) if made.is_floating_point() else made

    monkeypatch.setattr(torch, "empty", nan)


def random(seed, B, K, N, kind="positive", dtype=torch.float64):
    rng = np.random.default_rng(seed)
    made = []
    for shape in ((B, K, N), (B, N), (B, K)):
        values = rng.random(shape) if kind == "positive" else rng.normal(size=shape)
        if kind == "tied":
            values = rng.integers(-1, 2, shape).astype(float)
        if kind == "holes":
            values[rng.random(shape) < 0.2] = np.inf
        made.append(torch.tensor(values, dtype=dtype, device=DEVICE, requires_grad=True))
    return made


def everything(given, executor, charges=None, **how):
    charges = charges or {}
    value = drop_dtw(*given, executor=executor, strict=False, **charges, **how)
    if not value.requires_grad:
        return [value]
    given = [g for g in (*given, *charges.values()) if g is not None]
    weights = torch.arange(1, len(value) + 1, dtype=value.dtype, device=value.device)
    total = torch.where(torch.isfinite(value), value * weights, 0.0).sum()
    found = torch.autograd.grad(total, given, allow_unused=True)
    return [value.detach(), *(torch.zeros_like(g) if f is None else f for f, g in zip(found, given, strict=True))]


def check(given, atol=1e-12, charges=None, **how):
    ours, truth = (everything(given, executor, charges, **how) for executor in ("triton", TRUTH))
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)
    with torch.no_grad():  # without derivatives another kernel runs
        alone = drop_dtw(*given, executor="triton", strict=False, **(charges or {}), **how)
        torch.testing.assert_close(alone, ours[0], rtol=0, atol=0)


@pytest.mark.sweep
@pytest.mark.parametrize("method", OF_COSTS)
@pytest.mark.parametrize("reducer", ["hard", "soft", "smooth"])
def test_every_method_and_reducer(method, reducer):
    entry = dropdtw.METHODS[method]
    given = random(1, 2, 4, 8, "signed")[: (2 if entry.takes_ids else 3) if entry.takes_drops else 1]
    how = {"threshold": 0.3} if entry.takes_threshold else {}
    check(given, method=method, reducer=reducer, gamma=GAMMA, z_lengths=[4, 3], x_lengths=[8, 5], **how)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 31), (33, 7), (7, 65), (9, 10), (17, 18)])
def test_awkward_sizes(shape):
    """Some cases have more rows than a block has steps, so lanes end in different blocks."""
    check(random(2, 1, *shape), gamma=GAMMA)
    check(random(3, 1, *shape)[:2], gamma=GAMMA)


def test_tiles_of_derivatives_are_what_single_steps_store(monkeypatch):
    given = random(31, 2, 3, 20, dtype=torch.float32)
    how = {"gamma": GAMMA, "z_lengths": [3, 2], "x_lengths": [20, 7]}
    found = []
    for tiles in (True, False):
        monkeypatch.setattr(kernels, "TILES", tiles)
        found.append(everything(given, "triton", **how))
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("kind", ["tied", "holes", "signed"])
@pytest.mark.parametrize("reducer", ["hard", "smooth"])
def test_awkward_costs(kind, reducer):
    check(random(4, 3, 4, 6, kind), reducer=reducer, gamma=GAMMA)


@pytest.mark.parametrize("options", [{"one_to_many": False}, {"many_to_one": False, "contiguous": True}])
def test_options_choose_edges(options):
    check(random(5, 1, 4, 9), reducer="soft", gamma=GAMMA, **options)


def charged(names, B, dtype=torch.float64):
    """Charges for `drop_dtw`, one of each per item."""
    made = {name: torch.linspace(0.1, 0.5, B, dtype=dtype, device=DEVICE) + 0.1 * k for k, name in enumerate(names)}
    return {name: v.requires_grad_() for name, v in made.items()}


TAKEN = {"drop_dtw": "open_x open_z warp", "dtw": "warp", "otam": "warp", "greedy": "open_x open_z warp"}
TAKEN |= {"needleman_wunsch": "open_x open_z", "smith_waterman": "open_x open_z"}


def thorough(*case):
    """Skip a case that others cover: the interpreter is slow."""
    return pytest.param(*case, marks=pytest.mark.exhaustive)


@pytest.mark.parametrize(
    ("method", "shape"),
    [("drop_dtw", (3, 5)), ("drop_dtw", (5, 3))]
    + [thorough(method, shape) for method in TAKEN for shape in ((4, 8), (8, 4))],
)
def test_charges_and_their_derivatives(method, shape):
    """More rows than columns: the kernel runs the transposed table."""
    given = random(8, 2, *shape, "signed")[: 3 if dropdtw.METHODS[method].takes_drops else 1]
    z, x = shape
    how = {"z_lengths": [z, z - 1], "x_lengths": [x, x - 1], "reducer": "soft", "gamma": GAMMA, "method": method}
    check(given, charges=charged(TAKEN[method].split(), 2), **how)


@pytest.mark.parametrize(
    ("reducer", "shape", "side"),
    [("hard", (2, 5), "z"), ("smooth", (1, 9), "x"), ("smooth", (9, 1), "x")]
    + [thorough(*c) for c in product(("hard", "smooth"), ((1, 1), (1, 9), (9, 1), (17, 10)), "xz")],
)
def test_charges_of_one_side_at_awkward_sizes(reducer, shape, side):
    C, d_x, d_z = random(9, 1, *shape)
    given = (C, d_x) if side == "x" else (C, None, d_z)
    check(given, charges=charged([f"open_{side}", "warp"], 1), reducer=reducer, gamma=GAMMA)


@pytest.mark.parametrize(
    ("strips", "longer", "sides"),
    [(2, "x", 1), (2, "z", 1)] + [thorough(3, longer, sides) for longer, sides in product("xz", (1, 2))],
)
def test_strips_of_rows_pay_the_same_charges(narrow, strips, longer, sides):
    short = (strips - 1) * narrow + 2
    K, N = (short, short + 3) if longer == "x" else (short + 3, short)
    assert kernels.schedule(min(K, N)).strips == strips
    B = strips - 1
    lengths = {"z_lengths": [K, narrow + 1][:B], "x_lengths": [N, 3][:B]}
    charges = charged(["open_x", "warp", "open_z"][: sides + 1], B)
    check(random(6, B, K, N)[: sides + 1], charges=charges, gamma=GAMMA, atol=1e-10, **lengths)


@pytest.mark.parametrize("method", ["symmetric2", thorough("asymmetricP1")])
def test_strips_of_rows_weigh_the_same(narrow, method):
    """Its derivatives with respect to C are weight × flow."""
    check(random(6, 1, narrow + 1, narrow + 3)[:1], method=method, reducer="soft", gamma=GAMMA, atol=1e-10)


@pytest.mark.parametrize("method", ["drop_dtw", pytest.param("drop_dtw_paper", marks=pytest.mark.exhaustive)])
def test_strips_of_rows_are_one_problem(narrow, method):
    """Items with one, two and three strips, each a few blocks behind the strip above."""
    K, N = 2 * narrow + 2, 2 * narrow + 5
    assert kernels.schedule(min(K, N)).strips == 3
    lengths = {"z_lengths": [K, narrow, narrow + 1], "x_lengths": [N, N, 3]}
    check(random(6, 3, K, N), method=method, reducer="smooth", gamma=GAMMA, atol=1e-10, **lengths)


def test_strips_with_the_longer_sequence_first(narrow):
    check(random(7, 1, 3 * narrow, 2 * narrow + 1)[:2], reducer="soft", gamma=GAMMA, atol=1e-10)


@pytest.mark.parametrize("K", [1, 33, 128, 129, 1000, 2000])
def test_strips_cover_every_row_once(K):
    work = kernels.schedule(K)
    assert work.lanes * (work.strips - 1) < K <= work.lanes * work.strips
    assert work.lanes <= 32 * work.warps


@pytest.mark.parametrize("names", [[], ["open_x", "open_z", "warp"]])
def test_neighbors_and_padding_change_no_bit(names):
    """One of the items is transposed when it runs on its own."""
    sizes = [(3, 4), (4, 3)] if names else [(3, 7), (6, 2), (1, 5)]
    items = [random(10 + k, 1, *size, dtype=torch.float32) for k, size in enumerate(sizes)]
    charges = charged(names, len(sizes), torch.float32)
    alone = [
        everything(item, "triton", {n: v.detach()[b].requires_grad_() for n, v in charges.items()}, gamma=GAMMA)
        for b, item in enumerate(items)
    ]
    B, K, N = len(sizes), *(max(n) + 1 for n in zip(*sizes, strict=True))
    padded = [torch.full(s, torch.nan, device=DEVICE) for s in ((B, K, N), (B, N), (B, K))]
    for b, item in enumerate(items):
        for whole, part in zip(padded, item, strict=True):
            whole[(b, *map(slice, part.shape[1:]))] = part.detach()[0]
    padded = [part.requires_grad_() for part in padded]
    z, x = zip(*sizes, strict=True)
    value = drop_dtw(*padded, z_lengths=z, x_lengths=x, gamma=GAMMA, executor="triton", strict=False, **charges)
    parts = torch.autograd.grad(value.sum(), [*padded, *charges.values()])
    for b, (wanted, *others) in enumerate(alone):
        assert torch.equal(value[b], wanted[0])
        assert [whole[b] for whole in parts[3:]] == others[3:]
        for whole, part in zip(parts[:3], others[:3], strict=True):
            assert torch.equal(whole[(b, *map(slice, part.shape[1:]))], part[0])
            assert (whole[b] != 0).sum() == (part != 0).sum()


def test_what_cannot_be_checked_beforehand_comes_out_as_nan():
    """Lengths and costs on a device are not checked, so an invalid item must not look like a valid one."""
    given = random(20, 4, 3, 5)
    with torch.no_grad():
        given[0][1, 2, 2] = torch.nan
    z, x = torch.tensor([3, 3, 4, 3]), torch.tensor([5, 5, 5, 0])
    value = drop_dtw(*given, z_lengths=z, x_lengths=x, gamma=GAMMA, executor="triton", strict=False)
    assert torch.isnan(value).tolist() == [False, True, True, True]
    by_c = torch.autograd.grad(value[0], given[0])[0]
    assert torch.isfinite(by_c[0]).all()
    assert by_c[0].any()
    assert not by_c[2:].any()


def test_charges_that_cannot_be_checked_beforehand_come_out_as_nan():
    given = random(20, 4, 3, 5)[:2]
    opening = torch.tensor([0.5, -0.5, torch.nan, torch.inf], dtype=torch.float64, device=DEVICE, requires_grad=True)
    for reducer in ("hard", "smooth"):
        value = drop_dtw(*given, open_x=opening, reducer=reducer, executor="triton")
        assert torch.isnan(value).tolist() == [False, True, True, True]
    assert torch.isfinite(torch.autograd.grad(value[0], opening)[0][0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(dtype):
    half = random(21, 2, 4, 6, dtype=dtype)
    single = [t.detach().float().requires_grad_() for t in half]
    ours, truth = everything(half, "triton"), everything(single, "triton")
    assert torch.equal(ours[0], truth[0])
    for part, exact in zip(ours[1:], truth[1:], strict=True):
        assert part.dtype == dtype
        torch.testing.assert_close(part, exact.to(dtype))  # the interpreter rounds bfloat16 toward 0


def test_memory_layout_does_not_matter():
    C, d_x, d_z = random(22, 2, 4, 6)
    odd = [C.detach().mT.contiguous().mT, d_x.detach().T.contiguous().T, d_z.detach()]
    odd = [t.requires_grad_() for t in odd]
    for a, b in zip(everything(odd, "triton"), everything((C, d_x, d_z), "triton"), strict=True):
        assert torch.equal(a, b)


def test_a_tiny_gamma_is_the_hard_minimum():
    given = random(23, 1, 4, 6, dtype=torch.float32)
    for reducer in ("soft", "smooth"):
        soft = everything(given, "triton", reducer=reducer, gamma=1e-42)
        for a, b in zip(soft, everything(given, "triton", reducer="hard"), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.skipif(DEVICE == "cuda", reason="is about machines without a CUDA device")
def test_the_kernel_says_where_it_works():
    code = """
import torch
from dropdtw.torch import drop_dtw
try:
    drop_dtw(torch.ones(1, 2, 3), executor="triton")
except ValueError as error:
    print(error)
"""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout
    assert "executor 'triton' works on CUDA, but C is on cpu" in out


def test_every_states_sources_are_kept():
    """A layout matches its table: each edge once, by destination, and which states other cells read."""
    plain = (recurrence.one_sided(), recurrence.algorithm_2(), recurrence.smith_waterman())
    charging = (recurrence.one_sided(charged=True), recurrence.smith_waterman(charged=True))
    for table in (*plain, *charging, recurrence.asymmetric_p1()):
        found = kernels.layout(table)
        assert len(found.src) == len(set(table.edges) | set(table.border or ()))
        assert bool(found.kinds) == (table in charging)
        assert list(found.dst) == sorted(found.dst)
        for e in table.edges:
            s = table.states.index(e.src)
            assert found.keep[s] or e.move == "same"
            assert found.up[s] or e.move in ("left", "same")
            assert found.diag[s] or e.move != "diag"


COMPILE = """
import sys
from dataclasses import replace
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dropdtw.tables import recurrence
from dropdtw.executors.triton import BLOCK, REDUCER_NUMBER, layout
from dropdtw.executors.triton.passes import backward_pass, forward_pass, sum_rows

constants = {"REDUCER": REDUCER_NUMBER["smooth"], "GRADIENT": True, "WIDE": False, "UNIT": True, "U": BLOCK}
constants |= {"TILES": True, "BY": 1, "STRIDE": 1}
unpadded = {"z_len": None, "x_len": None}
free = {"charges": None, "grad_rows": None}
cases = (
    (layout(recurrence.two_sided()), 32, False, free),
    (layout(recurrence.one_sided()), 64, True, unpadded | free | {"grad": None}),
    (layout(recurrence.dtw(charged=True), turned=True), 32, True, {}),
    (replace(layout(recurrence.dtw(many_to_one=False)), scores=True), 32, True, free | {"REDUCER": 0}),
    (layout(recurrence.one_sided(charged=True)), 32, False, unpadded),
)
for table, lanes, strips, none in cases[slice(*map(int, sys.argv[1:]))]:
    for kernel in (forward_pass, backward_pass):
        known = constants | {"TABLE": table, "R": lanes, "STRIPS": strips} | none
        numbers = set(kernel.arg_names) & {"K", "N", "slots"}
        numbers |= {a for a in kernel.arg_names if len(a) == 3 and a[1] == "_" and a != "C"}
        kinds = {
            a: "constexpr" if a in known else "i64" if a.endswith("_bits") else "i32" if a in numbers
            else "*i64" if a in ("z_len", "x_len") else "*i32" if a == "queue" else "*fp32"
            for a in kernel.arg_names
        }
        source = ASTSource(kernel, kinds, {a: known[a] for a in kernel.arg_names if a in known})
        built = triton.compile(source, GPUTarget("cuda", 90, 32), options={"num_warps": lanes // 32})
        assert len(built.asm["cubin"]) > 1000
        print(kernel.__name__)
kinds = {"grad_rows": "*fp32", "grad_charges": "*fp32", "K": "i32"}
known = {"TABLE": layout(recurrence.two_sided(charged=True)), "WIDE": False, "R": 128}
source = ASTSource(sum_rows, kinds | {a: "constexpr" for a in known}, known)
assert len(triton.compile(source, GPUTarget("cuda", 90, 32), options={"num_warps": 4}).asm["cubin"]) > 1000
"""


@pytest.mark.parametrize("some", [(0, 4), pytest.param((4, 5), marks=pytest.mark.exhaustive)])
def test_kernels_compile_for_a_gpu_that_is_not_there(some, tmp_path):
    """The interpreter accepts more than the compiler does; this test needs no device."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    call = [sys.executable, "-c", COMPILE, *map(str, some)]
    done = subprocess.run(call, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("pass") == 2 * (some[1] - some[0])


COMPILE_COSTS = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dropdtw.executors.triton import cluster, emissions, rows, select, softmax, squares


EMITTED = "B T S V blank by_item by_frame by_text to_item to_frame by_grad by_row by_column".split()


def build(kernel, warps, **known):
    kinds = {a: "constexpr" if a in known else "*fp32" for a in kernel.arg_names}
    for a in set(kernel.arg_names) - set(known):
        if a.endswith("_bits"):
            kinds[a] = "i64"
        elif a in ("z_len", "x_len", "a_len", "y_len", "ids", "begun", "tokens", "clamped", "paths"):
            kinds[a] = "*i64"
        elif a in ("first", "after", "counts"):
            kinds[a] = "*i32"
        elif a == "found" and "mask" in kernel.arg_names:
            kinds[a] = "*i64"
        elif a in EMITTED and {"blank", "values", "mask"} & set(kernel.arg_names):
            kinds[a] = "i32"
        elif a in ("K", "N", "M", "d", "m", "rows", "tiles", "z_tiles") or (len(a) == 3 and a[1] == "_"):
            kinds[a] = "i32"
    built = triton.compile(ASTSource(kernel, kinds, known), GPUTarget("cuda", 90, 32), options={"num_warps": warps})
    assert len(built.asm["cubin"]) > 1000
    print(kernel.__name__)


tile = {"WIDE": False, "R": 16, "W": 64}
build(rows.equal_rows, 1, ids=None, BY_ID=False, R=16, D=32)
build(rows.unit_rows, 1, WIDE=False, D=512)
build(rows.unit_rows_back, 1, WIDE=False, D=512)
build(softmax.softmax_forward, 4, own=None, level=None, drop=None, total=None, DROPS=False, **tile)
build(softmax.softmax_forward, 4, DROPS=True, **tile)
plain = {a: None for a in ("S", "total", "by_drop", "by_own", "own", "level")}
build(softmax.softmax_backward, 4, DROPS=False, **plain, **tile)
build(softmax.softmax_backward, 4, C=None, DROPS=True, **tile)
build(select.select, 4, first=None, LOGIT=False, WIDE=False, T=2048)
build(select.count_digits, 4, z_len=None, x_len=None, LOGIT=True, WIDE=False, T=2048, BINS=256)
build(squares.squares_forward, 4, LONG=False, D=8, **tile)
build(squares.squares_forward, 4, LONG=True, D=16, **tile)
build(squares.combine_products, 4, WIDE=False, D=64, R=16, W=32)
build(rows.real_rows, 1, CENTER=True, D=512)
build(cluster.pool, 4, CONTRASTIVE=True, **tile)
size = {"LOGITS": True, "WIDE": False, "ALIGNED": True, "R": 8, "Q": 32, "W": 512}
build(emissions.emissions_forward, 4, **size)
build(emissions.emissions_forward, 4, z_len=None, x_len=None, clamped=None, **size | {"LOGITS": False})
build(emissions.emissions_backward, 4, **size)
build(emissions.emissions_backward, 4, z_len=None, x_len=None, weights=None, grad=None, **size | {"LOGITS": False})
build(emissions.reduce_values, 4, ZERO=True, MEAN=True, WHOLE=True, WIDE=False, Q=128)
build(emissions.reduce_values, 4, z_len=None, x_len=None, ZERO=False, MEAN=False, WHOLE=False, WIDE=False, Q=128)
build(emissions.count_of_mask, 4, Q=512)
build(emissions.paths_of, 4, WIDE=False, R=128, Q=32)
build(cluster.spread, 4, x_len=None, contrast=None, CONTRASTIVE=False, **tile)
"""


def test_cost_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", COMPILE_COSTS], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 23


@on_gpu
def test_a_stream_of_ones_own():
    given = random(30, 4, 8, 40)
    wanted = everything(given, "triton")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        found = everything(given, "triton")
    stream.synchronize()
    for a, b in zip(found, wanted, strict=True):
        assert torch.equal(a, b)


@on_gpu
def test_large_problems_and_their_memory():
    C = torch.rand(2, 1500, 1700, device="cuda", requires_grad=True)
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    drop_dtw(C, 0.3, 0.3).sum().backward()
    torch.cuda.synchronize()
    assert torch.cuda.max_memory_allocated() - before - C.nbytes < 2 * C.nbytes
    twice = drop_dtw(C, 0.3, 0.3).sum()
    assert torch.equal(twice, drop_dtw(C, 0.3, 0.3).sum())


@on_gpu
@pytest.mark.parametrize("drops", [{"drop_x": 0.3}, {"drop_z": 0.3}])
def test_a_side_that_may_not_be_dropped_has_no_price_that_a_method_could_read(drops):
    C = torch.rand(3, 5, 9, dtype=torch.float64)
    for _ in range(5):  # freed memory of old drop costs, which an uninitialized buffer may reuse
        torch.full((3, 9), -1e9, dtype=torch.float64, device=DEVICE)
        found = drop_dtw(C.to(DEVICE), method="greedy", reducer="soft", **drops)
        torch.testing.assert_close(found.cpu(), drop_dtw(C, method="greedy", reducer="soft", **drops))
