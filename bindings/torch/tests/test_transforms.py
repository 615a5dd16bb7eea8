"""torch's machinery above operators: tracing, function transforms, modes, hooks, checkpoints, subclasses; results as on the CPU."""

import copy
import operator

import pytest
import torch
import torch.func as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from ops_support import DEVICE, values

X, W = values((4, 5), torch.float32, 1), values((3, 5), torch.float32, 2)


def same(run, exact=True):
    results = []
    for where in ("cpu", DEVICE):
        torch.manual_seed(0)
        found = run(X.clone().to(where), W.clone().to(where))
        found = found if isinstance(found, (tuple, list)) else [found]
        results.append([t.detach().cpu() if isinstance(t, torch.Tensor) else t for t in found])
    for a, b in zip(*results, strict=True):
        if isinstance(a, torch.Tensor):
            torch.testing.assert_close(b, a, rtol=2e-5, atol=1e-5)
        else:
            assert a == b


BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.iadd, operator.isub, operator.imul, operator.itruediv]


@pytest.mark.parametrize("op", BINARY, ids=lambda f: f.__name__)
@pytest.mark.parametrize("number", [True, False])
@pytest.mark.parametrize("tracked", [True, False])
def test_compile_traces_the_fast_operators(op, number, tracked):
    def run(x, w):
        x.requires_grad_(tracked)
        y = torch.compile(lambda x: op(x * 1, 2 if number else x).relu(), backend="eager")(x)
        if tracked:
            y.sum().backward()
            return y, x.grad
        return y

    torch._dynamo.reset()
    same(run)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compile_of_a_training_step(backend):
    def run(x, w):
        layer = nn.Linear(5, 3)
        model = nn.Sequential(layer, nn.LayerNorm(3), nn.GELU(), nn.Linear(3, 2)).to(x.device)
        torch.compile(model, backend=backend)(x).pow(2).sum().backward()
        return [p.grad for p in model.parameters()]

    torch._dynamo.reset()
    same(run)


def test_compile_on_the_cpu_still_works(fresh):
    fresh(
        """
        import torch, torch_fl
        f = torch.compile(lambda x: (x * 2).relu().sum(), backend='aot_eager')
        assert f(torch.ones(3)).item() == 6
        """
    ).ok()


