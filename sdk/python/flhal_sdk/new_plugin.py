"""flhal-new-plugin: writes a folder with a plugin that builds and passes, to be changed into one for a real chip.

The templates are plugins themselves (they are built and tested as `ram`, `ram_cpp` and their further profiles). One text serves
all profiles: what only some have stands between `#ifdef CHIP_KERNEL` or `#ifdef CHIP_ASYNC` and `#endif`, also in comments and
in README.md. Here such lines are decided, so that the folder has none of them, and the name changes.
"""

import argparse
import importlib.metadata
import pathlib
import re
import sys
import zlib

from . import TEMPLATES

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
PROFILES = {"sync": (), "kernel": ("CHIP_KERNEL",), "async": ("CHIP_KERNEL", "CHIP_ASYNC")}
ONLY_IN = {"module": "CHIP_KERNEL", "stream": "CHIP_ASYNC", "event": "CHIP_ASYNC"}   # files of further profiles
SOURCES = ("plugin", "device", "memory", *ONLY_IN)
LANGUAGES = {False: ("template", "ram"), True: ("template_cpp", "ram_cpp")}   # by --cpp: folder, name in its files


def uuid_of(name: str) -> str:
    """16 characters that two names do not share: a pretended serial number."""
    return f"{name[:7]}-{zlib.crc32(name.encode()):08x}".rjust(16, "0")


def renamed(text: str, old: str, name: str) -> str:
    text = re.sub(rf'"{old}-[a-z0-9-]+1"', f'"{uuid_of(name)}"', text)
    text = re.sub(rf"(?<![a-z0-9_]){old}(?![a-z0-9_])", name, text)
    return text.replace(f"flhal_plugin_{old}", f"flhal_plugin_{name}").replace("RAM chip", f"{name} chip")


def decided(text: str, has: tuple[str, ...]) -> str:
    """The text of one profile: lines between #ifdef CHIP_... and #endif stay or go, every other # line stays."""
    lines, open_blocks = [], []   # of each #if that is open: None when it is C's own, else whether its lines stay
    for line in text.splitlines(keepends=True):
        if found := re.fullmatch(r"#if(n?)def (CHIP_(?:KERNEL|ASYNC))\n", line):
            open_blocks.append((found[2] in has) != bool(found[1]))
            continue
        if re.match(r"#\s*if", line):
            open_blocks.append(None)
        elif re.match(r"#\s*endif", line) and open_blocks.pop() is not None:
            continue
        if False not in open_blocks:
            lines.append(line)
    return "".join(lines)


def with_sources(cmake: str, profile: str, ending: str) -> str:
    """CMakeLists.txt with the profile's files, and threads where it starts some."""
    files = " ".join(name + ending for name in SOURCES if name not in ONLY_IN or ONLY_IN[name] in PROFILES[profile])
    cmake = re.sub(r"SOURCES .* PROFILE sync", f"SOURCES {files} PROFILE {profile}", cmake)
    if profile == "async":
        cmake += "find_package(Threads REQUIRED)\n"
        cmake += re.sub(r"(?s).*flhal_add_plugin\((\w+) .*", r"target_link_libraries(flhal_plugin_\1 PRIVATE Threads::Threads)\n", cmake)
    return cmake


def sdk_version() -> str:
    return importlib.metadata.version("flhal-sdk")


def write_template(folder: pathlib.Path, name: str, cpp: bool, profile: str) -> list[pathlib.Path]:
    template, old = LANGUAGES[cpp]
    has = PROFILES[profile]
    folder.mkdir()
    written = []
    for source in sorted((TEMPLATES / template).iterdir()):
        if source.stem in ONLY_IN and ONLY_IN[source.stem] not in has:
            continue
        text = source.read_text()
        text = with_sources(text, profile, ".cc" if cpp else ".c") if source.name == "CMakeLists.txt" else decided(text, has)
        target = folder / source.name
        target.write_text(renamed(text, old, name))
        written.append(target)
    return written


def write_wheel(folder: pathlib.Path, name: str) -> pathlib.Path:
    """pyproject.toml, which turns the folder into the wheel torch-fl-plugin-<name>."""
    text = renamed((TEMPLATES / "template_wheel" / "pyproject.toml").read_text(), "ram", name)
    target = folder / "pyproject.toml"
    target.write_text(text.replace(">= 0.0.0", f">= {sdk_version()}"))
    return target


def refuse(text: str) -> None:
    sys.exit(f"flhal-new-plugin: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="flhal-new-plugin", description="Writes the folder of a new plugin.")
    parser.add_argument("name", help="of the chip and the plugin: a letter, then letters, digits and _; users type it")
    parser.add_argument("--profile", default="sync",
                        help="the slots it has: sync, the ten that suffice; kernel, four more: its chip computes; async, also streams and events")
    parser.add_argument("--cpp", action="store_true", help="in C++20 instead of C99")
    parser.add_argument("--wheel", action="store_true",
                        help="also pyproject.toml, for `pip wheel`; in a folder that exists, only that")
    arguments = parser.parse_args()
    name, folder = arguments.name, pathlib.Path(arguments.name)
    if not NAME.fullmatch(name):
        refuse(f'the name "{name}" is not one; use a small letter, then at most 31 small letters, digits and _')
    if arguments.profile not in PROFILES:
        refuse(f'--profile {arguments.profile}: there is no such profile; valid are {", ".join(PROFILES)}')
    if folder.exists() and not arguments.wheel:
        refuse(f"{folder}/ is there already; choose another name, or remove it")
    if (folder / "pyproject.toml").exists():
        refuse(f"{folder}/pyproject.toml is there already; remove it to have it written again")
    files = write_template(folder, name, arguments.cpp, arguments.profile) if not folder.exists() else []
    if arguments.wheel:
        files.append(write_wheel(folder, name))
    for file in files:
        print(f"wrote {file}, {len(file.read_text().splitlines())} lines")
