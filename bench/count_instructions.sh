#!/bin/sh
# Instructions of one call inside libflhal, under callgrind: the export's inclusive count minus the plugin slot's.
#
# Usage: count_instructions.sh BUILD_FOLDER [CASE...]
# Each case runs with 1000 and with 3000 rounds; the difference is 2000 warm calls. The figure holds what lies before and
# behind the plugin call, so it is an upper bound of the way up to it. Prints: case, instructions, limit, ok or ABOVE.
set -eu
build=$1
shift
bench=$build/bench/op_bench
export FLHAL_PLUGIN_FILES="$build/flhal_plugins.d/mock.json" FLHAL_MOCK="no_streams=1"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

inclusive() {  # file, pattern: inclusive instructions of the first function that matches
  callgrind_annotate --inclusive=yes --threshold=100 "$1" 2>/dev/null |
    awk -v p="$2" '$0 ~ p { gsub(",", "", $1); print $1; exit }'
}

count() {  # case, export, slot
  for rounds in 1000 3000; do
    valgrind --tool=callgrind --callgrind-out-file="$work/$rounds" "$bench" "$1" $rounds > "$work/out" 2>&1 ||
      { cat "$work/out" >&2; exit 1; }
  done
  a=$(inclusive "$work/3000" "$2") b=$(inclusive "$work/1000" "$2")
  c=$(inclusive "$work/3000" "$3") d=$(inclusive "$work/1000" "$3")
  echo $(( ((a - b) - (c - d)) / 2000 ))
}

status=0
row() {  # case, export, slot, limit
  n=$(count "$1" "$2" "$3")
  verdict=ok
  [ "$n" -le "$4" ] || { verdict=ABOVE; status=1; }
  printf '%-16s %5d  limit %5d  %s\n' "$1" "$n" "$4" "$verdict"
}

[ $# -gt 0 ] || set -- add_dense add_in_place add_row add_transposed matmul_exact launch
for name in "$@"; do
  case $name in
    launch) row launch 'flhal_launch' '::launch\(' 120 ;;
    add_dense | add_in_place) row "$name" 'flhal_op_run' 'plan_run\(' 560 ;;
    *) row "$name" 'flhal_op_run' 'plan_run\(' 1500 ;;
  esac
done
exit $status
