"""TORCH_FL_VISIBLE_DEVICES and FLHAL_VISIBLE_DEVICES: which chips there are, and in which order, for Python and for C alike."""

import ctypes
import os
import pathlib

import pytest

from conftest import REPOSITORY, package_root, plugin_library

SCRIPT = """
import torch, torch_fl
print([str(d) for d in torch_fl.devices()])
for i in range(torch_fl.device_count()):
    print(torch.ones(2, device=f'fl_device:{i}').sum().item())
try: print('index', int(torch_fl.device('%s').__enter__()))
except RuntimeError as error: print('error:', error)
"""


def several(*names):
    libraries = [plugin_library(n) for n in names]
    return ":".join(str(path) for path in libraries)


def seen(fresh, visible, ask="chip_b", variable="TORCH_FL_VISIBLE_DEVICES", plugins=("mock", "ram"), **more):
    env = {"FLHAL_PLUGIN_FILES": several(*plugins), variable: visible, **more}
    return fresh(SCRIPT % ask, env=env).ok().out.splitlines()


@pytest.mark.parametrize(
    "visible, devices, index",
    [
        ("chip_b,ram", ["chip_b", "ram"], 0),
        ("ram, chip_b ,chip_a", ["ram", "chip_b", "chip_a"], 1),
        ("ram:0,chip_b:0", ["ram", "chip_b"], 1),
        ("mock/chip_b,ram/ram", ["chip_b", "ram"], 0),
        ("1,2", ["chip_b", "ram"], 0),
        ("uuid:6d6f636b-2d63-6869-702d-622d30303031", ["chip_b"], 0),       # "mock-chip-b-0001"
    ],
)
def test_filters_orders_and_names_in_every_form(fresh, visible, devices, index):
    out = seen(fresh, visible, variable="FLHAL_VISIBLE_DEVICES" if "/" in visible or "uuid" in visible else "TORCH_FL_VISIBLE_DEVICES")
    assert out[0] == str(devices) and out[-1] == f"index {index}"
    assert out[1:-1] == ["2.0"] * len(devices)           # each works under its new index


def test_FLHAL_wins_over_TORCH_FL(fresh):
    assert seen(fresh, "ram", variable="TORCH_FL_VISIBLE_DEVICES", FLHAL_VISIBLE_DEVICES="chip_b")[0] == "['chip_b']"


@pytest.mark.parametrize("wrong", ["chip_z", "chip_b:1", "gpu/chip_b", "uuid:00000000-0000-0000-0000-000000000001", "7", "chip_b,chip_b"])
def test_a_name_that_is_wrong_is_an_error_that_lists_the_valid_ones(fresh, wrong):
    out = seen(fresh, wrong)
    assert out[0] == "[]" and out[-1].startswith("error:")
    listed = "once" if wrong == "chip_b,chip_b" else "uuid:" if wrong.startswith("uuid") else "3 devices" if wrong == "7" else "chip_a, chip_b, ram"
    assert listed in out[-1] and "visible_devices" in out[-1]


def test_hidden_chips_are_not_reachable_by_any_name(fresh):
    script = """
    import torch_fl
    for ask in ('chip_a', 'mock/chip_a', 'fl_device:1', 1, 'uuid:6d6f636b-2d63-6869-702d-612d30303031'):
        try:
            with torch_fl.device(ask): print('reached', ask)
        except RuntimeError as error: print('error')
    """
    env = {"FLHAL_PLUGIN_FILES": several("mock", "ram"), "TORCH_FL_VISIBLE_DEVICES": "chip_b"}
    assert fresh(script, env=env).ok().out.split() == ["error"] * 5


def hostile(kind):
    roots = [pathlib.Path(os.environ["FLHAL_TEST_BUILD"]).parent] if os.environ.get("FLHAL_TEST_BUILD") else list(REPOSITORY.glob("build/*"))
    for root in roots:
        path = root / "tests" / "hostile.d" / f"libflhal_plugin_{kind}.so"
        if path.exists():
            return path
    pytest.skip("the kit of hostile plugins was not built: it holds two plugins whose chips have one name")


def test_one_chip_name_of_two_plugins_is_told_apart_by_the_plugin(fresh):
    both = f"{hostile('error_in_alloc')}:{hostile('throws_in_copy')}:{plugin_library('ram')}"
    script = """
    import torch_fl
    print([str(d) for d in torch_fl.devices()])
    for name in ('badchip', 'throws_in_copy/badchip', 'ram'):
        try:
            with torch_fl.device(name) as chip: print(int(chip), chip)
        except RuntimeError as error: print('error:', error)
    """
    out = fresh(script, env={"FLHAL_PLUGIN_FILES": both}).ok().out.splitlines()
    names = ["error_in_alloc/badchip", "throws_in_copy/badchip", "ram"]
    assert sorted(eval(out[0])) == sorted(names)  # noqa: S307: our own print
    assert out[1].startswith("error:") and "error_in_alloc/badchip, throws_in_copy/badchip" in out[1]
    assert out[2].endswith(" throws_in_copy/badchip") and out[3].endswith(" ram")
    chosen = fresh(script, env={"FLHAL_PLUGIN_FILES": both, "TORCH_FL_VISIBLE_DEVICES": "throws_in_copy/badchip,ram"}).ok().out.splitlines()
    assert chosen[0] == str(names[1:]) and chosen[2] == "0 throws_in_copy/badchip"
    ambiguous = fresh(script, env={"FLHAL_PLUGIN_FILES": both, "TORCH_FL_VISIBLE_DEVICES": "badchip"}).ok().out.splitlines()
    assert ambiguous[0] == "[]" and "say which" in ambiguous[1]


@pytest.mark.parametrize("visible", ["ram,chip_b", "chip_b", "chip_z", ""])
def test_C_and_Python_see_the_same(fresh, visible):
    """The C library alone, through ctypes in a process that has no torch."""
    library = next(iter(sorted((package_root() or REPOSITORY).parents[1].rglob("libflhal.so.1"))), None) if package_root() else None
    if library is None:
        import torch_fl

        library = next(iter(pathlib.Path(torch_fl.__file__).parent.rglob("libflhal.so.1")), None)
    assert library is not None and ctypes
    script = f"""
    import ctypes, json
    flhal = ctypes.CDLL({str(library)!r})
    text = []
    take = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint64)(lambda ctx, piece, n: text.append(piece[:n]))
    assert flhal.flhal_report(b'devices', take, None) == 0
    print([d['name'] for d in json.loads(b''.join(text))['devices']])
    """
    env = {"FLHAL_PLUGIN_FILES": several("mock", "ram"), "TORCH_FL_VISIBLE_DEVICES": visible}
    in_c = fresh(script, env=env).ok().out.splitlines()[0]
    assert in_c == fresh("import torch_fl; print([str(d) for d in torch_fl.devices()])", env=env).ok().out.splitlines()[0]
