#!/usr/bin/env bash
# The agent's settings file: its errors with file and line, what the command line says over it, SIGHUP, and
# whose it may be.
. "$(dirname "$0")/../../lib/agent.sh"
conf=$TMP/agent.conf
bad() { # PATTERN LINE...
  local pattern=$1
  shift
  printf '%s\n' "$@" >"$conf"
  refused "$*" "$pattern" --config "$conf"
}
bad 'agent.conf:2: .*lisen' '# fine' 'lisen = 127.0.0.1:0'
bad 'agent.conf:1: every: want OPTION = VALUE' 'every'
bad 'agent.conf:3: --every=5: want a time' '' '  # x' 'every = 5'
bad 'agent.conf:1: .*doesn.t allow an argument' 'open = yes'
bad 'agent.conf:1: .*ring-bytes=1' 'ring-bytes = 1'
bad 'agent.conf:2: ' 'every = 1s' '= 5'
bad 'agent.conf:1: --stacks=perl' 'stacks = perl'
bad 'go together' 'tls-cert = /nothing'
bad 'on-hang: the program is named by its whole path' 'on-hang = page'
bad '--on-hang=/no/such: No such file or directory\. Name a program' 'on-hang = /no/such' 'on-hang = -x'
bad 'agent.conf:1: unrecognized' 'a'$'\t''= b'
! grep -q 'Try ' "$TMP/refused.err" || fail "a line of a file has no help"
refused "no file" 'no-such: No such file' --config "$TMP/no-such"
refused "a folder" 'no regular file' --config "$TMP"
{ printf 'x\001'; head -c 100000 /dev/urandom; } >"$conf"
refused noise 'agent.conf:1: ' --config "$conf"
if [ "$(id -u)" = 0 ]; then
  echo 'every = 1s' >"$conf"
  chmod 666 "$conf"
  refused "a file that all may write" 'others can write it' --config "$conf"
  chmod 644 "$conf"
  chown 64001 "$conf"
  refused "another user's file" 'others can write it' --config "$conf"
  chown 0 "$conf"
fi
chmod 600 "$conf"

cat >"$conf" <<C
# Settings, with blanks and a value that has '=' and '#' in it.
  node =  of the file@
every=500ms   # twice a second
open = false	# for others
otlp_header = X-Key: a=b#c
log-dir = $TMP/boxes
log-dir = $TMP
C
sed -i 's/@$/\t /' "$conf" # blanks at the end
begin settings --config "$conf"
settled
is "of the file" "$(curl -s "$URL/v1/now" | python3 -c 'import json,sys; print(json.load(sys.stdin)["node"])')" "of the file"
sed -i 's/of the file/another/; s/^every.*/every = 1s/' "$conf"
echo "state-dir = $TMP/elsewhere" >>"$conf"
kill -HUP "$PID"
wait_for 10 grep -q 'SIGHUP: the settings were read' "$TMP/settings.err" || fail "SIGHUP is not told"
is "after SIGHUP" "$(curl -s "$URL/v1/now" | python3 -c 'import json,sys; print(json.load(sys.stdin)["node"])')" another
[ ! -e "$TMP/elsewhere" ] || fail "the state moved"
echo 'nonsense = 1' >>"$conf"
kill -HUP "$PID"
wait_for 10 grep -q 'the settings stay as they were' "$TMP/settings.err" || fail "a bad file is not told"
grep -q 'agent.conf:9: .*nonsense' "$TMP/settings.err" ||
  { fail "the bad line is not told"; cat "$TMP/settings.err"; }
is "after a bad file" "$(curl -s "$URL/v1/now" | python3 -c 'import json,sys; print(json.load(sys.stdin)["node"])')" another
# Another port; then one that is taken: the old one stays.
free=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
sed -i '/nonsense/d' "$conf"
ends 0
printf 'listen = 127.0.0.1:0\n' >"$conf"
"$INSPECTOR" agent --foreground --config "$conf" --state-dir "$TMP/moves" --box-dir "$TMP/boxes" \
  2>"$TMP/moves.err" &
PID=$!
AGENTS+=("$PID")
wait_for 20 grep -q ' serves ' "$TMP/moves.err" || fail "does not serve: $(cat "$TMP/moves.err")"
old=$(sed -n 's/.* serves \(http[^ ]*\).*/\1/p' "$TMP/moves.err" | head -n 1)
printf 'listen = 127.0.0.1:%s\n' "$free" >"$conf"
kill -HUP "$PID"
wait_for 10 curl -sf -o /dev/null "http://127.0.0.1:$free/healthz" ||
  { fail "does not serve at the new port"; cat "$TMP/moves.err"; }
is "the old port" "$(code "$old/healthz")" 000
printf 'listen = 192.0.2.1:1\nopen = true\n' >"$conf"
kill -HUP "$PID"
wait_for 10 grep -q 'the settings stay as they were' "$TMP/moves.err" ||
  fail "an address of another machine is not told"
is "the port before" "$(code "http://127.0.0.1:$free/healthz")" 200
# The command line goes before the file; many SIGHUPs leave no descriptor behind.
ends 0
printf 'node = file\n' >"$conf"
begin line --config "$conf" --node line
settled
is "the command line" "$(curl -s "$URL/v1/now" | python3 -c 'import json,sys; print(json.load(sys.stdin)["node"])')" line
# Counted when samples are taken: the thread that takes them opens what it reads when nobody else wants a
# processor.
descriptors() {
  wait_for 60 eval "[ \"\$(metric agent_samples_total)\" -gt 0 ]" || fail "no samples"
  find "/proc/$PID/fd" | wc -l
}
before=$(descriptors)
for i in $(seq 20); do
  kill -HUP "$PID"
  wait_for 10 eval "[ \$(grep -c 'SIGHUP: the settings were read' '$TMP/line.err') -ge $i ]" ||
    fail "SIGHUP $i"
done
after=$(descriptors)
[ "$after" -le $((before + 2)) ] || fail "$before descriptors, $after after 20 times SIGHUP"
is "after 20 times SIGHUP" "$(code "$URL/healthz")" 200
ends 0
# On a processor that others keep busy: who samples has to end before it is begun anew, and gets no time there
# but as others do.
if [ "$(id -u)" = 0 ] && taskset -c 0 true 2>/dev/null; then
  begin busy --config "$conf"
  settled
  for i in 1 2 3 4; do taskset -c 0 sh -c 'while :; do :; done' & done
  taskset -acp 0 "$PID" >/dev/null
  before=$(find "/proc/$PID/task" -mindepth 1 -maxdepth 1 | wc -l)
  for i in $(seq 6); do
    kill -HUP "$PID"
    wait_for 60 eval "[ \$(grep -c 'SIGHUP: the settings were read' '$TMP/busy.err') -ge $i ]" ||
      fail "SIGHUP $i of a busy machine"
    is "threads after SIGHUP $i" "$(find "/proc/$PID/task" -mindepth 1 -maxdepth 1 | wc -l)" "$before"
  done
  ends 0
fi
finish
