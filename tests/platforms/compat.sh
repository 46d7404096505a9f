#!/usr/bin/env bash
# Runs tests with other versions of the packages that dropdtw uses, in an environment of their own:
#
#     compat.sh PYTHON oldest|newest|alone [pytest arguments]
#
#   oldest  the lowest versions that pyproject.toml allows, for building and for running, in .venv-oldest. Without the
#           extra `text`, which needs NumPy 2; everything else runs with the oldest NumPy
#   newest  the newest versions of the package index, in .venv-newest
#   alone   the newest NumPy, and none of the optional packages, in .venv-alone
set -euo pipefail
cd "$(dirname "$0")/../.."
base=$1 which=$2
shift 2
venv=.venv-$which out=build/compat/$which
python=$venv/bin/python uv=$venv/bin/uv
mkdir -p "$out"

[ -x "$python" ] || "$base" -m venv "$venv"
[ -x "$uv" ] || "$python" -m pip install --quiet --disable-pip-version-check uv
install=("$uv" pip install --quiet --python "$python")

"$python" - "$out" <<'REQUIREMENTS'
import sys, tomllib
from pathlib import Path

data = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))
write = lambda name, lines: (Path(sys.argv[1]) / name).write_text("\n".join(lines) + "\n", "utf-8")
write("build.in", data["build-system"]["requires"])
extras = data["project"]["optional-dependencies"]
own = "dropdtw["
write("run.in", data["project"]["dependencies"] + [
    line for extra, lines in extras.items() if extra not in ("all", "text") for line in lines if not line.startswith(own)
])
write("text.in", extras["text"])
REQUIREMENTS

test=(pytest hypothesis packaging)
case $which in
oldest)
  rm -f "$out"/*.txt # uv would keep to them
  # Newer ones warn of what the oldest Matplotlib and Typer call, and in tests warnings are errors.
  printf "pyparsing<3.3\nclick<8.3\n" >"$out/limits.in"
  "$uv" pip compile --quiet --python "$python" --resolution lowest-direct "$out/build.in" -o "$out/build.txt"
  "$uv" pip compile --quiet --python "$python" --resolution lowest-direct -c "$out/limits.in" "$out/run.in" -o "$out/run.txt"
  "${install[@]}" -r "$out/build.txt" -r "$out/run.txt" "${test[@]}"
  set -- -W "ignore:Conversion of an array:DeprecationWarning" "$@" # NumPy 1's, in Triton's interpreter
  ;;
newest) "${install[@]}" --upgrade -r "$out/build.in" -r "$out/run.in" -r "$out/text.in" "${test[@]}" pandas ;;
alone)
  "${install[@]}" --upgrade -r "$out/build.in" numpy "${test[@]}"
  set -- "${@%%::*}" # a file whose package is missing is skipped as a whole, so its tests cannot be named
  ;;
*) echo "compat.sh: '$which' is none of oldest, newest, alone" >&2 && exit 1 ;;
esac

tools=()
for tool in cmake ninja; do command -v $tool >/dev/null || tools+=("$tool"); done
if [ ${#tools[@]} -gt 0 ]; then "${install[@]}" "${tools[@]}"; fi
echo "compiling the kernels for $venv: about a minute on two cores, or seconds if nothing has changed"
PATH="$PWD/$venv/bin:$PATH" "${install[@]}" --no-deps --no-build-isolation --reinstall-package dropdtw -C "build-dir=$out/kernels" .
"$python" -W ignore -c "from dropdtw.executors import EXECUTORS; assert 'cpp' in EXECUTORS, 'the kernels were not compiled'"
"$uv" pip list --quiet --python "$python" | grep -E '^(numpy|scipy|matplotlib|torch|rich|typer|jinja2|wordllama|av|starlette|uvicorn|scikit-learn|fsspec|pyarrow|ray|pandas|nanobind|scikit-build-core) ' | tr -s ' ' | paste -sd, | sed 's/,/, /g'
exec "$python" -m pytest "$@"
