"""Training split over two makers' chips in one process: the processor and an OpenCL device."""

import pathlib

import pytest

from conftest import plugin_library

pytest.importorskip("transformers")


@pytest.mark.plugins("host")
def test_twenty_steps_over_the_processor_and_an_opencl_device(fresh):
    """The cases of test_split_training, whose chips are those with index 0 and 1."""
    library = plugin_library("opencl")
    if library is None:
        pytest.skip("the OpenCL plugin was not built")
    out = fresh(
        f"""
        import sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
        import torch_fl
        if len({{d.plugin for d in torch_fl.devices()[:2]}}) < 2:
            print('one maker:', torch_fl.devices()); raise SystemExit(0)
        import test_split_training as cases
        for name in cases.MODELS:
            for optimizer in ('SGD', 'Adam'):
                cases.test_twenty_steps_with_placed_halves(None, name, optimizer)
            cases.test_twenty_steps_with_scopes(None, name, 'Adam')
            cases.test_twenty_steps_with_activation_checkpointing(None, name, False)
        for how in ('place', 'scope'):
            cases.test_channels_last_through_a_split_model_keeps_values_and_strides(None, how)
        print('all right')
        """,
        env={"FLHAL_PLUGIN_FILES": f"{plugin_library('host')}:{library}"},
        timeout=400,
    ).ok().out
    if "one maker" in out:
        pytest.skip("the OpenCL plugin finds no device on this machine")
    assert "all right" in out
