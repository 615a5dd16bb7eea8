"""Finds the built adapter and plugins, and offers what the tests share."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
LIBRARIES = {"host": "libflhal_plugin_host.so", "ram": "libflhal_plugin_ram.so", "mock": "libflhal_plugin_mock.so",
             "opencl": "libflhal_plugin_opencl.so"}


def builds():
    named = os.environ.get("FLHAL_TEST_BUILD")
    if named:
        return [pathlib.Path(named)]
    found = [p.parent.parent for p in REPOSITORY.glob("build*/**/torch_fl/_C_*.so")]
    return sorted(found, key=lambda p: -max(f.stat().st_mtime for f in (p / "torch_fl").glob("_C_*.so")))


def package_root():
    """The folder that holds a runnable torch_fl, or None when an installed one is to be used."""
    for build in builds():
        for root in (build, build / "torch"):
            if list((root / "torch_fl").glob("_C_*.so")):
                return root
    return None


def plugin_library(name):
    named = os.environ.get("FLHAL_TEST_PLUGIN_DIR")
    roots = [pathlib.Path(named)] if named else [b if (b / "reference_plugins").exists() else b.parent for b in builds()]
    for root in roots + list(REPOSITORY.glob("build*/*")):
        for path in sorted(root.rglob(LIBRARIES[name])):
            return path
    return None


def pytest_addoption(parser):
    parser.addoption("--plugin", default="host", choices=sorted(LIBRARIES), help="the plugin that this process sees")
    parser.addoption("--marked-only", default="", help="comma list of files: of these only the tests that stand for the plugin by name")
    parser.addoption("--part", default="0/1", help="k/n: every n-th test from the k-th on")


def environment(plugin):
    env = dict(os.environ)
    root = package_root()
    if root is not None:
        env["PYTHONPATH"] = os.pathsep.join([str(root)] + ([env["PYTHONPATH"]] if env.get("PYTHONPATH") else []))
    if plugin is not None:
        library = plugin_library(plugin)
        if library is not None:
            env["FLHAL_PLUGIN_FILES"] = str(library)
    env.setdefault("XDG_CONFIG_HOME", "/nonexistent")
    return env


def pytest_configure(config):
    config.addinivalue_line("markers", "plugins(*names): only with these plugins")
    root = package_root()
    if root is not None:
        sys.path.insert(0, str(root))
    os.environ.update(environment(config.getoption("--plugin")))


def pytest_collection_modifyitems(config, items):
    part, of = map(int, config.getoption("--part").split("/"))
    items[:] = items[part::of]
    here, few = config.getoption("--plugin"), config.getoption("--marked-only").split(",")
    markers = {item: item.get_closest_marker("plugins") for item in items if item.path.name in few}
    items[:] = [item for item in items if item not in markers or markers[item] and here in markers[item].args]


# A chip without a dtype may answer with the sentence that says so, where that dtype is needed; test_crippled_chips.py counts these.
LACKS = os.environ.get("FLHAL_TEST_LACKS")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    outcome = yield
    error = outcome.excinfo and outcome.excinfo[1]
    if LACKS and isinstance(error, TypeError) and re.match(rf"fl_device:\d \(chip_[ab]\) cannot hold {LACKS}: the chip has no such type; ", str(error)):
        outcome.force_exception(pytest.skip.Exception(f"the chip has no {LACKS}"))


@pytest.fixture(scope="session")
def plugin(request):
    return request.config.getoption("--plugin")


@pytest.fixture(autouse=True)
def _only_some_plugins(request):
    marker = request.node.get_closest_marker("plugins")
    if marker and request.config.getoption("--plugin") not in marker.args:
        pytest.skip(f"stands for the plugins {', '.join(marker.args)} only")


@pytest.fixture(autouse=True)
def _no_failed_stream_is_left_behind(request):
    """On a chip with queues a refusal of a kernel stays with its stream until somebody clears it: not with the next test."""
    yield
    if "dev" in request.fixturenames or hasattr(request.module, "DEVICE"):
        import torch_fl

        torch_fl.clear_error()


@pytest.fixture(scope="session")
def dev():
    import torch
    import torch_fl

    assert torch_fl.is_available(), torch_fl._C.report("load")
    return torch.device("fl_device", 0)


class Result:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def ok(self):
        assert self.code == 0, f"exit code {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"
        return self


@pytest.fixture
def fresh(plugin, tmp_path):
    """fresh(script, plugin=..., env={...}, timeout=60): a script in a new interpreter."""

    def run(script, plugin=plugin, env=(), timeout=90, python=()):
        full = environment(plugin)
        full.update(env)
        path = tmp_path / f"script_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(textwrap.dedent(script))
        try:
            done = subprocess.run(
                [sys.executable, *python, str(path)], env=full, capture_output=True, text=True, timeout=timeout, cwd=tmp_path
            )
        except subprocess.TimeoutExpired as late:
            pytest.fail(f"no end after {timeout} s\n--- stdout\n{late.stdout}\n--- stderr\n{late.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def site(tmp_path):
    """A folder like site-packages after the wheel's installation: command line, autoload entry point, adapter, libflhal."""
    root, built = tmp_path / "site", package_root()
    sources = REPOSITORY / "bindings" / "torch"
    for name in ("torch_fl_cli", "torch_fl_autoload"):
        shutil.copytree(sources / name, root / name)
    shutil.copytree(sources / "torch_fl", root / "torch_fl")
    (root / "torch_fl" / "lib").mkdir()
    if built is not None:
        (extension,) = (built / "torch_fl").glob("_C_*.so")
        (library,) = (p for p in [*built.parents[1].glob("src/libflhal.so.1"), *built.glob("torch_fl/lib/libflhal.so.1")][:1])
    else:
        import torch_fl

        (extension,) = pathlib.Path(torch_fl.__file__).parent.glob("_C_*.so")
        library = extension.parent / "lib" / "libflhal.so.1"
    (root / "torch_fl" / extension.name).symlink_to(extension)
    (root / "torch_fl" / "lib" / "libflhal.so.1").symlink_to(library)
    info = root / "torch_fl-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch-fl\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[torch.backends]\ntorch_fl = torch_fl_autoload:autoload\n")
    return root


@pytest.fixture
def report(dev):
    """The fallback report, empty at the start of the test."""
    import torch_fl

    torch_fl.reset()
    return torch_fl.get_fallback_report
