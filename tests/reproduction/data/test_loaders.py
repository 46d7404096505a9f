"""Loaders of step-localization data sets: tiny files in each published layout, and broken ones."""

import gzip
import json
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from loader_cases import embed, frames
from reproduction.data import coin, crosstask, youcook2
from reproduction.data.features import Features, StepEmbeddings
from reproduction.data.records import build, in_subset, statistics
from reproduction.data.steps import check, collate

# COIN


def coin_entry(subset="training", steps=(("3", 1.0, 4.0, "fry"), ("1", 6.0, 9.0, "cut"))):
    return {
        "recipe_type": 4,
        "class": "MakeChips",
        "subset": subset,
        "duration": 12.0,
        "start": 0.5,
        "end": 11,
        "video_url": "",
        "annotation": [{"id": i, "segment": [a, b], "label": text} for i, a, b, text in steps],
    }


@pytest.fixture
def coin_folder(tmp_path):
    later_first = coin_entry("testing", (("2", 6.0, 9.0, "b"), ("2", 0.0, 3.0, "b")))
    database = {"aaa": coin_entry(), "bbb": later_first, "ccc": coin_entry()}
    (tmp_path / "COIN.json").write_text(json.dumps({"database": database}))
    (tmp_path / "features").mkdir()
    for name in ("aaa", "bbb"):
        np.save(tmp_path / "features" / f"{name}.npy", frames(12))
    np.save(tmp_path / "steps.npy", frames(778, 5))
    return tmp_path


def test_coin(coin_folder):
    records = coin.records(coin_folder)
    assert [r.name for r in records] == ["aaa", "bbb", "ccc"]
    first, second, _ = records
    assert (first.task, first.subset, first.duration) == ("MakeChips", "train", 12.0)
    assert first.step_ids == (3, 1)
    assert first.step_texts == ("fry", "cut")
    assert first.segments == ((0, 1.0, 4.0), (1, 6.0, 9.0))
    assert second.step_ids == (2, 2)  # repeated, and in order of time
    assert second.segments == ((0, 0.0, 3.0), (1, 6.0, 9.0))
    data = coin.load(coin_folder, coin_folder / "features", coin_folder / "steps.npy", clip_seconds=1.0)
    assert data.names == ("aaa", "bbb", "ccc")
    assert data[0].labels.tolist() == [-1, 3, 3, 3, -1, -1, 1, 1, 1, -1, -1, -1]
    np.testing.assert_array_equal(data[0].steps, np.load(coin_folder / "steps.npy")[[2, 0]])  # ids count from 1
    said = []
    assert len(data.usable(report=said.append)) == 2
    assert "left out ccc" in said[0]
    assert "has no ccc.npy" in said[0]
    test = coin.load(coin_folder, Features(coin_folder / "features"), embed, subset="test")
    assert test.names == ("bbb",)
    assert test[0].steps.shape == (2, 4)
    assert collate([test[0]]).step_ids.tolist() == [[2, 2]]
    assert statistics(in_subset(records, "train")).background == pytest.approx(0.5)
    assert str(statistics(records)) == (
        "3 videos of 1 tasks, 6 segments of 3 steps; steps per video 2 to 2, mean 2.00; background 50.0%"
    )
    with pytest.raises(ValueError, match="no video is in subset 'val'; the subsets are 'test', 'train'"):
        in_subset(records, "val")
    overlapping = replace(first, segments=((0, 1.0, 4.0), (1, 2.0, 3.0), (1, 3.0, 7.0)))
    assert statistics([overlapping]).background == pytest.approx(0.5)  # 1 to 7 of 12 s, counted once
    with pytest.raises(ValueError, match="there are no records to count"):
        statistics([])


