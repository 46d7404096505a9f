"""The compiled executor on graphs against the reference: every option, reducer and precision."""

import itertools
import signal
import threading
import time

import numpy as np
import pytest

import dropdtw
from cases import paid
from dropdtw import METHODS, Recurrence, edges, orders
from dropdtw.executors import EXECUTORS, reference
from dropdtw.orders.graph import AGAIN, DROP, NEW, PASS, SAME, STEP, Arc, graph_of
from dropdtw.orders.order import as_order
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import hard_min, reducer, soft_min

cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
cpu_graphs = pytest.importorskip("dropdtw.executors.cpu_graphs")

EPSILON = {np.float32: 2.0**-23, np.float64: 2.0**-52}
precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])
folds = pytest.mark.parametrize(
    "fold", [reducer("soft", 0.3), reducer("smooth", 0.3), reducer("soft", 1e-40)], ids=["soft", "smooth", "tiny"]
)

OPTIONS = [
    {"drop_x": x, "drop_z": z, "one_to_many": left, "many_to_one": top, "contiguous": contiguous}
    for x, z, left, top, contiguous in itertools.product((None, 0.4), (None, 0.5), *[(False, True)] * 3)
]
ORDERS = [
    orders.any_order([0, 1], 2),
    orders.before(5, [(0, 1), (0, 2), (3, 4)]),
    [orders.any_order(0, 1), orders.any_order(2, [3, 4])],
    [0, orders.one_of(1, [2, 3]), 4],
    orders.repeat([0, 1, 2], 0.3),
    orders.jumps(4, [(3, 0, 0.2), (2, 1, 0.1), (1, 1, 0.3)]),
]
ASYMMETRIC = Recurrence(
    states=("a", "b", "c"),
    edges=edges("a b", to="a", moves="diag left top", cost="match", weight=1.7)
    + edges("a", to="b", moves="left", cost="drop_x", plus="open_x")
    + edges("b c", to="b", moves="left top", cost="free")
    + edges("a", to="b", moves="diag", cost="drop_z", weight=0.6)
    + edges("a b", to="c", moves="same", cost="free")
    + edges("c", to="c", moves="top", cost="drop_z", plus="open_z"),
    start=("a", "c"),
    final=("c", "a"),
    name="of all kinds",
)
TABLES = [
    ASYMMETRIC,
    recurrence.one_sided(charged=True),
    recurrence.one_sided(many_to_one=False, contiguous=True),
    recurrence.two_sided(charged=True),
    recurrence.two_sided(one_to_many=False),
    recurrence.dtw(),
    recurrence.symmetric2(),
]


def problems(order, dtype, ties=False, first=0, every=1):
    """The problem of an order under each set of options that fits it, with charges in every second problem."""
    rng = np.random.default_rng(1)
    said = as_order(order)
    for n, options in enumerate(OPTIONS[first::every]):
        more = {}
        if (n + ties) % 2:
            more |= {"open_x": 0.3} if options["drop_x"] else {}
            more |= {"warp": 0.1} if options["one_to_many"] or options["many_to_one"] else {}
            more |= {"open_z": 0.2} if options["drop_z"] and not said.holds_partial else {}
        spec = Spec.of(order=order, **options, **more)
        if spec.fits(said.K, 5):
            C = rng.integers(0, 3, (said.K, 5)) / 4 if ties else rng.normal(size=(said.K, 5))
            problem = Problem.of_costs(spec, C.astype(dtype))
            yield problem.table, problem.graph, problem.costs


def random_graph(rng, V=20):
    """Nodes with arcs of all uses and costs between them, some of them hubs; jumps lead back."""
    label = [-1, *rng.integers(0, 5, V - 2), 4]
    hub = [False, *(rng.random(V - 2) < 0.2), False]
    arcs = []
    for v in range(1, V):
        for u in rng.choice(v, min(v, rng.integers(1, 5)), replace=False):
            use = PASS if hub[v] else int(rng.choice([STEP, NEW, NEW | SAME, SAME, DROP, NEW | DROP]))
            arcs.append(Arc(int(u), v, use, float(rng.choice([0.0, 0.0, 0.25]))))
        if not hub[v] and rng.random() < 0.3:
            arcs.append(Arc(int(rng.integers(V)), v, int(rng.choice([NEW, AGAIN])), 0.5))
    rng.shuffle(arcs)
    label = [-1 if is_hub else int(row) for row, is_hub in zip(label, hub, strict=True)]
    again = [not is_hub and bool(rng.random() < 0.7) for is_hub in hub]
    return graph_of(label, [Arc(*arc) for arc in arcs], [V - 1, V - 3], hub=hub, again=again)


