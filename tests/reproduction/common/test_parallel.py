"""Sequential and parallel trainings: all of them run, results are shared, errors propagate."""

import os
import pickle
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from reproduction.common import parallel


@dataclass(frozen=True)
class Slow(parallel.Work):
    scale: int = 2

    @cached_property
    def videos(self):
        return np.arange(10**6)

    def __call__(self, item):
        return self.cache.arrays("done", str(item), lambda: {"value": np.array([self.scale * item, os.getpid()])})


def test_every_item_is_done_and_found_again(tmp_path):
    work, told = Slow(None, tmp_path), []
    parallel.each(work, [1, 2, 3], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    here = os.getpid()
    assert [work(item)["value"].tolist() for item in (1, 2, 3)] == [[2, here], [4, here], [6, here]]


def test_what_is_sent_to_a_process_has_no_videos_in_it(tmp_path):
    work = Slow(None, tmp_path)
    assert work.videos[3] == 3
    sent = pickle.dumps(work)
    assert len(sent) < 1000
    again = pickle.loads(sent)
    assert again == work
    assert again.videos[3] == 3


def test_processes_share_the_work(tmp_path, monkeypatch):
    # Other processes cannot import this test module, so write one that they can.
    (tmp_path / "shared_work.py").write_text(
        "import os\nfrom pathlib import Path\n"
        "def work(item):\n"
        "    if item < 0:\n        raise ValueError(f'no item {item}')\n"
        "    (Path(__file__).parent / f'{item}.txt').write_text(str(os.getpid()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import shared_work

    told = []
    parallel.each(shared_work.work, range(5), 2, progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 5) for k in range(1, 6)]
    by = {int((tmp_path / f"{k}.txt").read_text()) for k in range(5)}
    assert os.getpid() not in by
    assert 1 <= len(by) <= 2
    with pytest.raises(ValueError, match="no item -1"):
        parallel.each(shared_work.work, [-1, 7], 2, progress=False)
    with pytest.raises(ValueError, match="processes is 0; give 1 or more"):
        parallel.each(shared_work.work, [1], 0)


def test_a_process_takes_no_more_than_its_share_of_the_cores(monkeypatch):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install dropdtw[torch]")
    done, before = [], torch.get_num_threads()
    monkeypatch.setattr(parallel, "_work", None)
    try:
        for now, share, wanted in ((2, 1, 1), (1, 4, 1)):
            torch.set_num_threads(now)
            parallel._start(done.append, share)
            assert torch.get_num_threads() == wanted
    finally:
        torch.set_num_threads(before)
    parallel._do("this")
    assert done == ["this"]
