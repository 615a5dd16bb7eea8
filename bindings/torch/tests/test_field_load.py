"""LOAD-01 to LOAD-06 through Python and the command line: what a user reads there is what the C library says, of the same plugins.

The kit of hostile plugins (tests/support/hostile.cc) has one library per way to be wrong; tests/loading looks at each alone in C.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import LIBRARIES, REPOSITORY, environment, package_root, plugin_library

GOOD = {"mock": ["chip_a", "chip_b"], "host": ["host"], "ram": ["ram"], "opencl": None}

# kind -> what the reason must say: one of each way in which a file, a version or an answer can be wrong
WRONG = {
    "LOAD-01": {
        "text_file": "not an ELF file", "truncated_file": "", "other_machine": "AArch64", "missing_library": "does not exist", "symlink_loop": "link",
        "broken_manifest": "line 3, column 13", "missing_dependency": "libflhal_hostile_absent.so", "undefined_symbol": "flhal_hostile_nobody_defines_this",
        "no_symbol": "does not export flhal_plugin_v1",
    },
    "LOAD-02": {"other_major": "ABI 2.x and this flhal speaks 1.x", "newer_host_needed": "1.7 to 1.9 and this flhal with 1.0", "truncated_table": "cut off: 48 bytes"},
    "LOAD-03": {
        "throws_in_init": "hostile: thrown in init", "crash_in_init": "crashed in init (signal 11", "exit_in_init": "exit(0) in init", "hang_in_init": "did not answer within",
        "error_in_init": "hostile: the driver is not running; start it", "error_without_text": "left no text", "null_handle": "gave no handle",
        "crash_in_count": "crashed in device_count", "throws_in_info": "device_info threw", "error_in_info": "hostile: the chip fell off the bus",
        "crash_in_entry": "crashed in flhal_plugin_v1", "crash_in_constructor": "crashed in opening the library", "exit_in_constructor": "exit(0) in opening the library",
        "count_minus_one": "4294967295 devices", "count_billion": "1000000000 devices", "null_names": "chip name is NULL", "bad_chip_name": "Chip A!",
        "alignment_3": "alignment is 3", "wild_dtypes": "1000000000 storage dtypes", "missing_slot": "copy is NULL", "half_streams": "all or none",
        "null_table": "no table", "tiny_table": "8 bytes", "null_id": "no plugin id", "bad_id": "../no id", "other_id": "calls itself somebody_else",
    },
}  # fmt: skip


def hostile_folder():
    named = os.environ.get("FLHAL_TEST_BUILD")
    for root in [pathlib.Path(named).parent] if named else REPOSITORY.glob("build/*"):
        if (root / "tests" / "hostile.d" / "libflhal_plugin_null_id.so").exists():
            return root / "tests" / "hostile.d"
    pytest.skip("the kit of hostile plugins was not built: cmake --build <build> --target flhal_hostile")


def make(kind, folder):
    """A hostile plugin with its manifest in `folder`: tests/support/hostile_files.cc in Python."""
    library = folder / f"libflhal_plugin_{kind}.so"
    (folder / f"{kind}.json").write_text(json.dumps({"flhal_manifest": 1, "id": kind, "library": library.name, "version": "1.0"}))
    good = plugin_library("ram").read_bytes()
    if kind == "text_file":
        library.write_text("This is a note, not a library.\n")
    elif kind == "truncated_file":
        library.write_bytes(good[: len(good) // 3])
    elif kind == "other_machine":
        library.write_bytes(good[:18] + (183).to_bytes(2, "little") + good[20:])          # e_machine: AArch64
    elif kind == "symlink_loop":
        library.symlink_to(library.name)
    elif kind == "broken_manifest":
        (folder / f"{kind}.json").write_text('{"flhal_manifest": 1,\n "id": "broken_manifest",\n "library": }\n')
    elif kind != "missing_library":
        shutil.copy(hostile_folder() / library.name, library)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    for kinds in WRONG.values():
        for kind in kinds:
            make(kind, folder)
    return folder


@pytest.fixture
def env(world, plugin, tmp_path):
    return {"FLHAL_PLUGIN_FILES": f"{world}:{plugin_library(plugin)}", "FLHAL_PROBE_TIMEOUT_MS": "4000", "XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def command(site, tmp_path, plugin):
    def run(*words, **env):
        full = {**environment(plugin), "PYTHONPATH": str(site), "COLUMNS": "80", "XDG_CONFIG_HOME": str(tmp_path / "config"), **env}
        done = subprocess.run([sys.executable, "-m", "torch_fl_cli", *words], env=full, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert "Traceback" not in done.stderr and done.returncode >= 0, done.stderr
        return done

    return run


def check_lines(case, lines, world):
    for kind, part in WRONG[case].items():
        path = str(world / f"{kind}.json")
        line = next((line for line in lines if line["path"] == path or pathlib.Path(line["path"]).name.startswith(f"libflhal_plugin_{kind}.")), None)
        assert line is not None, f"{kind} has no line"
        assert line["status"] == "refused" and part in line["reason"], (kind, line)
        assert len(line.get("remedy", "")) > 8, (kind, line)


@pytest.mark.parametrize("case", WRONG)
def test_LOAD_01_02_03_the_scan_has_a_line_for_each_and_the_good_one_works(command, world, env, case):
    done = command("scan", "--json", **env)
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)
    assert len(found["devices"]) >= 1
    check_lines(case, found["load"]["plugins"], world)
    text = command("scan", **env).stdout
    for kind, part in WRONG[case].items():
        assert re.search(rf"{kind}.*\n    why: .*{re.escape(part)}.*\n    remedy: .+", text), (kind, text)


def test_LOAD_03_python_works_beside_all_of_them_and_tells_the_same(fresh, command, world, env, plugin):
    r = fresh(
        """
        import json, torch, torch_fl
        assert torch_fl.is_available()
        x = torch.ones(4, device='fl_device')
        assert (x + x).sum().item() == 8
        print(json.dumps({'names': [str(d) for d in torch_fl.devices()], 'load': json.loads(torch_fl._C.report('load'))}))
        """,
        env=env,
    ).ok()
    said = json.loads(r.out.splitlines()[-1])
    assert GOOD[plugin] is None or said["names"] == GOOD[plugin]
    for case in WRONG:
        check_lines(case, said["load"]["plugins"], world)
    from_command = json.loads(command("scan", "--json", **env).stdout)["load"]["plugins"]
    pick = lambda lines: {line["path"]: (line["status"], re.sub(r"\d+ (ms|more s)", "", line.get("reason", "")), line.get("remedy")) for line in lines}  # noqa: E731
    mine, theirs = pick(said["load"]["plugins"]), pick(from_command)
    assert mine.keys() == theirs.keys()
    for path in mine:
        assert mine[path][0] == theirs[path][0] and mine[path][1][:60] == theirs[path][1][:60], path


def test_LOAD_01_only_wrong_ones_first_use_says_each_and_what_to_do(fresh, world, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for kind in ("text_file", "no_symbol", "crash_in_init", "missing_dependency"):
        make(kind, few)
    r = fresh(
        """
        import torch, torch_fl
        assert torch.ones(2).sum() == 2 and not torch_fl.is_available()
        for use in (lambda: torch.ones(1, device='fl_device'), lambda: torch.nn.Linear(2, 2).to('fl_device'), lambda: torch_fl.activate('chip'), torch_fl.current_device):
            try: use(); print('worked')
            except RuntimeError as error: print(str(error).replace(chr(10), ' '))
        """,
        env={"FLHAL_PLUGIN_FILES": str(few)},
    ).ok()
    lines = r.out.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert line.startswith("Device registration failed: plugin not found"), line
        for part in ("text_file", "not an ELF file", "does not export flhal_plugin_v1", "signal 11", "libflhal_hostile_absent.so", str(few)):
            assert part in line, (part, line)


def test_LOAD_04_two_plugins_with_the_same_names_inside_each_run_their_own_code(fresh, tmp_path):
    """Two copies of one library under two ids export the same symbols; each device computes, and the loaded path is shown."""
    second = tmp_path / "second"
    second.mkdir()
    shutil.copy(plugin_library("ram"), second / "libflhal_plugin_ram.so")
    r = fresh(
        """
        import json, torch, torch_fl
        load = json.loads(torch_fl._C.report('load'))['plugins']
        print([(line['status'], line['path']) for line in load])
        for d in torch_fl.devices():
            x = torch.arange(3.0).to(f'fl_device:{int(d)}'); assert (x * 2).tolist() == [0, 2, 4]
        """,
        env={"FLHAL_PLUGIN_FILES": f"{plugin_library('ram')}:{second / 'libflhal_plugin_ram.so'}:{plugin_library('mock')}"},
    ).ok()
    assert f"('loaded', '{plugin_library('ram')}')" in r.out and "duplicate" in r.out and str(second) in r.out


# -- LOAD-06: one resolver -------------------------------------------------------------------------------------------------


def flhal_info():
    root = package_root()
    found = sorted(root.parents[1].rglob("flhal-info")) if root is not None else []
    found = [p for p in found if p.is_file()] or ([pathlib.Path(shutil.which("flhal-info"))] if shutil.which("flhal-info") else [])
    return found[0] if found else None


@pytest.fixture
def everywhere(fresh, command, site, tmp_path):
    """What every entry says about the devices: the command line, Python, the C library by ctypes, and flhal-info."""

    def ask(env):
        env = {"FLHAL_PLUGIN_FILES": "", **env}
        python = fresh("import torch_fl\ntry: print(*[str(d) for d in torch_fl.devices()], torch_fl.current_device(), sep=',')\nexcept RuntimeError as e: print('!', e)", env=env).ok().out.strip()
        scanned = json.loads(command("scan", "--json", **env).stdout)
        shell = ",".join([d["name"] for d in scanned["devices"]] + ([scanned["default"]["name"]] if scanned["devices"] else []))
        library = site / "torch_fl" / "lib" / "libflhal.so.1"
        in_c = fresh(
            f"""
            import ctypes
            c = ctypes.CDLL({str(library)!r}); c.flhal_report.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]
            got = []
            fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_uint64)
            keep = fn(lambda ctx, text, n: got.append(ctypes.string_at(text, n)))
            n = c.flhal_device_count()
            c.flhal_report(b'devices', ctypes.cast(keep, ctypes.c_void_p), None)
            import json
            names = [d['name'] for d in json.loads(b''.join(got))['devices']]
            assert len(names) == n
            text = ctypes.create_string_buffer(65536); c.flhal_last_error(text, 65536, None)
            print(','.join(names) if n else '! ' + text.value.decode())
            """,
            env=env,
        ).ok().out.strip()
        info = None
        if flhal_info() is not None:
            full = {**environment(None), **env}
            done = subprocess.run([flhal_info()], env=full, capture_output=True, text=True, timeout=60)
            info = ",".join(re.findall(r"^\[\d+\] ([^:\s]+(?::\d+)?):", done.stdout, re.M))
        return python, shell, in_c, info

    return ask


LISTS = {
    "nothing set": ({}, ["chip_a", "chip_b", "ram"]),
    "filtered": ({"TORCH_FL_VISIBLE_DEVICES": "chip_b,ram"}, ["chip_b", "ram"]),
    "ordered": ({"TORCH_FL_VISIBLE_DEVICES": "ram,chip_a"}, ["ram", "chip_a"]),
    "FLHAL_ wins": ({"FLHAL_VISIBLE_DEVICES": "ram", "TORCH_FL_VISIBLE_DEVICES": "chip_a"}, ["ram"]),
    "empty is unset": ({"FLHAL_VISIBLE_DEVICES": "", "TORCH_FL_VISIBLE_DEVICES": " "}, ["chip_a", "chip_b", "ram"]),
}


@pytest.mark.parametrize("how", LISTS)
@pytest.mark.parametrize("order", [("ram", "mock"), ("mock", "ram")], ids="-".join)
def test_LOAD_06_the_same_environment_means_the_same_through_every_entry(everywhere, tmp_path, how, order):
    """Entries of the folder and of the list in both orders: ids and order are the same."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    for name in order:
        shutil.copy(plugin_library(name), folder / LIBRARIES[name])
    env, names = LISTS[how]
    for path in (str(folder), ":".join(str(folder / LIBRARIES[name]) for name in order)):
        python, shell, in_c, info = everywhere({"TORCH_FL_PLUGIN_PATH": path, **env})
        assert python == shell == ",".join([*names, names[0]]), (python, shell)
        assert in_c == ",".join(names) and info in (None, in_c)


