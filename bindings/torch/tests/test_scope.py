"""torch_fl.device: where work is done, what follows, what stays, and what is restored."""

import threading

import pytest
import torch
import torch_fl
from torch import nn
from torch.nn import functional as F

pytestmark = pytest.mark.plugins("mock")
A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)


def ones(device, *shape, **kw):
    return torch.ones(shape or (2, 3), device=device, **kw)


def moves(scope=None):
    return [row for row in torch_fl.get_fallback_report()["moves"] if scope is None or scope in row["scope"]]


@pytest.mark.parametrize("given", ["chip_b", "fl_device:1", 1, B], ids=str)
def test_names_indices_and_devices_choose_the_chip(dev, given):
    with torch_fl.device(given) as chip:
        assert chip.name == "chip_b" and torch_fl.current_device() == 1
        assert (ones(A) + 1).device == B and (ones(A) + ones(B)).device == B
        assert torch.empty(1, device="fl_device").device == B
    with torch_fl.device(torch_fl.devices()[1]):
        assert torch.zeros(1).device == B
    assert torch_fl.current_device() == 0 and torch.zeros(1).device.type == "cpu"


def test_unknown_names_are_errors_that_list_the_valid_ones_and_change_nothing(dev):
    for wrong, error in (("chip_c", RuntimeError), (7, RuntimeError), ("cuda:0", (RuntimeError, ValueError)), (1.5, TypeError)):
        with pytest.raises(error) as caught, torch_fl.device(wrong):
            pytest.fail("entered")
        if wrong == "chip_c":
            assert "chip_a" in str(caught.value) and "chip_b" in str(caught.value)
    assert torch_fl.current_device() == 0 and torch.zeros(1).device.type == "cpu"


def test_scopes_nest_and_are_restored_also_by_exceptions(dev):
    with torch_fl.device("chip_b"):
        with pytest.raises(KeyError), torch_fl.device("chip_a"):
            assert (ones(B) * 2).device == A
            raise KeyError
        assert (ones(A) * 2).device == B and torch_fl.current_device() == 1
        with torch.device("cpu"):                        # torch's own context inside: it rules until it ends
            assert torch.zeros(1).device.type == "cpu"
        assert torch.zeros(1).device == B
    with torch.device("meta"), torch_fl.device("chip_b"):
        assert torch.zeros(1).device == B
    assert torch.zeros(1).device.type == "cpu" and (ones(A) * 2).device == A
    with pytest.raises(ZeroDivisionError):
        with torch_fl.device("chip_b"), torch_fl.device("chip_b"):
            1 / 0
    assert torch._C._len_torch_function_stack() == 0 and torch_fl.current_device() == 0


def test_a_scope_in_a_generator_may_end_after_or_before_another_one(dev):
    def inside(chip):
        with torch_fl.device(chip):
            yield torch.ones(1).device

    cpu = torch.ones(1).device
    first = inside(1)
    assert next(first) == B
    with torch_fl.device(0):
        assert next(first, None) is None and torch.ones(1).device == A and torch_fl.current_device() == 0
    assert torch.ones(1).device == cpu and torch.ones(1, device="fl_device").device == A
    first, second, third = inside(1), inside(0), inside(1)
    assert [next(first), next(second), next(third)] == [B, A, B]
    second.close()
    assert torch.ones(1).device == B
    first.close()
    assert torch.ones(1).device == B and torch_fl.current_device() == 1
    third.close()
    assert torch.ones(1).device == cpu and torch_fl.current_device() == 0 and not torch.overrides._get_current_function_mode_stack()


