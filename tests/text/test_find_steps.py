"""Where each step is talked about."""

import importlib.util
import itertools
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from dropdtw import drops, text
from dropdtw.text import Sentence, read_steps, read_subtitles, sentences
from dropdtw.text.evidence import EDGE, FLOOR, WEIGHTS, PassageEvidence, passages, probability, trimmed

EXAMPLES = Path(__file__).parents[2] / "examples" / "chapters"
pytestmark = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


def talk(steps, subtitles):
    said = sentences(read_subtitles((EXAMPLES / subtitles).read_text(encoding="utf-8")))
    wanted = read_steps((EXAMPLES / steps).read_text(encoding="utf-8"))
    return wanted, [s.text for s in said], [(s.start, s.stop) for s in said]


TRUTH = {  # seconds in which each step is talked about; None: nobody does
    ("steps.txt", "talk.srt"): [
        *((35.9, 46.3), (56.2, 66.6), (84.1, 95.8), (109.8, 119.4), None, (141.2, 152.8), (160.4, 170.7))
    ],
    ("telescope-steps.txt", "telescope.vtt"): [
        *((22.6, 34.0), (42.3, 52.3), (69.0, 80.2), (94.7, 102.7), (119.8, 130.8), (138.5, 145.5))
    ],
}


@pytest.mark.parametrize(("steps", "subtitles"), TRUTH)
def test_steps_of_the_samples_are_found_where_they_are_talked_about(steps, subtitles):
    wanted, said, times = talk(steps, subtitles)
    found = text.find_steps(wanted, said, times)
    assert [f.step for f in found] == wanted
    for f, truth in zip(found, TRUTH[steps, subtitles], strict=True):
        assert f.found == (truth is not None), f
        if truth is not None:
            assert truth[0] - 0.5 <= f.start < f.stop <= truth[1] + 0.5, f
            assert f.confidence > 0.5, f


def test_foreign_steps_are_not_found():
    _, said, times = talk("steps.txt", "talk.srt")
    wanted, _, _ = talk("telescope-steps.txt", "telescope.vtt")
    bicycle = read_steps((EXAMPLES / "steps.txt").read_text(encoding="utf-8"))
    found = text.find_steps([*bicycle[:4], *wanted[3:], *bicycle[4:]], said, times)
    assert [f.index for f in found if not f.found] == [4, 5, 6, 7]


def test_times_may_be_starts_alone():
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    starts = [start for start, _ in times]
    a, b = text.find_steps(wanted, said, times), text.find_steps(wanted, said, starts)
    assert [f.sentences for f in a] == [f.sentences for f in b]
    assert all(g.stop == starts[g.sentences[1]] for g in b)


def test_drop_costs_can_be_given():
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    assert not any(f.found for f in text.find_steps(wanted, said, times, drop_x=0.01, skip=1.0))
    more = text.find_steps(wanted, said, times, drop_x="percentile:30")
    assert sum(f.stop - f.start for f in more if f.found) > sum(
        f.stop - f.start for f in text.find_steps(wanted, said, times)
    )


def test_a_classifier_can_say_which_sentences_are_off_topic():
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    found = [f.sentences for f in text.find_steps(wanted, said, times, drop_x=0.6, skip=1.0) if f.found]
    first = found[0][0]
    off_topic = np.full(len(said), np.exp(-6.0))  # 0.1 · 6: the same drop cost
    off_topic[first] = 1.0
    told = text.find_steps(wanted, said, times, drop_x=drops.Background(off_topic, scale=0.1), skip=1.0)
    assert first not in {j for f in told if f.found for j in range(*f.sentences)}


def test_a_missing_step_has_its_closest_place():
    wanted, said, times = talk("steps.txt", "talk.srt")
    *_, before, missing, after, _ = text.find_steps(wanted, said, times)
    first, last = missing.closest.sentences
    assert before.sentences[1] <= first < last <= after.sentences[0]
    assert (missing.closest.start, missing.closest.stop) == (times[first][0], times[last - 1][1])
    assert 0 < missing.closest.confidence < 0.5
    assert before.closest is None
    untimed = text.find_steps(wanted, said)[4].closest
    assert (untimed.start, untimed.sentences) == (None, (first, last))
    assert text.find_steps(wanted, said, optional=[4])[4].closest is None


def test_the_closest_place_respects_the_order():
    C = np.full((3, 9), 0.9)
    C[0, 4] = C[2, 7] = 0.1
    C[1, 1], C[1, 6] = 0.7, 0.75  # the best place comes before step 0
    found = {p.step: p for p in passages(C, dropdtw.solve(C, 0.3, 0.05, method="steps"))}
    assert [(p.step, p.first, p.aligned) for p in found.values()] == [(0, 4, True), (2, 7, True), (1, 6, False)]
    assert found[1].evidence.cost == 0.75


