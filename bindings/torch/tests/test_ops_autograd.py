"""The short road past autograd must change nothing that a user can see."""

import threading

import pytest
import torch

from ops_support import DEVICE, assert_same, values

OPS = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div}
INPLACE = ["add_", "sub_", "mul_", "div_"]
f32 = torch.float32


def pair(shape=(3, 4)):
    return values(shape, f32, 1, 0.5, 2), values(shape, f32, 2, 0.5, 2)


@pytest.mark.parametrize("name", list(OPS))
@pytest.mark.parametrize("who", [(True, False), (False, True), (True, True)])
def test_gradients_match_cpu(name, who):
    results = []
    for device in (DEVICE, "cpu"):
        a, b = (t.to(device).requires_grad_(r) for t, r in zip(pair(), who))
        y = OPS[name](a, b)
        assert y.requires_grad
        (y * y).sum().backward()
        results.append([y.detach()] + [t.grad for t in (a, b) if t.grad is not None])
    assert_same(*results)


@pytest.mark.parametrize("name", list(OPS))
def test_forward_mode_jvp_vmap_and_double_backward(name):
    op = OPS[name]
    results = []
    for device in (DEVICE, "cpu"):
        a, b = (t.to(device) for t in pair())
        one = torch.ones_like(a)
        out = list(torch.func.jvp(op, (a, b), (one, one)))
        out.append(torch.func.vmap(op)(a, b))
        out.append(torch.func.grad(lambda x: op(x, b).sum())(a))
        x = a.clone().requires_grad_()
        (g,) = torch.autograd.grad((op(x, b) * x * x).sum(), x, create_graph=True)
        out.append(torch.autograd.grad(g.sum(), x)[0])
        import torch.autograd.forward_ad as fwd
        with fwd.dual_level(), torch.no_grad():
            out.append(fwd.unpack_dual(op(fwd.make_dual(a, one), b)).tangent)
        results.append(out)
    assert_same(*results)


@pytest.mark.parametrize("name", INPLACE)
def test_inplace_bumps_the_version_and_saved_tensors_notice(name):
    a, b = (t.to(DEVICE) for t in pair())
    before = a._version
    getattr(a, name)(b)
    assert a._version == before + 1
    w = torch.ones(3, 4, device=DEVICE, requires_grad=True)
    y = w * a
    getattr(a, name)(b)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("name", INPLACE)
def test_inference_tensors_refuse_writes_outside_inference_mode(name):
    with torch.inference_mode():
        a = torch.ones(3, device=DEVICE)
        getattr(a, name)(torch.ones(3, device=DEVICE))
    with pytest.raises(RuntimeError, match="[Ii]nference tensor"):
        getattr(a, name)(torch.ones(3, device=DEVICE))


def test_a_leaf_that_requires_grad_refuses_inplace():
    with pytest.raises(RuntimeError, match="leaf"):
        torch.ones(3, device=DEVICE, requires_grad=True).add_(torch.ones(3, device=DEVICE))


@pytest.mark.parametrize("call", ["linear", "matmul", "sdpa"])
def test_composites_with_and_without_gradients_agree(call):
    run = {"linear": torch.nn.functional.linear, "matmul": torch.matmul, "sdpa": torch.nn.functional.scaled_dot_product_attention}[call]
    shapes = {"linear": [(2, 3, 8), (5, 8), (5,)], "matmul": [(2, 1, 4, 8), (3, 8, 6)], "sdpa": [(2, 3, 5, 8)] * 3}[call]
    results = []
    for device in (DEVICE, "cpu"):
        x = [values(s, f32, i).to(device) for i, s in enumerate(shapes)]
        plain = run(*x)
        for t in x:
            t.requires_grad_()
        tracked = run(*x)
        tracked.square().sum().backward()
        with torch.no_grad():
            still = run(*x)
        assert tracked.requires_grad and not still.requires_grad
        ones = [torch.ones_like(t) for t in x]
        # The CPU's fused attention has no forward mode.
        tangent = x[0].detach() if call == "sdpa" else torch.func.jvp(run, tuple(t.detach() for t in x), tuple(ones))[1]
        with torch.inference_mode():
            inference = run(*x).clone()
        results.append([plain, tracked.detach(), still, inference, tangent] + [t.grad for t in x])
    assert_same(*results, exact_strides=False)


def test_threads_share_nothing():
    a, b = (t.to(DEVICE) for t in pair((64,)))
    wanted = ((a + b) * b).cpu()
    wrong = []

    def work():
        for _ in range(300):
            if not torch.equal(((a + b) * b).cpu(), wanted):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not wrong and not any(t.is_alive() for t in threads)


def test_modes_and_subclasses_still_see_the_calls():
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    a = torch.ones(3, device=DEVICE)
    with Mode():
        a + a
        a.add_(a)
        torch.nn.functional.linear(torch.ones(2, 3, device=DEVICE), torch.ones(4, 3, device=DEVICE))
    assert "aten.add.Tensor" in seen and "aten.add_.Tensor" in seen
    assert any("mm" in s or "linear" in s for s in seen)