@pytest.mark.parametrize("between", ["cpu", "meta"])
def test_the_innermost_of_torchs_and_our_contexts_is_what_factories_follow(dev, between):
    class Other(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with torch_fl.device(1):
        with Other(), torch.device(between):
            with torch_fl.device(0):
                assert torch.ones(1).device == A
                with torch.device(between):
                    assert torch.ones(1).device.type == between
                assert torch.ones(1).device == A
            assert torch.ones(1).device.type == between
        assert torch.ones(1).device == B
    assert torch.ones(1).device.type == "cpu" and not torch.overrides._get_current_function_mode_stack()


def test_einsum_of_one_operand_is_a_view_of_it(dev):
    a = torch.arange(9.0, device=A).reshape(3, 3)
    with torch_fl.device(1):
        torch.einsum("ij->ji", a).add_(100)
        torch.einsum("ii->i", [a]).zero_()
        assert torch.einsum("ij,jk->ik", a, a).device == B
    assert a.diagonal().sum().item() == 0 and a[0, 1].item() == 101


def test_coroutines_are_refused(dev):
    async def f():
        return torch.ones(1)

    with pytest.raises(TypeError, match="cannot decorate .*f, a coroutine.*around the parts that do not await"):
        torch_fl.device(1)(f)


def test_one_object_may_be_entered_again_and_again(dev):
    scope = torch_fl.device("chip_b")
    for _ in range(2):
        with scope, torch_fl.device("chip_a"), scope:
            assert (ones(A) * 2).device == B
    assert (ones(A) * 2).device == A


def test_decorates_functions_methods_and_generators(dev):
    @torch_fl.device("chip_b")
    def double(x):
        "doubles"
        return x * 2

    class Net:
        @torch_fl.device("chip_b")
        def forward(self, x):
            return double(x) + 1

    @torch_fl.device("chip_b")
    def chunks(x):
        yield x + 1
        yield x + 2

    assert double.__doc__ == "doubles" and double(ones(A)).device == B and Net().forward(ones(A)).device == B
    for part in chunks(ones(A)):
        assert part.device == B and (ones(A) * 1).device == A   # between two yields the caller's place holds
    assert torch_fl.current_device() == 0


def test_threads_have_their_own_scope(dev):
    ready, seen = threading.Barrier(3), {}

    def work(name):
        with torch_fl.device(name):
            ready.wait()
            for _ in range(50):
                x = (ones(A) @ ones(B, 3, 2)).sum() + torch.ones(1)
                seen.setdefault(name, set()).add((x.device.index, int(torch_fl.current_device()), x.item()))
            ready.wait()

    threads = [threading.Thread(target=work, args=(n,)) for n in ("chip_a", "chip_b")]
    [t.start() for t in threads]
    ready.wait()
    assert torch.zeros(1).device.type == "cpu" and (ones(B) + 1).device == B
    ready.wait()
    [t.join(60) for t in threads]
    assert seen == {"chip_a": {(0, 0, 13.0)}, "chip_b": {(1, 1, 13.0)}}


def test_activate_inside_a_scope_holds_after_it(fresh):
    fresh(
        """
        import torch, torch_fl
        with torch_fl.device('chip_a'):
            torch_fl.activate('chip_b')
            assert torch.zeros(1).device.index == 0
        assert torch_fl.current_device() == 1 and torch.empty(1, device='fl_device').device.index == 1
        torch.fl_device.set_device(0)
        with torch_fl.device('chip_b'): pass
        assert torch_fl.current_device() == 0
        """
    ).ok()


def test_mixed_chips_outside_a_scope_raise_torchs_own_sentence(dev):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device.*fl_device:0 and fl_device:1"):
        ones(A) + ones(B)


def test_tensors_of_the_cpu_stay_there(dev):
    with torch_fl.device("chip_b"):
        c = torch.ones(2, 3, device="cpu")
        assert (c + 1).device.type == "cpu"
        with pytest.raises(RuntimeError, match="same device"):
            c + ones(A)
        assert (ones(A) + torch.tensor(2.0, device="cpu")).device == B     # a number, as outside
        packed = nn.utils.rnn.pack_padded_sequence(ones(A, 3, 2, 4), torch.tensor([3, 2], device="cpu"))
        assert packed.batch_sizes.device.type == "cpu"
        assert nn.LSTM(4, 5)(packed)[0].data.device == B


def test_what_is_written_stays_and_the_work_goes_there(dev):
    a, b, c = ones(A), 2 * ones(B), torch.ones(2, 3)
    address = a.data_ptr()
    with torch_fl.device("chip_b"):
        assert a.add_(b) is a
        a *= b
        torch.mul(a, b, out=a)
        a[0] = b[0]
        a[a > 11] = 7.0
        a.copy_(a)
        torch._foreach_mul_([a], [b])
        nn.init.ones_(c)
        c.add_(torch.ones(2, 3, device="cpu"))
        torch.add(torch.ones(2, 3, device="cpu"), 1, out=c)
        F.relu(a, inplace=True)
        F.dropout(a, 0.0, True, True)
    assert a.device == A and a.data_ptr() == address and a.tolist() == [[4, 4, 4], [14, 14, 14]]
    assert c.device.type == "cpu" and c.tolist() == [[2] * 3] * 2


def test_views_stay_views(dev):
    a = torch.zeros(2, 3, device=A)
    with torch_fl.device("chip_b"):
        for view in (a.view(-1), a.reshape(3, 2), a.t(), a[0], a[:, 1], a.detach(), a.T, a[torch.tensor(1)], torch.flatten(a), a.data,
                     *a.split(1), *torch.unbind(a), torch.atleast_2d(a), *torch.broadcast_tensors(a), a.view_as(ones(B))):
            before = a.cpu().sum().item()
            view.add_(ones(B, *view.shape))
            assert view.device == A and a.cpu().sum().item() == before + view.numel()
        assert a[torch.tensor([0])].device == B          # a gather is new memory
        assert a.to(torch.float64).device == A and a.cpu().device.type == "cpu" and a.to("fl_device").device == B


def test_a_function_that_returns_its_operand_returns_the_callers(dev):
    a = ones(A)
    with torch_fl.device("chip_b"):
        same = F.dropout(a, 0.5, training=False)
        same.add_(1)
    assert same is a and a.cpu().sum() == 12


def test_factories_follow_and_what_names_a_place_keeps_it(dev):
    with torch_fl.device("chip_b"):
        for made in (torch.ones(2), torch.tensor([1]), torch.arange(3), torch.randn(2), torch.randperm(3), torch.full((2,), 1.0), torch.eye(2),
                     torch.zeros_like(ones(A)), torch.rand_like(ones(A)), torch.as_tensor([1.0]), torch.linspace(0, 1, 3), nn.Linear(2, 2).weight):
            assert made.device == B
        g = torch.Generator("cpu").manual_seed(1)
        assert torch.randperm(5, generator=g).device.type == "cpu"
        assert torch.empty(2, pin_memory=True).is_pinned()
        assert torch.zeros(2, device="cpu").device.type == "cpu" and torch.zeros(2, device=A).device == A
        assert torch.zeros_like(torch.zeros(1, device="cpu")).device.type == "cpu" and ones(A).new_zeros(1).device == A
        out = torch.empty(3, device=A)
        assert torch.arange(3, out=out) is out
    loader = torch.utils.data.DataLoader(range(8), batch_size=4, shuffle=True)
    with torch_fl.device("chip_b"):
        assert sorted(x.item() for batch in loader for x in batch) == list(range(8))


def test_gradients_cross_back_by_themselves(dev):
    results = []
    for split in (False, True):
        torch.manual_seed(0)
        x, w, v = (torch.randn(4, 4).to(A).requires_grad_() for _ in range(3))
        y = torch.tanh(x @ w)
        if split:
            with torch_fl.device("chip_b"):
                y = torch.cat([y @ v, y * 2])[::2].relu()
            assert y.device == B
            with torch_fl.device("chip_a"):
                loss = (y * x).sum()
        else:
            loss = (torch.cat([y @ v, y * 2])[::2].relu() * x).sum()
        loss.backward()
        results.append([loss.cpu(), *(t.grad.cpu() for t in (x, w, v))])
        assert all(t.grad.device == A for t in (x, w, v))
    torch.testing.assert_close(*results)


def test_second_derivatives_and_function_transforms_cross_too(dev):
    def f(x):
        with torch_fl.device("chip_b"):
            y = (x**3).sum()
        return y

    x = torch.arange(3.0).to(A).requires_grad_()
    (g,) = torch.autograd.grad(f(x), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    assert g.device == h.device == A and h.tolist() == [0, 6, 12]
    # Not torch.func.grad: torch's engine asks for the storage of a wrapped tensor when a gradient changes its device.
    assert torch.func.jvp(f, (x.detach(),), (ones(A, 3),))[1].item() == 15
    assert torch.func.vmap(f)(ones(A, 2, 3)).tolist() == [3, 3]


def test_batch_norm_in_a_scope_updates_the_statistics_where_they_are(dev):
    results = []
    for split in (False, True):
        torch.manual_seed(0)
        norm, x = nn.BatchNorm2d(3).to(A), torch.randn(4, 3, 5, 5).to(A)
        if split:
            with torch_fl.device("chip_b"):
                y = norm(x)
                assert y.device == B
                norm.eval()
                z = norm(x)
        else:
            y = norm(x)
            z = norm.eval()(x)
        assert norm.running_mean.device == A
        results.append([t.detach().cpu() for t in (y, z, norm.running_mean, norm.running_var, norm.num_batches_tracked)])
    torch.testing.assert_close(*results)


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("around", ["in the function", "around the call", "around call and backward"])
def test_checkpointing_computes_again_where_it_did_with_the_same_numbers(dev, reentrant, around):
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    w = torch.randn(8, 8)
    x = torch.randn(8, 8)

    def run(use):
        torch.manual_seed(3)
        weight, inputs = w.to(A).requires_grad_(), x.to(A).requires_grad_()
        scope = torch_fl.device("chip_b")

        def body(t):
            return F.dropout(torch.tanh(t @ weight), 0.5)

        inner = scope(body) if around == "in the function" else body
        call = (lambda t: checkpoint(inner, t, use_reentrant=reentrant)) if use else inner
        if around == "around the call":
            with scope:
                y = call(inputs)
            y.sum().backward()
        elif around == "in the function":
            y = call(inputs)
            y.sum().backward()
        else:
            with scope:
                y = call(inputs)
                y.sum().backward()
        assert y.device == B
        return y.detach().cpu(), weight.grad.cpu(), inputs.grad.cpu()

    plain, checkpointed = run(False), run(True)
    assert plain[1].abs().sum() > 0
    for p, c in zip(plain, checkpointed):
        assert torch.equal(p, c)


def test_moved_bytes_are_reported_by_scope_and_direction(dev):
    torch_fl.reset()
    x = torch.ones(100, device=A, requires_grad=True)
    with torch_fl.device("chip_b"):
        y = x * 2
        y = y + 1                                        # is there already
    there, = moves("chip_b")
    assert (there["from"], there["to"], there["copies"], there["bytes"]) == ("chip_a", "chip_b", 1, 400) and there["ms"] > 0
    assert __file__ in there["scope"]
    y.sum().backward()
    assert {(r["from"], r["to"], r["bytes"]) for r in moves("chip_b")} == {("chip_a", "chip_b", 400), ("chip_b", "chip_a", 400)}
    x.detach().to(B)
    assert [r["bytes"] for r in moves() if r["scope"] == ""] == [400]
    torch_fl.reset()
    assert moves() == []


def test_a_warning_with_numbers_when_moving_costs_more_than_it_brings(fresh):
    script = """
        import torch, torch_fl, warnings
        warnings.simplefilter('always')
        w = torch.ones(50, 50, device='fl_device:{at}')
        x = torch.ones(50, 50, device='fl_device:{at}')
        for _ in range(6):
            with torch_fl.device('chip_b'):
                y = x @ w
        for _ in range(6):
            with torch_fl.device('chip_b'):
                torch.ones(2)
        """
    r = fresh(script.format(at=0), env={"FLHAL_MOCK": "delay_ms=20"}).ok()
    assert r.err.count("moving costs more than computing there brings") == 1
    assert "bytes crossed between chips in" in r.err and "torch_fl.place(module, 'chip_b')" in r.err
    assert "moving costs" not in fresh(script.format(at=1), env={"FLHAL_MOCK": "delay_ms=20"}).ok().err


def test_libraries_that_ask_for_the_default_device_are_told_the_chip(dev):
    with torch_fl.device("chip_b"):
        assert torch.get_default_device() == B
        assert torch.ones(2, device=torch.get_default_device()).device == B
    assert torch.get_default_device().type == "cpu"


def test_gradients_asked_for_inside_a_scope_are_those_of_the_callers_tensor(dev):
    """torch.autograd.grad names the tensors that it differentiates by: a copy of one has no part in the graph."""
    x = torch.tensor([1.0, -2.0, 3.0], device=A, requires_grad=True)
    with torch_fl.device("chip_b"):
        (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    assert first.device == second.device == A
    assert first.tolist() == [3.0, 12.0, 27.0] and second.tolist() == [6.0, -12.0, 18.0]
