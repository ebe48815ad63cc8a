#!/usr/bin/env bash
# run: exit code, descriptors, limits, mask, signals and variables of the command; what it says where the
# command cannot start or no rank has loaded the plugin. On a terminal: Ctrl-Z, and a command that reads from
# it.
. "$(dirname "$0")/../../lib/case.sh"
need python3 "$PLUGIN"
cd "$TMP"
stop() { cat "$TMP/err" 2>/dev/null || true; fatal "$@"; }
run() { # EXPECTED ARG...: standard output of the command in $TMP/out, what is said in $TMP/err
  local rc=0 want=$1
  shift
  "$INSPECTOR" run "$@" >"$TMP/out" 2>"$TMP/err" </dev/null || rc=$?
  [ $rc = "$want" ] || stop "run $*: exit code $rc, not $want"
}
says() { grep -qF -- "$1" "$TMP/err" || stop "not said: $1"; }

# ---- exit codes, and what is left ----
run 0 -- true
run 7 -- sh -c 'exit 7'
says 'sh ended with 7, perhaps before it came to NCCL'
run 143 -- sh -c 'kill -TERM $$'
run 127 -- /nothing/there
says '/nothing/there: No such file'
echo text >plain
run 126 -- ./plain
says './plain: Permission denied'
run 64
says 'which command?'
run 64 --wait x -- true
grep -qx '.*: --wait=x: want a number of seconds from 0 to 86400' err || stop "what --wait wants: $(cat err)"
run 64 --kill -- true
says '--hang-limit 600 --kill'
run 125 --out plain/x -- touch ran
says 'plain/x: Not a directory'
[ ! -e ran ] || stop "the command ran although its logs have no folder"
[ "$(ls)" = "$(printf '%s\n' err out plain)" ] || stop "folders without a log are left: $(ls)"

# ---- what is the command's stays the command's ----
echo 'some input' | "$INSPECTOR" run -- sh -c 'cat; echo more >&2' >out 2>err
[ "$(cat out)" = 'some input' ] || stop "standard output: $(cat out)"
grep -qx more err || stop "standard error"
look() { sh -c 'ulimit -Sn; grep -E "Sig(Blk|Ign)" /proc/self/status; ls /proc/self/fd | wc -l'; }
export -f look
ulimit -Sn 512
bash -c look </dev/null >without
run 0 -- bash -c look
diff without out || stop "the command is not started as without us"
ulimit -Sn "$(ulimit -Hn)"

# ---- variables ----
show='for v in NCCL_PROFILER_PLUGIN NCCL_INSPECTOR_ENABLE NCCL_INSPECTOR_DUMP_DIR; do printenv $v || echo none; done'
run 0 --out 'of 100%' -- sh -c "cd /; $show"
[ "$(cat out)" = "$(printf '%s\n' "$(realpath "$BUILD/libnccl-profiler-inspector.so")" 1 "$TMP/of 100%%/logs")" ] || stop "variables: $(cat out)"
grep -q 'stays as' err && stop "something stays although nothing is set"
NCCL_INSPECTOR_ENABLE=0 NCCL_INSPECTOR_DUMP_DIR=mine/%j-%p NCCL_PROFILER_PLUGIN=none run 0 -- sh -c "$show"
[ "$(cat out)" = "$(printf '%s\n' none 0 mine/%j-%p)" ] || stop "what is set does not stay: $(cat out)"
says 'stays as you have set it: NCCL_PROFILER_PLUGIN=none, NCCL_INSPECTOR_ENABLE=0, NCCL_INSPECTOR_DUMP_DIR=mine/%j-%p'
# Why no rank has loaded the plugin: as doctor has it, with what to do.
says 'no rank of sh has loaded the plugin'
says 'NCCL_PROFILER_PLUGIN=none switches profiling off'
says '-> Set it to the path of libnccl-profiler-inspector.so.'
says '-> export NCCL_INSPECTOR_ENABLE=1'
run 0 -- true
says 'true has not used NCCL'
says "next     $INSPECTOR doctor"

# ---- beside other places: a copy of the program finds the plugin in lib/, and none where there is none ----
mkdir -p tree/bin tree/lib
cp "$INSPECTOR" tree/bin/
rc=0
(cd / && "$TMP/tree/bin/nccl-inspector" run --out "$TMP/x" -- true) 2>err || rc=$?
[ $rc = 125 ] || stop "without a plugin: $rc"
says 'libnccl-profiler-inspector.so: not found beside this program'
[ ! -e x ] || stop "a folder is left where nothing was started"
cp "$PLUGIN" tree/lib/libnccl-profiler-inspector.so
[ "$(PATH=$TMP/tree/bin:$PATH nccl-inspector run -- printenv NCCL_PROFILER_PLUGIN 2>err)" = \
  "$(realpath tree/lib)/libnccl-profiler-inspector.so" ] ||
  stop "the plugin of an installation is not found"

