"""Recordings in, edit lists out: on the committed examples and on made sounds, through what copies go through."""

import shutil
import sys
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dropdtw import media
from dropdtw.media import compare
from dropdtw.media.borders import fitted, refined, with_typical_slope
from dropdtw.media.confidence import evidence, probability
from dropdtw.media.features import SHIFTS, frames_of_sound
from dropdtw.media.matching import Stretch
from dropdtw.media.sound import Sound
from dropdtw.media.words import Words, diff_words
from sound_cases import RATE, close, cut, gusts, write

pytest.importorskip("av", reason="PyAV is not installed: pip install 'dropdtw[media]'")

ROOT = Path(__file__).parents[2]
SOUND, FOREIGN = gusts(1, 40), gusts(2, 12)
EDITED = cut(SOUND, (0, 12), FOREIGN[: 7 * RATE], (12, 22.345), (30, 40))
TRUTH = [
    ("same", (0, 12), (0, 12)),
    ("only_b", None, (12, 19)),
    ("same", (12, 22.345), (19, 29.345)),
    ("only_a", (22.345, 30), None),
    ("same", (30, 40), (29.345, 39.345)),
]
EXAMPLE = [
    ("same", (0, 9), (0, 9)),
    ("only_a", (9, 15), None),
    ("same", (15, 27), (9, 21)),
    ("only_b", None, (21, 29.5)),
    ("same", (27, 35), (29.5, 37.5)),
    ("only_a", (35, 40), None),
    ("same", (40, 46), (37.5, 43.5)),
]


def frames(x):
    found = frames_of_sound(Sound((x, RATE), "A").blocks())
    assert found is not None
    return found


@pytest.fixture(scope="module")
def plain():
    return media.diff((SOUND, RATE), (EDITED, RATE))


def test_example_has_the_edits_that_its_readme_says():
    found = media.diff(ROOT / "examples/diff/a.ogg", str(ROOT / "examples/diff/b.ogg"))
    assert close(found, EXAMPLE, 0.03)
    assert found.notes == ()
    assert found.durations == pytest.approx((46, 43.5), abs=0.05)
    assert all(s.confidence > 0.7 for s in found.segments)


def test_edits_are_found_to_the_hundredth_of_a_second(plain):
    assert close(plain, TRUTH, 0.02)
    assert plain.to_b(35.0) == pytest.approx(34.345, abs=0.01)
    assert plain.to_b(25.0) is None
    assert all(s.speed is None for s in plain.segments)


def test_exchanged_recordings_give_the_exchanged_edits(plain):
    swapped = media.diff((EDITED, RATE), (SOUND, RATE))
    assert close(swapped, [(s.kind, s.a, s.b) for s in plain.swap().segments], 0.02)


@pytest.mark.parametrize("how", ["gain", "noise", "clipped", "offset", "stereo"])
def test_what_copies_go_through_changes_nothing(how):
    rng = np.random.default_rng(5)
    copy = {
        "gain": lambda x: 0.1 * x,
        "noise": lambda x: x + 0.3 * x.std() * rng.normal(size=x.shape),
        "clipped": lambda x: np.clip(x, -2 * x.std(), 2 * x.std()),
        "offset": lambda x: x + 0.2,
        "stereo": lambda x: np.stack([x, 0.5 * x], axis=1),
    }[how](EDITED)
    assert close(media.diff((SOUND, RATE), (copy, RATE)), TRUTH, 0.05)


@pytest.mark.parametrize(("name", "codec", "rate"), [("b.mp3", "libmp3lame", 44100), ("b.ogg", "libopus", 24000)])
def test_lossy_codecs_and_other_rates_change_nothing(tmp_path, name, codec, rate):
    a, b = write(tmp_path / "a.wav", SOUND), write(tmp_path / "half.wav", EDITED)
    samples = np.concatenate(list(Sound(b, "B").blocks()))
    again = np.interp(np.arange(int(len(samples) / RATE * rate)) / rate, np.arange(len(samples)) / RATE, samples)
    assert close(media.diff(a, write(tmp_path / name, again, rate, codec=codec)), TRUTH, 0.05)


@pytest.mark.parametrize("percent", [1, -1])
def test_speed_is_found_where_it_is_allowed(percent):
    speed = 1 + percent / 100
    truth = [(kind, a, None if b is None else (b[0] / speed, b[1] / speed)) for kind, a, b in TRUTH]
    found = media.diff((SOUND, RATE), (EDITED, round(RATE * speed)), speed=True)
    assert close(found, truth, 0.05)
    assert [s.speed for s in found.same] == pytest.approx([speed] * 3, abs=0.002)


