"""Generate a C++ header of constexpr edges from the tables of `recurrence.py`, and look up the kernel of a table.

Tables that differ only in which matches they allow form a *family*. It lists the edges of all its members, in an order
that agrees with the tie order of each. A member is a bit mask over those that not all have. The build runs this file as
a program; `family.cpp` then unrolls the edges of some families with templates. All other tables are read at run time.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from dropdtw.tables.table import Edge, Recurrence

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The λ that lower bounds try (`search/bounds.py`, and `lower_bound.hpp` in the kernels); the largest bound is used."""

UNROLLED = 14
"""How many families have unrolled kernels, for hard minima: the first ones.

These are the tables that people use most, in every row of docs/performance.md: DTW, Drop-DTW, Needleman–Wunsch (also
"lcss", "edr", "erp" and `media.diff`) and subsequence DTW. Smith–Waterman and four step patterns add two seconds of
compiling, and would otherwise take three to four times as long. For soft minima, exponentials take most of the time,
so unrolling does not pay.
"""

SCANNED = "occurrence"
"""The family of the kernel that finds occurrences, `scan.cpp`. It is unrolled there."""


class Family(NamedTuple):
    """Tables with the same states, start, final and border.

    member : one of them.   edges : the union of their edges.   optional : whether some member lacks the edge.
    """

    name: str
    member: Recurrence
    edges: tuple[Edge, ...]
    optional: tuple[bool, ...]


class Member(NamedTuple):
    """A table as a member of a family: its number, the optional edges as a bit mask, whether Z and X are exchanged."""

    family: int
    mask: int
    transposed: bool


def families(recurrence: Any) -> list[Family]:
    """The families of the module `recurrence`, in the order in which kernels number them: unrolled ones first."""
    moves = [{"one_to_many": o, "many_to_one": m} for o, m in product((True, False), repeat=2)]
    runs = [{**m, "contiguous": c} for m, c in product(moves, (False, True))]
    ends = list(product(("drop", "free"), repeat=2))
    plain, charged = ([recurrence.dtw(**m, charged=c) for m in moves] for c in (False, True))
    members = {
        "dtw": [recurrence.dtw(**m) for m in moves],
        "one_sided": [recurrence.one_sided(**r) for r in runs],
        "two_sided": [recurrence.two_sided(**r) for r in runs],
        "subsequence": [recurrence.subsequence(**m) for m in moves],
        "needleman_wunsch": [recurrence.needleman_wunsch()],
        "dtw_charged": [recurrence.dtw(**m, charged=True) for m in moves],
        "one_sided_charged": [recurrence.one_sided(**r, charged=True) for r in runs],
        "two_sided_charged": [recurrence.two_sided(**r, charged=True) for r in runs],
        "needleman_wunsch_charged": [recurrence.needleman_wunsch(charged=True)],
        "smith_waterman": [recurrence.smith_waterman()],
        "symmetric2": [recurrence.symmetric2()],
        "asymmetric": [recurrence.asymmetric()],
        "symmetricP1": [recurrence.symmetric_p1()],
        "asymmetric_p1": [recurrence.asymmetric_p1()],
        "algorithm_2": [recurrence.algorithm_2(**r) for r in runs],
        "subsequence_charged": [recurrence.subsequence(**m, charged=True) for m in moves],
        "smith_waterman_charged": [recurrence.smith_waterman(charged=True)],
        "free_x": [recurrence.free_ends(t, x) for t, x in product(plain, ends)],
        "free_ends": [recurrence.free_ends(t, x, z) for t, x, z in product(plain, ends, ends)],
        "free_x_charged": [recurrence.free_ends(t, x) for t, x in product(charged, ends)],
        "free_ends_charged": [recurrence.free_ends(t, x, z) for t, x, z in product(charged, ends, ends)],
        "ctc": [recurrence.ctc(one_to_many=o) for o in (True, False)],
        "occurrence": [recurrence.occurrence(**r, anchored=a) for r, a in product(runs, (False, True))],
    }
    sides = [(x, z, c) for x, z, c in product((True, False), repeat=3) if x or z]
    for pattern in (recurrence.symmetric2, recurrence.symmetric_p05, recurrence.symmetric_p1, recurrence.symmetric_p2):
        for table in [pattern(x=x, z=z, charged=c) for x, z, c in sides] + [pattern()]:
            members.setdefault(table.name, [table])
    return [_family(name, tables) for name, tables in members.items()]


