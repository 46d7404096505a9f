"""Score against performance, on made match files; and on Vienna 4x22, if DROPDTW_DATA has it."""

import json
import os
import tarfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from reproduction.data import match
from reproduction.data.match import Performance
from reproduction.music import matching, tempo
from reproduction.music.experiment import GRID, Music, Settings
from reproduction.music.matching import Constants, as_list, by_pitch, matched
from reproduction.music.notes import Notes
from reproduction.music.scores import Counts


def performance(score, played, pairs=(), *, trills=(), graces=()):
    """Make one. score : (onset, pitch).   played : (seconds, pitch) or (seconds, pitch, velocity)."""
    onset, pitch = (np.array(part) for part in zip(*score, strict=True))
    time, key, velocity = (np.array(p) for p in zip(*[(*note, 64)[:3] for note in played], strict=True))
    rows = np.arange(len(score))
    return Performance(
        *("made", "made", onset.astype(float), np.isin(rows, graces), pitch, np.isin(rows, trills)),
        *(time.astype(float), key, velocity, np.array(pairs, np.int64).reshape(-1, 2)),
    )


def made(seed, chords=300, omitted=0.02, inserted=0.02):
    """A random piece of chords and its performance: rubato, notes of a chord apart, omissions and insertions."""
    rng = np.random.default_rng(seed)
    size = rng.integers(1, 5, chords)
    score = [(k / 2, int(p)) for k in range(chords) for p in rng.choice(np.arange(55, 67), size[k], replace=False)]
    seconds = np.cumsum(0.3 * np.exp(0.3 * np.sin(np.arange(chords) / 9) + 0.1 * rng.normal(size=chords)))
    notes = [
        (float(seconds[int(2 * o)] + 0.015 * rng.normal()), p, i)
        for i, (o, p) in enumerate(score)
        if rng.random() > omitted
    ]
    # a slip is softer than a note, and hits a key nearby
    slips = rng.integers(0, len(notes), int(inserted * len(notes)))
    notes += [(notes[k][0] + 0.05, notes[k][1] + 1, -1) for k in slips]
    notes.sort()
    pairs = [(i, j) for j, (_, _, i) in enumerate(notes) if i >= 0]
    return performance(score, [(t, p, 64 if i >= 0 else 20) for t, p, i in notes], pairs)


def found(p, constants=GRID[0]):
    notes = Notes.sort(p)
    return sorted(map(tuple, notes.rows(matched(notes, constants)).tolist()))


def scores(p, method):
    notes = Notes.sort(p)
    return Counts.of(p, notes.rows(method(notes))).f1()


def test_time_and_any_order_find_the_notes():
    pieces = [made(seed) for seed in range(3)]
    plain, chords = (np.mean([scores(p, method)[0] for p in pieces]) for method in (as_list, by_pitch))
    whole = np.mean([scores(p, lambda notes: matched(notes, Constants())) for p in pieces], axis=0)
    assert plain < 0.9
    assert min(chords, whole[0]) > 0.99


def test_sections_change_nothing(monkeypatch):
    p = made(5, chords=120)
    notes = Notes.sort(p)
    borders = matching.sections(notes, matching.rough(notes))
    truth = set(map(tuple, p.pairs.tolist()))
    assert len(borders) >= 2
    for z, x in borders:  # no true match crosses a border
        before, after = set(notes.score[:z].tolist()), set(notes.played[:x].tolist())
        assert all((i in before) == (j in after) for i, j in truth)
    parts = by_pitch(notes)
    monkeypatch.setattr(matching, "SECTION", 10**6)
    assert matching.sections(notes, matching.rough(notes)) == []
    assert len(by_pitch(notes)) == len(parts)  # as many equal pitches as without sections


def test_notes_of_a_chord_come_in_any_order_and_others_do_not():
    score = [(0, 60), (0, 64), (0, 67), (1, 62), (1, 65)]
    p = performance(score, [(0.0, 67), (0.01, 60), (0.02, 64), (1.0, 65), (1.01, 62)])
    assert {tuple(pair) for pair in Notes.sort(p).rows(by_pitch(Notes.sort(p))).tolist()} == {
        *((0, 1), (1, 2), (2, 0), (3, 4), (4, 3))
    }
    crossed = performance([(0, 60), (1, 62)], [(0.0, 62), (1.0, 60)])
    assert len(by_pitch(Notes.sort(crossed))) == 1


