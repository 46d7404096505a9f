"""AVE's protocol, splices, the alignments and linear CCA."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the experiments need PyTorch: make setup")

from reproduction.ave import model as models  # noqa: E402
from reproduction.ave.model import Objective, chance, evaluate, locate, splice  # noqa: E402


def test_the_protocol_on_an_example_by_hand():
    audio = np.array([[0, 1, 5, 6, 0], [7, 7, 7, 7, 7]], float)[..., None]
    visual = np.array([[5, 6, 0, 5, 7], [7, 7, 7, 7, 7]], float)[..., None]
    # The audio query 5, 6 has distance 0 at the start and 1 at position 3: found at 0 instead of 2.
    assert locate(audio[0, 2:4], visual[0]) == 0
    # The visual query 0, 5 differs from 0, 1 in the audio by 4 and from 1, 5 by 1: found at 1 instead of 2.
    assert locate(visual[0, 2:4], audio[0]) == 1
    events = [(0, 2, 4), (1, 0, 5)]  # the second fills its stream
    assert evaluate(audio, visual, events, (0, 1, 2)) == {"A2V": [0, 0, 1], "V2A": [0, 1, 1]}
    # Of the four possible starts, the tolerances accept one, three and all four.
    assert chance(events, 5, (0, 1, 2)) == [0.25, 0.75, 1.0]
    with pytest.raises(ValueError, match="all 1 events fill their stream"):
        evaluate(audio, visual, events[1:])
    with pytest.raises(ValueError, match="the query has 6 elements and the stream 5"):
        locate(np.zeros((6, 1)), audio[0])


def test_the_sum_of_distances_decides_not_of_squares():
    stream = np.array([0.0, 3.0, 9.0, 1.6, 1.6])[:, None]
    assert locate(np.zeros((2, 1)), stream) == 0  # 0 + 3 < 1.6 + 1.6, though 9 > 5.12


def test_splices_keep_the_order_and_are_whole_passages():
    rng = np.random.default_rng(0)
    own, strange = np.arange(20)[:, None], np.arange(100, 130)[:, None]
    starts = set()
    for _ in range(50):
        mixed, marked = splice(own, strange, 2, 6, rng)
        assert len(mixed) == 32
        assert marked.sum() == 12
        assert mixed[~marked, 0].tolist() == list(range(20))
        passages = mixed[marked, 0].reshape(2, 6)
        assert (np.diff(passages, axis=1) == 1).all()
        assert passages.min() >= 100
        starts.add(int(np.flatnonzero(marked)[0]))
    assert len(starts) > 10
    with pytest.raises(ValueError, match="a passage has length 31; give 1 to 30"):
        splice(own, strange, 1, 31, rng)


def test_drop_dtw_is_the_papers_two_sided_one():
    loss = Objective("drop").alignment()
    assert loss.method == "drop_dtw_paper"
    assert (loss.drop_x, loss.drop_z, loss.match) == ("percentile:70", "percentile:70", "cosine")
    with pytest.raises(ValueError, match="loss is 'mean'; choose one of otam"):
        Objective("mean").alignment()


def test_linear_cca_finds_what_two_streams_share():
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2000, 2))
    a = np.concatenate([hidden, 5 * rng.normal(size=(2000, 3))], axis=1)
    b = np.concatenate([9 * rng.normal(size=(2000, 2)), -hidden], axis=1)
    to_a, to_b = models.cca(a, b, components=2)
    both = np.corrcoef((a @ to_a).T, (b @ to_b).T)
    assert both[0, 2] > 0.99
    assert both[1, 3] > 0.99
