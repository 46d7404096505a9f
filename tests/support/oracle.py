"""Brute-force oracle: enumerates every alignment, without dynamic programming or library code."""

import functools
import itertools
import math

import numpy as np

Drop = np.ndarray | float | None
Alignment = tuple[np.ndarray, float]
METHODS = ["drop_dtw", "steps", "ctc", "dtw", "subsequence", "otam", "free_begin", "free_end", "free_ends"]
METHODS += ["needleman_wunsch", "lcss", "smith_waterman", "greedy", "edr", "wdtw"]
PATTERNS = {
    # Sequences of steps (rows, columns, weight of the cell that is reached), as in dtw-python.
    "symmetric1": [[(1, 1, 1)], [(0, 1, 1)], [(1, 0, 1)]],
    "symmetric2": [[(1, 1, 2)], [(0, 1, 1)], [(1, 0, 1)]],
    "asymmetric": [[(1, 0, 1)], [(1, 1, 1)], [(1, 2, 1)]],
    "symmetricP05": [[(1, 1, 2), *[(0, 1, 1)] * n] for n in (2, 1, 0)]
    + [[(1, 1, 2), *[(1, 0, 1)] * n] for n in (1, 2)],
    "symmetricP1": [[(1, 1, 2), (0, 1, 1)], [(1, 1, 2)], [(1, 1, 2), (1, 0, 1)]],
    "symmetricP2": [[(1, 1, 2), (1, 1, 2), (0, 1, 1)], [(1, 1, 2)], [(1, 1, 2), (1, 1, 2), (1, 0, 1)]],
    "asymmetricP1": [[(1, 1, 0.5), (0, 1, 0.5)], [(1, 1, 1)], [(1, 1, 1), (1, 0, 1)]],
}


@functools.cache
def chains(K: int, N: int) -> tuple[np.ndarray, ...]:
    """All monotone boolean (K, N) matrices; the empty one comes first."""
    found = []

    def extend(chain: list[tuple[int, int]]) -> None:
        M = np.zeros((K, N), bool)
        for pair in chain:
            M[pair] = True
        M.flags.writeable = False
        found.append(M)
        i0, j0 = chain[-1] if chain else (0, 0)
        for i in range(i0, K):
            for j in range(j0, N):
                if not chain or (i, j) != (i0, j0):
                    extend([*chain, (i, j)])

    extend([])
    return tuple(found)


@functools.cache
def _stack(K: int, N: int) -> np.ndarray:
    """The chains as one (n, K, N) array."""
    return np.stack(chains(K, N))


def band(K: int, N: int, width: float) -> np.ndarray:
    """Sakoe-Chiba band of the given half-width (in columns) around the line between the corners."""
    if K == 1:
        return np.ones((K, N), bool)
    line = np.arange(K) * (N - 1) / (K - 1)
    return np.abs(np.arange(N)[None, :] - line[:, None]) <= width + 1e-9


def _inside(used: np.ndarray) -> np.ndarray:
    """Unused positions strictly between used ones, along the last axis."""
    before = np.logical_or.accumulate(used, axis=-1)
    after = np.logical_or.accumulate(used[..., ::-1], axis=-1)[..., ::-1]
    return before & after & ~used


def _runs(unused: np.ndarray) -> np.ndarray:
    """The number of runs of unused positions in each row of (n, length)."""
    before = np.pad(unused, ((0, 0), (1, 0)))[:, :-1]
    return (unused & ~before).sum(axis=1)


@functools.cache
def _repeats(K: int, N: int) -> np.ndarray:
    """The number of pairs of each chain that share their row or column with the previous pair."""
    found = []
    for M in chains(K, N):
        pairs = np.argwhere(M)
        found.append(int((np.diff(pairs, axis=0) == 0).any(axis=1).sum()))
    return np.array(found)


@functools.cache
def _walks(pattern: str, K: int, N: int) -> tuple[tuple[tuple[int, int, float], ...], ...]:
    """All paths of a step pattern from (0, 0) to (K − 1, N − 1), as cells with their weights."""
    found = []

    def extend(walk: tuple[tuple[int, int, float], ...]) -> None:
        i, j, _ = walk[-1]
        if (i, j) == (K - 1, N - 1):
            found.append(walk)
        for step in PATTERNS[pattern]:
            a, b, more = i, j, []
            for di, dj, weight in step:
                a, b = a + di, b + dj
                more.append((a, b, weight))
            if a < K and b < N:
                extend(walk + tuple(more))

    extend(((0, 0, 1.0),))
    return tuple(found)


