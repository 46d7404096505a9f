"""CTC, forced alignment and monotonic alignment search: speech on the tables that everything else runs on.

A transcript's tokens are Z, the frames of a recording are X. A frame matches a token at −log p(token) and is dropped at
−log p(blank). Under the soft minimum this is the CTC loss, under the hard one it is forced alignment.
"""

from __future__ import annotations

from typing import Any, ClassVar, Never, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from dropdtw.problem.errors import refuse_keywords
from dropdtw.problem.options import takes
from dropdtw.tables import recurrence
from dropdtw.torch import ctc, ctc_cpu, kernels
from dropdtw.torch.alignments import align
from dropdtw.torch.functional import drop_dtw
from dropdtw.torch.operators import Tensors, operator
from dropdtw.torch.ops import can_look
from dropdtw.torch.orders import Orders
from dropdtw.torch.reduction import Reduction, check_number, check_reduction
from dropdtw.torch.targets import Counts, Text, lengths_of, text_of
from dropdtw.torch.texts import Freedom, Words


@takes()
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Counts,
    target_lengths: Counts,
    blank: int = 0,
    reduction: Reduction = "mean",
    zero_infinity: bool = False,
    *,
    logits: bool = False,
    garbage: float | None = None,
    within_words: bool = True,
    skip: float | None = None,
    words: Words = None,
    order: Orders = None,
    **unknown: Never,
) -> Tensor:
    """Compute the CTC loss, −log of the probability of all alignments of the targets with the frames.

    It takes the arguments of `torch.nn.functional.ctc_loss` and returns the same values.

    Parameters
    ----------
    log_probs : (T, B, V) log-probabilities of V tokens in T frames, or (T, V) for one item; any float type.
    targets : (B, S) tokens, padded; or all targets one after the other in one dimension. They may not contain blanks.
    input_lengths, target_lengths : (B,), the frames and the tokens of each item. They may stay on the device.
    blank : the token of a frame without a token.
    reduction : "none" gives one value per item, "sum" their sum. "mean" divides each by its number of tokens (at least
        1) and averages.
    zero_infinity : whether an item whose targets do not fit into its frames counts 0 instead of +∞. Either way, its
        gradient is 0.
    logits : whether `log_probs` are scores before log softmax. This saves the log softmax and one copy in memory.
    garbage : the cost of a frame of speech that the targets leave out. None allows only blanks. The loss is then that
        of a model whose blank has probability p(blank) + exp(−garbage).
    within_words : whether garbage may also interrupt words. If not, it is one more token of that cost, which the text
        may have once in each gap: before the first word, between words, and after the last.
    skip : the cost of leaving a word out, as a whole. None allows none. The loss is then −log of the sum, over all
        subsets of words, of p(those words) · exp(−skip · number of words left out).
    words : for each item, the numbers of tokens of its words. None: each token is a word.
    order : the order of the tokens, or one per item, see `dropdtw.orders`. None keeps the order of the targets. It
        cannot be combined with `skip` or `within_words=False`.

    Returns
    -------
    A tensor () or (B,), float64 if `log_probs` is float64 and float32 otherwise. Its gradient is the true derivative
    with respect to `log_probs`. PyTorch's function assumes a log softmax before it and returns another one; the
    gradients at the logits agree.

    Raises ValueError if the shapes do not fit together or an option is invalid.

    >>> import torch
    >>> from dropdtw.torch import ctc_loss
    >>> log_probs = torch.full((3, 1, 4), 0.25).log()                       # 3 frames, 1 item, 4 tokens
    >>> ctc_loss(log_probs, torch.tensor([[2, 1]]), [3], [2])               # 5 of 64 paths, and 2 tokens
    tensor(1.2747)
    """
    refuse_keywords(ctc_loss, unknown)
    check_reduction(reduction)
    single = log_probs.ndim == 2
    if single:
        log_probs, targets = log_probs[:, None], targets[None] if targets.ndim == 1 else targets
    if log_probs.ndim != 3 or not log_probs.is_floating_point():
        raise ValueError(
            f"log_probs has shape {tuple(log_probs.shape)} and dtype {log_probs.dtype}; give floating-point numbers "
            "(T, B, V), or (T, V) for one item"
        )
    scores = log_probs.transpose(0, 1)
    gap = None
    if garbage is not None:
        check_number(garbage, "garbage", "≥ 0")
        garbage, gap = (garbage, None) if within_words else (None, garbage)
    elif not within_words:
        raise ValueError("within_words is False, but there is no garbage; give garbage, a cost per frame")
    open_text = Freedom.of(skip, words, gap, order)
    text = text_of(scores, targets, input_lengths, target_lengths, blank)
    if garbage is None and open_text is None and ctc.runs_on(scores):
        request = ctc.Request(blank, reduction, zero_infinity, logits)
        found = ctc.loss(scores, text.tokens, text.padding, request)
        return found[0] if single and reduction == "none" else found
    if garbage is None and open_text is None and ctc_cpu.runs_on(scores):
        values = ctc_cpu.values(scores, ctc_cpu.Texts(*text[:3], blank, logits))
    else:
        C, blanks = _emissions(scores, (text.tokens, blank, logits))
        if garbage is not None:
            blanks = -torch.logaddexp(-blanks, blanks.new_tensor(-garbage))
        if open_text is None:
            values = _values(C, blanks, text, "soft")
        else:
            values = open_text.values(C, blanks, text.tokens, text.z_lengths, text.x_lengths)
    if zero_infinity:
        values = values.where(values.isfinite(), 0.0)
    if reduction == "mean":
        return (values / text.z_lengths.to(values.device).clamp(min=1)).mean()
    return values.sum() if reduction == "sum" else values[0] if single else values


