"""One step per line, with blocks."""

import pytest

from dropdtw import orders
from dropdtw.orders.blocks import MARK, Steps, read_blocks
from dropdtw.text import read_steps

TEA = """# Tea
1. Boil water
Any order:
    - Warm the pot
    - in order:
        # what comes from the shop
        * Open the tin
        * Measure the tea
    optional:
        Fetch the milk
        Fetch the lemons

2. Repeat:
     one of:
       Pour: slowly
       in order:
           Stir
           Sing:
ONE  OF :
one of:
  Drink
optional:
  Wash up
"""


def test_blocks_say_the_order():
    found = read_blocks(TEA)
    assert found.names == (
        *("Boil water", "Warm the pot", "Open the tin", "Measure the tea", "Fetch the milk", "Fetch the lemons"),
        *("Pour: slowly", "Stir", "Sing:", "ONE  OF :", "Drink", "Wash up"),
    )
    body = orders.one_of(6, [7, 8])
    assert found.order == orders.as_order([0, orders.any_order(1, [2, 3], 4, 5), orders.repeat(body), 9, 10, 11])
    assert found.optional == (4, 5, 11)
    assert read_steps(TEA) == list(found.names)


def as_before_blocks(text):
    """The steps of a text without blocks."""
    lines = [MARK.sub("", line).strip() for line in text.lstrip("\ufeff").splitlines() if not line.startswith("#")]
    return [line for line in lines if any(c.isalnum() for c in line)]


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffBoil\n   Warm\n\tPour \n  # not a comment\n\n---\n5. Optional: sugar",
        "For the sauce:\n  Chop\n\t Fry\nany order will do:\n one of these:\nrepeat twice:\nin order: this",
        "optional\nrepeat\none of\nany order\nin order",
        "anyorder:\none-of:\n(optional:)\n-repeat:\noptional::",
        "a\x0bb\x0c  c\u2028d\r\ne\re",
    ],
)
def test_texts_without_blocks_are_what_they_were(text):
    assert list(read_blocks(text).names) == as_before_blocks(text)
    assert read_blocks(text)[1:] == (None, ())


def test_an_optional_block_among_alternatives_is_one_of_them():
    found = read_blocks("one of:\n  a\n  optional:\n    b\n    c")
    assert (found.order, found.optional) == (orders.one_of(0, [1, 2]), (1, 2))


def test_optional_steps_stand_where_their_block_stands():
    assert read_blocks("a\noptional:\n  b\n  c\nd") == Steps(("a", "b", "c", "d"), None, (1, 2))
    free = read_blocks("any order:\n  a\n  optional:\n    b\n    in order:\n      c\n      d")
    assert (free.order, free.optional) == (orders.any_order(0, 1, [2, 3]), (1, 2, 3))
    chosen = read_blocks("optional:\n  one of:\n    a\n    in order:\n      b\n      c")
    assert (chosen.order, chosen.optional) == (orders.one_of(0, [1, 2]), (0, 1, 2))


def test_blocks_of_one_part_are_that_part():
    assert read_blocks("any order:\n  a\none of:\n  b\nin order:\n  c") == Steps(("a", "b", "c"))
    assert read_blocks("repeat:\n  a").order == orders.repeat(0)


def test_tabs_indent_as_well_as_spaces():
    assert read_blocks("any order:\n\ta\n\tin order:\n\t\tb\n\t\tc").order == orders.any_order(0, [1, 2])


def test_equal_lines_are_steps_of_their_own():
    assert read_blocks("any order:\n  Stir\n  Stir").order == orders.any_order(0, 1)
