"""The graph of a text whose words may be skipped, for the table of CTC.

An arc's `use` says how a token may follow another one: `NEW` after a dropped frame, `DROP` directly, by way of the
table's state `gate`. Two equal tokens have `NEW` only.
"""

from __future__ import annotations

from collections.abc import Sequence

from dropdtw.orders.graph import DROP, MOST_NODES, NEW, PASS, Arc, Graph, graph_of


def graph_of_words(words: Sequence[Sequence[int]], skips: Sequence[float] | None) -> tuple[Graph, list[int]]:
    """Build the graph of a text, and list the node of each word's first token.

    words : the tokens of each word.   skips : what it costs to skip each word; None: no word may be skipped.

    After each word, a hub collects the ways to get there: through the word, or past it at its cost. A token that is the
    first of some word and the last of another has hubs of its own, without the words that end with it. Its `DROP` arcs
    come from these.
    """
    ends = {word[-1] for word in words}
    shared = sorted({word[0] for word in words} & ends) if skips is not None else []
    size = 1 + sum(map(len, words)) + len(words) * (0 if skips is None else 1 + len(shared))
    if size > MOST_NODES:
        raise ValueError(f"the text needs {size} nodes, more than {MOST_NODES}; align it in parts")
    label, hub, arcs = [-1], [False], list[Arc]()
    row = 0

    def node(row: int = -1) -> int:
        label.append(row)
        hub.append(row < 0)
        return len(label) - 1

    def collected(*sources: tuple[int, float]) -> int:
        """A hub after a word, and the cost of getting there from each of its sources."""
        found = node()
        arcs.extend(Arc(source, found, PASS, cost) for source, cost in sources)
        return found

    after = 0
    apart: dict[int, int | None] = dict.fromkeys(shared, 0)
    first: list[int] = []
    last_token: int | None = None
    for number, word in enumerate(words):
        here = node(row)
        first.append(here)
        if word[0] in apart:
            arcs.append(Arc(after, here, NEW))
            if (source := apart[word[0]]) is not None:
                arcs.append(Arc(source, here, DROP))
        else:
            arcs.append(Arc(after, here, NEW if skips is None and word[0] == last_token else NEW | DROP))
        for n, token in enumerate(word[1:], 1):
            further = node(row + n)
            arcs.append(Arc(here, further, NEW if token == word[n - 1] else NEW | DROP))
            here = further
        row += len(word)
        last_token = word[-1]
        if skips is None:
            after = here
            continue
        for token, before in apart.items():
            ways = [] if token == last_token else [(here, 0.0)]
            ways += [] if before is None else [(before, skips[number])]
            apart[token] = collected(*ways) if ways else None
        after = collected((here, 0.0), (after, skips[number]))
    return graph_of(label, arcs, [after], hub=hub), first
