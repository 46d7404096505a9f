"""Drop costs: the meaning of every accepted form of `drop_x` and `drop_z`, element by element."""

from itertools import groupby, product

import numpy as np
import pytest

import dropdtw
from dropdtw import costs
from dropdtw.drops import (
    Background,
    Constant,
    LogitPercentile,
    Percentile,
    PerElement,
    lowered,
    percentile_drop,
    resolve,
)

C = np.random.default_rng(0).uniform(0, 1, (3, 5))
NEEDS = {
    "number": 0.3,
    "vector": [1.0, 2.0],
    "percentile": "percentile:30",
    "suggest": "suggest",
    "logit": "logit:30",
    "function": np.min,
}
same_on_both_sides = pytest.mark.parametrize(
    ("drop", "value"),
    [
        (0.3, 0.3),
        (2, 2.0),
        (-1, -1.0),
        (np.float32(0.5), 0.5),
        (np.array(0.25), 0.25),
        (Constant(0.3), 0.3),
        ("percentile:30", np.percentile(C, 30)),
        ("percentile:0", C.min()),
        ("percentile:100", C.max()),
        ("percentile:12.5", np.percentile(C, 12.5)),
        (Percentile(50), np.median(C)),
        (lambda costs: costs.mean(), C.mean()),
    ],
)


def vectors(C, drop_x=None, drop_z=None):
    """The drop cost of every x and every z in an alignment's problem."""
    costs = dropdtw.solve(C, drop_x, drop_z).problem.costs
    return costs.drop_x, costs.drop_z


@same_on_both_sides
def test_one_cost_for_all(drop, value):
    d_x, d_z = vectors(C, drop, drop)
    np.testing.assert_allclose(d_x, np.full(5, value), rtol=1e-15)
    np.testing.assert_allclose(d_z, np.full(3, value), rtol=1e-15)


def test_none_forbids_drops():
    d_x, d_z = vectors(C)
    assert np.isposinf(d_x).all()
    assert np.isposinf(d_z).all()
    assert not dropdtw.solve(C).dropped_x.any()


@pytest.mark.parametrize("wrap", [list, tuple, np.array, lambda v: PerElement(tuple(v)), lambda v: lambda costs: v])
def test_one_cost_per_element(wrap):
    d_x, d_z = vectors(C, wrap([0.1, 0.2, np.inf, 0.4, -0.5]), wrap([1, 2, 3]))
    np.testing.assert_array_equal(d_x, [0.1, 0.2, np.inf, 0.4, -0.5])
    np.testing.assert_array_equal(d_z, [1, 2, 3])


def test_rule_is_given_one_column_per_element_to_drop():
    d_x, d_z = vectors(C, lambda costs: costs.min(axis=0), lambda costs: costs.max(axis=0))
    np.testing.assert_array_equal(d_x, C.min(axis=0))
    np.testing.assert_array_equal(d_z, C.max(axis=1))


def test_rule_for_z_sees_the_transpose():
    seen = {}

    def see(name):
        return lambda costs: seen.setdefault(name, costs).shape[1]

    vectors(C, see("x"), see("z"))
    np.testing.assert_array_equal(seen["x"], C)
    np.testing.assert_array_equal(seen["z"], C.T)


@pytest.mark.parametrize("p", [10, 30, 75])
def test_percentile_is_the_share_of_pairs_cheaper_than_a_drop(p):
    grid = np.random.default_rng(p).permutation(1001).reshape(7, 143)
    assert (grid < percentile_drop(grid, p)).sum() == p * 10


def test_a_lower_percentile_drops_more():
    costs = np.random.default_rng(1).uniform(0, 1, (4, 40))
    dropped = [int(dropdtw.solve(costs, f"percentile:{p}").dropped_x.sum()) for p in (5, 20, 50, 95)]
    assert dropped == sorted(dropped, reverse=True)
    assert dropped[0] > dropped[-1]


def test_percentile_ignores_forbidden_matches():
    holes = C.copy()
    holes[[0, 1], [1, 2]] = np.inf
    d_x, d_z = vectors(holes, "percentile:40", "percentile:60")
    np.testing.assert_array_equal(d_x, np.percentile(holes[np.isfinite(holes)], 40))
    np.testing.assert_array_equal(d_z, np.percentile(holes[np.isfinite(holes)], 60))


