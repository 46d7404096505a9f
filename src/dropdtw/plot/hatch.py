"""A hatched patch in two strokes: its face, then its hatch lines.

In SVG files, matplotlib applies the transparency of the face to the hatch lines, too, which makes them invisible.
"""

from __future__ import annotations

from typing import Any

from matplotlib.patheffects import AbstractPathEffect


class FaceThenHatch(AbstractPathEffect):
    """Draws the face of a patch without its hatch, and then the hatch without the face."""

    def draw_path(self, renderer: Any, gc: Any, tpath: Any, affine: Any, rgbFace: Any = None) -> None:
        """Draw a path; matplotlib calls this."""
        plain = renderer.new_gc()
        plain.copy_properties(gc)
        plain.set_hatch(None)
        renderer.draw_path(plain, tpath, affine, rgbFace)
        plain.restore()
        renderer.draw_path(gc, tpath, affine, None)
