"""Losses: class targets, ignored rows, weights, bad classes; distances; on the chip without a fallback."""

import pytest
import torch
import torch_fl
from torch.nn import functional as F

LOGITS = torch.randn(6, 5, generator=torch.Generator().manual_seed(1))
TARGET = torch.tensor([4, 0, -100, 2, 2, 1])


def gradient(logits, target, **how):
    x = logits.detach().clone().requires_grad_()
    loss = F.cross_entropy(x, target, **how)
    loss.sum().backward()
    return loss.detach().cpu(), x.grad.cpu()


@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.5, 0.0, 2.0, 3.0])], ids=["plain", "weighted"])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_and_its_gradient(dev, reduction, weight, smoothing):
    how = dict(reduction=reduction, label_smoothing=smoothing)
    want = gradient(LOGITS, TARGET, weight=weight, **how)
    got = gradient(LOGITS.to(dev), TARGET.to(dev), weight=None if weight is None else weight.to(dev), **how)
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)


def test_nothing_leaves_a_chip_with_kernels(dev, plugin):
    if plugin == "ram":
        pytest.skip("a chip without kernels computes on the host")
    x = LOGITS.to(dev).requires_grad_()
    with torch_fl.fallback("strict"):
        F.cross_entropy(x, TARGET.to(dev)).backward()
    assert x.grad.cpu().isfinite().all()


def test_what_lies_under_an_ignored_target_takes_no_part(dev):
    logits = LOGITS.clone()
    logits[2] = float("inf")
    want = F.nll_loss(logits, TARGET)
    torch.testing.assert_close(F.nll_loss(logits.to(dev), TARGET.to(dev)).cpu(), want)
    assert want.isfinite()


def test_every_row_ignored_is_nan_as_on_the_cpu(dev):
    target = torch.full((6,), -100)
    assert F.cross_entropy(LOGITS.to(dev), target.to(dev)).isnan().item()
    assert F.cross_entropy(LOGITS.to(dev), target.to(dev), reduction="sum").item() == 0


def test_a_class_that_does_not_exist_is_an_index_error(dev, plugin):
    bad = TARGET.clone()
    bad[1] = 5
    # Where work is queued the failure comes at the first wait, and is no IndexError any more.
    with pytest.raises(torch.AcceleratorError if plugin == "mock" else IndexError, match="index 5 is out of range"):
        F.cross_entropy(LOGITS.to(dev), bad.to(dev)).item()
    torch_fl.clear_error(dev)
    assert F.cross_entropy(LOGITS.to(dev), TARGET.to(dev)).isfinite().item()       # and the chip goes on


@pytest.mark.parametrize("shape", [(0, 5), (2, 5, 3)])
def test_other_shapes(dev, shape):
    logits = torch.randn(shape)
    target = torch.zeros(shape[:1] + shape[2:], dtype=torch.long)
    torch.testing.assert_close(F.cross_entropy(logits.to(dev), target.to(dev)).cpu(), F.cross_entropy(logits, target), equal_nan=True)


DISTANCES = {
    "mse": F.mse_loss, "l1": F.l1_loss, "smooth_l1": F.smooth_l1_loss, "smooth_l1_beta": lambda a, b, **k: F.smooth_l1_loss(a, b, beta=0.2, **k),
    "huber": F.huber_loss, "huber_delta": lambda a, b, **k: F.huber_loss(a, b, delta=0.4, **k),
}


@pytest.mark.parametrize("name", DISTANCES)
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_distance_losses_stay_on_the_chip(dev, plugin, name, reduction, recwarn):
    target = torch.randn(6, 5, generator=torch.Generator().manual_seed(2))
    target[0] = LOGITS[0]
    results = []
    for device in ("cpu", dev):
        x = LOGITS.to(device).t().contiguous().t().requires_grad_()
        with torch_fl.fallback("auto" if plugin == "ram" else "strict"):
            value = DISTANCES[name](x, target.to(device), reduction=reduction)
            value.sum().backward()
        results.append((value.detach().cpu(), x.grad.cpu()))
    for want, got in zip(*results):
        torch.testing.assert_close(got, want)
    assert not [w for w in recwarn if "resized" in str(w.message)]