def test_smallest_talks():
    (one,) = text.find_steps(["boil water"], ["boil the water"], [(2.0, 3.0)])
    assert (one.start, one.stop) in ((2.0, 3.0), (None, None))
    assert len(text.find_steps(["a b", "c d", "e f"], ["hello"], [0.0])) == 3


def test_automatic_captions_without_full_stops_do_as_well():
    cues = read_subtitles((EXAMPLES / "talk.srt").read_text(encoding="utf-8"))
    said = sentences([cue._replace(text=cue.text.lower().translate(str.maketrans("", "", ".,!?"))) for cue in cues])
    wanted = read_steps((EXAMPLES / "steps.txt").read_text(encoding="utf-8"))
    found = text.find_steps(wanted, [s.text for s in said], [(s.start, s.stop) for s in said])
    right = [
        f.found and min(f.stop, truth[1]) - max(f.start, truth[0]) > 1 if truth else not f.found
        for f, truth in zip(found, TRUTH["steps.txt", "talk.srt"], strict=True)
    ]
    assert sum(right) >= 6, found


# --- Steps that are not there -----------------------------------------------------------------------------------

BREAD = [
    *("Mix the flour, water, salt and yeast", "Knead the dough until it is smooth"),
    *("Let the dough rise until it has doubled", "Shape the dough into a loaf"),
    *("Preheat the oven and bake the bread", "Let the bread cool on a rack"),
]
DRIVE = """Hi everyone, today we put a faster drive into this old laptop.
Before you do anything, copy all your files to an external disk.
Mine took about an hour, so I made myself a sandwich.
Now shut the machine down completely and pull out the power cable.
Turn it over and undo the ten small screws on the bottom.
Two of them are longer, so remember where they go.
Lift the cover off gently, it is only held by clips.
There is a lot of dust in here, let me blow that out.
Loosen the screw of the old drive and it pops up by itself.
Push the new one in at an angle and press it down.
Do not use too much force.
Plug it in, switch it on, and it should see the new drive.
Let it rest for a moment while the system is installed.""".splitlines()


def test_steps_of_another_procedure_are_not_found():
    bicycle, telescope = TRUTH
    for (steps, _), (_, subtitles) in ((bicycle, telescope), (telescope, bicycle)):
        wanted, said, times = talk(steps, subtitles)[0], *talk(*next(t for t in TRUTH if t[1] == subtitles))[1:]
        assert not any(f.found for f in text.find_steps(wanted, said, times))
    for first in range(len(DRIVE) - 8):  # short talks as well
        said = DRIVE[first : first + 9]
        assert not any(f.found for f in text.find_steps(BREAD, said, np.arange(9)))
    assert sum(f.found for f in text.find_steps(["Loosen the screw of the drive"], DRIVE, np.arange(13))) == 1


def test_without_skips_every_step_is_found_however_unlikely():
    found = text.find_steps(BREAD, DRIVE, np.arange(13), skip=None)
    assert all(f.found for f in found)
    assert all(f.confidence < FLOOR for f in found)


def test_the_more_a_skip_costs_the_less_confidence_is_needed():
    counts = [sum(f.found for f in text.find_steps(BREAD, DRIVE, np.arange(13), skip=s)) for s in (0, 0.15, 0.5, 5)]
    assert counts == sorted(counts)
    assert (counts[0], counts[1], counts[-1]) == (0, 0, 6)


def test_evidence_speaks_for_a_step():
    usual = PassageEvidence(cost=0.6, place=0.8, others=0.7)
    better = [usual._replace(cost=0.5), usual._replace(place=0.9), usual._replace(others=0.6)]
    assert all(0 < probability(usual) < probability(e) < 1 for e in better)


# --- Where a passage begins -------------------------------------------------------------------------------------

SOUP = ["Peel and chop the onions", "Fry the onions in butter", "Stir in the flour", "Whisk in the milk", "Add salt"]
KITCHEN = """Hello everyone and welcome back to my kitchen
The weather has been lovely this week.
Today my brother is visiting from Canada
Begin with the onions, peel them and chop them small.
I always cry when I do this.
My brother laughs at me every time
Now melt the butter in a pan and fry the onions until they are golden.
By the way, the pan was a present from my mother.
She bought it in France
Add the flour and stir it well so there are no lumps.
My brother is a pilot, did I mention that?
He flies to Tokyo twice a month
Pour in the milk little by little and keep whisking.
The cat wants to go out again.
One moment please
Add a pinch of salt.
That smells wonderful.
Thanks for watching.
See you next week.""".splitlines()


