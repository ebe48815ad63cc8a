"""NCCL Inspector: variables of a job, marks in its log, verdicts and figures of its logs.

Everything here runs the command ``nccl-inspector`` and hands back its JSON; docs/python.md has examples. Functions may be
called from any thread.
"""

from ._arrow import records, tables
from ._job import env, mark
from ._programs import InspectorError, command, plugin
from ._read import check, summary
from .types import Check, Summary

__version__ = "0.1.0"
__all__ = ["Check", "InspectorError", "Summary", "check", "command", "env", "mark", "plugin", "records", "summary", "tables"]
