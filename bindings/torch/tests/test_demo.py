"""examples/python/demo.py: which chips it takes, and what it says when there is only one. `make demo` runs the models."""

import importlib.util
import pathlib

import pytest

DEMO = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def device(name, plugin, kind):
    return {"name": name, "plugin": plugin, "class": kind}


def test_choose_takes_one_chip_of_each_maker_the_host_first(demo):
    gpu, processor = device("opencl", "opencl", "gpu"), device("opencl:1", "opencl", "cpu_driver")
    host, mock = device("host", "host", "host"), device("chip_a", "mock", "mock")
    assert demo.choose([gpu, host, processor, mock]) == ["host", "opencl"]
    assert demo.choose([host, processor]) == ["host", "opencl:1"]
    assert demo.choose([host, mock]) == ["host"]
    assert demo.choose([mock]) == []


def test_one_chip_alone_is_explained_in_the_words_of_the_load_report(demo, capsys):
    refused = {"path": "/x/opencl.json", "id": "opencl", "status": "refused", "devices": 0, "reason": "no platform", "remedy": "install one"}
    loaded = {"path": "/x/host.json", "id": "host", "status": "loaded", "devices": 1}
    assert demo.say_what_is_missing({"load": {"plugins": [loaded, refused]}}, ["host", "opencl"]) == []
    assert demo.say_what_is_missing({"load": {"plugins": [loaded, refused]}}, ["host"]) == ["/x/opencl.json: no platform; install one"]
    assert "Only host was found" in capsys.readouterr().out
    empty = {**refused, "status": "loaded"}
    assert demo.say_what_is_missing({"load": {"plugins": [loaded, empty]}}, ["host"]) == ["/x/opencl.json: it found no chip"]
    assert "not installed" in demo.say_what_is_missing({"load": {"plugins": [loaded]}}, ["host"])[0]
