"""The settings that may change while the program runs. Each has an environment variable (TORCH_FL_*, and FLHAL_*, which wins)
that gives its first value. A value that does not parse raises ValueError and lists the valid ones."""

import os

from . import _C


def _set(key, value):
    try:
        _C.config_set(key, value)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def set_fallback_policy(policy, op=None):
    """'auto': CPU operators stand in and are counted; 'warn': also say so; 'strict': refuse, naming the operator.

    With `op` only for that operator (all its overloads, or the one named), before the general policy; policy None takes it back.
    """
    if op is None:
        _set("fallback_policy", str(policy))
        return
    from ._reports import overloads_of

    for name in overloads_of(op):
        _set("fallback_policy@" + name, "default" if policy is None else str(policy))


def get_fallback_policy(op=None):
    """The policy in force, or that of one operator when it has one of its own."""
    if op is None:
        return _C.config_get("fallback_policy")
    from ._reports import overloads_of

    return _C.config_get("fallback_policy@" + overloads_of(op)[0])


def set_fallback_threshold(share):
    """The share of calls that may fall back before one warning names the worst operators; 0.0 to 1.0."""
    _set("fallback_threshold", str(share))


def get_fallback_threshold():
    return float(_C.config_get("fallback_threshold"))


def set_memory_pool_size(size, device=None):
    """A ceiling, not a preallocation: 0.7 or '70%' of the chip's memory, or '8GiB'. For one chip, or for all."""
    key = "memory_pool_size"
    if device is not None:
        from ._devices import Device, index_of

        key += "@" + Device(index_of(device)).name
    _set(key, str(size))


def get_memory_pool_size(device=None):
    """The ceiling of all chips, or of one that has its own."""
    key = "memory_pool_size"
    if device is not None:
        from ._devices import Device, index_of

        key += "@" + Device(index_of(device)).name
    return _C.config_get(key)


def set_async_level(level):
    """0: everything finishes before it returns; 1: copies overlap; 2: compute too, also on chips without queues."""
    _set("async_level", str(level))


def get_async_level():
    return int(_C.config_get("async_level"))


def set_log_level(level):
    """'error', 'warn', 'info' (summaries) or 'debug' (each operator's route)."""
    _set("log_level", str(level))


def get_log_level():
    return _C.config_get("log_level")


def set_float64(how):
    """What becomes of float64 on a chip that cannot hold it. 'refuse': a TypeError; 'demote': float32, said once."""
    _set("float64", str(how))


def get_float64():
    return _C.config_get("float64")


def set_plugin_path(path):
    """Where plugins are looked for first: folders, manifests or libraries, a list or joined by colons. Before the first use."""
    if not isinstance(path, str):
        if isinstance(path, os.PathLike):
            path = [path]
        if not isinstance(path, (list, tuple)) or not all(isinstance(part, (str, os.PathLike)) for part in path):
            raise TypeError(f"torch_fl.set_plugin_path: expected a path, a list of paths or one string joined by colons, got {path!r}")
        path = ":".join(os.fspath(part) for part in path)
    _set("plugin_path", path)


def get_plugin_path():
    return _C.config_get("plugin_path")
