"""The framework integrator's first hour: every command of docs/start/framework_integrator.md, from the wheels, in an empty folder."""

import pytest
from conftest import REPOSITORY
from pages import follow, shell, shell_variables

pytestmark = pytest.mark.plugins("host")   # it installs its own; one run is enough


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return shell_variables(tmp_path_factory.mktemp("integrator"), "torch-fl", "torch-fl-plugin-host", "torch-fl-plugin-mock")


def test_each_command_of_the_page_does_what_the_page_says(environment, tmp_path):
    ran = follow(REPOSITORY / "docs" / "start" / "framework_integrator.md", tmp_path, environment)
    assert "build/c/own_kernel" in ran and len(ran) > 10


def test_examples_work_on_chips_without_a_compiler_or_with_opencl(environment, tmp_path):
    """What the page does not show: a chip that takes no code at all, and one that compiles OpenCL C."""
    from conftest import plugin_library

    built = shell("cmake -S $(torch-fl config --examples-dir)/c -B build -DCMAKE_PREFIX_PATH=$(torch-fl config --prefix) && cmake --build build", tmp_path, environment)
    assert built.returncode == 0, built.stdout
    for plugin, kernel in (("ram", 'takes no code in a dialect written here (it takes "")'), ("opencl", "y[999] = 500.5, by opencl-c-1.2")):
        seen = {**environment, "FLHAL_PLUGIN_FILES": str(plugin_library(plugin))}
        assert kernel in shell("build/own_kernel", tmp_path, seen).stdout
        assert ": sum 103807200, " in shell("build/streams", tmp_path, seen).stdout
        assert ": 3 became " in shell("build/two_chips", tmp_path, seen).stdout
