"""SAVE-01 .. SAVE-04: torch.save and load, copies, pickles, processes, DataLoader."""

import copy
import io
import pickle
import subprocess
import sys

import pytest
import torch
from torch import nn

from conftest import environment, plugin_library


def roundtrip(thing, **kwargs):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    buffer.seek(0)
    return torch.load(buffer, **kwargs)


@pytest.mark.parametrize("weights_only", [True, False])
def test_SAVE_01_locations(dev, weights_only):
    x = torch.arange(6.0).reshape(2, 3).to(dev)
    back = roundtrip(x, weights_only=weights_only)
    assert back.device == dev and back.cpu().equal(x.cpu())
    for where, kind in (("cpu", "cpu"), ("fl_device", "fl_device"), ("fl_device:0", "fl_device"), (torch.device("cpu"), "cpu"), ({"fl_device:0": "cpu"}, "cpu"), (lambda s, l: s, "cpu")):
        got = roundtrip(x, map_location=where, weights_only=weights_only)
        assert got.device.type == kind and got.cpu().equal(x.cpu())
    assert roundtrip(x, map_location="meta", weights_only=weights_only).device.type == "meta"
    assert roundtrip(x.cpu(), map_location="fl_device", weights_only=weights_only).device == dev


def test_SAVE_01_sharing_views_and_dtypes(dev):
    x = torch.arange(12.0).to(dev)
    a, b = roundtrip([x.view(3, 4).t(), x[2:6]])
    assert a.stride() == (1, 4) and a.cpu().equal(x.view(3, 4).t().cpu())
    b.fill_(-1)
    assert a.cpu()[2, 0] == -1 and a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()
    for dtype in (torch.bfloat16, torch.int8, torch.bool, torch.complex64, torch.float8_e4m3fn):
        y = torch.ones(3).to(dtype).to(dev)
        assert roundtrip(y).cpu().view(torch.uint8).equal(y.cpu().view(torch.uint8))


def test_SAVE_01_module_and_optimizer_state(dev, tmp_path):
    m = nn.Linear(3, 2).to(dev)
    o = torch.optim.Adam(m.parameters())
    m(torch.ones(1, 3, device=dev)).sum().backward()
    o.step()
    torch.save({"m": m.state_dict(), "o": o.state_dict()}, tmp_path / "x.pt")
    for where in ("cpu", "fl_device"):
        back = torch.load(tmp_path / "x.pt", map_location=where, weights_only=True)
        n = nn.Linear(3, 2).to(dev)
        n.load_state_dict(back["m"])
        p = torch.optim.Adam(n.parameters())
        p.load_state_dict(back["o"])
        assert n.weight.cpu().equal(m.weight.cpu())
        assert all(s["exp_avg"].device == dev for s in p.state.values())
    assert torch.load(tmp_path / "x.pt", map_location="cpu", mmap=True, weights_only=True)["m"]["weight"].equal(m.weight.detach().cpu())


def test_SAVE_01_deepcopy_and_pickle(dev):
    x = torch.arange(6.0).to(dev)
    pair = [x, x[2:]]
    p, q = copy.deepcopy(pair)
    assert p.device == dev and p.cpu().equal(x.cpu()) and p.data_ptr() != x.data_ptr()
    q.zero_()
    assert p.cpu().tolist() == [0, 1, 0, 0, 0, 0]
    back = pickle.loads(pickle.dumps(x))
    assert back.device == dev and back.cpu().equal(x.cpu())
    m = copy.deepcopy(nn.Linear(2, 2).to(dev))
    assert m.weight.device == dev and isinstance(m.weight, nn.Parameter)
    import torch_fl

    chip = torch_fl.devices()[0]
    assert pickle.loads(pickle.dumps(chip)) == chip


