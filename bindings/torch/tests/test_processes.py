"""Processes: fork, exit, versions, entry point, accelerator conventions."""

import pytest
import torch
import torch_fl


def test_forked_child_frees_silently_and_is_refused_everything_else(fresh):
    r = fresh(
        """
        import os, torch, torch_fl
        x = torch.ones(4, device='fl_device'); x.sum().item()
        pid = os.fork()
        if pid == 0:
            del x
            try:
                torch.ones(2, device='fl_device'); print('worked')
            except RuntimeError as e:
                print('refused:', e)
            try: torch.fl_device._lazy_init()
            except RuntimeError as e: print('spawn' in str(e))
            print(torch.fl_device._is_in_bad_fork(), torch.ones(2).sum().item(), flush=True)
            torch.manual_seed(3)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert x.sum().item() == 4
        """
    ).ok()
    assert "refused" in r.out and "True" in r.out and "worked" not in r.out


def test_a_fork_before_first_use_may_use_the_device(fresh):
    fresh(
        """
        import os, torch, torch_fl
        pid = os.fork()
        if pid == 0:
            os._exit(0 if torch.ones(2, device='fl_device').sum().item() == 2 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        """
    ).ok()


@pytest.mark.parametrize("how", ["", "import sys; sys.exit(0)", "import os; os._exit(0)"])
def test_exit_with_live_tensors_and_threads(fresh, how):
    fresh(
        f"""
        import threading, torch, torch_fl
        keep = [torch.ones(100, 100, device='fl_device') for _ in range(10)]
        model = torch.nn.Linear(4, 4).to('fl_device'); y = model(torch.ones(2, 4, device='fl_device')); y.sum().backward()
        s = torch.Stream('fl_device'); e = torch.Event('fl_device'); e.record(s)
        # A daemon thread inside an operator at exit aborts torch on the CPU too; one that merely holds tensors must not.
        ready = threading.Event()
        def hold():
            mine = (keep[0] + keep[1]).sum(); ready.set(); threading.Event().wait(); print(mine)
        threading.Thread(target=hold, daemon=True).start(); ready.wait()
        threading.Thread(target=lambda: [(keep[0] + keep[1]).sum() for _ in range(200)]).start()
        pinned = torch.ones(5).pin_memory(); keep[0].copy_(torch.ones(100, 100).pin_memory(), non_blocking=True)
        {how}
        """
    ).ok()


@pytest.mark.plugins("mock", "opencl")
def test_the_interpreter_ends_when_queued_work_has(fresh, plugin, tmp_path):
    # opencl: nothing is cached, so the driver compiles in its own thread when the last line has run.
    r = fresh(
        """
        import atexit
        late = lambda: print("at the end", torch_fl._C.any_stream_busy())
        atexit.register(late)
        import torch, torch_fl
        with torch.autocast('fl_device', dtype=torch.bfloat16):
            y = torch.ones(2, 2, device='fl_device') @ torch.ones(2, 2, device='fl_device')
        print("last line", torch_fl._C.any_stream_busy())
        """,
        env={"FLHAL_MOCK": "delay_ms=50", "XDG_CACHE_HOME": str(tmp_path / "cache"), "POCL_CACHE_DIR": str(tmp_path / "pocl")},
    ).ok()
    assert r.out.splitlines() == ["last line True", "at the end False"]


def test_exit_while_an_exception_holds_tensors(fresh):
    r = fresh("import torch, torch_fl\nx = torch.ones(3, device='fl_device')\nraise KeyError('end')")
    assert r.code == 1 and "KeyError" in r.err and "Segmentation" not in r.err


def test_another_torch_minor_is_refused_before_the_library_is_opened(fresh):
    r = fresh(
        """
        import torch
        torch.__version__ = torch.torch_version.TorchVersion('2.99.1+cpu')
        try: import torch_fl
        except ImportError as e: print(e)
        """
    ).ok()
    assert "2.99.1" in r.out and "2.13" in r.out and "pip install" in r.out


