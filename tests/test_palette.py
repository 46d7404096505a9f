"""The colors: told apart by readers with and without color-blindness, and readable as text."""

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import dropdtw
from dropdtw import palette

# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency", IEEE
# Transactions on Visualization and Computer Graphics 15 (2009): the authors' matrices for linear RGB at severity 1.0.
VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
every_vision = pytest.mark.parametrize("vision", VISION)

TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]]
)
WHITE = TO_XYZ.sum(axis=1)


def lab(color, vision):
    """CIE L*a*b* (D65) of a color as it is seen."""
    seen = np.clip(VISION[vision] @ palette.linear(color), 0, 1)
    t = TO_XYZ @ seen / WHITE
    x, y, z = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def apart(one, other, vision):
    """ΔE of CIE 1976: about 2 is just noticeable."""
    return float(np.linalg.norm(lab(one, vision) - lab(other, vision)))


def test_the_simulation_keeps_white_and_confuses_red_with_green():
    for vision in VISION:
        assert lab("#ffffff", vision) == pytest.approx([100, 0, 0], abs=0.5)
        assert lab("#777777", vision)[1:] == pytest.approx([0, 0], abs=0.5)
    # An olive and a brown of equal lightness: different to most readers, nearly the same to others.
    assert apart("#8a6d00", palette.DROPPED, "usual") > 40
    assert apart("#8a6d00", palette.DROPPED, "protanopia") < 5


@every_vision
def test_meanings_can_be_told_apart(vision):
    for one, other in itertools.combinations(palette.MEANINGS.values(), 2):
        assert apart(one, other, vision) > 35


@every_vision
@pytest.mark.parametrize("series", [palette.SERIES, palette.SERIES_DARK], ids=["light", "dark"])
def test_curves_and_steps_can_be_told_apart_and_are_no_meanings(vision, series):
    assert min(apart(*pair, vision) for pair in itertools.combinations(series, 2)) > 15
    usual = min(apart(color, meaning, "usual") for color in series for meaning in palette.MEANINGS.values())
    assert usual > 25


def test_marks_show_on_light_and_on_dark_paper():
    """WCAG 2 asks for 3 between a mark and its ground; notebooks do not say which scheme they are in."""
    for color in palette.MEANINGS.values():
        for scheme in (palette.LIGHT, palette.DARK):
            assert palette.contrast(color, scheme["ground"]) >= 3


@pytest.mark.parametrize("scheme", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
def test_text_can_be_read(scheme):
    for ink, ground in itertools.product(("text", "soft", "accent", "bad"), ("ground", "panel")):
        assert palette.contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)
    assert palette.contrast(scheme["bad"], scheme["bad-ground"]) >= 4.5
    for color in palette.MEANINGS.values():
        assert palette.contrast(palette.on(color), color) >= 4.5


def test_contrast_is_that_of_wcag():
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)
    assert palette.contrast("#ffffff", "#777777") == palette.contrast("#777777", "#ffffff")


def test_both_schemes_have_the_same_names():
    assert palette.LIGHT.keys() == palette.DARK.keys()
    made = palette.schemes()
    assert made["light"].keys() == made["dark"].keys()
    assert "--matched: #0072b2;" in palette.css()
    assert f"--text: light-dark({palette.LIGHT['text']}, {palette.DARK['text']});" in palette.css()


def test_no_other_file_states_a_color_that_has_a_meaning():
    package = Path(dropdtw.__file__).parent
    files = [p for kind in ("*.py", "*.js", "*.css", "*.html") for p in package.rglob(kind) if p.name != "palette.py"]
    assert len(files) > 100
    meant = re.compile("|".join(palette.MEANINGS.values()), re.IGNORECASE)
    assert [str(p.relative_to(package)) for p in files if meant.search(p.read_text(encoding="utf-8"))] == []
