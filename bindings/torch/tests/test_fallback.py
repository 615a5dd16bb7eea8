"""FALL-01 .. FALL-07: CPU operators standing in: values, aliasing, refusals, policy, accounts.

torch.special and signal operators serve as examples: they will be the last to get kernels on the chip.
"""

import threading

import pytest
import torch
import torch_fl


def both(f, *cpu, dev):
    """f on CPU and device copies of the tensors; the results compared exactly."""
    moved = [t.to(dev) if isinstance(t, torch.Tensor) else [x.to(dev) if isinstance(x, torch.Tensor) else x for x in t] for t in cpu]
    want, got = f(*cpu), f(*moved)
    pairs = zip(want, got) if isinstance(want, (tuple, list)) else [(want, got)]
    for w, g in pairs:
        assert g.device == dev and g.dtype == w.dtype and g.shape == w.shape
        assert g.stride() == w.stride() or w.numel() == 0 or 1 in w.shape or not w.is_contiguous()
        assert torch.equal(g.cpu().nan_to_num(7), w.nan_to_num(7))
    return got


X = torch.linspace(0.1, 2.0, 24).reshape(2, 3, 4)


def test_FALL_01_every_kind_of_argument(dev):
    idx = torch.tensor([2, 0])
    both(lambda x: torch.special.i0e(x), X, dev=dev)
    both(lambda x, i: x[:, i], X, idx, dev=dev)
    both(lambda x, i: x[:, None, i], X, idx, dev=dev)
    both(lambda x, i: x[..., i], X, idx, dev=dev)
    both(lambda x: torch.stack([x, x + 1]), X, dev=dev)
    both(lambda x: torch.cat([x, x[:, :0], x], 1), X, dev=dev)
    both(lambda ts: torch.block_diag(*ts), [X[0], X[1]], dev=dev)
    both(lambda ts: torch._foreach_lgamma(ts), [X, X + 1], dev=dev)
    both(lambda x, w: torch.bucketize(x, w), X, torch.tensor([0.5, 1.0]), dev=dev)
    both(lambda x: torch.linalg.svdvals(x), X, dev=dev)
    both(lambda x: torch.topk(x, 2), X, dev=dev)
    both(lambda x: torch.searchsorted(x, x + 0.1, sorter=None), X, dev=dev)


def test_FALL_01_index_put_with_none_and_cpu_indices(dev):
    want = X.clone()
    got = X.to(dev)
    want[:, [1, 0]] = torch.tensor(5.0)
    got[:, [1, 0]] = torch.tensor(5.0)
    assert got.cpu().equal(want)
    idx = torch.tensor([1, 1])
    want.index_put_((torch.tensor([0, 1]), idx), torch.ones(2, 4), accumulate=True)
    got.index_put_((torch.tensor([0, 1]).to(dev), idx), torch.ones(2, 4, device=dev), accumulate=True)
    assert got.cpu().equal(want)
    assert got[idx.bool()].cpu().equal(want[idx.bool()])


