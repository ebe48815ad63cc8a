#!/usr/bin/env bash
# import kineto: every kernel of the traces is in the logs, to the ns, by a reader of its own; what is not
# said is absent; ranks whose traces begin at different operations are compared at the same ones; files that
# nobody's profiler writes cost what they say.
. "$(dirname "$0")/../../lib/case.sh"
import() { # rc name options...: traces $TMP/NAME, logs $TMP/NAME.logs
  local want=$1 name=$2 rc=0
  "$INSPECTOR" import kineto "$TMP/$name" --out "$TMP/$name.logs" "${@:3}" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}
said() { grep -qE -- "$2" "$TMP/$1.txt" || { fail "$1 does not say: $2"; cat "$TMP/$1.txt"; }; }
sound() { # name [pattern of the exit code]: check takes the logs
  local rc=0
  "$INSPECTOR" check "$TMP/$1.logs" >"$TMP/check" 2>&1 || rc=$?
  # shellcheck disable=SC2254
  case $rc in ${2:-0}) true ;; *) false ;; esac || { fail "$1: check returns $rc"; cat "$TMP/check"; }
  grep -qE '^lines .* 0 bad' "$TMP/check" || { fail "$1: bad lines"; cat "$TMP/check"; }
}

# One rule each.
python3 test/lib/kineto_cases.py make "$TMP"
for c in words old cut same ends steps side seq apart messages messages_steps messages_apart; do
  import "$(case $c in *apart) echo 2 ;; *) echo 0 ;; esac)" $c
  python3 test/lib/kineto_cases.py check $c "$TMP/$c.logs" || { fail "$c"; cat "$TMP/$c.txt"; }
  sound $c "$([ $c = cut ] && echo 2 || echo 0)"
done
said apart 'rank 1 of communicator default_pg .*cannot be told'
said messages 'messages between 2 pairs of ranks begin later on one side: told by steps of 0, by when they ended of 2,'
said messages_steps 'begin later on one side: told by steps of 2,'
said messages_apart 'messages from rank 0 to rank 1 of communicator default_pg .* cannot be told; they are not compared'
said ends 'by when operations ended of 1'
said steps 'told by steps of 1'
said old 'rank 3 \(by the file.s name\) on unknown-rank3, 10 operations'
said old '20 operations have no communicator'
"$INSPECTOR" check "$TMP/old.logs" >"$TMP/unknown" || true
"$INSPECTOR" show --pattern "$TMP/old.logs" >>"$TMP/unknown" || true
{ grep -q ' 1/?' "$TMP/unknown" && ! grep -qE '1/0|\b0 ranks|\(0\)' "$TMP/unknown"; } ||
  fail "a communicator of 0 ranks: $(cat "$TMP/unknown")"
