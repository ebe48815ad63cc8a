#!/usr/bin/env bash
# `hang --ras`: what NCCL's RAS says. Verdicts of planted answers and hostile ones, a server that speaks its
# protocol and servers that do not, a job of the simulator at which boxes and RAS are looked at together, and
# made-up endings whose counts are the programs' own.
. "$(dirname "$0")/../../lib/hang.sh"
mkdir "$TMP/empty"

# serve MODE FILE...: PORT is where it listens.
serve() {
  rm -f "$TMP/port"
  python3 test/lib/ras.py "$TMP/port" "$@" &
  wait_for 20 test -s "$TMP/port" || fatal "no server"
  PORT=$(<"$TMP/port")
}
# asks WHAT CODE PATTERN [options]: at the server.
asks() {
  local what=$1 code=$2 pattern=$3 rc=0
  shift 3
  "$INSPECTOR" hang --ras="127.0.0.1:$PORT" --box-dir "$TMP/empty" "$@" >"$TMP/text" 2>&1 || rc=$?
  if [ $rc != "$code" ] || ! grep -q -- "$pattern" "$TMP/text" ||
    grep -q "Sanitizer\|runtime error\|"$'\033' "$TMP/text"; then
    fail "$what: exit status $rc, expected $code and \"$pattern\": $(head -c 600 "$TMP/text")"
  else echo "ok   $what"; fi
}

python3 test/lib/ras_cases.py "$INSPECTOR" "$TMP/empty" sound || fail "planted answers"
python3 test/lib/ras_cases.py "$INSPECTOR" "$TMP/empty" hostile || fail "hostile answers"

# What real NCCL answered (test/data/ras/README.md).
real() {
  local rc=0
  "$INSPECTOR" hang --ras="test/data/ras/nccl2.32.3-$1.json" --box-dir "$TMP/empty" >"$TMP/text" 2>&1 || rc=$?
  [ $rc = 2 ] && grep -q "^CANNOT TELL: communicator 0x[0-9a-f]* (4 ranks): rank 3 (127.0.0.1, pid [0-9]*) $2; that was one" "$TMP/text" &&
    grep -q ", NCCL 2.32.3, at 2026-" "$TMP/text" && return
  fail "real, $1: exit status $rc, $(cat "$TMP/text")"
}
real stopped "does not answer RAS"
real dead "is dead"

# Two looks at a server, 10 s apart, while the rest goes on.
PYTHONPATH=test/lib python3 - "$TMP" <<'P'
import sys
import ras

def put(name, last):
    ranks = [ras.rank(i, {"AllReduce": n}) for i, n in enumerate((7, 7, 7, last))]
    open(sys.argv[1] + "/" + name, "w").write(ras.answer([ras.comm(0xA1, 4, ranks)]))

put("behind.json", 6)
put("even.json", 7)
P
serve fine "$TMP/behind.json"
confirm() {
  local rc=0
  "$INSPECTOR" hang --ras="localhost:$1" --confirm --stuck-after 10 --box-dir "$TMP/empty" >"$TMP/confirm" \
    2>&1 || rc=$?
  [ $rc = 3 ] &&
    grep -q "^HANG (likely): .*rank 3 .* is behind: AllReduce 6, the others 7; none .* for 1[0-9] s" \
    "$TMP/confirm"
}
confirm "$PORT" &
CONFIRM=$!
# The server goes while it is watched: said, after three questions.
serve fine "$TMP/behind.json"
gone=$!
"$INSPECTOR" hang --ras="127.0.0.1:$PORT" --watch 1 --box-dir "$TMP/empty" >"$TMP/watch" 2>&1 &
WATCH=$!
wait_for 20 grep -q "one look" "$TMP/watch" || fail "a watch: $(cat "$TMP/watch")"
kill "$gone"
serve fine "$TMP/behind.json"
asks "one look at a server" 2 "rank 3 (10.0.0.1, pid 1003) is behind"
rc=0
"$INSPECTOR" hang --ras "127.0.0.1:$PORT" >"$TMP/text" 2>&1 || rc=$?
{ [ $rc = 64 ] && grep -q "write --ras=127.0.0.1:$PORT" "$TMP/text"; } ||
  fail "--ras HOST:PORT: $rc, $(cat "$TMP/text")"
# An answer among the logs is no Flight Recorder dump, and says nothing of a hang.
for words in "--ras $TMP/behind.json" "$TMP/behind.json"; do
  rc=0
  # shellcheck disable=SC2086
  "$INSPECTOR" hang $words --box-dir "$TMP/empty" >"$TMP/text" 2>&1 || rc=$?
  { [ $rc = 64 ] && grep -q "behind.json: is an answer of RAS: give it as --ras=FILE" "$TMP/text"; } ||
    fail "$words: $rc, $(cat "$TMP/text")"
done
# Of files the newer one is named, whichever comes first; of one a second file tells more; a name may be of a
# host or a file.
PYTHONPATH=test/lib python3 - "$TMP" <<'P'
import sys
import ras
for name, at in ("older", 0), ("newer", 400):
    ranks = [ras.rank(i, {"AllReduce": 7 - (i == 3)}) for i in range(4)]
    open("%s/%s.json" % (sys.argv[1], name), "w").write(ras.answer([ras.comm(0xA1, 4, ranks)], at))
