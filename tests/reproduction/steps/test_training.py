"""Step localization: every loss trains, and training helps."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")
pytest.importorskip("lightning_fabric", reason="training needs Lightning Fabric: make setup")

from reproduction.common.training import Plan  # noqa: E402
from reproduction.data.steps import collate  # noqa: E402
from reproduction.steps import training  # noqa: E402
from reproduction.steps.inference import OFFSETS, PERCENTILES  # noqa: E402
from reproduction.steps.losses import LOSSES  # noqa: E402
from reproduction.steps.model import Objective, StepModel, Tensors  # noqa: E402
from step_cases import DATA  # noqa: E402


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("cluster", [False, True])
def test_every_loss_gives_one_number_per_video_whatever_the_batch(loss, cluster):
    model = training.make_model(DATA.train, Objective(loss, cluster), 0)
    batch = Tensors.of(collate(DATA.train.load([0, 9, 17])))
    torch.manual_seed(0)
    together = model(batch)
    assert together.shape == (3,)
    assert torch.isfinite(together).all()
    if loss == "none" and not cluster:
        assert not together.any()
        return
    if loss == "d3tw":  # it draws its own shuffles
        return
    if cluster:  # contrasts the steps of the batch
        model = training.make_model(DATA.train, Objective(loss, negatives="item"), 0)
        together = model(batch)
    alone = torch.cat([model(Tensors.of(collate(DATA.train.load([k])))) for k in (0, 9, 17)])
    assert torch.allclose(together, alone, rtol=1e-4)
    together.sum().backward()
    moved = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert {"network.0.weight", "network.2.weight", "network.2.bias"} <= moved
    if LOSSES[loss].learned:
        assert "drop.network.0.weight" in moved


def test_an_unknown_loss_is_refused():
    with pytest.raises(ValueError, match="loss is 'sharp'; choose one of drop-percentile, drop-learned"):
        Objective("sharp")


def test_frames_and_steps_of_different_sizes():
    model = StepModel(5, 3, Objective())
    assert model.embed(torch.zeros(2, 7, 5)).shape == (2, 7, 3)


def test_frames_and_steps_are_standardized_by_the_training_set():
    model = training.make_model(DATA.train, Objective(), 0)
    steps = np.concatenate([video.steps for video in DATA.train])
    Z = model.embed_steps(torch.from_numpy(steps)).numpy()
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(Z.std(axis=0), 1, rtol=1e-3)
    unit = training.make_model(DATA.train, Objective(text="unit"), 0).embed_steps(torch.from_numpy(steps))
    np.testing.assert_allclose(np.linalg.norm(unit.numpy(), axis=1), steps.shape[1] ** 0.5, rtol=1e-4)


@pytest.mark.parametrize("changes", [{"form": "frobenius"}, {"drops": "percentile"}, {"exclusive": False}])
def test_variants_of_the_recipe_train_what_they_say(changes):
    """One epoch of each runs, and gives another loss than the recipe."""
    batch = Tensors.of(collate(DATA.train.load([0, 9, 17])))
    plain, varied = (training.make_model(DATA.train, Objective(**how), 0)(batch) for how in ({}, changes))
    assert torch.isfinite(varied).all()
    assert not torch.allclose(plain, varied)


def test_a_percentile_of_costs_is_the_drop_cost():
    model = training.make_model(DATA.train, Objective(drops="percentile"), 0)
    C, drop_x = model.costs(DATA.train[0], 20.0)
    np.testing.assert_allclose(drop_x, np.percentile(C, 20))


def test_an_offset_makes_a_learned_drop_cheaper():
    model = training.make_model(DATA.train, Objective("drop-background"), 0)
    assert model.settings == OFFSETS
    costs = [model.costs(DATA.train[0], offset)[1].mean() for offset in OFFSETS]
    assert (np.diff(costs) < 0).all()
    np.testing.assert_allclose(model.costs(DATA.train[0], 0.0)[1], model.costs(DATA.train[0])[1])


@pytest.mark.parametrize("loss", ["drop-percentile", "drop-learned", "drop-background", "drop-anchored"])
def test_costs_in_use_are_those_of_training(loss):
    """Inference uses the drop costs that the loss trains, at the same temperature."""
    model = training.make_model(DATA.train, Objective(loss, gamma_match=30.0, gamma_test=30.0), 0)
    if model.drop is not None:
        for parameter in model.drop.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    v = DATA.train[3]
    Z, X = model.vectors(v)
    from dropdtw.torch.batch import pairs

    p = pairs(*(torch.from_numpy(part)[None] for part in (Z, X)), None, None, torch.from_numpy(v.step_ids)[None])
    C, drop_x, _ = model.align.costs(p)
    ours, ours_x = model.costs(v)
    np.testing.assert_allclose(ours, C[0].detach().numpy(), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ours_x, drop_x[0].detach().numpy(), rtol=1e-3, atol=1e-4)


def test_an_epoch_lowers_the_loss_and_beats_untrained_features(tmp_path):
    before = training.make_model(DATA.train, Objective("none", cluster=False), 0)
    untrained = training.evaluate(before, DATA.test, training.choose_setting(before, DATA.val))
    model, done = training.train_model(
        DATA.train, DATA.val, Objective(), Plan(epochs=8, lr=3e-3), out=tmp_path, progress=False
    )
    losses = [line["loss"] for line in done.history[1:]]
    assert losses[-1] < losses[0]
    trained = training.evaluate(model, DATA.test, training.choose_setting(model, DATA.val))
    assert trained.recall > untrained.recall
    assert trained.iou > untrained.iou
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert max(line["recall"] for line in lines) == done.best["recall"]


def test_the_percentile_with_the_best_iou_is_chosen():
    model = training.make_model(DATA.train, Objective(), 0)
    tried = {p: training.evaluate(model, DATA.val, p).iou for p in PERCENTILES}
    assert len(set(tried.values())) > 1
    assert tried[training.choose_setting(model, DATA.val)] == max(tried.values())
    learned = training.make_model(DATA.train, Objective("drop-learned"), 0)
    assert training.choose_setting(learned, DATA.val) in OFFSETS