def test_LOAD_06_a_typo_is_an_error_that_lists_the_names_through_every_entry(everywhere, command, tmp_path):
    env = {"TORCH_FL_PLUGIN_PATH": f"{plugin_library('ram')}:{plugin_library('mock')}", "TORCH_FL_VISIBLE_DEVICES": "chip_z"}
    python, shell, in_c, _ = everywhere(env)
    for said in (python, in_c):
        assert said.startswith("! ") and "there is no device 'chip_z'; the devices are chip_a, chip_b, ram" in said, said
    assert shell == ""
    text = command("scan", **{"FLHAL_PLUGIN_FILES": "", **env})
    assert text.returncode == 3 and "there is no device 'chip_z'" in text.stdout and "chip_a, chip_b, ram" in text.stdout + text.stderr


def test_LOAD_06_the_default_chip_is_the_same_in_the_shell_and_in_python(everywhere):
    both = f"{plugin_library('ram')}:{plugin_library('mock')}"
    for env, default in (({"TORCH_FL_DEVICE": "chip_b"}, "chip_b"), ({"FLHAL_DEVICE": "ram", "TORCH_FL_DEVICE": "chip_b"}, "ram"), ({"TORCH_FL_DEVICE": ""}, "chip_a")):
        python, shell, _, _ = everywhere({"TORCH_FL_PLUGIN_PATH": both, **env})
        assert python.endswith("," + default) and shell.endswith("," + default), (env, python, shell)


