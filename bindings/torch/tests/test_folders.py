"""Folders that cannot be written: a full disk, a foreign owner, no permission. What a user reads, and that all else works.

Three files of ours lie in a user's folders: the choice of `torch-fl activate`, the answers of plugin probes, compiled kernels.
Permissions mean nothing to root, so those tests drop root in the child: it runs as another user, in folders it may or may not use.
"""

import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tempfile

import pytest

from conftest import REPOSITORY, environment, package_root, plugin_library

ORDINARY = 65534                       # nobody, on every Linux
CHIP = {"mock": "chip_b", "host": "host", "ram": "ram"}


class Place:
    """A home below /tmp that an ordinary user can enter (pytest's own folders are closed to others), and processes in it."""

    def __init__(self, site, plugin):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="flhal_folders_"))
        self.root.chmod(0o755)
        self.config, self.cache = self.root / "config", self.root / "cache"
        for folder in (self.config, self.cache):
            folder.mkdir()
        self.user = None
        self.drop = []                       # words before the command that give up root
        self.plugin = plugin
        self.site = self.root / "site"
        shutil.copytree(site, self.site, symlinks=True)
        self.env = {}

    def give(self, *folders, to=ORDINARY):
        for folder in folders:
            os.chown(folder, to, to)

    def run(self, *words, timeout=120):
        # Libraries that the user site or the checkout hides from others are a reason to skip, not to fail (see `ordinary`).
        env = {**environment(self.plugin), "PYTHONPATH": str(self.site), "HOME": str(self.root), "XDG_CONFIG_HOME": str(self.config),
               "XDG_CACHE_HOME": str(self.cache), "POCL_CACHE_DIR": str(self.root / "pocl"), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1", **self.env}
        done = subprocess.run([*self.drop, sys.executable, *words], env=env, capture_output=True, text=True, timeout=timeout, cwd=self.root)
        assert "Traceback" not in done.stderr and done.returncode >= 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def command(self, *words):
        return self.run("-m", "torch_fl_cli", *words)

    def script(self, text):
        return self.run("-c", text)


@pytest.fixture
def place(site, plugin):
    place = Place(site, plugin)
    yield place
    shutil.rmtree(place.root, ignore_errors=True)


DROP = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
# Where python or the checkout lie in a folder of root's, the child keeps one right: to read everything. It may write nothing more.
READ_ALL = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]


def reaches(words, place):
    needed = [sys.executable, str(plugin_library(place.plugin)), str(package_root() or place.site) + "/torch_fl/__init__.py"]
    script = f"import os, torch; [open(p).close() for p in {needed!r}]; assert os.geteuid() == {ORDINARY}"
    return subprocess.run([*words, sys.executable, "-c", script], capture_output=True, text=True, cwd="/")


@pytest.fixture
def ordinary(place):
    """The place of a process that is not root. `reads_all`: it reads what its user could not."""
    place.reads_all = False
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv (util-linux) is not there to drop root with")
        tried = reaches(DROP, place)
        place.drop = DROP
        if tried.returncode:
            place.drop, place.reads_all = DROP + READ_ALL, True
            tried = reaches(place.drop, place)
        if tried.returncode:
            pytest.skip(f"an ordinary user cannot run this python here, and may not be given the right to read: {tried.stderr.strip()[-200:]}")
        place.user = ORDINARY
        place.give(place.config, place.cache)
    return place


@pytest.fixture
def reading(ordinary):
    """For tests of what may not be read."""
    if ordinary.reads_all:
        pytest.skip("python lies where only root reads, so the child was given the right to read everything")
    return ordinary


@pytest.fixture(scope="session")
def full_disk(tmp_path_factory):
    """The library that makes one folder a full disk."""
    source, library = REPOSITORY / "tests" / "support" / "full_disk.c", pathlib.Path(tempfile.mkdtemp(prefix="flhal_full_disk_")) / "full_disk.so"
    library.parent.chmod(0o755)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler: the stand-in of a full disk cannot be built")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"], check=True)
    yield library
    shutil.rmtree(library.parent, ignore_errors=True)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


