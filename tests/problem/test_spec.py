"""A request as one value: built once, the same for every public function, and serialized as plain data."""

import json
import pickle

import numpy as np
import pytest

import dropdtw
from dropdtw.drops import Constant, Percentile
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.tables import recurrence

LOCKSTEP = dropdtw.Recurrence(
    name="lockstep",
    states=("m",),
    start="m",
    final=("m",),
    edges=dropdtw.edges("m", to="m", moves="diag", cost="match"),
)


def test_a_spec_names_its_table_and_its_rules():
    spec = Spec.of("percentile:30", 0.5, contiguous=True)
    assert spec.table == recurrence.two_sided(contiguous=True)
    assert (spec.drop_x, spec.drop_z, spec.threshold) == (Percentile(30.0), Constant(0.5), None)
    assert Spec.of("suggest").table == recurrence.one_sided()
    assert Spec.of().table == recurrence.dtw()


def test_equal_requests_are_equal_and_survive_pickling():
    a, b = (Spec.of("percentile:30", match="cosine", window=3) for _ in range(2))
    assert a == b
    assert a != Spec.of("percentile:31", match="cosine", window=3)
    for spec in (a, Spec.of("suggest", 0.3, reducer="soft", gamma=0.2), Spec.of(method="lcss", threshold=0.5)):
        assert pickle.loads(pickle.dumps(spec)) == spec


def test_settings_say_all_of_it_as_plain_data():
    given = {"drop_x": "percentile:12.5", "drop_z": np.float32(0.5), "match": "auto", "window": np.int64(3)}
    settings = Spec.of(**given, method="drop_dtw", contiguous=True).settings()
    assert json.loads(json.dumps(settings)) == settings
    assert settings == {
        "match": "auto", "method": "drop_dtw", "one_to_many": True, "many_to_one": True, "contiguous": True,
        "window": 3, "drop_x": "percentile:12.5", "drop_z": 0.5, "threshold": None,
    }  # fmt: skip
    assert Spec.of(**settings).settings() == settings


NOT_PLAIN = {
    "a function as match": ({"match": lambda Z, X: Z @ X.T}, "match is <function .*give a name"),
    "a table": ({"method": LOCKSTEP}, "method is .*lockstep.*give a name"),
    "a vector": ({"drop_x": [0.1, 0.2]}, r"drop_x is \[0.1, 0.2\]; give a number, or a rule such as"),
    "a function": ({"drop_z": np.min}, "drop_z is <function min.* give a number, or a rule such as"),
    "a boolean": ({"drop_x": True}, "drop_x is True; give a number"),
}


