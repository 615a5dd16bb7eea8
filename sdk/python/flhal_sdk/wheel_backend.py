"""The build backend of plugin folders (PEP 517): CMake builds and installs, the result becomes torch-fl-plugin-<name>.

The wheel holds what flhal_add_plugin() installs, `flhal_plugins.d/<id>.json` and the library beside it, and an entry point by
which torch_fl finds the folder. Its version is CMake's: a pyproject.toml that says another one is refused.
"""

import base64
import hashlib
import json
import pathlib
import subprocess
import sysconfig
import tempfile
import zipfile

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; pip, which calls this, brings the same parser
    from pip._vendor import tomli as tomllib

from . import PREFIX


def _run(*command: str) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout}")


def _installed(source: pathlib.Path, work: pathlib.Path) -> pathlib.Path:
    """Builds and installs into a folder; returns its flhal_plugins.d."""
    build, prefix = work / "build", work / "prefix"
    _run("cmake", "-S", str(source), "-B", str(build), f"-DCMAKE_PREFIX_PATH={PREFIX}", "-DCMAKE_BUILD_TYPE=Release")
    _run("cmake", "--build", str(build))
    _run("cmake", "--install", str(build), "--strip", "--prefix", str(prefix))
    folders = list(prefix.glob("**/flhal_plugins.d"))
    if len(folders) != 1:
        raise SystemExit(f"{source}: CMake installed {len(folders)} folders flhal_plugins.d; call flhal_add_plugin() once")
    return folders[0]


def _record(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    source = pathlib.Path.cwd()
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    with tempfile.TemporaryDirectory() as work:
        plugins = _installed(source, pathlib.Path(work))
        content = {f"flhal_plugins.d/{path.name}": path.read_bytes() for path in sorted(plugins.iterdir())}
    ids = []
    for name, data in content.items():
        if name.endswith(".json"):
            manifest = json.loads(data)
            ids.append(manifest["id"])
            if manifest["version"] != project["version"]:
                raise SystemExit(f"the plugin's version is {manifest['version']} (CMakeLists.txt) and the wheel's "
                                 f"{project['version']} (pyproject.toml); make them equal")
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    stem = f"{project['name'].replace('-', '_')}-{project['version']}"
    info = f"{stem}.dist-info"
    requires = "".join(f"Requires-Dist: {item}\n" for item in project.get("dependencies", []))
    content[f"{info}/METADATA"] = (f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
                                   f"Summary: {project.get('description', '')}\n{requires}").encode()
    content[f"{info}/WHEEL"] = ("Wheel-Version: 1.0\nGenerator: flhal_sdk\nRoot-Is-Purelib: false\n"
                                f"Tag: py3-none-{platform}\n").encode()
    content[f"{info}/entry_points.txt"] = ("[flhal.plugins]\n" + "".join(f"{id} = flhal_plugins.d\n" for id in ids)).encode()
    record = "".join(_record(name, data) for name, data in content.items()) + f"{info}/RECORD,,\n"
    content[f"{info}/RECORD"] = record.encode()
    wheel = f"{stem}-py3-none-{platform}.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return wheel


def get_requires_for_build_wheel(config_settings=None):
    return []


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("a plugin is published as wheels; its source is your repository")
