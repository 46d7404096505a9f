"""Parts of losses on one CUDA device, for `benchmarks/gpu.py`: L_clust, percentiles, padding and squared distances.

Each is checked against the general path, and then timed, forward + backward from Z and X.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from gpu import graph_replay, interleaved
from gpu_losses import LOSSES, B, D, K, N, everything, general, host_ms, sequences, step
from torch import Tensor

from dropdtw.torch import ClusteringLoss, DropDTWLoss, SoftDTWLoss, drop_dtw, percentile_drop, percentile_logit, stages
from dropdtw.torch import costs as torch_costs
from dropdtw.torch.batch import pairs

CLUSTERS: dict[str, Callable[..., ClusteringLoss]] = {
    "Frobenius": partial(ClusteringLoss, gamma=4.0),
    "contrastive": partial(ClusteringLoss, "contrastive", gamma=4.0, gamma_contrast=6.0),
    "contrastive, batch": partial(ClusteringLoss, "contrastive", gamma=4.0, gamma_contrast=6.0, negatives="batch"),
}


def close(a: Tensor, b: Tensor, tolerance: float, said: str) -> float:
    """The largest difference, relative to the largest entry."""
    off = float((a - b).abs().max() / b.abs().max().clamp(min=1))
    assert off < tolerance, f"{said}: {off:.1e}"
    return off


def check_clustering() -> float:
    """Every form at awkward sizes, ragged and not, NaN in the padding, in both precisions."""
    worst = 0.0
    generator = torch.Generator("cuda").manual_seed(0)
    for name, make in CLUSTERS.items():
        for m, shape in enumerate([(1, 1, 1, 1), (3, 7, 65, 8), (2, 33, 70, 17), (2, 66, 40, 130), (24, 10, 200, 512)]):
            Z, X = sequences(*shape, torch.float64, generator=generator)
            how = {}
            if m % 2:
                how["z_lengths"] = torch.tensor([shape[1], max(1, shape[1] // 2), 1][: shape[0]], device="cuda")
                how["x_lengths"] = torch.tensor([shape[2] - 3, shape[2], 1][: shape[0]], device="cuda")
            spoilt = [a.detach().clone() for a in (Z, X)]
            for a, lengths in zip(spoilt, how.values(), strict=False):
                a[torch.arange(a.shape[1], device="cuda") >= lengths[:, None]] = torch.nan
            loss = make(reduction="none")
            with general():
                truth = values_and_slopes(loss, Z, X, **how)
            for dtype, tolerance in ((torch.float64, 1e-11), (torch.float32, 1e-4)):
                given = [a.to(dtype).requires_grad_() for a in spoilt]
                for a, b in zip(values_and_slopes(loss, *given, **how), truth, strict=True):
                    off = close(a.double(), b, tolerance, f"{name} {shape} {dtype}")
                    worst = max(worst, off if dtype == torch.float64 else 0.0)
    print("checked clustering", flush=True)
    return worst


def values_and_slopes(loss: ClusteringLoss, Z: Tensor, X: Tensor, **how: Tensor) -> list[Tensor]:
    value = loss(Z, X, **how)
    return [value.detach(), *torch.autograd.grad(value.sum(), (Z, X))]


def check_compiled_clustering() -> None:
    """Without graph breaks, and in CUDA graphs of the compiler's own; NaN in the padding."""
    Z, X = sequences(4, 6, 40, 32)
    lengths = {"x_lengths": torch.tensor([40, 7, 39, 1], device="cuda")}
    with torch.no_grad():
        X[1, 7:] = torch.nan
    for make in CLUSTERS.values():
        loss = make()
        if loss.negatives == "batch":
            continue
        truth = values_and_slopes(loss, Z, X, **lengths)
        for mode in ("default", "reduce-overhead"):
            torch._dynamo.reset()
            compiled = torch.compile(loss, fullgraph=True, mode=mode)
            for _ in range(3):
                torch.compiler.cudagraph_mark_step_begin()
                found = values_and_slopes(compiled, Z, X, **lengths)
            for a, b in zip(found, truth, strict=True):
                close(a, b, 1e-5, f"compiled, {mode}")
    print("checked compiled clustering", flush=True)


