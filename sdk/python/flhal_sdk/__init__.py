"""The SDK for chip makers, as a Python package: where its files lie, and the programs it brings."""

import os
import pathlib
import sys

PREFIX = pathlib.Path(__file__).resolve().parent


def cmake_dir() -> str:
    """The folder for CMAKE_PREFIX_PATH; find_package(flhal-sdk) then works."""
    return str(PREFIX)


def flhal_info() -> None:
    """Runs flhal-info: plugins, devices, what did not load and why."""
    program = PREFIX / "bin" / "flhal-info"
    os.execv(program, [str(program), *sys.argv[1:]])
