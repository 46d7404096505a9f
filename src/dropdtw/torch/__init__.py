"""Alignment as a loss: `drop_dtw` and what is built on it, for PyTorch on CPU and CUDA.

`import dropdtw` does not import this; it needs `pip install dropdtw[torch]`.
"""

from dropdtw.torch.costs import (
    cosine,
    percentile_drop,
    percentile_logit,
    softmax,
    softmax_with_drop,
    sqeuclidean,
)
from dropdtw.torch.functional import drop_dtw

__all__ = [
    "cosine",
    "drop_dtw",
    "percentile_drop",
    "percentile_logit",
    "softmax",
    "softmax_with_drop",
    "sqeuclidean",
]
