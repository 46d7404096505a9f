"""`Aligner`: the options as one value, and the functions as its verbs."""

import inspect
import json
import pickle
import warnings
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import dropdtw
from dropdtw import Aligner, costs, drops, orders
from dropdtw.problem.errors import OptionError, UnknownOptionError
from dropdtw.problem.options import OPTIONS, DistanceOptions

Z = np.array([0.0, 1.0, 2.0, 3.0])
X = np.array([0.1, 1.0, 7.0, 1.1, 2.0, 2.9])
C = abs(Z[:, None] - X)
MASK = C < 6

JSON_SAFE = [
    Aligner(),
    Aligner("percentile:30", match="softmax:10", reducer="soft", gamma=0.1, normalize=None),
    Aligner([0.1, np.inf], drop_z=(1, 2)),
    Aligner(np.inf, 2, mask=MASK, missing="drop"),
    Aligner(drops.LogitPercentile(30), match=costs.Softmax(0.5, ids=(1, 1, 2))),
    Aligner(method=dropdtw.free_ends((2, True))),
    Aligner(method=dropdtw.erp((1.0, 2.0))),
    Aligner(method=dropdtw.wdtw(0.3), window=3),
    Aligner(0.3, order=orders.any_order([0, 1], 2, 3)),
    Aligner("suggest", open_x="suggest", warp=0.1, many_to_one=False, contiguous=True),
    Aligner(method="lcss", threshold="percentile:10"),
]


@pytest.mark.parametrize("aligner", JSON_SAFE, ids=repr)
def test_copies_are_equal(aligner):
    stored = json.loads(json.dumps(aligner.to_dict(), allow_nan=False))
    for copy in (Aligner.from_dict(stored), pickle.loads(pickle.dumps(aligner)), aligner.replace()):
        assert copy == aligner
        assert hash(copy) == hash(aligner)
        assert repr(copy) == repr(aligner)


def test_all_these_aligners_differ():
    assert len(set(JSON_SAFE)) == len(JSON_SAFE)
    assert Aligner(window=1) != Aligner(window=1.0)  # a column; all of X


def test_the_same_option_in_another_form_is_equal():
    assert Aligner(1) == Aligner(1.0) == Aligner(np.float32(1)) == Aligner(drops.Constant(1))
    assert Aligner("percentile:30") == Aligner(drops.Percentile(30.0))
    assert Aligner([1, 2]) == Aligner(np.array([1.0, 2.0]))
    assert Aligner(method=dropdtw.METHODS["dtw"]) == Aligner(method="dtw")


def test_arrays_are_copied_and_read_only():
    given, mask = np.array([0.1, 0.2]), MASK.copy()
    aligner, same = Aligner(given, mask=mask), Aligner([0.1, 0.2], mask=MASK)
    given[0], mask[0] = 9, False
    assert aligner == same
    for array in (aligner.drop_x, aligner.mask, pickle.loads(pickle.dumps(aligner)).mask):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0


def test_aligners_are_frozen():
    with pytest.raises(FrozenInstanceError):
        Aligner().drop_x = 3


def test_functions_compare_by_identity_and_are_named_by_to_dict():
    def match(Z, X):
        return C

    aligner = Aligner(match=match)
    assert aligner == Aligner(match=match)
    assert aligner != Aligner(match=lambda Z, X: C)
    with pytest.raises(OptionError, match=r"^match is <function .* which JSON cannot hold; give a name"):
        aligner.to_dict()


def test_repr_shows_only_what_differs():
    assert repr(Aligner()) == "Aligner()"
    assert repr(Aligner("percentile:30", warp=1)) == "Aligner(drop_x='percentile:30', warp=1)"
    for aligner in (Aligner("percentile:30", warp=1), Aligner(0.3, 0.4, window=3, method="greedy")):
        assert eval(repr(aligner)) == aligner


def test_unknown_options_name_the_closest():
    for call in (lambda: Aligner(windw=3), lambda: Aligner.from_dict({"windw": 3}), lambda: Aligner().replace(windw=3)):
        with pytest.raises(UnknownOptionError, match=r"^Aligner has no option windw; did you mean window\?$") as found:
            call()
        assert isinstance(found.value, TypeError)


@pytest.mark.parametrize(("wrong", "said"), [({"gamma": -1}, "gamma is -1"), ({"drop_x": "x"}, "drop_x is 'x'")])
def test_invalid_options_raise_when_it_is_made(wrong, said):
    with pytest.raises(ValueError, match=said):
        Aligner(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": -1.0}, {"drop_x": "x"}, {"window": -3}, {"method": "otm"}, {"reducer": "max"}, {"warp": -1},
        {"open_x": 0.5}, {"missing": "keep"},
    ],
    ids=str,
)  # fmt: skip
def test_errors_about_options_have_parts(wrong):
    with pytest.raises(OptionError) as found:
        Aligner(**wrong)
    error, ((name, value),) = found.value, wrong.items()
    assert (error.name, error.value) == (name, value)
    assert str(error).startswith(f"{name} is {value!r}")
    assert error.text(lambda name: f"--{name}").startswith(f"--{name} is {value!r}")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize("function", ["align", "alignments", "solve", "distance", "cost", "pairwise", "posterior"])