def check_percentiles() -> None:
    """Selection is exact, in registers and by counting, with ties, holes and padding."""
    for shape in ((3, 5, 30), (2, 130, 257), (16, 300, 400), (1, 1000, 1000)):
        for dtype in (torch.float32, torch.float64):
            C = torch.randn(*shape, dtype=dtype, device="cuda")
            C = torch.where(C > 1.5, torch.inf, torch.where(C < 0, (C * 8).round(), C))
            C[0, 1, ::2] = torch.nan
            z, x = (torch.randint(1, n + 1, shape[:1], device="cuda") for n in shape[1:])
            first = (torch.arange(shape[1], device="cuda") // 2 * 2).to(torch.int32).expand(shape[:2]).contiguous()
            masked = C.masked_fill(~torch_costs.is_first(first)[..., None], -torch.inf)
            for p in (0.0, 12.5, 30.0, 100.0):
                for lengths in ((None, None), (z, x)):
                    select = stages.kernels().select.percentile
                    assert torch.equal(select(C, p, *lengths)[:, None], percentile_drop(C, p, *lengths)), (shape, p)
                    found = select(C, p, *lengths, first, True)[:, None]
                    assert torch.equal(found, percentile_logit(masked, p, *lengths)), (shape, p)
    C = torch.rand(4, 50, 500, device="cuda").mT
    with general():
        truth = drop_dtw(C, "percentile:30")
    assert torch.equal(drop_dtw(C, "percentile:30"), truth)
    print("checked percentiles", flush=True)


def check_padding() -> None:
    """What stands in the padding counts for nothing; an item alone has the value that it has in a batch.

    To the last bit, with features of few digits, whose products are exact in every order.
    """
    names = [name for name in LOSSES if "learned" not in name and "anchored" not in name]
    sizes = [(3, 66), (9, 40), (17, 130), (1, 1)]
    Z, X = ((torch.randn(4, n, 24, device="cuda") * 4).round() / 4 for n in (17, 130))
    z, x = (torch.tensor(n, device="cuda") for n in zip(*sizes, strict=True))
    for a, lengths in ((Z, z), (X, x)):
        a[torch.arange(a.shape[1], device="cuda") >= lengths[:, None]] = torch.nan
    for name in names:
        for match in ("softmax",) if "logit" in name else ("softmax", "sqeuclidean"):
            loss = LOSSES[name](24, normalize="x", match=match).cuda()
            whole = everything(loss, Z.clone().requires_grad_(), X.clone().requires_grad_(), z_lengths=z, x_lengths=x)
            for b, (k, n) in enumerate(sizes):
                item = [a[b : b + 1, :m].clone().requires_grad_() for a, m in ((Z, k), (X, n))]
                alone = everything(loss, *item)
                assert torch.equal(whole[0][b], alone[0][0]), f"{name} {match} {k} × {n}"
                for a, c, m in ((whole[1], alone[1], k), (whole[2], alone[2], n)):
                    torch.testing.assert_close(a[b, :m], c[0], rtol=1e-4, atol=1e-5)
                    assert not a[b, m:].any(), f"{name}: derivatives in the padding"
    for make in CLUSTERS.values():
        loss = make(reduction="none")
        if loss.negatives == "item":
            whole = values_and_slopes(loss, *(a.clone().requires_grad_() for a in (Z, X)), z_lengths=z, x_lengths=x)
            for b, (k, n) in enumerate(sizes):
                item = [a[b : b + 1, :m].clone().requires_grad_() for a, m in ((Z, k), (X, n))]
                assert torch.equal(whole[0][b], values_and_slopes(loss, *item)[0][0]), f"L_clust {k} × {n}"
    print("checked padding", flush=True)


CHECKS = (check_clustering, check_compiled_clustering, check_percentiles, check_padding)


# --- How fast -----------------------------------------------------------------------------------------------------


def time_clustering() -> None:
    """L_clust alone, with lengths, and beside an alignment loss of the same pairs."""
    lengths = {"z_lengths": torch.full((B,), K, device="cuda"), "x_lengths": torch.full((B,), N, device="cuda")}
    align = DropDTWLoss("logit:30", match="softmax:10", normalize="x")
    cluster = ClusteringLoss("contrastive")

    def together(Z: Tensor, X: Tensor) -> Tensor:
        p = pairs(Z, X, **lengths)
        return (align.values(p) + cluster.values(p)).mean()

    losses: dict[str, Callable[..., Tensor]] = {
        "−log softmax of Z Xᵀ, a sum": lambda Z, X: -torch.log_softmax(Z @ X.mT, 1).sum(),
        "L_clust": cluster,
        "L_clust, Frobenius": ClusteringLoss(),
        "L_clust, negatives of the batch": ClusteringLoss("contrastive", negatives="batch"),
        "L_clust, with lengths": partial(cluster, **lengths),
        "logit:30": align,
        "logit:30, with lengths": partial(align, **lengths),
        "percentile:30, with lengths": partial(DropDTWLoss("percentile:30", match="softmax:10"), **lengths),
        "cosine, with lengths": partial(DropDTWLoss(0.3, match="cosine"), **lengths),
        "SoftDTWLoss, with lengths": partial(SoftDTWLoss(), **lengths),
        "logit:30 + L_clust, with lengths": together,
    }
    sets = [sequences(B, K, N, D) for _ in range(3)]
    works = {name: step(loss, sets) for name, loss in losses.items()}

    def slow(work: Callable[[int], object], k: int) -> object:
        with general():
            return work(k)

    works["logit:30 + L_clust, general"] = partial(slow, works["logit:30 + L_clust, with lengths"])
    times = dict(zip(works, interleaved(list(works.values()), 50, warm_up=5), strict=True))
    print(f"\nL_clust and lengths, forward + backward, {B} × {K} × {N}, d = {D}, float32:")
    print("| | ms | host ms | in a CUDA graph, ms |\n|---|--:|--:|--:|")
    for name, work in works.items():
        print(
            f"| {name} | {times[name]:.3f} | {host_ms(work):.3f} | {graph_replay(partial(work, 0)):.3f} |", flush=True
        )


def measure() -> None:
    time_clustering()
