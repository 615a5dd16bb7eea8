"""Complex numbers, lazily conjugated and negated ones among them, equal the CPU's under every kind of operator."""

import pytest
import torch

from ops_support import DEVICE, both

CALLS = {
    "add": lambda x: x + x, "mul": lambda x: x * x, "div": lambda x: x / (x + 1), "abs": torch.abs, "exp": torch.exp,
    "conj_add": lambda x: x.conj() + x, "conj_mul_": lambda x: x.conj().mul_(2), "mm": lambda x: x @ x.mH,
    "conj_mm": lambda x: x.conj() @ x.t(), "sum": torch.sum, "mean": lambda x: x.mean(0), "prod": torch.prod,
    "var": torch.var, "var_dim": lambda x: x.var(0), "std": lambda x: x.std(1, correction=0), "var_mean": lambda x: torch.var_mean(x, 1),
    "norm": torch.norm, "norm_1": lambda x: torch.linalg.vector_norm(x, 1, dim=0), "norm_inf": lambda x: torch.linalg.vector_norm(x, float("inf")),
    "any": torch.any, "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(0), "real": lambda x: x.real + 1,
    "imag_": lambda x: x.imag.mul_(2), "conj_imag_": lambda x: x.conj().imag.add_(1), "angle": torch.angle, "eq": lambda x: x == x.conj(),
    "where": lambda x: torch.where(x.real > 0, x, x.conj()), "neg_view": lambda x: torch._neg_view(x) + 1, "pow": lambda x: x**2,
    "reciprocal": lambda x: (x + 1).reciprocal(), "sqrt": torch.sqrt, "index": lambda x: x[:, [2, 0]], "cat": lambda x: torch.cat([x, x.conj()]),
    "stack": lambda x: torch.stack([x, x.real]), "sgn": torch.sgn, "fill": lambda x: x.fill_(1 + 2j), "number": lambda x: x * (1 + 2j) + 1j,
    "cpu_number": lambda x: x * torch.tensor(2j), "dot": lambda x: torch.dot(x[0], x[1]), "vdot": lambda x: torch.vdot(x[0], x[1]),
    "masked": lambda x: x[x.real > 0], "copy_conj": lambda x: torch.empty_like(x).copy_(x.conj()), "copy_into_conj": lambda x: torch.zeros_like(x).conj().copy_(x),
    "fft": torch.fft.fft, "linear": lambda x: torch.nn.functional.linear(x, x), "einsum": lambda x: torch.einsum("ij,kj->ik", x, x.conj()),
    "lerp": lambda x: torch.lerp(x, x.conj(), 0.5), "addcmul": lambda x: torch.addcmul(x, x, x.conj(), value=0.5), "sigmoid": torch.sigmoid,
    "to_double": lambda x: x.to(torch.complex128), "relu": torch.relu, "gt": lambda x: x > x, "max": torch.max, "sort": torch.sort,
    "softmax": lambda x: x.softmax(0), "clamp": lambda x: x.clamp(0, 1), "inv": lambda x: torch.linalg.inv(x[:, :2]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=lambda d: str(d)[6:])
@pytest.mark.parametrize("name", CALLS)
def test_complex_equals_the_cpu(name, dtype):
    x = torch.complex(torch.arange(6.0) - 2, torch.arange(6.0) * 0.5).to(dtype).reshape(2, 3)
    pair = both(lambda: CALLS[name](x.to(DEVICE)), lambda: CALLS[name](x.clone()), name)
    if pair:
        ours, cpu = (r if isinstance(r, tuple) else (r,) for r in pair)
        for a, b in zip(ours, cpu, strict=True):
            assert a.device.type == DEVICE and a.is_conj() == b.is_conj() and a.is_neg() == b.is_neg()
            torch.testing.assert_close(a.cpu().resolve_conj(), b.resolve_conj(), rtol=2e-6 if a.itemsize <= 8 else 1e-12, atol=1e-6)


def test_a_product_over_nothing_scales_by_a_complex_beta(dev):
    c, a, b = torch.ones(2, 3, dtype=torch.complex64), torch.ones(2, 0, dtype=torch.complex64), torch.ones(0, 3, dtype=torch.complex64)
    got = torch.addmm(c.to(dev), a.to(dev), b.to(dev), beta=1 + 2j)
    assert got.cpu().equal(torch.addmm(c, a, b, beta=1 + 2j))
