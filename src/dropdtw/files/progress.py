"""A progress line on the terminal for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

Report = Callable[[int, int], None]
Progress = bool | None | Report
"""What `progress=` takes: a function of (done, total); True or False for a line on standard error; None shows it on a
terminal when the work takes longer than two seconds."""


def reporter(label: str, progress: Progress = None) -> Report:
    """A function to call with (done, total) now and then.

    progress : the function itself; True and False switch a line on standard error on and off; None shows it on a
        terminal only.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    wanted = sys.stderr.isatty() if progress is None else progress
    return _line(label) if wanted else lambda done, total: None


def _line(label: str) -> Report:
    start = last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - start < 2 or (now - last < 0.2 and done < total):
            return
        last = now
        if done < total:
            tail = f", about {(now - start) * (total - done) / done:.0f} s left   " if done else "   "
        else:
            tail = f", in {now - start:.0f} s           \n"
        print(f"\r{label}: {done} of {total} ({100 * done // total} %){tail}", end="", file=sys.stderr, flush=True)

    return report