class CTCLoss(nn.Module):
    """`ctc_loss` as a module, with the arguments of `torch.nn.CTCLoss`.

    blank, reduction, zero_infinity, logits, garbage, within_words, skip : as in `ctc_loss`.

    >>> import torch
    >>> from dropdtw.torch import CTCLoss
    >>> scores = torch.zeros(3, 1, 4)
    >>> CTCLoss(logits=True)(scores, torch.tensor([[2, 1]]), [3], [2])
    tensor(1.2747)
    """

    @takes()
    def __init__(
        self,
        blank: int = 0,
        reduction: Reduction = "mean",
        zero_infinity: bool = False,
        *,
        logits: bool = False,
        garbage: float | None = None,
        within_words: bool = True,
        skip: float | None = None,
        **unknown: Never,
    ) -> None:
        refuse_keywords(CTCLoss, unknown)
        super().__init__()
        self.blank, self.reduction, self.zero_infinity = blank, check_reduction(reduction), zero_infinity
        self.logits, self.within_words = logits, within_words
        self.garbage, self.skip = (
            None if value is None else check_number(value, name, "≥ 0")
            for name, value in (("garbage", garbage), ("skip", skip))
        )

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Counts,
        target_lengths: Counts,
        *,
        words: Words = None,
        order: Orders = None,
    ) -> Tensor:
        """Compute the loss; `ctc_loss` explains the arguments."""
        options = {name: getattr(self, name) for name in self.OPTIONS}
        return ctc_loss(log_probs, targets, input_lengths, target_lengths, **options, words=words, order=order)

    OPTIONS: ClassVar = ("blank", "reduction", "zero_infinity", "logits", "garbage", "within_words", "skip")

    def extra_repr(self) -> str:
        """The options, for `repr`."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.OPTIONS)


@takes()
@torch.no_grad()
def forced_align(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Counts | None = None,
    target_lengths: Counts | None = None,
    blank: int = 0,
    **unknown: Never,
) -> tuple[Tensor, Tensor]:
    """Find the most probable CTC path of the targets through the frames.

    It takes the arguments of `torchaudio.functional.forced_align`, for a batch of any size, on CPU and CUDA.

    Parameters
    ----------
    log_probs : (B, T, V) log-probabilities.
    targets : (B, S) tokens, without blanks.
    input_lengths, target_lengths : (B,), the frames and the tokens of each item; None: all.
    blank : the token of a frame without a token.

    Returns
    -------
    The token of each frame (B, T), and its log-probability (B, T). Frames beyond the length of an item get the blank
    and 0.

    Raises ValueError if the shapes do not fit together, or if targets do not fit into their frames. On CUDA, where that
    check would force a device synchronization, the log-probabilities of such an item are −∞.

    >>> import torch
    >>> from dropdtw.torch import forced_align
    >>> p = torch.tensor([[[0.1, 0.8, 0.1], [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]])
    >>> forced_align(p.log(), torch.tensor([[1, 2]]))[0]
    tensor([[1, 0, 2]])
    """
    refuse_keywords(forced_align, unknown)
    if log_probs.ndim != 3 or targets.ndim != 2 or len(targets) != len(log_probs):
        raise ValueError(
            f"log_probs has shape {tuple(log_probs.shape)} and targets {tuple(targets.shape)}; give (B, T, V) and "
            "(B, S)"
        )
    T, S = log_probs.shape[1], targets.shape[1]
    frames = T if input_lengths is None else input_lengths
    text = text_of(log_probs, targets, frames, S if target_lengths is None else target_lengths, blank)
    if ctc.runs_on(log_probs):
        paths, scores, _ = ctc.paths(log_probs, text.tokens, text.padding, blank)
        return paths.to(targets.dtype), scores
    if ctc_cpu.runs_on(log_probs):
        values, paths = ctc_cpu.paths(log_probs, ctc_cpu.Texts(*text[:3], blank, False))
    else:
        C, blanks = _emissions(log_probs, (text.tokens, blank, False))
        values, M = _matches(C, blanks, text)
        matched, which = M.max(1)
        paths = torch.where(matched > 0, text.tokens.gather(1, which), blank)
    fits = values.isfinite()
    if can_look(fits) and not fits.all():
        b = int((~fits).nonzero()[0])
        k, n = int(text.z_lengths[b]), int(text.x_lengths[b])
        raise ValueError(
            f"the {k} tokens of item {b} do not fit into its {n} frames (equal tokens in a row need a blank between "
            "them), or have probability 0; give more frames or fewer tokens"
        )
    scores = log_probs.gather(2, paths[..., None])[..., 0]
    inside = torch.arange(T, device=scores.device) < text.x_lengths[:, None]
    scores = torch.where(fits[:, None], scores, -torch.inf).where(inside, 0.0)
    return paths.to(targets.dtype), scores


@takes()
@torch.no_grad()
def monotonic_align(
    value: Tensor,
    mask: Tensor | None = None,
    *,
    z_lengths: Counts | None = None,
    x_lengths: Counts | None = None,
    skip: float | Tensor | None = None,
    durations: bool = False,
    **unknown: Never,
) -> Tensor:
    """Find the best monotonic alignment of tokens and frames: each frame gets one token, each token some frames.

    It is the search of Glow-TTS and VITS (Kim et al. 2020), hard DTW with `many_to_one=False`.

    Parameters
    ----------
    value : (B, K, N), how well token i fits frame j, such as a log-likelihood; the sum over the alignment is maximized.
    mask : (B, K, N), nonzero in the upper left part that is not padding. Or give z_lengths and x_lengths, (B,).
    skip : the cost of a token without frames, a number or a tensor that broadcasts to (B, K); None forbids it.
    durations : whether to return the number of frames of each token instead, (B, K) whole numbers.

    Returns
    -------
    (B, K, N), 1 where token i has frame j and 0 elsewhere, of the dtype of `value`; or durations. An item without an
    alignment has zeros.

    >>> import torch
    >>> from dropdtw.torch import monotonic_align
    >>> monotonic_align(torch.tensor([[[5.0, 1.0, 0.0, 0.0], [0.0, 2.0, 3.0, 4.0]]]))
    tensor([[[1., 0., 0., 0.],
             [0., 1., 1., 1.]]])
    """
    refuse_keywords(monotonic_align, unknown)
    if value.ndim != 3 or 0 in value.shape or not value.is_floating_point():
        raise ValueError(
            f"value has shape {tuple(value.shape)} and dtype {value.dtype}; give floating-point numbers (B, K, N)"
        )
    B, K, N = value.shape
    if mask is not None:
        if mask.shape != value.shape or z_lengths is not None or x_lengths is not None:
            raise ValueError(
                f"mask has shape {tuple(mask.shape)}; give one of shape {tuple(value.shape)}, or give lengths instead"
            )
        mask = mask.to(value.device)
    quick = skip is None and ctc.searches(value)
    lengths = None
    if mask is not None and not quick:
        lengths = mask[:, :, 0].count_nonzero(1), mask[:, 0].count_nonzero(1)
    elif z_lengths is not None or x_lengths is not None:
        lengths = (
            lengths_of(K if z_lengths is None else z_lengths, "z_lengths", B, K)[0].to(value.device),
            lengths_of(N if x_lengths is None else x_lengths, "x_lengths", B, N)[0].to(value.device),
        )
    if quick:
        found = ctc.search(value, mask, lengths)
    elif skip is None and ctc_cpu.runs_on(value):
        found = ctc_cpu.search(value, *(lengths or (torch.full((B,), K), torch.full((B,), N))))
    else:
        z, x = lengths or (None, None)
        found = align(-value, drop_z=skip, many_to_one=False, z_lengths=z, x_lengths=x, strict=False).matched
    return (found > 0).sum(2) if durations else found


class _InTorch:
    """`executors.triton.emissions` in plain operations. It keeps log-probabilities instead of the scores."""

    @staticmethod
    def forward(scores: Tensor, tokens: Tensor, blank: int, logits: bool) -> tuple[Tensor, Tensor, Tensor]:
        wide = scores if scores.dtype == torch.float64 else scores.float()
        if logits:  # along the dimensions in memory: log_softmax copies what is not contiguous
            order = wide if wide.is_contiguous() else wide.transpose(0, 1)
            wide = order.log_softmax(-1) if order is wide else order.log_softmax(-1).transpose(0, 1)
        gathered = wide.gather(2, tokens[:, None].expand(-1, scores.shape[1], -1))
        return -gathered.transpose(1, 2).contiguous(), -wide[..., blank], wide

    @staticmethod
    def backward(
        log_probs: Tensor, tokens: Tensor, _: Tensor, by_c: Tensor, by_blank: Tensor, blank: int, logits: bool
    ) -> Tensor:
        share = (by_c.sum(1) + by_blank)[..., None]
        found = log_probs.exp().mul_(share) if logits else by_c.new_zeros(log_probs.shape)
        found.scatter_add_(2, tokens[:, None].expand(-1, log_probs.shape[1], -1), -by_c.transpose(1, 2))
        found[..., blank] -= by_blank
        return found


def _kernels(scores: Tensor) -> Any:
    """What computes emissions and their derivatives: CUDA kernels where they can run."""
    if not kernels.run_on(scores) or scores.stride(2) != 1:
        return _InTorch
    from dropdtw.executors.triton import emissions

    return emissions


def _gathered(tensors: Tensors, settings: tuple[Tensor, int, bool]) -> tuple[tuple[Tensor, Tensor], Tensors, Any]:
    (scores,), (tokens, blank, logits) = cast("tuple[Tensor]", tensors), settings
    by = _kernels(scores)
    C, blanks, total = by.forward(scores, tokens, blank, logits)[:3]
    return (C, blanks), (total if by is _InTorch else scores, tokens, total), (by, scores.dtype, blank, logits)


def _scattered(grads: tuple[Tensor, Tensor], kept: Tensors, settings: tuple[Any, torch.dtype, int, bool]) -> Tensors:
    by, dtype, blank, logits = settings
    return (by.backward(*kept, *grads, blank, logits).to(dtype),)


_emissions = operator(_gathered, _scattered)
"""The costs of tokens (B, S, T) and of blanks (B, T), from scores (B, T, V), and (tokens, blank, logits).

logits : whether to subtract the logarithm of the sum over V. The softmax exists only in the gradient.
"""


def _values(C: Tensor, blanks: Tensor, text: Text, reducer: str) -> Tensor:
    """The values (B,) of the table of CTC; without any token, all frames are blank."""
    tokens, z_lengths, x_lengths, holds_empty, _ = text
    equal = tokens[:, 1:] == tokens[:, :-1]
    repeated = pad(torch.zeros_like(equal, dtype=C.dtype).masked_fill(equal, torch.inf), (1, 0))
    values = drop_dtw(
        C,
        blanks,
        repeated,
        method=recurrence.ctc(),
        reducer=reducer,
        z_lengths=z_lengths.clamp(min=1) if holds_empty else z_lengths,
        x_lengths=x_lengths.clamp(min=1) if holds_empty else x_lengths,
    )
    if not holds_empty:
        return values
    inside = torch.arange(C.shape[2], device=C.device) < x_lengths[:, None]
    values = values.where(x_lengths > 0, torch.inf)
    return torch.where(z_lengths > 0, values, blanks.where(inside, 0.0).sum(1))


def _matches(C: Tensor, blanks: Tensor, text: Text) -> tuple[Tensor, Tensor]:
    """The costs (B,) of the best alignments and the alignments (B, S, T) themselves, which are their derivatives."""
    with torch.enable_grad():
        C = C.detach().requires_grad_()
        values = _values(C, blanks, text, "hard")
        (M,) = torch.autograd.grad(values.sum(), C)
    return values.detach(), M
