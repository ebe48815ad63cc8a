#!/usr/bin/env bash
# 600,000 calls that no correct NCCL makes (test/host/hostile.c): no crash, and the good operations among them
# are exact.
. "$(dirname "$0")/../../host/lib.sh"
for how in jsonl.gz:standard jsonl:standard jsonl:trace; do
  format=${how%:*} events=${how#*:}
  rm -rf "$TMP/logs"
  rc=0
  NCCL_INSPECTOR_EVENTS=$events NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" \
    NCCL_INSPECTOR_DUMP_FORMAT=$format \
    timeout 60 "$BUILD/test/host/hostile" "$PLUGIN" >"$TMP/out" 2>&1 || rc=$?
  [ $rc = 0 ] || { fail "hostile ended with $rc"; head -n 40 "$TMP/out"; }
  if grep '^bad' "$TMP/out" | head; then fail "handles were given that should not have been"; fi
  python3 - "$TMP/logs" <<'PY' || fail "the good operations are not exact"
import glob, gzip, json, sys
from collections import Counter
records, final, seen, strays, kinds, calls = Counter(), {}, set(), Counter(), Counter(), Counter()
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    for line in (gzip.open if path.endswith(".gz") else open)(path, "rt"):
        o = json.loads(line)
        h = o["header"]["id"]
        kinds.update(k for k in o if k not in ("header", "metadata"))
        if "coll_perf" in o:
            key = (h, o["coll_perf"]["rec_sn"])
            assert key not in seen, ("twice", key)
            seen.add(key)
            records[h] += 1
            calls[h] += "coll_src" in o["coll_perf"]  # API calls that no Coll followed
        elif "dump_stats" in o and o["dump_stats"]["final"]:
            for k, e in o["dump_stats"].get("events", {}).items():
                if h != "0x0":
                    assert e["started"] == e["written"] + e["dropped"] and not e["in_flight"], (h, k, e)
            strays.update(o["dump_stats"]["strays"])
            if h != "0x0":
                assert h not in final, h
                final[h] = o["dump_stats"]["coll"]
for v in "456":
    # 50 + empty + bad channels + doubled + forged's own + 50
    want = {"0xa00" + v: 104, "0xb00" + v: 3, "0xc00" + v: 0, "0xd00" + v: 100}
    for h, n in want.items():
        f = final[h]
        n += calls[h]
        assert (records[h] == n == f["started"] == f["written"] and not f["in_flight"] and
                not f["incomplete"]), (h, records[h], n, f)
for s in ("stale_handle", "foreign_handle", "bad_channel", "double_stop", "bad_context", "unknown_type",
          "unknown_state"):
    assert strays[s] > 0, (s, strays)
assert strays["bad_channel"] >= 3 * 192, strays
print("ok  ", dict(records), dict(strays), dict(kinds))
PY
  # Whatever NCCL's side says, no line of ours is one that our own reader refuses.
  "$BUILD/nccl-inspector" check "$TMP/logs" >"$TMP/check" || true
  grep -q '^lines .* 0 bad' "$TMP/check" && continue
  fail "$how: lines that check refuses"
  grep -A 8 '^lines\|^bad lines' "$TMP/check"
done
finish