def test_FALL_02_views_zero_dim_and_cpu_numbers(dev):
    for view in (lambda t: t.transpose(0, 2), lambda t: t[:, 1:, ::2], lambda t: t[1, 2], lambda t: t[0, 0, 0], lambda t: t[:, :0]):
        both(lambda x: torch.special.erfcx(view(x)), X, dev=dev)
        both(lambda x: torch.special.zeta(view(x) + 1.5, torch.tensor(1.25)), X, dev=dev)
    got = torch.special.zeta(torch.tensor(3.0), X.to(dev) + 1)
    assert got.device == dev and got.cpu().equal(torch.special.zeta(torch.tensor(3.0), X + 1))
    assert (20 // torch.arange(1, 4, device=dev)).device == dev
    a = X.to(dev).double()
    assert torch.special.i1(a)[0].dtype == torch.float64


def test_VIEW_02_each_slice_of_a_batch(dev):
    batch = torch.stack([torch.diag(torch.tensor([1.0, 2, 4])), torch.diag(torch.tensor([8.0, 16, 32]))])
    for i in range(2):
        assert torch.linalg.inv(batch.to(dev)[i]).cpu().equal(torch.linalg.inv(batch[i]))


def test_in_place_writes_the_views_memory_and_nothing_else(dev):
    for view in (lambda t: t.transpose(0, 2), lambda t: t[:, 1:, ::2], lambda t: t[1, 2], lambda t: t.flatten()[3:9]):
        c, d = X.clone(), X.to(dev)
        r = view(d)
        assert r.lgamma_() is not None
        view(c).lgamma_()
        assert d.cpu().equal(c)
    c, d = X.clone(), X.to(dev)
    assert d.index_fill_(1, torch.tensor([0]).to(dev), 3.0).data_ptr() == d.data_ptr()


def test_out_is_written_resized_and_returned(dev):
    out = torch.empty(0, device=dev)
    r = torch.special.erfcx(X.to(dev), out=out)
    assert r is out and out.cpu().equal(torch.special.erfcx(X))
    whole = torch.zeros(2, 3, 8, device=dev)
    torch.special.erfcx(X.to(dev), out=whole[..., 2:6])
    assert whole[..., 2:6].cpu().equal(torch.special.erfcx(X)) and whole.cpu()[..., :2].eq(0).all() and whole.cpu()[..., 6:].eq(0).all()
    with pytest.warns(UserWarning, match="resized"):
        small = torch.zeros(2, device=dev)
        torch.special.erfcx(X.to(dev), out=small)
    assert small.cpu().equal(torch.special.erfcx(X))
    values, indices = torch.empty(0, device=dev), torch.empty(0, dtype=torch.long, device=dev)
    torch.kthvalue(X.to(dev), 2, out=(values, indices))
    assert values.cpu().equal(torch.kthvalue(X, 2)[0])
    with pytest.raises(RuntimeError):
        torch.special.erfcx(X.to(dev), out=torch.empty(2, 3, 4, dtype=torch.int64, device=dev))


def test_overlap_checks_hold_under_fallback(dev):
    x = torch.arange(12.0).to(dev)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:1].expand(4).lgamma_()
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.special.erfcx(x[:-1], out=x[1:])
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        torch.kthvalue(x.view(3, 4), 1, out=(x[:3], torch.empty(3, dtype=torch.long, device=dev)))
    with pytest.raises(RuntimeError, match="single memory location|overlap"):
        torch.cat([x[:4], x[4:8]], out=x[2:10])
    assert x.cpu().equal(torch.arange(12.0))


def test_undeclared_writes_reach_the_device(dev):
    args = (torch.randn(4, 3), torch.ones(3), torch.zeros(3))
    mean, var = torch.zeros(3), torch.ones(3)
    dmean, dvar = mean.to(dev), var.to(dev)
    want = torch.native_batch_norm(*args, mean, var, True, 0.1, 1e-5)
    got = torch.native_batch_norm(*(a.to(dev) for a in args), dmean, dvar, True, 0.1, 1e-5)
    assert torch.allclose(got[0].cpu(), want[0], atol=1e-6)
    assert torch.allclose(dmean.cpu(), mean, atol=1e-6) and torch.allclose(dvar.cpu(), var, atol=1e-6)
    assert not dmean.cpu().equal(torch.zeros(3))


def test_mixed_devices_are_refused_with_torchs_sentence(dev):
    d, c = torch.ones(3, device=dev), torch.ones(3)
    sentence = "Expected all tensors to be on the same device"
    for call in (
        lambda: torch.special.zeta(d, c),
        lambda: torch.special.zeta(c, d),
        lambda: d.addcmul_(d, c),
        lambda: d + c,
        lambda: torch.cat([d, c]),
        lambda: torch.special.zeta(d, d, out=c),
        lambda: torch.tensor(1.0).add_(d.sum()),
        lambda: torch.nn.functional.linear(d.view(1, 3), torch.ones(2, 3)),
    ):
        with pytest.raises(RuntimeError, match=sentence) as caught:
            call()
        assert "fl_device:0" in str(caught.value) and "cpu" in str(caught.value)


def test_FALL_03_collectives_are_refused(dev):
    import torch.distributed as dist

    if not dist.is_available():
        pytest.skip("torch without distributed")
    with pytest.raises((NotImplementedError, RuntimeError, ValueError)):
        torch.ops._c10d_functional.all_reduce(torch.ones(2, device=dev), "sum", "default")


