"""CTC, forced alignment and monotonic alignment search, against enumerated paths and against PyTorch."""

import inspect
import os
from functools import partial
from itertools import combinations

import pytest
import torch
from torch.nn.functional import ctc_loss as peer_loss

from ctc_cases import TARGETS, batch, paths, scores
from dropdtw.torch import CTCLoss, ctc, ctc_cpu, ctc_loss, forced_align, monotonic_align, speech


@pytest.mark.parametrize("tokens", TARGETS)
@pytest.mark.parametrize("T", [1, 3, 5])
def test_the_loss_sums_over_every_path(tokens: list[int], T: int) -> None:
    torch.manual_seed(T)
    p = torch.randn(T, 3, dtype=torch.float64).log_softmax(-1).requires_grad_()
    found = ctc_loss(p, torch.tensor(tokens, dtype=torch.int64), T, len(tokens), reduction="none")
    every = paths(tokens, T, 3)
    if not every:
        assert found == torch.inf
        return
    wanted = -scores(p, every).logsumexp(0)
    assert torch.allclose(found, wanted, atol=1e-12)
    (mine,), (right,) = torch.autograd.grad(found, p), torch.autograd.grad(wanted, p)
    assert torch.allclose(mine, right, atol=1e-12)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("seed", range(3))
def test_values_and_gradients_at_the_logits_equal_pytorchs(seed: int, reduction: str) -> None:
    logits, targets, frames, tokens = batch(seed)
    given = [logits.clone().requires_grad_() for _ in range(3)]
    weight = torch.linspace(0.5, 2, 6, dtype=torch.float64) if reduction == "none" else torch.ones(())
    found = [
        peer_loss(given[0].log_softmax(-1), targets, frames, tokens, reduction=reduction),
        ctc_loss(given[1].log_softmax(-1), targets, frames, tokens, reduction=reduction),
        ctc_loss(given[2], targets, frames, tokens, reduction=reduction, logits=True),
    ]
    for value, z in zip(found, given, strict=True):
        (value * weight).sum().backward()
        assert torch.allclose(value, found[0], atol=1e-11)
        assert torch.allclose(z.grad, given[0].grad, atol=1e-11)


def test_the_gradient_by_log_probs_is_the_true_one() -> None:
    logits, targets, frames, tokens = batch(0)
    p = logits.log_softmax(-1).requires_grad_()
    assert torch.autograd.gradcheck(lambda q: ctc_loss(q, targets, frames, tokens, reduction="none"), p)
    short = logits[:6, :2].clone().requires_grad_()
    options = {"reduction": "none", "logits": True, "garbage": 1.5}
    assert torch.autograd.gradcheck(lambda q: ctc_loss(q, targets[:2, :3], [6, 5], [3, 2], **options), short)


def test_concatenated_targets_equal_padded_ones() -> None:
    logits, targets, frames, tokens = batch(1)
    joined = torch.cat([row[:n] for row, n in zip(targets, tokens, strict=True)])
    both = [ctc_loss(logits, y, frames, tokens, reduction="none", logits=True) for y in (targets, joined)]
    assert torch.equal(*both)


@pytest.mark.parametrize("blank", [0, 2, 4])
def test_any_token_can_be_the_blank(blank: int) -> None:
    logits, targets, frames, tokens = batch(2)
    targets = targets - 1 + (targets > blank)
    targets = torch.where(targets == blank, (blank + 1) % 5, targets)
    p = logits.log_softmax(-1)
    found = ctc_loss(p, targets, frames, tokens, blank=blank, reduction="none")
    assert torch.allclose(found, peer_loss(p, targets, frames, tokens, blank=blank, reduction="none"), atol=1e-11)


def test_targets_that_do_not_fit_are_infinite_or_zero_with_gradient_zero() -> None:
    logits, targets, frames, tokens = batch(0)
    targets[0], frames[0] = 1, 12  # seven equal tokens need 13 frames
    for zero in (False, True):
        z = logits.clone().requires_grad_()
        found = CTCLoss(reduction="none", zero_infinity=zero, logits=True)(z, targets, frames, tokens)
        assert found[0] == (0 if zero else torch.inf)
        assert found[1:].isfinite().all()
        found.sum().backward()
        assert (z.grad[:, 0] == 0).all()
        assert z.grad.isfinite().all()
    frames[0] = 13
    assert ctc_loss(logits, targets, frames, tokens, reduction="none", logits=True)[0].isfinite()


