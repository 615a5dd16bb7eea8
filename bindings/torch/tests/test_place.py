"""torch_fl.place: a module lives on a chip; values, gradients, structure and saved files are those of the module elsewhere."""

import collections
import copy
import dataclasses
import io

import pytest
import torch
import torch_fl
from torch import nn

pytestmark = pytest.mark.plugins("mock")
A, B = torch.device("fl_device", 0), torch.device("fl_device", 1)


def net():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Linear(8, 3))


def trained(model, x, target, steps=3, optimizer=torch.optim.Adam):
    opt = optimizer(model.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        opt.step()
        losses.append(loss.detach().cpu())
    return losses, {n: v.detach().cpu() for n, v in model.state_dict().items()}


def data(device):
    g = torch.Generator().manual_seed(1)
    return torch.randn(6, 4, generator=g).to(device), torch.randn(6, 3, generator=g).to(device)


def devices(module):
    return {t.device for t in (*module.parameters(), *module.buffers())}


@pytest.mark.parametrize("home", ["cpu", A], ids=str)
@pytest.mark.parametrize("optimizer", [torch.optim.SGD, torch.optim.Adam])
def test_a_placed_part_trains_as_if_it_were_not_placed(dev, home, optimizer):
    wanted = trained(net(), *data("cpu"), optimizer=optimizer)
    model = net().to(home)
    parameters = list(model.parameters())
    assert torch_fl.place(model[2], "chip_b") is model[2] and torch_fl.place(model[3], "chip_b", outputs="return")
    assert all(p is q for p, q in zip(parameters, model.parameters()))      # the same objects: optimizers keep them
    assert devices(model[2]) == devices(model[3]) == {B} and devices(model[0]) == {torch.device(home)}
    assert model(data(home)[0]).device == torch.device(home)
    model.load_state_dict(net().state_dict())
    got = trained(model, *data(home), optimizer=optimizer)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
    assert devices(model[3]) == {B}


def test_outputs_stay_when_asked_and_the_next_placed_module_finds_them_there(dev):
    model = net().to(A)
    for part in model[1:]:
        torch_fl.place(part, "chip_b", outputs="stay")
    torch_fl.reset()
    y = model(data(A)[0])
    assert y.device == B
    rows = [r for r in torch_fl.get_fallback_report()["moves"]]
    assert [(r["scope"], r["copies"], r["bytes"]) for r in rows] == [("place(Tanh, 'chip_b')", 1, 6 * 8 * 4)]


def test_a_sequential_split_over_two_chips(dev):
    wanted = trained(net(), *data("cpu"))
    model = nn.Sequential(torch_fl.place(net()[:2], "chip_a", outputs="stay"), torch_fl.place(net()[2:], "chip_b"))
    got = trained(model, *data(A))
    torch.testing.assert_close(got[0], wanted[0], rtol=1e-4, atol=1e-5)
    assert devices(model[0]) == {A} and devices(model[1]) == {B}


def test_only_activations_move_once_weights_have(dev):
    model = torch_fl.place(nn.Linear(64, 64).to(A), "chip_b")
    x = torch.ones(2, 64, device=A)
    torch_fl.reset()
    model(x).sum().backward()
    rows = {(r["from"], r["to"]): r for r in torch_fl.get_fallback_report()["moves"]}
    assert {k: (r["copies"], r["bytes"]) for k, r in rows.items()} == {("chip_a", "chip_b"): (2, 1024), ("chip_b", "chip_a"): (1, 512)}
    assert {r["scope"] for r in rows.values()} == {"place(Linear, 'chip_b')"}


def test_the_report_tells_weights_that_a_placement_moved(dev):
    model = net().to(A)
    torch_fl.reset()
    torch_fl.place(model, "chip_b")
    rows = torch_fl.get_fallback_report()["moves"]
    assert [(r["scope"], r["from"], r["to"]) for r in rows] == [("place(Sequential, 'chip_b')", "chip_a", "chip_b")]
    assert rows[0]["bytes"] == sum(t.numel() * t.element_size() for t in (*model.parameters(), *model.buffers()))


@pytest.mark.parametrize("order", ["inner first", "outer first"])
def test_nested_places_keep_their_own_chip(dev, order):
    model = net().to(A)
    if order == "inner first":
        torch_fl.place(torch_fl.place(model[2], "chip_a"), "chip_a")
        torch_fl.place(model, "chip_b")
    else:
        torch_fl.place(model, "chip_b")
        torch_fl.place(model[2], "chip_a")
    assert devices(model[2]) == {A} and devices(model[0]) == devices(model[3]) == {B}
    x, target = data(A)
    got, wanted = trained(model, x, target), trained(net(), *data("cpu"))
    torch.testing.assert_close(got[0], wanted[0], rtol=1e-4, atol=1e-5)
    torch_fl.unplace(model[2])
    assert devices(model[2]) == {A if order == "inner first" else B}


def test_placing_again_moves_and_undoing_restores(dev):
    model = net()
    before = {n: v.clone() for n, v in model.state_dict().items()}
    model[3].to(A)
    torch_fl.place(model, "chip_a")
    torch_fl.place(model, "chip_b")
    assert devices(model) == {B} and len(model._forward_pre_hooks) == len(model._forward_hooks) == 1
    assert torch_fl.unplace(model) is model
    assert devices(model[:3]) == {torch.device("cpu")} and devices(model[3]) == {A}
    assert not model._forward_pre_hooks and not model._forward_hooks and not model._forward_hooks_always_called
    for name, value in model.state_dict().items():
        assert torch.equal(value.cpu(), before[name])
    with pytest.raises(ValueError, match="was not placed"):
        torch_fl.unplace(model)


def test_moving_a_placed_module_by_to_is_obeyed(dev):
    model = torch_fl.place(net(), "chip_b")
    model.to(A)
    assert model(data(B)[0]).device == B and devices(model) == {A}
    model.to("cpu")
    assert model(data(A)[0]).device == A


def test_refusals_say_what_is_wanted(dev):
    with pytest.raises(TypeError, match="torch.nn.Module"):
        torch_fl.place(torch.ones(2), "chip_b")
    with pytest.raises(ValueError, match="'return', 'stay'"):
        torch_fl.place(net(), "chip_b", outputs="else")
    model = net()
    with pytest.raises(RuntimeError, match="chip_a"):
        torch_fl.place(model, "chip_x")
    assert devices(model) == {torch.device("cpu")} and not model._forward_hooks


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    note: str
    more: list


Pair = collections.namedtuple("Pair", "left right")


class Structured(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((2,), 3.0))
        self.seen = None

    def forward(self, x, *rest, batch=None, pair=None, table=None, scale=2):
        self.seen = {t.device for t in (x, *rest, batch.x, *batch.more, *pair, *table.values(), self.weight)}
        return {"sum": [x * self.weight * scale + sum(rest)], "pair": Pair(pair.left * self.weight, "text"), "x": x}


def test_inputs_and_outputs_of_every_shape_are_carried(dev):
    def give(device):
        t = lambda v: torch.full((2,), float(v), device=device)  # noqa: E731
        return (t(1), t(2)), {"batch": Batch(t(3), "n", [t(4)]), "pair": Pair(t(5), t(6)), "table": {"k": t(7)}, "scale": 5}

    model = torch_fl.place(Structured().to(A), "chip_b")
    args, kwargs = give(A)
    out = model(*args, **kwargs)
    assert model.seen == {B}
    assert out["sum"][0].device == A and out["sum"][0].tolist() == [17, 17]
    assert type(out["pair"]) is Pair and out["pair"].left.device == A and out["pair"].left.tolist() == [15, 15] and out["pair"].right == "text"
    assert out["x"] is args[0]                           # what comes back as it went in is the caller's own
    assert kwargs["batch"].x.device == A and kwargs["table"]["k"].device == A and kwargs["pair"].left.device == A


def test_model_outputs_and_kwargs_of_transformers(dev):
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
                                     max_position_embeddings=16)
    model = transformers.BertModel(config).eval()
    batch = {"input_ids": torch.arange(1, 9).reshape(2, 4), "attention_mask": torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])}
    with torch.no_grad():
        wanted = model(**batch, output_hidden_states=True)
        model.to(A)
        torch_fl.place(model.encoder, "chip_b")
        got = model(**{k: v.to(A) for k, v in batch.items()}, output_hidden_states=True)
    assert type(got) is type(wanted) and devices(model.encoder) == {B} and devices(model.pooler) == {A}
    for key in wanted:
        for ours, cpu in zip(got[key] if isinstance(got[key], tuple) else [got[key]], wanted[key] if isinstance(wanted[key], tuple) else [wanted[key]]):
            # What transformers' own hooks collect inside of the encoder lies where it was computed.
            assert ours.device == A or key == "hidden_states" and ours.device == B
            torch.testing.assert_close(ours.cpu(), cpu, rtol=1e-4, atol=1e-5)
    torch_fl.place(model, "chip_b")
    with torch.no_grad():
        moved = model(**batch)                           # all inputs on the CPU: so are the outputs
    assert moved.last_hidden_state.device.type == "cpu" and moved["pooler_output"] is moved.pooler_output
    torch.testing.assert_close(moved.pooler_output, wanted.pooler_output, rtol=1e-4, atol=1e-5)


