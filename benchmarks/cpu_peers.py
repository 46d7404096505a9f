"""How `cpu.py` calls each peer: a function that takes the inputs (double precision) and returns the call to measure."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

import numpy as np

Job = Callable[[], object]
Array = np.ndarray


def aeon(z: Array, x: Array) -> Job:
    from aeon.distances import dtw_distance

    return lambda: dtw_distance(z, x)


def dtaidistance(z: Array, x: Array) -> Job:
    from dtaidistance import dtw

    return lambda: dtw.distance_fast(z, x)


def tsdistances(z: Array, x: Array) -> Job:
    import tsdistances

    return lambda: tsdistances.dtw_distance(z, x)


def tslearn(z: Array, x: Array) -> Job:
    from tslearn.metrics import dtw

    return lambda: dtw(z, x)


def librosa(z: Array, x: Array) -> Job:
    from librosa.sequence import dtw

    return lambda: dtw(z[None], x[None], metric="sqeuclidean", backtrack=False)


def dtw_python(z: Array, x: Array) -> Job:
    from dtw import dtw

    return lambda: dtw(z, x, distance_only=True)


def aeon_path(z: Array, x: Array) -> Job:
    from aeon.distances import dtw_alignment_path

    return lambda: dtw_alignment_path(z, x)


def dtaidistance_path(z: Array, x: Array) -> Job:
    from dtaidistance import dtw

    return lambda: dtw.warping_path_fast(z, x)


def tslearn_path(z: Array, x: Array) -> Job:
    from tslearn.metrics import dtw_path

    return lambda: dtw_path(z, x)


def librosa_path(z: Array, x: Array) -> Job:
    from librosa.sequence import dtw

    return lambda: dtw(z[None], x[None], metric="sqeuclidean")


def librosa_cosine(Z: Array, X: Array) -> Job:
    from librosa.sequence import dtw

    z, x = np.ascontiguousarray(Z.T), np.ascontiguousarray(X.T)
    return lambda: dtw(z, x, metric="cosine")


def dtaidistance_vectors(Z: Array, X: Array) -> Job:
    from dtaidistance import dtw_ndim

    return lambda: dtw_ndim.distance_fast(Z, X)


def aeon_vectors(Z: Array, X: Array) -> Job:
    from aeon.distances import dtw_distance

    z, x = np.ascontiguousarray(Z.T), np.ascontiguousarray(X.T)
    return lambda: dtw_distance(z, x)


def dtaidistance_subsequence(z: Array, x: Array) -> Job:
    from dtaidistance.subsequence.dtw import subsequence_alignment

    return lambda: subsequence_alignment(z, x, use_c=True).best_match().path


def librosa_subsequence(z: Array, x: Array) -> Job:
    from librosa.sequence import dtw

    return lambda: dtw(z[None], x[None], metric="sqeuclidean", subseq=True)


def pysdtw(X: Array, Y: Array) -> Job:
    import torch
    from pysdtw import SoftDTW

    torch.set_num_threads(1)
    x, y = torch.tensor(X, dtype=torch.float32, requires_grad=True), torch.tensor(Y, dtype=torch.float32)
    loss = SoftDTW(gamma=1.0, use_cuda=False)
    return lambda: loss(x, y).sum().backward()


def tslearn_soft(X: Array, Y: Array) -> Job:
    import torch
    from tslearn.metrics import SoftDTWLossPyTorch

    x, y = torch.tensor(X, dtype=torch.float32, requires_grad=True), torch.tensor(Y, dtype=torch.float32)
    loss = SoftDTWLossPyTorch(gamma=1.0)
    return lambda: loss(x, y).sum().backward()


def aeon_pairs(series: Array) -> Job:
    from aeon.distances import dtw_pairwise_distance

    s = np.ascontiguousarray(series.transpose(0, 2, 1))
    return lambda: dtw_pairwise_distance(s)


def aeon_window(series: Array) -> Job:
    from aeon.distances import dtw_pairwise_distance

    s = np.ascontiguousarray(series.transpose(0, 2, 1))
    return lambda: dtw_pairwise_distance(s, window=0.1)


def aeon_lcss(series: Array) -> Job:
    from aeon.distances import lcss_pairwise_distance

    s = np.ascontiguousarray(series.transpose(0, 2, 1))
    return lambda: lcss_pairwise_distance(s, epsilon=0.5)


def aeon_soft(series: Array) -> Job:
    from aeon.distances import soft_dtw_pairwise_distance

    s = np.ascontiguousarray(series.transpose(0, 2, 1))
    return lambda: soft_dtw_pairwise_distance(s, gamma=1.0)


def dtaidistance_pairs(series: Array) -> Job:
    from dtaidistance import dtw

    s = np.ascontiguousarray(series[:, :, 0])
    return lambda: dtw.distance_matrix_fast(s, parallel=False)


def dtaidistance_window(series: Array) -> Job:
    from dtaidistance import dtw

    s, window = np.ascontiguousarray(series[:, :, 0]), series.shape[1] // 10 + 1
    return lambda: dtw.distance_matrix_fast(s, window=window, parallel=False)


def dtaidistance_pairs_of_vectors(series: Array) -> Job:
    from dtaidistance import dtw_ndim

    return lambda: dtw_ndim.distance_matrix_fast(series, parallel=False)


def tslearn_pairs(series: Array) -> Job:
    from tslearn.metrics import cdist_dtw

    return lambda: cdist_dtw(series)


VALUES = ("aeon", "dtaidistance", "tslearn", "librosa", "tsdistances", "dtw_python")
PATHS = ("aeon_path", "dtaidistance_path", "tslearn_path", "librosa_path")
SUBSEQUENCES = ("dtaidistance_subsequence", "librosa_subsequence")
PAIRS = {
    "plain": ("aeon_pairs", "dtaidistance_pairs", "tslearn_pairs"),
    "window": ("aeon_window", "dtaidistance_window"),
    "vectors": ("aeon_pairs", "dtaidistance_pairs_of_vectors"),
    "lcss": ("aeon_lcss",),
    "soft": ("aeon_soft",),
}
"""The peers of each kind of row, by the names of their functions here."""


def available(names: Iterable[str], *inputs: Array) -> dict[str, Job]:
    """The jobs of those that are installed, by the name of the library, after a first call, which may compile."""
    jobs: dict[str, Job] = {}
    for name in names:
        library = name if name == "dtw_python" else name.split("_")[0]
        try:
            job = globals()[name](*inputs)
            job()
        except ImportError as missing:
            print(f"  (without {library}: {missing})", file=sys.stderr)
        else:
            jobs[library] = job
    return jobs
