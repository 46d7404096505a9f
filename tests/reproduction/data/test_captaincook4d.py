"""CaptainCook4D: tiny files in the published layout, errors for damaged ones, and counts of the real recordings."""

import gzip
import json
import os
from pathlib import Path

import numpy as np
import pytest

from kitchen_cases import ENTRIES, JAM, recording, write_kitchen
from loader_cases import embed, frames
from reproduction.data import captaincook4d
from reproduction.data.captaincook4d import ANNOTATIONS


@pytest.fixture
def folder(tmp_path):
    """Two recipes and three recordings in the published layout."""
    return write_kitchen(tmp_path)


def test_recipes_are_partial_orders_of_their_steps(folder):
    tea, jam = captaincook4d.recipes(folder).values()
    assert (tea.name, tea.steps) == ("earlgreytea", ("Boil-Boil water", "Warm-Warm the pot", "Pour-Pour the tea"))
    assert tea.pairs == ((0, 2), (1, 2))  # START and END are ignored
    assert tea.listed == [0, 1, 2]
    assert repr(tea.order) == "before(3, [(0, 2), (1, 2)])"
    assert (jam.first_id, repr(jam.order)) == (3, "[0, 1]")


def test_records_hold_the_segments_of_the_recipes_steps(folder):
    first, second, third = captaincook4d.records(folder)
    assert first.segments == ((0, 1.0, 3.0), (1, 4.0, 6.0), (2, 7.0, 9.0), (1, 9.0, 9.5))  # two spellings
    assert captaincook4d.done(first) == [0, 1, 2]
    assert second.segments == ((1, 0.0, 1.0), (2, 2.0, 3.0), (0, 2.0, 5.0))  # unknown steps are left out
    assert third.segments == ((1, 3.0, 8.0),)  # negative times: not done
    assert (third.task, third.step_ids) == ("jam", (3, 4))
    packed = folder / f"{ANNOTATIONS}.gz"
    packed.write_bytes(gzip.compress((folder / ANNOTATIONS).read_bytes()))
    (folder / ANNOTATIONS).unlink()
    assert captaincook4d.records(folder) == [first, second, third]
    assert captaincook4d.records(packed) == [first, second, third]


def test_who_follows_what(folder):
    known, by_name = captaincook4d.records(folder), captaincook4d.recipes(folder)
    found = [captaincook4d.followed([record], by_name) for record in known]
    assert [(f.listed, f.graph, f.repeat) for f in found] == [(1, 1, 1), (0, 0, 0), (1, 1, 0)]
    both = captaincook4d.followed(known, by_name)
    assert str(both) == "3 recordings: 2 follow the recipe as a list, 2 its task graph, 1 repeat a step"


def test_features_make_a_data_set(folder):
    (folder / "features").mkdir()
    for name in ENTRIES:
        np.save(folder / "features" / f"{name}.npy", frames(10))
    data = captaincook4d.load(folder, folder / "features", embed, clip_seconds=1.0)
    assert data[0].labels.tolist() == [-1, 0, 0, -1, 1, 1, -1, 2, 2, -1]
    np.save(folder / "steps.npy", frames(5))
    by_row = captaincook4d.load(folder, folder / "features", folder / "steps.npy", clip_seconds=1.0)
    np.testing.assert_array_equal(by_row[2].steps, frames(5)[3:])


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        (ANNOTATIONS, "{", "is not JSON"),
        (ANNOTATIONS, "[]", "an object of recordings: it holds a list"),
        (ANNOTATIONS, {"9_9": recording("9_9", "Soup")}, "recording 9_9: there is no task graph for 'Soup'"),
        (ANNOTATIONS, {"9_9": {"activity_name": "jam"}}, "recording 9_9: no 'steps'"),
        (ANNOTATIONS, {"9_9": None}, "recording 9_9"),
        (ANNOTATIONS, {"9_9": recording("9_9", "jam", ("Fill-Fill", 5.0, 3.0))}, r"lasts from 5\.0 to 3\.0 s"),
        (ANNOTATIONS, {"9_9": recording("9_9", "jam", ("Fill-Fill", "soon", 3.0))}, "could not convert"),
        ("task_graphs/jam.json", {"steps": {"0": "START"}, "edges": []}, "no steps except START and END"),
        ("task_graphs/jam.json", {"steps": JAM["steps"]}, "no 'edges'"),
        ("task_graphs/jam.json", {**JAM, "edges": [[0, 9]]}, r"the edge \[0, 9\] has a step that is not listed"),
        ("task_graphs/jam.json", {**JAM, "edges": [[0, 2], [2, 0]]}, "the order has a cycle"),
    ],
)  # fmt: skip
def test_damaged_files_say_what_is_wrong(folder, file, content, said):
    (folder / file).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(ValueError, match=said) as raised:
        captaincook4d.records(folder)
    assert Path(file).name in str(raised.value)


def test_missing_files_are_named(tmp_path, folder):
    with pytest.raises(FileNotFoundError, match=ANNOTATIONS):
        captaincook4d.records(tmp_path / "task_graphs")
    for path in (folder / "task_graphs").iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError, match="no task graphs of CaptainCook4D"):
        captaincook4d.records(folder)


def test_the_counts_of_the_real_recordings():
    place = Path(os.environ.get("DROPDTW_DATA", "")) / "captaincook4d"
    if "DROPDTW_DATA" not in os.environ or not place.is_dir():
        pytest.skip("DROPDTW_DATA has no folder captaincook4d")
    known, by_name = captaincook4d.records(place), captaincook4d.recipes(place)
    found = captaincook4d.followed(known, by_name)
    counts = {293: (1, 177, 39), 384: (9, 237, 51)}  # 18 of the recipes, and all 24
    assert (found.listed, found.graph, found.repeat) == counts[found.recordings]
    assert found.recordings == len({record.name for record in known})
