"""Random batches under `torch.func`: `vmap`, `grad` and `jacrev` give what a loop and autograd give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from problems import VARIANTS, random_costs

from dropdtw.tables.table import CHARGES

try:
    import torch
    from torch.func import grad, jacrev, vmap

    from dropdtw import torch as losses
except ImportError:
    torch = None  # type: ignore[assignment]

MATCHES = ("softmax:3", "cosine", "sqeuclidean", "cityblock", "chebyshev", "correlation")


def case(rng: np.random.Generator) -> str:
    """One law on one random batch."""
    if torch is None:
        return "PyTorch is not installed"
    law = LAWS[rng.integers(len(LAWS))]
    law(rng)
    return law.__name__.replace("_", " ")


def values_agree(rng: np.random.Generator) -> None:
    """`drop_dtw` over V mapped batches, of which any argument may be mapped or shared."""
    V, B, K, N = (int(n) for n in rng.integers(1, 5, 4))
    given, options = random_call(rng, V, B, K, N)
    names = [name for name in given if name == "C" or rng.random() < 0.6]
    shared = {name: value[0] for name, value in given.items() if name not in names}

    def f(*mapped: Any) -> Any:
        arguments = shared | dict(zip(names, mapped, strict=True))
        return losses.drop_dtw(arguments.pop("C"), strict=False, **arguments, **options)

    mapped = [given[name] for name in names]
    items = list(zip(*mapped, strict=True))
    close(vmap(f)(*mapped), torch.stack([f(*item) for item in items]), given, options)
    close(vmap(grad(total(f)))(*mapped), torch.stack([slopes(f, *item) for item in items]), given, options)
    jacobian = jacrev(f)(*items[0])
    close(jacobian.sum(0), slopes(f, *items[0]), given, options)
    alone(jacobian)


def losses_agree(rng: np.random.Generator) -> None:
    """Losses over V mapped batches of sequences and lengths."""
    V, B, K = (int(n) for n in rng.integers(1, 4, 3))
    N, d = int(rng.integers(K, K + 3)), int(rng.integers(2, 5))
    drop = [0.3, "percentile:40", "logit:30", None][rng.integers(4)]
    reducer, match = ["hard", "soft", "smooth"][rng.integers(3)], str(rng.choice(MATCHES))
    how = {"reducer": reducer, "match": "softmax:3" if drop == "logit:30" else match, "reduction": "none"}
    loss = losses.DropDTWLoss(drop, **how)
    Z, X = (torch.tensor(rng.normal(size=(V, B, n, d))) for n in (K, N))
    lengths = torch.tensor(rng.integers(K, N + 1, (V, B)))

    def f(z: Any, x: Any, n: Any) -> Any:
        return loss(z, x, x_lengths=n)

    items = list(zip(Z, X, lengths, strict=True))
    close(vmap(f)(Z, X, lengths), torch.stack([f(*item) for item in items]), loss)
    close(vmap(grad(total(f)))(Z, X, lengths), torch.stack([slopes(f, *item) for item in items]), loss)
    jacobian = jacrev(f)(*items[0])
    close(jacobian.sum(0), slopes(f, *items[0]), loss)
    alone(jacobian)


def random_call(rng: np.random.Generator, V: int, B: int, K: int, N: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `drop_dtw` with a leading axis of V, and options that are not mapped."""
    options = dict(VARIANTS[rng.integers(len(VARIANTS))])
    x, z = options.pop("sides")
    z = z and options["method"] != "ctc"  # which a batch refuses
    if "threshold" in options:
        options["threshold"] = 0.4
    options |= {name: 0.25 for name in CHARGES if name in options}
    options |= {"reducer": ["hard", "soft", "smooth"][rng.integers(3)], "gamma": float(10.0 ** rng.uniform(-1, 1))}
    given = {"C": torch.tensor(tame(random_costs(rng, (V * B, K * N), np.float64)).reshape(V, B, K, N))}
    for name, wanted, n in (("drop_x", x, N), ("drop_z", z, K)):
        if wanted:
            given[name] = torch.tensor(rng.normal(size=(V, B, n)))
    if rng.random() < 0.5:
        given["z_lengths"] = torch.tensor(rng.integers(1, K + 1, (V, B)))
        given["x_lengths"] = torch.tensor(rng.integers(1, N + 1, (V, B)))
    return given, options


def tame(C: np.ndarray) -> np.ndarray:
    """The costs without ties (derivatives there are a choice) and without huge ones (their differences lose digits)."""
    C = np.where(np.isfinite(C), np.clip(C, -10, 10), C)
    return np.asarray(C + np.linspace(0, 1e-3, C.size).reshape(C.shape) ** 2)


def total(f: Callable[..., Any]) -> Callable[..., Any]:
    """The sum of the finite values; items that fit no alignment are +∞."""
    return lambda *given: torch.where(torch.isfinite(out := f(*given)), out, 0.0).sum()


def slopes(f: Callable[..., Any], first: Any, *rest: Any) -> Any:
    """The gradient of the total by the first argument, by autograd."""
    first = first.clone().requires_grad_()
    sum_ = total(f)(first, *rest)
    return torch.autograd.grad(sum_, first)[0] if sum_.requires_grad else torch.zeros_like(first)  # LCSS counts


def alone(jacobian: Any) -> None:
    """No value of a batch depends on another item."""
    for k, by_item in enumerate(jacobian):
        others = [row for b, row in enumerate(by_item) if b != k]
        assert not any(row.any() for row in others), k


def close(found: Any, wanted: Any, *context: Any) -> None:
    """Whether both agree up to rounding, +∞ included."""
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9, equal_nan=False, msg=lambda m: f"{m}\n{context}")


LAWS = (values_agree, losses_agree)
