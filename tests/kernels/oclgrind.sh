#!/usr/bin/env bash
# The kernel tests through the OpenCL C texts, interpreted by Oclgrind: no work-item leaves a buffer, none races with another, and
# nothing is read that nobody wrote. Usage: oclgrind.sh fat|thin TEST_KERNELS [CATCH2 SELECTION]
# Oclgrind 21.10 knows no code that inlining leaves behind (noalias scopes, freeze), so nothing is inlined; the fat schedule packs
# panels into more work-group memory than it offers unasked.
set -euo pipefail
schedule=$1 tests=$2 selection=${3:-~[levels]~[large]~[texts]}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
FLHAL_TEST_KERNEL_DIALECT=opencl-$schedule oclgrind --data-races --uninitialized --log "$log" --local-mem-size 1048576 \
  --build-options "-cl-opt-disable -D__attribute__(x)=" "$tests" -d yes "$selection" || status=$?
if [ -s "$log" ]; then
  echo "Oclgrind reports:"
  head -n 60 "$log"
  exit 1
fi
exit $status
