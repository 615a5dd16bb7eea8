"""Training with a model split over two chips: 20 steps, losses and gradients as on the CPU."""

import copy
import functools

import pytest
import torch
import torch_fl
from torch import nn

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.plugins("mock")
A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)
STEPS = 20


def small_bert(dropout=0.0):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
                                     max_position_embeddings=16, hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout,
                                     num_labels=4, attn_implementation="eager")
    return transformers.BertForSequenceClassification(config).train()


def small_resnet(dropout=0.0):
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=4, layer_type="basic")
    model = transformers.ResNetForImageClassification(config)
    model.classifier = nn.Sequential(model.classifier[0], nn.Dropout(dropout), model.classifier[1])
    # Live batch statistics make training chaotic: a change of kernel alone moves the gradients of the third step by 100 %.
    # test_batch_norm_in_a_scope_updates_the_statistics_where_they_are stands for those.
    for part in model.train().modules():
        if isinstance(part, nn.BatchNorm2d):
            part.eval()
    return model


def batches(name):
    g = torch.Generator().manual_seed(7)
    labels = torch.randint(0, 4, (STEPS, 3), generator=g)
    if name == "bert":
        ids = torch.randint(1, 60, (STEPS, 3, 9), generator=g)
        return [{"input_ids": i, "attention_mask": (i > 5).long(), "labels": t} for i, t in zip(ids, labels)]
    return [{"pixel_values": x, "labels": t} for x, t in zip(torch.randn(STEPS, 3, 3, 24, 24, generator=g), labels)]


MODELS = {"bert": small_bert, "resnet": small_resnet}
RATE = {"SGD": 0.05, "Adam": 1e-3}


def train(model, name, optimizer, where, steps=STEPS, call=None):
    opt = getattr(torch.optim, optimizer)(model.parameters(), lr=RATE[optimizer])
    losses, gradients = [], []
    for batch in batches(name)[:steps]:
        opt.zero_grad()
        loss = (call or model)(**{k: v.to(where) for k, v in batch.items()}).loss
        loss.backward()
        losses.append(loss.detach().cpu())
        gradients.append({n: p.grad.cpu().clone() for n, p in model.named_parameters() if p.grad is not None})
        opt.step()
    return torch.stack(losses), gradients


@functools.cache
def on_cpu(name, optimizer):
    return train(MODELS[name](), name, optimizer, "cpu")


def compare(ours, cpu, rtol=2e-3):
    torch.testing.assert_close(ours[0], cpu[0], rtol=rtol, atol=1e-5)
    assert len(ours[1]) == len(cpu[1])
    for step, (mine, theirs) in enumerate(zip(ours[1], cpu[1])):
        assert mine.keys() == theirs.keys()
        scale = max(g.abs().max() for g in theirs.values())
        for name in theirs:
            difference = (mine[name] - theirs[name]).abs().max()
            assert difference <= rtol * max(theirs[name].abs().max(), 0.1 * scale), f"step {step}, {name}: {difference}"


def halves(model, name):
    """The modules whose forward is to run on the second chip."""
    return [model.bert.encoder.layer[1], model.bert.pooler] if name == "bert" else [model.resnet.encoder.stages[1], model.classifier]


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_with_placed_halves(dev, name, optimizer):
    model = MODELS[name]().to(A)
    for part in halves(model, name):
        torch_fl.place(part, 1)
    ours = train(model, name, optimizer, A)
    assert {p.device for p in model.parameters()} == {A, B}
    compare(ours, on_cpu(name, optimizer))


def in_scope(module, chip):
    module.forward = torch_fl.device(chip)(module.forward)


@pytest.mark.parametrize("optimizer", ["SGD", "Adam"])
@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_with_scopes(dev, name, optimizer):
    """All weights lie on chip_a; halves of forward run on chip_b, the rest comes back by a scope of its own."""
    model = MODELS[name]().to(A)
    for part in halves(model, name):
        in_scope(part, 1)
    in_scope(model, 0)
    torch_fl.reset()
    compare(train(model, name, optimizer, A), on_cpu(name, optimizer))
    crossed = {(r["from"], r["to"]) for r in torch_fl.get_fallback_report()["moves"]}
    first, second = (str(chip) for chip in torch_fl.devices()[:2])
    assert crossed == {(first, second), (second, first)}
    assert {p.device for p in model.parameters()} == {A}


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_twenty_steps_with_activation_checkpointing(dev, name, reentrant):
    model = MODELS[name]().to(A)
    for part in halves(model, name):
        torch_fl.place(part, 1)
    parts = model.bert.encoder.layer if name == "bert" else model.resnet.encoder.stages
    for part in parts:
        forward = part.forward

        def checkpointed(hidden, *args, forward=forward, **kwargs):
            return torch.utils.checkpoint.checkpoint(lambda h: forward(h, *args, **kwargs), hidden, use_reentrant=reentrant)

        part.forward = checkpointed
    compare(train(model, name, "SGD", A), on_cpu(name, "SGD"))