def _pattern_alignments(pattern: str, C: np.ndarray, dx: np.ndarray, dz: np.ndarray, open_x: float, open_z: float):
    """Every choice of elements to drop, and every path of the pattern through what is left."""
    found = []
    K, N = C.shape
    for z, x in itertools.product(*(itertools.product((True, False), repeat=n) for n in (K, N))):
        left = np.flatnonzero(z), np.flatnonzero(x)
        dropped = ~np.array(x), ~np.array(z)
        paid = dx[dropped[0]].sum() + dz[dropped[1]].sum()
        paid += sum(
            price * len(list(filter(lambda run: run[0], itertools.groupby(lost))))
            for price, lost in zip((open_x, open_z), dropped, strict=True)
        )
        if any(z) != any(x) or not paid < np.inf:
            continue
        for walk in _walks(pattern, len(left[0]), len(left[1])) if any(x) else [()]:
            M = np.zeros(C.shape, bool)
            cells = [(left[0][i], left[1][j], weight) for i, j, weight in walk]
            for i, j, _ in cells:
                M[i, j] = True
            cost = paid + sum(weight * C[i, j] for i, j, weight in cells)
            if cost < np.inf:
                found.append((M, float(cost)))
    return found


def _total(mask: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Sum of cost where mask is true, over all axes but the first (avoids inf * 0)."""
    return np.where(mask, cost, 0.0).reshape(len(mask), -1).sum(axis=1)


def alignments(
    C: np.ndarray,
    d_x: Drop = None,
    d_z: Drop = None,
    *,
    method: str = "drop_dtw",
    one_to_many: bool = True,
    many_to_one: bool = True,
    contiguous: bool = False,
    band: np.ndarray | None = None,
    threshold: float | None = None,
    open_x: float = 0.0,
    open_z: float = 0.0,
    warp: float = 0.0,
    ends: tuple[tuple[float, float], tuple[float, float]] = ((0, 0), (0, 0)),
    ids: list | None = None,
) -> list[Alignment]:
    """Every feasible alignment of the method, with its cost.

    ends : for "free_ends", how many x and how many z may be skipped, each at the beginning and at the end.
    """
    if method not in [*METHODS, *PATTERNS]:
        raise ValueError(f"unknown method {method!r}")
    ctc = method == "ctc"
    if method in ("steps", "ctc"):
        method, many_to_one, contiguous = "drop_dtw", False, True
    C = np.asarray(C, float)
    K, N = C.shape
    names = [tuple(row) for row in C] if ids is None else ids
    if band is not None:
        C = np.where(band, C, np.inf)
    dx = np.broadcast_to(np.asarray(np.inf if d_x is None else d_x, float), (N,))
    dz = np.broadcast_to(np.asarray(np.inf if d_z is None else d_z, float), (K,))
    if not all((a > -np.inf).all() for a in (C, dx, dz)):
        raise ValueError("costs must be finite or +inf")
    if method in PATTERNS:
        return _pattern_alignments(method, C, dx, dz, open_x, open_z)

    A = _stack(K, N)
    rows, cols = A.any(axis=2), A.any(axis=1)  # which z (n, K) and which x (n, N) are matched
    keep = np.ones(len(A), bool)
    one_to_one = method in ("needleman_wunsch", "lcss", "smith_waterman", "edr")
    if one_to_one or not one_to_many:
        keep &= (A.sum(axis=2) <= 1).all(axis=1)
    if one_to_one or not many_to_one:
        keep &= (A.sum(axis=1) <= 1).all(axis=1)
    if contiguous:
        keep &= ~_inside(A).any(axis=(1, 2))

    if method == "lcss":
        C = np.where((threshold >= C) & np.isfinite(C), -1.0, np.inf)
    if method == "edr":  # Chen, Özsu and Oria: insertions, deletions and replacements cost 1
        C = np.where(np.isinf(C), np.inf, np.where(threshold >= C, 0.0, 1.0))
        dx, dz = np.ones(N), np.ones(K)
    if method == "wdtw":  # Jeong et al., with w_max = 1 and g = 0.05
        weights = [[1 / (1 + math.exp(-0.05 * (abs(i - j) - max(K, N) / 2))) for j in range(N)] for i in range(K)]
        C = C * np.array(weights)
    cost = _total(A, C)
    if method in ("drop_dtw", "needleman_wunsch", "edr"):
        cost = cost + _total(~cols, dx) + _total(~rows, dz)
    elif method in ("dtw", "wdtw"):
        keep &= rows.all(axis=1) & cols.all(axis=1)
    elif method in ("subsequence", "otam", "free_begin", "free_end"):
        keep &= rows.all(axis=1) & ~_inside(cols).any(axis=1)
        keep &= {"free_begin": cols[:, -1], "free_end": cols[:, 0]}.get(method, True)
    elif method == "free_ends":
        keep &= cols.any(axis=1) & ~_inside(rows).any(axis=1) & ~_inside(cols).any(axis=1)
        for side in (0, 1):  # the beginning, the end
            x, z = ((used[:, ::-1] if side else used).argmax(axis=1) for used in (cols, rows))
            keep &= (x <= ends[0][side]) & (z <= ends[1][side]) & ((x == 0) | (z == 0))
    elif method == "smith_waterman":
        cost = cost + _total(_inside(cols), dx) + _total(_inside(rows), dz)
    elif method == "greedy":
        keep &= (cols == (C.min(axis=0) <= dx)).all(axis=1) & (rows == (C.min(axis=1) <= dz)).all(axis=1)
        cost = cost + _total(~cols, dx) + _total(~rows, dz)
    if open_x or open_z:
        inside = method == "smith_waterman"
        cost = cost + open_x * _runs(_inside(cols) if inside else ~cols)
        cost = cost + open_z * _runs(_inside(rows) if inside else ~rows)
    if warp:
        cost = cost + warp * _repeats(K, N)
    keep &= cost < np.inf
    if ctc:
        keep &= np.array([_has_gaps(M, names) for M in A])
    return [(M, float(c)) for M, c in zip(A[keep], cost[keep], strict=True)]


def _has_gaps(M: np.ndarray, names: list) -> bool:
    """Whether each matched z leaves an x out after the matched z before it, if both have the same name."""
    runs = [(names[i], np.flatnonzero(row)) for i, row in enumerate(M) if row.any()]
    return all(a != b or then[0] > first[-1] + 1 for (a, first), (b, then) in itertools.pairwise(runs))


def hard(C: np.ndarray, d_x: Drop = None, d_z: Drop = None, **options) -> float:
    """The lowest cost; inf if nothing is feasible."""
    return min((cost for _, cost in alignments(C, d_x, d_z, **options)), default=math.inf)


def soft(C: np.ndarray, d_x: Drop = None, d_z: Drop = None, *, gamma: float = 1.0, **options) -> float:
    """The soft minimum -gamma * log(sum exp(-cost / gamma)), inf if nothing is feasible."""
    costs = [cost for _, cost in alignments(C, d_x, d_z, **options)]
    if not costs:
        return math.inf
    low = min(costs)
    return low - gamma * math.log(math.fsum(math.exp((low - cost) / gamma) for cost in costs))


def marginals(C: np.ndarray, d_x: Drop = None, d_z: Drop = None, *, gamma: float = 1.0, **options) -> dict:
    """Gibbs probabilities of each pair and drop, log-partition and entropy (NaN, -inf if none feasible)."""
    K, N = np.shape(C)
    found = alignments(C, d_x, d_z, **options)
    if not found:
        nan = {"match": np.full((K, N), np.nan), "drop_x": np.full(N, np.nan), "drop_z": np.full(K, np.nan)}
        return {**nan, "log_partition": -math.inf, "entropy": math.nan}
    A = np.stack([M for M, _ in found])
    energy = np.array([cost for _, cost in found]) / gamma
    excess = energy - energy.min()
    log_sum = math.log(math.fsum(np.exp(-excess)))
    p = np.exp(-excess - log_sum)
    return {
        "match": np.einsum("n,nij->ij", p, A),
        "drop_x": p @ ~A.any(axis=1),
        "drop_z": p @ ~A.any(axis=2),
        "log_partition": float(log_sum - energy.min()),
        "entropy": float(log_sum + p @ excess),
    }
