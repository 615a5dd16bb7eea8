"""Operators that only a plugin knows, called from Python: torch_fl.ops.<plugin>.<name>, which are torch.ops.<plugin>.<name>."""

import subprocess
import sys

import pytest
import torch
from conftest import REPOSITORY, environment

import torch_fl

pytestmark = pytest.mark.plugins("mock")


@pytest.fixture
def ops():
    return torch_fl.ops.mock


def numbers(*sizes, dtype=torch.float32):
    return torch.arange(1, 1 + torch.Size(sizes).numel(), dtype=dtype).reshape(sizes).to("fl_device")


def test_names_are_operators_of_torch(ops):
    assert dir(ops) == ["sum_of_squares", "weighted_sum"] and ops.weighted_sum is torch.ops.mock.weighted_sum
    assert str(ops.weighted_sum.default._schema) == "mock::weighted_sum(Tensor a, Tensor b, float weight=1.) -> Tensor out"
    assert sorted(ops.weighted_sum.overloads()) == ["default", "out"] and "mock" in dir(torch_fl.ops)


def test_results_broadcast_promote_and_follow_strides(ops):
    a, b = numbers(2, 3), numbers(3, dtype=torch.float64)
    got = ops.sum_of_squares(a, b)
    assert got.dtype == torch.float64 and got.device == a.device
    torch.testing.assert_close(got.cpu(), a.cpu() ** 2 + b.cpu() ** 2)
    t = numbers(3, 2).t()
    torch.testing.assert_close(ops.sum_of_squares(t, a).cpu(), t.cpu() ** 2 + a.cpu() ** 2)
    assert ops.sum_of_squares(a[:0], b).shape == (0, 3)


def test_attributes_arrive_and_defaults_are_left_out(ops):
    a, b = numbers(4), numbers(4)
    for weight in (0.5, -2.0, 0.5, 1.0):
        torch.testing.assert_close(ops.weighted_sum(a, b, weight=weight).cpu(), a.cpu() + weight * b.cpu())
    torch.testing.assert_close(ops.weighted_sum(a, b).cpu(), 2 * a.cpu())
    with pytest.raises(RuntimeError, match="weight"):
        ops.weighted_sum(a, b, weight="heavy")


def test_out_is_written_as_it_is_given(ops):
    a, out = numbers(3), torch.zeros(2, 3, device="fl_device")
    assert ops.sum_of_squares(a, a, out=out) is out
    torch.testing.assert_close(out.cpu(), (2 * a.cpu() ** 2).expand(2, 3))
    with pytest.raises(RuntimeError, match="an input does not broadcast to the shape of the output"):
        ops.sum_of_squares(a, a, out=torch.zeros(2, device="fl_device"))
        torch_fl.synchronize()
    torch_fl.clear_error()


def test_calls_are_counted_with_their_route(ops):
    torch_fl.reset()
    for _ in range(3):
        ops.sum_of_squares(numbers(2), numbers(2))
    rows = [row for row in torch_fl.get_route_report()["ops"] if row["op"] == "mock.sum_of_squares"]
    assert [(row["route"], row["calls"]) for row in rows] == [("native", 3)]


def test_what_the_chip_declines_says_why_and_has_no_cpu(ops):
    flags = torch.ones(2, dtype=torch.bool, device="fl_device")
    with pytest.raises(NotImplementedError, match="mock::sum_of_squares did not run: native: the plugin declined: mock computes with.*the CPU has none"):
        ops.sum_of_squares(flags, flags)
    with pytest.raises(NotImplementedError, match="CPU"):
        ops.sum_of_squares(torch.ones(2), torch.ones(2))


def test_tensors_of_two_devices_are_torchs_own_error(ops):
    a = numbers(2)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        ops.sum_of_squares(a, torch.ones(2))
    if torch_fl.device_count() > 1:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            ops.sum_of_squares(a, torch.ones(2, device="fl_device:1"))
        b = torch.full((2,), 3.0, device="fl_device:1")
        assert ops.sum_of_squares(b, b).tolist() == [18.0, 18.0]


def test_shapes_without_a_chip(ops):
    meta = ops.weighted_sum(torch.empty(2, 1, device="meta"), torch.empty(3, device="meta", dtype=torch.float64), 2.0)
    assert meta.shape == (2, 3) and meta.dtype == torch.float64
    f = torch.compile(lambda x: ops.weighted_sum(x, x * 2, weight=3.0) + 1, backend="aot_eager")
    torch.testing.assert_close(f(numbers(3)).cpu(), numbers(3).cpu() * 7 + 1)
    torch.library.opcheck(ops.sum_of_squares.default, (numbers(2, 2), numbers(2)),
                          test_utils=("test_schema", "test_faketensor", "test_aot_dispatch_static"))


@pytest.mark.parametrize("expression, sentence", [
    ("torch_fl.ops.mock.nonsense", "the plugin mock has no operator 'nonsense'; it has sum_of_squares, weighted_sum"),
    ("torch_fl.ops.nobody", "there is no chip of a plugin 'nobody'; there are mock"),
])
def test_names_that_are_none_are_told_with_the_valid_ones(expression, sentence):
    with pytest.raises(AttributeError, match=sentence.replace("(", r"\(")):
        eval(expression)


def test_a_derivative_is_added_as_for_any_operator_of_torch():
    done = subprocess.run([sys.executable, REPOSITORY / "examples" / "python" / "vendor_op.py"], env=environment("mock"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ("torch_fl.ops.mock: sum_of_squares, weighted_sum\n[6.0, 12.0, 18.0] [1.0, 1.0, 1.0] [0.5, 0.5, 0.5]\n"
                           "[101.0, 404.0, 909.0]\nmock.weighted_sum: native 1\n")


def test_import_defines_nothing_and_starts_nothing(fresh):
    fresh("""
        import torch, torch_fl
        assert not any(torch_fl._C.is_open(i) for i in range(torch_fl.device_count()))
        assert torch.ops.mock._dir == [] and not hasattr(torch.ops.mock, "sum_of_squares")
        torch_fl.ops.mock
        assert torch.ops.mock.sum_of_squares(*[torch.ones(1, device="fl_device")] * 2).item() == 2
    """).ok()


def test_an_operator_that_a_package_has_defined_keeps_its_schema_and_shapes(fresh):
    fresh("""
        import torch
        library = torch.library.Library("mock", "DEF")
        library.define("sum_of_squares(Tensor left, Tensor right) -> Tensor")
        library.impl("sum_of_squares", lambda left, right: torch.empty_like(left), "Meta")
        import torch_fl
        op = torch_fl.ops.mock.sum_of_squares
        one = torch.ones(2, device="fl_device")
        assert op(left=one, right=one).tolist() == [2, 2] and op.overloads() == ["default"]
    """).ok()


@pytest.mark.parametrize("schema, sentence", [
    ("x.op(Tensor a", "expected"),
    ("x.op", "has no list of arguments"),
    ("x.op(Tensor a) -> int", "has a result that is no Tensor"),
    ("x.op(Tensor a) -> ()", "has no result"),
    ("x.op(Tensor[] a) -> Tensor", "has the argument a of type"),
    ("x.op(Tensor(a!) a) -> Tensor", "writes its argument a"),
])
def test_a_schema_that_cannot_be_an_operator_is_refused_in_words(schema, sentence):
    with pytest.raises(RuntimeError, match=sentence):
        torch_fl._C.define_vendor_op("refused", "op", "x.op", schema)
    with pytest.raises(RuntimeError, match="torch's own"):
        torch_fl._C.define_vendor_op("aten", "op", "aten.op", "aten.op(Tensor a) -> Tensor")
