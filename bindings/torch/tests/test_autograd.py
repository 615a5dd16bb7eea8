"""GRAD-01 .. GRAD-03: backward from any beginning, modules that keep their parameters, mixed precision, checkpointing."""

import copy

import pytest
import torch
import torch_fl
from torch import nn


def train(device, model, steps=3, **data):
    torch.manual_seed(0)
    x, y = torch.randn(8, *data["shape"]), torch.randint(0, 3, (8,))
    model = copy.deepcopy(model).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses), {k: v.cpu() for k, v in model.state_dict().items()}


MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3)), (6,)),
    "conv": (
        lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3, groups=2), nn.Flatten(), nn.Linear(16, 3)),
        (2, 8, 8),
    ),
    "conv_transpose": (lambda: nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (2, 4, 4)),
    "attention": (
        lambda: nn.Sequential(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), nn.Flatten(), nn.Linear(40, 3)),
        (5, 8),
    ),
    "softplus": (lambda: nn.Sequential(nn.Linear(6, 8), nn.Softplus(), nn.Mish(), nn.Linear(8, 3)), (6,)),
}


@pytest.mark.parametrize("name", MODELS)
def test_GRAD_03_training_step_equals_the_cpus(dev, name):
    make, shape = MODELS[name]
    torch.manual_seed(1)
    model = make()
    want, got = train("cpu", model, shape=shape), train(dev, model, shape=shape)
    assert torch.allclose(want[0], got[0], rtol=1e-4, atol=1e-5)
    for k in want[1]:
        assert torch.allclose(want[1][k], got[1][k], rtol=1e-3, atol=1e-4), k


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("bias", [True, False])
def test_recurrent_layers_and_their_gradients(dev, kind, bias):
    torch.manual_seed(2)
    c = kind(3, 5, num_layers=2, bias=bias, bidirectional=True)
    d = copy.deepcopy(c).to(dev)
    x = torch.randn(4, 2, 3)
    xc, xd = x.clone().requires_grad_(), x.to(dev).requires_grad_()
    (c(xc)[0] ** 2).sum().backward()
    (d(xd)[0] ** 2).sum().backward()
    assert torch.allclose(xd.grad.cpu(), xc.grad, atol=1e-4, rtol=1e-4)
    for p, q in zip(c.parameters(), d.parameters()):
        assert torch.allclose(q.grad.cpu(), p.grad, atol=1e-4, rtol=1e-4)


def test_packed_sequences(dev):
    torch.manual_seed(3)
    c = nn.LSTM(3, 4)
    d = copy.deepcopy(c).to(dev)
    x, lengths = torch.randn(5, 3, 3), torch.tensor([5, 3, 2])
    pack = nn.utils.rnn.pack_padded_sequence
    want = nn.utils.rnn.pad_packed_sequence(c(pack(x, lengths))[0])[0]
    got = nn.utils.rnn.pad_packed_sequence(d(pack(x.to(dev), lengths))[0])[0]
    assert torch.allclose(got.cpu(), want, atol=1e-5)


def test_module_to_keeps_parameters_ties_and_optimizer(dev):
    m = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    m[1].weight = m[0].weight
    before = [id(p) for p in m.parameters()]
    optimizer = torch.optim.Adam(m.parameters(), lr=0.1)
    m.to(dev)
    assert [id(p) for p in m.parameters()] == before and m[1].weight is m[0].weight
    m(torch.ones(1, 3, device=dev)).sum().backward()
    old = m[0].weight.detach().cpu().clone()
    optimizer.step()
    assert not m[0].weight.detach().cpu().equal(old)
    m.cpu()
    assert [id(p) for p in m.parameters()] == before
    p = nn.Parameter(torch.ones(2))
    p.data = torch.zeros(2, device=dev)
    assert p.device == dev
    lazy = nn.LazyLinear(2).to(dev)
    assert lazy(torch.ones(1, 3, device=dev)).shape == (1, 2)


def test_generated_methods(dev):
    assert torch.ones(2).fl_device().device == dev and torch.ones(2, device=dev).is_fl_device
    assert nn.Linear(2, 2).fl_device().weight.device == dev


