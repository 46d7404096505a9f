"""A progress line on the terminal for work that takes longer than two seconds; in a command's log, a line a minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final

Report = Callable[[int, int], None]
Progress = bool | None | Report
"""What `progress=` takes.

- A function that is called with (done, total).
- True or False: show, or do not show, a line on standard error.
- None: show the line on a terminal if the work takes longer than two seconds.
"""

TICK: Final = 1.0
"""Seconds between two redraws of a line while nothing is reported."""


def reporter(label: str, progress: Progress = None) -> Report:
    """Return a function to call with (done, total) now and then.

    label : the beginning of the line.
    progress : that function itself; or True or False for a line on standard error; or None for a line on a terminal
        only.
    """
    if progress is not None and not isinstance(progress, bool):
        return progress
    if progress or (progress is None and sys.stderr.isatty()):
        return _Line(label)
    return _LogLine(label) if progress is None and _LogLine.wanted else lambda done, total: None


def log_progress() -> None:
    """From now on, write a line a minute where there is no terminal. For commands, whose output may go to a log."""
    _LogLine.wanted = True


@contextmanager
def ticking(report: Report) -> Iterator[None]:
    """Redraw the line of a reporter every second, for work that can take long between two reports."""
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
    """Show how long one piece of work takes. If `progress` is a function, it is not called."""
    report = reporter(label, False if callable(progress) else progress)
    with ticking(report):
        yield
    report(1, 1)


class _Line:
    """The line: what is done, the rate, and the remaining time."""

    lock = Lock()
    shown: _Line | None = None
    """The line that the terminal shows now. Parts of the work can have lines of their own."""
    width = 0
    """Width of the text on the terminal, which the next text must cover."""
    first, every, idle = 2.0, 0.2, 0.0
    """Minimum seconds until the line is shown, between two reports, and between two lines while nothing is reported."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.start = self.last = time.monotonic()
        self.done = self.total = 0

    def __call__(self, done: int, total: int) -> None:
        with _Line.lock:
            self.done, self.total = done, total
            now = time.monotonic()
            if now - self.start >= self.first and (now - self.last >= self.every or done >= total):
                self._show(now)

    def draw(self) -> None:
        """Draw the line again, with the elapsed time, unless a part of the work is shown."""
        with _Line.lock:
            now, other = time.monotonic(), _Line.shown
            busy = other is not None and other is not self and now - other.last < 2
            due = now - self.start >= self.first and now - self.last >= self.idle
            if due and not busy and not 0 < self.total <= self.done:
                self._show(now)

    def _show(self, now: float) -> None:
        _Line.shown = self
        self.last = now
        share = f" {self.done} of {self.total} ({100 * self.done // self.total} %)," if self.total > 1 else ""
        self._write(f"{self.label}:{share} {_tail(self.done, self.total, now - self.start)}")

    def _write(self, text: str) -> None:
        over = 0 < self.total <= self.done
        print(f"\r{text.ljust(_Line.width)}", end="\n" if over else "", file=sys.stderr, flush=True)
        _Line.width = 0 if over else len(text)


class _LogLine(_Line):
    """The same in a log: whole lines, once a minute."""

    wanted = False
    first = every = idle = 60.0

    def _write(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def _tail(done: int, total: int, seconds: float) -> str:
    """The rate and the remaining time; before the first item is done, the elapsed time; at the end, the total time.

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
