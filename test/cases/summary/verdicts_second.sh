#!/usr/bin/env bash
# The second model of jobs (test/verdicts/second): its lines are the plugin's, its logs are complete, causes
# cost what they should, and the scorer takes its folders.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/verdicts/second/test_second.py "$TMP/jobs" 2>"$TMP/err" ||
  { fail "the model's own tests"; cat "$TMP/err"; }
for kind in healthy late; do
  "$INSPECTOR" check "$TMP/jobs/$kind" >"$TMP/check" 2>&1 ||
    { fail "$kind: check ends with $?"; cat "$TMP/check"; }
done
mkdir "$TMP/kept"
mv "$TMP/jobs/late" "$TMP/kept/P-late-10-4"
test/verdicts/run.py score --dir "$TMP/kept" --exporter "$INSPECTOR" >"$TMP/score" ||
  fail "run.py score ends with $?"
grep -q '^late  *1 ' "$TMP/score" || { fail "its row is missing"; cat "$TMP/score"; }
python3 test/verdicts/second/make.py --list | grep -x two_attempts >/dev/null || fail "--list"
finish
