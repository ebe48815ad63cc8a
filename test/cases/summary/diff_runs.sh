#!/usr/bin/env bash
# Two runs beside each other: silent where only chance differs, names who is slower, gates; refuses what
# cannot be compared;
# reads logs, folders of summary, summary.json and counters; bad files end with a sentence.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector
job() { "$BUILD/test/ni-jobs" --layout "${3:-B}" --seed 11 --steps 40 --draw "$2" --out "$TMP/$1" "${@:4}" >/dev/null; }
# said NAME CODE OPTION...: the exit code; what it prints is in $TMP/said and $TMP/errors.
said() {
  local rc=0
  (cd "$TMP" && "$inspector" diff "${@:3}" >said 2>errors) || rc=$?
  [ $rc = "$2" ] || { head -n 8 "$TMP/said" "$TMP/errors"; fatal "$1: exit code $rc, not $2"; }
}
has() {
  grep -qE -- "$2" "$TMP/said" "$TMP/errors" ||
    { head -n 12 "$TMP/said" "$TMP/errors"; fatal "$1: no line with '$2'"; }
}
is() { python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); rows = {r["name"]: r for r in j["rows"]}; assert eval(sys.argv[2])' "$TMP/said" "$2" ||
  fatal "$1: not so: $2"; }

job good 1
job same 2
job late 3 B --kind late --size 10
job slow 4 B --slower 1.05
job other 1 C
said same 0 --json -j1 good same
is same 'j["schema_version"] == "nccl-inspector-diff-1" and j["changed"] == 0 and len(rows) > 60 and j["notes"] == []'
is same '{r["kind"] for r in j["rows"]} == {"step", "host", "rank", "role", "link", "function"}'
is same '{"TP collectives of 8 ranks within hosts", "PP messages across hosts", "DP collectives of 2 ranks across hosts"} <= set(rows)'
cp "$TMP/said" "$TMP/one"
said jobs 0 --json -j2 --memory 16M good same
cmp "$TMP/one" "$TMP/said"

rank=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["culprits"][0]["rank"])' "$TMP/late/truth.json")
page=()
if grep -q . "$BUILD/report/report_assets.tail"; then page=(--html page.html); fi
said late 0 --all "${page[@]}" good late
has late "; rank $rank on node-[0-3] computes ([789]|1[01])\.[0-9] % longer\$"
has late "^rank +rank $rank on node.* slower\$"
has late '^link +collectives of ranks 0, ... to 7 '
if [ -n "${page[*]}" ]; then
  grep -q 'nccl-inspector-diff-1' "$TMP/page.html"
  ! grep -qE '(src|href)="?https?:' "$TMP/page.html"
fi

# What all ranks do more is no rank's.
said gate 3 --json --gate 2% good slow
is gate 'j["gate"] == 0.02 and j["gate_row"]["low"] > 0 and j["gate_row"]["name"].endswith("step")'
is gate 'rows["all ranks"]["verdict"] == "slower" and 0.04 < rows["all ranks"]["change"] < 0.06'
is gate 'all(r["verdict"] in ("same", "unclear") for r in j["rows"] if r["kind"] == "rank")'
is gate 'j["verdict"].startswith("B is ") and "slower than A" in j["verdict"] and "; all ranks compute " in j["verdict"]'

# Operations hide the computing of DDP: a late rank is outside of them longer than the others.
job ddp 1 D
job ddp-late 2 D --kind late --size 5
rank=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["culprits"][0]["rank"])' "$TMP/ddp-late/truth.json")
said ddp 0 --json ddp ddp-late
is ddp '[r["rank"] for r in j["rows"] if r["kind"] == "rank" and r["verdict"] == "slower"] == ['"$rank]"
for bad in 5x -1 100 nan ''; do said "gate $bad" 64 "--gate=$bad" good slow; done
said one 64 good

# What the summary keeps of a run is enough for its steps and functions, as a folder or a file.
for run in good slow; do
  "$inspector" summary -q --no-plots --no-parquet --no-html "$TMP/$run" --output-dir "$TMP/$run-out" \
    >/dev/null
done
said summary 3 --gate 0.02 good-out slow-out/summary/summary.json
has summary '^B is [345]\.[0-9] % slower than A'
has summary '^gate: (typical|mean) step is [345]\.[0-9] % slower \([0-9.]+ to [0-9.]+ %\), more than 2 %$'
said "high gate" 0 --gate 10% good-out slow-out
has "high gate" '^gate: passed'
said backwards 0 --gate 0 slow-out good-out
has backwards '^B is [345]\.[0-9] % faster than A'
said mixed 0 --json good-out same
is mixed 'j["changed"] == 0 and j["a"]["from"] == "summary.json" and j["b"]["from"] == "logs" and rows["typical step"]["verdict"] == "same"'
python3 - "$TMP" <<'P'
import gzip, json, os, sys
sys.path.insert(0, "test/lib")
import logs
work = sys.argv[1]
def put(name, text): open(os.path.join(work, name), "w").write(text)
s = json.load(open(os.path.join(work, "good-out/summary/summary.json")))
del s["steps"]
put("blind.json", json.dumps(s))
for g in s["groups"]:
    for k in ("p25", "p50", "p75"): g["transfer_time_us"][k] = (g["transfer_time_us"][k] or 1) * 1.2
