"""Every row of aten_map.def against the CPU: dtypes, layouts, in-place and out= forms, and the memory around them."""

import pytest
import torch

from ops_support import DEVICE, DTYPES, LAYOUTS, assert_same, both, forms, kind_of, laid_out, resolve, rows, to_device, values

POINTWISE = {"FL_UNARY", "FL_CURVE", "FL_TEST", "FL_ARITH", "FL_BINARY", "FL_COMPARE", "FL_BACKWARD"}
POINTWISE_HANDLERS = {"infinity_of_sign", "masked_fill", "pointwise", "pointwise_swapped", "clamp_min", "clamp_max", "pow_any", "div_mode"}
SHAPE = (3, 4, 2)


def is_pointwise(row):
    return row.kind in POINTWISE or row.handler in POINTWISE_HANDLERS


POINTWISE_ROWS = [r.overload for r in rows() if is_pointwise(r)]


def pointwise_args(name, dtype):
    """Arguments by schema: tensors in the schema's order, numbers, strings. Each tensor argument gets other values."""
    args, seed = [], 1
    for a in resolve(name)._schema.arguments:
        kind = str(a.type)
        if a.kwarg_only and a.has_default_value():
            continue
        if kind in ("Tensor", "Optional[Tensor]"):
            of = torch.bool if a.name in ("condition", "mask") else dtype
            low, high = (0.25, 3.0) if a.name == "exponent" else (-3.0, 3.0)
            value = values(SHAPE, of, seed, low, high)
            if name.startswith(("div", "floor_divide", "remainder", "fmod", "addcdiv")) and a.name in ("other", "tensor2"):
                value = torch.where(value == 0, torch.ones_like(value), value)
            if name == "masked_fill.Tensor" and a.name == "value":
                value = values((), dtype, seed)
            if "shift" in name and a.name == "other":
                value = values(SHAPE, dtype, seed, 0, 4)
            args.append(value)
            seed += 1
        elif kind in ("number", "Optional[number]"):
            if dtype == torch.bool:
                args.append(True)
            elif name.startswith("clamp"):
                args.append(-1 if a.name == "min" else 1)
            else:
                args.append(1.5 if dtype.is_floating_point else 2)
        elif kind == "Optional[str]":
            args.append("floor")
        elif a.has_default_value():
            args.append(a.default_value)
        else:
            raise AssertionError(f"{name}: no sample for {a}")
    return args


def call(op, args, name):
    return op(*args, rounding_mode="floor") if name == "div.Tensor_mode" else op(*args)


