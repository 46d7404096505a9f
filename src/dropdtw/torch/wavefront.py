"""The recurrences in ordinary PyTorch operations: slow, short, and differentiable any number of times.

Read this module to see what the kernels compute on a batch; tests check the kernels against its autograd derivatives.
An anti-diagonal (i + j = t) is a (B, K + 1) tensor with one entry per cell, so a pass loops over K + N diagonals.
"""

from __future__ import annotations

import torch
from torch import Tensor

from dropdtw.problem.costs import Costs
from dropdtw.tables.table import CHARGES, MOVES
from dropdtw.torch.ops import Operation, can_look, checked, pays
from dropdtw.torch.ops import table as find_table


def value(given: Costs, operation: Operation) -> Tensor:
    """Compute the values (B,) of a batch.

    Invalid input raises an error if it can be read; otherwise the value of its item is NaN.
    """
    table, reducer, gamma = find_table(operation.table), operation.reducer, operation.gamma
    (C, drop_x, drop_z, charges, *_), (z_lengths, x_lengths), spoilt = prepared(given, operation.table)
    charge = by_name(charges)
    B, K, N = C.shape
    inf = drop_x.new_full((), torch.inf)
    i = torch.arange(K + 1, device=C.device)
    nowhere = inf.expand(B, K + 1)
    listed = [(e, None if table.border is None else False) for e in table.edges]
    listed += [(e, True) for e in table.border or ()]
    before = [dict.fromkeys(table.states, nowhere)] * 3  # the states of diagonals t, t − 1 and t − 2
    ends = dict.fromkeys(table.final, inf.expand(B))
    for t in range(K + N + 1):
        j = t - i
        row, column = (i - 1).clamp(min=0), (j - 1).clamp(0, N - 1)
        exists = (j >= 0) & (j <= N)
        price = {
            "match": torch.where((i > 0) & (j > 0) & exists, C[:, row, column], inf),
            "drop_x": torch.where((j > 0) & exists, drop_x[:, column], inf),
            "drop_z": torch.where((i > 0) & exists, drop_z[:, row], inf),
            "free": torch.where(exists, 0.0, inf).to(C.dtype).expand(B, K + 1),
        }
        on_border = (i == 0) | (j == 0)
        before = [here := {}, before[0], before[1]]
        for state in table.states:
            ways = []
            for e, border in listed:
                if e.dst == state:
                    di, dj = MOVES[e.move]
                    source = before[di + dj][e.src]
                    above = torch.nn.functional.pad(source, (1, -1), value=torch.inf) if di else source
                    paid = price[e.cost] if e.weight == 1 else e.weight * price[e.cost]
                    arriving = above + (paid if e.plus is None else paid + charge[e.plus])
                    ways.append(arriving if border is None else torch.where(on_border == border, arriving, inf))
            here[state] = minimum(torch.stack(ways), reducer, gamma) if ways else nowhere
            if t == 0 and state in table.starts:
                here[state] = torch.where(i == 0, 0.0, nowhere)
        is_end = (i == z_lengths[:, None]) & (j == x_lengths[:, None])
        for state in table.final:
            found = torch.where(is_end, here[state], 0.0).sum(dim=1)
            ends[state] = torch.where(is_end.any(dim=1), found, ends[state])
    return torch.where(spoilt, torch.nan, minimum(torch.stack(list(ends.values())), reducer, gamma))


def prepared(given: Costs, name: str) -> tuple[Costs, tuple[Tensor, Tensor], Tensor]:
    """Check a batch for the table of that name, and set its padding to ∞; see `value`.

    Also returns the lengths, and which items are invalid. Drop costs that no edge of the table pays become ∞, because
    on a GPU they may be memory that nobody filled.
    """
    if can_look(given.match):
        checked(given)
    C, drop_x, drop_z, charges, lengths, *_ = given
    B, K, N = C.shape
    z_lengths, x_lengths = lengths or [torch.full((B,), n, device=C.device) for n in (K, N)]
    inf = drop_x.new_full((), torch.inf)
    there_z = torch.arange(K, device=C.device) < z_lengths[:, None]
    there_x = torch.arange(N, device=C.device) < x_lengths[:, None]
    C = torch.where(there_z[:, :, None] & there_x[:, None], C.to(drop_x.dtype), inf)
    drop_x = torch.where(there_x & pays(name, "drop_x"), drop_x, inf)
    drop_z = torch.where(there_z & pays(name, "drop_z"), drop_z, inf)
    spoilt = (z_lengths < 1) | (z_lengths > K) | (x_lengths < 1) | (x_lengths > N)
    for part in (C.flatten(1), drop_x, drop_z):
        spoilt = spoilt | (part.isnan() | part.isneginf()).any(dim=1)
    if charges is not None:
        spoilt = spoilt | ~((charges >= 0) & (charges < torch.inf)).all(dim=1)
    return given._replace(match=C, drop_x=drop_x, drop_z=drop_z), (z_lengths, x_lengths), spoilt


def by_name(charges: Tensor | None) -> dict[str, Tensor]:
    """Return the charges (B, 1) by name."""
    return {} if charges is None else {name: charges[:, k, None] for k, name in enumerate(CHARGES)}


def minimum(v: Tensor, reducer: str, gamma: float) -> Tensor:
    """Reduce (E, ...) alternatives; +∞ marks one that does not exist."""
    low = v.min(dim=0)
    if reducer == "hard":
        return low.values
    some = torch.isfinite(low.values)
    base = torch.where(some, low.values, 0.0).detach()
    exists = torch.isfinite(v)
    u = torch.where(exists, v - base, 0.0)  # keeps infinities out of the derivative even where the result is unused
    e = torch.where(exists, torch.exp(-u / gamma), 0.0)
    total = torch.where(some, e.sum(dim=0), 1.0)
    found = (u * e).sum(dim=0) / total if reducer == "smooth" else -gamma * torch.log(total)
    return torch.where(some, base + found, torch.inf)
