"""COPY-01 .. COPY-07: moving values between layouts, dtypes and places."""

import itertools

import pytest
import torch

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.int16, torch.uint8, torch.bool, torch.complex64]  # fmt: skip


def base(shape=(4, 6), dtype=torch.float32):
    n = 1
    for s in shape:
        n *= s
    return (torch.arange(n) % 7).reshape(shape).to(dtype)


LAYOUTS = {
    "dense": lambda t: t,
    "transposed": lambda t: t.t(),
    "columns": lambda t: t[:, 1:4],
    "steps": lambda t: t[::2, ::3],
    "expanded": lambda t: t[:, :1].expand(-1, 5),
    "offset": lambda t: t.flatten()[5:17].view(3, 4),
    "row": lambda t: t[2],
    "scalar": lambda t: t[1, 2],
    "empty": lambda t: t[:0],
    "wide": lambda t: t.as_strided((2, 2), (13, 5), 1),
}
WRITABLE = [name for name in LAYOUTS if name != "expanded"]


def test_COPY_01_host_objects_that_are_not_dense(dev):
    numpy = pytest.importorskip("numpy")
    a = numpy.arange(9, dtype=numpy.float32).reshape(3, 3)
    for view in (a[:, ::2], a.T, a[::-1].copy(), numpy.asfortranarray(a), a[1:, 1:], a[0, 0:0], numpy.float32(3)):
        want = torch.tensor(view)
        assert torch.tensor(view, device=dev).cpu().equal(want)
        assert torch.as_tensor(view, device=dev).cpu().equal(want)
        if isinstance(view, numpy.ndarray):
            assert torch.from_numpy(view).to(dev).cpu().equal(want)
    for value in ([[1, 2], [3, 4]], 5, [], [True, False], [1.5, 2]):
        assert torch.tensor(value, device=dev).cpu().equal(torch.tensor(value))
    assert torch.frombuffer(bytearray(b"abcd"), dtype=torch.uint8).to(dev).cpu().tolist() == [97, 98, 99, 100]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("form", [torch.preserve_format, torch.contiguous_format])
def test_COPY_02_values_and_strides_follow_the_format_rule(dev, layout, form):
    c = LAYOUTS[layout](base())
    want = c.clone(memory_format=form)
    up = c.to(dev, memory_format=form)
    assert up.cpu().equal(c) and up.stride() == want.stride()
    d = LAYOUTS[layout](base().to(dev))
    assert d.cpu().equal(c) and d.stride() == c.stride()
    down = d.to("cpu", memory_format=form)
    assert down.equal(c) and down.stride() == want.stride()
    assert d.clone(memory_format=form).stride() == want.stride() and d.clone(memory_format=form).cpu().equal(c)
    assert torch.empty_like(d, memory_format=form).stride() == torch.empty_like(c, memory_format=form).stride()


def test_COPY_02_channels_last(dev):
    c = base((2, 3, 4, 5)).to(memory_format=torch.channels_last)
    d = c.to(dev)
    assert d.stride() == c.stride() and d.cpu().equal(c) and d.is_contiguous(memory_format=torch.channels_last)
    assert base((2, 3, 4, 5)).to(dev, memory_format=torch.channels_last).cpu().equal(c)


@pytest.mark.parametrize("n", [0, 1, 7, 4095, 4096, 4097, 1 << 18, (1 << 22) + 3])
def test_COPY_03_non_blocking_upload_from_ordinary_memory(dev, n):
    for _ in range(3 if n > 1 << 16 else 50):
        c = torch.arange(n)
        d = c.to(dev, non_blocking=True)
        c.fill_(-1)
        assert d.cpu().equal(torch.arange(n))


def test_COPY_04_non_blocking_download(dev):
    d = torch.arange(1 << 16).to(dev)
    for _ in range(20):
        result = (d + 1).to("cpu", non_blocking=True)
        if result.is_pinned():          # torch itself makes the result pinned here: then the copy may still be under way
            torch.fl_device.synchronize()
        assert result.equal(torch.arange(1, (1 << 16) + 1))
    pinned = torch.empty(1 << 16, dtype=torch.int64).pin_memory()
    pinned.copy_(d, non_blocking=True)
    torch.fl_device.synchronize()
    assert pinned.equal(torch.arange(1 << 16))


