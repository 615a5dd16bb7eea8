#!/usr/bin/env bash
# Freezes the ABI as it is now into abi/1.0: the headers, their description for abidiff, the constants, and the binaries that
# travel in time. Needed once for each minor, and until 1.0 is released after a deliberate change; docs/why/abi.md says more.
#
# Usage: freeze_abi.sh [FROZEN_FOLDER]        Nothing needs to be built; abidw (Debian: abigail-tools) is needed.
set -euo pipefail
cd "$(dirname "$0")/.."
frozen=${1:-abi/1.0}
mkdir -p "$frozen/include/flhal" "$frozen/time_travel/x86_64"
rm -f "$frozen"/include/flhal/*.h
for header in include/flhal/*.h; do
  case $(basename "$header") in x_*) ;; *) cp "$header" "$frozen/include/flhal/" ;; esac   # x.* tables are not part of it
done
python3 scripts/gen_constants.py "$frozen/include" src/dispatch/reasons.def > "$frozen/constants.txt"
python3 scripts/describe_abi.py "$frozen/include" "$frozen/description.abi"
git merge-base HEAD main > "$frozen/core_commit"   # not HEAD: a commit that was not landed yet may get another name

# Small and the same from the same compiler: no build id, no paths, no symbols.
[ "$(uname -m)" = x86_64 ] || exit 0
travel=$frozen/time_travel
flags=(-std=gnu11 -Os -fvisibility=hidden "-I$frozen/include" -s -Wl,--build-id=none -Wl,-z,noseparate-code -Wall -Wextra -Werror)
gcc "${flags[@]}" -fPIC -shared -Wl,--version-script=sdk/cmake/plugin.map -Wl,-z,defs "$travel/plugin.c" -o "$travel/x86_64/libflhal_plugin_frozen.so"
library=$(mktemp -d)
trap 'rm -rf "$library"' EXIT
python3 scripts/describe_abi.py "$frozen/include" "$library/libflhal.so"
gcc "${flags[@]}" "$travel/app.c" -o "$travel/x86_64/app" "-L$library" -l:libflhal.so
gcc "${flags[@]}" "$travel/core.c" -o "$travel/x86_64/core" -ldl
ls -l "$travel/x86_64"
