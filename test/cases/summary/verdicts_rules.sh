#!/usr/bin/env bash
# Jobs that were judged wrongly once, each for another reason: of one no operation alone tells a step, in one a few ranks took half a step for a
# step, of one the places of a step were counted from elsewhere on some hosts, in one ranks seemed to wait for different things in the same
# place, and in one most places have no own time at all.
. "$(dirname "$0")/../../lib/case.sh"
while read -r layout kind size seed; do
  "$BUILD/test/ni-jobs" --stored --layout "$layout" --kind "$kind" $([ "$size" = - ] || echo --size "$size") --seed "$seed" --out "$TMP/job" >/dev/null
  python3 - "$BUILD/nccl-inspector" "$TMP/job" "$TMP/out" <<'P'
import sys
sys.path.insert(0, "test/verdicts")
import judge
o = judge.score(*sys.argv[1:])
ok = o["complete"] and not o["innocents"] and o["named_exactly"] == o["causes"]
sys.exit(None if ok else "FAIL %s: %s" % (sys.argv[2], [s["text"] for s in o["sentences"]]))
P
  rm -rf "$TMP/job" "$TMP/out"
done <<'END'
A gpu 10 233008
A pair 2 273004
A healthy - 13014
C late 10 53404
D episode 15 113608
END
echo "5 jobs"
