#!/usr/bin/env bash
# Two runs in one folder are judged one by one: the late rank of one of them is named with its run, whatever
# the other one did.
. "$(dirname "$0")/../../lib/case.sh"
need "$BUILD/test/ni-jobs"
for kind in two_jobs two_attempts; do
  "$BUILD/test/ni-jobs" --layout D --kind $kind --size 25 --steps 60 --seed 8 --out "$TMP/$kind" >/dev/null ||
    fail "ni-jobs $kind"
  "$INSPECTOR" summary "$TMP/$kind" --no-plots --no-html --no-parquet --no-csv --output-dir "$TMP/out-$kind" \
    >"$TMP/text" 2>&1 || [ $? = 2 ] || fail "summary $kind"
  python3 - "$TMP/$kind/truth.json" "$TMP/out-$kind/summary/summary.json" <<'PY' || fail "$kind"
import json, sys
truth, said = (json.load(open(p)) for p in sys.argv[1:])
culprit, faults = truth["culprits"][0], [f for f in said["findings"] if f["class"] == "fault"]
print(culprit["accept"], [f["text"] for f in said["findings"]])
assert said["findings_by"] == "own_time" and len(faults) == 1, faults
first = faults[0]
assert {"level": first["level"], "ranks": first["ranks"]} in culprit["accept"], first
assert first["run"] in (1, 2) and first["text"].startswith("run %d: rank " % first["run"]), first
assert 0.6 < first["cost_percent"] / truth["cost_percent"] < 1.6, (first["cost_percent"], truth["cost_percent"])
PY
  # What follows names the run as well, and says of it what --run says of it alone.
  run=$(jq '.findings[0].run' "$TMP/out-$kind/summary/summary.json")
  tr -s ' \n' ' ' <"$TMP/text" >"$TMP/line"
  grep -qE "next: ([^ ]*/)?nccl-inspector trace [^ ]* --rank [0-9]+ --run $run " "$TMP/line" ||
    fail "$kind: next is not of run $run: $(cat "$TMP/text")"
  # Steps and time are of the run with the most operations.
  run=$(grep -oE ' run [0-9]+: [0-9.]+ m?s = ' "$TMP/line" | head -n 1 | tr -dc '0-9 :' | cut -d: -f1 |
    tr -d ' ')
  [ -n "$run" ] || fail "$kind: whose time it is: $(cat "$TMP/text")"
  "$INSPECTOR" summary "$TMP/$kind" --run "$run" --no-plots --no-html --no-parquet --no-csv -q --output-dir \
    "$TMP/one-$kind" >/dev/null 2>&1 || [ $? = 2 ] || fail "summary --run"
  mark() { jq -c '.steps.mark' "$TMP/$1-$kind/summary/summary.json"; }
  [ "$(mark out)" = "$(mark one)" ] && [ "$(mark one)" != null ] ||
    fail "$kind: steps end by $(mark out), by itself by $(mark one)"
done
finish
