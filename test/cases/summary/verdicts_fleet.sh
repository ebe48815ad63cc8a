#!/usr/bin/env bash
# The model of a fleet's jobs (test/verdicts/fleet): its logs are possible and complete, one seed gives one
# job, and the foreign model's grader takes its folders.
. "$(dirname "$0")/../../lib/case.sh"
fleet=test/verdicts/fleet
# Plain files with a GPU that repairs its memory; clean logs: a GPU of low clock, and a healthy job.
jobs=(13 27 56)
make=("$fleet/make.py" --seed 2 --jobs 72 --tool "$BUILD/test/ni-fleet-jobs")
"${make[@]}" --only "${jobs[@]}" --out "$TMP/jobs" >"$TMP/made" ||
  { fail "make.py ends with $?"; cat "$TMP/made"; }
"${make[@]}" --only 27 --out "$TMP/again" >"$TMP/made" ||
  { fail "make.py of one job ends with $?"; cat "$TMP/made"; }
diff -r "$TMP/jobs/job-027" "$TMP/again/job-027" >"$TMP/differ" ||
  { fail "one seed gives two jobs"; head -n 3 "$TMP/differ"; }
"$fleet/verify.py" "$TMP"/jobs/job-* >"$TMP/verified" ||
  { fail "a log that cannot be"; cat "$TMP/verified"; }
for job in 27 56; do
  "$INSPECTOR" check "$TMP/jobs/job-0$job" >"$TMP/check" 2>&1 ||
    { fail "job $job: check ends with $?"; cat "$TMP/check"; }
done
test/verdicts/foreign/grade.py "$INSPECTOR" "$TMP/grades" "$TMP/jobs" >"$TMP/table" ||
  fail "grade.py ends with $?"
grep -q '^gpu_low_clock  *1  named 100.0 %  first 100.0 %  right level 100.0 %' "$TMP/table" ||
  { fail "the GPU of low clock is named"; cat "$TMP/table"; }
grep -q '^innocents: 0 in 0 of 2 jobs with causes; 0 in 0 of 1 healthy jobs' "$TMP/table" ||
  { fail "nobody is accused without a cause"; cat "$TMP/table"; }
# Requests that a pipeline serves come in one order, and are no steps: the network is not slow in half of them.
"$fleet/make.py" --seed 44 --jobs 72 --tool "$BUILD/test/ni-fleet-jobs" --only 20 --out "$TMP/served" >"$TMP/made" ||
  { fail "make.py of requests ends with $?"; cat "$TMP/made"; }
"$INSPECTOR" summary "$TMP/served/job-020" --only tables --output-dir "$TMP/served.out" >"$TMP/text" 2>&1 ||
  { fail "summary of requests ends with $?"; cat "$TMP/text"; }
grep -q 'judged by durations, not by own time: what it does differs from step to' "$TMP/text" &&
  ! grep -q 'the network between hosts' "$TMP/text" || { fail "requests are taken for steps"; cat "$TMP/text"; }
# What one rank has not written the others have, and that cannot be in clean logs.
gone=("$TMP"/again/job-027/*.jsonl.gz)
rm "${gone[0]}"
"$fleet/verify.py" "$TMP/again/job-027" >"$TMP/verified" &&
  { fail "a rank without a log"; cat "$TMP/verified"; }
grep -q 'lacks members' "$TMP/verified" || { fail "what a rank without a log lacks"; cat "$TMP/verified"; }
finish
