"""A chip is lost in the middle of training: a clear error; the other chip, its weights and the process live on."""

import pytest

pytestmark = pytest.mark.plugins("mock")

SCRIPT = """
import sys, torch, torch_fl, warnings
from torch import nn
sys.path.insert(0, {support!r})
from mock_control import MockControl
mock = MockControl({library!r})
A, B = torch.device('fl_device', 0), torch.device('fl_device', 1)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2)).to(A)
tail = nn.Sequential(*model[2:])
torch_fl.place(tail, 'chip_b')
opt = {{'a': torch.optim.Adam(model[:2].parameters(), lr=0.01), 'b': torch.optim.Adam(tail.parameters(), lr=0.01)}}
x = torch.randn(4, 8).to(A)

def step():
    for o in opt.values(): o.zero_grad()
    loss = tail(model[1](model[0](x))).square().mean()
    loss.backward()
    for o in opt.values(): o.step()
    return loss.item()

losses = [step() for _ in range(3)]
saved = [p.detach().cpu() for p in model[:2].parameters()]
{lose}
try:
    for _ in range(50): step()
    print('no error')
except RuntimeError as error:
    print('error:', str(error).splitlines()[0])
after = [p.detach().cpu() for p in model[:2].parameters()]
print('intact', all(torch.isfinite(p).all() for p in after), {intact})
try: print('read', tail[0].weight.cpu().shape)
except RuntimeError as error: print('weights:', str(error).splitlines()[0])
# The other chip goes on, with a new tail.
tail = nn.Sequential(nn.Linear(16, 8), nn.Tanh(), nn.Linear(8, 2)).to(A)
opt = {{'a': opt['a'], 'b': torch.optim.Adam(tail.parameters(), lr=0.01)}}
more = [step() for _ in range(20)]
print('goes on', more[-1] < more[0])
with torch_fl.device('chip_a'): print('scope', (x + 1).sum().device)
try:
    with torch_fl.device('chip_b'): print((x + 1).sum().item())
except RuntimeError as error: print('scope error:', str(error).splitlines()[0])
print(torch_fl.current_device(), torch._C._len_torch_function_stack())
del tail, model, opt
torch_fl._C.reset_device(1)
with torch_fl.device('chip_b'): print('again', (torch.ones(3) + 1).sum().item())
"""


@pytest.mark.parametrize("when", ["between steps", "in a step", "while work is queued"])
def test_a_chip_lost_in_mid_training(fresh, when):
    from conftest import REPOSITORY, plugin_library

    lose = {
        "between steps": "mock.lose(1)",
        "in a step": "mock.script('lose_after=40@b')",
        "while work is queued": "mock.script('delay_ms=3'); step.__call__; import threading; threading.Timer(0.15, mock.lose, (1,)).start()",
    }[when]
    intact = "all(torch.equal(a, b) for a, b in zip(saved, after))" if when == "between steps" else "True"
    script = SCRIPT.format(support=str(REPOSITORY / "tests" / "support"), library=str(plugin_library("mock")), lose=lose, intact=intact)
    out = fresh(script).ok().out
    lines = dict(line.split(None, 1) for line in out.splitlines() if " " in line)
    assert "chip_b" in lines["error:"] and "lost" in lines["error:"], out
    assert lines["intact"] == "True True", out
    assert "chip_b" in lines["weights:"] and "lost" in lines["weights:"], out
    assert "goes on True" in out and "scope fl_device:0" in out and "again 6.0" in out, out
    assert "scope error:" in out and "chip_b" in out.split("scope error:")[1].splitlines()[0] and "chip_a 0" in out, out
