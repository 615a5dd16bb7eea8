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
