"""The main job, on real input: finds the chips, runs MiniLM and ResNet-50 wholly on each and split over two, and writes
build/reports/demo.json.

Each model runs in a process of its own, with the policy strict: nothing may leave a chip.
"""

import json
import os
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
REPORTS = HERE.parent.parent / "build" / "reports"
PROBE_LIMIT_MS = "60000"  # a driver with a compiler inside may be slow to answer on a machine that was building a moment ago


def scan() -> dict:
    done = subprocess.run([sys.executable, "-m", "torch_fl_cli", "scan", "--json"], stdout=subprocess.PIPE, text=True)
    subprocess.run([sys.executable, "-m", "torch_fl_cli", "scan"], check=True)
    return json.loads(done.stdout)


def choose(devices: list[dict]) -> list[str]:
    """The first chip of each maker that is no pretended one, two of them, the host first: it is there on every machine."""
    first = {}
    for device in devices:
        if device["class"] != "mock":
            first.setdefault(device["plugin"], device)
    chosen = sorted(first.values(), key=lambda device: device["class"] != "host")
    return [device["name"] for device in chosen[:2]]


def say_what_is_missing(found: dict, chips: list[str]) -> list[str]:
    """Why there are not two chips, in the words of the load report."""
    if len(chips) >= 2:
        return []
    reasons = [f"{plugin['path']}: {plugin['reason']}; {plugin['remedy']}" for plugin in found["load"]["plugins"] if plugin["status"] != "loaded"]
    reasons += [f"{plugin['path']}: it found no chip" for plugin in found["load"]["plugins"] if plugin["status"] == "loaded" and not plugin["devices"]]
    if not any(plugin["id"] == "opencl" for plugin in found["load"]["plugins"]):
        reasons.append("the plugin opencl is not installed; `make install` builds and installs it")
    print(f"\nOnly {', '.join(chips)} was found, so nothing is split over two chips:")
    for reason in reasons:
        print(f"  {reason}")
    return reasons


def run(script: str, chips: list[str]) -> dict:
    """Runs one model; returns the facts it wrote. Its output is shown as it comes."""
    report = REPORTS / f"{pathlib.Path(script).stem}.json"
    report.unlink(missing_ok=True)
    command = [sys.executable, str(HERE / script), "--chips", ",".join(chips), "--json", str(report)]
    done = subprocess.run(command, env={**os.environ, "TORCH_FL_FALLBACK_POLICY": "strict"})
    if done.returncode:
        raise SystemExit(f"{script} failed with exit status {done.returncode}")
    return json.loads(report.read_text())


def main() -> None:
    started = time.monotonic()
    os.environ.setdefault("FLHAL_PROBE_TIMEOUT_MS", PROBE_LIMIT_MS)
    REPORTS.mkdir(parents=True, exist_ok=True)
    found = scan()
    chips = choose(found["devices"])
    if not chips:
        raise SystemExit("no chip was found; the lines above say why")
    missing = say_what_is_missing(found, chips)
    wholly = " and ".join(chips) + (", and split over both" if len(chips) > 1 else "")
    print(f"\n--- MiniLM on {wholly}; policy strict: nothing may leave a chip", flush=True)
    minilm = run("minilm.py", chips)
    print(f"\n--- ResNet-50 on {wholly}; policy strict", flush=True)
    resnet = run("resnet50.py", chips)
    facts = {"scan": found, "chips": chips, "missing": missing, "minilm": minilm, "resnet50": resnet,
             "seconds": round(time.monotonic() - started, 1)}
    target = REPORTS / "demo.json"
    target.write_text(json.dumps(facts, indent=1))
    print(f"\n{facts['seconds']:.0f} s; the same facts for programs: {target.relative_to(HERE.parent.parent)}")


if __name__ == "__main__":
    main()
