#!/usr/bin/env bash
# What we write as JSON, against schemas/: lines of logs by all kinds, and what the commands say of good,
# killed, hanging and damaged jobs and of counters. A key that its schema has not fails
# (test/lib/python/schemas.py).
. "$(dirname "$0")/../../lib/sim.sh"
VENV=$(test/foreign/setup.sh jsonschema) || skip "no jsonschema from pip"
python3 scripts/schemas.py --check
INSPECTOR=$BUILD/nccl-inspector
checked=()
# json NAME CODES COMMAND...: its document, for later.
json() {
  local name=$1 codes=$2 rc=0 to=$TMP/$1.${#checked[@]}.json
  shift 2
  "$INSPECTOR" "$@" >"$to" 2>"$TMP/said" || rc=$?
  case ,$codes, in *,$rc,*) ;; *) fail "$*: exit code $rc"; head -n 3 "$TMP/said" ;; esac
  checked+=("$name=$to")
}
job() { # NAME, then as run_logged: its logs in $TMP/NAME
  local name=$1
  shift
  run_logged "$@" >"$TMP/out" 2>&1 || true
  mv "$TMP/logs" "$TMP/$name" || { cat "$TMP/out"; exit 1; }
}

# Rank 2 is killed, the others go on into a collective without it for a while; killed, and without its box.
cat >"$TMP/killed.scn" <<'SCN'
# rank 2 is killed
set ranks=4 nodes=2 procs=1
comm world label=world
coll world func=AllReduce bytes=4m repeat=20
sync world
exit how=sigkill rank=2
coll world func=AllReduce bytes=4m
sleep ms=2500
exit how=exit
SCN
job good NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_SAMPLE=1/2 NCCL_INSPECTOR_DUMP_VERBOSE=1 pipeline
job groups NCCL_INSPECTOR_EVENTS=trace groups
job ce NCCL_INSPECTOR_EVENTS=trace ce
job net NCCL_INSPECTOR_EVENTS=trace net
job losses NCCL_INSPECTOR_POOL_GROW=0 NCCL_INSPECTOR_COLL_POOL_SIZE=4 pool_fixed
job plain 2x2 --procs
mkdir "$TMP/nested"
cp test/data/nested/*.gz "$TMP/nested/"
job killed NCCL_INSPECTOR_STUCK_SECONDS=1 "$TMP/killed.scn"
for d in good groups ce net losses plain killed nested; do
  json check 0,2 check --json "$TMP/$d"
  json summary 0,2 summary --json --output-dir "$TMP/$d.out" --no-plots --no-html --no-parquet --no-csv \
    "$TMP/$d"
  json summary 0,2 summary --json --output-dir "$TMP/$d.sums" --approximate "$TMP/$d"
done
json summary 2 summary --json --output-dir "$TMP/cut.out" --no-plots --no-html --no-parquet --no-csv \
  "$(ls "$TMP"/plain/* | head -n 1)"
json check 2 check --json --expect AllReduce=1 test/golden/check_losses/input
json boxes 0 boxes --json --box-dir "$BOXES"
json hang 0,2,3,4 hang --json --box-dir "$BOXES" "$TMP/killed"
sed 's/2026-11-29/2026-11-30/' test/data/ras/nccl2.32.3-stopped.json >"$TMP/later.json"
json hang 0,2,3,4 hang --json --stuck-after 1 --box-dir "$TMP" "$TMP/killed"
json hang 2 hang --json --box-dir "$TMP" --ras=test/data/ras/nccl2.32.3-dead.json
json hang 3 hang --json --box-dir "$TMP" --stuck-after 10 --ras=test/data/ras/nccl2.32.3-stopped.json \
  --ras="$TMP/later.json"
json hang 0,2,3,4 hang --json --box-dir "$TMP" --ras=127.0.0.1:1 "$TMP/killed"
json hang 0,2,3,4 hang --json --box-dir "$TMP" --ras=test/data/ras/nccl2.32.3-stopped.json "$TMP/killed"
json recover 0 recover --json --box-dir "$BOXES" "$TMP/killed"
json diff 0,2 diff --json "$TMP/plain" "$TMP/plain"
json show-pattern 0 show --pattern --json "$TMP/groups"
json show-pattern 0 show --pattern --json "$TMP/plain"
json diff 0,2,3 diff --json --gate 1% "$TMP/plain.out" "$TMP/plain"
json trace 0,2 trace --json -o "$TMP/trace.json" "$TMP/good"
json pools 0,2 pools --json "$TMP/good"
json doctor 0,1,2 doctor --json
"$INSPECTOR" check --progress=json "$TMP/good" 2>"$TMP/progress" >/dev/null || true
sed -n '/^{/p' "$TMP/progress" >"$TMP/progress.json"

# Counters: two sweeps of a made-up machine, one after the other.
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
tree() { python3 test/lib/counters/counter_trees.py "$TMP/root" "$@"; }
if [ -e "$NI_TEST_DATA/cassini/before.txt.gz" ]; then
  export NI_ROOT=$TMP/root
  tree cxi before 1 -- rh cxi0 -- mlx5 mlx5_0 -- eth ens1 -- host -- fault cxi0 hni_tx_paused_1 eio
  json counters-sweep 2 counters collect -
  json counters-list 2 counters list --json
  "$INSPECTOR" counters record --every 100ms --for 1s "$TMP/series" >/dev/null 2>&1 || true
  json counters-watch 0 counters watch --once --json
  "$INSPECTOR" counters run --quiet --json "$TMP/run.json" -- true
  tree tick 10 cxi0 'hni_sts_tx_ok_octets+=1000000000' 'pct_spt_timeouts+=3' -- mlx5 mlx5_0 \
    port_xmit_data=100000 -- rh cxi0 spt_timeouts=7
  json counters-sweep 0,2 counters collect -
  sweeps=("$TMP"/counters-sweep.*.json)
  json counters 0,2 counters summarize --json "${sweeps[0]}" "${sweeps[1]}"
  cp "$TMP"/counters.*.json "$TMP/summary.json"
  json counters-compare 0,2 counters compare --json "$TMP/summary.json" "${sweeps[0]},${sweeps[0]}"
  checked+=("counters-run=$TMP/run.json")
  # Beside a job: the summary's devices.
  cp "$TMP"/series/* "$TMP/plain/"
  json check 0,2 check --json "$TMP/plain"
  unset NI_ROOT
fi
[ ! -x "$INSPECTOR-live" ] || json now 0,2 top --json --box-dir "$BOXES"

for f in "$TMP"/{good,groups,ce,net,losses,plain,killed,nested}/*; do
  case $f in *.gz) checked+=("log-line+=$f") ;; esac
done
"$VENV" test/lib/python/schemas.py "${checked[@]}" "progress+=$TMP/progress.json" >"$TMP/schemas" || failures=$((failures + 1))
tail -n 40 "$TMP/schemas"

# Every kind of line: in the jobs, or as an example of docs/format.md.
"$VENV" - "$TMP" <<'PY' || failures=$((failures + 1))
import glob, gzip, json, sys
sys.path[:0] = ["test/lib", "test/lib/python"]
import doc_lines, schemas
schema, seen, examples, bad = schemas.Schemas(), set(), set(), 0
head = '{"header":{"id":"0x1","rank":0,"n_ranks":8,"nnodes":1},"metadata":{"inspector_output_format_version":"v4.0","git_rev":"1","rec_mechanism":"n","dump_timestamp_us":1,"hostname":"h","pid":1,"producer":"p"},'
kinds = set(schema.validator("log-line").schema["properties"]) - {"header", "metadata"}
for path in glob.glob(sys.argv[1] + "/*/*.gz"):
    with gzip.open(path, "rt") as f: seen |= {k for line in f for k in json.loads(line)}
for line in doc_lines.doc_lines("docs/format.md"):
    line = line.replace('"metadata":{...}', head[head.index('"metadata"'):-1])
    if not line.startswith(('..."', '{"header"')) or line.startswith('{"header":{...}'): continue
    document = json.loads(head + line[3:] if line[0] == "." else line)
    examples |= set(document)
    wrong = schema.wrong("log-line", document)
    for sentence in wrong: print("FAIL docs/format.md:", sentence, line[:60])
    bad += bool(wrong)
print("kinds in the jobs: %s; only examples: %s" % (len(kinds & seen), sorted(kinds - seen)))
if kinds - seen - examples: print("FAIL never seen:", sorted(kinds - seen - examples)); bad += 1
# A key that is not in the schema is noticed, and so is one that is not there.
assert schema.wrong("log-line", {"header": {}, "metadata": {}, "note": {"text": ""}}) and schema.wrong("problem" and "check", {"verdict": "COMPLETE", "more": 1})
sys.exit(bad > 0)
PY
finish
