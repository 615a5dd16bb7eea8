"""RNG-01, RNG-02: seeds govern every random op of the device; states are saved and restored."""

import pytest
import torch
from torch import nn

DRAWS = {
    "rand": lambda d, g: torch.rand(5, device=d, generator=g),
    "randn": lambda d, g: torch.randn(5, device=d, generator=g),
    "randint": lambda d, g: torch.randint(0, 100, (5,), device=d, generator=g),
    "randperm": lambda d, g: torch.randperm(9, device=d, generator=g),
    "uniform_": lambda d, g: torch.empty(5, device=d).uniform_(1, 2, generator=g),
    "normal_": lambda d, g: torch.empty(5, device=d).normal_(1, 2, generator=g),
    "random_": lambda d, g: torch.empty(5, device=d, dtype=torch.int64).random_(generator=g),
    "exponential_": lambda d, g: torch.empty(5, device=d).exponential_(generator=g),
    "bernoulli": lambda d, g: torch.bernoulli(torch.full((20,), 0.5, device=d), generator=g),
    "bernoulli_": lambda d, g: torch.empty(20, device=d).bernoulli_(0.3, generator=g),
    "multinomial": lambda d, g: torch.multinomial(torch.ones(9, device=d), 5, generator=g),
    "poisson": lambda d, g: torch.poisson(torch.full((9,), 4.0, device=d), generator=g),
    "cauchy_": lambda d, g: torch.empty(5, device=d).cauchy_(generator=g),
    "log_normal_": lambda d, g: torch.empty(5, device=d).log_normal_(generator=g),
    "geometric_": lambda d, g: torch.empty(9, device=d).geometric_(0.3, generator=g),
    "normal_tensors": lambda d, g: torch.normal(torch.zeros(5, device=d), torch.ones(5, device=d), generator=g),
}
UNGUIDED = {
    "dropout": lambda d: nn.functional.dropout(torch.ones(40, device=d), 0.5),
    "alpha_dropout": lambda d: nn.functional.alpha_dropout(torch.ones(40, device=d), 0.5, training=True),
    "rrelu": lambda d: nn.functional.rrelu(-torch.ones(9, device=d), training=True),
    "gamma": lambda d: torch._standard_gamma(torch.ones(9, device=d)),
    "rand_like": lambda d: torch.rand_like(torch.ones(9, device=d)),
    "rnn_dropout": lambda d: nn.LSTM(3, 3, 2, dropout=0.5).to(d)(torch.ones(2, 1, 3, device=d))[0],
}


@pytest.mark.parametrize("name", DRAWS)
def test_RNG_01_global_seed_and_own_generator(dev, name):
    draw = DRAWS[name]
    torch.manual_seed(11)
    a, b = draw(dev, None), draw(dev, None)
    torch.manual_seed(11)
    assert draw(dev, None).cpu().equal(a.cpu())
    assert not b.cpu().equal(a.cpu())
    g = torch.Generator(dev).manual_seed(5)
    x = draw(dev, g)
    torch.manual_seed(99)
    assert draw(dev, torch.Generator(dev).manual_seed(5)).cpu().equal(x.cpu())
    with pytest.raises(RuntimeError):
        draw(dev, torch.Generator())


@pytest.mark.parametrize("name", UNGUIDED)
def test_RNG_01_ops_without_a_generator_argument(dev, name):
    draw = UNGUIDED[name]
    torch.manual_seed(11)
    a, b = draw(dev), draw(dev)
    torch.manual_seed(11)
    assert draw(dev).cpu().equal(a.cpu()) and not b.cpu().equal(a.cpu())


def test_RNG_01_no_op_uses_the_cpus_generator_unseen(dev):
    for name, draw in {**{k: lambda d, f=f: f(d, None) for k, f in DRAWS.items()}, **UNGUIDED}.items():
        if name == "rnn_dropout":
            continue  # makes its parameters on the CPU
        before = torch.get_rng_state()
        draw(dev)
        assert torch.get_rng_state().equal(before), name


