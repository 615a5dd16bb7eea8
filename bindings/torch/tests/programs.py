"""What test_programs.py draws from: the steps a random program is made of, each a text with a function of tensors.

A step is made from what is known of the operands (shapes, dtypes), and runs the same on both sides. Steps that do not fit their
operands are wanted: both sides must refuse them alike.
"""

import torch

F = torch.nn.functional
FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
DTYPES = FLOATS + [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool]
NUMBERS = [0, 1, 2, -3, 0.5, -1.25, 7, True, 100]
SHAPES = [(), (1,), (3,), (4, 3), (3, 4), (1, 3), (4, 1), (2, 3, 4), (4, 4), (2, 1, 3), (0,), (0, 3), (2, 0, 4), (2, 3, 4, 5), (1, 2, 4, 4),
          (2, 4, 3, 3), (5,), (300,), (33, 5)]


class Step:
    def __init__(self, text, call, operands, strides=True):
        """strides=False: the result's layout is a library's own choice; "alike": unless all operands are of one dtype."""
        self.text, self.call, self.operands, self.strides = text, call, operands, strides


def value(rng, shape, dtype):
    """CPU values: small numbers with halves, seldom NaN and infinities."""
    generator = torch.Generator().manual_seed(rng.randrange(2**31))
    x = torch.randint(-8, 9, shape, generator=generator).to(torch.float64) / 2
    if dtype == torch.bool:
        return x > 0
    if not dtype.is_floating_point:
        return (x.abs() if dtype == torch.uint8 else x).to(dtype)
    x = x + (torch.rand(shape, generator=generator, dtype=torch.float64) - 0.5) * rng.choice([0, 0.3])
    if x.numel() and rng.random() < 0.1:
        x.view(-1)[rng.randrange(x.numel())] = rng.choice([float("nan"), float("inf"), -float("inf"), 0.0, -0.0])
    return x.to(dtype)


# Makers of steps: m looks like the first operand; x, y, z are indices of operands.

def view(rng, m, x, y, z):
    d, s = m.dim(), list(m.shape)
    dim = rng.randrange(-d, d) if d else 0
    size = s[dim] if d else 1
    a = rng.randint(0, size)
    b, step = rng.randint(a, size), rng.choice([1, 1, 2, 3])
    order = rng.sample(range(d), d)
    other = rng.randrange(-d, d) if d else 0
    grown = [rng.choice([n, n, 3]) if n == 1 else n for n in s]
    dtype = rng.choice(DTYPES)
    text, call = rng.choice([
        (f".transpose({dim}, {other})", lambda t: t.transpose(dim, other)),
        (f".permute({order})", lambda t: t.permute(order)),
        (f"[{dim}: {a}:{b}:{step}]", lambda t: t[(slice(None),) * (dim % max(d, 1)) + (slice(a, b, step),)]),
        (f".select({dim}, {a})", lambda t: t.select(dim, a)),
        (f".unsqueeze({dim})", lambda t: t.unsqueeze(dim)),
        (".squeeze()", lambda t: t.squeeze()),
        (f".expand({grown})", lambda t: t.expand(grown)),
        (f".expand(2, *{s})", lambda t: t.expand(2, *s)),
        (".reshape(-1)", lambda t: t.reshape(-1)),
        (".view(-1)", lambda t: t.view(-1)),
        (".flatten(1)", lambda t: t.flatten(1)),
        (".diagonal()", lambda t: t.diagonal()),
        (f".unfold({dim}, 2, {step})", lambda t: t.unfold(dim, 2, step)),
        (".mT", lambda t: t.mT),
        (f".chunk(2, {dim})[-1]", lambda t: t.chunk(2, dim)[-1]),
        (".detach()", lambda t: t.detach()),
        ("[..., None]", lambda t: t[..., None]),
        (f".movedim({dim}, 0)", lambda t: t.movedim(dim, 0)),
        (f".view({dtype})", lambda t: t.view(dtype)),
    ])
    return Step(text, call, [x])


UNARY = ["neg", "abs", "sign", "relu", "floor", "ceil", "round", "trunc", "frac", "exp", "expm1", "log", "log1p", "sqrt", "rsqrt", "reciprocal",
         "sin", "cos", "tanh", "sigmoid", "erf", "square", "isnan", "isinf", "isfinite", "logical_not", "bitwise_not", "sgn", "positive",
         "signbit", "nan_to_num", "exp2", "log2", "atan", "sinh", "isneginf", "deg2rad"]
