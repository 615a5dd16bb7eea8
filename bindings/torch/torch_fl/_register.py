"""Makes ``fl_device`` known to torch: the device module, tensor and module methods, printing, DLPack, fork, what activate kept."""

import os
import sys

NAME = "fl_device"
_forked = False


def in_bad_fork():
    return _forked


def register(extension):
    import torch
    from torch.utils import backend_registration

    # The C++ side has told torch the name already; this makes torch's Python side agree.
    backend_registration.rename_privateuse1_backend(NAME)
    from . import _module

    module = _module.make(extension)
    if not hasattr(torch, NAME):
        torch._register_device_module(NAME, module)
    sys.modules[f"torch.{NAME}"] = module
    backend_registration.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    _print_on_host()
    _swap_on_host()
    _export_dlpack()
    extension.set_inner_folders([os.path.dirname(module.__file__) + os.sep for module in (torch, sys.modules[__package__])])
    os.register_at_fork(after_in_child=lambda: _after_fork(extension))
    from . import _choice, _multiprocessing

    _multiprocessing.install()
    _choice.offer_kept(extension)


def _after_fork(extension):
    global _forked
    _forked = any(extension.is_open(i) for i in range(64))


def _print_on_host():
    """Formatting computes (abs, min, max, float64): on the host it needs nothing of the chip."""
    from torch import _tensor_str

    original = _tensor_str._tensor_str

    def tensor_str(self, indent):
        return original(self.detach().cpu() if self.device.type == NAME else self, indent)

    tensor_str.__wrapped__ = original
    _tensor_str._tensor_str = tensor_str


def _swap_on_host():
    """torch swaps the bytes where the storage's pointer points, on any device: here that is no memory of the host."""
    import torch

    original = torch.UntypedStorage.byteswap

    def byteswap(self, dtype):
        if self.device.type != NAME:
            return original(self, dtype)
        host = self.cpu()
        original(host, dtype)
        self.copy_(host)

    byteswap.__wrapped__ = original
    torch.UntypedStorage.byteswap = byteswap


def _export_dlpack():
    """torch answers only for the name "privateuse1"; a renamed backend is (kDLExtDev, index) all the same."""
    import torch

    original = torch.Tensor.__dlpack_device__

    def dlpack_device(self):
        if type(self) is torch.Tensor and self.device.type == NAME:
            from torch.utils.dlpack import DLDeviceType

            return (DLDeviceType.kDLExtDev, self.device.index or 0)
        return original(self)

    dlpack_device.__wrapped__ = original
    torch.Tensor.__dlpack_device__ = dlpack_device
