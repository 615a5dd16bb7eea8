"""profile_operators: which route each operator of a model would take, and why, without touching the chip.

The model runs once in a dry run: device tensors have shapes but no memory, each call is only asked for its route. Values do not
exist, so item() gives 0, and a branch on values is followed as if they were 0.
"""

import json

from . import _C

ROUTES = ("none", "native", "kernel", "composite", "host", "fallback")


class Profile(list):
    """Rows {operator, op, route, reason, calls}, in the order of first use; prints as a table."""

    def counts(self):
        out = {}
        for row in self:
            out[row["route"]] = out.get(row["route"], 0) + row["calls"]
        return out

    def __str__(self):
        wide = max([len(r["operator"]) for r in self], default=8)
        lines = [f"{'operator':{wide}}  calls  route      reason"]
        lines += [f"{r['operator']:{wide}}  {r['calls']:5}  {r['route']:9}  {r['reason']}".rstrip() for r in self]
        lines.append("total: " + ", ".join(f"{n} {route}" for route, n in self.counts().items()))
        return "\n".join(lines)


def _op_names():
    return {row["number"]: row["name"] for row in json.loads(_C.report("ops"))["ops"]}


def _input_shapes(shape):
    """One shape or several, as a list of them."""
    if isinstance(shape, (tuple, list)):
        if all(isinstance(n, int) for n in shape):
            return [shape]
        if all(isinstance(s, (tuple, list)) and all(isinstance(n, int) for n in s) for s in shape):
            return shape
    raise ValueError(f"torch_fl.profile_operators: input_shape={shape!r} is neither a shape like (1, 3, 224, 224) nor a list of shapes")


def _refuse_lazy(model):
    from torch.nn.parameter import is_lazy

    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor):
            raise ValueError(f"torch_fl.profile_operators: {name} has no shape before the model has run (a lazy module); call the model "
                             "once on example inputs first")


def profile_operators(model, input_shape=None, example_inputs=None, device=None):
    """Asks for the route of every operator that one forward pass of `model` calls.

    input_shape: one shape, or a list of shapes, of float32 inputs; or example_inputs: a tensor, a tuple, or a dict of keyword
    arguments, of which only shapes and dtypes count.
    """
    import torch
    from torch.utils import _pytree

    from ._devices import index_of

    if (input_shape is None) == (example_inputs is None):
        raise ValueError("torch_fl.profile_operators: give either input_shape=(1, 3, 224, 224) or example_inputs=...")
    if not callable(model):
        raise TypeError(f"torch_fl.profile_operators: expected a module or a function, got {model!r}")
    where = torch.device("fl_device", index_of(device))
    if isinstance(model, torch.nn.Module):
        _refuse_lazy(model)

    def on_device(t):
        return torch.empty_strided(t.size(), t.stride(), dtype=t.dtype, device=where) if isinstance(t, torch.Tensor) else t

    if example_inputs is None:
        example_inputs = tuple(torch.empty(tuple(shape), device="meta") for shape in _input_shapes(input_shape))
    if isinstance(example_inputs, torch.Tensor):
        example_inputs = (example_inputs,)
    _C.dry_run_begin()
    try:
        with torch.no_grad():
            state = {}
            if isinstance(model, torch.nn.Module):
                state = {n: on_device(t) for n, t in (*model.named_parameters(), *model.named_buffers())}
            inputs = _pytree.tree_map(on_device, example_inputs)
            args, kwargs = ((), inputs) if isinstance(inputs, dict) else (tuple(inputs), {})
            if isinstance(model, torch.nn.Module):
                torch.func.functional_call(model, state, args, kwargs)
            else:
                model(*args, **kwargs)
    finally:
        notes = _C.dry_run_end()
    names = _op_names()
    rows = {}
    for operator, op, route, reason in notes:
        row = rows.setdefault(
            (operator, op, route, reason),
            {"operator": operator or "aten::copy_", "op": names.get(op, ""), "route": ROUTES[min(route, 5)], "reason": reason, "calls": 0},
        )
        row["calls"] += 1
    return Profile(rows.values())
