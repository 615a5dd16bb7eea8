"""Chips: finding, naming, choosing and waiting for them."""

import uuid as _uuid

from . import _C

_DTYPES = None


def _dtype_table():
    """flhal's dtype numbers (DLPack code | bits << 8 | lanes << 16) to torch dtypes."""
    global _DTYPES
    if _DTYPES is None:
        import torch

        rows = {
            (0, 8): "int8", (0, 16): "int16", (0, 32): "int32", (0, 64): "int64",
            (1, 8): "uint8", (1, 16): "uint16", (1, 32): "uint32", (1, 64): "uint64",
            (2, 16): "float16", (2, 32): "float32", (2, 64): "float64", (4, 16): "bfloat16",
            (5, 32): "complex32", (5, 64): "complex64", (5, 128): "complex128", (6, 8): "bool",
            (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz", (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz",
        }  # fmt: skip
        _DTYPES = {code | bits << 8 | 1 << 16: getattr(torch, name) for (code, bits), name in rows.items()}
    return _DTYPES


class Device(int):
    """One chip. Prints as its name and is its index: usable wherever torch takes a device or an index."""

    def __new__(cls, device):
        index = index_of(device)
        self = super().__new__(cls, index)
        self._info = _C.device_info(index)
        return self

    @property
    def index(self):
        return int(self)

    @property
    def name(self):
        return self._info["name"]

    @property
    def uuid(self):
        return str(_uuid.UUID(bytes=self._info["uuid"]))

    @property
    def plugin(self):
        return self._info["plugin"]

    @property
    def product(self):
        return self._info["product"]

    @property
    def vendor(self):
        return self._info["vendor"]

    @property
    def memory(self):
        """Bytes of memory of the chip."""
        return self._info["memory_bytes"]

    @property
    def capability(self):
        """The maker's compute capability, "7.5"; "" when it has none."""
        return self._info["compute_capability"]

    @property
    def dtypes(self):
        """The torch dtypes that the chip can store."""
        table = _dtype_table()
        stored = self._info["storage_dtypes"]
        return tuple(table[n] for n in stored if n in table) if stored else tuple(table.values())

    @property
    def routes(self):
        """How operators can run here, best first."""
        routes = ["native"] if self._info["has_ops"] else []
        routes += ["kernel"] if self._info["has_kernels"] else []
        return tuple(routes + ["composite", "host", "fallback"])

    @property
    def torch_device(self):
        import torch

        return torch.device("fl_device", int(self))

    def __str__(self):
        return self.name

    def __repr__(self):
        return self.name

    def __format__(self, spec):
        return format(self.name, spec)

    def __reduce__(self):
        return (_device_by_name, (self.name,))


def _device_by_name(name):
    return Device(_C.find_device(name))


def index_of(device):
    """The index of what a user may give: None (current), index, Device, name, "fl_device:1", torch.device."""
    import torch

    if device is None:
        return _C.current_device()
    if isinstance(device, str):
        if device == "fl_device":
            return _C.current_device()
        if device.startswith("fl_device:"):
            device = torch.device(device)
        else:
            return _C.find_device(device)
    if isinstance(device, torch.device):
        if device.type != "fl_device":
            raise ValueError(f"torch_fl: expected a device of type fl_device, got {device}")
        return _C.current_device() if device.index is None else device.index
    if isinstance(device, bool) or not hasattr(device, "__index__"):
        raise TypeError(f"torch_fl: expected a device name, an index, a torch_fl.Device or a torch.device, got {device!r}")
    return device.__index__()


def is_available():
    """True when at least one chip was found. Never raises."""
    try:
        return _C.device_count() > 0
    except RuntimeError:
        return False


def device_count():
    return _C.device_count()


def devices():
    """All chips, in the order of their indices."""
    return [Device(i) for i in range(_C.device_count())]


def current_device():
    """The chip that tensors of this thread go to when no index is named."""
    return Device(_C.current_device())


def synchronize(device=None):
    """Waits for all work of the chip; the first failure of that work is raised here."""
    _C.synchronize(index_of(device))


def clear_error(device=None):
    """Makes a chip usable again after a failed operator or after it was lost. Does nothing where nothing failed.

    After a failed operator its streams go on, and what the failed work should have written is undefined. A chip that was lost is
    opened anew: tensors that lie on it stay invalid, and using one is an error; new ones work.
    """
    _C.clear_errors(index_of(device))


def activate(device, keep=False):
    """Makes a chip the process's default, while running: new tensors on 'fl_device' go there, old ones stay where they are.

    keep=True remembers it by name and uuid for later processes of this user; TORCH_FL_DEVICE overrides that.
    """
    chosen = Device(index_of(device))
    _C.set_default_device(int(chosen))
    if keep:
        from . import _choice

        try:
            _choice.keep(chosen.name, chosen.uuid)
        except OSError as error:
            raise OSError(error.errno, f"torch_fl.activate: {chosen} is the default of this process, but {error.strerror or error}") from None
    return chosen
