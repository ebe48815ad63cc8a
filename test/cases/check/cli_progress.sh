#!/usr/bin/env bash
# How far a long command is: a line with the time left on a terminal once two seconds are over, nothing where
# there is no terminal, JSON lines where they are asked for, in all commands that read logs.
. "$(dirname "$0")/../../lib/case.sh"
need python3
"$BUILD/test/host/loggen" "$TMP/logs" --ranks 8 --node 8 --ops 2000 --format ours >/dev/null
I=$BUILD/nccl-inspector
for c in "check" "summary --output-dir $TMP/out --no-plots" "trace -o $TMP/t.json" "pools" "hang"; do
  # shellcheck disable=SC2086
  timeout 60 "$I" $c "$TMP/logs" --progress=json >"$TMP/stdout" 2>"$TMP/stderr" || [ $? -lt 5 ]
  python3 - "$TMP/stderr" "$c" <<'P' || exit 1
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1]) if l.startswith("{")]
read = [l for l in lines if l["phase"] == "read"]
assert read, (sys.argv[2], open(sys.argv[1]).read())
last = read[-1]
assert last["ranges_done"] == last["ranges"] >= 8 and last["bytes_done"] == last["bytes"] > 0, last
done = [l["bytes_done"] for l in read]
assert done == sorted(done), done
if sys.argv[2].startswith("summary"):
    assert any(l["phase"] == "figures" for l in lines), {l["phase"] for l in lines}
P
  # shellcheck disable=SC2086
  timeout 60 "$I" $c "$TMP/logs" >/dev/null 2>"$TMP/stderr" || [ $? -lt 5 ]
  ! grep -a '%\|phase' "$TMP/stderr" || fatal "$c: progress where no terminal is"
done

# On a terminal, and slowly: a pipe's reader stops it. The line is wiped when the phase ends.
python3 - "$I" "$TMP" <<'P'
import os, pty, re, signal, subprocess, sys, time
inspector, tmp = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execvp(inspector, [inspector, "check", tmp + "/logs"])
out = b""
try:
    while True:
        out += os.read(fd, 4096)
except OSError:
    pass
os.waitpid(pid, 0)
assert b"% (" not in out, out  # a fast command has no line
# Stopped and continued again and again, so that it takes more than two seconds of the clock.
pid, fd = pty.fork()
if pid == 0:
    os.execvp(inspector, [inspector, "trace", "-o", tmp + "/t.json", "--memory", "1M", *[tmp + "/logs"]])
for _ in range(40):  # wherever its clock begins: a twentieth of the time is its own
    time.sleep(0.01)
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.2)
    os.kill(pid, signal.SIGCONT)
out = b""
try:
    while True:
        out += os.read(fd, 4096)
except OSError:
    pass
os.waitpid(pid, 0)
assert re.search(rb"\r\x1b\[K(read|draw|write): \d+ % \([^)]* of [^)]*\), about \d+ s left", out), out[-2000:]
assert out.rfind(b"\x1b[K") > out.rfind(b" s left"), "the line is left standing"
P
echo "progress: a line, lines of JSON, or nothing"
