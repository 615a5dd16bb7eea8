"""The command `torch-fl`: its subcommands, and failures as one sentence instead of a traceback."""

import sys

import click

from torch_fl_cli.activate import activate
from torch_fl_cli.config import config
from torch_fl_cli.doctor import doctor
from torch_fl_cli.library import FlhalError
from torch_fl_cli.scan import scan


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Chips for PyTorch, chosen while running."""


for command in (scan, activate, doctor, config):
    cli.add_command(command)


def main() -> None:
    try:
        cli()
    except FlhalError as error:
        click.echo(f"torch-fl: {error}", err=True)
        sys.exit(2)
