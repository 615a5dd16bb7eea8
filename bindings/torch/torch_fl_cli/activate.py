"""`torch-fl activate`: the default chip of later processes."""

import importlib.util

import click

from torch_fl_cli.library import FlhalError, Library, package_folder


def choice_module():
    """torch_fl/_choice.py by file: the package itself would import torch."""
    spec = importlib.util.spec_from_file_location("torch_fl_choice", package_folder() / "_choice.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@click.command()
@click.argument("chip", required=False, metavar="[NAME]")
@click.option("--device", "name", help="a name of `torch-fl scan`, e.g. chip_a, chip_a:1, plugin/chip_a or uuid:...")
@click.option("--clear", is_flag=True, help="forget the choice: the first chip of the scan is the default again")
def activate(chip: str | None, name: str | None, clear: bool) -> None:
    """Makes a chip the default of later processes (TORCH_FL_DEVICE overrides it)."""
    if (chip is not None) + (name is not None) + clear != 1 or not (chip or name or clear):
        raise click.UsageError("say one of NAME, --device NAME and --clear")
    name = chip or name
    choice = choice_module()
    if clear:
        try:
            choice.forget()
        except OSError as error:
            raise FlhalError(error.strerror or str(error)) from error
        click.echo("forgotten; the first device of `torch-fl scan` is the default")
        return
    library = Library()
    library.device_count()
    index = library.device_find(name)
    device = next(row for row in library.report("devices")["devices"] if int(row["index"]) == index)
    try:
        path = choice.keep(device["name"], device["uuid"])
    except OSError as error:
        raise FlhalError(error.strerror or str(error)) from error
    click.echo(f"{device['name']} is the default device of later processes (kept in {path})")