def test_lengths_on_the_cpu_stay_there_beside_tensors_on_chips(dev):
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 5)

        def forward(self, x, lengths):
            return self.rnn(nn.utils.rnn.pack_padded_sequence(x, lengths))[0]

    torch.manual_seed(0)
    model, x, lengths = Packed(), torch.randn(3, 2, 4), torch.tensor([3, 2])
    wanted = model(x, lengths)
    torch_fl.place(model, "chip_b")
    got = model(x.to(A), lengths)
    assert got.data.device == A and got.batch_sizes.device.type == "cpu"
    torch.testing.assert_close(got.data.cpu(), wanted.data, rtol=1e-4, atol=1e-5)
    again = torch_fl.place(nn.LSTM(5, 2), "chip_b")(got)[0]
    assert again.data.device == A


def test_a_module_that_writes_its_input_writes_the_callers(dev):
    relu = torch_fl.place(nn.ReLU(inplace=True), "chip_b")
    x = torch.tensor([-1.0, 2.0], device=A)
    y = relu(x)
    assert y is x and x.tolist() == [0, 2]
    w = torch.tensor([-1.0, 2.0], device=A, requires_grad=True)
    (relu(w * 3) * torch.tensor([5.0, 7.0], device=A)).sum().backward()
    assert w.grad.tolist() == [0, 21]