@pytest.mark.parametrize("name", POINTWISE_ROWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
def test_pointwise_row_matches_cpu(name, dtype):
    args = [a for a in pointwise_args(name, dtype) if not (name == "div.Tensor_mode" and isinstance(a, str))]
    found = forms(name)
    for layout in LAYOUTS:
        views = [laid_out(a, layout) if isinstance(a, torch.Tensor) and a.dim() else a for a in args]

        def materialise(device):
            parents, out = [], []
            for v in views:
                if hasattr(v, "on"):
                    parent, view = v.on(device)
                    parents.append(parent)
                    out.append(view)
                else:
                    out.append(v.to(device) if isinstance(v, torch.Tensor) else v)
            return parents, out

        for form, op in found.items():
            what = f"{name} {form} {dtype} {layout}"
            mine_parents, mine = materialise(DEVICE)
            cpu_parents, cpu = materialise("cpu")
            if form == "out":
                wanted = call(found["functional"], cpu, name) if not refuses(found["functional"], cpu, name) else None
                if wanted is None:
                    continue
                room = laid_out(torch.zeros_like(wanted, memory_format=torch.contiguous_format), layout)
                mine_parent, mine_out = room.on(DEVICE)
                cpu_parent, cpu_out = room.on("cpu")
                key = op._schema.arguments[-1].name
                mode = {"rounding_mode": "floor"} if name == "div.Tensor_mode" else {}
                pair = both(lambda: op(*mine, **mode, **{key: mine_out}), lambda: op(*cpu, **mode, **{key: cpu_out}), what)
                mine_parents.append(mine_parent)
                cpu_parents.append(cpu_parent)
            else:
                pair = both(lambda: call(op, mine, name), lambda: call(op, cpu, name), what)
            if pair is None:
                continue
            assert_same(*pair, what)
            for a, b in zip(mine_parents, cpu_parents):
                assert_same(a, b, what + " (memory around)")


def refuses(op, args, name):
    try:
        call(op, args, name)
        return False
    except Exception:  # noqa: BLE001
        return True


@pytest.mark.parametrize("name", [n for n in POINTWISE_ROWS if n != "gelu_backward" and len([a for a in resolve(n)._schema.arguments if str(a.type) == "Tensor"]) > 1])
def test_pointwise_row_broadcasts_as_cpu(name):
    args = [a for a in pointwise_args(name, torch.float32) if not isinstance(a, str)]
    shapes = [[(3, 1, 2), (4, 1), (1, 4, 2)], [(4, 2), (3, 4, 2), ()], [(1,), (3, 1, 1), (2,)], [(0, 4, 2), (1, 2), (4, 1)]]
    for choice in shapes:
        small, k = [], 0
        for a in args:
            if isinstance(a, torch.Tensor) and not (name == "masked_fill.Tensor" and a.dim() == 0):
                small.append(values(choice[k % 3], a.dtype, k, 0.5, 2.0))
                k += 1
            else:
                small.append(a)
        what = f"{name} {choice}"
        pair = both(lambda: call(resolve(name), [to_device(a) for a in small], name), lambda: call(resolve(name), small, name), what)
        if pair:
            assert_same(*pair, what)


# Rows that are not pointwise: arguments for the functional form, as functions of the dtype.
def t(shape, dtype, seed=0, low=-2.0, high=2.0):
    return values(shape, dtype, seed, low, high)


def ints(*x):
    return torch.tensor(x)


DIMS = [[0], [1], [-1], [0, 2], [], None]
def g(reduction, d):
    """The gradient that reaches a loss of (3, 4) elements."""
    return t((3, 4), d, 2) if reduction == 0 else t((), d, 2)


# Integers with a beta below 1 are left out below: the CPU divides by int(beta) and the process ends.
SAMPLES = {
    "fill_.Scalar": lambda d: [(t((3, 4), d), 1)],
    "fill_.Tensor": lambda d: [(t((3, 4), d), t((), d))],
    "zero_": lambda d: [(t((3, 4), d),)],
    "sum": lambda d: [(t(s, d),) for s in [(3, 4, 5), (), (0,), (300,)]],
    "mean": lambda d: [(t(s, d),) for s in [(3, 4, 5), (), (0,)]],
    "prod": lambda d: [(t(s, d),) for s in [(2, 3), (), (0,)]],
    "max": lambda d: [(t((3, 4, 5), d),), (t((), d),), (t((0,), d),)],
    "min": lambda d: [(t((3, 4, 5), d),), (t((0,), d),)],
    "any": lambda d: [(t((3, 4), d),), (t((0,), d),)],
    "all": lambda d: [(t((3, 4), d),), (t((0,), d),)],
    "sum.dim_IntList": lambda d: [(t((3, 4, 5), d), x, k) for x in DIMS for k in (False, True)],
    "mean.dim": lambda d: [(t((3, 4, 5), d), x, k) for x in DIMS for k in (False, True)],
    "prod.dim_int": lambda d: [(t((3, 4, 2), d), x, k) for x in (0, 1, -1) for k in (False, True)],
    "amax": lambda d: [(t((3, 4, 5), d), x or [], k) for x in DIMS for k in (False, True)],
    "amin": lambda d: [(t((3, 4, 5), d), x or [], k) for x in DIMS for k in (False, True)],
    "any.dim": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, -1) for k in (False, True)],
    "all.dim": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, -1) for k in (False, True)],
    "any.dims": lambda d: [(t((3, 4, 5), d), [0, 2], True), (t((3, 4, 5), d), None, False)],
    "all.dims": lambda d: [(t((3, 4, 5), d), [0, 2], True), (t((3, 4, 5), d), None, False)],
    "argmax": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, 1, -1, None) for k in (False, True)],
    "argmin": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, 1, -1, None) for k in (False, True)],
    "max.dim": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, 1, -1) for k in (False, True)],
    "min.dim": lambda d: [(t((3, 4, 5), d), x, k) for x in (0, 1, -1) for k in (False, True)],
    "var.correction": lambda d: [(t((3, 4, 5), d), x) for x in ([0], [1, 2], None)],
    "std.correction": lambda d: [(t((3, 4, 5), d), x) for x in ([0], [1, 2], None)],
    "linalg_vector_norm": lambda d: [(t((3, 4), d), o, x) for o in (2, 1, float("inf"), 3) for x in ([1], None)],
    "norm.ScalarOpt_dim": lambda d: [(t((3, 4), d), o, [1]) for o in (2, 1, None)],
    "cumsum": lambda d: [(t((3, 4), d), x) for x in (0, 1, -1)] + [(t((300,), d), 0), (t((), d), 0)],
    "mm": lambda d: [(t((3, 4), d), t((4, 5), d, 1)), (t((3, 0), d), t((0, 5), d, 1)), (t((3, 4), d), t((5, 5), d))],
    "bmm": lambda d: [(t((2, 3, 4), d), t((2, 4, 5), d, 1))],
    "addmm": lambda d: [(t(s, d), t((3, 4), d, 1), t((4, 5), d, 2)) for s in [(5,), (3, 5), (3, 1), ()]],
    "baddbmm": lambda d: [(t((2, 3, 5), d), t((2, 3, 4), d, 1), t((2, 4, 5), d, 2))],
    "addmv": lambda d: [(t((3,), d), t((3, 4), d, 1), t((4,), d, 2))],
    "mv": lambda d: [(t((3, 4), d), t((4,), d, 1))],
    "dot": lambda d: [(t((5,), d), t((5,), d, 1)), (t((0,), d), t((0,), d))],
    "convolution": lambda d: [
        (t((2, 4, 7, 6), d), t((6, 4, 3, 3), d, 1), t((6,), d, 2), [1, 1], [1, 1], [1, 1], False, [0, 0], 1),
        (t((2, 4, 7, 6), d), t((6, 2, 3, 2), d, 1), None, [2, 1], [0, 1], [1, 2], False, [0, 0], 2),
        (t((2, 4, 9), d), t((6, 4, 3), d, 1), t((6,), d, 2), [2], [1], [1], False, [0], 1),
        (t((2, 4, 5, 5), d), t((4, 3, 3, 3), d, 1), t((3,), d, 2), [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    ],
    "convolution_backward": lambda d: [
        (t((2, 6, 7, 6), d), t((2, 4, 7, 6), d, 1), t((6, 4, 3, 3), d, 2), [6], [1, 1], [1, 1], [1, 1], False, [0, 0], 1,
         [True, True, True]),
        (t((2, 6, 5), d), t((2, 4, 9), d, 1), t((6, 4, 3), d, 2), [6], [2], [1], [1], False, [0], 1, [True, True, False]),
    ],
    "max_pool2d_with_indices": lambda d: [(t((2, 3, 7, 6), d), [3, 2], [2, 2], [1, 1], [1, 1], c) for c in (False, True)]
    + [(t((3, 7, 6), d), [2, 2], [], [0, 0], [1, 1], False)],
    "max_pool2d_with_indices_backward": lambda d: [
        (t((2, 3, 3, 3), d), t((2, 3, 6, 6), d, 1), [2, 2], [2, 2], [0, 0], [1, 1], False,
         torch.ops.aten.max_pool2d_with_indices(t((2, 3, 6, 6), torch.float64, 1), [2, 2], [2, 2])[1])
    ],
    "avg_pool2d": lambda d: [(t((2, 3, 7, 6), d), [3, 2], [2, 2], [1, 1], c, p) for c in (False, True) for p in (False, True)],
    "_adaptive_avg_pool2d": lambda d: [(t((2, 3, 6, 8), d), [3, 2]), (t((2, 3, 7, 7), d), [3, 2])],
    "_softmax": lambda d: [(t((3, 4, 5), d), x, False) for x in (0, 1, -1)] + [(t((), d), 0, False)],
    "_log_softmax": lambda d: [(t((3, 4, 5), d), x, False) for x in (0, 1, -1)],
    "_softmax_backward_data": lambda d: [(t((3, 4), d), torch.softmax(t((3, 4), torch.float64, 1), x).to(d), x, d) for x in (0, 1)],
    "_log_softmax_backward_data": lambda d: [
        (t((3, 4), d), torch.log_softmax(t((3, 4), torch.float64, 1), x).to(d), x, d) for x in (0, 1)
    ],
    "native_layer_norm": lambda d: [
        (t((3, 4, 5), d), [5], t((5,), d, 1), t((5,), d, 2), 1e-5), (t((3, 4, 5), d), [4, 5], None, None, 1e-5)
    ],
    "native_layer_norm_backward": lambda d: [
        (t((3, 4, 5), d), t((3, 4, 5), d, 1), [5], t((3, 4, 1), d, 2), t((3, 4, 1), d, 3, 0.5, 1.0), t((5,), d, 4), t((5,), d, 5),
         [True, True, True])
    ],
    "native_batch_norm": lambda d: [
        (t((4, 3, 5, 2), d), t((3,), d, 1), t((3,), d, 2), t((3,), d, 3), t((3,), d, 4, 0.5, 1.0), m, 0.1, 1e-5) for m in (False, True)
    ] + [(t((4, 3), d), None, None, None, None, True, 0.1, 1e-5)],
    "_native_batch_norm_legit": lambda d: [
        (t((4, 3, 5, 2), d), t((3,), d, 1), t((3,), d, 2), t((3,), d, 3), t((3,), d, 4, 0.5, 1.0), True, 0.1, 1e-5)
    ],
    "_native_batch_norm_legit_no_training": lambda d: [
        (t((4, 3, 5, 2), d), t((3,), d, 1), t((3,), d, 2), t((3,), d, 3), t((3,), d, 4, 0.5, 1.0), 0.1, 1e-5)
    ],
    "native_batch_norm_backward": lambda d: [
        (t((4, 3, 5), d), t((4, 3, 5), d, 1), t((3,), d, 2), t((3,), d, 3), t((3,), d, 4, 0.5, 1.0), t((3,), d, 5),
         t((3,), d, 6, 0.5, 1.0), m, 1e-5, [True, True, True]) for m in (False, True)
    ],
    "nll_loss_forward": lambda d: [
        (t((4, 3), d), ints(2, 0, -100, 1), w, r, -100) for r in (0, 1, 2) for w in (None, t((3,), d, 1))
    ] + [(t((3,), d), torch.tensor(1), None, 1, -100)],
    "nll_loss_backward": lambda d: [
        (t((4,), d, 2) if r == 0 else t((), d, 2), t((4, 3), d), ints(2, 0, 1, 1), w, r, 1, t((), d, 3, 0.5, 2.0))
        for r in (0, 1, 2) for w in (None, t((3,), d, 1))
    ] + [(t((), d, 2), t((3,), d), torch.tensor(1), None, 1, -100, t((), d, 3, 0.5, 2.0))],
    "mse_loss": lambda d: [(t((3, 4), d), t((3, 4), d, 1), r) for r in (0, 1, 2)] + [(t((3, 4), d), t((4,), d, 1), 1)],
    "smooth_l1_loss": lambda d: [(t((3, 4), d), t((3, 4), d, 1), r, b) for r in (0, 1, 2) for b in (1.0, 0.3)],
    "huber_loss": lambda d: [(t((3, 4), d), t((3, 4), d, 1), r, b) for r in (0, 1, 2) for b in (1.0, 0.3)],
    "mse_loss_backward": lambda d: [(g(r, d), t((3, 4), d), t((3, 4), d, 1), r) for r in (0, 1, 2)],
    "smooth_l1_loss_backward": lambda d: [(g(r, d), t((3, 4), d), t((3, 4), d, 1), r, b) for r in (0, 1, 2) for b in ((1.0, 0.3) if d.is_floating_point else (1.0,))],
    "huber_loss_backward": lambda d: [(g(r, d), t((3, 4), d), t((3, 4), d, 1), r, b) for r in (0, 1, 2) for b in ((1.0, 0.3) if d.is_floating_point else (1.0,))],
    "embedding": lambda d: [(t((7, 3), d), torch.tensor([[1, 2, 6], [0, 0, 3]])), (t((7, 3), d), torch.tensor(4))],
    "embedding_dense_backward": lambda d: [(t((2, 3, 4), d), torch.tensor([[1, 2, 6], [0, 2, 3]]), 7, p, False) for p in (-1, 2)],
    "index_select": lambda d: [(t((4, 5), d), x, ints(0, 3, 3)) for x in (0, 1, -1)] + [(t((4, 5), d), 0, torch.tensor(2))],
    "gather": lambda d: [(t((4, 5), d), x, torch.tensor([[0, 1, 2], [3, 0, 1]])) for x in (0, 1)],
    "scatter.src": lambda d: [(t((4, 5), d), x, torch.tensor([[0, 1, 2], [3, 0, 1]]), t((2, 3), d, 1)) for x in (0, 1)],
    "scatter.value": lambda d: [(t((4, 5), d), x, torch.tensor([[0, 1, 2], [3, 0, 1]]), 1) for x in (0, 1)],
    "scatter_add": lambda d: [(t((4, 5), d), x, torch.tensor([[0, 1, 2], [3, 0, 1]]), t((2, 3), d, 1)) for x in (0, 1)],
    "index_add": lambda d: [(t((4, 5), d), 0, ints(0, 3, 0), t((3, 5), d, 1)), (t((4, 5), d), 1, ints(0, 3), t((4, 2), d, 1))],
    "index.Tensor": lambda d: [
        (t((4, 5, 3), d), [ints(0, -1, 2)]), (t((4, 5, 3), d), [None, ints(0, -1, 4)]), (t((4, 5, 3), d), [ints(0, 3), ints(-1, 2)]),
        (t((4, 5, 3), d), [torch.tensor([[0], [3]]), None, ints(1, 2)]), (t((4, 5, 3), d), [None, torch.tensor([[1], [3]]), ints(1, 2)]),
        (t((4, 5, 3), d), [ints(0, 4)]), (t((4, 5, 3), d), [ints(0, 1), ints(5, 1)]), (t((4, 5), d), [torch.tensor([True, False, True, True])])],
    "_index_put_impl_": lambda d: [
        (t((4, 5, 3), d), [ints(0, -1, 2)], t((3, 5, 3), d, 1), a) for a in (False, True)] + [
        (t((4, 5), d), [ints(0, 3), ints(-1, 2)], t((2,), d, 1), True), (t((4, 5), d), [None, ints(0, 3, 3)], t((1,), d, 1), True)],
    "cat": lambda d: [([t((2, 3), d), t((2, 1), d, 1), t((2, 4), d, 2)], 1), ([t((2, 3), d), t((0,), d), t((1, 3), d)], 0)],
    "tril": lambda d: [(t((4, 5), d), x) for x in (-1, 0, 2)] + [(t((2, 3, 3), d), 0)],
    "triu": lambda d: [(t((4, 5), d), x) for x in (-1, 0, 2)] + [(t((2, 3, 3), d), 0)],
    "native_dropout_backward": lambda d: [(t((3, 4), d), t((3, 4), torch.bool, 1), 2.0)],
}
RANDOM = {"uniform_", "normal_", "bernoulli_.float", "bernoulli_.Tensor", "bernoulli.out", "random_", "random_.to", "random_.from",
          "exponential_", "randperm.generator_out", "native_dropout"}
OTHER_ROWS = [r.overload for r in rows() if not is_pointwise(r) and r.overload not in RANDOM and r.overload != "arange.start_out"]
# Results that the CPU lays out by its own library's taste, or leaves without meaning.
STRIDES_FREE = {"mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training", "index.Tensor", "convolution", "convolution_backward", "native_layer_norm_backward", "native_batch_norm_backward", "native_batch_norm"}
# The CPU's kernels take these operands or results for dense whatever their strides say: they are compared with dense ones.
CPU_WANTS_DENSE = {"native_layer_norm_backward", "_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"}
REDUCED_EXEMPT = {  # the CPU computes these of half types by steps of its own: compare in float only
    "native_batch_norm", "native_batch_norm_backward", "_native_batch_norm_legit", "_native_batch_norm_legit_no_training",
    "native_layer_norm_backward", "native_layer_norm", "convolution", "convolution_backward", "linalg_vector_norm",
    "norm.ScalarOpt_dim", "std.correction", "var.correction", "cumsum", "prod", "prod.dim_int"}


def test_every_row_has_samples():
    assert [n for n in OTHER_ROWS if n not in SAMPLES] == []


@pytest.mark.parametrize("name", OTHER_ROWS)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d)[6:])
def test_row_matches_cpu(name, dtype):
    if name in REDUCED_EXEMPT and dtype in (torch.float16, torch.bfloat16):
        pytest.skip("the CPU rounds half types in steps of its own kernels here; float32 and float64 are compared")
    found = forms(name)
    for k, args in enumerate(SAMPLES[name](dtype)):
        for layout in LAYOUTS:
            def place(device, args=args, layout=layout):
                def one(x):
                    if isinstance(x, torch.Tensor):
                        return laid_out(x, layout).on(device)[1] if x.dim() and x.numel() else x.to(device, copy=True)
                    return [one(i) for i in x] if isinstance(x, list) and any(isinstance(i, torch.Tensor) for i in x) else x
                return [one(a) for a in args]

            for form, op in found.items():
                if form == "out":
                    continue
                what = f"{name} sample {k} {form} {dtype} {layout}"
                mine = place(DEVICE)
                cpu = place("cpu", layout="dense" if name in CPU_WANTS_DENSE else layout)
                pair = both(lambda: op(*mine), lambda: op(*cpu), what)
                if pair:
                    assert_same(*pair, what, exact_strides=name not in STRIDES_FREE and name not in CPU_WANTS_DENSE)
                    for a, b in zip(mine, cpu):
                        if isinstance(a, torch.Tensor):
                            assert_same(a, b, what + " (an operand)", exact_strides=False)


