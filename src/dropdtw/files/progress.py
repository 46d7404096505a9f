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
    width = 0

    def report(done: int, total: int) -> None:
        nonlocal last, width
        now = time.monotonic()
        if now - start < 2 or (now - last < 0.2 and done < total):
            return
        last = now
        text = f"{label}: {done} of {total} ({100 * done // total} %){_tail(done, total, now - start)}"
        end = "\n" if done >= total else ""
        print(f"\r{text.ljust(width)}", end=end, file=sys.stderr, flush=True)
        width = len(text)

    return report


def _tail(done: int, total: int, seconds: float) -> str:
    """The rate and the time that is left; at the end the time it took.

    >>> _tail(30, 90, 10.0), _tail(1, 5, 30.0), _tail(5, 5, 150.0)
    (', 3.0/s, about 20 s left', ', 30 s each, about 120 s left', ', in 150 s')
    """
    if done >= total:
        return f", in {seconds:.0f} s"
    if not done:
        return f", {seconds:.0f} s so far"
    rate = done / seconds
    pace = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.0f} s each"
    return f", {pace}, about {(total - done) / rate:.0f} s left"
