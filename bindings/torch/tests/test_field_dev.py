"""DEV-01 to DEV-03: the operands decide where work is done, copies between chips go through the host, a choice is absolute.

The mock counts what each chip is asked to do: "nothing" below is zero launches, plans, copies, fills and bytes.
"""

import copy
import io
import pathlib
import sys

import pytest
import torch
import torch_fl
from torch import nn
from torch.nn import functional as F

from conftest import REPOSITORY, plugin_library

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
pytestmark = pytest.mark.plugins("mock")
A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)
WORK = ("launches", "plan_runs", "plan_creates", "copies", "fills", "bytes_to_device", "bytes_to_host", "bytes_on_device", "bytes_filled")


@pytest.fixture(scope="module")
def mock():
    from mock_control import MockControl

    return MockControl(plugin_library("mock"))


class Idle:
    """with Idle(mock, 0): chip 0 must do nothing in the block, and the other one something."""

    def __init__(self, mock, chip):
        self.mock, self.chip = mock, chip

    def __enter__(self):
        torch.accelerator.synchronize(0)
        self.before = [self.mock.counts(0), self.mock.counts(1)]

    def __exit__(self, kind, *_):
        if kind is not None:
            return
        for index in (0, 1):
            torch.accelerator.synchronize(index)
        after = [self.mock.counts(0), self.mock.counts(1)]
        did = [{k: a[k] - b[k] for k in WORK if a[k] != b[k]} for a, b in zip(after, self.before)]
        assert did[self.chip] == {}, f"chip {self.chip} did {did[self.chip]}"
        assert did[1 - self.chip], "the other chip did nothing at all"


def leaf(*shape, device=B):
    g = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=g).to(device).requires_grad_()


OPERATIONS = {
    "add": lambda x: x + x * 2,
    "broadcast": lambda x: x - x[:1] / 3,
    "matmul": lambda x: x @ x.t(),
    "conv": lambda x: F.conv2d(x.reshape(1, 1, 4, 6), leaf(2, 1, 3, 3)),
    "batch_norm": lambda x: F.batch_norm(x, torch.zeros(6, device=x.device), torch.ones(6, device=x.device), training=True),
    "layer_norm": lambda x: F.layer_norm(x, (6,)),
    "softmax": lambda x: torch.softmax(x, 1).log(),
    "gelu": F.gelu,
    "dropout": lambda x: F.dropout(x, 0.5),
    "pool": lambda x: F.max_pool2d(x.reshape(1, 1, 4, 6), 2),
    "sum": lambda x: x.sum(0),
    "max": lambda x: x.max(1).values,
    "sort": lambda x: x.sort().values,                   # by fallback
    "cumsum": lambda x: x.cumsum(1),
    "index": lambda x: x[torch.tensor([0, 2], device=x.device)],
    "mask": lambda x: x[x > 0],
    "gather": lambda x: x.gather(1, torch.zeros(4, 2, dtype=torch.int64, device=x.device)),
    "embedding": lambda x: F.embedding(torch.tensor([1, 1, 3], device=x.device), x),
    "cat": lambda x: torch.cat([x, x.t().reshape(4, 6)]),
    "where": lambda x: torch.where(x > 0, x, -x),
    "view then write": lambda x: (x * 1).t()[1:].mul_(2),
    "copy of a view": lambda x: torch.zeros_like(x).copy_(x.t().reshape(4, 6)),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2, 3], device=x.device)),
    "lstm": lambda x: nn.LSTM(6, 3).to(x.device)(x.reshape(4, 1, 6))[0],
    "attention": lambda x: F.scaled_dot_product_attention(*(x.reshape(1, 2, 2, 6),) * 3),
    "linalg by fallback": lambda x: torch.linalg.inv(x[:, :4] + 5 * torch.eye(4, device=x.device)),
    "half": lambda x: (x.half() * 2).float(),
    "double": lambda x: (x.double() * 2).float(),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_DEV_01_operations_on_a_chip_that_is_not_current(dev, mock, name):
    assert torch.fl_device.current_device() == 0
    run = OPERATIONS[name]
    torch.manual_seed(3)
    with Idle(mock, 0):
        x = leaf(4, 6)
        y = run(x)
        (y * y).sum().backward()
        torch.accelerator.synchronize(1)
    assert y.device == B and x.grad.device == B and torch.fl_device.current_device() == 0
    torch.manual_seed(3)
    with torch.fl_device.device(1):
        again = leaf(4, 6)
        z = run(again)
        (z * z).sum().backward()
    assert torch.equal(y.detach().cpu(), z.detach().cpu()) and torch.equal(x.grad.cpu(), again.grad.cpu())


