"""torch.fl_device: the device module torch and libraries expect, with torch's conventions (integers, torch.Stream)."""

import contextlib
import types


class _DeviceModule(types.ModuleType):
    """_initialized is a question, not a flag: checkpoint() asks whether the device has been used."""

    @property
    def _initialized(self):
        extension = self._extension
        return any(extension.is_open(i) for i in range(extension.device_count()))


def make(extension):
    import torch

    from . import _register

    module = _DeviceModule("torch.fl_device", __doc__)
    module._extension = extension
    module.__path__ = []  # a package, so that `import torch.fl_device` and submodules resolve

    def public(function):
        function.__module__ = "torch.fl_device"
        setattr(module, function.__name__, function)
        return function

    def index_of(device, optional=True):
        if device is None:
            return extension.current_device()
        if isinstance(device, str):
            device = torch.device(device)
        if isinstance(device, torch.device):
            if device.type != "fl_device":
                raise ValueError(f"Expected a fl_device device, but got: {device}")
            return extension.current_device() if device.index is None else device.index
        if not hasattr(device, "__index__"):
            raise TypeError(f"torch.fl_device: expected an index, a string like 'fl_device:1' or a torch.device, got {device!r}")
        index = device.__index__()
        return extension.current_device() if index < 0 else index

    module._get_device_index = index_of
    module._utils = types.SimpleNamespace(_get_device_index=lambda device, optional=False, allow_cpu=False: index_of(device))

    # -- life ------------------------------------------------------------------------------------------------------------
    @public
    def _is_in_bad_fork():
        return _register.in_bad_fork()

    @public
    def _lazy_init():
        if _register.in_bad_fork():
            raise RuntimeError(
                "Cannot use fl_device in a forked child of a process that has used it; start workers with the 'spawn' or "
                "'forkserver' method: torch.multiprocessing.set_start_method('spawn')"
            )

    @public
    def init():
        _lazy_init()

    @public
    def is_initialized():
        return module._initialized and not _register.in_bad_fork()

    @public
    def is_available():
        try:
            return extension.device_count() > 0
        except RuntimeError:
            return False

    # -- devices ---------------------------------------------------------------------------------------------------------
    @public
    def device_count():
        return extension.device_count()

    @public
    def current_device():
        return extension.current_device()

    @public
    def set_device(device):
        index = index_of(device)
        extension.set_device(index)

    @public
    def _exchange_device(index):
        return extension.exchange_device(index)

    @public
    def _maybe_exchange_device(index):
        return extension.exchange_device(index)

    class device:
        """Context: the current device of this thread inside the block."""

        def __init__(self, device):
            self.index = index_of(device) if device is not None else -1
            self.before = -1

        def __enter__(self):
            self.before = extension.exchange_device(self.index)

        def __exit__(self, *exc):
            extension.exchange_device(self.before)
            return False

    class device_of(device):
        def __init__(self, tensor):
            super().__init__(tensor.device if tensor.device.type == "fl_device" else None)

    device.__module__ = device_of.__module__ = "torch.fl_device"
    module.device = device
    module.device_of = device_of

    @public
    def get_device_name(device=None):
        return extension.device_info(index_of(device))["name"]

    @public
    def get_device_properties(device=None):
        from ._devices import Device

        chip = Device(index_of(device))
        return types.SimpleNamespace(
            name=chip.name, total_memory=chip.memory, uuid=chip.uuid, plugin=chip.plugin, vendor=chip.vendor,
            compute_capability=chip.capability, multi_processor_count=1,
        )  # fmt: skip

    @public
    def get_device_capability(device=None):
        parts = extension.device_info(index_of(device))["compute_capability"].split(".")
        return tuple(int(p) for p in parts) if all(p.isdigit() for p in parts) and len(parts) == 2 else (0, 0)

    @public
    def can_device_access_peer(device, peer):
        return False

    # -- streams and events ------------------------------------------------------------------------------------------------
    @public
    def synchronize(device=None):
        _lazy_init()
        extension.synchronize(index_of(device))

    class Stream(torch.Stream):
        def __new__(cls, device=None, priority=0, **kwargs):
            if "stream_id" in kwargs:
                return super().__new__(cls, **kwargs)
            return super().__new__(cls, torch.device("fl_device", index_of(device)), priority=priority)

    class _EventType(type):
        def __instancecheck__(cls, thing):
            return isinstance(thing, torch.Event) and thing.device.type == "fl_device"

    class Event(metaclass=_EventType):
        """Makes a torch.Event: elapsed_time takes objects of exactly that type, so this is no subclass."""

        def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
            if interprocess:
                raise NotImplementedError("torch.fl_device.Event: events between processes are not supported")
            return torch.Event("fl_device", enable_timing=enable_timing)

    Stream.__module__ = Event.__module__ = "torch.fl_device"
    module.Stream = Stream
    module.Event = Event

    @public
    def current_stream(device=None):
        return torch._C._accelerator_getStream(index_of(device))

    @public
    def default_stream(device=None):
        return torch.Stream(stream_id=0, device_index=index_of(device), device_type=torch._C._autograd.DeviceType.PrivateUse1.value)

    @public
    def set_stream(stream):
        if stream is not None:
            torch._C._accelerator_setStream(stream)

    @public
    @contextlib.contextmanager
    def stream(stream):
        if stream is None:
            yield
            return
        with stream:
            yield

    # -- random numbers ------------------------------------------------------------------------------------------------------
    def generator(device):
        _lazy_init()
        return default_generators[index_of(device)]

    class _Generators:
        """One default generator per device, made when asked for."""

        def __len__(self):
            return extension.device_count()

        def __getitem__(self, index):
            if not -len(self) <= index < len(self):
                raise IndexError(f"fl_device: there are {len(self)} devices, index {index} is none of them")
            return torch.ops.torch_fl.default_generator(index % len(self))

    default_generators = _Generators()
    module.default_generators = default_generators

    @public
    def manual_seed(seed):
        seed = int(seed)
        if not _register.in_bad_fork():
            generator(None).manual_seed(seed)

    @public
    def manual_seed_all(seed):
        if not _register.in_bad_fork():
            extension.seed_all(int(seed) & 0xFFFFFFFFFFFFFFFF)

    @public
    def seed():
        return generator(None).seed()

    @public
    def seed_all():
        value = int(torch.empty((), dtype=torch.int64).random_().item())
        manual_seed_all(value)
        return value

    @public
    def initial_seed():
        return generator(None).initial_seed()

    @public
    def get_rng_state(device="fl_device"):
        return generator(device).get_state()

    @public
    def set_rng_state(new_state, device="fl_device"):
        generator(device).set_state(new_state)

    @public
    def get_rng_state_all():
        return [get_rng_state(i) for i in range(extension.device_count())]

    @public
    def set_rng_state_all(new_states):
        for i, state in enumerate(new_states):
            set_rng_state(state, i)

    # -- memory ----------------------------------------------------------------------------------------------------------------
    def stats(device):
        return extension.memory_stats(index_of(device))

    def figure(name, key):
        def read(device=None):
            return stats(device)[key]

        read.__name__ = name
        public(read)

    figure("memory_allocated", "allocated")
    figure("max_memory_allocated", "allocated_peak")
    figure("memory_reserved", "reserved")
    figure("max_memory_reserved", "reserved_peak")

    @public
    def memory_stats(device=None):
        s = stats(device)
        out = dict(s)
        for key in ("allocated", "reserved", "requested"):
            out[f"{key}_bytes.all.current"] = s[key]
            out[f"{key}_bytes.all.peak"] = s[key + "_peak"]
        out["num_ooms"] = s["n_out_of_memory"]
        out["num_alloc_retries"] = s["n_retries"]
        return out

    @public
    def reset_peak_memory_stats(device=None):
        extension.reset_peaks(index_of(device))

    @public
    def reset_accumulated_memory_stats(device=None):
        index_of(device)

    @public
    def mem_get_info(device=None):
        index = index_of(device)
        extension.open_device(index)
        s = stats(index)
        return (s["device_free"], s["device_total"])

    @public
    def memory_summary(device=None, abbreviated=False):
        from ._reports import memory_summary as summary

        return summary(index_of(device))

    @public
    def empty_cache():
        for i in range(extension.device_count()):
            extension.trim(i)

    @public
    def ipc_collect():
        """Nothing is shared between processes, so there is nothing to collect."""

    # -- mixed precision -----------------------------------------------------------------------------------------------------
    @public
    def get_amp_supported_dtype():
        return [torch.float16, torch.bfloat16]

    @public
    def is_bf16_supported(including_emulation=True):
        return True

    @public
    def is_autocast_enabled():
        return torch.is_autocast_enabled("fl_device")

    @public
    def set_autocast_enabled(enabled):
        torch.set_autocast_enabled("fl_device", enabled)

    @public
    def get_autocast_dtype():
        return torch.get_autocast_dtype("fl_device")

    @public
    def set_autocast_dtype(dtype):
        torch.set_autocast_dtype("fl_device", dtype)

    @public
    def is_current_stream_capturing():
        return False

    return module