def test_FALL_04_views_and_factories_never_fall_back(dev):
    from torch.library import Library

    library = Library("fl_test", "FRAGMENT")
    library.define("some_view(Tensor(a) x) -> Tensor(a)")
    library.impl("some_view", lambda x: x.view(-1), "CPU")
    library.define("some_factory(int n, Device? device=None) -> Tensor")
    for policy in ("auto", "warn"):
        with torch_fl.fallback(policy), pytest.raises(NotImplementedError, match="fl_test::some_view.*policy"):
            torch.ops.fl_test.some_view(torch.ones(2, 2, device=dev))
    library._destroy()


def test_operators_of_other_libraries_fall_back(dev, report):
    from torch.library import Library

    library = Library("fl_test2", "DEF")
    library.define("twice(Tensor x, Tensor(a!)? y) -> Tensor")

    def twice(x, y):
        if y is not None:
            y.add_(1)
        return x * 2

    library.impl("twice", twice, "CPU")
    y = torch.zeros(2, device=dev)
    assert torch.ops.fl_test2.twice(torch.ones(2, device=dev), y).cpu().tolist() == [2, 2]
    assert y.cpu().tolist() == [1, 1]
    assert torch.ops.fl_test2.twice(torch.ones(2, device=dev), None).cpu().tolist() == [2, 2]
    library._destroy()


def test_FALL_05_policy_takes_effect_at_the_next_call(dev):
    x = X.to(dev)
    torch.special.i1e(x)
    assert torch_fl.get_fallback_policy() == "auto"
    torch_fl.set_fallback_policy("strict")
    try:
        with pytest.raises(RuntimeError, match="special_i1e.*strict"):
            torch.special.i1e(x)
        with torch_fl.fallback("auto"):
            torch.special.i1e(x)
            with torch_fl.fallback("strict"), pytest.raises(RuntimeError):
                torch.special.i1e(x)
            torch.special.i1e(x)
        with pytest.raises(KeyError), torch_fl.fallback("auto"):
            raise KeyError
        with pytest.raises(RuntimeError):
            torch.special.i1e(x)
    finally:
        torch_fl.set_fallback_policy("auto")
    torch.special.i1e(x)
    with pytest.raises(ValueError, match="auto.*warn.*strict"):
        torch_fl.set_fallback_policy("sometimes")


def test_FALL_05_scopes_are_per_thread_and_per_operator(dev):
    x = X.to(dev)
    with torch_fl.fallback("strict", op="special_i1e"):
        torch.special.i0e(x)
        with pytest.raises(RuntimeError):
            torch.special.i1e(x)
        failures = []

        def other():
            try:
                torch.special.i1e(x)
            except RuntimeError as e:
                failures.append(e)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert not failures
    torch.special.i1e(x)


def entries(report):
    found = report()
    return found.get("operators", found.get("ops", found)) if isinstance(found, dict) else found


@pytest.mark.parametrize("name", ["torch.topk", "x.y.nonsense", "topk.nonsense", "aten::topk.nonsense", "nonsense", "aten::", ""])
def test_a_policy_for_an_operator_that_does_not_exist_is_refused(dev, name):
    with pytest.raises(ValueError, match="there is no operator"):
        torch_fl.fallback("strict", op=name)


@pytest.mark.parametrize("name", ["linalg_svd", "aten::linalg_inv", "linalg_svd.default", torch.ops.aten.linalg_svd, torch.ops.aten.linalg_svd.U])
def test_a_policy_for_an_operator_that_no_device_sees_is_refused(dev, name):
    with pytest.raises(ValueError, match="never comes to a device as such"):
        torch_fl.fallback("strict", op=name)


@pytest.mark.parametrize("name", ["topk", "aten::topk", "aten::topk.values", "_linalg_svd", "conv2d", "aten::softplus", torch.ops.aten.topk.values])
def test_a_policy_takes_the_names_of_the_report(dev, name):
    with torch_fl.fallback("strict", op=name):
        pass


def test_FALL_06_report_says_what_fell_back(dev, report):
    x = X.to(dev)
    for _ in range(3):
        torch.special.i1e(x)
    torch.special.i0e(x)
    text = str(report())
    assert "aten::special_i1e" in text and "aten::special_i0e" in text and "test_fallback.py" in text
    torch_fl.reset()
    assert "special_i1e" not in str(report())


def test_results_that_are_strided_stay_so(dev):
    both(lambda x: torch.special.erfcx(x.permute(2, 0, 1)), X, dev=dev)
    got = torch.special.erfcx(X.to(dev).permute(2, 0, 1))
    assert got.stride() == torch.special.erfcx(X.permute(2, 0, 1)).stride()