# ---- signals, without a terminal ----
for s in TERM INT HUP USR1 USR2 QUIT WINCH; do
  rm -f ready
  # In the background a shell ignores INT and QUIT, which the command would inherit.
  python3 -c 'import os, signal, sys
for s in (signal.SIGINT, signal.SIGQUIT): signal.signal(s, signal.SIG_DFL)
os.setsid()
os.execv(sys.argv[1], sys.argv[1:])' "$INSPECTOR" run -- python3 -c 'import signal, sys, time
signal.signal(signal.SIG'$s', lambda *a: sys.exit(33))
open(sys.argv[1], "w").close()
while True: time.sleep(0.05)' ready 2>err & pid=$!
  wait_for 30 test -e ready || stop "the command does not begin"
  kill -$s $pid
  rc=0
  wait $pid || rc=$?
  [ $rc = 33 ] || stop "SIG$s does not reach the command: $rc"
done
has_state() { [[ $(awk '{print $3}' "/proc/$1/stat" 2>/dev/null) == [$2] ]]; }
"$INSPECTOR" run -- sh -c 'echo $$ >child; while [ ! -e go ]; do sleep 0.05; done; exit 5' 2>err & pid=$!
wait_for 30 test -s child || stop "the command does not begin"
kill -TSTP $pid
for p in $pid "$(cat child)"; do wait_for 30 has_state "$p" T || stop "process $p is not stopped"; done
kill -CONT $pid
for p in $pid "$(cat child)"; do wait_for 30 has_state "$p" RSD || stop "process $p does not go on"; done
touch go
rc=0
wait $pid || rc=$?
[ $rc = 5 ] || stop "after a stop: $rc"
# Who stops the command alone continues it alone: we wait on meanwhile.
rm -f child go
setsid "$INSPECTOR" run -- sh -c 'echo $$ >child; while [ ! -e go ]; do sleep 0.05; done; exit 6' 2>err & \
  pid=$!
wait_for 30 test -s child || stop "the command does not begin"
kill -STOP "$(cat child)"
wait_for 30 has_state "$(cat child)" T || stop "the command is not stopped"
if wait_for 1 has_state $pid T; then
  kill -KILL "$(cat child)"
  stop "we stop with a command that somebody has stopped, and nobody continues us"
fi
kill -CONT "$(cat child)"
touch go
rc=0
wait $pid || rc=$?
[ $rc = 6 ] || stop "after a stop of the command alone: $rc"

# ---- nobody reads what we say: the command runs, and its code is ours ----
rc=0
NCCL_INSPECTOR_ENABLE=1 python3 -c 'import os, subprocess, sys
r, w = os.pipe()
os.close(r)
sys.exit(subprocess.call(sys.argv[1:], stderr=w) % 256)' "$INSPECTOR" run -- sh -c 'grep SigBlk /proc/self/status >unread; exit 7' || rc=$?
[ $rc = 7 ] && grep -qx $'SigBlk:\t0*' unread || stop "without a reader of standard error: $rc, $(cat unread)"

# ---- on a terminal ----
# Ctrl-Z stops both, and the shell has the terminal; a command that reads from it has it, and with it Ctrl-C.
rc=0
timeout 120 python3 "$ROOT/test/lib/run_terminal.py" wait:READY key:Z wait:STOPPED 'line:some words' \
  wait:GOT key:C -- \
  "$INSPECTOR" run -- sh -c 'trap "echo CAUGHT; exit 9" INT; echo READY; read x; echo "GOT $x"; while :; do sleep 0.1; done' >screen || rc=$?
[ $rc = 9 ] && grep -q 'GOT some words' screen && grep -q CAUGHT screen ||
  { cat screen; stop "a command that reads from the terminal: $rc"; }
# Begun in the background, in front when the command has ended and logs are waited for: Ctrl-Z stops us, too.
rc=0
timeout 150 python3 "$ROOT/test/lib/run_terminal.py" wait:IN-FRONT key:Z wait:IT-STOPS -- bash \
  -mc '"$1" run --wait 600 -- true & p=$!
until pgrep -P $p -x nccl-inspector; do sleep 0.1; done
(until [ "$(ps -o tpgid= -p $p)" -eq $p ]; do sleep 0.1; done; echo IN-FRONT) &
fg %1
echo IT-STOPS
kill -KILL $(pgrep -P $p) $p' _ "$INSPECTOR" >screen || rc=$?
grep -q '^IT-STOPS' screen || { cat screen; stop "Ctrl-Z while logs are waited for: $rc"; }
# What Ctrl-C kills ends as killed by it, so that a script ends, too.
rc=0
timeout 120 python3 "$ROOT/test/lib/run_terminal.py" wait:READY key:C -- \
  bash -c '"$1" run -- sh -c "echo READY; sleep 60"; echo "THE SCRIPT GOES ON"' _ "$INSPECTOR" \
  >screen || rc=$?
[ $rc = 130 ] && ! grep -q 'GOES ON' screen || { cat screen; stop "a script and Ctrl-C: $rc"; }
finish
