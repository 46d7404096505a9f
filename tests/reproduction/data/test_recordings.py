"""Transcripts and skeletons as step videos, and the embeddings of sentences."""

import gzip
import json
import sys

import numpy as np
import pytest

from array_cases import claiming, saved, zipped
from dropdtw.text import embeddings
from loader_cases import embed
from reproduction.data import transcripts, utkinect
from reproduction.data.steps import check

# Transcripts


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
    assert recipe.rows.tolist() == [0, 0, -1, 1, 1]  # the third sentence is centered at 14 s
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
        ({"a": talk(times=[1.0, 3.0, 2.0, 4.0, 5.0])}, "its times must be seconds that do not decrease"),
        ({"a": talk(sentences=["x"])}, "it needs as many times and key_steps as sentences"),
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


# UTKinect


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
    assert found[0].frames.tolist() == [10, 12, 14, 20, 22, 24, 30]  # 24 occurs twice
    np.testing.assert_allclose(found[0].joints[5], skeletons(8)[5], rtol=1e-6)
    np.testing.assert_allclose(found[0].joints[6], skeletons(8)[7], rtol=1e-6)
    data = utkinect.load(tmp_path, clip=3, embed=embed)
    v = data[0]
    np.testing.assert_allclose(v.times * utkinect.FPS, [[10, 15], [20, 25], [30, 31]])
    assert v.step_texts == ("walk", "sit down", "push", "pull")  # in order of time
    np.testing.assert_array_equal(v.steps, embed(v.step_texts))
    assert v.labels.tolist() == [0, 1, 7]
    assert v.frames.shape == (3, 180)
    assert data[2].labels.tolist() == [0, 1, 0]  # the later start wins
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
        ({"segments": spans[:, :4]}, r"segments have shape \(3, 4, 2\); expected \(3, 10, 2\)"),
        ({"joints": np.full_like(content["joints"], np.nan)}, "needs skeletons of finite numbers"),
        ({"step_names": np.array(["x" + s for s in utkinect.STEPS])}, "has a step 'x.*'; the steps are walk"),
    ):
        np.savez(tmp_path / "one" / "utkinect.npz", **{**content, **change})
        with pytest.raises(ValueError, match=message):
            utkinect.recordings(tmp_path / "one" / "utkinect.npz")
    np.savez(tmp_path / "one" / "utkinect.npz", recording=content["recording"])
    with pytest.raises(ValueError, match="not in the published layout"):
        utkinect.recordings(tmp_path / "one")
    for broken, message in (
        (b"PK\x03\x04 junk", "it is damaged"),
        (zipped(joints=claiming((10**12, 20, 3))), r"its array 'joints' cannot be read: its header claims"),
        (
            zipped(joints=saved(np.save, content["joints"])[:300]),
            r"its array 'joints' cannot be read: its header claims",
        ),
        (saved(np.savez, joints=np.array([{}], object)), r"its array 'joints' cannot be read: it holds Python objects"),
    ):
        (tmp_path / "one" / "utkinect.npz").write_bytes(broken)
        with pytest.raises(
            ValueError, match=rf"utkinect\.npz is not an \.npz of plain arrays: {message}.*; make it again"
        ):
            utkinect.recordings(tmp_path / "one")


def test_wrong_utkinect(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"neither actionLabel\.txt nor utkinect\.npz"):
        utkinect.load(tmp_path, embed=embed)
    utkinect_texts(tmp_path)
    path = tmp_path / "joints" / "joints_s01_e02.txt"
    path.write_text("1 2 3\n")
    with pytest.raises(ValueError, match=r"joints_s01_e02\.txt .* 3 numbers in a line; expected the frame and 20 × 3"):
        utkinect.recordings(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"joints_s01_e02\.txt is missing, but .*actionLabel\.txt lists it"):
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
    np.testing.assert_allclose(frames_[:, 63:120], 0, atol=1e-5)  # nothing moves relative to the hip
    with pytest.raises(ValueError, match="clip is 0; give the number of skeletons"):
        utkinect.clips(utkinect.Recording("s", np.arange(6), walking, {}), 0)
    with pytest.raises(ValueError, match="has only skeletons of size 0; download"):
        utkinect.clips(utkinect.Recording("s", np.arange(6), np.zeros((6, 20, 3)), {}), 2)


# Sentences


@pytest.fixture
def no_network(monkeypatch):
    import socket

    def refuse(*_, **__):
        raise AssertionError("the network was touched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_sentence_embeddings_need_no_network(no_network):
    pytest.importorskip("wordllama", reason="sentence embeddings need wordllama")
    embeddings._wordllama.cache_clear()
    E = embeddings.embed(["cut the onions", "slice an onion", "change the tire", "  ", "cut the onions"])
    assert E.shape == (5, 256)
    assert E.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(E, axis=1), [1, 1, 1, 0, 1], rtol=1e-5)
    np.testing.assert_array_equal(E[0], E[4])
    assert E[0] @ E[1] > 0.3 + E[0] @ E[2]
    assert embeddings.embed([]).shape == (0, 256)
    np.testing.assert_allclose(embeddings.embed(["cut the onions"])[0], E[0], atol=1e-6)  # padding has no effect


def test_sentence_embedding_errors(tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="give a list of strings"):
        embeddings.embed("one text")
    with pytest.raises(ValueError, match="give a list of strings"):
        embeddings.embed([1, 2])
    with pytest.raises(FileNotFoundError, match="model is 'all-MiniLM-L6-v2', which is not a folder; give 'wordllama'"):
        embeddings.embed(["a"], model="all-MiniLM-L6-v2")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ImportError, match="needs sentence-transformers: pip install sentence-transformers"):
        embeddings.embed(["a"], model=tmp_path)
    embeddings._wordllama.cache_clear()
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with pytest.raises(ImportError, match=r"need wordllama: pip install 'dropdtw\[text\]'"):
        embeddings.embed(["a"])


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
    embeddings._wordllama.cache_clear()
    embeddings.embed(["a"])
    embeddings._wordllama.cache_clear()
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
    embeddings._transformer.cache_clear()
    np.testing.assert_allclose(embeddings.embed(["a", "b"], model=tmp_path), [[0.6, 0.8]] * 2)
    embeddings._transformer.cache_clear()
