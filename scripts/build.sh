#!/usr/bin/env bash
# Configures and builds one preset (default: release) and the torch adapter. Usage: build.sh [preset]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
log=build/$preset/build.log
mkdir -p "build/$preset"
if [ ! -f "build/$preset/build.ninja" ]; then
  cmake --preset "$preset" > "build/$preset/configure.log" 2>&1 || { tail -n 40 "build/$preset/configure.log" >&2; exit 1; }
fi
if [ -t 1 ]; then
  cmake --build "build/$preset"
else
  cmake --build "build/$preset" > "$log" 2>&1 || { tail -n 60 "$log" >&2; exit 1; }
fi
