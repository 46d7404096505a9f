"""The table of features in docs/migrating.md: every ✓ is a call that works with the pinned version of that library."""

import re
from importlib import import_module
from pathlib import Path

import dtw as dtw_python
import numpy as np
import pytest
import torch
from aeon import distances as aeon
from aeon.clustering.averaging import elastic_barycenter_average
from aeon.similarity_search.subsequence import NaiveSubsequenceSearch
from dtaidistance import dtw as dtaidistance
from dtaidistance import dtw_barycenter
from dtaidistance.clustering import kmeans
from dtaidistance.subsequence.dtw import subsequence_alignment
from librosa.sequence import dtw as librosa
from tslearn import metrics as tslearn
from tslearn.barycenters import dtw_barycenter_averaging

import dropdtw
import dropdtw.sklearn
import dropdtw.torch
from dropdtw import orders

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore")  # theirs

RNG = np.random.default_rng(0)
P, Q, C = RNG.normal(size=(9, 3)), RNG.normal(size=(14, 3)), RNG.random((5, 8))
MANY = [RNG.normal(size=n) for n in (7, 12, 9)]
TABLE, LABELS = RNG.normal(size=(8, 1, 20)), np.arange(8) % 2
SERIES = TABLE[:, 0]
BATCH = torch.rand(2, 5, 3, requires_grad=True), torch.rand(2, 7, 3)


def stream(**options):
    online = dropdtw.Online(P, **options)
    for x in Q:
        online.push(x)
    return online.finish().cost


def neighbors(module, series):
    """What a classifier of a library says; importing it may warn."""
    classifier = import_module(module).KNeighborsTimeSeriesClassifier(n_neighbors=1)
    return classifier.fit(series, LABELS).predict(series)


def clusters(estimator, **options):
    return estimator(2, random_state=0, **options).fit(SERIES).labels_


def dtaidistance_clusters():
    return kmeans.KMeans(k=2, show_progress=False).fit(SERIES)[0]


