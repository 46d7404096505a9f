"""A progress line on the terminal for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

Report = Callable[[int, int], None]
Progress = bool | None | Report
"""What `progress=` takes: a function of (done, total); True or False for a line on standard error; None shows it on a
terminal when the work takes longer than two seconds."""

TICK: Final = 1.0
"""Seconds between two drawings of a line while nothing is reported."""


def reporter(label: str, progress: Progress = None) -> Report:
    """A function to call with (done, total) now and then.

    progress : the function itself; True and False switch a line on standard error on and off; None shows it on a
        terminal only.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    wanted = sys.stderr.isatty() if progress is None else progress
    return _Line(label) if wanted else lambda done, total: None


@contextmanager
def ticking(report: Report) -> Iterator[None]:
    """Redraw the line of a reporter every second, for work that takes long between two reports."""
    if not isinstance(report, _Line):
        yield
        return
    over = Event()

    def tick() -> None:
        while not over.wait(TICK):
            report.draw()

    thread = Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def working(label: str, progress: Progress = None) -> Iterator[None]:
    """Show how long one piece of work takes; a function as `progress` is not told."""
    report = reporter(label, False if callable(progress) else progress)
    with ticking(report):
        yield
    report(1, 1)


class _Line:
    """The line: what is done, the rate, and the time that is left."""

    lock = Lock()
    shown: _Line | None = None
    """The line that the terminal shows: work may have parts with lines of their own."""
    width = 0
    """Of the text on the terminal, to be written over."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = self.last = time.monotonic()
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        with _Line.lock:
            self.done, self.total = done, total
            now = time.monotonic()
            if now - self.start >= 2 and (now - self.last >= 0.2 or done >= total):
                self._show(now)

    def draw(self) -> None:
        """Draw it anew, with the time that has passed, unless a part of the work is shown."""
        with _Line.lock:
            now, other = time.monotonic(), _Line.shown
            busy = other is not None and other is not self and now - other.last < 2
            if now - self.start >= 2 and not busy and not 0 < self.total <= self.done:
                self._show(now)

    def _show(self, now: float) -> None:
        _Line.shown = self
        self.last = now
        share = f" {self.done} of {self.total} ({100 * self.done // self.total} %)," if self.total > 1 else ""
        text = f"{self.label}:{share} {_tail(self.done, self.total, now - self.start)}"
        over = 0 < self.total <= self.done
        print(f"\r{text.ljust(_Line.width)}", end="\n" if over else "", file=sys.stderr, flush=True)
        _Line.width = 0 if over else len(text)


def _tail(done: int, total: int, seconds: float) -> str:
    """The rate and the time that is left; before the first is done the time that has passed, at the end all of it.

    >>> _tail(30, 90, 10.0), _tail(1, 5, 30.0), _tail(0, 5, 7.0), _tail(5, 5, 150.0)
    ('3.0/s, about 20 s left', '30 s each, about 120 s left', '7 s so far', 'in 150 s')
    """
    if 0 < total <= done:
        return f"in {seconds:.0f} s"
    if not done:
        return f"{seconds:.0f} s so far"
    rate = done / seconds
    pace = f"{rate:.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 1 else f"{1 / rate:.0f} s each"
    return f"{pace}, about {(total - done) / rate:.0f} s left"
