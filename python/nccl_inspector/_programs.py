"""Where the command and the plugin are, and how the command is run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import Any, Collection, List, Optional, Sequence, Tuple, Union

Path = Union[str, "os.PathLike[str]"]

COMMAND = "nccl-inspector"
PLUGIN = "libnccl-profiler-inspector.so"
HERE = os.path.dirname(os.path.abspath(__file__))


class InspectorError(RuntimeError):
    """A command could not do what it was asked for. The text is the command's own message.

    returncode: its exit code; None: it was not started.
    """

    def __init__(self, message: str, returncode: Optional[int] = None) -> None:
        super().__init__(message)
        self.returncode = returncode


def command() -> str:
    """The path of ``nccl-inspector``: NCCL_INSPECTOR_COMMAND, else the one in this package, else the one in PATH."""
    named = os.environ.get("NCCL_INSPECTOR_COMMAND")
    if named:
        found = shutil.which(named)
        if found:
            return os.path.abspath(found)
        raise InspectorError("NCCL_INSPECTOR_COMMAND is %s: no program is there" % named)
    found = shutil.which(COMMAND, path=os.path.join(HERE, "bin")) or shutil.which(COMMAND)
    if found:
        return os.path.abspath(found)
    raise InspectorError("%s is neither in this package nor in PATH: install it, or set NCCL_INSPECTOR_COMMAND to its path" % COMMAND)


def plugin() -> str:
    """The path of the plugin: the one in this package, else the one that was installed or built beside the command."""
    folders = [os.path.join(HERE, "lib")]
    try:
        beside = os.path.dirname(os.path.realpath(command()))
    except InspectorError:
        pass
    else:
        prefix = os.path.dirname(beside)
        triplet = "%s-linux-gnu" % os.uname().machine
        folders += [beside, os.path.join(prefix, "lib"), os.path.join(prefix, "lib64"), os.path.join(prefix, "lib", triplet)]
    for folder in folders:
        path = os.path.join(folder, PLUGIN)
        if os.path.isfile(path):
            return path
    raise InspectorError("%s is in none of %s: name it, env(..., plugin=PATH)" % (PLUGIN, ", ".join(folders)))


def option(name: str, value: object) -> List[str]:
    """``--name=value``; nothing for None and False; a list becomes words with commas between."""
    if value is None or value is False:
        return []
    if value is True:
        return ["--" + name]
    if isinstance(value, (list, tuple, set, range)):
        value = ",".join(map(str, value))
    return ["--%s=%s" % (name, value)]


def paths(logs: Union[Path, Sequence[Path]]) -> List[str]:
    """Logs as arguments. They follow a ``--``, so that a name may begin with a dash."""
    given = [logs] if isinstance(logs, (str, os.PathLike)) else list(logs)
    if not given:
        raise ValueError("no logs: give a folder, a file or a pattern")
    return ["--"] + [os.fspath(g) for g in given]


def run_command(arguments: Sequence[str], fine: Collection[int] = (0,)) -> Tuple[str, str]:
    """Runs the command. What it printed, and its messages. Other exit codes than `fine` raise InspectorError."""
    path = command()
    try:
        done = subprocess.run([path, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as e:
        raise InspectorError("%s: %s" % (path, e.strerror)) from e
    said = done.stderr.decode("utf-8", "backslashreplace").strip()
    if done.returncode not in fine:
        killed = "%s: signal %d ended it" % (path, -done.returncode) if done.returncode < 0 else ""
        raise InspectorError("\n".join(filter(None, [said, killed])) or "%s: exit code %d" % (path, done.returncode), done.returncode)
    return done.stdout.decode("utf-8", "backslashreplace"), said


def run_json(arguments: Sequence[str], fine: Collection[int] = (0,)) -> Any:
    """As run_command(); what it printed is JSON."""
    out, said = run_command(arguments, fine)
    try:
        return json.loads(out)
    except ValueError as e:
        raise InspectorError("%s %s: what it printed is no JSON: %s\n%s" % (command(), arguments[0], e, said)) from e
