#!/usr/bin/env bash
# A replica with a tenth more of the batch, in a pipeline without tensor parallelism of the second model of
# jobs: one note with all its ranks, and nobody is slow. Nearly all computing lies before what goes to the
# next stage there.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/verdicts/second/make.py --kind replica --seed 300002 --out "$TMP/job" >"$TMP/made" ||
  { fail "make.py"; cat "$TMP/made"; }
"$INSPECTOR" summary "$TMP/job" --no-plots --no-html --no-parquet --no-csv --output-dir "$TMP/out" \
  >"$TMP/text" || fail "summary ends with $?"
python3 - "$TMP/job/truth.json" "$TMP/out/summary/summary.json" <<'PY' || { fail "findings"; cat "$TMP/text"; }
import json, sys
truth, said = (json.load(open(p)) for p in sys.argv[1:])
culprit, found = truth["culprits"][0], said["findings"]
assert [(f["kind"], f["class"], f["level"]) for f in found] == [("uneven_work", "note", "replica")], found
assert {"level": "replica", "ranks": found[0]["ranks"]} in culprit["accept"], (found[0]["ranks"], culprit["accept"])
assert 0.7 < found[0]["cost_s"] / culprit["cost_s"] < 1.5, (found[0]["cost_s"], culprit["cost_s"])
PY
grep -q "^also seen:" "$TMP/text" || { fail "it is not told apart from faults"; cat "$TMP/text"; }
finish
