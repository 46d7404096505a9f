"""Loaders of step-localization data sets: tiny files of each published layout, and broken ones."""

import gzip
import json
import sys
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest

from dropdtw.data import coin, crosstask, text, transcripts, utkinect, youcook2
from dropdtw.data.features import Features, StepEmbeddings, step_embeddings
from dropdtw.data.records import build, in_subset, statistics
from dropdtw.data.steps import BrokenVideoError, check, collate

RNG = np.random.default_rng(0)


def embed(texts):
    """Stands in for a sentence model: as many numbers as the text has letters of a few kinds."""
    return np.array([[1.0, len(t), t.count("a"), t.count("e")] for t in texts], np.float32).reshape(-1, 4)


def frames(N, d=6, seed=0):
    return np.random.default_rng(seed).normal(size=(N, d)).astype(np.float32)


# --- Features -----------------------------------------------------------------------------------------------------


def write_h5(path, **arrays):
    h5py = pytest.importorskip("h5py", reason="HDF5 files need h5py")
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def test_features_of_a_folder_in_every_format(tmp_path):
    X = frames(5)
    np.save(tmp_path / "-a_b.npy", X)
    np.save(tmp_path / "half.npy", X[:, None].astype(np.float16))  # (N, 1, d)
    np.savez(tmp_path / "only.npz", whatever=X)
    np.savez(tmp_path / "usual.npz", labels=np.arange(5), features=X)
    (tmp_path / "deeper").mkdir()
    np.save(tmp_path / "deeper" / "below.npy", X.astype(np.float64))
    (tmp_path / "notes.txt").write_text("not a feature")
    write_h5(tmp_path / "packed.h5", features=X, times=np.arange(5))
    features = Features(tmp_path)
    assert sorted(features) == ["-a_b", "below", "half", "only", "packed", "usual"]
    assert len(features) == 6
    assert "half" in features
    assert "notes" not in features
    for name in features:
        assert features[name].dtype == np.float32
        np.testing.assert_allclose(features[name], X, atol=2e-3)
    np.savez(tmp_path / "usual.npz", labels=np.arange(5), features=X, other=2 * X)
    np.testing.assert_allclose(Features(tmp_path, key="other")["usual"], 2 * X)
    with pytest.raises(BrokenVideoError, match=r"usual\.npz holds labels, features, other, not 'x'; say key="):
        Features(tmp_path, key="x")["usual"]


def test_features_of_one_hdf5_file(tmp_path):
    X = frames(3)
    write_h5(
        tmp_path / "all.h5", one=X, **{"two/features": X + 1, "two/labels": np.arange(3), "many/a": X, "many/b": X}
    )
    features = Features(tmp_path / "all.h5")
    assert sorted(features) == ["many", "one", "two"]
    np.testing.assert_array_equal(features["one"], X)
    np.testing.assert_array_equal(features["two"], X + 1)
    with pytest.raises(BrokenVideoError, match=r"all\.h5:many holds a, b, none of the usual names; say key="):
        features["many"]
    with pytest.raises(BrokenVideoError, match=r"all\.h5 has no dataset three; extract"):
        features["three"]


