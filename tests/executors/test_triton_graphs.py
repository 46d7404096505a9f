"""The CUDA kernels for graphs of steps: on a GPU if available, otherwise in Triton's interpreter."""

import os
import subprocess
import sys
from itertools import product

import pytest

torch = pytest.importorskip("torch", reason="the kernels need PyTorch: pip install dropdtw[torch]")
pytest.importorskip("triton", reason="the CUDA kernels need Triton, which is for Linux")

from dropdtw import orders  # noqa: E402
from dropdtw.executors import triton as kernels  # noqa: E402
from dropdtw.executors.triton import arcs  # noqa: E402
from dropdtw.problem.spec import Spec  # noqa: E402
from dropdtw.torch import drop_dtw  # noqa: E402
from torch_cases import GAMMA, ORDERS, REDUCERS  # noqa: E402

DEVICE = "cpu" if kernels.INTERPRETED else "cuda"

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞ and log 0, inside the interpreter

EXCLUSIVE = {"many_to_one": False, "contiguous": True}
TABLES = {
    "one-sided, exclusive": ("x", EXCLUSIVE, ()),
    "one-sided": ("x", {}, ()),
    "two-sided": ("xz", {}, ()),
    "drop z": ("z", {}, ()),
    "DTW": ("", {}, ()),
    "subsequence": ("", {"method": "subsequence"}, ()),
    "charged": ("x", {}, ("open_x", "warp")),
}
HUBS = orders.repeat(orders.any_order(0, 1, [2, 3]), 0.2)
"""An order whose hub cannot be removed: its arcs join others."""


@pytest.fixture(autouse=True)
def poisoned(monkeypatch):
    """Fill fresh memory with NaN."""
    empty = torch.empty

    def nan(*size, **how):
        made = empty(*size, **how)
        return made.fill_(torch.nan) if made.is_floating_point() else made

    monkeypatch.setattr(torch, "empty", nan)


