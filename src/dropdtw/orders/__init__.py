"""Steps as a graph: partial orders, alternatives, repeats and jumps, for `order=` of `align`, `solve` and others.

A list means "in this order". `before` and `any_order` make partial orders, which nest freely. `one_of`, `repeat` and
`jumps` may hold partial orders, but not stand inside them.
"""

from dropdtw.orders.blocks import Steps
from dropdtw.orders.order import (
    Order,
    any_order,
    as_order,
    before,
    from_networkx,
    jumps,
    one_of,
    repeat,
    walks,
)
from dropdtw.orders.text import parse, parse_steps

__all__ = [
    "Order",
    "Steps",
    "any_order",
    "as_order",
    "before",
    "from_networkx",
    "jumps",
    "one_of",
    "parse",
    "parse_steps",
    "repeat",
    "walks",
]
