"""The colors of every plot and page, defined once.

Three colors have a fixed meaning everywhere: blue is matched, orange is dropped, green is the truth. Steps, methods
and features have no fixed color; they take theirs from `SERIES`, which avoids those three. Tests check that readers
with deuteranopia or protanopia can tell the colors apart, and that text has enough contrast with its background.
"""

from __future__ import annotations

from typing import Final

MATCHED: Final = "#0072b2"
DROPPED: Final = "#d55e00"
TRUTH: Final = "#009e73"

SERIES: Final = ("#5b1f8f", "#c2478f", "#24272d", "#a98bd9", "#6f4a60", "#d493bd", "#39306b")
"""Colors without a fixed meaning, for a white background. Neighbors in this list differ most."""

SERIES_DARK: Final = ("#c29df0", "#ff8fc4", "#e8eaee")
"""The same for a dark background, where at most three are drawn."""

WRONG: Final = "#b00020"
"""Marks a mistake, always next to a sign such as ✗."""

UNREACHED: Final = "#8b919b"
"""Elements that an alignment does not visit: other branches, and missing elements."""

LIGHT: Final = {
    "ground": "#ffffff",
    "panel": "#f5f6f8",
    "line": "#c9ced6",
    "text": "#1b1e23",
    "soft": "#525a66",
    "accent": "#5b1f8f",
    "bad": "#9c1c1c",
    "bad-ground": "#fdeceb",
    "forbidden": "#784678",
    "rest": "#b4bac4",
}
"""Page colors in the light scheme. `accent` marks controls; `rest` marks elements neither matched nor dropped."""

DARK: Final = {
    "ground": "#16181c",
    "panel": "#1f2228",
    "line": "#3d434d",
    "text": "#e8eaee",
    "soft": "#aab2bf",
    "accent": "#c29df0",
    "bad": "#ff9d92",
    "bad-ground": "#3a1d1b",
    "forbidden": "#8d568d",
    "rest": "#5b626e",
}
"""Page colors in the dark scheme."""

MEANINGS: Final = {"matched": MATCHED, "dropped": DROPPED, "truth": TRUTH}


def on(color: str) -> str:
    """The color of text on a background: white or black, whichever has more contrast.

    >>> on(MATCHED), on(TRUTH)
    ('#ffffff', '#000000')
    """
    return max(("#ffffff", "#000000"), key=lambda ink: contrast(ink, color))


def contrast(one: str, other: str) -> float:
    """The contrast of two colors, from 1 to 21, as WCAG 2 defines it; text needs 4.5.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def linear(color: str) -> tuple[float, float, float]:
    """Convert a color #rrggbb to linear RGB, each from 0 to 1."""
    red, green, blue = (int(color[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return _light(red), _light(green), _light(blue)


def css() -> str:
    """The colors as CSS variables (--matched, --text, …) that follow the reader's light or dark scheme."""
    fixed = {**MEANINGS, **{f"on-{name}": on(color) for name, color in MEANINGS.items()}}
    lines = [f"--{name}: {color};" for name, color in fixed.items()]
    lines += [f"--{name}: light-dark({LIGHT[name]}, {DARK[name]});" for name in LIGHT]
    return ":root { color-scheme: light dark; " + " ".join(lines) + " }"


def schemes() -> dict[str, dict[str, object]]:
    """All colors by scheme and name, for pages that draw with a script."""
    inks = {f"on-{name}": on(color) for name, color in MEANINGS.items()}
    return {
        "light": {**MEANINGS, **inks, **LIGHT, "series": SERIES},
        "dark": {**MEANINGS, **inks, **DARK, "series": SERIES_DARK},
    }


def _light(v: float) -> float:
    return v / 12.92 if v <= 0.04045 else float(((v + 0.055) / 1.055) ** 2.4)


def _luminance(color: str) -> float:
    red, green, blue = linear(color)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