def test_functions_declare_options_as_the_aligner_does(function):
    for name, parameter in inspect.signature(getattr(dropdtw, function)).parameters.items():
        if name in OPTIONS:
            assert (parameter.default, parameter.annotation) == (OPTIONS[name].default, OPTIONS[name].type)


def test_types_for_keywords_are_those_of_the_declaration():
    typed = {name: getattr(hint, "__forward_arg__", hint) for name, hint in DistanceOptions.__annotations__.items()}
    declared = {name: each.type for name, each in OPTIONS.items() if name not in ("drop_x", "drop_z")}
    assert typed == declared


@pytest.mark.parametrize("function", ["find", "nearest", "barycenter", "Online", "suggest_drop"])
def test_searches_have_the_defaults_of_the_aligner(function):
    for name, parameter in inspect.signature(getattr(dropdtw, function)).parameters.items():
        # For suggest_drop, drop_z is whether z may be dropped; for Online, gamma=None leaves out probabilities.
        if name in OPTIONS and (function, name) not in {("suggest_drop", "drop_z"), ("Online", "gamma")}:
            assert parameter.default == OPTIONS[name].default


@pytest.mark.parametrize("function", ["align", "alignments", "solve", "distance", "cost", "pairwise", "posterior"])
def test_functions_pass_every_option_on(function, monkeypatch):
    class ArrivedError(Exception):
        """Holds the options that arrived."""

    def arrive(verb, drop_x, drop_z, options):
        raise ArrivedError({"drop_x": drop_x, "drop_z": drop_z, **options})

    monkeypatch.setattr(dropdtw.api, "aligner_of", arrive)
    call = getattr(dropdtw, function)
    given = {name: object() for name in inspect.signature(call).parameters if name in OPTIONS}
    with pytest.raises(ArrivedError) as found:
        call(*((Z, X) if function in ("align", "distance") else (C,)), **given)
    (arrived,) = found.value.args
    assert arrived == given


def test_verbs_are_the_functions():
    aligner = Aligner(0.5, match="sqeuclidean")
    assert aligner.align(Z, X).pairs.tolist() == dropdtw.align(Z, X, 0.5, match="sqeuclidean").pairs.tolist()
    assert aligner.distance(Z, X) == dropdtw.distance(Z, X, 0.5, match="sqeuclidean")
    assert aligner.distance(Z, X, max_cost=0.1) == np.inf
    assert aligner.solve(C).cost == aligner.cost(C) == dropdtw.cost(C, 0.5)
    assert (aligner.pairwise([Z, X]) == dropdtw.pairwise([Z, X], drop_x=0.5, match="sqeuclidean")).all()
    assert [o.cost for o in aligner.find(Z, X)] == [o.cost for o in dropdtw.find(Z, X, drop_x=0.5, match="sqeuclidean")]
    assert aligner.nearest(Z, [X, Z]).indices.tolist() == [1, 0]
    assert aligner.barycenter([Z, X]).cost == dropdtw.barycenter([Z, X], drop_x=0.5).cost
    assert aligner.suggest(Z, X) == dropdtw.suggest_drop(Z, X, match="sqeuclidean")
    online = aligner.online(Z)
    for x in X:
        online.push(x)
    assert online.finish().labels.tolist() == aligner.align(Z, X).labels.tolist()


def test_posterior_takes_costs_or_sequences():
    aligner = Aligner(0.5, match="euclidean", gamma=0.1)
    assert (aligner.posterior(C).match == dropdtw.posterior(C, drop_x=0.5, gamma=0.1).match).all()
    assert np.allclose(aligner.posterior(Z, X).match, aligner.posterior(C).match)
    assert (dropdtw.posterior(Z, X, drop_x=0.5, gamma=0.1).match == aligner.posterior(Z, X).match).all()
    with pytest.raises(TypeError, match=r"second argument of posterior is 0.5; give X, or drop costs by keyword"):
        dropdtw.posterior(C, 0.5)


def test_the_minimum_does_not_concern_alignments():
    assert Aligner(0.5, reducer="soft", gamma=9).align(Z, X).cost == Aligner(0.5).align(Z, X).cost


@pytest.mark.parametrize(
    ("verb", "given", "option"),
    [
        ("find", (Z, X), {"method": "otam"}),
        ("nearest", (Z, [X]), {"mask": MASK}),
        ("pairwise", ([Z, X],), {"order": orders.any_order(*range(4))}),
        ("barycenter", ([Z, X],), {"drop_z": 0.5}),
    ],
)
def test_verbs_name_the_option_that_they_cannot_use(verb, given, option):
    (name,) = option
    with pytest.raises(OptionError, match=f"^{name} is .*, which {verb} cannot use; use replace"):
        getattr(Aligner(**option), verb)(*given)


