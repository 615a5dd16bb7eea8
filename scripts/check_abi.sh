#!/usr/bin/env bash
# Holds what was built against the ABI: the headers as C99, C11, C++17 and C++20 by gcc and clang, each alone and all together with
# the sizes and offsets of abi/1.0/layout.h, the SDK's C++ header as C++20; the headers against what abi/1.0 froze
# (check_frozen_abi.py); the symbols libflhal exports against abi/1.0/symbols.txt; each plugin's one symbol.
#
# Usage: check_abi.sh BUILD_FOLDER      Exit status 1 and a sentence for each fault.
# With FLHAL_ABI_GATE=whole a missing clang or abidiff is a fault, too; .ci/run asks for that.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
faults=0
fault() { echo "check_abi: $*" >&2; faults=1; }

compilers=(gcc)
for clang in clang clang-{20..14}; do
  command -v "$clang" >/dev/null && { compilers+=("$clang"); break; }
done
if [ ${#compilers[@]} -ne 2 ]; then
  [ "${FLHAL_ABI_GATE:-}" = whole ] && fault "clang is not installed"
  echo "clang is not installed: the headers were compiled by gcc only"
fi
for compiler in "${compilers[@]}"; do
  for standard in c99 c11 c++17 c++20; do
    language=${standard%%[0-9]*}
    "$compiler" -x "$language" -std="$standard" -fsyntax-only -pedantic -Wall -Wextra -Werror -Iinclude abi/1.0/layout.h 2>&1 ||
      fault "the headers do not compile as $standard by $compiler, or a size or offset differs (make gen, if that was meant)"
    for header in include/flhal/*.h; do
      printf '#include <flhal/%s>\nextern int some_declaration;\n' "$(basename "$header")" |   # C wants one
        "$compiler" -x "$language" -std="$standard" -fsyntax-only -pedantic -Wall -Wextra -Werror -Iinclude - 2>&1 ||
        fault "$header does not compile by itself as $standard by $compiler"
    done
  done
  for header in sdk/include/flhal/*.hpp; do
    echo "#include <flhal/$(basename "$header")>" |
      "$compiler" -x c++ -std=c++20 -fsyntax-only -pedantic -Wall -Wextra -Werror -Iinclude -Isdk/include - 2>&1 ||
      fault "$header does not compile as c++20 by $compiler"
  done
done

python3 scripts/check_frozen_abi.py include || fault "the headers no longer serve what was built with those of abi/1.0"
minor=$(sed -n 's/^#define FLHAL_PLUGIN_ABI_MINOR \([0-9]*\)u$/\1/p' include/flhal/plugin.h)
grep -q "set(FLHAL_PLUGIN_ABI_MINOR $minor)" sdk/cmake/flhal_add_plugin.cmake ||
  fault "sdk/cmake/flhal_add_plugin.cmake writes another minor into manifests than flhal/plugin.h has ($minor)"

exported() { nm -D --defined-only --format=just-symbols "$1" | sed 's/@.*//' | LC_ALL=C sort; }
difference=$(diff <(grep '^flhal_' abi/1.0/symbols.txt) <(exported "$build/src/libflhal.so" | grep -v '^FLHAL_')) ||
  fault "libflhal's exports differ from abi/1.0/symbols.txt (<: listed, >: exported); change the list if that was meant:"$'\n'"$difference"
plugins=("$build"/flhal_plugins.d/libflhal_plugin_*.so)
[ -e "${plugins[0]}" ] || fault "$build/flhal_plugins.d has no plugin"
for plugin in "${plugins[@]}"; do
  symbols=$(exported "$plugin" | tr '\n' ' ')
  [ "$symbols" = "flhal_plugin_v1 " ] || fault "$(basename "$plugin") exports \"${symbols% }\"; a plugin exports flhal_plugin_v1 and nothing else"
done
[ $faults -eq 0 ] && echo "headers (${compilers[*]}), symbols of libflhal and of ${#plugins[@]} plugins: as listed"
exit $faults
