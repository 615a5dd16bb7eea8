"""What `import torch` calls by the entry point torch.backends. Nothing here may raise: nobody's `import torch` breaks because of
us. A package of its own, since importing torch_fl is just what may fail.

When torch_fl cannot load, the device name is registered all the same, with a device module whose first use says why.
"""

import types

_failure: str | None = None


def failure() -> str | None:
    """Why torch_fl did not load when torch was imported; None when it did, or was not asked."""
    return _failure


def _explain(*_args, **_kwargs):
    raise RuntimeError(f"fl_device is not available: {_failure}; run `torch-fl doctor`")


def _explaining_module() -> types.ModuleType:
    """A device module that torch finds under the device's name; whatever needs the device explains."""
    module = types.ModuleType("torch.fl_device", __doc__)
    module.is_available = lambda: False
    module.device_count = lambda: 0
    module.is_initialized = lambda: False
    module._is_in_bad_fork = lambda: False
    for name in ("_lazy_init", "init", "current_device", "set_device", "synchronize", "manual_seed_all", "manual_seed",
                 "get_rng_state", "set_rng_state", "memory_allocated", "empty_cache"):
        setattr(module, name, _explain)
    return module


def autoload() -> None:
    """Loads torch_fl; never raises. On a torch that has another accelerator it waits for an explicit `import torch_fl`."""
    global _failure
    try:
        import torch

        if any(getattr(torch, name).is_available() for name in ("cuda", "xpu", "mps", "mtia") if hasattr(torch, name)):
            return
        import torch_fl  # noqa: F401
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001: nothing of ours may reach `import torch`, an exit least of all
        _failure = str(error) if isinstance(error, Exception) else repr(error)
        try:
            import torch

            torch.utils.rename_privateuse1_backend("fl_device")
            torch._register_device_module("fl_device", _explaining_module())
        except Exception:  # another backend holds the name: then its own messages speak
            pass
