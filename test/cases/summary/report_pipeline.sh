#!/usr/bin/env bash
# From logs to the page and the figures: the page says what summary.json says, its commands run and find what
# they were copied for, a kept script draws the same bytes again, and without gnuplot or with quotes in paths
# the rest goes on.
. "$(dirname "$0")/../../lib/case.sh"
need python3
[ -x "$BUILD/test/host/loggen" ] || skip "no $BUILD/test/host/loggen (make tools)"
cli=$BUILD/nccl-inspector
cd "$TMP"

"$BUILD/test/host/loggen" "it's logs" --ranks 16 --node 8 --ops 200 --format ours --comm-name --straggler 11 \
  --outliers 2 --p2p 20
how=--keep-scripts
command -v gnuplot >/dev/null || how=--no-plots
"$cli" summary --input-dir "it's logs" --output-dir "o'ut" $how --quiet >/dev/null 2>err.txt ||
  { cat err.txt; exit 1; }

if [ $how = --keep-scripts ]; then
  cd "o'ut/summary"
  for f in scatter_plot_mixed_AllReduce combined_scatter_plot_mixed_AllReduce; do
    [ -s "$f.png" ] || { echo "no $f.png"; exit 1; }
    cp "$f.png" "$TMP/first.png"
    rm "$f.png"
    gnuplot "gnuplot/$f.png.gp" 2>/dev/null
    cmp "$f.png" "$TMP/first.png"
  done
  cd "$TMP"
fi

# No gnuplot: one line on stderr, everything else is written.
mkdir bin # a PATH with nothing on it
rc=0
PATH=$TMP/bin "$cli" summary --input-dir "it's logs" --output-dir without --quiet >/dev/null \
  2>err.txt || rc=$?
[ $rc = 0 ] && [ -s without/summary/summary.json ] ||
  { echo "without gnuplot: exit $rc"; cat err.txt; exit 1; }
[ "$(grep -c gnuplot err.txt)" = 1 ] || { echo "not one line about gnuplot:"; cat err.txt; exit 1; }

[ -s "$BUILD/report/report_assets.tail" ] || skip "the figures are right; this build makes no report.html"
# The same page whatever --jobs and wherever it goes.
for jobs in 1 2; do
  "$cli" summary --input-dir "it's logs" --output-dir "jobs$jobs" --jobs $jobs --no-plots --no-parquet \
    --quiet >/dev/null
  cmp "o'ut/report.html" "jobs$jobs/report.html"
done
python3 - "o'ut" "$cli" <<'PY'
import json, math, os, shlex, subprocess, sys
out, cli = sys.argv[1:]
text = open(out + "/report.html", encoding="utf8").read()
page = json.loads(text.split('<script type="application/json" id="data">')[1].split("</script>")[0])
summary = json.load(open(out + "/summary/summary.json"))
rows = lambda name: [dict(zip(page[name]["cols"], r)) for r in page[name]["rows"]]

def near(a, b, what, rel=1e-4):  # the page rounds to 5 digits
    if (a is None) != (b is None) or (a is not None and not math.isclose(a, b, rel_tol=rel)):
        sys.exit("%s: page %r, summary.json %r" % (what, a, b))

groups = {(page["types"][g["type"]], g["func"], g["bytes"], page["timings"][g["timing"]]): g
          for g in rows("groups")}
assert len(groups) == len(summary["groups"]) > 10, (len(groups), len(summary["groups"]))
stat = ["n", "mean", "stddev", "min", "p10", "p25", "p50", "p75", "p90", "p99", "max"]
for g in summary["groups"]:
    key = ({"nvlink-only": "one node", "hca-only": "one rank per node",
            "single-rank": "one rank"}.get(g["comm_type"], g["comm_type"]), g["func"], g["msg_size_bytes"],
            g["timing_source"])
    p = groups[key]
    assert p["records"] == g["records"] and p["operations"] == g["operations"], key
    for ours, theirs in (("us", "exec_time_us"), ("busbw", "busbw_gbs")):
        for name in ("mean", "stddev", "min", "p50", "p90", "p99", "max"):
            near(p[ours][stat.index(name)], g[theirs][name], "%s %s %s" % (key, theirs, name))
assert page["records"] == sum(g["records"] for g in rows("groups"))
assert page["complete"] is True and page["input"]["trouble"] == []

# Planted: rank 11 is late.
worst = max(rows("processes"), key=lambda p: p["late_ns"])
assert worst["rank"] == 11, worst
late = [o for o in rows("outliers") if o["kind"] == 0]
assert late and all(o["host"] == "node-1" for o in late), late[:2]

# What the page copies, made by the same rule: from any folder it finds the operation with all its ranks, and
# no other.
o = late[0]
comm = rows("comms")[o["comm"]]
def rfc3339(us):
    import datetime
    t = datetime.datetime.fromtimestamp(us // 1000000, datetime.timezone.utc)
    return t.strftime("%Y-%m-%dT%H:%M:%S") + ".%06dZ" % (us % 1000000)
around = math.ceil(max(o["us"], o["peers_us"])) + 1000
assert page["input_paths"] == [os.path.realpath(page["input_name"])], page["input_paths"]
got = subprocess.run([cli, "summary", "--input_dir", page["input_paths"][0], "--comm", o["comm_id"], "--coll",
                      o["func"], "--sn",
                      str(o["sn"]), "--since",
                      rfc3339(o["time_us"] - around), "--until", rfc3339(o["time_us"] + around),
                      "--output_dir", "closer", "--no-plots",
                      "--no-html", "--no-parquet", "--json"], capture_output=True, text=True)
found = json.loads(got.stdout)
n = sum(g["records"] for g in found["groups"])
assert (n == comm["n_ranks"] and
        sum(g["operations"] for g in found["groups"]) == 1), "the copied command finds %d records of %d ranks: %s" % (n, comm["n_ranks"], got.stderr)
print("page and summary.json agree on %d groups; the copied command finds %d records" % (len(groups), n))
PY
