"""Lets chips and autograd's device threads come to rest before the interpreter ends.

A chip with queues of its own may still be busy when the last line has run, and so may its driver: PoCL compiles a kernel in the thread
that runs it. exit() destroys the statics of such libraries under the running thread, which then crashes the process.

backward() returns when the gradients are there; the engine's thread of the device may then still be dropping what it held, for
which it needs the interpreter. A thread that asks for a Python that has ended is ended inside a destructor, and the process
dies with "terminate called without an active exception" (CPython before 3.14, PyThread_exit_thread). Sleeping gives the
interpreter away, so such a thread finishes.
"""

import atexit
import pathlib
import time

from . import _C

_LONGEST_CHIPS_S = 30.0      # a chip that hangs; the library has its own limit after that, and ends the process without the driver
_LONGEST_ENGINE_S = 2.0


def _busy():
    """Whether an engine thread of this process is running, by the kernel's word."""
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            if not (task / "comm").read_text().startswith("pt_autograd"):
                continue
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
        except OSError:  # the thread ended meanwhile
            continue
    return False


def _rest():
    end = time.monotonic() + _LONGEST_CHIPS_S
    while _C.any_stream_busy() and time.monotonic() < end:
        time.sleep(0.001)
    try:
        names = [(task / "comm").read_text() for task in pathlib.Path("/proc/self/task").iterdir()]
    except OSError:
        return
    if not any(name.startswith("pt_autograd") for name in names):
        return
    end = time.monotonic() + _LONGEST_ENGINE_S
    calm = 0
    while calm < 3 and time.monotonic() < end:
        time.sleep(0.003)
        calm = 0 if _busy() else calm + 1


atexit.register(_rest)
