"""`torch-fl scan`: which chips there are, and what did not load, why, and what to do about it."""

import json
import os

import click
from rich.console import Console
from rich.text import Text

from torch_fl_cli.activate import choice_module
from torch_fl_cli.library import Library


def size_text(size: int | str) -> str:
    """16GB for a chip's memory: whole units of 1024 as makers print them."""
    size = int(size)
    for unit, scale in (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if size >= scale:
            value = size / scale
            return f"{value:.0f}{unit}" if value >= 10 or value == int(value) else f"{value:.1f}{unit}"
    return f"{size}B"


def device_line(device: dict) -> str:
    """`[0] chip_a: 16GB, compute_capability=7.5`"""
    line = f"[{device['index']}] {device['name']}: {size_text(device['memory_bytes'])}"
    if device.get("compute_capability"):
        line += f", compute_capability={device['compute_capability']}"
    if device.get("product"):
        line += f"  ({device['product']})"
    return line


def default_line(found: dict) -> str:
    """Which chip is used when a program names none, and why that one (DEV-03)."""
    name, why = found["default"]["name"], found["default"]["why"]
    return f"Default: {name}, {why}"


def default_choice(devices: list) -> dict:
    """{"name": ..., "why": ...}; the library's order: environment, kept choice (by uuid, then by name), first of the list."""
    for variable in ("FLHAL_DEVICE", "TORCH_FL_DEVICE"):
        if os.environ.get(variable):
            return {"name": os.environ[variable], "why": f"chosen by {variable}"}
    if not devices:
        return {"name": "", "why": "there is none"}
    kept = choice_module().kept()
    if kept:
        chip = next((d for d in devices if d.get("uuid") and d["uuid"] == kept.get("uuid")), None) or next(
            (d for d in devices if d["name"] == kept["name"]), None)
        if chip:
            return {"name": chip["name"], "why": "kept by `torch-fl activate`; --clear forgets it"}
        return {"name": devices[0]["name"], "why": f"the first of the list, for {kept['name']}, which `torch-fl activate` keeps, is not there; "
                                                   "`torch-fl activate --clear` forgets it"}
    if os.environ.get("FLHAL_VISIBLE_DEVICES") or os.environ.get("TORCH_FL_VISIBLE_DEVICES"):
        return {"name": devices[0]["name"], "why": "the first of the visible devices"}
    return {"name": devices[0]["name"], "why": f"the first of class {devices[0]['class']} (accelerators go first, then gpus, hosts, "
                                               "mocks); `torch-fl activate` or TORCH_FL_DEVICE chooses another"}


def facts(library: Library) -> dict:
    """Devices and the load report: what --json prints."""
    library.device_count()
    devices = library.report("devices")["devices"]
    return {"devices": devices, "default": default_choice(devices), "load": library.report("load")}


def print_scan(found: dict, console: Console) -> None:
    """The text form: devices first, then what did not load, then hints."""
    def line(text: str, style: str = "") -> None:
        console.print(Text(text, style=style), soft_wrap=True)

    line("Detected devices:")
    for device in found["devices"]:
        line(device_line(device))
    if not found["devices"]:
        line("none")
    else:
        line(default_line(found))
    refused = [plugin for plugin in found["load"]["plugins"] if plugin["status"] == "refused"]
    if refused:
        line("\nNot loaded:")
        for plugin in refused:
            line(f"  {plugin['path']}")
            line(f"    why: {plugin.get('reason', 'unknown')}", "red")
            if plugin.get("remedy"):
                line(f"    remedy: {plugin['remedy']}")
    for plugin in found["load"]["plugins"]:
        if plugin["status"] == "loaded" and plugin.get("devices") == 0:
            line(f"\nplugin {plugin['id']} works and found no chip: its driver shows none; look at the driver's own tool and variables, "
                 "then run FLHAL_PROBE_CACHE=refresh torch-fl scan", "yellow")
        if plugin["status"] == "duplicate":
            line(f"\n{plugin['path']}: passed over, {plugin.get('reason', 'the same plugin was found before')}")
    for note in found["load"].get("notes", []):
        line(f"\n{note['level']}: {note['subject']}: {note['reason']}", "yellow")
        if note.get("remedy"):
            line(f"    remedy: {note['remedy']}")
    if not found["devices"]:
        line("\nSearched:")
        for place in found["load"]["places"]:
            line(f"  {place['path']}  ({place['named_by']}: {place['status']}, {place['found']} found)")
        if not any(plugin["status"] == "loaded" for plugin in found["load"]["plugins"]):
            line("Install a plugin, e.g. pip install torch-fl-plugin-host, or name one: TORCH_FL_PLUGIN_PATH=/folder")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="the same facts for programs")
def scan(as_json: bool) -> None:
    """Shows the chips found; then what did not load, why, and the remedy. Exit status 3 when there is no chip."""
    found = facts(Library())
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        print_scan(found, Console(highlight=False))
    if not found["devices"]:
        raise SystemExit(3)
