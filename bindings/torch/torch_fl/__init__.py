"""torch_fl: chips that PyTorch does not know, as the device type ``fl_device``.

    import torch, torch_fl
    model.to('fl_device')

Importing it, before or after torch, changes nothing for tensors elsewhere. Chips are found at the first use that needs them.
"""

from . import _load as _load_module

_C = _load_module.load()

from . import _exit  # noqa: E402, F401
from ._devices import Device, activate, clear_error, current_device, device_count, devices, is_available, synchronize  # noqa: E402
from ._layers import (  # noqa: E402
    get_faults,
    get_layers,
    get_layers_report,
    get_trace_file,
    layers,
    set_faults,
    set_layers,
    set_trace_file,
)
from ._reports import fallback, get_fallback_report, get_route_report, memory_summary, reset  # noqa: E402
from ._scope import device  # noqa: E402
from ._place import place, unplace  # noqa: E402
from ._profile import profile_operators  # noqa: E402
from ._vendor_ops import ops  # noqa: E402
from ._settings import (  # noqa: E402
    get_async_level,
    get_fallback_policy,
    get_fallback_threshold,
    get_float64,
    get_log_level,
    get_memory_pool_size,
    get_plugin_path,
    set_async_level,
    set_fallback_policy,
    set_fallback_threshold,
    set_float64,
    set_log_level,
    set_memory_pool_size,
    set_plugin_path,
)

__version__ = _load_module.adapter_version()

__all__ = [
    "Device",
    "activate",
    "clear_error",
    "current_device",
    "device",
    "device_count",
    "devices",
    "fallback",
    "get_async_level",
    "get_fallback_policy",
    "get_fallback_report",
    "get_fallback_threshold",
    "get_faults",
    "get_float64",
    "get_layers",
    "get_layers_report",
    "get_log_level",
    "get_memory_pool_size",
    "get_plugin_path",
    "get_route_report",
    "get_trace_file",
    "is_available",
    "layers",
    "memory_summary",
    "ops",
    "place",
    "profile_operators",
    "reset",
    "set_async_level",
    "set_fallback_policy",
    "set_fallback_threshold",
    "set_faults",
    "set_float64",
    "set_layers",
    "set_log_level",
    "set_memory_pool_size",
    "set_plugin_path",
    "set_trace_file",
    "synchronize",
    "unplace",
]


def _autoload():
    """Entry point of the group torch.backends: torch calls it at the end of ``import torch``. The work is done by then."""
