"""Check and write the picture of `--plot`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dropdtw.cli import screen

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def check(path: Path) -> None:
    """Raise if the picture cannot be written. Call it before computing anything."""
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"--plot is {path}; pictures are written as .png, .svg or .pdf")
    try:
        import matplotlib
    except ImportError:
        raise ImportError("--plot needs matplotlib: pip install 'dropdtw[plot]'") from None
    matplotlib.use("agg")


def save(ax: Axes, path: Path) -> None:
    """Write the figure of `ax` atomically."""
    import io as memory

    figure: Any = ax.figure
    content = memory.BytesIO()
    figure.savefig(content, format=path.suffix.lower().lstrip("."), dpi=150)
    screen.write(str(path), content.getvalue())
