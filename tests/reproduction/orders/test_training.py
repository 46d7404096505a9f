"""Training from orders alone: the linear map, and digits whose videos follow a partial order."""

from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from dropdtw import metrics, orders  # noqa: E402
from dropdtw.torch import DropDTWLoss  # noqa: E402
from reproduction.common.training import Plan  # noqa: E402
from reproduction.data.steps import check, collate  # noqa: E402
from reproduction.orders import digits, linear  # noqa: E402
from reproduction.orders.digits import ROWS, shuffled  # noqa: E402
from reproduction.orders.linear import TRAINED, LinearMap  # noqa: E402
from reproduction.orders.recordings import stand_in  # noqa: E402
from reproduction.orders.settings import Settings  # noqa: E402
from reproduction.steps import inference, training  # noqa: E402
from reproduction.steps import stand_in as procedures  # noqa: E402
from reproduction.steps.model import Objective, StepModel, Tensors  # noqa: E402
from reproduction.steps.splits import Splits  # noqa: E402
from step_cases import HOW, POOL, video  # noqa: E402

DATA = stand_in(30, 0)
TINY = Settings(trained=14, judged=12)


def made(order, split=0, freedom=2.0, tasks=4, videos=3):
    how = replace(HOW, tasks=tasks, videos=videos)
    return shuffled(POOL[:1], procedures.step_embeddings(POOL, how), how, split, freedom=freedom, order=order)


# --- The linear map -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", TRAINED)
def test_a_map_learns_from_orders_what_frames_show(way, tmp_path):
    before = linear.judged(LinearMap(0), DATA, TINY)
    model = linear.train(DATA, way, TINY, 0, epochs=3, out=tmp_path)
    after = linear.judged(model, DATA, TINY)
    assert after > before + 0.1
    last = torch.load(tmp_path / "checkpoint.pt", weights_only=True)
    assert last["epoch"] == 3
    assert torch.equal(model.weight, last["module"]["weight"])  # the last epoch, whatever its loss
    again = linear.train(DATA, way, TINY, 0, epochs=3, out=tmp_path)  # nothing left to do
    assert torch.equal(model.weight, again.weight)


def test_ways_differ_only_in_what_they_know():
    lesson = linear.Lesson(DATA, TINY, 0)
    record = next(r for r in lesson.parts[0] if [row for row, *_ in r.segments] != DATA.recipe(r).listed)
    items = {way: lesson.items([record], way).items[0] for way in TRAINED}
    assert {way: item[3] for way, item in items.items()} == {
        "list": None, "graph": DATA.recipe(record).order, "true order (bound)": None,
    }  # fmt: skip
    assert items["list"][2].tolist() == DATA.recipe(record).listed
    assert items["true order (bound)"][2].tolist() == [row for row, *_ in record.segments]
    losses = {way: LinearMap(0)(linear.Items([item])).item() for way, item in items.items()}
    assert losses["graph"] < min(losses["list"], losses["true order (bound)"])  # it allows both
    names = [record.name for part in lesson.parts for record in part]
    assert len(set(names)) == len(names)


# --- Digits -------------------------------------------------------------------------------------------------------


def test_videos_follow_a_partial_order_of_their_task():
    graphs, trues, lists = (made(order) for order in ("graph", "true", "list"))
    left = 0
    for graph, true, listed in zip(graphs, trues, lists, strict=True):
        np.testing.assert_array_equal(graph.frames, true.frames)
        np.testing.assert_array_equal(graph.labels, listed.labels)
        happened = [row for row, *_ in sorted(graph.segments, key=lambda s: s[1])]
        assert true.order == orders.as_order(happened)
        assert listed.order is None
        for a, b in graph.order.pairs():
            assert happened.index(a) < happened.index(b)
        left += happened != sorted(happened)
        assert check(graph) == check(true)
    assert left > 3
    assert made("list", split=1)[0].order is not None  # all are tested with the graph
    assert all([row for row, *_ in v.segments] == list(range(len(v.steps))) for v in made("graph", freedom=0.0))


def test_the_order_of_a_video_reaches_the_loss():
    seen = []

    class Watched(DropDTWLoss):
        def values(self, p, order=None):
            seen.append(order)
            return p.X.new_zeros(len(p.X))

    for order in ("graph", "list"):
        data = made(order)
        model = StepModel(data[0].frames.shape[1], data[0].steps.shape[1], Objective(cluster=False))
        model.align = Watched(0.3)
        batch = Tensors.of(collate([data[0], data[5]])).to("cpu")
        model(batch)
        assert batch.orders == (None if order == "list" else (data[0].order, data[5].order))
    assert seen == [(made("graph")[0].order, made("graph")[5].order), None]
    mixed = collate([made("graph")[0], made("list")[5]])
    assert mixed.orders[1] == orders.as_order(range(len(made("list")[5].steps)))


def test_scores_know_the_order_of_a_video():
    shown = video([1, 1, -1, 0, 0, 2])
    S = shown.steps @ shown.frames.T
    free = replace(shown, order=orders.before(3, [(0, 2), (1, 2)]))
    labels = inference.localize(1 - S, 0.5, free.order)
    np.testing.assert_array_equal(labels, shown.rows)
    assert inference.scores([(free, labels, S)]).recall == 1
    assert inference.scores([(shown, labels, S)]).recall < 1
    np.testing.assert_array_equal(metrics.one_frame_per_step(S, free.order)[2], 5)
    assert metrics.recall(S, [3, 0, 5], [5, 2, 6], order=free.order) == 1
    assert metrics.recall(S, [3, 0, 5], [5, 2, 6]) < 1
    with pytest.raises(ValueError, match="Z has 3 steps"):
        replace(shown, order=orders.any_order(0, 1))


def test_training_takes_every_kind_of_order():
    for row in ("list", "graph", "true order (bound)"):
        train, held = made(ROWS[row].order, tasks=2, videos=2), made("graph", split=1, tasks=2, videos=1)
        model, done = training.train_model(train, held, ROWS[row].objective, Plan(epochs=1), progress=False)
        assert np.isfinite([line.get("loss", 0.0) for line in done.history]).all()
        assert 0 <= training.evaluate(model, held, 30.0).recall <= 1


def test_a_row_is_trained_once(tmp_path, monkeypatch):
    def splits(source, seed, make):
        how = replace(HOW, tasks=3, videos=2, seed=seed)
        z = procedures.step_embeddings(POOL, how)
        return Splits(*(make(POOL[k : k + 1], z, how, k) for k in range(3)))

    monkeypatch.setattr(procedures, "splits", splits)
    work = digits.Digits(None, tmp_path, "cpu", Settings(digit_epochs=1))
    found = work(("features before training", 0))
    assert len(found) == 3
    monkeypatch.setattr(procedures, "splits", lambda *a: pytest.fail("this is kept"))
    assert work(("features before training", 0)) == found
