"""What an operator costs inside a torch_fl.device scope, against the same operator outside of it.

    python bench/torch/scope.py [--json FILE] [--rounds N]

Small tensors that lie on the scope's chip already, from Python, the best of interleaved rounds in one process. With one chip, that
chip's scope is measured: the cost is the same. `floor` is torch's part: the same operator under a TorchFunctionMode that does nothing
but call it.
"""

import argparse
import contextlib
import json
import pathlib
import time

import torch
import torch_fl
from torch.overrides import TorchFunctionMode

GOAL = 3.0
chip = torch_fl.devices()[0]
a, b = torch.ones(2, 3, device=chip.torch_device), torch.ones(2, 3, device=chip.torch_device)
OPERATORS = {
    "a + b": lambda: a + b,
    "torch.add(a, b)": lambda: torch.add(a, b),
    "a.mul_(b)": lambda: a.mul_(b),
    "torch.relu(a)": lambda: torch.relu(a),
    "softmax(a, -1)": lambda: torch.nn.functional.softmax(a, dim=-1),
    "a.sum(dim=0)": lambda: a.sum(dim=0),
    "a @ b.t()": lambda: a @ b.t(),
    "torch.cat([a, b])": lambda: torch.cat([a, b]),
}


class Nothing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **kwargs) if kwargs else func(*args)


def seconds(work, repeat=200):
    started = time.perf_counter()
    for _ in range(repeat):
        work()
    return time.perf_counter() - started


def measure(work, rounds):
    """(inside a scope, inside a mode that does nothing), over outside."""
    times = [[], [], []]
    for _ in range(rounds):
        for block, spent in zip((contextlib.nullcontext(), torch_fl.device(chip), Nothing()), times):
            with block:
                spent.append(seconds(work))
    outside, inside, floor = map(min, times)
    return inside / outside, floor / outside


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    rows = []
    for name, work in OPERATORS.items():
        ratio, floor = measure(work, arguments.rounds)
        rows.append({"what": f"in a scope: {name}", "ratio": round(ratio, 2), "floor": round(floor, 2), "goal": GOAL})
        print(f"{rows[-1]['what']:32} {ratio:.2f}  (goal {GOAL}; torch's mode alone {floor:.2f})")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
