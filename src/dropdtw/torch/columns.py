"""The recurrences over graphs of steps in ordinary PyTorch operations: slow, short, differentiable any number of times.

This is `wavefront.py` for steps that form a graph. A pass loops over columns and, in each column, over blocks of nodes
(`orders.graph.GraphLayout`). One `index_select` per use gathers the states that arrive over arcs; they are reduced
before the recurrence continues.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from dropdtw.orders.graph import PASS, Graph, use_of
from dropdtw.problem.costs import Costs
from dropdtw.tables.table import MOVES, Recurrence
from dropdtw.torch.ops import GRAPHS, Operation
from dropdtw.torch.ops import table as find_table
from dropdtw.torch.wavefront import by_name, minimum, prepared


def value(given: Costs, operation: Operation) -> Tensor:
    """Compute the values (B,) of a batch like `wavefront.value`, with `operation.graphs` as the graphs of its items."""
    graphs = GRAPHS[operation.key] if operation.graphs is None else operation.graphs
    batch, lengths, spoilt = prepared(given, operation.table)
    table, which = find_table(operation.table), graphs.which
    device = batch.match.device
    found: Tensor = torch.empty(len(spoilt), dtype=batch.match.dtype, device=device)
    for n, graph in enumerate(graphs.distinct):
        items = torch.tensor(
            [b for b in range(len(spoilt)) if which is None or which[b] == n], device=batch.match.device
        )
        swept = _sweep(batch.of_items(items), lengths[1][items], graph, table, operation)
        wrong = spoilt[items] | (lengths[0][items] != graph.K)
        found = found.index_copy(0, items, torch.where(wrong, torch.nan, swept))
    return found


def _sweep(batch: Costs, x_lengths: Tensor, graph: Graph, table: Recurrence, operation: Operation) -> Tensor:
    """Compute the values of items that share a graph.

    A column is one (b, 1 + V) tensor per state: first a dummy node at ∞, then the nodes block by block.
    """
    layout, device = graph.on(table), batch.match.device
    b, K, N = batch.match.shape
    place = np.zeros(len(graph) + 1, np.int64)  # the last entry is the dummy node
    place[np.concatenate([block.nodes for block in layout.blocks])] = np.arange(1, len(graph) + 1)

    def tensor(numbers: np.ndarray) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(numbers)).to(device)

    inf = batch.match.new_full((), torch.inf)
    nowhere = inf.expand(b, 1)
    C = torch.cat([batch.match, inf.expand(b, 1, N)], dim=1)  # label −1 is the last row
    drop_z = torch.cat([batch.drop_z, nowhere], dim=1)
    blocks = []
    for block in layout.blocks:
        gathers = {use: (tensor(place[g.source]), tensor(g.cost).to(C.dtype)) for use, g in block.gathers.items()}
        label = graph.label[block.nodes]
        own, rows, is_start = place[block.nodes], np.where(label < 0, K, label), block.nodes == graph.start
        blocks.append((block.hub, gathers, tensor(own), tensor(rows), tensor(is_start)))

    def brought(states: Tensor, arcs: tuple[Tensor, Tensor]) -> Tensor:
        source, cost = arcs
        found = states.index_select(1, source.flatten()).view(b, *source.shape) + cost
        return minimum(found.movedim(1, 0), operation.reducer, operation.gamma)

    finals = tensor(place[list(graph.finals)])
    before = dict.fromkeys(table.states, inf.expand(b, 1 + len(graph)))
    ends = inf.expand(len(table.final) * len(finals), b)
    for j in range(N + 1):
        here = dict.fromkeys(table.states, nowhere)
        for hub, arcs, nodes, labels, begins in blocks:
            new: dict[str, Tensor] = {}
            for state in table.states:
                ways = [brought(here[state], arcs[PASS])] if hub else []
                for e in table.edges if not hub else ():
                    if e.dst != state:
                        continue
                    use, (_, dj) = use_of(e), MOVES[e.move]
                    if use:
                        source = brought(before[e.src] if dj else here[e.src], arcs[use])
                    else:
                        source = before[e.src].index_select(1, nodes) if dj else new[e.src]
                    ways.append(source + _paid(batch, C, drop_z, labels, j, e.cost, e.weight, e.plus))
                new[state] = (
                    minimum(torch.stack(ways), operation.reducer, operation.gamma)
                    if ways
                    else inf.expand(b, len(nodes))
                )
                if j == 0 and state in table.starts:
                    new[state] = torch.where(begins, 0.0, new[state])
            here = {state: torch.cat([here[state], new[state]], dim=1) for state in table.states}
        before = here
        last = torch.cat([here[state].index_select(1, finals).T for state in table.final])
        ends = torch.where(x_lengths == j, last, ends)
    return minimum(ends, operation.reducer, operation.gamma)


def _paid(
    batch: Costs,
    C: Tensor,
    drop_z: Tensor,
    label: Tensor,
    j: int,
    cost: str,
    weight: float,
    plus: str | None,
) -> Tensor:
    """Compute the cost that an edge pays on arrival in column j, for each node of a block."""
    inf = C.new_full((), torch.inf)
    if cost == "free":
        paid = C.new_zeros(())
    elif cost == "drop_z":
        paid = drop_z.index_select(1, label)
    elif j == 0:
        paid = inf
    elif cost == "match":
        paid = C[:, :, j - 1].index_select(1, label)
    else:
        paid = batch.drop_x[:, j - 1, None]
    paid = paid if weight == 1 else weight * paid
    return paid if plus is None else paid + by_name(batch.charges)[plus]