@pytest.mark.parametrize("how", ["plain", "checkpointed"])
@pytest.mark.parametrize("name", MODELS)
def test_dropout_masks_of_a_split_model_act_as_on_the_cpu(dev, name, how, monkeypatch):
    """The chips draw other numbers than the CPU; given the chips' masks, the CPU must compute the same training."""
    original, masks = nn.functional.dropout, []
    recording = True

    def drawn(x, p=0.5, training=True, inplace=False):
        if not training or p == 0:
            return x
        if recording:
            mask = original(torch.ones_like(x), p, True)
            if not torch._C._current_graph_task_id() >= 0:      # not when a checkpoint computes again
                masks.append(mask.cpu())
            return x * mask
        return x * masks.pop(0)

    monkeypatch.setattr(nn.functional, "dropout", drawn)
    cpu = MODELS[name](0.3)
    model = copy.deepcopy(cpu).to(A)
    for part in halves(model, name):
        torch_fl.place(part, 1)
    if how == "checkpointed":
        for part in halves(model, name)[:1]:
            forward = part.forward
            part.forward = lambda hidden, *a, forward=forward, **k: torch.utils.checkpoint.checkpoint(
                lambda h: forward(h, *a, **k), hidden, use_reentrant=False)
    torch.manual_seed(11)
    ours = train(model, name, "SGD", A, steps=6)
    assert len(masks) >= 6 and len({tuple(m.flatten()[:8].tolist()) for m in masks}) > 3
    recording = False
    compare(ours, train(cpu, name, "SGD", "cpu", steps=6))
    assert masks == []


@pytest.mark.parametrize("name", MODELS)
def test_one_seed_gives_one_training_with_dropout_on_every_chip(dev, name):
    def run(chip):
        torch.manual_seed(5)
        return train(MODELS[name](0.2).to(chip), name, "SGD", chip, steps=4)

    def split():
        torch.manual_seed(5)
        model = MODELS[name](0.2).to(A)
        for part in halves(model, name):
            torch_fl.place(part, 1)
        return train(model, name, "SGD", A, steps=4)

    for one, other in ((run(A), run(B)), (split(), split())):
        assert torch.equal(one[0], other[0])
        for mine, theirs in zip(one[1], other[1]):
            assert all(torch.equal(mine[n], theirs[n]) for n in theirs)


@pytest.mark.parametrize("how", ["place", "scope"])
def test_channels_last_through_a_split_model_keeps_values_and_strides(dev, how):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.ReLU(), nn.Conv2d(8, 4, 1))
    x = torch.randn(2, 3, 10, 12)
    seen = []

    def run(net, images):
        seen.clear()
        for layer in net:
            layer.register_forward_hook(lambda m, i, o: seen.append((i[0].stride(), o.stride(), o.detach().cpu())))
        y = net(images)
        y.square().mean().backward()
        return y.detach().cpu(), [p.grad.cpu() for p in net.parameters()], list(seen)

    wanted = run(copy.deepcopy(model).to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last))
    ours = copy.deepcopy(model).to(A).to(memory_format=torch.channels_last)
    if how == "place":
        torch_fl.place(ours[2:4], 1)
        for part in ours[2:4]:
            torch_fl.place(part, 1)
    else:
        in_scope(ours[2], 1)
        in_scope(ours[3], 1)
        in_scope(ours[4], 0)
    got = run(ours, x.to(A).to(memory_format=torch.channels_last))
    torch.testing.assert_close(got[:2], wanted[:2], rtol=1e-4, atol=1e-5)
    for mine, theirs in zip(got[2], wanted[2]):
        assert mine[:2] == theirs[:2]
        torch.testing.assert_close(mine[2], theirs[2], rtol=1e-4, atol=1e-5)
