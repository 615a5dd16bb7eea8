"""Every setting: its environment variable under both names, its set_ and get_, its refusal, and that it takes effect."""

import json
import re

import pytest
import torch
import torch_fl

# setting: (a value, another one, as the getter gives the first, one that does not parse, what the refusal lists)
SETTINGS = {
    "fallback_policy": ("strict", "warn", "strict", "sometimes", "auto, warn or strict"),
    "fallback_threshold": ("0.5", "0.25", 0.5, "2", "a number from 0.0 to 1.0"),
    "memory_pool_size": ("8GiB", "70%", "8GiB", "many", "0.7 or 70%, or bytes with a unit like 512MiB or 8GiB"),
    "async_level": ("0", "2", 0, "two", "0, 1 or 2"),
    "log_level": ("error", "info", "error", "loud", "error, warn, info or debug"),
}


def answer(fresh, script, **env):
    return fresh("import torch, torch_fl\n" + script, env=env).ok().out.strip()


@pytest.mark.parametrize("name", SETTINGS)
def test_FALL_05_environment_gives_the_first_value_and_FLHAL_wins(fresh, name):
    value, other, seen, _, _ = SETTINGS[name]
    script = f"print(repr(torch_fl.get_{name}()))"
    torch_name, c_name = "TORCH_FL_" + name.upper(), "FLHAL_" + name.upper()
    assert answer(fresh, script, **{torch_name: value}) == repr(seen)
    assert answer(fresh, script, **{torch_name: other, c_name: value}) == repr(seen)
    assert answer(fresh, script, **{torch_name: value, c_name: ""}) == repr(seen)


@pytest.mark.parametrize("name", SETTINGS)
def test_FALL_05_setters_read_back_and_refuse_with_the_valid_values(dev, name):
    value, _, seen, bad, valid = SETTINGS[name]
    get, put = getattr(torch_fl, "get_" + name), getattr(torch_fl, "set_" + name)
    before = get()
    try:
        put(value)
        assert get() == seen
        with pytest.raises(ValueError) as refusal:
            put(bad)
        assert f"'{bad}'" in str(refusal.value) and valid in str(refusal.value)
        assert get() == seen
    finally:
        put(before)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_variable_that_does_not_parse_is_told_at_first_use_and_import_works(fresh, name):
    _, other, _, bad, valid = SETTINGS[name]
    out = answer(
        fresh,
        f"""
assert torch_fl.is_available() and torch.ones(2).sum() == 2
try: torch.ones(2, device='fl_device')
except RuntimeError as error: print(error)
torch_fl.set_{name}({other!r})
assert torch.ones(2, device='fl_device').cpu().tolist() == [1, 1]
""",
        **{"TORCH_FL_" + name.upper(): bad},
    )
    assert f"TORCH_FL_{name.upper()}='{bad}' does not parse" in out and valid in out


def test_the_defaults_are_the_documented_ones(fresh):
    out = answer(
        fresh,
        "print(torch_fl.get_fallback_policy(), torch_fl.get_fallback_threshold(), torch_fl.get_memory_pool_size(), "
        "torch_fl.get_async_level(), torch_fl.get_log_level(), repr(torch_fl.get_plugin_path()))",
    )
    assert out == "auto 0.1 50% 1 warn ''"


# -- what each one does -------------------------------------------------------------------------------------------------


def test_threshold_warns_once_with_the_worst_operators(fresh):
    r = fresh(
        """
        import torch, torch_fl
        x = torch.rand(8).to('fl_device')
        for _ in range(150): torch.special.i1e(x)
        for _ in range(20): torch.special.i0e(x)
        """,
        env={"TORCH_FL_FALLBACK_THRESHOLD": "0.5"},
    ).ok()
    lines = [line for line in r.err.splitlines() if "left the chip" in line]
    assert len(lines) == 1 and "above fallback_threshold 0.5" in lines[0] and "worst: aten::special_i1e.out (" in lines[0]
    quiet = fresh(
        "import torch, torch_fl\ntorch_fl.set_fallback_threshold(1.0)\nx = torch.rand(8).to('fl_device')\n"
        "for _ in range(150): torch.special.i1e(x)"
    ).ok()
    assert "left the chip" not in quiet.err