def problem(seed, B, sides, K=4, N=4, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    C, d_x, d_z = (torch.rand(s, generator=generator, dtype=dtype) for s in ((B, K, N), (B, N), (B, K)))
    return [C, d_x if "x" in sides else None, d_z if "z" in sides else None]


def everything(given, executor, charges=(), **how):
    """Value and derivatives, on the CPU."""
    device = DEVICE if executor == "triton" else "cpu"
    given = [None if part is None else part.detach().to(device).requires_grad_() for part in given]
    B, dtype = len(given[0]), given[0].dtype
    paid = {name: torch.linspace(0.1, 0.3, B, dtype=dtype, device=device).requires_grad_() for name in charges}
    value = drop_dtw(*given, executor=executor, strict=False, **how, **paid)
    wanted = [part for part in (*given, *paid.values()) if part is not None]
    weights = 2.0 ** torch.arange(
        B, dtype=value.dtype, device=device
    )  # powers of two are exact, so items can be compared
    total = torch.where(torch.isfinite(value), value * weights, 0.0).sum()
    parts = torch.autograd.grad(total, wanted, allow_unused=True)
    parts = [torch.zeros_like(w) if p is None else p for p, w in zip(parts, wanted, strict=True)]
    return [part.detach().cpu() for part in (value, *parts)]


def check(given, charges=(), atol=1e-12, **how):
    ours, truth = (everything(given, executor, charges, **how) for executor in ("triton", None))
    for a, b in zip(ours, truth, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=atol)


def thorough(*case):
    """Skip a case that others cover: the interpreter is slow."""
    return pytest.param(*case, marks=pytest.mark.exhaustive)


QUICK = [
    ("one-sided, exclusive", "partial", "soft"),
    ("one-sided", "diamond", "smooth"),
    ("two-sided", "partial", "hard"),
    ("subsequence", "alternatives", "soft"),
    ("charged", "jumps", "smooth"),
    ("drop z", "loop", "soft"),
    ("DTW", "hubs", "smooth"),
]
ALL = product(TABLES, [*(name for name in ORDERS if name != "permuted"), "hubs"], REDUCERS)


@pytest.mark.parametrize(("table", "name", "reducer"), QUICK + [thorough(*case) for case in ALL if case not in QUICK])
def test_kernels_agree_with_the_cpu(table, name, reducer):
    sides, options, charges = TABLES[table]
    if "z" in sides and name == "hubs":
        pytest.skip("what is repeated in any order cannot be dropped")
    order = HUBS if name == "hubs" else ORDERS[name]
    how = {"x_lengths": [4, 3], "reducer": reducer, "gamma": GAMMA, "order": order, **options}
    check(problem(1, 2, sides), charges, **how)


def test_a_batch_of_different_graphs_in_which_neighbors_and_padding_change_no_bit():
    """With graphs of other sizes, costs or levels in the batch, each item gives the same result as on its own."""
    each = [orders.any_order(0, 1), ORDERS["jumps"], orders.any_order(*range(4))]
    z, x = [2, 4, 4], [4, 2, 3]
    given = problem(2, 3, "x", dtype=torch.float32)
    for b in range(3):
        given[0][b, z[b] :], given[0][b, :, x[b] :], given[1][b, x[b] :] = torch.nan, torch.nan, torch.nan
    together = everything(given, "triton", order=each, z_lengths=z, x_lengths=x)
    for b in range(3):
        item = [given[0][b : b + 1, : z[b], : x[b]], given[1][b : b + 1, : x[b]], None]
        value, by_c, by_x = everything(item, "triton", order=each[b])
        assert torch.equal(together[0][b], value[0])
        assert torch.equal(together[1][b, : z[b], : x[b]], by_c[0] * 2**b)
        assert torch.equal(together[2][b, : x[b]], by_x[0] * 2**b)
        assert (together[1][b] != 0).sum() == (by_c != 0).sum()


def test_what_cannot_be_checked_beforehand_comes_out_as_nan():
    C, d_x, _ = problem(3, 4, "x", N=3)
    C[1, 2, 2] = torch.nan
    C, d_x = C.to(DEVICE).requires_grad_(), d_x.to(DEVICE)
    z, x = torch.tensor([4, 4, 4, 4], device=DEVICE), torch.tensor([3, 3, 4, 3], device=DEVICE)
    opening = torch.tensor([0.1, 0.1, 0.1, -0.1], dtype=C.dtype, device=DEVICE)
    how = {"order": ORDERS["diamond"], "z_lengths": z, "x_lengths": x, "open_x": opening}
    value = drop_dtw(C, d_x, executor="triton", **how)
    assert torch.isnan(value).tolist() == [False, True, True, True]
    by_c = torch.autograd.grad(value[0], C)[0]
    assert torch.isfinite(by_c[0]).all()
    assert by_c[0].any()
    assert not by_c[2].any()


def test_memory_layout_and_half_precision():
    C, d_x, _ = problem(4, 2, "x", N=3, dtype=torch.float16)
    odd = C.mT.contiguous().mT
    half = everything([odd, d_x, None], "triton", order=ORDERS["diamond"])
    single = everything([C.float(), d_x.float(), None], "triton", order=ORDERS["diamond"])
    assert torch.equal(half[0], single[0])
    for part, exact in zip(half[1:], single[1:], strict=True):
        torch.testing.assert_close(part, exact.half())


def test_an_item_without_any_alignment_is_infinite_and_has_no_derivative():
    given = problem(5, 2, "x", N=3)  # four steps, each of which needs its own x
    value, *parts = everything(given, "triton", order=ORDERS["partial"], x_lengths=[3, 3], **EXCLUSIVE)
    assert torch.isposinf(value).all()
    assert not any(part.any() for part in parts)


def test_a_graph_that_is_too_large_runs_in_plain_operations_and_says_so(monkeypatch):
    C = torch.rand(1, 4, 5, device=DEVICE)
    wanted = drop_dtw(C, 0.3, order=ORDERS["partial"], executor="wavefront")
    monkeypatch.setattr(arcs, "LANES", 8)
    with pytest.warns(RuntimeWarning, match=r"an order has \d+ nodes, but the CUDA kernels support up to 7.* slow"):
        found = drop_dtw(C, 0.3, order=ORDERS["partial"], executor="triton")
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("reducer", REDUCERS)
def test_graphs_without_hubs_have_the_same_values(reducer):
    """Direct arcs replace a hub if that changes nothing; otherwise the hub stays."""
    from dropdtw.executors import graphs as reference
    from dropdtw.problem.costs import Costs, Matrix
    from dropdtw.tables.reducers import reducer as find_reducer

    C, d_x, d_z = (part.numpy() for part in problem(6, 1, "xz", N=6))
    fold = find_reducer(reducer, GAMMA)
    gone = kept = 0
    for order in (*ORDERS.values(), HUBS):
        for how in (EXCLUSIVE, {}):
            table = Spec.of(0.0, order=order, **how).table
            graph = order.graph(table)
            direct = graph.without_hubs()
            costs = Costs(Matrix(C[0]), d_x[0], d_z[0])
            one, other = (reference.run(table, g, fold, costs, gradient=True) for g in (graph, direct))
            assert other.value == pytest.approx(one.value, abs=1e-12)
            assert other.match == pytest.approx(one.match, abs=1e-12)
            gone += graph.hub.sum() - direct.hub.sum()
            kept += direct.hub.sum()
    assert gone > 0
    assert kept > 0


COMPILE = """
import sys
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from dropdtw import orders
from dropdtw.executors.triton import REDUCER_NUMBER, layout
from dropdtw.executors.triton.arcs import shape_of
from dropdtw.executors.triton.walks import sum_labels, walk_backward, walk_forward
from dropdtw.tables import recurrence

partial = orders.any_order([0, 1], 2)
cases = [
    (recurrence.one_sided(many_to_one=False, contiguous=True), partial, "soft", ["which", "z_len", "x_len", "charges"]),
    (recurrence.one_sided(charged=True), orders.repeat(orders.any_order(0, 1), 0.5), "smooth", []),
    (recurrence.two_sided(), partial, "hard", ["charges"]),
]
pointers = {"nodes": "*i32", "arcs": "*i32", "which": "*i32", "members": "*i32", "z_len": "*i64", "x_len": "*i64"}


def build(kernel, known):
    numbers = {"K", "N", "V", "room", "most"}
    kinds = {
        a: "constexpr" if a in known else "i64" if a == "rate_bits" else pointers[a] if a in pointers
        else "i32" if a in numbers or (len(a) == 3 and a[1] == "_") else "*fp32"
        for a in kernel.arg_names
    }
    source = ASTSource(kernel, kinds, {a: known[a] for a in kernel.arg_names if a in known})
    built = triton.compile(source, GPUTarget("cuda", 90, 32), options={"num_warps": 1, "enable_fp_fusion": False})
    assert len(built.asm["cubin"]) > 1000
    print("built", kernel.__name__)


for table, order, reducer, none in cases[: int(sys.argv[1])]:
    shape, V, lanes = shape_of((order.graph(table),), table)
    known = {"TABLE": layout(table), "SHAPE": shape, "REDUCER": REDUCER_NUMBER[reducer], "GRADIENT": True}
    known |= {"WIDE": False, "L": lanes} | dict.fromkeys(none if shape.costs else [*none, "arc_costs"])
    for kernel in (walk_forward, walk_backward):
        build(kernel, known)
build(sum_labels, {"ROWS": 16, "T": 32, "L": 64, "PADDED": True})
"""


@pytest.mark.parametrize("cases", [2, thorough(3)])
def test_kernels_compile_for_a_gpu_that_is_not_there(tmp_path, cases):
    """The interpreter accepts more than the compiler does; this test needs no device."""
    env = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {"TRITON_CACHE_DIR": str(tmp_path)}
    run = [sys.executable, "-c", COMPILE, str(cases)]
    done = subprocess.run(run, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("built") == 2 * cases + 1


@pytest.mark.parametrize("sides", ["x", "xz"])
@pytest.mark.parametrize("reducer", ["hard", "soft"])
def test_steps_last_as_long_as_they_must(sides, reducer):
    order = orders.lasting([0, 1, 2], at_least=2, at_most=3)
    given = problem(5, 2, sides, K=3, N=8)
    how = {"order": order, "reducer": reducer, "gamma": GAMMA, **EXCLUSIVE}
    for mine, wanted in zip(everything(given, "triton", **how), everything(given, "cpp", **how), strict=True):
        torch.testing.assert_close(mine, wanted)
