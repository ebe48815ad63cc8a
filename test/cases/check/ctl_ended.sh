#!/usr/bin/env bash
# ctl on a job that runs, that was killed, that has ended: exit 0 where a process may listen, else 2 and a
# sentence.
. "$(dirname "$0")/../../lib/hang.sh"
ctl() { # CODE PATTERN WORDS...: exit code, and what it says on standard error ("": nothing)
  local want=$1 pattern=$2 rc=0
  shift 2
  "$INSPECTOR" ctl "$@" >"$TMP/out" 2>"$TMP/err" || rc=$?
  [ $rc = "$want" ] || { fail "ctl ${*#"$TMP/"}: exit $rc, expected $want"; cat "$TMP/err"; }
  if [ -n "$pattern" ]; then grep -qE "$pattern" "$TMP/err" ||
    { fail "ctl ${*#"$TMP/"} does not say: $pattern"; cat "$TMP/err"; }
  else [ ! -s "$TMP/err" ] || { fail "ctl ${*#"$TMP/"} says:"; cat "$TMP/err"; }; fi
}
ended="nobody listens: all processes that logged into .* have ended\. .*nccl-inspector.control is for a job that begins there"

job hang_late
begun() { [ "$(find "$TMP/logs" -name '*-pid*' 2>/dev/null | wc -l)" -ge 4 ]; }
wait_for 30 begun || fatal "the job does not begin"
one=$(find "$TMP/logs" -name '*-pid*' -printf '%f\n' | sed 's/\(-pid[0-9]*\).*/\1/' | head -n 1)
ctl 0 "" "$TMP/logs" mark lives
ctl 0 "" "$TMP/logs" mark lives --rank 2
ctl 0 "" "$TMP/logs" mark lives --process "$one"
ctl 0 "note: no log of rank 9 lies in " "$TMP/logs" mark lives --rank 9
ctl 0 "note: no log of other-pid1 lies in " "$TMP/logs" mark lives --process other-pid1
stop_job
gone() { "$INSPECTOR" boxes --json --box-dir "$BOXES" | python3 -c 'import json, sys
b = json.load(sys.stdin)["boxes"]
sys.exit(len(b) != 4 or any(x["process"] == "alive" for x in b))'; }
wait_for 30 gone || fatal "the killed ranks live"
ctl 2 "$ended" "$TMP/logs" mark killed
ctl 2 "nobody listens: the process that logged into .* has ended" "$TMP/logs" mark killed --rank 2
grep -q 'mark killed' "$TMP/logs/nccl-inspector.control" || fail "the file is not there"
# Of a log without a last line, of a machine that is not asked, nobody knows.
cp -r "$TMP/logs" "$TMP/elsewhere"
rm -f "$TMP"/elsewhere/nccl-inspector.control*
"$INSPECTOR" recover "$TMP/logs" --box-dir "$BOXES" --remove >/dev/null || fail "recover"
ctl 2 "$ended" "$TMP/logs" mark recovered
ctl 0 "" "$TMP/elsewhere" mark unknown

# In order: compressed, as text, in parts, and with a last member that is longer than what is looked at first.
run() { # NAME VARIABLE=VALUE...
  local to=$TMP/$1
  shift
  env NCCL_PROFILER_PLUGIN="$PLUGIN" NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=0 \
    NCCL_INSPECTOR_DUMP_DIR="$to" "$@" \
    "$SIM" --job 1x2 --procs --iterations 60 --quiet >"$TMP/sim.out" 2>&1 ||
    fail "nccl-sim: $(tail -n 2 "$TMP/sim.out")"
  ctl 2 "$ended" "$to" preset deep
}
run plain NCCL_INSPECTOR_DUMP_FORMAT=jsonl
run parts NCCL_INSPECTOR_FILE_MAX_BYTES=65536 NCCL_INSPECTOR_DUMP_FORMAT=jsonl
run long NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 NCCL_INSPECTOR_EVENTS=deep
mkfifo "$TMP/plain/none-pid1-1.jsonl"
rc=0 && timeout 20 "$INSPECTOR" ctl "$TMP/plain" flush >/dev/null 2>&1 || rc=$?
[ $rc = 0 ] || fail "beside a pipe that is called like a log: exit $rc"
mkdir "$TMP/empty"
ctl 0 "note: no log lies in" "$TMP/empty" flush
finish