@pytest.mark.parametrize(("said", "words"), NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_settings_refuse_what_a_file_cannot_hold(said, words):
    with pytest.raises(ValueError, match=words):
        Spec.of(**said).settings()


def test_the_rule_is_found_again_in_the_problem():
    C = np.random.default_rng(0).random((3, 9))
    problem = Problem.of_costs(Spec.of("percentile:30", 0.2), C)
    np.testing.assert_array_equal(problem.given.drop_x, np.full(9, np.percentile(C, 30)))
    np.testing.assert_array_equal(problem.given.drop_z, np.full(3, 0.2))


# --- match="auto" -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [None, 1, 2, 15, 16])
def test_auto_is_euclidean_for_up_to_15_features_and_cosine_for_more(d):
    rng = np.random.default_rng(0)
    Z, X = (rng.normal(size=n if d is None else (n, d)) for n in (4, 9))
    name = "cosine" if d == 16 else "euclidean"
    assert dropdtw.align(Z, X).match == dropdtw.align(Z.tolist(), X.tolist()).match == name
    np.testing.assert_array_equal(dropdtw.align(Z, X).problem.C, getattr(dropdtw.costs, name)(Z, X))
    how = {"drop_x": 0.4, "drop_z": 0.4}
    assert dropdtw.distance(Z, X, **how) == dropdtw.distance(Z, X, **how, match=name)
    assert dropdtw.suggest_drop(Z, X) == dropdtw.suggest_drop(Z, X, match=name)
    many = [Z, X, X[2:]]
    np.testing.assert_array_equal(dropdtw.pairwise(many, **how), dropdtw.pairwise(many, **how, match=name))
    found, wanted = (dropdtw.nearest(Z, many, 2, **how, **m) for m in ({}, {"match": name}))
    assert found.costs.tolist() == wanted.costs.tolist()
    stream = dropdtw.Online(Z, **how)
    for x in X:
        stream.push(x)
    assert stream.finish().cost == pytest.approx(dropdtw.distance(Z, X, **how, match=name))


# --- "suggest" --------------------------------------------------------------------------------------------------


@pytest.fixture
def recording():
    """Three steps, fifteen frames that show them, nine that do not."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 16))
    junk, shown = rng.normal(size=(9, 16)), np.repeat(Z, 5, axis=0) + rng.normal(size=(15, 16)) / 2
    return Z, np.concatenate([junk, shown])


def test_suggest_is_the_number_that_suggest_drop_proposes_at_every_door(recording):
    Z, X = recording
    C = dropdtw.costs.cosine(Z, X)
    constant = dropdtw.suggest_drop(Z, X).constant
    assert constant == dropdtw.drops.Suggest()(C)
    for sides in ({"drop_x"}, {"drop_z"}, {"drop_x", "drop_z"}):
        rule, number = dict.fromkeys(sides, "suggest"), dict.fromkeys(sides, constant)
        assert dropdtw.align(Z, X, **rule).cost == dropdtw.align(Z, X, **number).cost
        assert dropdtw.solve(C, **rule).cost == dropdtw.solve(C, **number).cost
        assert dropdtw.cost(C, **rule) == dropdtw.cost(C, **number)
        assert dropdtw.distance(Z, X, **rule) == dropdtw.distance(Z, X, **number)
        a, b = (dropdtw.posterior(C, gamma=0.1, **how).match for how in (rule, number))
        np.testing.assert_array_equal(a, b)
    a = dropdtw.align(Z, X, drop_x="suggest")
    assert a.dropped_x[:9].all()
    assert not a.dropped_x[9:].any()


def test_suggest_heeds_the_window(recording):
    Z, X = recording
    wide = dropdtw.suggest_drop(Z, X, window=0.2)
    d_x = dropdtw.align(Z, X, "suggest", "suggest", window=0.2).problem.costs.drop_x
    np.testing.assert_array_equal(d_x, np.full(len(X), wide.constant))
    assert wide.constant != dropdtw.suggest_drop(Z, X).constant


def test_every_pair_of_pairwise_has_a_suggestion_of_its_own(recording):
    Z, X = recording
    many = [Z, X, X[5:], X[:12] + 0.1]
    found = dropdtw.pairwise(many, drop_x="suggest", drop_z="suggest")
    one_by_one = [[dropdtw.distance(A, B, "suggest", "suggest") for B in many] for A in many]
    np.testing.assert_allclose(found, one_by_one)
    assert np.abs(found - found.T).max() > 0.01  # it depends on the x of each pair, so order matters


# --- Alignment.posterior ----------------------------------------------------------------------------------------


def test_an_alignment_gives_the_posterior_of_its_problem(recording):
    Z, X = recording
    a = dropdtw.align(Z, X, "percentile:30", window=0.5)
    p = dropdtw.posterior(a.problem.C, drop_x="percentile:30", window=0.5, gamma=0.2)
    np.testing.assert_array_equal(a.posterior(0.2).match, p.match)
    with pytest.raises(ValueError, match="came without its costs"):
        dropdtw.Alignment.from_dict(a.to_dict()).posterior()


@pytest.mark.parametrize(
    ("how", "remedy"), [({}, "pass many_to_one=True"), ({"method": "steps"}, "give drop_z, or use")]
)
def test_the_remedy_for_too_many_steps_is_one_that_works(how, remedy):
    """`method="steps"` forbids that an x matches several z, so allowing it again would change nothing."""
    with pytest.raises(ValueError, match=f"cannot each have an x of their own; {remedy}"):
        dropdtw.solve(np.ones((5, 3)), 0.5, **{"many_to_one": False, **how})
