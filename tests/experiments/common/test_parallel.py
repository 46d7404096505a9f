"""Trainings one after the other or in several processes: all are done, results are shared, errors come through."""

import os
import pickle
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from dropdtw.experiments.common import parallel as jobs


@dataclass(frozen=True)
class Slow(jobs.Work):
    scale: int = 2

    @cached_property
    def videos(self):
        return np.arange(10**6)

    def __call__(self, job):
        return self.cache.arrays("done", str(job), lambda: {"value": np.array([self.scale * job, os.getpid()])})


def test_every_job_is_done_and_found_again(tmp_path):
    work, told = Slow(None, tmp_path), []
    jobs.each(work, [1, 2, 3], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert [work(job)["value"].tolist() for job in (1, 2, 3)] == [[2, os.getpid()], [4, os.getpid()], [6, os.getpid()]]


def test_what_is_sent_to_a_process_has_no_videos_in_it(tmp_path):
    work = Slow(None, tmp_path)
    assert work.videos[3] == 3
    sent = pickle.dumps(work)
    assert len(sent) < 1000
    again = pickle.loads(sent)
    assert again == work
    assert again.videos[3] == 3


def test_processes_share_the_work(tmp_path, monkeypatch):
    # A module that other processes can import, as this one they cannot.
    (tmp_path / "shared_work.py").write_text(
        "import os\nfrom pathlib import Path\n"
        "def work(job):\n"
        "    if job < 0:\n        raise ValueError(f'no job {job}')\n"
        "    (Path(__file__).parent / f'{job}.txt').write_text(str(os.getpid()))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import shared_work

    told = []
    jobs.each(shared_work.work, range(5), 2, progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 5) for k in range(1, 6)]
    by = {int((tmp_path / f"{k}.txt").read_text()) for k in range(5)}
    assert os.getpid() not in by
    assert 1 <= len(by) <= 2
    with pytest.raises(ValueError, match="no job -1"):
        jobs.each(shared_work.work, [-1, 7], 2, progress=False)
    with pytest.raises(ValueError, match="0 processes; give 1 or more"):
        jobs.each(shared_work.work, [1], 0)


def test_a_process_takes_no_more_than_its_share_of_the_cores(monkeypatch):
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install dropdtw[torch]")
    done, before = [], torch.get_num_threads()
    monkeypatch.setattr(jobs, "_work", None)
    try:
        for now, share, wanted in ((2, 1, 1), (1, 4, 1)):
            torch.set_num_threads(now)
            jobs._start(done.append, share)
            assert torch.get_num_threads() == wanted
    finally:
        torch.set_num_threads(before)
    jobs._do("this")
    assert done == ["this"]
