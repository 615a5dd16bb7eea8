#!/usr/bin/env python3
"""What each further group of slots buys: one chip, this processor, behind plugins that grow from ten slots to native operators.

    OMP_NUM_THREADS=1 .venv/bin/python bench/slots.py [--build build/release] [--seconds 1.0]

Prints how many times as fast each is as ten slots, in processor time, the best of each workload; the last
column is the calling thread's own. Processor time is what a busy machine leaves alone. The plugins are
the SDK's template in its three profiles and the host plugin, first without its native operators; each runs in a process of its own.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS = [   # title, library, settings
    ("10: memory and copies", "flhal_plugins.d/libflhal_plugin_ram.so", {}),
    ("14: kernels", "flhal_profiles.d/libflhal_plugin_ram_kernel.so", {}),
    ("26: streams and events, too", "flhal_profiles.d/libflhal_plugin_ram_async.so", {}),
    ("17: kernels and host views, memory with addresses", "flhal_plugins.d/libflhal_plugin_host.so", {"FLHAL_ROUTE": "kernel"}),
    ("17 and the table `ops`", "flhal_plugins.d/libflhal_plugin_host.so", {}),
]


def workloads(torch):
    """Name to (action, wait): what is timed is the action with its wait, or the action alone."""
    device = "fl_device"
    torch.manual_seed(0)
    x, y = torch.randn(1 << 20, device=device), torch.randn(1 << 20, device=device)
    small = torch.randn(64, device=device)
    m = torch.randn(512, 512, device=device)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3), torch.nn.ReLU(),
                              torch.nn.Flatten(), torch.nn.Linear(16 * 28 * 28, 10)).to(device)
    images, labels = torch.randn(8, 3, 32, 32, device=device), torch.randint(0, 10, (8,)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def train():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(images), labels).backward()
        optimizer.step()

    @torch.no_grad()
    def queue():
        return m @ m

    return {
        "a + b, 64 numbers": (lambda: small + small, True),
        "a + b, 1M numbers": (lambda: x + y, True),
        "512x512 product": (lambda: m @ m, True),
        "a training step of a small network": (train, True),
        "x.sum().item()": (lambda: x.sum().item(), True),
        "the caller's time for a 512x512 product": (queue, False),
    }


def measure(seconds):
    import torch

    import torch_fl

    best = {}
    for name, (action, with_wait) in workloads(torch).items():
        for _ in range(2):
            action()
        torch_fl.synchronize()
        clock = time.process_time if with_wait else time.thread_time
        times, start = [], time.process_time()
        while time.process_time() - start < seconds or len(times) < 5:
            begin = clock()
            action()
            if with_wait:
                torch_fl.synchronize()
            times.append(clock() - begin)
            torch_fl.synchronize()
        best[name] = min(times)
    print(json.dumps(best))


def factor(base, now):
    value = base / now
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--seconds", type=float, default=1.0, help="per workload and plugin")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        return measure(arguments.seconds)
    rows = []
    for title, library, settings in STEPS:
        environment = {**os.environ, **settings, "FLHAL_PLUGIN_FILES": str(arguments.build.resolve() / library), "TORCH_DEVICE_BACKEND_AUTOLOAD": "0",
                       "PYTHONPATH": str(arguments.build.resolve() / "bindings" / "torch")}
        done = subprocess.run([sys.executable, __file__, "--measure", f"--seconds={arguments.seconds}"], env=environment, stdout=subprocess.PIPE, text=True, check=True)
        rows.append((title, json.loads(done.stdout.splitlines()[-1])))
    names, base = list(rows[0][1]), rows[0][1]
    print(f"| slots | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    print(f"| {rows[0][0]} | {' | '.join(f'{base[name] * 1e6:.0f} us' for name in names)} |")
    for title, best in rows[1:]:
        print(f"| {title} | {' | '.join(factor(base[name], best[name]) for name in names)} |")


if __name__ == "__main__":
    main()
