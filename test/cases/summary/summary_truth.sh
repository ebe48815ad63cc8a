#!/usr/bin/env bash
# Counts, means and percentiles of every format against the generator's truth at 1e-9; same bytes whatever
# --jobs and
# --memory; planted straggler, slow node and outliers are found.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector loggen=$BUILD/test/host/loggen

while read -r options; do
  rm -rf "$TMP/logs" "$TMP/out"
  # shellcheck disable=SC2086
  "$loggen" "$TMP/logs" --ranks 12 --node 4 --ops 700 $options --truth "$TMP/truth.json"
  "$inspector" summary "$TMP/logs" --output-dir "$TMP/out" --no-plots --no-html >"$TMP/text"
  head -n 1 "$TMP/text" | grep -q ', COMPLETE$'
  echo "loggen $options"
  python3 test/lib/summary_truth.py "$TMP/out" "$TMP/truth.json"
done <<'END'
--format v4.0 --old
--format v4.0 --comm-name --p2p 10 --gzip
--format v4.1 --comm-name --ext jsonl
--format v4.2 --verbose
--format v4.3 --p2p 20 --gzip --member-lines 300
--format v4.4 --comm-name --verbose --ext jsonl --gzip
--format ours --comm-name --p2p 10 --gzip --member-lines 200
--format ours --verbose --straggler 5 --slow-node 1 --outliers 7
--ranks 1 --node 1 --sizes 4,999999,1073741824
--ranks 4 --node 1
END

# One file in many members, many ranges, spilling: bytes must not depend on how the work was shared out.
ops=60000
[ -z "${NI_VARIANT:-}" ] || ops=15000
"$loggen" "$TMP/big" --ranks 6 --node 3 --ops $ops --comm-name --gzip --member-lines 3000 --truth \
  "$TMP/truth.json"
first=
for how in "--jobs 1" "--jobs 2" "--jobs 7 --memory 16M" "--jobs 1 --memory 16M"; do
  out=$TMP/out-${how//[^0-9]/}
  # shellcheck disable=SC2086
  "$inspector" summary "$TMP/big" --output-dir "$out" --no-plots --no-html -q $how >/dev/null
  [ -z "$first" ] || diff -r -x output.log "$first" "$out"
  first=${first:-$out}
done
python3 test/lib/summary_truth.py "$first" "$TMP/truth.json"

# The straggler is named.
"$loggen" "$TMP/lag" --ranks 16 --node 8 --ops 500 --straggler 11 --outliers 5 --format ours
"$inspector" summary "$TMP/lag" --output-dir "$TMP/lag-out" --no-plots --no-html >/dev/null
python3 - "$TMP/lag-out/summary/summary.json" <<'END'
import json, sys
s = json.load(open(sys.argv[1]))
late = max(s["ranks"], key=lambda r: r["late_us"])
assert (late["hostname"], late["rank"]) == ("node-1", 11), late
assert late["shortest"] > 0.99 * late["compared"] and late["relative"] < 0.5, late
assert all(r["late"] == 0 for r in s["ranks"] if r["rank"] != 11)
slow = [o for o in s["outliers"] if o["kind"] == "slow"]
assert slow and all(o["id"] == "0x5d1c7e90aa4101" for o in slow), slow
assert any(o["kind"] == "late" and o["rank"] in (3, 11) and o["hostname"] == "node-1" for o in s["outliers"])
w = {c["id"]: c for c in s["communicators"]}
assert w["0x5d1c7e90aa4101"]["waiting_us"] > w["0x5d1c7e90aa4101"]["transfer_us"] > 0
assert w["0x5d1c7e90aa4101"]["span_us"] > 0 and w["0x5d1c7e90aa4101"]["outside_us"] is not None
print("straggler, outliers and waiting found")
END