DOORS = {
    "item": lambda x: x.sum().item(),
    "tolist": lambda x: x.tolist(),
    "print": repr,
    "bool": lambda x: bool(x[0, 0] > 100),
    "to cpu": lambda x: x.t().cpu(),
    "pinned download": lambda x: torch.empty(4, 6, pin_memory=True).copy_(x, non_blocking=True),
    "save": lambda x: torch.save(x, io.BytesIO()),
    "load": lambda x: torch.load(io.BytesIO(saved_on(B))),
    "deepcopy": lambda x: copy.deepcopy(x),
    "clone": lambda x: x.clone(),
    "fill": lambda x: x.fill_(2),
    "random in place": lambda x: x.normal_(),
    "rand_like": lambda x: torch.rand_like(x),
    "new_ones": lambda x: x.new_ones(3),
    "tensor of a tensor": lambda x: torch.tensor([1.0, 2.0], device=x.device),
    "resize": lambda x: torch.empty(0, device=x.device).resize_(5).zero_(),
    "dlpack": lambda x: torch.from_dlpack(x).add_(1),
    "record_stream": lambda x: x.record_stream(torch.Stream(x.device)) or x.add_(1),
    "event": lambda x: torch.Event("fl_device").record(torch.accelerator.current_stream(1)) or x.add_(1),
    "own generator": lambda x: torch.rand(3, device=x.device, generator=torch.Generator(x.device).manual_seed(1)),
    "side stream": lambda x: side_stream(x),
    "module": lambda x: nn.Linear(6, 2).to(x.device)(x),
    "optimizer": lambda x: one_step(x),
}


def saved_on(device):
    file = io.BytesIO()
    torch.save(torch.ones(3, device=device), file)
    return file.getvalue()


def side_stream(x):
    stream = torch.Stream(x.device)
    with stream:
        y = x * 2
    stream.synchronize()
    return y


def one_step(x):
    p = nn.Parameter(x.clone())
    p.grad = torch.ones_like(p)
    torch.optim.Adam([p]).step()


@pytest.mark.parametrize("name", DOORS)
def test_DEV_01_every_door_that_takes_a_tensor(dev, mock, name):
    x = leaf(4, 6).detach()
    with Idle(mock, 0):
        result = DOORS[name](x)
    if isinstance(result, torch.Tensor) and result.device.type == "fl_device":
        assert result.device == B
    assert torch.fl_device.current_device() == 0


def test_DEV_01_indices_that_belong_to_different_plugins(fresh):
    fresh(
        """
        import torch, torch_fl
        names = [str(d) for d in torch_fl.devices()]
        assert sorted(names) == ['chip_a', 'chip_b', 'ram'], names
        assert len({d.plugin for d in torch_fl.devices()}) == 2
        for current in range(3):
            torch.fl_device.set_device(current)
            for there in range(3):
                torch.manual_seed(1)
                x = torch.randn(4, 4, device=f'fl_device:{there}', requires_grad=True)
                y = torch.softmax(x @ x.t(), 1).sort().values.cumsum(0)
                y.square().sum().backward()
                assert x.grad.device.index == y.device.index == there and torch.fl_device.current_device() == current
                found = (y.detach().cpu(), x.grad.cpu())
                if current == there == 0: first = found
                torch.testing.assert_close(found, first)
                for other in range(3):
                    assert torch.equal(x.detach().t().to(f'fl_device:{other}').cpu(), x.detach().t().cpu())
        """,
        env={"FLHAL_PLUGIN_FILES": f"{plugin_library('mock')}:{plugin_library('ram')}"},
    ).ok()


DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool, torch.complex64]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_DEV_02_every_dtype_between_chips_in_both_directions(dev, dtype):
    c = (torch.arange(24).reshape(4, 6) % 2).to(dtype)
    for layout in (lambda t: t, lambda t: t.t(), lambda t: t[1:, ::2], lambda t: t[2], lambda t: t[:0], lambda t: t[1, 1], lambda t: t[:1].expand(5, 6)):
        a = layout(c.to(A))
        b = a.to(B)
        assert b.device == B and torch.equal(b.cpu(), layout(c)) and torch.equal(b.to(A).cpu(), layout(c))
        into = torch.zeros(a.shape, dtype=torch.complex64 if dtype.is_complex else torch.float32, device=B)
        assert torch.equal(into.copy_(a, non_blocking=True).cpu(), layout(c).to(into.dtype))


UNUSUAL = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "mkldnn": lambda: torch.eye(3).to_mkldnn(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
}


def test_DEV_02_meta(dev):
    assert torch.ones(2, device=B).to("meta").device.type == "meta"
    with pytest.raises(NotImplementedError, match="meta"):
        torch.ones(2, device="meta").to(B)


@pytest.mark.parametrize("kind", UNUSUAL)
def test_DEV_02_sparse_and_quantized_tensors_move_or_say_why_not(dev, kind):
    value = UNUSUAL[kind]()
    if kind in ("quantized", "mkldnn"):
        with pytest.raises(NotImplementedError, match="fl_device"):
            value.to(B)
        return
    moved = value.to(B)                                                  # every layout: test_sparse.py
    assert moved.device == B and torch.equal(moved.cpu().to_dense(), torch.eye(3)) and torch.equal(moved.to(A).to_dense().cpu(), torch.eye(3))


MIXED = {
    "add": lambda a, b: a + b,
    "in place": lambda a, b: a.add_(b),
    "out": lambda a, b: torch.add(a, a, out=b),
    "matmul": lambda a, b: a @ b.t(),
    "cat": lambda a, b: torch.cat([a, b]),
    "where": lambda a, b: torch.where(a > 0, a, b),
    "linear": lambda a, b: F.linear(a, b),
    "layer_norm": lambda a, b: F.layer_norm(a, (6,), b[0]),
    "conv": lambda a, b: F.conv1d(a[None], b[:, :4, None]),
    "embedding": lambda a, b: F.embedding(torch.tensor([0, 1]).to(A), b),
    "gather": lambda a, b: a.gather(1, torch.zeros(4, 2, dtype=torch.int64).to(B)),
    "index_put": lambda a, b: a.index_put_((torch.tensor([0]).to(A),), b[:1]),
    "masked_fill": lambda a, b: a.masked_fill(b > 0, 1.0),
    "by fallback": lambda a, b: torch.special.xlog1py(a.abs(), b.abs()),
    "list by fallback": lambda a, b: torch.block_diag(a, b),
    "foreach": lambda a, b: torch._foreach_add([a], [b]),
    "batch_norm": lambda a, b: F.batch_norm(a, b[0].contiguous(), b[1].contiguous()),
    "mse": lambda a, b: F.mse_loss(a, b),
}


@pytest.mark.parametrize("name", MIXED)
def test_DEV_02_operands_on_two_chips_are_refused_and_nothing_is_written(dev, name):
    a, b = leaf(4, 6, device=A).detach(), leaf(4, 6, device=B).detach() + 1
    before = a.cpu(), b.cpu()
    with pytest.raises((RuntimeError, IndexError), match="same device|fl_device:0.*fl_device:1|fl_device:1.*fl_device:0"):
        MIXED[name](a, b)
    assert torch.equal(a.cpu(), before[0]) and torch.equal(b.cpu(), before[1])


