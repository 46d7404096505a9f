"""docs/migrating.md, row by row: what stands left and right in its tables gives the same, and the numbers are right.

The series come from the example under "The calls", the names of a section from the imports above its table.
"""

import doctest
import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from aeon.distances import edr_distance, erp_distance
from pytest import approx

import dropdtw

PAGE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.filterwarnings("ignore")  # theirs


def sections():
    """The parts of the page by their headings."""
    parts = re.split(r"^## (.+)$", PAGE, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text):
    """The first code of the left and of the right cell of each row, and the number beside the left one, if any."""
    for left, right in re.findall(r"^\| (.+?) \| (.+?) \|$", text, flags=re.M)[1:]:
        codes = [re.search(r"`([^`]+)`", cell) for cell in (left, right)]
        assert all(codes), (left, right)
        said = re.search(r"→ (-?[\d.]+\d)", left)
        yield codes[0][1], codes[1][1], None if said is None else said[1]


RUN = {title: list(rows(text)) for title, text in sections().items() if "```python3" in text}
ROWS = [pytest.param(title, *row, id=f"{title}: {row[0]}") for title, found in RUN.items() for row in found]


@pytest.fixture(scope="module")
def names():
    """What each section may use."""
    from scipy.spatial.distance import cdist

    import_module("dropdtw.sklearn")
    shared = {"cdist": cdist}
    first = doctest.DocTestParser().get_examples(sections()["The calls"])
    exec("".join(example.source for example in first), shared)
    made = {}
    for title, text in sections().items():
        made[title] = dict(shared)
        for block in re.findall(r"```python3\n(.+?)```", text, flags=re.S):
            exec(block, made[title])
    return made


def as_numbers(value):
    value = value.detach().numpy() if hasattr(value, "detach") else value
    return np.asarray(value, float)


@pytest.mark.parametrize(("title", "theirs", "ours", "said"), ROWS)
def test_both_sides_of_a_row_give_the_same(title, theirs, ours, said, names):
    left, right = (as_numbers(eval(code, dict(names[title]))) for code in (theirs, ours))
    digits = 1e-7 if title == "soft-DTW in PyTorch" else 1e-9  # there, theirs pass through single precision
    np.testing.assert_allclose(right, left, rtol=digits, atol=digits)
    assert np.isfinite(left).all()
    if said is not None:
        digits = len(said.partition(".")[2])
        assert f"{float(left):.{digits}f}" == said


def test_every_section_of_a_library_has_rows():
    assert {title: len(found) > 3 for title, found in RUN.items()} == dict.fromkeys(RUN, True)
    assert len(RUN) == 7


# --- Where aeon's borders are not those of the papers -----------------------------------------------------------


def series(seed):
    rng = np.random.default_rng(seed)
    for K, N in [(3, 3), (5, 9), (12, 12), (21, 16)]:
        for _ in range(5):
            yield rng.normal(size=K), rng.normal(size=N)


def test_aeon_charges_a_gap_at_the_beginning_of_erp_for_all_of_the_series():
    begins = {True: 0, False: 0}
    for z, x in series(0):
        a = dropdtw.align(z, x, method="erp")
        theirs = erp_distance(z, x)
        matched = len(a.pairs) > 0 and a.pairs[0].tolist() == [0, 0]
        begins[matched] += 1
        if matched:
            assert a.cost == approx(theirs, rel=1e-12)
        else:
            assert a.cost <= theirs + 1e-12
        z, x = np.r_[99.0, z], np.r_[99.0, x]  # both begin with a match that nobody would give up
        assert dropdtw.distance(z, x, method="erp") == approx(erp_distance(z, x), rel=1e-12)
    assert min(begins.values()) > 0


def test_aeon_lets_the_beginning_of_a_series_go_in_edr():
    def ours(z, x):
        return dropdtw.distance(z, x, method="edr", threshold=0.5)

    differ = 0
    for z, x in series(1):
        theirs = edr_distance(z, x, epsilon=0.5) * max(len(z), len(x))
        free = min(*(ours(z[k:], x) for k in range(len(z))), *(ours(z, x[k:]) for k in range(len(x))))
        assert free == approx(theirs)
        differ += free < ours(z, x)
    assert differ
    assert edr_distance(np.zeros(2), np.full(2, 0.5), epsilon=0.5) > 0  # < ε
    assert ours(np.zeros(2), np.full(2, 0.5)) == 0  # ≤ ε
