"""Chips that lack something: every operator gives the CPU's answer there, or the sentence that names the missing type."""

import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree as xml

import pytest

pytestmark = pytest.mark.plugins("mock")
HERE = pathlib.Path(__file__).parent
FULL = os.environ.get("FLHAL_TEST_FULL") == "1"
# What the mock is told, and the type that it cannot hold then.
CHIPS = {
    "holds no float64": ("no_dtype=float64", "Double"),
    "holds no int64": ("no_dtype=int64", "Long"),
    "computes neither float64 nor int64": ("no_fp64,no_int64", None),
    "has 1 MiB": ("memory=1MiB", None),
    "has no queues and no events": ("no_streams=1", None),
    "runs nothing": ("no_kernels=1,no_ops=1", None),
    "has no addresses": ("addresses=none,no_host_access=1", None),
}


@pytest.mark.parametrize("chip", CHIPS)
def test_every_operator_on_a_chip_that(chip, tmp_path):
    script, lacks = CHIPS[chip]
    report = tmp_path / "report.xml"
    part = "0/1" if FULL else f"{list(CHIPS).index(chip)}/6"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--plugin", "mock", f"--part={part}", f"--junitxml={report}"]
    # The rows of promotion meet every type in one test: they say little where one of them is refused.
    files = ["test_ops_rows.py"] + ([] if lacks else ["test_ops_types.py"])
    done = subprocess.run(command + [str(HERE / name) for name in files], env={**os.environ, "FLHAL_MOCK": script, "FLHAL_TEST_LACKS": lacks or ""},
                          capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout[-8000:]
    cases = list(xml.parse(report).getroot().iter("testcase"))
    skips = [(case.get("name"), case.find("skipped").get("message")) for case in cases if case.find("skipped") is not None]
    refused = [name for name, reason in skips if reason == f"the chip has no {lacks}"]
    passed = len(cases) - len(skips)
    print(f"{passed} passed, {len(refused)} refused for {lacks}: {refused}")
    assert passed > (1200 if FULL else 200)
    assert bool(refused) == bool(lacks) and len(refused) < 0.4 * len(cases)
    # Who needs no such type is served: an operator that works element by element only refuses the type itself.
    own = {"Double": "[float64-", "Long": "[int64-"}.get(lacks, "none")
    assert not [name for name in refused if name.startswith("test_pointwise") and own not in name], refused
