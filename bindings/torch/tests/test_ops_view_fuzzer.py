"""Random view chains x {copy_, fill_, add_, mul_, out=, sum, softmax, matmul} against the CPU, with canaries around.

TORCH_FL_FUZZ_CASES sets how many (3,000; 100,000 in `make test-full`), TORCH_FL_FUZZ_SEED the first seed (0). A failure prints
its seed and the chain as a program.
"""

import os
import random

import pytest
import torch

from ops_support import DEVICE

FULL = os.environ.get("FLHAL_TEST_FULL") == "1"
CASES = int(os.environ.get("TORCH_FL_FUZZ_CASES", "100000" if FULL else "3000"))
PART = 1000  # cases of one test, so that several processes share them
SEED = int(os.environ.get("TORCH_FL_FUZZ_SEED", "0"))
DTYPES = [torch.float32, torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool, torch.float16]
PAD = 17


def chain(rng, view, program, steps):
    for _ in range(steps):
        kind = rng.choice(["slice", "step", "permute", "expand", "unsqueeze", "squeeze", "view", "select", "narrow", "as_strided"])
        d = view.dim()
        if kind in ("slice", "step", "narrow") and d:
            i = rng.randrange(d)
            n = view.size(i)
            if n == 0:
                continue
            a = rng.randrange(n)
            b = rng.randint(a, n)
            s = rng.randint(2, 3) if kind == "step" else 1
            index = (slice(None),) * i + (slice(a, b, s),)
            view, text = view[index], f"[{', '.join([':'] * i + [f'{a}:{b}:{s}'])}]"
        elif kind == "permute" and d > 1:
            p = rng.sample(range(d), d)
            view, text = view.permute(p), f".permute({p})"
        elif kind == "expand" and d:
            i = rng.randrange(d)
            if view.size(i) != 1:
                continue
            n = rng.randint(2, 3)
            sizes = [-1] * d
            sizes[i] = n
            view, text = view.expand(sizes), f".expand({sizes})"
        elif kind == "unsqueeze" and d < 6:
            i = rng.randint(0, d)
            view, text = view.unsqueeze(i), f".unsqueeze({i})"
        elif kind == "squeeze" and d:
            i = rng.randrange(d)
            view, text = view.squeeze(i), f".squeeze({i})"
        elif kind == "select" and d > 1:
            i = rng.randrange(d)
            if view.size(i) == 0:
                continue
            k = rng.randrange(view.size(i))
            view, text = view.select(i, k), f".select({i}, {k})"
        elif kind == "view" and view.is_contiguous() and view.numel() and view.numel() % 2 == 0:
            view, text = view.view(2, -1), ".view(2, -1)"
        elif kind == "as_strided" and d and view.numel():
            size, stride, offset = list(view.size()), list(view.stride()), view.storage_offset()
            size[-1] = max(1, size[-1] - 1)
            view, text = view.as_strided(size, stride, offset), f".as_strided({size}, {stride}, {offset})"
        else:
            continue
        program.append(text)
    return view


def parent_of(rng, dtype, generator):
    shape = [rng.choice([1, 2, 3, 4, 5]) for _ in range(rng.randint(1, 4))]
    n = 1
    for s in shape:
        n *= s
    if dtype == torch.bool:
        flat = torch.rand(n + 2 * PAD, generator=generator) < 0.5
    elif dtype.is_floating_point:
        flat = (torch.rand(n + 2 * PAD, generator=generator, dtype=torch.float64) * 4 - 2).to(dtype)
    else:
        flat = torch.randint(0, 5, (n + 2 * PAD,), generator=generator).to(dtype)
    return flat, shape, n


def both_views(rng, dtype, generator, steps):
    flat, shape, n = parent_of(rng, dtype, generator)
    state = rng.getstate()
    program = [f"flat({n + 2 * PAD}, {dtype})[{PAD}:{PAD + n}].view({shape})"]
    cpu_flat = flat.clone()
    cpu = chain(rng, cpu_flat[PAD:PAD + n].view(shape), program, steps)
    rng.setstate(state)
    dev_flat = flat.to(DEVICE)
    dev = chain(rng, dev_flat[PAD:PAD + n].view(shape), [], steps)
    assert dev.size() == cpu.size() and dev.stride() == cpu.stride() and dev.storage_offset() == cpu.storage_offset()
    return (dev_flat, dev), (cpu_flat, cpu), "".join(program)


def operand_like(rng, cpu, generator):
    """A value that broadcasts to `cpu`, dense or transposed."""
    sizes = [s if rng.random() < 0.7 else 1 for s in cpu.size()]
    while sizes and rng.random() < 0.2:
        sizes.pop(0)
    value = torch.randint(0, 4, sizes, generator=generator).to(cpu.dtype)
    return value.transpose(0, -1).contiguous().transpose(0, -1) if len(sizes) > 1 and rng.random() < 0.4 else value


def act(op, x, other):
    if op == "copy_":
        return x.copy_(other)
    if op == "fill_":
        return x.fill_(1)
    if op == "add_":
        return x.add_(other)
    if op == "mul_":
        return x.mul_(other)
    if op == "out":
        return torch.add(other.expand(x.size()), other.expand(x.size()), out=x)
    if op == "sum":
        return x.sum(-1) if x.dim() else x.sum()
    if op == "softmax":
        return x.softmax(-1) if x.dim() else x.softmax(0)
    return torch.matmul(x, x.transpose(-1, -2) if x.dim() > 1 else x)


OPS = ["copy_", "fill_", "add_", "mul_", "out", "sum", "softmax", "matmul"]


def one_case(seed):
    rng = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    op = OPS[seed % len(OPS)]
    dtype = torch.float32 if op in ("softmax", "matmul") else rng.choice(DTYPES)
    before = [torch.full((rng.choice([8, 64, 300]),), 113, dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    (dev_flat, dev), (cpu_flat, cpu), text = both_views(rng, dtype, generator, rng.randint(1, 6))
    after = [torch.full((rng.choice([8, 64, 300]),), 113, dtype=torch.uint8, device=DEVICE) for _ in range(2)]
    other = operand_like(rng, cpu, generator)
    text = f"seed {seed}: {op} on {text}, other {list(other.size())} {other.stride()}"
    try:
        wanted, refused = act(op, cpu, other), None
    except RuntimeError as error:
        wanted, refused = None, error
    try:
        got = act(op, dev, other.to(DEVICE))
        assert refused is None, f"{text}: accepted, but the CPU says {refused}"
    except RuntimeError as error:
        assert refused is not None, f"{text}: refused: {error}"
        got = None
    if refused is None:
        assert got.dtype == wanted.dtype and got.size() == wanted.size(), text
        torch.testing.assert_close(got.cpu(), wanted, rtol=2e-3 if dtype == torch.float16 else 2e-5, atol=2e-3 if dtype == torch.float16 else 2e-5,
                                   equal_nan=True, msg=lambda m: f"{text}: {m}")
    exact = op not in ("softmax", "matmul", "sum")
    torch.testing.assert_close(dev_flat.cpu(), cpu_flat, rtol=0 if exact else 1e-5, atol=0, equal_nan=True,
                               msg=lambda m: f"{text}: the memory of the base: {m}")
    for guard in before + after:
        assert guard.cpu().eq(113).all(), f"{text}: wrote into a neighbour"


@pytest.mark.parametrize("first", range(SEED, SEED + CASES, PART))
def test_view_fuzzer(first):
    for seed in range(first, min(first + PART, SEED + CASES)):
        one_case(seed)
