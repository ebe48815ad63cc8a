#!/usr/bin/env bash
# Timelines: the format's rules, true times on hosts with wrong clocks, every kind of line, filters, bounded
# memory, faults.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector
logs() { python3 test/lib/trace_logs.py "$TMP/$1" "$TMP/$1.truth" "${@:2}"; }
draw() { # rc name options...
  local want=$1 name=$2 rc=0
  "$inspector" trace "$TMP/${LOGS:-$name}" -o "$TMP/$name.json.gz" "${@:3}" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}
values() { python3 test/lib/trace_values.py "$@" || fail "$*"; }
expect() { values expect "$TMP/$1.json.gz" "$2"; }

# Clocks that are seconds apart and drift; GPU clocks that drift against them; clocks that agree; one that
# steps.
logs far --gpu-drift 20
draw 0 far
values clocks "$TMP/far.json.gz" "$TMP/far.truth" 1
logs long --seconds 7200 --ops 400 --gpu-drift -15 --drift 0,-3,0.5 --hosts 4
draw 0 long
values clocks "$TMP/long.json.gz" "$TMP/long.truth" 1
logs same --offset 0,0 --drift 0,0 --seconds 1 --hosts 2 --ops 50
draw 0 same
values clocks "$TMP/same.json.gz" "$TMP/same.truth" 0
logs step --step 1:3000000
draw 0 step
values clocks "$TMP/step.json.gz" "$TMP/step.truth" 0 contradictory
grep -q 'node-1, clock: .*CONTRADICTORY' "$TMP/step.txt" || fail "the terminal does not tell of the step"
# Away from the step the clock is straight again.
LOGS=step draw 0 step-before --until +50s
expect step-before 'not any(c["contradictory"] for c in x.other["clocks"])'

# Few collectives, which waited for 40 hosts: nothing is further off than is said, at the ends neither.
logs few --hosts 40 --seconds 20 --ops 40
draw 0 few
values clocks "$TMP/few.json.gz" "$TMP/few.truth" 0 few

# More text than the viewer opens is said when it is passed and at the end, and what makes it less; not of a
# small one.
for limit in '' ' --rank 0 --until +5s'; do
  # shellcheck disable=SC2086
  "$BUILD/test/unit/test_trace_large" "$TMP/long" -o "$TMP/large.json" $limit >"$TMP/large.txt" \
    2>"$TMP/large.err"
  n=$([ -n "$limit" ] && echo 0 || echo 1)
  { [ "$(grep -c ' passes 100 kB of text, .*: --since, --until, --rank' "$TMP/large.err")" = "$n" ] &&
    [ "$(grep -c '^note .* MB of text, .*: --since, --until, --rank' "$TMP/large.txt")" = "$n" ]; } ||
    { fail "large timeline$limit"; cat "$TMP/large.err" "$TMP/large.txt"; }
done
# Of many hosts a few clocks, the doubtful ones first, and a count; all in the file.
logs hosts --hosts 40 --seconds 20 --ops 40 --step 30:3000000
draw 0 hosts
[ "$(grep -c '^host ' "$TMP/hosts.txt")" = 4 ] && grep -q '^host .*CONTRADICTORY' "$TMP/hosts.txt" &&
  grep -qE "^ +\.\.\. and 36 more hosts, errors below [0-9.]+ [mu]s; all are in the file's otherData" \
  "$TMP/hosts.txt" ||
  { fail "clocks of 40 hosts"; cat "$TMP/hosts.txt"; }
expect hosts 'len(x.other["clocks"]) == 40'

# Everything a log can hold; from small memory the same bytes.
logs full --full --ops 100
draw 2 full
values full "$TMP/full.json.gz" "$TMP/full.truth"
grep -q '^incomplete *3 operations dropped' "$TMP/full.txt" && grep -q '^unfinished *2 ' "$TMP/full.txt" ||
  fail "what is missing is not told"
LOGS=far draw 0 far-small --memory 1M
grep -c . "$TMP/far-small.txt" >/dev/null
cmp "$TMP/far.json.gz" "$TMP/far-small.json.gz" || fail "memory changes the output"

