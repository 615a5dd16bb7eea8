#!/usr/bin/env python3
"""Runs every test (C++ by ctest, Python by pytest) and closes with one line: `N passed, N failed, N skipped`.

    run_tests.py [--full] [--build build/release] [--only cpp|python]

Exit status 1 when anything failed or when no test ran. Results as JUnit files in build/reports/.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"

# What the adapter is tested on: everything on the host plugin; what the adapter's runtime does also on ten slots without
# addresses (ram), on asynchronous chips whose memory the host cannot touch (mock), and over a real driver's queues (opencl).
RUNTIME = ["test_copy.py", "test_autograd.py", "test_devices.py", "test_fallback.py", "test_random.py", "test_save.py",
           "test_loss.py", "test_field_type.py", "test_settings.py", "test_complex.py", "test_kernel_faults.py", "test_profile.py",
           "test_ops_models.py", "test_refusals.py", "test_programs.py"]
PYTHON_SUITES = [("host", [""]), ("ram", RUNTIME), ("mock", [*RUNTIME, "test_op_database.py"]),
                 ("opencl", ["test_copy.py", "test_autograd.py", "test_fallback.py", "test_kernel_faults.py",
                             "test_random.py", "test_ops_models.py"])]
PYTHON_TESTS = ROOT / "bindings" / "torch" / "tests"


def marked_files(plugin: str, paths: list[str]) -> list[str]:
    """The files beside `paths` with a test that stands for this plugin (`@pytest.mark.plugins("mock")`): no other suite runs that."""
    if paths == [""]:
        return []
    marked = re.compile(rf'mark\.plugins\([^)]*"{plugin}"')
    return sorted(path.name for path in PYTHON_TESTS.glob("test_*.py") if path.name not in paths and marked.search(path.read_text()))


def count(junit: pathlib.Path) -> tuple[int, int, int, list[str]]:
    """(passed, failed, skipped, reasons of skips) of a JUnit file; a missing file counts as one failure."""
    if not junit.exists():
        return 0, 1, 0, []
    passed = failed = skipped = 0
    reasons = []
    for case in xml.parse(junit).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
            node = case.find("skipped")
            reasons.append(f"{case.get('name')}: {node.get('message') if node is not None else 'disabled'}")
        else:
            passed += 1
    return passed, failed, skipped, reasons


def run(title: str, command: list[str], environment: dict | None = None) -> bool:
    print(f"== {title}", flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **(environment or {})}).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="also what is long")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--only", choices=["cpp", "python"])
    arguments = parser.parse_args()
    REPORTS.mkdir(parents=True, exist_ok=True)
    environment = {"FLHAL_TEST_FULL": "1" if arguments.full else "0"}

    results = []
    if arguments.only != "python":
        junit = REPORTS / "cpp.xml"
        junit.unlink(missing_ok=True)
        ok = run("C++ tests", ["ctest", "--test-dir", str(arguments.build), "--output-on-failure", "-j2",
                               "--timeout", "600", "--output-junit", str(junit)], environment)
        results.append((ok, count(junit)))
    if arguments.only != "cpp":
        environment |= {
            "FLHAL_TEST_BUILD": str(arguments.build / "bindings"),
            "FLHAL_TEST_PLUGIN_DIR": str(arguments.build / "flhal_plugins.d"),
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",  # the tests say themselves when torch_fl is imported
            "OMP_NUM_THREADS": "1",  # two test processes share two cores
        }
        for plugin, paths in PYTHON_SUITES:
            marked = marked_files(plugin, paths)
            if arguments.full and paths != [""]:
                paths = [*paths, "test_ops_view_fuzzer.py"]
            junit = REPORTS / f"python-{plugin}.xml"
            # PoCL brings a compiler; on a busy machine it is asked for its devices longer than a user would wait.
            extra = {"FLHAL_PROBE_TIMEOUT_MS": "120000"} if plugin == "opencl" else {}
            junit.unlink(missing_ok=True)
            command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "worksteal", "--timeout", "600",
                       "-p", "no:cacheprovider", f"--junitxml={junit}", f"--plugin={plugin}", f"--marked-only={','.join(marked)}"]
            ok = run(f"Python tests on the plugin {plugin}", command + [str(PYTHON_TESTS / path) for path in [*paths, *marked]],
                     environment | extra)
            results.append((ok, count(junit)))

    passed = sum(counts[0] for _, counts in results)
    failed = sum(counts[1] for _, counts in results)
    skipped = sum(counts[2] for _, counts in results)
    if failed == 0 and not all(ok for ok, _ in results):
        failed = 1  # a runner failed without a failing test: a crash, or a collection error
    for _, counts in results:
        for reason in counts[3]:
            print(f"skipped {reason}")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