def test_broken_features_are_named_with_a_fix(tmp_path):
    X = frames(50)
    np.save(tmp_path / "cut.npy", X)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "cut.npy").read_bytes()[:300])
    (tmp_path / "empty.npy").write_bytes(b"")
    (tmp_path / "junk.npy").write_bytes(b"<html>404</html>")
    np.save(tmp_path / "pickled.npy", np.array([{"a": 1}], object), allow_pickle=True)
    np.save(tmp_path / "words.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "flat.npy", X[0])
    np.save(tmp_path / "none.npy", X[:0])
    holes = X.copy()
    holes[[3, 7], 2] = np.nan
    np.save(tmp_path / "holes.npy", holes)
    np.savez(tmp_path / "cutzip.npz", X)
    (tmp_path / "cutzip.npz").write_bytes((tmp_path / "cutzip.npz").read_bytes()[:200])
    np.save(tmp_path / "double.npy", X)
    np.savez(tmp_path / "double.npz", X)
    features = Features(tmp_path)
    for name, message in {
        "cut": r"cut\.npy cannot be read .*; get it anew, or delete it and skip the video",
        "empty": r"empty\.npy cannot be read",
        "junk": r"junk\.npy holds Python objects or is no NumPy file; write it anew",
        "pickled": r"pickled\.npy holds Python objects or is no NumPy file; write it anew as plain numbers",
        "words": r"words\.npy holds <U1, not numbers; write the features as float32",
        "flat": r"flat\.npy has shape \(6,\); give \(length, d\)",
        "none": r"none\.npy has shape \(0, 6\); give \(length, d\), with at least one row",
        "holes": r"holes\.npy has NaN or infinity in 2 of 50 rows, first in row 3; extract its features anew",
        "cutzip": r"cutzip\.npz cannot be read",
        "double": r"video double has 2 files, .*double\.npy and .*double\.npz; keep one",
        "missing": r"has no missing\.npy, \.npz or \.h5; extract the features of this video, or skip it",
        "../cut": r"has no \.\./cut\.npy",
    }.items():
        with pytest.raises(BrokenVideoError, match=message):
            features[name]
    with pytest.raises(FileNotFoundError, match=r"there is no .*nowhere; name a folder of features"):
        Features(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"cut\.npy is neither a folder nor an \.h5 file"):
        Features(tmp_path / "cut.npy")


def test_broken_hdf5_and_missing_h5py(tmp_path, monkeypatch):
    pytest.importorskip("h5py", reason="HDF5 files need h5py")
    (tmp_path / "bad.h5").write_bytes(b"not HDF5 at all")
    with pytest.raises(BrokenVideoError, match=r"bad\.h5 cannot be read"):
        Features(tmp_path)["bad"]
    with pytest.raises(BrokenVideoError, match=r"bad\.h5 cannot be read"):
        Features(tmp_path / "bad.h5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=r"bad\.h5 is an HDF5 file, which needs h5py: pip install h5py"):
        Features(tmp_path)["bad"]


def test_step_embeddings_in_every_format(tmp_path):
    E = frames(3)
    np.save(tmp_path / "a.npy", E[:, None].astype(np.float16))
    np.savez(
        tmp_path / "b.npz", step_id=[30, 10, 20], embedding=E[[2, 0, 1]], description=["c", "a", "b"], cls=[0, 0, 0]
    )
    np.savez(tmp_path / "c.npz", E)
    write_h5(tmp_path / "d.h5", step_id=[10, 20, 30], embedding=E)
    for name in "abcd":
        found = step_embeddings(next(tmp_path.glob(f"{name}.*")), [10, 20, 30])
        np.testing.assert_allclose(found.of([20, 30, 10, 20]), E[[1, 2, 0, 1]], atol=2e-3)
        assert set(found) == {10, 20, 30}
        assert found.of([]).shape == (0, 6)
    assert list(step_embeddings(tmp_path / "a.npy", [1, 2], [5, 6, 7])) == [5, 6, 7]
    write_h5(tmp_path / "e.h5", steps=E)  # no ids in it
    assert list(step_embeddings(tmp_path / "e.h5", [5, 6, 7])) == [5, 6, 7]
    with pytest.raises(KeyError, match=r"a\.npy has no step 4; it has 3"):
        step_embeddings(tmp_path / "a.npy", [1, 2, 3])[4]


def test_wrong_step_embeddings(tmp_path):
    np.save(tmp_path / "a.npy", frames(3))
    np.savez(tmp_path / "twice.npz", step_id=[1, 1, 2], embedding=frames(3))
    np.savez(tmp_path / "names.npz", step_id=["a", "b", "c"], embedding=frames(3))
    np.save(tmp_path / "pickled.npy", np.array([{}], object), allow_pickle=True)
    (tmp_path / "steps.csv").write_text("1,2")
    for name, message in {
        "a.npy": r"has shape \(3, 6\), but there are 2 steps; give one row per step",
        "twice.npz": "has 3 rows for 3 step ids, 2 of them different",
        "names.npz": r"step_id in .* is <U1 of shape \(3,\); give whole numbers",
        "pickled.npy": "holds Python objects",
        "steps.csv": r"ends in '\.csv'; give \.npy, \.npz",
    }.items():
        with pytest.raises(ValueError, match=message):
            step_embeddings(tmp_path / name, [1, 2])
    with pytest.raises(FileNotFoundError, match="name the file with the step embeddings"):
        step_embeddings(tmp_path / "none.npy", [1])


# --- COIN ---------------------------------------------------------------------------------------------------------


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
    assert second.step_ids == (2, 2)  # once more, and in order of time
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
    with pytest.raises(ValueError, match="no video is in subset 'val'; there are 'test', 'train'"):
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
    with pytest.raises(ValueError, match="has video aaa a second time; keep one copy"):
        coin.records(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"database": {"a": ', r"COIN\.json is not JSON .*; get it anew"),
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
    with pytest.raises(ValueError, match="has 1 steps, but not 2 that the videos have, such as 2; use"):
        build(coin.records(coin_folder)[1:], coin_folder / "features", StepEmbeddings([1], frames(1)))


# --- YouCook2 -----------------------------------------------------------------------------------------------------


def test_youcook2(tmp_path):
    def entry(subset, *spans):
        told = [{"segment": list(s), "id": k, "sentence": f"do {s[0]}"} for k, s in enumerate(spans)]
        return {"duration": 20.5, "subset": subset, "recipe_type": "113", "annotations": told, "video_url": ""}

    database = {"aaa": entry("training", (1, 4), (6, 12)), "bbb": entry("validation", (0, 20))}
    (tmp_path / youcook2.FILE).write_text(json.dumps({"database": database}))
    records = youcook2.records(tmp_path)
    assert [(r.name, r.task, r.subset, r.step_ids) for r in records] == [
        ("aaa", "113", "train", (0, 1)),
        ("bbb", "113", "val", (2,)),  # ids run on: each sentence is a step of its own
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


# --- CrossTask ----------------------------------------------------------------------------------------------------

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
    for count in (4, 6):  # the primary tasks alone, or all
        np.save(tmp_path / "E.npy", frames(count, 5))
        data = crosstask.load(folder, features, tmp_path / "E.npy", subset="train")
        assert data.names == ("23521_aaa", "105_aaa")
        assert data[0].labels.tolist() == [0, -1, 2, -1]  # centres 1.6, 4.8, 8.0, 11.2
        np.testing.assert_array_equal(data[1].steps, np.load(tmp_path / "E.npy")[[3]])
    assert check(data[1]) == ["the segment of step 0 (0 to 30 s) reaches beyond the video, 0 to 12.8 s"]
    np.save(tmp_path / "E.npy", frames(5))
    with pytest.raises(ValueError, match="but there are 4 or 6 steps; give one row per step"):
        crosstask.load(folder, features, tmp_path / "E.npy")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"annotations/105_aaa.csv": "1;0;30"},
            r"105_aaa\.csv is not in the published layout: each line is step,start",
        ),
        ({"annotations/105_aaa.csv": "2,0,30"}, "step 2 of task Cut, which has 1; get it anew"),
        ({"tasks_primary.txt": "1\nA\nhttp\n2\nboil\n"}, r"tasks_primary\.txt .* task 1: 1 steps where '2' are said"),
        ({"tasks_related.txt": "1\nA\nhttp\n"}, r"tasks_related\.txt .* task 1: 0 steps where '' are said"),
        ({"videos.csv": "8,aaa,http\n"}, r"videos\.csv .* video aaa: task 8 is in no task list"),
        ({"videos_val.csv": "8\n"}, r"videos_val\.csv .* line 1: each line is task,video,address"),
    ],
)
def test_wrong_crosstask(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        crosstask.records(release(tmp_path, "folder", **changes))


def test_no_crosstask(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither tasks_primary\.txt nor crosstask_release\.tar\.gz"):
        crosstask.records(tmp_path)
    (tmp_path / "crosstask_release.tar.gz").write_bytes(b"\x1f\x8b junk")
    with pytest.raises(ValueError, match=r"tar\.gz cannot be unpacked .*; get it anew"):
        crosstask.records(tmp_path)
    with tarfile.open(tmp_path / "crosstask_release.tar.gz", "w:gz"):
        pass
    with pytest.raises(ValueError, match="it is not the CrossTask release"):
        crosstask.records(tmp_path)
    release(tmp_path, "folder")
    (tmp_path / "videos_val.csv").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no videos_val\.csv; get the CrossTask release anew"):
        crosstask.records(tmp_path)
    with pytest.raises(ValueError, match="order is 'wiki'; choose 'video' or 'task'"):
        crosstask.records(tmp_path, order="wiki")


# --- Transcripts --------------------------------------------------------------------------------------------------


def talk(**changes):
    told = {
        "title": "soup",
        "times": [1.0, 3.0, 4.0, 60.0, 63.0],
        "sentences": ["hello", "cut a leek", "cut it well", "fry", "bye"],
        "key_steps": [None, "cut", "cut", "fry", None],
        "steps": [{"segment": [50, 70], "sentence": "fry it"}, {"segment": [2, 12], "sentence": "cut a leek"}],
    }
    return {**told, **changes}


def test_transcripts(tmp_path):
    talks = {"aaa": talk(), "bbb": talk(key_steps=[None] * 5, steps=None), "ccc": talk(title="stew")}
    (tmp_path / f"{transcripts.FILE}.gz").write_bytes(gzip.compress(json.dumps(talks).encode()))
    data = transcripts.load(tmp_path, embed=embed)
    assert data.names == ("aaa", "ccc")  # bbb has no step
    assert data.tasks == ("soup", "stew")
    v = data[0]
    np.testing.assert_array_equal(v.times, [[1, 3], [3, 4], [4, 24], [60, 63], [63, 65.5]])  # 24: a pause follows
    np.testing.assert_array_equal(v.frames, embed(talks["aaa"]["sentences"]))
    np.testing.assert_array_equal(v.steps, embed(["cut", "fry"]))
    assert v.rows.tolist() == [-1, 0, 0, 1, -1]
    assert data[1].step_ids.tolist() == v.step_ids.tolist()  # the same texts
    assert check(v) == []
    recipe = transcripts.load(tmp_path, steps="recipe", embed=embed)[0]
    assert recipe.step_texts == ("cut a leek", "fry it")
    assert recipe.segments == ((0, 2.0, 12.0), (1, 50.0, 70.0))
    assert recipe.rows.tolist() == [0, 0, -1, 1, 1]  # the third sentence is centred at 14 s
    everything = transcripts.load(tmp_path, embed=embed, empty=True)
    assert everything[1].steps.shape == (0, 4)
    assert check(everything[1]) == ["no steps"]
    with pytest.raises(ValueError, match="steps is 'all'; choose 'key' or 'recipe'"):
        transcripts.load(tmp_path, steps="all")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([talk()], "not in the published layout: give an object"),
        ({"a": talk(times=[1.0])}, "video a: "),
        ({"a": talk(times=[1.0, 3.0, 2.0, 4.0, 5.0])}, "seconds that do not run backwards"),
        ({"a": talk(sentences=["x"])}, "as many times and key_steps as sentences"),
        ({"a": {}}, "video a: no 'sentences'"),
    ],
)
def test_wrong_transcripts(tmp_path, content, message):
    (tmp_path / transcripts.FILE).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=message):
        transcripts.load(tmp_path, embed=embed)


