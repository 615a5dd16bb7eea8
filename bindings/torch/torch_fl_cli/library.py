"""libflhal without torch: the few calls the command line needs, by ctypes."""

import ctypes
import json
import os
import pathlib

TEXT_FN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_char), ctypes.c_uint64)


class FlhalError(RuntimeError):
    """A call of libflhal failed; the text names cause and remedy."""


def package_folder() -> pathlib.Path:
    """The installed torch_fl folder (lib, include, share/cmake), found without importing torch_fl."""
    return pathlib.Path(__file__).absolute().parent.parent / "torch_fl"   # not resolved: a build tree links the files of this package


def library_path() -> pathlib.Path:
    return package_folder() / "lib" / "libflhal.so.1"


class Library:
    """One loaded libflhal. Threads: any."""

    def __init__(self) -> None:
        path = library_path()
        if not path.exists():
            raise FlhalError(f"libflhal is missing at {path}; run: pip install --force-reinstall torch-fl")
        self._lib = ctypes.CDLL(str(path))
        self._lib.flhal_report.argtypes = [ctypes.c_char_p, TEXT_FN, ctypes.c_void_p]
        self._lib.flhal_last_error.argtypes = [ctypes.c_char_p, ctypes.c_uint64, ctypes.c_void_p]
        self._lib.flhal_device_find.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32)]
        self._lib.flhal_version.restype = ctypes.c_uint32
        self._lib.flhal_device_count.restype = ctypes.c_uint32
        if not any(os.environ.get(prefix + "LOG_LEVEL") for prefix in ("FLHAL_", "TORCH_FL_")):
            self._lib.flhal_config_set(b"log_level", b"error")  # what would be logged is printed, with its remedy

    def last_error(self) -> str:
        text = ctypes.create_string_buffer(16384)
        self._lib.flhal_last_error(text, len(text), None)
        return text.value.decode("utf-8", "replace")

    def _check(self, status: int) -> None:
        if status < 0:
            raise FlhalError(self.last_error())

    def version(self) -> tuple[int, int]:
        """(major, minor) of the application ABI."""
        packed = self._lib.flhal_version()
        return packed >> 16, packed & 0xFFFF

    def device_count(self) -> int:
        """Counts and freezes the device list."""
        return self._lib.flhal_device_count()

    def device_find(self, name: str) -> int:
        """The index of a device name. Errors: FlhalError that lists the valid names."""
        index = ctypes.c_uint32()
        self._check(self._lib.flhal_device_find(name.encode(), ctypes.byref(index)))
        return index.value

    def report(self, which: str):
        """A report of flhal_report, parsed."""
        parts: list[bytes] = []
        receive = TEXT_FN(lambda _context, text, n: parts.append(ctypes.string_at(text, n)))
        self._check(self._lib.flhal_report(which.encode(), receive, None))
        return json.loads(b"".join(parts))