TRANSFORMS = {
    "grad": lambda x, w: F.grad(lambda x, w: (x @ w.t()).tanh().sum())(x, w),
    "vmap": lambda x, w: F.vmap(lambda r: (r * r).sum())(x),
    "vmap_mv": lambda x, w: F.vmap(torch.mv, (None, 0))(w, x),
    "vmap_inplace": lambda x, w: F.vmap(lambda r: r.clone().add_(1))(x),
    "vmap_where": lambda x, w: F.vmap(lambda r: torch.where(r > 0, r, 0.0))(x),
    "vmap_index": lambda x, w: F.vmap(lambda r, i: r[i])(x, torch.arange(4, device=x.device)),
    "vmap_fallback": lambda x, w: F.vmap(torch.special.erfcx)(x),
    "vmap_layer_norm": lambda x, w: F.vmap(lambda r: nn.functional.layer_norm(r, (5,)))(x),
    "vmap_grad": lambda x, w: F.vmap(F.grad(lambda r: r.sin().sum()))(x),
    "per_sample_grad": lambda x, w: F.vmap(F.grad(lambda w, x: (x @ w.t()).pow(2).sum()), (None, 0))(w, x),
    "jacrev": lambda x, w: F.jacrev(lambda x: (x @ w.t()).exp())(x),
    "jacfwd": lambda x, w: F.jacfwd(lambda x: (x @ w.t()).exp())(x),
    "hessian": lambda x, w: F.hessian(lambda x: x.pow(3).sum())(x[0]),
    "jvp": lambda x, w: F.jvp(torch.sigmoid, (x,), (torch.ones_like(x),)),
    "functionalize": lambda x, w: F.functionalize(lambda x: x.clone().add_(1).mul_(x).view(-1))(x),
    "make_fx": lambda x, w: torch.fx.experimental.proxy_tensor.make_fx(lambda x: (x * 2 + x).relu())(x)(x),
    "trace": lambda x, w: torch.jit.trace(lambda x: (x * 2).relu(), x)(x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_function_transforms(name):
    same(TRANSFORMS[name])


def test_an_ensemble_by_vmap_of_stacked_modules():
    def run(x, w):
        models = [nn.Linear(5, 3) for _ in range(3)]
        models = [m.to(x.device) for m in models]
        parameters, buffers = F.stack_module_state(models)
        base = copy.deepcopy(models[0]).to("meta")
        return F.vmap(lambda p, b, x: F.functional_call(base, (p, b), (x,)), (0, 0, None))(parameters, buffers, x)

    same(run)


def test_hooks_see_and_change_what_passes():
    def run(x, w):
        model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1)).to(x.device)
        seen = []
        model[0].register_forward_hook(lambda m, i, o: o * 2)
        model[0].register_full_backward_hook(lambda m, i, o: seen.append(tuple(o[0].shape)))
        model[2].register_forward_pre_hook(lambda m, i: (i[0] + 1,))
        model[2].weight.register_hook(lambda g: g * 3)
        model[0].weight.register_post_accumulate_grad_hook(lambda p: seen.append("done"))
        model(x).sum().backward()
        return [p.grad for p in model.parameters()] + sorted(map(str, seen))

    same(run)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_recompute_the_same_dropout(reentrant):
    model = nn.Sequential(nn.Linear(5, 50), nn.Dropout(0.5), nn.GELU(), nn.Linear(50, 1)).to(DEVICE)
    grads = []
    for run in (lambda x: checkpoint(model, x, use_reentrant=reentrant), model):
        x = X.to(DEVICE).requires_grad_()
        torch.manual_seed(3)
        run(x).sum().backward()
        grads.append(x.grad.cpu())
    torch.testing.assert_close(*grads)


def test_gradients_of_gradients_and_numerical_checks():
    def run(x, w):
        x.requires_grad_()
        (g,) = torch.autograd.grad((x.exp() * x).sum(), x, create_graph=True)
        return torch.autograd.grad(g.pow(2).sum(), x)

    same(run)
    wide = X.double().to(DEVICE).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: (x @ x.t()).softmax(0), wide)
    assert torch.autograd.gradgradcheck(lambda x: x.tanh() * x, wide)


def test_a_custom_function_and_saved_tensors_on_the_cpu():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    def run(x, w):
        x.requires_grad_()
        with torch.autograd.graph.save_on_cpu():
            (Square.apply(x) * x).sum().backward()
        return x.grad

    same(run)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_products_in_the_lower_type_and_sums_in_float32(dtype):
    def run(x, w):
        model = nn.Sequential(nn.Linear(5, 4), nn.GELU(), nn.Linear(4, 2)).to(x.device)
        with torch.autocast(x.device.type, dtype=dtype):
            y, z = model(x), x @ w.t()
            loss = nn.functional.mse_loss(y, torch.zeros_like(y))
        loss.backward()
        return [str(y.dtype), str(z.dtype), str(loss.dtype), str(model[0].weight.grad.dtype)]

    same(run)


REFUSED = {
    "quantized": lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
    "nested_padding": lambda x: torch.nested.nested_tensor([x[0], x[1, :2]]).to_padded_tensor(0.0),
    "numpy": lambda x: x.numpy(),
    "pin": lambda x: x.pin_memory(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_the_device_does_not_have_is_refused_by_a_sentence(name):
    with pytest.raises((NotImplementedError, RuntimeError, TypeError, ValueError), match="fl_device|cpu|CPU|NestedTensor|Sparse"):
        REFUSED[name](X.to(DEVICE))
