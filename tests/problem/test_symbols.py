"""Symbols: the result is that of the match costs written down by hand, to the bit."""

import json
import pickle
import warnings
from collections import defaultdict
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

import dropdtw
from dropdtw.costs import Lookup
from error_symbols import biopython

RNG = np.random.default_rng(5)
LETTERS = "ACGT"
PRICES = {pair: float(RNG.integers(-3, 9)) / 7 for pair in product(LETTERS, LETTERS)}
FRAME = pd.Series(PRICES).unstack()


def by_hand(Z, X, cost):
    return np.array([[cost(z, x) for x in X] for z in Z], float)


def unequal(z, x):
    return float(z != x)


def apart(z, x):
    return abs(len(str(z)) - len(str(x))) / 3


def priced(z, x):
    return PRICES[str(z), str(x)]


KINDS = {
    "string": lambda some: "".join(some),
    "letters": list,
    "array": lambda some: np.array(list(some)),
    "objects": lambda some: np.array(list(some), object),
    "series": lambda some: pd.Series(list(some)),
    "category": lambda some: pd.Series(list(some), dtype="category"),
    "tuples": lambda some: [(letter, 1) for letter in some],
    "bytes": lambda some: "".join(some).encode(),
}
MATCHES = {
    "auto": ("auto", unequal),
    "equal": ("equal", unequal),
    "function": (apart, apart),
    "dictionary": (PRICES, priced),
    "frame": (FRAME, priced),
}
OPTIONS = [
    {},
    {"drop_x": 0.3},
    {"drop_x": 0.4, "drop_z": 0.7, "open_x": 0.2, "method": "needleman_wunsch"},
    {"drop_x": "percentile:60", "drop_z": 1.0, "many_to_one": False},
    {"drop_x": 0.5, "method": "steps", "drop_z": 0.6},
    {"method": "lcss", "threshold": 0.1},
    {"window": 0.5},
    {"drop_x": 0.4, "drop_z": 0.4, "method": "smith_waterman"},
]


def some_letters(most=9):
    return list(RNG.choice(list(LETTERS), RNG.integers(3, most)))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("match", MATCHES)
@pytest.mark.filterwarnings("ignore:every match cost", "ignore:the drop cost")
def test_equals_the_costs_by_hand_to_the_bit(match, options):
    given, cost = MATCHES[match]
    for _ in range(5):
        Z, X = some_letters(), some_letters(12)
        C = by_hand(Z, X, cost)
        try:
            expected = dropdtw.solve(C, **options)
        except ValueError:
            with pytest.raises(ValueError, match=r"forbidden|no alignment|cannot each"):
                dropdtw.align(Z, X, match=given, **options)
            continue
        found = dropdtw.align(Z, X, match=given, **options)
        assert found.cost == expected.cost == dropdtw.distance(Z, X, match=given, **options)
        for name in ("pairs", "labels", "paid_x", "paid_z"):
            assert np.array_equal(getattr(found, name), getattr(expected, name))
        assert found.rescore() == expected.rescore()
        assert np.array_equal(found.problem.C, C)
        assert found.symbols == (tuple(Z), tuple(X))


@pytest.mark.parametrize("kind", KINDS)
def test_any_sequence_of_symbols_will_do(kind):
    Z, X = "GATTACAT", "CATTAGA"
    expected = dropdtw.align(Z, X, 0.6, 0.6, method="needleman_wunsch")
    found = dropdtw.align(*map(KINDS[kind], (Z, X)), 0.6, 0.6, method="needleman_wunsch")
    assert found.cost == expected.cost
    assert np.array_equal(found.pairs, expected.pairs)


@cache
def edits(z, x):
    """The edit distance, by its definition."""
    if not z or not x:
        return len(z) + len(x)
    return min(edits(z[1:], x) + 1, edits(z, x[1:]) + 1, edits(z[1:], x[1:]) + (z[0] != x[0]))


def test_unit_costs_give_the_edit_distance():
    for _ in range(50):
        Z, X = "".join(some_letters(12)), "".join(some_letters(12))
        assert dropdtw.distance(Z, X, 1, 1, method="needleman_wunsch") == edits(Z, X)