@pytest.mark.parametrize("speed", [0.98, 1.01, 1.05])
def test_other_speed_is_suspected_where_it_is_not_allowed(speed):
    found = media.diff((SOUND, RATE), (SOUND, round(speed * RATE)))
    assert any("speed=True" in note for note in found.notes)


def test_recording_is_the_same_as_itself():
    found = media.diff((SOUND, RATE), (SOUND, RATE))
    assert close(found, [("same", (0, 40), (0, 40))], 0.001)
    assert found.common == pytest.approx(1)


@pytest.mark.parametrize("seed", [10, 11, 12])
def test_unrelated_recordings_have_nothing_in_common(seed):
    found = media.diff((gusts(seed, 30), RATE), (gusts(seed + 50, 25), RATE))
    assert [s.kind for s in found.segments] == ["only_a", "only_b"]
    assert found.notes == ("these have nothing in common",)
    assert found.common == 0


def test_moved_passage_shows_as_removed_and_inserted():
    moved = cut(SOUND, (0, 8), (14, 32), (8, 14), (32, 40))
    found = media.diff((SOUND, RATE), (moved, RATE))
    truth = [
        ("same", (0, 8), (0, 8)),
        ("only_a", (8, 14), None),
        ("same", (14, 32), (8, 26)),
        ("only_b", None, (26, 32)),
        ("same", (32, 40), (32, 40)),
    ]
    assert close(found, truth, 0.03)


def test_silence_in_one_recording_is_a_difference():
    muted = EDITED.copy()
    muted[14 * RATE : 18 * RATE] = 0
    found = media.diff((EDITED, RATE), (muted, RATE))
    assert [s.kind for s in found.segments] == ["same", "only_a", "only_b", "same"]
    assert found.only_b[0].b == pytest.approx((14, 18), abs=0.3)


