"""The number of alignments of an order: each is counted once, for all options."""

import numpy as np
import pytest

import dropdtw
import order_oracle
from order_cases import (
    OPTIONS,
    ORDERS,
    POSETS,
    build,
    case,
    cases_of,
    random_poset,
    random_walks,
    skipped_if_it_counts_twice,
    some_orders,
    steps_of,
)

COLUMNS = {
    "x, exclusive": {"sides": (True, False), "many_to_one": False, "contiguous": True},
    "x + z, exclusive": {"sides": (True, True), "many_to_one": False, "contiguous": True},
    "x, many-to-one": {"sides": (True, False)},
    "x + z, many-to-one": {"sides": (True, True)},
    "z only": {"sides": (False, True)},
    "DTW": {"sides": (False, False)},
}
GOLDEN = {
    "antichain of 3": [6, 55, 123, 238, 99, 66],
    "N": [0, 80, 136, 553, 252, 85],
    "two chains of 2": [0, 87, 162, 633, 296, 102],
    "diamond": [0, 66, 75, 384, 155, 42],
}
"""The number of alignments with three x."""


def counted(given, executor=None):
    """e^(−soft value): the number of alignments if all cost nothing; 0 if the library raises."""
    try:
        return np.exp(-dropdtw.cost(**given, reducer="soft", executor=executor))
    except ValueError as error:
        if "cannot each have" not in str(error):
            raise
        return 0.0


@pytest.mark.parametrize("name", GOLDEN)
def test_counts_are_those_of_the_design(name, executor):
    cases = [case(POSETS[name], options).free() for options in COLUMNS.values()]
    assert [len(c.answer.which) for c in cases] == GOLDEN[name]
    np.testing.assert_allclose([counted(c.given, executor) for c in cases], GOLDEN[name], rtol=1e-12)


@some_orders(every=8)
def test_each_alignment_is_counted_once(name, every, executor):
    for c in cases_of(name, every):
        free = c.free()
        assert counted(free.given, executor) == pytest.approx(np.exp(-free.answer.cost).sum(), rel=1e-10), c.options


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(24))
def test_each_alignment_of_a_random_order_is_counted_once(seed, executor):
    rng = np.random.default_rng(seed)
    said = random_poset(rng, int(rng.integers(4, 6))) if seed % 2 else random_walks(rng)
    with skipped_if_it_counts_twice():
        for options in OPTIONS:
            free = case(said, options, N=3).free()
            wanted = np.exp(-free.answer.cost).sum()
            assert counted(free.given, executor) == pytest.approx(wanted, rel=1e-10), options


@pytest.mark.parametrize("name", POSETS)
def test_oracle_lists_the_matrices_that_some_linear_extension_allows(name):
    said = POSETS[name]
    K, N = steps_of(said), 2
    pairs = [tuple(pair) for pair in build(said).pairs()]
    (course,) = order_oracle.courses(said, N)
    listed = order_oracle.listed(said, K, N)
    by_step = {tuple(row[course.steps.index(step)] for step in range(K)) for row in listed.rows}
    assert len(by_step) == len(listed.rows)
    assert by_step == order_oracle.matrices(K, N, pairs)


def test_oracle_of_a_list_is_the_oracle_of_lists():
    import oracle

    rng = np.random.default_rng(0)
    C, d_x, d_z = rng.normal(size=(3, 3)), rng.random(3), rng.random(3)
    for options in ({}, {"many_to_one": False}, {"contiguous": True}, {"open_x": 0.5, "open_z": 0.25, "warp": 0.125}):
        ours = order_oracle.answer([0, 1, 2], C, d_x, d_z, **options).cost
        theirs = [cost for _, cost in oracle.alignments(C, d_x, d_z, **options)]
        np.testing.assert_allclose(np.sort(ours), np.sort(theirs), atol=1e-12)


def test_orders_meet_every_option_set():
    met = {(*c.options.values(), c.drop_x is None, c.drop_z is None) for name in ORDERS for c in cases_of(name, 8)}
    assert len(met) == len(OPTIONS) == 32