def test_a_transcript_of_one_sentence(tmp_path):
    one = talk(times=[5.0], sentences=["cut"], key_steps=["cut"])
    (tmp_path / transcripts.FILE).write_text(json.dumps({"a": one, "b": talk(times=[], sentences=[], key_steps=[])}))
    data = transcripts.load(tmp_path, embed=embed, empty=True)
    assert data[0].labels.tolist() == [0]
    assert data[0].times.tolist() == [[5, 6]]
    assert check(data[1]) == ["no frames", "no steps"]


# --- UTKinect -----------------------------------------------------------------------------------------------------


def skeletons(n, seed=0):
    rest = np.random.default_rng(99).normal(size=(20, 3))
    return rest + 0.01 * np.random.default_rng(seed).normal(size=(n, 20, 3))


def utkinect_texts(folder, packed_too=False):
    (folder / "joints").mkdir()
    numbers = np.array([10, 12, 14, 20, 22, 24, 24, 30])
    for name in ("s01_e01", "s01_e02", "s02_e01"):
        table = np.column_stack([numbers, skeletons(8).reshape(8, -1)])
        np.savetxt(folder / "joints" / f"joints_{name}.txt", table)
    spans = "walk: 10 15\nsitDown: 20 25\npull: 30 31\npush: 26 30\n"
    (folder / "actionLabel.txt").write_text(
        f"s01_e01\n{spans}s01_e02 \n{spans}carry: NaN NaN\ns02_e01\nwalk: 10 31\nsitDown: 20 24\n"
    )
    return folder


