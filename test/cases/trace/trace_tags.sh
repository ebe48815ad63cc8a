#!/usr/bin/env bash
# Tags and symmetric kernels in a timeline: names of tags, parts of a kernel inside it, fused calls, and
# replays of captured kernels with what is known of their time. The job is test/lib/tag_logs.py.
. "$(dirname "$0")/../../lib/case.sh"
python3 test/lib/tag_logs.py "$TMP/logs"
draw() { # name options...
  "$INSPECTOR" trace "$TMP/logs" -o "$TMP/$1.json.gz" \
    "${@:2}" >"$TMP/$1.txt" 2>&1 || { fail "$1"; cat "$TMP/$1.txt"; }
}
draw all
draw named --tag layer.3
draw fused --tag 9 --rank 0
draw none --tag none
rc=0
"$INSPECTOR" trace "$TMP/logs" -o "$TMP/nobody.json.gz" --tag 5 >"$TMP/nobody.txt" 2>&1 || rc=$?
[ $rc = 1 ] &&
  grep -q -- '--tag 5: there is none in what the other filters leave; the lowest is 7, the highest 12' \
  "$TMP/nobody.txt" ||
  { fail "--tag of nobody: exit $rc"; cat "$TMP/nobody.txt"; }
python3 - "$TMP" <<'P' || fail "the timeline"
import sys
sys.path.insert(0, "test/lib")
import trace_check
US = 1000
load = lambda name: trace_check.load(sys.argv[1] + "/" + name + ".json.gz")
x = load("all")
mine = [s for s in x.slices if s["process"].startswith("rank 0")]
assert len(mine) * 2 == len(x.slices), (len(mine), len(x.slices))
args = lambda s, *keys: tuple(str(s["args"][k]) if k in s["args"] else None for k in keys)

# The name of a tag stands in what is drawn, its number in what has none.
kernels = [s for s in mine if s["cat"] in ("coll", "p2p")]
named = [s["name"] for s in kernels if s["args"].get("tag") == "layer.3"]
assert named == ["AllReduce 1.05 MB layer.3"] * 11, named
assert [s["name"] for s in kernels if s["args"].get("tag") == "expert 1"] == ["Send to 1 65.54 kB expert 1"]
assert [args(s, "user_tag", "tag") for s in kernels].count(("9", None)) == 8
assert sum("user_tag" not in s["args"] for s in kernels) == 5
assert {i["name"] for i in x.instants} == {"world: begins", "file: tag 9 refused (refused)"}, x.instants

# The parts of the symmetric kernel lie in it, one after the other, and are all of it; so does the other
# rank's.
for pid, wait in ((mine[0]["pid"], 30 * US),
                  (next(s["pid"] for s in x.slices if s["pid"] != mine[0]["pid"]), 10 * US)):
    whole = [s for s in x.slices if s["pid"] == pid and "compute_us" in s["args"]]
    parts = [s for s in x.slices if s["pid"] == pid and s["cat"] == "phase"]
    assert (len(whole) == 1 and
            args(whole[0], "symmetric", "kernel",
                 "shared_span") == ("True", "AllReduce_RSxLD_AGxST", None)), whole
    t = whole[0]["t"]
    assert [(s["name"], s["t"] - t, s["d"])
            for s in parts] == [("initial_sync", 0, wait), ("compute", wait, 45 * US),
                                                               ("final_sync", wait + 45 * US, 5 * US)], parts
    assert whole[0]["d"] == wait + 50 * US and {s["tid"] for s in parts} == {whole[0]["tid"]}, whole
    assert args(whole[0], "initial_sync_us", "compute_us",
                "final_sync_us") == (str(wait // US), "45", "5"), whole

# Three calls of one kernel, each as long as it.
fused = [s for s in mine if s["name"].endswith("(fused)")]
assert (len(fused) == 3 and len({(s["t"], s["d"]) for s in fused}) == 1 and
        all(args(s, "shared_span") == ("True",) for s in fused)), fused

# Replays: how long at most is known of those that the next one of the same call follows.
replays = [s for s in mine if s["name"].endswith("(replay, enqueue only)")]
assert [args(s, "call_sn", "graph", "symmetric", "at_most_us") for s in replays] == [
    ("400", "True", "True", "2000")] * 3 + [("400", "True", "True", None), ("401", "True", "True", None),
    ("401", "True", "True", "3000"), ("401", "True", "True", None)], replays
assert ({s["track"] for s in replays} == {"world: enqueue"} and
        all(s["cat"] == "enqueue" and s["d"] == 3 * US for s in replays))

only = lambda name: sorted({str(s["args"].get("user_tag")) for s in load(name).slices
                            if s["cat"] in ("coll", "p2p")})
assert (only("named") == ["7"] and only("fused") == ["9"] and
        only("none") == ["None"]), (only("named"), only("fused"), only("none"))
assert len([s for s in load("named").slices if s["cat"] == "phase"]) == 6
assert len([s for s in load("none").slices if "replay" in s["name"]]) == 14
P
finish
