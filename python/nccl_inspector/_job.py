"""For a job: its variables before it starts, marks in its log while it runs."""

from __future__ import annotations

import os
import re
import subprocess
import warnings
from typing import Dict, Optional, Union

from ._programs import InspectorError, Path, command, plugin as find_plugin

PRESETS = ("light", "standard", "deep", "trace")

#: Settings of docs/settings.md, without NCCL_INSPECTOR_ and those that have words of their own in env().
SETTINGS = frozenset("""
    dump_thread_enable dump_thread_interval_microseconds dump_verbose dump_format dump_control_lines dump_min_size_bytes enable_p2p
    events enable_proxy dump_proxy_steps proxy_output_mode proxy_op_pool_size proxy_step_pool_size require_kernel_timing
    coll_pool_size p2p_pool_size pool_grow pool_keep pool_max_bytes blackbox stuck_seconds file_max_bytes dir_max_bytes
    keep_seconds control_file sample rollup_seconds kernelch_duty max_overhead_percent tags gpu_clock_khz
    comm_pool_size dump_coll_ring_size dump_p2p_ring_size dump_proxy_ring_size dump_proxy_event_trace_sn
    prom_dump prom_dump_stats cluster otel_export otel_verbose
""".split())

#: How long mark() waits for the command: a file system that does not answer must not hold the job.
MARK_SECONDS = 5.0


def env(
    dump_dir: Optional[Path] = None, preset: Optional[str] = None, *, plugin: Optional[Path] = None, **settings: Union[str, int, float, bool, Path]
) -> Dict[str, str]:
    """The variables with which a job records. Put them beside those that it has: ``{**os.environ, **env("logs/%j")}``.

    dump_dir: where its logs go; made absolute, because the job may run elsewhere. %j is the job's id, %h the host, %p the
    process, %r the global rank. Without it: ``nccl-inspector-%j`` in the job's working directory.
    preset: "light", "standard", "deep" or "trace": the kinds of event (docs/events.md).
    plugin: the path of the plugin. Without it the one in this package, or beside the command, by plugin().
    settings: others by their names without NCCL_INSPECTOR_, in small letters: ``stuck_seconds=60``, ``sample="1/100"``.

    Raises InspectorError when the plugin cannot be found, TypeError for a setting that does not exist, ValueError for another
    preset. What a setting accepts says docs/settings.md; the plugin names what it refuses in NCCL's log.
    """
    path = os.path.abspath(os.fspath(plugin)) if plugin is not None else find_plugin()
    if not os.path.isfile(path):
        raise InspectorError("%s: the plugin is not there" % path)
    out = {"NCCL_PROFILER_PLUGIN": path, "NCCL_INSPECTOR_ENABLE": "1"}
    if dump_dir is not None:
        out["NCCL_INSPECTOR_DUMP_DIR"] = os.path.abspath(os.fspath(dump_dir))
    if preset is not None:
        if preset not in PRESETS:
            raise ValueError("preset %r: one of %s" % (preset, ", ".join(PRESETS)))
        if "events" in settings:
            raise ValueError("preset and events say the same thing twice")
        out["NCCL_INSPECTOR_EVENTS"] = preset
    for name, value in settings.items():
        if name not in SETTINGS:
            raise TypeError("env(): %s is no setting; docs/settings.md lists them" % name)
        out["NCCL_INSPECTOR_" + name.upper()] = str(int(value)) if isinstance(value, bool) else str(value)
    return out


def log_dir() -> Optional[str]:
    """The folder of the log that this process writes at this moment. None: it writes none (yet).

    Its descriptor tells: it is right whatever the tokens in NCCL_INSPECTOR_DUMP_DIR became.
    """
    name = re.compile(r"(.*)/[^/]*-pid%d-\d+(\.\d+)?\.(jsonl|log)(\.gz)?" % os.getpid())
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return None
    for number in numbers:
        try:
            found = name.fullmatch(os.readlink("/proc/self/fd/" + number))
        except OSError:
            continue
        if found:
            return found.group(1)
    return None


def mark(text: str, logs: Optional[Path] = None, *, strict: bool = False) -> bool:
    """A name in the log with its time, as ``nccl-inspector ctl LOGS mark TEXT``. True: it is on its way.

    text: 1 to 64 bytes, one line, without "#". Every process that writes into that folder makes a line of it, within two
    seconds: call it on one rank. Of marks that come faster than 16 in two seconds some are lost.
    logs: the folder of the logs. Without it the one that this process writes its log to; a process that records nothing, or
    nothing yet, has none: then nothing happens, and it is False.

    It is made for the training loop and never ends a job: what goes wrong is a warning and False, after 5 s at most.
    strict: it raises InspectorError instead.
    """
    try:
        folder = os.fspath(logs) if logs is not None else log_dir()
        if folder is None:
            if strict:
                raise InspectorError("this process writes no log: NCCL_INSPECTOR_ENABLE is 0, or no communicator has begun")
            return False
        _mark(text, folder)
        return True
    except (InspectorError, OSError, ValueError) as e:
        if strict:
            raise e if isinstance(e, InspectorError) else InspectorError(str(e)) from e
        warnings.warn("no mark %r: %s" % (text, e), RuntimeWarning, stacklevel=2)
        return False


def _mark(text: str, folder: str) -> None:
    path = command()
    process = subprocess.Popen([path, "ctl", "--", folder, "mark", text], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    try:
        code = process.wait(MARK_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()  # it may be beyond that, in a call that does not return; nobody waits for it
        process.stderr.close()
        raise InspectorError("%s ctl did not end within %g s" % (path, MARK_SECONDS)) from None
    with process.stderr as messages:
        said = messages.read().decode("utf-8", "backslashreplace").strip()
    if code != 0:
        raise InspectorError(said or "%s ctl: exit code %d" % (path, code), code)
