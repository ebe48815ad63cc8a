#!/usr/bin/env bash
# Two healthy ranks replay a captured graph of symmetric collectives 50 times a second, on NCCL 2.31, which
# raises no KernelCh
# there: nothing is stuck, nothing hangs, memory stays flat, and every replay is in the logs.
. "$(dirname "$0")/../../lib/hang.sh"
times=250
replays() { # the job's options
  local looks=0 healthy=0 first='' last='' now='' rank_pid
  job replays NCCL_INSPECTOR_DUMP_FORMAT=jsonl NCCL_INSPECTOR_STUCK_SECONDS=2 --procs --set times=$times "$@"
  wait_for 20 logs_there || fatal "$*: no logs"
  while kill -0 "$JOB" 2>/dev/null; do
    look --stuck-after 1
    looks=$((looks + 1))
    [ "$RC" = 0 ] && healthy=$((healthy + 1)) # 2: a process begins or ends at this moment
    [ "$RC" != 3 ] || { fail "$*: a hang"; head -c 1500 "$TMP/verdict"; break; }
    rank_pid=$(pgrep -P "$JOB" | head -n 1) || break
    now=$(awk '/VmRSS/ {print $2}' "/proc/$rank_pid/status" 2>/dev/null) || break
    last=${now:-$last} # of a rank that has ended there is none
    [ $looks != 3 ] || first=$last
    sleep 0.2
  done
  ended
  # The job runs for five seconds; a busy machine has time for few looks.
  [ $looks -ge 4 ] && [ $healthy -gt $((looks / 2)) ] ||
    fail "$*: $healthy of $looks looks said that nothing hangs"
  room=1024
  [ -z "$VARIANT" ] || room=8192 # a sanitizer keeps for a while what is freed
  [ "${last:-0}" -le $((${first:-0} + room)) ] || fail "$*: $first KiB grew to $last"
  # 100 operations a second are written once a second. Through v4 nobody may know that they are replays: they
  # are given up later.
  high=$(cat "$TMP"/logs/*.jsonl | grep -o '"high_water":[0-9]*' | cut -d: -f2 | sort -n | tail -n 1)
  [[ "$*" == *v4* ]] || [ "${high:-1000}" -le 300 ] || fail "$*: ${high:-no} operations held at once"
  look --stuck-after 1
  [ "$RC" = 0 ] || fail "$*: exit code $RC after its end"
  "$INSPECTOR" check "$TMP/logs" >"$TMP/check" 2>&1 || true
  [ "$(tail -n 1 "$TMP/check")" = COMPLETE ] || { fail "$*: check"; cat "$TMP/check"; }
  ! grep -q '"stuck":{' "$TMP"/logs/*.jsonl || fail "$*: stuck lines"
  "$SIM" --verify "$TMP/truth" "$TMP/logs" >"$TMP/verify" 2>&1 || { fail "$*: verify"; cat "$TMP/verify"; }
  n=$(cat "$TMP"/logs/*.jsonl | grep -c '"prev_replay_ns"') || true
  case "$*" in
    *v4*) ;;
    *) [ "$n" = $((2 * 2 * (times - 1))) ] || fail "$*: $n replays know when the one before began" ;;
  esac
  echo "ok   replays $*: $looks looks, $first KiB and then $last, $(tail -n 1 "$TMP/verify")"
}
logs_there() { compgen -G "$TMP/logs/*.jsonl"; }
replays --interface v7
replays --interface v6
replays --interface v4
finish
