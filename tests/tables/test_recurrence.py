"""Tables: their content, user-defined tables, and errors for inconsistent ones."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
from dropdtw import Edge, Recurrence, edges
from dropdtw.tables import recurrence

MATCH = edges("m", to="m", moves="diag", cost="match")


def table(**changes):
    return Recurrence(**{"states": ("m",), "edges": MATCH, "start": "m", "final": ("m",), **changes})


def test_own_table_runs_everywhere():
    """A user-defined table, in which drops of x come after a match, works in every function that takes a method."""
    own = Recurrence(
        name="match, then drop",
        states=("match", "rest"),
        edges=edges("match", to="match", moves="diag left", cost="match")
        + edges("match rest", to="rest", moves="left", cost="drop_x"),
        start="match",
        final=("match", "rest"),
    )
    C = np.array([[0.1, 0.2, 5.0, 5.0], [5.0, 5.0, 0.3, 5.0]])
    a = dropdtw.solve(C, drop_x=1.0, method=own)
    assert a.labels.tolist() == [0, 0, 1, -1]
    assert a.method == "match, then drop"
    assert a.cost == approx(1.6) == approx(a.rescore())
    assert dropdtw.cost(C, drop_x=1.0, method=own) == a.cost
    assert dropdtw.align([0, 3], [0, 0.2, 3, 9], drop_x=1.0, match="euclidean", method=own).labels[-1] == -1
    assert dropdtw.posterior(C, drop_x=1.0, method=own, gamma=0.01).match == approx(a.M.astype(float), abs=1e-6)


def test_own_table_with_free_skips_has_exact_posterior_and_explanation():
    """If skips are free and an x may match several z, drops are not derivatives by d_x. They are still exact."""
    own = Recurrence(
        states=("skip", "match"),
        edges=edges("skip", to="skip", moves="left", cost="free")
        + edges("match skip", to="match", moves="diag", cost="match")
        + edges("match", to="match", moves="left top", cost="match"),
        start="skip",
        final=("match",),
    )  # DTW with a free prefix of X
    C = np.array([[3.0, 0.1, 0.5], [4.0, 2.0, 0.2]])
    p = dropdtw.posterior(C, method=own, gamma=1)
    subsets = [dropdtw.cost(C[:, k:], method="dtw", reducer="soft") for k in range(3)]
    weight = np.exp(-np.array(subsets))
    weight /= weight.sum()
    assert p.drop_x == approx([weight[1] + weight[2], weight[2], 0])
    assert p.drop_z == approx([0, 0], abs=1e-12)
    a = dropdtw.solve(C, method=own)
    assert a.labels.tolist() == [-1, 0, 1]
    e = a.explain(0)
    assert e.alternative == (0,)
    assert e.margin == approx(dropdtw.cost(C, method="dtw") - a.cost)


def test_a_diagonal_drop_passes_the_other_element_for_free():
    """A table that pays d_x on the diagonal drops z_i together with x_j. The posterior counts both."""
    own = table(edges=MATCH + edges("m", to="m", moves="diag", cost="drop_x"))
    p = dropdtw.posterior(np.zeros((2, 2)), drop_x=0.0, method=own)
    assert p.drop_x == approx([0.5, 0.5])
    assert p.drop_z == approx([0.5, 0.5])


def test_options_do_not_apply_to_own_tables():
    for option in ({"one_to_many": False}, {"many_to_one": False}, {"contiguous": True}):
        with pytest.raises(ValueError, match="change the edges of 'custom' instead"):
            dropdtw.cost(np.eye(2), method=table(), **option)


def test_transpose_twice_is_the_same_table():
    for make in (recurrence.one_sided, recurrence.two_sided, recurrence.algorithm_2, recurrence.smith_waterman):
        t = make()
        back = t.transpose().transpose()
        assert (back.edges, back.border) == (t.edges, t.border)


def test_ties_go_to_matches_and_diagonals():
    """If all costs are equal, the path takes the diagonal, and a match beats a drop of the same cost."""
    assert dropdtw.solve(np.ones((3, 3))).pairs.tolist() == [[0, 0], [1, 1], [2, 2]]
    assert dropdtw.solve(np.zeros((1, 1)), 0.0, 0.0).pairs.tolist() == [[0, 0]]
    assert dropdtw.solve(np.zeros((2, 2)), 0.0, 0.0).pairs.tolist() == [[0, 0], [1, 1]]
    assert dropdtw.solve(np.zeros((1, 2)), drop_x=np.zeros(2), one_to_many=False).labels.tolist() == [-1, 0]
    assert len(dropdtw.solve(np.zeros((2, 2)), 0.0, 0.0, method="smith_waterman").pairs) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": ()}, "list at least one, without duplicates"),
        ({"states": ("m", "m")}, "list at least one, without duplicates"),
        ({"start": "q"}, "start is .'q',.; give one or more of the states"),
        ({"start": ()}, "start is"),
        ({"final": ()}, "final is"),
        ({"final": ("m", "m")}, "final is"),
        ({"edges": edges("q", to="m", moves="diag", cost="match")}, "names a state that is not among"),
        ({"edges": (Edge("m", "m", "up", "match"),)}, "moves are diag, left, top, same"),
        ({"edges": (Edge("m", "m", "diag", "price"),)}, "costs are match, drop_x, drop_z, free"),
        ({"edges": (Edge("m", "m", "top", "drop_x"),)}, "a 'drop_x' cost can be paid on the moves left, diag only"),
        ({"edges": (Edge("m", "m", "left", "drop_z"),)}, "a 'drop_z' cost can be paid on the moves top, diag only"),
        ({"edges": (Edge("m", "m", "same", "match"),)}, "a 'match' cost can be paid on the moves diag, left, top"),
        ({"edges": (*MATCH, Edge("m", "m", "same", "free"))}, "from an earlier state to a later one"),
        ({"edges": MATCH + MATCH}, "listed twice; under soft minima it would count twice"),
        ({"states": ("m", "lost")}, r"no path from start .* leads to \['lost'\]"),
        ({"border": MATCH}, "on a border there is nothing to match"),
    ],
)
def test_wrong_tables_are_refused(changes, message):
    with pytest.raises(ValueError, match=f"recurrence 'custom': .*{message}"):
        table(**changes)
