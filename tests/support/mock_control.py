# tests/support/mock_control.py: the mock plugin's control table for Python tests, through ctypes.
#
#   mock = MockControl(path_of_libflhal_plugin_mock_so)      # the path that core loads
#   with mock.held(): ...                                    # workers do nothing
#   mock.script("delay_ms=5"); mock.counts()["launches"]
import contextlib
import ctypes

COUNTS = (
    "live_devices live_slabs live_slab_bytes live_streams live_events live_modules live_plans live_host_views copies fills "
    "launches plan_runs plan_creates declines records waits bytes_to_device bytes_to_host bytes_on_device bytes_filled queued misuse"
).split()
ALL_DEVICES = 0xFFFFFFFF


class _Control(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("script", ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p)),
        ("hold", ctypes.CFUNCTYPE(None)),
        ("release", ctypes.CFUNCTYPE(None)),
        ("step", ctypes.CFUNCTYPE(None, ctypes.c_uint32)),
        ("counts", ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_uint64)),
        ("lose", ctypes.CFUNCTYPE(None, ctypes.c_uint32)),
        ("inside", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint64)),
    ]


class _PluginInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("struct_type", ctypes.c_uint32),
        ("next", ctypes.c_void_p),
        ("abi_minor", ctypes.c_uint32),
        ("oldest_host_minor", ctypes.c_uint32),
        ("id", ctypes.c_char_p),
        ("version", ctypes.c_char_p),
        ("build_id", ctypes.c_char_p),
        ("vendor", ctypes.c_char_p),
        ("flags", ctypes.c_uint32),
        ("sanitizer", ctypes.c_uint32),
        ("table", ctypes.c_void_p),
        ("optional_table", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint32)),
    ]


class MockControl:
    def __init__(self, library_path):
        self._library = ctypes.CDLL(str(library_path))
        info = _PluginInfo(struct_size=ctypes.sizeof(_PluginInfo), struct_type=3)
        if self._library.flhal_plugin_v1(None, ctypes.byref(info)) != 0:
            raise RuntimeError(f"{library_path}: flhal_plugin_v1 failed")
        table = info.optional_table(b"x.mock.control", 1)
        if not table:
            raise RuntimeError(f"{library_path} has no table x.mock.control: it is not the mock plugin")
        self._control = ctypes.cast(table, ctypes.POINTER(_Control)).contents

    def script(self, text):
        """Replaces the script; None: the environment's."""
        if self._control.script(None if text is None else text.encode()) != 0:
            raise ValueError(f"mock script does not parse: {text}")

    def hold(self):
        self._control.hold()

    def release(self):
        self._control.release()

    def step(self, n=1):
        self._control.step(n)

    @contextlib.contextmanager
    def held(self):
        self.hold()
        try:
            yield self
        finally:
            self.release()

    def counts(self, chip=ALL_DEVICES):
        """A dict of numbers; chip 0 is chip_a, 1 is chip_b."""
        values = (ctypes.c_uint64 * len(COUNTS))()
        self._control.counts(chip, values, ctypes.sizeof(values))
        return dict(zip(COUNTS, values))

    def lose(self, chip=ALL_DEVICES):
        self._control.lose(chip)
