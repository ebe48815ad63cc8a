#!/usr/bin/env bash
# SIGKILL, then recover: every finished operation is in the log once, the accounts close, a second run writes
# nothing; a running process is left alone; copies serve as well; what is damaged is named and costs nothing
# else. Kills at 1,000 random instants are in test/fault.
. "$(dirname "$0")/../../lib/hang.sh"

cat >"$TMP/kill.scn" <<'S'
# work, then a kill while operations are on their way
var n=400 rest=0
set ranks=2 procs=1
comm world label=world
comm other label=other
coll world func=AllReduce bytes=1m repeat=$n
coll other func=AllGather bytes=64k repeat=100
p2p world from=0 to=1 bytes=64k repeat=50
sleep ms=$rest
coll world func=AllReduce bytes=256m repeat=8
exit how=sigkill
S

killed() { # [SCENARIO] [NAME=value ...] [nccl-sim's options]
  local scenario=$TMP/kill.scn
  case ${1:-} in *.scn) scenario=$1 && shift ;; esac
  job "$scenario" "$@"
  wait "$JOB" || fail "nccl-sim ended with $?"
  JOB=
}
recover() {
  RC=0
  "$INSPECTOR" recover "$@" >"$TMP/out" 2>&1 || RC=$?
}
verified() { # NAME
  if "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1; then
    echo "ok   $1: $(tail -n 1 "$TMP/verify")"
  else
    fail "$1"
    tail -n 8 "$TMP/verify"
  fi
}
# Everything that had finished is there: of the truth's operations none is missing that was done before the
# kill.
complete() { # NAME codes that may be problems
  RC=0
  "$INSPECTOR" check "$TMP/logs" --json >"$TMP/check" 2>&1 || RC=$?
  local drawn=0
  "$INSPECTOR" trace "$TMP/logs" -o "$TMP/trace.json.gz" -q >/dev/null 2>&1 || drawn=$?
  [ $drawn = "$RC" ] || fail "$1: check ends with $RC, trace with $drawn"
  python3 - "$TMP/check" "$2" <<'P' || fail "$1: check"
import json, sys
doc = json.load(open(sys.argv[1]))
codes = {p["code"] for p in doc["problems"]}
assert codes <= set(sys.argv[2].split()), doc["problems"]
P
}

# Parts that were put elsewhere are numbered as if they lay beside the log: brought there they replace
# nothing.
killed SLURM_JOB_ID=4711 NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 --set rate=1500
"$INSPECTOR" boxes --json --box-dir "$BOXES" | grep -qE '"job_id": ?"4711"' ||
  fail "boxes: whose job's they are: $("$INSPECTOR" boxes --json --box-dir "$BOXES")"
# Beside them the box of another job, by a newer plugin: it is nobody's business here. One of a process of
# these logs is.
newer() { printf '\377' | dd of="$1" bs=1 seek=12 conv=notrunc status=none; }
logged=$(find "$TMP/logs" -name '*-pid*' | head -n 1) # a process may be killed before it has a log
own=$(find "$BOXES" -name "nccl-inspector-$(basename "${logged%-*}")-*.box")
other=$BOXES/nccl-inspector-elsewhere-pid4711-0123456789abcdef.box
cp "$own" "$other"
newer "$other"
"$INSPECTOR" snapshot "$TMP/logs" --box-dir "$BOXES" --output "$TMP/copies" >"$TMP/out" 2>&1 ||
  fail "snapshot beside a newer box: $(cat "$TMP/out")"
RC=0
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" >>"$TMP/out" 2>&1 || RC=$?
{ [ "$RC" != 2 ] && ! grep -q layout "$TMP/out"; } ||
  fail "the newer box of another job is told: $(cat "$TMP/out")"
