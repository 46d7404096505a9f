"""Every method and option against exhaustive enumeration: values, alignments, probabilities."""

import numpy as np
import pytest
from pytest import approx

import dropdtw
import oracle
from cases import VARIANTS, cases, name
from dropdtw.executors import EXECUTORS

every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=name)
unambiguous = pytest.mark.parametrize(
    "variant", [v for v in VARIANTS if not (v["method"] == "drop_dtw_paper" and all(v["sides"]))], ids=name
)


compiled_then_sampled = pytest.mark.parametrize(
    "executor",
    [pytest.param(e, marks=pytest.mark.sweep if e == "reference" and "cpp" in EXECUTORS else ()) for e in EXECUTORS],
    indirect=True,
)
"""All variants by the compiled executor and a sample by the reference, which the compiled one is compared with too."""


@every_variant
@compiled_then_sampled
def test_value_and_alignment_are_the_best(variant, executor):
    for case in cases(variant):
        feasible = oracle.alignments(**case.oracle())
        least = min((cost for _, cost in feasible), default=np.inf)
        assert dropdtw.cost(**case.library(executor=executor)) == approx(least, abs=1e-12)
        if not feasible:
            with pytest.raises(ValueError, match=r"forbidden|window"):
                dropdtw.solve(**case.library(executor=executor))
            continue
        a = dropdtw.solve(**case.library(executor=executor))
        paid = [cost for M, cost in feasible if np.array_equal(M, a.M)]
        assert paid == [approx(least, abs=1e-12)]
        assert a.cost == approx(paid[0], abs=1e-12)
        assert a.rescore() == approx(a.cost, abs=1e-12)


@pytest.mark.sweep
@unambiguous
@pytest.mark.parametrize(("gamma", "first"), [(0.05, 0), (1.0, 1)])
def test_soft_value_sums_over_every_alignment_once(variant, gamma, first, executor):
    for case in cases(variant)[first::2]:
        value = dropdtw.cost(**case.library(executor=executor), reducer="soft", gamma=gamma)
        assert value == approx(oracle.soft(**case.oracle(), gamma=gamma), abs=1e-11)


@pytest.mark.sweep
@unambiguous
@pytest.mark.parametrize(("gamma", "first"), [(0.2, 0), (2.0, 1)])
def test_posterior_is_the_gibbs_distribution(variant, gamma, first, executor):
    for case in cases(variant)[first::2]:
        truth = oracle.marginals(**case.oracle(), gamma=gamma)
        if np.isneginf(truth["log_partition"]):
            with pytest.raises(ValueError, match=r"forbidden|window"):
                dropdtw.posterior(**case.library(executor=executor), gamma=gamma)
            continue
        p = dropdtw.posterior(**case.library(executor=executor), gamma=gamma)
        for part in ("match", "drop_x", "drop_z", "log_partition", "entropy"):
            assert getattr(p, part) == approx(truth[part], abs=1e-10), part


@pytest.mark.parametrize(
    ("K", "N", "alignments", "paths"),
    [(1, 1, 2, 8), (2, 2, 12, 52), (2, 3, 32, 136), (3, 3, 104, 456), (4, 4, 1008, 4512)],
)
def test_number_of_paths(K, N, alignments, paths, executor):
    """At zero cost exp(−value/γ) counts paths: one per alignment by default, many in Algorithm 2 as printed."""
    count = lambda method: np.exp(  # noqa: E731
        -dropdtw.cost(np.zeros((K, N)), 0.0, 0.0, reducer="soft", method=method, executor=executor)
    )
    assert len(oracle.chains(K, N)) == alignments
    assert count("drop_dtw") == approx(alignments)
    assert count("drop_dtw_paper") == approx(paths)
