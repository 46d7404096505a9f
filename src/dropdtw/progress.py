"""A progress line on the terminal for work that takes longer than two seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")
Progress = bool | None | Callable[[int, int], None]


def track(items: Iterable[T], total: int, label: str, progress: Progress = None) -> Iterator[T]:
    """Yield the items and report how many are done.

    progress : a function that is called with (done, total) after each item; True and False switch the line on
        standard error on and off; None shows it on a terminal only.
    """
    report = progress if callable(progress) else _line(label) if _wanted(progress) else None
    done = 0
    for done, item in enumerate(items, 1):
        yield item
        if report is not None:
            report(done, total)


def _wanted(progress: bool | None) -> bool:
    return sys.stderr.isatty() if progress is None else progress


def _line(label: str) -> Callable[[int, int], None]:
    start = last = time.monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        finished = done == total
        if now - start < 2 or (now - last < 0.2 and not finished):
            return
        last = now
        left = (now - start) * (total - done) / done
        tail = f"in {now - start:.0f} s\n" if finished else f"about {left:.0f} s left"
        print(
            f"\r{label}: {done} of {total} ({100 * done // total} %), {tail}   ",
            end="",
            file=sys.stderr,
            flush=True,
        )

    return report