WORKS = "import torch, torch_fl; print(torch.ones(3, device='fl_device').add(1).sum().item(), torch_fl.current_device())"


# -- the choice of `torch-fl activate` -----------------------------------------------------------------------------------


def kept(place, name):
    folder = place.config / "flhal"
    folder.mkdir(exist_ok=True)
    (folder / "device.json").write_text(json.dumps({"name": name, "uuid": ""}))
    return folder


def test_activate_on_a_full_disk_says_so_and_leaves_the_earlier_choice(place, plugin, full_disk):
    folder = kept(place, "an_earlier_choice")
    place.env = {"LD_PRELOAD": str(full_disk), "FULL_DISK": str(place.config)}
    done = place.command("activate", "--device", CHIP[plugin])
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"torch-fl: the choice cannot be kept in {folder}/device.json: No space left on device; ")
    assert "free space there, or set XDG_CONFIG_HOME to a folder of your own, or TORCH_FL_DEVICE" in done.stderr
    assert files(folder) == ["device.json"] and "an_earlier_choice" in (folder / "device.json").read_text()
    told = place.script(
        f"import torch, torch_fl\ntry: torch_fl.activate({CHIP[plugin]!r}, keep=True)\nexcept OSError as error: print(error)\n"
        f"assert str(torch_fl.current_device()) == {CHIP[plugin]!r} and torch.ones(1, device='fl_device').item() == 1"
    )
    assert f"torch_fl.activate: {CHIP[plugin]} is the default of this process, but the choice cannot be kept" in told.stdout
    assert "No space left on device" in told.stdout and files(folder) == ["device.json"]


@pytest.mark.parametrize("how", ["of another owner", "without the right to write"])
def test_activate_in_a_folder_that_may_not_be_written(ordinary, plugin, how):
    folder = kept(ordinary, "an_earlier_choice")             # made by this process: root's, when this is root
    if how == "of another owner" and ordinary.user is None:
        pytest.skip("only root can make a folder of another user")
    if how == "without the right to write":
        if ordinary.user is not None:
            ordinary.give(folder, folder / "device.json")
        folder.chmod(0o555)
    done = ordinary.command("activate", "--device", CHIP[plugin])
    assert done.returncode == 2 and done.stdout == ""
    assert f"the choice cannot be kept in {folder}/device.json: Permission denied; make that folder writable" in done.stderr
    assert files(folder) == ["device.json"]
    cleared = ordinary.command("activate", "--clear")
    assert cleared.returncode == 2 and f"the choice in {folder}/device.json cannot be removed: Permission denied" in cleared.stderr
    assert "TORCH_FL_DEVICE" in cleared.stderr
    assert ordinary.script(WORKS).stdout.split()[0] == "6.0"
    folder.chmod(0o755)


def test_a_choice_that_may_not_be_read_counts_as_none(reading, plugin):
    folder = kept(reading, CHIP[plugin])
    (folder / "device.json").chmod(0)
    done = reading.command("scan")
    assert done.returncode == 0 and "the first of class" in done.stdout
    assert reading.script(WORKS).returncode == 0


# -- answers of plugin probes ----------------------------------------------------------------------------------------------


def scan_says(place, *parts):
    done = place.command("scan")
    assert done.returncode == 0 and done.stdout.startswith("Detected devices:\n[0] "), done.stdout + done.stderr
    for part in parts:
        assert part in done.stdout, done.stdout
    assert place.script(WORKS).stdout.split()[0] == "6.0"


