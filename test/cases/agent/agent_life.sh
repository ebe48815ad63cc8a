#!/usr/bin/env bash
# The agent's life: background, one agent a state, signals, kills, systemd's notices, turns without waiting.
. "$(dirname "$0")/../../lib/agent.sh"
# In the background: whoever began it knows where it serves, and errors reach him.
out=$("$INSPECTOR" agent --listen 127.0.0.1:0 --state-dir "$TMP/back" --box-dir "$TMP/boxes" 2>&1) ||
  fail "background: exit status $?"
case $out in "nccl-inspector agent: serves http://127.0.0.1:"*" (pid "*")") ;; *) fail \
  "background says '$out'" ;; esac
PID=${out##*pid } PID=${PID%)} URL=$(echo "$out" | sed 's/.*serves \(http[^ ]*\).*/\1/')
AGENTS+=("$PID")
settled
is "its session" "$(ps -o sid= -p "$PID" | tr -d ' ')" "$PID"
[ "$(readlink "/proc/$PID/fd/0")" = /dev/null ] || fail "keeps standard input"
[ "$(readlink "/proc/$PID/fd/2")" = "$TMP/back/agent.log" ] ||
  fail "messages go to $(readlink "/proc/$PID/fd/2")"
is "the folder's mode" "$(stat -c %a "$TMP/back")" 700
# One agent a state.
rc=0
second=$("$INSPECTOR" agent --listen 127.0.0.1:0 --state-dir "$TMP/back" --box-dir "$TMP/boxes" 2>&1) || rc=$?
is "a second agent" "$rc" 1
case $second in *"the agent with pid $PID has it"*) ;; *) fail "a second agent says '$second'" ;; esac
is "the first one" "$(code "$URL/healthz")" 200
# Its messages have a bound.
head -c 4300000 /dev/zero | tr '\0' '\n' >>"$TMP/back/agent.log"
wait_for 10 eval "[ \$(stat -c %s '$TMP/back/agent.log.1' || echo 0) -ge 4300000 ]" ||
  fail "agent.log is not put aside"
kill -HUP "$PID"
wait_for 10 grep -q 'settings were read' "$TMP/back/agent.log" || fail "agent.log ends"
[ "$(stat -c %s "$TMP/back/agent.log")" -lt 4096 ] || fail "agent.log stays long"
settled
kill "$PID"
wait_for 10 eval "! kill -0 $PID" || fail "SIGTERM does not end it"
[ -s "$TMP/back/agent.state" ] || fail "no state is left"
rc=0
out=$("$INSPECTOR" agent --listen 127.0.0.1:99999 --state-dir "$TMP/back" 2>&1) || rc=$?
is "an error in the background" "$rc-$(echo "$out" | grep -c 'want an address')" 64-1

# SIGINT; kill -9 and again; a state that is torn.
begin life
settled
rc=0
kill -INT "$PID"
wait "$PID" || rc=$?
is SIGINT $rc 0
for _ in 1 2 3; do
  begin life
  kill -9 "$PID"
  wait "$PID" 2>/dev/null || true
done
begin life
settled
is "state lost" "$(metric agent_state_lost_total)" 0
ends 0
echo torn >"$TMP/life/agent.state"
begin life
settled
is "a torn state" "$(metric agent_state_lost_total)" 1
grep -q 'agent.state: .*read from their beginning' "$TMP/life.err" || fail "a torn state is not told"
ends 0

# What systemd hears.
python3 - "$TMP/notify" >"$TMP/heard" <<'P' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(20)
said = b""
while said != b"STOPPING=1":
    said = s.recv(4096)
    print(said.decode(), flush=True)
P
listener=$!
wait_for 10 test -S "$TMP/notify"
NOTIFY_SOCKET=$TMP/notify begin systemd
settled
kill -HUP "$PID"
wait_for 10 grep -q 'settings were read' "$TMP/systemd.err" || fail "SIGHUP without a file"
ends 0
wait $listener || fail "systemd heard no end"
is "systemd heard" "$(tr '\n' ' ' <"$TMP/heard")" "READY=1 RELOADING=1 READY=1 STOPPING=1 "

# A clock that is set: counted and told, once.
if [ -z "${NI_VARIANT:-}" ] && [ -e "$BUILD/test/step_clock.so" ]; then
  NI_STEP_FILE=$TMP/stepped LD_PRELOAD=$BUILD/test/step_clock.so begin clock
  settled
  is "steps of a clock that goes well" "$(metric agent_clock_steps_total)" 0
  touch "$TMP/stepped"
  wait_for 5 grep -q 'the clock was set by 3600' "$TMP/clock.err" || fail "a step of the clock is not told"
  sleep 1.2
  is "steps of the clock" "$(metric agent_clock_steps_total)" 1
  is "a step is told once" "$(grep -c 'the clock was set' "$TMP/clock.err")" 1
  ends 0
fi

# Ten thousand turns without waiting: the state is saved as ever, and it ends by itself.
rc=0
NI_AGENT_TURNS=10000 timeout 60 "$INSPECTOR" agent --foreground --listen 127.0.0.1:0 --state-dir \
  "$TMP/turns" --box-dir "$TMP/boxes" 2>"$TMP/turns.err" || rc=$?
is "10,000 turns" $rc 0
[ -s "$TMP/turns/agent.state" ] || fail "turns leave no state"
is "turns say" "$(wc -l <"$TMP/turns.err")" 1

finish
