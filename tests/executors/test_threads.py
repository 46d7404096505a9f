"""Threads of the compiled executor: as many as there is work for, and fewer or none if the system refuses them."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("dropdtw.executors.cpu", reason="the compiled executor is not installed")
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits and /proc are those of Linux")

SCARCE = """
import resource, signal, sys, time
import numpy as np, dropdtw

rng = np.random.default_rng(0)
few, many = ([rng.normal(size=(3, 2)) for _ in range(n)] for n in (64, 1024))  # 64 tasks or more

def leave(mebibytes):
    # Address space: the stack of a thread takes as much of it as it may grow to.
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (mebibytes << 20), -1))

def leave_all():
    resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
"""


def in_a_process_of_its_own(program, **more):
    """Run a program whose threads may be refused; a crash fails the test and shows the program's output."""
    found = subprocess.run(
        [sys.executable, "-c", SCARCE + program], capture_output=True, text=True, timeout=120, check=False, **more
    )
    assert found.returncode == 0, f"exit status {found.returncode}: {found.stderr}"
    return found.stdout


def stacks_of(mebibytes):
    """Set the address space that the stack of each thread takes in a process that has not started."""
    import resource

    size = mebibytes << 20
    return lambda: resource.setrlimit(resource.RLIMIT_STACK, (size, resource.getrlimit(resource.RLIMIT_STACK)[1]))


def test_there_are_no_more_threads_than_tasks():
    program = """
assert (dropdtw.pairwise([np.zeros((3, 2))] * 4, match="euclidean", n_jobs=40000) == 0).all()
"""
    in_a_process_of_its_own(program)


@linux
@pytest.mark.parametrize("room", [32, 200])
def test_where_threads_are_refused_those_there_are_do_the_work(room):
    """32 MiB cannot hold the stack of a single thread; 200 MiB can hold a few."""
    program = f"""
leave({room})
found = dropdtw.pairwise(many, few, match="euclidean", n_jobs=64)
leave_all()
assert (found == dropdtw.pairwise(many, few, match="euclidean")).all()
"""
    in_a_process_of_its_own(program, preexec_fn=stacks_of(64))


@linux
def test_a_limit_on_processes_is_a_limit_on_threads():
    """The limit counts a user's threads and does not apply to root, so run as a user that has only this process."""
    if os.getuid() != 0:
        pytest.skip("only root can become a user without other processes")
    program = """
import os
expected = dropdtw.pairwise(many, few, match="euclidean")  # imports what it needs while this user may read it
resource.setrlimit(resource.RLIMIT_NPROC, (10, 10))
os.setgroups([])
os.setgid(54321)
os.setuid(54321)
assert (dropdtw.pairwise(many, few, match="euclidean", n_jobs=16) == expected).all()
"""
    in_a_process_of_its_own(program, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})


@linux
def test_a_batch_in_torch_with_more_threads_than_the_system_gives():
    pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")
    program = """
import os, torch
from dropdtw.torch import drop_dtw

def everything(threads):
    torch.set_num_threads(threads)
    found = []
    for reducer in ("hard", "soft"):
        C = torch.from_numpy(np.random.default_rng(0).random((64, 5, 7), np.float32)).requires_grad_()
        value = drop_dtw(C, 0.3, reducer=reducer)
        value.sum().backward()
        found += [value.detach(), C.grad]
    return found

everything(1)
leave(200)
found = everything(64 + os.cpu_count())  # up to the number of cores, PyTorch's own threads are used
leave_all()
assert all(torch.equal(a, b) for a, b in zip(everything(1), found, strict=True))
"""
    in_a_process_of_its_own(program, preexec_fn=stacks_of(64))


@linux
def test_a_batch_in_torch_after_a_fork():
    """The threads of PyTorch do not survive it."""
    pytest.importorskip("torch", reason="the losses need PyTorch: pip install dropdtw[torch]")
    program = """
import os, torch
from dropdtw.torch import drop_dtw
torch.set_num_threads(2)
C = torch.rand(64, 5, 7)
wanted = drop_dtw(C, 0.3)
torch.rand(1 << 20).exp()
child = os.fork()
if child == 0:
    signal.alarm(60)
    os._exit(not torch.equal(drop_dtw(C, 0.3), wanted))
assert os.waitpid(child, 0)[1] == 0
"""
    in_a_process_of_its_own(program)


# One long sequence against 256 short ones: four tasks with 51 MB of columns each.
LONG = """
short = [rng.normal(size=(1, 1)).astype(np.float32)] * 256
long = rng.normal(size=(400_000, 1)).astype(np.float32)
how = dict(match="sqeuclidean", method="dtw")
"""


@linux
def test_a_task_that_finds_no_memory_beside_others_is_done_alone():
    program = """
leave(120)
found = dropdtw.pairwise(short, [long], n_jobs=4, **how)
leave_all()
assert (found == dropdtw.pairwise(short[:1], [long], **how)).all()
"""
    in_a_process_of_its_own(LONG + program, preexec_fn=stacks_of(1))


@linux
def test_what_does_not_fit_into_memory_at_all_is_an_error():
    program = """
leave(40)
try:
    dropdtw.pairwise(short, [long], n_jobs=4, **how)
except MemoryError:
    print("MemoryError")
"""
    assert in_a_process_of_its_own(LONG + program, preexec_fn=stacks_of(1)).strip() == "MemoryError"


@linux
def test_without_a_thread_signals_are_answered_and_errors_pass():
    program = """
def alarm(*_):
    raise TimeoutError("enough")
def refuse(done, total):
    raise RuntimeError("no more")
signal.signal(signal.SIGALRM, alarm)
long = [rng.normal(size=(12_000, 1)).astype(np.float32) for _ in range(32)]
leave(32)
signal.setitimer(signal.ITIMER_REAL, 0.3)
for progress in (False, refuse):
    start = time.monotonic()
    try:
        dropdtw.pairwise(long, match="sqeuclidean", n_jobs=2, progress=progress)
    except Exception as error:
        print(error, time.monotonic() - start < 5)   # the work itself takes much longer
"""
    answers = in_a_process_of_its_own(program, preexec_fn=stacks_of(64)).splitlines()
    assert answers == ["enough True", "no more True"]