# --- What warns ---------------------------------------------------------------------------------------------------


def test_a_suggestion_is_kept_and_reported_if_it_is_doubtful(recwarn):
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(3, 16))
    frames = np.concatenate([rng.normal(size=(9, 16)), np.repeat(steps, 5, axis=0) + rng.normal(size=(15, 16)) / 2])
    clear = dropdtw.align(steps, frames, "suggest")
    assert clear.suggestion == dropdtw.suggest_drop(steps, frames)
    assert not recwarn.list
    assert dropdtw.align(steps, frames, 0.4).suggestion is None
    with pytest.warns(UserWarning, match=r"suggested with a confidence of \d+% only: good matches cost about"):
        doubtful = dropdtw.align(rng.normal(size=(3, 2)), rng.normal(size=(30, 2)), "suggest")
    assert doubtful.suggestion.confidence < 0.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"drop_x": -0.3}, "drop_x is -0.3, so that dropping pays"),
        ({"drop_z": "percentile:0.3"}, "drop_z is 'percentile:0.3'.* for 30% give 'percentile:30'"),
    ],
)
def test_drop_costs_that_are_rarely_meant_warn(options, said):
    with pytest.warns(UserWarning, match=said):
        Aligner(**options)


def test_local_alignment_of_distances_warns_that_it_is_empty():
    aligner = Aligner(1, 1, method="smith_waterman", match="euclidean")
    for call in (aligner.align, aligner.distance):
        with pytest.warns(UserWarning, match="every match cost is ≥ 0, so under 'smith_waterman' no alignment"):
            call(Z, X)
    assert len(aligner.solve(C - 1).pairs) > 0  # does not warn


def test_alignments_say_which_match_cost_was_used():
    assert dropdtw.align(Z, X).match == "euclidean"
    assert dropdtw.align(Z, X, match="sqeuclidean").match == "sqeuclidean"
    assert dropdtw.align(Z, X, method="wdtw").match == "sqeuclidean"
    assert dropdtw.solve(C).match is None
    a = dropdtw.align(Z, X)
    assert dropdtw.Alignment.from_dict(a.to_dict()).match == "euclidean"


def test_averages_take_auto_as_squared_distances():
    assert dropdtw.barycenter([Z, X], match="auto").cost == dropdtw.barycenter([Z, X], match="sqeuclidean").cost


TAKEN = {"align": (Z, X), "distance": (Z, X), "find": (Z, X), "nearest": (Z, [X]), "barycenter": ([Z, X],)}


@pytest.mark.parametrize("function", [*TAKEN, "alignments", "solve", "cost", "pairwise", "posterior", "Online"])
def test_unknown_keywords_get_the_closest_name(function):
    call, arguments = getattr(dropdtw, function), TAKEN.get(function, (C,))
    with pytest.raises(UnknownOptionError, match=rf"{function} has no option dropx; did you mean drop_x\?") as found:
        call(*arguments, dropx=1)
    assert isinstance(found.value, TypeError)
    with pytest.raises(TypeError, match=f"{function} has no option quux; the options are .*many_to_one"):
        call(*arguments, quux=1)
    assert inspect.Parameter.VAR_KEYWORD not in {p.kind for p in inspect.signature(call).parameters.values()}


def test_suggest_drop_explains_unknown_keywords():
    with pytest.raises(TypeError, match=r"pairwise has no option order; the options are "):  # not reducer
        dropdtw.pairwise([[0.0]], order=[0])
    with pytest.raises(TypeError, match=r"suggest_drop has no option windw; did you mean window\?"):
        dropdtw.suggest_drop(Z, X, windw=2)


def test_results_of_searches_say_which_match_cost_they_used():
    narrow, wide = [np.ones((4, 2)), np.eye(4, 2)], [np.ones((4, 16)), np.eye(4, 16)]
    assert dropdtw.nearest(narrow[0], narrow).match == "euclidean"
    assert dropdtw.nearest(wide[0], wide).match == dropdtw.nearest(wide[0], wide, match="cosine").match == "cosine"
    assert dropdtw.barycenter(narrow).match == "sqeuclidean"
    assert dropdtw.barycenter(wide, match="cosine").match == "cosine"


def test_a_temperature_of_the_hard_minimum_is_doubted():
    C, Z = np.eye(2), [0.0, 1.0]
    for call in (
        lambda **how: dropdtw.cost(C, **how),
        lambda **how: dropdtw.distance(Z, Z, **how),
        lambda **how: dropdtw.pairwise([Z], **how),
    ):
        for how in ({"gamma": 0.1}, {"gamma": 2, "reducer": "hard"}):
            with pytest.warns(UserWarning, match=r"gamma is .*, but the minimum is hard .*; give reducer='soft'"):
                call(**how)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            call(gamma=0.1, reducer="soft")
            call(gamma=0)
            call(reducer="hard")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropdtw.posterior(C, gamma=0.1)
        dropdtw.Aligner(gamma=0.1).cost(C)  # the temperature of its probabilities
