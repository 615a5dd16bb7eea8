"""The chip maker's first hour: every command of docs/start/chip_maker.md, from the wheels, in an empty folder."""

import os
import re
import subprocess
import sys
import sysconfig

import pytest
from conftest import REPOSITORY, builds

pytestmark = pytest.mark.plugins("host")   # it brings its own plugin; one run is enough
PAGE = REPOSITORY / "docs" / "start" / "chip_maker.md"


def blocks(page):
    """The indented blocks of a page, without their indentation."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") for block in found]


def steps(page):
    """What a reader does, in order: ("run", command, expected lines) and ("write", file name, text)."""
    for block in blocks(page):
        if block.startswith("# ") and block.split("\n")[0].endswith(".py"):
            yield "write", block.split("\n")[0][2:], block + "\n"
        elif block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, *lines = part.strip("\n").split("\n")
                yield "run", command, lines
        else:
            raise AssertionError(f"neither commands nor a file: {block}")


def check_output(command, lines, out):
    """`...` alone stands for any lines, inside a line for any text; every other line is to come exactly and in its place."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in lines)
    assert re.fullmatch(pattern, out), f"$ {command}\nthe page says:\n" + "\n".join(lines) + f"\nthe command says:\n{out}"


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Variables of a shell with an active environment: torch, and the wheels torch-fl and flhal-sdk just made."""
    where = tmp_path_factory.mktemp("maker")
    build = builds()[0].parent
    subprocess.run([sys.executable, REPOSITORY / "scripts" / "wheels.py", "--build", build, "--dist", where / "dist", "torch-fl", "flhal-sdk"], check=True)
    subprocess.run([sys.executable, "-m", "venv", where / "env"], check=True)
    python = where / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", *sorted((where / "dist").glob("*.whl"))], check=True)
    # torch itself comes from this environment, behind what was just installed.
    (site,) = (where / "env").glob("lib/python3*/site-packages")
    (site / "torch_from_outside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "TMPDIR", "OMP_NUM_THREADS", "CCACHE_DIR")}
    return {**kept, "PATH": f"{where / 'env' / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(where / "env"), "XDG_CONFIG_HOME": "/nonexistent",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def shell(command, folder, environment):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def test_each_command_of_the_page_does_what_the_page_says(environment, tmp_path):
    ran = []
    for kind, what, content in steps(PAGE.read_text()):
        if kind == "write":
            (tmp_path / what).write_text(content)
            continue
        done = shell(what, tmp_path, environment)
        assert done.returncode == 0, f"$ {what}\nexit status {done.returncode}\n{done.stdout}"
        check_output(what, content, done.stdout)
        ran.append(what)
    assert "cmake -B build mychip && cmake --build build && ctest --test-dir build" in ran and len(ran) > 8
    assert (tmp_path / "report.json").exists()


def test_the_plugin_in_cpp_builds_and_passes(environment, tmp_path):
    done = shell("flhal-new-plugin other_chip --cpp && cmake -B build other_chip && cmake --build build && ctest --test-dir build && "
                 "FLHAL_PLUGIN_FILES=build flhal-info", tmp_path, environment)
    assert done.returncode == 0 and "[0] other_chip: 4GB" in done.stdout, done.stdout


def test_two_names_are_two_chips(environment, tmp_path):
    done = shell("flhal-new-plugin one && flhal-new-plugin two && grep -h CHIP_UUID */chip.h", tmp_path, environment)
    uuids = re.findall(r'CHIP_UUID "(.{16})"', done.stdout)
    assert len(set(uuids)) == 2, done.stdout


@pytest.mark.parametrize("command, sentence", [
    ("flhal-new-plugin My-Chip", 'the name "My-Chip" is not one'),
    ("flhal-new-plugin chip --profile async", "the template has the profile sync"),
    ("mkdir chip && flhal-new-plugin chip", "chip/ is there already"),
    ("flhal-new-plugin chip --wheel && flhal-new-plugin chip --wheel", "chip/pyproject.toml is there already"),
])
def test_flhal_new_plugin_refuses_in_words(environment, tmp_path, command, sentence):
    done = shell(command, tmp_path, environment)
    assert done.returncode != 0 and sentence in done.stdout and "Traceback" not in done.stdout, done.stdout


def test_a_plugin_that_is_wrong_fails_its_own_test_with_a_sentence(environment, tmp_path):
    shell("flhal-new-plugin chip", tmp_path, environment)
    source = tmp_path / "chip" / "memory.c"
    wrong = source.read_text().replace("src + row * copy->src_pitch, copy->bytes)", "src + row * copy->src_pitch, copy->bytes & ~3ull)")
    assert wrong != source.read_text()
    source.write_text(wrong)
    done = shell("cmake -B build chip && cmake --build build && ctest --test-dir build --output-on-failure", tmp_path, environment)
    assert done.returncode != 0 and "a slab of 3 bytes: byte 0 of 3 is 0xee" in done.stdout and "FLP-035" in done.stdout, done.stdout


def test_a_wheel_whose_version_is_not_the_plugins_is_refused(environment, tmp_path):
    shell("flhal-new-plugin chip --wheel", tmp_path, environment)
    project = tmp_path / "chip" / "pyproject.toml"
    project.write_text(project.read_text().replace('version = "0.1.0"', 'version = "9.0.0"'))
    done = shell("pip wheel --no-deps --no-build-isolation --wheel-dir dist ./chip", tmp_path, environment)
    assert done.returncode != 0 and "make them equal" in done.stdout, done.stdout
