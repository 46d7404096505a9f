from collections.abc import Callable
from typing import Any

from dropdtw.problem.inputs import Array

instruction_set: str

def solve(
    family: int,
    mask: int,
    reducer: int,
    gamma: float,
    want: int,
    budget: int,
    K: int,
    N: int,
    match: Array | None,
    strips: Callable[[int, int], Array] | None,
    strip_width: int,
    z: Array | None,
    x: Array | None,
    metric: int,
    drop_x: Array,
    drop_z: Array,
    limit: float,
    least: float,
    band_start: Array | None,
    band_stop: Array | None,
    grad_match: Array | None,
    grad_x: Array | None,
    grad_z: Array | None,
    path_i: Array | None,
    path_j: Array | None,
    path_cost: Array | None,
) -> tuple[float, int, float]: ...
def pairwise(
    family: int,
    mask: int,
    metric: int,
    zs: Array,
    z_ends: Array,
    xs: Array,
    x_ends: Array,
    drop_x: float,
    drop_z: float,
    limit: float,
    once: bool,
    threads: int,
    progress: Callable[[int, int], Any] | None,
    out: Array,
) -> tuple[int, int]: ...
def batch(
    family: int,
    mask: int,
    reducer: int,
    gamma: float,
    budget: int,
    match: Array,
    drop_x: Array,
    drop_z: Array,
    z_lengths: Array,
    x_lengths: Array,
    threads: int,
    value: Array,
    grad_match: Array | None,
    grad_x: Array | None,
    grad_z: Array | None,
) -> None: ...
