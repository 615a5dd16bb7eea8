"""What an operator costs inside a torch_fl.device scope, against the same operator outside of it.

    python bench/torch/scope.py [--json FILE] [--rounds N]

Small tensors that lie on the scope's chip already, from Python, the best of interleaved rounds in one process. With one chip, that
chip's scope is measured: the cost is the same.
"""

import argparse
import json
import pathlib
import time

import torch
import torch_fl

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


def seconds(work, repeat=200):
    started = time.perf_counter()
    for _ in range(repeat):
        work()
    return time.perf_counter() - started


def measure(work, rounds):
    scope = torch_fl.device(chip)
    outside, inside = [], []
    for _ in range(rounds):
        outside.append(seconds(work))
        with scope:
            inside.append(seconds(work))
    return min(inside) / min(outside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    rows = [{"what": f"in a scope: {name}", "ratio": round(measure(work, arguments.rounds), 2), "goal": GOAL} for name, work in OPERATORS.items()]
    for row in rows:
        print(f"{row['what']:32} {row['ratio']:.2f}  (goal {row['goal']})")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
