"""torch_fl.device: inside it, work is done on one chip, and tensors that lie on another one follow.

Idea: a TorchFunctionMode sees every call of torch from Python before autograd does. Operands that a call only reads are copied to the
scope's chip where autograd sees it, so gradients cross back by themselves. What a call writes stays where it is, and the work is
done there. It is a DeviceContext, as torch.device's own context: factories follow, torch.get_default_device() answers, and
torch.utils.checkpoint enters it again when it computes again.
Cost: one Python call and a short loop per operator (`bench/torch/scope.py`).
Threads: the scope belongs to its thread; one object may be entered by many threads and many times.
"""

import inspect
import sys
import threading
import time

import torch
from torch._C import _len_torch_function_stack
from torch.overrides import _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils._contextlib import context_decorator
from torch.utils._device import DeviceContext

from . import _C, _checkpoint, _operands, _traffic
from ._devices import Device, index_of

_Tensor = torch.Tensor
_MOVE, _PASS, _MAKE, _run_here = _operands.MOVE, _operands.PASS, _operands.make_here, _operands.run_here
_known = _operands.known
_LISTS = (list, tuple)


class _Entered:
    """One entry of a scope on one thread, and what is to be as before when it ends."""

    __slots__ = ("before", "follows", "outer_name", "modes", "began")


_thread = threading.local()                              # .entered: what has not ended yet, the outermost first


class Scope(DeviceContext):
    """The mode itself. Of several DeviceContexts (torch.device's own is one) only the innermost is on the stack while it lasts, so
    nested scopes cost no more than one.

    Scopes in generators may end in another order than they began. Such an end changes nothing at once: what was to be restored is
    handed to the scope that was entered next."""

    def __init__(self, index, name, advice):
        super().__init__(torch.device("fl_device", index))
        self.index, self.name, self.advice = index, name, advice
        self._entered = threading.local()

    def move(self, tensor, where):
        self._entered.moved = True
        return _traffic.move(tensor, where, self.name)

    def __enter__(self):
        before = _C.exchange_device(self.index)
        follows = before == _C.default_device()          # then it goes on following, also when activate() is called in the block
        entry = _Entered()
        entry.before, entry.follows = before, follows
        entry.outer_name = _C.scope_enter(self.name)
        entry.modes = _replace_context(self)
        entry.began = time.perf_counter()
        self._entered.__dict__.setdefault("stack", []).append(entry)
        _thread.__dict__.setdefault("entered", []).append((self, entry))
        return self

    def __exit__(self, kind, error, trace):
        entry = self._entered.stack.pop()
        entered = _thread.entered
        at = next(i for i, (_, other) in enumerate(entered) if other is entry)
        del entered[at]
        if at < len(entered):                            # one that began later lasts longer
            later = entered[at][1]
            later.before, later.follows, later.outer_name = entry.before, entry.follows, entry.outer_name
            for _, other in entered[at:]:
                other.modes = [mode for mode in other.modes if mode is not self] if other is not later else entry.modes
        else:
            _restore_context(self, entry.modes)
            _C.scope_leave(entry.outer_name)
            _C.exchange_device(_C.default_device() if entry.follows else entry.before)
        moved, self._entered.moved = getattr(self._entered, "moved", False), False
        if kind is None:
            _traffic.block_ended(self.name, time.perf_counter() - entry.began, moved, self.advice)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kind = _known.get(func)
        if kind is None:
            kind = _operands.kind_of(func)
        if kind is not _PASS and kind is not _MAKE:      # when all operands are here already, nothing needs to be known
            index = self.index
            for operand in args:
                if isinstance(operand, _Tensor):
                    if operand.get_device() != index:
                        break
                elif operand.__class__ in _LISTS and not _all_here(operand, index):
                    break
            else:
                if not kwargs:
                    return func(*args)
                if _all_here(kwargs.values(), index):
                    return func(*args, **kwargs)
            return (_run_here if kind is _MOVE else kind)(self, func, args, kwargs or {})
        if kind is _MAKE:
            return kind(self, func, args, kwargs or {})
        return func(*args, **kwargs) if kwargs else func(*args)


def _all_here(operands, index):
    for operand in operands:
        if isinstance(operand, _Tensor):
            if operand.get_device() != index:
                return False
        elif operand.__class__ in _LISTS and not _all_here(operand, index):
            return False
    return True


def _take_stack():
    """All function modes of this thread, the outermost first, taken off."""
    modes = [_pop_mode() for _ in range(_len_torch_function_stack())]
    modes.reverse()
    return modes


def _replace_context(mode):
    """Puts the mode below all others in place of every DeviceContext. Gives the stack as it was."""
    modes = _take_stack()
    _push_mode(mode)
    for other in modes:
        if not isinstance(other, DeviceContext):
            _push_mode(other)
    return modes


def _restore_context(mode, before):
    modes = _take_stack()
    if mode in modes:                                    # not when somebody set another default device meanwhile
        modes.remove(mode)
        others = [other for other in before if not isinstance(other, DeviceContext)]
        if modes == others:
            modes = before                               # each in its place: torch.device's own context leaves by taking the top
        else:
            modes = [other for other in before if isinstance(other, DeviceContext)] + modes
    for other in modes:
        _push_mode(other)


def current_scope():
    """The scope that this thread is in, or None."""
    return next((mode for mode in _get_current_function_mode_stack() if isinstance(mode, Scope)), None)


class device:
    """Inside, work is done on one chip; tensors on other chips follow. A context manager and a decorator.

        with torch_fl.device('chip_a'):
            x = features(x)
        @torch_fl.device('chip_b')
        def head(x): ...

    `device`: a name, an index, a torch_fl.Device, a torch.device or "fl_device:1". It is looked up when the scope is entered.
    Weights are copied at each use: torch_fl.place(module, device) moves them once.
    """

    def __init__(self, device, *, _name=None):
        self._device = device
        if _name is None:
            caller = sys._getframe(1)
            _name = f"{caller.f_code.co_filename}:{caller.f_lineno}"
        self._at = _name
        self._scope = None
        self._entered = threading.local()

    def __enter__(self):
        index = index_of(self._device)
        scope = self._scope
        if scope is None or scope.index != index:
            chip = Device(index)
            advice = f"keep what is used there on that chip: torch_fl.place(module, '{chip}')"
            scope = self._scope = Scope(index, f"device('{chip}') at {self._at}", advice)
        _checkpoint.know_chips()
        scope.__enter__()
        self._entered.__dict__.setdefault("stack", []).append(scope)
        return Device(index)

    def __exit__(self, *exc):
        self._entered.stack.pop().__exit__(*exc)

    def __call__(self, function):
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"torch_fl.device cannot decorate {function.__qualname__}, a coroutine: other tasks of the thread would run inside "
                            "its scope; use `with torch_fl.device(...):` around the parts that do not await")
        given, name = self._device, getattr(function, "__qualname__", repr(function))
        one = device(given, _name=name)
        return context_decorator(lambda: one, function)

    def __repr__(self):
        return f"torch_fl.device({self._device!r})"
