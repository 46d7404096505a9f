"""Plots of alignments and orders. Needs matplotlib (`pip install 'dropdtw[plot]'`).

Colors mean the same everywhere and are safe for color-blind readers: blue (`MATCH`) is matched, orange (`DROPPED`) is
dropped, green (`TRUTH`) is the truth. Steps and curves take their colors from the tuple `SERIES`. Colors are hex
codes such as "#rrggbb".

Functions draw on `ax=` if you pass it, otherwise on a new figure.
"""

from dropdtw.plot.common import DROPPED, MATCH, SERIES, TRUTH
from dropdtw.plot.orders import order
from dropdtw.plot.pairs import alignment, compare, linked, posterior, with_frames
from dropdtw.plot.series import curves, occurrences, step_bars, strip
from dropdtw.plot.speech import words

__all__ = ["DROPPED", "MATCH", "SERIES", "TRUTH", "alignment", "compare", "curves", "linked", "occurrences"]
__all__ += ["order", "posterior", "step_bars", "strip", "with_frames", "words"]
