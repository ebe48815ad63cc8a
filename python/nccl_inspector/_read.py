"""What logs say: check and summary."""

from __future__ import annotations

import tempfile
from typing import Any, Iterable, List, Mapping, Optional, Sequence, Union, cast

from ._programs import Path, option, paths, run_json
from .types import Check, Summary

Logs = Union[Path, Sequence[Path]]
Words = Union[str, int, Iterable[Union[str, int]]]

#: Exit codes with which there is a result: all there, or incomplete, which the result says.
RESULT = (0, 2)


def check(logs: Logs, *, expect: Optional[Mapping[str, int]] = None, partial: bool = False, run: Union[str, int, None] = None) -> Check:
    """Are these logs complete and sound? What ``nccl-inspector check --json`` says, docs/check.md.

    logs: a folder, a file or a pattern, or several. expect: so many operations of each function. partial: the input holds
    some of the ranks only. run: one of several runs.
    ``["verdict"]`` is "COMPLETE" or "INCOMPLETE". Raises InspectorError when nothing can be read.
    """
    words = ["check", "--json"] + option("partial", partial) + option("run", run)
    for func, count in (expect or {}).items():
        words += option("expect", "%s=%d" % (func, count))
    return cast(Check, run_json(words + paths(logs), RESULT))


def filters(
    run: Union[str, int, None], since: Optional[str], until: Optional[str], rank: Optional[Words], host: Optional[Words],
    comm: Optional[Words], coll: Optional[Words], sn: Optional[Words], jobs: Optional[int], memory: Optional[str],
    tag: Optional[Words] = None, job_rank: Optional[Words] = None,
) -> List[str]:
    given: Mapping[str, Any] = {"run": run, "since": since, "until": until, "rank": rank, "host": host, "comm": comm,
                                "coll": coll, "sn": sn, "tag": tag, "jobs": jobs, "memory": memory, "job-rank": job_rank}
    return [word for name, value in given.items() for word in option(name, value)]


def summary(
    logs: Logs, output_dir: Optional[Path] = None, *, force: bool = False, run: Union[str, int, None] = None,
    since: Optional[str] = None, until: Optional[str] = None, rank: Optional[Words] = None, host: Optional[Words] = None,
    comm: Optional[Words] = None, coll: Optional[Words] = None, sn: Optional[Words] = None, skip_first: Optional[int] = None,
    step_by: Optional[str] = None, comm_map: Optional[Path] = None, jobs: Optional[int] = None, memory: Optional[str] = None,
    tag: Optional[Words] = None, job_rank: Optional[Words] = None,
) -> Summary:
    """Where the time went, and who was late: the summary.json of ``nccl-inspector summary``, docs/summary.md.

    logs: a folder, a file or a pattern, or several. output_dir: also all tables, pictures and the page, there (force: also
    into a folder that holds other files); without it nothing is left behind. The other words are options of the command;
    lists of them may be Python's: ``rank=range(8)``, ``coll=["AllReduce", "Send"]``, ``tag=[7, "layer.3"]``.
    ``["complete"]`` is False when data is missing, and ``["input"]`` says what. Raises InspectorError when nothing can be read.
    """
    words = filters(run, since, until, rank, host, comm, coll, sn, jobs, memory, tag, job_rank)
    words += option("skip-first", skip_first) + option("step-by", step_by) + option("comm-map", comm_map)
    if output_dir is not None:
        words += option("output-dir", output_dir) + option("force", force)
        return cast(Summary, run_json(["summary", "--json"] + words + paths(logs), RESULT))
    with tempfile.TemporaryDirectory(prefix="nccl-inspector-") as folder:
        words += option("output-dir", folder) + ["--no-plots", "--no-html", "--no-parquet", "--no-csv"]
        return cast(Summary, run_json(["summary", "--json"] + words + paths(logs), RESULT))
