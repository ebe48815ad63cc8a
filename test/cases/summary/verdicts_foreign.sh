#!/usr/bin/env bash
# The foreign model of jobs (test/verdicts/foreign): its logs are possible and complete, one seed gives one
# job, and the grader takes its folders and tells a right answer from a wrong one.
. "$(dirname "$0")/../../lib/case.sh"
foreign=test/verdicts/foreign
jobs=(12 14) # clean logs: serving with a slow GPU, and a healthy job
"$foreign/make.py" --seed 1 --jobs 72 --only "${jobs[@]}" --tool "$BUILD/test/ni-foreign-jobs" --out "$TMP/jobs" >"$TMP/made" ||
  { fail "make.py ends with $?"; cat "$TMP/made"; }
"$foreign/make.py" --seed 1 --jobs 72 --only 14 --tool "$BUILD/test/ni-foreign-jobs" --out "$TMP/again" \
  >"$TMP/made"
diff -r "$TMP/jobs/job-014" "$TMP/again/job-014" >"$TMP/differ" ||
  { fail "one seed gives two jobs"; head -n 3 "$TMP/differ"; }
"$foreign/verify.py" "$TMP"/jobs/job-* >"$TMP/verified" ||
  { fail "a log that cannot be"; cat "$TMP/verified"; }
for job in "$TMP"/jobs/job-*; do
  "$INSPECTOR" check "$job" >"$TMP/check" 2>&1 || { fail "$job: check ends with $?"; cat "$TMP/check"; }
done
"$foreign/grade.py" "$INSPECTOR" "$TMP/grades" "$TMP/jobs" >"$TMP/table" || fail "grade.py ends with $?"
grep -q '^counted  *1  named 100.0 %' "$TMP/table" || { fail "one cause, named"; cat "$TMP/table"; }
grep -q '; 0 in 0 of 1 healthy jobs' "$TMP/table" ||
  { fail "nobody is accused in the healthy job"; cat "$TMP/table"; }
# Two jobs that call another operation each so many steps, and do something else before it: a checkpoint of
# rank 0 ends with a barrier, an evaluation without operations with its result.
"$foreign/make.py" --seed 420 --jobs 96 --only 58 75 --tool "$BUILD/test/ni-foreign-jobs" --out "$TMP/extra" \
  >"$TMP/made"
"$foreign/grade.py" "$INSPECTOR" "$TMP/grades" "$TMP/extra" >"$TMP/table" || fail "grade.py ends with $?"
grep -q '^counted  *2  named 100.0 %.*right level 100.0 %  cost 100.0 %' "$TMP/table" ||
  { fail "a checkpoint and an evaluation"; cat "$TMP/table"; }
finish
