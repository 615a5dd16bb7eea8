#!/usr/bin/env bash
# Writes the generated files, or makes them again in an empty folder and compares.
#
# Usage: gen.sh write|check PATH_OF_FLHAL_OPSET PATH_OF_FLHAL_CONFORMANCE      (the CMake targets gen and gen-check call it)
# abi/1.0/ops.txt, abi/1.0/constants.txt and conformance/mustpass/1.0 are promises: `write` only adds lines, `check` also fails
# when a promised line no longer holds.
set -eu
cd "$(dirname "$0")/.."
mode=$1
opset=$2
conformance=$3
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

mkdir -p "$out/include/flhal" "$out/docs/reference" "$out/docs/howto" "$out/abi/1.0"
cp include/flhal/*.h "$out/include/flhal"
"$opset" header > "$out/include/flhal/ops.h"
"$opset" markdown > "$out/docs/reference/ops.md"
"$opset" numbers > "$out/abi/1.0/ops.txt"
mkdir -p "$out/conformance/mustpass/1.0"
"$opset" conformance > "$out/conformance/op_rows.def"
python3 scripts/gen_status.py src/core/status.def "$out/include/flhal/status.h"
python3 scripts/gen_errors.py src/core/status.def src/dispatch/reasons.def > "$out/docs/reference/errors.md"
python3 scripts/gen_findings.py src/layers/findings.def > "$out/docs/reference/findings.md"
"$conformance" table duties > "$out/docs/reference/duties.md"
"$conformance" table mutants > "$out/docs/reference/mutants.md"
slots=(sdk/guide/slots.toml src/core/slots.def src/core/ops_slots.def conformance/duties.def)
python3 scripts/gen_slots.py slots "${slots[@]}" > "$out/docs/reference/slots.md"
python3 scripts/gen_slots.py porting "${slots[@]}" > "$out/docs/howto/porting.md"
python3 scripts/gen_layout.py "$out/include" "$out/abi/1.0/layout.h"

# promise FILE WHY: every line of FILE is still among the new ones.
promise() {
  local lost
  lost=$([ ! -f "$1" ] || LC_ALL=C sort "$1" | LC_ALL=C comm -23 - <(LC_ALL=C sort "$out/$1"))
  [ -z "$lost" ] || { echo "gen: $1 promises what is no longer so; $2: $lost" >&2; exit 1; }
}
for profile in sync kernel async ops; do
  "$conformance" table mustpass $profile > "$out/conformance/mustpass/1.0/$profile.txt"
  promise conformance/mustpass/1.0/$profile.txt "the id of a case is kept for ever"
done
python3 scripts/gen_constants.py "$out/include" src/dispatch/reasons.def > "$out/abi/1.0/constants.txt"
promise abi/1.0/constants.txt "a name keeps its number for ever, give a new meaning a new name"

[ ! -f abi/1.0/ops.txt ] || "$opset" check abi/1.0/ops.txt
faults=0
for file in include/flhal/ops.h include/flhal/status.h docs/reference/{ops,errors,duties,mutants,slots,findings}.md docs/howto/porting.md abi/1.0/ops.txt abi/1.0/constants.txt abi/1.0/layout.h conformance/op_rows.def \
    conformance/mustpass/1.0/{sync,kernel,async,ops}.txt; do
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
