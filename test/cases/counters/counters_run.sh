#!/bin/bash
# counters run: the command's exit code, signals, streams, limits and mask are as without it; its verdict,
# JSON and series.
# counters watch: one look, a line a sample, JSON; on a terminal it leaves as it found it.
. "$(dirname "$0")/../../lib/case.sh"
BIN=$(realpath "${NI_BIN:-$BUILD/nccl-inspector}")
need python3
stop() { cat "$TMP/err" 2>/dev/null || true; fatal "$@"; } # each part begins where the one before it left off
run() { # EXPECTED COMMAND...
  local rc=0 want=$1; shift
  "$BIN" counters run "$@" 2>"$TMP/err" || rc=$?
  [ $rc = "$want" ] || stop "$*: exit code $rc, not $want"
}
python3 test/lib/counters/counter_trees.py "$TMP/tree" mlx5 mlx5_0 -- host
export NI_ROOT=$TMP/tree

# ---- exit codes ----
run 0 true
run 7 -- sh -c 'exit 7'
run 143 -- sh -c 'kill -TERM $$'
run 127 /nothing/there
grep -q '/nothing/there: No such file' "$TMP/err" || stop "a command that is not there"
run 127 no-such-command-anywhere
echo text >"$TMP/plain"
run 126 "$TMP/plain"
run 64
run 125 -o "$TMP/plain/x" -- touch "$TMP/ran"
[ ! -e "$TMP/ran" ] || stop "the command ran although its series cannot be written"
run 125 --json "$TMP/plain/x" -- touch "$TMP/ran"
[ ! -e "$TMP/ran" ] || stop "the command ran although its JSON cannot be written"
[ -z "$(find "$TMP" -mindepth 1 -maxdepth 1 -name "*tmp*" -print -quit)" ] ||
  stop "something is left of the attempt"

# ---- what is the command's stays the command's ----
echo 'some input' | run 0 -- sh -c 'cat; echo more >&2' >"$TMP/out"
[ "$(cat "$TMP/out")" = 'some input' ] || stop "standard output: $(cat "$TMP/out")"
grep -qx more "$TMP/err" || stop "standard error"
look() { sh -c 'ulimit -Sn; grep -E "Sig(Blk|Ign)" /proc/self/status; awk "{print \$41}" /proc/self/stat; ls /proc/self/fd | wc -l'; }
export -f look
ulimit -Sn 512
# Signals 32 and 33 are the C library's own: whatever the caller ignores of them, a program with threads does
# not pass on.
others() { sed -E 's/(Sig...:\t.......)../\100/' "$@"; }
run 0 -o "$TMP/series" --every 10ms -- bash -c look | others >"$TMP/with"
bash -c look | others >"$TMP/without"
diff "$TMP/without" "$TMP/with" || stop "the command is not started as without us"

