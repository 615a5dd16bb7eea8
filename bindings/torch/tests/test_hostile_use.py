"""What a user may get wrong in Python: each is an error of the right type that names the cause, and what comes after it works."""

import pytest
import torch
import torch_fl

NO_DEVICE = r"there is no device {}: \d+ devices? (was|were) found, counted from 0"


# -- devices ---------------------------------------------------------------------------------------------------------------


def enter(device):
    with torch_fl.device(device):
        pass


@pytest.mark.parametrize("index", [99, -1, 300, 2**40, -(2**40), 2**70])
def test_an_index_is_told_as_it_was_given(dev, index):
    """torch keeps eight bits of an index: 300 must not be told as 44, nor 2**40 taken for 0."""
    pattern = NO_DEVICE.format(index)
    for use in (
        lambda: torch_fl.activate(index), lambda: torch_fl.synchronize(index), lambda: torch_fl.memory_summary(index), lambda: torch_fl.Device(index),
        lambda: torch_fl.set_memory_pool_size("1GiB", device=index), lambda: enter(index), lambda: torch_fl.place(torch.nn.Linear(2, 2), index),
        lambda: torch_fl.clear_error(index),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=pattern):
            use()
    if index >= 0:
        with pytest.raises(RuntimeError, match=pattern):
            torch.fl_device.set_device(index)
    assert torch.fl_device.current_device() == 0


@pytest.mark.parametrize("wrong", [1.5, [], object(), b"chip", {}], ids=lambda w: type(w).__name__)
def test_what_is_no_device_is_a_type_error_that_says_what_is(dev, wrong):
    for use in (torch_fl.activate, torch_fl.synchronize, torch_fl.memory_summary, torch_fl.Device, enter):
        with pytest.raises(TypeError, match="expected a device name, an index, a torch_fl.Device or a torch.device, got"):
            use(wrong)
    with pytest.raises(TypeError, match="torch.fl_device: expected an index"):
        torch.fl_device.set_device(wrong)
    with pytest.raises(TypeError, match="expected a device name"):
        torch_fl.activate(True)


@pytest.mark.parametrize("name", ["", " ", "nochip", "cuda", "uuid:", "uuid:zz", "host/nochip", "é", "x" * 3000])
def test_an_unknown_name_lists_the_valid_ones(dev, name):
    with pytest.raises(RuntimeError, match="there is no device '.*'; the (devices|uuids) are .*" + str(torch_fl.devices()[0])):
        torch_fl.activate(name)


@pytest.mark.plugins("mock")
def test_tensors_of_another_chip_stay_usable_after_activate(fresh):
    fresh(
        """
        import torch, torch_fl
        old = torch.arange(3.0, device='fl_device'); model = torch.nn.Linear(3, 2).to('fl_device')
        torch_fl.activate('chip_b')
        new = torch.ones(3, device='fl_device')
        assert (old.device.index, new.device.index) == (0, 1) and (old + 1).tolist() == [1, 2, 3]
        for wrong in (lambda: old + new, lambda: model(new), lambda: torch.cat([old, new]), lambda: old.add_(new)):
            try: wrong(); raise SystemExit('mixed chips were accepted')
            except RuntimeError as error: assert 'Expected all tensors to be on the same device' in str(error) and 'fl_device:0' in str(error) and 'fl_device:1' in str(error)
        assert old.tolist() == [0, 1, 2] and model.to('fl_device:1')(new).shape == (2,)
        """
    ).ok()


# -- settings and scopes ---------------------------------------------------------------------------------------------------

SETTINGS = {"fallback_policy": "auto, warn or strict", "fallback_threshold": "0.0 to 1.0", "memory_pool_size": "512MiB or 8GiB", "async_level": "0, 1 or 2",
            "log_level": "error, warn, info or debug", "float64": "refuse or demote"}


@pytest.mark.parametrize("name", SETTINGS)
def test_garbage_in_a_setting_is_a_value_error_and_changes_nothing(dev, name):
    get, put = getattr(torch_fl, "get_" + name), getattr(torch_fl, "set_" + name)
    before = get()
    for wrong in (None, "", " ", True, 1.25, -1, "nan", "inf", "1e999", "\u0663", b"auto", [], "AUTO", "x" * 10000):
        with pytest.raises(ValueError, match=SETTINGS[name]):
            put(wrong)
    with pytest.raises(ValueError):
        put("a\0b")
    assert get() == before


