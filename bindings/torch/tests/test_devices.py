"""Devices: finding, naming, choosing; the sentences of refusals."""

import pytest
import torch
import torch_fl


def test_api_answers(dev):
    assert torch_fl.is_available()
    chips = torch_fl.devices()
    assert [int(c) for c in chips] == list(range(torch.fl_device.device_count()))
    chip = torch_fl.current_device()
    assert str(chip) == chip.name and f"{chip}" == chip.name and repr(chip) == chip.name
    assert chip.memory > 0 and torch.float32 in chip.dtypes and "fallback" in chip.routes
    assert len(chip.uuid) == 36
    torch_fl.synchronize()


def test_device_object_is_usable_where_torch_takes_an_index(dev):
    chip = torch_fl.devices()[0]
    assert torch.empty(2, device=torch.device("fl_device", chip)).device == dev
    assert torch.empty(2, device=chip).device == dev
    assert torch.empty(2).to(chip).device == dev
    assert [10, 20][chip] == 10
    with torch.fl_device.device(chip):
        pass


def test_index_out_of_range_is_a_clear_error(dev):
    n = torch.fl_device.device_count()
    with pytest.raises(RuntimeError, match=str(n)):
        torch.empty(1, device=f"fl_device:{n}")
    with pytest.raises(RuntimeError, match=str(n)):
        torch.fl_device.set_device(n)


def test_unknown_name_lists_the_valid_ones(dev):
    with pytest.raises(RuntimeError, match=torch_fl.devices()[0].name):
        torch_fl.activate("no_such_chip")


def test_factories(dev):
    x = torch.empty(2, 3, device="fl_device")
    assert x.device == dev and x.is_contiguous() and x.untyped_storage().nbytes() >= 24
    assert torch.empty(0, device=dev).shape == (0,)
    assert torch.empty((2, 3, 4, 5), device=dev, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert torch.empty_strided((2, 3), (1, 2), device=dev).stride() == (1, 2)
    assert torch.tril_indices(3, 3, device=dev).cpu().equal(torch.tril_indices(3, 3))
    assert torch.triu_indices(3, 4, 1, device=dev).cpu().equal(torch.triu_indices(3, 4, 1))
    with pytest.raises(RuntimeError, match="[Nn]egative dimension"):
        torch.empty(-1, device=dev)
    with pytest.raises(RuntimeError, match="pinned"):
        torch.empty(1, device=dev, pin_memory=True)


def test_resize_and_set(dev):
    x = torch.arange(6.0).to(dev)
    x.resize_(2, 2)
    assert x.cpu().tolist() == [[0, 1], [2, 3]]
    x.resize_(3, 3)
    assert x.cpu().flatten()[:6].tolist() == [0, 1, 2, 3, 4, 5]
    y = torch.empty(0, device=dev)
    y.set_(x.untyped_storage(), 1, (2,), (1,))
    assert y.cpu().tolist() == [1, 2]
    z = torch.empty(0, device=dev).set_(x)
    assert z.data_ptr() == x.data_ptr()
    x.set_()
    assert x.numel() == 0
    s = torch.arange(4.0).to(dev).untyped_storage()
    s.resize_(32)
    assert s.nbytes() == 32


def test_views_share_memory(dev):
    x = torch.arange(24.0).reshape(2, 3, 4).to(dev)
    c = torch.arange(24.0).reshape(2, 3, 4)
    for view in (
        lambda t: t.view(6, 4),
        lambda t: t.transpose(0, 2),
        lambda t: t[:, 1:, ::2],
        lambda t: t.unfold(2, 2, 1),
        lambda t: t.as_strided((3, 2), (4, 1), 2),
        lambda t: t.expand(5, 2, 3, 4)[3],
        lambda t: t.permute(2, 0, 1).flatten(1),
        lambda t: t.view(torch.int32),
        lambda t: torch.view_as_complex(t.view(2, 3, 2, 2)),
        lambda t: torch.view_as_real(torch.view_as_complex(t.view(2, 3, 2, 2))),
    ):
        assert view(x).cpu().equal(view(c))
        assert view(x).stride() == view(c).stride()
    x[0, 0].fill_(7)
    assert x.view(-1)[:4].cpu().tolist() == [7, 7, 7, 7]


@pytest.mark.parametrize(
    "dtype",
    [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
     torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.float8_e5m2],
)  # fmt: skip
def test_TYPE_03_repr_equals_the_cpus_but_for_the_device(dev, dtype):
    for shape in ((), (0,), (2, 3), (0, 3)):
        c = torch.ones(shape).to(dtype)
        text = repr(c.to(dev))
        assert "fl_device:0" in text
        strip = "".join(text.split()).replace(",device='fl_device:0'", "").replace("device='fl_device:0'", "")
        assert strip == "".join(repr(c).split())
    assert "requires_grad=True" in repr(torch.ones(2, device=dev, requires_grad=True))


def test_TYPE_03_repr_of_hard_values(dev):
    for c in (
        torch.tensor([float("nan"), float("inf"), -float("inf"), 1e-30, 1e30]),
        torch.arange(2000.0),
        torch.arange(12.0).reshape(3, 4).t(),
        torch.arange(6.0)[::2],
    ):
        d = c.to(dev)
        strip = "".join(repr(d).split()).replace(",device='fl_device:0'", "")
        assert strip == "".join(repr(c).split())
        assert d.tolist() == c.tolist() or torch.isnan(c).any()
    assert f"{torch.tensor(1.5, device=dev):.2f}" == "1.50"


@pytest.mark.parametrize("dtype", [torch.qint8, torch.bits8, torch.quint8])
def test_TYPE_05_types_the_chip_cannot_hold_fail_at_the_door(dev, dtype):
    with pytest.raises((TypeError, NotImplementedError, RuntimeError), match="fl_device"):
        torch.empty(2, dtype=dtype, device=dev)


def test_numpy_is_refused_with_torchs_sentence(dev):
    with pytest.raises(TypeError, match="Tensor.cpu\\(\\)"):
        torch.ones(2, device=dev).numpy()


def test_item_of_every_dtype(dev):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.uint16):
        c = torch.tensor(1, dtype=dtype)
        assert c.to(dev).item() == c.item()
    assert torch.tensor([1, 5], device=dev)[1].item() == 5
    assert bool(torch.tensor(True, device=dev)) and int(torch.tensor(3, device=dev)) == 3


