"""Plots of texts that are aligned with the frames of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dropdtw.plot.common import DROPPED, MATCH, hatched, new_axes, patch, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dropdtw.speech import SpeechAlignment


def words(
    found: SpeechAlignment,
    log_probs: npt.ArrayLike,
    text: Sequence[int | Sequence[int]],
    names: Sequence[str] | None = None,
    *,
    fps: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw where each word of a text is spoken, on top of the probabilities of its tokens (gray).

    The tokens of the text run downward, the frames to the right. The frames of spoken tokens are framed in blue. Words
    that are not spoken, and speech that is not in the text, are hatched in orange.

    found : from `dropdtw.speech.align`.   log_probs, text : what it has aligned, the text as a list of words.
    names : a text for each word; None numbers them.
    fps : frames per second, for an axis in seconds; None counts frames.
    ax : axes to draw on; by default those of a new figure.

    Returns the axes. Raises ImportError without matplotlib.

    >>> import numpy as np
    >>> from dropdtw import plot, speech
    >>> log_probs = np.log(np.full((5, 3), 0.2) + 0.4 * np.eye(3)[[1, 0, 2, 2, 0]])
    >>> ax = plot.words(speech.align(log_probs, [[1], [2]]), log_probs, [[1], [2]], ["so", "what"])
    """
    ax = ax or new_axes((7, 3.2))
    from matplotlib.patches import Rectangle

    rows = [np.atleast_1d(np.asarray(word)) for word in text]
    ends = [0, *accumulate(map(len, rows))]
    scores = np.asarray(log_probs, np.float64)[:, np.concatenate(rows)].T
    step = 1 / (fps or 1)
    T = scores.shape[1]
    extent = (0, T * step, ends[-1], 0)
    ax.imshow(np.exp(scores), cmap="Greys", aspect="auto", interpolation="nearest", alpha=0.8, extent=extent, vmin=0)
    for start, stop in found.extra:
        ax.axvspan(start * step, stop * step, **hatched(DROPPED))
    for index in found.skipped:
        ax.axhspan(ends[index], ends[index + 1], **hatched(DROPPED))
    for word in found.words:
        for row, token in enumerate(word.tokens, ends[word.index]):
            corner, width = (token.start * step, row), (token.stop - token.start) * step
            ax.add_patch(Rectangle(corner, width, 1, fill=False, edgecolor=MATCH, linewidth=2))
    for limit in ends[1:-1]:
        ax.axhline(limit, color="0.8", linewidth=0.8, zorder=0.9)
    middle = [(a + b) / 2 for a, b in pairwise(ends)]
    ax.set_yticks(middle, list(map(str, range(len(rows)))) if names is None else list(names))
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, T * step), ylim=(ends[-1], 0), xlabel="frame" if fps is None else "seconds")
    shown: dict[str, Any] = {
        "probable token": patch(facecolor="0.3"),
        "spoken": patch(facecolor="none", edgecolor=MATCH, linewidth=2),
    }
    if found.skipped or found.extra:
        shown["not spoken, or not in the text"] = patch(**hatched(DROPPED))
    titled(ax, f"{len(found.words)} of {len(rows)} words spoken", shown)
    return ax
