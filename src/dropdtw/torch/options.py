"""The options of alignment losses: those of an `Aligner`, with tensors and networks as values, and a reduction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from typing import Any, Final

from torch import Tensor, nn

from dropdtw.aligner import Aligner
from dropdtw.drops import PerElement
from dropdtw.problem.errors import OptionError, refuse_unknown
from dropdtw.problem.options import OPTIONS
from dropdtw.torch.functional import TableOptions
from dropdtw.torch.learned import LearnedDrop
from dropdtw.torch.orders import each_its_own
from dropdtw.torch.reduction import Normalize, Reduction

MatchCost = str | Callable[[Tensor, Tensor], Tensor]
"""What `match=` of a loss takes: a name, or a function of Z (B, K, d) and X (B, N, d) that returns C (B, K, N)."""

DropCost = None | float | str | Tensor | LearnedDrop | PerElement
"""What `drop_x=` and `drop_z=` of a loss take: None (drops are forbidden), a number, a tensor, "percentile:30",
"logit:30", a `LearnedDrop` or a `drops.Background`."""


class LossOptions(TableOptions, total=False):
    """Options of alignment losses, apart from drop costs; `AlignmentLoss` explains them."""

    match: MatchCost
    normalize: Normalize
    reduction: Reduction


REFUSED: Final = {name: each.metadata["instead"] for name, each in OPTIONS.items() if each.metadata["instead"]}
"""Options of an `Aligner` that losses do not have, and what to do instead."""

OWN: Final = ("match", "reducer", "gamma", "normalize")
"""Options that are the loss's own where an aligner leaves them at their defaults."""

WITHOUT_DROPS: Final = ("drop_x", "drop_z", "open_x", "open_z", "threshold", "method")
"""Options of losses that have drops."""

DEFAULTS: Final[dict[str, Any]] = {
    **{name: option.default for name, option in OPTIONS.items() if name not in REFUSED},
    "match": "softmax",
    "reducer": "smooth",
    "gamma": 1.0,
    "reduction": "mean",
}
"""The options of every loss, and their defaults."""


def of_call(
    loss: str, first: Any, drop_z: Any, options: dict[str, Any], defaults: dict[str, Any], fixed: Sequence[str]
) -> dict[str, Any]:
    """Return the options that the arguments of a loss set.

    first : the first argument, an aligner or drop_x.   fixed : options that callers cannot choose.
    """
    refuse_unknown(options, [name for name in defaults if name not in fixed], loss)
    if isinstance(first, Aligner):
        both = ["drop_z"] * (drop_z is not None) + [name for name in options if name not in (*OWN, "reduction")]
        if both:
            raise ValueError(f"{loss} got an aligner and also {both[0]}; use aligner.replace({both[0]}=...)")
        return {**of_aligner(loss, first, defaults, fixed), **options}
    given = {"drop_x": first, "drop_z": drop_z}
    if "drop_x" not in fixed:
        return {**given, **options}
    for name, value in given.items():
        if value is not None:
            raise OptionError(name, value, "use DropDTWLoss", f", but {loss} drops nothing")
    return options


def of_aligner(loss: str, aligner: Aligner, defaults: dict[str, Any], fixed: Sequence[str]) -> dict[str, Any]:
    """Return the options of a loss that is made from an aligner."""
    changed = aligner.changed
    for name, instead in REFUSED.items():
        if name in changed:
            raise OptionError(name, changed[name], instead, ", which losses do not have")
    for name in fixed:
        if name in changed and changed[name] != defaults[name]:
            raise OptionError(name, changed[name], "use DropDTWLoss", f", which {loss} cannot use")
    alike = [name for name in OPTIONS if name in defaults and name not in (*fixed, *OWN)]
    return {name: getattr(aligner, name) for name in alike} | {name: changed[name] for name in OWN if name in changed}


def as_aligner(options: dict[str, Any]) -> Aligner:
    """Return options of a loss as an aligner, with the present values of tensors."""
    found = {}
    for name, value in options.items():
        if isinstance(value, Tensor):
            if value.numel() > 1 and (value.ndim > 1 or not name.startswith("drop")):
                raise OptionError(name, value, "use loss.align", ", with numbers of its own for each item")
            value = value.item() if value.numel() == 1 else value.detach().cpu().numpy()
        elif name == "order" and each_its_own(value):
            raise OptionError(name, value, "use loss.align", ", one order per item")
        found[name] = value
    return Aligner(**found)


def shown(options: dict[str, Any]) -> str:
    """Return the options that a loss's `repr` shows: the important ones, and those that are not as usual."""
    always = ("match", "reducer", "gamma", "reduction")
    return ", ".join(
        f"{name}={value!r}"
        for name, value in options.items()
        if not isinstance(value, (nn.Module, nn.Parameter))
        and (name in always or isinstance(value, Tensor) or value != DEFAULTS[name])
    )


def said(init: Callable[..., None], defaults: dict[str, Any], fixed: Sequence[str]) -> Signature:
    """Return the signature of a loss, with its options in place of `**options`."""
    own = [each for each in signature(init).parameters.values() if each.name != "self"]
    named = [each for each in own if each.kind is not Parameter.VAR_KEYWORD]
    made = [each.replace(default=defaults.get(each.name, each.default)) for each in named if each.name not in fixed]
    if len(named) < len(own):
        rest = [name for name in defaults if name not in (*fixed, *(each.name for each in named))]
        made += [Parameter(name, Parameter.KEYWORD_ONLY, default=defaults[name]) for name in rest]
    if any(each.name == "drop_x" for each in named) and "drop_x" in fixed:
        made.insert(0, Parameter("aligner", Parameter.POSITIONAL_ONLY, default=None))
    return Signature(made)
