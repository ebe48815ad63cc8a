#!/usr/bin/env bash
# dfanalyzer (dftracer-analyzer 0.0.9 with dftracer-utils 0.0.12, which work together) reads what `convert --pfw` writes: counts
# and times of each process are those of the logs, and the late rank has the least time in communication. One worker: with several
# it loses processes (docs/convert.md). About 40 s of downloads.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
venv=$build/venv-dfanalyzer
if [ ! -e "$venv/.done" ]; then
  if ! { python3 -m venv "$venv" && "$venv/bin/pip" install -q dftracer-analyzer==0.0.9 dftracer-utils==0.0.12; } >"$build/venv-dfanalyzer.log" 2>&1; then
    echo "skip: no dftracer-analyzer from pip ($(tail -n 1 "$build/venv-dfanalyzer.log"))"
    exit 77
  fi
  touch "$venv/.done"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 "$root/test/lib/late_logs.py" late
rc=0; "$build/nccl-inspector" convert --pfw pfw late -q 2>/dev/null || rc=$?
[ $rc = 2 ] # these logs have no end
rc=0; "$build/nccl-inspector" summary late --output-dir sum --no-plots --no-html -q >/dev/null || rc=$?
[ $rc = 2 ]
USER=${USER:-root} "$venv/bin/dfanalyzer" analyzer/preset=generic trace_path="$work/pfw" 'view_types=[proc_name]' cluster=local \
  cluster.n_workers=1 output=json hydra.run.dir="$work/run" >log 2>&1 || { tail -n 40 log; exit 1; }
"$venv/bin/python" - <<'P'
import glob, json
import pandas as pd
ops = [x for f in glob.glob("late/*") for x in map(json.loads, open(f)) if "coll_perf" in x]
out = json.load(open("run/dfanalyzer_output.json"))
assert out["views"]["proc_name"]["summary"]["total_event_count"] == 800, out
assert out["raw_stats"]["unique_process_count"] == 4 and out["raw_stats"]["unique_host_count"] == 2, out
view = pd.read_parquet(glob.glob("run/checkpoints/_flat_view_proc_name_*.parquet")[0])
ours = {p["rank"]: p for p in json.load(open("sum/summary/summary.json"))["ranks"]}
for name, row in view.iterrows():
    app, host, pid, tid = name.split("#")
    mine = [x for x in ops if x["header"]["rank"] == int(pid)]
    assert host == mine[0]["metadata"]["hostname"] and row["comm_count_sum"] == len(mine) == ours[int(pid)]["records"], name
    us = sum(x["coll_perf"]["coll_exec_time_us"] for x in mine)
    assert round(row["comm_time_sum"] * 1e6) == us, (name, row["comm_time_sum"], us)
    # Ours is in ns, each record is rounded to us for dfanalyzer.
    assert abs(ours[int(pid)]["exec_time_us"] - us) <= 0.5 * len(mine), (name, us, ours[int(pid)])
assert view["comm_time_sum"].idxmin() == "app#node-1#2#2", view["comm_time_sum"]
print(view[["comm_count_sum", "comm_time_sum"]])
P
