"""The SDK for chip makers, as a Python package: where its files lie, and the programs it brings."""

import os
import pathlib
import sys

PREFIX = pathlib.Path(__file__).resolve().parent
TEMPLATES = PREFIX / "share" / "flhal-sdk"


def cmake_dir() -> str:
    """The folder for CMAKE_PREFIX_PATH, where `find_package(flhal-sdk)` does not find it by PATH."""
    return str(PREFIX)


def _become(name: str) -> None:
    program = PREFIX / "bin" / name
    os.execv(program, [str(program), *sys.argv[1:]])


def flhal_info() -> None:
    """Runs flhal-info: plugins, devices, what did not load and why."""
    _become("flhal-info")


def flhal_conformance() -> None:
    """Runs flhal-conformance: whether a plugin keeps its duties."""
    _become("flhal-conformance")


def flhal_replay() -> None:
    """Runs flhal-replay: makes the calls of a trace again, of any plugin."""
    _become("flhal-replay")