def test_a_full_disk_below_the_cache_costs_speed_and_gives_a_line(place, full_disk):
    place.env = {"LD_PRELOAD": str(full_disk), "FULL_DISK": str(place.cache)}
    scan_says(place, "note: probe cache: answers of plugin probes are not kept, so each process asks again: the folder ", "cannot be made: No space left on device",
              "remedy: make it, or set XDG_CACHE_HOME to a folder of your own")
    (place.cache / "flhal").mkdir(mode=0o700)
    scan_says(place, "/flhal/probe.json cannot be written: No space left on device", "remedy: free space there, or set XDG_CACHE_HOME")
    assert files(place.cache) == []


def test_a_cache_folder_of_another_owner_is_not_trusted(ordinary):
    if ordinary.user is None:
        pytest.skip("only root can make a folder of another user")
    (ordinary.cache / "flhal").mkdir()                        # root's
    scan_says(ordinary, f"{ordinary.cache}/flhal belongs to user 0 and this process runs as user {ORDINARY}", "remedy: remove ", "or set XDG_CACHE_HOME")
    assert files(ordinary.cache) == []


def test_a_cache_folder_without_the_right_to_write(ordinary):
    folder = ordinary.cache / "flhal"
    folder.mkdir()
    if ordinary.user is not None:
        ordinary.give(folder)
    folder.chmod(0o500)
    scan_says(ordinary, "/flhal/probe.json cannot be written: Permission denied", "remedy: ")
    folder.chmod(0o700)
    folder.rmdir()
    ordinary.cache.chmod(0o555)
    scan_says(ordinary, "the folder ", "/flhal cannot be made: Permission denied", "remedy: make it, or set XDG_CACHE_HOME")
    ordinary.cache.chmod(0o755)


