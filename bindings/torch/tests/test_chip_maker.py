"""The chip maker's first hour: every command of docs/start/chip_maker.md, from the wheels, in an empty folder."""

import re

import pytest
from conftest import REPOSITORY
from pages import follow, shell, shell_variables

pytestmark = pytest.mark.plugins("host")   # it brings its own plugin; one run is enough


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return shell_variables(tmp_path_factory.mktemp("maker"), "torch-fl", "flhal-sdk")


def test_each_command_of_the_page_does_what_the_page_says(environment, tmp_path):
    ran = follow(REPOSITORY / "docs" / "start" / "chip_maker.md", tmp_path, environment)
    assert "cmake -B build mychip && cmake --build build && ctest --test-dir build" in ran and len(ran) > 8
    assert (tmp_path / "report.json").exists()


def test_the_plugin_in_cpp_builds_and_passes(environment, tmp_path):
    done = shell("flhal-new-plugin other_chip --cpp && cmake -B build other_chip && cmake --build build && ctest --test-dir build && "
                 "FLHAL_PLUGIN_FILES=build flhal-info", tmp_path, environment)
    assert done.returncode == 0 and "[0] other_chip: 4GB" in done.stdout, done.stdout


STRICT_MODEL = """
import torch, torch_fl
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(4))
x, y = torch.randn(2, 3, 16, 16), torch.tensor([1, 3])
expected = torch.nn.functional.cross_entropy(model(x), y)
model.to("fl_device")
for _ in range(3):    # the batch norm forgets nothing between them: only the last one's statistics differ
    loss = torch.nn.functional.cross_entropy(model(x.to("fl_device")), y.to("fl_device"))
    loss.backward()
print(torch.allclose(loss.cpu(), expected, atol=1e-5), torch_fl.get_fallback_report()["off_chip_calls"], torch_fl.devices()[0].name)
"""


@pytest.mark.parametrize("language", ["", "--cpp"])
@pytest.mark.parametrize("profile", ["kernel", "async"])
def test_the_further_profiles_pass_and_a_model_trains_on_the_chip(environment, tmp_path, profile, language):
    (tmp_path / "model.py").write_text(STRICT_MODEL)
    made = shell(f"flhal-new-plugin chip --profile {profile} {language} && cmake -B build chip && cmake --build build", tmp_path, environment)
    assert made.returncode == 0 and "warning" not in made.stdout, made.stdout
    assert "CHIP_KERNEL" not in (text := "".join(f.read_text() for f in (tmp_path / "chip").iterdir())) and "CHIP_ASYNC" not in text
    assert max(len(f.read_text().splitlines()) for f in (tmp_path / "chip").iterdir()) < 160
    tested = shell("ctest --test-dir build --output-on-failure && cat build/Testing/Temporary/LastTest.log", tmp_path, environment)
    assert tested.returncode == 0 and re.search(rf"level +{profile}", tested.stdout), tested.stdout
    ran = shell("FLHAL_FALLBACK_POLICY=strict TORCH_FL_PLUGIN_PATH=build FLHAL_VISIBLE_DEVICES=chip python model.py", tmp_path, environment)
    assert ran.stdout.splitlines()[-1] == "True 0 chip", ran.stdout


def test_two_names_are_two_chips(environment, tmp_path):
    done = shell("flhal-new-plugin one && flhal-new-plugin two && grep -h CHIP_UUID */chip.h", tmp_path, environment)
    uuids = re.findall(r'CHIP_UUID "(.{16})"', done.stdout)
    assert len(set(uuids)) == 2, done.stdout


@pytest.mark.parametrize("command, sentence", [
    ("flhal-new-plugin My-Chip", 'the name "My-Chip" is not one'),
    ("flhal-new-plugin chip --profile fast", "there is no such profile; valid are sync, kernel, async"),
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
