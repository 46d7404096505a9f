"""Free ends in losses: padded batches equal single problems, on every executor."""

import numpy as np
import pytest
import torch
from pytest import approx

import dropdtw
from dropdtw.torch import drop_dtw

METHODS = ["free_begin", "free_end", dropdtw.free_ends(x=(2, 1)), dropdtw.free_ends(x=(1, True), z=(1, 0))]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("reducer", ["hard", "soft"])
def test_padding_changes_neither_limits_nor_values(method, reducer):
    rng = np.random.default_rng(0)
    C = [torch.tensor(rng.random(shape)) for shape in ((3, 7), (4, 9), (5, 5))]
    alone = [dropdtw.cost(c.numpy(), method=method, reducer=reducer, gamma=0.3) for c in C]
    for executor in ("cpp", "reference", "wavefront"):
        values = drop_dtw(C, method=method, reducer=reducer, gamma=0.3, executor=executor)
        assert values.tolist() == approx(alone, abs=1e-10)


def test_gradients_are_the_alignment():
    C = torch.tensor(np.random.default_rng(1).random((1, 4, 9)), requires_grad=True)
    method = dropdtw.free_ends(x=(3, 3))
    drop_dtw(C, method=method, reducer="hard").sum().backward()
    a = dropdtw.solve(C[0].detach().numpy(), method=method)
    assert np.array_equal(C.grad[0].numpy() > 0, a.M)
