"""What the operator tests share: the rows of aten_map.def, views with the memory around them, samples, comparison."""

import dataclasses
import functools
import os
import pathlib
import re

import torch
import torch_fl

DEVICE = "fl_device"
LACKS = os.environ.get("FLHAL_TEST_LACKS")     # the type that this chip cannot hold (test_crippled_chips.py)
MAP = pathlib.Path(__file__).resolve().parents[1] / "csrc" / "aten_map.def"
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
DTYPES = FLOATS + INTS + [torch.bool]


@dataclasses.dataclass(frozen=True)
class Row:
    overload: str
    kind: str      # the macro: FL_UNARY, FL_ROW, ...
    handler: str   # "" where the macro says it


@functools.cache
def rows():
    found = []
    for line in MAP.read_text().splitlines():
        match = re.match(r'(FL_[A-Z]+)\("([^"]+)",\s*(\w+)', line)
        if match and not line.startswith("#"):
            found.append(Row(match[2], match[1], match[3] if match[1] == "FL_ROW" else ""))
    assert len(found) > 100
    return found


def resolve(name):
    base, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, base), overload or "default")


def _same(a, b):
    return str(a.type) == str(b.type)


@functools.cache
def forms(name):
    """The overloads a row answers: {'functional': op, 'inplace': op, 'out': op}, those that exist."""
    op = resolve(name)
    schema = op._schema
    writes = schema.arguments and schema.arguments[0].alias_info and schema.arguments[0].alias_info.is_write
    if any(a.is_out for a in schema.arguments):
        return {"out": op}
    if writes:
        return {"inplace": op}
    found = {"functional": op}
    base = name.partition(".")[0]
    for family in (base, base + "_"):
        packet = getattr(torch.ops.aten, family, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            other = getattr(packet, overload)
            args = other._schema.arguments
            if family != base:
                if len(args) == len(schema.arguments) and args[0].alias_info and args[0].alias_info.is_write and all(
                    map(_same, args, schema.arguments)
                ):
                    found.setdefault("inplace", other)
            elif (
                len(args) == len(schema.arguments) + len(schema.returns)
                and all(a.is_out for a in args[len(schema.arguments):])
                and all(x.name == y.name and _same(x, y) and not x.is_out for x, y in zip(args, schema.arguments))
            ):
                found.setdefault("out", other)
    return found


class View:
    """A strided view and its whole allocation, so that a stray write anywhere around it shows."""

    def __init__(self, parent, size, stride, offset):
        self.parent, self.size, self.stride, self.offset = parent, tuple(size), tuple(stride), offset

    def on(self, device):
        parent = self.parent.clone() if device == "cpu" else self.parent.to(device)
        return parent, parent.as_strided(self.size, self.stride, self.offset)


def values(shape, dtype, seed=0, low=-3.0, high=3.0):
    generator = torch.Generator().manual_seed(seed)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return (torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(dtype)
    low = max(int(low), torch.iinfo(dtype).min if dtype != torch.uint8 else 0)
    return torch.randint(low, max(int(high), low + 2), shape, generator=generator).to(dtype)


def _canary(n, dtype):
    return torch.full((n,), True if dtype == torch.bool else 77, dtype=dtype)


def _place(value, size_stride, offset, room):
    parent = _canary(room, value.dtype)
    parent.as_strided(value.shape, size_stride, offset).copy_(value)
    return View(parent, value.shape, size_stride, offset)


def _dense(shape):
    stride, n = [], 1
    for size in reversed(shape):
        stride.insert(0, n)
        n *= max(size, 1)
    return stride, n


LAYOUTS = ["dense", "offset", "transposed", "gappy", "rows"]


def laid_out(value, layout):
    """`value` in memory of its own with the given layout."""
    shape = list(value.shape)
    stride, n = _dense(shape)
    if layout == "dense":
        return _place(value, stride, 0, n)
    if layout == "offset":
        return _place(value, stride, 3, n + 7)
    if layout == "transposed":
        reverse, n = _dense(shape[::-1])
        return _place(value, reverse[::-1], 1, n + 2)
    if layout == "gappy":
        return _place(value, [2 * s for s in stride], 1, 2 * n + 3)
    if layout == "rows":
        wide = [s * 2 if i < len(stride) - 1 else s for i, s in enumerate(stride)]
        return _place(value, wide, 2, 2 * n + 5)
    if layout == "expanded":
        return View(value.reshape(-1)[:1].repeat(3), shape, [0] * len(shape), 1)
    raise ValueError(layout)


TOLERANCE = {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2), torch.float32: (2e-5, 2e-5), torch.complex64: (2e-5, 2e-5),
             torch.float64: (1e-7, 1e-7), torch.complex128: (1e-7, 1e-7)}


def assert_same(ours, cpu, what="", exact_strides=True, computed_in=None):
    """`computed_in`: the type whose rounding counts, where the result's is wider."""
    if isinstance(cpu, (tuple, list)):
        assert len(ours) == len(cpu), what
        for a, b in zip(ours, cpu):
            assert_same(a, b, what, exact_strides, computed_in)
        return
    if not isinstance(cpu, torch.Tensor):
        assert ours == cpu, what
        return
    assert ours.device.type == DEVICE, f"{what}: result lies on {ours.device}"
    assert ours.dtype == cpu.dtype and ours.shape == cpu.shape, f"{what}: {ours.dtype} {ours.shape}, CPU {cpu.dtype} {cpu.shape}"
    if exact_strides and cpu.numel() > 1:
        assert ours.stride() == cpu.stride(), f"{what}: strides {ours.stride()}, CPU {cpu.stride()}"
    exact = not (cpu.dtype.is_floating_point or cpu.dtype.is_complex)
    rtol, atol = (0, 0) if exact else max(TOLERANCE[cpu.dtype], TOLERANCE.get(computed_in, (0, 0)))
    torch.testing.assert_close(ours.cpu(), cpu, rtol=rtol, atol=atol, equal_nan=True, msg=lambda m: f"{what}: {m}")


def to_device(x):
    if isinstance(x, torch.Tensor):
        return x.to(DEVICE, copy=True)
    if isinstance(x, (list, tuple)):
        return type(x)(to_device(i) for i in x)
    return x


def kind_of(error):
    """Which exceptions count as the same refusal."""
    if isinstance(error, NotImplementedError):
        return "not implemented"
    for kind in (IndexError, TypeError, ValueError, RuntimeError):
        if isinstance(error, kind):
            return kind.__name__
    return type(error).__name__


def both(call_ours, call_cpu, what=""):
    """Runs both; equal results, or equal refusals. None when the CPU has no kernel and ours need not have one."""
    try:
        cpu = call_cpu()
    except Exception as error:  # noqa: BLE001
        if kind_of(error) == "not implemented" or "not implemented for" in str(error):
            return None
        try:
            call_ours()
            torch_fl.synchronize()
        except Exception as mine:  # noqa: BLE001
            torch_fl.clear_error()
            # A kernel on a chip with queues found it, and told at the next wait.
            late = isinstance(mine, torch.AcceleratorError) or "is out of range" in str(mine)
            if LACKS and f"cannot hold {LACKS}: " in str(mine):
                return None
            assert late or kind_of(mine) == kind_of(error), f"{what}: {mine!r}, CPU {error!r}"
            return None
        raise AssertionError(f"{what}: accepted, but the CPU says {error!r}")
    return call_ours(), cpu
