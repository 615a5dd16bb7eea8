"""What fell back, why and at what cost; memory in figures; scopes of the fallback policy."""

import contextlib
import json

from . import _C, _traffic


class FallbackReport(dict):
    """The report as a dict that prints as two tables."""

    def __str__(self):
        lines = [f"{self['off_chip_calls']} of {self['calls']} calls left the chip ({100 * self['off_chip_share']:.1f} %)"]
        for row in self["ops"]:
            lines.append(
                f"  {row['op']} on {row['device']}: {row['calls']} calls by {row['route']}, {row['ms']:.1f} ms, {_size(row['bytes_to_host'])} to the "
                f"host, {_size(row['bytes_to_device'])} back; {row['reason']}" + (f"; first at {row['call_site']}" if row["call_site"] else "")
            )
        moves = self["moves"]
        lines.append(f"{_size(sum(row['bytes'] for row in moves))} moved between chips in {sum(row['copies'] for row in moves)} copies")
        for row in moves:
            lines.append(
                f"  {row['from']} -> {row['to']}: {_size(row['bytes'])} in {row['copies']} copies, {row['ms']:.1f} ms, of which "
                f"{row['ms_waiting']:.1f} ms waiting for earlier work; {row['scope'] or 'outside of scopes and placements'}"
            )
        return "\n".join(lines)


def get_fallback_report(as_json=False):
    """What left the chip and what it cost, by the library's own account; prints as a table.

    `ops`: per operator its route, reason, calls, ms, bytes each way, first call site. `moves`: bytes that crossed between chips, per
    scope (torch_fl.device, torch_fl.place) and direction, with copies, ms, and the part of it spent waiting for earlier work.
    """
    text = _C.report("fallback")
    return text if as_json else FallbackReport(json.loads(text))


def get_route_report(as_json=False):
    """Every call counted: `routes` has totals per route (native, kernel, composite, host, declined, fallback), `ops` per operator
    with the reason why better routes were not taken."""
    text = _C.report("routes")
    return text if as_json else json.loads(text)


def reset():
    """Sets the counts of the fallback report, of the routes and of the layers, and what validate found, back to nothing."""
    _C.report_reset("fallback")
    _C.report_reset("routes")
    _C.report_reset("layers")
    _traffic.forget()


def _library_ops():
    rows = json.loads(_C.report("ops"))
    return {row["name"] for row in rows["ops"]}


def overloads_of(op):
    """All names under which an operator is asked for: 'aten::relu' -> ['aten::relu', 'aten::relu.out', 'relu'].

    The last is the library's own op, which the host route names. A bare name means all operators of that base name.
    """
    import torch

    if isinstance(op, torch._ops.OpOverload):
        return _that_reach_a_device(op, [op])
    if isinstance(op, torch._ops.OpOverloadPacket):
        packet, qualified = op, op._qualified_op_name
    elif not isinstance(op, str):
        raise TypeError(f"torch_fl: expected an operator's name like 'aten::softplus', or one of torch.ops, got {op!r}")
    else:
        qualified = op if "::" in op else "aten::" + op
        namespace, _, name = qualified.partition("::")
        base, dot, overload = name.partition(".")
        packet = _packet(namespace, base)
        if dot:
            chosen = getattr(packet, overload, None) if overload in (packet.overloads() if packet else ()) else None
            if chosen is None:
                raise ValueError(f"torch_fl: there is no operator {op!r}; name it as the fallback report does, e.g. 'aten::softplus'"
                                 + (f", or one of {', '.join(map(_name_of, _overloads(packet)))}" if packet else ""))
            return _that_reach_a_device(op, [chosen])
        if packet is None:
            if "::" not in op and op in _library_ops():
                return [op]
            raise ValueError(f"torch_fl: there is no operator {op!r}; name it as the fallback report does, e.g. 'aten::softplus'")
    bare = qualified.partition("::")[2]
    library = [bare] if qualified.startswith("aten::") and bare in _library_ops() else []
    names = [_name_of(overload) for overload in _overloads(packet)] if library else _that_reach_a_device(op, _overloads(packet))
    return [op] if isinstance(op, str) and "::" not in op else names + library


def _packet(namespace, base):
    """torch.ops.<namespace>.<base>, or None."""
    import torch

    packet = getattr(getattr(torch.ops, namespace), base, None)
    return packet if isinstance(packet, torch._ops.OpOverloadPacket) else None


def _overloads(packet):
    return [getattr(packet, name) for name in packet.overloads()]


def _name_of(overload):
    """As the reports write it: 'aten::relu', 'aten::relu.out'."""
    return overload._schema.name + ("" if overload._overloadname == "default" else "." + overload._overloadname)


def _that_reach_a_device(asked, overloads):
    """The overloads' names. ValueError when every one is made of other operators by PyTorch, above the device: a policy for it would
    never be asked."""
    import torch

    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [_name_of(overload) for overload in overloads]
    if names and all(has(name, "CompositeImplicitAutograd") and not has(name, "PrivateUse1") for name in names):
        raise ValueError(f"torch_fl: {asked!r} never comes to a device as such, PyTorch makes it of other operators; name those, as the "
                         "fallback report shows them")
    return names


class fallback(contextlib.ContextDecorator):  # noqa: N801: used like a function
    """A policy for this thread inside the block: 'auto', 'warn' or 'strict'; with `op` only for that operator (all overloads).

    One object may be entered again, also inside itself and by several threads: what it pushes is always the same.
    """

    def __init__(self, policy, op=None):
        self._policy = str(policy)
        self._names = [None] if op is None else overloads_of(op)

    def __enter__(self):
        pushed = 0
        try:
            for name in self._names:
                _C.fallback_push(self._policy, name)
                pushed += 1
        except RuntimeError as error:
            for _ in range(pushed):
                _C.fallback_pop()
            raise ValueError(str(error)) from None
        return self

    def __exit__(self, *exc):
        for _ in self._names:
            _C.fallback_pop()
        return False


def _size(n):
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if n < 1024 or unit == "TiB":
            return f"{n} B" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024


def memory_summary(device=None, as_dict=False):
    """A table of one chip's memory: what tensors asked for, what blocks and slabs they occupy, the ceiling. As a dict: bytes."""
    from ._devices import Device, index_of

    chip = Device(index_of(device))
    s = _C.memory_stats(int(chip))
    if as_dict:
        return dict(s)
    rows = [
        ("requested by tensors", s["requested"], s["requested_peak"]),
        ("allocated in blocks", s["allocated"], s["allocated_peak"]),
        ("reserved from the chip", s["reserved"], s["reserved_peak"]),
        ("freed, still in use", s["pending_free"], None),
        ("largest free block", s["largest_free_block"], None),
        ("ceiling", s["limit"], None),
        ("free on the chip", s["device_free"], None),
    ]
    lines = [f"memory of [{int(chip)}] {chip}", f"{'':26}{'now':>14}{'peak':>14}"]
    lines += [f"{name:26}{_size(now):>14}{'' if peak is None else _size(peak):>14}" for name, now, peak in rows]
    lines.append(
        f"{s['n_live']} live allocations, {s['n_allocations']} made, {s['n_slabs']} slabs, "
        f"{s['n_retries']} retries, {s['n_out_of_memory']} out of memory"
    )
    return "\n".join(lines)
