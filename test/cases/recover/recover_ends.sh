#!/usr/bin/env bash
# How a process ended is known: by itself though nothing could be written, by exit with communicators open, or
# killed. The box, the log's last line, `boxes`, `recover`, `check` and `hang` say the same, before `recover`
# and after it; of a box of before it is unknown.
. "$(dirname "$0")/../../lib/sim.sh"
[ "$BOXES" != 0 ] || skip "no /dev/shm to put black boxes into"
wrong() { fail "$CASE: $*"; }
# shellcheck disable=SC2154 # test/lib/case.sh sets it
ok() { # nothing of this case failed
  [ $failures = "$before" ] && echo "ok   $CASE"
  before=$failures
}
before=0

cat >"$TMP/ends.scn" <<'S'
# every operation finishes; then what the variable says
var how=none
set ranks=2 procs=1
comm world label=world
coll world func=AllReduce bytes=64k repeat=200
sync world
sleep ms=100
S
cat "$TMP/ends.scn" - >"$TMP/leaves.scn" <<<'exit how=$how'

# ended NAME DIR SCENARIO HOW: runs it with its log in DIR, with a box folder that is empty before
ended() {
  CASE=$1
  rm -rf "${BOXES:?}"/* "$TMP/logs" "$TMP/part"
  NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR=$2 NCCL_INSPECTOR_BLACKBOX=$BOXES timeout 60 "$SIM" \
    --quiet --plugin "$PLUGIN" \
    --scenario "$3" --set how="$4" >"$TMP/out" 2>&1 || true
}
# box KEY: of all boxes, each value once
box() { "$INSPECTOR" boxes --json --box-dir "$BOXES" | python3 -c 'import json, sys
print(*sorted({str(b[sys.argv[1]]) for b in json.load(sys.stdin)["boxes"]}))' "$1"; }
is() { [ "$(box "$1")" = "$2" ] || wrong "$1 of the boxes is $(box "$1"), not $2"; }
# hang WHAT CODE: its answer begins so, with that exit code; the arguments behind are paths
hang() {
  local begin=$1 code=$2 rc=0
  shift 2
  "$INSPECTOR" hang "$@" --box-dir "$BOXES" >"$TMP/said" 2>&1 || rc=$?
  { [ $rc = "$code" ] && grep -q "^$begin" "$TMP/said"; } || wrong "hang: $rc, $(head -n 2 "$TMP/said")"
}
recovered() {
  "$INSPECTOR" recover --box-dir "$BOXES" --output "$TMP/part" >"$TMP/said" 2>&1 ||
    wrong "recover: $(cat "$TMP/said")"
  zcat "$TMP/part"/*.gz >"$TMP/lines"
}
last() { grep '"id":"0x0".*"final":true' "$TMP/lines" | grep -o '"end":"[a-z]*"' | sort -u | tr -d '\n'; }
ends() { grep -o '"comm_end":{"why":"[a-z]*"' "$TMP/lines" | cut -d'"' -f6 | sort -u | tr -d '\n'; }

# An orderly end whose folder cannot be written: ended, with so many operations in the box, whoever asks.
ended "an orderly end on a folder that cannot be written" /proc/nowhere "$TMP/ends.scn" none
is process ended
is end exited
is unwritten 200
hang ENDED 0
grep -q '400 finished operations could not be written (No such file or directory)' "$TMP/said" ||
  wrong "hang: $(head -n 1 "$TMP/said")"
recovered
grep -q '200 records' "$TMP/said" || wrong "recover says $(cat "$TMP/said")"
[ "$(ends) $(last)" = 'destroy "end":"exited"' ] || wrong "the recovered log ends with $(ends) $(last)"
grep -q 'could not write 200 finished operations: No such file' "$TMP/lines" ||
  wrong "no note about what was not written"
hang ENDED 0 "$TMP/part"
"$INSPECTOR" check "$TMP/part" >"$TMP/said" 2>&1 || wrong "check: $(tail -n 1 "$TMP/said")"
"$INSPECTOR" recover --box-dir "$BOXES" --output "$TMP/part" | grep -q 'nothing to recover' ||
  wrong "a second recover writes again"
ok

# A write hangs while it leaves: then nobody has counted, which is not 0.
CASE="an orderly end that could not count"
python3 - "$BOXES" <<'P'
import glob, struct, sys
for path in glob.glob(sys.argv[1] + "/*.box"):
    with open(path, "r+b") as f:
        f.seek(2176), f.write(struct.pack("<Q", 2 ** 64 - 1))
P
is unwritten None
"$INSPECTOR" boxes --box-dir "$BOXES" | grep -q 'could not count them' ||
  wrong "boxes: $("$INSPECTOR" boxes --box-dir "$BOXES")"
hang ENDED 0
grep -q '2 processes could not count' "$TMP/said" || wrong "hang: $(head -n 1 "$TMP/said")"
rm -rf "$TMP/part"
recovered
grep -q 'could not write an unknown number of operations' "$TMP/lines" ||
  wrong "no note that the number is not known"
ok

ended "exit with a communicator open, on a folder that cannot be written" /proc/nowhere "$TMP/leaves.scn" exit
is process ended
is end exited
recovered
[ "$(ends) $(last)" = 'exit "end":"exited"' ] || wrong "the recovered log ends with $(ends) $(last)"
hang ENDED 0 "$TMP/part"
ok

for how in sigkill _exit; do
  ended "killed: $how" /proc/nowhere "$TMP/leaves.scn" $how
  is process dead
  is end not_yet
  hang DEAD 4
  recovered
  [ "$(ends) $(last)" = 'killed "end":"killed"' ] || wrong "the recovered log ends with $(ends) $(last)"
  hang DEAD 4 "$TMP/part"
  ok
done

# Of a box that a plugin of before left, and of one whose last word is no word of ours, how it ended is not
# known: as before.
python3 - "$BOXES" <<'P'
import glob, struct, sys
for i, path in enumerate(sorted(glob.glob(sys.argv[1] + "/*.box"))):
    with open(path, "r+b") as f:
        if i: f.seek(2160), f.write(struct.pack("<I", 77))
        else: f.seek(16), f.write(struct.pack("<I", 2160))
P
CASE="a box of a plugin of before"
rm -rf "$TMP/part"
is process dead
is end unknown
recovered
[ "$(ends)$(last)" = killed ] || wrong "the recovered log ends with $(ends) $(last)"
hang DEAD 4 "$TMP/part"
ok

# The longest operation so far and the longest time without one, which a reader of the box measures a wait by.
cat >"$TMP/long.scn" <<'S'
var how=none
set ranks=1
comm world size=2
coll world func=AllReduce bytes=64k repeat=20
sync world
sleep ms=2500
coll world func=AllReduce bytes=64k late=0:900
sync world
coll world func=AllReduce bytes=64k repeat=20
sync world
sleep ms=300
exit how=sigkill
S
ended "the longest operation and pause" "$TMP/logs" "$TMP/long.scn" none
python3 - "$BOXES" <<'P' || wrong "they are others"
import glob, struct, sys
(path,) = glob.glob(sys.argv[1] + "/*.box")
operation, gap = (n / 1e9 for n in struct.unpack_from("<2Q", open(path, "rb").read(4096), 2184))
print("%.2f s and %.2f s" % (operation, gap))
assert 0.85 < operation < 2 and 2.3 < gap < 4, (operation, gap)
P
ok

# The log's own last line.
ended "the log of an orderly end" "$TMP/logs" "$TMP/ends.scn" none
[ -z "$(ls "$BOXES")" ] || wrong "a box is left"
zcat "$TMP/logs"/*.gz >"$TMP/lines"
[ "$(ends) $(last)" = 'destroy "end":"finalized"' ] || wrong "it ends with $(ends) $(last)"
hang ENDED 0 "$TMP/logs"
ok
ended "the log of an exit" "$TMP/logs" "$TMP/leaves.scn" exit
zcat "$TMP/logs"/*.gz >"$TMP/lines"
[ "$(ends) $(last)" = 'exit "end":"exited"' ] || wrong "it ends with $(ends) $(last)"
hang ENDED 0 "$TMP/logs"
ok

# More than the box has room for: `recover` and `check` name how many are lost, and none of them is called in
# flight.
CASE="killed with more than the box had room for"
mkdir "$TMP/small"
if mount -t tmpfs -o size=8m ni-test "$TMP/small" 2>/dev/null; then
  at_exit 'umount "$TMP/small"'
  printf '%s\n' 'set ranks=1' 'comm world size=2' 'coll world func=AllReduce bytes=64k repeat=80000' \
    'sync world' 'exit how=sigkill' \
    >"$TMP/much.scn"
  rm -rf "$TMP/logs"
  # The dump thread leaves all to the box: whether it keeps up is the machine's matter.
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=60000000 NCCL_INSPECTOR_ENABLE=1 \
    NCCL_INSPECTOR_DUMP_DIR=$TMP/logs \
    NCCL_INSPECTOR_BLACKBOX=$TMP/small timeout 60 "$SIM" --quiet --plugin "$PLUGIN" \
    --scenario "$TMP/much.scn" --set time_scale=0.01 --set inflight=1024 >"$TMP/out" 2>&1 || true
  "$INSPECTOR" recover --box-dir "$TMP/small" "$TMP/logs" --json >"$TMP/recover.json" || true
  "$INSPECTOR" check "$TMP/logs" --json >"$TMP/check.json" || true
  python3 - "$TMP" <<'P' || wrong "what is lost is not named"
import json, sys
recover, check = (json.load(open("%s/%s.json" % (sys.argv[1], n))) for n in ("recover", "check"))
box, = recover["boxes"]
problems = {p["code"]: p["count"] for p in check["problems"]}
print(box["records"], box["lost"], box["in_flight"], check["operations"], problems)
assert box["lost"] > 1000 and box["in_flight"] == 0, box
assert check["operations"] + box["lost"] == 80000, check["operations"]
assert (problems.get("dropped") == box["lost"] and "in_flight" not in problems and "sum" not in problems and
        "stated" not in problems), problems
P
  ok
  umount "$TMP/small"
  mount -t tmpfs -o size=64k ni-test "$TMP/small"
  # The first operations are in the log before there are more than the disk has room for.
  sed 's/^coll .* repeat=200$/&\nsync world\nsleep ms=500\n&00/' "$TMP/ends.scn" >"$TMP/full.scn"
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=20000 ended "an orderly end on a disk that filled up" \
    "$TMP/small" "$TMP/full.scn" none
  is process ended
  is end exited
  hang ENDED 0 "$TMP/small"
  written=$(zcat -q "$TMP/small"/*.gz 2>/dev/null | grep -c '"coll_perf"' || true)
  unwritten=$("$INSPECTOR" boxes --json --box-dir "$BOXES" | jq '[.boxes[].unwritten] | add')
  { [ "$written" -gt 0 ] && [ $((written + unwritten)) = 40400 ]; } ||
    wrong "$written records written, $unwritten unwritten"
  recovered
  grep -q 'operations: No space left on device' "$TMP/lines" ||
    wrong "the reason is not told: $(grep '"note"' "$TMP/lines")"
  hang ENDED 0 "$TMP/small" "$TMP/part"
  "$INSPECTOR" check "$TMP/small" "$TMP/part" >"$TMP/said" 2>&1 || true
  grep -q 'AllReduce 40,400' "$TMP/said" || wrong "check: $(tail -n 3 "$TMP/said")"
  ok
else
  echo "no tmpfs can be mounted here: left out"
fi

# The clock was set back by an hour between the first accounting and the last: a line's age is its place.
CASE="the clock is set back"
mkdir "$TMP/back"
ended "$CASE" "$TMP/logs" "$TMP/leaves.scn" exit
python3 - "$TMP/logs" "$TMP/back" <<'P'
import glob, gzip, os, re, sys
for path in glob.glob(sys.argv[1] + "/*.gz"):
    with gzip.open(path, "rt") as f, gzip.open(os.path.join(sys.argv[2], os.path.basename(path)),
                                               "wt") as out:
        back = 0
        for line in f:
            if '"comm":' in line and '"init_ns"' in line:
                line = line.rstrip("\n") + "\n" + line.split(',"comm":')[0] + (
                ',"dump_stats":{"coll_records":0,"p2p_records":0,"final":false,"coll":{"started":9,"written":0,"incomplete":0,"in_flight":9},'
                '"p2p":{"started":0,"written":0,"incomplete":0,"in_flight":0}}}\n')
            for text in line.splitlines(True):
                out.write(re.sub(r'("dump_timestamp_us":)(\d+)', lambda m: m[1] + str(int(m[2]) - back),
                                 text))
                if '"dump_stats"' in text: back = 3600 * 10**6
P
"$INSPECTOR" check "$TMP/back" >"$TMP/said" 2>&1 || wrong "check: $(tail -n 1 "$TMP/said")"
ok
finish
