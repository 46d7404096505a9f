"""Inference with a list, a graph and the true order."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from dropdtw import metrics
from reproduction.data.captaincook4d import Recipe
from reproduction.data.records import Record
from reproduction.orders import inference
from reproduction.orders.inference import WAYS, Case, Drops, Inference, predict
from reproduction.orders.settings import Settings

TINY = Settings(clips=8, tested=3, tuned=2, percentiles=(10.0, 30.0), factors=(0.5,), noises=(1.5,), seeds=2)

V = Recipe("v", ("a", "b", "c"), ((0, 2), (1, 2)))
"""a and b in either order, then c."""


def shown(labels):
    """A recording, match costs that show the step of each frame clearly, and a percentile of them below 1."""
    labels = np.asarray(labels)
    C = np.where(np.arange(3)[:, None] == labels, 0.0, 1.0)
    segments = tuple((k, float(start), float(stop)) for k, start, stop in metrics.segments_of(labels))
    inside = 100 * ((C == 0).sum() - 0.5) / (C.size - 1)
    return Record("r", "", "v", "", (0, 1, 2), V.steps, segments), C, inside


@pytest.mark.parametrize("name", WAYS)
def test_what_each_way_finds_where_the_list_is_left(name):
    labels = np.array([-1, 1, 1, -1, 0, 0, 2, -1])
    record, C, p = shown(labels)
    found = predict(WAYS[name], C, record, V, Drops(p, 0.5))
    assert (found == labels).all() == (not name.startswith("list"))


def test_a_step_that_is_missing_can_be_dropped():
    labels = np.array([-1, 1, 1, -1, 2, 2, -1])
    record, C, p = shown(labels)
    for name in ("graph, steps may be dropped", "list, steps may be dropped", "true order (bound)"):
        np.testing.assert_array_equal(predict(WAYS[name], C, record, V, Drops(p, 0.1)), labels)
    assert 0 in predict(WAYS["graph"], C, record, V, Drops(p))


def test_every_case_is_run_once_and_chooses_on_other_recordings(tmp_path, monkeypatch):
    work = Inference(None, tmp_path, "cpu", TINY)
    found = work(Case("graph", 1.5, 0))
    assert found["scores"].shape == (3, 3)
    assert found["chosen"][0] in TINY.percentiles
    asked = []
    scored = Inference._scores

    def watch(self, way, records, case, drops):
        asked.append((tuple(record.name for record in records), drops))
        return scored(self, way, records, case, drops)

    monkeypatch.setattr(Inference, "_scores", watch)
    np.testing.assert_array_equal(work(Case("graph", 1.5, 0))["scores"], found["scores"])
    assert asked == []
    work(Case("list, steps may be dropped", 1.5, 0))
    *tuning, (tested, _) = asked
    assert [drops for _, drops in tuning] == [Drops(10.0, 0.5), Drops(30.0, 0.5)]
    assert not set(tested) & {name for names, _ in tuning for name in names}


def test_the_iou_of_steps_weighs_steps_and_not_frames():
    true = np.array([0] * 9 + [1])
    assert inference.step_iou(np.zeros(10, int), true) == pytest.approx(0.45)
    assert inference.step_iou(np.array([-1, -1]), np.array([-1, -1])) == 1.0
