#!/usr/bin/env bash
# Jobs that were judged wrongly once, each for another reason: of one no operation alone tells a step, in one a few ranks took half a step for a
# step, of one the places of a step were counted from elsewhere on some hosts, in one ranks seemed to wait for different things in the same
# place, and in one most places have no own time at all. With weather: in one stages have other numbers of layers, in one all costs by the
# clock were 0, since another run lies in the folder, and in one two ranks that are late one after the other looked throttled.
. "$(dirname "$0")/../../lib/case.sh"
while read -r layout kind size seed more; do
  # shellcheck disable=SC2086,SC2046 # options, none or one
  "$BUILD/test/ni-jobs" --stored --layout "$layout" --kind "$kind" $([ "$size" = - ] || echo --size "$size") --seed "$seed" $more --out "$TMP/job" >/dev/null
  python3 - "$BUILD/nccl-inspector" "$TMP/job" "$TMP/out" <<'P'
import sys
sys.path.insert(0, "test/verdicts")
import judge
o = judge.score(*sys.argv[1:])
# A run that was killed leaves an incomplete log; that is weather.
ok = (o["complete"] or o["weather"]) and not o["innocents"] and o["named_exactly"] == o["causes"]
sys.exit(None if ok else "FAIL %s: %s" % (sys.argv[2], [s["text"] for s in o["sentences"]]))
P
  rm -rf "$TMP/job" "$TMP/out"
done <<'END'
A gpu 10 233008
A pair 2 273004
A healthy - 13014
C late 10 53404
D episode 15 113608
C nvlink 1.5 50193400 --weather
M congestion 2 50295400 --weather
D moving 10 50133600 --weather
END
echo "8 jobs"
