#!/usr/bin/env bash
# Outliers by cause: jobs with planted pauses (docs/verdicts.md) have one entry for each incident, with who
# began it, whatever
# --jobs; where nothing says when operations started the list is as it was. And findings' evidence: beside
# counters of which one device is off it names the rung, and says once where there are none.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector jobs=$BUILD/test/ni-jobs
summary() { "$inspector" summary "$@" --no-plots --no-html --no-parquet --no-csv; }

"$jobs" --layout A --kind intermittent --size 20 --seed 10 --steps 200 --out "$TMP/a" >/dev/null
"$jobs" --layout F --kind noisy --seed 10 --steps 90 --out "$TMP/f" >/dev/null
summary "$TMP/a" --output-dir "$TMP/a1" -j1 >"$TMP/a1.txt"
summary "$TMP/a" --output-dir "$TMP/a3" -j3 >/dev/null
cmp "$TMP/a1/summary/summary.json" "$TMP/a3/summary/summary.json" || fail "outliers depend on --jobs"
grep -Eq '^  rank [0-9]+ on node-[0-3] paused [0-9.]+ ms before [A-Za-z]+ #[0-9]+ on .* \(step [0-9]+\): [0-9]+ operations of [0-9]+ ranks waited, [0-9.]+ ms at most' "$TMP/a1.txt" ||
  { fail "the terminal says who paused"; grep -A4 "largest" "$TMP/a1.txt"; }
test/verdicts/incidents.py --exporter "$inspector" --verbose "$TMP/a" "$TMP/f" >"$TMP/score" ||
  fail "the scorer ends with $?"
cat "$TMP/score"
python3 - "$TMP" <<'P' || failures=$((failures + 1))
import json, sys
work, bad = sys.argv[1], 0
def ok(what, so):
    global bad
    if not so:
        bad += 1
        print("FAIL", what)
total = next(l for l in open(work + "/score") if l.startswith("| all")).split("|")
entries, right, twice = int(total[3]), float(total[4].split()[0]), int(total[7])
ok("entries, most of them right, none twice: %s" % total, entries >= 5 and right >= 90 and twice == 0)
s = json.load(open(work + "/a1/summary/summary.json"))
o, rank = s["outliers"], json.load(open(work + "/a/truth.json"))["culprits"][0]["rank"]
ok("numbered, the largest first", [x["incident"] for x in o] == list(range(1, len(o) + 1)) and len(o) <= 50)
ok("by the largest loss", all(x["most_us"] >= y["most_us"] for x, y in zip(o, o[1:])) and
   all(x["lost_us"] <= x["most_us"] <= x["total_us"] + 1e-6 for x in o))
mine = [x for x in o if x["began"] and x["began"]["rank"] == rank and x["began"]["us"]]
ok("the culprit began some, three at most have entries: %d" % len(mine), 1 <= len(mine) <= 3)
ok("of a finding, which holds the rank",
   all(x["finding"] is None or rank in s["findings"][x["finding"]]["ranks"] for x in mine))
ok("others waited", all(x["operations"] > 3 and 0 < x["ranks_waiting"] < 32 for x in mine))
ok("the keys of an operation are still there",
   {"kind", "func", "sn", "id", "hostname", "rank", "global_rank", "exec_time_us", "peers_us", "lost_us",
    "time_us"} <= set(o[0]))
sys.exit(bad != 0)
P
# Who began a wait. What a rank waited for is not in a sampled log; an operation that ends when the next one
# starts was waited for, by whatever stamps are off; a pause that is short beside the place it falls in; and
# who is late all along, and computes beside operations that it hardly waits in, does not pause. Where gaps
# are all that tells steps, a pause in a step begins none;
# what others waited for before it does not matter where they waited for just as long as it was.
# what job: nobody is named who did not begin it, and whoever can be told is, but for so many in a hundred
who() {
  python3 test/verdicts/incidents.py --exporter "$inspector" --verbose "$2" >"$TMP/score"
  awk -F'|' -v least="$3" '/^\| all/ { bad = $5 + 0 < least || $6 > 0 || $4 < 1 } END { exit bad }' \
    "$TMP/score" || { fail "$1"; cat "$TMP/score"; }
}
"$jobs" --stored --layout A --kind gc --size 100 --seed 50353000 --weather --out "$TMP/sampled" >/dev/null
"$jobs" --stored --layout A --kind noisy --seed 50033000 --weather --out "$TMP/stamps" >/dev/null
python3 test/verdicts/second/make.py --stored --kind noisy --seed 30002 --out "$TMP/short" >/dev/null
python3 test/verdicts/second/make.py --stored --kind two_jobs --seed 450000 --out "$TMP/beside" >/dev/null
"$jobs" --stored --layout A --kind intermittent --size 20 --seed 50073000 --weather --out "$TMP/gaps" \
  >/dev/null
