"""Tensors made of the memory of dead ones: nothing of the dead may show in the new (csrc/tensor_parts.h)."""

import gc
import threading

import pytest
import torch


def used_up(dev, n=100):
    """Leaves memory, and version counters that were counted up, of n dead tensors to this thread."""
    dead = [torch.ones(3, device=dev) for _ in range(n)]
    for t in dead:
        for _ in range(5):
            t.add_(t)
    del dead, t
    gc.collect()


def test_new_tensors_begin_at_version_0(dev):
    used_up(dev)
    assert [torch.empty(3, device=dev)._version for _ in range(200)] == [0] * 200
    x = torch.ones(3, device=dev)
    assert (x + x)._version == 0
    x.mul_(x)
    assert x._version == 1


def test_a_view_counts_with_its_base_and_keeps_its_counter_alive(dev):
    x = torch.zeros(4, device=dev)
    v = x.view(2, 2)
    x.add_(torch.ones(4, device=dev))
    assert v._version == x._version == 1
    del x
    gc.collect()
    fresh = [torch.empty(4, device=dev) for _ in range(100)]
    for t in fresh:
        t.fill_(0)
    assert v._version == 1 and [t._version for t in fresh] == [1] * 100
    assert v.tolist() == [[1, 1], [1, 1]]


def test_a_saved_tensor_that_died_still_notices_writes(dev):
    x = torch.ones(3, device=dev, requires_grad=True)
    y = x * 2.0
    z = (y * y).sum()                    # saves y
    y.detach().add_(torch.ones(3, device=dev))
    del y
    used_up(dev)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("sizes", [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 1, 5), (2, 3, 4, 5), (2, 1, 1, 5), (1, 2, 3, 4, 5), (2,) * 7])
def test_shapes_and_layout_flags_are_as_on_the_cpu(dev, sizes):
    used_up(dev)
    for make in (lambda d: torch.zeros(sizes, device=d), lambda d: torch.ones(sizes, device=d) + torch.ones(sizes, device=d),
                 lambda d: torch.zeros(sizes, device=d).reshape(-1).view(sizes)):
        ours, cpus = make(dev), make("cpu")
        assert ours.shape == cpus.shape and ours.stride() == cpus.stride() and ours.numel() == cpus.numel()
        for layout in (torch.contiguous_format,) + ((torch.channels_last,) if len(sizes) == 4 else ()) + ((torch.channels_last_3d,) if len(sizes) == 5 else ()):
            assert ours.is_contiguous(memory_format=layout) == cpus.is_contiguous(memory_format=layout)
        assert torch.equal(ours.cpu(), cpus) and ours.storage_offset() == 0


def test_views_of_views_keep_offset_and_refuse_what_torch_refuses(dev):
    x = torch.arange(12, dtype=torch.float32).to(dev)
    part = x[4:]
    assert part.view(2, 4).storage_offset() == 4 and part.view(2, -1).tolist() == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert part.view(8).data_ptr() == part.data_ptr()
    for sizes in ((3, 3), (-2, 4), (-1, -1), (2, -4)):
        with pytest.raises(RuntimeError) as ours:
            part.view(*sizes)
        with pytest.raises(RuntimeError) as cpus:
            part.cpu().view(*sizes)
        assert str(ours.value) == str(cpus.value)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        part.view(2, 4).t().view(8)


def test_sizes_that_are_negative_or_too_large_are_refused_as_on_the_cpu(dev):
    for sizes in ((-1,), (2, -3), (1 << 62, 4), (1 << 32, 1 << 32)):
        with pytest.raises(RuntimeError) as ours:
            torch.empty(sizes, device=dev)
        with pytest.raises(RuntimeError) as cpus:
            torch.empty(sizes)
        assert str(ours.value).split("\n")[0] == str(cpus.value).split("\n")[0]


def test_inference_tensors_and_ordinary_ones_do_not_mix(dev):
    used_up(dev)
    with torch.inference_mode():
        inside = torch.ones(3, device=dev)
        made = inside + inside
        seen = made.view(3, 1)
    assert inside.is_inference() and made.is_inference() and seen.is_inference()
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        made.add_(made)
    outside = torch.ones(3, device=dev)
    assert not outside.is_inference() and not (outside + outside).is_inference() and outside._version == 0


def test_tensors_that_die_in_another_thread(dev):
    """Made here, dropped there and the other way round, also when the other thread has ended."""
    made = []

    def work():
        while True:
            with lock:
                if not given:
                    break
                t = given.pop()
            made.append(t + t)
            del t

    lock = threading.Lock()
    given = [torch.full((3,), float(i), device=dev) for i in range(400)]
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(t.tolist()[0] for t in made) == [2.0 * i for i in range(400)]
    del made[:]
    assert [torch.empty(3, device=dev)._version for _ in range(100)] == [0] * 100


@pytest.mark.parametrize("op", [torch.add, torch.mul, torch.sub, torch.div])
def test_dense_operands_of_equal_strides_arrays_and_others(dev, op):
    """The shortest way, and its neighbours that must not take it: odd strides, another offset, sizes of 1, f16, alpha."""
    g = torch.Generator().manual_seed(0)
    base = [torch.rand(6, 4, generator=g) + 1 for _ in range(2)]
    ours = [t.to(dev) for t in base]
    pick = [lambda t: t, lambda t: t.t(), lambda t: t[1:], lambda t: t[:, 1:3], lambda t: t[0], lambda t: t[:1], lambda t: t.half(),
            lambda t: t[2:3].expand(6, 4), lambda t: t.unsqueeze(1)]
    for p in pick:
        for q in pick:
            a, b = p(base[0]), q(base[1])
            try:
                want = op(a, b)
            except RuntimeError:
                with pytest.raises(RuntimeError):
                    op(p(ours[0]), q(ours[1]))
                continue
            got = op(p(ours[0]), q(ours[1]))
            assert got.dtype == want.dtype and got.stride() == want.stride()
            torch.testing.assert_close(got.cpu(), want)


def test_in_place_on_ranges_that_meet(dev):
    for first, second in ((slice(0, 4), slice(0, 4)), (slice(0, 4), slice(4, 8)), (slice(4, 8), slice(0, 4))):
        cpu, ours = torch.arange(8.0), torch.arange(8.0).to(dev)
        cpu[first].add_(cpu[second])
        ours[first].add_(ours[second])
        assert torch.equal(ours.cpu(), cpu)
    ours = torch.arange(8.0).to(dev)
    for first, second in ((slice(0, 4), slice(1, 5)), (slice(1, 5), slice(0, 4))):
        with pytest.raises(RuntimeError, match="partially overlap|some elements of the input tensor and the written-to"):
            ours[first].add_(ours[second])