def random_costs(rng, N=6, K=5, dtype=np.float64, kind="signed"):
    draw = {
        "signed": lambda shape: rng.normal(size=shape),
        "ties": lambda shape: rng.integers(0, 3, shape) / 4,
        "holes": lambda shape: np.where(rng.random(shape) < 0.3, np.inf, rng.random(shape)),
    }[kind]
    parts = [draw(shape).astype(dtype) for shape in ((K, N), (N,), (K,))]
    return paid(*parts, None, Charges(0.25, 0.5, 0.125))


def assert_same_trace(found, expected):
    assert found.value == expected.value
    for name in ("pairs", "drop_x", "drop_z"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
    assert found.charges == expected.charges
    for mine, theirs in ((found.weights, expected.weights), (found.walked, expected.walked)):
        assert (mine is None) == (theirs is None)
    if expected.weights is not None:
        np.testing.assert_array_equal(found.weights, expected.weights)
    for mine, theirs in zip(found.walked or (), expected.walked or (), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_same_result(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def in_double(costs):
    parts = (part.astype(np.float64) for part in (costs.matrix, costs.drop_x, costs.drop_z))
    return paid(*parts, None, costs.charges)


def assert_as_exact_as_the_reference(found, table, graph, fold, costs):
    """The error is at most twice the reference's error in the same precision, or a few units in the last place."""
    truth = reference.run_graph(table, graph, fold, in_double(costs), gradient=True)
    plain = reference.run_graph(table, graph, fold, costs, gradient=True) if costs.dtype == np.float32 else truth
    if np.isinf(truth.value):
        assert found.value == np.inf
        assert not any(np.any(part) for part in found[1:])
        return
    size = np.abs(costs.matrix[np.isfinite(costs.matrix)]).sum() + abs(truth.value) + 1
    unit = 4 * EPSILON[costs.dtype.type] * size
    steps = sum(costs.shape)  # each step rounds a difference of values, and weights divide that by γ
    for name, mine, theirs, true in zip(found._fields, found, plain, truth, strict=True):
        scale = unit if name == "value" else unit * steps / min(1, max(fold.gamma, 0.1))
        wrong, allowed = np.abs(np.subtract(mine, true)), np.abs(np.subtract(theirs, true))
        assert np.max(wrong) <= 2 * np.max(allowed) + scale, name


# --- The reference's answers ----------------------------------------------------------------------------------------


@precisions
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_hard_values_paths_and_their_derivatives_are_the_references_bit_for_bit(order, dtype):
    """Including ties: the first of equally good edges wins, then the first of equally good arcs."""
    ties = (dtype is np.float32) == (order in ORDERS[::2])
    for table, graph, costs in problems(order, dtype, ties):
        expected = reference.trace_graph(table, graph, costs)
        assert_same_trace(cpu.trace_graph(table, graph, costs), expected)
        derived = cpu.run_graph(table, graph, hard_min, costs, gradient=True)
        assert_same_result(derived, reference.run_graph(table, graph, hard_min, costs, gradient=True))
        assert cpu.run_graph(table, graph, hard_min, costs).value == expected.value


def check_soft(problems, fold):
    for table, graph, costs in problems:
        found = cpu.run_graph(table, graph, fold, costs, gradient=True)
        assert_as_exact_as_the_reference(found, table, graph, fold, costs)
        assert cpu.run_graph(table, graph, fold, costs).value == found.value


@folds
@pytest.mark.parametrize("order", ORDERS[::2], ids=repr)
def test_soft_values_and_all_derivatives(order, fold):
    first = ORDERS.index(order) // 2
    check_soft(problems(order, np.float64, first=first, every=3), fold)
    check_soft(problems(order, np.float32, first=first, every=9), fold)


@pytest.mark.exhaustive
@folds
@precisions
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_soft_values_and_all_derivatives_of_all_options(order, fold, dtype):
    for ties in (False, True):
        check_soft(problems(order, dtype, ties), fold)


def check_any(table, seed, kind, dtype):
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, 12 + 9 * seed)
    costs = random_costs(rng, dtype=dtype, kind=kind)
    assert_same_trace(cpu.trace_graph(table, graph, costs), reference.trace_graph(table, graph, costs))
    for fold in (hard_min, soft_min(0.4), reducer("smooth", 0.4)):
        found = cpu.run_graph(table, graph, fold, costs, gradient=True)
        assert_as_exact_as_the_reference(found, table, graph, fold, costs)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_any_graph_under_any_table(table):
    """Arcs of every use, hubs behind hubs, jumps, costs, weights, charges, several starts and ends."""
    for seed, kind, dtype in ((0, "ties", np.float32), (1, "signed", np.float64), (2, "holes", np.float64)):
        check_any(table, seed, kind, dtype)


@pytest.mark.exhaustive
@precisions
@pytest.mark.parametrize("kind", ["signed", "ties", "holes"])
@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_many_graphs_under_any_table(table, kind, dtype):
    for seed in range(3, 8):
        check_any(table, seed, kind, dtype)


@pytest.mark.parametrize("options", [{}, {"drop_z": 0.6}, {"many_to_one": False, "contiguous": True}], ids=str)
def test_graphs_of_many_chunks(options):
    order = orders.any_order(*range(8))
    spec = Spec.of(drop_x=0.4, order=order, **options)
    rng = np.random.default_rng(0)
    problem = Problem.of_costs(spec, rng.random((8, 12)))
    table, graph, costs = problem.table, problem.graph, problem.costs
    assert len(graph) > 1000
    assert_same_trace(cpu.trace_graph(table, graph, costs), reference.trace_graph(table, graph, costs))
    found = cpu.run_graph(table, graph, soft_min(0.2), costs, gradient=True)
    assert_as_exact_as_the_reference(found, table, graph, soft_min(0.2), costs)


def test_a_node_with_more_ways_into_it_than_a_chunk_takes():
    V = 6000
    arcs = [Arc(0, v) for v in range(1, V)] + [Arc(v, V, NEW | SAME, 0.001 * (v % 7)) for v in range(1, V)]
    graph = graph_of([-1, *(v % 3 for v in range(1, V)), 3], arcs, [V])
    costs = random_costs(np.random.default_rng(0), K=4)
    table = recurrence.one_sided()
    assert_same_trace(cpu.trace_graph(table, graph, costs), reference.trace_graph(table, graph, costs))
    found = cpu.run_graph(table, graph, soft_min(0.2), costs, gradient=True)
    assert_as_exact_as_the_reference(found, table, graph, soft_min(0.2), costs)


def test_many_rows_of_z():
    """There are more rows than fit into registers."""
    for K in (17, 40, 70, 300):
        graph = as_order(orders.jumps(K, [(K - 1, 0, 0.1), (K // 2, 3, 0.2)])).graph(recurrence.two_sided())
        for dtype in (np.float32, np.float64):
            costs = random_costs(np.random.default_rng(K), N=5, K=K, dtype=dtype)
            table = recurrence.two_sided()
            assert_same_trace(cpu.trace_graph(table, graph, costs), reference.trace_graph(table, graph, costs))


def test_where_every_alignment_is_forbidden_nothing_has_a_derivative():
    rng = np.random.default_rng(0)
    graph, table = random_graph(rng), recurrence.one_sided()
    costs = random_costs(rng)
    costs = paid(np.full_like(costs.matrix, np.inf), np.full_like(costs.drop_x, np.inf), costs.drop_z)
    for fold in (hard_min, soft_min(0.5), reducer("smooth", 0.5)):
        found = cpu.run_graph(table, graph, fold, costs, gradient=True)
        assert found.value == np.inf
        assert not any(np.any(part) for part in found[1:])
    assert_same_trace(cpu.trace_graph(table, graph, costs), reference.trace_graph(table, graph, costs))


def test_strided_reversed_and_read_only_matrices():
    rng = np.random.default_rng(0)
    graph, table = random_graph(rng), TABLES[0]
    plain = random_costs(rng, N=9)
    C = plain.matrix
    wide = np.repeat(np.repeat(C, 2, axis=0), 3, axis=1)[::2, ::3]
    frozen = C.copy()
    frozen.flags.writeable = False
    packed = np.zeros(C.shape, np.dtype([("pad", "i1"), ("C", C.dtype)]))
    packed["C"] = C
    expected = cpu.run_graph(table, graph, soft_min(0.5), plain, gradient=True)
    for same in (wide, frozen, np.asfortranarray(C), C[::-1, ::-1].copy()[::-1, ::-1], packed["C"]):
        assert_same_result(cpu.run_graph(table, graph, soft_min(0.5), plain.with_match(same), gradient=True), expected)


# --- Memory, precision, batches -------------------------------------------------------------------------------------


@precisions
@pytest.mark.parametrize("N", [1, 2, 3, 4, 50, 99, 100])
def test_columns_that_are_computed_again_change_nothing(N, dtype, monkeypatch):
    rng = np.random.default_rng(N)
    for table, fold in itertools.product(TABLES[:3], (hard_min, soft_min(0.3), reducer("smooth", 0.3))):
        graph, costs = random_graph(rng), random_costs(rng, N, dtype=dtype)
        monkeypatch.undo()
        path = cpu.trace_graph(table, graph, costs)
        expected = cpu.run_graph(table, graph, fold, costs, gradient=True)
        monkeypatch.setattr(cpu_graphs, "BUDGET", 0)
        assert_same_trace(cpu.trace_graph(table, graph, costs), path)
        assert_same_result(cpu.run_graph(table, graph, fold, costs, gradient=True), expected)


def test_long_sums_in_single_precision_are_as_good_as_in_double():
    graph, table = as_order(ORDERS[4]).graph(recurrence.one_sided()), recurrence.one_sided()
    rng = np.random.default_rng(0)
    costs = random_costs(rng, 1 << 14, K=3, dtype=np.float32, kind="holes")
    for fold in (hard_min, soft_min(0.1)):
        found = cpu.run_graph(table, graph, fold, costs, gradient=True)
        truth = cpu.run_graph(table, graph, fold, in_double(costs), gradient=True)
        assert found.value == truth.value
        for mine, theirs in zip(found[1:], truth[1:], strict=True):
            np.testing.assert_array_equal(mine, np.asarray(theirs, np.float32) if np.ndim(theirs) == 1 else theirs)
    assert_same_trace(cpu.trace_graph(table, graph, costs), cpu.trace_graph(table, graph, in_double(costs)))


@precisions
@pytest.mark.parametrize("fold", [hard_min, soft_min(0.3)], ids=["hard", "soft"])
def test_items_of_a_batch_are_computed_exactly_as_alone(fold, dtype):
    rng = np.random.default_rng(0)
    table, B, K, N = ASYMMETRIC, 9, 6, 21
    graphs = [random_graph(rng, 10 + 3 * b) for b in range(B)]
    x_lengths = rng.integers(1, N + 1, B)
    z_lengths = np.array([graph.K for graph in graphs])
    match, drop_x, drop_z = (rng.random(shape).astype(dtype) for shape in ((B, K, N), (B, N), (B, K)))
    charges = rng.random((B, 3)).astype(dtype)
    padded = Costs(match, drop_x, drop_z, charges, (z_lengths, x_lengths))
    alone = [
        cpu.run_graph(
            table,
            graph,
            fold,
            paid(match[b, :k, :n], drop_x[b, :n], drop_z[b, :k], None, Charges(*map(float, charges[b]))),
            gradient=True,
        )
        for b, (graph, k, n) in enumerate(zip(graphs, z_lengths, x_lengths, strict=True))
    ]
    for threads in (1, 4):
        value, by_match, by_x, by_z, by_charges = cpu.run_batch(
            table, fold, padded, graphs=graphs, gradient=True, threads=threads
        )
        for b, (found, k, n) in enumerate(zip(alone, z_lengths, x_lengths, strict=True)):
            assert value[b] == found.value
            np.testing.assert_array_equal(by_match[b, :k, :n], found.match)
            np.testing.assert_array_equal(by_x[b, :n], found.drop_x)
            np.testing.assert_array_equal(by_z[b, :k], found.drop_z)
            np.testing.assert_array_equal(by_charges[b], np.array(found.charges, dtype))
            assert not by_match[b, k:].any()
            assert not by_match[b, :, n:].any()
        values, *nothing = cpu.run_batch(table, fold, padded, graphs=graphs, threads=threads)
        np.testing.assert_array_equal(values, value)
        assert all(part.size == 0 for part in nothing)


# --- Choice, errors, signals ----------------------------------------------------------------------------------------


def test_the_compiled_executor_runs_tables_of_ones_own_on_graphs():
    C = np.random.default_rng(0).random((3, 8))
    assert "cpp" in EXECUTORS
    found = [
        dropdtw.cost(C, 0.4, 0.5, method=ASYMMETRIC, order=orders.repeat([0, 1, 2]), executor=name)
        for name in (None, "cpp", "reference")
    ]
    assert len(set(found)) == 1
    with pytest.raises(ValueError, match="executor is 'fast'"):
        dropdtw.cost(C, 0.4, order=orders.any_order(0, 1, 2), executor="fast")


@pytest.mark.parametrize("method", [name for name, entry in METHODS.items() if entry.takes_orders])
def test_every_method_that_takes_orders(method):
    C = np.random.default_rng(0).random((4, 9))
    more = {"threshold": 0.5} if METHODS[method].takes_threshold else {}
    more |= {"drop_x": 0.3} if METHODS[method].takes_drops else {}
    for order in (orders.any_order(0, [1, 2], 3), [0, orders.one_of(1, 2), 3]):
        values = [dropdtw.cost(C, method=method, order=order, executor=name, **more) for name in ("cpp", "reference")]
        assert values[0] == values[1]


def test_costs_that_do_not_fit_the_graph_are_refused():
    rng = np.random.default_rng(0)
    graph, costs = random_graph(rng), random_costs(rng, K=4)
    with pytest.raises(ValueError, match="do not fit the graph"):
        cpu.run_graph(recurrence.dtw(), graph, hard_min, costs)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"source": np.array([7])}, "no such node"),
        ({"start": -1}, "no such node"),
        ({"level": np.array([0, 9])}, "no such label or level"),
        ({"cost": np.empty(0)}, "arcs do not fit"),
        ({"edges": np.array([[0, 5, 0, 1, 0, 0]], np.int32)}, "no such edge"),
        ({"starts": np.array([1], np.int32)}, "no such state"),
    ],
)
def test_plans_of_what_makes_no_graph_are_refused(change, what):
    from dropdtw import _cpp

    one, states = np.array([0]), np.array([0], np.int32)
    plan = {"label": np.array([-1, 0]), "level": np.array([0, 0]), "source": one, "target": one + 1, "use": one + 1}
    plan |= {"cost": np.zeros(1), "hub": np.zeros(2, bool), "again": np.ones(2, bool), "start": 0, "finals": one + 1}
    plan |= {"states": 1, "edges": np.array([[0, 0, 0, 1, 0, 0]], np.int32), "weights": np.ones(1)}
    plan |= {"starts": states, "final_states": states}
    _cpp.Plan(**plan)
    with pytest.raises(ValueError, match=what):
        _cpp.Plan(**plan | change)


@pytest.mark.parametrize("work", ["value", "path", "derivatives", "batch"])
def test_ctrl_c_is_answered(work):
    """Ctrl-C takes effect within about a second, however long one problem takes."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    table = recurrence.one_sided(many_to_one=False)
    graph = orders.any_order(*range(12)).graph(table)
    rng = np.random.default_rng(0)
    long = random_costs(rng, 150_000, K=12, dtype=np.float32)
    padded = Costs(rng.random((64, 12, 3000)), rng.random((64, 3000)), rng.random((64, 12)), None)
    jobs = {
        "value": lambda: cpu.run_graph(table, graph, soft_min(0.1), long),
        "path": lambda: cpu.trace_graph(table, graph, long),
        "derivatives": lambda: cpu.run_graph(table, graph, soft_min(0.1), long, gradient=True),
        "batch": lambda: cpu.run_batch(table, soft_min(0.1), padded, graphs=[graph] * 64, gradient=True, threads=2),
    }
    cpu.run_graph(table, graph, hard_min, random_costs(rng, K=12))  # builds the plan
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    start = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            jobs[work]()
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - start < 2.3  # the work itself takes much longer