CALLS = {
    "drop costs: a number, one per element, a percentile": {
        "dropdtw": lambda: [dropdtw.distance(P, Q, d) for d in (0.3, np.full(14, 0.3), "percentile:30")],
    },
    "a query anywhere in a signal (free ends)": {
        "dropdtw": lambda: dropdtw.distance(P, Q, method="subsequence"),
        "tslearn": lambda: tslearn.dtw_subsequence_path(P, Q)[1],
        "dtaidistance": lambda: dtaidistance.distance(MANY[0], MANY[1], psi=(0, 0, 12, 12)),
        "librosa": lambda: librosa(P.T, Q.T, subseq=True)[0][-1].min(),
        "dtw-python": lambda: dtw_python.dtw(P, Q, step_pattern="asymmetric", open_begin=True, open_end=True).distance,
    },
    "every place where a query occurs, best first": {
        "dropdtw": lambda: [o.cost for o in dropdtw.find(SERIES[0], SERIES.ravel(), 3)],
        "aeon": lambda: (
            NaiveSubsequenceSearch(20, distance="dtw").fit(SERIES.reshape(1, 1, -1)).predict(SERIES[:1], k=3)[1]
        ),
        "dtaidistance": lambda: [
            match.value for match in subsequence_alignment(SERIES[0], SERIES.ravel()).kbest_matches(3, overlap=0)
        ],
    },
    "missing values (NaN) left out": {
        "dropdtw": lambda: dropdtw.distance(P, np.where(np.arange(14)[:, None] == 5, np.nan, Q), missing="drop"),
    },
    "a matrix of match costs instead of series": {
        "dropdtw": lambda: dropdtw.cost(C),
        "tslearn": lambda: tslearn.dtw_path_from_metric(C, metric="precomputed")[1],
        "librosa": lambda: librosa(C=C)[0][-1, -1],
        "dtw-python": lambda: dtw_python.dtw(C).distance,
    },
    "step patterns with weights": {
        "dropdtw": lambda: dropdtw.distance(P, Q, method="symmetricP1"),
        "librosa": lambda: librosa(
            P.T, Q.T, step_sizes_sigma=np.array([[1, 1], [1, 2], [2, 1]]), weights_mul=np.array([2.0, 1, 1])
        )[0][-1, -1],
        "dtw-python": lambda: dtw_python.dtw(P, Q, step_pattern="symmetricP1").distance,
    },
    "a mask of the pairs that may match": {
        "dropdtw": lambda: dropdtw.cost(C, mask=np.abs(np.subtract.outer(range(5), range(8))) < 5),
        "dtw-python": lambda: dtw_python.dtw(C, window_type=lambda i, j, **sizes: abs(i - j) < 5).distance,
    },
    "ERP, EDR, derivative and weighted DTW": {
        "dropdtw": lambda: [
            dropdtw.distance(*SERIES[:2], method=name, **({"threshold": 0.5} if name == "edr" else {}))
            for name in ("erp", "edr", "ddtw", "wdtw")
        ],
        "aeon": lambda: [getattr(aeon, f"{name}_distance")(*SERIES[:2]) for name in ("erp", "edr", "ddtw", "wdtw")],
    },
    "all pairs of series of different lengths, in parallel": {
        "dropdtw": lambda: dropdtw.pairwise(MANY, n_jobs=2),
        "tslearn": lambda: tslearn.cdist_dtw(MANY, n_jobs=2),
        "aeon": lambda: aeon.dtw_pairwise_distance(MANY, n_jobs=2),
        "dtaidistance": lambda: dtaidistance.distance_matrix(MANY, parallel=True, use_mp=True),
    },
    "soft-DTW": {
        "dropdtw": lambda: dropdtw.distance(*MANY[:2], method="dtw", reducer="soft"),
        "tslearn": lambda: tslearn.soft_dtw(*MANY[:2]),
        "aeon": lambda: aeon.soft_dtw_distance(*MANY[:2]),
    },
    "a loss for PyTorch": {
        "dropdtw": lambda: torch.autograd.grad(dropdtw.torch.SoftDTWLoss()(*BATCH), BATCH[0])[0],
        "tslearn": lambda: torch.autograd.grad(tslearn.SoftDTWLossPyTorch()(*BATCH).sum(), BATCH[0])[0],
    },
    "a classifier for scikit-learn": {
        "dropdtw": lambda: (
            dropdtw.sklearn.AlignmentKNeighborsClassifier(1).fit(TABLE[:, 0], LABELS).predict(TABLE[:, 0])
        ),
        "tslearn": lambda: neighbors("tslearn.neighbors", TABLE[:, 0]),
        "aeon": lambda: neighbors("aeon.classification.distance_based", TABLE),
    },
    "averages (DBA) and k-means under DTW": {
        "dropdtw": lambda: [*dropdtw.barycenter(SERIES).average, *clusters(dropdtw.sklearn.AlignmentKMeans)],
        "tslearn": lambda: [
            *dtw_barycenter_averaging(SERIES)[:, 0],
            *clusters(import_module("tslearn.clustering").TimeSeriesKMeans, metric="dtw"),
        ],
        "aeon": lambda: [
            *elastic_barycenter_average(SERIES[:, None], distance="dtw")[0],
            *clusters(import_module("aeon.clustering").TimeSeriesKMeans, distance="dtw"),
        ],
        "dtaidistance": lambda: [*dtw_barycenter.dba_loop(SERIES), *map(len, dtaidistance_clusters().values())],
    },
    "steps in any order, alternatives, repeats": {
        "dropdtw": lambda: [
            dropdtw.cost(C, 0.3, order=order)
            for order in (orders.any_order(*range(5)), [0, orders.one_of(1, 2), 3, 4], orders.repeat([0, 1, 2, 3, 4]))
        ],
    },
    "online (streaming) alignment": {"dropdtw": lambda: stream(drop_x=0.3)},
}


def table():
    """The marks of the table: for each feature, which libraries have it."""
    lines = re.search(r"## Comparison with other libraries\n\n(.+?)\n\n", PAGE, flags=re.S)[1].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    libraries = cells[0][1:]
    assert all(mark in "✓–" for row in cells[2:] for mark in row[1:])
    return {row[0]: {name for name, mark in zip(libraries, row[1:], strict=True) if mark == "✓"} for row in cells[2:]}


def test_every_mark_has_its_call():
    assert table() == {feature: set(calls) for feature, calls in CALLS.items()}


@pytest.mark.parametrize(("feature", "library"), [(f, name) for f, calls in CALLS.items() for name in calls])
def test_a_mark_is_a_call_that_works(feature, library):
    found = CALLS[feature][library]()
    found = found.detach().numpy() if hasattr(found, "detach") else found
    assert np.isfinite(np.asarray(found, float)).all()