BINARY = ["add", "sub", "mul", "div", "true_divide", "floor_divide", "remainder", "fmod", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge",
          "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "atan2", "pow", "fmax", "hypot", "copysign",
          "bitwise_left_shift", "xlogy", "heaviside"]
WITHOUT_ROW = ["fmax", "hypot", "copysign", "xlogy", "heaviside"]
SCALAR_BINARY = ["add", "sub", "mul", "div", "floor_divide", "remainder", "fmod", "eq", "ne", "lt", "ge", "pow", "bitwise_and", "rsub"]
IN_PLACE = ["add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "eq_", "lt_", "logical_and_", "bitwise_or_", "pow_", "copy_"]
ACTIVATIONS = [F.gelu, F.silu, F.softplus, F.leaky_relu, F.elu, F.hardtanh, F.relu6, F.hardswish, F.logsigmoid, F.mish, F.selu]
REDUCTIONS = ["sum", "mean", "prod", "amax", "amin", "any", "all", "argmax", "argmin", "var", "std", "logsumexp", "nansum", "count_nonzero", "norm"]


def unary(rng, m, x, y, z):
    name = rng.choice(UNARY)
    if rng.random() < 0.25 and hasattr(torch.Tensor, name + "_"):
        return Step(f"{name}_", lambda t: getattr(t, name + "_")(), [x])
    return Step(name, lambda t: getattr(torch, name)(t), [x])


def binary(rng, m, x, y, z):
    name = rng.choice(BINARY)
    alpha = {"alpha": rng.choice([2, -1, 0.5, True])} if name in ("add", "sub") and rng.random() < 0.2 else {}
    # Those without a row are laid out by torch's default for backends, which does not convert before it orders dimensions.
    return Step(f"{name}{alpha or ''}", lambda a, b: getattr(torch, name)(a, b, **alpha), [x, y], strides="alike" if name in WITHOUT_ROW else True)


def with_number(rng, m, x, y, z):
    name, n = rng.choice(SCALAR_BINARY), rng.choice(NUMBERS)
    if rng.random() < 0.2 and name != "rsub":
        return Step(f"number {n} {name}", lambda t: {"add": lambda: n + t, "sub": lambda: n - t, "mul": lambda: n * t, "div": lambda: n / t,
                                                   "pow": lambda: n**t}.get(name, lambda: n - t)(), [x])
    return Step(f"{name} {n}", lambda t: getattr(torch, name)(t, n), [x])


def in_place(rng, m, x, y, z):
    name = rng.choice(IN_PLACE)
    if rng.random() < 0.3:
        n = rng.choice(NUMBERS)
        return Step(f"{name} {n}", lambda t: getattr(t, name)(n) if name != "copy_" else t.fill_(n), [x])
    return Step(name, lambda a, b: getattr(a, name)(b), [x, y])


def with_out(rng, m, x, y, z):
    name = rng.choice(BINARY[:23] + ["mm", "matmul", "bmm"])
    if rng.random() < 0.3:
        name = rng.choice(UNARY[:22])
        return Step(f"{name} out=", lambda a, o: getattr(torch, name)(a, out=o), [x, z])
    if rng.random() < 0.2:
        dim, name = rng.choice([0, -1]), rng.choice(["sum", "mean", "amax", "prod", "cumsum", "any", "argmax"])
        return Step(f"{name} {dim} out=", lambda a, o: getattr(torch, name)(a.clone(), dim, out=o), [x, z])
    if name in ("mm", "matmul", "bmm"):
        return Step(f"{name} out=", lambda a, b, o: product(name, a, b, o), [x, y, z], strides=False)
    return Step(f"{name} out=", lambda a, b, o: getattr(torch, name)(a, b, out=o), [x, y, z])


def product(name, a, b, out):
    """Where out= fits and is an operand too, the CPU reads what it has just written: its result here is that of operands elsewhere."""
    if out.device.type == "cpu" and out.untyped_storage().data_ptr() in [t.untyped_storage().data_ptr() for t in (a, b)]:
        try:
            fits = getattr(torch, name)(a.to("meta"), b.to("meta")).shape == out.shape
        except (RuntimeError, IndexError):
            fits = False
        if fits:
            a, b = a.clone(), b.clone()
    return getattr(torch, name)(a, b, out=out)


def ternary(rng, m, x, y, z):
    return rng.choice([
        Step("where", lambda a, b, c: torch.where(a > 0, b, c), [x, y, z]),
        Step("addcmul", lambda a, b, c: torch.addcmul(a, b, c, value=0.5), [x, y, z]),
        Step("addcdiv", lambda a, b, c: torch.addcdiv(a, b, c), [x, y, z]),
        Step("lerp", lambda a, b, c: torch.lerp(a, b, c), [x, y, z]),
        Step("lerp 0.3", lambda a, b: torch.lerp(a, b, 0.3), [x, y]),
        Step("clamp", lambda a, b, c: torch.clamp(a, b, c), [x, y, z]),
        Step("clamp -1 1.5", lambda a: torch.clamp(a, -1, 1.5), [x]),
        Step("clamp_ min", lambda a: a.clamp_(min=0), [x]),
        Step("masked_fill", lambda a, b: a.masked_fill(b > 0, 1.5), [x, y]),
        Step("masked_fill_", lambda a, b: a.masked_fill_(b > 0, -2), [x, y]),
        Step("addcmul_", lambda a, b, c: a.addcmul_(b, c), [x, y, z]),
        Step("where number", lambda a, b: torch.where(a > 0, b, 2.5), [x, y]),
    ])


def reduction(rng, m, x, y, z):
    name, d = rng.choice(REDUCTIONS), m.dim()
    dim, keep = (rng.randrange(-d, d) if d else 0), rng.random() < 0.4
    if rng.random() < 0.25:
        return Step(f"{name}()", lambda t: getattr(torch, name)(t), [x]) if name != "logsumexp" else Step("logsumexp 0", lambda t: t.logsumexp(0), [x])
    if name in ("sum", "mean", "prod") and rng.random() < 0.3:
        dtype = rng.choice(DTYPES)
        return Step(f"{name} {dim} {dtype}", lambda t: getattr(torch, name)(t, dim, dtype=dtype), [x])
    if name in ("sum", "mean", "amax", "amin", "var", "any") and d > 1 and rng.random() < 0.4:
        dims = rng.sample(range(d), 2)
        return Step(f"{name} {dims} {keep}", lambda t: getattr(torch, name)(t, dim=dims, keepdim=keep), [x])
    if name == "count_nonzero":
        return Step(f"count_nonzero {dim}", lambda t: torch.count_nonzero(t, dim), [x])
    if name == "norm":
        order = rng.choice([1, 2, float("inf")])
        return Step(f"norm {order} {dim}", lambda t: torch.linalg.vector_norm(t, order, dim), [x])
    return Step(f"{name} {dim} {keep}", lambda t: getattr(torch, name)(t, dim, keepdim=keep), [x])


def rows(rng, m, x, y, z):
    d = m.dim()
    dim = rng.randrange(-d, d) if d else 0
    k = rng.randint(1, 2)
    return rng.choice([
        Step(f"softmax {dim}", lambda t: torch.softmax(t, dim), [x], strides=False),
        Step(f"log_softmax {dim}", lambda t: torch.log_softmax(t, dim), [x], strides=False),
        Step(f"cumsum {dim}", lambda t: torch.cumsum(t, dim), [x]),
        Step(f"cumprod {dim}", lambda t: torch.cumprod(t, dim), [x]),
        Step(f"max {dim}", lambda t: torch.max(t, dim), [x]),
        Step(f"min {dim}", lambda t: torch.min(t, dim)[0], [x]),
        Step(f"sort {dim}", lambda t: torch.sort(t, dim, stable=True), [x], strides=False),
        Step(f"topk {k}", lambda t: torch.topk(t, k, dim)[0], [x], strides=False),
        Step(f"flip {dim}", lambda t: torch.flip(t, [dim]), [x]),
        Step(f"roll {k} {dim}", lambda t: torch.roll(t, k, dim), [x]),
        Step(f"diff {dim}", lambda t: torch.diff(t, dim=dim), [x]),
        Step("layer_norm", lambda t: F.layer_norm(t, t.shape[-1:]), [x], strides=False),
        Step("normalize", lambda t: F.normalize(t, dim=dim), [x]),
    ])


def products(rng, m, x, y, z):
    return rng.choice([
        Step("matmul", lambda a, b: torch.matmul(a, b), [x, y], strides=False),
        Step("a @ b.mT", lambda a, b: a @ b.mT, [x, y], strides=False),
        Step("mm a a.T", lambda a: torch.mm(a, a.t()), [x]),
        Step("a.mT @ a", lambda a: a.mT @ a, [x], strides=False),
        Step("linear", lambda a, b, c: F.linear(a, b, c), [x, y, z], strides=False),
        Step("linear without", lambda a, b: F.linear(a, b), [x, y], strides=False),
        Step("addmm", lambda a, b, c: torch.addmm(a, b, c, beta=0.5, alpha=2), [x, y, z]),
        Step("outer", lambda a, b: torch.outer(a, b), [x, y]),
        Step("dot", lambda a, b: torch.dot(a, b), [x, y]),
        Step("einsum", lambda a, b: torch.einsum("...i,...i->...", a, b), [x, y], strides=False),
        Step("cdist-like", lambda a, b: (a.unsqueeze(-2) - b.unsqueeze(-3)).square().sum(-1), [x, y]),
    ])


def indexing(rng, m, x, y, z):
    d = m.dim()
    dim = rng.randrange(-d, d) if d else 0
    n = m.size(dim) if d else 1
    places = [rng.randrange(-n, n) if n else 0 for _ in range(rng.randint(0, 4))]
    kept = [p % n if n else 0 for p in places]
    number, diagonal = rng.choice(NUMBERS), rng.choice([-1, 0, 1])

    def at(t, where=places, dtype=torch.int64):
        return torch.tensor(where, dtype=dtype, device=t.device)

    def index(t, where):
        return (slice(None),) * (dim % max(d, 1)) + (at(t, where),)

    return rng.choice([
        Step(f"[{dim}: {places}]", lambda t: t[index(t, places)], [x], strides=False),
        Step(f"[{places}, {places}]", lambda t: t[at(t), at(t)], [x], strides=False),
        Step("[x > 0]", lambda t: t[t > 0], [x]),
        Step(f"index_select {dim} {kept}", lambda t: t.index_select(dim, at(t, kept, torch.int32)), [x]),
        Step(f"[{dim}: {places}] = {number}", lambda t: t.__setitem__(index(t, places), number) or t, [x]),
        Step(f"[{dim}: {kept}] = y", lambda t, v: t.__setitem__(index(t, list(dict.fromkeys(kept))), v) or t, [x, y]),
        Step("[x > 0] = number", lambda t: t.__setitem__(t > 0, number) or t, [x]),
        Step(f"[..., :2] = {number}", lambda t: t.__setitem__((Ellipsis, slice(0, 2)), number) or t, [x]),
        Step("[..., 0] = y", lambda t, v: t.__setitem__((Ellipsis, 0), v) or t, [x, y]),
        Step(f"index_add {dim} {kept}", lambda t: t.index_add(dim, at(t, kept), t.index_select(dim, at(t, kept))), [x]),
        Step(f"index_put accumulate {kept}", lambda t: t.clone().index_put_((at(t, kept),), t[at(t, kept)], accumulate=True), [x]),
        Step(f"gather {dim}", lambda t: t.gather(dim, torch.zeros_like(t, dtype=torch.int64)), [x]),
        Step(f"scatter_add {dim}", lambda t: t.scatter_add(dim, torch.zeros_like(t, dtype=torch.int64), t), [x]),
        Step(f"scatter {number}", lambda t: t.scatter(dim, torch.zeros_like(t, dtype=torch.int64), number), [x]),
        Step(f"tril {diagonal}", lambda t: t.tril(diagonal), [x]),
        Step("triu_", lambda t: t.clone().triu_(), [x]),
        Step("nonzero", lambda t: t.nonzero(), [x], strides=False),
        Step("masked_select", lambda t: torch.masked_select(t, t != 0), [x]),
        Step(f"index_fill {dim}", lambda t: t.index_fill(dim, at(t, kept), number), [x]),
    ])


def joining(rng, m, x, y, z):
    d = m.dim()
    dim = rng.randrange(-d, d) if d else 0
    dtype, other = rng.choice(DTYPES), rng.choice(DTYPES)
    number = rng.choice(NUMBERS)
    return rng.choice([
        Step(f"cat {dim}", lambda a, b, c: torch.cat([a, b, c], dim), [x, y, z], strides=False),
        Step(f"cat {dim} twice", lambda a: torch.cat([a, a[:1], a], dim), [x], strides=False),
        Step(f"stack {dim}", lambda a: torch.stack([a, a], dim), [x], strides=False),
        Step("pad", lambda a: F.pad(a, (1, 2), value=number), [x]),
        Step("repeat", lambda a: a.repeat(2, *[1] * a.dim()), [x]),
        Step("repeat_interleave", lambda a: a.repeat_interleave(2, dim), [x]),
        Step("broadcast", lambda a, b: torch.broadcast_tensors(a, b)[0], [x, y]),
        Step(f".to({dtype})", lambda a: a.to(dtype), [x]),
        Step(f".to({other}).to({dtype})", lambda a: a.to(other).to(dtype), [x]),
        Step(".clone()", lambda a: a.clone(), [x]),
        Step(".contiguous()", lambda a: a.contiguous(), [x]),
        Step("channels_last", lambda a: a.to(memory_format=torch.channels_last), [x]),
        Step("contiguous channels_last", lambda a: a.contiguous(memory_format=torch.channels_last), [x]),
        Step("zeros_like", lambda a: torch.zeros_like(a), [x]),
        Step(f"full_like {number}", lambda a: torch.full_like(a, number), [x]),
        Step("ones", lambda a: a.new_ones(a.shape, dtype=dtype), [x]),
        Step("zero_", lambda a: a.zero_(), [x]),
        Step("type_as", lambda a, b: a.type_as(b), [x, y]),
        Step("resize out", lambda a: torch.add(a, a, out=a.new_empty(0)), [x]),
    ])


def layers(rng, m, x, y, z):
    act = rng.choice(ACTIVATIONS)
    return rng.choice([
        Step(act.__name__, lambda t: act(t), [x]),
        Step("conv2d", lambda t: F.conv2d(t, torch.ones(2, t.shape[1], 2, 2, dtype=t.dtype, device=t.device) / 4, padding=1), [x], strides=False),
        Step("conv1d", lambda t: F.conv1d(t, t[:, :, :2], stride=2), [x], strides=False),
        Step("max_pool2d", lambda t: F.max_pool2d(t, 2, padding=1), [x], strides=False),
        Step("avg_pool2d", lambda t: F.avg_pool2d(t, 2), [x], strides=False),
        Step("adaptive", lambda t: F.adaptive_avg_pool2d(t, 2), [x], strides=False),
        Step("batch_norm", lambda t: F.batch_norm(t, None, None, training=True), [x], strides=False),
        Step("mse_loss", lambda a, b: F.mse_loss(a, b), [x, y]),
        Step("smooth_l1", lambda a, b: F.smooth_l1_loss(a, b, reduction="none"), [x, y], strides=False),
        Step("cross_entropy", lambda a: F.cross_entropy(a, torch.zeros(a.shape[0], dtype=torch.int64, device=a.device)), [x]),
        Step("interpolate", lambda a: F.interpolate(a, scale_factor=2), [x], strides=False),
        Step("glu", lambda a: F.glu(a), [x]),
        Step("one_hot", lambda a: F.one_hot(a.abs().long() % 5, 5), [x]),
        Step("bucketize", lambda a: torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0], device=a.device)), [x]),
    ])


KINDS = {view: 22, unary: 10, binary: 16, with_number: 8, in_place: 14, with_out: 7, ternary: 8, reduction: 10, rows: 6, products: 7,
         indexing: 9, joining: 9, layers: 5}


def step(rng, metas):
    """A step over tensors that look like `metas`; its operands are their indices."""
    def pick(like=None):
        if like is not None and rng.random() < 0.7:
            close = [i for i, m in enumerate(metas) if m.shape == metas[like].shape or m.dim() == 0]
            return rng.choice(close)
        return rng.randrange(len(metas))

    x = pick()
    y, z = pick(x), pick(x)
    make = rng.choices(list(KINDS), list(KINDS.values()))[0]
    return make(rng, metas[x], x, y, z)
