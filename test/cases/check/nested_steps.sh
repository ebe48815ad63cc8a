#!/usr/bin/env bash
# Logs of earlier plugins, whose steps stand in their operations' lines, are read as those with a line for
# each step.
# test/data/nested: two ranks of the simulator, operations of 70 steps, one of which never ends; with
# NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_PROXY_OUTPUT_MODE=nested, written by the last plugin that had
# that setting.
. "$(dirname "$0")/../../lib/case.sh"
need "$INSPECTOR" python3
NESTED=test/data/nested

# flat FROM TO: the same log with a line for each step.
flat() {
  mkdir -p "$2"
  python3 - "$1" "$2/steps.jsonl" <<'P'
import glob, gzip, json, sys
SHARED = ("parent_type", "parent_sn", "proxy_op_sn", "channel_id", "peer", "direction", "timing_source",
          "parent_func")
def flat(l):
    p = l.get("proxy_trace")
    if not p:
        return [l]
    own = {k: p[k] for k in SHARED if k in p}
    out = [dict(l, proxy_trace={"record_type": "proxy_step", **own, **s}) for s in p.get("steps", [])]
    if p["record_type"] != "proxy_op_segment":
        out.append(dict(l, proxy_trace={k: v for k, v in p.items() if k != "steps"}))
    return out
with open(sys.argv[2], "w") as to:
    for path in glob.glob(sys.argv[1] + "/*.gz"):
        for line in gzip.open(path, "rt"):
            to.writelines(json.dumps(f, separators=(",", ":")) + "\n" for f in flat(json.loads(line)))
P
}
flat $NESTED "$TMP/flat"

# checked LOGS CODE...: the problems that check names, by their codes.
checked() {
  local rc=0
  "$INSPECTOR" check --json "$1" >"$TMP/json" || rc=$?
  [ $rc = 2 ] || fail "check of $1 ended with $rc"
  python3 - "$TMP/json" "${@:2}" <<'P' || fail "check of $1"
import json, sys
doc = json.load(open(sys.argv[1]))
codes = sorted(p["code"] for p in doc["problems"])
sys.exit(codes != sys.argv[2:] and "%s, %s" % (codes, doc["events_by"]))
P
}
checked $NESTED in_flight
grep -q '"lines":118,.*"proxy_lines":38,"bad_lines":0,"unknown_keys":0,.*"proxyop":16,.*"steps":1330}' \
  "$TMP/json" || fail "check counts others"
# It misses a single step, and a line that holds some.
mkdir "$TMP/step" "$TMP/line"
zcat $NESTED/*.gz | sed '0,/,"steps":\[{[^}]*},/s//,"steps":[/' >"$TMP/step/steps.jsonl"
checked "$TMP/step" events in_flight
zcat $NESTED/*.gz |
  sed '0,/"record_type":"proxy_op".*"steps":\[{/{/"record_type":"proxy_op".*"steps":\[{/d}' \
  >"$TMP/line/steps.jsonl"
checked "$TMP/line" events in_flight stated

# The timeline draws both alike, all of it and a part.
for how in "" "--coll=AllReduce"; do
  for logs in $NESTED "$TMP/flat"; do
    # shellcheck disable=SC2086
    "$INSPECTOR" trace $how "$logs" -o "$TMP/trace.$(basename "$logs")" >/dev/null || [ $? = 2 ] ||
      fail "trace of $logs"
  done
  python3 - "$TMP/trace." <<'P' || fail "timelines $how"
import sys
sys.path.insert(0, "test/lib")
import trace_check
nested, flat = (trace_check.load(sys.argv[1] + n) for n in ("nested", "flat"))
look = lambda x: sorted(repr((x.start + s["t"], s["d"], s["name"], s["process"], s["track"], s["cat"],
                              sorted(s["args"].items()))) for s in x.slices)
n = sum("network steps" in s["track"] for s in nested.slices)
assert look(nested) == look(flat) and n > 500, (len(nested.slices), len(flat.slices), n)
print("ok  ", n, "steps drawn")
P
done

# The others look at operations: the same, but for what they say of the files.
for logs in $NESTED "$TMP/flat"; do
  name=$(basename "$logs")
  "$INSPECTOR" summary --json --output-dir "$TMP/$name.out" --no-plots --no-html "$logs" \
    >"$TMP/summary.$name" || [ $? = 2 ] || fail "summary $name"
  "$INSPECTOR" show --json --comm world --sn 0 "$logs" >"$TMP/show.$name" || fail "show $name"
  "$INSPECTOR" convert --quiet --bulk "$TMP/bulk.$name" "$logs" || [ $? = 2 ] || fail "convert $name"
done
python3 - "$TMP/summary." <<'P' || fail "summaries differ"
import json, sys
def summary(name):
    s = json.load(open(sys.argv[1] + name))
    del s["input"]
    for rank in s["ranks"]:
        del rank["file"]
    return s
assert summary("nested") == summary("flat") and summary("nested")["records"] == 6
P
cmp "$TMP/show.nested" "$TMP/show.flat" || fail "show differs"
sed 's/"file":"[^"]*"//' -i "$TMP/bulk.nested" "$TMP/bulk.flat"
cmp "$TMP/bulk.nested" "$TMP/bulk.flat" || fail "convert differs"
finish
