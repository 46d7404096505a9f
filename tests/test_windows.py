"""Bands and parallelograms: what they share with each other; `tests/peers` compares them with their libraries."""

import itertools

import numpy as np
import pytest

import dropdtw
from dropdtw import windows

LENGTHS = [(1, 1), (1, 5), (5, 1), (4, 4), (5, 8), (8, 5), (13, 30), (21, 20)]
BANDS = {"dropdtw": 2, "tslearn": 2, "dtaidistance": 3, "librosa": 0.5, "aeon": 0.5}
every_band = pytest.mark.parametrize(("kind", "width"), BANDS.items())


@every_band
def test_bands_are_masks_that_hold_both_corners(kind, width):
    for K, N in LENGTHS:
        mask = windows.sakoe_chiba(K, N, width, kind=kind)
        assert (mask.shape, mask.dtype) == ((K, N), bool)
        if min(K, N) > 1:
            assert mask[0, 0]
            assert mask[-1, -1]
            assert dropdtw.cost(np.zeros((K, N)), method="dtw", mask=mask) == 0


@pytest.mark.parametrize("kind", ["tslearn", "dtaidistance", "librosa", "aeon"])
def test_bands_of_others_do_not_know_which_sequence_is_which(kind):
    for K, N in LENGTHS:
        there = windows.sakoe_chiba(K, N, BANDS[kind], kind=kind)
        np.testing.assert_array_equal(there, windows.sakoe_chiba(N, K, BANDS[kind], kind=kind).T)


def test_for_equal_lengths_all_bands_are_those_around_the_diagonal():
    n, r = 20, 4
    apart = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    widths = {"dropdtw": r, "tslearn": r, "dtaidistance": r + 1, "librosa": (r + 1) / n, "aeon": r / n}
    for kind, width in widths.items():
        np.testing.assert_array_equal(windows.sakoe_chiba(n, n, width, kind=kind), apart <= r, err_msg=kind)


PRINTED = {
    "librosa, half of a cell": (
        windows.sakoe_chiba, (6, 8, 0.25), "librosa", "####.... #####... .#####.. ..#####. ...##### ....####"),
    "librosa, odd": (
        windows.sakoe_chiba, (7, 7, 0.5), "librosa", "####... #####.. ######. ####### .###### ..##### ...####"),
    "aeon": (windows.sakoe_chiba, (4, 7, 0.3), "aeon", "###.... #####.. .###### ...####"),
    "dtaidistance": (windows.sakoe_chiba, (4, 7, 2), "dtaidistance", "#####.. ######. .###### ..#####"),
    "tslearn's slopes": (
        windows.itakura, (5, 8, 2.0), "tslearn", "#....... .###.... ..####.. ....###. .......#"),
    "aeon's slopes": (windows.itakura, (5, 8, 0.5), "aeon", "#....... .####... ..####.. ...####. .......#"),
    "aeon's slopes, tall": (
        windows.itakura, (8, 5, 0.5), "aeon", "#.... .#... .##.. .###. .###. ..##. ...#. ....#"),
    "aeon's slopes, a pair per row": (
        windows.itakura, (7, 4, 0.25), "aeon", "#... .#.. .#.. .#.. ..#. ..#. ...#"),
}  # fmt: skip
"""Bands as the libraries themselves draw them, row by row."""


@pytest.mark.parametrize(("function", "sizes", "kind", "rows"), PRINTED.values(), ids=PRINTED)
def test_bands_are_those_that_the_libraries_print(function, sizes, kind, rows):
    expected = np.array([[cell == "#" for cell in row] for row in rows.split()])
    np.testing.assert_array_equal(function(*sizes, kind=kind), expected)


def test_wider_bands_hold_narrower_ones():
    for K, N in LENGTHS:
        for kind, widths in {"dropdtw": (0, 1, 4), "tslearn": (0, 1, 4), "aeon": (0, 0.2, 1.0)}.items():
            masks = [windows.sakoe_chiba(K, N, width, kind=kind) for width in widths]
            assert all((narrow <= wide).all() for narrow, wide in itertools.pairwise(masks))
    for slope in (1.5, 2.0, 4.0):
        assert (windows.itakura(12, 12, slope) <= windows.itakura(12, 12, slope + 1)).all()


def test_the_parallelogram_is_narrow_at_the_corners_and_wide_between():
    for K, N in ((12, 12), (12, 20), (20, 12)):
        mask = windows.itakura(K, N)
        np.testing.assert_array_equal(mask, windows.itakura(K, N, 2.0))
        assert mask[0].sum() <= mask[K // 2].sum() >= mask[-1].sum()
        assert np.isfinite(dropdtw.cost(np.zeros((K, N)), method="dtw", mask=mask))


WRONG = {
    "kind": (lambda: windows.sakoe_chiba(4, 4, 1, kind="fastdtw"), "kind is 'fastdtw'; choose one of 'dropdtw', "),
    "kind of slopes": (lambda: windows.itakura(4, 4, kind="librosa"), "choose one of 'tslearn', 'aeon'"),
    "no length": (lambda: windows.sakoe_chiba(0, 4, 1), "K is 0; give the length of a sequence"),
    "a sequence": (lambda: windows.itakura(4, [1, 2]), "N is .1, 2.; give the length of a sequence"),
    "a fraction of tslearn": (lambda: windows.sakoe_chiba(4, 4, 0.5, kind="tslearn"), "the radius as an int ≥ 0"),
    "no window": (lambda: windows.sakoe_chiba(4, 4, 0, kind="dtaidistance"), "the window as an int ≥ 1"),
    "columns of aeon": (lambda: windows.sakoe_chiba(4, 4, 2, kind="aeon"), "width is 2; give a fraction"),
    "our own": (lambda: windows.sakoe_chiba(4, 4, -1), "window is -1; give an int ≥ 0"),
    "flat": (lambda: windows.itakura(4, 4, 0.5), "max_slope is 0.5; give a number ≥ 1"),
    "no fraction": (lambda: windows.itakura(4, 4, 2.0, kind="aeon"), "give a fraction in"),
    "no slope": (lambda: windows.itakura(4, 4, kind="aeon"), "max_slope is None, but kind='aeon' has no default"),
    "zero": (lambda: windows.itakura(4, 4, 0, kind="aeon"), "max_slope is 0 for 4 × 4; give a fraction in"),
    "short": (lambda: windows.itakura(2, 4, 0.5, kind="aeon"), "lengths of at least 3"),
    "narrow": (lambda: windows.itakura(4, 4, 0.1, kind="aeon"), "less than one element of 4; give at least 0.25"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_widths_are_refused_with_what_fits(name):
    call, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        call()
