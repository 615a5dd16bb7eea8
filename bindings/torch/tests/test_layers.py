"""The layers through torch_fl: each by its function, its scope and its environment variable, and what it does to a program."""

import json

import pytest
import torch
import torch_fl

MODEL = """
import torch, torch_fl
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4)).to('fl_device')
x = torch.randn(5, 8, device='fl_device')
for _ in range(3):
    loss = model(x).square().mean()
    loss.backward()
print(float(loss))
"""


def test_layers_are_set_read_back_and_refused_with_the_valid_names(dev):
    before = torch_fl.get_layers()
    try:
        torch_fl.set_layers("stats, validate")
        assert torch_fl.get_layers() == ("validate", "stats")
        torch_fl.set_layers(["fault"])
        assert torch_fl.get_layers() == ("fault",)
        with pytest.raises(ValueError, match="'valdate' is no value of layers; it takes none, or a comma list of validate, trace, fault and stats"):
            torch_fl.set_layers("valdate")
        with pytest.raises(TypeError, match="expected layers as names"):
            torch_fl.set_layers(3)
        with pytest.raises(ValueError, match=r"fail=\[plugin/\]slot:n\[:status\].*memory_alloc.*E_DEVICE_LOST"):
            torch_fl.set_faults("fail=copy")
        assert torch_fl.get_layers() == ("fault",)
        torch_fl.set_layers(None)
        assert torch_fl.get_layers() == ()
    finally:
        torch_fl.set_layers(before)


@pytest.mark.parametrize("name", ["TORCH_FL_LAYERS", "FLHAL_LAYERS"])
def test_layers_from_the_environment_tell_at_the_end(fresh, name, plugin):
    r = fresh(MODEL, env={name: "stats,validate"}).ok()
    assert "layers: calls of plugins' slots" in r.err and plugin in r.err and "memory_alloc" in r.err
    assert "error: validate:" not in r.err  # warnings are measured times
    assert "layers:" not in fresh(MODEL).ok().err


def test_a_wrong_variable_is_told_at_the_first_use(fresh):
    r = fresh(MODEL, env={"TORCH_FL_LAYERS": "stat"})
    assert r.code != 0 and "TORCH_FL_LAYERS='stat' does not parse; layers takes none, or a comma list" in r.err


def test_results_are_the_same_under_every_layer(fresh, tmp_path):
    plain = fresh(MODEL).ok().out
    for layers in ("validate", "trace", "stats", "validate,trace,fault,stats"):
        env = {"FLHAL_LAYERS": layers, "FLHAL_TRACE_FILE": str(tmp_path / "trace.json"), "FLHAL_FAULTS": "reorder=3:1"}
        r = fresh(MODEL, env=env).ok()
        assert r.out == plain, layers
        assert "error: validate:" not in r.err, r.err


def test_stats_count_what_a_block_did(dev):
    x = torch.ones(1000).to(dev)
    torch_fl.reset()
    with torch_fl.layers("stats"):
        assert torch_fl.get_layers() == ("stats",)
        x.fill_(3.0)
        x.cpu()
    assert torch_fl.get_layers() == ()
    x.cpu()  # not counted
    report = torch_fl.get_layers_report()
    rows = {row["slot"]: row for row in report["stats"]}
    moved = sum(rows[slot]["bytes"] for slot in ("copy", "host_begin", "host_end") if slot in rows)
    assert moved >= 4000 and all(row["failures"] == 0 for row in rows.values())
    assert "us each" in str(report) and json.loads(torch_fl.get_layers_report(as_json=True)) == report
    torch_fl.reset()
    assert torch_fl.get_layers_report()["stats"] == []


def test_fault_reaches_the_program_as_an_exception_with_the_rule(dev, plugin):
    rule = f"fail={plugin}/memory_alloc:all:EXHAUSTED"
    size = 300 << 20
    with torch_fl.layers("fault", faults=rule):
        with pytest.raises(torch.OutOfMemoryError):
            torch.empty(size, dtype=torch.uint8, device=dev)
    assert [row["struck"] > 0 for row in torch_fl.get_layers_report()["faults"] if row["rule"] == rule] in ([True], [])
    torch.empty(size, dtype=torch.uint8, device=dev)
    with torch_fl.layers("fault", faults=[f"fail={plugin}/copy:all:E_INVALID", f"fail={plugin}/host_begin:all:E_INVALID"]):
        with pytest.raises(RuntimeError, match="the layer fault answered here: fail="):
            (torch.ones(4000).to(dev) + 1).cpu()
    assert (torch.ones(4, device=dev) + 1).cpu().tolist() == [2, 2, 2, 2]


def test_trace_is_a_chrome_trace_of_the_block(dev, tmp_path):
    path = tmp_path / "trace.json"
    x = torch.ones(1000).to(dev)
    with torch_fl.layers("trace", trace_file=path, payload=True):
        (x + 1).cpu()
    events = json.loads(path.read_text())
    assert events and all(event["ph"] == "X" and event["dur"] >= 0 and event["args"]["answer"] for event in events)
    assert any(event["args"]["slot"] in ("copy", "host_begin", "plan_run", "launch") for event in events)
    assert torch_fl.get_layers_report()["trace"]["calls"] == len(events)


@pytest.mark.plugins("mock", "opencl")
def test_COPY_05_a_missing_wait_between_streams_is_reported_and_a_wait_is_not(fresh):
    script = """
    import torch, torch_fl
    side = torch.Stream('fl_device')
    a = torch.zeros(1 << 20, device='fl_device')
    b = torch.ones(1 << 20, device='fl_device')
    torch.fl_device.synchronize()
    for waits in (True, False):
        torch_fl.reset()
        with side:
            for _ in range(8): a.copy_(b)
        if waits: torch.fl_device.current_stream().wait_stream(side)
        c = a.clone()
        found = [row for row in torch_fl.get_layers_report()["findings"] if row["finding"] == "wait_missing"]
        print(waits, len(found), found[0]["whose"] if found else "")
        side.synchronize()
        torch.fl_device.synchronize()
    """
    r = fresh(script, env={"FLHAL_LAYERS": "validate"}).ok()
    assert r.out.splitlines() == ["True 0 ", "False 1 program"], r.out + r.err
