"""What is per chip and per thread: random numbers, streams, memory, and that nothing piles up while work hops between chips."""

import os
import sys
import threading

import pytest
import torch
import torch_fl
from torch import nn

from conftest import REPOSITORY, plugin_library

sys.path.insert(0, str(REPOSITORY / "tests" / "support"))
pytestmark = pytest.mark.plugins("mock")
A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)


def test_RNG_01_one_seed_gives_the_same_numbers_on_every_makers_chip(fresh):
    """Bits, not tolerances: global seed, own generator, and after a plan-cache hit; also by fallback."""
    out = fresh(
        """
        import torch, torch_fl
        from torch import nn
        draws = {
            'rand': lambda d, g: torch.rand(1001, device=d, generator=g),
            'randn': lambda d, g: torch.randn(1001, device=d, generator=g),
            'randn half': lambda d, g: torch.randn(1001, device=d, generator=g, dtype=torch.float16),
            'double': lambda d, g: torch.rand(1001, device=d, generator=g, dtype=torch.float64),
            'randint': lambda d, g: torch.randint(-7, 1 << 40, (1001,), device=d, generator=g),
            'randperm': lambda d, g: torch.randperm(101, device=d, generator=g),
            'normal_': lambda d, g: torch.empty(7, 11, device=d).t().normal_(1, 2, generator=g),
            'bernoulli': lambda d, g: torch.empty(1001, device=d).bernoulli_(0.3, generator=g),
            'exponential_': lambda d, g: torch.empty(1001, device=d).exponential_(generator=g),
            'multinomial': lambda d, g: torch.multinomial(torch.ones(9, device=d), 5, generator=g),
            'poisson': lambda d, g: torch.poisson(torch.full((99,), 4.0, device=d), generator=g),
            'dropout': lambda d, g: nn.functional.dropout(torch.ones(1001, device=d), 0.3),
        }
        names = [str(d) for d in torch_fl.devices()]
        assert sorted(names) == ['chip_a', 'chip_b', 'host', 'ram'], names
        for name, draw in draws.items():
            found = []
            for i in range(len(names)):
                device = torch.device('fl_device', i)
                torch.manual_seed(12345)
                first, second = draw(device, None).cpu(), draw(device, None).cpu()
                own = draw(device, torch.Generator(device).manual_seed(77)).cpu()
                with torch_fl.device(i):
                    torch.manual_seed(12345)
                    assert torch.equal(draw('fl_device', None).cpu(), first), name
                found.append((first, second, own))
            for chip, numbers in zip(names, found):
                for mine, theirs in zip(numbers, found[0]):
                    assert torch.equal(mine, theirs), (name, chip, names[0], (mine != theirs).sum().item())
            assert not torch.equal(found[0][0], found[0][1]), name
        print('same', len(draws))
        """,
        env={"FLHAL_PLUGIN_FILES": ":".join(str(plugin_library(n)) for n in ("host", "mock", "ram"))},
    ).ok().out
    assert "same 12" in out


def test_RNG_02_states_of_all_chips_are_saved_and_restored_around_a_split_model(dev):
    model = nn.Sequential(nn.Dropout(0.5), torch_fl.place(nn.Dropout(0.5), "chip_b"))
    x = torch.ones(64, device=A)
    torch.manual_seed(1)
    with torch.random.fork_rng(device_type="fl_device"):
        inside = model(x).cpu()
    assert torch.equal(model(x).cpu(), inside)
    with pytest.raises(KeyError), torch.random.fork_rng(device_type="fl_device", devices=[0, 1]):
        model(x)
        raise KeyError
    after = [torch.rand(2, device=d).cpu() for d in (A, B)]
    torch.manual_seed(1)
    model(x)
    assert all(torch.equal(torch.rand(2, device=d).cpu(), a) for d, a in zip((A, B), after))