def test_warn_names_each_operator_once(fresh):
    script = """
    import torch, torch_fl
    x = torch.rand(8).to('fl_device')
    for _ in range(3): torch.special.i1e(x); torch.special.i0e(x)
    """
    err = fresh(script, env={"TORCH_FL_FALLBACK_POLICY": "warn"}).ok().err
    assert err.count("aten::special_i1e.out leaves") == 1 and err.count("aten::special_i0e.out leaves") == 1
    assert "leaves" not in fresh(script).ok().err


def test_log_level_debug_prints_every_operators_route(fresh):
    script = """
    import torch, torch_fl
    torch_fl.set_log_level('debug')
    x = torch.rand(8).to('fl_device')
    (x + x).exp(); torch.special.i1e(x)
    """
    err = fresh(script).ok().err
    for op in ("add on chip: ", "exp on chip: ", "aten::special_i1e.out on chip: fallback (no kernel"):
        lines = [line for line in err.splitlines() if "debug: " in line and op in re.sub("on [a-z_]+", "on chip", line)]
        assert len(lines) == 1, err
        assert any(route in lines[0] for route in ("native", "kernel", "host", "fallback"))


def test_log_level_info_gives_a_summary_at_the_end(fresh):
    script = "import torch, torch_fl\nx = torch.rand(8).to('fl_device'); (x + x); torch.special.i1e(x)"
    err = fresh(script, env={"TORCH_FL_LOG_LEVEL": "info"}).ok().err
    assert err.count("calls by route") == 1 and "special_i1e" in err
    assert "calls by route" not in fresh(script).ok().err


@pytest.mark.parametrize("text,share", [("0.25", 0.25), ("25%", 0.25), ("1GiB", None)])
def test_pool_size_is_a_ceiling_that_holds_while_running(fresh, text, share):
    out = answer(
        fresh,
        f"""
total = torch_fl.current_device().memory
torch_fl.set_memory_pool_size({text!r})
limit = torch_fl._C.memory_stats(0)['limit'] if torch.ones(1, device='fl_device') is not None else 0
want = {share!r} * total if {share!r} else 1 << 30
assert abs(limit - want) <= 1 << 21, (limit, want)
assert torch.fl_device.memory_reserved() < 1 << 30           # a ceiling, not a preallocation
try: torch.empty(int(limit) + 1, dtype=torch.uint8, device='fl_device')
except torch.OutOfMemoryError as error: print(error)
torch_fl.set_memory_pool_size('64MiB', device=0)
assert torch_fl.get_memory_pool_size(device=0) != torch_fl.get_memory_pool_size()
try: torch.empty(65 << 20, dtype=torch.uint8, device='fl_device'); print('too much')
except torch.OutOfMemoryError as error: print('one chip', error)
""",
    )
    assert "limit" in out and "one chip" in out and "too much" not in out


def test_async_level_0_finishes_before_it_returns(fresh, plugin):
    if plugin != "mock":
        pytest.skip("needs a chip that can be told to be late")
    script = """
    import time, torch, torch_fl
    x = torch.ones(8).to('fl_device'); torch_fl.synchronize()
    y = x + x
    print(torch.accelerator.current_stream().query())
    """
    late = {"FLHAL_MOCK": "delay_ms=300"}
    assert fresh(script, env={**late, "TORCH_FL_ASYNC_LEVEL": "0"}).ok().out.strip() == "True"
    assert fresh(script, env={**late, "TORCH_FL_ASYNC_LEVEL": "1"}).ok().out.strip() == "False"