def test_SAVE_02_files_load_without_torch_fl(fresh, dev, tmp_path):
    torch.save({"x": torch.arange(3.0).to(dev)}, tmp_path / "y.pt")
    script = f"""
    import torch
    print(torch.load({str(tmp_path / "y.pt")!r}, map_location='cpu', weights_only=True)['x'].tolist())
    try: torch.load({str(tmp_path / "y.pt")!r}, weights_only=True)
    except RuntimeError as e: print('fl_device' in str(e))   # torch's own sentence: nothing of ours is loaded
    """
    assert fresh(script, env={"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}).ok().out.split("\n")[:2] == ["[0.0, 1.0, 2.0]", "True"]


WRITE = """
import torch, torch_fl
torch.manual_seed(0)
where = {where!r}
m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(where)
o = torch.optim.Adam(m.parameters())
m(torch.ones(2, 3, device=where)).square().sum().backward(); o.step()
torch.save(dict(m=m.state_dict(), o=o.state_dict(), x=torch.arange(6.0, device=where).view(2, 3).t(), n=7), {path!r})
print([p.sum().item() for p in m.parameters()])
"""
READ = """
import torch{more}
back = torch.load({path!r}, map_location={where}, weights_only=True)
m = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)){to}
m.load_state_dict(back['m'])
o = torch.optim.Adam(m.parameters()); o.load_state_dict(back['o'])
assert back['x'].tolist() == [[0, 3], [1, 4], [2, 5]] and back['x'].stride() == (1, 3) and back['n'] == 7
for p in m.parameters():
    assert o.state[p]['exp_avg'].device == p.device, (o.state[p]['exp_avg'].device, p.device)
m(torch.ones(2, 3, device=next(m.parameters()).device)).square().sum().backward(); before = [p.sum().item() for p in m.parameters()]; o.step()
print(before)
"""


@pytest.mark.parametrize("writer", ["mock", "host", "ram"])
def test_SAVE_02_a_checkpoint_of_one_chip_loads_everywhere_or_says_map_location(fresh, writer, tmp_path):
    path = str(tmp_path / "checkpoint.pt")
    where = "fl_device:1" if writer == "mock" else "fl_device"
    wrote = fresh(WRITE.format(where=where, path=path), plugin=writer).ok().out.strip()
    none = {"FLHAL_PLUGIN_FILES": str(tmp_path / "nothing")}
    chip, cpu = dict(more=", torch_fl", to=".to('fl_device')"), dict(more="", to="")
    readers = {
        "another maker's chip": (chip, "'fl_device'", {"FLHAL_PLUGIN_FILES": str(plugin_library("ram" if writer != "ram" else "host"))}),
        "fewer devices": (chip, "'fl_device:0'", {"FLHAL_PLUGIN_FILES": str(plugin_library("mock")), "TORCH_FL_VISIBLE_DEVICES": "chip_a"}),
        "the CPU beside a chip": (dict(more=", torch_fl", to=""), "'cpu'", {}),
        "no chip": (dict(more=", torch_fl", to=""), "'cpu'", none),
        "without torch_fl": (cpu, "'cpu'", {}),
    }
    for name, (words, place, env) in readers.items():
        read = fresh(READ.format(path=path, where=place, **words), env=env).ok().out.strip()
        assert [round(x, 5) for x in eval(read)] == [round(x, 5) for x in eval(wrote)], name  # noqa: S307: our own prints
    plain = f"import torch{{}}\ntry: torch.load({path!r}, weights_only=True); print('loaded')\nexcept Exception as error: print(type(error).__name__, error)"
    for name, more, env, parts in (
        ("no chip", ", torch_fl", none, ["torch.fl_device.is_available() is False", "map_location"]),   # torch asks before it asks us
        ("without torch_fl", "", {}, ["fl_device"]),
        *([("fewer devices", ", torch_fl", {"TORCH_FL_VISIBLE_DEVICES": "chip_a", "FLHAL_PLUGIN_FILES": str(plugin_library("mock"))}, ["map_location", "device 1", "device_count() is 1"])] if writer == "mock" else []),
    ):
        said = fresh(plain.format(more), env=env).ok().out
        assert said != "loaded\n" and all(part in said for part in parts), (name, said)


@pytest.mark.parametrize("workers", [0, 2])
def test_SAVE_04_dataloader_pins(fresh, workers):
    fresh(
        f"""
        import torch, torch_fl
        from torch.utils.data import DataLoader, TensorDataset
        if __name__ == '__main__':
            torch.ones(1, device='fl_device')
            data = TensorDataset(torch.arange(8.0), torch.arange(8))
            n = 0
            for a, b in DataLoader(data, batch_size=2, num_workers={workers}, pin_memory=True):
                assert a.is_pinned() and b.is_pinned()
                n += a.to('fl_device', non_blocking=True).sum().item()
            assert n == 28, n
        """
    ).ok()


SHARED = """
import sys, torch, torch_fl, torch.multiprocessing as mp
from torch import nn

def told(thing):
    one = lambda t: (str(t.device), str(t.dtype), tuple(t.shape), t.detach().cpu().tolist(), t.requires_grad, type(t).__name__)
    return [one(t) for t in thing] if isinstance(thing, (list, tuple)) else one(thing)

def child(q, r):
    while True:
        thing = q.get()
        if thing is None: return
        r.put(told(thing))

def double(t): return t * 2

def things():
    x = torch.arange(6.0).to('fl_device').view(2, 3)
    return dict(whole=x, view=x.t()[1:], zero=x[:, :0], number=x.sum(), expanded=x[:1].expand(4, 3), whole_numbers=torch.tensor([1, 2]).to('fl_device'),
                bools=(x > 2), half=x.half(), gradient=x.clone().requires_grad_(), parameter=nn.Parameter(x.clone()), several=[x, x[0]])

if __name__ == '__main__':
    ctx = mp.get_context(sys.argv[1])
    q, r = ctx.Queue(), ctx.Queue()
    p = ctx.Process(target=child, args=(q, r), daemon=True); p.start()
    for name, thing in things().items():
        q.put(thing)
        got = r.get(timeout=60)
        assert got == told(thing), (name, got, told(thing))
    q.put(None); p.join(60); assert p.exitcode == 0, p.exitcode
    with ctx.Pool(1) as pool:
        back = pool.map_async(double, [torch.ones(2, device='fl_device'), torch.empty(0, device='fl_device')]).get(timeout=60)
        assert [t.tolist() for t in back] == [[2, 2], []] and all(t.device.type == 'fl_device' for t in back)
    a, b = ctx.Pipe()
    a.send(torch.arange(3.0).to('fl_device')[1:]); assert b.recv().tolist() == [1, 2]
    a.send(torch.ones(2, device='fl_device').untyped_storage()); assert len(b.recv()) == 8
    try: a.send(torch.ones(2, device='fl_device', requires_grad=True) * 2); print('sent')
    except RuntimeError as error: print('refused', error)
    print('done')
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_SAVE_03_tensors_of_the_device_between_processes(plugin, tmp_path, method):
    """Queue, Pool and Pipe: values by way of the host, on the device of the same index; nothing hangs."""
    script = tmp_path / "shared.py"
    script.write_text(SHARED)
    done = subprocess.run([sys.executable, str(script), method], env=environment(plugin), capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "done" in done.stdout and "refused Cowardly refusing to serialize non-leaf tensor" in done.stdout and "sent" not in done.stdout


def test_SAVE_03_a_forked_worker_that_uses_the_device_raises_in_the_parent(fresh):
    r = fresh(
        """
        import torch, torch_fl
        from torch.utils.data import DataLoader, Dataset
        class Data(Dataset):
            def __init__(self): self.x = torch.arange(8.0).to('fl_device')
            def __len__(self): return 8
            def __getitem__(self, i): return self.x[i] + 1
        if __name__ == '__main__':
            data = Data(); torch_fl.synchronize()
            assert [b.tolist() for b in DataLoader(data, batch_size=4)] == [[1, 2, 3, 4], [5, 6, 7, 8]]
            try: print(list(DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context='fork', timeout=60)))
            except RuntimeError as error: print('refused', str(error))
            got = sorted(v for b in DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context='spawn', timeout=60) for v in b.tolist())
            assert got == [1, 2, 3, 4, 5, 6, 7, 8], got
            print('spawned')
        """,
        timeout=180,
    ).ok()
    assert "refused" in r.out and "fork" in r.out and "spawn" in r.out and "spawned" in r.out


def test_dlpack_between_tensors_of_the_device(dev):
    x = torch.arange(6.0).reshape(2, 3).to(dev).t()
    assert x.__dlpack_device__()[1] == 0 and int(x.__dlpack_device__()[0]) == 12
    y = torch.from_dlpack(x)
    assert y.device == dev and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    assert torch.ones(2).__dlpack_device__()[1] == 0


def test_a_storage_swaps_its_bytes(dev):
    x = torch.arange(6, dtype=torch.int32).to(dev)
    x.untyped_storage().byteswap(torch.int32)
    want = torch.arange(6, dtype=torch.int32)
    want.untyped_storage().byteswap(torch.int32)
    assert torch.equal(x.cpu(), want)
