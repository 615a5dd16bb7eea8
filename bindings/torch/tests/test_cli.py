"""The command `torch-fl`: scan, activate, doctor, config, as a user in a shell sees them."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import environment, plugin_library


@pytest.fixture
def command(site, tmp_path, plugin):
    def run(*words, env=()):
        full = {**environment(plugin), "PYTHONPATH": str(site), "XDG_CONFIG_HOME": str(tmp_path / "config"), "COLUMNS": "80", **dict(env)}
        done = subprocess.run([sys.executable, "-m", "torch_fl_cli", *words], env=full, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


CHIPS = {"mock": ["[0] chip_a: 16GB, compute_capability=7.5", "[1] chip_b: 24GB, compute_capability=8.0"], "ram": ["[0] ram: 4GB"], "host": ["[0] host: "]}


def test_scan_lists_the_devices(command, plugin):
    done = command("scan")
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and lines[0] == "Detected devices:" and done.stderr == ""
    *devices, default = lines[1:]
    assert [line.startswith(want) for line, want in zip(devices, CHIPS[plugin], strict=True)] == [True] * len(CHIPS[plugin])
    assert default.startswith(f"Default: {CHIPS[plugin][0].split()[1].rstrip(':')}, ")


def test_scan_then_tells_what_did_not_load_why_and_the_remedy(command, plugin, tmp_path):
    text = tmp_path / "libflhal_plugin_text.so"
    text.write_text("not a library")
    both = f"{plugin_library(plugin)}:{text}"
    done = command("scan", env={"FLHAL_PLUGIN_FILES": both})
    assert done.returncode == 0 and done.stderr == ""
    devices, not_loaded = done.stdout.split("\nNot loaded:\n")
    assert CHIPS[plugin][0] in devices
    assert re.match(rf"  {re.escape(str(text))}\n    why: .*not an ELF file.*\n    remedy: .+\n", not_loaded)
    found = json.loads(command("scan", "--json", env={"FLHAL_PLUGIN_FILES": both}).stdout)
    assert found["devices"][0]["index"] == 0 and found["load"]["plugins"][-1]["status"] == "refused"
    assert found["load"]["plugins"][-1]["path"] == str(text)


def test_scan_without_a_chip_names_the_places_and_fails(command, tmp_path):
    done = command("scan", env={"FLHAL_PLUGIN_FILES": str(tmp_path / "none")})
    assert done.returncode == 3 and done.stdout.startswith("Detected devices:\nnone\n")
    assert str(tmp_path / "none") in done.stdout and "pip install torch-fl-plugin-host" in done.stdout


@pytest.mark.plugins("host")
def test_scan_names_a_plugin_whose_driver_shows_no_chip(command, tmp_path):
    env = {"FLHAL_PLUGIN_FILES": f"{plugin_library('host')}:{plugin_library('opencl')}", "POCL_DEVICES": "none_of_these", "XDG_CACHE_HOME": str(tmp_path)}
    done = command("scan", env=env)
    assert done.returncode == 0 and "[0] host" in done.stdout and "plugin opencl works and found no chip" in done.stdout, done.stdout


@pytest.mark.plugins("mock")
def test_activate_is_kept_for_later_processes(command, fresh, tmp_path):
    done = command("activate", "--device", "chip_b")
    assert done.returncode == 0 and done.stdout.startswith("chip_b is the default device of later processes")
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    script = "import torch, torch_fl; print(torch_fl.current_device(), torch.empty(1, device='fl_device').device)"
    assert fresh(script, env=env).ok().out.split() == ["chip_b", "fl_device:1"]
    assert fresh(script, env={**env, "TORCH_FL_DEVICE": "chip_a"}).ok().out.split() == ["chip_a", "fl_device:0"]
    # The choice is a chip, not a place in the list.
    assert fresh(script, env={**env, "TORCH_FL_VISIBLE_DEVICES": "chip_b,chip_a"}).ok().out.split() == ["chip_b", "fl_device:0"]
    assert fresh(script, env={**env, "TORCH_FL_VISIBLE_DEVICES": "chip_a"}).ok().out.split() == ["chip_a", "fl_device:0"]
    assert command("activate", "--clear").returncode == 0
    assert fresh(script, env=env).ok().out.split() == ["chip_a", "fl_device:0"]


def test_activate_refuses_in_words(command, plugin, tmp_path):
    wrong = command("activate", "--device", "chip_z")
    assert wrong.returncode == 2 and "there is no device 'chip_z'; the devices are " in wrong.stderr
    assert command("activate").returncode == 2
    (tmp_path / "file").write_text("")
    name = {"mock": "chip_a"}.get(plugin, plugin)
    blocked = command("activate", "--device", name, env={"XDG_CONFIG_HOME": str(tmp_path / "file")})
    assert blocked.returncode == 2 and "the choice cannot be kept" in blocked.stderr and "TORCH_FL_DEVICE" in blocked.stderr


@pytest.mark.plugins("mock")
def test_activate_takes_the_bare_name_and_one_choice_only(command):
    assert command("activate", "chip_b").stdout.startswith("chip_b is the default device of later processes")
    assert command("scan").stdout.splitlines()[-1].startswith("Default: chip_b, kept by `torch-fl activate`")
    for words in (["chip_a", "--clear"], ["chip_a", "--device", "chip_b"], [""], ["--device", ""]):
        done = command("activate", *words)
        assert done.returncode == 2 and "say one of NAME, --device NAME and --clear" in done.stderr, words
    assert command("scan").stdout.splitlines()[-1].startswith("Default: chip_b, ")


@pytest.mark.plugins("mock")
def test_a_kept_chip_that_is_gone_is_told_by_scan_and_by_the_first_use(command, fresh, tmp_path):
    assert command("activate", "chip_b").returncode == 0
    gone = {"TORCH_FL_VISIBLE_DEVICES": "chip_a"}
    default = command("scan", env=gone).stdout.splitlines()[-1]
    assert default.startswith("Default: chip_a, ") and "chip_b, which `torch-fl activate` keeps, is not there" in default
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    script = "import torch, torch_fl; a = [torch.empty(1, device='fl_device').device for _ in range(2)]; print(a[1], torch_fl.current_device())"
    done = fresh(script, env={**env, **gone}).ok()
    assert done.out.split() == ["fl_device:0", "chip_a"]
    assert done.err.count("'chip_b', which `torch-fl activate` keeps as the default device, is not there; 'chip_a' is used") == 1, done.err
    quiet = fresh(script, env=env).ok()
    assert quiet.out.split() == ["fl_device:1", "chip_b"] and "keeps" not in quiet.err
    # The same chip under another name is the same chip: it is kept by uuid.
    kept = tmp_path / "config" / "flhal" / "device.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "name": "chip_x"}))
    assert command("scan").stdout.splitlines()[-1].startswith("Default: chip_b, kept by")
    renamed = fresh(script, env=env).ok()
    assert renamed.out.split() == ["fl_device:1", "chip_b"] and "keeps" not in renamed.err


def test_a_wrong_device_variable_is_named_in_its_error(fresh):
    done = fresh("import torch, torch_fl; torch.empty(1, device='fl_device')", env={"TORCH_FL_DEVICE": "chip_z"})
    assert "TORCH_FL_DEVICE='chip_z': " in done.err and "the devices are" in done.err, done.err


def test_doctor_shows_versions_and_that_they_meet(command, plugin):
    import torch

    done = command("doctor")
    assert done.returncode == 0, done.stdout
    for part in (torch.__version__, "torch-fl 0.1.0", "libflhal", f"plugin {plugin}", "plugin ABI 1.0 to 1.0", "everything meets"):
        assert part in " ".join(done.stdout.split()), part
    facts = json.loads(command("doctor", "--json").stdout)
    assert facts["versions"]["torch"] == torch.__version__ and all(check["ok"] for check in facts["checks"])


def test_doctor_refuses_an_adapter_for_another_torch_minor_naming_both_and_the_command(command, site):
    import torch

    (extension,) = (site / "torch_fl").glob("_C_*.so")
    extension.rename(extension.with_name("_C_2_99.so"))
    done = command("doctor")
    assert done.returncode == 1
    assert torch.__version__ in done.stdout and "torch 2.99" in done.stdout and "do: pip install 'torch==2.99.*'" in done.stdout


def test_doctor_refuses_a_plugin_of_another_abi_naming_both_and_the_command(command, plugin, tmp_path):
    manifest, library = tmp_path / "newer.json", tmp_path / "libflhal_plugin_newer.so"
    shutil.copy(plugin_library(plugin), library)
    manifest.write_text(json.dumps({"flhal_manifest": 1, "id": "newer", "library": str(library), "abi": "2.0"}))
    done = command("doctor", env={"FLHAL_PLUGIN_FILES": f"{plugin_library(plugin)}:{manifest}"})
    assert done.returncode == 1, done.stdout
    remedy = done.stdout.split("plugin newer: ")[-1]
    assert "2.x" in remedy and "1.0" in remedy and "pip install" in remedy


def test_config_names_folders_that_exist_in_the_package(command, site):
    assert command("config", "--library-dir").stdout.strip() == str(site / "torch_fl" / "lib")
    assert command("config", "--cmake-dir").stdout.strip() == str(site / "torch_fl" / "share" / "cmake" / "flhal")
    assert command("config").returncode == 2


def test_the_command_works_without_torch(command, tmp_path):
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "torch.py").write_text("raise ImportError('no torch here')")
    import conftest

    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "hide"), str(tmp_path / "site")])}
    assert command("scan", env=env).returncode == 0
    assert conftest.REPOSITORY.exists()
