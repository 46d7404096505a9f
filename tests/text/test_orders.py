"""Steps in an order of their own, in talks."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jinja2", reason="jinja2 is not installed")

from dropdtw import orders, text
from dropdtw.orders.blocks import read_blocks
from dropdtw.text import FORMATS, FoundStep, read_subtitles, sentences, write_chapters
from dropdtw.text.evidence import FLOOR

EXAMPLES = Path(__file__).parents[2] / "examples"
needs_words = pytest.mark.skipif(importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed")


def read(steps, subtitles):
    said = sentences(read_subtitles((EXAMPLES / subtitles).read_text(encoding="utf-8")))
    wanted = read_blocks((EXAMPLES / steps).read_text(encoding="utf-8"))
    return wanted, [s.text for s in said], [(s.start, s.stop) for s in said]


def found_in(steps, subtitles, **more):
    wanted, said, times = read(steps, subtitles)
    return text.find_steps(wanted.names, said, times, **{"order": wanted.order, "optional": wanted.optional} | more)


@needs_words
def test_the_example_is_found_as_it_is_done():
    wanted, said, times = read("orders/steps.txt", "orders/talk.srt")
    found = text.find_steps(wanted.names, said, times, order=wanted.order, optional=wanted.optional)
    there = [f for f in found if f.found]
    assert [f.index for f in there] == [0, 2, 3, 1, 4, 6, 7, 8, 7, 8, 10]
    words = [
        "weigh the flour",
        "pour in the milk",
        "pinch of salt",
        "crack the eggs",
        "beat the batter",
        "melt the butter",
    ]
    words += ["Pour one ladle", "Flip the pancake", "Once more", "And again, flip", "lemon juice"]
    for f, spoken in zip(there, words, strict=True):
        assert spoken in said[f.sentences[0]]
        assert f.start == times[f.sentences[0]][0]
        assert f.confidence > 0.9
    assert [(f.index, f.left_out) for f in found[len(there) :]] == [(5, "optional"), (9, "alternative")]


@needs_words
def test_as_a_list_its_steps_are_not_all_found():
    found = found_in("orders/steps.txt", "orders/talk.srt", order=None)
    assert [f.index for f in found] == list(range(11))
    assert {f.index for f in found if not f.found} > {5, 9}


@needs_words
def test_a_plain_order_changes_nothing_and_a_free_one_finds_the_same():
    talk = ("chapters/steps.txt", "chapters/talk.srt")
    plain = found_in(*talk)
    K = len(plain)
    assert found_in(*talk, order=list(range(K))) == plain
    free = found_in(*talk, order=orders.any_order(*range(K)))
    assert [f.sentences for f in sorted(free, key=lambda f: f.index)] == [f.sentences for f in plain]


BREAD = [
    *("Mix the flour, water, salt and yeast", "Knead the dough until it is smooth"),
    *("Let the dough rise until it has doubled", "Shape the dough into a loaf"),
    *("Preheat the oven and bake the bread", "Let the bread cool on a rack"),
]
ORDERS = [
    orders.any_order(*range(6)),
    orders.one_of([0, 1, 2], [3, 4, 5]),
    orders.repeat(list(range(6))),
    orders.as_order([orders.repeat(step) for step in range(6)]),
    orders.as_order([0, orders.any_order(1, [2, 3]), orders.repeat([4, 5])]),
]


@needs_words
@pytest.mark.parametrize("order", ORDERS, ids=repr)
def test_steps_of_another_procedure_are_not_found_in_any_order(order):
    _, said, times = read("chapters/steps.txt", "chapters/talk.srt")
    found = text.find_steps(BREAD, said, times, order=order, optional=[1])
    assert not any(f.found for f in found)
    assert {f.index: f.left_out for f in found}[1] == "optional"


@needs_words
def test_forced_steps_of_another_procedure_are_unlikely():
    _, said, times = read("chapters/steps.txt", "chapters/telescope.vtt")
    found = text.find_steps(BREAD, said, times, order=ORDERS[-1], skip=None)
    assert {f.index for f in found if f.found} == set(range(6))
    assert all(f.confidence < FLOOR for f in found)


@needs_words
def test_what_may_be_left_out_says_nothing_about_the_rest():
    """Steps that nobody has to talk about do not make the others less likely."""
    wanted, said, times = read("chapters/steps.txt", "chapters/talk.srt")
    more = [*wanted.names, *BREAD]
    K = len(wanted.names)
    required = text.find_steps(more, said, times)
    optional = text.find_steps(more, said, times, optional=range(K, len(more)))
    both = [(a, b) for a, b in zip(required[:K], optional, strict=False) if a.found and b.found]
    assert len(both) >= 5
    assert all(a.confidence <= b.confidence for a, b in both)
    assert any(a.confidence < b.confidence for a, b in both)
    assert all(f.left_out == "optional" for f in optional[K:])


@needs_words
def test_optional_steps_are_the_only_ones_left_out_where_all_others_must_be_found():
    _, said, times = read("chapters/steps.txt", "chapters/talk.srt")
    found = text.find_steps(BREAD, said, times, order=orders.any_order(*range(6)), optional=[2], skip=None)
    assert {f.index for f in found if f.found} >= {0, 1, 3, 4, 5}


@needs_words
def test_what_cannot_be_done_is_refused():
    said, times = ["one", "two", "three"], np.arange(3)
    with pytest.raises(ValueError, match=r"steps in any order are repeated, .* if steps may be skipped"):
        text.find_steps(["a", "b"], said, times, order=orders.repeat(orders.any_order(0, 1)))
    assert len(text.find_steps(["a", "b"], said, times, order=orders.repeat(orders.any_order(0, 1)), skip=None)) >= 2
    with pytest.raises(ValueError, match="optional names step 2; the steps are numbered from 0 to 1"):
        text.find_steps(["a", "b"], said, times, optional=[2])
    with pytest.raises(ValueError, match="it lacks step 1; name each step of Z"):
        text.find_steps(["a", "b"], said, times, order=orders.repeat(0))


# --- Chapters ---------------------------------------------------------------------------------------------------

FOUND = [
    FoundStep(1, "Pour", 1.0, 2.0, 0.9, (0, 1)),
    FoundStep(0, "Flip", 3.0, 4.0, 0.8, (2, 3)),
    FoundStep(1, "Pour", 5.0, 6.0, 0.7, (4, 5)),
    FoundStep(2, "Rest", None, None, None, None, "optional"),
    FoundStep(3, "Jam", None, None, None, None, "alternative"),
    FoundStep(4, "Eat", None, None, None, None),
]


@pytest.mark.parametrize("kind", FORMATS)
def test_chapters_come_in_time_and_each_time(kind):
    content = write_chapters(FOUND, kind)
    places = [content.index("Pour"), content.index("Flip"), content.rindex("Pour")]
    assert places == sorted(set(places))


def test_chapters_say_why_a_step_is_left_out():
    segments = json.loads(write_chapters(FOUND, "json"))["segments"]
    assert [s.get("left_out") for s in segments] == [None, None, None, "optional", "alternative", None]
    page = write_chapters(FOUND, "html")
    assert all(f">{said}</td>" in page for said in ("optional", "not taken", "not found"))


def test_the_cues_of_a_repeated_step_have_names_of_their_own():
    lines = write_chapters(FOUND, "vtt").split("\n\n")[1:-1]
    assert [cue.split("\n")[0] for cue in lines] == ["2", "1", "2.2"]
