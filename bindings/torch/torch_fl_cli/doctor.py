"""`torch-fl doctor`: versions that must meet, whether they do, and the command that aligns them."""

import importlib.metadata
import json
import platform
import re

import click
from rich.console import Console
from rich.table import Table

from torch_fl_cli.library import FlhalError, Library, package_folder


def installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def adapter_minors() -> list[str]:
    """The torch minors this package carries an extension for, by their files."""
    names = [re.fullmatch(r"_C_(\d+)_(\d+)\.so", path.name) for path in package_folder().glob("_C_*.so")]
    return sorted((f"{m[1]}.{m[2]}" for m in names if m), key=lambda minor: [int(part) for part in minor.split(".")])


def examine() -> dict:
    """All facts and findings: {"versions": {...}, "checks": [{"what", "found", "needed", "ok", "remedy"}]}."""
    checks = []

    def check(what: str, found: str, needed: str, ok: bool, remedy: str) -> None:
        checks.append({"what": what, "found": found, "needed": needed, "ok": ok, "remedy": "" if ok else remedy})

    torch = installed("torch")
    minors = adapter_minors()
    minor = ".".join(torch.split(".")[:2]) if torch else None
    wanted = " or ".join(minors) or "none (the package holds no extension)"
    check("torch against the adapter", torch or "not installed", f"torch {wanted}", minor in minors,
          f"pip install 'torch=={minors[-1]}.*'" if minors else "pip install --force-reinstall torch-fl")

    adapter = installed("torch-fl")
    check("adapter", (f"torch-fl {adapter}" if adapter else "torch-fl is no installed package") + f", python {platform.python_version()}",
          "installed", True, "")
    versions = {"torch": torch, "torch-fl": adapter, "python": platform.python_version(),
                "adapter_for_torch": minors}
    plugins = []
    try:
        library = Library()
        versions["core_abi"] = ".".join(map(str, library.version()))
        library.device_count()
        load = library.report("load")
        abi = load["plugin_abi"]
        versions["plugin_abi"] = f"{abi['oldest']} to {abi['newest']}"
        check("libflhal", f"ABI {versions['core_abi']}", "loads", True, "")
        for plugin in load["plugins"]:
            ok = plugin["status"] != "refused"
            plugins.append(plugin)
            check(f"plugin {plugin.get('id') or plugin['path']}",
                  plugin.get("reason", "") if plugin["status"] in ("refused", "duplicate")
                  else f"version {plugin.get('version', '?')}, ABI {plugin.get('abi', '?')}",
                  f"plugin ABI {versions['plugin_abi']}", ok, plugin.get("remedy", ""))
        count = int(load["devices"])
        check("devices", str(count), "1 or more", count > 0, "pip install torch-fl-plugin-host; torch-fl scan says more")
        for note in load.get("notes", []):
            check(note["subject"], note["reason"], "no complaint", note["level"] == "info", note.get("remedy", ""))
    except FlhalError as error:
        check("libflhal", str(error), "loads", False, "pip install --force-reinstall torch-fl")
    return {"versions": versions, "checks": checks, "plugins": plugins}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="the same facts for programs")
def doctor(as_json: bool) -> None:
    """Checks torch, adapter, core and plugins against each other. Exit status 1 when something must be done."""
    result = examine()
    healthy = all(check["ok"] for check in result["checks"])
    if as_json:
        click.echo(json.dumps(result, indent=1))
    else:
        console = Console(highlight=False)
        table = Table(box=None, pad_edge=False)
        for column in ("", "what", "found", "needed"):
            table.add_column(column, overflow="fold")
        for check in result["checks"]:
            table.add_row("[green]ok[/]" if check["ok"] else "[red]no[/]", check["what"], check["found"], check["needed"])
        console.print(table)
        for check in result["checks"]:
            if not check["ok"]:
                console.print(f"\n{check['what']}: {check['found']}\n    do: {check['remedy']}", markup=False, soft_wrap=True)
        if healthy:
            console.print("everything meets")
    raise SystemExit(0 if healthy else 1)
