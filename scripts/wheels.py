#!/usr/bin/env python3
"""Makes the wheels that packaging/*.toml describes from what the build installed; see packaging/README.md.

    wheels.py [--install] [--build build/release] [--dist dist] [NAME ...]

A wheel is made again only when its content changed: its stamp is a hash over every file in it.
"""

import argparse
import hashlib
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
IGNORED = shutil.ignore_patterns("__pycache__", "*.pyc", ".pytest_cache")
NOT_IN_ENVIRONMENT = {"torch-fl-plugin-mock"}  # pretended chips belong into tests, not beside a user's real ones


def version() -> str:
    """The project's version, from CMakeLists.txt."""
    return re.search(r"project\(flhal VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text()).group(1)


def tag() -> str:
    """Every wheel carries libraries of this platform; none depends on the Python version (stable C API only)."""
    return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def stage(component: str, build: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    """Installs one component of the build into its own folder, once per run."""
    folder = work / "stage" / component
    if not folder.exists():
        command = ["cmake", "--install", str(build), "--component", component, "--prefix", str(folder)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return folder


def write_metadata(recipe: dict, folder: pathlib.Path) -> None:
    info = folder / f"{recipe['name'].replace('-', '_')}-{version()}.dist-info"
    info.mkdir()
    lines = ["Metadata-Version: 2.1", f"Name: {recipe['name']}", f"Version: {version()}",
             f"Summary: {recipe['summary']}", "License: Apache-2.0", "Requires-Python: >=3.10"]
    lines += [f"Requires-Dist: {requirement}" for requirement in recipe["requires"]]
    (info / "METADATA").write_text("\n".join(lines) + "\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: flhal\nRoot-Is-Purelib: false\n"
                                f"Tag: {tag()}\n")
    groups = dict(recipe.get("entry_points", {}))
    if "scripts" in recipe:
        groups["console_scripts"] = recipe["scripts"]
    if groups:
        text = "\n".join(f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in rows.items())
                         for group, rows in groups.items())
        (info / "entry_points.txt").write_text(text)
    shutil.copy(ROOT / "LICENSE", info / "LICENSE")


def assemble(recipe: dict, build: pathlib.Path, work: pathlib.Path) -> tuple[pathlib.Path, str]:
    """Lays the wheel's content out; returns its folder and a hash over all files."""
    folder = work / recipe["name"]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for destination, sources in recipe["content"].items():
        if destination == "@data":  # what goes to the root of the environment: PEP 427's data scheme
            destination = f"{recipe['name'].replace('-', '_')}-{version()}.data/data"
        for source in sources:
            if source.startswith("stage:"):
                component, _, rest = source[6:].partition("/")
                path = stage(component, build, work) / rest
            else:
                path = ROOT / source
            if not path.is_dir():
                raise SystemExit(f"wheels.py: {recipe['name']} needs {source}, which the build did not make ({path})")
            shutil.copytree(path, folder / destination, ignore=IGNORED, dirs_exist_ok=True)
    write_metadata(recipe, folder)
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return folder, digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--dist", type=pathlib.Path, default=ROOT / "dist")
    parser.add_argument("--install", action="store_true", help="install changed wheels into this Python's environment")
    parser.add_argument("names", nargs="*", help="only these wheels")
    arguments = parser.parse_args()

    arguments.dist.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wheels.", dir=arguments.build) as work:   # tests make wheels side by side
        make(arguments, pathlib.Path(work))


def make(arguments: argparse.Namespace, work: pathlib.Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    to_install = []
    for file in sorted((ROOT / "packaging").glob("*.toml")):
        recipe = tomllib.loads(file.read_text())
        name = recipe["name"]
        if arguments.names and name not in arguments.names:
            continue
        folder, key = assemble(recipe, arguments.build, work)
        stamp = arguments.dist / f"{name}.key"
        pattern = name.replace("-", "_") + "-[0-9]*.whl"
        if not (stamp.exists() and stamp.read_text() == key and list(arguments.dist.glob(pattern))):
            for old in arguments.dist.glob(pattern):
                old.unlink()
            subprocess.run([sys.executable, "-m", "wheel", "pack", str(folder), "-d", str(arguments.dist)], check=True,
                           stdout=subprocess.DEVNULL)
            stamp.write_text(key)
        installed = pathlib.Path(sys.prefix) / f"{name}.installed"
        if arguments.install and name not in NOT_IN_ENVIRONMENT:
            if not (installed.exists() and installed.read_text() == key):
                to_install.append((next(arguments.dist.glob(pattern)), installed, key))
    if to_install:
        subprocess.run([*pip, "install", "-q", "--no-deps", "--force-reinstall", *[str(row[0]) for row in to_install]],
                       check=True)
        for wheel, installed, key in to_install:
            installed.write_text(key)
            print(f"installed {wheel.name}")


if __name__ == "__main__":
    main()
