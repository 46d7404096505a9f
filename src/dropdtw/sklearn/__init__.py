"""Alignment for scikit-learn: nearest neighbors, distances to prototypes as features, and clustering.

`import dropdtw` does not import this package. It needs `pip install 'dropdtw[sklearn]'`.

Other clusterers of scikit-learn need only the distances of all pairs. With the same drop cost on both sides, these are
symmetric, as `metric="precomputed"` expects:

>>> import numpy as np, dropdtw
>>> from sklearn.cluster import AgglomerativeClustering
>>> t = np.linspace(0, 1, 20)
>>> series = [np.sin(6 * t), np.r_[np.sin(6 * t[:9]), 7, 7, np.sin(6 * t[9:])], t, np.r_[t[:5], -5, t[5:]]]
>>> D = dropdtw.pairwise(series, drop_x=0.5, drop_z=0.5, match="euclidean")
>>> AgglomerativeClustering(2, metric="precomputed", linkage="average").fit_predict(D).tolist()
[0, 0, 1, 1]
"""

try:
    import sklearn as _installed  # noqa: F401
except ImportError:
    raise ImportError("dropdtw.sklearn needs scikit-learn: pip install 'dropdtw[sklearn]'") from None

from dropdtw.sklearn.kmeans import AlignmentKMeans
from dropdtw.sklearn.kmedoids import AlignmentKMedoids
from dropdtw.sklearn.neighbors import AlignmentKNeighborsClassifier, AlignmentKNeighborsRegressor
from dropdtw.sklearn.panel import as_series
from dropdtw.sklearn.tables import columns
from dropdtw.sklearn.transformer import AlignmentTransformer

__all__ = [
    "AlignmentKMeans",
    "AlignmentKMedoids",
    "AlignmentKNeighborsClassifier",
    "AlignmentKNeighborsRegressor",
    "AlignmentTransformer",
    "as_series",
    "columns",
]
