#!/bin/sh
# Writes the generated files, or makes them again in an empty folder and compares.
#
# Usage: gen.sh write|check PATH_OF_FLHAL_OPSET      (the CMake targets gen and gen-check call it)
# abi/1.0/ops.txt is a promise: `write` only adds lines to it, `check` also fails when a promised line no longer holds.
set -eu
cd "$(dirname "$0")/.."
mode=$1
opset=$2
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

mkdir -p "$out/include/flhal" "$out/docs/reference" "$out/abi/1.0"
"$opset" header > "$out/include/flhal/ops.h"
"$opset" markdown > "$out/docs/reference/ops.md"
"$opset" numbers > "$out/abi/1.0/ops.txt"
python3 scripts/gen_status.py src/core/status.def "$out/include/flhal/status.h"

[ ! -f abi/1.0/ops.txt ] || "$opset" check abi/1.0/ops.txt
faults=0
for file in include/flhal/ops.h include/flhal/status.h docs/reference/ops.md abi/1.0/ops.txt; do
  if cmp -s "$out/$file" "$file"; then continue; fi
  if [ "$mode" = write ]; then
    mkdir -p "$(dirname "$file")"
    cp "$out/$file" "$file"
    echo "gen: wrote $file"
  else
    echo "gen-check: $file differs from its input; run the target gen and commit both" >&2
    faults=1
  fi
done
exit $faults
