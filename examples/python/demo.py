"""The main job, on real input: scan the chips, run MiniLM strict, then ResNet-50, and write build/reports/demo.json.

Each model runs in a process of its own, so that the strict policy of the first comes from the environment, as a user sets it.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPORTS = HERE.parent.parent / "build" / "reports"


def run(script: str, report: pathlib.Path, **environment: str) -> dict:
    """Runs one model; returns the facts it wrote. Its output is shown as it comes."""
    report.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, str(HERE / script), "--json", str(report)], env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{script} failed with exit status {done.returncode}")
    return json.loads(report.read_text())


def main() -> None:
    started = time.monotonic()
    REPORTS.mkdir(parents=True, exist_ok=True)
    scan = subprocess.run([sys.executable, "-m", "torch_fl_cli", "scan", "--json"], capture_output=True, text=True)
    subprocess.run([sys.executable, "-m", "torch_fl_cli", "scan"], check=True)
    print("\n--- MiniLM, TORCH_FL_FALLBACK_POLICY=strict: nothing may leave the chip", flush=True)
    minilm = run("minilm.py", REPORTS / "minilm.json", TORCH_FL_FALLBACK_POLICY="strict")
    print("\n--- ResNet-50: fallbacks are allowed and reported", flush=True)
    resnet = run("resnet50.py", REPORTS / "resnet50.json", TORCH_FL_FALLBACK_POLICY="auto")
    facts = {"scan": json.loads(scan.stdout), "minilm": minilm, "resnet50": resnet,
             "seconds": round(time.monotonic() - started, 1)}
    target = REPORTS / "demo.json"
    target.write_text(json.dumps(facts, indent=1))
    print(f"\nthe same facts for programs: {target.relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main()