said words '2 operations have no launch'
python3 test/lib/kineto_reader.py "$TMP/words.logs" "$TMP"/words/*.json >"$TMP/read" ||
  fail "words: $(cat "$TMP/read")"
"$INSPECTOR" import kineto "$TMP/old" --out "$TMP/hosts.logs" --ranks-per-host 4 >"$TMP/hosts.txt"
said hosts 'rank 3 .* on host0,'
said hosts 'rank 4 .* on host1,'
"$INSPECTOR" summary "$TMP/same.logs" --no-index --no-parquet --no-html --no-plots --output-dir "$TMP/out" \
  >"$TMP/summary" || true
grep -q 'written by nccl-inspector import, from Kineto traces' "$TMP/summary" ||
  fail "summary does not say where the logs come from"

# A planted late rank, from what PyTorch would have printed of the job alone; traces begin up to 40 ms apart.
for layout in D F; do
  "$BUILD/test/ni-jobs" --layout $layout --kind late --size 30 --seed 3 --steps 12 --stored --out "$TMP/job" \
    >/dev/null
  python3 test/lib/kineto_job.py "$TMP/job" "$TMP/$layout" --plain --cut 0.04
  import 0 $layout
  [ $layout = F ] ||
    python3 test/lib/kineto_reader.py "$TMP/$layout.logs" "$TMP/$layout"/*.json >"$TMP/read" ||
    fail "$layout: $(cat "$TMP/read")"
  "$INSPECTOR" summary "$TMP/$layout.logs" --no-index --no-parquet --no-html --no-plots --output-dir \
    "$TMP/out-$layout" >"$TMP/summary" || true
  python3 - "$TMP/job/truth.json" "$TMP/out-$layout/summary/summary.json" <<'P' || { fail "$layout: the late rank is not first"; cat "$TMP/summary"; }
import json, sys
truth, found = json.load(open(sys.argv[1])), json.load(open(sys.argv[2]))["findings"]
want = [s["ranks"] for s in truth["culprits"][0]["accept"] if s.get("level") == "rank"]
sys.exit(not found or found[0]["ranks"] not in want)
P
  rm -rf "$TMP/job"
done

# A pipeline: the k-th Send of a trace is not the k-th Recv of another one's.
"$BUILD/test/ni-jobs" --layout C --kind late --size 10 --seed 104 --steps 16 --stored --out "$TMP/job" \
  >/dev/null
python3 test/lib/kineto_job.py "$TMP/job" "$TMP/stages" --plain --cut 0.1 --seed 104 --steps 16
import 0 stages
"$INSPECTOR" summary "$TMP/stages.logs" --no-index --no-parquet --no-html --no-plots --no-csv --output-dir \
  "$TMP/out-stages" >"$TMP/summary" || true
grep -q '^  1  rank 23 on node-2, GPU 7, takes ' "$TMP/summary" ||
  { fail "stages: the late rank is not first"; cat "$TMP/summary"; }
rm -rf "$TMP/job" "$TMP/stages"

# A trace that was recorded.
sample=${NI_TEST_DATA:-../shared/data}/kineto/rank0-of-2.json.gz
if [ -e "$sample" ]; then
  mkdir "$TMP/recorded"
  cp "$sample" "$TMP/recorded/"
  import 0 recorded
  said recorded 'rank 0 on unknown-rank0, 21 operations, 3 steps'
  python3 test/lib/kineto_reader.py "$TMP/recorded.logs" "$sample" >"$TMP/read" ||
    fail "recorded: $(cat "$TMP/read")"
  grep -q '^21 operations, 307323096 bytes, 46876493 ns$' "$TMP/read" || fail "recorded: $(cat "$TMP/read")"
fi

# Ranks of one host in containers, where all have one pid: a log each. A kernel that never ends is none.
mkdir "$TMP/pods" "$TMP/endless"
for r in 0 1; do sed 's/"pid": 10[01]/"pid": 100/' "$TMP/same/rank$r.json" >"$TMP/pods/rank$r.json"; done
import 0 pods --ranks-per-host 8
[ "$(find "$TMP/pods.logs" -name 'host0-pid100-*.jsonl.gz' | wc -l)" = 2 ] ||
  fail "one pid on one host: $(ls "$TMP/pods.logs")"
sound pods
python3 - "$TMP/same/rank0.json" "$TMP/endless/rank0.json" <<'P'
import json, sys
t = json.load(open(sys.argv[1]))
next(e for e in t["traceEvents"] if e["cat"] == "kernel")["dur"] = 9e15
json.dump(t, open(sys.argv[2], "w"))
P
import 0 endless
said endless '^1 event could not be read, or had a time that cannot be'
sound endless 2
# Traces with steps that begin up to 100 ms apart: a rank is not late because its first steps are not there.
"$BUILD/test/ni-jobs" --layout A --kind late --size 10 --seed 130 --steps 60 --stored --out "$TMP/job" \
  >/dev/null
python3 test/lib/kineto_job.py "$TMP/job" "$TMP/later" --plain --cut 0.1 --seed 130 --steps 60
import 0 later
"$INSPECTOR" summary "$TMP/later.logs" --no-index --no-parquet --no-html --no-plots --no-csv --output-dir \
  "$TMP/out-later" >"$TMP/summary" || true
grep -q '^  1  rank 1 on node-0, GPU 1, takes ' "$TMP/summary" ||
  { fail "later: the late rank is not first"; cat "$TMP/summary"; }

# A schedule that repeats: each cycle is imported by itself, also where a rank has no file of one.
python3 test/lib/kineto_job.py "$TMP/job" "$TMP/cycles" --plain --cycles 3 --steps 60
rm "$TMP"/cycles/*_4003.1790000000124.*
import 0 cycles
said cycles '^the profiler ran 3 times: '
for cycle in 1 2 3; do
  [ "$(ls "$TMP/cycles.logs/cycle-$cycle" | wc -l)" = $((cycle == 2 ? 31 : 32)) ] ||
    fail "cycle $cycle: $(ls "$TMP/cycles.logs/cycle-$cycle" | wc -l) logs"
  "$INSPECTOR" show --pattern --json "$TMP/cycles.logs/cycle-$cycle" >"$TMP/pattern"
  python3 - "$TMP/pattern" $cycle <<'P' || fail "cycle $cycle: not one program of about 15 steps"
import json, sys
p, = json.load(open(sys.argv[1]))["runs"][0]["programs"]
assert (len(p["ranks"]) == (31 if sys.argv[2] == "2" else 32) and
        13 <= p["steps_least"] <= p["steps_most"] <= 17), p["steps_most"]
P
done
rm -rf "$TMP/job" "$TMP/later" "$TMP/cycles"

# The same input gives the same bytes; a log is never replaced; usage.
cp -r "$TMP/same" "$TMP/again"
(cd "$TMP" && "$INSPECTOR" import kineto same -o one -q && "$INSPECTOR" import kineto same -o two -q && diff -r one two) || fail "not the same bytes"
rc=0
"$INSPECTOR" import kineto "$TMP/same" --out "$TMP/same.logs" >"$TMP/twice.txt" 2>&1 || rc=$?
[ $rc = 1 ] || fail "a second import returns $rc"
said twice 'is there already'
for wrong in "tea $TMP/same --out $TMP/x" "kineto --out $TMP/x" "kineto $TMP/same"; do
  rc=0
  # shellcheck disable=SC2086
  "$INSPECTOR" import $wrong >"$TMP/usage.txt" 2>&1 || rc=$?
  [ $rc = 64 ] || fail "import $wrong: exit $rc"
  [ ! -e "$TMP/x" ] || fail "import $wrong makes a folder"
done
rc=0
"$INSPECTOR" import kineto "$TMP/nowhere" --out "$TMP/x" >"$TMP/usage.txt" 2>&1 || rc=$?
if [ $rc != 1 ] || [ -e "$TMP/x" ]; then fail "no such file: exit $rc"; fi

# A bad file among good ones is named and left out, and so is a second one of a rank.
head -c 3000 "$TMP/same/rank0.json" >"$TMP/again/cut.json"
cp "$TMP/same/rank1.json" "$TMP/again/rank1-later.json"
echo '{"traceEvents": []}' >"$TMP/again/none.json"
import 2 again
said again 'again/cut.json: left out: not a whole trace'
said again 'again/none.json: left out: no NCCL kernel'
said again 'rank1.*.json: left out: it is of rank 1, as .*rank1.*, and of the same time$'
sound again
mkdir "$TMP/hostile"
python3 test/lib/kineto_hostile.py "$TMP/words/node-x_100.1790000000123.pt.trace.json" "$TMP/hostile"
for f in "$TMP"/hostile/*; do
  rc=0 name=hostile-$(basename "$f")
  ([ -n "$VARIANT" ] || ulimit -v 800000; timeout 60 "$INSPECTOR" import kineto "$f" --out "$TMP/$name.logs") >"$TMP/$name.txt" 2>&1 || rc=$?
  case $rc in 0 | 2) sound "$name" '[02]' ;; 1) [ ! -e "$TMP/$name.logs" ] ||
    fail "$name: exit 1, and a folder" ;; *) fail "$name: exit $rc"; cat "$TMP/$name.txt" ;; esac
done
said hostile-hostile_endless_0.json '1 event could not be read, or had a time that cannot be'
finish
