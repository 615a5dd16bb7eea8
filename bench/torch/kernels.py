"""The portable kernels on an OpenCL chip: against the host plugin's, and against PyTorch's CPU. Ratios, medians of interleaved rounds.

    python bench/torch/kernels.py [--json FILE] [--rounds N] [--only WORD] [--chip opencl]

Each round times a block of calls on either side, the first call of a block left out: whoever comes second would find the other's
threads still spinning. Convolutions are the shapes of ResNet-50 for one image; their last row is the geometric mean.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch  # noqa: E402
import torch_fl  # noqa: E402

F = torch.nn.functional
# channels in and out, side of the image, kernel, stride: what ResNet-50 runs, each shape once
CONVOLUTIONS = [(3, 64, 224, 7, 2), (64, 64, 56, 1, 1), (64, 64, 56, 3, 1), (64, 256, 56, 1, 1), (256, 64, 56, 1, 1), (256, 128, 56, 1, 1),
                (128, 128, 56, 3, 2), (128, 128, 28, 3, 1), (128, 512, 28, 1, 1), (512, 128, 28, 1, 1), (256, 256, 28, 3, 2),
                (256, 256, 14, 3, 1), (256, 1024, 14, 1, 1), (1024, 256, 14, 1, 1), (512, 512, 14, 3, 2), (512, 512, 7, 3, 1),
                (512, 2048, 7, 1, 1), (2048, 512, 7, 1, 1)]  # fmt: skip
MATRICES = [(128, 384, 384), (128, 384, 1536), (128, 1536, 384), (256, 256, 256), (512, 512, 512), (1024, 1024, 1024)]


def block(work, repeat):
    """Seconds per call; `work` gives the result, and a device's results are waited for."""
    def run(n):
        for _ in range(n):
            result = work()
        if result.device.type != "cpu":
            torch.accelerator.synchronize(result.device)

    run(1)
    started = time.perf_counter()
    run(repeat)
    return (time.perf_counter() - started) / repeat


def ratio(ours, theirs, rounds):
    ours(), theirs()
    repeat = max(1, min(200, int(0.01 / max(block(theirs, 1), 1e-6))))
    pairs = []
    for i in range(rounds):
        order = (ours, theirs) if i % 2 else (theirs, ours)
        times = {work: block(work, repeat) for work in order}
        pairs.append(times[ours] / times[theirs])
    return statistics.median(pairs)


def elementwise(chip, host):
    """(name, goal, work on the chip, work on the other side)"""
    for label, rows, goal in (("1M", 1 << 13, 1.2), ("16M", 1 << 17, 1.6)):
        x = torch.randn(rows, 128)
        on = {place: x.to(place) for place in (chip, host)}
        weight = {place: (torch.rand(384, device=place), torch.rand(384, device=place)) for place in on}
        wide = {place: x.reshape(-1)[: rows * 128 // 384 * 384].reshape(-1, 384) for place, x in on.items()}
        works = {
            "add": lambda p: on[p] + on[p], "exp": lambda p: on[p].exp(), "tanh": lambda p: on[p].tanh(), "gelu": lambda p: F.gelu(on[p]),
            "sigmoid": lambda p: on[p].sigmoid(), "softmax rows of 128": lambda p: on[p].softmax(-1),
            "softmax rows of 1024": lambda p: on[p].view(-1, 1024).softmax(-1), "log_softmax rows of 128": lambda p: on[p].log_softmax(-1),
            "layer_norm rows of 384": lambda p: F.layer_norm(wide[p], (384,), *weight[p]), "sum of all": lambda p: on[p].sum(),
        }  # fmt: skip
        for name, work in works.items():
            yield f"{name}, n={label}, opencl / host", goal, lambda w=work: w(chip), lambda w=work: w(host)


def products(chip):
    for m, k, n in MATRICES:
        a, b = torch.randn(m, k), torch.randn(n, k).t() if m == 128 else torch.randn(k, n)
        c, d = a.to(chip), b.to(chip)
        kind = "linear" if m == 128 else "matmul"
        yield f"{kind} {m}x{k}x{n}, opencl / torch CPU", 1.4, lambda c=c, d=d: c @ d, lambda a=a, b=b: a @ b


def convolutions(chip):
    for i, o, side, k, stride in CONVOLUTIONS:
        x, w = torch.randn(1, i, side, side), torch.randn(o, i, k, k)
        y, v = x.to(chip), w.to(chip)
        more = {"stride": stride, "padding": k // 2}
        yield (f"conv {k}x{k} {i}>{o} {side} stride {stride}, opencl / torch CPU", None, lambda y=y, v=v, m=more: F.conv2d(y, v, **m),
               lambda x=x, w=w, m=more: F.conv2d(x, w, **m))  # fmt: skip


def models(chip):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
    import copy

    import minilm
    import resnet50

    tokenizer, cpu = minilm.load()
    there = copy.deepcopy(cpu).to(chip)
    batch = dict(tokenizer(minilm.SENTENCES, padding=True, return_tensors="pt"))
    yield ("MiniLM, eight sentences, opencl / torch CPU", 1.3,
           lambda: minilm.encode(there, {key: value.to(chip) for key, value in batch.items()}).cpu(), lambda: minilm.encode(cpu, batch))  # fmt: skip
    net = resnet50.build()
    net_there = copy.deepcopy(net).to(chip)
    images = torch.randn(1, 3, 224, 224)
    yield "ResNet-50, opencl / torch CPU", 1.6, lambda: net_there(images.to(chip)).logits.cpu(), lambda: net(images).logits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", default="", help="rows whose name has this word")
    parser.add_argument("--chip", default="opencl")
    arguments = parser.parse_args()
    places = {chip.name: chip.torch_device for chip in torch_fl.devices()}
    missing = [name for name in (arguments.chip, "host") if name not in places]
    if missing:
        raise SystemExit(f"there is no chip {', '.join(missing)}; there are {', '.join(places)}")
    chip, host = places[arguments.chip], places["host"]
    rows = []

    def add(what, goal, value):
        rows.append({"what": what, "ratio": round(value, 3), "goal": goal})
        print(f"{what:60} {value:6.2f}" + (f"   goal {goal}" if goal else ""), flush=True)

    with torch.inference_mode():
        for part in (elementwise(chip, host), products(chip), convolutions(chip), models(chip)):
            for what, goal, ours, theirs in part:
                if arguments.only in what:
                    add(what, goal, ratio(ours, theirs, arguments.rounds))
    set_of = [row["ratio"] for row in rows if row["what"].startswith("conv ")]
    if len(set_of) == len(CONVOLUTIONS):
        add("ResNet-50 convolution set, geometric mean, opencl / torch CPU", 2.2, math.exp(statistics.fmean(map(math.log, set_of))))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
