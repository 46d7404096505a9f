"""Environments that hold the package and some of its extras, made of links to what is installed here."""

import os
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def requirements(name, extras=()):
    """What a distribution requires with these extras."""
    if name == "dropdtw":
        return [*PROJECT["dependencies"], *(r for extra in extras for r in PROJECT["optional-dependencies"][extra])]
    found = []
    for text in metadata.requires(name) or ():
        marker = Requirement(text).marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            found.append(text)
    return found


def closure(extras):
    """The distributions that `pip install dropdtw[extras]` brings, without the package itself."""
    found, todo = set(), [("dropdtw", tuple(extras))]
    while todo:
        name, wanted = todo.pop()
        for requirement in map(Requirement, requirements(name, wanted)):
            entry = canonicalize_name(requirement.name), tuple(sorted(requirement.extras))
            if entry not in found:
                found.add(entry)
                todo.append(entry)
    return {name for name, _ in found} - {"dropdtw"}


def environment(folder, extras):
    """Variables under which Python finds the package and its extras alone; `folder` is for the links."""
    folder.mkdir(parents=True)
    (folder / "dropdtw").symlink_to(ROOT / "src" / "dropdtw")
    for name in closure(extras):
        distribution = metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or () if not file.parts[0].startswith((".", "__"))}:
            if not (folder / top).exists():
                (folder / top).symlink_to(distribution.locate_file(top))
    return {**os.environ, "PYTHONPATH": str(folder), "MPLBACKEND": "agg"}


def run(env, *arguments, cwd):
    """Run Python without site-packages."""
    command = [sys.executable, "-S", *map(str, arguments)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=300)
