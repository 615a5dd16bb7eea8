"""torch_fl.profile_operators: what it foretells is what a run does, and what it refuses."""

import pytest
import torch
import torch_fl


def model():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.GELU(), torch.nn.AdaptiveAvgPool2d(1),
                               torch.nn.Flatten(), torch.nn.Linear(8, 4), torch.nn.Softmax(-1)).eval()


def test_the_routes_it_tells_are_those_of_a_run(dev):
    net = model()
    told = torch_fl.profile_operators(net, input_shape=(2, 3, 8, 8), device=dev).counts()
    net.to(dev)
    x = torch.randn(2, 3, 8, 8).to(dev)
    torch_fl.synchronize()
    torch_fl.reset()
    with torch.no_grad():
        net(x)
    ran = {route: calls for route, calls in torch_fl.get_route_report()["routes"].items() if calls}
    assert {route: ran.get(route, 0) for route in told} == told and set(ran) <= set(told)


def test_shapes_in_a_list_and_inputs_by_name(dev):
    both = torch_fl.profile_operators(lambda a, b: a @ b, input_shape=[(2, 3), (3, 4)], device=dev)
    named = torch_fl.profile_operators(lambda a, b: a @ b, example_inputs={"b": torch.ones(3, 4), "a": torch.ones(2, 3)}, device=dev)
    assert both == named and [row["op"] for row in both] == ["matmul"]


@pytest.mark.parametrize("given, sentence", [
    ({}, "give either input_shape="),
    ({"input_shape": (3,), "example_inputs": torch.ones(3)}, "give either input_shape="),
    ({"input_shape": "abc"}, "neither a shape like"),
    ({"input_shape": [(1, 3), "x"]}, "neither a shape like"),
])
def test_refusals(dev, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        torch_fl.profile_operators(model(), **given)


def test_a_model_without_shapes_is_refused_and_says_what_to_do(dev):
    with pytest.raises(ValueError, match=r"1\.weight has no shape before the model has run .*; call the model once"):
        torch_fl.profile_operators(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.LazyLinear(2)), input_shape=(1, 2))