def test_failure_inside_the_cpu_operator_is_raised_and_leaves_no_harm(dev):
    with pytest.raises(RuntimeError):
        torch.linalg.inv(torch.zeros(2, 3, device=dev))
    with pytest.raises(torch.linalg.LinAlgError):
        torch.linalg.inv(torch.zeros(2, 2, device=dev))
    assert torch.ones(2, device=dev).sum().item() == 2


def test_threads_fall_back_at_the_same_time(dev):
    x = X.to(dev)
    want = torch.special.erfcx(X)
    bad = []

    def work():
        for _ in range(50):
            if not torch.special.erfcx(x).cpu().equal(want):
                bad.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not bad


@pytest.mark.parametrize("shape, stride", [((1, 3), (7, 1)), ((3, 1, 4), (4, 4, 1)), ((1, 1), (9, 5)), ((3, 0, 4), (4, 4, 1)), ((), ())])
def test_strides_of_dimensions_without_length_survive(dev, shape, stride):
    """Such strides say nothing about memory, but torch's layouts are read from them: the CPU must see them as they are."""
    x = torch.empty_strided(shape, stride).uniform_(generator=torch.Generator().manual_seed(0))
    on_chip, out = (torch.empty_strided(shape, stride, device=dev) for _ in range(2))
    on_chip.copy_(x)
    result, expected = torch.special.i1e(on_chip), torch.special.i1e(x)
    torch.special.i1e(on_chip, out=out)
    assert torch.equal(result.cpu(), expected) and torch.equal(out.cpu(), expected)
    assert result.stride() == expected.stride() and on_chip.stride() == stride and out.stride() == stride


def test_FALL_07_report_log_warning_counts_and_dispatcher_say_the_same(fresh):
    """One run, every account of it: the fallback report, the route report, the log's lines and summary, and torch's own dispatcher."""
    import json
    import re

    r = fresh(
        """
        import collections, json, torch, torch_fl
        from torch.utils._python_dispatch import TorchDispatchMode
        asked = collections.Counter()
        class Count(TorchDispatchMode):
            def __torch_dispatch__(self, f, types, args=(), kwargs=None):
                asked[str(f.name())] += 1
                return f(*args, **(kwargs or {}))
        x = torch.linspace(0.1, 2, 12).to('fl_device').reshape(3, 4)
        torch_fl.reset()
        with Count():
            for _ in range(3): torch.special.i1e(x)
            torch.special.i0e(x); torch.linalg.svdvals(x); torch.topk(x, 2)
            (x + x).exp()
        print(json.dumps(dict(report=torch_fl.get_fallback_report(), routes=torch_fl.get_route_report(), asked=asked, text=str(torch_fl.get_fallback_report()))))
        """,
        env={"TORCH_FL_LOG_LEVEL": "debug"},
    ).ok()
    said = json.loads(r.out.splitlines()[-1])
    report, routes = said["report"], said["routes"]
    rows = {row["op"]: row["calls"] for row in report["ops"] if row["route"] == "fallback"}
    assert sum(rows.values()) == routes["routes"]["fallback"] and report["calls"] == sum(routes["routes"].values())
    assert report["off_chip_calls"] == routes["routes"]["fallback"] + routes["routes"]["host"]
    base = lambda name: name.split(".")[0]  # noqa: E731
    for name in ("aten::special_i1e", "aten::special_i0e", "aten::linalg_svdvals", "aten::topk"):
        mine = sum(calls for op, calls in rows.items() if base(op) == name or (name == "aten::linalg_svdvals" and base(op) == "aten::_linalg_svd"))
        if name == "aten::topk" and not mine:
            continue                                          # a chip that has it
        assert mine == (3 if name == "aten::special_i1e" else 1), (name, rows)
        assert name == "aten::linalg_svdvals" or said["asked"][name] == mine, (name, said["asked"])   # svdvals is made of others
    lines = re.findall(r"debug: (\S+) on \S+: fallback \(", r.err)
    counted = {}
    for name in lines:
        counted[name] = counted.get(name, 0) + 1
    assert counted == rows, (counted, rows)
    assert f"{report['off_chip_calls']} of {report['calls']} calls left the chip" in said["text"]
    summary = next(line for line in r.err.splitlines() if "calls by route" in line)
    for route, calls in routes["routes"].items():
        assert calls == 0 or f"{route} {calls}" in summary, (summary, routes)