"$jobs" --stored --layout B --kind pauses --size 100 --seed 50413202 --weather --out "$TMP/aslong" >/dev/null
# Where messages are left out, all of another stage waits between its operations for the rank that pauses:
# that begins nothing.
"$jobs" --stored --layout B --kind intermittent --size 20 --seed 73200 --with no-p2p --out "$TMP/team" \
  >/dev/null
# Where gradients of replicas within a host alone are recorded, nobody knows which host's ranks paused.
"$jobs" --stored --layout C --kind pauses --size 30 --seed 50413408 --weather --out "$TMP/islands" >/dev/null
who "hosts that nothing in the logs joins" "$TMP/islands" 70
who "waits of a team that are not in the logs" "$TMP/team" 50
who "steps by gaps" "$TMP/gaps" 95
who "as long as the pause" "$TMP/aslong" 95
"$inspector" summary "$TMP/sampled" --output-dir "$TMP/none" --no-plots --no-html --no-parquet --no-csv -q \
  >/dev/null
python3 - "$TMP/none/summary/summary.json" <<'P' || fail "sampled: somebody is said to have begun a pause"
import json, sys
s = json.load(open(sys.argv[1]))
sys.exit(s["findings_by"] != "durations" or not s["outliers"] or any(o.get("began") for o in s["outliers"]))
P
who "an end behind a start" "$TMP/stamps" 95
who "short beside its place" "$TMP/short" 100
who "late all along" "$TMP/beside" 95
"$BUILD/test/host/loggen" "$TMP/nvidia" --ranks 8 --node 4 --ops 60 --format v4.0 --outliers 3
summary "$TMP/nvidia" --output-dir "$TMP/n" >"$TMP/n.txt"
grep -q '"operations": *[0-9]*, *"ranks_waiting"' "$TMP/n/summary/summary.json" &&
  fail "incidents without start times"
grep -q ' came late to \| at its fastest rank ' "$TMP/n.txt" || fail "outliers of NVIDIA's logs are as before"

# What stands beside a finding.
evidence() { # what layout kind size wanted: a text that the evidence of some finding holds
  local dir=$TMP/$1-$2-$3 gpu=
  "$jobs" --layout "$2" --kind "$3" --size "$4" --seed 10 --steps 90 --out "$dir" >/dev/null
  gpu=$(python3 -c 'import json,sys; c = json.load(open(sys.argv[1]))["culprits"][0]; print(c["host"], c.get("rank", 0) % 8)' "$dir/truth.json")
  # shellcheck disable=SC2086
  [ "$1" = no ] || python3 test/lib/counters/evidence_beside.py "$dir" "$1" $gpu
  summary "$dir" --output-dir "$dir-out" -q >/dev/null
  python3 - "$dir-out/summary/summary.json" "${gpu% *}" "${gpu#* }" "$5" <<'P' || fail "$1 $2 $3: $5"
import json, sys
path, host, gpu, wanted = sys.argv[1:]
said = [f.get("evidence", "") for f in json.load(open(path))["findings"]]
print(said)
sys.exit(wanted.format(host=host, gpu=gpu) not in (said or [""])[0] or
         sum("no counters" in x for x in said) != (wanted[:2] == "no"))
P
}
evidence gpu A late 30 "gpu{gpu} on {host} ran at 1095 MHz (others 1980), throttled by power cap; host, NIC as elsewhere"
evidence nic B nic 4 "on {host} waited 31 % of the time (others 2)"
evidence cpu D cpu 5 "host {host} had 96 threads to run (others 3), had tasks wait for a CPU 60 % of the time (others 1); GPU, NIC as elsewhere"
evidence cpu A cpu 5 "kernels started within 60 us of their launch (others "
evidence none A late 30 "host, GPU, NIC as elsewhere"
evidence no F late 30 "no counters were recorded: nccl-inspector counters run -- CMD"
if [ "$failures" -gt 0 ]; then exit 1; fi
echo "incidents and evidence"
