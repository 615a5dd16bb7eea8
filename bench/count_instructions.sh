#!/bin/sh
# Instructions from the entry of an export to the entry of the plugin's slot, under callgrind: exact, of one warm call.
#
# Usage: count_instructions.sh BUILD_FOLDER [CASE...]
# callgrind sets its counters to zero whenever the export is entered and dumps them whenever the slot is; the last dump is
# a call whose plan is known. The mock runs without streams, so the figure holds no lock of a stream.
# Prints: case, instructions, limit, ok or ABOVE. Exit code 1 when a case is above its limit.
set -eu
build=$1
shift
bench=$build/bench/op_bench
export FLHAL_PLUGIN_FILES="$build/flhal_plugins.d/mock.json" FLHAL_MOCK="no_streams=1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

count() {  # case, export, slot
  rm -f "$work"/*
  valgrind --tool=callgrind --callgrind-out-file="$work/out" --zero-before="$2" --dump-before="$3" \
    "$bench" "$1" 20 > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  last=$(ls "$work" | sed -n 's/^out\.//p' | sort -n | tail -1)
  sed -n 's/^totals: //p' "$work/out.$last"
}

status=0
row() {  # case, export, slot, limit
  n=$(count "$1" "$2" "$3")
  verdict=ok
  [ "${n:-999999}" -le "$4" ] || { verdict=ABOVE; status=1; }
  printf '%-16s %5d  limit %5d  %s\n' "$1" "${n:-0}" "$4" "$verdict"
}

op='mock::(anonymous namespace)::plan_run(*'
[ $# -gt 0 ] || set -- add_dense add_in_place add_row add_transposed matmul_exact launch
for name in "$@"; do
  case $name in
    launch) row launch flhal_launch 'mock::slots::launch(*' 120 ;;
    add_dense | add_in_place) row "$name" flhal_op_run "$op" 560 ;;
    *) row "$name" flhal_op_run "$op" 2000 ;;   # the general path: no promise yet, only against regressions
  esac
done
exit $status
