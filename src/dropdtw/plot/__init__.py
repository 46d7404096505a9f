"""Pictures of alignments and orders; needs matplotlib (`pip install dropdtw[plot]`). Each takes `ax=` or makes its own.

Colours mean the same in all of them, and colour-blind readers can tell them apart: blue is matched, orange dropped,
green the truth. Steps, methods and features take theirs from `SERIES`.
"""

from dropdtw.plot.common import DROPPED, MATCH, SERIES, TRUTH
from dropdtw.plot.orders import order
from dropdtw.plot.pairs import alignment, compare, linked, posterior, with_frames
from dropdtw.plot.series import curves, occurrences, step_bars, strip

__all__ = ["DROPPED", "MATCH", "SERIES", "TRUTH", "alignment", "compare", "curves", "linked", "occurrences"]
__all__ += ["order", "posterior", "step_bars", "strip", "with_frames"]