def test_by_pitch_matches_as_many_notes_as_possible():
    """Against all subsets of pairs that keep the order of chords."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        score = sorted({(int(o), int(p)) for o, p in zip(rng.integers(0, 3, 5), rng.integers(60, 63, 5), strict=True)})
        played = [(float(k), int(p)) for k, p in enumerate(rng.integers(60, 63, 5))]
        p = performance(score, played)
        equal = [(i, j) for i, s in enumerate(score) for j, x in enumerate(played) if s[1] == x[1]]

        def fits(pairs, score=score):
            return all(
                a[0] != b[0] and a[1] != b[1] and (score[a[0]][0] - score[b[0]][0]) * (a[1] - b[1]) >= 0
                for a, b in combinations(pairs, 2)
            )

        most = max(n for n in range(6) if any(fits(some) for some in combinations(equal, n)))
        assert len(by_pitch(Notes.sort(p))) == most


def test_a_repeated_note_is_matched_by_its_time():
    score = [(k, 60 + k % 5) for k in range(12)]
    played = [(k * 0.5, 60 + k % 5) for k in range(12)]
    early = performance(score, [*played[:7], (2.7, 62), *played[7:]])
    assert (7, 7) not in found(early)
    assert found(early) == [(k, k + (k >= 7)) for k in range(12)]


def test_a_slip_does_not_take_the_match_of_a_note_that_is_a_little_late():
    score = [(k, 60 + k % 5) for k in range(12)]
    played = [(k * 0.5 + (0.1 if k == 6 else 0), 60 + k % 5, 64) for k in range(12)]
    p = performance(score, [*played[:6], (3.0, 61, 1), *played[6:]])
    assert (6, 7) in found(p)
    assert (6, 6) in found(p, Constants(soft=1e-9))  # the cost of a drop is what decides


@pytest.mark.parametrize(("keys", "first"), [((72, 74, 72, 74), 0), ((74, 72, 74, 72), 0), ((71, 74, 72), 1)])
def test_a_trill_begins_with_its_note_or_the_one_above(keys, first):
    score = [(k, 60 + k) for k in range(6)] + [(6, 72)] + [(k, 55 + k) for k in range(7, 12)]
    played = [(k * 0.5, score[k][1]) for k in range(6)]
    played += [(3.0 + 0.08 * k, key) for k, key in enumerate(keys)]
    played += [(k * 0.5, score[k][1]) for k in range(7, 12)]
    pairs = found(performance(score, played, trills=[6]))
    assert dict(pairs)[6] == 6 + first
    assert len(pairs) == 12


def test_grace_notes_come_before_their_chord():
    score = [(k, 60 + k) for k in range(8)] + [(4, 64), (4, 66)]
    played = sorted([(k * 0.5, 60 + k) for k in range(8)] + [(1.85, 64), (1.92, 66)])
    assert dict(found(performance(score, played, graces=[8, 9])))[8] == 4
    assert dict(found(performance(score, played, graces=[8, 9])))[4] == 6


def test_of_two_voices_in_unison_one_is_played():
    p = performance([(0, 60), (0, 60), (1, 62), (2, 64)], [(0.0, 60), (0.5, 62), (1.0, 64)])
    assert found(p) == [(1, 0), (2, 1), (3, 2)]


def test_a_pause_moves_the_expected_time_and_a_wrong_match_does_not():
    score = [(k, 60 + k) for k in range(20)]
    time = np.arange(20) * 0.5
    paused = np.where(np.arange(20) >= 10, time + 3, time)
    notes = Notes.sort(performance(score, list(zip(paused, range(60, 80), strict=True))))
    pairs = np.stack([np.arange(20)] * 2, axis=1)
    np.testing.assert_allclose(tempo.expected(notes, pairs, 4), paused)
    wrong = time.copy()
    wrong[10] += 0.2
    notes = Notes.sort(performance(score, list(zip(wrong, range(60, 80), strict=True))))
    assert abs(tempo.expected(notes, pairs, 4)[10] - time[10]) < 1e-9


def test_nothing_in_common_gives_no_match():
    assert found(performance([(0, 60), (1, 62)], [(0.0, 70), (1.0, 72)])) == []
    assert found(performance([(0, 60)], [(0.0, 62)], trills=[0])) == []
    assert found(performance([(0, 60)], [(3.0, 60)], trills=[0])) == [(0, 0)]


def test_scores_by_hand():
    p = performance([(0, 60), (1, 61), (2, 62)], [(0, 60), (1, 61), (2, 70)], [(0, 0), (1, 1)])
    counts = Counts.of(p, np.array([[0, 0], [2, 2]]))
    np.testing.assert_array_equal(counts.values, [[1, 1, 1], [0, 1, 1], [0, 1, 1]])
    assert counts.f1() == [0.5, 0, 0]
    assert Counts.sum([counts, counts]).f1() == [0.5, 0, 0]
    assert counts.notes == len(p.pitch)
    twice = Counts.sum([Counts(counts.values, 1.5), Counts(counts.values, 0.5)])
    assert twice.cells() == ["50.00 / 50.00 / 50.00", "0.00 / 0.00 / 0.00", "0.00 / 0.00 / 0.00", "333.33"]
    assert Counts.sum([]).f1() == [1, 1, 1]


def write(path, p, piece):
    lines = ["info(matchFileVersion,1.0.0).", f"info(piece,{piece})."]
    names = {0: "C,n", 1: "C,#", 2: "D,n", 3: "D,#", 4: "E,n", 5: "F,n", 6: "F,#", 7: "G,n", 8: "G,#", 9: "A,n"}
    names |= {10: "A,#", 11: "B,n"}
    partner = dict(p.pairs.tolist())
    note = [f"note(n{j},{p.key[j]},{round(p.time[j] * 960)},0,{p.velocity[j]},0,0)." for j in range(len(p.key))]
    for i, (o, q) in enumerate(zip(p.onset, p.pitch, strict=True)):
        start = f"snote(s{i},[{names[q % 12]}],{q // 12 - 1},1:1,0,1/8,{o:.4f},{o + 0.5:.4f},[v1])-"
        lines.append(start + (note[partner[i]] if i in partner else "deletion."))
    lines += [f"insertion-{note[j]}" for j in range(len(p.key)) if j not in set(p.pairs[:, 1].tolist())]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_the_command_chooses_on_one_piece_and_tests_on_the_others(tmp_path):
    runner = pytest.importorskip("typer.testing").CliRunner()
    from reproduction.commands.app import app

    for k in range(3):
        write(tmp_path / f"{k}.match", made(k, chords=80), "AB"[k % 2])
    start = time.perf_counter()
    done = runner.invoke(app, ["music", "--folder", str(tmp_path), "--no-plain", "--out", str(tmp_path / "out")])
    done_in = time.perf_counter() - start
    assert done.exit_code == 0, done.output
    assert "3 performances of 2 pieces" in done.output
    assert "chosen on A, tested on the others" in done.output
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["turns"].keys() == {"A", "B"}
    assert results["turns"]["A"]["matches"]["F1"] > 0.99
    first = results["baselines"]["any order in a chord, by pitch"]["seconds"]  # of all three performances
    assert 0 < first < done_in
    assert 0 < results["turns"]["B"]["seconds"] < done_in
    assert "a list of notes, by pitch" not in results["baselines"]
    assert (tmp_path / "out" / "report.html").exists()


def test_vienna(tmp_path):
    """The bars on five performances of each excerpt, with the default constants (op. 38 would choose 2 s)."""
    archive = Path(os.environ.get("DROPDTW_DATA", ".")) / "vienna4x22" / "match.tar.gz"
    if not archive.exists():
        pytest.skip("DROPDTW_DATA has no folder vienna4x22 with match.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    for path in tmp_path.rglob("*.match"):
        if int(path.stem[-2:]) > 5:
            path.unlink()
    work = Music(str(tmp_path), tmp_path, "cpu", Settings(plain=False))
    assert len(work.performances) == 20
    assert len(match.load(tmp_path)) == 20
    counts = []
    for p in work.performances:
        notes = Notes.sort(p)
        counts.append(Counts.of(p, notes.rows(matched(notes, Constants()))))
    matches, insertions, deletions = Counts.sum(counts).f1()
    assert matches > 0.999
    assert insertions > 0.95
    assert deletions > 0.95
