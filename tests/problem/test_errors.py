"""Every error message of the library: it says what arrived and what to do.

The table has one call per mistake, and what its message must say. The last test reads the source and checks
that each `raise` of the modules below is reached by some row, so a new message needs a new row.
"""

import ast
import importlib
from pathlib import Path

import pytest

from error_cases import CASES

MODULES = [
    *("api", "costs", "drops", "tables.ends", "tables.methods", "problem.band", "problem.inputs"),
    *("plot.common", "plot.orders", "plot.pairs", "plot.series"),
    *("problem.charges", "problem.match", "problem.missing", "problem.problem", "problem.spec", "problem.symbols"),
    *("executors", "results.alignment", "results.explain", "results.html", "results.posterior"),
    *("results.serialize", "results.text", "results.warp", "search.find", "search.pairwise", "files.progress"),
    *("orders.order", "orders.poset", "orders.lattice", "orders.graph", "orders.compile", "orders.user_graph"),
]
"""Modules whose messages are tested here. Those of other modules are tested next to the modules."""


@pytest.mark.parametrize(("call", "error", "says", "does"), CASES.values(), ids=CASES)
def test_message_says_what_arrived_and_what_to_do(call, error, says, does):
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert says in message
    assert does in message


def raised_at(error):
    """Where an error and its causes were raised."""
    while error is not None:
        last = error.__traceback__
        while last.tb_next:
            last = last.tb_next
        yield Path(last.tb_frame.f_code.co_filename), last.tb_lineno
        error = error.__cause__


def test_every_message_has_a_case():
    met = set()
    for call, error, _, _ in CASES.values():
        try:
            call()
        except error as e:
            met.update(raised_at(e))
    missed = []
    for name in MODULES:
        path = Path(importlib.import_module(f"dropdtw.{name}").__file__)
        for node in ast.walk(ast.parse(path.read_text())):
            # `raise TypeError` without a message never leaves its function
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                lines = range(node.lineno, node.end_lineno + 1)
                if not any((path, line) in met for line in lines):
                    missed.append(f"{name}.py:{node.lineno} {ast.unparse(node)}")
    assert missed == []
