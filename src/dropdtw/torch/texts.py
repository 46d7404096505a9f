"""CTC for texts that leave something open: words may be skipped, speech may stand between them, the order is free.

Each text becomes a graph of its tokens, and the tables of CTC run on the graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

import torch
from torch import Tensor
from torch.nn.functional import pad

from dropdtw.orders.graph import Graph
from dropdtw.orders.order import Order
from dropdtw.orders.repeats import chain, forbid_repeats
from dropdtw.problem.costs import Costs
from dropdtw.problem.spec import Spec
from dropdtw.tables import recurrence
from dropdtw.torch import functional, ops, orders
from dropdtw.torch.orders import Orders
from dropdtw.torch.reduction import check_number

Words = Sequence[Sequence[int]] | None


@dataclass(frozen=True)
class Freedom:
    """What a text leaves open, as in `speech.ctc_loss`.

    gap : the cost of a frame of garbage between words; None: there is none.
    """

    skip: float | None
    words: Words
    gap: float | None
    order: Orders

    @classmethod
    def of(cls, skip: float | None, words: Words, gap: float | None, order: Orders) -> Freedom | None:
        """The checked options; None if the text leaves nothing open."""
        if words is not None and skip is None and gap is None:
            raise ValueError("words say what skip= or within_words=False apply to; give one of them too, or no words")
        if order is not None and (skip is not None or gap is not None):
            raise ValueError("order is given with skip or within_words=False; give only one of them")
        if skip is None and gap is None and order is None:
            return None
        return cls(None if skip is None else check_number(skip, "skip", "≥ 0"), words, gap, order)

    def values(self, C: Tensor, blanks: Tensor, tokens: Tensor, z_lengths: Tensor, x_lengths: Tensor) -> Tensor:
        """The soft values (B,) of C (B, S, T), the costs of blanks (B, T) and tokens (B, S). Lengths may be 0."""
        B, S, T = C.shape
        z_lengths, x_lengths = z_lengths.to(C.device), x_lengths.to(C.device)
        texts = [row[:n] for row, n in zip(tokens.tolist(), z_lengths.tolist(), strict=True)]
        each = (None,) if self.order is None else orders.of_items(self.order, B)
        sizes = [self._groups(b, len(text)) for b, text in enumerate(texts)]
        graphs = [
            _graph(tuple(text or [0]), size or (1,) * (not text and self.gap is None), self.skip, self.gap, order)
            for text, size, order in zip(texts, sizes, each if len(each) == B else each * B, strict=True)
        ]
        if self.gap is not None:  # the gap is the row after the last token
            C = pad(C, (0, 0, 0, 1))
            last = torch.arange(S + 1, device=C.device) == z_lengths[:, None]
            C = C.masked_fill(last[..., None], self.gap)
        executor = functional.executor_of(C)
        table = recurrence.ctc()
        distinct = list(dict.fromkeys(graphs))
        paths = [orders.ReducedOrder(graph.K, graph=graph) for graph in distinct]
        if executor == "triton":
            executor = orders.on_cuda(paths, table)
        lengths = (torch.tensor([graph.K for graph in graphs], device=C.device), x_lengths.clamp(min=1))
        plan = orders.plan(paths, tuple(map(distinct.index, graphs)), executor, False)
        given = Costs(C, blanks, C.new_zeros(1, 1).expand(C.shape[:2]), None, lengths, torch)
        operation = ops.Operation(ops.register(table), "soft", 1.0, executor)
        values = functional.Request(given, operation, plan, None).values()
        # Texts without tokens, and recordings without frames.
        skipped = [0.0 if not text else inf if self.skip is None else self.skip * len(g)
                   for text, g in zip(texts, sizes, strict=True)]  # fmt: skip
        if self.gap is None:
            inside = torch.arange(T, device=C.device) < x_lengths[:, None]
            values = torch.where(z_lengths > 0, values, blanks.where(inside, 0.0).sum(1))
        return values.where(x_lengths > 0, values.new_tensor(skipped))

    def _groups(self, b: int, length: int) -> tuple[int, ...]:
        """The numbers of tokens of the words of an item."""
        if self.words is None:
            return (1,) * length
        if isinstance(self.words, Tensor) or b >= len(self.words):
            raise ValueError("words must be a list of one list per item, the numbers of tokens of its words")
        found = tuple(map(int, self.words[b]))
        if sum(found) != length or any(n < 1 for n in found):
            raise ValueError(
                f"words[{b}] is {list(found)}, but item {b} has {length} tokens; give the number of tokens of each word"
            )
        return found


@lru_cache(maxsize=4096)
def _graph(
    tokens: tuple[int, ...], groups: tuple[int, ...], skip: float | None, gap: float | None, order: Order | None
) -> Graph:
    """The graph of a text. Texts that differ in their tokens alone, not in which are equal, are different keys."""
    if order is None:
        skips = None if skip is None else [skip] * len(groups)
        return forbid_repeats(chain(groups, skips, gaps=gap is not None)[0], [*tokens[: sum(groups)], "gap"])
    graph = Spec.of(0.0, None, method="ctc", order=order).graph(len(tokens))
    return forbid_repeats(chain((1,) * len(tokens), None)[0] if graph is None else graph, tokens)
