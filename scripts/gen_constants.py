#!/usr/bin/env python3
"""Prints abi/1.0/constants.txt: every number that the public headers define, but for those of ops.h (abi/1.0/ops.txt has them).

Usage: gen_constants.py INCLUDE_FOLDER REASONS_DEF

Statuses, struct types, attribute kinds, dtypes, capabilities, flags, one `NAME value` each, sorted; the compiler ($CC or cc)
says what they are. Extensions (x_*.h) are not part of a version. Behind them the names of the reasons in reports, which scripts look for. A line is a promise: scripts/gen.sh
only ever adds some.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# These grow with each version, or have no value.
NOT_FROZEN = {"FLHAL_API", "FLHAL_VERSION", "FLHAL_VERSION_MAJOR", "FLHAL_VERSION_MINOR", "FLHAL_PLUGIN_ABI_MINOR"}


def main(include: str, reasons_def: str) -> None:
    names, texts = set(), set()
    headers = sorted(h for h in pathlib.Path(include).glob("flhal/*.h") if h.name != "ops.h" and not h.name.startswith("x_"))
    for header in headers:
        for name, value in re.findall(r"^#define (FLHAL_\w+)[ \t]+(\S.*)$", header.read_text(), re.M):
            if value.startswith('"'):
                texts.add(f"{name} {value.split('//')[0].strip()}")
            elif name not in NOT_FROZEN:
                names.add(name)
    program = "".join(f"#include <flhal/{h.name}>\n" for h in headers) + "#include <stdio.h>\nint main(void) {\n"
    for name in sorted(names):
        program += f'  printf("{name} %lld\\n", (long long)({name}));\n'
    program += "  return 0;\n}\n"
    with tempfile.TemporaryDirectory() as work:
        binary = os.path.join(work, "constants")
        subprocess.run([os.environ.get("CC", "cc"), "-x", "c", "-", "-I", include, "-o", binary], input=program, text=True, check=True)
        print(subprocess.run([binary], stdout=subprocess.PIPE, text=True, check=True).stdout, end="")
    for text in sorted(texts):
        print(text)
    for name in sorted(re.findall(r"^X\((\w+),", pathlib.Path(reasons_def).read_text(), re.M)):
        print(f"reason {name}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
