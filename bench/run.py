#!/usr/bin/env python3
"""Every figure the project promises, as ratios against PyTorch's CPU in the same process; written to build/reports/bench.json.

    make bench        (or: .venv/bin/python bench/run.py [--quick])

Ratios are medians of interleaved rounds; instruction counts come from callgrind. Nothing here fails a test: machines are
shared and noisy, so only the instruction counts are gated, by bench/count_instructions.sh.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"


def ratio(on_device, on_cpu, rounds: int, repeat: int) -> float:
    """Median over interleaved rounds of (time on the device) / (time on the CPU)."""
    def timed(work) -> float:
        started = time.perf_counter()
        for _ in range(repeat):
            work()
        return time.perf_counter() - started

    timed(on_device), timed(on_cpu)
    return statistics.median(timed(on_device) / timed(on_cpu) for _ in range(rounds))


def fallback_costs(quick: bool) -> list[dict]:
    """An operator that falls back on the host plugin, counted and timed, against the CPU operator."""
    import torch
    import torch_fl  # noqa: F401

    cases = [
        ("fallback, unary, n=4", torch.special.i1e, 1, 4, 1.9),
        ("fallback, binary, n=4", torch.nextafter, 2, 4, 2.5),
        ("fallback, unary, n=1M", torch.special.i1e, 1, 1 << 20, 1.05),
        ("fallback, binary, n=1M", torch.nextafter, 2, 1 << 20, 1.05),
    ]
    rows = []
    for name, op, arity, n, goal in cases:
        cpu = [torch.rand(n) for _ in range(arity)]
        chip = [x.to("fl_device") for x in cpu]
        torch_fl.reset()
        op(*chip)
        left = torch_fl.get_route_report()["routes"]["fallback"]
        value = ratio(lambda: op(*chip), lambda: op(*cpu), 5 if quick else 25, 500 if n < 1000 else 2)
        rows.append({"what": name, "ratio": round(value, 3), "goal": goal, "fell_back": bool(left)})
    return rows


def minilm(quick: bool) -> list[dict]:
    """MiniLM on one sentence of 128 tokens on the host plugin, against torch CPU eager."""
    import torch

    sys.path.insert(0, str(ROOT / "examples" / "python"))
    from minilm import encode, load

    _, cpu_model = load()
    _, chip_model = load()
    chip_model.to("fl_device")
    ids = torch.randint(1000, 20000, (1, 128), generator=torch.Generator().manual_seed(0))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    moved = {key: value.to("fl_device") for key, value in batch.items()}
    with torch.inference_mode():
        value = ratio(lambda: encode(chip_model, moved), lambda: encode(cpu_model, batch), 5 if quick else 25, 3)
    return [{"what": "MiniLM 1x128 on the host plugin", "ratio": round(value, 3), "goal": 1.0}]


def micro(quick: bool) -> list[dict]:
    """bench/torch/micro.py in its own process, so that nothing else warmed its caches."""
    target = REPORTS / "micro.json"
    command = [sys.executable, str(ROOT / "bench" / "torch" / "micro.py"), "--json", str(target)]
    subprocess.run(command + (["--rounds", "5"] if quick else []), check=True, stdout=subprocess.DEVNULL)
    ratios = json.loads(target.read_text())["ratios"]
    return [{"what": name, "ratio": row["ratio"], "goal": row.get("at_most")} for name, row in ratios.items()]


def scope(quick: bool) -> list[dict]:
    """bench/torch/scope.py in its own process: operators inside a torch_fl.device scope against outside."""
    target = REPORTS / "scope.json"
    command = [sys.executable, str(ROOT / "bench" / "torch" / "scope.py"), "--json", str(target)]
    subprocess.run(command + (["--rounds", "5"] if quick else []), check=True, stdout=subprocess.DEVNULL)
    return json.loads(target.read_text())


def opencl(quick: bool) -> list[dict]:
    """bench/opencl_bench.cc on both of PoCL's processor devices: what the HAL adds to raw calls; and from one chip to another."""
    build = ROOT / "build" / "release"
    rows = []
    for name, devices, memory, arguments in (("pthread", "pthread", "auto", []), ("basic", "basic", "auto", []),
                                             ("bounce", "pthread pthread", "buffer", ["--bounce"])):
        target = REPORTS / f"opencl_{name}.json"
        environment = {**os.environ, "POCL_DEVICES": devices, "FLHAL_OPENCL_MEMORY": memory,
                       "FLHAL_PLUGIN_FILES": str(build / "flhal_plugins.d" / "opencl.json")}
        command = [str(build / "bench" / "opencl_bench"), *arguments, "--json", str(target), "--rounds", "11" if quick else "301"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
        rows += json.loads(target.read_text())["rows"]
    return rows


def kernels(quick: bool) -> list[dict]:
    """bench/torch/kernels.py in its own process: kernels on an OpenCL chip against the host plugin's and PyTorch's CPU."""
    target = REPORTS / "kernels.json"
    command = [sys.executable, str(ROOT / "bench" / "torch" / "kernels.py"), "--json", str(target)]
    subprocess.run(command + (["--rounds", "3"] if quick else []), check=True, stdout=subprocess.DEVNULL)
    return json.loads(target.read_text())


def instructions() -> list[dict]:
    """Instruction counts by callgrind: repeatable, whatever else the machine does."""
    done = subprocess.run([str(ROOT / "bench" / "count_instructions.sh"), str(ROOT / "build" / "release")],
                          capture_output=True, text=True)
    rows = []
    for line in done.stdout.splitlines():
        parts = line.split()
        if len(parts) >= 4 and parts[2] == "limit":
            rows.append({"what": f"instructions: {parts[0]}", "count": int(parts[1]), "goal": int(parts[3])})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: to see that it runs")
    arguments = parser.parse_args()
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    REPORTS.mkdir(parents=True, exist_ok=True)
    rows = []
    for part in (micro, fallback_costs, scope, minilm, opencl, kernels):
        print(f"== {part.__name__}", flush=True)
        rows += part(arguments.quick)
    print("== instructions (callgrind)", flush=True)
    rows += instructions()
    (REPORTS / "bench.json").write_text(json.dumps({"rows": rows}, indent=1))
    for row in rows:
        value = row.get("ratio", row.get("count"))
        goal = row.get("goal")
        met = goal is None or (value >= goal if row.get("at_least") else value <= goal)
        verdict = "" if goal is None else ("ok" if met else "misses the goal")
        print(f"{row['what']:<48} {value:>8}   goal {goal if goal is not None else '-':>6}   {verdict}")
    print("written to build/reports/bench.json")


if __name__ == "__main__":
    main()
