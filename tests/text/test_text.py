"""Steps, and match costs."""

import numpy as np
import pytest

from dropdtw.text import find_steps, read_steps
from dropdtw.text.find import meaning_costs
from dropdtw.text.words import echo_costs, form_likeness

# --- Steps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        *("Pour it", "1. Pour it", "12) Pour it", "(3) Pour it", "3: Pour it", "- 2. Pour it", "- [ ] Pour it"),
        *("- Pour it", "* Pour it", "• Pour it", "  – Pour it  ", "Step 4: Pour it", "STEP 4 Pour it"),
    ],
)
def test_marks_are_no_part_of_a_step(line):
    assert read_steps(f"\ufeff{line}\n\n   \n---\n") == ["Pour it"]


@pytest.mark.parametrize("line", ["2 eggs", "350 degrees: bake", "5-minute rest", "Stepwise cooling", "-5 °C is cold"])
def test_numbers_that_belong_to_a_step_stay(line):
    assert read_steps(line) == [line]


def test_no_steps():
    with pytest.raises(ValueError, match="there are no steps"):
        read_steps("# Only a title\n\n")


# --- Costs ------------------------------------------------------------------------------------------------------


def letters(words):
    """Equal words are alike, different ones are not."""
    vectors = np.zeros((len(words), 4096), np.float32)
    for row, word in zip(vectors, words, strict=True):
        row[sum(ord(c) * 31**k for k, c in enumerate(word)) % 4096] = 1
    return vectors


def test_echo_is_full_for_the_same_words_and_none_for_others():
    C = echo_costs(["stir the soup"], ["The soup, stir!", "walk a dog", "", "soup"], letters)
    assert C.shape == (1, 4)
    assert C[0, :3] == pytest.approx([0, 1, 1], abs=1e-6)
    assert 0 < C[0, 3] < 0.6


def test_words_half_alike_count_a_quarter():
    vectors = {"hot": [1.0, 0.0], "warm": [0.5, 0.75**0.5]}
    C = echo_costs(["hot"], ["warm"], lambda words: np.array([vectors[word] for word in words]))
    assert C[0, 0] == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("chop", "chopped", 1),
        ("verser", "verse", 1),
        ("ofen", "backofen", 1),
        ("stromleitungen", "leitung", 1),
        ("löcher", "loch", 1),  # accents do not count
        ("lever", "lève", 1),
        ("kneten", "geknetet", 5 / 6),  # "knete"
        ("chopping", "shopping", 0),  # they rhyme
        ("leitungen", "zeitungen", 0),
        ("stir", "step", 0),  # two letters are chance
        ("mix", "mixer", 0),
        ("the", "then", 0),
        ("soup", "bread", 0),
    ],
)
def test_words_are_alike_in_form_by_a_beginning_that_both_have(one, other, expected):
    assert form_likeness([one], [other]) == pytest.approx(expected)
    assert form_likeness([other], [one]) == pytest.approx(expected)


def test_forms_count_where_meanings_are_unknown():
    C = echo_costs(["kneten"], ["jetzt geknetet", "jetzt gegessen"], letters)
    assert C[0, 0] < C[0, 1] == 1


def test_rare_words_count_more():
    said = ["the garlic", "the pan", "the oven", "the sink"]
    C = echo_costs(["the garlic"], ["the", "garlic", *said], letters)
    assert C[0, 1] < C[0, 0]


def test_texts_without_words_are_like_nothing():
    assert echo_costs(["…"], ["hello", "?"], letters).tolist() == [[1, 1]]


def test_what_all_have_in_common_does_not_count():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(5, 16)), rng.normal(size=(30, 16))
    np.testing.assert_allclose(meaning_costs(Z + 7, X + 7), meaning_costs(Z, X), atol=1e-9)
    assert np.ptp(meaning_costs(Z[:1], X)) > 0.5  # of a single step something is left


# --- Talks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "said", "times", "reason"),
    [
        ([], ["a"], [0], "0 steps and 1 sentences"),
        (["a"], [], [], "1 steps and 0 sentences"),
        (["a"], ["b", "c"], [0], r"times has shape \(1,\) for 2 sentences"),
        (["a"], ["b", "c"], [1, 0], "ascending"),
        (["a"], ["b"], [(1, 0)], "no stop before its start"),
        (["a"], ["b"], [np.nan], "finite"),
    ],
)
def test_wrong_talks(steps, said, times, reason):
    with pytest.raises(ValueError, match=reason):
        find_steps(steps, said, times)