CHOICES = {
    "named": ("torch_fl.activate('chip_b')", {}, "fl_device"),
    "environment": ("pass", {"TORCH_FL_DEVICE": "chip_b"}, "fl_device"),
    "visible only": ("pass", {"TORCH_FL_VISIBLE_DEVICES": "chip_b"}, "fl_device"),
    "index": ("pass", {}, "fl_device:1"),
    "scope": ("torch_fl.device('chip_b').__enter__()", {}, "fl_device"),
    "current device": ("torch.fl_device.set_device(1)", {}, "fl_device"),
}


@pytest.mark.parametrize("how", CHOICES)
def test_DEV_03_an_explicit_choice_is_absolute(fresh, how):
    """Creation, kernels, native plans, fallback, staging, caches and worker threads: zero bytes and zero work on chip_a."""
    choose, env, where = CHOICES[how]
    out = fresh(
        f"""
        import sys, threading, torch, torch_fl
        sys.path.insert(0, {str(REPOSITORY / "tests" / "support")!r})
        from mock_control import MockControl
        mock = MockControl({str(plugin_library("mock"))!r})
        {choose}
        where = {where!r}
        from torch import nn
        torch.manual_seed(0)
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8), nn.Dropout(0.5), nn.Softplus()).to(where)
        opt = torch.optim.Adam(model.parameters())
        x = torch.randn(2, 3, 8, 8, device='cpu').pin_memory().to(where, non_blocking=True)
        for _ in range(3):
            opt.zero_grad(); loss = model(x).sort().values.square().mean(); loss.backward(); opt.step()
        torch_fl.set_async_level(2)
        print(loss.item(), torch.linalg.inv(torch.eye(3, device=where) * 2).sum().item(), torch.rand(3, device=where).tolist())
        {'threading.Thread(target=lambda: print(torch.ones(5, device=where).sum().item())).start()' if how not in ('scope', 'current device') else ''}
        s = torch.Stream(where if where[-1] == '1' else torch.device('fl_device', torch.fl_device.current_device())); s.synchronize()
        torch.fl_device.empty_cache()
        counts = mock.counts(0)
        print('touched', {{k: v for k, v in counts.items() if v}})
        print('worked', mock.counts(1)['launches'] > 0 and mock.counts(1)['bytes_to_device'] > 0)
        """,
        env=env,
    ).ok().out
    assert "touched {}" in out and "worked True" in out, out


def test_DEV_03_excluded_chips_are_never_opened_and_weak_ones_are_no_default(fresh):
    """The host goes before a mock, a chip of any kind before what is emulated; `torch-fl scan` says which it took and why."""
    both = {"FLHAL_PLUGIN_FILES": f"{plugin_library('mock')}:{plugin_library('host')}", "PYTHONPATH": None}
    both.pop("PYTHONPATH")
    out = fresh(
        """
        import json, torch, torch_fl
        rows = {d['name']: d['class'] for d in json.loads(torch_fl._C.report('devices'))['devices']}
        first = str(torch_fl.current_device())
        print(rows[first], [rows[str(d)] for d in torch_fl.devices()])
        """,
        env=both,
    ).ok().out
    assert out.startswith("host ['host', 'mock', 'mock']")


def scan(fresh, **env):
    cli = str(pathlib.Path(torch_fl.__file__).parent)
    assert (pathlib.Path(cli) / "lib").exists(), "the package has no folder lib: configure the build once more"
    return fresh("from torch_fl_cli.main import cli; cli(['scan'], standalone_mode=False)", env=env).ok().out


def test_DEV_03_an_automatic_choice_says_why(fresh, tmp_path):
    assert "Default: chip_a, the first of class mock" in scan(fresh)
    assert "Default: chip_b, chosen by TORCH_FL_DEVICE" in scan(fresh, TORCH_FL_DEVICE="chip_b")
    assert "Default: chip_b, the first of the visible devices" in scan(fresh, TORCH_FL_VISIBLE_DEVICES="chip_b,chip_a")
    kept = tmp_path / "flhal" / "device.json"
    kept.parent.mkdir()
    kept.write_text('{"name": "chip_b", "uuid": ""}')
    assert "Default: chip_b, kept by `torch-fl activate`" in scan(fresh, XDG_CONFIG_HOME=str(tmp_path))
