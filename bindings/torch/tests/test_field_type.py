"""Field cases TYPE-01, TYPE-02 and TYPE-04: integer sums, and chips without float64."""

import pytest
import torch
import torch_fl

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool]
SCANS = {
    "sum": lambda x, d: x.sum(d),
    "cumsum": lambda x, d: x.cumsum(d),
    "prod": lambda x, d: x.prod(d),
    "cumprod": lambda x, d: x.cumprod(d),
    "mean": lambda x, d: x.mean(d, dtype=torch.float32),
    "nansum": lambda x, d: x.nansum(d),
    "logcumsumexp": lambda x, d: x.float().logcumsumexp(d),
}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: str(d)[6:])
def test_TYPE_01_integers_are_accumulated_in_int64(dev, name, dtype):
    for shape in ((300,), (7, 300), (300, 7), (5000,)):
        x = torch.ones(shape, dtype=dtype)
        if dtype != torch.bool and name != "prod" and name != "cumprod":
            x.flatten()[::3] = 100
        for d in range(len(shape)):
            want, got = SCANS[name](x, d), SCANS[name](x.to(dev), d).cpu()
            assert got.dtype == want.dtype
            torch.testing.assert_close(got, want)


NO_FLOAT64 = {"FLHAL_MOCK": "no_dtype=float64"}


def only_mock(plugin):
    if plugin != "mock":
        pytest.skip("only the mock's chips can be told to have no float64")


def test_TYPE_02_every_door_refuses_float64_and_names_the_switch(fresh, plugin):
    only_mock(plugin)
    r = fresh(
        """
        import numpy, torch, torch_fl
        d, x, y = 'fl_device', torch.ones(3, dtype=torch.float64), torch.ones(3, device='fl_device')
        doors = {
            'to': lambda: x.to(d), 'tensor': lambda: torch.tensor([1.0], dtype=torch.float64, device=d),
            'numpy': lambda: torch.as_tensor(numpy.ones(3), device=d), 'number': lambda: torch.tensor(numpy.float64(1), device=d),
            'module': lambda: torch.nn.Linear(2, 2).double().to(d), 'empty': lambda: torch.empty(2, dtype=torch.float64, device=d),
            'double': lambda: y.double(), 'sum': lambda: y.sum(dtype=torch.float64), 'zeros_like': lambda: torch.zeros_like(x, device=d),
            'copy_': lambda: torch.empty_like(x, device=d).copy_(x), 'arange': lambda: torch.arange(3, dtype=torch.float64, device=d),
            'load_state_dict': lambda: torch.nn.Linear(3, 3, dtype=torch.float64, device=d), 'promote': lambda: y * x.to(d),
        }
        for name, door in doors.items():
            try: door(); print(name, 'went through')
            except TypeError as e:
                text = str(e)
                assert 'chip_a' in text and 'Double' in text and "set_float64('demote')" in text, text
        assert (y + torch.tensor(1.0, dtype=torch.float64)).dtype == torch.float32    # a number of the host is no door
        torch_fl.set_float64('demote')
        import warnings
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter('always')
            for name, door in doors.items():
                out = door()
                out = out.weight if isinstance(out, torch.nn.Module) else out
                assert out.dtype == torch.float32 and out.device.type == d, name
                out.cpu()
            assert len([w for w in told if 'float32' in str(w.message)]) == 1, [str(w.message) for w in told]
        assert x.to(d).cpu().tolist() == [1.0, 1.0, 1.0] and y.sum(dtype=torch.float64).item() == 3.0
        torch_fl.set_float64('refuse')
        try: x.to(d); print('went through')
        except TypeError: pass
        try: torch_fl.set_float64('float32'); print('went through')
        except ValueError as e: assert 'refuse or demote' in str(e)
        """,
        env=NO_FLOAT64,
    ).ok()
    assert "went through" not in r.out


# Everything a user does with float32 works on a chip that stores float64 and cannot compute with it, and on one that demotes it.
@pytest.mark.parametrize("env", [{"FLHAL_MOCK": "no_fp64"}, {**NO_FLOAT64, "TORCH_FL_FLOAT64": "demote"}], ids=["stores", "demotes"])
def test_TYPE_04_training_in_float32_needs_no_float64(fresh, plugin, env):
    only_mock(plugin)
    fresh(
        """
        import torch, torch_fl, torch.nn.functional as F
        d = 'fl_device'
        torch.manual_seed(0)
        cpu = torch.nn.Linear(6, 3); chip = torch.nn.Linear(6, 3); chip.load_state_dict(cpu.state_dict()); chip.to(d)
        x, classes, y = torch.randn(8, 6), torch.tensor([0, 1, 2, 0, 1, 2, 0, 1]), torch.rand(8, 3)

        def close(a, b, what): torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-5, msg=lambda m: what + ': ' + m)

        losses = {
            'cross_entropy': lambda o, t: F.cross_entropy(o, classes.to(o.device)), 'mse': F.mse_loss, 'l1': F.l1_loss,
            'smooth_l1': F.smooth_l1_loss, 'huber': F.huber_loss, 'bce_logits': F.binary_cross_entropy_with_logits,
            'kl': lambda o, t: F.kl_div(o.log_softmax(-1), t, reduction='batchmean'), 'poisson': F.poisson_nll_loss,
            'soft_margin': F.soft_margin_loss, 'cosine': lambda o, t: 1 - F.cosine_similarity(o, t).mean(),
            'gaussian': lambda o, t: F.gaussian_nll_loss(o, t, t + 1),
        }
        for name, loss in losses.items():
            grads = []
            for net, target in ((cpu, y), (chip, y.to(d))):
                net.zero_grad()
                value = loss(net(x.to(target.device)), target); value.backward()
                norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
                grads.append((value.detach(), norm, net.weight.grad))
            for a, b in zip(grads[1], grads[0]): close(a, b, name)

        for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.Adagrad, torch.optim.RMSprop):
            for net, device in ((cpu, 'cpu'), (chip, d)):
                optimizer = make(net.parameters(), lr=0.01)
                scaler = torch.amp.GradScaler(device)
                for _ in range(2):
                    optimizer.zero_grad()
                    with torch.autocast(device, dtype=torch.bfloat16, enabled=False): value = F.cross_entropy(net(x.to(device)), classes.to(device))
                    scaler.scale(value).backward(); scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0); scaler.step(optimizer); scaler.update()
            close(chip.weight.detach(), cpu.weight.detach(), make.__name__)
        z = torch.randn(5, device=d)
        for f in (torch.abs, torch.norm, torch.std, torch.logsumexp and (lambda v: v.logsumexp(0)), lambda v: v ** 2.5, lambda v: v.quantile(0.5),
                  lambda v: torch.linspace(0, 1, 5, device=v.device), lambda v: v.cumsum(0), lambda v: torch.allclose(v, v), repr):
            f(z)
        """,
        env=env,
    ).ok()
