"""What torch.utils.checkpoint must know to compute again on several chips.

The form that is not reentrant enters the device scope again by itself, and both save random states, but only of the chips on which
arguments lie. A function that crosses to another chip would draw other numbers the second time: wrong gradients, no message.
The reentrant form forgets the scope. Both are mended at the first scope or placement, not at import.
"""

import functools

from . import _C

_done = False


def know_chips():
    global _done
    if _done:
        return
    _done = True
    from torch.utils import checkpoint

    states_of_arguments = checkpoint.get_device_states

    @functools.wraps(states_of_arguments)
    def get_device_states(*args):
        indices, states = states_of_arguments(*args)
        if checkpoint._infer_device_type(*args) == "fl_device":
            import torch

            for index in range(_C.device_count()):
                if index not in indices and _C.is_open(index):
                    indices.append(index)
                    states.append(torch.fl_device.get_rng_state(index))
        return indices, states

    checkpoint.get_device_states = get_device_states

    reentrant = checkpoint.CheckpointFunction.forward

    @functools.wraps(reentrant)
    def forward(ctx, run_function, preserve_rng_state, *args):
        from ._scope import current_scope

        scope = current_scope()
        if scope is None:
            return reentrant(ctx, run_function, preserve_rng_state, *args)

        def in_scope(*inputs):
            with scope:
                return run_function(*inputs)

        return reentrant(ctx, in_scope, preserve_rng_state, *args)

    checkpoint.CheckpointFunction.forward = staticmethod(forward)
