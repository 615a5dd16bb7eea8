"""Every row of aten_map.def in every dtype, also those the CPU has no kernels for, and with out= of every other dtype: the CPU's
values where it gives some, and its refusals. Operators that only move elements take uint16, uint32 and uint64 besides."""

import pytest
import torch
import torch_fl

from ops_support import DTYPES, assert_same, forms, resolve, to_device
from test_ops_rows import OTHER_ROWS, POINTWISE_ROWS, REDUCED_EXEMPT, SAMPLES, pointwise_args

UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
COMPLEX = [torch.complex64, torch.complex128]
EVERY = DTYPES + UNSIGNED + COMPLEX
# They move bits: nothing can be computed otherwise than numpy would.
MOVERS = {"where.self", "masked_fill.Scalar", "masked_fill.Tensor", "gather", "scatter.src", "scatter.value", "tril", "triu",
          "_index_put_impl_", "max_pool2d_with_indices_backward"}
# The CPU answers, and torch's Meta kernel, which says what the result looks like, does not.
META_REFUSES = {"abs": "out= of another type than the real one, from complex numbers"}


def outcome(call):
    try:
        result = call()
        torch_fl.synchronize()
        return result, None
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        torch_fl.clear_error(torch.device("fl_device", 0))
        return None, error


def same(ours, cpu, what, computed_in=None):
    (mine, my_error), (wanted, cpu_error) = ours, cpu
    if cpu_error is None:
        assert my_error is None, f"{what}: the CPU answers, the chip says {my_error!r}"
        assert_same(mine, wanted, what, exact_strides=False, computed_in=computed_in)
        return
    assert my_error is not None, f"{what}: accepted, but the CPU says {cpu_error!r}"
    kinds = {type(cpu_error), type(my_error)}
    assert kinds == {RuntimeError, NotImplementedError} or isinstance(my_error, type(cpu_error)), f"{what}: {my_error!r}, CPU {cpu_error!r}"


def samples(name, dtype):
    if name in POINTWISE_ROWS:
        return [[a for a in pointwise_args(name, dtype) if not (name == "div.Tensor_mode" and isinstance(a, str))]]
    return [list(a) for a in SAMPLES[name](dtype)][:2]


def keywords(name):
    return {"rounding_mode": "floor"} if name == "div.Tensor_mode" else {}


def copies(args):
    return [a.clone() if isinstance(a, torch.Tensor) else a for a in args]


@pytest.mark.parametrize("name", POINTWISE_ROWS + OTHER_ROWS)
def test_OP_06_dtypes_the_cpu_refuses_are_refused(dev, name):
    for dtype in EVERY:
        if name in REDUCED_EXEMPT and dtype in (torch.float16, torch.bfloat16):
            continue
        try:
            found = samples(name, dtype)
        except (RuntimeError, TypeError, ValueError):
            continue                                        # the CPU cannot even make the numbers
        for form, op in forms(name).items():
            if form == "out":
                continue
            for k, args in enumerate(found):
                what = f"{name} {form} sample {k} {dtype}"
                cpu = outcome(lambda: op(*copies(args), **keywords(name)))
                mine = outcome(lambda: op(*to_device(args), **keywords(name)))
                if cpu[1] is not None and mine[1] is None and dtype in UNSIGNED and name in MOVERS:
                    wide = [a.to(torch.int64) if isinstance(a, torch.Tensor) and a.dtype == dtype else a for a in args]
                    assert torch.equal(mine[0].cpu().to(torch.int64), op(*wide)), what
                    continue
                same(mine, cpu, what)


@pytest.mark.parametrize("name", [n for n in POINTWISE_ROWS + OTHER_ROWS if "out" in forms(n)])
def test_out_of_every_other_dtype_is_what_the_cpu_gives_or_refuses(dev, name):
    op = forms(name)["out"]
    names = [a.name for a in op._schema.arguments if a.is_out]
    if len(names) != 1:
        pytest.skip("several results: each has the type of its own, and torch checks it before a kernel is asked")
    for dtype in (torch.float32, torch.float16, torch.int64, torch.int16, torch.uint8, torch.bool, torch.uint16, torch.complex64):
        try:
            args = samples(name, dtype)[0]
        except (RuntimeError, TypeError, ValueError):
            continue
        for other in EVERY:
            what = f"{name} {dtype} out={other}"
            cpu = outcome(lambda: op(*copies(args), **keywords(name), **{names[0]: torch.zeros(0, dtype=other)}))
            mine = outcome(lambda: op(*to_device(args), **keywords(name), **{names[0]: torch.zeros(0, dtype=other, device=dev)}))
            if mine[1] is not None and name in META_REFUSES and dtype.is_complex:
                continue
            if cpu[1] is not None and mine[1] is None and dtype in UNSIGNED and name in MOVERS and other == dtype:
                continue                                    # the functional form is compared above
            same(mine, cpu, what, computed_in=dtype)


