#!/usr/bin/env bash
# Counts the instructions of one warm call under callgrind and holds them against bench/instruction_limits.txt.
#
# Usage: count_instructions.sh BUILD_FOLDER [CASE...]
# Prints: case, instructions, limit, ok or ABOVE; then a sentence for each case above its limit. Exit status 1 if there is one.
#
# Calls (op_bench): from the entry of an export to the entry of the plugin's slot. callgrind sets its counters to zero
# whenever the export is entered and dumps them whenever the slot is; the last dump is a call whose plan is known. The mock
# runs without streams, so the figure holds no lock of a stream.
# Loops (pool_bench): the difference of two runs by the difference of their rounds, less the loop itself.
#
# The counts depend on the compiler, not on the processor: what is counted is compiled for the base level, valgrind knows no
# AVX-512, and none of it calls string functions that the C library chooses by processor (seen equal with AVX2, AVX and ERMS
# taken away by GLIBC_TUNABLES).
set -euo pipefail
bench=$1/bench
shift
limits=$(dirname "$0")/instruction_limits.txt
plugins=$(dirname "$bench")/flhal_plugins.d
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

callgrind() {  # arguments of callgrind and its program; output to $work/out*, the log kept for the failure
  rm -f "$work"/*
  valgrind --tool=callgrind --callgrind-out-file="$work/out" "$@" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

call() {  # case, export, slot
  FLHAL_PLUGIN_FILES=$plugins/mock.json FLHAL_MOCK=no_streams=1 \
    callgrind --zero-before="$2" --dump-before="$3" "$bench/op_bench" "$1" 20
  sed -n 's/^totals: //p' "$work/out.$(cd "$work" && ls | sed -n 's/^out\.//p' | sort -n | tail -n 1)"
}

rounds() {  # case of pool_bench: instructions of 2000 rounds
  local few many
  callgrind "$bench/pool_bench" count "$1" 1000
  few=$(sed -n 's/^totals: //p' "$work/out")
  callgrind "$bench/pool_bench" count "$1" 3000
  many=$(sed -n 's/^totals: //p' "$work/out")
  echo $((many - few))
}

count() {  # case
  case $1 in
    launch) call launch flhal_launch 'mock::slots::launch(*' ;;
    alloc_free) echo $(($(rounds same_stream) / 2000)) ;;
    locate) echo $((($(rounds locate) - $(rounds empty)) / 2000)) ;;
    *) call "$1" flhal_op_run 'mock::(anonymous namespace)::plan_run(*' ;;
  esac
}

above=()
while read -r name limit what; do
  [[ $name == \#* || -z $name ]] && continue
  [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
  n=$(count "$name")
  [[ $n =~ ^[0-9]+$ ]] || { echo "$name: callgrind counted nothing; was a function it looks for renamed or inlined?" >&2; exit 1; }
  verdict=ok
  if [ "$n" -gt "$limit" ]; then
    verdict=ABOVE
    above+=("$name takes $n instructions, at most $limit are allowed ($what)")
  fi
  printf '%-16s %5d  limit %5d  %s\n' "$name" "$n" "$limit" "$verdict"
done < "$limits"
[ ${#above[@]} -eq 0 ] && exit 0
printf '%s\n' "${above[@]}" >&2
echo "make it cheaper, or change bench/instruction_limits.txt and say in the commit what the instructions bought" >&2
exit 1