@pytest.mark.parametrize("match", MATCHES)
def test_every_function_agrees_with_the_costs_by_hand(match):
    given, cost = MATCHES[match]
    options = {"drop_x": 0.4, "drop_z": 0.7}
    some, others = [some_letters() for _ in range(4)], ["".join(some_letters()) for _ in range(5)]
    D = np.array([[dropdtw.cost(by_hand(Z, X, cost), **options) for X in others] for Z in some])
    assert np.array_equal(dropdtw.pairwise(some, others, match=given, **options), D)
    own = np.array([[dropdtw.cost(by_hand(Z, X, cost), **options) for X in some] for Z in some])
    assert np.array_equal(dropdtw.pairwise(some, match=given, **options), own)
    for corpus in (others, dropdtw.Index(others)):
        found = dropdtw.nearest(some[0], corpus, 3, match=given, **options)
        assert found.indices.tolist() == np.argsort(D[0], kind="stable")[:3].tolist()
        assert np.array_equal(found.costs, np.sort(D[0])[:3])
    C = by_hand(some[0], others[0] * 5, cost)
    p = dropdtw.posterior(some[0], others[0] * 5, match=given, gamma=0.3, **options)
    assert np.array_equal(p.match, dropdtw.posterior(C, gamma=0.3, **options).match)
    for o in dropdtw.find(some[0], others[0] * 5, match=given, **options):
        a = o.alignment
        assert a.symbols == (tuple(some[0]), tuple((others[0] * 5)[o.start : o.stop]))
        assert np.array_equal(a.problem.C, C[:, o.start : o.stop])
        assert a.cost == o.cost


def test_find_sees_an_exact_occurrence_first():
    text = ["it", "was", "the", "best", "of", "times", "it", "was", "the", "worst", "of", "times"]
    best, *rest = dropdtw.find(["the", "worst", "of"], text, drop_x=1, many_to_one=False, one_to_many=False)
    assert (best.start, best.stop, best.cost) == (8, 11, 0)
    assert all(o.cost > 0 for o in rest)


def test_numbers_can_be_symbols_of_a_table_and_equal_compares_vectors():
    table = {(1, 2): 0.25, (1, 3): 2.0, (2, 3): 1.0}
    C = [[0, 0.25, 2.0], [2.0, 1.0, 0]]
    assert dropdtw.align([1, 3], [1, 2, 3], match=table).cost == dropdtw.solve(C).cost
    assert dropdtw.align(np.array([1.0, 3]), np.array([1, 2, 3]), match=table).cost == dropdtw.solve(C).cost
    Z, X = RNG.integers(0, 2, (5, 3)), RNG.integers(0, 2, (7, 3))
    hand = by_hand(Z, X, lambda z, x: (z != x).any())
    assert dropdtw.align(Z, X, 0.4, match="equal").cost == dropdtw.solve(hand, 0.4).cost


def test_an_index_takes_symbols_that_it_has_not_seen():
    index = dropdtw.Index(["CAT", "DOG"])
    assert dropdtw.nearest("COT", index, 2, method="needleman_wunsch", drop_x=1, drop_z=1).costs.tolist() == [1, 2]


def test_a_default_covers_all_other_pairs_and_one_direction_both():
    some = defaultdict(lambda: 9.0, {("a", "b"): 0.5, ("c", "c"): 3.0})
    assert Lookup(some).between("abc", "abcd").tolist() == [[0, 0.5, 9, 9], [0.5, 0, 9, 9], [9, 9, 3, 9]]
    directed = {("a", "b"): 0.5, ("b", "a"): 2.0}
    assert Lookup(directed).between("ab", "ab").tolist() == [[0, 0.5], [2, 0]]
    assert np.isinf(dropdtw.distance("a", "b", match={("a", "b"): np.inf}))


def test_score_matrices_are_negated():
    with biopython():
        a = dropdtw.align("AAG", "GA", match="TOY", drop_x=2, drop_z=2, method="needleman_wunsch")
        assert a.match == "TOY"
        assert a.problem.C.tolist() == [[1, -4], [1, -4], [-5, 2]]


def test_options_with_a_table_are_values():
    a, b = (dropdtw.Aligner(0.5, match={("a", "b"): 0.25, ("b", "c"): np.inf}) for _ in range(2))
    assert a == b
    assert hash(a) == hash(b)
    assert a != a.replace(match={("a", "b"): 0.5, ("b", "c"): np.inf})
    assert pickle.loads(pickle.dumps(a)) == a
    assert dropdtw.Aligner.from_dict(json.loads(json.dumps(a.to_dict(), allow_nan=False))) == a
    wide = dropdtw.Aligner(match=defaultdict(lambda: 2.0, {("a", "b"): 0.25}))
    assert dropdtw.Aligner.from_dict(wide.to_dict()) == wide != dropdtw.Aligner(match={("a", "b"): 0.25})
    assert a.align("ab", "ba").cost == dropdtw.align("ab", "ba", 0.5, match={("a", "b"): 0.25}).cost


def test_missing_symbols_are_left_out():
    a = dropdtw.align(["a", None, "b"], ["a", "c", float("nan"), "b"], 0.5, missing="drop")
    assert a.labels.tolist() == [0, -1, -1, 2]
    assert a.missing_x.tolist() == [False, False, True, False]
    assert a.text().splitlines()[:3] == ["a-b", "| |", "acb"]
    with pytest.raises(ValueError, match="missing='drop'"):
        dropdtw.align(["a", None], "ab")


