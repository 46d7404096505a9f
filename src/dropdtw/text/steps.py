"""The steps of a procedure, one to a line."""

from __future__ import annotations

from dropdtw.orders.blocks import read_blocks


def read_steps(text: str) -> list[str]:
    """The steps in a text: its lines without numbers and bullets; blank lines and lines that begin with # are no steps.

    A text may say more about the order of its steps (`any order:` and its like, see `dropdtw.orders.blocks`);
    `dropdtw.orders.parse_steps` reads that as well.

    >>> read_steps("# Tea\\n1. Boil water\\n\\n2) Warm 2 pots\\n- 3 minutes later: pour\\n")
    ['Boil water', 'Warm 2 pots', '3 minutes later: pour']
    """
    return list(read_blocks(text).names)