def test_deepcopies_and_pickles_are_independent_placed_modules(dev):
    model = torch_fl.place(net(), "chip_b")
    other = copy.deepcopy(model)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    x = data(A)[0]
    wanted = model.eval()(x).cpu()
    for twin in (other, loaded):
        assert devices(twin) == {B} and torch.equal(twin.eval()(x).cpu(), wanted)
        torch_fl.place(twin, "chip_a")
        assert devices(twin) == {A} and devices(model) == {B}
        torch_fl.unplace(twin)
        assert not twin._forward_hooks and model._forward_hooks and devices(twin) == {torch.device("cpu")}
    assert torch.equal(model(x).cpu(), wanted)


def test_state_dicts_are_those_of_the_plain_module(dev):
    plain, model = net(), torch_fl.place(net(), "chip_b")
    assert list(model.state_dict()) == list(plain.state_dict())
    with torch.no_grad():
        plain[0].weight.fill_(5)
    assert not model.load_state_dict(plain.state_dict()).missing_keys and model[0].weight.device == B
    assert model[0].weight.cpu().unique().tolist() == [5]
    opt = torch.optim.Adam(model.parameters())
    model(data(A)[0]).sum().backward()
    opt.step()
    saved = opt.state_dict()
    again = torch.optim.Adam(model.parameters())
    again.load_state_dict(saved)
    assert again.state[model[0].weight]["exp_avg"].device == B


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_placed_modules_draw_the_same_numbers_again(dev, reentrant):
    from torch.utils.checkpoint import checkpoint

    results = []
    for use in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8)).to(A)
        torch_fl.place(model[1:], "chip_b")
        tail = torch_fl.place(nn.Sequential(*model[1:]), "chip_b")
        x = torch.randn(4, 8).to(A).requires_grad_()
        torch.manual_seed(5)
        body = lambda t: tail(model[0](t))  # noqa: E731
        y = checkpoint(body, x, use_reentrant=reentrant) if use else body(x)
        after = torch.rand(2, device=B).cpu()
        y.sum().backward()
        results.append([y.detach().cpu(), after, torch.rand(2, device=B).cpu(), x.grad.cpu(), *(p.grad.cpu() for p in model.parameters())])
    for a, b in zip(*results):
        assert torch.equal(a, b)


