#!/usr/bin/env bash
# Configures and builds one preset (default: release). Usage: build.sh [preset [target...]]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
log=build/$preset/build.log
mkdir -p "build/$preset"
if [ ! -f "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" > "build/$preset/configure.log" 2>&1 || { tail -n 40 "build/$preset/configure.log" >&2; exit 1; }
fi
build=(cmake --build "build/$preset" ${@:+--target "$@"})
if [ -t 1 ]; then
  "${build[@]}"
else
  "${build[@]}" > "$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
fi
