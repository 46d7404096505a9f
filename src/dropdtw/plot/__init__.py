"""Plots of alignments and orders. Needs matplotlib (`pip install dropdtw[plot]`).

Each function draws on `ax=` if you pass it, otherwise on a new figure. Colors mean the same everywhere and are safe for
color-blind readers: blue is matched, orange is dropped, green is the truth. Steps, methods and features take their
colors from `SERIES`.
"""

from dropdtw.plot.common import DROPPED, MATCH, SERIES, TRUTH
from dropdtw.plot.orders import order
from dropdtw.plot.pairs import alignment, compare, linked, posterior, with_frames
from dropdtw.plot.series import curves, occurrences, step_bars, strip

__all__ = ["DROPPED", "MATCH", "SERIES", "TRUTH", "alignment", "compare", "curves", "linked", "occurrences"]
__all__ += ["order", "posterior", "step_bars", "strip", "with_frames"]