# ---- signals ----
# Where a launcher ignores SIGCHLD the end is seen all the same, and the command ignores it, too.
ignoring() { python3 -c 'import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"; }
rc=0; ignoring timeout -s KILL 20 "$BIN" counters run -- sh -c 'grep SigIgn /proc/$$/status; exit 4' \
  >"$TMP/with" 2>"$TMP/err" || rc=$?
[ $rc = 4 ] || stop "with SIGCHLD ignored: $rc, not 4"
ignoring sh -c 'grep SigIgn /proc/$$/status' | others | diff - <(others "$TMP/with") ||
  stop "the command does not ignore SIGCHLD, as without us"
# One that came before the command had started ends us, and it is not started.
rc=0; python3 -c 'import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
os.kill(os.getpid(), signal.SIGTERM)
os.execv(sys.argv[1], sys.argv[1:])' "$BIN" counters run -- touch "$TMP/ran" 2>"$TMP/err" || rc=$?
[ $rc = 143 ] && [ ! -e "$TMP/ran" ] || stop "a signal before the start: $rc"
for s in TERM INT HUP USR1 USR2 QUIT; do
  rm -f "$TMP/ready"
  # In the background a shell ignores INT and QUIT, which the command would inherit.
  python3 -c 'import os, signal, sys
for s in (signal.SIGINT, signal.SIGQUIT): signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$BIN" counters run -o "$TMP/series" -- python3 -c 'import signal, sys, time
signal.signal(signal.SIG'$s', lambda *a: sys.exit(33))
open(sys.argv[1], "w").close()
while True: time.sleep(0.05)' "$TMP/ready" 2>"$TMP/err" & pid=$!
  wait_for 15 test -e "$TMP/ready" || stop "the command does not begin"
  kill -$s $pid
  rc=0; wait $pid || rc=$?
  [ $rc = 33 ] || stop "SIG$s does not reach the command: $rc"
done
# Stopped and continued: both of them.
state() { awk '{print $3}' "/proc/$1/stat"; }
has_state() { [[ $(state "$1" 2>/dev/null) == [$2] ]]; }
until_state() { wait_for 15 has_state "$1" "$2" || stop "process $1 is $(state "$1"), not $2"; }
"$BIN" counters run -- sh -c 'echo $$ >'"$TMP/child"'; while [ ! -e '"$TMP/go"' ]; do sleep 0.05; done; exit 5' 2>"$TMP/err" & pid=$!
wait_for 15 test -s "$TMP/child" || stop "the command does not begin"
child=$(cat "$TMP/child")
kill -TSTP $pid
until_state $pid T
until_state "$child" T
kill -CONT $pid
until_state $pid RSD
until_state "$child" RSD
touch "$TMP/go"
rc=0; wait $pid || rc=$?
[ $rc = 5 ] || stop "after a stop: $rc"

# ---- what it says ----
run 0 -o "$TMP/said" --json "$TMP/run.json" --every 20ms -- sh \
  -c 'echo 7 >'"$TMP/tree/sys/class/infiniband/mlx5_0/ports/1/hw_counters/local_ack_timeout_err"'
  echo 1000000 >'"$TMP/tree/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data; sleep 0.1"
python3 - "$TMP/run.json" "$TMP/err" "$TMP/said" <<'PY'
import glob, json, sys
run, said = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
assert (run["schema_version"] == "nccl-inspector-counters-run-1" and run["exit_code"] == 0 and
        run["command"] == "sh"), run
assert [run["series"]] == glob.glob(sys.argv[3] + "/*-counters-*.jsonl.gz"), run["series"]
f = [x for x in run["findings"] if x["counter"] == "local_ack_timeout_err"]
assert (len(f) == 1 and f[0]["delta"] == 7 and f[0]["entity"] == "mlx5_0:1" and
        f[0]["level"] != "info"), run["findings"]
assert f[0]["text"] in said and run["series"] in said, said
nic = [x for x in run["figures"] if x["name"] == "mlx5_0:1"][0]
# The rate is of the time between the readings, which is longer than the command, on a busy machine by far.
assert 1e5 < nic["tx_bytes_s"] * run["seconds"] < 4.4e6 and nic["errors_s"] > 0, (nic, run["seconds"])
PY
run 0 -q -o "$TMP/said" -- true
[ ! -s "$TMP/err" ] || stop "--quiet says something"
"$BIN" check "$TMP/said" | grep -q '^COMPLETE' || stop "the series of a run is not sound"

# The page, with what the counters did over time; the folder of the series for it goes.
if [ -s "$BUILD/report/report_assets.tail" ]; then
  mkdir "$TMP/tmp"
  "$BIN" counters collect -q "$TMP/before.json"
  TMPDIR=$TMP/tmp run 0 --html "$TMP/run.html" --json "$TMP/run.json" --every 20ms -- python3 - \
    "$TMP/tree/sys/class/infiniband/mlx5_0/ports/1/counters" <<'PY'
import glob, os, sys, time
def slept(): # of the thread that samples: how often it waited
    threads = [t for t in glob.glob(f"/proc/{os.getppid()}/task/*") if not t.endswith(f"/{os.getppid()}")]
    return sum(int(l.split()[1]) for t in threads for l in open(t + "/status") if l.startswith("voluntary"))
def samples(n):
    end, until = time.time() + 20, slept() + n
    while slept() < until and time.time() < end: time.sleep(0.02)
samples(4)
assert glob.glob(os.environ["TMPDIR"] + "/nccl-inspector-*/*-counters-*.jsonl.gz")
with open(sys.argv[1] + "/port_xmit_data", "r+") as f:
    f.write("2000000\n") # at once: an empty file would be unreadable
samples(4)
PY
  [ -z "$(ls "$TMP/tmp")" ] || stop "left of the series for the page: $(ls "$TMP/tmp")"
  python3 - "$TMP/run.html" "$TMP/run.json" <<'PY'
import json, sys
page, run = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
x = json.JSONDecoder().raw_decode(page, page.index('{"pair":'))[0]
s = x["more"]["series"]
line = [l for l in s["lines"] if l["counter"] == "port_xmit_data" and l["entity"] == "mlx5_0:1"]
assert len(line) == 1 and len(line[0]["rate"]) == len(s["seconds"]) == 60, s["lines"]
# All that came lies in the points: 4 bytes a count, from 1,000,000 on.
sent = sum(r or 0 for r in line[0]["rate"]) * s["seconds"][0] * 2
assert abs(sent - 4e6) < 4e5, sent
assert (x["pair"]["entities"] and
        x["pair"]["before"]["started_at"] < x["pair"]["after"]["started_at"]), x["pair"]["before"]
assert run["series"] is None, run["series"]
PY
  # The same from two sweeps and a series.
  rm -rf "$TMP/kept"
  run 0 -q -o "$TMP/kept" --every 20ms -- sh -c "echo 3000000 >$TMP/tree/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
  "$BIN" counters collect -q "$TMP/after.json"
  "$BIN" counters summarize --html "$TMP/two.html" --series "$(echo "$TMP"/kept/*.gz)" "$TMP/before.json" \
    "$TMP/after.json" >"$TMP/out" || stop "--series"
  grep -qE '^mlx5_0:1 +0 B/s +0 % +[0-9.]+ .?B/s +(< 0.1|[0-9.]+) % ' "$TMP/out" ||
    stop "no share of the link: $(cat "$TMP/out")"
  grep -q '"series":{"seconds":\[' "$TMP/two.html" || stop "no series in the page of summarize"
  "$BIN" counters summarize --series x "$TMP/before.json" "$TMP/after.json" >"$TMP/out" 2>"$TMP/err" &&
    stop "--series without --html"
  "$BIN" counters summarize --html "$TMP/two.html" --series "$TMP/not/there" "$TMP/before.json" \
    "$TMP/after.json" >"$TMP/out" 2>"$TMP/err" && stop "a series that is not there"
  grep -q 'No such file' "$TMP/err" || stop "why there is no page: $(cat "$TMP/err")"
fi

# Where nothing counts bytes that is said.
rm -rf "$TMP/bare"
python3 test/lib/counters/counter_trees.py "$TMP/bare" host
for when in before after; do NI_ROOT=$TMP/bare "$BIN" counters collect -q "$TMP/bare.$when"; sleep 0.05; done
"$BIN" counters summarize "$TMP/bare.before" "$TMP/bare.after" >"$TMP/out" ||
  stop "two sweeps of a host alone"
[ "$(sed -n '2,3p' "$TMP/out")" = $'\nno NIC and no GPU counts bytes here' ] ||
  stop "a host alone: $(head -n 4 "$TMP/out")"

# ---- programs that every machine can have, on its own interfaces ----
figure() { python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
lo = [f for f in run["figures"] if f["name"] == "lo"]
print(run["exit_code"], int(lo[0]["rx_bytes_s"] * run["seconds"]) if lo else "none")' "$TMP/run.json"; }
if ping -c 1 127.0.0.1 >/dev/null 2>&1 && [ -e /sys/class/net/lo ]; then
  NI_ROOT='' run 0 --json "$TMP/run.json" -- ping -c 3 -i 0.2 -s 1000 127.0.0.1 >"$TMP/out"
  grep -q '^3 packets transmitted, 3 received' "$TMP/out" || stop "ping: $(cat "$TMP/out")"
  read -r code bytes < <(figure)
  # 6168 and more; the rate is of the time between the readings, which is longer than the command.
  [ "$code" = 0 ] && [ "$bytes" -ge 1000 ] || stop "ping moved $bytes bytes over lo, and ended with $code"
else
  echo "not tried: ping (iputils-ping), or it may not send here"
fi
if command -v mpirun >/dev/null; then
  mpi=(mpirun --allow-run-as-root --oversubscribe -n 2)
  echo 'for rank 0' | NI_ROOT='' run 0 --json "$TMP/run.json" -- "${mpi[@]}" sh -c 'cat; echo rank $OMPI_COMM_WORLD_RANK; echo error >&2' >"$TMP/out"
  [ "$(sort "$TMP/out" | tr '\n' ,)" = 'for rank 0,rank 0,rank 1,' ] || stop "mpirun: $(cat "$TMP/out")"
  [ "$(grep -cx error "$TMP/err")" = 2 ] && grep -q '^lo ' "$TMP/err" || stop "mpirun: standard error"
  NI_ROOT='' run 3 -- "${mpi[@]}" sh -c '[ $OMPI_COMM_WORLD_RANK = 0 ] || exit 3'
  rm -f "$TMP/rank."*
  is_over() { ! has_state "$1" '!Z'; }
  NI_ROOT='' "$BIN" counters run -- "${mpi[@]}" sh -c 'echo $$ >'"$TMP"'/rank.$OMPI_COMM_WORLD_RANK; exec sleep 600' 2>"$TMP/err" & pid=$!
  for r in 0 1; do wait_for 15 test -s "$TMP/rank.$r" || stop "rank $r does not begin"; done
  kill -TERM $pid
  wait $pid && stop "mpirun was ended, and its code is 0"
  for r in 0 1; do # mpirun does not wait for them
    wait_for 15 is_over "$(cat "$TMP/rank.$r")" || stop "rank $r goes on"
  done
else
  echo "not tried: mpirun (openmpi-bin)"
fi

# ---- watch ----
"$BIN" counters watch --once --every 20ms >"$TMP/out"
grep -q '^mlx5_0:1  .* B/s' "$TMP/out" || stop "watch --once: $(cat "$TMP/out")"
# What comes before it listens is ignored, as by all that a shell starts in the background.
"$BIN" counters watch --every 50ms >"$TMP/out" 2>"$TMP/err" & pid=$!
has_lines() { [ "$(grep -c 'Z  .*mlx5_0:1' "$TMP/out")" -gt 2 ]; }
wait_for 60 has_lines || stop "watch into a file: $(head -n 3 "$TMP/out")"
kill -INT $pid
rc=0; wait $pid || rc=$?
[ $rc = 0 ] || stop "watch ended by INT: $rc"
! grep -q $'\033' "$TMP/out" || stop "watch draws into a file"
"$BIN" counters watch --once --json --every 20ms | python3 -c 'import json, sys
x = json.load(sys.stdin); assert any(f["name"] == "mlx5_0:1" for f in x["figures"]), x'
# On a terminal: drawn, ended by q, and as it was.
python3 - "$BIN" <<'PY'
import os, pty, select, signal, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    # As from a shell: a group of its own in front, and somebody in the session who may continue it.
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.environ["TERM"] = "xterm"
    pid = os.fork()
    os.setpgid(pid, pid or os.getpid())
    os.tcsetpgrp(0, pid or os.getpid())
    if pid == 0:
        os.execv(sys.argv[1], [sys.argv[1], "counters", "watch", "--every", "50ms"])
    while os.WIFSTOPPED(status := os.waitpid(pid, os.WUNTRACED)[1]):
        os.write(1, b"STOPPED")
        time.sleep(0.5)
        os.write(1, b"GOES ON")
        os.kill(pid, signal.SIGCONT)
    os._exit(os.waitstatus_to_exitcode(status))
signal.alarm(60)
before, text, end = None, b"", time.time() + 20
before = termios.tcgetattr(fd)
while text.count(b"mlx5_0:1") < 3 and time.time() < end:
    if select.select([fd], [], [], 1)[0]:
        text += os.read(fd, 65536)
assert text.startswith(b"\033[?1049h") and text.count(b"\033[H") > 1, text[:300]
assert not termios.tcgetattr(fd)[3] & termios.ICANON
# Ctrl-Z gives the terminal back until it is continued.
os.write(fd, b"\x1a")
while not text.endswith(b"STOPPED") and time.time() < end:
    text += os.read(fd, 65536)
assert (text.endswith(b"\033[?25h\033[?1049lSTOPPED") and
        termios.tcgetattr(fd)[3] & termios.ICANON), text[-100:]
text = b""
while text.count(b"mlx5_0:1") < 2 and time.time() < end:
    text += os.read(fd, 65536)
assert text.startswith(b"GOES ON\033[?1049h"), text[:100]
assert not termios.tcgetattr(fd)[3] & termios.ICANON
os.write(fd, b"q")
try:
    while True:
        more = os.read(fd, 65536)
        if not more:
            break
        text += more
except OSError:
    pass
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert text.rstrip().endswith(b"\033[?1049l"), text[-100:]
PY
