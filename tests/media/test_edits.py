"""The edit list as a value: its rows, its times, its JSON, and what it refuses."""

import json

import pytest

from dropdtw.media import Edits, Segment

TWO_CUTS = Edits.of_same(
    [((1.0, 10.0), (0.0, 9.0), 0.9), ((10.0, 20.0), (15.0, 25.0), 0.8), ((30.0, 40.0), (40.0, 50.0), 0.99)],
    (41.5, 50.0),
)


def test_rows_fill_what_lies_between_shared_passages():
    kinds = [(s.kind, s.a, s.b) for s in TWO_CUTS.segments]
    assert kinds == [
        ("only_a", (0.0, 1.0), None),
        ("same", (1.0, 10.0), (0.0, 9.0)),
        ("only_b", None, (9.0, 15.0)),
        ("same", (10.0, 20.0), (15.0, 25.0)),
        ("only_a", (20.0, 30.0), None),
        ("only_b", None, (25.0, 40.0)),
        ("same", (30.0, 40.0), (40.0, 50.0)),
        ("only_a", (40.0, 41.5), None),
    ]
    assert TWO_CUTS.same + TWO_CUTS.only_a + TWO_CUTS.only_b == tuple(
        sorted(TWO_CUTS.segments, key=lambda s: ("same", "only_a", "only_b").index(s.kind))
    )


def test_row_between_two_passages_is_as_sure_as_the_less_sure():
    assert [s.confidence for s in TWO_CUTS.segments] == [0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.99, 0.99]


def test_short_gaps_get_no_row():
    found = Edits.of_same([((0, 5), (0, 5), 1.0), ((5.5, 9), (5.9, 9.4), 1.0)], (9, 9.4), min=1.0)
    assert [s.kind for s in found.segments] == ["same", "same"]
    assert found.to_b(5.2) is None


def test_swap_exchanges_the_recordings_and_is_its_own_inverse():
    swapped = TWO_CUTS.swap()
    assert swapped.swap() == TWO_CUTS
    assert swapped.durations == (50.0, 41.5)
    assert [s.b for s in swapped.only_b] == [s.a for s in TWO_CUTS.only_a]
    kinds = [s.kind for s in swapped.segments]
    assert all(kinds[k : k + 2] != ["only_b", "only_a"] for k in range(len(kinds)))


def test_speed_of_a_swapped_row_is_the_inverse():
    assert Segment("same", (0, 10), (0, 8), 1.0, 1.25).swap().speed == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("a", "b"), [(1.0, 0.0), (9.99, 8.99), (10.0, 15.0), (12.5, 17.5), (40.0, 50.0), (0.5, None), (25.0, None)]
)
def test_times_move_with_their_passage(a, b):
    assert TWO_CUTS.to_b(a) == (b if b is None else pytest.approx(b))
    if b is not None:
        assert TWO_CUTS.to_a(b) == pytest.approx(a)
        assert TWO_CUTS.swap().to_b(b) == pytest.approx(a)


def test_time_that_only_b_has_is_nowhere_in_a():
    assert TWO_CUTS.to_a(12.0) is None
    assert TWO_CUTS.to_a(51.0) is None


def test_json_is_what_the_documentation_says():
    found = json.loads(TWO_CUTS.to_json())
    assert list(found) == ["segments"]
    assert found["segments"][1] == {"kind": "same", "a": [1.0, 10.0], "b": [0.0, 9.0], "confidence": 0.9}
    assert found["segments"][2] == {"kind": "only_b", "a": None, "b": [9.0, 15.0], "confidence": 0.8}
    with_speed = Edits.of_same([Segment("same", (0, 10), (0, 8), 1.0, 1.25)], (10, 8)).to_dict()
    assert with_speed["segments"][0]["speed"] == 1.25
    assert Segment("only_a", (1 / 3, 2), None, 0.98765).to_dict() == {
        "kind": "only_a", "a": [0.333, 2], "b": None, "confidence": 0.9877,
    }  # fmt: skip


def test_common_is_the_share_of_the_shorter_recording():
    assert TWO_CUTS.common == TWO_CUTS.swap().common == pytest.approx(29 / 41.5)
    assert Edits.of_same([], (10, 20)).common == 0
    assert Edits.of_same([], (0, 0)).common == 0


def test_text_of_nothing_says_so():
    assert str(Edits.of_same([], (0.2, 0.1))) == "nothing was compared"


@pytest.mark.parametrize(
    ("make", "says", "does"),
    [
        (lambda: Segment("both", (0, 1), (0, 1)), "'both'", "same, only_a, only_b"),
        (lambda: Segment("same", (0, 1), None), "b = None", "spans for both a and b with 'same'"),
        (lambda: Segment("only_a", (0, 1), (0, 1)), "'only_a'", "only for a with 'only_a'"),
        (lambda: Segment("only_b", None, (2, 1)), "(2, 1)", "start ≤ stop"),
        (lambda: Edits.of_same([((0, 5), (0, 5), 1), ((4, 9), (5, 10), 1)], (9, 10)), "overlap", "in the same order"),
        (lambda: Edits.of_same([((0, 5), (0, 5), 1)], (4, 5)), "overlap", "full durations"),
    ],
)
def test_rows_that_make_no_sense_are_refused(make, says, does):
    with pytest.raises(ValueError, match=r".") as caught:
        make()
    assert says in str(caught.value)
    assert does in str(caught.value)