def test_utkinect_as_published(tmp_path):
    found = utkinect.recordings(utkinect_texts(tmp_path))
    assert [r.name for r in found] == ["s01_e01", "s01_e02", "s02_e01"]
    assert [r.subject for r in found] == ["s01", "s01", "s02"]
    assert found[1].segments == {"walk": (10, 15), "sitDown": (20, 25), "pull": (30, 31), "push": (26, 30)}
    assert found[0].frames.tolist() == [10, 12, 14, 20, 22, 24, 30]  # 24 came twice
    np.testing.assert_allclose(found[0].joints[5], skeletons(8)[5], rtol=1e-6)
    np.testing.assert_allclose(found[0].joints[6], skeletons(8)[7], rtol=1e-6)
    data = utkinect.load(tmp_path, clip=3, embed=embed)
    v = data[0]
    np.testing.assert_allclose(v.times * utkinect.FPS, [[10, 15], [20, 25], [30, 31]])
    assert v.step_texts == ("walk", "sit down", "push", "pull")  # in order of time
    np.testing.assert_array_equal(v.steps, embed(v.step_texts))
    assert v.labels.tolist() == [0, 1, 7]
    assert v.frames.shape == (3, 180)
    assert data[2].labels.tolist() == [0, 1, 0]  # what starts later wins
    parts = utkinect.leave_out(data, ["s02"])
    assert parts["train"].names == ("s01_e01", "s01_e02")
    assert parts["test"].names == ("s02_e01",)
    for subjects in ([], ["s01", "s02"], ["s09"]):
        with pytest.raises(ValueError, match="choose some, but not all, of s01, s02 to test on"):
            utkinect.leave_out(data, subjects)


