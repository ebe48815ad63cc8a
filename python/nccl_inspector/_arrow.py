"""Arrow tables. Only these functions need pyarrow, and they say so when it is not there."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from ._programs import option, paths, run_command
from ._read import RESULT, Logs, Words, filters

if TYPE_CHECKING:
    import pyarrow


def tables(result: Mapping[str, Any]) -> Dict[str, pyarrow.Table]:
    """Each list of objects in a result of summary(), check() or a counters command, as an Arrow table by its name.

    Of a summary those are "groups", "communicators", "ranks", "hosts", "p2p_pairs", "findings", "outliers", and "tags" where
    there are some. Objects in an object are columns with a dot: "exec_time_us.p50". A key that a row has not is null there. Lists that are empty are
    tables without columns.
    """
    pyarrow = _pyarrow()
    found = {}
    for name, rows in result.items():
        if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
            flat = [_flat(row) for row in rows]
            columns: Dict[str, None] = {key: None for row in flat for key in row}
            found[name] = pyarrow.table({key: [row.get(key) for row in flat] for key in columns})
    return found


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError as e:
        raise ImportError("Arrow tables need pyarrow: pip install pyarrow (%s)" % e) from e
    return pyarrow


def _flat(row: Mapping[str, Any], before: str = "") -> Dict[str, Any]:
    out: Dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, dict):
            out.update(_flat(value, before + key + "."))
        else:
            out[before + key] = value
    return out


def records(
    logs: Logs, *, columns: Optional[Sequence[str]] = None, run: Union[str, int, None] = None, since: Optional[str] = None,
    until: Optional[str] = None, rank: Optional[Words] = None, host: Optional[Words] = None, comm: Optional[Words] = None,
    coll: Optional[Words] = None, sn: Optional[Words] = None, jobs: Optional[int] = None, memory: Optional[str] = None,
    tag: Optional[Words] = None, job_rank: Optional[Words] = None,
) -> pyarrow.Table:
    """Every operation of the logs as one Arrow table, a row a record (docs/parquet.md has the columns).

    All of it is in memory then. For more than that: ``summary(logs, output_dir)`` and pyarrow.dataset on its parquet_files.
    columns: these alone. The other words are those of summary().
    """
    pyarrow = _pyarrow()
    with tempfile.TemporaryDirectory(prefix="nccl-inspector-") as folder:
        words = filters(run, since, until, rank, host, comm, coll, sn, jobs, memory, tag, job_rank)
        words += option("output-dir", folder)
        run_command(["summary", "--quiet", "--no-plots", "--no-html", "--no-csv"] + words + paths(logs), RESULT)
        where = os.path.join(folder, "parquet_files")
        files: List[str] = sorted(os.path.join(where, f) for f in os.listdir(where) if f.endswith(".parquet"))
        parts = [pyarrow.parquet.read_table(f, columns=list(columns) if columns else None) for f in files]
    return pyarrow.concat_tables(parts)