@pytest.mark.parametrize("wrong", [None, 3, True, [3], {"a": 1}])
def test_a_plugin_path_of_another_type_says_what_is_expected(dev, wrong):
    with pytest.raises(TypeError, match="set_plugin_path: expected a path, a list of paths or one string joined by colons"):
        torch_fl.set_plugin_path(wrong)


def test_a_fallback_scope_may_be_used_again_inside_itself_and_as_a_decorator(dev):
    x = torch.rand(3).to(dev)
    strict = torch_fl.fallback("strict")
    for _ in range(2):
        with strict, strict:
            with pytest.raises(RuntimeError, match="strict"):
                torch.special.i1e(x)
        torch.special.i1e(x)

    @torch_fl.fallback("strict", op="special_i1e")
    def computes(t):
        return torch.special.i1e(t)

    for _ in range(2):
        with pytest.raises(RuntimeError, match="special_i1e.*strict"):
            computes(x)
        torch.special.i1e(x)


def test_a_wrong_fallback_scope_says_what_is_right(dev):
    for wrong in ("never", None, 3):
        with pytest.raises(ValueError, match="valid are auto, warn and strict"), torch_fl.fallback(wrong):
            pass
    with pytest.raises(ValueError, match="there is no operator 'no_such_operator'"):
        torch_fl.fallback("strict", op="no_such_operator")
    with pytest.raises(TypeError, match="expected an operator's name like 'aten::softplus'"):
        torch_fl.fallback("strict", op=3)
    torch.special.i1e(torch.rand(3).to(dev))


def test_profile_operators_of_what_cannot_be_called(dev):
    with pytest.raises(TypeError, match="profile_operators: expected a module or a function, got 'resnet'"):
        torch_fl.profile_operators("resnet", input_shape=(1, 3))
    with pytest.raises(ValueError, match="give either input_shape"):
        torch_fl.profile_operators(torch.nn.ReLU())
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch_fl.profile_operators(torch.nn.ReLU(), input_shape=(-1, 3))


# -- sizes, memory, storage ------------------------------------------------------------------------------------------------


def test_sizes_that_no_memory_has(dev):
    for size in ((1 << 62,), (1 << 40, 1 << 40)):
        with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
            torch.empty(*size, device=dev)
    with pytest.raises(torch.OutOfMemoryError, match="requested 128.00 TiB.*limit.*"):
        torch.empty(1 << 45, device=dev)
    x = torch.ones(3, device=dev)
    with pytest.raises(torch.OutOfMemoryError, match="requested"):
        x.resize_(1 << 45)
    assert x.tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="negative dimension"):
        torch.empty(-1, device=dev)


def test_a_tensor_whose_storage_was_emptied(dev):
    x = torch.ones(4, device=dev)
    x.untyped_storage().resize_(0)
    for use in (lambda: x + 1, lambda: x.sum(), lambda: x.mul_(2)):
        with pytest.raises(RuntimeError, match="has elements and no memory.*its storage was resized to 0"):
            use()
    x.untyped_storage().resize_(16)
    assert x.fill_(2).tolist() == [2, 2, 2, 2]


def test_views_that_leave_their_storage(dev):
    x = torch.ones(4, device=dev)
    for view in (lambda: x.as_strided((100,), (1,)), lambda: x.as_strided((2,), (1,), 1 << 40)):
        with pytest.raises(RuntimeError, match="out of bounds for storage"):
            view()
    with pytest.raises(RuntimeError, match="Negative strides"):
        x.as_strided((2,), (-1,))


# -- indices ---------------------------------------------------------------------------------------------------------------


def settled(dev, call):
    """The failure of a call on a chip that may tell it late, and a chip that works again."""
    error = None
    try:
        result = call()
        if isinstance(result, torch.Tensor):
            result.cpu()
        torch_fl.synchronize(dev)
    except Exception as caught:  # noqa: BLE001: its type is what is looked at
        error = caught
    try:
        torch_fl.synchronize(dev)
    except RuntimeError:
        pass
    torch_fl.clear_error(dev)
    assert torch.ones(2, device=dev).add(1).tolist() == [2, 2]
    assert error is not None, "no error"
    return error