def test_a_home_that_is_read_only_or_not_there(ordinary, tmp_path):
    closed = ordinary.root / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    for home in (str(closed), "/nonexistent", "", "relative", "/dev/null", "/proc"):
        ordinary.env = {"HOME": home, "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
        assert ordinary.script(WORKS).stdout.split()[0] == "6.0"
        done = ordinary.command("activate", "--device", CHIP[ordinary.plugin])
        assert done.returncode == 2 and "the choice cannot be kept" in done.stderr and "TORCH_FL_DEVICE" in done.stderr, (home, done.stderr)


def test_no_temporary_folder_with_space(place, full_disk):
    scratch = place.root / "scratch"
    scratch.mkdir()
    place.env = {"LD_PRELOAD": str(full_disk), "FULL_DISK": str(scratch), "TMPDIR": str(scratch)}
    assert place.script(WORKS).stdout.split()[0] == "6.0"
    assert place.command("doctor").returncode == 0
    place.env = {"TMPDIR": "/nonexistent"}
    assert place.script(WORKS).stdout.split()[0] == "6.0"


# -- compiled kernels ----------------------------------------------------------------------------------------------------

KERNELS = """
import torch, torch_fl
torch_fl.set_log_level('info')
x = torch.arange(8.0).to('fl_device')
for _ in range(2):     # a driver may compile the rest when a kernel runs first: its code is kept at the second run
    (x.exp() + x).sum(), x * 3 - 1, torch.tanh(x)
print((x.exp() + x).sum().item(), (x * 3 - 1).cpu().tolist()[2], torch.tanh(x)[1].item() > 0.7)
"""
RIGHT = str(sum(__import__("math").exp(i) + i for i in range(8)))[:6]


def compiles(place):
    done = place.script(KERNELS)
    assert done.returncode == 0, done.stderr
    total, second, third = done.stdout.split()
    assert total[:6] == RIGHT and second == "5.0" and third == "True"
    return [line for line in done.stderr.splitlines() if "kernel cache: " in line]


@pytest.fixture
def compiling(ordinary):
    if ordinary.plugin != "opencl":
        pytest.skip("only the OpenCL plugin's kernels are compiled and kept")
    (ordinary.root / "pocl").mkdir()
    if ordinary.user is not None:
        ordinary.give(ordinary.root / "pocl")
    if "host" not in ordinary.command("scan").stdout and "[0]" not in ordinary.command("scan").stdout:
        pytest.skip("the OpenCL plugin finds no device on this machine")
    return ordinary


@pytest.mark.plugins("opencl")
def test_kernels_are_kept_and_every_damaged_file_is_compiled_again(compiling):
    assert compiles(compiling) == []
    folder = compiling.cache / "flhal" / "kernels"
    made = files(folder)
    assert len(made) >= 3 and all(stat.S_IMODE((folder / name).stat().st_mode) == 0o600 for name in made)
    for damage in (lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b"garbage", lambda b: b + b"x",
                   lambda b: b.replace(b"flhal kernel", b"FLHAL KERNEL", 1)):
        for name in made:
            (folder / name).write_bytes(damage((folder / name).read_bytes()))
        (folder / ".add.bin.a1B2c3").write_bytes(b"half")      # what a process killed while writing leaves
        assert compiles(compiling) == []
        assert compiles(compiling) == []


@pytest.mark.plugins("opencl")
def test_kernels_on_a_full_disk(compiling, full_disk):
    (compiling.cache / "flhal" / "kernels").mkdir(parents=True, mode=0o700)
    if compiling.user is not None:
        compiling.give(compiling.cache / "flhal", compiling.cache / "flhal" / "kernels")
    compiling.env = {"LD_PRELOAD": str(full_disk), "FULL_DISK": str(compiling.cache)}
    (line,) = compiles(compiling)
    assert "cannot be written: No space left on device" in line and "set XDG_CACHE_HOME to a folder of your own" in line and "FLHAL_KERNEL_CACHE=off" in line
    assert files(compiling.cache / "flhal" / "kernels") == []   # what was asked of the driver before the disk was full is kept


@pytest.mark.plugins("opencl")
@pytest.mark.parametrize("how", ["of another owner", "writable by others", "without the right to write", "a file in its place"])
def test_kernels_in_a_folder_that_cannot_be_used(compiling, how):
    folder = compiling.cache / "flhal" / "kernels"
    folder.mkdir(parents=True)
    if how == "of another owner":
        if compiling.user is None:
            pytest.skip("only root can make a folder of another user")
        compiling.give(compiling.cache / "flhal")
        wanted = f"belongs to user 0 and this process runs as user {ORDINARY}"
    elif how == "writable by others":
        if compiling.user is not None:
            compiling.give(compiling.cache / "flhal", folder)
        folder.chmod(0o777)
        wanted = "may be written by others (mode 777)"
    elif how == "without the right to write":
        if compiling.user is not None:
            compiling.give(compiling.cache / "flhal", folder)
        folder.chmod(0o500)
        wanted = "cannot be written: Permission denied"
    else:
        folder.rmdir()
        folder.write_text("")
        if compiling.user is not None:
            compiling.give(compiling.cache / "flhal", folder)
        wanted = "is not a folder"
    (line,) = compiles(compiling)
    assert wanted in line and "set XDG_CACHE_HOME" in line


# -- plugins and manifests that may not be read --------------------------------------------------------------------------


def test_LOAD_01_a_plugin_that_may_not_be_read_is_told_with_the_command(reading, plugin):
    ordinary = reading
    folder = ordinary.root / "plugins"
    folder.mkdir()
    secret = folder / "libflhal_plugin_secret.so"
    shutil.copy(plugin_library("ram"), secret)
    secret.chmod(0)
    ordinary.env = {"FLHAL_PLUGIN_FILES": f"{secret}:{plugin_library(plugin)}"}
    who = ordinary.user if ordinary.user is not None else os.getuid()
    scan_says(ordinary, f"  {secret}\n    why: the library {secret} may not be read by user {who}", f"remedy: run: chmod a+r {secret}")
    ordinary.env = {"FLHAL_PLUGIN_FILES": str(secret)}
    told = ordinary.script("import torch, torch_fl\ntry: torch.ones(1, device='fl_device')\nexcept RuntimeError as error: print(error)")
    assert told.stdout.startswith("Device registration failed: plugin not found") and f"chmod a+r {secret}" in told.stdout