def copied(rooms, wanted):
    views = [view.copy_(w) for (_, view), w in zip(rooms, wanted)]
    return views[0] if len(views) == 1 else views


@pytest.mark.parametrize("name", [n for n in OTHER_ROWS if "out" in forms(n)])
def test_row_with_out_matches_cpu(name):
    op = forms(name)["out"]
    names = [a.name for a in op._schema.arguments if a.is_out]
    for k, args in enumerate(SAMPLES[name](torch.float32)):
        if name == "native_batch_norm":
            continue   # the CPU resizes the unused saved statistics of eval to nothing
        if name == "huber_loss" and args[2] != 0:
            continue   # the CPU grows out= to the unreduced loss and leaves that behind it
        try:
            wanted = resolve(name)(*[a.clone() if isinstance(a, torch.Tensor) else a for a in args])
        except (RuntimeError, IndexError):
            continue
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        if any(w is None for w in wanted):
            continue
        for layout in LAYOUTS:
            rooms = [laid_out(torch.zeros_like(w, memory_format=torch.contiguous_format), layout) for w in wanted]
            mine, cpu = [r.on(DEVICE) for r in rooms], [r.on("cpu") for r in rooms]
            what = f"{name} sample {k} out= {layout}"
            copy = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
            pair = both(lambda: op(*to_device(list(args)), **{n: v for n, (_, v) in zip(names, mine)}),
                        lambda: copied(cpu, wanted) if name in CPU_WANTS_DENSE else op(*copy, **{n: v for n, (_, v) in zip(names, cpu)}), what)
            if pair:
                assert_same(*pair, what, exact_strides=True)
                for (a, _), (b, _) in zip(mine, cpu):
                    assert_same(a, b, what + " (memory around)")


