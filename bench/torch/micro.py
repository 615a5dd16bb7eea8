"""Small operators against torch's CPU operators in the same process: ratios, medians of interleaved rounds.

    python bench/torch/micro.py [--rounds 81] [--json FILE] [--only NAME]

The C++ cases come from micro.cc, which is built beside the results at the first run (10 to 20 s).
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import sysconfig
import time

import torch
import torch_fl  # noqa: F401

HERE = pathlib.Path(__file__).resolve().parent
DEVICE = "fl_device"
GOALS = {
    "cpp_add_4": 0.25, "cpp_add_inplace_4": 0.20, "cpp_empty_4": 0.55, "cpp_view": 0.90, "cpp_add_transposed_2x3x4x5": 0.90,
    "cpp_add_row_to_matrix": 0.90, "py_add": 0.48, "py_add_inplace": 0.45, "py_add_requires_grad": 0.80,
}


def library():
    """micro.cc as a shared library, made anew when the source or torch changed."""
    build = pathlib.Path(os.environ.get("TORCH_FL_BENCH_BUILD", HERE.parents[1] / "build" / "bench"))
    build.mkdir(parents=True, exist_ok=True)
    source = HERE / "micro.cc"
    target = build / f"libmicro_{torch.__version__.replace('+', '_')}.so"
    if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
        root = pathlib.Path(torch.__file__).parent
        subprocess.run(
            [os.environ.get("CXX", "g++"), "-std=c++20", "-O2", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}",
             f"-I{root / 'include'}", str(source), "-o", str(target), f"-L{root / 'lib'}", "-ltorch_cpu", "-lc10"],
            check=True)
    lib = ctypes.CDLL(str(target))
    lib.micro_name.restype = ctypes.c_char_p
    lib.micro_operands.restype = ctypes.c_void_p
    lib.micro_time.restype = ctypes.c_double
    lib.micro_time.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_long]
    return lib


def cpp_cases(lib):
    operands = {d: lib.micro_operands(d.encode()) for d in ("cpu", DEVICE)}
    for i in range(lib.micro_count()):
        yield lib.micro_name(i).decode(), lambda d, n, i=i: lib.micro_time(i, operands[d], n)


def timed(body, n):
    loop = range(n)
    start = time.perf_counter_ns()
    for _ in loop:
        body()
    return (time.perf_counter_ns() - start) / n


def python_cases():
    def make(requires_grad=False, sizes=(4,)):
        return {d: [torch.rand(sizes, device="cpu").to(d).requires_grad_(requires_grad) for _ in range(2)] for d in ("cpu", DEVICE)}

    plain, grad = make(), make(True)

    def add(d, n):
        a, b = plain[d]
        start = time.perf_counter_ns()
        for _ in range(n):
            a + b
        return (time.perf_counter_ns() - start) / n

    def inplace(d, n):
        a, b = plain[d]
        start = time.perf_counter_ns()
        for _ in range(n):
            a += b
        return (time.perf_counter_ns() - start) / n

    def tracked(d, n):
        a, b = grad[d]
        start = time.perf_counter_ns()
        for _ in range(n):
            a + b
        return (time.perf_counter_ns() - start) / n

    def torch_add(d, n):
        a, b = plain[d]
        return timed(lambda: torch.add(a, b), n)

    def number(d, n):
        a, _ = plain[d]
        return timed(lambda: a * 2.0, n)

    yield "py_add", add
    yield "py_add_inplace", inplace
    yield "py_add_requires_grad", tracked
    yield "py_torch_add", torch_add
    yield "py_mul_number", number


def measure(run, rounds, target_ns=5e5):
    per_call = max(run("cpu", 200), 50.0)
    run(DEVICE, 200)
    n = max(100, int(target_ns / per_call))
    pairs = [(run("cpu", n), run(DEVICE, n)) for _ in range(rounds)]
    return {
        "cpu_ns": round(statistics.median(p[0] for p in pairs), 1),
        "device_ns": round(statistics.median(p[1] for p in pairs), 1),
        "ratio": round(statistics.median(p[1] / p[0] for p in pairs), 3),
        # Of the least disturbed slices: what the ratio is when nothing else wants the processor.
        "ratio_of_best": round(min(p[1] for p in pairs) / min(p[0] for p in pairs), 3),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=81, help="slices of half a millisecond per side")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    results = {}
    for name, run in [*cpp_cases(library()), *python_cases()]:
        if options.only not in name:
            continue
        results[name] = measure(run, options.rounds) | ({"at_most": GOALS[name]} if name in GOALS else {})
        print(f"{name:30} {results[name]}", file=sys.stderr, flush=True)
    text = json.dumps({"torch": torch.__version__, "python": sysconfig.get_python_version(), "ratios": results}, indent=2)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
