"""Measure `dropdtw.media.diff` on made recordings with known edits: what it finds, invents, and how exact borders are.

python benchmarks/diff.py [--only speech mixed music noise] [--pairs 60] [--seed 20000] [--cache DIR] [--jobs 2]
                          [--picture FILE]           draws how sure stretches are, beside how often they are right
python benchmarks/diff.py --short [--pairs 6]        the confidence alone, where shared passages last 1 s and more
python benchmarks/diff.py --hour                     one hour against one hour: seconds and memory

Seeds below 1000 are for tuning, 20000 and more for reporting: nothing is chosen on these. An edit is found where all
its times are right within half a second; a false one is an edit in the answer that is no true one. Border errors are
those of edits within 3 s. For every third seed, A is also compared with B of the neighboring seed, which has the same
voices but no passage in common, and the confidence is measured on stretches that an alignment with a low opening cost
proposes, in the pair and in the unrelated one. Needs espeak-ng, fluidsynth and PyAV; `diff_material` says what is made.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import diff_material as material
import diff_sounds as sounds
import numpy as np

from dropdtw import media
from dropdtw.files.progress import reporter
from dropdtw.media import compare, confidence, features, matching
from dropdtw.media.borders import fitted
from dropdtw.media.retime import retime
from dropdtw.media.sound import Sound
from dropdtw.text.cues import timestamp

Array = np.ndarray
LEAST = 1.0


class Scores(NamedTuple):
    """What was found in one pair.

    common : the share in common that an unrelated pair is said to have; None where there is none.
    stretches : what speaks for each proposed stretch, and whether it is right.
    cues, placed : subtitles of A, and how many `retime` places within 0.1 s of where the true edits would, or rightly
        leaves out.
    """

    kind: str
    seed: int
    how: str
    edits: int
    found: int
    false: int
    hours: float
    errors: list[float]
    seconds: float
    common: float | None
    stretches: list[tuple[list[float], bool]]
    cues: int
    placed: int


def edits_of(found: media.Edits) -> list[material.Edit]:
    """The gaps between shared passages: (start, stop) in A and in B."""
    ends = [((0.0, 0.0), (0.0, 0.0)), *((s.a, s.b) for s in found.same), *[tuple((d, d) for d in found.durations)]]
    gaps = [(p[0][1], q[0][0], p[1][1], q[1][0]) for p, q in pairwise(ends)]
    return [gap for gap in gaps if max(gap[1] - gap[0], gap[3] - gap[2]) >= LEAST]


def judge(truth: list[material.Edit], found: list[material.Edit]) -> tuple[int, int, list[float]]:
    """True edits that were found, false ones, and errors of borders."""
    left, hits, errors = list(found), 0, []
    for edit in truth:
        if not left:
            break
        best = min(left, key=lambda e, edit=edit: np.abs(np.subtract(e, edit)).max())
        off = np.abs(np.subtract(best, edit))
        if off.max() < 3:
            errors += [float(x) for k, x in enumerate(off) if edit[k // 2 * 2 + 1] > edit[k // 2 * 2]]
        if off.max() <= 0.5:
            hits += 1
            left.remove(best)
    return hits, len(left), errors


def true_place(edits: list[material.Edit], speed: float, t: float) -> float | None:
    """Where second `t` of A is in B."""
    a0 = b0 = 0.0
    for a, a_stop, _, b_stop in [*edits, (np.inf, np.inf, np.inf, np.inf)]:
        if t < a:
            return b0 + (t - a0) / speed
        if t < a_stop:
            return None
        a0, b0 = a_stop, b_stop
    return None


def is_right(edits: list[material.Edit], speed: float, a: tuple[float, float], b: tuple[float, float]) -> bool:
    """Whether a passage is where it should be, in its middle, within 0.1 s."""
    place = true_place(edits, speed, (a[0] + a[1]) / 2)
    return place is not None and abs(place - (b[0] + b[1]) / 2) <= 0.1


def measure(task: tuple[str, int, Path | None]) -> Scores:
    kind, seed, cache = task
    pair = material.made(kind, seed, cache)
    began = time.process_time()
    found = media.diff((pair.a, sounds.RATE), (pair.b, pair.rate_b), speed=pair.speed != 1)
    took = time.process_time() - began
    hits, false, errors = judge(pair.edits, edits_of(found))
    hours, common, stretches = found.durations[0] / 3600, None, []
    if seed % 3 == 0:
        other = material.made(kind, seed ^ 1, cache)
        common = media.diff((pair.a, sounds.RATE), (other.b, other.rate_b), speed=other.speed != 1).common
        stretches = candidates(pair, pair, pair.edits) + candidates(pair, other, None)
    cues, placed = retimed(pair, found)
    return Scores(
        kind, seed, pair.how, len(pair.edits), hits, false, hours, errors, took, common, stretches, cues, placed
    )


def retimed(pair: material.Made, found: media.Edits) -> tuple[int, int]:
    """Cues of 2.5 s, one every 4 s of A, and how many are moved as the true edits would move them."""
    durations = found.durations
    cuts = [(0.0, 0.0, 0.0, 0.0), *pair.edits, (durations[0], 0.0, durations[1], 0.0)]
    same = [((p[1], q[0]), (p[3], q[2]), 1.0) for p, q in pairwise(cuts) if q[0] > p[1]]
    starts = np.arange(0.0, durations[0] - 2.5, 4.0)
    text = "".join(f"{timestamp(t, ',')} --> {timestamp(t + 2.5, ',')}\nHello\n\n" for t in starts)
    wanted, got = (retime(text, edits).times for edits in (media.Edits.of_same(same, durations), found))
    placed = [
        (w is None) == (g is None) and (w is None or g is None or abs(w[0] - g[0]) <= 0.1)
        for w, g in zip(wanted, got, strict=True)
    ]
    return len(placed), sum(placed)


def line(name: str, these: list[Scores]) -> str:
    edits, found = sum(s.edits for s in these), sum(s.found for s in these)
    hours, errors = sum(s.hours for s in these), [e for s in these for e in s.errors]
    middle, most = np.quantile(errors, [0.5, 0.95]) if errors else (np.nan, np.nan)
    return (
        f"{name:14} {len(these):3} pairs  {found:3} of {edits:3} edits, {100 * found / max(edits, 1):5.1f} %   "
        f"false {sum(s.false for s in these):2}, {sum(s.false for s in these) / hours:4.2f} per hour   "
        f"border error {1000 * middle:4.0f} ms, 95 % {1000 * most:4.0f} ms   "
        f"cues {sum(s.placed for s in these)} of {sum(s.cues for s in these)}"
    )


def report(kinds: list[str], pairs: int, seed: int, cache: Path | None, jobs: int, picture: Path | None) -> None:
    tasks = [(kind, seed + k, cache) for k in range(pairs) for kind in kinds]
    tell = reporter("pairs")
    with get_context("spawn").Pool(jobs) as pool:
        scores = []
        for s in pool.imap(measure, tasks):
            scores.append(s)
            tell(len(scores), len(tasks))
            if s.found < s.edits or s.false or (s.common or 0) >= 0.05:
                print(f"  {s.kind} {s.seed} {s.how}: {s.found} of {s.edits}, {s.false} false, {s.common}", flush=True)
    summary(scores, kinds, seed < 1000, picture)


def summary(scores: list[Scores], kinds: list[str], tuning: bool, picture: Path | None) -> None:
    for kind in kinds:
        print(line(kind, [s for s in scores if s.kind == kind]))
    for how in material.CONDITIONS:
        print(line(how, [s for s in scores if s.how == how]))
    for kind in kinds:
        shares = [s.common for s in scores if s.kind == kind and s.common is not None]
        print(f"unrelated {kind}: {sum(c >= 0.05 for c in shares)} of {len(shares)} claim 5 % or more in common")
    cpu, hours = sum(s.seconds for s in scores), sum(s.hours for s in scores)
    print(f"CPU time: {cpu / len(scores):.2f} s for a pair of {60 * hours / len(scores):.1f} min each")
    calibration([row for s in scores for row in s.stretches], tuning, picture)


# --- Confidence ---------------------------------------------------------------------------------------------------


def candidates(
    pair: material.Made, other: material.Made, edits: list[material.Edit] | None
) -> list[tuple[list[float], bool]]:
    """Stretches that an alignment with a low opening cost proposes: what speaks for them, and whether they are right.

    edits : the true ones; None where the recordings are unrelated, and nothing is right.
    """
    A = features.frames_of_sound(Sound((pair.a, sounds.RATE), "A").blocks())
    B = features.frames_of_sound(Sound((other.b, other.rate_b), "B").blocks())
    assert A is not None
    assert B is not None
    price = 0.1 * compare.OPENING * compare.DROP * A.rate / A.per
    fast = other.speed != 1
    pairs = matching.match(A, B, drop=compare.DROP, opening=price, speed=fast, report=lambda done, total: None)
    runs = matching.stretches(pairs, A.per, fast)
    rows = []
    for run in matching.merged(runs, gap=LEAST * A.rate, shift=A.per):
        if run.length >= LEAST * A.rate:
            run = fitted(A, B, run)
            known = confidence.evidence(A, B, run)
            spans = (run.a / A.rate, run.a_stop / A.rate), (run.b / B.rate, run.b_stop / B.rate)
            right = edits is not None and is_right(edits, other.speed, *spans)
            rows.append((list(confidence.features(known)), right))
    return rows


def short(kinds: list[str], pairs: int, seed: int, picture: Path | None) -> None:
    """How sure short passages are: recordings of 90 s with four to ten edits, and as many unrelated pairs."""
    rows = []
    for k in range(seed, seed + pairs, 2):
        for kind in kinds:
            two = [material.spoilt(material.pair(kind, s, 90.0, 1.0, (4, 10)), s) for s in (k, k + 1)]
            rows += [row for one in two for row in candidates(one, one, one.edits)]
            rows += [row for one, other in (two, two[::-1]) for row in candidates(one, other, None)]
    calibration(rows, seed < 1000, picture)


def calibration(rows: list[tuple[list[float], bool]], tuning: bool, picture: Path | None) -> None:
    """Print how often stretches are right, by their confidence."""
    X, y = np.array([row[0] for row in rows]), np.array([row[1] for row in rows], float)
    print(f"{len(y)} stretches proposed, {int(y.sum())} right")
    if tuning:
        print("weights fitted to these:", logistic(X, y).round(3).tolist())
    p = 1 / (1 + np.exp(-X @ np.array(confidence.WEIGHTS)))
    table = []
    for low, high in pairwise([0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0001]):
        inside = (low <= p) & (p < high)
        if inside.any():
            said, right, count = p[inside].mean(), y[inside].mean(), int(inside.sum())
            table.append((said, right, count))
            print(
                f"confidence {low:4.2f}–{min(high, 1):4.2f}, mean {said:.3f}: {count:4} stretches, "
                f"{100 * right:5.1f} % right"
            )
    print(f"Brier score {np.mean((p - y) ** 2):.4f}; of a constant {y.mean() * (1 - y.mean()):.4f}")
    if picture is not None:
        draw(table, p, y, picture)


def logistic(X: Array, y: Array, ridge: float = 1e-3) -> Array:
    """Weights of a logistic regression, by Newton's method."""
    w = np.zeros(X.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-X @ w))
        curve = X.T @ (X * (p * (1 - p))[:, None]) + ridge * np.eye(len(w))
        step = np.linalg.solve(curve, X.T @ (y - p) - ridge * w)
        w += np.clip(step, -2, 2)
    return w


