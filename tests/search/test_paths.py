"""The alignments of all pairs: each is that of `align`, in any number of threads."""

import numpy as np
import pytest

import dropdtw
from dropdtw.search import pairwise


def series(n, least, seed=0, d=2):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(least + 3 * k, d)) for k in range(n)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", [{"drop_x": 0.5, "drop_z": "percentile:20"}, {"method": "steps", "drop_x": 1.0}])
def test_each_is_the_alignment_of_its_pair(how, n_jobs, monkeypatch):
    monkeypatch.setattr(pairwise, "ENOUGH", 1)  # use threads
    Zs, Xs = series(3, 4), series(2, 12, seed=1)
    found = dropdtw.alignments(Zs, Xs, n_jobs=n_jobs, **how)
    assert [len(row) for row in found] == [2, 2, 2]
    for Z, row in zip(Zs, found, strict=True):
        for X, a in zip(Xs, row, strict=True):
            expected = dropdtw.align(Z, X, **how)
            assert a.cost == expected.cost
            assert a.pairs.tolist() == expected.pairs.tolist()
    aligner = dropdtw.Aligner(**how)
    assert [[a.cost for a in row] for row in aligner.alignments(Zs, Xs)] == [[a.cost for a in row] for row in found]
    assert dropdtw.pairwise(Zs, Xs, **how) == pytest.approx(np.array([[a.cost for a in row] for row in found]))


def test_one_list_symbols_times_and_progress():
    seen = []
    found = dropdtw.alignments(["GATTACA", "GCA"], drop_x=0.4, drop_z=0.4, fps=2, progress=lambda *at: seen.append(at))
    assert seen[-1] == (4, 4)
    assert found[0][1].symbols == (tuple("GATTACA"), tuple("GCA"))
    assert found[1][0].segments()[-1].stop_time == 3.5
    assert found[1][1].cost == 0


def test_a_pair_that_fails_is_named():
    with pytest.raises(ValueError, match=r"Zs\[0\] with Xs\[1\]: Z has 2 elements and X has 1"):
        dropdtw.alignments([[1, 2]], [[1, 2], [1]], method="steps", drop_x=1)
    with pytest.raises(ValueError, match=r"Zs\[0\] with Zs\[1\]"):
        dropdtw.alignments([[1, 2], [[1, 2], [3, 4]]])


@pytest.mark.parametrize(("given", "says"), [(([],), "Zs is empty"), (("ab",), "a list"), (([[1]], 3), "Xs is 3")])
def test_refused(given, says):
    with pytest.raises(ValueError, match=says):
        dropdtw.alignments(*given)
    with pytest.raises(ValueError, match=r"mask.*alignments cannot use"):
        dropdtw.Aligner(mask=np.ones((1, 1), bool)).alignments([[1]])
