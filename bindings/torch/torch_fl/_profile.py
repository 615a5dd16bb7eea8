"""profile_operators: which route each operator of a model would take, and why, without touching the chip."""


def profile_operators(model, input_shape=None, example_inputs=None, device=None):
    raise NotImplementedError("torch_fl.profile_operators: not built yet")
