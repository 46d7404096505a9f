"""`LearnedDrop`: drop costs that a small network reads off the other sequence (paper Eq. 6)."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from torch import Tensor, nn

from dropdtw.torch.batch import count, pairs
from dropdtw.torch.functional import Batch, Lengths


class LearnedDrop(nn.Module):
    """d^x = X · f(mean Z) (paper Eq. 6): what dropping x_j costs, learned, from the content of Z.

    dim : d, the number of features.
    depth, hidden : f has `depth` linear layers with ReLU between them, of width `hidden` (None: d).
    as_ : "logit": the result is a drop logit that competes with the steps in the softmax of the match costs, so that
        the drop cost is −log of a probability; it needs `match="softmax"` and is for drop_x. "cost": the result is the
        drop cost itself, as Eq. 6 has it. Nothing bounds it below: a loss that is minimised over it can make drops
        ever cheaper, so train it with something that holds it up, such as `ClusteringLoss` and weight decay.
    residual : whether f(m) = m + network(m), so that training starts from the similarity to the mean of Z.

    One module serves one side. As drop_z of a `DropDTWLoss` it gives d^z = Z · f(mean X).

    >>> import torch
    >>> drop = LearnedDrop(2, as_="cost")
    >>> for parameter in drop.parameters():
    ...     _ = torch.nn.init.zeros_(parameter)
    >>> drop(torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]), torch.tensor([[[3.0, 1.0], [0.0, 0.5]]]))
    tensor([[2.0000, 0.2500]], grad_fn=...)
    """

    def __init__(
        self,
        dim: int,
        depth: int = 1,
        hidden: int | None = None,
        as_: Literal["logit", "cost"] = "logit",
        *,
        residual: bool = True,
    ) -> None:
        super().__init__()
        for name, size in (("dim", dim), ("depth", depth), ("hidden", dim if hidden is None else hidden)):
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name} is {size!r}; give a whole number, 1 or more")
        if as_ not in ("logit", "cost"):
            raise ValueError(f"as_ is {as_!r}; choose 'logit' (in the softmax cost) or 'cost' (the drop cost itself)")
        self.as_, self.residual = as_, residual
        widths = [dim, *[dim if hidden is None else hidden] * (depth - 1), dim]
        layers: list[nn.Module] = []
        for n, m in pairwise(widths):
            layers += [nn.Linear(n, m), nn.ReLU()]
        self.network = nn.Sequential(*layers[:-1])

    def forward(self, Z: Batch, X: Batch, *, z_lengths: Lengths = None, x_lengths: Lengths = None) -> Tensor:
        """X · f(mean Z), (B, N), for batches Z (B, K, d) and X (B, N, d); means are over real elements."""
        p = pairs(Z, X, z_lengths, x_lengths)
        mean = p.Z.sum(dim=1) / count(p.Z, p.z_lengths)[:, None]
        first = next(self.network.parameters())
        if first.shape[1] != mean.shape[1]:
            raise ValueError(f"Z has {mean.shape[1]} features, but this LearnedDrop was made for {first.shape[1]}")
        f: Tensor = self.network(mean.to(first.dtype)).to(mean.dtype)
        if self.residual:
            f = f + mean
        return (p.X @ f[..., None])[..., 0]

    def extra_repr(self) -> str:
        """What `print` adds."""
        return f"as_={self.as_!r}, residual={self.residual}"
