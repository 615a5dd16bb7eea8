#!/usr/bin/env python3
"""Holds the headers against what abi/1.0 froze: whatever was built with those headers must go on working.

Usage: check_frozen_abi.py INCLUDE_FOLDER [FROZEN_FOLDER]      Exit status 1 and a sentence for each fault; default abi/1.0.

1. Every struct begins with the very declarations it had, and each member keeps its offset. A struct that carries its size, or
   whose array carries a stride (growable.txt), may get longer, every other one keeps its size.
2. abidiff finds nothing else between the frozen description and one of these headers: no function, parameter or type has
   changed. Without abidiff (Debian: abigail-tools) this part is left out and said so; with FLHAL_ABI_GATE=whole that is a fault.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import gen_layout
from describe_abi import describe

ROOT = pathlib.Path(__file__).resolve().parent.parent


def layout(include: pathlib.Path, work: pathlib.Path) -> dict[str, int]:
    """{"sizeof(struct flhal_attr)": 32, "offsetof(struct flhal_attr, key)": 0, ...}"""
    header = work / "layout.h"
    gen_layout.main(str(include), str(header))
    return {fact: int(value) for fact, value in re.findall(r"^FLHAL_LAYOUT\((.*) == (\d+)\);$", header.read_text(), re.M)}


def declarations(include: pathlib.Path) -> dict[str, list[str]]:
    return {name: [" ".join(d.split()) for d in body.split(";")] for name, body in gen_layout.bodies(include)}


def declaration_faults(frozen: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    faults = []
    for name, old in frozen.items():
        new = now.get(name, [])
        for i, declaration in enumerate(old[:-1]):          # the last one is what stands behind the last semicolon
            if i >= len(new) or new[i] != declaration:
                faults.append(f"struct {name} was frozen with \"{declaration}\" and has \"{new[i] if i < len(new) else ''}\" there")
                break
    return faults


def layout_faults(frozen: dict[str, int], now: dict[str, int], growable: set[str]) -> list[str]:
    faults = []
    for fact, value in frozen.items():
        name = re.search(r"struct (\w+)", fact)[1]
        if fact not in now:
            faults.append(f"{fact} was frozen as {value} and is gone; members are never removed or renamed")
        elif fact.startswith("sizeof") and name in growable:
            if now[fact] < value:
                faults.append(f"{fact} was frozen as {value} and is {now[fact]}; a struct only grows")
        elif now[fact] != value:
            remedy = "add members behind the last one" if name in growable else "this struct is frozen, write a new one"
            faults.append(f"{fact} was frozen as {value} and is {now[fact]}; {remedy}")
    return faults


def abidiff_faults(include: pathlib.Path, frozen: pathlib.Path, grown: list[str], work: pathlib.Path) -> list[str]:
    now = work / "now.abi"
    describe(str(include), str(now))
    suppressions = work / "suppressions.ini"
    # A suppressed struct is suppressed whole, so only those that did grow are; their declarations were compared already.
    suppressions.write_text("".join(f"[suppress_type]\n  type_kind = struct\n  name = {name}\n" for name in grown))
    run = subprocess.run(["abidiff", "--suppressions", suppressions, "--no-added-syms", frozen / "description.abi", now],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return [] if run.returncode == 0 else [f"abidiff (status {run.returncode}) against {frozen.name}/description.abi says:\n{run.stdout}"]


def main() -> None:
    include = pathlib.Path(sys.argv[1])
    frozen = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "abi" / "1.0"
    growable = {line for line in (frozen / "growable.txt").read_text().split("\n") if line and line[0] != "#"}
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        before, now = layout(frozen / "include", work), layout(include, work)
        faults = declaration_faults(declarations(frozen / "include"), declarations(include)) + layout_faults(before, now, growable)
        grown = sorted(name for name in growable if now.get(f"sizeof(struct {name})", 0) > before[f"sizeof(struct {name})"])
        if shutil.which("abidiff"):
            faults += abidiff_faults(include, frozen, grown, work)
        elif os.environ.get("FLHAL_ABI_GATE") == "whole":
            faults.append("abidiff is not installed (Debian: abigail-tools)")
        else:
            print("abidiff is not installed (Debian: abigail-tools): types of members and parameters were not compared")
    for fault in faults:
        print(f"check_frozen_abi: {fault}", file=sys.stderr)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
