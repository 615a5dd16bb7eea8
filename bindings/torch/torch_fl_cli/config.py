"""`torch-fl config`: folders that builds need."""

import click

from torch_fl_cli.library import package_folder


@click.command()
@click.option("--cmake-dir", is_flag=True, help="folder of flhal-config.cmake, for -Dflhal_DIR=")
@click.option("--include-dir", is_flag=True, help="folder of the headers")
@click.option("--library-dir", is_flag=True, help="folder of libflhal.so.1")
@click.option("--prefix", is_flag=True, help="the package's folder, for CMAKE_PREFIX_PATH")
@click.option("--examples-dir", is_flag=True, help="folder of the examples in C and C++")
def config(cmake_dir: bool, include_dir: bool, library_dir: bool, prefix: bool, examples_dir: bool) -> None:
    """Prints where the headers, the library, the CMake package and the examples lie."""
    folder = package_folder()
    rows = [
        (cmake_dir, folder / "share" / "cmake" / "flhal"),
        (include_dir, folder / "include"),
        (library_dir, folder / "lib"),
        (prefix, folder),
        (examples_dir, folder / "share" / "flhal" / "examples"),
    ]
    chosen = [path for wanted, path in rows if wanted]
    if not chosen:
        raise click.UsageError("say what you want: --cmake-dir, --include-dir, --library-dir, --prefix or --examples-dir")
    for path in chosen:
        click.echo(str(path))
