#!/usr/bin/env bash
# Compiles the extension for 64-bit ARM and runs tests with it under emulation, on any Debian machine:
#
#     arm.sh BUILD_PYTHON [pytest arguments]
#
# BUILD_PYTHON is an environment that builds the package. Everything is written below build/arm, nothing is installed on
# the host but the cross compiler and the emulator:
#   root/   Debian's Python for arm64 and the libraries it needs, unpacked
#   venv/   an environment of that Python, with the newest NumPy and pytest that constraints.txt allows; its `python` is a
#           script that starts the emulator, so that tests can start `sys.executable`
#   kernels/  the compiler's output
set -euo pipefail
cd "$(dirname "$0")/../.."
build_python=$PWD/$1
shift
arm=$PWD/build/arm root=$PWD/build/arm/root venv=$PWD/build/arm/venv
mkdir -p "$arm"

fail() { echo "make arm: $*" >&2; exit 1; }

. /etc/os-release
[ "${ID:-}" = debian ] || fail "needs Debian, whose packages for arm64 match its cross compiler; this is ${PRETTY_NAME:-unknown}"

tools=(g++-aarch64-linux-gnu:aarch64-linux-gnu-g++ qemu-user:qemu-aarch64 cmake:cmake ninja-build:ninja)
missing=()
for tool in "${tools[@]}"; do command -v "${tool#*:}" >/dev/null || missing+=("${tool%:*}"); done
if [ ${#missing[@]} -gt 0 ]; then
  [ "$(id -u)" = 0 ] || fail "install ${missing[*]} first: sudo apt-get install ${missing[*]}"
  apt-get install -y --no-install-recommends "${missing[@]}"
fi

# A private configuration of apt, as if this were an arm64 machine on which nothing is installed yet.
if [ ! -e "$arm/root.done" ]; then
  echo "unpacking Debian's Python for arm64 into build/arm/root: about 60 MB to download"
  rm -rf "$root" "$arm/apt"
  mkdir -p "$root" "$arm/apt/lists/partial" "$arm/apt/archives/partial"
  : >"$arm/apt/status"
  echo "deb [arch=arm64] ${DEBIAN_MIRROR:-http://deb.debian.org/debian} $VERSION_CODENAME main" >"$arm/apt/sources.list"
  cat >"$arm/apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Sandbox::User "";
Dir::Etc::sourcelist "$arm/apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::State "$arm/apt";
Dir::State::status "$arm/apt/status";
Dir::Cache "$arm/apt";
CONF
  APT_CONFIG="$arm/apt/apt.conf" apt-get -qq update
  APT_CONFIG="$arm/apt/apt.conf" apt-get -qq install --yes --download-only --no-install-recommends python3 libpython3-dev libstdc++6
  for package in "$arm"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
  rm -rf "$arm/apt/archives"
  touch "$arm/root.done"
fi
version=$(readlink "$root/usr/bin/python3" | sed 's/^python//')
emulate=("$(command -v qemu-aarch64)" -L "$root")

# The environment. pip runs on the host and picks wheels for the target.
if [ ! -e "$arm/venv.done" ] || [ constraints.txt -nt "$arm/venv.done" ]; then
  rm -rf "$venv"
  packages=$venv/lib/python$version/site-packages
  mkdir -p "$venv/bin" "$packages/dropdtw"
  printf 'home = %s\nversion = %s\n' "$root/usr/bin" "$version" >"$venv/pyvenv.cfg"
  printf '#!/bin/sh\nexec %s -0 "$0" -L %s %s "$@"\n' "${emulate[0]}" "$root" "$root/usr/bin/python$version" >"$venv/bin/python"
  chmod +x "$venv/bin/python"
  "$build_python" -m pip install --quiet --disable-pip-version-check -c constraints.txt --target "$packages" --upgrade \
    --python-version "$version" --only-binary :all: --platform manylinux_2_28_aarch64 --platform manylinux_2_17_aarch64 \
    --platform manylinux2014_aarch64 numpy pytest hypothesis
  touch "$arm/venv.done"
fi

# The kernels. Interpreter and headers come from different places, so CMake is told where both are.
mkdir -p "$arm/include/aarch64-linux-gnu"
ln -sfn "$root/usr/include/aarch64-linux-gnu/python$version" "$arm/include/aarch64-linux-gnu/python$version"
[ -e "$arm/kernels/build.ninja" ] || echo "compiling the kernels for aarch64: about a minute on two cores"
cmake -S . -B "$arm/kernels" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release \
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
  -DCMAKE_CXX_FLAGS="-isystem $arm/include" -DPython_EXECUTABLE="$build_python" \
  -DPython_INCLUDE_DIR="$root/usr/include/python$version" -DSKBUILD_SOABI="cpython-${version/./}-aarch64-linux-gnu" -DSKBUILD_SOSABI=abi3
cmake --build "$arm/kernels"

package=$venv/lib/python$version/site-packages/dropdtw
rm -rf "$package"
mkdir "$package"
ln -s "$PWD"/src/dropdtw/* "$package"
cp "$arm"/kernels/_cpp*.so "$package"

# What the host computes, for the emulated processor to agree with.
PYTHONPATH=tests/support "$build_python" tests/executors/test_levels.py >"$arm/golden.json"
export DROPDTW_GOLDEN=$arm/golden.json

export PYTHONPYCACHEPREFIX=$arm/pycache OPENBLAS_NUM_THREADS=1
unset PYTHONPATH PYTHONHOME LD_PRELOAD
"$venv/bin/python" - <<'CHECK'
import platform
from dropdtw import _cpp
from dropdtw.executors import EXECUTORS
assert platform.machine() == "aarch64" and "cpp" in EXECUTORS, (platform.machine(), EXECUTORS)
print(f"running on {platform.machine()}, Python {platform.python_version()}, kernels for {_cpp.levels}")
CHECK
exec "$venv/bin/python" -m pytest "$@"