# Filters.
LOGS=full draw 2 ranks --rank 1-2,4
expect ranks 'ranks == {1, 2, 4} and len({s["process"].split(", ")[1] for s in x.slices}) == 3'
LOGS=full draw 2 comm --comm tp
expect comm '{s["track"] for s in ops} == {"tp: collectives"} and len(ops) == 600'
LOGS=full draw 2 hash --comm 0x1111 --coll Send
expect hash '{s["name"] for s in ops} == {"Send to 1 65.54 kB"} and len(ops) == 4'
LOGS=full draw 2 host --host node-2
expect host '{s["process"].split(", ")[1] for s in x.slices} == {"node-2"} and x.other["clock_reference"] == "node-2"'
LOGS=far draw 0 since --since +60s --until +61s
expect since '0 < len(ops) < 30 and max(s["t"] for s in x.slices) < 1100 * MS'
LOGS=far draw 0 plain --no-flows
expect plain 'not x.arrows and len(ops) == 2400'
"$inspector" trace "$TMP/full" -o - 2>/dev/null >"$TMP/stdout.json" || true
python3 test/lib/trace_check.py "$TMP/stdout.json" || fail "standard output"
"$inspector" trace "$TMP/full" -o "$TMP/j.json" --json >"$TMP/j.txt" || true
python3 - "$TMP/j.txt" <<'P' || fail "--json"
import json, sys
j = json.load(open(sys.argv[1]))
assert (j["schema_version"] == "nccl-inspector-trace-1" and j["incomplete"] == {"lost": 3, "in_flight": 1} and
        j["hosts"] == 3), j
assert [c["error_ns"] > 0 and c["aligned"] for c in j["clocks"]] == [False, True, True], j
P

# NVIDIA's logs: verbose ones have times; others have none, and nothing is drawn.
"$BUILD/test/host/loggen" "$TMP/nv" --ranks 4 --node 2 --ops 30 --verbose --format v4.3 --p2p 5 2>/dev/null
draw 0 nv
expect nv 'len(ops) > 200 and any("channel" in t for t in x.thread.values())'
"$BUILD/test/host/loggen" "$TMP/dark" --ranks 2 --node 2 --ops 10
draw 1 dark
grep -q 'without a start time.*NCCL_INSPECTOR_DUMP_VERBOSE' "$TMP/dark.txt" && [ ! -e "$TMP/dark.json.gz" ] ||
  fail "nothing to draw"

# Faults: an earlier timeline stays, nothing is left behind; damage is told and costs what is damaged.
echo old >"$TMP/keep.json.gz"
mkdir "$TMP/empty"
"$inspector" trace "$TMP/empty" -o "$TMP/keep.json.gz" 2>"$TMP/err" && fail "an empty folder has a timeline"
grep -q 'empty: no log files in it' "$TMP/err" && [ "$(cat "$TMP/keep.json.gz")" = old ] ||
  fail "the earlier file is gone"
"$inspector" trace "$TMP/full" -o "$TMP/none/x.json" 2>"$TMP/err" &&
  fail "wrote into a folder that is not there"
grep -q "none/x.json: No such file" "$TMP/err" || fail "$(cat "$TMP/err")"
mkfifo "$TMP/pipe"
"$inspector" trace "$TMP/far" -o "$TMP/pipe" >"$TMP/err" 2>&1 && fail "a pipe is replaced"
{ [ -p "$TMP/pipe" ] && grep -q 'not a regular file' "$TMP/err"; } ||
  fail "a pipe as output: $(cat "$TMP/err")"
if [ -w /dev/full ]; then
  "$inspector" trace "$TMP/far" -o - >/dev/full 2>"$TMP/err" && fail "a full disk is fine"
  grep -q 'No space left' "$TMP/err" || fail "$(cat "$TMP/err")"
fi
[ -z "$(find "$TMP" -name '.*.tmp-*')" ] || fail "temporary files are left"
cp -r "$TMP/same" "$TMP/cut"
for f in "$TMP"/cut/*.10; do truncate -s -100 "$f"; echo '{"garbage' >>"$f"; done
draw 2 cut
grep -q 'bad lines' "$TMP/cut.txt" && grep -q 'without their own last line' "$TMP/cut.txt" ||
  fail "damage is not told"
expect cut 'any(i["name"].startswith("the log ends here") for i in x.instants)'
# One line of 1970 costs that line, not the timeline.
cp -r "$TMP/same" "$TMP/old"
for f in "$TMP"/old/*.jsonl; do
  grep -m1 '"process"' "$f" |
    sed 's/"dump_timestamp_us":[0-9]*/"dump_timestamp_us":1/; s/"process":.*/"note":{"text":"long ago"}}/' \
    >>"$f"
done
draw 2 old
expect old 'x.start > 10**18 and max(s["t"] for s in x.slices) < 3000 * MS and not any(i["name"] == "note" for i in x.instants)'
grep -q 'before 2001' "$TMP/old.txt" || fail "the note of 1970 is not told"
for bad in --rank=3-1 --rank=x --memory=1 --since=yesterday; do
  rc=0
  "$inspector" trace "$TMP/full" $bad 2>/dev/null || rc=$?
  [ $rc = 64 ] || fail "$bad: exit $rc"
done
python3 test/lib/trace_mangle.py "$inspector" "$TMP/full" "$TMP" \
  "${NI_MANGLED:-15}" >"$TMP/mangled.txt" 2>&1 || fail "$(tail -n 20 "$TMP/mangled.txt")"
finish
