"""`make fuzz`: seeded random problems, orders, inputs, files, kills and requests, until one fails or time is up.

    python fuzz                             # two minutes, from seed 0
    python fuzz --seconds 600 --seed 7      # longer, from another seed
    python fuzz --only problems --case 4711 # repeat one case, as printed by a failure

A case is a number, which seeds everything random in it. A failure prints the command that repeats it and ends the run
with exit status 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import commands
import dictionaries
import explorer
import inputs
import kills
import orders
import problems
import subtitles
import transforms

PARTS: dict[str, tuple[Callable[[np.random.Generator], str], float]] = {
    "problems": (problems.case, 0.3),
    "orders": (orders.case, 0.1),
    "transforms": (transforms.case, 0.05),
    "inputs": (inputs.case, 0.15),
    "commands": (commands.case, 0.15),
    "kills": (kills.case, 0.05),
    "subtitles": (subtitles.case, 0.05),
    "dictionaries": (dictionaries.case, 0.05),
    "explorer": (explorer.case, 0.1),
}
"""The parts, and their share of the time. A case returns a label for what it tried, which the summary counts."""


def main() -> None:
    """Run each part for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="how long to run (default 120)")
    parser.add_argument("--seed", type=int, default=0, help="where the case numbers start (default 0)")
    parser.add_argument("--only", choices=PARTS, help="run only this part")
    parser.add_argument("--case", type=int, help="run only this case of --only")
    given = parser.parse_args()
    if given.case is not None and given.only is None:
        parser.error("--case needs --only, the part that the case belongs to")
    warnings.simplefilter("ignore")
    for name, (case, share) in PARTS.items():
        if given.only in (None, name):
            seconds = given.seconds * (1.0 if given.only else share)
            run(name, case, seconds, given.seed, given.case)


def run(name: str, case: Callable[[np.random.Generator], str], seconds: float, seed: int, only: int | None) -> None:
    """Run the cases of one part, starting at `seed · 10⁶`."""
    tried: dict[str, int] = {}
    end = time.monotonic() + seconds
    number = seed * 1_000_000 if only is None else only
    while True:
        try:
            word = case(np.random.default_rng(number))
        except Exception:
            traceback.print_exc()
            print(
                f"\n{name}: case {number} failed; to repeat it: python fuzz --only {name} --case {number}",
                file=sys.stderr,
            )
            sys.exit(1)
        tried[word] = tried.get(word, 0) + 1
        number += 1
        if only is not None or time.monotonic() > end:
            break
    counts = ", ".join(f"{word} {count:,}" for word, count in sorted(tried.items()))
    print(f"{name}: {sum(tried.values()):,} cases, nothing wrong ({counts})", flush=True)


if __name__ == "__main__":
    main()
