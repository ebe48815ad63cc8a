#!/usr/bin/env bash
# run and a job that gets SIGTERM, as at a scheduler's time limit: of one that hung it is said who was
# missing, of one that was at work what its ranks do. Summary says it while the job stands.
. "$(dirname "$0")/../../lib/run_hang.sh"

# ---- SIGTERM, and nobody was asked before ----
"$INSPECTOR" run --out ended -- "$SIM" "${HANGS[@]}" >screen 2>err & JOB=$!
wait_for 90 is_inside ended || stop "three ranks do not get inside"
stands() {
  "$INSPECTOR" summary ended/logs --only tables --output-dir now >text 2>&1 || true
  grep -q "^not yet a hang .*$MISSING" text; }
wait_for 60 stands || stop "summary does not say that the job stands: $(cat text)"
grep -q 'ms till it hung, INCOMPLETE' text || stop "the first line does not say that it stands"
# Boxes of a user who owns none of the logs say nothing of them, not even to root.
if [ "$(id -u)" = 0 ]; then
  chown 64001 ended/logs/*
  "$INSPECTOR" summary ended/logs --only tables --output-dir now >text 2>&1 || true
  chown 0 ended/logs/*
  ! grep -q "$MISSING" text || stop "the box of another user is believed"
fi
kill -TERM $JOB
ends 143 "after SIGTERM"
grep -q "^  first   DEAD (.*$MISSING had not called it" err || stop "after SIGTERM nobody is missing"
grep -qxF "  next    $INSPECTOR hang ended/logs" err || stop "what to do next after SIGTERM"

# ---- one that was at work: what stands out is what its ranks do ----
"$INSPECTOR" run --out work -- "$SIM" --scenario demo --procs --quiet --plugin "$PLUGIN" --set steps=100000 \
  >screen 2>err & JOB=$!
wait_for 90 eval 'ls work/logs/*.jsonl.gz >/dev/null 2>&1' || stop "no logs"
sleep 4
kill -TERM $JOB
ends 143 "after SIGTERM at work"
grep -q '^  first   DEAD' err && stop "a job that was at work is said to have stood still"
grep -q '^nccl-inspector run: .* till it hung' err && stop "a job that was at work is said to have hung"
finish
