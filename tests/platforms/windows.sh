#!/usr/bin/env bash
# Compiles the kernels and their test in C++ for Windows, and runs the test in Wine if it is installed:
#
#     windows.sh PYTHON [gcc] [clang]
#
# gcc is Debian's g++-mingw-w64-x86-64: the baseline only, because it does not align wide vectors on the stack. clang is
# the package `ziglang`, for every level. PYTHON writes the tables. Everything is written below build/windows.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=$PWD/$1 out=$PWD/build/windows
shift
mkdir -p "$out"

fail() { echo "make windows: $*" >&2; exit 1; }

compile() { # NAME COMPILER [CMake's options]
  local name=$1 compiler=$2
  shift 2
  [ -e "$out/$name/build.ninja" ] || echo "compiling the kernels for Windows with $name: some minutes on two cores"
  DROPDTW_LEVELS=all cmake -S . -B "$out/$name" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DDROPDTW_KERNELS_ONLY=ON \
    -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=AMD64 -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_EXE_LINKER_FLAGS=-static -DPython_EXECUTABLE="$python" "$@"
  cmake --build "$out/$name" --target kernels_test
}

for name in "${@:-gcc}"; do
  case $name in
  gcc)
    gcc=$(command -v x86_64-w64-mingw32-g++-posix) || fail "install g++-mingw-w64-x86-64 first: sudo apt-get install g++-mingw-w64-x86-64"
    compile gcc "$gcc"
    ;;
  clang)
    [ -e "$out/zig/ziglang" ] || "$python" -m pip install --quiet --disable-pip-version-check --target "$out/zig" ziglang
    for tool in c++ ar ranlib; do
      target=
      [ $tool = c++ ] && target='-target x86_64-windows-gnu'
      printf '#!/bin/sh\nexec %s/zig/ziglang/zig %s %s "$@"\n' "$out" "$tool" "$target" >"$out/zig-$tool"
      chmod +x "$out/zig-$tool"
    done
    compile clang "$out/zig-c++" -DCMAKE_AR="$out/zig-ar" -DCMAKE_RANLIB="$out/zig-ranlib"
    ;;
  *) fail "'$name' is neither gcc nor clang" ;;
  esac
done

wine=$(command -v wine64 || command -v wine || true)
if [ -z "$wine" ]; then
  echo "compiled, but not run: install wine64 to run the tests"
  exit 0
fi
export WINEPREFIX=$out/wine WINEDEBUG=-all
for name in "${@:-gcc}"; do
  echo "$name:"
  "$wine" "$out/$name/kernels_test.exe"
done
