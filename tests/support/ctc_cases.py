"""Targets, batches and enumerated paths for the tests of CTC."""

from itertools import groupby, product

import torch

TARGETS = ([1], [1, 2], [1, 1], [2, 1, 2], [1, 2, 2], [1, 1, 1], [])


def paths(tokens: list[int], T: int, V: int, blank: int = 0) -> list[tuple[int, ...]]:
    """Every path that gives the tokens once repeats are merged and then blanks removed."""
    merged = ((p, [k for k, _ in groupby(p) if k != blank]) for p in product(range(V), repeat=T))
    return [p for p, found in merged if found == tokens]


def scores(log_probs: torch.Tensor, found: list[tuple[int, ...]]) -> torch.Tensor:
    """The log-probability of each path through (T, V)."""
    T = len(log_probs)
    return torch.stack([log_probs[range(T), list(p)].sum() for p in found])


def batch(seed: int, *, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, ...]:
    """Logits (T, B, V), padded targets with many equal neighbors, and both lengths."""
    torch.manual_seed(seed)
    B, T, V, S = 6, 23, 5, 7
    return (
        torch.randn(T, B, V, dtype=dtype).mul(2),
        torch.randint(1, V, (B, S)),
        torch.tensor([T, T - 1, 15, 14, T, 9]),
        torch.tensor([S, 3, S, 1, 0, 4]),
    )