def test_COPY_04_is_pinned_tells_the_truth(dev):
    p = torch.empty(100).pin_memory()
    assert p.is_pinned() and p[10:20].is_pinned() and p.view(10, 10)[3:, 2:].is_pinned()
    assert not torch.empty(100).is_pinned()
    assert not torch.empty(100, device=dev).is_pinned()
    assert torch.empty(100, pin_memory=True).is_pinned()
    assert not p.clone().is_pinned()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_COPY_06_clone_and_copies_on_the_device(dev, layout):
    d, c = LAYOUTS[layout](base().to(dev)), LAYOUTS[layout](base())
    assert d.clone().cpu().equal(c)
    assert d.detach().clone().cpu().equal(c)
    assert torch.empty_like(d).copy_(d).cpu().equal(c)
    assert d.contiguous().cpu().equal(c.contiguous())


@pytest.mark.parametrize("source,target", list(itertools.product(DTYPES, DTYPES)))
def test_COPY_06_dtype_pairs(dev, source, target):
    if source.is_complex and not target.is_complex:
        pytest.skip("torch warns that the imaginary part is dropped; covered by the complex test")
    c = base(dtype=source)
    want = c.to(target)
    assert c.to(dev).to(target).cpu().equal(want)
    assert c.to(device=dev, dtype=target).cpu().equal(want)
    assert c.to(dev).to("cpu", target).equal(want)
    assert torch.empty(6, 4, dtype=target, device=dev).copy_(c.to(dev).t()).cpu().equal(want.t())


@pytest.mark.parametrize("direction", ["up", "within", "down"])
@pytest.mark.parametrize("target", WRITABLE)
@pytest.mark.parametrize("layout", ["dense", "transposed", "steps", "expanded"])
def test_COPY_07_writes_into_views_touch_nothing_else(dev, direction, target, layout):
    source = LAYOUTS[layout](base((16, 20)))
    want, parent = base((4, 6)) + 100, (base((4, 6)) + 100).to(dev if direction != "down" else "cpu")
    into_want, into = LAYOUTS[target](want), LAYOUTS[target](parent)
    n = into_want.numel()
    shape = into_want.shape
    pick = source.reshape(-1)[:n].reshape(shape if layout != "transposed" else shape[::-1])
    pick = pick.permute(tuple(reversed(range(pick.dim())))) if layout == "transposed" and pick.dim() else pick
    pick = pick[..., :1].expand(shape) if layout == "expanded" and n and pick.dim() else pick
    if layout == "steps":
        pick = torch.stack([pick, pick + 1], -1).flatten(-2)[..., ::2] if pick.dim() else pick
    assert pick.shape == shape
    into_want.copy_(pick)
    into.copy_(pick if direction == "up" else pick.to(dev))
    assert parent.cpu().equal(want)


def test_COPY_07_ranks_differ_from_the_allocation(dev):
    for shape in ((2, 2, 6), (24,), (1, 4, 6, 1)):
        d = torch.zeros(4, 6, device=dev)
        d.view(shape).copy_(torch.arange(24.0).reshape(shape))
        assert d.cpu().equal(torch.arange(24.0).reshape(4, 6))


def test_broadcasting_copies(dev):
    for source in (torch.tensor(3.0), torch.arange(3.0), torch.arange(2.0).reshape(2, 1)):
        want = torch.zeros(2, 3).copy_(source)
        assert torch.zeros(2, 3, device=dev).copy_(source).cpu().equal(want)
        assert torch.zeros(2, 3, device=dev).copy_(source.to(dev)).cpu().equal(want)
        assert torch.zeros(2, 3).copy_(source.to(dev)).equal(want)
    with pytest.raises(RuntimeError):
        torch.zeros(2, 3, device=dev).copy_(torch.zeros(4))


def test_VIEW_04_overlapping_targets_are_refused_and_unwritten(dev):
    d = torch.zeros(3, device=dev)
    for source in (torch.ones(4, 3), torch.ones(4, 3, device=dev)):
        with pytest.raises(RuntimeError, match="single memory location"):
            d.expand(4, 3).copy_(source)
    x = torch.arange(6.0).to(dev)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:].copy_(x[:-1])
    assert d.cpu().tolist() == [0, 0, 0] and x.cpu().equal(torch.arange(6.0))


