#!/usr/bin/env bash
# Timelines of simulated jobs: GPU stamps can be worked out from records and clock lines, kernels stand where
# they ran, and all kinds of events are drawn and joined by arrows.
. "$(dirname "$0")/../../lib/sim.sh"
inspector=$BUILD/nccl-inspector
draw() { # name: of $TMP/logs
  local rc=0
  "$inspector" trace "$TMP/logs" -o "$TMP/$1.json.gz" >"$TMP/$1.txt" 2>&1 || rc=$?
  [ $rc = 0 ] || { fail "$1: exit $rc"; cat "$TMP/$1.txt"; }
}

run_logged 2x2 --procs --iterations 10 --set gpu_drift_ppm=40 >/dev/null
draw job
python3 - "$TMP" <<'P' || failures=$((failures + 1))
import glob, gzip, json, sys
sys.path.insert(0, "test/lib")
import trace_check
tmp, start, exact, n = sys.argv[1], {}, 0, 0
pids = {}
for line in open(tmp + "/truth"):
    t = json.loads(line)
    if t["t"] == "op" and t.get("ch"):
        start[(t["pid"], t["hash"], t["kind"], t["rec"])] = min(c[1] for c in t["ch"])
# 1. GPU start = enqueue + delta - the offset of the last clock line before the record, to 1 us and a clock's
# step.
for f in sorted(glob.glob(tmp + "/logs/*")):
    stated = {}
    for line in gzip.open(f):
        l = json.loads(line)
        pid, h = l["metadata"]["pid"], l["header"]["id"]
        if "clock" in l and l["clock"].get("gpu_offset_ns") is not None:
            stated[h] = l["clock"]["gpu_offset_ns"]
        for kind, p in (("coll_perf", "coll"), ("p2p_perf", "p2p")):
            if kind not in l or p + "_gpu_start_delta_ns" not in l[kind]:
                continue
            r = l[kind]
            n += 1
            assert h in stated, "a record with GPU times before any clock line"
            gpu = r[p + "_enqueue_ns"] + r[p + "_gpu_start_delta_ns"] - stated[h]
            truth = start[(pid, h, p, r["rec_sn"])]
            exact += abs(gpu - truth) <= 2000
assert n > 100 and exact >= n - n // 50, f"{exact} of {n} GPU starts agree with the clock line before them"
# 2. One slice for each, by the format's rules.
x = trace_check.load(tmp + "/job.json.gz")
kernels = [s for s in x.slices if s["cat"] in ("coll", "p2p")]
assert len(kernels) == n and len(x.process) == 4, (len(kernels), n, x.process)
print(f"{n} records, {exact} GPU starts exact, {len(x.arrows)} arrows")
P

# In rotated files, by our names or by those of others, the same lines are the same timeline.
for names in '%s.%d.jsonl.gz' '%s.jsonl.gz.%d'; do
  python3 - "$TMP" "$names" <<'P'
import glob, gzip, os, re, sys
tmp, names = sys.argv[1:]
os.makedirs(tmp + "/rotated", exist_ok=True)
for f in glob.glob(tmp + "/rotated/*"):
    os.remove(f)
for f in glob.glob(tmp + "/logs/*.jsonl.gz"):
    lines = gzip.open(f).readlines()
    stem = tmp + "/rotated/" + os.path.basename(f)[:-len(".jsonl.gz")]
    third = len(lines) // 3
    for i in range(3):
        to = stem + ".jsonl.gz" if i == 0 else names % (stem, (0, 2, 10)[i])
        part = lines[i * third:(i + 1) * third if i < 2 else len(lines)]
        gzip.open(to, "w").writelines(([lines[0]] if i else []) + part)
P
  "$inspector" trace "$TMP/rotated" -o "$TMP/rotated.json.gz" >"$TMP/rotated.txt" 2>&1 ||
    { cat "$TMP/rotated.txt"; failures=$((failures + 1)); }
  cmp <(zcat "$TMP/job.json.gz" | sed "s|$TMP/logs||g") <(zcat "$TMP/rotated.json.gz" |
    sed "s|$TMP/rotated||g") ||
    { fail "rotated $names: another timeline"; }
done

# Roll-ups that are to outlive the records have files of their own: of the same processes.
run_logged NCCL_INSPECTOR_DIR_MAX_BYTES=50m NCCL_INSPECTOR_ROLLUP_SECONDS=1 2x2 --procs --iterations 10 \
  >/dev/null
ls "$TMP"/logs/*.rollup.jsonl.gz >/dev/null || failures=$((failures + 1))
draw rollups
grep -q '^timeline .* of 4 ranks on 2 hosts' "$TMP/rollups.txt" &&
  ! grep -q '^incomplete' "$TMP/rollups.txt" ||
  { fail "roll-ups"; cat "$TMP/rollups.txt"; }

# Ranks in one process, and no word of their GPUs: which ranks of two communicators are one, no log says. At
# least as many as the largest communicator has, and no command says more than that.
for job in "2x8 8 or more ranks" "1x4 4 ranks"; do
  run_logged "${job%% *}" --iterations 2 >/dev/null
  { "$inspector" trace "$TMP/logs" -o "$TMP/one.json"; "$inspector" hang "$TMP/logs" --box-dir "$TMP"; } \
    >"$TMP/one.txt" || true
  for said in "operations of ${job#* } on 1 host: " "(${job#* } in 1 process, "; do
    grep -qF "$said" "$TMP/one.txt" || { fail "$job: not '$said'"; cat "$TMP/one.txt"; }
  done
done

# A pipeline: stages share Sends and Receives only. One host where the names of hosts cannot be set.
run_logged 4x8 --procs >/dev/null 2>&1
draw pipeline
python3 test/lib/trace_values.py expect "$TMP/pipeline.json.gz" \
  'len(x.other["clocks"]) == 1 or (len(x.other["clocks"]) == 4 and all(c["aligned"] for c in x.other["clocks"]) and any("messages" in c for c in x.other["clocks"]))' ||
  { cat "$TMP/pipeline.txt"; failures=$((failures + 1)); }

# Everything on: calls, launches, network; and arrows of every kind between them.
run_logged NCCL_INSPECTOR_EVENTS=trace net --set procs=1 >/dev/null 2>&1
draw all
python3 test/lib/trace_values.py expect "$TMP/all.json.gz" \
  '{a["name"] for a in x.arrows} >= {"call to kernel", "call to launch", "launch to kernel", "enqueue to network"} and {"API calls", "world: proxy thread"} <= set(x.thread.values()) and any("network send" in t for t in x.thread.values()) and any("network steps" in t for t in x.thread.values())' || failures=$((failures + 1))
# What an arrow says must be so: a call's operation is its own.
python3 test/lib/trace_values.py expect "$TMP/all.json.gz" \
  'all(a["from"]["args"]["call_sn"] == a["to"]["args"]["call_sn"] and a["to"]["name"].startswith(a["from"]["name"]) for a in x.arrows if a["name"] == "call to kernel")' || failures=$((failures + 1))
finish