@pytest.mark.parametrize("x", [np.zeros(5 * RATE), np.zeros(0), np.ones(1), SOUND[: RATE // 20]])
def test_silence_and_next_to_nothing_have_nothing_in_common(x):
    for pair in (((x, RATE), (SOUND, RATE)), ((SOUND, RATE), (x, RATE)), ((x, RATE), (x, RATE))):
        found = media.diff(*pair)
        assert found.segments == ()
        assert "silent or too short, so the recordings were not compared" in found.notes[-1]


SOUNDS = {
    "noise": lambda rng, t: rng.normal(size=len(t)) / 9,
    "pulses": lambda rng, t: np.where(t % 0.5 < 0.05, rng.normal(size=len(t)), 0),
    "half silent": lambda rng, t: np.where(t < t[-1] / 2, 0, rng.normal(size=len(t))),
    "a tone": lambda rng, t: np.sin(2 * np.pi * 440 * t),
    "a click": lambda rng, t: np.eye(1, len(t), len(t) // 2)[0],
}


@pytest.mark.parametrize("sound", SOUNDS.values(), ids=SOUNDS)
@pytest.mark.parametrize("seconds", [0.3, 1, 1.5, 2, 3, 6, 12])
def test_no_recording_differs_from_itself(sound, seconds):
    """They are the same, or nothing is said about them; and what was not compared has no row in any format."""
    x = sound(np.random.default_rng(1), np.arange(round(seconds * RATE)) / RATE)
    for least in (0.2, 1, 5):
        found = media.diff((x, RATE), (x, RATE), min=least)
        assert [s.kind for s in found.segments] in ([], ["same"])
        if not found.segments:
            assert "compared" in found.notes[-1]
            assert (str(found), found.to_dict()) == ("nothing was compared", {"segments": []})
            assert found.common == 0


def test_nothing_shorter_than_a_row_is_compared():
    for found in (
        media.diff((SOUND[: 3 * RATE], RATE), (SOUND, RATE), min=5),
        diff_words(Words.of_text("one two three"), Words.of_text("one two three four five six"), min=5),
        media.diff_features(np.eye(3, 4), np.eye(9, 4), fps=1, min=5),
    ):
        assert found.segments == ()
        assert found.notes == ("A is 3 long and min is 5, so nothing was compared; give a smaller min (--min)",)


def test_short_recording_is_found_in_a_long_one():
    found = media.diff((SOUND, RATE), (SOUND[10 * RATE : 16 * RATE], RATE))
    truth = [("only_a", (0, 10), None), ("same", (10, 16), (0, 6)), ("only_a", (16, 40), None)]
    assert close(found, truth, 0.03)


def test_differences_shorter_than_asked_get_no_row():
    bleep = SOUND.copy()
    bleep[20 * RATE : 23 * RATE] = FOREIGN[: 3 * RATE]
    kinds = [[s.kind for s in media.diff((SOUND, RATE), (bleep, RATE), min=m).segments] for m in (1.0, 4.0)]
    assert kinds == [["same", "only_a", "only_b", "same"], ["same"]]


@pytest.mark.parametrize("value", [0, -1, np.nan, True])
def test_min_that_makes_no_sense_is_refused(value):
    with pytest.raises(ValueError, match=r"give a number above 0"):
        media.diff((SOUND, RATE), (SOUND, RATE), min=value)


def test_reading_shows_its_progress(monkeypatch):
    shown = []
    monkeypatch.setattr(compare, "working", lambda label, progress: shown.append((label, progress)) or nullcontext())
    media.diff((SOUND, RATE), (EDITED, RATE), progress=False)
    assert shown == [("reading A", False), ("reading B", False)]


def test_progress_reaches_the_end():
    calls = []
    media.diff((SOUND, RATE), (EDITED, RATE), progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == calls[-1][1] > 0


def test_samples_at_our_rate_need_no_pyav(monkeypatch):
    monkeypatch.setitem(sys.modules, "av", None)
    assert close(media.diff((SOUND, RATE), (EDITED, RATE)), TRUTH, 0.02)


# --- Parts ----------------------------------------------------------------------------------------------------------


def test_line_is_settled_to_a_fraction_of_a_frame():
    late = 0.053  # seconds; five frames and a bit
    A, B = frames(SOUND), frames(SOUND[round(late * RATE) :])
    run = fitted(A, B, Stretch(1000, 2000, 1000, 2000))
    assert run.at(1500) == pytest.approx(1500 - 100 * late, abs=0.3)


def test_short_run_takes_the_slope_of_the_long_ones():
    A = frames(SOUND)
    runs = with_typical_slope(A, A, [Stretch(0, 2500, 0, 2500), Stretch(2500, 3000, 2510, 2995)])
    assert [run.slope for run in runs] == pytest.approx([1.0, 1.0], abs=1e-6)
    assert with_typical_slope(A, A, []) == []


@pytest.mark.parametrize("off", [-90, -30, 0, 30, 90])
def test_border_moves_to_where_it_belongs(off):
    A, B = frames(SOUND), frames(cut(SOUND, (0, 12), (15, 40)))
    runs = [Stretch(0, 1200 + off, 0, 1200 + off), Stretch(1500 + off, 4000, 1200 + off, 3700)]
    left, right = refined(A, B, runs, [evidence(A, B, run) for run in runs])
    assert (left.a_stop, left.b_stop, right.a, right.b) == pytest.approx((1200, 1200, 1500, 1200), abs=2)


def test_passages_do_not_overlap_where_both_could_go_on():
    phrase = FOREIGN[:RATE]  # twice in A, once in B: both passages match it
    A, B = frames(cut(SOUND, (0, 10), phrase, phrase, (10, 20))), frames(cut(SOUND, (0, 10), phrase, (10, 20)))
    runs = [Stretch(0, 1000, 0, 1000), Stretch(1200, 2200, 1100, 2100)]
    left, right = refined(A, B, runs, [evidence(A, B, run) for run in runs])
    assert right.b == pytest.approx(left.b_stop, abs=1)
    assert right.a - left.a_stop == pytest.approx(100, abs=1)


@pytest.mark.parametrize(("other", "stop"), [(0.1, 4000), (0.5, 3950)])
def test_last_border_moves_to_an_end_that_is_near(other, stop):
    spoilt = SOUND.copy()
    spoilt[-round(other * RATE) :] = FOREIGN[: round(other * RATE)]
    A, B = frames(SOUND), frames(spoilt)
    run = Stretch(0, 3980, 0, 3980)
    (found,) = refined(A, B, [run], [evidence(A, B, run)])
    assert found.a_stop == pytest.approx(stop, abs=3)


def test_copy_is_sure_and_chance_is_not():
    A, B = frames(SOUND), frames(FOREIGN)
    assert probability(evidence(A, A, Stretch(0, 500, 0, 500))) > 0.99
    assert probability(evidence(A, B, Stretch(0, 500, 0, 500))) < 0.01


def test_longer_copy_is_surer():
    A = frames(SOUND)
    sure = [probability(evidence(A, A, Stretch(0, 10 * n, 0, 10 * n))) for n in (10, 17, 30, 60)]
    assert sure == sorted(sure)
    assert sure[0] < 0.5 < sure[-1]


def test_silence_is_no_evidence():
    A = frames(cut(SOUND, (0, 10), np.zeros(5 * RATE, np.float32), (10, 20)))
    known = evidence(A, A, Stretch(1100, 1400, 1100, 1400))
    assert known.heard == 0
    assert probability(known) == 0


def test_gain_does_not_change_the_frames():
    loud, soft = frames(SOUND), frames(0.01 * SOUND)
    np.testing.assert_allclose(loud.fine, soft.fine, atol=1e-3)
    assert loud.search.shape[1] == len(SHIFTS) * 60


def test_blocks_of_any_size_give_the_same_frames():
    whole = frames(SOUND)
    parts = frames_of_sound(np.array_split(SOUND, 97))
    np.testing.assert_allclose(parts.fine, whole.fine, atol=1e-4)
    assert parts.seconds == whole.seconds == 40


# --- Any features ---------------------------------------------------------------------------------------------------


def rows(seed, n, d=24):
    return np.random.default_rng(seed).normal(size=(n, d))


def test_rows_are_counted_at_rate_one():
    x, y = rows(0, 60), rows(1, 9)
    found = media.diff_features(x, np.concatenate([x[:20], y, x[30:]]), 1.0)
    truth = [
        ("same", (0, 20), (0, 20)),
        ("only_a", (20, 30), None),
        ("only_b", None, (20, 29)),
        ("same", (30, 60), (29, 59)),
    ]
    assert close(found, truth, 0)


@pytest.mark.parametrize("how", ["offset", "positive", "scaled", "few"])
def test_offset_and_length_of_rows_do_not_matter(how):
    x = rows(6, 300, 2 if how == "few" else 24) + 20 * (how == "offset")
    x = np.abs(x) if how in ("positive", "few") else x
    y = np.delete(x, range(100, 150), axis=0) * (7 if how == "scaled" else 1)
    truth = [("same", (0, 10), (0, 10)), ("only_a", (10, 15), None), ("same", (15, 30), (10, 25))]
    assert close(media.diff_features(x, y, 10.0), truth, 0.1 if how == "few" else 0)


def test_rows_that_are_all_alike_have_nothing_in_common():
    assert media.diff_features(np.ones((90, 5)), np.ones((80, 5)), 10.0).same == ()
    assert media.diff_features(np.zeros((90, 5)), np.zeros((80, 5)), 10.0).same == ()


def test_one_feature_is_refused():
    with pytest.raises(ValueError, match=r"^A and B have one feature per row, .*; give at least two$"):
        media.diff_features(rows(0, 50, 1), rows(0, 50, 1), 1.0)


@pytest.mark.parametrize("offset", [0, 20])
def test_unrelated_rows_have_nothing_in_common(offset):
    found = media.diff_features(rows(2, 200) + offset, rows(3, 150) + offset, 10.0)
    assert found.same == ()
    assert found.notes == ("these have nothing in common",)
    assert [s.confidence for s in found.segments] == [1.0, 1.0]


def test_chance_matches_are_left_out_and_make_the_rest_less_sure():
    found = media.diff_features(rows(2, 300), rows(3, 300), 10.0, min=0.2, drop=0.45, opening=0.0)
    assert [s.kind for s in found.segments] == ["only_a", "only_b"]
    assert 0.5 < found.segments[0].confidence < 1


def test_low_drop_cost_matches_less():
    x = rows(4, 100)
    near = x + 0.8 * rows(5, 100)
    matched = [media.diff_features(x, near, 10.0, drop=d).common for d in (0.02, 0.4)]
    assert matched[0] < 0.5 < matched[1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fps": 0.0}, "fps is 0.0; give a number above 0"),
        ({"fps": 1.0, "drop": -1.0}, "drop is -1.0; give a number above 0"),
        ({"fps": 1.0, "opening": -1.0}, "opening is -1.0; give a number of seconds ≥ 0"),
        ({"fps": 1.0, "min": 0.0}, "min is 0.0; give a number above 0"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(ValueError, match=r".") as caught:
        media.diff_features(rows(0, 5), rows(1, 5), **options)
    assert str(caught.value) == says


def test_rows_of_different_width_are_refused():
    with pytest.raises(ValueError, match=r"3 features and X has 4"):
        media.diff_features(rows(0, 5, 3), rows(1, 5, 4), 1.0)


# --- Made speech and music ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "program"), [("speech", "espeak-ng"), ("music", "fluidsynth")])
def test_edits_of_made_recordings_are_found(kind, program, monkeypatch):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed (Debian: apt install {program})")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import diff_material as material
    import diff_sounds as sounds

    if kind == "music" and sounds.soundfont() is None:
        pytest.skip("there is no soundfont (Debian: apt install fluid-soundfont-gm)")
    pair = material.pair(kind, 3, 40.0)
    copy = material.spoil(pair.b, "noise20", np.random.default_rng(0))
    found = media.diff((pair.a, sounds.RATE), (copy.samples, copy.rate))
    ends = [((0, 0), (0, 0)), *((s.a, s.b) for s in found.same)]
    gaps = [(p[0][1], q[0][0], p[1][1], q[1][0]) for p, q in pairwise(ends)]
    np.testing.assert_allclose([g for g in gaps if max(g[1] - g[0], g[3] - g[2]) >= 1], pair.edits, atol=0.3)