def test_current_device_and_streams_belong_to_their_thread(dev):
    here = torch.Stream(A)
    torch.accelerator.set_stream(here)
    seen, ready, go = {}, threading.Event(), threading.Event()

    def other():
        seen["streams"] = [torch.accelerator.current_stream(i) for i in (0, 1)]
        torch.fl_device.set_device(1)
        mine = torch.Stream(B)
        torch.accelerator.set_stream(mine)
        ready.set()
        go.wait(30)
        seen["own"] = torch.accelerator.current_stream(1) == mine and torch.fl_device.current_device() == 1
        with torch_fl.device("chip_a"):
            seen["in scope"] = torch.accelerator.current_stream() == torch.fl_device.default_stream(0)
        seen["after"] = torch.fl_device.current_device()

    try:
        thread = threading.Thread(target=other)
        thread.start()
        ready.wait(30)
        assert torch.accelerator.current_stream(1) == torch.fl_device.default_stream(1) and torch.fl_device.current_device() == 0
        with torch_fl.device("chip_b"):
            assert torch.accelerator.current_stream() == torch.fl_device.default_stream(1)
        assert torch.accelerator.current_stream() == here
        go.set()
        thread.join(30)
    finally:
        torch.accelerator.set_stream(torch.fl_device.default_stream(0))
    assert seen == {"streams": [torch.fl_device.default_stream(0), torch.fl_device.default_stream(1)], "own": True, "in scope": True, "after": 1}


@pytest.mark.parametrize("delay", [None, "reorder=5"])
def test_a_tensor_made_on_a_side_stream_follows_into_a_scope_in_order(dev, delay):
    """The copy to the other chip waits for the stream on which the operand was made, not only for the default one."""
    from mock_control import MockControl

    mock = MockControl(plugin_library("mock"))
    stream = torch.Stream(A)
    try:
        mock.script(delay)
        for n in range(20):
            with stream:
                x = torch.full((300,), float(n), device=A)
                for _ in range(4):
                    x = x + 1
                with torch_fl.device("chip_b"):
                    y = x * 2
            assert y.sum().item() == 300 * 2 * (n + 4)
    finally:
        mock.script(None)


def test_MEM_05_training_over_two_chips_leaves_nothing_behind(dev):
    """Blocks, slabs, events, streams, modules, plans, descriptors and scopes: flat after the first steps, failing steps included."""
    from mock_control import MockControl

    mock = MockControl(plugin_library("mock"))
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), torch_fl.place(nn.Linear(8, 8), "chip_b"), nn.Dropout(0.1)).to(A)
    torch_fl.place(model[2], "chip_b")
    opt = torch.optim.Adam(model.parameters(), lr=1e-4)

    def step(fail):
        opt.zero_grad()
        with torch_fl.device("chip_b"):
            y = model(torch.ones(4, 8, device=A))
            if fail:
                raise KeyError
        with torch_fl.device("chip_a"):
            (y * y).sum().backward()
        opt.step()

    def standing():
        for i in (0, 1):
            torch.accelerator.synchronize(i)
        torch.accelerator.empty_cache()
        counts = [{k: v for k, v in mock.counts(i).items() if k.startswith("live") or k in ("queued", "misuse")} for i in (0, 1)]
        live = [torch_fl._C.memory_stats(i)["n_live"] for i in (0, 1)]
        return counts, live, len(os.listdir("/proc/self/fd")), torch._C._len_torch_function_stack(), threading.active_count()

    def run(steps):
        for n in range(steps):
            try:
                step(n % 7 == 3)
            except KeyError:
                pass

    run(61)                                              # ends with a step that did not fail, as the other run does
    before = standing()
    run(500)
    after = standing()
    for one, other in zip(before[0], after[0]):
        assert all(other[k] <= one[k] + (2 if k in ("live_events", "live_slabs") else 0) for k in one if k != "live_slab_bytes"), (before, after)
    assert after[1:] == before[1:]
