"""Durations of steps: against the list of all alignments, their laws, and what is refused."""

from datetime import timedelta

import numpy as np
import pytest
from pytest import approx

import dropdtw
from dropdtw import orders
from dropdtw.orders import durations
from order_cases import LASTING, build

every_order = pytest.mark.parametrize("name", LASTING)


@pytest.mark.parametrize("ids", [None, [0, 0, 1]])
@pytest.mark.parametrize(("least", "most"), [(1, 1), (2, None), (1, 2), (2, 3)])
def test_ctc_has_durations(ids, least, most, executor):
    """Against the oracle of CTC without an order, whose alignments with other durations are left out."""
    import oracle

    rng = np.random.default_rng(0)
    for N in (3, 6, 7):
        C, d = rng.normal(size=(3, N)), rng.random(N)
        order = orders.lasting([0, 1, 2], at_least=least, at_most=most)
        given = {"C": C, "drop_x": d, "method": "ctc", "ids": ids, "order": order, "executor": executor}
        listed = oracle.alignments(C, d, method="ctc", ids=ids)
        fits = [
            (M, cost) for M, cost in listed if (M.sum(1) >= least).all() and (most is None or (M.sum(1) <= most).all())
        ]
        if not fits:
            with pytest.raises(ValueError, match="every alignment is forbidden"):
                dropdtw.solve(**given)
            continue
        costs = np.array([cost for _, cost in fits])
        a = dropdtw.solve(**given)
        assert a.cost == approx(costs.min())
        assert np.array_equal(a.M, fits[costs.argmin()][0])
        p = dropdtw.posterior(**given, gamma=0.5)
        share = np.exp(-costs / 0.5) / np.exp(-costs / 0.5).sum()
        assert p.match == approx(np.einsum("n,nij->ij", share, np.array([M for M, _ in fits])))


@pytest.mark.parametrize("drops", [{"drop_x": 0.3}, {"drop_x": 0.3, "drop_z": 0.9, "open_x": 0.2, "warp": 0.05}])
@pytest.mark.parametrize(("least", "most"), [(4, None), (1, 3), (2, 5), (3, 3)])
def test_counting_states_equal_copies_of_steps(monkeypatch, drops, least, most):
    """Lists whose steps last equally long run on a table that counts. The graph with copies gives the same results."""
    C = np.random.default_rng(least).random((4, 40))
    given = {"C": C, "method": "steps", "order": orders.lasting([2, 0, 3, 1], at_least=least, at_most=most)} | drops
    results = []
    for states in (0, durations.MOST_STATES):
        monkeypatch.setattr(durations, "MOST_STATES", states)
        p = dropdtw.posterior(**given, gamma=0.2)
        results.append((dropdtw.solve(**given), dropdtw.cost(**given, reducer="soft", gamma=0.2), p))
        with pytest.raises(ValueError, match="every alignment is forbidden"):
            dropdtw.solve(**given | {"C": np.full((4, 40), np.inf), "drop_z": None})
    (a, soft, p), (b, soft_counted, q) = results
    assert a.cost == approx(b.cost)
    assert a.rescore() == approx(b.rescore()) == approx(a.cost)
    assert a.pairs.tolist() == b.pairs.tolist()
    assert a.walk.tolist() == b.walk.tolist() == [2, 0, 3, 1]
    assert a.visit.tolist() == b.visit.tolist()
    assert soft == approx(soft_counted)
    for name in ("match", "drop_x", "drop_z", "visit", "before", "expected_cost"):
        assert getattr(p, name) == approx(getattr(q, name)), name


