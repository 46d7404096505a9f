"""normalize="path": the cost divided by the number of matches and drops on its path."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle

METHODS = {
    "dtw": {"method": "dtw"},
    "drop_dtw": {"drop_x": 0.3, "drop_z": 0.4},
    "one side": {"drop_x": 0.3},
    "needleman_wunsch": {"method": "needleman_wunsch", "drop_x": 0.3, "drop_z": 0.4},
    "symmetric2": {"method": "symmetric2"},
    "subsequence": {"method": "subsequence"},
}
every_method = pytest.mark.parametrize("options", [pytest.param(v, id=k) for k, v in METHODS.items()])


def in_oracle(options):
    return {{"drop_x": "d_x", "drop_z": "d_z"}.get(name, name): value for name, value in options.items()}


@every_method
def test_the_cost_is_divided_by_the_steps_of_the_best_alignment(options, executor):
    """Random costs, so no two alignments tie. Ends that a method skips for free do not count as steps."""
    rng = np.random.default_rng(0)
    for K, N in ((1, 1), (1, 4), (3, 3), (3, 5), (4, 3)):
        C = rng.random((K, N))
        M, cost = min(oracle.alignments(C, **in_oracle(options)), key=lambda found: found[1])
        free = options.get("method") == "subsequence"
        steps = M.sum() + (0 if free else (~M.any(axis=0)).sum()) + (~M.any(axis=1)).sum()
        assert dropdtw.cost(C, **options, normalize="path", executor=executor) == approx(cost / steps)


@every_method
def test_all_pairs_have_the_quotients_of_single_ones(options, executor):
    rng = np.random.default_rng(1)
    series = [rng.integers(0, 3, n).astype(float) for n in (5, 8, 8, 9)]  # ties: (a, b) and (b, a) may differ in length
    values = dropdtw.pairwise(series, **options, normalize="path", executor=executor)
    for a, z in enumerate(series):
        for b, x in enumerate(series):
            assert values[a, b] == dropdtw.distance(z, x, **options, normalize="path", executor=executor)
            found = dropdtw.align(z, x, **options, executor=executor)
            lost = 0 if options.get("method") == "subsequence" else found.paid_x.sum() + found.paid_z.sum()
            assert values[a, b] == approx(found.cost / (len(found.pairs) + lost))


def test_the_path_with_the_least_quotient_may_be_another():
    C = np.array([[1.0, 1.0], [1.6, 1.0]])  # (0, 0), (1, 1): 2 / 2; one more step costs 3 / 3, and 3 > 2
    assert dropdtw.cost(C, normalize="path") == 1
    C = np.array([[2.0, 1.0], [9.0, 2.0]])  # 4 / 2 has the lowest cost; via (0, 1) it is 5 / 3
    assert dropdtw.cost(C, normalize="path") == 2


def test_where_nothing_is_matched_or_allowed():
    assert dropdtw.cost([[5.0]], 1, 1, method="smith_waterman", normalize="path") == 0  # the empty stretch
    assert dropdtw.cost([[np.inf]], normalize="path") == np.inf
    assert dropdtw.cost([[5.0]], 1, 2, normalize="path") == 1.5