P
files() { "$INSPECTOR" hang --box-dir "$TMP/empty" "$@" >"$TMP/text" 2>&1 || true; }
for words in "older newer" "newer older"; do
  files --ras="$TMP/${words% *}.json" --ras="$TMP/${words#* }.json"
  grep -q "^RAS of .*/newer.json" "$TMP/text" || fail "$words: $(cat "$TMP/text")"
done
files --ras="$TMP/older.json"
grep -q "only a second one tells (a second --ras=FILE)" "$TMP/text" || fail "one file: $(cat "$TMP/text")"
files --ras=none.invalid
grep -q "none.invalid:28028: .*, and there is no file none.invalid" "$TMP/text" ||
  fail "no file: $(cat "$TMP/text")"
serve old "$TMP/behind.json"
asks "NCCL before 2.28.7" 1 'older than 2.28.7.*it answers "ERROR: Unknown command'
serve cut "$TMP/behind.json"
asks "an answer that is cut" 1 "no JSON: it is cut"
serve close "$TMP/behind.json"
asks "a connection that is closed" 1 "closed without an answer"
serve http "$TMP/behind.json"
asks "another program" 1 'is not RAS: "HTTP/1.1 400 ?\[31mBad Request"'
serve drip "$TMP/behind.json"
asks "a slow drip" 1 "no whole answer within 1 s.*--ras-timeout" --ras-timeout 1
serve silent "$TMP/behind.json"
asks "silence" 1 "no whole answer within 1 s" --ras-timeout 1
serve endless "$TMP/behind.json"
asks "an answer without an end" 1 "longer than 128 MiB\|no whole answer" --ras-timeout 5
kill "$!" 2>/dev/null
asks "nobody there" 1 "no RAS answers there"

# A job in which rank 2 never comes: its boxes, and RAS by the scenario's own numbers. Then a RAS that says
# otherwise.
job hang_late
hangs "late rank" world "ReduceScatter 0" never_called=2 inside=0,1,3
truth=(AllReduce=20@world AllReduce=20@tp0 AllReduce=20@tp1)
PYTHONPATH=test/lib python3 test/lib/ras_truth.py "$TMP/truth" \
  "${truth[@]}" ReduceScatter=1@world:2=0 >"$TMP/ras.json"
serve fine "$TMP/ras.json"
look --stuck-after 1 --ras="127.0.0.1:$PORT"
[ "$RC" = 3 ] || fail "beside the plugin: exit status $RC"
python3 - "$TMP" <<'P' || fail "beside the plugin: $(head -c 3000 "$TMP/verdict")"
import json
import sys

d = json.load(open(sys.argv[1] + "/verdict"))
both = d["ras"]["beside_the_plugin"]
assert (both["n_differences"] == 0 and both["compared"] == both["agree"] == 8 and
        both["communicators"] == 3), both
first = d["ras"]["troubles"][0]
assert [(r["rank"], r["is"]) for r in first["ranks"]] == [(2, ["behind"])], first
assert {r["pid"] for r in d["cause"]["ranks"]} == {r["pid"] for r in first["ranks"]}, d["cause"]
print("ok   boxes and RAS: " + both["text"])
P
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --stuck-after 1 --ras="127.0.0.1:$PORT" >"$TMP/text" \
  2>&1 || true
grep -q "^RAS and the plugin agree on what 8 ranks of 3 communicators launched" "$TMP/text" ||
  fail "the line: $(cat "$TMP/text")"
python3 test/lib/ras_truth.py "$TMP/truth" "${truth[@]}" ReduceScatter=1@world:2=0,3=2 dead=1 >"$TMP/other.json"
serve fine "$TMP/other.json"
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --stuck-after 1 --ras="127.0.0.1:$PORT" >"$TMP/text" 2>&1 || true
for line in "RAS and the plugin differ in 3 places" \
  "rank 3 of world (sim-node1): ReduceScatter 2 by RAS, 1 by the plugin" \
  "rank 1 of world (sim-node0): RAS calls it dead, and its process is alive"; do
  grep -q -- "$line" "$TMP/text" || fail "a difference is not told: $line: $(cat "$TMP/text")"
done

# A saved answer alone is not judged by the boxes that lie on this machine, which are of other jobs.
for box in "$BOXES"/*.box; do
  there=/dev/shm/$(basename "$box")
  cp "$box" "$there"
  at_exit "rm -f '$there'"
done
"$INSPECTOR" hang --ras="$TMP/ras.json" >"$TMP/text" 2>&1 || true
grep -q "^CANNOT TELL" "$TMP/text" || fail "a saved answer beside boxes of the machine: $(cat "$TMP/text")"
for box in "$BOXES"/*.box; do rm -f "/dev/shm/$(basename "$box")"; done
stop_job

rc=0
wait $WATCH || rc=$?
{ [ $rc = 1 ] && grep -q "RAS answers no more: the job has ended" "$TMP/watch"; } ||
  fail "a server that goes: $rc, $(cat "$TMP/watch")"
wait $CONFIRM || fail "two looks at a server: $(cat "$TMP/confirm")"
python3 test/hangs/ras.py --exporter "$INSPECTOR" --short --least 0.9 || fail "made-up endings"
finish
