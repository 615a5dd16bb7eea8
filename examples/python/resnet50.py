"""ResNet-50 (random weights with a fixed seed) on `fl_device`; fallbacks are allowed, counted and shown.

    python examples/python/resnet50.py [--json FILE] [--rounds N] [--batch N]
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the facts to this file")
    parser.add_argument("--rounds", type=int, default=5, help="interleaved timing rounds")
    parser.add_argument("--batch", type=int, default=1)
    arguments = parser.parse_args()

    from measure import compare, print_facts

    print("building ResNet-50 (25.6 million parameters, random weights) ...", flush=True)
    import copy

    import torch
    import torch_fl  # noqa: F401

    cpu_model = build()
    device_model = copy.deepcopy(cpu_model).to("fl_device")
    images = torch.randn(arguments.batch, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        facts = compare(
            name=f"ResNet-50, batch {arguments.batch} x 3 x 224 x 224",
            on_cpu=lambda: cpu_model(images).logits,
            to_device=lambda: images.to("fl_device"),
            on_device=lambda moved: device_model(moved).logits,
            rounds=arguments.rounds,
        )
    logits = facts.pop("result")
    facts["spread"] = float(logits.std())
    print_facts(facts)
    if arguments.json:
        arguments.json.write_text(json.dumps(facts, indent=1))
    if facts["largest_difference"] > 1e-3 * max(1.0, facts["largest_value"]):
        raise SystemExit(f"the logits differ from the CPU's by {facts['largest_difference']:.3g}")


if __name__ == "__main__":
    main()
