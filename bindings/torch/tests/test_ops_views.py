"""Views as operands and as targets: the cases of other backends, each with its kind."""

import pytest
import torch

from ops_support import DEVICE, LAYOUTS, assert_same, both, laid_out, values

f32 = torch.float32


def twins(layout="dense", shape=(3, 4), seed=0, dtype=f32):
    view = laid_out(values(shape, dtype, seed), layout)
    return view.on(DEVICE), view.on("cpu")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["addcdiv_", "addcmul_", "lerp_", "add_", "mul_", "clamp_min_", "masked_fill_", "relu_", "addmm_",
                                  "cumsum_", "scatter_add_", "tril_", "fill_", "zero_", "sqrt_", "eq_"])
def test_OP_01_inplace_writes_the_view_itself(name, layout):
    (mine_all, mine), (cpu_all, cpu) = twins(layout, (4, 4))
    a, b = values((4, 4), f32, 1, 0.5, 2), values((4, 4), f32, 2, 0.5, 2)
    index = torch.tensor([[0, 1, 2, 3]] * 4)
    args = {"addcdiv_": (a, b), "addcmul_": (a, b), "lerp_": (a, 0.3), "add_": (a,), "mul_": (a,), "clamp_min_": (0.2,),
            "masked_fill_": (a > 1, 5.0), "relu_": (), "addmm_": (a, b), "cumsum_": (0,), "scatter_add_": (0, index, a), "tril_": (),
            "fill_": (2.5,), "zero_": (), "sqrt_": (), "eq_": (a,)}[name]
    pointer = mine.data_ptr()
    getattr(mine, name)(*[x.to(DEVICE) if isinstance(x, torch.Tensor) else x for x in args])
    getattr(cpu, name)(*args)
    assert mine.data_ptr() == pointer
    assert_same(mine_all, cpu_all, f"{name} {layout}")


@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop])
@pytest.mark.parametrize("foreach", [False, True])
def test_OP_01_optimizer_step_on_a_transposed_parameter(optimizer, foreach):
    start, grad = values((3, 5), f32, 1), values((3, 5), f32, 2)
    results = []
    for device in (DEVICE, "cpu"):
        p = torch.nn.Parameter(start.clone().to(device).t())
        p.grad = grad.to(device).t()
        opt = optimizer([p], lr=0.1, foreach=foreach)
        for _ in range(3):
            opt.step()
        results.append(p.detach())
    assert_same(*results, f"{optimizer.__name__} foreach={foreach}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "mv", "linear", "conv2d", "softmax", "sum", "cat", "index_select"])
def test_OP_02_out_slice_is_written_in_place(name, layout):
    x, y, v = values((3, 4), f32, 1), values((4, 5), f32, 2), values((4,), f32, 3)
    call = {
        "mm": lambda d, **k: torch.mm(x.to(d), y.to(d), **k), "bmm": lambda d, **k: torch.bmm(x[None].to(d), y[None].to(d), **k),
        "addmm": lambda d, **k: torch.addmm(values((5,), f32, 4).to(d), x.to(d), y.to(d), **k),
        "mv": lambda d, **k: torch.mv(x.to(d), v.to(d), **k),
        "linear": lambda d, **k: torch.ops.aten.linear.out(x.to(d), y.t().contiguous().to(d), None, **k) if k else torch.nn.functional.linear(x.to(d), y.t().contiguous().to(d)),
        "conv2d": lambda d, **k: torch.ops.aten.convolution.out(values((1, 2, 5, 5), f32, 5).to(d), values((3, 2, 3, 3), f32, 6).to(d), None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, **k) if k else torch.conv2d(values((1, 2, 5, 5), f32, 5).to(d), values((3, 2, 3, 3), f32, 6).to(d)),
        "softmax": lambda d, **k: torch._softmax(x.to(d), 1, False, **k), "sum": lambda d, **k: torch.sum(x.to(d), 1, **k),
        "cat": lambda d, **k: torch.cat([x.to(d), x.to(d)], 1, **k),
        "index_select": lambda d, **k: torch.index_select(x.to(d), 1, torch.tensor([2, 0]).to(d), **k)}[name]
    wanted = call("cpu")
    room = laid_out(torch.zeros_like(wanted), layout)
    (mine_all, mine), (cpu_all, cpu) = room.on(DEVICE), room.on("cpu")
    pointer, stride = mine.data_ptr(), mine.stride()
    call(DEVICE, out=mine)
    cpu.copy_(wanted)
    assert (mine.data_ptr(), mine.stride()) == (pointer, stride)
    assert_same(mine_all, cpu_all, f"{name} out= {layout}")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["mm", "linear", "bmm", "conv2d", "conv1d", "conv_transpose2d", "matmul4d", "sdpa", "layer_norm", "batch_norm"])
