"""`LearnedDrop`: drop costs that a small network computes from the other sequence (paper Eq. 6)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn

from dropdtw.torch import costs
from dropdtw.torch.batch import Pairs, count, pairs, real
from dropdtw.torch.functional import Batch, Lengths
from dropdtw.torch.reduction import check_number


class LearnedDrop(nn.Module):
    """d^x = X · f(mean Z) (paper Eq. 6): the cost of dropping x_j, learned from the content of Z.

    dim : d, the number of features.
    depth, hidden : f has `depth` linear layers with ReLU between them, of width `hidden` (None: d).
    output : "logit" makes the result a drop logit, which adds "drop" as one more class to the softmax of the match
        costs, so the drop cost is −log of a probability. It works only as drop_x with `match="softmax"`. "cost" makes
        the result the drop cost itself, as in Eq. 6. That cost has no lower bound, so training can make drops ever
        cheaper; add a term that prevents this, such as `ClusteringLoss` and weight decay.
    residual : whether f(m) = m + network(m), so that training starts from the similarity to the mean of Z.
    scale : factor of the result. Standardized features have products of size d, so a training step changes the drop
        cost much more than the features; scale=1/√d balances them.
    anchor : for "logit", a percentile 0 to 100, or None (the default). With an anchor, the network's logits are
        centered over the x, then added to the percentile logit of the similarities ("logit:30" for anchor=30). So the
        network decides *which* x to drop, and the percentile decides how many. Without an anchor, nothing keeps the
        loss from making drops ever cheaper, until only the one x that each z needs is matched; long training does
        exactly that.

    One module serves one side. As drop_z of a `DropDTWLoss`, it computes d^z = Z · f(mean X). Raises ValueError if an
    option is invalid.

    >>> import torch
    >>> from dropdtw.torch import LearnedDrop
    >>> drop = LearnedDrop(2, output="cost")
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
        output: Literal["logit", "cost"] = "logit",
        *,
        residual: bool = True,
        scale: float = 1.0,
        anchor: float | None = None,
    ) -> None:
        super().__init__()
        for name, size in (("dim", dim), ("depth", depth), ("hidden", dim if hidden is None else hidden)):
            if not isinstance(size, int) or isinstance(size, bool) or size < 1:
                raise ValueError(f"{name} is {size!r}; give a whole number, 1 or more")
        if output not in ("logit", "cost"):
            raise ValueError(
                f"output is {output!r}; choose 'logit' (in the softmax cost) or 'cost' (the drop cost itself)"
            )
        if anchor is not None and (output != "logit" or not 0 <= anchor <= 100):
            raise ValueError(
                f"anchor is {anchor!r} and output is {output!r}; give a percentile from 0 to 100, with output='logit'"
            )
        self.output, self.residual, self.anchor = output, residual, anchor
        self.scale = check_number(scale, "scale")
        widths = [dim, *[dim if hidden is None else hidden] * (depth - 1), dim]
        layers: list[nn.Module] = []
        for n, m in pairwise(widths):
            layers += [nn.Linear(n, m), nn.ReLU()]
        self.network = nn.Sequential(*layers[:-1])

    def forward(
        self, Z: Batch, X: Batch | None = None, *, z_lengths: Lengths = None, x_lengths: Lengths = None
    ) -> Tensor:
        """Compute X · f(mean Z) of a batch; the mean excludes padding.

        Z, X : (B, K, d) and (B, N, d), or lists of B sequences.   z_lengths, x_lengths : (B,), if they are padded.

        Returns (B, N). Raises ValueError if the batch is invalid, or if d differs from `dim`.
        """
        if X is None:  # as a drop rule of NumPy functions, it would get the match costs alone
            raise ValueError(
                "a LearnedDrop is a network on both sequences, which an Aligner cannot run; use loss.align"
            )
        p = pairs(Z, X, z_lengths, x_lengths)
        return torch.bmm(p.X, self.direction(p)[..., None]).squeeze(2)

    def direction(self, p: Pairs) -> Tensor:
        """Compute scale · f(mean Z) of checked pairs, (B, d): the vector whose products with the x are the result."""
        mean = p.Z.sum(dim=1) / count(p.Z, p.z_lengths)[:, None]
        first = next(self.network.parameters())
        if first.shape[1] != mean.shape[1]:
            raise ValueError(f"Z has {mean.shape[1]} features, but this LearnedDrop was made for {first.shape[1]}")
        f: Tensor = self.network(mean.to(first.dtype)).to(mean.dtype)
        if self.residual:
            f = f + mean
        return self.scale * f

    def of_pairs(self, p: Pairs) -> Tensor:
        """Compute the same for pairs that are already checked."""
        found: Tensor = self(p.given_z, p.given_x, z_lengths=p.z_lengths, x_lengths=p.x_lengths)
        return found

    def logit(self, p: Pairs) -> Tensor | Callable[[Tensor], Tensor]:
        """Return the drop logit of checked pairs for the softmax: (B, N), or a function of the similarities."""
        own = self.own_logit(p)
        if self.anchor is None:
            return own
        percent = self.anchor
        return lambda S: costs.percentile_logit(S, percent, p.z_lengths, p.x_lengths) + own

    def own_logit(self, p: Pairs) -> Tensor:
        """Compute the part of the drop logit (B, N) that does not depend on the similarities."""
        own = self.of_pairs(p)
        if self.anchor is None:
            return own
        there = real(p.given_x, p.x_lengths)
        return own - torch.where(there, own, 0.0).sum(dim=1, keepdim=True) / count(p.given_x, p.x_lengths)[:, None]

    def extra_repr(self) -> str:
        """Describe the settings for `repr`."""
        return f"output={self.output!r}, residual={self.residual}, scale={self.scale:g}, anchor={self.anchor}"
