"""`dropdtw info`: show what is installed and what it can use."""

from __future__ import annotations

import json
import os
import platform
from importlib import metadata, util
from typing import Annotated

import typer

from dropdtw.cli import screen

PACKAGES = ("numpy", "torch", "triton", "matplotlib", "scipy", "wordllama", "pyarrow", "typer", "rich")


def info(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for bug reports and scripts.")] = False,
) -> None:
    """Show version, executors, instruction set, threads, GPU and optional packages."""
    facts = gather()
    if as_json:
        print(json.dumps(facts, indent=1))
    else:
        screen.table(["what", "this installation"], [[name, value] for name, value in facts.items()])


def gather() -> dict[str, str]:
    """What `dropdtw info` shows, by name."""
    import dropdtw
    from dropdtw.executors import EXECUTORS

    facts = {
        "dropdtw": dropdtw.__version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "executors": ", ".join(EXECUTORS)
        + (" (the first is used)" if len(EXECUTORS) > 1 else " (slow: the compiled executor is missing)"),
        "CPU level": _level() if "cpp" in EXECUTORS else "not used",
        "threads": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1),
        "GPU": _gpu(),
    }
    for package in PACKAGES:
        facts[package] = metadata.version(package) if util.find_spec(package) else "not installed"
    return facts


def _level() -> str:
    from dropdtw import _cpp

    forced = os.environ.get("DROPDTW_ISA")
    kernels = f"unrolled kernels for {_cpp.levels}, any table on every processor"
    return f"{_cpp.instruction_set}{f' (DROPDTW_ISA={forced})' if forced else ''}; compiled: {kernels}"


def _gpu() -> str:
    if not util.find_spec("torch"):
        return "unknown: torch is not installed"
    import torch

    if not torch.cuda.is_available():
        return "none that torch can use"
    return ", ".join(torch.cuda.get_device_name(k) for k in range(torch.cuda.device_count()))
