# ruff: noqa: E402
"""Measure the speed of alignments whose steps form a graph.

    python benchmarks/orders.py                                    # synthetic orders
    python benchmarks/orders.py --data CAPTAINCOOK4D/task_graphs   # and recipes of CaptainCook4D

Prints millions of node-columns per second (nodes without hubs, times frames) on one core, for the hard value, the path,
and the soft value with its derivatives; and the time of a call of `dropdtw.solve`. Orders are compiled beforehand; that
time is shown too. Times are CPU times of this process, not wall-clock times, since the machine may be shared.

One-sided, `method="steps"`, float32.
"""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ[f"{library}_NUM_THREADS"] = "1"

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dropdtw
from dropdtw import _cpp, orders
from dropdtw.executors import cpu
from dropdtw.orders import Order
from dropdtw.problem.problem import Problem
from dropdtw.problem.spec import Spec
from dropdtw.tables.reducers import hard_min, soft_min

RECIPES = ("cheesepimiento", "coffee", "scrambledeggs", "broccolistirfry")
DROP = 0.3


class Work(NamedTuple):
    """An order, and the number of frames to align it with."""

    name: str
    order: Order
    frames: int


def synthetic() -> Iterator[Work]:
    """Orders of different sizes and kinds."""
    yield Work("two strands of 6", orders.any_order(list(range(6)), list(range(6, 12))), 2000)
    yield Work("7 steps in any order", orders.any_order(*range(7)), 2000)
    yield Work("3 strands of 8", orders.any_order(*(list(range(k, k + 8)) for k in (0, 8, 16))), 1000)
    yield Work("12 steps in any order", orders.any_order(*range(12)), 500)
    yield Work("a song of 30 parts with jumps", orders.jumps(30, [(9, 0, 0.2), (19, 10, 0.2), (29, 0, 0.5)]), 2000)


def recipes(folder: Path) -> Iterator[Work]:
    """Task graphs of CaptainCook4D: the steps of a recipe, and which come before which."""
    for name in RECIPES:
        file = folder / f"{name}.json"
        if not file.exists():
            print(f"  (skipped {name}: {file} does not exist)", file=sys.stderr)
            continue
        said = json.loads(file.read_text(encoding="utf-8"))
        steps = sorted(int(step) for step, text in said["steps"].items() if text not in ("START", "END"))
        number = {step: n for n, step in enumerate(steps)}
        pairs = [(number[a], number[b]) for a, b in said["edges"] if a in number and b in number]
        yield Work(name, orders.before(len(steps), pairs), 500 if name == "broccolistirfry" else 2000)


def seconds(job: Callable[[], object], rounds: int) -> float:
    """The minimum CPU time of several rounds."""
    job()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def measure_cpu(work: Work, rounds: int) -> None:
    """Measure one order, and print its line of the table."""
    C = np.random.default_rng(0).random((work.order.K, work.frames), np.float32)
    start = time.process_time()
    problem = Problem.of_costs(Spec.of(DROP, method="steps", order=work.order), C)
    table, graph, costs = problem.table, problem.graph, problem.costs
    assert graph is not None
    cpu.run_graph(table, graph, hard_min, costs)
    compiled = time.process_time() - start
    nodes = int((~graph.hub).sum())
    value = seconds(lambda: cpu.run_graph(table, graph, hard_min, costs), rounds)
    path = seconds(lambda: cpu.trace_graph(table, graph, costs), rounds)
    soft = seconds(lambda: cpu.run_graph(table, graph, soft_min(1.0), costs, gradient=True), rounds)
    call = seconds(lambda: dropdtw.solve(C, DROP, method="steps", order=work.order), rounds)
    million = nodes * work.frames / 1e6
    print(
        f"{work.name:30} {nodes:6d} {len(graph.arcs):6d} {work.frames:6d} {compiled:8.3f} s {million / value:9.0f}"
        f" {path / value:6.2f} x {million / soft:8.0f} {1e3 * call:9.3f} ms",
        flush=True,
    )


def measure_durations(rounds: int) -> None:
    """Compare steps that last at least 5 frames each with a plain list: 10 steps, 5,000 frames."""
    C = np.random.default_rng(0).random((10, 5000), np.float32)
    longer = orders.lasting(range(10), at_least=5)
    ways: dict[str, tuple[str, dict[str, Any]]] = {
        "solve": ("solve", {}),
        "soft": ("cost", {"reducer": "soft", "gamma": 0.1}),
        "hard": ("cost", {}),
    }
    for drops in ({"drop_x": DROP}, {"drop_x": DROP, "drop_z": 10 * DROP}):
        for name, (function, options) in ways.items():
            call = partial(getattr(dropdtw, function), C, method="steps", **drops, **options)
            plain, lasting = seconds(call, rounds), seconds(partial(call, order=longer), rounds)
            print(
                f"  at least 5 frames each, {' and '.join(drops):17} {name:5} {lasting / plain:6.1f} x the plain list"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder task_graphs of CaptainCook4D's annotations")
    parser.add_argument("--rounds", type=int, default=9, help="how often to repeat each measurement (default 9)")
    arguments = parser.parse_args()
    print(f"kernels for {_cpp.instruction_set}, one core; millions of node-columns per second\n")
    print("order                           nodes   arcs frames    compile      hard     path     soft      solve()")
    for work in synthetic():
        measure_cpu(work, arguments.rounds)
    if arguments.data is None:
        print("  (skipped recipes: give the folder of CaptainCook4D's task graphs with --data)", file=sys.stderr)
    else:
        for work in recipes(arguments.data):
            measure_cpu(work, arguments.rounds)
    measure_durations(arguments.rounds)
    print(f"\npeak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


if __name__ == "__main__":
    main()