def test_generator_state_is_sixteen_bytes_and_clones(dev):
    g = torch.Generator(dev).manual_seed(3)
    torch.rand(5, device=dev, generator=g)
    state = g.get_state()
    assert state.numel() == 16 and state.dtype == torch.uint8
    copy = g.clone_state()
    a = torch.rand(3, device=dev, generator=g)
    assert torch.rand(3, device=dev, generator=copy).cpu().equal(a.cpu())
    other = torch.Generator(dev)
    other.set_state(state)
    assert torch.rand(3, device=dev, generator=other).cpu().equal(a.cpu())
    with pytest.raises(RuntimeError, match="16 bytes"):
        g.set_state(torch.zeros(5, dtype=torch.uint8))


def test_device_module_random_functions(dev):
    torch.fl_device.manual_seed_all(4)
    assert torch.fl_device.initial_seed() == 4
    state = torch.fl_device.get_rng_state()
    a = torch.rand(3, device=dev)
    torch.fl_device.set_rng_state(state)
    assert torch.rand(3, device=dev).cpu().equal(a.cpu())
    assert torch.fl_device.default_generators[0].device == dev


def test_RNG_02_fork_rng(dev):
    n = torch.fl_device.device_count()
    for kwargs in ({"device_type": "fl_device"}, {"device_type": "fl_device", "devices": [n - 1]}, {}):
        where = torch.device("fl_device", n - 1)
        torch.manual_seed(1)
        before = torch.fl_device.get_rng_state(n - 1)
        with torch.random.fork_rng(**kwargs):
            torch.manual_seed(2)
            torch.rand(3, device=where)
        assert torch.fl_device.get_rng_state(n - 1).equal(before), kwargs
        with pytest.raises(KeyError), torch.random.fork_rng(**kwargs):
            torch.rand(3, device=where)
            raise KeyError
        assert torch.fl_device.get_rng_state(n - 1).equal(before)


def test_seed_before_the_device_is_first_used(fresh):
    script = "import torch, torch_fl\ntorch.manual_seed(3)\nprint(torch.rand(3, device='fl_device').tolist())"
    assert fresh(script).ok().out == fresh(script).ok().out


