"""A small ragged batch and every loss, for the tests of the losses."""

import torch

from dropdtw import torch as dt

Z_LENGTHS, X_LENGTHS = [3, 2, 4], [5, 7, 4]
ORDER = torch.tensor([[1, 0, 2, 3], [1, 0, 2, 3], [3, 2, 1, 0]])


def batch(seed=0, d=3, dtype=torch.float64, scale=1.0):
    """Padded Z (3, 4, d) and X (3, 7, d), with random numbers in the padding."""
    draw = torch.Generator().manual_seed(seed)
    return tuple(scale * torch.randn(3, n, d, generator=draw, dtype=torch.float64).to(dtype) for n in (4, 7))


def items(Z, X):
    """The items of such a batch as NumPy arrays."""
    return [
        (z[:k].double().numpy(), x[:n].double().numpy())
        for z, x, k, n in zip(Z.detach(), X.detach(), Z_LENGTHS, X_LENGTHS, strict=True)
    ]


LENGTHS = {"z_lengths": Z_LENGTHS, "x_lengths": X_LENGTHS}


def learned(output, **more):
    torch.manual_seed(3)
    return dt.LearnedDrop(3, output=output, **more)


class Wronged(torch.nn.Module):
    """D³TW with the same wrong order in every call."""

    def __init__(self, **options):
        super().__init__()
        self.loss = dt.D3TWLoss(30.0, **options)

    def forward(self, Z, X, **lengths):
        return self.loss(Z, X, wrong=ORDER[: len(Z), : max(map(len, Z))], **lengths)


LOSSES = {
    "drop-dtw": lambda **o: dt.DropDTWLoss(**o),
    "drop-dtw of logits": lambda **o: dt.DropDTWLoss("logit:30", match="softmax:2", **o),
    "drop-dtw, constant": lambda **o: dt.DropDTWLoss(0.4, match="cosine", gamma=0.5, **o),
    "drop-dtw, learned cost": lambda **o: dt.DropDTWLoss(learned("cost", depth=2), learned("cost"), **o),
    "drop-dtw, learned logit": lambda **o: dt.DropDTWLoss(learned("logit"), **o),
    "drop-dtw, both sides": lambda **o: dt.DropDTWLoss(0.3, 0.4, match="cosine", reducer="soft", **o),
    "drop-dtw, as printed": lambda **o: dt.DropDTWLoss(0.3, 0.4, match="cosine", method="drop_dtw_paper", **o),
    "drop-dtw, exclusive": lambda **o: dt.DropDTWLoss(0.3, 0.3, many_to_one=False, contiguous=True, **o),
    "smooth-dtw": lambda **o: dt.SmoothDTWLoss(match="softmax:0.7", normalize="x", **o),
    "soft-dtw": lambda **o: dt.SoftDTWLoss(gamma=0.5, **o),
    "soft-dtw divergence": lambda **o: dt.SoftDTWDivergence(normalize="both", **o),
    "otam": lambda **o: dt.OTAMLoss(gamma=0.3, **o),
    "d3tw": lambda **o: Wronged(**o),
    "margin": lambda **o: dt.MarginLoss(dt.DropDTWLoss(0.4, 0.4, match="cosine"), 3.0, **o),
    "margin to all": lambda **o: dt.MarginLoss(dt.SoftDTWLoss(normalize="z"), 9.0, negatives="all", **o),
    "clustering": lambda **o: dt.ClusteringLoss(**o),
    "clustering, contrastive": lambda **o: dt.ClusteringLoss("contrastive", gamma=0.5, gamma_contrast=2.0, **o),
    "clustering and background": lambda **o: dt.ClusteringLoss("contrastive", background=learned("logit"), **o),
    "clustering in the batch": lambda **o: dt.ClusteringLoss("contrastive", negatives="batch", **o),
}
DETACHED = ("drop-dtw", "drop-dtw of logits")  # drop costs depend on match costs, but are detached
MIXING = ("margin", "margin to all", "clustering in the batch")  # items interact