@pytest.mark.parametrize("punctuated", [True, False])
def test_a_step_does_not_begin_with_the_line_before_it(punctuated):
    bare = str.maketrans("", "", ".,?")
    lines = KITCHEN if punctuated else [line.lower().translate(bare) for line in KITCHEN]
    said = sentences([Sentence(3 * k, 3 * k + 3, line) for k, line in enumerate(lines)])
    found = text.find_steps(SOUP, [s.text for s in said], [(s.start, s.stop) for s in said])
    assert [f.start for f in found] == [3 * k for k in (3, 6, 9, 12, 15)]


def test_the_ends_of_a_passage_are_about_the_step():
    """Half as like as the best sentence, counted from the usual cost; in between anything may stand."""
    row = np.array([1.0, 0.71, 0.69, 0.95, 0.4, 0.72, 1.0, 1.0, 1.0, 1.0, 1.0])
    assert trimmed(row, 0, 9, edge=0.5) == (2, 5)
    assert trimmed(row, 0, 9, edge=0.0) == (0, 9)
    assert trimmed(row, 0, 9, edge=1.0) == (4, 5)
    assert trimmed(np.ones(3), 1, 3) == (1, 3)


def test_only_suggested_drop_costs_are_trimmed():
    """Where no sentence may be left out, none is."""
    wanted, said, times = talk("telescope-steps.txt", "telescope.vtt")
    found = [f.sentences for f in text.find_steps(wanted, said, times, drop_x=None, skip=None)]
    assert [first for first, _ in found[1:]] == [after for _, after in found[:-1]]
    assert (found[0][0], found[-1][1]) == (0, len(said))


# --- On real transcripts ----------------------------------------------------------------------------------------


@pytest.mark.exhaustive
def test_on_transcripts_it_was_not_chosen_on():
    """Foreign steps are not found, own ones stay where they are, confidences say how often they are right."""
    place = Path(os.environ.get("DROPDTW_DATA", "/nonexistent")) / "youcook2_text"
    if not place.is_dir():
        pytest.skip("the transcripts are not here: set DROPDTW_DATA to a folder with youcook2_text/")
    name = Path(__file__).parents[2] / "benchmarks" / "chapters.py"
    spec = importlib.util.spec_from_file_location("benchmark_chapters", name)
    benchmark = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    how, share = benchmark.LIBRARY, benchmark.share
    folds = [{how: [s for task in part for s in benchmark.searches(task)]} for part in benchmark.split(place)]
    outcomes = benchmark.held_out(folds)
    own = [o for o in outcomes if o.search.step.told is not None]
    assert share([o.found for o in outcomes if o.search.step.told is None]) <= 0.1
    assert share([o.right for o in own]) >= 0.95 * share([o.search.right() for o in own]) > 0
    for low in (0.3, 0.5, 0.7, 0.9):
        part = [o for o in outcomes if o.search.passage is not None and low <= o.sure <= low + 0.1]
        right, sure = np.mean([o.search.right() for o in part]), np.mean([o.sure for o in part])
        assert right == pytest.approx(sure, abs=0.1)
    weights, floor, edge, _ = benchmark.choose(benchmark.merged(folds)[how])
    assert np.round(weights, 2) == pytest.approx(WEIGHTS)
    assert (floor, edge) == (FLOOR, EDGE)


def test_an_opening_cost_leaves_fewer_gaps():
    wanted, said, times = talk("steps.txt", "talk.srt")

    def gaps(**more):
        found = [f.sentences for f in text.find_steps(wanted, said, times, drop_x=0.6, skip=None, **more)]
        return sum(before[1] < after[0] for before, after in itertools.pairwise(found))

    assert gaps() > 2
    assert gaps(open_x=0.0) == gaps() > gaps(open_x=0.5) > gaps(open_x=100.0) == 0
    with pytest.raises(ValueError, match=r"open_x is 1\.0, but no x may be dropped"):
        text.find_steps(wanted, said, times, drop_x=None, open_x=1.0)


def test_numbers_that_belong_to_a_step_are_kept():
    """A mark has white space after it."""
    lines = "2.5 kg of flour\n1:30 minutes of kneading\n3. 1.5 l of milk\n- 4) Bake\nStep 5: 1:1 mix"
    assert read_steps(lines) == ["2.5 kg of flour", "1:30 minutes of kneading", "1.5 l of milk", "Bake", "1:1 mix"]
