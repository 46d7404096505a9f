"""One offset between two recordings: `dropdtw.media.diff` beside the offset finders syncstart and audio-offset-finder.

python benchmarks/diff_offsets.py [--files 100] [--seed 30000] [--seconds 60]

A pair is one recording of a minute; one copy lacks its first 2 to 20 s. Copies go through the conditions of
`diff_material`. The error is that of the place in B of the middle of the shared part. With different speeds there is no
single offset, and the finders return the closest one. They get the samples of both whole recordings at one rate, as
FFmpeg would decode them for their command lines. An answer of `diff` is split if it has more than one shared passage.
Needs espeak-ng, fluidsynth and PyAV. Finders that are not installed are left out (audio-offset-finder 0.5.5 needs
NumPy 1).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import NamedTuple

import diff_material as material
import diff_sounds as sounds
import numpy as np

from dropdtw import media

Array = np.ndarray
KINDS = ("speech", "mixed", "music")
Finder = Callable[[Array, Array], float]


def finders() -> dict[str, Finder]:
    """Offset finders that are installed: the second of A at which B begins, from samples of rate RATE."""
    found: dict[str, Finder] = {}
    try:
        import matplotlib

        matplotlib.use = lambda *_, **__: None  # syncstart wants Tk as it is imported, and draws nothing here
        from syncstart import corrabs
    except ImportError:
        print("syncstart is not installed")
    else:

        def syncstart(a: Array, b: Array) -> float:
            *_, size, best, _ = corrabs(a, b)
            return (best - size if best > size // 2 else best) / sounds.RATE

        found["syncstart"] = syncstart
    try:
        from audio_offset_finder.audio_offset_finder import find_offset_between_buffers
    except ImportError:
        print("audio-offset-finder is not installed")
    else:
        found["audio-offset-finder"] = lambda a, b: find_offset_between_buffers(a, b, sounds.RATE)["time_offset"]
    return found


class Case(NamedTuple):
    """A pair with one offset.

    late : the second of A at which B begins; negative if A lacks the start.
    middle : the middle of the shared part, in seconds of A.
    """

    kind: str
    how: str
    a: Array
    b: material.Copy
    late: float
    middle: float

    def place(self, t: float) -> float:
        """Where second `t` of A is in B."""
        return (t - self.late) / self.b.speed


def case(seed: int, seconds: float) -> Case:
    """The pair of a seed: the kinds of material in turn, and the conditions in turn."""
    rng = np.random.default_rng([seed, 4])
    kind, how = KINDS[seed % len(KINDS)], material.CONDITIONS[seed // len(KINDS) % len(material.CONDITIONS)]
    base = sounds.MATERIAL[kind](rng, seconds)
    late = float(rng.uniform(2, 20))
    rest = base[int(late * sounds.RATE) :]
    late = (len(base) - len(rest)) / sounds.RATE
    a, b, late = (base, rest, late) if rng.random() < 0.5 else (rest, base, -late)
    middle = max(late, 0.0) + len(rest) / sounds.RATE / 2
    return Case(kind, how, a, material.spoil(b, how, rng), late, middle)


def measure(one: Case, others: dict[str, Finder]) -> tuple[dict[str, float], int]:
    """Errors in seconds by name, and the number of passages that `diff` finds (1 is right)."""
    fast = one.b.speed != 1
    edits = media.diff((one.a, sounds.RATE), (one.b.samples, one.b.rate), speed=fast)
    true, said = one.place(one.middle), edits.to_b(one.middle)
    errors = {"dropdtw": np.inf if said is None else abs(said - true)}
    b = material.resampled(one.b.samples, one.b.rate, sounds.RATE)
    for name, find in others.items():
        errors[name] = abs(one.middle - find(one.a, b) - true)
    return errors, len(edits.same)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--seed", type=int, default=30_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    others = finders()
    rows: list[tuple[bool, dict[str, float]]] = []
    split = 0
    for seed in range(given.seed, given.seed + given.files):
        one = case(seed, given.seconds)
        errors, passages = measure(one, others)
        rows.append((one.b.speed != 1, errors))
        split += passages != 1
        if passages != 1 or errors["dropdtw"] > 0.1:
            print(f"  {one.kind} {seed} {one.how}: {passages} passages, {errors}", flush=True)
    print(f"split by diff: {split} of {given.files}")
    for fast, title in ((False, "one speed"), (True, "speed ± 1 %")):
        chosen = [errors for other, errors in rows if other == fast]
        for name in ["dropdtw", *others]:
            off = np.array([errors[name] for errors in chosen])
            print(
                f"{title:12} {name:20} {int((off <= 0.1).sum()):3} of {len(off):3} within 0.1 s, "
                f"median {1000 * np.median(off):6.1f} ms, 95 % {1000 * np.quantile(off, 0.95):8.1f} ms"
            )


if __name__ == "__main__":
    main()
