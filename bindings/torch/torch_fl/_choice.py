"""Which chip an earlier activate(..., keep=True) chose: kept by name and uuid for later processes of this user."""

import contextlib
import json
import os
import pathlib


def path():
    """Where the choice is kept; None for a user without a home folder."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):                          # a relative one is none, as the XDG specification says
        base = os.path.join(os.path.expanduser("~"), ".config")
    return pathlib.Path(base) / "flhal" / "device.json" if os.path.isabs(base) else None


REMEDY = "make that folder writable and free space there, or set XDG_CONFIG_HOME to a folder of your own, or TORCH_FL_DEVICE for one run"


def keep(name, uuid):
    """Writes the choice; a reader never sees half a file, and a failure leaves the earlier choice. OSError with the remedy."""
    target = path()
    if target is None:
        raise OSError("the choice cannot be kept, for this user has no home folder; set HOME or XDG_CONFIG_HOME, or TORCH_FL_DEVICE for one run")
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(json.dumps({"name": name, "uuid": uuid}) + "\n")
            file.flush()
            os.fsync(file.fileno())          # some disks tell only now that they are full
        os.replace(temporary, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise OSError(error.errno, f"the choice cannot be kept in {target}: {error.strerror}; {REMEDY}") from None
    return target


def forget():
    """Removes the choice. OSError when it is there and cannot be removed."""
    target = path()
    if target is None:
        return
    try:
        target.unlink(missing_ok=True)
    except NotADirectoryError:               # then there is no such file either
        pass
    except OSError as error:
        raise OSError(error.errno, f"the choice in {target} cannot be removed: {error.strerror}; remove that file, or set TORCH_FL_DEVICE") from None


def kept():
    """{"name": ..., "uuid": ...} or None. A file that cannot be read counts as none: a choice is a convenience."""
    try:
        target = path()
        choice = None if target is None else json.loads(target.read_text())
    except (OSError, ValueError, RecursionError):
        return None
    return choice if isinstance(choice, dict) and isinstance(choice.get("name"), str) else None


def offer_kept(extension):
    """Tells the library what was kept. TORCH_FL_DEVICE, when set, wins there; a chip that is gone is passed over."""
    choice = kept()
    if choice is None:
        return
    uuid = choice.get("uuid")
    names = [f"uuid:{uuid}"] if isinstance(uuid, str) and uuid.strip("0-") else []
    extension.set_candidates(names + [choice["name"]])
