"""Loads the extension that was built for this torch minor, and registers the device with torch.

The minor is compared before the library is opened: torch keeps no binary interface between minors, a library of another one
loads, computes and then crashes in a virtual call.
"""

import importlib.machinery
import importlib.metadata
import importlib.util
import pathlib
import re
import sys

_HERE = pathlib.Path(__file__).parent
_PREFIX = "_C_"


class LoadError(ImportError):
    """torch_fl cannot work here; the text says why and what to do."""


def adapter_version():
    try:
        return importlib.metadata.version("torch-fl")
    except importlib.metadata.PackageNotFoundError:
        return "0.1.0"


def built_minors():
    """The torch minors this package has a library for, as ["2.13", ...]."""
    minors = [p.name[len(_PREFIX) : -len(".so")].replace("_", ".") for p in _HERE.glob(_PREFIX + "*.so")]
    return sorted(minors, key=lambda minor: [int(part) for part in minor.split(".")])


def minor_of(version):
    match = re.match(r"(\d+)\.(\d+)", version)
    return f"{match.group(1)}.{match.group(2)}" if match else version


def refusal(torch_version, minors):
    """The sentence for a torch minor without a library: both versions and the command that aligns them."""
    have = " and ".join(minors) if minors else "no torch at all (this package holds no compiled library)"
    newest = minors[-1] if minors else "2.13"
    return (
        f"torch_fl {adapter_version()} is built for torch {have}, but torch {torch_version} is installed; "
        f"align them with: pip install 'torch=={newest}.*'   (or take a newer adapter: pip install --upgrade torch-fl)"
    )


def load():
    """The extension module. Imports torch; opens the library once per process."""
    present = sys.modules.get("torch_fl._C")
    if present is not None:
        return present
    import torch

    minors = built_minors()
    minor = minor_of(torch.__version__)
    if minor not in minors:
        raise LoadError(refusal(torch.__version__, minors))
    name = _PREFIX + minor.replace(".", "_")
    path = str(_HERE / (name + ".so"))
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    try:
        extension = importlib.util.module_from_spec(spec)
        loader.exec_module(extension)
    except ImportError as error:
        raise LoadError(
            f"torch_fl {adapter_version()}: {path} does not load: {error}; "
            "install it again with: pip install --force-reinstall torch-fl"
        ) from error
    sys.modules["torch_fl._C"] = extension
    from . import _register

    _register.register(extension)
    return extension
