"""flhal-new-plugin: writes a folder with a plugin that builds and passes, to be changed into one for a real chip.

The templates are plugins themselves (they are built and tested as `ram` and `ram_cpp`); here only their name changes.
"""

import argparse
import importlib.metadata
import pathlib
import re
import sys
import zlib

from . import TEMPLATES

NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
LANGUAGES = {False: ("template", "ram"), True: ("template_cpp", "ram_cpp")}   # by --cpp: folder, name in its files


def uuid_of(name: str) -> str:
    """16 characters that two names do not share: a pretended serial number."""
    return f"{name[:7]}-{zlib.crc32(name.encode()):08x}".rjust(16, "0")


def renamed(text: str, old: str, name: str) -> str:
    text = re.sub(rf'"{old}-[a-z0-9-]+1"', f'"{uuid_of(name)}"', text)
    text = re.sub(rf"(?<![a-z0-9_]){old}(?![a-z0-9_])", name, text)
    return text.replace(f"flhal_plugin_{old}", f"flhal_plugin_{name}").replace("RAM chip", f"{name} chip")


def sdk_version() -> str:
    return importlib.metadata.version("flhal-sdk")


def write_template(folder: pathlib.Path, name: str, cpp: bool) -> list[pathlib.Path]:
    template, old = LANGUAGES[cpp]
    folder.mkdir()
    written = []
    for source in sorted((TEMPLATES / template).iterdir()):
        target = folder / source.name
        target.write_text(renamed(source.read_text(), old, name))
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
    parser.add_argument("--profile", default="sync", help="the slots it has; the template has sync, the ten that suffice")
    parser.add_argument("--cpp", action="store_true", help="in C++20 instead of C99")
    parser.add_argument("--wheel", action="store_true",
                        help="also pyproject.toml, for `pip wheel`; in a folder that exists, only that")
    arguments = parser.parse_args()
    name, folder = arguments.name, pathlib.Path(arguments.name)
    if not NAME.fullmatch(name):
        refuse(f'the name "{name}" is not one; use a small letter, then at most 31 small letters, digits and _')
    if arguments.profile != "sync":
        refuse(f"--profile {arguments.profile}: the template has the profile sync; begin with it, then add slots 11 to 14 "
               "(profile kernel) and 18 to 29 (profile async) as the guide says, and raise PROFILE in CMakeLists.txt")
    if folder.exists() and not arguments.wheel:
        refuse(f"{folder}/ is there already; choose another name, or remove it")
    if (folder / "pyproject.toml").exists():
        refuse(f"{folder}/pyproject.toml is there already; remove it to have it written again")
    files = write_template(folder, name, arguments.cpp) if not folder.exists() else []
    if arguments.wheel:
        files.append(write_wheel(folder, name))
    for file in files:
        print(f"wrote {file}, {len(file.read_text().splitlines())} lines")