@pytest.mark.parametrize("args", [(5,), (2, 9), (2, 9, 3), (0.5, 4.0, 0.25), (9, 2, -2), (3, 3)])
@pytest.mark.parametrize("dtype", [None, torch.float32, torch.int32, torch.float64])
def test_arange_matches_cpu(args, dtype):
    if dtype == torch.int32 and 0.25 in args:
        pytest.skip("a step of 0.25 is 0 in int32: the CPU counts on the spot, its Meta kernel refuses")
    pair = both(lambda: torch.arange(*args, dtype=dtype, device=DEVICE), lambda: torch.arange(*args, dtype=dtype))
    if pair:
        assert_same(*pair)


@pytest.mark.parametrize("name", ["add.Tensor", "mm", "_softmax", "sum.dim_IntList", "cat", "convolution"])
def test_wrong_shapes_raise_as_cpu(name):
    wrong = {
        "add.Tensor": (torch.ones(3), torch.ones(4)), "mm": (torch.ones(3, 4), torch.ones(3, 4)), "_softmax": (torch.ones(3), 2, False),
        "sum.dim_IntList": (torch.ones(3), [1]), "cat": ([torch.ones(2, 3), torch.ones(3, 4)], 0),
        "convolution": (torch.ones(1, 2, 4, 4), torch.ones(1, 3, 3, 3), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)}[name]
    with pytest.raises(Exception) as cpu:
        resolve(name)(*wrong)
    with pytest.raises(Exception) as ours:
        resolve(name)(*to_device(list(wrong)))
    assert kind_of(ours.value) == kind_of(cpu.value)
