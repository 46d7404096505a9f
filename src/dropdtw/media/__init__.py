"""What two recordings have in common, and what only one of them has (`pip install 'dropdtw[media]'`).

- `diff` compares two sound or video files, `diff_features` two sequences of feature vectors.
- Both return `Edits`, a list of `Segment`s.
- `pauses` finds where a recording is silent.
"""

from dropdtw.media.compare import diff, diff_features
from dropdtw.media.edits import Edits, Segment
from dropdtw.media.pauses import pauses

__all__ = ["Edits", "Segment", "diff", "diff_features", "pauses"]
