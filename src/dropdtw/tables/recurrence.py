"""Every aligner as a table. All executors read these definitions.

The order of edges and of final states breaks ties. Edges into a state are listed by move: first `diag`, then `left`,
then `top`. Among those with the same move, edges from matched states come first. `final` lists matched states first,
too. So among equally good paths a match beats a drop, and a diagonal move beats the others. There are four exceptions:

- Step patterns keep the order of dtw-python.
- `algorithm_2` lists `top` before `left` for the state `neither`.
- A transposed table (Drop-DTW that drops only z) keeps the order of the original, so it lists `top` before `left`.
- `subsequence` and `free_ends` list `suffix` before `match`. A path in `suffix` had its last match earlier, so the
  earliest of equally good occurrences wins. (`smith_waterman` lists `match` first, so there the latest wins.)

Tables with `charged=True` charge for runs of drops and for repeated elements. They are separate tables, so that the
plain ones have no overhead for adding 0.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Literal

from dropdtw.tables.table import Edge, Recurrence, edges


def _matches(
    from_diag: str, from_left: str, from_top: str, *, to: str, one_to_many: bool, many_to_one: bool, charged: bool
) -> tuple[Edge, ...]:
    """Edges that match z_i with x_j: both new (`diag`), z_i again (`left`), or x_j again (`top`).

    from_diag, from_left, from_top : the names of the states from which each move may come.
    """
    plus = "warp" if charged else None
    found = edges(from_diag, to=to, moves="diag", cost="match")
    if one_to_many:
        found += edges(from_left, to=to, moves="left", cost="match", plus=plus)
    if many_to_one:
        found += edges(from_top, to=to, moves="top", cost="match", plus=plus)
    return found


def _drops(first: str, more: str, *, to: str, side: str, charged: bool) -> tuple[Edge, ...]:
    """Edges that drop an element of one side: from states in `first` they open a run, from `more` they continue it."""
    move, cost, opens = ("left", "drop_x", "open_x") if side == "x" else ("top", "drop_z", "open_z")
    found = edges(first, to=to, moves=move, cost=cost, plus=opens if charged else None)
    return found + edges(more, to=to, moves=move, cost=cost)


def _named(name: str, charged: bool) -> str:
    return f"{name}_charged" if charged else name


@cache
def dtw(*, one_to_many: bool = True, many_to_one: bool = True, charged: bool = False) -> Recurrence:
    """Dynamic time warping: every element is matched (paper Eq. 1)."""
    return Recurrence(
        name=_named("dtw", charged),
        states=("match",),
        edges=_matches(
            "match",
            "match",
            "match",
            to="match",
            one_to_many=one_to_many,
            many_to_one=many_to_one,
            charged=charged,
        ),
        start="match",
        final=("match",),
    )


@cache
def one_sided(
    *, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False, charged: bool = False
) -> Recurrence:
    """Drop-DTW that drops from X only (paper Algorithm 1): `match` is D⁺, `drop` is D⁻, `best` is D.

    As in the paper, D = smoothMin(D⁺, D⁻) is computed in each cell, and edges that may follow either leave from D, the
    state `best`. Separate edges from D⁺ and D⁻ would give other values, because smoothMin is not associative.

    With `charged`, the first drop of a run comes from `match`, the later ones from `drop`. A run may also begin at the
    origin, so `match` is a start state too.
    """
    matches = _matches(
        "best",
        "match" if contiguous else "best",
        "match",
        to="match",
        one_to_many=one_to_many,
        many_to_one=many_to_one,
        charged=charged,
    )
    plain = edges("best", to="drop", moves="left", cost="drop_x")
    return Recurrence(
        name=_named("drop_dtw_one_sided", charged),
        states=("match", "drop", "best"),
        edges=matches
        + (_drops("match", "drop", to="drop", side="x", charged=True) if charged else plain)
        + edges("match drop", to="best", moves="same", cost="free"),
        start=("match", "best") if charged else "best",
        final=("best",),
    )


@cache
def two_sided(
    *, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False, charged: bool = False
) -> Recurrence:
    """Drop-DTW that drops from both sequences; each alignment has exactly one path.

    In cell (i, j), the state says which of z_i and x_j are matched: `both`, `z_only`, `x_only` or `neither`. Between
    two matches, the x are dropped first, then the z: `neither` is entered from above only. So the drops of a run are
    consecutive on the path. With hard min this is the paper's Algorithm 2. With soft min it is Algorithm 2 with each
    alignment counted once, rather than once per order of its drops.
    """
    return Recurrence(
        name=_named("drop_dtw_two_sided", charged),
        states=("both", "z_only", "x_only", "neither"),
        edges=_two_sided_matches(one_to_many, many_to_one, contiguous, charged)
        + _drops("both", "z_only", to="z_only", side="x", charged=charged)
        + _drops("both", "x_only", to="x_only", side="z", charged=charged)
        + _drops("z_only", "neither", to="neither", side="z", charged=charged),
        start="both",
        final=("both", "z_only", "x_only", "neither"),
    )


@cache
def algorithm_2(*, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False) -> Recurrence:
    """The paper's Algorithm 2, apart from its typos. The states are D^{zx}, D^{z−}, D^{−x} and D^{−−}, in this order.

    The typos: line 3 means D^{−x}_{0,j} = ∞; line 4 means D^{−−}_{i,0} = D^{−x}_{i,0} and D^{−−}_{0,j} = D^{z−}_{0,j}.
    All four D are 0 in cell (0, 0), and on the borders each continues only itself. Soft minima count some alignments
    several times here.
    """
    return Recurrence(
        name="drop_dtw_paper",
        states=("both", "z_only", "x_only", "neither"),
        edges=_two_sided_matches(one_to_many, many_to_one, contiguous, charged=False)
        + edges("both z_only", to="z_only", moves="left", cost="drop_x")
        + edges("both x_only", to="x_only", moves="top", cost="drop_z")
        + edges("z_only neither", to="neither", moves="top", cost="drop_z")
        + edges("x_only neither", to="neither", moves="left", cost="drop_x"),
        start=("both", "z_only", "x_only", "neither"),
        final=("both", "z_only", "x_only", "neither"),
        border=edges("z_only", to="z_only", moves="left", cost="drop_x")
        + edges("x_only", to="x_only", moves="top", cost="drop_z")
        + edges("neither", to="neither", moves="left", cost="drop_x")
        + edges("neither", to="neither", moves="top", cost="drop_z"),
    )


def _two_sided_matches(one_to_many: bool, many_to_one: bool, contiguous: bool, charged: bool) -> tuple[Edge, ...]:
    return _matches(
        "both z_only x_only neither",
        "both" if contiguous else "both z_only",
        "both x_only",
        to="both",
        one_to_many=one_to_many,
        many_to_one=many_to_one,
        charged=charged,
    )


@cache
def subsequence(*, one_to_many: bool = True, many_to_one: bool = True, charged: bool = False) -> Recurrence:
    """DTW of all of Z with a stretch of X: the x before the first match and after the last one are dropped.

    These drops cost d_x; subsequence DTW and OTAM set it to 0.
    """
    matches = _matches(
        "match prefix", "match", "match", to="match", one_to_many=one_to_many, many_to_one=many_to_one, charged=charged
    )
    return Recurrence(
        name=_named("subsequence", charged),
        states=("prefix", "match", "suffix"),
        edges=matches
        + edges("prefix", to="prefix", moves="left", cost="drop_x")
        + edges("suffix match", to="suffix", moves="left", cost="drop_x"),
        start="prefix",
        final=("suffix", "match"),
    )


End = Literal["drop", "free"]
"""What it costs to leave out elements at an end of a sequence: their drop costs, or nothing."""


@cache
def free_ends(table: Recurrence, x: tuple[End, End] = ("free", "free"), z: tuple[End, End] | None = None) -> Recurrence:
    """Add free ends to a table: elements before the first match and after the last one may be skipped.

    table : has one start state, and every alignment begins with a match by `diag`.
    x, z : (beginning, end), what it costs to leave out elements there: "free" costs nothing, "drop" costs d_x or d_z.
        With "drop", the caller limits how many elements are left out: d_x or d_z is 0 where that is allowed and +∞
        elsewhere. z=None: all of Z is matched.

    Each end skips elements of either X or Z, never of both: the path leaves `origin` in one of the two directions, and
    no edge leads from one `suffix` state to the other.
    """
    (start,) = table.starts
    # New states (`first`, below) replace the start state. It is kept as well only if an edge leads back into it.
    kept = tuple(s for s in table.states if s != start or any(e.dst == start for e in table.edges))
    first = ("prefix",) if z is None else ("origin", "prefix_x", "prefix_z")
    matches: tuple[Edge, ...] = ()
    for edge in table.edges:
        if edge.src in kept:
            matches += (edge,)
        if edge.src == start and edge.move == "diag":
            matches += tuple(edge._replace(src=state) for state in first)
    ends: tuple[Edge, ...] = ()
    last: tuple[str, ...] = ()
    for name, move, sides in (("x", "left", x), ("z", "top", z)):
        if sides is None:
            continue
        prefix, suffix = ("prefix", "suffix") if z is None else (f"prefix_{name}", f"suffix_{name}")
        before, after = ("free" if end == "free" else f"drop_{name}" for end in sides)
        begin = prefix if z is None else f"{prefix} origin"
        ends += edges(begin, to=prefix, moves=move, cost=before)
        ends += edges(" ".join((suffix, *table.final)), to=suffix, moves=move, cost=after)
        last += (suffix,)
    return Recurrence(
        name=f"{table.name}_free_ends",
        states=(*first, *kept, *last),
        edges=matches + ends,
        start=first[0],
        final=(*last, *table.final),
    )


@cache
def occurrence(
    *, one_to_many: bool = True, many_to_one: bool = True, contiguous: bool = False, anchored: bool = False
) -> Recurrence:
    """Drop-DTW of Z with a stretch of X that begins and ends with a match. Skipping the x before it costs nothing.

    These x are skipped in `prefix`, instead of dropped in `z_only`. Inside the stretch, drops cost the same as in
    `two_sided`. There is no state for the x after the stretch. Instead, in row K, the final states of column j hold the
    lowest cost of a stretch that ends with x_j; `Executor.occurrences` reads them.

    anchored : whether no x may be skipped before the stretch, so that the last column holds the cost for all of X.
    """
    matches = _matches(
        "both z_only x_only neither prefix",
        "both" if contiguous else "both z_only",
        "both x_only",
        to="both",
        one_to_many=one_to_many,
        many_to_one=many_to_one,
        charged=True,
    )
    return Recurrence(
        name="anchored_occurrence" if anchored else "occurrence",
        states=("prefix", "both", "z_only", "x_only", "neither"),
        edges=matches
        + (() if anchored else edges("prefix", to="prefix", moves="left", cost="free"))
        + _drops("both", "z_only", to="z_only", side="x", charged=True)
        + _drops("both", "x_only", to="x_only", side="z", charged=True)
        + _drops("prefix z_only", "neither", to="neither", side="z", charged=True),
        start="prefix",
        final=("both", "x_only"),
    )


@cache
def lasting(table: Recurrence, least: int, most: int | None) -> Recurrence:
    """Limit how many x each z matches, in a table whose z take unbroken runs of x. Its states count them.

    table : has one state for matches, which only matches enter, by `diag` or from itself by `left`.

    The k-th x of a run enters the copy `state_k`, and a path leaves the run from a copy with k ≥ least. If there are
    several such copies, each leads to the state itself; if there is one, it is that state.
    """
    (again,) = (e for e in table.edges if e.cost == "match" and e.move == "left")
    state, last = again.dst, most or least
    copies = [f"{state}_{k}" for k in range(1, last + 1)]
    gathers = most is not None and most > least
    if not gathers:
        copies[-1] = state
    found: tuple[Edge, ...] = ()
    for e in table.edges:
        if e == again:
            found += tuple(e._replace(src=src, dst=dst) for src, dst in pairwise(copies))
            found += (e,) if most is None else ()
        else:
            found += (e._replace(dst=copies[0]),) if e.dst == state else (e,)
    if gathers:
        found += edges(" ".join(copies[least - 1 :]), to=state, moves="same", cost="free")
    at = table.states.index(state)
    return Recurrence(
        name=f"{table.name}_lasting_{least}_{most or ''}",
        states=(*table.states[:at], *copies, *[state] * gathers, *table.states[at + 1 :]),
        edges=found,
        start=table.start,
        final=table.final,
    )


@cache
def needleman_wunsch(*, charged: bool = False) -> Recurrence:
    """One-to-one matches and paid drops on both sides. With `charged=True` it is Gotoh's algorithm.

    Between two matches, the x are dropped first, then the z, so that each alignment has exactly one path.
    """
    return Recurrence(
        name=_named("needleman_wunsch", charged),
        states=("match", "drop_x", "drop_z"),
        edges=edges("match drop_x drop_z", to="match", moves="diag", cost="match")
        + _drops("match", "drop_x", to="drop_x", side="x", charged=charged)
        + _drops("match drop_x", "drop_z", to="drop_z", side="z", charged=charged),
        start="match",
        final=("match", "drop_x", "drop_z"),
    )


@cache
def smith_waterman(*, charged: bool = False) -> Recurrence:
    """Needleman–Wunsch inside the best-scoring stretch of both sequences; elements outside it cost nothing.

    The stretch begins and ends with a match, or is empty at cost 0. The `skip_*` states skip what
    comes before it, the `rest_*` states what comes after it.
    """
    return Recurrence(
        name=_named("smith_waterman", charged),
        states=("skip_x", "skip_z", "match", "drop_x", "drop_z", "rest_x", "rest_z"),
        edges=edges("skip_x", to="skip_x", moves="left", cost="free")
        + edges("skip_x skip_z", to="skip_z", moves="top", cost="free")
        + edges("match drop_x drop_z skip_x skip_z", to="match", moves="diag", cost="match")
        + _drops("match", "drop_x", to="drop_x", side="x", charged=charged)
        + _drops("match drop_x", "drop_z", to="drop_z", side="z", charged=charged)
        + edges("match rest_x", to="rest_x", moves="left", cost="free")
        + edges("match rest_x rest_z", to="rest_z", moves="top", cost="free"),
        start="skip_x",
        final=("match", "rest_x", "rest_z", "skip_z"),
    )


@cache
def ctc(*, one_to_many: bool = True) -> Recurrence:
    """Connectionist temporal classification (Graves et al. 2006): tokens are Z, frames are X, blank frames are dropped.

    Each frame matches at most one token and each token one unbroken run of frames, as with `method="steps"`. Besides,
    two equal tokens in a row need a dropped frame between their runs. So z_i may follow a dropped frame freely, but
    pays d_z[i] in `gate` if it directly follows the run of z_{i−1}: +∞ if both are equal, 0 otherwise. No z is dropped.
    """
    return Recurrence(
        name="ctc",
        states=("match", "gate", "drop"),
        edges=edges("drop", to="match", moves="diag", cost="match")
        + edges("match gate" if one_to_many else "gate", to="match", moves="left", cost="match")
        + edges("match", to="gate", moves="top", cost="drop_z")
        + edges("match drop", to="drop", moves="left", cost="drop_x"),
        start="drop",
        final=("match", "drop"),
    )


# --- Step patterns ----------------------------------------------------------------------------------------------
#
# The patterns of Sakoe and Chiba (1978), with the names and weights of R's dtw and dtw-python: Z is their query, X
# their reference. The first pair always has weight 1, even if diagonal steps have another weight, so the origin
# is a separate state, `start`.


Step = tuple[str, float]
"""A move of a step pattern, with the weight of the pair that it leads to."""


def _pattern(
    name: str, *steps: tuple[Step, ...], x: bool = False, z: bool = False, charged: bool = False
) -> Recurrence:
    """The table of a step pattern, in which elements can be dropped between any two matches.

    It aligns what is left after dropping, as the pattern does without drops. A state is called after the moves of a
    step that is not complete yet; `match` follows a complete one. Each has copies in which an x, a z or both were
    dropped since its match. As in `two_sided`, the x are dropped first.

    steps : what may lead from one complete step to the next: moves, each with the weight of its pair.
    x, z : whether elements of X, and of Z, may be dropped.
    """
    parts = list(dict.fromkeys(step[:n] for step in steps for n in range(1, len(step))))
    called = {part: "_".join(f"{move}{weight:g}" for move, weight in part) for part in parts} | {(): "match"}
    moves = {(): {step[0][0] for step in steps}} | {
        part: {step[len(part)][0] for step in steps if step[: len(part)] == part and len(step) > len(part)}
        for part in parts
    }

    def before(state: str, move: str) -> str:
        """The state and its copies from which a move may leave: an element that matches again is not dropped."""
        copies = [state] + [f"{state}_drop_x"] * (x and move != "top") + [f"{state}_drop_z"] * (z and move != "left")
        return " ".join(copies + [f"{state}_drop_both"] * (x and z and move == "diag"))

    found = edges(before("start", "diag"), to="match", moves="diag", cost="match")
    for part, to in [*((step, "match") for step in steps), *((part, called[part]) for part in parts)]:
        move, weight = part[-1]
        found += edges(before(called[part[:-1]], move), to=to, moves=move, cost="match", weight=weight)
    states = ["start", "match", *(called[part] for part in parts)]
    final = ["match"]
    for state, leave in (("start", {"diag"}), *((called[part], moves[part]) for part in ((), *parts))):
        kept = [copy for move in sorted(leave) for copy in before(state, move).split()]
        kept += before(state, "diag").split() if state == "match" else []
        for copy, first, more, side in (
            (f"{state}_drop_x", state, f"{state}_drop_x", "x"),
            (f"{state}_drop_z", state, f"{state}_drop_z", "z"),
            (f"{state}_drop_both", f"{state}_drop_x", f"{state}_drop_both", "z"),
        ):
            if copy in kept:
                found += _drops(first, more, to=copy, side=side, charged=charged)
                states.append(copy)
                final += [copy] if state == "match" else []
    return Recurrence(
        name=_named("_".join([name, *["drop_x"] * x, *["drop_z"] * z]), charged),
        states=tuple(states),
        edges=found,
        start="start",
        final=(*final, *["start_drop_both"] * (x and z)),
    )


_DIAG: Step = ("diag", 2.0)
_X: Step = ("left", 1.0)
_Z: Step = ("top", 1.0)


@cache
def symmetric2(*, x: bool = False, z: bool = False, charged: bool = False) -> Recurrence:
    """DTW in which a diagonal step counts twice: every path has total weight K + N − 1. Also called P0."""
    return _pattern("symmetric2", (_DIAG,), (_X,), (_Z,), x=x, z=z, charged=charged)


@cache
def symmetric_p05(*, x: bool = False, z: bool = False, charged: bool = False) -> Recurrence:
    """`symmetric2` with slopes limited to ⅓ … 3: after each diagonal move, up to two along X, or two along Z."""
    steps = (_DIAG, _X, _X), (_DIAG, _X), (_DIAG,), (_DIAG, _Z), (_DIAG, _Z, _Z)
    return _pattern("symmetricP05", *steps, x=x, z=z, charged=charged)


@cache
def symmetric_p1(*, x: bool = False, z: bool = False, charged: bool = False) -> Recurrence:
    """`symmetric2` with slopes limited to ½ … 2: after each diagonal move, at most one along X or Z."""
    return _pattern("symmetricP1", (_DIAG, _X), (_DIAG,), (_DIAG, _Z), x=x, z=z, charged=charged)


@cache
def symmetric_p2(*, x: bool = False, z: bool = False, charged: bool = False) -> Recurrence:
    """`symmetric2` with slopes limited to ⅔ … 3/2: after two diagonal moves, at most one along X or Z."""
    return _pattern("symmetricP2", (_DIAG, _DIAG, _X), (_DIAG,), (_DIAG, _DIAG, _Z), x=x, z=z, charged=charged)


@cache
def asymmetric_p1() -> Recurrence:
    """Each z counts once, with slopes limited to ½ … 2: two x that match one z count half each."""
    steps = (("diag", 0.5), ("left", 0.5)), (("diag", 1.0),), (("diag", 1.0), ("top", 1.0))
    return _pattern("asymmetricP1", *steps)


@cache
def asymmetric() -> Recurrence:
    """DTW in which each z counts once. An x may match several z, and single x may be skipped for free.

    A step advances by 0, 1 or 2 columns; `skip` stands for the skipped column.
    """
    return Recurrence(
        name="asymmetric",
        states=("start", "match", "skip"),
        edges=edges("start", to="match", moves="diag", cost="match")
        + edges("match", to="match", moves="top diag", cost="match")
        + edges("skip", to="match", moves="diag", cost="match")
        + edges("match", to="skip", moves="left", cost="free"),
        start="start",
        final=("match",),
    )