def test_OP_03_views_as_heavy_operands(name, layout):
    calls = {
        "mm": (torch.mm, (3, 4), (4, 5)), "linear": (torch.nn.functional.linear, (2, 3, 4), (5, 4), (5,)), "bmm": (torch.bmm, (2, 3, 4), (2, 4, 5)),
        "conv2d": (torch.conv2d, (2, 3, 6, 6), (4, 3, 3, 3), (4,)), "conv1d": (torch.conv1d, (2, 3, 6), (4, 3, 3), (4,)),
        "conv_transpose2d": (torch.conv_transpose2d, (2, 3, 4, 4), (3, 2, 3, 3), (2,)),
        "matmul4d": (lambda q, k: torch.matmul(q, k.transpose(-1, -2)), (2, 3, 4, 5), (2, 3, 6, 5)),
        "sdpa": (torch.nn.functional.scaled_dot_product_attention, (2, 3, 4, 8), (2, 3, 6, 8), (2, 3, 6, 8)),
        "layer_norm": (lambda x, w, b: torch.nn.functional.layer_norm(x, (5,), w, b), (3, 5), (5,), (5,)),
        "batch_norm": (lambda x, m, v: torch.nn.functional.batch_norm(x, m, v), (4, 3, 5), (3,), (3,))}
    call, *shapes = calls[name]
    views = [laid_out(values(s, f32, i, 0.1 if name == "batch_norm" and i else -2, 2), layout) for i, s in enumerate(shapes)]
    ours = call(*[v.on(DEVICE)[1] for v in views])
    cpu = call(*[v.on("cpu")[1] for v in views])
    assert_same(ours, cpu, f"{name} {layout}", exact_strides=False)


def test_OP_03_slices_of_one_weight_are_different_weights():
    w5 = values((4, 3, 2, 3, 3), f32, 1)
    x = values((1, 3, 6, 6), f32, 2)
    d5, dx = w5.to(DEVICE), x.to(DEVICE)
    for k in (0, 1, 0):
        assert_same(torch.conv2d(dx, d5[:, :, k]), torch.conv2d(x, w5[:, :, k]), f"slice {k}", exact_strides=False)
    d5[:, :, 0].mul_(2)
    w5[:, :, 0].mul_(2)
    assert_same(torch.conv2d(dx, d5[:, :, 0]), torch.conv2d(x, w5[:, :, 0]), "after a write", exact_strides=False)


ZERO_CALLS = {
    "add": lambda x: x + x, "sum": lambda x: x.sum(), "sum0": lambda x: x.sum(0), "sum_last": lambda x: x.sum(-1, keepdim=True),
    "prod": lambda x: x.prod(), "mean": lambda x: x.mean(), "amax": lambda x: x.amax(0), "max": lambda x: x.max(), "argmax": lambda x: x.argmax(),
    "any": lambda x: x.any(), "all": lambda x: x.all(0), "softmax": lambda x: x.softmax(-1), "log_softmax": lambda x: x.log_softmax(0),
    "norm": lambda x: x.norm(), "cumsum": lambda x: x.cumsum(0), "matmul": lambda x: x @ x.transpose(-1, -2), "cat": lambda x: torch.cat([x, x], 1),
    "index_select": lambda x: x.index_select(0, torch.zeros(0, dtype=torch.int64, device=x.device)), "relu": torch.relu,
    "layer_norm": lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), "tril": torch.tril, "fill": lambda x: x.fill_(3),
    "where": lambda x: torch.where(x > 0, x, x), "var": lambda x: x.var(0), "clone": torch.clone, "exp": torch.exp, "gather": lambda x: x.gather(0, torch.zeros(x.shape, dtype=torch.int64, device=x.device)),
}


