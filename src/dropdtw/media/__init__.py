"""What two recordings have in common, and what only one of them has (`pip install dropdtw[media]`)."""

from dropdtw.media.compare import diff, diff_features
from dropdtw.media.edits import Edits, Segment

__all__ = ["Edits", "Segment", "diff", "diff_features"]