def test_utkinect_in_one_file(tmp_path):
    utkinect_texts(tmp_path)
    plain = utkinect.recordings(tmp_path)
    spans = np.full((3, len(utkinect.STEPS), 2), -1)
    for r, recording in enumerate(plain):
        for step, span in recording.segments.items():
            spans[r, utkinect.STEPS.index(step)] = span
    content = {
        "recording": np.array([r.name for r in plain]),
        "length": np.array([len(r.frames) for r in plain]),
        "frame": np.concatenate([r.frames for r in plain]),
        "joints": np.concatenate([r.joints for r in plain]),
        "step_names": np.array(utkinect.STEPS),
        "segments": spans,
    }
    (tmp_path / "one").mkdir()
    np.savez(tmp_path / "one" / "utkinect.npz", **content)
    for a, b in zip(plain, utkinect.recordings(tmp_path / "one"), strict=True):
        assert (a.name, a.segments) == (b.name, b.segments)
        np.testing.assert_array_equal(a.joints, b.joints)
        np.testing.assert_array_equal(a.frames, b.frames)
    for change, message in (
        ({"length": np.array([7, 7, 6])}, "lengths sum to 20, with 21 frames"),
        ({"segments": spans[:, :4]}, r"segments have shape \(3, 4, 2\); \(3, 10, 2\) fits"),
        ({"joints": np.full_like(content["joints"], np.nan)}, "needs skeletons of finite numbers"),
        ({"step_names": np.array(["x" + s for s in utkinect.STEPS])}, "has a step 'x.*'; the steps are walk"),
    ):
        np.savez(tmp_path / "one" / "utkinect.npz", **{**content, **change})
        with pytest.raises(ValueError, match=message):
            utkinect.recordings(tmp_path / "one" / "utkinect.npz")
    np.savez(tmp_path / "one" / "utkinect.npz", recording=content["recording"])
    with pytest.raises(ValueError, match="not in the published layout"):
        utkinect.recordings(tmp_path / "one")
    (tmp_path / "one" / "utkinect.npz").write_bytes(b"PK\x03\x04 junk")
    with pytest.raises(ValueError, match="not in the published layout"):
        utkinect.recordings(tmp_path / "one")


