"""Which chip an earlier activate(..., keep=True) chose: kept by name and uuid for later processes of this user."""

import json
import os
import pathlib


def path():
    """Where the choice is kept; None for a user without a home folder."""
    base = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(base):                          # a relative one is none, as the XDG specification says
        base = os.path.join(os.path.expanduser("~"), ".config")
    return pathlib.Path(base) / "flhal" / "device.json" if os.path.isabs(base) else None


def keep(name, uuid):
    """Writes the choice; a reader never sees half a file."""
    target = path()
    if target is None:
        raise OSError("torch_fl: the choice cannot be kept, for this user has no home folder; set HOME or XDG_CONFIG_HOME")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    temporary.write_text(json.dumps({"name": name, "uuid": uuid}) + "\n")
    os.replace(temporary, target)
    return target


def forget():
    target = path()
    if target is not None:
        target.unlink(missing_ok=True)


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
