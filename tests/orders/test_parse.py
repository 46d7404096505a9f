"""Orders from dictionaries, JSON and text."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from dropdtw import orders
from dropdtw.orders import Steps, parse, parse_steps
from dropdtw.orders import blocks as blocks_module
from dropdtw.orders import text as text_module

NAMES = ["Boil water", "Warm the pot", "Open the tin", "Pour"]


def random_order(rng, steps, depth=0, partial=False):
    """A random order of these steps, each once, from every builder that is allowed here."""
    kinds = ["list", "any", "before"] + ([] if partial else ["one", "repeat", "jumps"])
    kind = "step" if len(steps) == 1 and rng.random() < 0.7 else rng.choice(kinds)
    if kind == "step":
        return orders.as_order(steps[0])
    if kind == "before":
        pairs = [(a, b) for n, a in enumerate(steps) for b in steps[n + 1 :] if rng.random() < 0.4]
        return orders.before(steps, pairs)
    if kind == "jumps":
        arcs = {(int(a), int(b)): float(c) for a, b, c in zip(*rng.choice(steps, (2, 2)), rng.random(2), strict=True)}
        return orders.jumps(steps, [(*ends, cost) for ends, cost in arcs.items()])
    if kind == "repeat":
        return orders.repeat(random_order(rng, steps, depth + 1), float(rng.choice([0.0, 0.5])))
    if len(steps) < 2 or depth > 5:
        return orders.as_order(steps)
    cut = int(rng.integers(1, len(steps)))
    parts = [random_order(rng, part, depth + 1, partial or kind == "any") for part in (steps[:cut], steps[cut:])]
    return {"list": lambda a, b: orders.as_order([a, b]), "any": orders.any_order, "one": orders.one_of}[kind](*parts)


def test_what_an_order_writes_is_read_back():
    rng = np.random.default_rng(0)
    kinds = set()
    for _ in range(300):
        steps = [int(s) for s in rng.permutation(int(rng.integers(1, 9)))]
        order = random_order(rng, steps)
        kinds.add(order.kind)
        assert parse(order.to_dict()) == order
        assert parse(json.dumps(order.to_dict())) == order
        assert parse(order.to_dict(), len(steps)) == parse(order, [f"step {s}" for s in range(len(steps))]) == order
    assert kinds == {"step", "list", "any", "one", "repeat", "before", "jumps"}


def test_graphs_of_a_users_own_and_repeated_steps_are_read_back():
    for order in (
        orders.walks([0, 1, 0], [(0, 1), (1, 2), (2, 3), (1, 3, 0.25)], [1, 3], [(3, 1)]),
        orders.as_order([0, 1, 0]),
        orders.one_of([0, 1], [0, 2]),
        orders.before([3, 1], []),
    ):
        assert parse(json.loads(json.dumps(order.to_dict()))) == order


def test_pairs_may_come_with_their_steps_or_without():
    wanted = orders.before(4, [(0, 2)])
    assert parse({"before": [[0, 2]]}) == orders.before(3, [(0, 2)])
    assert parse({"before": [[0, 2]]}, 4) == parse({"before": [[0, 2]]}, NAMES) == wanted
    assert parse({"steps": 4, "before": [[0, 2]]}) == parse({"steps": [0, 1, 2, 3], "before": [[0, 2]]}) == wanted
    assert parse({"steps": NAMES, "before": [["Boil water", "open  THE tin"]]}) == wanted
    assert parse({"before": np.array([[0, 2]]).tolist()}, np.int64(4)) == wanted


def test_steps_may_be_named():
    said = {"list": ["boil water", {"any": ["Warm the pot", ["Open the tin"]]}, 3]}
    assert parse(said, NAMES) == orders.as_order([0, orders.any_order(1, 2), 3])
    assert parse('["Pour", "Warm the pot", "Open the tin", "Boil water"]', NAMES) == orders.as_order([3, 1, 2, 0])


GRAPH = {
    "steps": {"0": "START", "3": "Pour", "1": "Boil water", "2": "Warm the pot", "10": "Drink", "11": "END"},
    "edges": [[0, 1], [0, 2], [1, 3], [2, 3], [3, 10], [10, 11]],
}


def test_task_graphs_are_numbered_by_id_without_start_and_end():
    found = parse_steps(GRAPH)
    assert found.names == ("Boil water", "Warm the pot", "Pour", "Drink")
    assert found.order == orders.before(4, [(0, 2), (1, 2), (2, 3)])


def test_task_graphs_go_by_name_where_all_names_are_known():
    there = ["Drink", "pour", "Warm the pot", "Boil water"]
    assert parse(GRAPH, there) == orders.before(4, [(3, 1), (2, 1), (1, 0)])
    assert parse(GRAPH, ["a", "b", "c", "d"]) == parse(GRAPH)


def test_a_text_is_json_or_a_step_to_a_line():
    assert parse("\ufeff [0, 1]") == orders.as_order([0, 1])
    assert parse("[ ] Boil\n[x] Pour") == orders.as_order([0, 1])
    assert parse("Boil\nany order:\n  Warm\n  Open") == orders.as_order([0, orders.any_order(1, 2)])
    text = "Boil water\nany order:\n  Open the tin\n  optional:\n    warm the pot\nPour"
    assert parse_steps(text, NAMES) == Steps(tuple(NAMES), orders.as_order([0, orders.any_order(2, 1), 3]), (1,))


def nested(wrap, times):
    found = 0
    for _ in range(times):
        found = wrap(found)
    return found


BAD = {
    "cycle": ({"before": [[0, 1], [1, 0]]}, None, "has a cycle, 1 before 0 before 1"),
    "unknown number": ({"before": [[0, 4]]}, NAMES, "4 is not a step; give a number from 0 to 3, or a name"),
    "unknown name": (
        {"before": [["Fry", 0]]},
        NAMES,
        "'Fry' is none of the 4 steps; give one of their names, such as 'Boil",
    ),
    "no names": ({"any": ["Fry", "Boil"]}, None, "'Fry' is a name, but the steps have no names"),
    "twice": ({"before": [["a", "b"]]}, ["a", "b", "a"], "'a' is the name of 2 steps, including 0 and 2"),
    "twice inside": ({"steps": ["a", "a"], "before": []}, None, "'a' is the name of 2 steps"),
    "missing": ({"any": [0, 1]}, NAMES, "the order does not name step 2 ('Open the tin'); name each of them"),
    "missing number": ({"any": [0, 1]}, 3, "there are 3 steps, but the order does not name step 2;"),
    "steps": ([0, 1], "ab", "steps is 'ab'; give a list of names, or the number of steps"),
    "steps of others": ([0, 1], [1, 2], "steps is [1, 2]; give a list of names"),
    "empty": ({"any": []}, None, "an order has an empty part"),
    "empty list": ([], None, "an order has an empty part"),
    "nothing": ({}, None, "the order contains a dictionary with nothing in it; give one of"),
    "keys": ({"any": [0], "foo": 1}, None, "a dictionary with 'any', 'foo'; give one of"),
    "many keys": (dict.fromkeys("abcdef"), None, "with 'a', 'b', 'c', 'd' and 2 more"),
    "number": (0.5, None, "the order contains 0.5; give a step, a list, or one of"),
    "truth": ([True], None, "the order contains True"),
    "bytes": (b"[0]", None, "the order contains b'[0]'"),
    "null": ("[null]", None, "the order contains None"),
    "JSON": ("{", None, "the order is not valid JSON: "),
    "deep JSON": ("[" * 10**5, None, "the order is not valid JSON: it is nested too deeply"),
    "deep lists": (nested(lambda part: [part], 10**4), None, "orders are nested more than 64 deep"),
    "deep orders": (nested(lambda part: {"any": [part]}, 10**4), None, "orders are nested more than 64 deep"),
    "huge number": ({"any": [10**5000, 1]}, None, "a number of 16610 bits is not a step"),
    "huge digits": (f"[{10**4000}]", None, "the order is not valid JSON: it contains a number with 4001 digits"),
    "no list": ({"any": 3}, None, "the order has 3 in place of a list of parts"),
    "no pairs": ({"before": {"a": 1}}, None, "the order has a dictionary of length 1 in place of a list of pairs"),
    "no pair": ({"before": [[0, 1, 2]]}, None, "[0, 1, 2] is not a valid pair; give [a, b] with two steps"),
    "long pair": ({"before": [[[0], 1, 2, 3, 4]]}, None, "a list of length 5 is not a valid pair"),
    "no jump": ({"list": [0, 1], "jumps": [[0]]}, None, "[0] is not a valid jump"),
    "pairs of nothing": ({"before": []}, None, 'there are neither pairs nor steps; add "steps"'),
    "count": ({"steps": 10**9, "before": []}, None, '"steps" is 1000000000; give the number of steps, 1 to 16384'),
    "cost": ({"repeat": 0, "cost": "x"}, None, "the cost of repeat is 'x'; give a finite number"),
    "huge cost": ({"repeat": 0, "cost": 10**400}, None, "the cost of repeat is 1000000"),
    "inside": ({"any": [0, {"one": [1, 2]}]}, None, "any_order contains one_of(1, 2)"),
    "walks": ({"walks": [[0], []]}, None, '"walks" has 2 parts; give labels, arcs, final nodes and jumps'),
    "limits": ({"lasting": 0, "between": [1]}, None, '"between" is [1]; give [at_least, at_most]'),
    "no limits": ({"lasting": 0}, None, "the order has None in place of two limits"),
    "seconds": (
        {"lasting": 0, "between": [{"seconds": "x"}, None]},
        None,
        "the time of at_least is 'x'; give a finite",
    ),
    "endless": (
        {"lasting": 0, "between": [{"seconds": 1e300}, None]},
        None,
        "at_least is {'seconds': 1e+300}; give a num",
    ),
    "final": ({"walks": [[0], [[0, 1]], [5], []]}, None, "5 is not a final node"),
    "graph": ({"steps": [1], "edges": []}, None, "a dictionary with \"edges\" has 'steps', 'edges'; give"),
    "large graph": ({"steps": {str(n): "x" for n in range(20000)}, "edges": []}, None, "the order has 20000 steps"),
    "no id": ({"steps": {"x": "a"}, "edges": []}, None, "the step 'x': 'a' is not a number with a text"),
    "id twice": ({"steps": {"1": "a", "01": "b"}, "edges": []}, None, "number each step once"),
    "only ends": ({"steps": {"0": "START"}, "edges": []}, None, "no steps besides START and END"),
    "edge": ({"steps": {"1": "a"}, "edges": [[1, 7]]}, None, "an edge names 7, which is not the id of a step"),
    "wrong way": ({"steps": {"0": "START", "1": "a"}, "edges": [[1, 0]]}, None, "the edge [1, 0] leads to START"),
    "other graph": (GRAPH, 3, "the order has 4 steps, but there are 3"),
    "text": ("Boil water\nFry", NAMES, "line 2: 'Fry' is none of the 4 steps"),
    "short text": ("Boil\nFry", 3, "the order has 2 steps, but there are 3; give each step one line"),
    "forgotten": ("Pour\nBoil water\nWarm the pot", NAMES, "does not name step 2 ('Open the tin')"),
    "no text": ("# nothing", None, "there are no steps; give a text with one step per line"),
    "empty block": ("any order:\nBoil", None, "line 1: 'any order:' opens a block, but the line below it is not"),
    "last block": ("Boil\none of:", None, "line 2: 'one of:' opens a block"),
    "inside any": (
        "any order:\n  a\n  in order:\n    Repeat:\n      b",
        None,
        "line 4: 'Repeat:' is inside 'any order:'",
    ),
    "twice in any": ("any order:\n  pour\n  pour", NAMES, "line 1: step 3 is in any_order twice"),
    "deeper": ("a\nany order:\n  b\n    c", None, "line 4: it is indented more than line 3, which does not open"),
    "between": ("any order:\n    a\n  b", None, "line 3: it is indented by 2, which matches no block"),
    "to the left": ("  a\n  any order:\n    b\nc", None, "line 4: it is indented by 0, which matches no block"),
    "tabs": ("any order:\n\ta\n  b", None, "line 3: it is indented with spaces, but line 2 with tabs; use only"),
    "mixed": ("any order:\n \ta", None, "line 2: it is indented with tabs and spaces; use only spaces"),
    "blanks": ("any order:\n\u00a0a", None, "line 2: it is indented with neither spaces nor tabs"),
    "many": ("any order:\n" + "  a\n" * 20000, None, "line 16386: there are more than 16384 steps"),
    "deep": (
        "\n".join(" " * n + "in order:" for n in range(200)) + "\n" + " " * 200 + "a",
        None,
        "line 64: blocks are nested",
    ),
}


@pytest.mark.parametrize(("said", "steps", "message"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_said_in_one_line(said, steps, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        parse(said, steps)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_every_message_has_a_case():
    met = set()
    for said, steps, _ in BAD.values():
        try:
            parse(said, steps)
        except ValueError as caught:
            error = caught
            while error:
                at = error.__traceback__
                while at:
                    met.add((at.tb_frame.f_code.co_filename, at.tb_lineno))
                    at = at.tb_next
                error = error.__context__
    for module in (text_module, blocks_module):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text())):
            if isinstance(node, ast.Raise):
                lines = range(node.lineno, node.end_lineno + 1)
                assert any((module.__file__, line) in met for line in lines), ast.unparse(node)


@pytest.mark.exhaustive
def test_a_million_pairs_are_read():
    pairs = [[a, b] for a in range(1500) for b in range(a + 1, 1500)]
    assert len(parse(json.dumps({"before": pairs})).steps) == 1500
    with pytest.raises(ValueError, match="has a cycle"):
        parse({"before": [*pairs, [1499, 0]]})


def test_deeply_nested_orders_take_no_longer_than_flat_ones():
    order = orders.as_order(0)
    for step in range(1, 60):
        order = orders.any_order(order, step) if step % 2 else orders.as_order([order, step])
    assert order.depth == 60
    assert len(order.pairs()) > 59 - 30
    assert parse(order.to_dict()) == order


def test_an_order_of_too_many_pairs_is_refused():
    wide = orders.as_order([orders.any_order(*range(4000)), orders.any_order(*range(4000, 8000))])
    with pytest.raises(ValueError, match=r"each of 4000 steps comes before each of 4000, .* more than 4194304"):
        wide.pairs()
    with pytest.raises(ValueError, match="orders are nested more than 64 deep"):
        orders.as_order(nested(lambda part: [part], 10**5))
