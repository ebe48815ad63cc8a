#!/usr/bin/env bash
# The observer (test/verdicts/oracle): twins differ in whom the cause is of and in nothing else, a rank that is
# plainly late is told, and one of which the logs hold nothing is not.
. "$(dirname "$0")/../../lib/case.sh"
jobs=$BUILD/test/ni-jobs oracle=test/verdicts/oracle/oracle.py
late=(--layout A --kind late --size 30 --seed 8 --steps 40 --stored)

"$jobs" "${late[@]}" --out "$TMP/A-late-30-8" >/dev/null
"$jobs" "${late[@]}" --subject 23 --out "$TMP/same" >/dev/null
"$jobs" "${late[@]}" --subject 5 --out "$TMP/moved" >/dev/null
"$jobs" "${late[@]}" --subject none --out "$TMP/none" >/dev/null
"$jobs" "${late[@]}" --again 3 --out "$TMP/again" >/dev/null
diff -r "$TMP/A-late-30-8" "$TMP/same" || fail "moved to where it was it is another job"
second=(python3 test/verdicts/second/make.py --kind late --seed 8 --steps 20 --stored)
"${second[@]}" --out "$TMP/second" >/dev/null
"${second[@]}" --subject 2 --out "$TMP/second-moved" >/dev/null
"${second[@]}" --subject none --out "$TMP/second-none" >/dev/null
"${second[@]}" --again 3 --out "$TMP/second-again" >/dev/null
python3 - "$TMP" <<'P'
import json, sys
of = lambda name: json.load(open("%s/%s/truth.json" % (sys.argv[1], name)))
OUTCOME = {"job_s", "cost_s", "cost_percent", "step_begin_s", "exposed", "incidents", "culprits"}
NOISE = OUTCOME | {"job_without_s", "hosts", "delivery_ns"}
for first, rank in (("A-late-30-8", 5), ("second", 2)):
    prefix = "second-" if first == "second" else ""
    planted, moved, none, again = of(first), of(prefix + "moved"), of(prefix + "none"), of(prefix + "again")
    differs = lambda t: {k for k in planted if planted[k] != t[k]}
    assert differs(moved) <= OUTCOME and moved["culprits"][0]["rank"] == rank != planted["culprits"][0]["rank"], \
        differs(moved)
    assert moved["culprits"][0]["strength"] == planted["culprits"][0]["strength"]
    assert none["culprits"] == [] and none["cost_s"] == 0
    assert differs(again) <= NOISE and again["job_s"] != planted["job_s"], differs(again)
    assert again["culprits"][0]["rank"] == planted["culprits"][0]["rank"]
P

told() { # the observer's verdict on the job, made with these options beside
  python3 "$oracle" job --build "$BUILD" --dir "$TMP" A-late-30-8 --draws 4 --moved 4 -j1 --more=--steps=40 "$@"
}
told >"$TMP/plain"
grep -q '^A-late-30-8  *told ' "$TMP/plain" || { fail "a late rank is not told"; cat "$TMP/plain"; }
rm -r "$TMP/A-late-30-8"
"$jobs" "${late[@]}" --with alone-one=t --out "$TMP/A-late-30-8" >/dev/null # another group than the culprit's
told --more=--with=alone-one=t >"$TMP/hidden"
grep -q '^A-late-30-8  *not told ' "$TMP/hidden" || { fail "who has no log is told"; cat "$TMP/hidden"; }
finish