def test_conjugate_and_negative_views(dev):
    c = torch.complex(torch.arange(6.0), torch.arange(6.0) - 3).reshape(2, 3)
    d = c.to(dev)
    assert d.conj().cpu().equal(c.conj())
    assert d.conj().t().cpu().equal(c.conj().t())
    assert d.conj().clone().cpu().equal(c.conj().clone())
    assert d.conj().resolve_conj().cpu().equal(c.conj().resolve_conj())
    assert c.conj().to(dev).cpu().equal(c.conj())
    assert d.conj().imag.cpu().equal(c.conj().imag)
    assert torch.empty_like(d).copy_(d.conj()).cpu().equal(c.conj().resolve_conj())
    assert d.mH.cpu().equal(c.mH)
    assert (d.conj() @ d.t()).cpu().allclose(c.conj() @ c.t())
    assert d.real.cpu().equal(c.real)


def test_meta_and_device(dev):
    assert torch.ones(2, 3, device=dev).to("meta").shape == (2, 3)
    with pytest.raises(NotImplementedError):
        torch.ones(2, device="meta").to(dev)


@pytest.mark.plugins("mock")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_DEV_02_copies_between_chips(dev, layout):
    c = LAYOUTS[layout](base())
    a = LAYOUTS[layout](base().to("fl_device:0"))
    b = a.to("fl_device:1")
    assert b.device.index == 1 and b.cpu().equal(c)
    assert b.to("fl_device:0").cpu().equal(c)
    assert torch.zeros(c.shape, dtype=torch.float64, device="fl_device:1").copy_(a).cpu().equal(c.double())


@pytest.mark.plugins("mock")
def test_COPY_05_side_stream_copy_with_event(dev):
    s = torch.Stream(device=dev)
    src = torch.arange(1 << 12).pin_memory()
    for _ in range(20):
        with s:
            d = src.to(dev, non_blocking=True)
            e = torch.Event("fl_device")
            e.record(s)
        torch.accelerator.current_stream().wait_event(e)
        assert (d + 1).cpu().equal(src + 1)


@pytest.mark.plugins("mock")
def test_COPY_08_elements_far_beyond_32_bits_of_index_and_bytes(fresh):
    """The mock promises 16 GB and only touched pages cost: the last element of each view lies 2^31 to 2^33 elements or bytes away.

    Nothing here falls back: the CPU's operator would be shown all bytes in between, gigabytes of them."""
    fresh(
        """
        import torch, torch_fl
        torch_fl.set_memory_pool_size('100%')
        def check(base, view, dtype):
            first, last = 3, 5
            view.copy_(torch.tensor([first, last], dtype=dtype))                     # strided upload
            assert view.cpu().tolist() == [first, last]                              # strided download
            assert (view + view).tolist() == [6, 10] and view.sum().item() == 8 and view.clone().tolist() == [3, 5]
            assert view.max().item() == 5 and torch.cat([view, view]).tolist() == [3, 5, 3, 5] and view[torch.tensor([1, 0]).to(view.device)].tolist() == [5, 3]
            view.add_(1); assert view.tolist() == [4, 6]
            view.fill_(9); assert view.tolist() == [9, 9]
            there = torch.tensor([1, 2], dtype=dtype).to(view.device); view.copy_(there); assert view.tolist() == [1, 2]
            torch.mul(view, 3, out=view); assert view.tolist() == [3, 6]
            at = view.stride(0)
            flat = base.view(-1)
            index = torch.tensor([0, at]).to(view.device)
            assert flat.index_select(0, index).tolist() == [3, 6] and flat.gather(0, index).tolist() == [3, 6] and flat[index].tolist() == [3, 6]
            flat.scatter_(0, index, torch.tensor([7, 8], dtype=dtype).to(view.device)); assert view.tolist() == [7, 8]
            flat.index_add_(0, index, torch.tensor([1, 1], dtype=dtype).to(view.device)); assert view.tolist() == [8, 9]
            assert flat[at - 1].item() == 0 and flat[1].item() == 0 and flat[at].item() == 9
        for dtype, elements in ((torch.uint8, (1 << 31) + 5), (torch.uint8, (1 << 32) + 7), (torch.float32, (1 << 31) + 3), (torch.int64, (1 << 30) + 1)):
            base = torch.empty(elements, dtype=dtype, device='fl_device')
            for at in {elements - 1, 1 << 30, min(1 << 31, elements - 1), min(1 << 32, elements - 1)}:
                for i in (0, 1, at - 1, at): base[i] = 0
                check(base, base.as_strided((2,), (at,)), dtype)
            del base
        """,
        plugin="mock", timeout=180,
    ).ok()