def test_the_caller_cannot_change_a_result():
    Z, X = list("abc"), list("abd")
    a = dropdtw.align(Z, X)
    Z[0] = X[2] = "z"
    assert a.symbols == (("a", "b", "c"), ("a", "b", "d"))
    assert a.rescore() == 1


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (700, 3), (150, 333), (513, 258)], ids=str)
@pytest.mark.parametrize("match", ["equal", "dictionary"])
@pytest.mark.parametrize("side", ["both", "x", "none"])
def test_kernels_compare_codes(shape, match, side):
    given, cost = MATCHES[match]
    Z, X = (RNG.choice(list(LETTERS), n) for n in shape)
    C = by_hand(Z, X, cost)
    prices = {"both": {"drop_x": 0.3, "drop_z": 0.4}, "x": {"drop_x": 0.3}, "none": {}}[side]
    for options in ({}, {"window": 0.4}, {"contiguous": True}, {"open_x": 0.5} if side == "both" else {}):
        options = prices | options
        expected, found = dropdtw.solve(C, **options), dropdtw.align(Z, X, match=given, **options)
        assert found.cost == expected.cost == dropdtw.distance(Z, X, match=given, **options)
        assert np.array_equal(found.pairs, expected.pairs)
        for reducer in ("soft", "smooth"):
            how = {"reducer": reducer, "gamma": 0.2, **options}
            assert dropdtw.distance(Z, X, match=given, **how) == dropdtw.cost(C, **how)
    by_code = dropdtw.distance(ord_of(Z), ord_of(X), match="equal", **prices)
    assert by_code == dropdtw.cost(by_hand(Z, X, unequal).astype(np.float32), **prices)


def ord_of(letters):
    return np.array([ord(letter) for letter in letters], np.float32)


def test_numbers_compared_by_equal_are_the_symbols_of_a_result():
    for Z, X in (([60, 64, 67], [72, 64, 67]), (np.array([60, 64, 67]), pd.Series([72, 64, 67]))):
        a = dropdtw.align(Z, X, 0.4, 0.4, method="needleman_wunsch", match="equal")
        assert a.text().splitlines()[0] == "60 -- 64 67"
        assert a.to_columns()["x_symbol"] == [72, None, 64, 67]
    assert dropdtw.align(np.eye(3), np.eye(3), match="equal").symbols is None


def test_letters_among_words_warn():
    with pytest.warns(UserWarning, match=r"^X is a string, so its letters are aligned; pass X.split\(\) for words$"):
        dropdtw.align(["we", "go"], "we go", 0.4, 0.4)
    with pytest.warns(UserWarning, match=r"^Zs\[1\] is a string"):
        dropdtw.pairwise([["we", "go"], "we go"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropdtw.align(list("wego"), "we go", 0.4, 0.4)
        dropdtw.align(["we", "go"], ["we", "go"])


def test_smith_waterman_needs_rewards_and_says_how_to_give_them():
    with pytest.warns(UserWarning, match="give equal symbols a negative cost, as in match=lambda a, b: -1 if a == b"):
        dropdtw.align("GATTACA", "CTTAG", 1, 1, method="smith_waterman")
    found = dropdtw.align("GATTACA", "CTTAG", 1, 1, method="smith_waterman", match=lambda a, b: -1 if a == b else 1)
    assert (found.cost, found.pairs.tolist()) == (-3, [[2, 1], [3, 2], [4, 3]])


def test_results_show_symbols():
    a = dropdtw.align(["we", "go"], ["we", "um", "go"], 0.4, 0.4)
    assert str(a.explain(1)).startswith("x_1 ('um') is dropped for 0.4; matching it to z_")
    assert str(a.explain(z=1)).startswith("z_1 ('go') is matched to x_2 ('go') for 0;")
    p = a.posterior()
    assert p.to_columns()["x_symbol"] == ["we", "um", "go"]
    found = a.to_columns(posterior=p)
    assert found["what"] == ["match", "drop_x", "match"]
    assert found["probability"] == [p.match[0, 0], p.drop_x[1], p.match[1, 2]]
    short = dropdtw.align("ab", "a", 0.4, 0.4)
    q = short.posterior()
    assert short.to_columns(posterior=q)["probability"] == [q.match[0, 0], q.drop_z[1]]
    with pytest.raises(ValueError, match=r"posterior is that of \(2, 3\) elements, and this alignment of \(2, 2\)"):
        dropdtw.align("ab", "ab").to_columns(posterior=p)


def test_axes_show_symbols_if_there_are_few():
    pytest.importorskip("matplotlib").use("Agg")
    ax = dropdtw.align(["we", "go"], ["we", "um", "go"] * 20, 0.4, 0.4).plot()
    assert [text.get_text() for text in ax.get_yticklabels()] == ["we", "go"]
    assert "um" not in [text.get_text() for text in ax.get_xticklabels()]
