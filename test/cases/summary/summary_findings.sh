#!/usr/bin/env bash
# What stands out by durations, as where only some operations are chosen (here all are, by name): a planted
# straggler and a slow node are named, with rank, host and numbers that follow from the plan, in text and JSON
# alike; a job without either names nobody; the straggler of a simulated job is named by global rank.
# summary_steps has what is judged by own time.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen
by_durations=(--coll "AllReduce,AllGather,ReduceScatter,Broadcast,Reduce")
run() { # name loggen options...
  mkdir -p "$TMP/$1"
  "$loggen" "$TMP/$1" --ranks 16 --node 4 --ops 300 "${@:2}"
  "$inspector" summary "$TMP/$1" --output-dir "$TMP/$1-out" --no-plots --no-html --no-parquet --no-csv \
    "${by_durations[@]}" >"$TMP/$1.txt"
}
expect() { # name python-condition over f (findings), g (groups), text
  python3 - "$TMP/$1-out/summary/summary.json" "$TMP/$1.txt" "$2" <<'P' || { fail "$1: $2"; }
import json, sys
s = json.load(open(sys.argv[1]))
text, f, g, o = open(sys.argv[2]).read(), s["findings"], s["groups"], s["outliers"]
flat = " ".join(text.replace("|", " ").split())
assert all(" ".join(x["text"].split()) in flat for x in f[:6]) and s["findings_by"] == "durations", text
if not eval(sys.argv[3]):
    print(json.dumps(f, indent=1)); sys.exit(1)
P
}
run calm --format ours
expect calm 'f == [] and "no rank, host or communicator stands out" in text'
expect calm 'all(0 < x["of_best"] < 1 for x in g) and max(x["of_best"] for x in g) > 0.85'
run late --format ours --straggler 11
expect late 'len(f) == 1 and (f[0]["kind"], f[0]["rank"], f[0]["hostname"], f[0]["rank_stated"]) == ("late_rank", 11, "node-2", True)'
expect late 'f[0]["late_share"] == 1 and f[0]["operations"] == 600 and "rank 11 on node-2" in text and "100 %" in f[0]["text"]'
# The rule counts as the sentence does: in percent.
expect late '"(below 80 % of its peers\u0027 median) in 10 % or more of its operations" in flat and "below 90 % of the median" in flat'
expect late 'all(x["global_rank"] == 11 for x in o if x["kind"] == "late") and {x["rank"] for x in o if x["kind"] == "late"} <= {3, 11}'
expect late '"; each of its peers waited " in f[0]["text"]'
# Names that tell communicators apart stand for their hashes.
expect late '__import__("re").search(r" came late to \w+ #\d+ on 0x[0-9a-f]+: its kernel took ", text)'
run named --format ours --straggler 11 --comm-name
expect named 'set(__import__("re").findall(r"#\d+ on ([^:]*): ", text)) <= {"world"} | set(__import__("re").findall(r"node \(0x[0-9a-f]+\)", text))'
# The same in a thousandth of the time, as on streams that run at once: nobody waits for longer than the run.
mkdir "$TMP/overlap"
for f in "$TMP"/late/*; do
  python3 - "$f" "$TMP/overlap" <<'P'
import json, pathlib, sys
out = []
for l in map(json.loads, open(sys.argv[1])):
    if "coll_perf" in l:
        l["coll_perf"]["coll_enqueue_ns"] = 1790000000 * 10**9 + l["coll_perf"]["coll_enqueue_ns"] % 10**9 // 1000
        l["metadata"]["dump_timestamp_us"] = 1790000000 * 10**6
    out.append(json.dumps(l) + "\n")
pathlib.Path(sys.argv[2], pathlib.Path(sys.argv[1]).name).write_text("".join(out))
P
done
"$inspector" summary "$TMP/overlap" --output-dir "$TMP/overlap-out" --no-plots --no-html --no-parquet \
  --no-csv "${by_durations[@]}" >"$TMP/overlap.txt"
expect overlap 'len(f) == 1 and f[0]["rank"] == 11 and "; what each of its peers waited for it adds up to " in f[0]["text"]'
run slow --format v4.0 --slow-node 2
expect slow 'len(f) == 1 and (f[0]["kind"], f[0]["hostname"], f[0]["communicators_alike"]) == ("slow_nvlink", "node-2", 4)'
expect slow '1.95 < f[0]["transfer_ratio"] < 2.05 and f[0]["lost_us"] > 0'
run pair --ranks 8 --slow-node 1
expect pair 'len(f) == 1 and f[0]["hostname"] == "node-1" and f[0]["communicators_alike"] == 2'
# Kernel times for a while only (NCCL_INSPECTOR_KERNELCH_DUTY), and not for the same operations of two nodes'
# communicators:
# what has none is in no transfer time, and so no work that is compared.
mkdir -p "$TMP/duty"
"$loggen" "$TMP/duty" --ranks 8 --node 4 --ops 300 --format ours --ext .jsonl
python3 - "$TMP/duty" <<'P'
import glob, json, sys
for f in sorted(glob.glob(sys.argv[1] + "/*")):
    lines = [json.loads(l) for l in open(f)]
    for l in lines:
        c = l.get("coll_perf")
        if (c and "node-1" in l["metadata"]["hostname"] and l["header"]["nnodes"] == 1 and
            c["coll_sn"] % 5 < 3):
            c["coll_timing_source"] = "collective_cpu"
            c["coll_exec_time_us"], c["coll_exec_time_ns"] = 8, 8000
            del c["coll_algobw_gbs"], c["coll_busbw_gbs"]
    open(f, "w").write("".join(json.dumps(l) + "\n" for l in lines))
P
"$inspector" summary "$TMP/duty" --output-dir "$TMP/duty-out" --no-plots --no-html --no-parquet --no-csv \
  "${by_durations[@]}" >"$TMP/duty.txt"
expect duty 'f == [] and any(x["timing_source"] == "collective_cpu" for x in g)'
# A job whose ranks all are late now and then: nobody stands out, and one sentence says so. With a straggler
# he alone does.
spread() { # name options...
  mkdir -p "$TMP/$1"
  "$loggen" "$TMP/$1" --ranks 16 --node 4 --ops 300 --format ours --ext .jsonl "${@:2}"
  python3 - "$TMP/$1" <<'P'
import glob, json, random, sys
for f in sorted(glob.glob(sys.argv[1] + "/*")):
    lines = [json.loads(l) for l in open(f)]
    for l in lines:
        if "coll_perf" not in l:
            continue
        k = (l["header"]["id"], l["coll_perf"]["coll"], l["coll_perf"]["coll_sn"])
        late = random.Random(str(k)).sample(range(l["header"]["n_ranks"]), l["header"]["n_ranks"] // 4)
        if l["header"]["rank"] in late:
            for key in ("coll_exec_time_us", "coll_exec_time_ns"):
                l["coll_perf"][key] = l["coll_perf"][key] // 2
    open(f, "w").write("".join(json.dumps(l) + "\n" for l in lines))
P
  "$inspector" summary "$TMP/$1" --output-dir "$TMP/$1-out" --no-plots --no-html --no-parquet --no-csv "${by_durations[@]}" >"$TMP/$1.txt"
}
spread noise
expect noise 'not [x for x in f if x["kind"] == "late_rank"] and "half of the ranks came late to 2" in text and 0.2 < s["late_share_median"] < 0.3'
if [ -s "$BUILD/report/report_assets.tail" ]; then # the page says it, too
  "$inspector" summary "$TMP/noise" --output-dir "$TMP/noise-page" --no-plots --no-parquet --no-csv \
    "${by_durations[@]}" -q >/dev/null
  grep -q '"findings_of_all":"half of the ranks came late to 2' "$TMP/noise-page/report.html" ||
    { fail "not in the page"; }
fi
spread noise_and_one --straggler 11
expect noise_and_one '[x["rank"] for x in f if x["kind"] == "late_rank"] == [11]'
# A job that was started twice into one folder.
mkdir "$TMP/twice"
cp "$TMP"/late/* "$TMP/twice"
for f in "$TMP"/late/*; do
  sed 's/"pid":4/"pid":5/; s/"start_ns":179/"start_ns":180/; s/"id":"0x[57]/"id":"0x9/' "$f" \
    >"$TMP/twice/again-$(basename "$f")"
done
"$inspector" summary "$TMP/twice" --output-dir "$TMP/twice-out" --no-plots --no-html --no-parquet --no-csv \
  "${by_durations[@]}" >"$TMP/twice.txt"
expect twice '"note: 2 runs in these logs" in text and len(s["ranks"]) == 32'
! grep -q 'runs or more' "$TMP/late.txt" || { fail "late: it was one run"; }
run both --format ours --slow-node 1 --straggler 9
expect both '[(x["kind"], x["hostname"]) for x in f] == [("late_rank", "node-2"), ("slow_nvlink", "node-1")]'

sim=$BUILD/nccl-sim plugin=$BUILD/libnccl-profiler-inspector.so
if [ -x "$sim" ] && [ -e "$plugin" ]; then
  mkdir "$TMP/job"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/job timeout 50 "$sim" --quiet --plugin "$plugin" \
    --job 2x8 --procs \
    --set straggler=11 --set straggler_ms=40 --rate 300 >/dev/null
  "$inspector" summary "$TMP/job" --output-dir "$TMP/job-out" --no-plots --no-html \
    "${by_durations[@]}" >"$TMP/job.txt"
  expect job 'any(x["kind"] == "late_rank" and x["rank"] == 11 and x["rank_stated"] and x["hostname"] == "sim-node1" and x["late_share"] > 0.5 and x["lost_us"] > 330000 for x in f)'
  # One host is not compared with itself, however its bandwidths are spread.
  mkdir "$TMP/alone"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/alone timeout 50 "$sim" --quiet --plugin "$plugin" \
    --scenario p2p >/dev/null
  "$inspector" summary "$TMP/alone" --output-dir "$TMP/alone-out" --no-plots --no-html >"$TMP/alone.txt"
  expect alone 'not any(x["kind"] == "slow_host" for x in f) and all(x["busbw_relative"] is None for x in s["hosts"])'
  # One process with all ranks: it is named with them, and no rank is passed off as the one.
  mkdir "$TMP/threads"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/threads timeout 50 "$sim" --quiet --plugin "$plugin" \
    --job 1x8 \
    --set straggler=5 --set straggler_ms=40 --rate 300 >/dev/null
  "$inspector" summary "$TMP/threads" --output-dir "$TMP/threads-out" --no-plots >"$TMP/threads.txt"
  expect threads 'len(s["ranks"]) == 1 and s["ranks"][0]["ranks_in_process"] == 8 and s["ranks"][0]["ranks"] == "ranks 0-7"'
  expect threads 'all(x["global_rank"] is None and x["rank"] == 5 for x in o if x["kind"] == "late") and "global rank" not in text'
  expect threads 'all("(ranks 0-7)" in x["text"] and x["rank"] is None for x in f if x["kind"] == "late_rank")'
  [ ! -e "$TMP/threads-out/report.html" ] || grep -q '"ranks 0-7"' "$TMP/threads-out/report.html" ||
    { fail "threads: the page does not name the ranks"; }
fi
finish