@pytest.mark.parametrize("name", list(ZERO_CALLS))
@pytest.mark.parametrize("shape", [(0, 3, 4), (2, 0, 4), (2, 3, 0), (0, 0, 0), (1, 3, 4)])
def test_OP_05_zero_size_dims(name, shape):
    x = values(shape, f32, 1)
    pair = both(lambda: ZERO_CALLS[name](x.to(DEVICE)), lambda: ZERO_CALLS[name](x.clone()), f"{name} {shape}")
    if pair:
        assert_same(*pair, f"{name} {shape}", exact_strides=False)


@pytest.mark.parametrize("case", ["linear_in_0", "linear_batch_0", "conv_batch_0", "embedding_0", "foreach"])
def test_OP_05_zero_sizes_in_modules_backward_too(case):
    if case == "foreach":
        with pytest.raises(RuntimeError):
            torch._foreach_add([], 1)
        return
    make = {
        "linear_in_0": (lambda: torch.nn.Linear(0, 3), (2, 0)), "linear_batch_0": (lambda: torch.nn.Linear(4, 3), (0, 4)),
        "conv_batch_0": (lambda: torch.nn.Conv2d(2, 3, 3), (0, 2, 5, 5)), "embedding_0": (lambda: torch.nn.Linear(4, 3), (0, 2, 4))}[case]
    torch.manual_seed(0)
    cpu = make[0]()
    ours = make[0]()
    ours.load_state_dict(cpu.state_dict())
    ours.to(DEVICE)
    x = values(make[1], f32, 1)
    results = []
    for module, v in ((ours, x.to(DEVICE)), (cpu, x.clone())):
        v.requires_grad_()
        y = module(v)
        y.sum().backward()
        results.append([y.detach(), v.grad] + [p.grad for p in module.parameters()])
    assert_same(*results, case, exact_strides=False)


@pytest.mark.parametrize("offset", range(8))
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.float16], ids=lambda d: str(d)[6:])
def test_VIEW_01_accumulating_scatter_on_misaligned_views(offset, dtype):
    parents = []
    for device in (DEVICE, "cpu"):
        parent = torch.zeros(24, dtype=dtype, device=device)
        view = parent.narrow(0, offset, 12)
        one = torch.ones(3, dtype=dtype, device=device)
        view.scatter_add_(0, torch.tensor([1, 2, 1], device=device), one)
        view.index_add_(0, torch.tensor([5, 6, 6], device=device), one)
        view.index_put_((torch.tensor([8, 9, 9], device=device),), one, accumulate=True)
        parents.append(parent)
    assert_same(*parents)


@pytest.mark.parametrize("name", ["inv", "sin", "softmax", "matmul", "print", "item", "svd"])
def test_VIEW_02_slices_leave_the_chip_as_themselves(name):
    batch = torch.stack([torch.diag(torch.tensor([1.0, 2.0])), torch.diag(torch.tensor([4.0, 8.0]))])
    calls = {"inv": torch.linalg.inv, "sin": torch.sin, "softmax": lambda x: x.softmax(0), "matmul": lambda x: x @ x, "svd": torch.linalg.svdvals,
             "print": lambda x: str(x.tolist()), "item": lambda x: x[1, 1].item()}
    dev = batch.to(DEVICE)
    for i in range(2):
        assert_same(calls[name](dev[i]), calls[name](batch[i]), f"{name} {i}", exact_strides=False)


def test_VIEW_03_slice_then_reshape_then_add():
    x = torch.ones(2, 6, device=DEVICE)
    assert (x[1].reshape(2, 3) + 1).cpu().eq(2).all()
    y = values((4, 5, 6), f32, 1)
    assert_same(y.to(DEVICE)[1:3, ::2, 1:5:3] + 1, y[1:3, ::2, 1:5:3] + 1)


