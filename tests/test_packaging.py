"""What is shipped: sdist and wheel hold what they should and nothing else, and install into an empty environment.

The slow part, which compiles, runs where DROPDTW_TEST_PACKAGING=1 is set: it needs minutes and the package index. What
each command needs is tested in tests/test_extras.py.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
VERSION = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/dropdtw/__init__.py").read_text(), re.M)[1]
slow = pytest.mark.skipif(
    os.environ.get("DROPDTW_TEST_PACKAGING") != "1",
    reason="builds and installs packages for minutes: set DROPDTW_TEST_PACKAGING=1",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A copy of the source without environments and generated files, so that building leaves no trace."""
    copy = tmp_path_factory.mktemp("checkout") / "dropdtw"
    rubbish = shutil.ignore_patterns(
        ".git", ".venv*", ".*_cache", ".hypothesis", ".coverage*", "__pycache__", "_cpp.pyi"
    )
    shutil.copytree(
        ROOT,
        copy,
        ignore=lambda folder, names: (
            {*rubbish(folder, names), *({"build", "dist", "runs"} if Path(folder) == ROOT else ())} & set(names)
        ),
    )
    (copy / "runs").mkdir()
    (copy / "runs" / "result.json").write_text("{}")  # what experiments wrote must not be shipped
    return copy


@pytest.fixture(scope="module")
def package(checkout):
    """The files of the package's folder, relative to it; not kernels that were compiled in place."""
    folder = checkout / "src" / "dropdtw"
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix not in (".so", ".pyd"))
    return {path.relative_to(folder).as_posix() for path in found}


@pytest.fixture(scope="module")
def built(checkout):
    """The names inside an sdist and a wheel without compiled kernels; building these takes a second."""
    pytest.importorskip("scikit_build_core", reason="scikit-build-core is not installed: pip install scikit-build-core")
    out = checkout.parent / "built"
    code = (
        "import sys; from scikit_build_core.build import build_sdist, build_wheel; "
        "build_sdist(sys.argv[1]); build_wheel(sys.argv[1], {'wheel.cmake': 'false'})"
    )
    run(sys.executable, "-c", code, out, cwd=checkout)
    return {"sdist": names_of(next(out.glob("*.tar.gz"))), "wheel": names_of(next(out.glob("*.whl")))}


def run(*command, **options):
    """What a command says; where it fails, the test does, with all of it."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{command} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def names_of(archive):
    """The files inside, relative to the sdist's folder or to site-packages."""
    if archive.suffix == ".whl":
        return set(zipfile.ZipFile(archive).namelist())
    with tarfile.open(archive) as tar:
        names = {member.name for member in tar if member.isfile()}
    assert {name.split("/")[0] for name in names} == {f"dropdtw-{VERSION}"}
    return {name.split("/", 1)[1] for name in names}


