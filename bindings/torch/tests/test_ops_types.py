"""Promotion and in-place narrowing: dtype x dtype x {tensor, 0-dim tensor, 0-dim CPU tensor, Python number}."""

import operator

import pytest
import torch

from ops_support import DEVICE, assert_same, both, values

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]
OPS = {
    "add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "maximum": torch.maximum, "eq": torch.eq, "lt": torch.lt,
    "pow": torch.pow, "floor_divide": torch.floor_divide, "where": lambda a, b: torch.where(torch.ones_like(a, dtype=torch.bool), a, b),
    "cat": lambda a, b: torch.cat([a, b]),
}
INPLACE = {"add": operator.iadd, "mul": operator.imul, "div": operator.itruediv, "sub": operator.isub}


def sample(dtype, shape, seed):
    return values(shape, dtype, seed, 1, 4)


@pytest.mark.parametrize("name", list(OPS))
@pytest.mark.parametrize("left", DTYPES, ids=lambda d: str(d)[6:])
def test_TYPE_06_promotion_matches_cpu(name, left):
    for right in DTYPES:
        for shapes in [((3, 2), (3, 2)), ((3, 2), ()), ((), (3, 2)), ((), ())]:
            if name == "cat" and () in shapes:
                continue
            a, b = sample(left, shapes[0], 1), sample(right, shapes[1], 2)
            pair = both(lambda: OPS[name](a.to(DEVICE), b.to(DEVICE)), lambda: OPS[name](a, b), f"{name} {left} {right} {shapes}")
            if pair:
                assert_same(*pair, f"{name} {left} {right} {shapes}")


@pytest.mark.parametrize("name", [n for n in OPS if n not in ("cat", "maximum")])
@pytest.mark.parametrize("left", DTYPES, ids=lambda d: str(d)[6:])
def test_TYPE_06_numbers_promote_as_cpu(name, left):
    for number in (True, 2, -3, 1.5, 0.1):
        for shape in ((3, 2), ()):
            a = sample(left, shape, 1)
            what = f"{name} {left} {shape} with {number!r}"
            pair = both(lambda: OPS[name](a.to(DEVICE), number), lambda: OPS[name](a, number), what)
            if pair:
                assert_same(*pair, what)


@pytest.mark.parametrize("name", [n for n in OPS if n != "cat"])
def test_TYPE_06_zero_dim_cpu_tensor_beside_device_tensor(name):
    for left in DTYPES:
        for right in (torch.float64, torch.int64, torch.bool, torch.float16):
            a, b = sample(left, (3, 2), 1), sample(right, (), 2)
            what = f"{name} {left} with 0-dim CPU {right}"
            pair = both(lambda: OPS[name](a.to(DEVICE), b), lambda: OPS[name](a, b), what)
            if pair:
                assert_same(*pair, what)


@pytest.mark.parametrize("name", list(INPLACE))
@pytest.mark.parametrize("left", DTYPES, ids=lambda d: str(d)[6:])
def test_TYPE_06_inplace_narrowing_is_refused_as_cpu(name, left):
    for right in DTYPES:
        a, b = sample(left, (3, 2), 1), sample(right, (3, 2), 2)
        mine = a.to(DEVICE)
        what = f"{name}_ {left} {right}"
        pair = both(lambda: INPLACE[name](mine, b.to(DEVICE)), lambda: INPLACE[name](a.clone(), b), what)
        if pair:
            assert_same(*pair, what)
        else:
            assert_same(mine, a, what + " (refused, so unchanged)")


def test_out_of_another_dtype_converts_or_is_refused_as_cpu():
    for out in DTYPES:
        a, b = values((3, 2), torch.float32, 1), values((3, 2), torch.float32, 2)
        for op in (torch.add, torch.eq):
            pair = both(lambda: op(a.to(DEVICE), b.to(DEVICE), out=torch.zeros(3, 2, dtype=out, device=DEVICE)),
                        lambda: op(a, b, out=torch.zeros(3, 2, dtype=out)), f"{op} out={out}")
            if pair:
                assert_same(*pair)


def test_mixed_devices_are_refused():
    a, b = torch.ones(3, device=DEVICE), torch.ones(3)
    for call in (lambda: a + b, lambda: b + a, lambda: a.add_(b), lambda: torch.mm(a.view(1, 3), b.view(3, 1)),
                 lambda: torch.where(a > 0, a, b), lambda: torch.cat([a, b]), lambda: torch.add(a, a, out=b)):
        with pytest.raises(RuntimeError, match="[Ee]xpected all tensors to be on the same device|same device"):
            call()
    assert (a + torch.tensor(2.0)).cpu().tolist() == [3, 3, 3]


def test_numbers_beside_half_types_round_once():
    x = values((64,), torch.bfloat16, 3)
    for call in (lambda v: v + 0.1, lambda v: v * 0.3, lambda v: v / 0.7, lambda v: v - 1e-3, lambda v: v == 0.1, lambda v: v > 0.3):
        assert torch.equal(call(x.to(DEVICE)).cpu(), call(x))


@pytest.mark.parametrize("exponent", [0.5, -0.5, -1, 2, 3, -2, -3, 1, 0, 0.25])
@pytest.mark.parametrize("dtype", DTYPES[:4], ids=str)
def test_pow_of_zeros_infinities_and_negative_numbers_is_the_cpus(dtype, exponent):
    x = torch.tensor([-0.0, 0.0, -float("inf"), float("inf"), -2.0, 2.0, float("nan")], dtype=dtype)
    for power in (lambda t: t.pow(exponent), lambda t: t ** exponent, lambda t: t.clone().pow_(exponent)):
        got, want = power(x.to(DEVICE)), power(x)
        assert_same(got, want, f"{dtype} {exponent}")
        signs = [t.cpu()[:-1].nan_to_num(1.0).signbit() for t in (got, want)]
        assert signs[0].equal(signs[1]), (got, want)
