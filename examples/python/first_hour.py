"""A user's first hour with several chips, in one run: scan, choose, compute, train over two chips, read the reports, tune.

    python examples/python/first_hour.py [--first CHIP] [--second CHIP] [--small] [--json FILE]

Without names the first two chips are taken. With the mock plugin those are chip_a and chip_b; `--first host --second opencl` takes
the processor and an OpenCL device. Needs torch_fl and transformers. Ends with status 1 when a result differs from PyTorch's CPU.
"""

import argparse
import copy
import json
import os
import pathlib
import subprocess
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import torch
import torch_fl
import transformers
from torch import nn

FACTS: dict = {"checks": {}}


def title(text: str) -> None:
    print(f"\n=== {text}", flush=True)


def agree(what: str, ours, cpu, tolerance: float) -> None:
    """Prints the largest difference from PyTorch's CPU, and remembers whether it is small."""
    difference = float((ours.detach().cpu() - cpu.detach()).abs().max())
    scale = max(1.0, float(cpu.detach().abs().max()))
    FACTS["checks"][what] = difference <= tolerance * scale
    print(f"{what}: largest difference from the CPU {difference:.1e} (values up to {scale:.3g})")


def scan() -> None:
    title("torch-fl scan")
    subprocess.run([sys.executable, "-m", "torch_fl_cli", "scan"], check=True)
    FACTS["devices"] = [{"name": d.name, "memory": d.memory, "capability": d.capability} for d in torch_fl.devices()]


def choose(first: str) -> None:
    title(f"torch_fl.activate('{first}')")
    print(f"active: {torch_fl.activate(first)} of {torch_fl.devices()}")


def matmul() -> None:
    title("a matrix product")
    a, b = torch.randn(128, 256), torch.randn(256, 64)
    product = a.to("fl_device") @ b.to("fl_device")
    print(f"on {torch_fl.devices()[product.device.index]}: {tuple(product.shape)}")
    agree("matmul", product, a @ b, 1e-5)


def resnet(small: bool):
    title("ResNet-50" + (", a small one" if small else ""))
    size = dict(embedding_size=16, hidden_sizes=[16, 32, 32, 64], depths=[1, 1, 1, 1]) if small else {}
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=10, **size)).eval()
    image = torch.randn(1, 3, 64 if small else 224, 64 if small else 224)
    ours = copy.deepcopy(model).to("fl_device")
    with torch.no_grad():
        agree("resnet", ours(image.to("fl_device")).logits, model(image).logits, 1e-3)
    return model, ours, image


def bert(small: bool) -> None:
    title("BERT: which operators run how, before anything runs")
    size = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128) if small else {}
    model = transformers.BertModel(transformers.BertConfig(vocab_size=1000, **size)).eval()
    batch = {"input_ids": torch.randint(1, 1000, (2, 16)), "attention_mask": torch.ones(2, 16, dtype=torch.int64)}
    profile = torch_fl.profile_operators(model, example_inputs=batch)
    print(profile)
    FACTS["profile"] = profile.counts()
    ours = copy.deepcopy(model).to("fl_device")
    with torch.no_grad():
        agree("bert", ours(**{k: v.to("fl_device") for k, v in batch.items()}).last_hidden_state, model(**batch).last_hidden_state, 1e-3)


def two_chips(model, ours, image, first: str, second: str) -> None:
    title(f"two blocks: features on {first}, the head on {second}")
    weight = ours.classifier[1].weight
    with torch_fl.device(first):
        features = ours.resnet(image.to("fl_device")).pooler_output
    with torch_fl.device(second):
        logits = ours.classifier(features)
    print(f"features on {torch_fl.devices()[features.device.index]}, logits on {torch_fl.devices()[logits.device.index]}")
    logits.square().sum().backward()
    expected = model(image).logits
    expected.square().sum().backward()
    agree("split", logits, expected, 1e-3)
    agree("split, gradient of the head", weight.grad, model.classifier[1].weight.grad, 1e-2)
    print(f"the head's weight and its gradient lie on {torch_fl.devices()[weight.grad.device.index]}")

    title(f"torch_fl.place(classifier, '{second}'): weights move once, three steps of training")
    torch_fl.place(ours.classifier, second)
    optimizer = torch.optim.Adam(ours.parameters(), lr=1e-4)
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(ours(image.to("fl_device")).logits, torch.tensor([3], device="fl_device"))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print("losses: " + ", ".join(f"{loss:.4f}" for loss in losses))
    FACTS["checks"]["training over two chips"] = losses[-1] < losses[0]


def reports() -> None:
    title("the fallback report")
    print(torch_fl.get_fallback_report())
    FACTS["moves"] = torch_fl.get_fallback_report()["moves"]
    title("memory")
    for chip in torch_fl.devices():
        print(torch_fl.memory_summary(chip))


def tune(first: str) -> None:
    title("settings that change while the program runs")
    level, limit = torch_fl.get_async_level(), torch_fl.get_memory_pool_size()
    a = torch.randn(64, 64)
    x = a.to("fl_device")
    for new in (0, 2, 1):
        torch_fl.set_async_level(new)
        agree(f"async level {torch_fl.get_async_level()}", x @ x, a @ a, 1e-5)
    torch_fl.set_async_level(level)
    torch_fl.set_memory_pool_size("64MiB")
    try:
        torch.empty(128 << 20, dtype=torch.uint8, device="fl_device")
        FACTS["checks"]["pool limit"] = False
    except torch.OutOfMemoryError as error:
        print(f"with a pool of 64 MiB on {first}: {error}")
        FACTS["checks"]["pool limit"] = True
    torch_fl.set_memory_pool_size(limit)
    print(f"and back to {torch_fl.get_memory_pool_size()}: {torch.empty(128 << 20, dtype=torch.uint8, device='fl_device').nbytes} bytes")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", help="name of the first chip")
    parser.add_argument("--second", help="name of the second chip")
    parser.add_argument("--small", action="store_true", help="small models, for slow chips")
    parser.add_argument("--json", type=pathlib.Path, help="write the facts to this file")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    scan()
    names = [d.name for d in torch_fl.devices()]
    first, second = arguments.first or names[0], arguments.second or names[min(1, len(names) - 1)]
    choose(first)
    matmul()
    model, ours, image = resnet(arguments.small)
    bert(arguments.small)
    two_chips(model, ours, image, first, second)
    reports()
    tune(first)
    wrong = [what for what, good in FACTS["checks"].items() if not good]
    print(f"\n{len(FACTS['checks']) - len(wrong)} of {len(FACTS['checks'])} checks hold" + (f"; not: {', '.join(wrong)}" if wrong else ""))
    if arguments.json:
        arguments.json.write_text(json.dumps(FACTS, indent=1))
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
