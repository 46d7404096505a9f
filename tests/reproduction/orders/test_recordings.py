"""Recordings with simulated features, and random orders."""

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from dropdtw.orders.poset import Poset
from kitchen_cases import write_kitchen
from reproduction.orders.random_orders import random_extension, random_pairs
from reproduction.orders.recordings import distorted, nodes, noisy, of_captaincook4d, stand_in

DATA = stand_in(12, 0)


def test_a_random_extension_follows_its_partial_order():
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        steps = [0, 1, 2, 1, 3]
        poset = Poset(5, random_pairs(steps, 2.0, rng))
        found = random_extension(poset, rng)
        assert sorted(found) == list(range(5))
        place = np.argsort(found)
        for v in range(5):
            assert all(place[u] < place[v] for u in range(5) if poset.below[v] >> u & 1)
        assert place[1] < place[3]  # the same step twice
        seen.add(tuple(found))
    assert len(seen) > 10
    assert random_pairs(range(4), 0.0, rng) == [(a, b) for b in range(4) for a in range(b)]


def test_parts_are_disjoint_and_the_same_for_the_same_seed():
    parts = DATA.parts(3, 4, 5)
    assert [len(part) for part in parts] == [4, 5]
    names = [record.name for part in parts for record in part]
    assert len(set(names)) == 9
    assert DATA.parts(3, 4, 5) == parts
    assert DATA.parts(4, 4, 5) != parts
    assert [len(part) for part in DATA.parts(0, 20, 10)] == [8, 4]  # too few: scaled down in proportion


@pytest.mark.parametrize("simulate", [lambda r, p, s: noisy(r, p, 1.5, s), distorted])
def test_features_are_simulated_around_the_real_segments(simulate):
    record = DATA.records[0]
    recipe = DATA.recipe(record)
    video = simulate(record, recipe, 0)
    np.testing.assert_array_equal(video.frames, simulate(record, recipe, 0).frames)
    assert not np.array_equal(video.frames, simulate(record, recipe, 1).frames)
    assert video.segments == record.segments
    assert video.times[-1, 1] <= max(stop for _, _, stop in record.segments) + 6
    np.testing.assert_allclose(np.linalg.norm(video.steps, axis=1), 1, rtol=1e-6)


def test_a_frame_is_like_its_step_but_for_strays_and_distorted_frames_are_not():
    record = DATA.records[1]
    recipe = DATA.recipe(record)

    def right(video):
        shown = video.rows >= 0
        return ((video.steps @ video.frames.T).argmax(axis=0) == video.rows)[shown].mean()

    clear = right(noisy(record, recipe, 0.0, 0))
    assert 0.8 < clear < 1
    assert right(noisy(record, recipe, 3.0, 0)) < clear
    assert right(distorted(record, recipe, 0, noise=0.0)) < 0.7


def test_large_recipes_can_be_left_out(tmp_path):
    folder = write_kitchen(tmp_path)
    everything = of_captaincook4d(str(folder))
    assert everything.source.startswith("CaptainCook4D, 2 recipes, 3 recordings")
    sizes = {name: nodes(recipe) for name, recipe in everything.recipes.items()}
    assert sizes["jam"] == 3 < sizes["earlgreytea"]
    assert {record.task for record in of_captaincook4d(str(folder), 3).records} == {"jam"}
