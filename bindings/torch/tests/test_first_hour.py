"""examples/python/first_hour.py: what a user sees in the first hour, on two chips."""

import json
import os
import re
import subprocess
import sys

import pytest

from conftest import REPOSITORY, environment, plugin_library

pytest.importorskip("transformers")
PARTS = ["torch-fl scan", "torch_fl.activate('{first}')", "a matrix product", "ResNet-50", "BERT: which operators run how",
         "two blocks: features on {first}, the head on {second}", "torch_fl.place(classifier, '{second}')", "the fallback report", "memory",
         "settings that change while the program runs"]


def run(tmp_path, libraries, *arguments):
    facts = tmp_path / "facts.json"
    env = environment(None) | {"FLHAL_PLUGIN_FILES": ":".join(map(str, libraries))}
    done = subprocess.run([sys.executable, str(REPOSITORY / "examples/python/first_hour.py"), "--small", "--json", str(facts), *arguments],
                          env=env, capture_output=True, text=True, timeout=400, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads(facts.read_text())


def check(out, facts, first, second):
    titles = [line[4:] for line in out.splitlines() if line.startswith("=== ")]
    assert len(titles) == len(PARTS)
    for title, part in zip(titles, PARTS):
        assert title.startswith(part.format(first=first, second=second)), title
    assert facts["checks"] and all(facts["checks"].values()), facts["checks"]
    assert f"{len(facts['checks'])} of {len(facts['checks'])} checks hold" in out
    assert f"active: {first} of [" in out and f"features on {first}, logits on {second}" in out
    # The report tells both blocks and the placement, in both directions.
    ways = {(row["from"], row["to"]) for row in facts["moves"]}
    assert {(first, second), (second, first)} <= ways
    scopes = [row["scope"] for row in facts["moves"]]
    assert any(s.startswith(f"device('{second}') at ") and "first_hour.py:" in s for s in scopes)
    assert f"place(Sequential, '{second}')" in scopes
    assert sum(facts["profile"].values()) > 40 and re.search(r"^total: .*kernel|^total: .*native", out, re.M)
    assert f"with a pool of 64 MiB on {first}: " in out and "limit 64.00 MiB" in out and "requested 128.00 MiB" in out
    assert f"memory of [0] {json.loads(json.dumps(facts['devices']))[0]['name']}" in out
    for level in (0, 1, 2):
        assert f"async level {level}: largest difference" in out


@pytest.mark.plugins("mock")
def test_the_first_hour_with_two_mock_chips(tmp_path, dev):
    out, facts = run(tmp_path, [plugin_library("mock")])
    assert "[0] chip_a: 16GB, compute_capability=7.5" in out and "[1] chip_b: 24GB, compute_capability=8.0" in out
    assert facts["devices"] == [{"name": "chip_a", "memory": 16 << 30, "capability": "7.5"}, {"name": "chip_b", "memory": 24 << 30, "capability": "8.0"}]
    check(out, facts, "chip_a", "chip_b")


@pytest.mark.plugins("mock")
def test_the_first_hour_with_the_processor_and_a_mock_chip(tmp_path, dev):
    out, facts = run(tmp_path, [plugin_library("mock"), plugin_library("host")], "--first", "host", "--second", "chip_b")
    check(out, facts, "host", "chip_b")
    assert not any("chip_a" in (row["from"], row["to"]) for row in facts["moves"])


def opencl_chip(libraries):
    """The name of the first chip of the OpenCL plugin, or None."""
    script = "import torch_fl; print([d.name for d in torch_fl.devices() if d.plugin == 'opencl'][:1])"
    env = environment(None) | {"FLHAL_PLUGIN_FILES": ":".join(map(str, libraries))}
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=200)
    found = eval(done.stdout or "[]")  # noqa: S307: our own print
    return found[0] if found else None


@pytest.mark.plugins("host")
def test_the_first_hour_with_the_processor_and_an_opencl_device(tmp_path, dev):
    library = plugin_library("opencl")
    if library is None:
        pytest.skip("the OpenCL plugin was not built")
    libraries = [plugin_library("host"), library]
    chip = opencl_chip(libraries)
    if chip is None:
        pytest.skip("the OpenCL plugin finds no device on this machine")
    out, facts = run(tmp_path, libraries, "--first", "host", "--second", chip)
    check(out, facts, "host", chip)
    assert os.path.exists(library)