def test_out_of_memory_is_torchs_exception_and_survivable(dev):
    with pytest.raises(torch.OutOfMemoryError, match="(?i)memory"):
        torch.empty(1 << 50, dtype=torch.uint8, device=dev)
    assert torch.ones(3, device=dev).sum().item() == 3


def test_activate_changes_the_default_while_running(fresh):
    fresh(
        """
        import torch, torch_fl
        if torch.fl_device.device_count() < 2: raise SystemExit(0)
        a, b = torch_fl.devices()[:2]
        assert torch.empty(1, device='fl_device').device.index == 0
        torch_fl.activate(b)
        assert torch.empty(1, device='fl_device').device.index == 1 and torch_fl.current_device() == b
        import threading
        seen = []
        t = threading.Thread(target=lambda: seen.append(torch.empty(1, device='fl_device').device.index)); t.start(); t.join()
        assert seen == [1]
        with torch.fl_device.device(0):
            assert torch.empty(1, device='fl_device').device.index == 0
        assert torch.empty(1, device='fl_device').device.index == 1
        torch_fl.activate(a.name)
        assert torch.empty(1, device='fl_device').device.index == 0
        """,
        plugin="mock",
    ).ok()


def test_activate_is_kept_for_later_processes_and_the_environment_overrides(fresh, tmp_path):
    env = {"XDG_CONFIG_HOME": str(tmp_path / "config")}
    fresh("import torch_fl; torch_fl.activate(torch_fl.devices()[-1], keep=True)", plugin="mock", env=env).ok()
    assert (tmp_path / "config/flhal/device.json").exists()
    last = fresh("import torch_fl; print(int(torch_fl.current_device()), len(torch_fl.devices()))", plugin="mock", env=env).ok().out.split()
    assert int(last[0]) == int(last[1]) - 1
    name = fresh("import torch_fl; print(torch_fl.devices()[0].name)", plugin="mock").ok().out.strip()
    first = fresh("import torch_fl; print(int(torch_fl.current_device()))", plugin="mock", env={**env, "TORCH_FL_DEVICE": name}).ok()
    assert first.out.strip() == "0"
    (tmp_path / "config/flhal/device.json").write_text("{ broken")
    fresh("import torch_fl; assert int(torch_fl.current_device()) == 0", plugin="mock", env=env).ok()


def test_unknown_TORCH_FL_DEVICE_is_an_error_at_use_and_lists_names(fresh):
    r = fresh("import torch, torch_fl\ntry: torch.empty(1, device='fl_device')\nexcept RuntimeError as e: print(e)", env={"TORCH_FL_DEVICE": "nope"}).ok()
    assert "nope" in r.out


def test_a_lost_chip_is_told_leaves_the_others_alone_and_comes_back(fresh, plugin):
    if plugin != "mock":
        pytest.skip("only the mock's chips can be lost on request")
    r = fresh(
        """
        import torch, torch_fl
        other = torch.arange(4.0).to('fl_device:1')
        x = torch.ones(4, device='fl_device:0')
        try:
            for _ in range(100): x = x + 1
            x.sum().item()
        except torch.AcceleratorError as e:
            print('told:', e)
        try: torch.ones(2, device='fl_device:0').sum().item()
        except Exception as e: print('later:', e)
        print((other * 2).sum().item())
        torch_fl.clear_error('fl_device:0')
        try: x.cpu()
        except Exception as e: print('old tensor:', e)
        print(torch.ones(3, device='fl_device:0').sum().item())
        """,
        env={"FLHAL_MOCK": "lose_after=20@a"},
    ).ok()
    assert "told: " in r.out and "lost" in r.out and "later: " in r.out and "old tensor: " in r.out
    assert "12.0" in r.out and r.out.rstrip().endswith("3.0")
