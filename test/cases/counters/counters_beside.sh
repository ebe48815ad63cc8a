#!/usr/bin/env bash
# A time series of counters beside a job's logs: summary, its files and page, trace and Parquet say what the
# NICs and GPUs did while collectives ran, whose they are, and what nobody can know.
. "$(dirname "$0")/../../lib/sim.sh"
need python3
run_logged NCCL_INSPECTOR_EVENTS=deep 2x2 --set procs=1 --set rate=400 --iterations 150
logs=$TMP/logs
"$BUILD/nccl-inspector" summary --no-plots "$logs" --output-dir "$TMP/without" >"$TMP/without.txt"
python3 test/lib/counters/counters_beside.py "$logs" >"$TMP/truth.json"
"$BUILD/nccl-inspector" check "$logs" >"$TMP/check.txt" || fail "check ends with $?"
grep -Eq '^counters +.* samples of [0-9]+ counters from 2 hosts, every 0.5 s' "$TMP/check.txt" ||
  { fail "check says of counters:"; grep counters "$TMP/check.txt"; }
"$BUILD/nccl-inspector" summary --no-plots "$logs" --output-dir "$TMP/out" >"$TMP/out.txt" ||
  fail "summary ends with $?"
"$BUILD/nccl-inspector" trace --quiet "$logs" -o "$TMP/trace.json" >/dev/null || fail "trace ends with $?"
cat "$TMP/out.txt"
python3 - "$TMP" <<'PY' || failures=$((failures + 1))
import csv, json, re, sys
tmp = sys.argv[1]
job = json.load(open(tmp + "/truth.json"))["seconds"]
s = json.load(open(tmp + "/out/summary/summary.json"))
bad = 0
def ok(what, so):
    global bad
    if not so:
        bad += 1
        print("FAIL", what)
d = {x["device"]: x for x in s["counters"]}
row = lambda device, counter: next(r for r in d[device]["counters"] if r["counter"] == counter)
# Whose it is.
ok("cxi0 is rank 0's, the nearest", d["cxi0"]["ranks"] == [0] and d["cxi0"]["whose"] == "nearest")
ok("cxi1 is rank 1's", d["cxi1"]["ranks"] == [1])
ok("gpu1 is rank 1's own", d["gpu1"]["ranks"] == [1] and d["gpu1"]["whose"] == "its GPU")
ok("the port is of the host", d["mlx5_0:1"]["ranks"] == [2, 3] and d["mlx5_0:1"]["whose"] == "of the host")
# Nothing is lost over the end of the counter, and what is certain holds the figure.
r = row("cxi0", "hni_sts_tx_ok_octets")
ok("20 GB/s of the job, over its end: %r" % r, abs(r["with"] + r["without"] - 20e9 * job) < 20e9 * 0.51)
ok("between least and most", r["with_at_least"] <= r["with"] <= r["with_at_most"] <= r["with"] +
   r["without"] + 1)
ok("no sample unknown", r["unknown"] == 0 and r["unit"] == "bytes")
ok("most of it with collectives", r["with_at_most"] > 19e9 * (job - 1))
r = row("cxi1", "hni_sts_tx_ok_octets")
ok("1 GB/s all the time, outside as well", r["without"] > 8.5e9)
ok("unreadable from the sixth sample on",
   row("cxi1", "pct_spt_timeouts")["unknown"] > 5 and row("cxi1", "pct_spt_timeouts")["samples"] == 4)
r = row("mlx5_0:1", "port_xmit_data")
ok("words of 4 bytes: %r" % r, abs(r["with"] + r["without"] - 8e9 * job) < 8e9 * 0.51)
ok("a reset is no number", row("mlx5_0:1", "packet_seq_err")["unknown"] >= 1)
r = row("gpu0", "clock_sm")
ok("the clock while collectives ran: %r" % r, r["lowest_with"] == 1200 and r["level_with"] < 1700)
ok("bytes of NCCL's own", s["sent"] and all(x["nccl_bytes"] > 0 for x in s["sent"]))
c = list(csv.DictReader(open(tmp + "/out/summary/counters.csv")))
ok("14 rows of CSV", len(c) == 14)
one = next(x for x in c if x["device"] == "cxi0" and x["counter"] == "hni_tx_paused_1")
ok("CSV says what JSON says", float(one["with"]) == row("cxi0", "hni_tx_paused_1")["with"])
text = open(tmp + "/out.txt").read()
ok("the terminal has both tables",
   "NICs while collectives ran" in text and "GPUs while collectives ran" in text)