def test_percentile_of_nothing_forbids_the_drop():
    nothing = np.full((2, 3), np.inf)
    assert percentile_drop(nothing, 30) == np.inf
    assert dropdtw.cost(nothing, "percentile:30", "percentile:30") == np.inf
    with pytest.raises(ValueError, match="every alignment is forbidden"):
        dropdtw.solve(nothing, "percentile:30", "percentile:30")


def test_everything_forbidden_but_drops_drops_everything():
    a = dropdtw.solve(np.full((2, 3), np.inf), [1, 2, 3], [10, 20])
    assert a.cost == 36
    assert a.dropped_x.all()
    assert a.dropped_z.all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_drop_costs_take_the_precision_of_the_match_costs(dtype):
    d_x, d_z = vectors(C.astype(dtype), 1, np.ones(3))
    assert d_x.dtype == d_z.dtype == dtype


@pytest.mark.parametrize("make", [Percentile, LogitPercentile])
@pytest.mark.parametrize(
    ("p", "digits"),
    [(30, "30"), (30.0, "30"), (12.5, "12.5"), (33.3333333, "33.3333333"), (1e-7, "1e-07"), (np.float32(0.1), None)],
)
def test_a_percentile_is_written_exactly(make, p, digits):
    text = make(p).plain()
    assert digits is None or text.partition(":")[2] == digits
    assert resolve(text, "drop_x") == make(p)


def test_a_logit_with_another_epsilon_cannot_be_written():
    assert LogitPercentile(30, 1e-3).plain() is None


@pytest.mark.parametrize(("text", "rule"), [("percentile:30", Percentile(30.0)), ("logit:7.5", LogitPercentile(7.5))])
def test_strings_name_rules(text, rule):
    assert resolve(text, "drop_x") == rule


@pytest.mark.parametrize("drop", [None, Percentile(30), Constant(0.3)])
def test_rules_are_themselves(drop):
    assert resolve(drop, "drop_x") is drop


def test_numbers_are_rules_that_need_no_match_costs():
    assert resolve(0.3, "drop_x") == Constant(0.3)
    assert resolve([1.0, 2.0], "drop_x").values == [1.0, 2.0]
    assert {name: resolve(d, "drop_x").needs_costs for name, d in NEEDS.items()} == {
        **dict.fromkeys(("number", "vector"), False),
        **dict.fromkeys(("percentile", "suggest", "logit", "function"), True),
    }


@pytest.mark.parametrize(
    "text", ["", "percentile", "percentile:", "percentile:x", "percentile:-1", "logit:101", "percentile:nan", "30"]
)
@pytest.mark.parametrize("side", ["drop_x", "drop_z"])
def test_other_strings_are_refused(text, side):
    with pytest.raises(ValueError, match=rf"^{side} is '{text}'; give None, a number, .*'percentile:30'"):
        dropdtw.solve(C, **{side: text})


@pytest.mark.parametrize("rule", [Percentile, LogitPercentile])
@pytest.mark.parametrize("p", [-0.1, 100.1, np.nan, np.inf])
def test_percentiles_lie_between_0_and_100(rule, p):
    with pytest.raises(ValueError, match=r"the percentile is .*; give a number from 0 to 100 \(not 0 to 1\)"):
        rule(p)


@pytest.mark.parametrize("entry", [1.0, np.inf])
def test_percentile_drop_checks_p_even_if_no_entry_is_finite(entry):
    with pytest.raises(ValueError, match=r"the percentile is 200; give a number from 0 to 100 \(not 0 to 1\)"):
        percentile_drop(np.array([[entry]]), 200)


def test_logit_rule_works_in_every_function_of_sequences():
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(3, 4)), rng.normal(size=(6, 4))
    a = dropdtw.align(Z, X, LogitPercentile(40), match="softmax")
    assert dropdtw.distance(Z, X, "logit:40", match="softmax") == pytest.approx(a.cost)
    assert dropdtw.pairwise([Z], [X], "logit:40", match="softmax") == pytest.approx(a.cost)
    assert len(set(a.problem.costs.drop_x)) == 6  # it differs between x


def test_a_larger_logit_percentile_drops_less():
    rng = np.random.default_rng(3)
    Z, X = rng.normal(size=(3, 4)), rng.normal(size=(30, 4))
    paid = [dropdtw.align(Z, X, f"logit:{p}", match="softmax").problem.costs.drop_x for p in (5, 20, 60)]
    assert (paid[0] < paid[1]).all()
    assert (paid[1] < paid[2]).all()