MISSPELT = {
    "TORCH_FL_FALLBACK_POLCY": "TORCH_FL_FALLBACK_POLICY", "FLHAL_VISIBLE_DEVICE": "FLHAL_VISIBLE_DEVICES", "TORCH_FL_MEMORY_POOLSIZE": "TORCH_FL_MEMORY_POOL_SIZE",
    "FLHAL_PLUGIN_PATHS": "FLHAL_PLUGIN_PATH", "FLHAL_ASYNC_LVEL": "FLHAL_ASYNC_LEVEL",
}  # fmt: skip


def test_LOAD_06_misspelt_names_of_variables_are_told_with_the_one_that_was_meant(command, fresh, plugin):
    values = dict.fromkeys(MISSPELT, "1")
    text = command("scan", **values).stdout
    notes = fresh("import json, torch_fl\ntorch_fl.device_count()\nprint(json.loads(torch_fl._C.report('load'))['notes'])", env=values).ok().out
    for wrong, meant in MISSPELT.items():
        for said in (text, notes):
            assert f"the environment variable {wrong} is not read by flhal" in said and f"{meant} was probably meant" in said, (wrong, said)


SELECTING = {
    "TORCH_FL_VISIBLE_DEVICES": ["", " "], "TORCH_FL_DEVICE": [""], "TORCH_FL_ROUTE": [""], "TORCH_FL_KERNEL_CACHE": [""], "TORCH_FL_PROBE_CACHE": ["", "off", "refresh"],
}  # fmt: skip


