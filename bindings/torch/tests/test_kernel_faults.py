"""Bad data that only a kernel sees: it is told before any value computed from it is shown."""

import pytest
import torch
import torch_fl

def through_an_event(t):
    """As a loader does: a download that returns at once, an event behind it, and the host reads when the event is there."""
    host, event = torch.empty(t.shape, dtype=t.dtype).pin_memory(), torch.Event(device=t.device)
    host.copy_(t, non_blocking=True)
    event.record(torch.accelerator.current_stream(t.device))
    event.synchronize()
    return host.tolist()


def on_another_stream(t):
    """Another stream waits on the chip for the one that failed, and its own result is shown."""
    event, other = torch.Event(device=t.device), torch.Stream(device=t.device)
    event.record(torch.accelerator.current_stream(t.device))
    other.wait_event(event)
    with other:
        return (t + 1).cpu()


def on_a_third_stream(t):
    event, between = torch.Event(device=t.device), torch.Stream(device=t.device)
    event.record(torch.accelerator.current_stream(t.device))
    between.wait_event(event)
    with between:
        return on_another_stream(t + 1)


SHOW = {
    "event": through_an_event,
    "another_stream": on_another_stream,
    "third_stream": on_a_third_stream,
    "cpu": lambda t: t.cpu(),
    "item": lambda t: t.flatten()[0].item(),
    "tolist": lambda t: t.tolist(),
    "pinned": lambda t: torch.empty(t.shape, dtype=t.dtype).pin_memory().copy_(t),
    "add": lambda t: (t + 1).cpu(),
    "synchronize": lambda t: torch_fl.synchronize(),
    "other_chip": lambda t: t.to("fl_device:1") if torch_fl.device_count() > 1 else t.cpu(),
}


@pytest.mark.parametrize("show", SHOW)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_bad_index_is_told_before_its_values_are_shown(dev, level, show):
    x, good, bad = torch.arange(12.0).reshape(4, 3).to(dev), torch.tensor([0, 3]).to(dev), torch.tensor([0, 9]).to(dev)
    before = torch_fl.get_async_level()
    torch_fl.set_async_level(level)
    try:
        for _ in range(20):
            with pytest.raises((IndexError, RuntimeError), match="index 9 is out of range|out of range in self"):
                SHOW[show](x.index_select(0, bad))
            torch_fl.clear_error(dev)
            assert x.index_select(0, good).cpu().tolist() == [[0.0, 1.0, 2.0], [9.0, 10.0, 11.0]]
    finally:
        torch_fl.synchronize()
        torch_fl.set_async_level(before)


def test_at_level_0_the_call_itself_raises(dev):
    x, bad = torch.arange(4.0).to(dev), torch.tensor([7]).to(dev)
    before = torch_fl.get_async_level()
    torch_fl.set_async_level(0)
    try:
        with pytest.raises((IndexError, RuntimeError), match="out of range"):
            x.index_select(0, bad)
        torch_fl.clear_error(dev)
    finally:
        torch_fl.set_async_level(before)