def test_sdist_has_all_it_takes_to_build_and_test(built, package):
    sdist = built["sdist"]
    assert {f"src/dropdtw/{name}" for name in package} <= sdist
    assert {"pyproject.toml", "CMakeLists.txt", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"} <= sdist
    assert {"src/dropdtw/py.typed", "src/dropdtw/executors/cpp/kernels.cpp", "tests/support/cases.py"} <= sdist
    assert any(name.endswith(".hpp") for name in sdist)


def test_sdist_has_no_leftovers(built):
    unwanted = re.compile(
        r"(^|/)(runs|build|dist|\.venv[^/]*|\.git|__pycache__|\.[a-z]+_cache|\.hypothesis)/|\.(so|pyd|pyc)$"
    )
    assert [name for name in built["sdist"] if unwanted.search(name)] == []


def test_sdist_has_no_data_of_tests(built):
    # Data sets come from the environment (DROPDTW_DATA) or from other wheels; a test that needs a file writes it.
    assert {Path(name).suffix for name in built["sdist"] if name.startswith("tests/")} == {".py", ".cpp", ".sh"}


def test_wheel_is_the_package_without_its_kernels_sources(built, package):
    info = f"dropdtw-{VERSION}.dist-info/"
    expected = {f"dropdtw/{name}" for name in package if not name.startswith("executors/cpp/")}
    assert {name for name in built["wheel"] if not name.startswith(info)} == expected
    assert "dropdtw/py.typed" in expected
    assert {info + part for part in ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE")} <= built[
        "wheel"
    ]


def test_wheel_brings_what_the_package_reads_besides_its_code(built, package):
    """Pages, styles, pictures, samples: everything in the package that is not Python, or C++."""
    extra = {name for name in package if Path(name).suffix not in (".py", ".pyi", ".cpp", ".hpp")}
    assert "py.typed" in extra
    assert {f"dropdtw/{name}" for name in extra} <= built["wheel"]
    if "explore/__init__.py" in package:
        assert "dropdtw/explore/page/index.html" in built["wheel"]


def test_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[0] == VERSION


# --- Into an empty environment ----------------------------------------------------------------------------------

SMOKE = """
import sys, warnings
import dropdtw
from dropdtw.executors import EXECUTORS
assert list(EXECUTORS) == {executors}, EXECUTORS
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    a = dropdtw.align([1.0, 5.0, 3.0], [1.1, 9.0, 5.2, 4.9, 0.0, 3.1], drop_x=1.0, match="euclidean")
assert a.labels.tolist() == [0, -1, 1, 1, -1, 2], a.labels
assert ["not installed" in str(w.message) for w in said] == {said}, said
assert dropdtw.__version__ == {version!r}
assert "site-packages" in dropdtw.__file__
print(sorted({{"torch", "matplotlib", "sklearn", "scipy"}} & set(sys.modules)))
"""


@pytest.fixture
def empty(tmp_path):
    """An environment with pip alone: its Python, and a folder far from the source to work in."""
    venv.create(tmp_path / "environment", with_pip=True)
    bin = tmp_path / "environment" / ("Scripts" if os.name == "nt" else "bin")
    return bin


@pytest.fixture(scope="module")
def distributions(checkout):
    """`python -m build`: an sdist, and a wheel made from it."""
    pytest.importorskip("build", reason="build is not installed: pip install build")
    out = checkout.parent / "distributions"
    run(sys.executable, "-m", "build", "--outdir", out, checkout)
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def smoke(bin, tmp_path, executors, said):
    code = SMOKE.format(executors=executors, said=said, version=VERSION)
    assert run(bin / "python", "-c", code, cwd=tmp_path).strip() == "[]"
    assert run(bin / "python", "-m", "pip", "check", cwd=tmp_path).startswith("No broken")
    told = subprocess.run([bin / "dropdtw", "info"], capture_output=True, text=True, cwd=tmp_path)
    assert told.returncode == 1
    assert told.stderr.strip() == "the command line needs typer: pip install 'dropdtw[cli]'"


@slow
def test_wheel_works_in_an_empty_environment(distributions, empty, tmp_path):
    _, wheel = distributions
    compiled = [name for name in names_of(wheel) if re.search(r"dropdtw/_cpp\..*(so|pyd)$", name)]
    assert len(compiled) == 1, "the kernels were not compiled: is there a C++20 compiler?"
    assert [name for name in names_of(wheel) if name.endswith((".hpp", ".cpp", ".a")) or "test" in name] == []
    run(empty / "python", "-m", "pip", "install", wheel)
    smoke(empty, tmp_path, ["cpp", "reference"], [])


@slow
def test_sdist_works_where_nothing_can_be_compiled(distributions, empty, tmp_path):
    """As on a machine without a compiler: the reference executor serves, and says so once."""
    sdist, _ = distributions
    compilerless = os.environ | {"CXX": str(tmp_path / "no-such-compiler")}
    run(empty / "python", "-m", "pip", "install", sdist, env=compilerless)
    smoke(empty, tmp_path, ["reference"], [True])
    said = run(empty / "python", "-m", "pip", "install", "dropdtw[cli]", env=compilerless, cwd=tmp_path)
    assert "Requirement already satisfied: dropdtw[cli]" in said  # an extra is added, the package stays
    assert "Building" not in said
    assert "reference (slow" in run(empty / "dropdtw", "info", cwd=tmp_path)


@slow
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is for Linux")
def test_the_wheel_of_make_wheel_needs_no_compiler(empty, tmp_path):
    """`make packages` has made it; auditwheel has named the systems that can use it, and it brings all it needs."""
    (wheel,) = (ROOT / "dist").glob("*.whl")
    assert re.search(r"-manylinux_2_\d+_\w+(\.manylinux\w+)*\.whl$", wheel.name)
    nothing = os.environ | {"PATH": str(empty), "CXX": str(tmp_path / "no-such-compiler")}
    run(empty / "python", "-m", "pip", "install", "--only-binary", ":all:", wheel, env=nothing)
    smoke(empty, tmp_path, ["cpp", "reference"], [])
