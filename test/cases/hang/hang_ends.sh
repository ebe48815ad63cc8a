#!/usr/bin/env bash
# What `hang` says when nobody runs any more: killed, ended, or of an earlier run; and when --watch ends.
. "$(dirname "$0")/../../lib/hang.sh"

WHEN='last sign of life [0-9TZ:-]+ \([0-9]+ s ago\)'
HOST='\([^)]*\)'

in_time() { # seconds command...
  wait_for "$@" || fail "waited in vain for: ${*:2}"
}

# Killed as a whole, with an operation in flight: 4 ranks, though they are members of two communicators each.
job hang_late
in_time 40 sh -c "'$INSPECTOR' hang '$TMP/logs' --box-dir '$BOXES' --stuck-after 1 >/dev/null 2>&1; [ \$? = 3 ]"
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --stuck-after 1 >"$TMP/said" || true
names "of now" "; nothing has moved for [0-9]* s$"
sleep 2.2 # the newest heartbeat is then more than the second that makes a hang here behind the calls
stop_job
sleep 0.3
dead="all 4 processes are gone \(killed or crashed\), $WHEN"
flight="ReduceScatter 0 of communicator world: rank 2 $HOST had not called it; everyone else \(3 ranks\) was inside"
look
checked "killed" 4 job dead "DEAD \(4 ranks, 3 communicators\): $dead; in flight then: $flight" \
  verdict=no_hang dead=4 ranks=4 processes=4
look --stuck-after 1
checked "killed while it hung" 3 job dead "HANG \(likely\): $flight; nothing had moved for [0-9]+ s; by now $dead" verdict=likely dead=4
RC=0
timeout 20 "$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --watch 1 >"$TMP/out" 2>&1 || RC=$?
[ "$RC" = 4 ] || fail "--watch of a job that was killed: exit code $RC"
grep -q '^  all had finished AllReduce 19$' "$TMP/out" ||
  fail "what all had finished is not said: $(cat "$TMP/out")"
"$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" -q || fail "recover ends with $?"
rm "$BOXES"/*.box
look
checked "killed and recovered" 4 job dead "DEAD \(4 ranks, 3 communicators\): $dead; in flight then: $flight" dead=4 ranks=4

# What a process that was killed left is as old as its death, however old its heartbeat is: here as old as its
# start.
cat >"$TMP/kill.scn" <<'S'
# rank 1 has not called what rank 0 is inside of when both are killed
set ranks=2 nodes=2 procs=1
comm world label=world
coll world func=AllReduce bytes=1m repeat=20
sync world
coll world func=AllReduce bytes=1m skip=1
sleep ms=300
exit how=sigkill
S
job "$TMP/kill.scn" NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0
ended
look
checked "old heartbeats" 4 job dead ".*in flight then: AllReduce 20 of communicator world: rank 1 $HOST had not called it; one rank was inside"

# One was killed first: it is named.
job hang_dead
in_time 40 sh -c "'$INSPECTOR' hang '$TMP/logs' --box-dir '$BOXES' 2>/dev/null | grep -q 'gone: rank 2 '"
sleep 3.2
stop_job
sleep 0.3
look
checked "one after the other" 4 job dead "DEAD .*; the first to go was rank 2 $HOST, [0-9]+ s before that; in flight then: .*" dead=4

# Ended by themselves, with nothing in flight and with something.
job nodes
ended
look
checked "ended" 0 job ended "ENDED \(8 ranks, 3 communicators\): all 8 processes have ended by themselves, $WHEN; nothing was in flight" left=8 ranks=8
# Started again in the same folder at once, by a loop around the job: the ranks tell the runs apart.
env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX="$BOXES" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" \
  "$SIM" --quiet --plugin "$PLUGIN" --scenario nodes >"$TMP/sim.out" 2>&1 || fail "the job started again"
look
checked "ended and ended again" 0 job ended "ENDED \(8 ranks, 3 communicators\): all 8 processes .*" left=8 \
  ranks=8 earlier=8
job hang
wait "$JOB" || true
JOB=
look
checked "ended inside a kernel" 0 job ended "ENDED \(2 ranks in 1 process, .*: the only process has ended by itself, $WHEN; in flight then: AllReduce 20 of .*" ranks=2 processes=1

# An earlier run in the same folder that was killed while it hung does not hang now.
job hang_late
in_time 40 sh -c "'$INSPECTOR' hang '$TMP/logs' --box-dir '$BOXES' --stuck-after 1 >/dev/null 2>&1; [ \$? = 3 ]"
stop_job
sleep 2.2
env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX="$BOXES" NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" \
  "$SIM" --quiet --plugin "$PLUGIN" --scenario slow --set pause=4000 >"$TMP/sim.out" 2>&1 &
JOB=$!
in_time 20 sh -c "'$INSPECTOR' hang '$TMP/logs' --box-dir '$BOXES' --json 2>/dev/null | grep -q '\"alive\":4'"
look --stuck-after 4
checked "an earlier run" 0 job running "no hang: 4 ranks, 3 communicators.*" earlier=4 dead=0 alive=4
"$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" >"$TMP/out" || true
grep -q '^not counted: 4 processes of an earlier run' "$TMP/out" ||
  fail "the earlier run is not told: $(cat "$TMP/out")"
stop_job

# --watch begins before there is anything, and ends when the processes have ended; from logs alone it ends on
# a hang.
rm -rf "$TMP/logs" "${BOXES:?}"/*
timeout 60 "$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --watch 1 >"$TMP/out" 2>"$TMP/err" &
WATCH=$!
sleep 1.2
job nodes
ended
RC=0
wait $WATCH || RC=$?
{ [ "$RC" = 0 ] && grep -q '^ENDED' "$TMP/out"; } ||
  fail "--watch from before the first write: exit code $RC, $(cat "$TMP/out" "$TMP/err")"
job hang_late NCCL_INSPECTOR_BLACKBOX=0 NCCL_INSPECTOR_STUCK_SECONDS=7
RC=0
timeout 60 "$INSPECTOR" hang "$TMP/logs" --box-dir "$BOXES" --watch 2 --stuck-after 1 >"$TMP/out" \
  2>"$TMP/err" || RC=$?
{ [ "$RC" = 3 ] && grep -q '^HANG (likely): ReduceScatter 0 ' "$TMP/out"; } ||
  fail "--watch of logs alone: exit code $RC, $(cat "$TMP/out" "$TMP/err")"
[ "$(wc -l <"$TMP/err")" -le 5 ] || fail "--watch repeats itself: $(cat "$TMP/err")"
finish
