"""Operators that only a plugin knows: ``torch_fl.ops.<plugin>.<operator>(tensors, ...)``.

They are operators of torch: once a plugin was named here they are in ``torch.ops.<plugin>``, with a Meta kernel, and take
``torch.library.register_autograd``. A plugin can be asked for them only when it is started, which opens one of its chips; importing
torch_fl starts none, so they cannot be there before.
"""

import json
import re
import threading

from . import _C


def space_of(plugin):
    """The namespace of a plugin's id: com.example.chip -> com_example_chip."""
    return re.sub(r"\W", "_", plugin)


class PluginOps:
    """The operators of one plugin, by name."""

    def __init__(self, plugin, operators, refused):
        self._plugin, self._refused = plugin, refused
        self.__dict__.update(operators)
        self._names = sorted(operators)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        why = self._refused.get(name)
        own = ", ".join(self._names) if self._names else "no operators of its own"
        raise AttributeError(f"torch_fl.ops: {why}" if why else f"torch_fl.ops: the plugin {self._plugin} has no operator {name!r}; it has {own}")

    def __dir__(self):
        return self._names

    def __repr__(self):
        return f"torch_fl.ops.{space_of(self._plugin)}: {', '.join(self._names) or 'no operators'}"


class Ops:
    """What ``torch_fl.ops`` is."""

    def __init__(self):
        self._known, self._lock = {}, threading.Lock()

    def _plugins(self):
        from ._devices import devices

        first = {}
        for chip in devices():
            first.setdefault(space_of(chip.plugin), chip)
        return first

    def __getattr__(self, space):
        if space.startswith("_"):
            raise AttributeError(space)
        with self._lock:
            if space not in self._known:
                chips = self._plugins()
                if space not in chips:
                    raise AttributeError(f"torch_fl.ops: there is no chip of a plugin {space!r}; there are {', '.join(sorted(chips)) or 'none'}")
                self._known[space] = define(chips[space])
            return self._known[space]

    def __dir__(self):
        return sorted(self._plugins())


def define(chip):
    """Defines the operators of the plugin that `chip` belongs to."""
    import torch

    _C.open_device(int(chip))
    rows = next(row for row in json.loads(_C.report("vendor_ops"))["devices"] if row["device"] == chip.name)["ops"]
    operators, refused = {}, {}
    for row in rows:
        space, _, name = row["name"].rpartition(".")
        space, name = space_of(space or chip.plugin), space_of(name)
        try:
            _C.define_vendor_op(space, name, row["name"], row["schema"])
        except RuntimeError as error:     # the others work on; this one says why when it is asked for
            refused[name] = str(error)
            continue
        operators[name] = getattr(getattr(torch.ops, space), name)
    return PluginOps(chip.plugin, operators, refused)


ops = Ops()
