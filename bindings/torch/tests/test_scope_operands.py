"""What a scope may move: every function of torch has an answer, and the answers agree with what the functions really do."""

import types

import pytest
import torch
import torch_fl  # noqa: F401
from torch.overrides import get_overridable_functions, resolve_name
from torch_fl import _operands

A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)


def functions():
    return {f for group in get_overridable_functions().values() for f in group}


def schemas(func):
    return torch._C._jit_get_schemas_for_operator("aten::" + getattr(func, "__name__", ""))


def test_every_overridable_function_has_an_answer_that_was_given_on_purpose():
    """No schema, no name, no module: such a function is left alone, which is safe; but a new torch should make us look at it."""
    unseen = []
    for func in functions():
        name = getattr(func, "__name__", "")
        kind = _operands.kind_of(func)
        named = name in _operands._LEAVE or name in _operands._READ or name in _operands._LIKE or name.endswith("_")
        if kind is _operands.PASS and not named and not schemas(func):
            unseen.append((resolve_name(func), name))
    assert not unseen, unseen


def test_every_function_whose_schema_writes_an_operand_is_known_to_write():
    missed = []
    for func in functions():
        if isinstance(func, types.FunctionType) or getattr(func, "__name__", "") in _operands._LEAVE:
            continue
        for schema in schemas(func):
            for position, argument in enumerate(schema.arguments):
                if argument.alias_info is None or not argument.alias_info.is_write or argument.kwarg_only or "Tensor" not in str(argument.type):
                    continue
                kind = _operands.kind_of(func)
                if not isinstance(kind, _operands.Writes) or position not in kind.positions:
                    missed.append((resolve_name(func), argument.name))
    assert missed == []


def _forms(inplace):
    """aten names whose operands are one to three tensors, the rest having defaults."""
    for name in sorted(dir(torch.Tensor)):
        if name.startswith("_") or name.endswith("_") != inplace or name in ("T", "H", "mT", "mH", "data", "grad"):
            continue
        func = getattr(torch.Tensor, name)
        if not isinstance(func, types.MethodDescriptorType):
            continue
        for schema in schemas(func):
            need = [a for a in schema.arguments if not a.has_default_value()]
            if need and all(str(a.type) == "Tensor" for a in need) and len(need) <= 3 and len(schema.returns) == 1:
                if inplace == bool(need[0].alias_info and need[0].alias_info.is_write):
                    yield name, len(need)
                    break


def _operands_of(n, device):
    made = [torch.arange(1.0, 7.0).reshape(2, 3) / (i + 2) for i in range(n)]
    return [t.to(device) for t in made]


SKIPPED = {"set_", "record_stream", "resize_as_", "resize_as_sparse_", "retain_grad", "unsqueeze_", "swap", "apply_"}


@pytest.mark.plugins("mock")
def test_in_place_methods_write_their_own_memory_wherever_the_scope_is(dev):
    seen = 0
    for name, n in _forms(inplace=True):
        if name in SKIPPED:
            continue
        try:
            wanted = _operands_of(n, "cpu")
            getattr(wanted[0], name)(*wanted[1:])
        except (RuntimeError, IndexError):               # wants other shapes or types
            continue
        torch.manual_seed(0)
        here = _operands_of(n, A)
        torch.manual_seed(0)
        getattr(here[0], name)(*here[1:])
        torch.manual_seed(0)
        first, *rest = _operands_of(n, A)[:1] + _operands_of(n, B)[1:]
        torch.manual_seed(0)
        with torch_fl.device("chip_b"):
            result = getattr(first, name)(*rest)
        assert result is None or result.device == A, name
        torch.testing.assert_close(first.cpu(), here[0].cpu(), rtol=0, atol=0, equal_nan=True, msg=name)
        seen += 1
    assert seen > 90


@pytest.mark.plugins("mock")
def test_functional_methods_compute_on_the_scopes_chip_or_give_views_of_the_operand(dev):
    seen = 0
    for name, n in _forms(inplace=False):
        try:
            wanted = getattr(_operands_of(n, "cpu")[0], name)(*_operands_of(n, "cpu")[1:])
        except (RuntimeError, IndexError, TypeError, AssertionError):   # .cuda() asserts
            continue
        if not isinstance(wanted, torch.Tensor) or name.startswith(("to_", "pin_", "bernoulli", "clone", "nonzero_static")):
            continue
        first, *rest = _operands_of(n, A)[:1] + _operands_of(n, B)[1:]
        expected = getattr(_operands_of(n, B)[0], name)(*_operands_of(n, B)[1:])
        with torch_fl.device("chip_b"):
            result = getattr(first, name)(*rest)
        torch.testing.assert_close(result.cpu(), expected.cpu(), rtol=0, atol=0, equal_nan=True, msg=name)
        if result.numel() and result.untyped_storage().data_ptr() == first.untyped_storage().data_ptr():
            assert result.device == A, name
        elif _operands.kind_of(getattr(torch.Tensor, name)) is not _operands.PASS:
            assert result.device == B, name
        seen += 1
    assert seen > 110


@pytest.mark.plugins("mock")
def test_operators_of_libraries_go_by_their_schema(dev):
    library = torch.library.Library("flhal_scope_test", "FRAGMENT")
    library.define("both(Tensor x, Tensor y) -> Tensor")
    library.define("into(Tensor x, Tensor(a!) y) -> ()")
    library.impl("both", lambda x, y: x + y, "CompositeImplicitAutograd")

    def into(x, y):
        y.add_(x)

    library.impl("into", into, "CompositeImplicitAutograd")
    ops = torch.ops.flhal_scope_test
    x, y = torch.ones(2, 3, device=A), torch.ones(2, 3, device=A)
    with torch_fl.device("chip_b"):
        assert ops.both(x, torch.ones(2, 3)).device == B and ops.both.default(x, y).device == B
        ops.into(torch.ones(2, 3), y)
        ops.into.default(torch.ones(2, 3), y)
    assert y.device == A and y.cpu().sum() == 18


def test_the_running_statistics_are_the_only_writes_that_schemas_hide():
    """fallback_schema.cc keeps the same list for the CPU's kernels; functions that reach those are the ones with statistics."""
    hidden = {f for f, kind in _operands._special().items() if isinstance(kind, _operands.UpdatesStatistics)}
    assert {torch.batch_norm, torch.instance_norm, torch.native_batch_norm} <= hidden
