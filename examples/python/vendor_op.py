"""An operator that only a maker's plugin knows, as an operator of PyTorch.

    FLHAL_PLUGIN_FILES=.../libflhal_plugin_mock.so python vendor_op.py

torch_fl.ops.<plugin> starts the plugin, reads what operators it has, and defines them: from then on they are torch.ops.<plugin>.
"""

import torch

import torch_fl

print(torch_fl.ops.mock)
weighted_sum = torch_fl.ops.mock.weighted_sum          # the same as torch.ops.mock.weighted_sum from here on


def setup_context(ctx, inputs, output):
    ctx.weight = inputs[2]


def backward(ctx, grad):
    return grad, grad * ctx.weight, None


# A plugin brings no derivatives. This is PyTorch's way to add one.
torch.library.register_autograd("mock::weighted_sum", backward, setup_context=setup_context)

a = torch.tensor([1.0, 2.0, 3.0], device="fl_device", requires_grad=True)
b = torch.tensor([10.0, 20.0, 30.0], device="fl_device", requires_grad=True)
y = weighted_sum(a, b, weight=0.5)
y.sum().backward()
print(y.tolist(), a.grad.tolist(), b.grad.tolist())

out = torch.empty(3, device="fl_device")
torch_fl.ops.mock.sum_of_squares(a.detach(), b.detach(), out=out)   # results of your own, of any shape the plugin takes
print(out.tolist())

calls = {row["op"]: (row["route"], row["calls"]) for row in torch_fl.get_route_report()["ops"]}
print("mock.weighted_sum:", *calls["mock.weighted_sum"])
