"""torch_fl.place: a module lives on one chip, and its surroundings need not know.

Parameters and buffers move once. Hooks carry the inputs in before forward and the outputs back to where the inputs came from
after it, where autograd sees both: the module trains in its place, whatever lies around it.
Limits: a weight that is tied to one outside of the module lies on one chip only, so place both parts there. State that an
optimizer has already made stays where it was: place first, as with Module.to.
"""

import copy
import dataclasses
import inspect
import threading
from collections.abc import Mapping

import torch

from . import _C, _checkpoint, _traffic
from ._devices import Device, index_of

_KEY = "_torch_fl_placement"
_OUTPUTS = ("return", "stay")


def carry(value, move):
    """`value` with every tensor replaced by move(tensor): lists, tuples, dicts, dataclasses and their subclasses, nested. The very
    same object where nothing moved."""
    if isinstance(value, torch.Tensor):
        return move(value)
    if isinstance(value, torch.nn.utils.rnn.PackedSequence):
        # Its batch sizes belong on the CPU.
        parts = [carry(part, move) if name != "batch_sizes" else part for name, part in zip(value._fields, value)]
        return value if all(a is b for a, b in zip(parts, value)) else type(value)(*parts)
    if isinstance(value, (list, tuple)):
        items = [carry(item, move) for item in value]
        if all(a is b for a, b in zip(items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, Mapping):
        items = {key: carry(item, move) for key, item in value.items()}
        changed = {key: item for key, item in items.items() if item is not value[key]}
        if not changed:
            return value
        other = copy.copy(value)
        for key, item in changed.items():
            other[key] = item
        return other
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        items = {f.name: getattr(value, f.name) for f in dataclasses.fields(value) if hasattr(value, f.name)}
        changed = {name: new for name, old in items.items() if (new := carry(old, move)) is not old}
        if not changed:
            return value
        other = copy.copy(value)
        for name, item in changed.items():
            object.__setattr__(other, name, item)
        return other
    return value


def _tensors(value):
    found = []
    carry(value, lambda t: found.append(t) or t)
    return found


def _version(tensor):
    return None if tensor.is_inference() else tensor._version


def _tracked(tensor, where, scope):
    """The copy of an input. Tensors made in inference mode have no version: that the module wrote its input would go unseen."""
    if not torch.is_inference_mode_enabled():
        return _traffic.move(tensor, where, scope)
    with torch.inference_mode(False), torch.no_grad():
        return _traffic.move(tensor, where, scope)


def _same_view(tensor, moved, given):
    """What `tensor`, a view of the copy `moved`, is of the caller's tensor; None when it is none, or cannot be said of the caller's."""
    if tensor.layout != torch.strided or tensor.untyped_storage()._cdata != moved.untyped_storage()._cdata or tensor.dtype != moved.dtype:
        return None
    if not tensor.is_inference() and tensor._base is not moved:
        return None
    if given.shape != moved.shape or given.stride() != moved.stride() or tensor.is_conj() != given.is_conj() or tensor.is_neg() != given.is_neg():
        return None
    return given.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset() - moved.storage_offset() + given.storage_offset())


class _Call:
    """One forward in progress: what has to be undone when it ends."""

    __slots__ = ("home", "where", "pairs", "before", "follows", "outer")

    def __init__(self):
        self.home, self.where, self.pairs, self.before = None, None, {}, None


