"""Alignment as a loss: `drop_dtw` and the losses built on it, for PyTorch on CPU and CUDA.

`import dropdtw` does not import this package. It needs `pip install 'dropdtw[torch]'`. "The paper" is Dvornik et al.,
"Drop-DTW", NeurIPS 2021 (arXiv:2108.11996).

- `DropDTWLoss`, `SmoothDTWLoss`, `SoftDTWLoss`, `SoftDTWDivergence`, `OTAMLoss` and `D3TWLoss` compute an alignment
  loss from sequences. `AlignmentLoss`, their base class, explains the options that they share.
- `MarginLoss` compares the right alignment with wrong ones. `ClusteringLoss` is a regularizer.
- `LearnedDrop` computes drop costs with a small network.
- `ctc_loss`, `CTCLoss`, `forced_align` and `monotonic_align` serve speech, with the arguments of PyTorch's and
  torchaudio's functions.
- `align` and `posterior` find the best alignments of a batch and their probabilities, on its device.
- `drop_dtw` takes match costs and returns the values of alignments. `cosine`, `softmax` and the other functions compute
  match and drop costs.
"""

try:
    import torch as _installed  # noqa: F401
except ImportError:
    raise ImportError("dropdtw.torch needs PyTorch: pip install 'dropdtw[torch]'") from None

from dropdtw.torch.alignments import BatchAlignment, BatchPosterior, align, posterior
from dropdtw.torch.clustering import ClusteringLoss
from dropdtw.torch.costs import (
    chebyshev,
    cityblock,
    correlation,
    cosine,
    percentile_drop,
    percentile_logit,
    softmax,
    softmax_with_drop,
    sqeuclidean,
)
from dropdtw.torch.discriminative import D3TWLoss, MarginLoss
from dropdtw.torch.functional import drop_dtw
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.losses import (
    AlignmentLoss,
    DropDTWLoss,
    OTAMLoss,
    SmoothDTWLoss,
    SoftDTWDivergence,
    SoftDTWLoss,
)
from dropdtw.torch.speech import CTCLoss, ctc_loss, forced_align, monotonic_align

__all__ = [
    "AlignmentLoss",
    "BatchAlignment",
    "BatchPosterior",
    "CTCLoss",
    "ClusteringLoss",
    "D3TWLoss",
    "DropDTWLoss",
    "LearnedDrop",
    "MarginLoss",
    "OTAMLoss",
    "SmoothDTWLoss",
    "SoftDTWDivergence",
    "SoftDTWLoss",
    "align",
    "chebyshev",
    "cityblock",
    "correlation",
    "cosine",
    "ctc_loss",
    "drop_dtw",
    "forced_align",
    "monotonic_align",
    "percentile_drop",
    "percentile_logit",
    "posterior",
    "softmax",
    "softmax_with_drop",
    "sqeuclidean",
]
