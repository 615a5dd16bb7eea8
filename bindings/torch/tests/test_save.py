"""SAVE-01 .. SAVE-04: torch.save and load, copies, pickles, processes, DataLoader."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn


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


def test_SAVE_02_fewer_devices(dev):
    x = torch.arange(3.0).to(dev)
    buffer = io.BytesIO()
    torch.save(x, buffer)
    data = buffer.getvalue().replace(b"fl_device:0", b"fl_device:9")
    try:
        torch.load(io.BytesIO(data))
    except RuntimeError as e:
        assert "map_location" in str(e) or "device" in str(e)


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


def test_SAVE_03_queue_between_processes(fresh):
    r = fresh(
        """
        import torch, torch_fl, torch.multiprocessing as mp
        def child(q):
            print('got', q.get().tolist(), flush=True)
        if __name__ == '__main__':
            ctx = mp.get_context('spawn')
            q = ctx.Queue()
            p = ctx.Process(target=child, args=(q,)); p.start()
            try:
                q.put(torch.arange(3.0).to('fl_device').cpu()); p.join(60)
            finally:
                if p.is_alive(): p.kill()
        """
    ).ok()
    assert "got [0.0, 1.0, 2.0]" in r.out


def test_dlpack_between_tensors_of_the_device(dev):
    x = torch.arange(6.0).reshape(2, 3).to(dev).t()
    assert x.__dlpack_device__()[1] == 0 and int(x.__dlpack_device__()[0]) == 12
    y = torch.from_dlpack(x)
    assert y.device == dev and y.data_ptr() == x.data_ptr() and y.stride() == x.stride()
    assert torch.ones(2).__dlpack_device__()[1] == 0
