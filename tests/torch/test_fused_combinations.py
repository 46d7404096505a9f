"""Random combinations of the options of built-in losses: the fused operator agrees with the general path."""

import random

import pytest

from fused_cases import DEVICE, QUIET, check, learned

torch = pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")

from dropdtw.torch import DropDTWLoss, OTAMLoss, SmoothDTWLoss, SoftDTWDivergence  # noqa: E402

pytestmark = QUIET


def drawn_loss(draw, d):
    """A loss, and how it was made."""
    match = draw.choice(["softmax", "cosine", "sqeuclidean"])
    options = {
        "match": match,
        "reducer": draw.choice(["smooth", "soft", "hard"]),
        "gamma": draw.choice([0.1, 1.0]),
        "normalize": draw.choice([None, "x", "z", "both"]),
        "one_to_many": draw.random() < 0.8,
        "many_to_one": draw.random() < 0.6,
    }
    options |= {"match": f"softmax:{draw.choice([0.5, 3.0])}"} if match == "softmax" else {}
    charge = [0.0, 0.3, torch.nn.Parameter(torch.tensor(0.2))]
    kind = draw.choice(["drop", "drop", "drop", "drop", "paper", "smooth", "otam", "divergence"])
    if kind == "smooth":
        return SmoothDTWLoss(**options, warp=draw.choice(charge)), options
    if kind == "otam":
        return OTAMLoss(**options), options
    if kind == "divergence" and match != "softmax":
        return SoftDTWDivergence(**options), options
    x = [None, 0.4, "percentile:30", learned(dim=d, output="cost")]
    x += ["logit:30", learned(dim=d), learned(dim=d, anchor=40.0)] if match == "softmax" else []
    options |= {"drop_x": draw.choice(x)}
    options |= {"drop_z": draw.choice([None, None, 0.4, "percentile:70", learned(dim=d, output="cost")])}
    if kind == "paper":
        return DropDTWLoss(**options, method="drop_dtw_paper"), options
    options |= {"contiguous": draw.random() < 0.3, "warp": draw.choice(charge)}
    options |= {f"open_{side}": draw.choice(charge) for side in "xz" if options[f"drop_{side}"] is not None}
    return DropDTWLoss(**options), options


def drawn_sequences(draw, match, seed):
    """Sequences with ties, equal rows, zero rows, or distances that overflow; and their lengths and names."""
    B, K, N, d = draw.randint(1, 3), draw.randint(1, 5), draw.randint(1, 9), draw.choice([1, 3, 17])
    generator = torch.Generator().manual_seed(seed)
    Z, X = (torch.randn(B, n, d, dtype=torch.float64, generator=generator) for n in (K, N))
    if draw.random() < 0.4:
        Z, X = Z.round(), X.round()
    if draw.random() < 0.5:
        Z[:, K // 2] = Z[:, 0]
    if draw.random() < 0.3:
        X[0, -1], Z[0, -1] = 0.0, 0.0
    if match == "sqeuclidean" and draw.random() < 0.3:
        X[-1, 0] = 1e200
    how = {}
    if draw.random() < 0.6:
        how["z_lengths"] = [draw.randint(1, K) for _ in range(B)]
    if draw.random() < 0.6:
        how["x_lengths"] = [draw.randint(1, N) for _ in range(B)]
    if match == "softmax" and draw.random() < 0.3:
        how["ids"] = torch.tensor([[draw.randint(-2, 2) for _ in range(K)] for _ in range(B)], device=DEVICE)
    return *(a.to(DEVICE).requires_grad_() for a in (Z, X)), how


SEEDS = [*range(6), *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(6, 200))]


@pytest.mark.parametrize("seed", SEEDS)
def test_any_combination(quick, switch, seed):
    draw = random.Random(seed)
    state = draw.getstate()
    match = drawn_loss(draw, 1)[1]["match"]
    Z, X, how = drawn_sequences(random.Random(-seed), match, seed)
    draw.setstate(state)
    loss, _ = drawn_loss(draw, Z.shape[2])
    loss = loss.to(DEVICE, Z.dtype)
    said = []
    for on in (False, True):
        switch(on)
        try:
            loss.per_item(Z, X, **how)
        except ValueError as error:  # more z than x, and none may match twice
            said.append(str(error))
    assert len(set(said)) == len(said) // 2, "both refuse it alike, or none"
    if not said:
        check(switch, loss, Z, X, atol=1e-8, **how)
