"""The test of the kernels in C++, kernels.cpp, linked with the kernels that `make setup` compiled."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BUILD = Path(__file__).parents[2] / "build" / "kernels"
CMAKE = shutil.which("cmake", path=os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent))))


@pytest.mark.skipif(CMAKE is None or not (BUILD / "build.ninja").exists(), reason="`make setup` compiled nothing here")
def test_kernels_without_python():
    built = subprocess.run([CMAKE, "--build", BUILD, "--target", "kernels_test"], capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    done = subprocess.run([BUILD / "kernels_test"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.search(r"(\d+) checks, 0 failures", done.stdout)[1]) > 10_000