ok("throttling is named", "HW thermal" in text)
# The operations alone: counters are evidence of what stands out, and a busy machine lets a rank stand out
# that was not planted.
before = re.search(r"\n( *time .*?)\n\n", open(tmp + "/without.txt").read(), re.S).group(1)
ok("nothing else changed", "COMPLETE" in text and before in text)
page = open(tmp + "/out/report.html").read()
ok("the page has the devices",
   '"devices":{"cols"' in page and "hni_" not in page.split('"devices"')[1][:2000])
# The timeline.
t = json.load(open(tmp + "/trace.json"))["traceEvents"]
track = lambda e: e["name"] + "".join(" " + k for k in e["args"])  # as Perfetto names it
names = {track(e) for e in t if e["ph"] == "C"}
ok("tracks of counters: %r" % names,
   {"cxi0 hni_sts_tx_ok_octets GB/s", "cxi0 hni_tx_paused_1 % of time", "gpu0 clock_sm MHz"} <= names)
ok("what stands still has no track", not any("cxi1 hni_tx_paused_1" in x for x in names))
v = [e["args"]["GB/s"] for e in t if e["ph"] == "C" and e["name"] == "cxi0 hni_sts_tx_ok_octets"]
ok("20 GB/s in it, nothing more", 19.9 < max(v) < 20.1)
ok("processes of their own", sum(e["name"] == "process_name" and e["args"]["name"].endswith("NICs and GPUs")
                                 for e in t if e["ph"] == "M") == 2)
marks = [e["name"] for e in t if e["ph"] == "i" and "cxi1 pct_spt_timeouts" in e["name"]]
ok("an unreadable counter is marked once: %r" % marks, marks == ["cxi1 pct_spt_timeouts: unreadable"])
ok("a reset is marked", any(e["name"] == "mlx5_0:1 packet_seq_err: began anew" for e in t if e["ph"] == "i"))
sys.exit(bad != 0)
PY
# The table of samples, by readers that are not ours; and the questions of the docs.
if python=$(BUILD=$BUILD test/foreign/setup.sh 2>"$TMP/venv"); then
  (cd "$TMP/out" && "$python" - "$OLDPWD/docs/queries_counters.sql") <<'PY' || failures=$((failures + 1))
import glob, re, sys
import duckdb
import pyarrow.parquet as pq
t = pq.read_table(sorted(glob.glob("parquet_counters/*.parquet"))[0]).to_pylist()
tx = [r for r in t if r["device"] == "cxi0" and r["counter"] == "hni_sts_tx_ok_octets"]
assert any(r["state"] == "wrapped" for r in tx) and all(r["delta"] >= 0 for r in tx), tx[:3]
assert any(r["state"] == "unreadable" and r["value"] is None and r["delta"] is None for r in t)
asked = [q for q in re.sub("--.*", "", open(sys.argv[1]).read()).split(";") if q.strip()]
answers = [duckdb.sql(q) for q in asked]
rows = [a.fetchall() for q, a in zip(asked, answers) if "CREATE" not in q]
assert any(r[2] and r[3] and r[4] for r in rows[2]), rows[2]
assert sum(r[3] for r in rows[0] if r[1] == "cxi0") == sum(r["delta"] for r in tx), rows[0]
assert ("sim-node1", "mlx5_0:1", "packet_seq_err", "reset") in [r[:4] for r in rows[1]], rows[1]
PY
else
  cat "$TMP/venv"
fi
finish