def test_plugin_path_by_environment_and_by_setter_before_the_first_use(fresh, plugin):
    import conftest

    library = str(conftest.plugin_library(plugin))
    free = {"FLHAL_PLUGIN_FILES": "", "TORCH_FL_PLUGIN_FILES": ""}
    count = "print(torch_fl.device_count() > 0, torch_fl.get_plugin_path())"
    assert answer(fresh, count, TORCH_FL_PLUGIN_PATH=library, **free) == f"True {library}"
    assert answer(fresh, count, FLHAL_PLUGIN_PATH=library, TORCH_FL_PLUGIN_PATH="/nowhere", **free) == f"True {library}"
    assert answer(fresh, f"torch_fl.set_plugin_path([{library!r}])\n{count}", **free) == f"True {library}"
    late = answer(
        fresh, "torch_fl.device_count()\ntry: torch_fl.set_plugin_path('/x')\nexcept ValueError as error: print(error)", **free
    )
    assert "plugin_path is read at the first device count" in late


@pytest.mark.parametrize("name", ["PLUGIN_FILES", "ADD_PLUGIN_FILES"])
def test_plugin_files_under_both_names_and_FLHAL_wins(fresh, plugin, name):
    import conftest

    library = str(conftest.plugin_library(plugin))
    free = {"FLHAL_PLUGIN_FILES": "", "TORCH_FL_PLUGIN_FILES": ""}
    script = "import json; print(any(p['path'] == %r for p in json.loads(torch_fl._C.report('load'))['plugins']))" % library
    script = "torch_fl.device_count()\n" + script
    assert answer(fresh, script, **{**free, "TORCH_FL_" + name: library}) == "True"
    assert answer(fresh, script, **{**free, "FLHAL_" + name: library, "TORCH_FL_" + name: "/nowhere"}) == "True"
    assert answer(fresh, script, **{**free, "FLHAL_" + name: "/nowhere", "TORCH_FL_" + name: library}) == "False"


# -- one operator's policy ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["special_i1e", "aten::special_i1e", torch.ops.aten.special_i1e, torch.ops.aten.special_i1e.out])
def test_FALL_05_one_operators_policy_goes_before_the_general_one(dev, op):
    x = torch.rand(4).to(dev)
    torch_fl.set_fallback_policy("strict", op=op)
    try:
        assert torch_fl.get_fallback_policy(op) == "strict" and torch_fl.get_fallback_policy() == "auto"
        torch.special.i0e(x)
        with pytest.raises(RuntimeError, match="special_i1e.*strict"):
            torch.special.i1e(x)
        with torch_fl.fallback("auto", op=op):
            torch.special.i1e(x)
        torch_fl.set_fallback_policy("strict")
        torch_fl.set_fallback_policy("auto", op=op)
        torch.special.i1e(x)
        with pytest.raises(RuntimeError, match="strict"):
            torch.special.i0e(x)
    finally:
        torch_fl.set_fallback_policy("auto")
        torch_fl.set_fallback_policy(None, op=op)
    torch.special.i1e(x)
    assert torch_fl.get_fallback_policy(op) == "auto"
    with pytest.raises(ValueError, match="auto, warn or strict"):
        torch_fl.set_fallback_policy("never", op=op)
    with pytest.raises(ValueError, match="there is no operator"):
        torch_fl.set_fallback_policy("auto", op="no_such_operator")


@pytest.mark.plugins("ram")
@pytest.mark.parametrize("op", ["relu", "aten::relu"])
def test_FALL_05_one_operators_policy_holds_for_the_host_route(dev, op):
    x = torch.rand(4).to(dev)
    with torch_fl.fallback("strict", op=op):
        x.exp()
        with pytest.raises(RuntimeError, match="relu.*host route.*strict"):
            x.relu()
    x.relu()


def test_reports_are_text_and_json(dev, report):
    torch.special.i1e(torch.rand(4).to(dev))
    assert json.loads(torch_fl.get_fallback_report(as_json=True)) == torch_fl.get_fallback_report()
    assert json.loads(torch_fl.get_route_report(as_json=True))["routes"]["fallback"] >= 1
    assert "ceiling" in torch_fl.memory_summary() and "ceiling" in torch_fl.memory_summary(0)
    figures = torch_fl.memory_summary(as_dict=True)
    assert figures["limit"] > 0 and figures["allocated"] <= figures["reserved"] <= figures["limit"]
