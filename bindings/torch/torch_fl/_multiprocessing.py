"""Tensors of the device in queues, pipes and pools between processes: their values travel through shared host memory.

Two processes share no memory of a chip, so the receiver gets a copy on the device of the same index, and views of one storage
become separate tensors. Without this the sender's helper thread fails in torch's reducer and the receiver waits for ever.
"""

from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler

NAME = "fl_device"


def _tensor(values, device, requires_grad, kind):
    import torch

    tensor = values.to(device)
    if kind is torch.nn.Parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad) if requires_grad else tensor


def _storage(values, device):
    return values.to(device=device)


def _settle(device):
    """What any stream still writes belongs to the values; the thread that pickles has streams of its own."""
    import torch_fl

    torch_fl.synchronize(device)


def _on_host(values):
    """A process that is being spawned gets the descriptor of shared memory only when everything is pickled: it must live until then."""
    popen = get_spawning_popen()
    if popen is not None:
        vars(popen).setdefault("fl_device_values", []).append(values)
    return values


def install():
    import torch
    from torch.multiprocessing import reductions

    def reduce_tensor(tensor):
        if tensor.device.type != NAME or tensor.layout != torch.strided:       # sparse ones are taken apart by torch
            return reductions.reduce_tensor(tensor)
        if tensor.requires_grad and not tensor.is_leaf:
            return reductions.reduce_tensor(tensor)                            # refused there, in torch's words
        torch.utils.hooks.warn_if_has_hooks(tensor)
        _settle(tensor.device)
        kind = torch.nn.Parameter if isinstance(tensor, torch.nn.Parameter) else torch.Tensor
        return _tensor, (_on_host(tensor.detach().cpu()), tensor.device, tensor.requires_grad, kind)

    def reduce_storage(storage):
        if storage.device.type != NAME:
            return reductions.reduce_storage(storage)
        _settle(storage.device)
        return _storage, (_on_host(storage.cpu()), storage.device)

    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)
