"""Orders of steps, for `order=` of `align` and others: partial orders, alternatives, repeats, jumps and durations.

A step is a row of Z, given by its number. A list means "in this order". `before` and `any_order` build partial orders.
Lists, `one_of` and `repeat` may contain any order. `any_order` may contain only steps, lists of steps and partial
orders, because each of its steps occurs exactly once.

>>> import dropdtw
>>> C = [[9, 0, 9], [0, 9, 9], [9, 9, 0]]
>>> dropdtw.solve(C, order=[dropdtw.orders.any_order(0, 1), 2]).done
array([1, 0, 2])
"""

from dropdtw.orders.blocks import Steps
from dropdtw.orders.order import (
    Order,
    any_order,
    as_order,
    before,
    from_networkx,
    jumps,
    lasting,
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
    "lasting",
    "one_of",
    "parse",
    "parse_steps",
    "repeat",
    "walks",
]
