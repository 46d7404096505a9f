import os

import pytest

from dropdtw.executors import EXECUTORS

try:
    import torch
except ImportError:
    pass
else:
    if not torch.cuda.is_available():
        # Without a GPU the CUDA kernels run in Triton's interpreter; it has to be told before it is imported.
        os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(params=list(EXECUTORS))
def executor(request):
    """Every executor of this installation: what holds for one holds for all."""
    return request.param
