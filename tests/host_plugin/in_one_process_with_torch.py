"""The host plugin in one process with torch: one thread pool, torch's number of threads, and oneDNN missing.

    python in_one_process_with_torch.py <libflhal_plugin_host.so>

Each check runs in a process of its own, because what is mapped stays mapped. Exit code 77: torch is not installed.
"""
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def mapped(name):
    """Files mapped into this process whose base name begins with `name`."""
    with open("/proc/self/maps") as f:
        paths = {line.split(None, 5)[5].strip() for line in f if line.count("/")}
    return sorted(p for p in paths if os.path.basename(p).startswith(name))


def threads():
    return len(os.listdir("/proc/self/task"))


def open_plugin(path):
    sys.path.insert(0, str(BENCH))
    from host_ops_bench import Plugin
    return Plugin(path)


def check_pool(path):
    """Goal: torch, oneDNN and the plugin share one pool. Method: all three compute in parallel; look at maps and threads."""
    import torch
    plugin = open_plugin(path)
    a, b, out = torch.randn(512, 512), torch.randn(512, 512), torch.empty(512, 512)
    torch.set_num_threads(3)
    torch.exp(torch.randn(1 << 20))   # MKL and ATen are awake
    a @ b
    before = threads()
    run = plugin.plan(0x200, "matmul", [out], [a, b, None])
    run()
    softmax_out = torch.empty(2000, 500)
    plugin.plan(0x400, "softmax", [softmax_out], [torch.randn(2000, 500)])()
    assert torch.allclose(out, a @ b, atol=1e-3)
    gomp = mapped("libgomp")
    assert len(gomp) == 1, f"more than one OpenMP in the process: {gomp}"
    assert not mapped("libiomp") and not mapped("libomp.so"), "another OpenMP runtime is mapped"
    assert mapped("libdnnl.so.3"), "the product did not go through oneDNN"
    assert threads() == before, f"{threads() - before} threads more after the plugin worked in parallel"


def check_number_of_threads(path):
    """Goal: torch.set_num_threads(1) is obeyed, also by a plan made before. Method: no thread appears in a fresh process."""
    import torch
    torch.set_num_threads(1)
    plugin = open_plugin(path)
    before = threads()
    a, out = torch.randn(700, 700), torch.empty(700, 700)
    run = plugin.plan(0x200, "matmul", [out], [a, a, None])
    run()
    plugin.plan(0x400, "softmax", [torch.empty(2000, 500)], [torch.randn(2000, 500)])()
    assert threads() == before, "a pool was started though torch asked for one thread"
    torch.set_num_threads(2)
    out.zero_()
    run()   # the same plan, now with two
    assert torch.allclose(out, a @ a, atol=1e-3)
    torch.set_num_threads(1)
    out.zero_()
    run()
    assert torch.allclose(out, a @ a, atol=1e-3)


def check_missing_onednn(path):
    """Goal: without libdnnl.so.3 the plugin works and says what is missing. Method: a copy that asks for another name."""
    data = pathlib.Path(path).read_bytes()
    assert data.count(b"libdnnl.so.3\0") >= 1
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "libflhal_plugin_host.so")
        pathlib.Path(copy).write_bytes(data.replace(b"libdnnl.so.3\0", b"libdnnl.so.x\0"))
        import torch
        plugin = open_plugin(copy)
        a, out = torch.randn(40, 60), torch.empty(40, 60)
        assert plugin.plan(0x200, "matmul", [torch.empty(40, 40)], [a, a.t(), None]) is None
        print("reason:", plugin.reason)
        assert plugin.reason.startswith("oneDNN did not load (libdnnl.so.x: cannot open shared object file")
        assert "install the Python package onednn-cpu-gomp" in plugin.reason
        plugin.plan(0x400, "softmax", [out], [a])()   # what needs no oneDNN stays native
        assert torch.allclose(out, torch.softmax(a, -1), atol=1e-6)


def check_probe(path):
    """Goal: asking for the device maps no oneDNN and starts no thread. Method: no torch here; look before and after."""
    import ctypes
    before = threads()
    library = ctypes.CDLL(path)
    info = (ctypes.c_uint64 * 32)()
    info[0] = 88 | 3 << 32
    assert library.flhal_plugin_v1(None, ctypes.byref(info)) == 0
    assert threads() == before and not mapped("libdnnl"), mapped("libdnnl")


CHECKS = {f.__name__: f for f in (check_pool, check_number_of_threads, check_missing_onednn, check_probe)}

if __name__ == "__main__":
    if len(sys.argv) == 3:
        CHECKS[sys.argv[2]](sys.argv[1])
        sys.exit(0)
    if importlib.util.find_spec("torch") is None:
        print("skipped: torch is not installed for", sys.executable)
        sys.exit(77)
    failed = 0
    for name in CHECKS:
        code = subprocess.run([sys.executable, __file__, sys.argv[1], name]).returncode
        print(f"{name}: {'ok' if code == 0 else 'FAILED'}")
        failed += code != 0
    sys.exit(1 if failed else 0)
