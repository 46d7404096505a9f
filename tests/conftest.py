import pytest

from dropdtw.executors import EXECUTORS


@pytest.fixture(params=list(EXECUTORS))
def executor(request):
    """Every executor of this installation: what holds for one holds for all."""
    return request.param
