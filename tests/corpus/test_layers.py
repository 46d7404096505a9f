"""The modules of `dropdtw.corpus` form layers: each imports only earlier ones."""

import ast
from pathlib import Path

import pytest

import dropdtw.corpus

FOLDER = Path(dropdtw.corpus.__file__).parent
LAYERS = ["storage", "records", "shards", "folder", "gpu", "compute", "tasks", "engines", "run", "api", "__init__"]
"""Files; alignments; the work on one shard; the engines; the run; the functions that users call."""


def siblings(nodes):
    """The modules of this package that some statements import, at any depth."""
    found = set()
    for node in (inner for outer in nodes for inner in ast.walk(outer)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would hide what is imported"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.split(".")[2] for name in names if name.startswith("dropdtw.corpus.")}
    return found


def test_every_module_has_a_layer():
    assert sorted(LAYERS) == sorted(path.stem for path in FOLDER.glob("*.py"))


@pytest.mark.parametrize("module", LAYERS)
def test_a_module_imports_earlier_ones_only(module):
    body = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")).body
    assert siblings(body) <= set(LAYERS[: LAYERS.index(module)])


@pytest.mark.parametrize("module", LAYERS)
def test_only_what_needs_torch_is_imported_late(module):
    tree = ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8"))
    late = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.If, ast.Try))]
    assert siblings(late) <= {"gpu"}