cp "$own" "$TMP/kept"
newer "$own"
recover "$TMP/logs" --box-dir "$BOXES" --output "$TMP/newer"
{ [ "$RC" = 2 ] && [ "$(grep -c 'layout 255' "$TMP/out")" = 1 ]; } ||
  fail "a newer box of this job: $RC $(cat "$TMP/out")"
mv "$TMP/kept" "$own"
rm -rf "$other" "$TMP/copies" "$TMP/newer"
mkdir "$TMP/small"
if mount -t tmpfs -o size=64k,nr_inodes=1 ni-test "$TMP/small" 2>/dev/null; then
  recover "$TMP/logs" --box-dir "$BOXES" --output "$TMP/small"
  umount "$TMP/small"
  { [ "$RC" = 1 ] && grep -q 'No space left on device. Free space .* --output' "$TMP/out"; } ||
    fail "no room for a part: $RC $(cat "$TMP/out")"
fi
recover "$TMP/logs" --box-dir "$BOXES" --output "$TMP/parts"
mkdir -p "$TMP/logs" # killed before a line was written
for f in "$TMP"/parts/*; do
  [ -e "$TMP/logs/${f##*/}" ] && fail "a part elsewhere has the name of a file of the log: ${f##*/}"
  mv "$f" "$TMP/logs"
done
verified "parts put elsewhere and brought back"
complete "parts put elsewhere and brought back" "in_flight cut damaged"
rm -rf "$TMP/parts"

for us in 1000000 500; do
  killed NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$us
  recover "$TMP/logs" --box-dir "$BOXES"
  [ "$RC" = 0 ] || { fail "interval $us: recover ends with $RC"; cat "$TMP/out"; }
  verified "killed at interval $us us"
  complete "interval $us" "in_flight cut damaged"
  recover "$TMP/logs" --box-dir "$BOXES"
  grep -q -- '->' "$TMP/out" && fail "interval $us: the second run recovers again: $(cat "$TMP/out")"
  [ "$("$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" | grep -c 'nothing to recover')" = 2 ] ||
    fail "two boxes, two answers"
  "$INSPECTOR" summary "$TMP/logs" --output-dir "$TMP/summary" --force --no-plots -q >"$TMP/out" 2>&1 ||
    [ $? = 2 ] || fail "summary: $(tail -n 3 "$TMP/out")"
done

# A log of several files: what is in the first is not recovered again.
killed NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 NCCL_INSPECTOR_FILE_MAX_BYTES=4k --set rate=1500
[ "$(find "$TMP/logs" -type f | wc -l)" -gt 4 ] ||
  fail "the log should be in several files: $(ls "$TMP/logs")"
recover "$TMP/logs" --box-dir "$BOXES"
verified "killed with a log in several files"
complete "several files" "in_flight cut damaged"

# Roll-ups of the time since the last are gone with the process. The records are there: a note, no verdict.
# Roll-ups come with the clock's seconds: a kill right behind one leaves nothing to note, so there are more
# kills.
for _ in 1 2 3 4 5; do
  killed NCCL_INSPECTOR_ROLLUP_SECONDS=1 --set rate=1000 --set n=1500
  recover "$TMP/logs" --box-dir "$BOXES"
  verified "killed between two roll-ups"
  complete "killed between two roll-ups" "in_flight cut damaged"
  grep -q '"code":"rollup_cut"' "$TMP/check" && break
done
grep -q '"code":"rollup_cut"' "$TMP/check" || fail "killed between two roll-ups: not noted"

# Event lines have no last word.
killed NCCL_INSPECTOR_EVENTS=deep NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 --set rate=1500
recover "$TMP/logs" --box-dir "$BOXES"
verified "killed with events"
complete "killed with events" "in_flight cut damaged"

# What retention removed is expired, not in flight. The dump thread gets time to write, so that there is
# something to remove.
killed NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500 NCCL_INSPECTOR_DIR_MAX_BYTES=8k --set rate=1500 \
  --set rest=2000
recover "$TMP/logs" --box-dir "$BOXES"
complete "killed with files expired" "in_flight cut damaged expired"
python3 - "$TMP/check" <<'P' || fail "killed with files expired: not told as such"
import json, sys
doc = json.load(open(sys.argv[1]))
assert doc["dropped_by"].get("expired", 0) > 100, doc["dropped_by"]
assert sum(p["count"] for p in doc["problems"]
           if p["code"] == "in_flight") < doc["dropped_by"]["expired"], doc["problems"]
P

# Collectives whose kernels NCCL does not show: while nobody has judged yet that no kernel will come, and when
# their records wait for the disk (interval -1). A second recover has nothing to add, as the log then has what
# the box has.
cat >"$TMP/hidden.scn" <<'S'
# of three collectives the first is known by its call alone, the last by the copy engine's events
set ranks=2 procs=1
var ms=900
comm world label=world
loop times=15
  coll world func=AllReduce bytes=1m symmetric=1
  coll world func=AllReduce bytes=2m
  ce world func=AllGather bytes=8m
end
sleep ms=$ms
exit how=sigkill
S
for ms in 900 2500; do
  for us in -1 500; do
    killed "$TMP/hidden.scn" NCCL_INSPECTOR_EVENTS=standard,ce \
      NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=$us --set ms=$ms
    recover "$TMP/logs" --box-dir "$BOXES"
    verified "collectives without kernels, killed $ms ms later, interval $us"
    complete "collectives without kernels" "cut damaged"
    zcat "$TMP"/logs/*.gz | python3 -c '
import json, sys
sn = {}
for x in map(json.loads, sys.stdin):
    r = x.get("coll_perf", {})
    if "coll_src" in r: sn.setdefault((x["header"]["rank"], r["coll_src"]), []).append(r["coll_sn"])
assert len(sn) == 4 and all(sorted(n) == list(range(15)) for n in sn.values()), sn
    ' || fail "killed $ms ms later, interval $us: their numbers"
  done
done

# A call that may still be launched, as a non-blocking communicator does after its group, has not finished.
printf '%s\n' 'set ranks=1' 'comm w size=4' 'coll w bytes=1m nonblocking=30000' >"$TMP/late.scn"
job "$TMP/late.scn" NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=-1
sleep 2
stop_job
recover "$TMP/logs" --box-dir "$BOXES"
! grep -q '"coll_perf"' < <(zcat "$TMP"/logs/*.gz) ||
  fail "not launched when it was killed: $(zcat "$TMP"/logs/*.gz | grep -m1 '"coll_perf"')"

# Killed before it had a log: the box says where that would have been.
killed LD_PRELOAD="$BUILD/test/fault_io.so" ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0 \
  NI_FAULT=mkdir=EACCES
[ ! -e "$TMP/logs" ] || fail "without a folder there should be no log yet"
recover "$TMP/logs" --box-dir "$BOXES"
[ "$(find "$TMP/logs" -type f | wc -l)" = 2 ] || fail "two processes, two parts: $(cat "$TMP/out")"
verified "killed before it had a log"
recover "$TMP/logs" --box-dir "$BOXES"
grep -q -- '->' "$TMP/out" &&
  fail "killed before it had a log: the second run recovers again: $(cat "$TMP/out")"

# Copies, read after the boxes are gone; a cut copy and a foreign file beside them.
killed
"$INSPECTOR" snapshot --box-dir "$BOXES" --output "$TMP/copies" -q || fail "snapshot ends with $?"
rm "$BOXES"/*.box
head -c 9000 "$(find "$TMP/copies" -name '*.box' | head -n 1)" >"$TMP/copies/cut.box"
echo "not a box" >"$TMP/copies/foreign.box"
[ "$(id -u)" != 0 ] || { recover "$TMP/copies" && grep -q 'name the log.s folder' "$TMP/out"; } ||
  fail "root believes a copy: $(cat "$TMP/out")"
recover "$TMP/copies" "$TMP/logs"
[ "$RC" = 2 ] || fail "damaged boxes: exit code $RC"
grep -q 'cut short.*cut.box' "$TMP/out" || fail "the cut box is not named: $(cat "$TMP/out")"
grep -q 'too short.*foreign.box' "$TMP/out" || fail "the foreign file is not named: $(cat "$TMP/out")"
verified "from copies"
"$INSPECTOR" snapshot "$TMP/copies" --output "$TMP/again" --exit-zero -q >"$TMP/out" 2>&1 ||
  fail "snapshot --exit-zero ends with $?"
RC=0
"$INSPECTOR" snapshot "$TMP/copies" --output /proc/nowhere -q >"$TMP/out" 2>&1 || RC=$?
[ "$RC" = 1 ] || fail "snapshot to a place that cannot be: exit code $RC"

# recover is killed before its part has a name: what it leaves is hidden, and the next one removes it, but not
# that of one that lives.
for output in "" "$TMP/parts"; do
  rm -rf "$TMP/parts" "$TMP/logs"
  rm -f "$BOXES"/*.box
  killed NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=500
  LD_PRELOAD=$BUILD/test/fail_rename.so NI_RENAME_KILLS=1 ASAN_OPTIONS=verify_asan_link_order=0 \
    "$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" ${output:+--output "$output"} >"$TMP/out" 2>&1 &&
    fail "recover was not killed"
  folder=${output:-$TMP/logs}
  left=$(find "$folder" -name '.tmp-*')
  [ "$(wc -l <<<"$left")" = 1 ] && [ -n "$left" ] ||
    fail "a recover that is killed leaves: $(ls -A "$folder")"
  lives=$folder/.tmp-recover-1
  exec 9>"$lives"
  flock 9
  recover "$TMP/logs" --box-dir "$BOXES" ${output:+--output "$output"}
  [ "$RC" = 0 ] && [ ! -e "$left" ] && [ -e "$lives" ] ||
    fail "recover after one that was killed ends with $RC: $(ls -A "$folder"; cat "$TMP/out")"
  exec 9>&-
  rm "$lives"
  [ -z "$(find "$folder" -name '.tmp-*')" ] || fail "recover leaves $(ls -A "$folder")"
done

# A process that runs: nothing is written beside its log; elsewhere on demand, marked.
rm -rf "$TMP/copies"
job hang_late
hangs "a job that runs" world "ReduceScatter 0" never_called=2 inside=0,1,3
# A second snapshot beside the logs is one of the live boxes again, and not of the first one's copies.
for i in 4 8; do
  "$INSPECTOR" snapshot "$TMP/logs" --box-dir "$BOXES" --output "$TMP/logs" -q ||
    fail "snapshot beside the logs ends with $?"
  [ "$(find "$TMP/logs" -name '*.box' | wc -l)" = $i ] || fail "snapshot beside the logs: $(ls "$TMP/logs")"
done
rm "$TMP"/logs/*.box
before=$(ls "$TMP/logs")
recover "$TMP/logs" --box-dir "$BOXES"
{ [ "$RC" = 0 ] && [ "$(grep -c 'left alone' "$TMP/out")" = 4 ]; } ||
  fail "running processes: $(cat "$TMP/out")"
[ "$(ls "$TMP/logs")" = "$before" ] || fail "something was written beside the log of a running process"
recover "$TMP/logs" --box-dir "$BOXES" --live --output "$TMP/live"
[ "$(zcat "$TMP"/live/* | grep -c '"in_flight":{.*"why":"alive"')" = 3 ] ||
  fail "three ranks are in flight: $(cat "$TMP/out")"
[ "$(zcat "$TMP"/live/* | grep -c '"recovered_live":true')" = 3 ] || fail "the parts are not marked"
recover "$TMP/logs" --box-dir "$BOXES" --live
[ "$RC" = 64 ] || fail "--live without --output: exit code $RC"
finish
