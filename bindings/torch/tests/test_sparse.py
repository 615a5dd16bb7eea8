"""DEV-02: sparse tensors of every layout move, come back, print, save and compute (by the CPU, counted); quantized and nested say why not."""

import copy
import io
import pickle
import re

import pytest
import torch
import torch_fl
from torch import nn

DENSE = torch.tensor([[0.0, 2, 0, 0], [0, 0, 0, 3], [0, 0, 0, 0], [5, 0, 7, 0]])
LAYOUTS = {
    "coo": lambda t: t.to_sparse(),
    "uncoalesced": lambda t: torch.sparse_coo_tensor([[0, 0, 3], [1, 1, 2]], [1.0, 1.0, 7.0], t.shape, dtype=t.dtype),
    "hybrid": lambda t: t.to_sparse(1),
    "csr": lambda t: t.to_sparse_csr(),
    "csc": lambda t: t.to_sparse_csc(),
    "bsr": lambda t: t.to_sparse_bsr((2, 2)),
    "bsc": lambda t: t.to_sparse_bsc((2, 2)),
    "empty": lambda t: torch.zeros_like(t).to_sparse(),
    "empty csr": lambda t: torch.zeros_like(t).to_sparse_csr(),
}
pytestmark = pytest.mark.filterwarnings("ignore:Sparse", "ignore:.*sparse.*beta")


def parts(t):
    if t.layout == torch.sparse_coo:
        return [t._indices(), t._values()]
    rows = [t.crow_indices(), t.col_indices()] if t.layout in (torch.sparse_csr, torch.sparse_bsr) else [t.ccol_indices(), t.row_indices()]
    return [*rows, t.values()]


def same(got, want):
    assert got.layout == want.layout and got.shape == want.shape and got.dtype == want.dtype
    assert all(torch.equal(a.cpu(), b) for a, b in zip(parts(got), parts(want), strict=True))
    if want.layout == torch.sparse_coo:
        assert got.is_coalesced() == want.is_coalesced() and got.sparse_dim() == want.sparse_dim()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool], ids=str)