def test_coin_in_lists(tmp_path):
    for name, video in (("coin_train_70.json.gz", "aaa"), ("coin_test_30.json.gz", "bbb")):
        (tmp_path / name).write_bytes(gzip.compress(json.dumps([{video: coin_entry()}]).encode()))
    assert {r.name for r in coin.records(tmp_path)} == {"aaa", "bbb"}
    assert [r.name for r in coin.records(tmp_path / "coin_train_70.json.gz")] == ["aaa"]
    (tmp_path / "coin_again.json").write_text(json.dumps([{"aaa": coin_entry()}]))
    with pytest.raises(ValueError, match="repeats video aaa; keep one copy"):
        coin.records(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"database": {"a": ', r"COIN\.json is not JSON .*; download it again"),
        ('{"videos": {}}', "not in a published layout: give an object with a 'database'"),
        ("[1, 2]", "not in a published layout"),
        ('{"database": {"a": {"class": "x"}}}', "not in the published layout: video a: no 'subset'"),
        (json.dumps({"database": {"a": coin_entry(steps=(("x", 0, 1, ""),))}}), "video a: invalid literal"),
        (json.dumps({"database": {"a": 3}}), "video a: "),
    ],
)
def test_wrong_coin(tmp_path, content, message):
    (tmp_path / "COIN.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        coin.records(tmp_path)


def test_no_coin(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no COIN annotations: looked for COIN\.json"):
        coin.records(tmp_path)
    (tmp_path / "coin.json.gz").write_bytes(gzip.compress(b"[" * 1000)[:-15])
    with pytest.raises(ValueError, match=r"coin\.json\.gz is not JSON"):
        coin.records(tmp_path)


def test_step_embeddings_have_to_cover_the_videos(coin_folder):
    with pytest.raises(ValueError, match="has 1 steps, but lacks 2 that the videos have, such as 2; use"):
        build(coin.records(coin_folder)[1:], coin_folder / "features", StepEmbeddings([1], frames(1)))


# YouCook2


def test_youcook2(tmp_path):
    def entry(subset, *spans):
        told = [{"segment": list(s), "id": k, "sentence": f"do {s[0]}"} for k, s in enumerate(spans)]
        return {"duration": 20.5, "subset": subset, "recipe_type": "113", "annotations": told, "video_url": ""}

    database = {"aaa": entry("training", (1, 4), (6, 12)), "bbb": entry("validation", (0, 20))}
    (tmp_path / youcook2.FILE).write_text(json.dumps({"database": database}))
    records = youcook2.records(tmp_path)
    assert [(r.name, r.task, r.subset, r.step_ids) for r in records] == [
        ("aaa", "113", "train", (0, 1)),
        ("bbb", "113", "val", (2,)),  # ids continue: each sentence is its own step
    ]
    np.save(tmp_path / "bbb.npy", frames(6))
    np.save(tmp_path / "steps.npz", frames(3))
    (tmp_path / "steps.npz.npy").rename(tmp_path / "E.npy")
    video = youcook2.load(tmp_path, tmp_path, tmp_path / "E.npy", subset="val")[0]
    assert video.clip_seconds == 3.2
    assert video.labels.tolist() == [2] * 6
    assert video.step_texts == ("do 0",)
    np.testing.assert_array_equal(video.steps, frames(3)[2:])
    for content, message in (('{"database": {"a": {}}}', "video a: no 'recipe_type'"), ("[]", "with a 'database'")):
        (tmp_path / youcook2.FILE).write_text(content)
        with pytest.raises(ValueError, match=message):
            youcook2.records(tmp_path)


# CrossTask

RELEASE = {
    "tasks_primary.txt": "23521\nMake Jello\nhttp://a\n3\npour water,add, stir mixture\n\n105\nCut\nhttp://b\n1\ncut\n",
    "tasks_related.txt": "77\nMake Gummy\nhttp://c\n2\nboil,cool\n\n",
    "videos.csv": "23521,aaa,http\n23521,b_b,http\n105,aaa,http\n77,ddd,http\n",
    "videos_val.csv": "23521,b_b,http\n",
    "annotations/23521_aaa.csv": "3,5.0,8.5\n1,0.5,2.25\n3,9.0,11.0\n",
    "annotations/23521_b_b.csv": "2,1,2\n",
    "annotations/105_aaa.csv": "1,0.0,30.0\n",
}


def release(folder, kind, **changes):
    files = {**RELEASE, **changes}
    if kind == "folder":
        for name, content in files.items():
            (folder / name).parent.mkdir(exist_ok=True, parents=True)
            (folder / name).write_text(content)
    elif kind == "zip":
        with zipfile.ZipFile(folder / "crosstask_release.zip", "w") as archive:
            archive.writestr("crosstask_release/annotations/", "")
            for name, content in files.items():
                archive.writestr(f"crosstask_release/{name}", content)
    else:
        unpacked = folder.parent / "unpacked"
        release(unpacked, "folder", **changes)
        with tarfile.open(folder / "crosstask_release.tar.gz", "w:gz") as archive:
            for name in sorted(path.name for path in unpacked.iterdir()):
                archive.add(unpacked / name, f"./{name}")
    return folder


@pytest.mark.parametrize("kind", ["folder", "zip", "tar"])
def test_crosstask(tmp_path, kind):
    (tmp_path / "ct").mkdir()
    folder = release(tmp_path / "ct", kind)
    before = sorted(folder.rglob("*"))
    tasks = crosstask.tasks(folder)
    assert [(t.number, t.title, t.first_id, t.primary) for t in tasks.values()] == [
        ("23521", "Make Jello", 0, True),
        ("105", "Cut", 3, True),
        ("77", "Make Gummy", 4, False),
    ]
    records = crosstask.records(folder)
    assert [(r.name, r.video, r.task, r.subset) for r in records] == [
        ("23521_aaa", "aaa", "Make Jello", "train"),
        ("23521_b_b", "b_b", "Make Jello", "val"),
        ("105_aaa", "aaa", "Cut", "train"),  # one video may belong to two tasks
    ]
    assert records[0].step_ids == (0, 2, 2)
    assert records[0].step_texts == ("pour water", "stir mixture", "stir mixture")
    assert records[0].segments == ((0, 0.5, 2.25), (1, 5.0, 8.5), (2, 9.0, 11.0))
    assert records[2].step_ids == (3,)
    canonical = crosstask.records(folder, order="task", unannotated=True)
    assert len(canonical) == 4
    assert canonical[0].step_ids == (0, 1, 2)
    assert canonical[0].segments == ((0, 0.5, 2.25), (2, 5.0, 8.5), (2, 9.0, 11.0))
    assert (canonical[3].step_texts, canonical[3].segments) == (("boil", "cool"), None)
    assert sorted(folder.rglob("*")) == before  # nothing was unpacked to disk
    assert statistics(records).background is None
    features = tmp_path / "features"
    features.mkdir()
    np.save(features / "aaa.npy", frames(4))
    for count in (4, 6):  # only the primary tasks, or all
        np.save(tmp_path / "E.npy", frames(count, 5))
        data = crosstask.load(folder, features, tmp_path / "E.npy", subset="train")
        assert data.names == ("23521_aaa", "105_aaa")
        assert data[0].labels.tolist() == [0, -1, 2, -1]  # centers 1.6, 4.8, 8.0, 11.2
        np.testing.assert_array_equal(data[1].steps, np.load(tmp_path / "E.npy")[[3]])
    assert check(data[1]) == ["the segment of step 0 (0 to 30 s) extends beyond the video, 0 to 12.8 s"]
    np.save(tmp_path / "E.npy", frames(5))
    with pytest.raises(ValueError, match="but there are 4 or 6 steps; give one row per step"):
        crosstask.load(folder, features, tmp_path / "E.npy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"annotations/105_aaa.csv": "1;0;30"},
            r"105_aaa\.csv is not in the published layout: each line should be step,start",
        ),
        ({"annotations/105_aaa.csv": "2,0,30"}, "step 2 of task Cut, which has 1 steps; download it again"),
        ({"tasks_primary.txt": "1\nA\nhttp\n2\nboil\n"}, r"tasks_primary\.txt .* task 1: 1 steps, declared as '2'"),
        ({"tasks_related.txt": "1\nA\nhttp\n"}, r"tasks_related\.txt .* task 1: 0 steps, declared as ''"),
        ({"videos.csv": "8,aaa,http\n"}, r"videos\.csv .* video aaa: task 8 is in neither task list"),
        ({"videos_val.csv": "8\n"}, r"videos_val\.csv .* line 1: each line should be task,video,address"),
    ],
)
def test_wrong_crosstask(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        crosstask.records(release(tmp_path, "folder", **changes))


def test_no_crosstask(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither tasks_primary\.txt nor crosstask_release\.tar\.gz"):
        crosstask.records(tmp_path)
    (tmp_path / "crosstask_release.tar.gz").write_bytes(b"\x1f\x8b junk")
    with pytest.raises(ValueError, match=r"tar\.gz cannot be unpacked .*; download it again"):
        crosstask.records(tmp_path)
    with tarfile.open(tmp_path / "crosstask_release.tar.gz", "w:gz"):
        pass
    with pytest.raises(ValueError, match=r"has 0 files tasks_primary\.txt, not one; give the CrossTask release"):
        crosstask.records(tmp_path)
    release(tmp_path, "folder")
    (tmp_path / "videos_val.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no videos_val\.csv; download the CrossTask release again"):
        crosstask.records(tmp_path)
    with pytest.raises(ValueError, match="order is 'wiki'; choose 'video' or 'task'"):
        crosstask.records(tmp_path, order="wiki")
