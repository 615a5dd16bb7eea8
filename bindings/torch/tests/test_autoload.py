"""LOAD-05: whatever is broken, `import torch` works; the first use of the device says what and what to do."""

import os
import stat

import pytest

ENTRY = """
import torch
assert torch.ones(2).sum().item() == 2
x = torch.ones(2, requires_grad=True); (x * x).sum().backward()
print('torch works')
try: torch.ones(1, device='fl_device'); print('device works')
except Exception as error: print(type(error).__name__, error)
"""


@pytest.fixture
def importing(fresh, site, tmp_path):
    """Runs ENTRY in a process whose site-packages has the entry point; gives what follows 'torch works'."""

    def run(script=ENTRY, **env):
        env = {"PYTHONPATH": str(site), "TORCH_DEVICE_BACKEND_AUTOLOAD": "1", "XDG_CONFIG_HOME": str(tmp_path / "config"), **env}
        out = fresh(script, env={k: v for k, v in env.items()}).ok().out
        assert out.startswith("torch works\n") or script is not ENTRY, out
        return out.removeprefix("torch works\n").strip()

    return run


def test_LOAD_05_the_entry_point_registers_the_device(importing):
    assert importing() == "device works"
    assert importing("import torch\nimport sys; print('torch_fl' in sys.modules)") == "True"
    assert importing("import torch\nimport sys; print('torch_fl' in sys.modules)", TORCH_DEVICE_BACKEND_AUTOLOAD="0") == "False"
    assert importing("import torch_fl, torch\nprint(torch_fl.is_available())") == "True"
    assert importing("import torch, torch_fl_autoload as a\na.autoload(); a.autoload(); import torch_fl; print(torch_fl.is_available(), a.failure())") == "True None"


def test_LOAD_05_no_plugin_or_a_broken_one(importing, tmp_path):
    assert importing(FLHAL_PLUGIN_FILES=str(tmp_path / "none")).startswith("RuntimeError Device registration failed: plugin not found")
    broken = tmp_path / "libflhal_plugin_broken.so"
    broken.write_text("garbage")
    said = importing(FLHAL_PLUGIN_FILES=str(broken))
    assert said.startswith("RuntimeError Device registration failed: plugin not found") and str(broken) in said and "not an ELF file" in said


def test_LOAD_05_another_torch_minor(importing, site):
    (extension,) = (site / "torch_fl").glob("_C_*.so")
    extension.rename(extension.with_name("_C_2_99.so"))
    said = importing()
    assert "built for torch 2.99" in said and "torch 2.13" in said and "pip install 'torch==2.99.*'" in said


def test_LOAD_05_a_missing_shared_object(importing, site):
    (extension,) = (site / "torch_fl").glob("_C_*.so")
    extension.unlink()
    extension.write_bytes(b"\x7fELF but torn")
    said = importing()
    assert "does not load" in said and "pip install --force-reinstall torch-fl" in said
    extension.unlink()
    assert "holds no compiled library" in importing()


def test_LOAD_05_a_package_that_raises_anything(importing, site):
    (site / "torch_fl" / "__init__.py").write_text("raise SystemError('half installed')")
    said = importing()
    assert "half installed" in said and "torch-fl doctor" in said
    (site / "torch_fl" / "__init__.py").write_text("import sys; sys.exit(3)")
    assert "torch-fl doctor" in importing()


@pytest.mark.parametrize("text", ["{ broken", "[1, 2]", '{"name": 5}', '{"name": "gone_chip", "uuid": "x"}', "[" * 200000, "\0\xff"])
def test_LOAD_05_a_broken_choice_counts_as_none(importing, tmp_path, text):
    (tmp_path / "config" / "flhal").mkdir(parents=True)
    (tmp_path / "config" / "flhal" / "device.json").write_text(text, encoding="latin-1")
    assert importing() == "device works"


def test_LOAD_05_no_home_and_folders_that_cannot_be_written(importing, tmp_path):
    assert importing(HOME="", XDG_CONFIG_HOME="", XDG_CACHE_HOME="") == "device works"
    assert importing(HOME="relative", XDG_CONFIG_HOME="also/relative", XDG_CACHE_HOME="x") == "device works"
    (tmp_path / "file").write_text("")
    assert importing(XDG_CONFIG_HOME=str(tmp_path / "file"), XDG_CACHE_HOME=str(tmp_path / "file")) == "device works"
    closed = tmp_path / "closed"
    closed.mkdir()
    closed.chmod(stat.S_IRUSR)
    assert importing(XDG_CONFIG_HOME=str(closed), XDG_CACHE_HOME=str(closed)) == "device works"


def test_LOAD_05_a_bad_setting_is_told_at_first_use(importing):
    assert "TORCH_FL_ASYNC_LEVEL='many' does not parse; async_level takes 0, 1 or 2" in importing(TORCH_FL_ASYNC_LEVEL="many")


def test_LOAD_05_a_forked_child_imports_too(importing):
    out = importing("import os\npid = os.fork()\nimport torch\nprint(str(torch.ones(1, device='fl_device').item()) + chr(10), end='', flush=True)\nif pid: os.waitpid(pid, 0)\nelse: os._exit(0)")
    assert out.split() == ["1.0", "1.0"]
    assert os.path.exists("/proc")