@pytest.mark.parametrize("name", ["add_", "mul_", "copy_", "fill_", "sub_", "relu_", "masked_fill_", "out", "mm_out"])
def test_VIEW_04_writing_an_expanded_tensor_is_refused(name):
    def attempt(device):
        base = torch.tensor([1.0], device=device)
        x = base.expand(3, 10)
        one = torch.ones(3, 10, device=device)
        try:
            if name == "out":
                torch.add(one, one, out=x)
            elif name == "mm_out":
                torch.mm(torch.ones(3, 2, device=device), torch.ones(2, 10, device=device), out=x)
            else:
                args = {"add_": (one,), "mul_": (2,), "copy_": (one,), "fill_": (3.0,), "sub_": (one,), "relu_": (), "masked_fill_": (one > 0, 2.0)}[name]
                getattr(x, name)(*args)
            return None, base.cpu()
        except RuntimeError as error:
            return str(error).split(".")[0], base.cpu()

    (mine, after), (cpu, wanted) = attempt(DEVICE), attempt("cpu")
    assert (mine is None) == (cpu is None), f"{name}: {mine!r}, CPU {cpu!r}"
    if cpu is not None:
        assert after.tolist() == [1.0]


@pytest.mark.parametrize("name", ["add_", "mul_", "copy_", "sub_", "div_", "out"])
def test_VIEW_04_partial_overlap_is_refused_as_cpu(name):
    def attempt(device):
        x = torch.arange(10.0, device=device)
        if name == "out":
            torch.add(x[:-1], 1, out=x[1:])
        else:
            getattr(x[1:], name)(x[:-1])
        return x

    pair = both(lambda: attempt(DEVICE), lambda: attempt("cpu"), name)
    if pair:
        assert_same(*pair, name)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mask_layout", LAYOUTS + ["expanded"])
def test_VIEW_05_masked_fill_forms_agree(layout, mask_layout):
    x, mask = laid_out(values((3, 4), f32, 1), layout), laid_out(values((3, 4), f32, 2) > 0, mask_layout)
    (mine_all, mine), (cpu_all, cpu) = x.on(DEVICE), x.on("cpu")
    m, c = mask.on(DEVICE)[1], mask.on("cpu")[1]
    assert_same(mine.masked_fill(m, -1.0), cpu.masked_fill(c, -1.0), exact_strides=False)
    mine.masked_fill_(m, float("-inf"))
    cpu.masked_fill_(c, float("-inf"))
    assert_same(mine_all, cpu_all, f"{layout} {mask_layout}")


@pytest.mark.parametrize("name", ["isfinite", "isinf", "isnan", "gt", "argmax", "bool", "double", "half", "long", "any", "logical_not"])
def test_VIEW_06_results_of_another_size_stay_inside(name):
    wide = values((16, 60), f32, 1)
    guards = [torch.full((n,), 7, dtype=torch.uint8, device=DEVICE) for n in (64, 256, 512, 736, 1024, 4096) for _ in range(4)]
    call = {"gt": lambda x: x > 0, "argmax": lambda x: x.argmax(1), "bool": lambda x: x.bool(), "double": lambda x: x.double(), "half": lambda x: x.half(),
            "long": lambda x: x.long(), "any": lambda x: x.any(1), "logical_not": torch.logical_not}.get(name, getattr(torch, name, None))
    ours = call(wide.to(DEVICE)[:, 4:50])
    assert_same(ours, call(wide[:, 4:50]), name, exact_strides=False)
    assert all(g.cpu().eq(7).all() for g in guards)


@pytest.mark.parametrize("mask", ["none", "bool", "float", "causal"])
def test_VIEW_07_attention_over_slices_of_packed_qkv(mask):
    packed = values((2, 5, 3, 4, 8), f32, 1)
    m = {"none": {}, "bool": {"attn_mask": values((5, 5), f32, 2) > -1.5}, "float": {"attn_mask": values((5, 5), f32, 2)}, "causal": {"is_causal": True}}[mask]

    def run(device, dense):
        q, k, v = (x.transpose(1, 2) for x in packed.to(device).unbind(2))
        if dense:
            q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, **{a: b.to(device) if isinstance(b, torch.Tensor) else b for a, b in m.items()})

    cpu = run("cpu", True)
    assert_same(run(DEVICE, False), cpu, "views", exact_strides=False)
    assert_same(run(DEVICE, True), cpu, "dense", exact_strides=False)
