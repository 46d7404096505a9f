"""User-defined graphs: `walks` warns exactly if two walks visit the same steps."""

import warnings
from collections import Counter

import numpy as np
import pytest

from dropdtw import orders
from order_cases import random_walks


def says(*said):
    """The steps in the warning of `walks`; None if it does not warn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        orders.walks(*said)
    if not caught:
        return None
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith("two walks through the graph visit the same steps")
    return tuple(int(step) for step in text.split(":")[0].split("steps ")[1].split(","))


def spelled_twice(labels, arcs, finals, jumps, longest):
    """The words that two walks spell, found by listing all walks of at most `longest` steps."""
    ways = [*arcs, *jumps]
    words = Counter()
    walks = [(0, ())]
    for _ in range(longest):
        walks = [(b, (*word, labels[b - 1])) for v, word in walks for a, b, _ in ways if a == v]
        words.update(word for v, word in walks if v in finals)
    return {word for word, n in words.items() if n > 1}


def check(said):
    found, twice = says(*said), spelled_twice(*said, longest=7)
    if found is None:
        assert not twice, said
    else:
        longest = len(found)
        assert found in (twice if longest <= 7 else spelled_twice(*said, longest=longest)), said
    return found is not None


@pytest.mark.parametrize("block", [0, *(pytest.param(n, marks=pytest.mark.exhaustive) for n in range(1, 20))])
def test_warning_comes_exactly_where_two_walks_pass_the_same_steps(block):
    rng = np.random.default_rng(block)
    warned = [check(random_walks(rng)[1:]) for _ in range(60)]
    assert 0 < sum(warned) < len(warned)  # both cases occur


def test_arcs_listed_twice_are_two_walks():
    assert says([0], [(0, 1), (0, 1, 0.5)], [1]) == (0,)
    assert says([0], [(0, 1)], [1], [(0, 1)]) == (0,)
    assert says([0], [(0, 1)], [1]) is None


def test_a_loop_beside_a_node_of_the_same_step_is_ambiguous_late():
    said = [0, 1, 0], [(0, 1, 0.0), (1, 2, 0.0), (2, 3, 0.0)], [1, 3], [(3, 1, 0.0), (2, 1, 0.0)]
    assert says(*said) == (0, 1, 0)
    only_jumps = [0, 1], [(0, 1, 0.0), (1, 2, 0.0)], [2], [(2, 1, 0.0)]
    assert says(*only_jumps) is None


def test_many_equal_ends_are_seen_at_once():
    n = 3000
    assert says([0] * n, [(0, v) for v in range(1, n + 1)], range(1, n + 1)) == (0,)


def test_builders_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        orders.one_of([0, 1], [0, 2])
        orders.repeat([0, 1])
        orders.jumps(3, [(2, 0)])