def test_padding_changes_nothing() -> None:
    logits, targets, frames, tokens = batch(1)
    z = logits.clone()
    for b, n in enumerate(frames):
        z[n:, b] = 1e4
    both = [ctc_loss(a, targets, frames, tokens, reduction="none", logits=True) for a in (logits, z)]
    assert torch.equal(*both)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_lower_precision_is_computed_in_float32(dtype: torch.dtype) -> None:
    logits, targets, frames, tokens = batch(0, dtype=dtype)
    z = logits.clone().requires_grad_()
    found = ctc_loss(z, targets, frames, tokens, reduction="none", logits=True)
    found.sum().backward()
    assert found.dtype == torch.float32
    assert z.grad.dtype == dtype
    wanted = ctc_loss(logits.double(), targets, frames, tokens, reduction="none", logits=True)
    assert torch.allclose(found.double(), wanted, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("frames_first", [True, False])
def test_the_cuda_kernels_of_emissions_agree_with_plain_operations(dtype, logits, frames_first):
    emissions = pytest.importorskip("dropdtw.executors.triton.emissions", reason="Triton is not installed")
    device = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
    torch.manual_seed(0)
    B, T, S, V = 2, 11, 37, 600
    scores = torch.randn((T, B, V) if frames_first else (B, T, V), device=device).to(dtype)
    scores = scores.transpose(0, 1) if frames_first else scores
    tokens = torch.randint(1, 30, (B, S), device=device)  # with repeats
    given = scores, tokens, 3, logits
    both = [of.forward(*given) for of in (speech._InTorch, emissions)]
    close = {"rtol": 0, "atol": 1e-12 if dtype == torch.float64 else 1e-4}
    for a, b in zip(*(found[:2] for found in both), strict=True):
        torch.testing.assert_close(a, b, **close)
    by = [torch.randn_like(part) for part in both[0][:2]]
    slow = speech._InTorch.backward(both[0][2], tokens, both[0][2], *by, 3, logits)
    fast = emissions.backward(scores, tokens, both[1][2], *by, 3, logits)
    torch.testing.assert_close(slow, fast, **close)


def results(given, targets, frames, tokens, logits=True):
    """The values and the gradient of a loss, the paths and their scores, and an alignment without blanks."""
    z = given.detach().requires_grad_()
    values = ctc_loss(z, targets, frames, tokens, reduction="none", logits=logits)
    weight = torch.linspace(0.5, 2, len(values), dtype=values.dtype)
    (grad,) = torch.autograd.grad((values * weight).sum(), z)
    paths = forced_align(given.log_softmax(-1).transpose(0, 1), targets, frames, tokens)
    rows = tokens.clamp(1, given.shape[2])
    return values, grad, *paths, monotonic_align(given.permute(1, 2, 0), z_lengths=rows, x_lengths=frames)


@pytest.fixture(scope="module")
def compiled():
    pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")


@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_compiled_passes_agree_with_plain_operations(dtype, logits, monkeypatch, compiled):
    given, targets, frames, tokens = batch(4, dtype=dtype)
    tokens[4], given = 2, torch.cat([given, given.flip(2), given[..., :1]], 2)  # 11 numbers fill no vector
    both = [results(given, targets, frames, tokens, logits)]
    monkeypatch.setattr(ctc_cpu, "runs_on", lambda scores: False)
    both.append(results(given, targets, frames, tokens, logits))
    close = {"rtol": 1e-12, "atol": 1e-12} if dtype == torch.float64 else {"rtol": 1e-5, "atol": 1e-5}
    for fast, slow in zip(*both, strict=True):
        torch.testing.assert_close(fast, slow, **close)


@pytest.mark.parametrize(("B", "T", "V"), [(1, 700, 600), (3, 150, 33)])
def test_results_do_not_depend_on_threads_or_strides(B, T, V):
    torch.manual_seed(0)
    given, targets = torch.randn(T, B, V), torch.randint(1, V, (B, 20))
    how = targets, torch.arange(T, T - B, -1), torch.full((B,), 20)
    wide = torch.zeros(T, B, 2 * V)
    wide[..., ::2] = given
    layouts = given, given.transpose(0, 1).contiguous().transpose(0, 1), wide[..., ::2]
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        wanted = results(given, *how)
        for count in (2, 5):
            torch.set_num_threads(count)
            for layout in layouts:
                assert all(torch.equal(a, b) for a, b in zip(results(layout, *how), wanted, strict=True))
    finally:
        torch.set_num_threads(threads)


def test_the_gradient_at_the_logits_is_more_exact_than_pytorchs():
    torch.manual_seed(0)
    logits, targets = torch.randn(300, 4, 40), torch.randint(1, 40, (4, 50))
    lengths = torch.full((4,), 300), torch.full((4,), 50)

    def gradient(loss, z):
        z = z.clone().requires_grad_()
        return torch.autograd.grad(loss(z, targets, *lengths, reduction="sum"), z)[0].double()

    def peer(z, *given, reduction):
        return peer_loss(z.log_softmax(-1), *given, reduction=reduction)

    wanted = gradient(peer, logits.double())
    ours, theirs = (gradient(loss, logits) - wanted for loss in (partial(ctc_loss, logits=True), peer))
    assert ours.norm() < theirs.norm()


def test_memory_that_is_used_again_belongs_to_nobody():
    logits, targets, frames, tokens = batch(5)
    z = logits.requires_grad_()
    loss = ctc_loss(z, targets, frames, tokens, reduction="sum", zero_infinity=True, logits=True)
    (first,) = torch.autograd.grad(loss, z, retain_graph=True)
    kept = first.clone()
    results(torch.randn_like(z), targets, frames, tokens)
    (second,) = torch.autograd.grad(loss, z)
    assert torch.equal(first, kept)
    assert torch.equal(second, kept)


def test_the_loss_is_differentiated_once(compiled):
    logits, targets, frames, tokens = batch(0)
    z = logits.requires_grad_()
    loss = ctc_loss(z, targets, frames, tokens, zero_infinity=True, logits=True)
    (by,) = torch.autograd.grad(loss, z, create_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        by.sum().backward()


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_scores_that_are_not_scores_are_refused(bad):
    logits, targets, frames, tokens = batch(0)
    frames[:], tokens[:] = 20, 3
    logits[20:] = bad  # padding may hold anything
    assert ctc_loss(logits, targets, frames, tokens, logits=True).isfinite()
    p = logits.log_softmax(-1).nan_to_num(bad)
    p[3, 1, 4] = -torch.inf  # a probability of 0
    assert forced_align(p.transpose(0, 1), targets, frames, tokens)[1].isfinite().all()
    logits[7, 2, 3] = p[7, 2, targets[2, 1]] = bad
    for call in (
        lambda: ctc_loss(logits, targets, frames, tokens, logits=True),
        lambda: ctc_loss(p, targets, frames, tokens),
        lambda: forced_align(p.transpose(0, 1), targets, frames, tokens),
        lambda: monotonic_align(logits[:20].permute(1, 2, 0), z_lengths=[5] * 6, x_lengths=[20] * 6),
    ):
        with pytest.raises(ValueError, match=r"has (NaN|-inf) at"):
            call()


def test_garbage_is_a_more_probable_blank() -> None:
    logits, targets, frames, tokens = batch(2)
    p = logits.log_softmax(-1)
    more = p.clone()
    more[..., 0] = (p[..., 0].exp() + torch.tensor(-2.0).exp()).log()
    found = ctc_loss(p, targets, frames, tokens, reduction="none", garbage=2.0)
    assert torch.allclose(found, ctc_loss(more, targets, frames, tokens, reduction="none"), atol=1e-12)
    never = ctc_loss(p, targets, frames, tokens, reduction="none", garbage=1e9)
    assert torch.equal(never, ctc_loss(p, targets, frames, tokens, reduction="none"))


@pytest.mark.parametrize("tokens", TARGETS[:-1])
def test_the_forced_path_is_the_most_probable_one(tokens: list[int]) -> None:
    torch.manual_seed(len(tokens))
    p = torch.randn(1, 6, 3, dtype=torch.float64).log_softmax(-1)
    path, score = forced_align(p, torch.tensor([tokens], dtype=torch.int32))
    every = paths(tokens, 6, 3)
    best = scores(p[0], every)
    assert tuple(path[0].tolist()) == every[int(best.argmax())]
    assert path.dtype == torch.int32
    assert torch.allclose(score.sum(), best.max(), atol=1e-12)


def test_a_batch_is_aligned_as_its_items() -> None:
    logits, targets, frames, tokens = batch(0)
    p = logits.log_softmax(-1).transpose(0, 1)
    path, score = forced_align(p, targets, frames, tokens)
    for b, (n, k) in enumerate(zip(frames.tolist(), tokens.tolist(), strict=True)):
        one, own = forced_align(p[b : b + 1, :n], targets[b : b + 1, :k])
        assert torch.equal(path[b, :n], one[0])
        assert torch.equal(score[b, :n], own[0])
        assert (path[b, n:] == 0).all()
        assert (score[b, n:] == 0).all()


def test_a_text_that_does_not_fit_is_refused() -> None:
    p = torch.zeros(2, 3, 4).log_softmax(-1)
    with pytest.raises(ValueError, match="the 2 tokens of item 1 do not fit into its 2 frames"):
        forced_align(p, torch.tensor([[1, 1], [2, 2]]), [3, 2])


@pytest.mark.parametrize("skip", [None, 0.3])
def test_monotonic_search_maximizes_the_sum(skip: float | None) -> None:
    torch.manual_seed(0)
    B, K, N = 5, 3, 6
    value = torch.randn(B, K, N, dtype=torch.float64)
    z, x = torch.tensor([3, 2, 1, 3, 3]), torch.tensor([6, 6, 4, 3, 5])
    path = monotonic_align(value, z_lengths=z, x_lengths=x, skip=skip)
    mask = (torch.arange(K)[:, None] < z[:, None, None]) & (torch.arange(N) < x[:, None, None])
    assert torch.equal(path, monotonic_align(value, mask.to(value.dtype), skip=skip))
    counts = monotonic_align(value, z_lengths=z, x_lengths=x, skip=skip, durations=True)
    assert torch.equal(counts, path.sum(2).long())
    assert counts.dtype == torch.int64
    for b in range(B):
        k, n = int(z[b]), int(x[b])
        best = -torch.inf
        for size in range(1, k + 1) if skip is not None else [k]:
            for kept in combinations(range(k), size):
                for cuts in combinations(range(1, n), size - 1):
                    limits = (0, *cuts, n)
                    total = -(skip or 0) * (k - size)
                    total += sum(float(value[b, i, limits[s] : limits[s + 1]].sum()) for s, i in enumerate(kept))
                    best = max(best, total)
        assert (path[b].sum(0) == (torch.arange(N) < n)).all()
        found = float((path[b] * value[b]).sum()) - (skip or 0) * float((path[b, :k].sum(1) == 0).sum())
        assert found == pytest.approx(best)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about ∞, inside the interpreter
def test_monotonic_search_by_the_cuda_kernels(monkeypatch):
    triton = pytest.importorskip("dropdtw.executors.triton", reason="Triton is not installed")
    torch.manual_seed(0)
    K, N = (6, 11) if triton.INTERPRETED else (150, 400)
    value = torch.randn(4, K, N, dtype=torch.float64)
    z, x = torch.tensor([K, 3, 1, K]), torch.tensor([N, N - 2, 4, K - 1])  # the last item has no alignment
    mask = (torch.arange(K)[:, None] < z[:, None, None]) & (torch.arange(N) < x[:, None, None])
    slow = [monotonic_align(value, z_lengths=z, x_lengths=x), monotonic_align(value)]
    assert slow[0].sum() == x[:3].sum()
    device = "cpu" if triton.INTERPRETED else "cuda"
    monkeypatch.setattr(ctc, "searches", lambda value: True)
    value, mask = value.to(device), mask.to(device)
    fast = [monotonic_align(value, mask), monotonic_align(value, mask.double()), monotonic_align(value.mT.clone().mT)]
    fast.append(monotonic_align(value, z_lengths=z, x_lengths=x))
    for a, b in zip(fast, [slow[0], slow[0], slow[1], slow[0]], strict=True):
        assert torch.equal(a.cpu(), b)
    assert torch.equal(monotonic_align(value, mask, durations=True).cpu(), slow[0].sum(2).long())


def test_an_item_with_more_tokens_than_frames_has_no_path():
    path = monotonic_align(torch.rand(2, 3, 4), z_lengths=[3, 3], x_lengths=[2, 4])
    assert not path[0].any()
    assert path[1].sum() == 4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_probs": torch.zeros(3)}, r"log_probs has shape \(3,\)"),
        ({"targets": torch.zeros(2, 2)}, "targets has shape .* give whole numbers"),
        ({"targets": torch.ones(2, 2, dtype=torch.int64)}, "targets has 2 rows, but log_probs has 1 items"),
        ({"targets": torch.tensor([[0, 1]])}, r"targets\[0\]\[0\] is 0; give tokens from 0 to 3 other than the blank"),
        ({"targets": torch.tensor([[1, 4]])}, r"targets\[0\]\[1\] is 4"),
        ({"targets": torch.tensor([1, 2, 3])}, "target_lengths sum to 2, but targets has 3 tokens"),
        ({"input_lengths": [6]}, r"input_lengths is \[6\]; give numbers from 0 to 5"),
        ({"target_lengths": [0.5]}, "target_lengths has shape .* give 1 whole numbers"),
        ({"blank": 4}, "blank is 4; give the number of a token, from 0 to 3"),
        ({"reduction": "max"}, "reduction is 'max'"),
        ({"garbage": -1.0}, "garbage is -1.0; give a finite number ≥ 0"),
    ],
)
def test_errors_of_the_loss_say_what_to_do(change: dict[str, object], message: str) -> None:
    given = {
        "log_probs": torch.zeros(5, 1, 4),
        "targets": torch.tensor([[1, 2]]),
        "input_lengths": [5],
        "target_lengths": [2],
    }
    with pytest.raises(ValueError, match=message):
        ctc_loss(**(given | change))


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's, about log 0, inside the interpreter
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("reduction", "zero"), [("none", False), ("sum", True), ("mean", True)])
@pytest.mark.parametrize("logits", [True, False])
def test_the_cuda_kernels_of_the_loss_and_of_paths_agree_with_the_cpu(logits, reduction, zero, padded):
    pytest.importorskip("dropdtw.executors.triton.emissions", reason="Triton is not installed")
    device = "cpu" if os.environ.get("TRITON_INTERPRET") == "1" else "cuda"
    given, targets, frames, tokens = batch(0)
    targets[4] = -1  # padding may hold anything
    targets[0], frames[0] = 1, 12  # does not fit
    frames[3] = 0
    if not padded:
        given, targets = given[:, 1:3], targets[1:3]
        frames, tokens = torch.tensor([23, 23]), torch.tensor([7, 7])
    both = [(given if logits else given.log_softmax(-1)).detach().requires_grad_() for _ in range(2)]
    weight = torch.linspace(0.5, 2, len(frames), dtype=torch.float64) if reduction == "none" else torch.ones(())
    finite = (
        torch.ones_like(frames, dtype=torch.bool) if zero or not padded else tokens.new_tensor([0, 1, 1, 0, 1, 1]) > 0
    )
    slow = ctc_loss(both[0], targets.clamp(min=1), frames, tokens, 0, reduction, zero, logits=logits)
    request = ctc.Request(0, reduction, zero, logits)
    lengths = (tokens.to(device), frames.to(device)) if padded else None
    fast = ctc.loss(both[1].to(device).transpose(0, 1), targets.to(device), lengths, request).cpu()
    torch.testing.assert_close(fast, slow, rtol=1e-12, atol=1e-12)
    for value in (slow, fast):
        (value * weight)[finite if reduction == "none" else ...].sum().backward()
    torch.testing.assert_close(*(z.grad for z in both), rtol=1e-12, atol=1e-12)
    fits = [1, 2, 4, 5] if padded else [0, 1]
    log_probs = given.log_softmax(-1).transpose(0, 1)[fits]
    texts, lengths = targets[fits], (tokens[fits].to(device), frames[fits].to(device)) if padded else None
    wanted = forced_align(log_probs, texts.clamp(min=1), frames[fits], tokens[fits])
    found = ctc.paths(log_probs.to(device), texts.to(device), lengths, 0)
    assert torch.equal(found[0].cpu(), wanted[0])
    torch.testing.assert_close(found[1].cpu(), wanted[1], rtol=1e-12, atol=1e-12)


def test_a_misspelled_keyword_gets_the_closest_name():
    some, token = torch.zeros(3, 1, 4), torch.ones(1, 1, dtype=int)
    for call, name in (
        (lambda: ctc_loss(some, token, [3], [1], blnk=0), "ctc_loss has no option blnk; did you mean blank"),
        (lambda: CTCLoss(logit=True), "CTCLoss has no option logit; did you mean logits"),
        (lambda: forced_align(some, token, blanc=0), "forced_align has no option blanc; did you mean blank"),
        (lambda: monotonic_align(some, duration=True), "has no option duration; did you mean durations"),
    ):
        with pytest.raises(TypeError, match=name):
            call()
    assert "unknown" not in inspect.signature(ctc_loss).parameters