def _family(name: str, tables: list[Recurrence]) -> Family:
    union: list[Edge] = []
    for table in tables:
        place = 0
        for edge in table.edges:
            if edge not in union:
                union.insert(place, edge)
            place = union.index(edge) + 1
    for table in tables:
        order = [union.index(e) for e in table.edges]
        assert order == sorted(order), f"{table.name}: the family's order breaks ties differently"
    first = tables[0]
    for edge in union:
        # Kernels set the states of cell (0, 0) to 0 or ∞ without evaluating edges.
        assert edge.move != "same" or edge.dst in first.starts, f"{name}: {edge} would matter at the origin"
    return Family(name, first, tuple(union), tuple(any(e not in t.edges for t in tables) for e in union))


@cache
def locate(table: Recurrence) -> Member | None:
    """The family of a built-in table; None for a user-defined one."""
    from dropdtw.tables import recurrence

    for transposed in (False, True):
        wanted = table.transpose() if transposed else table
        for number, family in enumerate(families(recurrence)):
            member = family.member
            same = all(
                getattr(wanted, part) == getattr(member, part) for part in ("states", "start", "final", "border")
            )
            if same and set(wanted.edges) <= set(family.edges):
                order = [family.edges.index(e) for e in wanted.edges]
                needed = {k for k, optional in enumerate(family.optional) if not optional}
                if order == sorted(order) and needed <= set(order):
                    return Member(number, sum(1 << k for k in order if family.optional[k]), transposed)
    return None


def divided(found: list[Family], count: int) -> list[list[int]]:
    """Divide the unrolled families, by number, into parts that take about equally long to compile."""
    parts: list[list[int]] = [[] for _ in range(count)]
    work = [0] * count

    def size(number: int) -> int:  # unrolled code grows with the edges; each kernel has some code besides
        return 10 + len(found[number].edges)

    for number in sorted(range(UNROLLED), key=size, reverse=True):
        smallest = work.index(min(work))
        parts[smallest].append(number)
        work[smallest] += size(number)
    return parts


def key(recurrence: Any) -> str:
    """A digest of the unrolled families. Kernels with another one were compiled from other tables."""
    return sha256(_structs(families(recurrence)).encode()).hexdigest()[:16]


def header(recurrence: Any, count: int = 1) -> str:
    """The text of the generated header. The build compiles `family.cpp` `count` times, each time for one part."""
    found = families(recurrence)
    parts = [
        "// Generated from recurrence.py by emit.py; do not edit.",
        "#pragma once",
        '#include "edge.hpp"',
        "namespace dropdtw {",
        _structs(found),
        f'inline constexpr char tables_key[] = "{key(recurrence)}";',
        f"inline constexpr double bound_shares[] = {{{', '.join(map(str, SHARES))}}};",
        f"inline constexpr int family_count = {UNROLLED};",
        "#define DROPDTW_FAMILIES(X) " + " ".join(f"X({k}, {f.name})" for k, f in enumerate(found[:UNROLLED])),
        *(
            f"#define DROPDTW_PART_{part}(X) " + " ".join(f"X({k}, {found[k].name})" for k in numbers)
            for part, numbers in enumerate(divided(found, count))
        ),
        "}  // namespace dropdtw",
    ]
    return "\n".join(parts) + "\n"


def _structs(found: list[Family]) -> str:
    unrolled = (family for k, family in enumerate(found) if k < UNROLLED or family.name == SCANNED)
    return "\n".join(map(_struct, unrolled))


def _struct(family: Family) -> str:
    member = family.member
    number = {state: k for k, state in enumerate(member.states)}
    starts = set(member.starts)
    assert member.border is None, f"{family.name}: unrolled kernels know no borders"
    edges = ", ".join(
        f"{{{number[e.src]}, {number[e.dst]}, Move::{e.move}, Cost::{e.cost}, {str(optional).lower()}, "
        f"{e.weight}, Plus::{e.plus or 'none'}}}"
        for e, optional in zip(family.edges, family.optional, strict=True)
    )
    return f"""struct {family.name} {{
  static constexpr bool unrolled = true;
  static constexpr int states = {len(member.states)};  // {", ".join(member.states)}
  static constexpr Edge edges[] = {{{edges}}};
  static constexpr bool start[] = {{{", ".join(str(s in starts).lower() for s in member.states)}}};
  static constexpr int final[] = {{{", ".join(str(number[s]) for s in member.final)}}};
}};"""


def _main() -> None:
    """Write the header to the path given on the command line, unless it already has this content.

    Rewriting it would recompile everything.

    The package itself is not imported, because its `__init__` needs NumPy, which may be missing during the build.
    """
    package = ModuleType("dropdtw")
    package.__path__ = [str(Path(__file__).parents[1])]
    sys.modules["dropdtw"] = package
    recurrence = importlib.import_module("dropdtw.tables.recurrence")
    text = header(recurrence, *map(int, sys.argv[2:]))
    path = Path(sys.argv[1])
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    _main()