def test_errors_in_forward_leave_nothing_behind(dev):
    class Fails(nn.Module):
        def forward(self, x):
            assert torch_fl.current_device() == 1 and torch.empty(1, device="fl_device").device == B
            raise KeyError("inside")

    model = torch_fl.place(Fails(), "chip_b")
    for _ in range(3):
        with pytest.raises(KeyError):
            model(torch.ones(1, device=A))
    assert torch_fl.current_device() == 0
    torch_fl.reset()
    torch.ones(1, device=A).to(B)
    assert [r["scope"] for r in torch_fl.get_fallback_report()["moves"]] == [""]


def test_clipping_and_gradient_scaling_across_chips(dev):
    results = []
    for split in (False, True):
        model = net().to(A)
        if split:
            torch_fl.place(model[3], "chip_b")
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("fl_device", init_scale=8.0)
        x, target = data(A)
        scaler.scale(nn.functional.mse_loss(model(x), target)).backward()
        scaler.unscale_(opt)
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        scaler.step(opt)
        scaler.update()
        results.append((norm.cpu(), [p.detach().cpu() for p in model.parameters()]))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-6)


def test_a_forward_that_is_a_generator_is_refused(dev):
    class Pieces(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x):
            yield self.layer(x)

    module = torch_fl.place(Pieces(), 1)
    before = torch_fl.current_device()
    with pytest.raises(TypeError, match="forward of Pieces is a generator"):
        module(torch.ones(1, 2))
    assert torch_fl.current_device() == before


class Row(nn.Module):
    """Gives a view of its input, which it may have written."""

    def __init__(self, writes):
        super().__init__()
        self.weight, self.writes = nn.Parameter(torch.ones(1)), writes

    def forward(self, x):
        if self.writes:
            x[1].add_(1)
        return x[1:].t()


@pytest.mark.parametrize("writes", [False, True])
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_a_view_of_an_input_is_a_view_of_the_callers_tensor(dev, mode, writes):
    module = torch_fl.place(Row(writes), "chip_b")
    with mode():
        x = torch.arange(12.0, device=A).reshape(3, 4)
        want = torch.arange(12.0).reshape(3, 4)
        wanted = Row(writes)(want)
        got = module(x)
        assert got.device == A and got.stride() == wanted.stride() and torch.equal(got.cpu(), wanted)
        got.mul_(2)
        wanted.mul_(2)
    assert torch.equal(x.cpu(), want)
    if mode is torch.enable_grad and not writes:
        leaf = torch.arange(12.0, device=A).reshape(3, 4).requires_grad_()
        (module(leaf * 1) * 3).sum().backward()
        assert leaf.grad.tolist() == [[0.0] * 4, [3.0] * 4, [3.0] * 4]