P = np.array([[0.1, 0.7, 0.2], [0.6, 0.3, 0.1], [0.5, 0.1, 0.4], [0.1, 0.1, 0.8]])  # frames × classes


def test_background_costs_minus_log_of_its_probability():
    rule = Background(P[:, 0], scale=2.0, offset=0.5)
    np.testing.assert_allclose(rule(np.zeros((1, 4))), 0.5 - 2 * np.log(P[:, 0]))
    shifted = Background.of_scores(np.log(P) + 7.0, 0, scale=2.0, offset=0.5)  # a softmax does not see a shift
    np.testing.assert_allclose(shifted(np.zeros((1, 4))), rule(np.zeros((1, 4))))


def test_the_cost_with_background_is_that_of_the_likeliest_labels():
    """By enumeration: runs of the classes 1, 2 in order, with class 0 anywhere around them."""
    best = min(
        -sum(np.log(P[j, row]) for j, row in enumerate(rows))
        for rows in product(range(3), repeat=len(P))
        if [row for row, _ in groupby(row for row in rows if row)] == [1, 2]
        and all(len([1 for row, _ in groupby(rows) if row == k]) == 1 for k in (1, 2))
    )
    C = costs.of_scores(np.log(P), [1, 2])
    a = dropdtw.solve(C, Background(P[:, 0]), method="steps")
    assert a.cost == pytest.approx(best)
    assert a.labels.tolist() == [0, -1, -1, 1]
    assert dropdtw.Aligner(Background(P[:, 0]), method="steps") == dropdtw.Aligner(-np.log(P[:, 0]), method="steps")


def test_what_is_surely_no_background_may_not_be_dropped():
    a = dropdtw.solve([[5.0, 5.0, 5.0]], Background([0.0, 1.0, 1.0]))
    assert a.dropped_x.tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Background([0.5, 1.5]), "between 0.5 and 1.5; give numbers from 0 to 1"),
        (lambda: Background([np.nan]), "give numbers from 0 to 1"),
        (lambda: Background([0.5], scale=0.0), "scale is 0.0; give a finite number > 0"),
        (lambda: Background([0.5], offset=np.inf), "offset is inf; give a finite number"),
        (lambda: Background.of_scores(P, 3), r"classes is \[3\]; give a list of columns of the scores, 0 to 2"),
        (lambda: costs.of_scores([[np.nan, 1.0]], [0]), r"scores has shape \(1, 2\); give \(N, classes\) without NaN"),
        (lambda: costs.of_scores([[-np.inf, -np.inf]], [0]), "a class for each row that is not −∞"),
        (lambda: costs.of_scores(P, [0.5]), "give a list of columns"),
        (lambda: dropdtw.solve([[1.0, 2.0]], Background([0.5])), r"drop_x has shape \(1,\), but there are 2 elements"),
    ],
)
def test_background_checks_what_it_gets(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("drop", "kind"),
    [
        (None, "number"),
        (0.5, "number"),
        ([0.5, 0.25], "each"),
        (Background([0.5, 0.1]), "each"),
        ("percentile:30", "percentile"),
        ("suggest", "suggest"),
        ("logit:30", "logit"),
        (lambda C: 1.0, "own"),
    ],
)
def test_rules_are_lowered_to_what_executors_compute(drop, kind):
    found = lowered(resolve(drop, "drop_x"))
    assert found.kind == kind
    if kind in ("number", "each"):
        wanted = np.inf if drop is None else resolve(drop, "drop_x")([[1.0, 2.0]])
        np.testing.assert_array_equal(found.known, wanted)


class Doubled(Percentile):
    """Twice the percentile: what kernels compute for its parent is not its price."""

    def price(self, costs, side, band=None):
        return 2 * super().price(costs, side, band)


def test_a_rule_derived_from_another_is_computed_by_its_own_price():
    rng = np.random.default_rng(0)
    Zs, Xs = ([rng.normal(size=5) for _ in range(3)] for _ in range(2))
    assert lowered(Doubled(30)).kind == "own"
    found = dropdtw.pairwise(Zs, Xs, Doubled(5), progress=False)
    np.testing.assert_allclose(found, [[dropdtw.distance(Z, X, Doubled(5)) for X in Xs] for Z in Zs])
    assert not np.allclose(found, dropdtw.pairwise(Zs, Xs, Percentile(5), progress=False))