def test_wrong_utkinect(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither actionLabel\.txt nor utkinect\.npz"):
        utkinect.load(tmp_path, embed=embed)
    utkinect_texts(tmp_path)
    path = tmp_path / "joints" / "joints_s01_e02.txt"
    path.write_text("1 2 3\n")
    with pytest.raises(ValueError, match=r"joints_s01_e02\.txt .* 3 numbers in a line; the frame and 20 × 3"):
        utkinect.recordings(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"joints_s01_e02\.txt is missing, which .*actionLabel\.txt names"):
        utkinect.recordings(tmp_path)
    (tmp_path / "actionLabel.txt").write_text("nothing here")
    with pytest.raises(ValueError, match=r"actionLabel\.txt is not in the published layout"):
        utkinect.recordings(tmp_path)


def test_skeletons_do_not_depend_on_place_and_size():
    recording = utkinect.Recording("s01_e01", np.arange(0, 40, 2), skeletons(20), {})
    moved = utkinect.Recording("s01_e01", np.arange(0, 40, 2), 1.7 * skeletons(20) + [3, -1, 2], {})
    a, b = (utkinect.clips(r, 4)[0] for r in (recording, moved))
    np.testing.assert_allclose(a, b, atol=1e-4)
    assert utkinect.clips(recording, 4, velocity=False)[0].shape == (5, 60)
    np.testing.assert_allclose(utkinect.clips(recording, 4, velocity=False)[0], a[:, :60])
    np.testing.assert_allclose(a[:, :3], 0, atol=1e-6)  # the hip is the origin
    back = np.linalg.norm(a.reshape(5, 60, 3)[:, utkinect.SHOULDERS] - 0, axis=1)
    np.testing.assert_allclose(back, 1, atol=0.1)


def test_velocity_sees_the_hip_move_in_the_room():
    still = np.repeat(skeletons(1), 6, axis=0)
    back = np.linalg.norm(still[0, utkinect.SHOULDERS] - still[0, utkinect.HIP])
    walking = still + np.arange(6)[:, None, None] * np.array([0.5 * back, 0, -0.25 * back])
    frames_, _ = utkinect.clips(utkinect.Recording("s01_e01", np.arange(6) * 3, walking, {}), 1)
    np.testing.assert_allclose(frames_[1:, 60:63], np.tile([5, 0, -2.5], (5, 1)), atol=1e-5)  # backs per second
    np.testing.assert_allclose(frames_[1:, 120:123], np.tile([5, 0, 2.5], (5, 1)), atol=1e-5)
    np.testing.assert_allclose(frames_[:, 63:120], 0, atol=1e-5)  # nothing moves as seen from the hip
    with pytest.raises(ValueError, match="clip is 0; give the number of skeletons"):
        utkinect.clips(utkinect.Recording("s", np.arange(6), walking, {}), 0)
    with pytest.raises(ValueError, match="has no skeletons of any size"):
        utkinect.clips(utkinect.Recording("s", np.arange(6), np.zeros((6, 20, 3)), {}), 2)


# --- Sentences ----------------------------------------------------------------------------------------------------


@pytest.fixture
def no_network(monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_sentence_embeddings_need_no_network(no_network):
    pytest.importorskip("wordllama", reason="sentence embeddings need wordllama")
    text._wordllama.cache_clear()
    E = text.embed(["cut the onions", "slice an onion", "change the tire", "  ", "cut the onions"])
    assert E.shape == (5, 256)
    assert E.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), [1, 1, 1, 0, 1], rtol=1e-5)
    np.testing.assert_array_equal(E[0], E[4])
    assert E[0] @ E[1] > 0.3 + E[0] @ E[2]
    assert text.embed([]).shape == (0, 256)
    np.testing.assert_allclose(text.embed(["cut the onions"])[0], E[0], atol=1e-6)  # padding has no say


def test_sentence_embedding_errors(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="give a list of strings"):
        text.embed("one text")
    with pytest.raises(ValueError, match="give a list of strings"):
        text.embed([1, 2])
    with pytest.raises(FileNotFoundError, match="model is 'all-MiniLM-L6-v2', which is no folder; give 'wordllama'"):
        text.embed(["a"], model="all-MiniLM-L6-v2")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match="needs sentence-transformers: pip install sentence-transformers"):
        text.embed(["a"], model=tmp_path)
    text._wordllama.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"need wordllama: pip install 'dropdtw\[text\]'"):
        text.embed(["a"])


def test_downloads_are_refused(tmp_path, monkeypatch):
    asked = {}

    class Model:
        def embed(self, texts):
            return np.ones((len(texts), 256))

    class WordLlama:
        @staticmethod
        def load(**options):
            asked.update(options)
            return Model()

    module = type(sys)("wordllama")
    module.__file__ = str(tmp_path / "__init__.py")
    module.WordLlama = WordLlama
    monkeypatch.setitem(sys.modules, "wordllama", module)
    text._wordllama.cache_clear()
    text.embed(["a"])
    text._wordllama.cache_clear()
    assert asked == {"cache_dir": tmp_path, "disable_download": True}


def test_a_local_sentence_transformer_is_used(tmp_path, monkeypatch):
    class Model:
        def __init__(self, folder, *, local_files_only):
            assert local_files_only
            assert folder == str(tmp_path)

        def encode(self, texts, show_progress_bar):
            return np.array([[3.0, 4.0] for _ in texts])

    module = type(sys)("sentence_transformers")
    module.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    text._transformer.cache_clear()
    np.testing.assert_allclose(text.embed(["a", "b"], model=tmp_path), [[0.6, 0.8]] * 2)
    text._transformer.cache_clear()