def draw(table: list[tuple[float, float, int]], p: Array, y: Array, picture: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.plot([0, 1], [0, 1], color="0.7", linestyle="--", label="perfect")
    said, true, count = (np.array(column) for column in zip(*table, strict=True))
    z = 1.96  # Wilson's interval
    center = (true + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z * np.sqrt(true * (1 - true) / count + z**2 / (4 * count**2)) / (1 + z**2 / count)
    left.vlines(said, center - half, center + half, color="#1f6fb4")
    left.scatter(said, true, color="#1f6fb4", label="measured, with its 95 % interval")
    left.set(xlabel="confidence", ylabel="share that is right", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    left.legend(frameon=False)
    bins = np.linspace(0, 1, 21)
    right.hist([p[y == 1], p[y == 0]], bins=bins, color=["#1f6fb4", "#e07b00"], label=["right", "wrong"])
    right.set(xlabel="confidence", ylabel="stretches", yscale="log")
    right.legend(frameon=False)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(picture, dpi=120)


# --- Scale ----------------------------------------------------------------------------------------


def hour(seed: int, speed: bool) -> None:
    """One hour of speech against another cut of it, both as files, in a process of its own."""
    rng = np.random.default_rng(seed)
    base = sounds.speech(rng, 3600)
    cut, extra = 1200 * sounds.RATE, sounds.speech(rng, 30)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "a.mp3"), Path(folder, "b.mp3")
        files[0].write_bytes(material.encoded(base, sounds.RATE, "mp3"))
        files[1].write_bytes(material.encoded(np.concatenate([base[:cut], extra, base[cut:]]), sounds.RATE, "mp3"))
        given = json.dumps([*map(str, files), speed])
        done = subprocess.run([sys.executable, __file__, "--one", given], capture_output=True, text=True, check=True)
    print(done.stdout)


def one(a: str, b: str, speed: bool) -> None:
    clocks = (time.perf_counter, time.process_time, time.thread_time)
    began = [clock() for clock in clocks]
    found = media.diff(a, b, speed=speed)
    took, cpu, main = (clock() - start for clock, start in zip(clocks, began, strict=True))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{found}\n{took:.1f} s ({cpu:.1f} s CPU, of which {main:.1f} s in the main thread), peak {peak:.2f} GiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = list(sounds.MATERIAL)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds[:3])
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=20_000)
    parser.add_argument("--cache", type=Path, help="where made recordings are kept (default: nowhere)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--picture", type=Path, help="where the calibration is drawn")
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--hour", action="store_true")
    parser.add_argument("--speed", action="store_true", help="--hour with speed=True")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.one:
        one(*json.loads(given.one))
    elif given.hour:
        hour(given.seed, given.speed)
    elif given.short:
        short(given.only, given.pairs, given.seed, given.picture)
    else:
        report(given.only, given.pairs, given.seed, given.cache, given.jobs, given.picture)


if __name__ == "__main__":
    main()
