"""ResNet-50 (random weights with a fixed seed) on chips, compared with PyTorch's CPU in the same run.

    python examples/python/resnet50.py [--chips host,opencl] [--json FILE] [--rounds N] [--batch N] [--policy strict]

Runs wholly on each of the chips (default: the active one); with two, also split by two `with torch_fl.device(...)` blocks.
"""

import argparse
import json
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")


def build(seed: int = 0):
    """A ResNet-50 in eval mode with reproducible random weights; its logits spread enough to compare."""
    import torch
    import transformers

    torch.manual_seed(seed)
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=1000)).eval()
    # Random initial weights alone give almost constant outputs: fill batch norm's statistics from one batch of noise.
    model.train()
    with torch.no_grad():
        model(torch.randn(4, 3, 224, 224))
    return model.eval()


def split(model, first, second):
    """Returns a function that runs the first two stages on one chip, the others on a second one; each chip has its weights."""
    import torch_fl

    resnet, stages = model.resnet, model.resnet.encoder.stages
    for part in (resnet.embedder, *stages[:2]):
        part.to(first.torch_device)
    for part in (*stages[2:], resnet.pooler, model.classifier):
        part.to(second.torch_device)

    def forward(images):
        with torch_fl.device(first):
            x = resnet.embedder(images)
            for stage in stages[:2]:
                x = stage(x)
        with torch_fl.device(second):  # x follows by itself
            for stage in stages[2:]:
                x = stage(x)
            return model.classifier(resnet.pooler(x))

    return forward


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chips", help="names, separated by commas; default: the active chip")
    parser.add_argument("--json", type=pathlib.Path, help="write the facts to this file")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved timing rounds")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--policy", default=os.environ.get("TORCH_FL_FALLBACK_POLICY", "strict"))
    arguments = parser.parse_args()
    os.environ["TORCH_FL_FALLBACK_POLICY"] = arguments.policy

    from measure import Way, check, chips_of, compare, print_facts, results

    print("building ResNet-50 (25.6 million parameters, random weights) ...", flush=True)
    import copy

    import torch

    chips = chips_of(arguments.chips)
    cpu_model = build()
    images = torch.randn(arguments.batch, 3, 224, 224, generator=torch.Generator().manual_seed(1))

    def way(chip):
        model = copy.deepcopy(cpu_model).to(chip.torch_device)
        return Way(chip.name, lambda: model(images.to(chip.torch_device)).logits.cpu())

    ways = [way(chip) for chip in chips]
    if len(chips) > 1:
        forward = split(copy.deepcopy(cpu_model), *chips[:2])
        ways.append(Way(" + ".join(chip.name for chip in chips[:2]), lambda: forward(images.to(chips[0].torch_device)).cpu()))
    with torch.inference_mode():
        facts = compare(f"ResNet-50, {arguments.batch} x 3 x 224 x 224", lambda: cpu_model(images).logits, ways, arguments.rounds)
    facts["spread"] = {name: float(logits.std()) for name, logits in results(facts).items()}
    print()
    print_facts(facts)
    if arguments.json:
        arguments.json.write_text(json.dumps(facts, indent=1))
    check(facts, 1e-3 * max(1.0, facts["largest_value"]))


if __name__ == "__main__":
    main()
