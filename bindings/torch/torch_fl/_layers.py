"""The layers between the library and the chips' plugins: they check, write down, break on purpose or count every call.

A layer that is off costs nothing. Each works with every plugin, also with closed ones.
"""

import contextlib
import json
import os

from . import _C
from ._settings import _set

_NAMES = ("validate", "trace", "fault", "stats")


def _joined(layers):
    if layers is None:
        return "none"
    if isinstance(layers, str):
        return layers
    if not isinstance(layers, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in layers):
        raise TypeError(f"torch_fl: expected layers as names like 'validate', a list of them or None, got {layers!r}")
    return ",".join(layers) or "none"


def set_layers(layers):
    """Which layers are on from now on: 'validate' (checks what core gives and what plugins answer), 'trace' (writes every call to a
    file), 'fault' (makes calls fail by the rules of set_faults), 'stats' (counts); a name, several, or None.

    'validate' that is turned on before the first use of a chip knows every object; later it takes what exists for good.
    """
    _set("layers", _joined(layers))


def get_layers():
    """The names of the layers that are on, as a tuple."""
    on = {name.strip() for name in _C.config_get("layers").split(",")}
    return tuple(name for name in _NAMES if name in on)


def set_faults(rules):
    """What the layer 'fault' does, as text or a list: 'fail=[plugin/]slot:n[:status]', 'delay=[plugin/]slot:n:milliseconds',
    'reorder=seed[:milliseconds]', 'lose=n[@plugin[:device index]]'. A wrong rule is refused with all forms."""
    _set("faults", "" if rules is None else rules if isinstance(rules, str) else ",".join(rules))


def get_faults():
    return _C.config_get("faults")


def set_trace_file(path, payload=False):
    """Where the layer 'trace' writes: *.txt for text, else Chrome's trace events, which flhal-replay reads as well. %p becomes the
    process number. With `payload` also the bytes that were moved."""
    _set("trace_payload", "on" if payload else "off")
    _set("trace_file", os.fspath(path))


def get_trace_file():
    return _C.config_get("trace_file")


class layers(contextlib.ContextDecorator):  # noqa: N801: used like a function
    """Layers for a block, in the whole process; what was on before is on again afterwards.

    with torch_fl.layers("validate", "fault", faults="fail=copy:3"): ...
    """

    def __init__(self, *names, faults=None, trace_file=None, payload=False):
        self._wanted = {"layers": _joined(names)}
        if faults is not None:
            self._wanted["faults"] = faults if isinstance(faults, str) else ",".join(faults)
        if trace_file is not None:
            self._wanted.update(trace_payload="on" if payload else "off", trace_file=os.fspath(trace_file))
        self._before = []

    def __enter__(self):
        before = {key: _C.config_get(key) for key in self._wanted}
        try:
            for key in reversed(self._wanted):  # the layers last: their settings are there when they begin
                _set(key, self._wanted[key])
        except ValueError:
            self._put_back(before)
            raise
        self._before.append(before)
        return self

    def __exit__(self, *exc):
        self._put_back(self._before.pop())
        return False

    @staticmethod
    def _put_back(before):
        for key, value in before.items():  # the layers first
            _set(key, value)


class LayersReport(dict):
    """The report as a dict that prints as a table of calls and a list of findings."""

    def __str__(self):
        lines = [f"layers: {self['layers']}"]
        if self["stats"]:
            lines.append(f"{'plugin':12} {'slot':20} {'calls':>10} {'failed':>8} {'ms':>12} {'us each':>10} {'bytes':>16}")
        for row in self["stats"]:
            lines.append(
                f"{row['plugin']:12} {row['slot']:20} {row['calls']:>10} {row['failures']:>8} {row['ms']:>12.3f} "
                f"{1000 * row['ms'] / row['calls']:>10.2f} {row['bytes']:>16}"
            )
        for row in self["faults"]:
            lines.append(f"fault {row['rule']}: struck {row['struck']} times in {row['calls']} calls")
        if self["trace"]["calls"]:
            lines.append(f"trace: {self['trace']['calls']} calls in {self['trace']['file']}")
        for row in self["findings"]:
            lines.append(
                f"{row['level']}: {row['slot']} of {row['plugin']} ({row['times']} times, first in call {row['first_call']}): {row['what']}: "
                f"{row['values']}; {row['remedy']}" + (f"; breaks {row['duty']}" if row.get("duty") else "")
            )
        return "\n".join(lines)


def get_layers_report(as_json=False):
    """`stats`: per plugin and slot calls, failures, ms, bytes. `findings` of validate: level, whose fault, slot, duty, what, values,
    remedy, times. `faults`: per rule how often it struck. `trace`: file and calls written. Prints as text."""
    text = _C.report("layers")
    return text if as_json else LayersReport(json.loads(text))