def test_wider_limits_never_cost_more():
    C = np.random.default_rng(2).random((4, 40))
    cost = lambda **limits: dropdtw.cost(C, 0.3, 0.2, method="steps", order=orders.lasting(range(4), **limits))  # noqa: E731
    free = dropdtw.cost(C, 0.3, 0.2, method="steps")
    values = [free, *(cost(at_least=n) for n in (2, 3, 5, 8))]
    assert values == sorted(values)
    assert values[0] < values[-1]
    values = [cost(at_most=n) for n in (1, 2, 3, 40)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == approx(free)


def test_every_x_twice_and_every_duration_twice_change_no_boundary():
    C = np.random.default_rng(3).random((3, 20))
    a = dropdtw.solve(C, 0.2, 0.3, method="steps", order=orders.lasting(range(3), at_least=3))
    b = dropdtw.solve(np.repeat(C, 2, axis=1), 0.2, 0.6, method="steps", order=orders.lasting(range(3), at_least=6))
    assert b.labels.tolist() == np.repeat(a.labels, 2).tolist()
    assert b.cost == approx(2 * a.cost)


def test_streams_respect_durations():
    rng = np.random.default_rng(6)
    Z, X = rng.normal(size=(3, 4)), rng.normal(size=(30, 4))
    given = {"drop_x": 0.6, "match": "cosine", "method": "steps", "order": orders.lasting(range(3), at_least=3)}
    stream = dropdtw.Online(Z, **given)
    for x in X:
        stream.push(x)
    a, b = stream.finish(), dropdtw.align(Z, X, **given)
    assert a.labels.tolist() == b.labels.tolist() != dropdtw.align(Z, X, **given | {"order": None}).labels.tolist()
    assert a.cost == approx(b.cost)


def test_losses_train_with_durations():
    torch = pytest.importorskip("torch")
    from dropdtw.torch import drop_dtw

    rng = np.random.default_rng(4)
    C, order = rng.random((2, 3, 9)), orders.lasting([0, 1, 2], at_least=2, at_most=3)
    given = {"many_to_one": False, "contiguous": True, "order": order}
    tensor = torch.tensor(C, requires_grad=True)
    value = drop_dtw(tensor, 0.3, 0.4, reducer="soft", gamma=0.1, **given)
    value.sum().backward()
    for c, found, slope in zip(C, value, tensor.grad, strict=True):
        p = dropdtw.posterior(c, drop_x=0.3, drop_z=0.4, gamma=0.1, **given)
        assert found.item() == approx(p.cost)
        assert slope.numpy() == approx(p.match)


def test_a_stream_counts_times_at_its_rate():
    X = np.random.default_rng(6).random((30, 2))
    limits = orders.lasting([0, 1], at_least=timedelta(seconds=0.9), at_most=timedelta(seconds=1.9))
    given = {"drop_x": 0.3, "method": "steps", "match": "euclidean", "order": limits, "fps": 4}
    stream = dropdtw.Online(np.eye(2), **given)
    for x in X:
        stream.push(x)
    found = dropdtw.align(np.eye(2), X, **given)
    assert stream.finish().labels.tolist() == found.labels.tolist()
    assert 4 <= (found.labels == 0).sum() <= 7
    with pytest.raises(ValueError, match="no uniform clock"):
        dropdtw.Online(np.eye(2), **{**given, "fps": None})


def test_times_count_as_elements_of_the_clock():
    C = np.random.default_rng(5).random((2, 30))
    seconds = [orders.lasting(0, at_least=timedelta(seconds=0.9), at_most=np.timedelta64(1900, "ms")), 1]
    counted = [orders.lasting(0, at_least=4, at_most=7), 1]
    given = {"drop_x": 0.3, "method": "steps"}
    a, b = dropdtw.solve(C, order=seconds, fps=4, **given), dropdtw.solve(C, order=counted, **given)
    assert a.labels.tolist() == b.labels.tolist()
    assert a.cost == b.cost
    times = np.datetime64("2024-05-01") + np.timedelta64(250, "ms") * np.arange(30)
    assert dropdtw.solve(C, order=seconds, times=times, **given).cost == a.cost
    for times, fps in ((None, None), (np.arange(30.0) ** 1.1, None)):
        with pytest.raises(ValueError, match=r"no uniform clock; give times= .*resample"):
            dropdtw.solve(C, order=seconds, times=times, fps=fps, **given)
    holes = np.arange(30.0)
    holes[3] = np.nan
    with pytest.raises(ValueError, match="no uniform clock"):
        dropdtw.align([0.0, 1.0], holes, order=seconds, fps=4, missing="drop", **given)
    narrow = orders.lasting([0, 1], at_least=timedelta(seconds=3), at_most=timedelta(seconds=3.5))
    with pytest.raises(ValueError, match="at least 2 and at most 1 elements of 2 s"):
        dropdtw.solve(C, order=narrow, fps=0.5, **given)


@every_order
def test_orders_are_written_and_read(name):
    order = build(LASTING[name])
    assert orders.parse(order.to_dict()) == order
    assert orders.as_order(eval(repr(order), vars(orders))) == order
    with_times = [orders.lasting(0, at_least=timedelta(seconds=2.5)), 1]
    assert orders.parse(orders.as_order(with_times).to_dict()) == orders.as_order(with_times)
    aligner = dropdtw.Aligner(0.3, method="steps", order=order)
    assert dropdtw.Aligner.from_dict(aligner.to_dict()) == aligner


def test_what_cannot_last_is_refused():
    for limits, says in (
        ({"at_least": 0}, "at_least is 0; give a number of elements, 1 or more, or a time"),
        ({"at_most": -1}, "at_most is -1"),
        ({"at_least": 2.5}, "at_least is 2.5"),
        ({"at_least": timedelta(0)}, "at_least is datetime"),
        ({"at_least": 3, "at_most": 2}, "would last 3 to 2; at_most must not be less"),
    ):
        with pytest.raises(ValueError, match=says):
            orders.lasting(0, **limits)
    with pytest.raises(ValueError, match="step 0 lasts at least 2 in one place and at least 3 in another"):
        dropdtw.cost(np.zeros((2, 9)), 1, order=[orders.lasting(0, at_least=2), 1, orders.lasting(0, at_least=3)])
    C = np.zeros((2, 4))
    for drop_x, options in ((1, {}), (None, {"method": "dtw"}), (1, {"many_to_one": False})):
        with pytest.raises(ValueError, match="use method 'steps' or 'ctc'"):
            dropdtw.cost(C, drop_x, order=orders.lasting([0, 1], at_least=2), **options)
    with pytest.raises(ValueError, match="use method 'steps' or 'ctc' with one_to_many=True"):
        dropdtw.cost(C, 1, order=orders.lasting([0, 1], at_least=2), method="steps", one_to_many=False)
    with pytest.raises(ValueError, match=r"durations need more than \d+ nodes; give shorter ones, or resample"):
        dropdtw.cost(C, 1, method="steps", order=orders.lasting([0, 1], at_least=1 << 18))
    with pytest.raises(ValueError, match="every alignment is forbidden"):
        dropdtw.solve(C, 1, method="steps", order=orders.lasting([0, 1], at_least=3))
