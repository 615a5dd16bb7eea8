"""Pages of docs/start as their readers follow them: each command in a shell, in an empty folder, with what we ship installed."""

import os
import re
import subprocess
import sys
import sysconfig

from conftest import REPOSITORY, builds

FILE = re.compile(r"(?:#|//) (\S+\.(?:py|c|txt))")


def blocks(page):
    """The indented blocks of a page, without their indentation."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", page, re.M)
    return [re.sub(r"^    ", "", block, flags=re.M).strip("\n") for block in found]


def steps(page):
    """What a reader does, in order: ("run", command, expected lines) and ("write", file name, text)."""
    for block in blocks(page):
        if named := FILE.fullmatch(block.split("\n")[0]):
            yield "write", named[1], block + "\n"
        elif block.startswith("$ "):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, *lines = part.strip("\n").split("\n")
                yield "run", command, lines
        else:
            raise AssertionError(f"neither commands nor a file: {block}")


def check_output(command, lines, out):
    """`...` alone stands for any lines, inside a line for any text; every other line is to come exactly and in its place."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line).replace(re.escape("..."), ".*") + r"\n" for line in lines)
    assert re.fullmatch(pattern, out), f"$ {command}\nthe page says:\n" + "\n".join(lines) + f"\nthe command says:\n{out}"


def shell_variables(where, *wheels):
    """Variables of a shell with an active environment: torch, and these wheels just made."""
    build = builds()[0].parent
    subprocess.run([sys.executable, REPOSITORY / "scripts" / "wheels.py", "--build", build, "--dist", where / "dist", *wheels], check=True)
    subprocess.run([sys.executable, "-m", "venv", where / "env"], check=True)
    python = where / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", *sorted((where / "dist").glob("*.whl"))], check=True)
    # torch itself comes from this environment, behind what was just installed.
    (site,) = (where / "env").glob("lib/python3*/site-packages")
    (site / "torch_from_outside.pth").write_text(sysconfig.get_path("purelib") + "\n")
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "TMPDIR", "OMP_NUM_THREADS", "CCACHE_DIR")}
    return {**kept, "PATH": f"{where / 'env' / 'bin'}:{os.environ['PATH']}", "VIRTUAL_ENV": str(where / "env"), "XDG_CONFIG_HOME": "/nonexistent",
            "TORCH_DEVICE_BACKEND_AUTOLOAD": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def shell(command, folder, environment):
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)


def follow(page, folder, environment):
    """Does what the page says, step by step, and gives the commands that ran."""
    ran = []
    for kind, what, content in steps(page.read_text()):
        if kind == "write":
            (folder / what).parent.mkdir(parents=True, exist_ok=True)
            (folder / what).write_text(content)
            continue
        done = shell(what, folder, environment)
        assert done.returncode == 0, f"$ {what}\nexit status {done.returncode}\n{done.stdout}"
        check_output(what, content, done.stdout)
        ran.append(what)
    return ran
