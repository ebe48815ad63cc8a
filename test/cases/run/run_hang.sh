#!/usr/bin/env bash
# run and a job that hangs: --hang-limit names who is missing and kills nothing, --kill ends it; Ctrl-C, as
# SIGINT and on a terminal, says who is missing before the command gets it.
. "$(dirname "$0")/../../lib/run_hang.sh"
export NI=$INSPECTOR
line_of() { grep -nF -- "$1" "$2" | head -n 1 | cut -d: -f1; }

# ---- --hang-limit: told once, nothing is killed, and SIGTERM still ends it ----
"$INSPECTOR" run --out limit --hang-limit 2 -- "$SIM" "${HANGS[@]}" >screen 2>err & JOB=$!
wait_for 90 grep -qF 'the job hangs (--hang-limit 2)' err || stop "--hang-limit says nothing"
wait_for 30 grep -q '^HANG (' err || stop "--hang-limit does not name the hang"
"$INSPECTOR" hang --box-dir "$BOXES" --stuck-after 2 limit/logs >said || true
# In the words of hang, but for how long it is since.
words() { grep -m 1 '^HANG (' "$1" | sed 's/^HANG ([a-z]*)//; s/nothing has moved.*//'; }
[ "$(words err)" = "$(words said)" ] && words err | grep -qF "$MISSING never called it" ||
  stop "not as hang has it: $(words said)"
kill -0 $JOB && pgrep -P $JOB >/dev/null || stop "something was killed"
kill -TERM $JOB
ends 143 "after SIGTERM"
[ "$(grep -c 'the job hangs' err)" = 1 ] || stop "told more than once"
grep -q "^  first   HANG (.*$MISSING" err || stop "the first thing is not who was missing"
grep -qxF "  next    $INSPECTOR hang limit/logs" err || stop "what to do next"

# ---- --kill ----
rc=0
"$INSPECTOR" run --out killed --hang-limit 1 --kill -- "$SIM" "${HANGS[@]}" >screen 2>err || rc=$?
[ $rc = 143 ] || stop "--kill: $rc"
[ "$(line_of "$MISSING" err)" -lt "$(line_of '--kill: SIGTERM to' err)" ] ||
  stop "killed before it is said who is missing"

# Its page and summary.json say it, too: the logs alone do not, since what was killed had not written it.
python3 - <<'P' || stop "the page, or summary.json"
import json
hang = json.load(open("killed/report/summary/summary.json"))["hang"]
assert hang["verdict"] in ("certain", "likely") and hang["sentence"].startswith("HANG ("), hang
page = open("killed/report/report.html").read()
assert json.dumps(hang["sentence"])[1:-1] in page, "not on the page"
P
# The next attempt in the same folder is another job: it is not killed for the hang of the one before.
"$INSPECTOR" run --out killed --hang-limit 1 --kill -- "$SIM" --job 1x2 --iterations 16 --rate 4 --quiet \
  --plugin "$PLUGIN" >screen 2>err ||
  stop "a job after one that hung, in the same folder: $?"
! grep -q 'hangs' err || stop "a job after one that hung hangs as well"

# ---- a job that does not hang is not told to ----
"$INSPECTOR" run --out well --hang-limit 3 --kill -- "$SIM" --job 1x2 --iterations 8 --rate 4 --quiet \
  --plugin "$PLUGIN" >screen 2>err || stop "a healthy job: $?"
! grep -q 'hangs' err || stop "a healthy job hangs"

# ---- SIGINT, without a terminal: said first, then the command has it ----
# Its own handler says when.
started() { # OUT: the job in a shell that notes when the signal comes
  python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.setsid()
os.execv(sys.argv[1], sys.argv[1:])' "$INSPECTOR" run --out "$1" -- bash -c '
trap "echo COMMAND GOT IT >&2; kill \$job; wait \$job; exit 9" INT
"$@" & job=$!
wait $job' _ "$SIM" "${HANGS[@]}" >screen 2>err & JOB=$!
  wait_for 60 is_inside "$1" || stop "the job does not come to where it hangs"
}
started int
kill -INT $JOB
ends 9 "after SIGINT"
[ "$(line_of "$MISSING" err)" -lt "$(line_of 'COMMAND GOT IT' err)" ] ||
  stop "the command has SIGINT before it is said who is missing"
# Two of them: the first is let go by the second.
started twice
kill -INT $JOB
kill -INT $JOB
ends 9 "after two SIGINT"

# ---- Ctrl-C on a terminal, which goes to all in front ----
rc=0
timeout 150 python3 "$ROOT/test/lib/run_terminal.py" wait:READY key:C -- bash \
  -c '"$1" run --out tty -- bash -c "$2" _ "${@:3}"' _ "$INSPECTOR" \
  'trap "echo COMMAND GOT IT; kill \$job; wait \$job; exit 9" INT
"$@" & job=$!
is_inside() {
  "$NI" hang --box-dir "$NCCL_INSPECTOR_BLACKBOX" "$NCCL_INSPECTOR_DUMP_DIR" 2>/dev/null |
    grep -qF "rank 2 (sim-node1)"
}
until is_inside; do sleep 0.3; done
echo READY
wait $job' "$SIM" "${HANGS[@]}" >screen 2>err || rc=$?
[ $rc = 9 ] || stop "after Ctrl-C: $rc"
[ "$(line_of "$MISSING" screen)" -lt "$(line_of 'COMMAND GOT IT' screen)" ] ||
  stop "Ctrl-C reaches the command before it is said who is missing"
finish
