"""CTC of texts that leave something open, against sums over every subset of words, gaps and orders."""

from itertools import groupby, product

import pytest
import torch

from ctc_cases import batch, scores
from dropdtw import orders
from dropdtw.torch import CTCLoss, ctc_loss, texts


def open_text(p, words, skip=None, gap=None):
    """−log of the sum of the definition, from every subset of words, of gaps, and every path of the tokens."""
    T, V = p.shape
    wide = torch.cat([p, torch.full((T, 1), -torch.inf if gap is None else -gap, dtype=p.dtype)], 1)
    merged = {}
    for path in product(range(V + (gap is not None)), repeat=T):
        merged.setdefault(tuple(k for k, _ in groupby(path) if k), []).append(path)
    terms = []
    for kept in product((True, False), repeat=len(words)) if skip is not None else [(True,) * len(words)]:
        spoken = [word for word, here in zip(words, kept, strict=True) if here]
        for gaps in product((False, True), repeat=len(spoken) + 1) if gap is not None else [(False,) * 99]:
            tokens = []
            for word, after in zip([[], *spoken], gaps, strict=False):
                tokens += [*word, *([V] if after else [])]
            found = merged.get(tuple(tokens))
            if found:
                terms.append(scores(wide, found) - (skip or 0.0) * (len(words) - len(spoken)))
    return -torch.cat(terms).logsumexp(0) if terms else torch.tensor(torch.inf)


@pytest.mark.parametrize("words", [[[1]], [[1, 2], [2]], [[1], [1]], [[1, 1], [2]], [[2], [1], [2]], []])
@pytest.mark.parametrize("options", [{"skip": 0.7}, {"garbage": 0.9}, {"skip": 1.3, "garbage": 0.4}])
@pytest.mark.parametrize("T", [2, 5])
def test_skipped_words_and_gaps_are_summed_over_every_subset(words, options, T):
    torch.manual_seed(T)
    p = torch.randn(T, 3, dtype=torch.float64).log_softmax(-1).requires_grad_()
    tokens = torch.tensor([t for word in words for t in word], dtype=torch.int64)
    how = options | ({"within_words": False} if "garbage" in options else {})
    found = ctc_loss(p, tokens, T, len(tokens), reduction="none", words=[list(map(len, words))], **how)
    wanted = open_text(p, words, options.get("skip"), options.get("garbage"))
    if not wanted.isfinite():
        assert found == torch.inf
        return
    assert torch.allclose(found, wanted, atol=1e-12)
    (mine,), (right,) = torch.autograd.grad(found, p), torch.autograd.grad(wanted, p)
    assert torch.allclose(mine, right, atol=1e-12)


@pytest.mark.parametrize("how", [{"skip": 1e9}, {"garbage": 1e9, "within_words": False}, {"order": [None] * 6}])
def test_a_text_that_leaves_nothing_open_has_the_plain_loss(how):
    logits, targets, frames, tokens = batch(1)
    p = logits.log_softmax(-1)
    both = [ctc_loss(p, targets, frames, tokens, reduction=r, **how) for r in ("none", "mean")]
    for found, reduction in zip(both, ("none", "mean"), strict=True):
        wanted = ctc_loss(p, targets, frames, tokens, reduction=reduction)
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_a_batch_of_open_texts_is_each_item_alone():
    logits, targets, frames, tokens = batch(3)
    p = logits.log_softmax(-1)
    words = [[n - n // 2, n // 2] if n > 1 else [1] * n for n in tokens.tolist()]
    how = {"skip": 2.0, "garbage": 3.0, "within_words": False, "reduction": "none"}
    found = CTCLoss(**how)(p, targets, frames, tokens, words=words)
    for b, (n, k) in enumerate(zip(frames.tolist(), tokens.tolist(), strict=True)):
        one = ctc_loss(p[:n, b], targets[b, :k], n, k, words=[words[b]], **how)
        torch.testing.assert_close(found[b], one)


def test_a_free_order_sums_over_every_order():
    torch.manual_seed(0)
    p = torch.randn(6, 4, dtype=torch.float64).log_softmax(-1)
    free = orders.any_order(0, 1)
    found = ctc_loss(p, torch.tensor([1, 2, 2]), 6, 3, order=[free, 2], reduction="none")
    each = [ctc_loss(p, torch.tensor(text), 6, 3, reduction="none") for text in ([1, 2, 2], [2, 1, 2])]
    torch.testing.assert_close(found, -torch.stack(each).neg().logsumexp(0))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_open_texts_on_the_cuda_kernels(monkeypatch):
    triton = pytest.importorskip("dropdtw.executors.triton", reason="Triton is not installed")
    logits, targets, frames, tokens = batch(0)
    p = logits.log_softmax(-1)[:12, :2].requires_grad_()
    given = targets[:2], frames[:2].clamp(max=12), tokens[:2].clamp(max=4)
    how = {"skip": 2.0, "garbage": 1.0, "within_words": False, "reduction": "sum"}
    slow = ctc_loss(p, *given, **how)
    if triton.INTERPRETED:
        monkeypatch.setattr(texts.functional, "executor_of", lambda C: "triton")
        fast = ctc_loss(p, *given, **how)
    else:
        fast = ctc_loss(p.cuda(), *(part.cuda() for part in given), **how).cpu()
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(*(torch.autograd.grad(value, p)[0] for value in (fast, slow)))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"skip": -1.0}, "skip is -1.0; give a finite number ≥ 0"),
        ({"within_words": False}, "within_words is False, but there is no garbage"),
        ({"words": [[2]]}, "words say what skip= or within_words=False apply to"),
        ({"skip": 1.0, "words": [[1]]}, r"words\[0\] is \[1\], but item 0 has 2 tokens"),
        ({"skip": 1.0, "words": []}, "words must be a list of one list per item"),
        ({"skip": 1.0, "order": [1, 0]}, "order is given with skip"),
    ],
)
def test_errors_of_open_texts_say_what_to_do(how, message):
    with pytest.raises(ValueError, match=message):
        ctc_loss(torch.zeros(5, 1, 4), torch.tensor([[1, 2]]), [5], [2], **how)
