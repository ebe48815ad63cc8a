#!/usr/bin/env bash
# dfanalyzer (dftracer-analyzer 0.0.9 with dftracer-utils 0.0.12, which work together) reads what `convert
# --pfw` writes: counts, sums and means of times of each process, host, communicator and second are those of
# the logs and of summary, and the late rank has the least time in communication. What docs/convert.md says of
# the other figures is so. One worker: with several it loses processes. About 40 s of downloads.
. "$(dirname "$0")/../lib/case.sh"
venv=$BUILD/venv-dfanalyzer
if [ ! -e "$venv/.done" ]; then
  if ! { test/lib/venv.sh "$venv" && "$venv/bin/pip" install -q dftracer-analyzer==0.0.9 dftracer-utils==0.0.12; } >"$BUILD/venv-dfanalyzer.log" 2>&1; then
    skip "no dftracer-analyzer from pip ($(tail -n 1 "$BUILD/venv-dfanalyzer.log"))"
  fi
  touch "$venv/.done"
fi
cd "$TMP"
python3 "$ROOT/test/lib/late_logs.py" late
rc=0; "$BUILD/nccl-inspector" convert --pfw pfw late -q 2>/dev/null || rc=$?
[ $rc = 2 ] # these logs have no end
rc=0; "$BUILD/nccl-inspector" summary late --output-dir sum --time-granularity 1s --no-plots --no-html -q \
  >/dev/null || rc=$?
[ $rc = 2 ]
USER=${USER:-root} "$venv/bin/dfanalyzer" analyzer/preset=generic trace_path="$TMP/pfw" \
  'view_types=[proc_name,host_name,file_name,time_range]' cluster=local \
  cluster.n_workers=1 output=json hydra.run.dir="$TMP/run" >log 2>&1 || { tail -n 40 log; exit 1; }
"$venv/bin/python" - <<'P'
import csv, glob, json
import pandas as pd
ops = [(x["header"], x["metadata"]["hostname"], x["coll_perf"]) for f in glob.glob("late/*")
       for x in map(json.loads, open(f)) if "coll_perf" in x]
out = json.load(open("run/dfanalyzer_output.json"))
assert out["views"]["proc_name"]["summary"]["total_event_count"] == 800, out
assert out["raw_stats"]["unique_process_count"] == 4 and out["raw_stats"]["unique_host_count"] == 2, out
ours = json.load(open("sum/summary/summary.json"))
table = lambda name: list(csv.DictReader(open("sum/summary/%s.csv" % name)))
view = {v: pd.read_parquet(glob.glob("run/checkpoints/_flat_view_%s_*.parquet" % v)[0])
        for v in ("proc_name", "host_name", "file_name", "time_range")}
second = lambda o: (o["coll_enqueue_ns"] + o["coll_gpu_start_delta_ns"]) // 10**9 - 1790000000
mine = {"proc_name": {"app#%s#%d#%d" % (h, x["rank"], x["rank"]): lambda p, x=x: p[0]["rank"] == x["rank"]
                      for x, h, o in ops},
        "host_name": {h: lambda p, h=h: p[1] == h for x, h, o in ops},
        "file_name": {"/comm/%s-world" % x["id"]: lambda p: True for x, h, o in ops},
        "time_range": {second(o): lambda p, s=second(o): second(p[2]) == s for x, h, o in ops}}
# Ours is in ns, each record is rounded to us for dfanalyzer: (records, us) of the same name in what summary
# wrote.
sums = lambda rows, key: {key(r): (int(r["records"]), float(r["exec_time_us_mean"]) * int(r["records"]))
                          for r in rows}
summary = {"proc_name": {"app#%s#%d#%d" % (p["hostname"], p["rank"],
                                           p["rank"]): (p["records"], p["exec_time_us"])
                                           for p in ours["ranks"]},
           "host_name": sums(table("summary_by_host"), lambda r: r["hostname"]),
           "file_name": sums(table("summary_by_comm"), lambda r: "/comm/%s-%s" % (r["id"], r["comm_name"])),
           "time_range": {int(r["bucket"]): (int(r["records"]), float(r["exec_time_us"]))
                          for r in table("series")}}
for name, v in view.items():
    assert set(v.index) == set(mine[name]) == set(summary[name]), (name, set(v.index), set(summary[name]))
    for at, row in v.iterrows():
        us = [p[2]["coll_exec_time_us"] for p in ops if mine[name][at](p)]
        what = (name, at, row["comm_count_sum"], row["comm_time_sum"], summary[name][at])
        assert row["comm_count_sum"] == len(us) == summary[name][at][0], what
        assert (round(row["comm_time_sum"] * 1e6) == sum(us) and
                abs(row["comm_time_call_mean"] * 1e6 - sum(us) / len(us)) < 1), what
        assert abs(summary[name][at][1] - sum(us)) <= 0.5 * len(us), what
    # What differs, as docs/convert.md has it: least and most are of seconds, not of calls, and there are no
    # sizes.
    assert (v["comm_time_call_max"] * 1e6 > 10 * max(p[2]["coll_exec_time_us"]
                                                     for p in ops)).any(), v["comm_time_call_max"]
    layers = out["views"][name]["summary"]["layers"]
    assert layers["comm"]["size_bytes"] is None and layers["comm"]["count"] == 800, layers
assert view["proc_name"]["comm_time_sum"].idxmin() == "app#node-1#2#2", view["proc_name"]["comm_time_sum"]
slowest = out["views"]["proc_name"]["summary"]["layers"]["comm"]["time_s"]
assert abs(slowest - view["proc_name"]["comm_time_sum"].max()) < 1e-6, slowest
print(view["proc_name"][["comm_count_sum", "comm_time_sum"]],
      view["time_range"][["comm_count_sum", "comm_time_sum"]])
P