BAD = {
    "uniform_": lambda t: t.uniform_(2, 1), "uniform_wide": lambda t: t.uniform_(-3e38, 3e38), "normal_": lambda t: t.normal_(0, -1),
    "bernoulli_": lambda t: t.bernoulli_(1.5), "random_": lambda t: t.random_(3, 3), "exponential_": lambda t: t.exponential_(-1),
    "geometric_": lambda t: t.geometric_(0), "cauchy_": lambda t: t.cauchy_(0, -1), "log_normal_": lambda t: t.log_normal_(0, -1),
    "multinomial": lambda t: torch.multinomial(t, 9), "randint": lambda t: torch.randint(5, 2, (3,), device=t.device),
    "random_int8": lambda t: t.to(torch.int8).random_(0, 300), "random_uint8": lambda t: t.to(torch.uint8).random_(-1, 3),
    "random_complex": lambda t: t.to(torch.complex64).random_(0, 3), "uniform_int": lambda t: t.long().uniform_(),
    "uniform_empty_int": lambda t: t.long()[:0].uniform_(), "bernoulli_above": lambda t: torch.bernoulli(t * 1.5),
    "bernoulli_below": lambda t: torch.bernoulli(t - 1.25), "bernoulli_nan": lambda t: torch.bernoulli(t * float("nan")),
    "bernoulli_one": lambda t: torch.bernoulli(torch.stack([t, t + 1])), "bernoulli_out": lambda t: torch.bernoulli(t + 1, out=t),
    "bernoulli__tensor": lambda t: t.bernoulli_(t + 1), "bernoulli__cpu": lambda t: t.bernoulli_(torch.tensor(1.5)),
    "bernoulli_int": lambda t: torch.bernoulli(t.long()), "bernoulli_complex": lambda t: torch.bernoulli(t, out=t.to(torch.complex64)),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_arguments_that_the_cpu_refuses_are_refused(dev, name):
    errors = []
    for where in ("cpu", dev):
        with pytest.raises(RuntimeError) as caught:
            BAD[name](torch.ones(4, device=where))
        errors.append(str(caught.value))
    assert errors[0].split(":")[0][:30] == errors[1].split(":")[0][:30]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_numbers_are_drawn_part_by_part(dev, dtype):
    torch.manual_seed(4)
    u = torch.rand(20000, dtype=dtype, device=dev).cpu()
    z = torch.randn(20000, dtype=dtype, device=dev).cpu()
    for part in (u.real, u.imag):
        assert 0 <= part.min() and part.max() < 1 and abs(part.mean() - 0.5) < 0.02
    assert not u.real.equal(u.imag)
    for part in (z.real, z.imag):                       # together variance 1
        assert abs(part.mean()) < 0.03 and abs(part.var() - 0.5) < 0.03
    v = torch.zeros(4, 6, dtype=dtype, device=dev)
    v.t()[::2].uniform_()
    assert v.cpu()[:, 1::2].eq(0).all() and v.cpu()[:, ::2].ne(0).all()


def test_RNG_01_other_threads_cpu_numbers_are_not_disturbed(dev):
    import threading

    torch.manual_seed(8)
    want = [torch.rand(3) for _ in range(400)]
    stop = threading.Event()

    def draw_on_the_chip():                             # by fallback: the CPU's operators with a generator of ours
        while not stop.is_set():
            torch.poisson(torch.ones(4, device=dev))
            torch.multinomial(torch.ones(4, device=dev), 2)
            torch.nn.functional.dropout(torch.ones(4, device=dev))

    threads = [threading.Thread(target=draw_on_the_chip) for _ in range(2)]
    torch.manual_seed(8)
    [t.start() for t in threads]
    got = [torch.rand(3) for _ in range(400)]
    stop.set()
    [t.join() for t in threads]
    assert all(a.equal(b) for a, b in zip(want, got))


def test_FALL_04_an_operator_that_draws_without_a_generator_is_refused(dev):
    from torch.library import Library

    library = Library("fl_test_draw", "DEF")
    library.define("noise(Tensor x) -> Tensor", tags=[torch.Tag.nondeterministic_seeded])
    library.define("noise_by(Tensor x, Generator? generator=None) -> Tensor", tags=[torch.Tag.nondeterministic_seeded])
    library.impl("noise", lambda x: x + torch.rand(x.shape), "CPU")
    library.impl("noise_by", lambda x, generator=None: x + torch.rand(x.shape, generator=generator), "CPU")
    x = torch.zeros(3, device=dev)
    with pytest.raises(NotImplementedError, match="fl_test_draw::noise.*policy.*default generator"):
        torch.ops.fl_test_draw.noise(x)
    torch.manual_seed(2)
    a = torch.ops.fl_test_draw.noise_by(x)
    torch.manual_seed(2)
    assert torch.ops.fl_test_draw.noise_by(x).cpu().equal(a.cpu())
    library._destroy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.int8, torch.uint8, torch.bool])
def test_bernoulli_by_a_tensor_into_any_type(dev, dtype):
    p = torch.tensor([0.0, 1.0, 0.5, 0.25]).expand(5000, 4).to(dev)
    torch.manual_seed(3)
    wanted = torch.bernoulli(p).cpu()
    out = torch.zeros(0, dtype=dtype, device=dev)
    torch.manual_seed(3)
    assert torch.bernoulli(p, out=out) is out and out.cpu().to(torch.float32).equal(wanted)
    assert (wanted.mean(0) - torch.tensor([0.0, 1.0, 0.5, 0.25])).abs().max() < 0.03
    torch.manual_seed(3)
    assert torch.zeros(5000, 4, dtype=dtype, device=dev).bernoulli_(p.double()).cpu().to(torch.float32).equal(wanted)
    assert torch.bernoulli(p[:0]).shape == (0, 4)
