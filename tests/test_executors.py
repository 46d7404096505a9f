"""Which executor runs, what happens where none is compiled, and the header that kernels are compiled from."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from dropdtw import recurrence
from dropdtw.executors import choose, run_batch
from dropdtw.kernels import emit
from dropdtw.problem import Costs
from dropdtw.reducers import reducer


def test_without_the_compiled_executor_the_reference_serves_and_says_so_once():
    code = """
import sys, warnings
sys.modules["dropdtw._cpp"] = None  # as if it had not been built
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import dropdtw
    from dropdtw.executors import EXECUTORS
    values = [dropdtw.cost([[1.0, 2.0]], drop_x=0.5) for _ in range(3)]
    series = dropdtw.pairwise([[0.0, 1.0], [0.0, 2.0]], match="euclidean")
print(list(EXECUTORS), values, series.tolist(), len(said), said[0].category.__name__, said[0].message)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert out.startswith("['reference'] [1.5, 1.5, 1.5] [[0.0, 1.0], [1.0, 0.0]] 1 RuntimeWarning")
    assert "the compiled executor is not installed" in out
    assert "Install a C++20 compiler" in out


@pytest.mark.parametrize("kind", ["hard", "soft", "smooth"])
def test_a_batch_of_any_sizes_is_its_members_one_by_one(executor, kind):
    """Neighbours, order and threads change nothing, to the last bit."""
    rng = np.random.default_rng(0)
    table, fold = recurrence.two_sided(), reducer(kind, 0.5)
    batch = [Costs(rng.random((K, N)), rng.random(N), rng.random(K)) for K, N in ((1, 1), (9, 2), (3, 40), (17, 17))]
    alone = [choose(table, executor).run(table, fold, costs, gradient=True) for costs in batch]
    for threads in (1, 3):
        together = run_batch(table, fold, batch[::-1], gradient=True, executor=executor, threads=threads)[::-1]
        for one, other in zip(alone, together, strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
    assert run_batch(table, fold, [], executor=executor) == []


def test_the_header_states_every_edge(tmp_path):
    written = tmp_path / "tables.hpp"
    subprocess.run([sys.executable, emit.__file__, str(written)], check=True, timeout=60)
    text = written.read_text()
    assert text == emit.header(recurrence)
    for family in emit.families(recurrence):
        body = re.search(rf"struct {family.name} {{(.*?)}};\n(?:struct|inline)", text, re.DOTALL)[1]
        edges = re.search(r"edges\[\] = {(.*)};", body)[1]
        assert edges.count("Move::") == len(family.edges)
        assert edges.count("true") == sum(family.optional)
        assert f"states = {len(family.member.states)};" in body


def test_families_keep_every_tables_tie_order():
    for table in (recurrence.one_sided(contiguous=True), recurrence.two_sided(one_to_many=False), recurrence.dtw()):
        place = emit.locate(table)
        family = emit.families(recurrence)[place.family]
        assert tuple(e for k, e in enumerate(family.edges) if place.mask >> k & 1) == table.edges
        assert emit.locate(table.transpose()) is not None  # its mirror image runs on exchanged sequences


def test_tables_need_nothing_installed():
    """The header is written while the package is being built, when NumPy may be missing."""
    source = Path(dropdtw.__file__).parent / "recurrence.py"
    assert not re.search(r"^(import|from) (numpy|dropdtw)", source.read_text(), re.MULTILINE)