M = torch.arange(24.0).reshape(4, 6)
OUT_OF_RANGE = {
    "one tensor": (lambda x, i: x[i(9)], "index 9 is out of range for dimension 0 of size 4"),
    "negative": (lambda x, i: x[i(-5)], "index -5 is out of range for dimension 0 of size 4"),
    "second dimension": (lambda x, i: x[:, i(6)], "index 6 is out of range for dimension 1 of size 6"),
    "first of two": (lambda x, i: x[i(4, 0), i(1, 1)], "index 4 is out of range for dimension 0 of size 4"),
    "second of two": (lambda x, i: x[i(0, 1), i(1, -7)], "index -7 is out of range for dimension 1 of size 6"),
    "in range once joined": (lambda x, i: x[i(0), i(7)], "index 7 is out of range for dimension 1 of size 6"),
    "huge": (lambda x, i: x[i(2**62)], f"index {2**62} is out of range for dimension 0 of size 4"),
    "smallest": (lambda x, i: x[i(-(2**63)), i(0)], f"index {-(2**63)} is out of range for dimension 0 of size 4"),
    "written": (lambda x, i: x.__setitem__(i(9), 1.0), "index 9 is out of range for dimension 0 of size 4"),
    "written by two": (lambda x, i: x.__setitem__((i(0), i(6)), 1.0), "index 6 is out of range for dimension 1 of size 6"),
    "accumulated": (lambda x, i: x.index_put_((i(4),), torch.ones(1, 6).to(x.device), accumulate=True), "index 4 is out of range for dimension 0 of size 4"),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_that_is_too_large_is_told_as_the_user_wrote_it(dev, name):
    call, words = OUT_OF_RANGE[name]
    x = M.to(dev)
    error = settled(dev, lambda: call(x, lambda *n: torch.tensor(n).to(dev)))
    assert isinstance(error, (IndexError, torch.AcceleratorError)), error     # late chips tell it as a failure of the chip
    assert words in str(error)
    with pytest.raises(IndexError):
        call(M.clone(), lambda *n: torch.tensor(n))


@pytest.mark.parametrize("index", [(0, -1), (3, 5), (-4, -6), (-1, 0)])
def test_indices_at_the_edges_are_taken(dev, index):
    a, b = (torch.tensor([n]) for n in index)
    x = M.to(dev)
    for i32 in (False, True):
        p, q = (t.to(torch.int32) if i32 else t for t in (a, b))
        assert torch.equal(x[p.to(dev), q.to(dev)].cpu(), M[a, b]) and torch.equal(x[p.to(dev)].cpu(), M[a]) and torch.equal(x[:, q.to(dev)].cpu(), M[:, b])
        y, z = x.clone(), M.clone()
        y[p.to(dev), q.to(dev)] = 100.0
        z[a, b] = 100.0
        assert torch.equal(y.cpu(), z)


# -- numbers -----------------------------------------------------------------------------------------------------------------

FILLS = {
    "full": lambda d: torch.full((2,), 300, dtype=torch.uint8, device=d),
    "fill_": lambda d: torch.ones(2, dtype=torch.int8, device=d).fill_(300),
    "fill_ of a float": lambda d: torch.ones(2, dtype=torch.int8, device=d).fill_(1e20),
    "nan": lambda d: torch.full((2,), float("nan"), dtype=torch.int32, device=d),
    "half": lambda d: torch.ones(2, dtype=torch.half, device=d).fill_(1e20),
    "bfloat16": lambda d: torch.full((2,), torch.finfo(torch.float32).min, dtype=torch.bfloat16, device=d),
    "float": lambda d: torch.ones(2, device=d).fill_(1e300),
    "complex": lambda d: torch.ones(2, dtype=torch.complex64, device=d).fill_(1e300),
    "masked_fill": lambda d: torch.ones(2, dtype=torch.uint8, device=d).masked_fill(torch.tensor([True, False], device=d), 300),
    "masked_fill of a half": lambda d: torch.ones(2, dtype=torch.half, device=d).masked_fill_(torch.tensor([True, False], device=d), 1e6),
    "masked_fill by a tensor": lambda d: torch.ones(2, dtype=torch.uint8, device=d).masked_fill(torch.tensor([True, False], device=d), torch.tensor(300)),
    "scatter": lambda d: torch.ones(2, dtype=torch.uint8, device=d).scatter(0, torch.tensor([0], device=d), 300),
    "index_fill": lambda d: torch.ones(2, dtype=torch.uint8, device=d).index_fill(0, torch.tensor([0], device=d), 300),
    "pad": lambda d: torch.nn.functional.pad(torch.ones(2, dtype=torch.uint8, device=d), (1, 1), value=300),
    "setitem": lambda d: torch.ones(2, dtype=torch.uint8, device=d).__setitem__(0, 300),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLS)
def test_a_number_that_the_dtype_cannot_hold_is_the_cpus_error(dev, name):
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        FILLS[name]("cpu")
    with pytest.raises(RuntimeError, match="value cannot be converted to type .* without overflow"):
        FILLS[name](dev)


def test_numbers_that_fit_or_wrap_as_on_the_cpu(dev):
    for value, dtype in ((-1, torch.uint8), (255, torch.uint8), (float("-inf"), torch.half), (float("inf"), torch.float32), (3, torch.bool), (65504.0, torch.half)):
        assert torch.equal(torch.full((2,), value, dtype=dtype, device=dev).cpu(), torch.full((2,), value, dtype=dtype))
    assert torch.equal(torch.ones(2, dtype=torch.uint8, device=dev).fill_(torch.tensor(300)).cpu(), torch.ones(2, dtype=torch.uint8).fill_(torch.tensor(300)))
    mask = torch.tensor([True, False])
    assert torch.equal(torch.ones(2, device=dev).masked_fill(mask.to(dev), float("-inf")).cpu(), torch.ones(2).masked_fill(mask, float("-inf")))
    scores = torch.ones(2, dtype=torch.bfloat16)
    assert torch.equal(scores.to(dev).masked_fill(mask.to(dev), torch.finfo(torch.bfloat16).min).cpu(), scores.masked_fill(mask, torch.finfo(torch.bfloat16).min))


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_numbers_of_types_without_arithmetic_here_are_added_by_the_cpu(dev):
    x = torch.ones(2, dtype=torch.complex32)
    assert torch.equal(torch.view_as_real((x.to(dev) + 1).cpu()), torch.view_as_real(x + 1))
    f8 = torch.ones(2).to(torch.float8_e4m3fn)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e4m3fn'"):
        f8 + 1
    with pytest.raises(NotImplementedError, match="Float8_e4m3fn"):
        f8.to(dev) + 1
    assert torch.equal(torch.full((2,), 3.0, dtype=torch.float8_e4m3fn, device=dev).cpu().float(), torch.full((2,), 3.0))


# -- refusals name the policy --------------------------------------------------------------------------------------------------

DRAWS = {
    "randn": "torch.randn(3, device=d)", "rand": "torch.rand(3, device=d)", "normal_": "torch.empty(3, device=d).normal_()",
    "bernoulli": "torch.bernoulli(torch.empty(3, device=d).copy_(torch.full((3,), 0.5)))", "dropout": "torch.nn.functional.dropout(torch.ones(3).to(d))",
    "randint": "torch.randint(5, (3,), device=d)", "exponential_": "torch.empty(3, device=d).exponential_()", "randperm": "torch.randperm(5, device=d)",
    "multinomial": "torch.multinomial(torch.ones(3).to(d), 2)",
}  # fmt: skip


@pytest.mark.plugins("ram", "mock")
@pytest.mark.parametrize("name", DRAWS)
def test_FALL_04_a_random_operator_that_may_not_run_names_policy_and_remedy(fresh, name):
    """A chip without kernels draws by the host route, which strict refuses; a route that cannot draw declines. Never the CPU's numbers."""
    script = f"""
    import torch, torch_fl
    d = 'fl_device'
    probe = lambda d: {DRAWS[name]}
    before = torch.get_rng_state()
    {{change}}
    try: probe(d); print('drawn')
    except RuntimeError as error: print(type(error).__name__, error)
    assert torch.equal(before, torch.get_rng_state())
    """
    strict = fresh(script.format(change="torch_fl.set_fallback_policy('strict')"), env={"FLHAL_MOCK": "no_kernels"}).ok().out
    assert "fallback_policy strict forbids; set fallback_policy to auto or warn" in strict or "fallback policy strict" in strict, strict
    if name == "multinomial":                     # an operator of the CPU under the device's own seed
        return
    native = fresh(script.format(change="torch_fl._C.config_set('route', 'native')"), env={"FLHAL_MOCK": "no_kernels"}).ok().out
    assert "NotImplementedError" in native and "never falls back to the CPU (fallback policy auto)" in native and "draw on the CPU and move the result" in native, native


def test_a_failed_stream_says_what_python_calls(dev, plugin):
    if plugin != "mock":
        pytest.skip("only the mock's chips tell a bad index late")
    x = torch.ones(3, device=dev)
    x.index_select(0, torch.tensor([7]).to(dev))
    with pytest.raises(torch.AcceleratorError, match="index 7 is out of range"):
        torch_fl.synchronize()
    with pytest.raises(torch.AcceleratorError, match=r"not run, because .* failed before: .*index 7 .*in Python torch_fl.clear_error\(\), makes"):
        (x + 1).cpu()
    torch_fl.clear_error()
    assert (x + 1).tolist() == [2, 2, 2]
