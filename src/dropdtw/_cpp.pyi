"""Types of the compiled module (src/dropdtw/executors/cpp)."""

from collections.abc import Callable
from typing import Any

from dropdtw.problem.inputs import Array

instruction_set: str
levels: str
tables: str
unrolled: bool

class Table:
    def __init__(
        self,
        family: int,
        mask: int,
        built_in: bool,
        edges: Array,
        weights: Array,
        border: Array | None,
        border_weights: Array | None,
        start: Array,
        final: Array,
    ) -> None: ...

def solve(
    table: Table,
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
    table_of_costs: Array | None,
    drop_x: Array,
    drop_z: Array,
    charges: tuple[float, float, float],
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
    path_weight: Array | None,
) -> tuple[float, int, float, tuple[float, float, float]]: ...

_Price = tuple[int, float, Array | None]

def pairwise(
    table: Table,
    transposed: bool,
    reducer: int,
    gamma: float,
    metric: int,
    zs: Array,
    z_ends: Array,
    z_scale: Array | None,
    xs: Array,
    x_ends: Array,
    x_scale: Array | None,
    drop_x: _Price,
    drop_z: _Price,
    binary: tuple[float, float, bool, _Price] | None,
    charges: tuple[float, float, float],
    suggests: tuple[bool, bool],
    greedy: bool,
    window: tuple[float, bool] | None,
    limit: float,
    once: bool,
    threads: int,
    progress: Callable[[int, int], Any] | None,
    out: Array,
) -> tuple[int, int]: ...
def batch(
    solver: Table | list[Plan],
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
    charges: Array | None,
    grad_charges: Array | None,
) -> None: ...

class Plan:
    def __init__(
        self,
        label: Array,
        level: Array,
        source: Array,
        target: Array,
        use: Array,
        cost: Array,
        hub: Array,
        again: Array,
        start: int,
        finals: Array,
        states: int,
        edges: Array,
        weights: Array,
        starts: Array,
        final_states: Array,
    ) -> None: ...

def graph(
    plan: Plan,
    reducer: int,
    gamma: float,
    budget: int,
    match: Array,
    drop_x: Array,
    drop_z: Array,
    charges: tuple[float, float, float],
    grad_match: Array | None,
    grad_x: Array | None,
    grad_z: Array | None,
    grad_arcs: Array | None,
) -> tuple[float, tuple[float, float, float]]: ...
def graph_trace(
    plan: Plan,
    budget: int,
    match: Array,
    drop_x: Array,
    drop_z: Array,
    charges: tuple[float, float, float],
    dropped_x: Array,
    dropped_z: Array,
) -> tuple[float, int, tuple[int, int, int], Array]: ...
def scan(
    table: Table,
    match: Array | None,
    z: Array | None,
    x: Array | None,
    metric: int,
    drop_x: Array,
    drop_z: Array,
    charges: tuple[float, float, float],
    offset: int,
    values: Array,
    begins: Array,
    cost: Array,
    begin: Array,
) -> None: ...
def match_costs(metric: int, z: Array, x: Array, scale: Array | None, threads: int, out: Array) -> None: ...
def row_lengths(rows: Array, out: Array) -> None: ...

class QuickRequest:
    def __init__(
        self,
        table: Table,
        transposed: bool,
        numbers: int,
        vectors: int,
        drop_x: float,
        drop_z: float,
        charges: tuple[float, ...],
    ) -> None: ...
    def value(self, Z: Array, X: Array, limit: float) -> float: ...
    def path(self, Z: Array, X: Array, out: Array) -> tuple[float, int, float, float, float]: ...
