#!/usr/bin/env bash
# Builds libflhal as it was at abi/1.0/core_commit, without tests and plugins. Usage: build_oldest_core.sh FOLDER
# Exit status 3 when this clone does not have the commit.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$1
commit=$(cat abi/1.0/core_commit)
git cat-file -e "$commit^{commit}" 2>/dev/null || { echo "build_oldest_core: no commit $commit in this clone"; exit 3; }
if [ "$(cat "$folder/commit" 2>/dev/null)" != "$commit" ]; then
  rm -rf "$folder"
  mkdir -p "$folder/source"
  git archive "$commit" | tar -x -C "$folder/source"
  echo "$commit" > "$folder/commit"
fi
[ -f "$folder/build/build.ninja" ] || cmake -S "$folder/source" -B "$folder/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DFLHAL_BUILD_TESTS=OFF \
  -DFLHAL_BUILD_HOST_PLUGIN=OFF -DFLHAL_BUILD_OPENCL_PLUGIN=OFF -DFLHAL_KERNEL_LEVELS=base
cmake --build "$folder/build" --target flhal