NUMBERS = [300.7, -3.3, 0.1, 70000.0, 2**40 + 1, 0]
BESIDE = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "floor_divide": torch.floor_divide, "fmod": torch.fmod,
    "remainder": torch.remainder, "maximum": torch.maximum, "eq": torch.eq, "lt": torch.lt, "ge": torch.ge, "pow": torch.pow,
    "rsub": torch.rsub, "logical_and": torch.logical_and, "bitwise_or": torch.bitwise_or, "shift": torch.bitwise_right_shift,
    "atan2": torch.atan2, "where": lambda a, b: torch.where(a == a, a, b), "clamp_min": torch.clamp_min, "lerp": lambda a, b: torch.lerp(a, a, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b), "masked_fill": lambda a, b: a.masked_fill(a == a, b),
    "div_trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"), "add_": lambda a, b: a.clone().add_(b),
    "fill_": lambda a, b: a.clone().fill_(b), "copy_": lambda a, b: a.clone().copy_(b),
}  # fmt: skip


@pytest.mark.parametrize("name", BESIDE)
def test_TYPE_06_a_number_that_the_other_type_cannot_hold(dev, name):
    """A 0-dim tensor beside larger ones does not decide the type: the CPU converts it first, 300 is 44 beside int8."""
    call = BESIDE[name]
    for left in DTYPES:
        a = torch.tensor([1, -2, 3, 44, 0.1, 100.3])
        a = (a.abs() if left == torch.uint8 else a).to(left)
        for right in DTYPES:
            for value in NUMBERS:
                b = torch.tensor(abs(value) if right == torch.uint8 else value, dtype=torch.float64).to(right)
                for turned in (False, True):
                    x, y = (b, a) if turned else (a, b)
                    what = f"{name} {left} beside {right} {value} {'(turned)' if turned else ''}"
                    cpu = outcome(lambda: call(x, y))
                    same(outcome(lambda: call(x.to(dev), y.to(dev))), cpu, what)
                    if not turned and name not in ("add_", "copy_"):
                        same(outcome(lambda: call(x.to(dev), y)), cpu, what + " on the CPU")


def test_narrow_arithmetic_rounds_and_wraps_before_a_wider_out(dev):
    for dtype, out, call in ((torch.bool, torch.float32, torch.add), (torch.uint8, torch.int64, torch.add), (torch.int8, torch.int32, torch.mul),
                             (torch.float16, torch.float32, torch.add), (torch.bfloat16, torch.float64, torch.mul),
                             (torch.int32, torch.int64, torch.mul), (torch.float16, torch.float32, torch.exp)):
        x = torch.tensor([1, 0, 100, 117, 11.7, 100001]).clamp(max=1e5 if dtype == torch.int32 else 120).to(dtype)
        args = (x, x) if call is not torch.exp else (x,)
        wanted = call(*args, out=torch.zeros(6, dtype=out))
        there = torch.zeros(12, dtype=out, device=dev)
        got = call(*to_device(list(args)), out=there[::2])
        assert got.data_ptr() == there.data_ptr()
        if call is torch.exp:
            assert_same(got, wanted, exact_strides=False)
        else:
            assert got.cpu().equal(wanted), (dtype, out, got.cpu(), wanted)
        assert there[1::2].cpu().eq(0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_sums_and_products_in_bool_are_of_truths(dev, dtype):
    x = torch.tensor([[0.5, 0.25], [0.5, -0.5], [0, 2], [0, 0]])
    x = (x * 4).abs().to(dtype) if not dtype.is_floating_point else x.to(dtype)
    for call in (torch.prod, torch.sum):
        wanted = call(x, 1, dtype=torch.bool)
        assert call(x.to(dev), 1, dtype=torch.bool).cpu().equal(wanted)
        out = torch.zeros(4, dtype=torch.bool, device=dev)
        assert call(x.to(dev), 1, out=out).cpu().equal(call(x, 1, out=torch.zeros(4, dtype=torch.bool)))


@pytest.mark.parametrize("call", [lambda x, i: x.index_put_((i,), x.clone()), lambda x, i: x[i], lambda x, i: x.__setitem__((i, i), 1)])
@pytest.mark.parametrize("shape, index", [((), [0]), ((3,), [0.0]), ((3,), [[0, 1], [1, 2]])])
def test_OP_06_indices_that_do_not_fit_raise_as_on_the_cpu(dev, call, shape, index):
    cpu = outcome(lambda: call(torch.zeros(shape), torch.tensor(index)))
    same(outcome(lambda: call(torch.zeros(shape, device=dev), torch.tensor(index, device=dev))), cpu, f"{shape} {index}")


def test_OP_06_index_tensors_that_do_not_broadcast(dev):
    x, i, j = torch.zeros(3, 3, device=dev), torch.tensor([0, 1], device=dev), torch.tensor([0, 1, 2], device=dev)
    with pytest.raises(IndexError, match="could not be broadcast"):
        x[i, j] = 1
    with pytest.raises(IndexError, match="could not be broadcast"):
        x[i, j]


@pytest.mark.parametrize("call", [torch.floor_divide, torch.add, torch.logical_and, torch.fmod])
def test_VIEW_04_an_out_that_is_read_is_not_resized(dev, call):
    """PyTorch's Python Meta kernels do not see that out= is an operand: it was resized, and read afterwards."""
    x, y = torch.ones(3, device=dev), torch.ones(4, 1, device=dev)
    with pytest.raises(RuntimeError, match=r"output with shape \[3\] doesn't match the broadcast shape \[4, 3\]"):
        call(x, y, out=x)
    assert x.cpu().tolist() == [1, 1, 1]
