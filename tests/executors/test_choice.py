"""Which executor runs, what happens without a compiled one, and the generated header."""

import itertools
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from cases import paid
from dropdtw.executors import choose, emit
from dropdtw.problem.charges import Charges
from dropdtw.problem.costs import Costs
from dropdtw.tables import recurrence
from dropdtw.tables.reducers import reducer


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
    """Results are bitwise independent of other items, their order and the number of threads."""
    rng = np.random.default_rng(0)
    fold = reducer(kind, 0.5)
    sizes = np.array([(1, 1), (9, 2), (3, 40), (17, 17)])
    plain = (recurrence.two_sided(), recurrence.one_sided(), recurrence.one_sided().transpose())
    charged = (recurrence.two_sided(charged=True), recurrence.one_sided(charged=True).transpose())
    for table in (*plain, *charged, recurrence.symmetric2()):
        charges = rng.random((4, 3)) if table in charged else np.zeros((4, 3))
        costs = rng.random((4, 17, 40)), rng.random((4, 40)), rng.random((4, 17))
        batch = Costs(*costs, charges, tuple(sizes.T))
        for part, *limits in ((batch.match, 0, 1), (batch.drop_x, 1), (batch.drop_z, 0)):
            for b in range(4):  # values beyond the lengths must not matter
                inside = tuple(slice(sizes[b, k]) for k in limits)
                kept = part[b][inside].copy()
                part[b] = np.nan
                part[b][inside] = kept
        alone = [
            choose(table, executor).run(
                table,
                fold,
                paid(batch.match[b, :k, :n], batch.drop_x[b, :n], batch.drop_z[b, :k], None, Charges(*charges[b])),
                gradient=True,
            )
            for b, (k, n) in enumerate(sizes)
        ]
        for threads, order in ((1, [0, 1, 2, 3]), (3, [3, 1, 0, 2])):
            shuffled = batch.of_items(order)
            run_batch = choose(table, executor).run_batch
            value, *parts = run_batch(table, fold, shuffled, gradient=True, threads=threads)
            np.testing.assert_array_equal(value, run_batch(table, fold, shuffled, threads=threads)[0])
            for b, item in enumerate(order):
                k, n = sizes[item]
                assert value[b] == alone[item].value
                for part, wanted, inside in zip(
                    parts, alone[item][1:5], ((slice(k), slice(n)), slice(n), slice(k), slice(3)), strict=True
                ):
                    np.testing.assert_array_equal(part[b][inside], wanted)
                    part[b][inside] = 0
                    assert not part[b].any()


def test_the_header_states_every_edge(tmp_path):
    written = tmp_path / "tables.hpp"
    subprocess.run([sys.executable, emit.__file__, str(written)], check=True, timeout=60)
    text = written.read_text()
    assert text == emit.header(recurrence)
    for number, family in enumerate(emit.families(recurrence)):
        if number >= emit.UNROLLED and family.name != emit.SCANNED:
            assert f"struct {family.name} " not in text
            continue
        body = re.search(rf"struct {family.name} {{(.*?)}};\n(?:struct|inline)", text, re.DOTALL)[1]
        edges = re.search(r"edges\[\] = {(.*)};", body)[1]
        assert edges.count("Move::") == len(family.edges)
        assert edges.count("true") == sum(family.optional)
        assert f"states = {len(family.member.states)};" in body


def test_families_keep_every_tables_tie_order():
    for table in (recurrence.one_sided(contiguous=True), recurrence.two_sided(one_to_many=False), recurrence.dtw()):
        place = emit.locate(table)
        family = emit.families(recurrence)[place.family]
        has = (not optional or place.mask >> k & 1 for k, optional in enumerate(family.optional))
        assert tuple(e for e, there in zip(family.edges, has, strict=True) if there) == table.edges
        assert emit.locate(table.transpose()) is not None  # the transposed table runs on swapped sequences


def test_an_unchanged_header_is_not_rewritten(tmp_path):
    """Otherwise every change of a docstring in `tables/` would recompile all kernels."""
    written = tmp_path / "tables.hpp"
    for text, kept in (("", False), (emit.header(recurrence), True)):
        written.write_text(text)
        os.utime(written, (1, 1))
        subprocess.run([sys.executable, emit.__file__, str(written)], check=True, timeout=60)
        assert (written.stat().st_mtime == 1) is kept


@pytest.mark.parametrize("count", [1, 6])
def test_every_unrolled_family_is_compiled_in_exactly_one_part(count):
    found = emit.families(recurrence)[: emit.UNROLLED]
    parts = emit.divided(found, count)
    assert sorted(itertools.chain(*parts)) == list(range(len(found)))
    assert len(parts) == count
    assert all(parts)
    text = emit.header(recurrence, count)
    for number, family in enumerate(found):
        assert len(re.findall(rf"#define DROPDTW_PART_\d+\(X\) .*X\({number}, {family.name}\)", text)) == 1


def test_tables_need_nothing_installed(tmp_path):
    """The header is generated during the build, when NumPy may be missing."""
    written = tmp_path / "tables.hpp"
    alone = [sys.executable, "-I", "-S"]  # without site-packages
    assert subprocess.run([*alone, "-c", "import numpy"], capture_output=True, check=False, timeout=60).returncode
    subprocess.run([*alone, emit.__file__, str(written)], check=True, timeout=60)
    assert written.read_text() == emit.header(recurrence)


def test_kernels_that_were_compiled_from_other_tables_are_refused(monkeypatch):
    cpu = pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
    cpu.check_built.cache_clear()
    cpu.check_built()
    cpu.check_built.cache_clear()
    monkeypatch.setattr(cpu._cpp, "tables", "of another version")
    with pytest.raises(RuntimeError, match="their tables differ; reinstall dropdtw"):
        cpu.check_built()


def test_the_key_of_the_tables_tells_unrolled_ones_apart(monkeypatch):
    before = emit.key(recurrence)
    assert emit.key(recurrence) == before
    other = recurrence.two_sided(contiguous=True)
    monkeypatch.setattr(recurrence, "dtw", lambda **options: other)
    assert emit.key(recurrence) != before
