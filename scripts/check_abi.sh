#!/usr/bin/env bash
# Holds what was built against the ABI: the headers as C99, C11, C++17 and C++20 by gcc and clang, with the sizes and offsets of
# abi/1.0/layout.h; the symbols libflhal exports against abi/1.0/symbols.txt; each plugin's one symbol.
#
# Usage: check_abi.sh BUILD_FOLDER      Exit status 1 and a sentence for each fault.
set -uo pipefail
cd "$(dirname "$0")/.."
build=$1
faults=0
fault() { echo "check_abi: $*" >&2; faults=1; }

compilers=(gcc)
for clang in clang clang-{20..14}; do
  command -v "$clang" >/dev/null && { compilers+=("$clang"); break; }
done
[ ${#compilers[@]} -eq 2 ] || echo "clang is not installed: the headers were compiled by gcc only"
for compiler in "${compilers[@]}"; do
  for standard in c99 c11 c++17 c++20; do
    language=${standard%%[0-9]*}
    "$compiler" -x "$language" -std="$standard" -fsyntax-only -pedantic -Wall -Wextra -Werror -Iinclude abi/1.0/layout.h 2>&1 ||
      fault "the headers do not compile as $standard by $compiler, or a size or offset differs (make gen, if that was meant)"
  done
done

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
