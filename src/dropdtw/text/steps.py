"""Read the steps of a procedure, one per line."""

from __future__ import annotations

from dropdtw.orders.blocks import read_blocks


def read_steps(text: str) -> list[str]:
    """The steps in a text: its lines without numbers and bullets. Blank lines and lines that begin with # are skipped.

    If the text has blocks such as `any order:` (see `dropdtw.orders.blocks`), use `dropdtw.orders.parse_steps`.

    >>> read_steps("# Tea\\n1. Boil water\\n\\n2) Warm 2 pots\\n- 3 minutes later: pour\\n")
    ['Boil water', 'Warm 2 pots', '3 minutes later: pour']
    """
    return list(read_blocks(text).names)
