#!/usr/bin/env python3
"""Writes what the public headers say as an ABI description of libabigail (abidw), for abidiff.

Usage: describe_abi.py INCLUDE_FOLDER OUT.abi
       describe_abi.py INCLUDE_FOLDER OUT.so      the library alone, with libflhal's name and versions: to link against

A library is made from the headers alone: each exported function with an empty body, and for each struct a function that takes
it, so that the vendor's tables and what hangs on them are in it too. The built libflhal would not do: it has no types in its
debug information, and no vendor struct in its exports. Its functions cannot differ from the headers: src/api includes them,
and the symbol list catches one that is missing (docs/why/abi.md).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from gen_layout import structs


def source(include: pathlib.Path) -> str:
    headers = sorted(include.glob("flhal/*.h"))
    text = "".join(f"#include <flhal/{h.name}>\n" for h in headers)
    for header in headers:
        plain = re.sub(r"//[^\n]*|/\*.*?\*/", "", header.read_text(), flags=re.S)
        for declaration in re.findall(r"FLHAL_API\s+([^;{}#]+);", plain):
            text += f"FLHAL_API {' '.join(declaration.split())} {{ __builtin_trap(); }}\n"
    text += "flhal_status flhal_plugin_v1(const flhal_host_v1* host, flhal_plugin_info_v1* out) { __builtin_trap(); }\n"
    for name, _ in structs(include):
        text += f"FLHAL_API void flhal_struct_{name}(struct {name}* s) {{ (void)s; }}\n"
    return text


VERSIONS = pathlib.Path(__file__).resolve().parent.parent / "src" / "flhal.map"


def describe(include: str, target: str) -> None:
    library = target.endswith(".so")
    with tempfile.TemporaryDirectory() as work:
        # Relative names in a folder of its own: nothing of this machine gets into the description.
        code = os.path.join(work, "abi.c")
        pathlib.Path(code).write_text(source(pathlib.Path(include)))
        os.symlink(os.path.abspath(include), os.path.join(work, "include"))
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu2x", "-g", "-O0", "-fPIC", "-shared", "-fvisibility=hidden", "-w", "-Iinclude",
                        "-Wl,-soname,libflhal.so.1", *([f"-Wl,--version-script={VERSIONS}"] if library else []), "-o", "abi.so", "abi.c"],
                       cwd=work, check=True)
        if library:
            pathlib.Path(target).write_bytes(pathlib.Path(work, "abi.so").read_bytes())
            return
        subprocess.run(["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-architecture", "--no-elf-needed",
                        "--no-parameter-names", "--out-file", "abi.abi",
                        "abi.so"], cwd=work, check=True)
        pathlib.Path(target).write_bytes(pathlib.Path(work, "abi.abi").read_bytes())


if __name__ == "__main__":
    describe(sys.argv[1], sys.argv[2])