class Placement:
    """What place() leaves in a module. Copied and pickled with it; it names the chip, so a file holds nothing of one process."""

    def __init__(self, chip, outputs, homes):
        self.chip, self.outputs, self.homes = chip, outputs, homes
        self.handles = []
        self._calls = threading.local()

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key != "_calls"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._calls = threading.local()

    def hook(self, module):
        self.handles = [
            module.register_forward_pre_hook(self.enter, with_kwargs=True, prepend=True),
            module.register_forward_hook(self.leave, with_kwargs=True, always_call=True),
        ]

    def unhook(self):
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def enter(self, module, args, kwargs):
        call = _Call()
        self._calls.__dict__.setdefault("stack", []).append(call)
        call.where = where = self._where(module)
        scope = f"place({type(module).__name__}, '{self.chip}')"
        call.outer = _C.scope_enter(scope)
        if where.type == "fl_device":
            before = _C.exchange_device(where.index)
            call.follows, call.before = before == _C.default_device(), before
        given = _tensors((args, kwargs))
        if not given:
            return None
        # Beside tensors on chips, those on the CPU are there on purpose (lengths, offsets). Alone, they are the activations.
        on_chips = any(t.device.type != "cpu" for t in given)
        call.home = next(t.device for t in given if t.device.type != "cpu" or not on_chips)

        def into(tensor):
            if tensor.device == where or (on_chips and tensor.device.type == "cpu"):
                return tensor
            pair = call.pairs.get(id(tensor))
            if pair is None:
                moved = _tracked(tensor, where, scope)
                pair = call.pairs[id(tensor)] = (tensor, moved, _version(moved))
            return pair[1]

        return carry(args, into), carry(kwargs, into)

    def leave(self, module, args, kwargs, result):
        stack = getattr(self._calls, "stack", None)
        if not stack:                                    # another hook failed before enter() had its turn
            return None
        call = stack.pop()
        try:
            if inspect.isgenerator(result) or inspect.iscoroutine(result) or inspect.isasyncgen(result):
                raise TypeError(f"torch_fl.place: forward of {type(module).__name__} is a generator or a coroutine, whose body runs when the "
                                "module has been left; place the modules that it calls")
            if result is None or call.home is None:
                return None
            for given, moved, version in call.pairs.values():
                if _version(moved) != version:           # the module wrote its input: the caller's tensor is what it means
                    given.copy_(moved)
            originals = {id(moved): given for given, moved, _ in call.pairs.values()}
            home, where = call.home, call.where
            scope = f"place({type(module).__name__}, '{self.chip}')"

            def back(tensor):
                given = originals.get(id(tensor))
                if given is not None:
                    return given if self.outputs == "return" else tensor
                if self.outputs == "stay" or tensor.device == home or tensor.device != where:
                    return tensor
                for given, moved, _ in call.pairs.values():
                    if (view := _same_view(tensor, moved, given)) is not None:
                        return view
                return _traffic.move(tensor, home, scope)

            return carry(result, back)
        finally:
            _C.scope_leave(call.outer)
            if call.before is not None:
                _C.exchange_device(_C.default_device() if call.follows else call.before)

    def _where(self, module):
        """Where the module's own tensors are now: .to() after place() is obeyed. A module without any has the chip it was given."""
        for _, part in _parts(module):
            for tensor in (*part._parameters.values(), *part._buffers.values()):
                if tensor is not None:
                    return tensor.device
        return torch.device("fl_device", index_of(self.chip))


def _parts(module, name=""):
    """(name, module) of the module and what is below it, without modules that are placed themselves."""
    yield name, module
    for key, child in module._modules.items():
        if child is not None and _KEY not in child.__dict__:
            yield from _parts(child, f"{name}.{key}")


def _device_of_part(part):
    return next((t.device for t in (*part._parameters.values(), *part._buffers.values()) if t is not None), None)


def _send(part, where):
    part._apply(lambda t: t.to(where), recurse=False)


def place(module, device, outputs="return"):
    """Puts a module on a chip for good: parameters and buffers move once, activations follow by hooks, training works.

    outputs: 'return' gives results back where the first input came from, so that the code around needs no change; 'stay' leaves
    them on the chip, for a following module that is placed there, too.
    Modules inside that were placed themselves keep their chip. Placing again moves; unplace() undoes. Returns the module.
    """
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"torch_fl.place: expected a torch.nn.Module, got {type(module).__name__}")
    if outputs not in _OUTPUTS:
        raise ValueError(f"torch_fl.place: outputs={outputs!r} is none of {', '.join(map(repr, _OUTPUTS))}")
    chip = Device(index_of(device))
    placed = module.__dict__.get(_KEY)
    parts = dict(_parts(module))
    homes = placed.homes if placed else {name: _device_of_part(part) for name, part in parts.items()}
    outer = _C.scope_enter(f"place({type(module).__name__}, '{chip.name}')")   # the report tells these bytes from what the user moves
    try:
        for part in parts.values():
            _send(part, chip.torch_device)
    finally:
        _C.scope_leave(outer)
    if placed:
        placed.chip, placed.outputs = chip.name, outputs
    else:
        placement = Placement(chip.name, outputs, homes)
        placement.hook(module)
        module.__dict__[_KEY] = placement
    _checkpoint.know_chips()
    return module


def unplace(module):
    """Undoes place(): the hooks go, parameters and buffers return to where they were before. Returns the module."""
    placed = module.__dict__.pop(_KEY, None)
    if placed is None:
        raise ValueError(f"torch_fl.unplace: this {type(module).__name__} was not placed; torch_fl.place(module, device) does that")
    placed.unhook()
    for name, part in _parts(module):
        home = placed.homes.get(name)
        if home is not None:
            _send(part, home)
    return module
