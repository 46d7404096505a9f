"""Alignments as text: every element is printed once, in order, and nothing else."""

import numpy as np
import pytest

import dropdtw

RNG = np.random.default_rng(8)


@pytest.mark.parametrize(
    "options", [{}, {"method": "needleman_wunsch"}, {"many_to_one": False}, {"contiguous": True}], ids=str
)
def test_words_come_back_in_order(options):
    for _ in range(20):
        Z, X = ([f"w{k}" for k in RNG.integers(0, 6, RNG.integers(1, 15))] for _ in range(2))
        a = dropdtw.align(Z, X, 0.6, 0.7, **options)
        *body, said = a.text(width=40).split("\n")
        assert all(len(line) <= 40 for line in body)
        above, marks, below = (
            " ".join(body[k::4]).split() for k in range(3)
        )  # a block has three lines and a blank one
        above, below = ([word for word in words if word[0] in "w-~"] for words in (above, below))
        assert [word for word in above if word[0] == "w"] == Z
        assert [word for word in below if word[0] == "w"] == X
        columns = len(a.pairs) + a.dropped_z.sum() + a.dropped_x.sum()
        assert len(above) == len(below) == columns
        equal = [bool(Z[i] == X[j]) for i, j in a.pairs]
        assert marks == ["|" if same else "." for same in equal]
        assert said == f"identity {sum(equal)}/{columns} ({sum(equal) / columns:.0%}), cost {a.cost:.6g}"


def test_repeats_and_gaps_are_marked():
    assert dropdtw.align("ab", "aab").text().split("\n")[:3] == ["a~b", "|||", "aab"]
    assert dropdtw.align("ab", "axb", 0.4).text().split("\n")[:3] == ["a-b", "| |", "axb"]
    assert dropdtw.align("axb", "ab", None, 0.4).text().split("\n")[:3] == ["axb", "| |", "a-b"]


def test_ends_that_are_skipped_for_free_are_left_out():
    reward = lambda a, b: -1 if a == b else 1  # noqa: E731
    text = dropdtw.align("xxGATTACAy", "GATTCA", 1, 1, match=reward, method="smith_waterman").text()
    assert text.split("\n")[:3] == ["Z  2 GATTACA", "     |||| ||", "X  0 GATT-CA"]
    assert dropdtw.align("b", "abc", method="subsequence").text().split("\n")[:3] == ["Z 0 b", "    |", "X 1 b"]


def test_columns_are_aligned_in_cells_of_a_terminal():
    assert dropdtw.align(["日本", "x"], ["é", "x"]).text().split("\n")[:3] == ["日本 x", ".    |", "é    x"]
    assert dropdtw.align(["a\nb"], ["\x1b[1m"]).text().split("\n")[::2][:2] == ["a\\nb", "\\x1b[1m"]


def test_an_order_lists_steps_as_they_were_done():
    a = dropdtw.align("abc", "cab", order=dropdtw.orders.any_order(0, 1, 2), many_to_one=False)
    assert a.text().split("\n")[:3] == ["cab", "|||", "cab"]


def test_vectors_can_be_named():
    a = dropdtw.align([0.0, 1.0], [0.0, 5.0, 1.0], 0.3)
    assert a.text(["go", "stop"], ["go", "what", "stop"]).split("\n")[0] == "go ---- stop"