def test_DEV_02_sparse_tensors_move_and_come_back(dev, layout, dtype):
    want = LAYOUTS[layout](DENSE).to(dtype)
    moved = want.to(dev)
    assert moved.device == dev and all(p.device == dev for p in parts(moved)) and moved._nnz() == want._nnz()
    same(moved, want)
    same(moved.cpu(), want)
    same(moved.clone(), want)
    same(copy.deepcopy(moved), want)
    assert torch.equal(moved.to_dense().cpu(), want.to_dense()) and moved.to_dense().device == dev
    if torch_fl.device_count() > 1:
        there = moved.to("fl_device:1")
        assert there.device.index == 1
        same(there, want)
        same(there.to(dev), want)
    same(moved.to(torch.float64) if dtype != torch.bool else moved, want.to(torch.float64) if dtype != torch.bool else want)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_sparse_tensors_print_save_and_pickle(dev, layout):
    want = LAYOUTS[layout](DENSE)
    moved = want.to(dev)
    text = str(moved)
    assert "fl_device:0" in text and f"nnz={want._nnz()}" in text
    buffer = io.BytesIO()
    torch.save(moved, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    assert back.device == dev
    same(back, want)
    buffer.seek(0)
    same(torch.load(buffer, map_location="cpu"), want)
    same(pickle.loads(pickle.dumps(moved)), want)


def test_constructors_make_sparse_tensors_of_the_device(dev):
    i, v = torch.tensor([[0, 1], [2, 0]]), torch.tensor([3.0, 4.0])
    same(torch.sparse_coo_tensor(i.to(dev), v.to(dev), (2, 3)), torch.sparse_coo_tensor(i, v, (2, 3)))
    same(torch.sparse_coo_tensor(i, v, (2, 3), device=dev), torch.sparse_coo_tensor(i, v, (2, 3)))
    crow, col = torch.tensor([0, 1, 2]), torch.tensor([2, 0])
    same(torch.sparse_csr_tensor(crow.to(dev), col.to(dev), v.to(dev), (2, 3)), torch.sparse_csr_tensor(crow, col, v, (2, 3)))
    for to_sparse in (lambda t: t.to_sparse(), lambda t: t.to_sparse_csr(), lambda t: t.to_sparse_csc(), lambda t: t.to_sparse_bsr((2, 2))):
        got = to_sparse(DENSE.to(dev))
        assert got.device == dev
        same(got, to_sparse(DENSE))
    with pytest.raises(RuntimeError):
        torch.sparse_coo_tensor(torch.tensor([[0, 9]]), torch.tensor([1.0, 2.0]), (3,), device=dev, check_invariants=True)


COMPUTE = {
    "times dense": lambda s, d: s @ d,
    "add": lambda s, d: (s + s).to_dense(),
    "add to dense": lambda s, d: d + s if s.layout == torch.sparse_coo else s.to_dense() + d,
    "scale": lambda s, d: (s * 2).to_dense(),
    "sum": lambda s, d: s.sum(),
    "relu": lambda s, d: torch.relu(s).to_dense(),
}


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", COMPUTE)
def test_sparse_operators_are_computed_by_the_cpu_and_counted(dev, report, layout, name):
    s, d = LAYOUTS[layout](DENSE), torch.arange(16.0).reshape(4, 4)
    want = COMPUTE[name](s, d)
    got = COMPUTE[name](s.to(dev), d.to(dev))
    assert got.device == dev and torch.equal(got.cpu(), want)
    rows = [row for row in report()["ops"] if row["reason"] == "sparse tensors are computed by the CPU"]
    assert rows and all(row["route"] == "fallback" for row in rows)
    s, d = s.to(dev), d.to(dev)
    with torch_fl.fallback("strict"), pytest.raises(RuntimeError, match="sparse tensors are computed by the CPU.*fallback_policy strict forbids; set"):
        COMPUTE[name](s, d)


def test_written_operands_are_written(dev):
    d, s = torch.zeros(4, 4), DENSE.to_sparse()
    dd = d.to(dev)
    dd.add_(s.to(dev), alpha=2)
    assert torch.equal(dd.cpu(), d.add_(s, alpha=2))
    t = s.to(dev)
    assert t.mul_(3).coalesce().values().cpu().tolist() == (s.clone() * 3).coalesce().values().tolist()
    t.zero_()
    assert t._nnz() == 0
    out = torch.zeros(4, 4, device=dev)
    torch.mm(s.to(dev), torch.eye(4, device=dev), out=out)
    assert torch.equal(out.cpu(), DENSE)


VIEWS = {
    "unsqueeze": lambda s: s.unsqueeze(0), "stack": lambda s: torch.stack([s, s]), "permute": lambda s: s.permute(1, 0), "row": lambda s: s[1],
    "column": lambda s: s.select(1, 3), "unbind": lambda s: s.unbind(0)[3], "bmm": lambda s: torch.bmm(torch.stack([s, s]), torch.eye(4, device=s.device).repeat(2, 1, 1)),
}


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize("name", VIEWS)
def test_sparse_tensors_are_taken_apart_and_stacked_as_on_the_cpu(dev, layout, name):
    s = LAYOUTS[layout](DENSE)
    try:
        want = VIEWS[name](s)
    except (RuntimeError, NotImplementedError, IndexError) as error:
        with pytest.raises(type(error), match="|".join(re.escape(part) for part in (str(error)[:40], "fl_device has no kernel"))):
            VIEWS[name](s.to(dev))
        return
    got = VIEWS[name](s.to(dev))
    assert got.device == dev and got.layout == want.layout and torch.equal(got.to_dense().cpu(), want.to_dense())


def test_a_compressed_out_takes_another_number_of_elements(dev):
    s, out = DENSE.to_sparse_csr(), torch.zeros_like(DENSE).to_sparse_csr()
    moved = out.to(dev)
    torch.add(s.to(dev), s.to(dev), out=moved)
    same(moved, torch.add(s, s, out=out))


def test_sparse_gradients_of_an_embedding(dev):
    def train(where):
        torch.manual_seed(0)
        e = nn.Embedding(6, 3, sparse=True)
        with torch.no_grad():
            e.weight.copy_(torch.arange(18.0).reshape(6, 3) / 7)
        e = e.to(where)
        for optimizer in (torch.optim.SGD(e.parameters(), 0.1), torch.optim.SparseAdam(e.parameters(), 0.1)):
            for _ in range(3):
                optimizer.zero_grad()
                e(torch.tensor([1, 1, 4], device=where)).square().sum().backward()
                assert e.weight.grad.is_sparse and e.weight.grad.device.type == torch.device(where).type
                optimizer.step()
        return e.weight.detach().cpu()

    torch.testing.assert_close(train(dev), train("cpu"))


def test_mixed_devices_are_refused_with_torchs_sentence(dev):
    s = DENSE.to_sparse()
    with pytest.raises(RuntimeError, match="same device.*fl_device:0.*cpu|same device.*cpu.*fl_device:0"):
        s.to(dev) @ torch.ones(4, 4)
    with pytest.raises(RuntimeError):
        s @ torch.ones(4, 4, device=dev)


def test_DEV_02_quantized_and_nested_tensors_say_what_to_do(dev):
    quantized = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8)
    with pytest.raises(NotImplementedError, match="fl_device has no quantized tensors; move tensor.dequantize.. instead"):
        quantized.to(dev)
    assert torch.allclose(quantized.dequantize().to(dev).cpu(), torch.ones(3), atol=0.1)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])
    with pytest.raises(NotImplementedError, match="fl_device has no nested tensors of layout torch.strided; make them with layout=torch.jagged"):
        nested.to(dev)
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged).to(dev)
    assert [t.cpu().tolist() for t in jagged.unbind()] == [[1, 1], [1, 1, 1]]
    with pytest.raises(NotImplementedError, match="fl_device"):
        torch.eye(3).to_mkldnn().to(dev)