FIRST = {
    "backward": "torch.ones(2, requires_grad=True).sum().backward(); x = torch.ones(2, device='fl_device', requires_grad=True); x.sum().backward(); assert x.grad.cpu().tolist() == [1, 1]",
    "device_backward": "x = torch.ones(2, device='fl_device', requires_grad=True); (x * x).sum().backward(); assert x.grad.cpu().tolist() == [2, 2]",
    "generator": "g = torch.Generator('fl_device'); g.manual_seed(3); assert g.initial_seed() == 3 and g.device.type == 'fl_device'",
    "event": "e = torch.Event('fl_device'); e.record(); e.synchronize(); assert e.query()",
    "stream": "s = torch.Stream('fl_device'); s.synchronize(); assert s.query()",
    "pinned": "assert torch.ones(3).pin_memory().is_pinned()",
    "rng": "torch.fl_device.get_rng_state()",
    "seed": "torch.manual_seed(5); assert torch.fl_device.initial_seed() == 5",
    "item": "assert torch.tensor(4, device='fl_device').item() == 4",
    "accelerator": "assert torch.accelerator.current_accelerator().type == 'fl_device'; torch.accelerator.synchronize()",
    "hook": "x = torch.ones(2, device='fl_device', requires_grad=True); x.register_hook(lambda g: g * 2); x.sum().backward(); assert x.grad.cpu().tolist() == [2, 2]",
    "autocast": "with torch.autocast('fl_device', dtype=torch.bfloat16): y = torch.ones(2, 2, device='fl_device') @ torch.ones(2, 2, device='fl_device')\nassert y.dtype == torch.bfloat16",
    "thread": "import threading; r = []; t = threading.Thread(target=lambda: r.append(torch.ones(2, device='fl_device').sum().item())); t.start(); t.join(); assert r == [2]",
    "empty_cache": "torch.accelerator.empty_cache(); torch.accelerator.memory_allocated()",
    "meta_only": "torch.ones(2, device='meta')",
    "cpu_only": "torch.ones(2).sum()",
}


@pytest.mark.parametrize("first", FIRST)
def test_GRAD_02_any_entry_may_be_the_first(fresh, first):
    fresh("import torch\nimport torch_fl\n" + FIRST[first]).ok()


@pytest.mark.parametrize("before", ["import", "count", "use"])
def test_GRAD_02_a_cpu_backward_before_and_after_the_device_appears(fresh, before):
    """The engine sizes its queues at the first backward of the process, from the device count of that moment."""
    steps = {"import": "", "count": "torch_fl.device_count()", "use": "torch.ones(1, device='fl_device').item()"}[before]
    fresh(
        f"""
        import torch
        def cpu():
            x = torch.ones(3, requires_grad=True); (x * x).sum().backward(); assert x.grad.tolist() == [2, 2, 2]
        def chip(where):
            x = torch.ones(3, device=where, requires_grad=True); y = x * 2
            (y.cpu() * torch.ones(3, requires_grad=True)).sum().backward(); assert x.grad.tolist() == [2, 2, 2]
            m = torch.nn.Linear(3, 2).to(where); m(torch.ones(1, 3, device=where)).sum().backward(); assert m.bias.grad.tolist() == [1, 1]
        cpu()
        import torch_fl
        {steps}
        cpu()
        for i in range(torch_fl.device_count()): chip(f'fl_device:{{i}}'); cpu()
        import threading
        failed = []
        def work(f, *args):
            try: f(*args)
            except BaseException as error: failed.append(error)
        threads = [threading.Thread(target=work, args=(f, *a)) for f, a in [(cpu, ()), (chip, ('fl_device',))] * 4]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert not failed, failed
        """
    ).ok()


@pytest.mark.parametrize("order", ["import torch\nimport torch_fl", "import torch_fl\nimport torch"])
def test_import_order_does_not_matter(fresh, order):
    fresh(order + "\nm = torch.nn.Linear(2, 2).to('fl_device'); m(torch.ones(1, 2, device='fl_device')).sum().backward()").ok()


