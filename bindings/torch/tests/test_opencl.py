"""PoCL and torch in one process: import orders, forks, signals, models whose operators fall back."""

import itertools

import pytest

pytestmark = pytest.mark.plugins("opencl")

STEPS = {
    "torch": "import torch",
    "opencl": "import ctypes; cl = ctypes.CDLL('libOpenCL.so.1'); n = ctypes.c_uint(); cl.clGetPlatformIDs(0, None, ctypes.byref(n)); assert n.value"
              "; p = ctypes.c_void_p(); cl.clGetPlatformIDs(1, ctypes.byref(p), None)"
              "; cl.clGetDeviceIDs(p, ctypes.c_ulong(0xFFFFFFFF), 0, None, ctypes.byref(n)); assert n.value",
    "onednn": "import ctypes, pathlib, sys; ctypes.CDLL(str(pathlib.Path(sys.prefix) / 'lib' / 'libdnnl.so.3'))",
}


@pytest.mark.parametrize("order", list(itertools.permutations(STEPS)), ids="-".join)
def test_every_import_order_works(fresh, order):
    script = "\n".join(STEPS[step] for step in order) + """
import torch, torch_fl
x = torch.rand(64, 64)
y = x.to("fl_device")
assert torch.equal((y @ y).cpu(), x @ x) or torch.allclose((y @ y).cpu(), x @ x, atol=1e-5)
assert torch.equal(y.cpu(), x)
print("ended well")
"""
    assert "ended well" in fresh(script).ok().out


def test_fork_after_scan_and_after_use(fresh):
    out = fresh("""
        import os, torch, torch_fl
        assert torch_fl.is_available()
        def forked(expect_refusal):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    torch.ones(3, device="fl_device")
                except RuntimeError as error:
                    code = 0 if "fork" in str(error) else 2
                os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        forked(True)                                     # the scan started nothing here
        x = torch.arange(5.0).to("fl_device")            # now PoCL's threads run
        forked(True)
        child = os.fork()                                # a child that ends the ordinary way must not hang
        if child == 0:
            raise SystemExit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert x.cpu().tolist() == [0, 1, 2, 3, 4]
        print("ended well")
    """).ok().out
    assert "ended well" in out


def test_a_driver_keeps_no_signal_handlers_and_no_float_mode(fresh):
    out = fresh("""
        import signal
        signal.signal(signal.SIGINT, signal.default_int_handler)   # a shell starts background programs with SIGINT ignored
        before = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGFPE, signal.SIGSEGV, signal.SIGUSR1)}
        import torch, torch_fl
        tiny = torch.tensor([1e-40])
        x = torch.rand(100).to("fl_device")
        x.cpu()
        caught = open("/proc/self/status").read().split("SigCgt:")[1].split()[0]
        assert int(caught, 16) & (1 << (signal.SIGTERM - 1) | 1 << (signal.SIGFPE - 1) | 1 << (signal.SIGSEGV - 1)) == 0, caught
        assert {n: signal.getsignal(n) for n in before} == before
        assert (tiny + 0).item() != 0                    # denormals are not flushed
        import os
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000000): pass
        except KeyboardInterrupt:
            print("ended well")
    """).ok().out
    assert "ended well" in out


def test_a_transformer_gives_what_the_cpu_gives(dev):
    import torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0).eval()
    model = torch.nn.Sequential(torch.nn.Embedding(100, 64), layer, torch.nn.LayerNorm(64), torch.nn.Linear(64, 10)).eval()
    ids = torch.randint(0, 100, (2, 17))
    with torch.no_grad():
        expected = model(ids)
        got = model.to(dev)(ids.to(dev)).cpu()
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_opencl_is_a_name(fresh):
    out = fresh("""
        import torch_fl
        torch_fl.activate("opencl")
        try:
            torch_fl.activate("opencl:7")
        except RuntimeError as error:
            assert "the devices are opencl" in str(error), error
            print("ended well")
    """, env={"TORCH_FL_VISIBLE_DEVICES": "opencl"}).ok().out
    assert "ended well" in out
