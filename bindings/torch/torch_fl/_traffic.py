"""Copies between chips that torch_fl makes on somebody's behalf: whose they are, and the word when they cost more than they bring.

The figures are the library's own account (`moves` of the fallback report); here is only the name under which it counts.
"""

import json
import threading
import warnings

from . import _C

# Below these nobody is told: a first block also pays for compiling, and small change is not worth a line.
_LEAST_BLOCKS = 3
_LEAST_MS = 50.0
_SHARE = 0.5

_lock = threading.Lock()
_blocks = {}  # scope name -> [blocks, seconds in them]
_said = set()


def move(tensor, where, scope):
    """The tensor on another chip. Autograd sees it: the gradient comes back by itself, and is counted under the same name."""
    moved = tensor.to(where)
    node = moved.grad_fn
    if node is not None:
        outer = []
        node.register_prehook(lambda grads: outer.append(_C.scope_enter(scope)))
        node.register_hook(lambda inputs, outputs: _C.scope_leave(outer.pop()))
    return moved


def totals(scope):
    """(bytes, copies, ms) that the library counted under a name."""
    rows = [row for row in json.loads(_C.report("fallback"))["moves"] if row["scope"] == scope]
    return tuple(sum(row[key] for row in rows) for key in ("bytes", "copies", "ms"))


def costs_more_than_it_brings(blocks, seconds, ms):
    return blocks >= _LEAST_BLOCKS and ms >= _LEAST_MS and ms > _SHARE * seconds * 1e3


def block_ended(scope, seconds, moved, advice):
    """Counts a block; warns once per name, with the numbers."""
    with _lock:
        count = _blocks.setdefault(scope, [0, 0.0])
        count[0] += 1
        count[1] += seconds
        blocks, spent = count
    if not moved or blocks < _LEAST_BLOCKS or scope in _said:
        return
    size, copies, ms = totals(scope)
    if not costs_more_than_it_brings(blocks, spent, ms) or scope in _said:
        return
    _said.add(scope)
    warnings.warn(
        f"torch_fl: {scope}: {size} bytes crossed between chips in {copies} copies, which took {ms:.0f} ms of the {spent * 1e3:.0f} ms "
        f"spent in {blocks} blocks: moving costs more than computing there brings; {advice}",
        stacklevel=4,
    )


def forget():
    with _lock:
        _blocks.clear()
        _said.clear()