@pytest.mark.parametrize("variable", SELECTING)
def test_LOAD_06_empty_values_are_no_values(fresh, plugin, variable):
    for value in SELECTING[variable]:
        out = fresh("import torch, torch_fl; print(torch.ones(2, device='fl_device').sum().item())", env={variable: value}).out.strip()
        assert out == "2.0", (variable, value, out)


BAD = {
    "ROUTE": ("gpu", "auto, native, kernel, composite or host"), "KERNEL_SCHEDULE": ("wide", "auto, fat or thin"), "KERNEL_CACHE": ("maybe", "on or off"),
    "FLOAT64": ("float32", "refuse or demote"), "PROBE_CACHE": ("yes", "on, off or refresh"), "PROBE_TIMEOUT_MS": ("soon", "a whole number from 10 to 600000"),
    "SLOW_SLOT_S": ("-1", "a whole number of seconds, 0 for off"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("prefix", ["FLHAL_", "TORCH_FL_"])
def test_LOAD_06_a_misspelt_value_is_an_error_that_lists_the_valid_ones(fresh, command, prefix, name):
    value, valid = BAD[name]
    variable = prefix + name
    script = "import torch, torch_fl\nassert torch.ones(2).sum() == 2\ntry: torch.ones(1, device='fl_device'); print('used')\nexcept RuntimeError as e: print(e)"
    said = fresh(script, env={variable: value}).ok().out
    wanted = f"the environment variable {variable}='{value}' does not parse; {name.lower()} takes {valid}"
    assert wanted in said, said
    assert wanted in command("scan", **{variable: value}).stdout
