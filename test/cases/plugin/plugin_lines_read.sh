#!/usr/bin/env bash
# What the plugin's formatter writes, the exporter reads: every line kind, no unknown key, the accounting
# closed.
. "$(dirname "$0")/../../lib/case.sh"
writer=$BUILD/test/unit/test_line_write reader=$BUILD/nccl-inspector
for f in "$writer" "$reader"; do
  need "$f"
done
"$writer" --sample >"$TMP/node-a-pid4242-1790000000.jsonl"
rc=0
"$reader" check --json "$TMP" >"$TMP/out.json" || rc=$?
[ "$rc" = 2 ] || fatal "exit code $rc, expected 2 (one dropped, one incomplete, no last line, ranks missing)"
python3 - "$TMP/out.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
want = {"lines": 14, "operations": 3, "control_lines": 11, "bad_lines": 0, "unknown_keys": 0,
        "unknown_kinds": {},
        "dropped_by": {"pool_full": 1}, "timing_fallback_by": {"before_previous": 1}}
bad = {k: (r.get(k), v) for k, v in want.items() if r.get(k) != v}
problems = sorted((p["code"], p["count"]) for p in r["problems"])
if problems != [("dropped", 1), ("incomplete", 1), ("no_end", 1), ("ranks", 7)]:
    bad["problems"] = problems
comm = r["communicators"][0]
for k, v in {"hash": "0x5d1c7e90aa41b2ff", "name": "dp", "coll_records": 1, "p2p_records": 2, "missing": 0,
             "doubles": 0}.items():
    if comm[k] != v:
        bad["communicator." + k] = (comm[k], v)
sys.exit(f"FAIL: got, wanted: {bad}" if bad else 0)
PY
echo "all line kinds read"