def test_a_model_made_before_the_import(fresh):
    fresh("import torch\nm = torch.nn.Linear(2, 2)\nm(torch.ones(1, 2)).sum().backward()\nimport torch_fl\nm.to('fl_device'); m.zero_grad(); m(torch.ones(1, 2, device='fl_device')).sum().backward()").ok()


def test_GRAD_01_importing_changes_nothing_for_the_cpu(fresh):
    script = """
    import torch, warnings
    {load}
    warnings.simplefilter('error')
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)); o = torch.optim.SGD(m.parameters(), 0.1)
    for _ in range(3):
        o.zero_grad(); l = m(torch.randn(2, 4)).square().sum(); l.backward(); o.step()
    print(l.item(), torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads(), torch.rand(1).item())
    """
    assert fresh(script.format(load="")).ok().out == fresh(script.format(load="import torch_fl")).ok().out


def test_checkpoint_with_dropout_draws_the_same_mask(dev):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    m = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 1)).to(dev)
    x = torch.randn(4, 8, device=dev)
    for reentrant in (False, True):
        torch.manual_seed(7)
        m.zero_grad()
        checkpoint(m, x.requires_grad_(), use_reentrant=reentrant).sum().backward()
        got = m[0].weight.grad.clone()
        torch.manual_seed(7)
        m.zero_grad()
        m(x).sum().backward()
        assert torch.allclose(got.cpu(), m[0].weight.grad.cpu())


def test_autocast_and_grad_scaler(dev):
    m = nn.Linear(4, 2).to(dev)
    optimizer = torch.optim.SGD(m.parameters(), 0.1)
    scaler = torch.amp.GradScaler("fl_device")
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast("fl_device", dtype=torch.float16):
            y = m(torch.ones(3, 4, device=dev))
            assert y.dtype == torch.float16
            loss = y.float().square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() > 0 and torch.isfinite(m.weight.cpu()).all()
    with torch.autocast("fl_device", dtype=torch.bfloat16):
        assert torch.softmax(torch.ones(2, 2, device=dev, dtype=torch.bfloat16), 0).dtype == torch.float32


def test_threads_train_at_once(fresh):
    fresh(
        """
        import threading, torch, torch_fl
        bad = []
        def work(seed):
            try:
                m = torch.nn.Linear(4, 4).to('fl_device'); o = torch.optim.SGD(m.parameters(), 0.1)
                for _ in range(20):
                    o.zero_grad(); m(torch.ones(2, 4, device='fl_device')).square().sum().backward(); o.step()
            except Exception as e:
                bad.append(e)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [t.start() for t in threads]; [t.join() for t in threads]
        assert not bad, bad
        """
    ).ok()


def test_functorch_transforms(dev):
    x = torch.randn(3, device=dev)
    f = lambda t: (t.sin() * t).sum()  # noqa: E731
    c = x.cpu()
    assert torch.allclose(torch.func.grad(f)(x).cpu(), torch.func.grad(f)(c), atol=1e-5)
    assert torch.allclose(torch.func.jvp(f, (x,), (x,))[1].cpu(), torch.func.jvp(f, (c,), (c,))[1], atol=1e-5)
    assert torch.allclose(torch.func.vmap(lambda t: t * 2)(x).cpu(), c * 2)


@pytest.mark.parametrize("write", ["add_", "sub_", "mul_", "div_"])
def test_a_refused_write_leaves_what_was_saved_usable(dev, write):
    """The version counts writes: a call that wrote nothing must not make autograd refuse the backward that reads the tensor."""
    leaf, factor = torch.ones(3, device=dev, requires_grad=True), torch.tensor([2.0, 3.0, 4.0]).to(dev)
    y = leaf * factor
    before = factor._version
    with pytest.raises(RuntimeError, match="must match the size|doesn't match the broadcast shape"):
        getattr(factor, write)(torch.ones(4, device=dev))
    assert factor._version == before
    y.sum().backward()
    assert leaf.grad.tolist() == [2.0, 3.0, 4.0]
    getattr(factor, write)(torch.ones(3, device=dev))
    assert factor._version == before + 1
