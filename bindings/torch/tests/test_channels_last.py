"""channels_last: convolutions keep the memory format that PyTorch's CPU gives their results, forward and backward."""

import itertools

import pytest
import torch
from torch.nn import functional as F

CL, PLAIN = torch.channels_last, torch.contiguous_format


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups, kernel", [(1, 1), (1, 3), (2, 1), (2, 3), (4, 3)])
def test_convolutions_keep_the_cpus_memory_format(dev, transposed, groups, kernel):
    g = torch.Generator().manual_seed(0)
    f = F.conv_transpose2d if transposed else F.conv2d
    shape = (4, 8 // groups) if transposed else (8, 4 // groups)
    for x_format, w_format in itertools.product((PLAIN, CL), repeat=2):
        x = torch.randn(2, 4, 6, 7, generator=g).to(memory_format=x_format)
        w = torch.randn(*shape, kernel, kernel, generator=g).to(memory_format=w_format)
        bias = torch.randn(8, generator=g)
        found = []
        for device in ("cpu", dev):
            xd, wd, bd = (t.detach().to(device).requires_grad_() for t in (x, w, bias))
            y = f(xd, wd, bd, stride=2, padding=kernel // 2, groups=groups)
            # Not y.sum(): its gradient is an expanded number, which has no memory format.
            y.backward(torch.ones_like(y))
            found.append((y.detach(), xd.grad, wd.grad))
        for what, theirs, ours in zip(("result", "gradient of the input", "gradient of the weight"), *found):
            torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-4, atol=1e-5)
            assert ours.is_contiguous(memory_format=CL) == theirs.is_contiguous(memory_format=CL), (what, x_format, w_format)
            if what != "gradient of the weight":
                assert ours.stride() == theirs.stride(), (what, x_format, w_format)


def test_a_network_stays_in_channels_last(dev):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.MaxPool2d(2), torch.nn.Conv2d(8, 4, 1))
    x, strides = torch.randn(2, 3, 12, 12), {}
    for device in ("cpu", dev):
        net.to(device).to(memory_format=CL)
        t = x.to(device).to(memory_format=CL)
        for layer in net:
            t = layer(t)
            strides.setdefault(str(device), []).append(t.stride())
    assert strides["cpu"] == strides[str(dev)]