def test_LOAD_05_no_plugin_import_works_and_first_use_explains(fresh, tmp_path):
    r = fresh(
        """
        import torch, torch_fl
        assert torch_fl.is_available() is False and torch_fl.devices() == []
        torch.ones(2, requires_grad=True).sum().backward()
        try: torch.ones(1, device='fl_device')
        except RuntimeError as e: print(e)
        """,
        env={"FLHAL_PLUGIN_FILES": str(tmp_path / "nothing")},
    ).ok()
    assert r.out.startswith("Device registration failed: plugin not found")


def test_entry_point_twice_is_harmless(fresh):
    fresh("import torch, torch_fl\ntorch_fl._autoload(); torch_fl._autoload()\nimport torch.fl_device").ok()


def test_accelerator_conventions(dev):
    assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "fl_device"
    assert torch.accelerator.device_count() == torch.fl_device.device_count()
    assert torch.accelerator.current_device_index() == torch.fl_device.current_device()
    torch.accelerator.synchronize()
    x = torch.empty(1 << 20, dtype=torch.uint8, device=dev)
    assert torch.accelerator.memory_allocated() >= 1 << 20
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_allocated()
    assert torch.accelerator.memory_reserved() >= torch.accelerator.memory_allocated()
    torch.accelerator.reset_peak_memory_stats()
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free <= total
    assert torch.fl_device.memory_allocated() >= 1 << 20 and "ceiling" in torch_fl.memory_summary()
    del x
    torch.accelerator.empty_cache()
    assert torch.get_device_module("fl_device") is torch.fl_device


def test_streams_and_events(dev):
    s, t = torch.Stream(dev), torch.fl_device.Stream(priority=-1)
    assert s != t and s.device == dev and torch.fl_device.default_stream() == torch.accelerator.current_stream()
    with s:
        assert torch.accelerator.current_stream() == s
        x = torch.ones(1000, device=dev) + 1
        e = s.record_event()
    assert torch.accelerator.current_stream() == torch.fl_device.default_stream()
    torch.accelerator.current_stream().wait_event(e)
    assert x.sum().item() == 2000
    x.record_stream(t)
    t.wait_stream(s)
    t.synchronize()
    with torch.fl_device.stream(t):
        assert torch.fl_device.current_stream() == t
    begin, end = torch.Event(dev, enable_timing=True), torch.fl_device.Event(enable_timing=True)
    begin.record()
    (x * 2).sum()
    end.record()
    end.synchronize()
    assert begin.elapsed_time(end) >= 0 and end.query()


@pytest.mark.plugins("mock")
def test_DEV_01_the_operands_decide_not_the_current_device(dev):
    x = torch.arange(4.0, device="fl_device:1")
    assert torch.fl_device.current_device() == 0
    y = torch.special.i0e(x) + x.sum() + x[1:].t().sum()
    assert y.device.index == 1 and torch.fl_device.current_device() == 0
    assert torch.rand(2, device="fl_device:1").device.index == 1
    with pytest.raises(RuntimeError, match="fl_device:0 and fl_device:1|fl_device:1 and fl_device:0"):
        x + torch.ones(4, device="fl_device:0")


def test_profile_operators_tells_routes_without_opening_the_chip(fresh):
    r = fresh(
        """
        import torch, torch_fl
        from torch import nn
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 8), nn.Softplus(), nn.LayerNorm(8), nn.Softmax(1))
        before = [p.clone() for p in model.parameters()]
        profile = torch_fl.profile_operators(model, input_shape=(1, 3, 8, 8))
        print(profile)
        assert not torch_fl._C.is_open(0) and torch_fl.device_count() > 0
        names = ' '.join(r['operator'] for r in profile)
        assert 'convolution' in names and 'relu' in names and 'softplus' in names, names
        assert all(torch.equal(a, b) for a, b in zip(before, model.parameters()))
        again = torch_fl.profile_operators(model, example_inputs=torch.ones(1, 3, 8, 8))
        assert again == profile
        torch_fl.profile_operators(lambda x: torch.special.i1e(torch.linalg.inv(x)), example_inputs=torch.eye(3))
        torch_fl.profile_operators(lambda x: x[x > 0], example_inputs=torch.eye(3))
        model.to('fl_device'); print(model(torch.ones(1, 3, 8, 8, device='fl_device')).sum().item())
        """
    ).ok()
    assert "route" in r.out