put("blind20.json", json.dumps(s))
s["groups"] = [{"func": [1], "comm_type": 7, "timing_source": {}, "msg_size_bytes": 1e300,
                "transfer_time_us": {"n": -1}}] * 3
s["steps"] = {"n_steps": -5, "bins": [[1, 2], "x", None]}
put("odd.json", json.dumps(s))
put("cut.json", json.dumps(s)[:200])
put("deep.json", "[" * 100000)
put("none.json", '{"schema_version":"nccl-inspector-summary-1"}')
for name in ("cpu", "part", "rolled", "rolled20"): os.mkdir(os.path.join(work, name))
for i, n in enumerate(sorted(os.listdir(os.path.join(work, "same")))):
    if n == "truth.json": continue
    text = gzip.open(os.path.join(work, "same", n)).read()
    gzip.open(os.path.join(work, "cpu", n), "w", 1).write(text.replace(b'"kernel_gpu"', b'"kernel_cpu"'))
    if i != 3: gzip.open(os.path.join(work, "part", n), "w", 1).write(text)
    for name, ns in ("rolled", 800000), ("rolled20", 960000):
      lines = [json.loads(l) for l in text.splitlines()]
      lines = [l for l in lines if "process" in l or "comm" in l]
      comm = [l for l in lines if "comm" in l][0]
      rollup = logs.rollup("AllReduce", 1 << 20, 1, 2, 900, 900 << 20, 900 * ns, ns - 10000, ns + 9000000)
      rollup["hist"] = {"786432": 450, "917504": 450}
      lines.append(logs.line(comm["header"], comm["metadata"], "rollup", rollup))
      with gzip.open(os.path.join(work, name, n), "wt", 1) as f:
          f.writelines(json.dumps(l) + "\n" for l in lines)
P
said blind 0 blind.json blind20.json
has blind '^note: A has no steps'
has blind '^function .*\+20\.0 %.* slower$'
said "blind gate" 0 --gate 10% blind.json blind.json
for bad in odd cut deep none; do
  said "$bad" 1 good-out $bad.json
  has "$bad" '^nccl-inspector diff: .'
done

# Roll-ups alone: means, of the functions and sizes that both have.
said rolled 2 --json rolled rolled20
is rolled 'j["a"]["from"] == j["b"]["from"] == "roll-ups" and len(rows) == 1 and j["rows"][0]["verdict"] == "slower" and abs(j["rows"][0]["change"] - 0.2) < 0.01'
said "rolled, the same" 2 rolled rolled
has "rolled, the same" '^0 of 1 functions and sizes changed'
said "rolled, logs" 1 rolled good
has "rolled, logs" 'roll-ups'

said layout 1 good other
has layout 'another layout: A has communicators .* B .*; compare runs with the same parallel sizes$'
said timing 1 good cpu
has timing 'A is timed by the GPU and B by the CPU'
said part 2 good part
has part '^note: B is incomplete: '
said gone 1 good nothing-there
mkdir "$TMP/empty"
said empty 1 good empty

# Counters go where counters are compared.
sweep() { python3 test/lib/counters/netprof.py sweep "$TMP/$1" --nics 0,1 "${@:2}"; }
sweep a.before
sweep a.after --seconds 10 --set cxi0:hni_sts_tx_ok_octets=+1000000
sweep b.after --seconds 10 --set cxi0:hni_sts_tx_ok_octets=+5000000
"$inspector" counters diff --json "$TMP/a.before,$TMP/a.after" "$TMP/a.before,$TMP/b.after" >"$TMP/compared"
said counters 0 --json "$TMP/a.before,$TMP/a.after" "$TMP/a.before,$TMP/b.after"
cmp "$TMP/said" "$TMP/compared"
# A series of them is not two sweeps: what would do is said.
python3 - "$TMP/node-0-counters-1.jsonl.gz" <<'P'
import sys
sys.path.insert(0, "test/lib/counters")
from counter_series_write import NS, Series
s = Series(sys.argv[1], "node-0",
           [{"source": "host", "name": "node-0", "metrics": [{"name": "context_switches"}]}])
for i in range(3): s.sample(1800000000 * NS + i * NS, [1000 * i])
s.close()
P
said series 1 node-0-counters-1.jsonl.gz good
has series 'node-0-counters-1.jsonl.gz: counters over time, which are not compared: give two sweeps of each run, BEFORE,AFTER'
echo "diff: as it should be"
