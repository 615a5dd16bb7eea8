"""Every operator of torch's own op database against the CPU: values, gradients, in-place forms, layouts, and errors (OP-06, FALL-02).

The database brings inputs for over 600 operators, so whatever a model calls was called here. `make test` takes the first
inputs of each, `make test-full` (FLHAL_TEST_FULL) takes more of them and more dtypes.
"""

import os
import warnings

import pytest
import torch
import torch_fl
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_map

FULL = os.environ.get("FLHAL_TEST_FULL") == "1"
SAMPLES = 50 if FULL else 2
DTYPES = [torch.float32, torch.int64, torch.complex64, torch.bool]
if FULL:
    DTYPES += [torch.float64, torch.complex128, torch.int32, torch.uint8, torch.int8, torch.int16]

# Numbers are drawn in them, from the chip's own generator: other numbers than the CPU's are right. test_random.py has them.
RANDOM = ("rand", "normal", "bernoulli", "multinomial", "dropout", "exponential", "cauchy", "geometric", "uniform", "rrelu",
          "fractional_max_pool", "svd_lowrank", "pca_lowrank")
NO_VALUES = ("empty",)                      # memory as it is
OTHER_LAYOUTS = ("sparse", "nested", "jagged")
REASONS = {
    "as_strided.partial_views": "the samples are views of a part of a storage, which a move to a device makes dense",
    "tensor_split": "torch wants a tensor of sections on the CPU, whatever the device",
    "bmm.triton_optimized": "a case for one maker's compiler",
}
ERRORS_DIFFER = {
    "narrow_copy": "an IndexError that says more than the CPU's internal assertion",
    "nn.functional.embedding": "torch's Meta kernel asserts what the CPU checks",
}


def name_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def taken(op):
    name = name_of(op)
    return name not in REASONS and not any(part in name for part in RANDOM + NO_VALUES + OTHER_LAYOUTS)


OPS = {}
for _op in op_db:
    if taken(_op):
        OPS.setdefault(name_of(_op), _op)


def dropout(sample):
    values = list(sample.kwargs.items()) + [("dropout_p", a) for a in sample.args if isinstance(a, float)]
    return any(k in ("dropout_p", "dropout") and v for k, v in values)


def moved(value, device, gradients=False):
    def one(leaf):
        if isinstance(leaf, torch.Tensor):
            leaf_there = leaf.detach().clone().to(device)
            return leaf_there.requires_grad_(leaf.requires_grad and gradients)
        return torch.device(device) if isinstance(leaf, torch.device) else leaf

    return tree_map(one, value)


def run(function, sample, device, gradients=False):
    inputs = moved((sample.input, sample.args, sample.kwargs), device, gradients)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return inputs, function(inputs[0], *inputs[1], **inputs[2])


def home(value):
    return tree_map(lambda leaf: leaf.detach().cpu() if isinstance(leaf, torch.Tensor) else leaf, value)


def tensors(value):
    return [leaf for leaf in tree_flatten(value)[0] if isinstance(leaf, torch.Tensor)]


def samples_of(op, dtype, **how):
    found = []
    for sample in op.sample_inputs("cpu", dtype, **how):
        if not dropout(sample):
            found.append(sample)
        if len(found) == SAMPLES:
            break
    return found


def close(got, want, what, rtol=1e-4, atol=1e-4):
    torch.testing.assert_close(home(got), home(want), rtol=rtol, atol=atol, equal_nan=True, check_stride=False,
                               msg=lambda text: f"{what}: {text}")


def same_outcome(function, sample, device, what):
    """Values where the CPU gives some; where it raises, the chip raises too."""
    try:
        want = run(function, sample, "cpu")
    except Exception as error:  # noqa: BLE001
        with pytest.raises(Exception):  # noqa: B017
            run(function, sample, device)
            torch_fl.synchronize()
            pytest.fail(f"{what}: the CPU raises {error!r}")
        return
    got = run(function, sample, device)
    close(got[1], want[1], what)
    close(tensors(got[0]), tensors(want[0]), what + ", the inputs afterwards")      # written where the CPU writes, and nowhere else


def cases(names, dtypes, supported):
    return [pytest.param(n, d, id=f"{n}-{str(d)[6:]}") for n in names for d in dtypes if d in supported(OPS[n])("cpu")]


@pytest.mark.parametrize("name, dtype", cases(OPS, DTYPES, lambda op: op.supported_dtypes))
def test_FALL_02_values_match_cpu(dev, name, dtype):
    op = OPS[name]
    for k, sample in enumerate(samples_of(op, dtype)):
        what = f"{name} sample {k} {dtype}"
        same_outcome(op.op, sample, dev, what)
        same_outcome(op.op, sample.noncontiguous(), dev, what + " gappy")
        if op.inplace_variant is not None and isinstance(sample.input, torch.Tensor) and not sample.broadcasts_input:
            same_outcome(op.inplace_variant, sample, dev, what + " in place")


@pytest.mark.parametrize("name, dtype", cases([n for n, op in OPS.items() if op.supports_autograd],
                                              [torch.float32, torch.complex64], lambda op: op.supported_backward_dtypes))
def test_gradients_match_cpu(dev, name, dtype):
    op = OPS[name]
    for k, sample in enumerate(samples_of(op, dtype, requires_grad=True)):
        results = []
        for device in ("cpu", dev):
            try:
                inputs, out = run(op.op, sample, device, gradients=True)
                if sample.output_process_fn_grad is not None:
                    out = sample.output_process_fn_grad(out)
                outs = [o for o in tree_flatten(out)[0] if isinstance(o, torch.Tensor) and o.requires_grad]
                leaves = [t for t in tree_flatten(inputs)[0] if isinstance(t, torch.Tensor) and t.requires_grad]
                total = sum((o * torch.linspace(0.5, 1.5, o.numel()).to(o.dtype).to(o.device).reshape(o.shape)).sum().abs() for o in outs)
                results.append(torch.autograd.grad(total, leaves, allow_unused=True) if outs and leaves else None)
            except Exception:
                if device != "cpu":
                    raise
                break                                              # the CPU has no gradient for these inputs
        if len(results) == 2 and results[0] is not None:
            close(results[1], results[0], f"{name} sample {k} {dtype}", rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", [n for n, op in {name_of(o): o for o in op_db}.items()
                                  if op.error_inputs_func is not None and n not in ERRORS_DIFFER and n not in REASONS])
def test_OP_06_malformed_calls_raise_what_the_cpu_raises(dev, name):
    op = next(o for o in op_db if name_of(o) == name)
    for k, error in enumerate(op.error_inputs("cpu")):
        kinds = []
        for device in ("cpu", dev):
            try:
                run(op.op, error.sample_input, device)
                torch_fl.synchronize()
                kinds.append(None)
            except Exception as raised:  # noqa: BLE001
                kinds.append(type(raised))
        if kinds[1] is torch.AcceleratorError and kinds[0] is not None:
            torch_fl.clear_error(dev)      # a kernel on a chip with queues found it, and told at the first wait
            continue
        assert kinds[0] is kinds[1], f"{name} error {k}: the CPU {kinds[0]}, the chip {kinds[1]}"
