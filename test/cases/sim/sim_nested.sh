#!/usr/bin/env bash
# NCCL_INSPECTOR_PROXY_OUTPUT_MODE=nested: the steps of flat output, in their operations' lines, whatever happens to these.
. "$(dirname "$0")/../../lib/sim.sh"
need python3
NESTED=(NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_PROXY_OUTPUT_MODE=nested NCCL_INSPECTOR_DUMP_FORMAT=jsonl)

# checked CODE [options]: what check says of $TMP/logs; its answer in $TMP/json.
checked() {
  local want=$1 rc=0
  shift
  "$BUILD/nccl-inspector" check --json "$@" "$TMP/logs" >"$TMP/json" || rc=$?
  [ $rc = "$want" ] || { fail "check ended with $rc, $want expected"; tail -c 2000 "$TMP/json"; }
}

# says EXPRESSION: over the proxy lines of $TMP/logs; steps() gives each step as the flat line it would have been.
says() {
  python3 - "$TMP" "$1" <<'P'
import glob, json, sys
tmp, expression = sys.argv[1:]
lines = [json.loads(l) for f in sorted(glob.glob(tmp + "/logs/*.jsonl")) for l in open(f) if l.endswith("\n")]
proxy = [l for l in lines if "proxy_trace" in l]
kinds = {}
for l in proxy:
    k = l["proxy_trace"]["record_type"]
    kinds[k] = kinds.get(k, 0) + 1
SHARED = ("parent_type", "parent_sn", "proxy_op_sn", "channel_id", "peer", "direction", "timing_source", "parent_func")
def flat(l):
    p = l["proxy_trace"]
    own = {k: p[k] for k in SHARED if k in p}
    out = [dict(l, proxy_trace={"record_type": "proxy_step", **own, **s}) for s in p.get("steps", [])]
    if p["record_type"] != "proxy_op_segment":
        out.append(dict(l, proxy_trace={k: v for k, v in p.items() if k != "steps"}))
    return out
def steps():
    return [f for l in proxy for f in flat(l) if f["proxy_trace"]["record_type"] == "proxy_step"]
def places():
    """What is the same in two runs: which transfers whose operation had, by its place. Each step has a number of its own."""
    ops, numbers = {}, set()
    for l in steps():
        p = l["proxy_trace"]
        key = (l["header"]["id"], l["header"]["rank"], p["proxy_op_sn"])
        number = (l["metadata"]["pid"], *key[:2], p["record_sn"])
        assert number not in numbers, p
        numbers.add(number)
        assert p["total_us"] is None or p["total_us"] > 0
        ops.setdefault(key, [p["channel_id"], p["peer"], p["direction"], p["parent_type"], p["parent_sn"], p.get("parent_func"),
                             l["header"].get("comm_name"), l["header"]["rank"]]).append(
            (p["proxy_step_sn"], p["step"], p["trans_size_bytes"]))
    return sorted(map(repr, ops.values()))
def done():
    """Each step once, and with the line of its operation those that it says it had."""
    at, seen, ends = {}, set(), {}
    for l in proxy:
        p = l["proxy_trace"]
        key = (l["metadata"]["pid"], l["header"]["id"], l["header"]["rank"])
        for s in p.get("steps", []):
            assert (key, s["record_sn"]) not in seen, (key, s)
            seen.add((key, s["record_sn"]))
            at.setdefault((key, p["proxy_op_sn"]), []).append(s["proxy_step_sn"])
        assert p["is_final"] == (p["record_type"] == "proxy_op") and len(p.get("steps", [])) <= 64, p
        if p["is_final"] and "steps" in p:
            ends[key, p["proxy_op_sn"]] = p["n_steps_started"]
    assert all(at.get(k, []) == list(range(n)) for k, n in ends.items())
    return len(seen)
ok = eval(" ".join(expression.split()))
print(kinds, len(steps()), "steps")
sys.exit(0 if ok else 1)
P
}
look() { says "$2" || fail "$1"; } # NAME EXPRESSION

# The same steps as flat, of every interface that has them.
for how in "--nccl 2.30" "--nccl 2.27" "--nccl 2.24"; do
  # shellcheck disable=SC2086
  verified NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_DUMP_FORMAT=jsonl traps_events $how
  look "flat $how" 'set(kinds) == {"proxy_op", "proxy_step"} and not print(*places(), sep="\n", file=open(tmp + "/flat", "w"))'
  # shellcheck disable=SC2086
  verified "${NESTED[@]}" traps_events $how
  checked 0 --partial
  look "nested $how" 'kinds["proxy_op"] > 100 and "proxy_step" not in kinds and done() == len(steps()) > 1000 and
    not print(*places(), sep="\n", file=open(tmp + "/nested", "w"))'
  cmp "$TMP/flat" "$TMP/nested" || fail "$how: nested has other steps than flat"
done

# check misses a single step, and a line that holds some.
verified "${NESTED[@]}" traps_events
log=$(echo "$TMP"/logs/*.jsonl)
cp "$log" "$TMP/whole"
lacks() { # NAME CODES: after a change of the log
  checked 2 --partial
  python3 -c 'import json, sys; got = sorted(p["code"] for p in json.load(open(sys.argv[1]))["problems"]); sys.exit(got != sys.argv[2:] and f"{got}")' \
    "$TMP/json" "${@:2}" || fail "check of a log without $1"
}
sed '0,/,"steps":\[{[^}]*},/s//,"steps":[/' "$TMP/whole" >"$log"
lacks "one step" events
sed '0,/"record_type":"proxy_op".*"steps":\[{/{/"record_type":"proxy_op".*"steps":\[{/d}' "$TMP/whole" >"$log"
lacks "one line" events stated

# The timeline draws them as it draws flat ones: the same log with a line for each.
verified "${NESTED[@]}" net
look "to flat" 'not open(tmp + "/flat.jsonl", "w").writelines(json.dumps(f, separators=(",", ":")) + "\n" for l in lines for f in (flat(l) if "proxy_trace" in l else [l]))'
for how in "" "--coll=AllReduce"; do
  # shellcheck disable=SC2086
  "$BUILD/nccl-inspector" trace $how "$TMP/logs" -o "$TMP/nested.json" >/dev/null
  # The accounts in it are those of nested lines: it is not complete.
  "$BUILD/nccl-inspector" trace $how "$TMP/flat.jsonl" -o "$TMP/flat.json" >/dev/null || [ $? = 2 ]
  python3 - "$TMP" <<'P' || fail "timelines $how"
import sys
sys.path.insert(0, "test/lib")
import trace_check
nested, flat = (trace_check.load(sys.argv[1] + n) for n in ("/nested.json", "/flat.json"))
look = lambda x: sorted(repr((x.start + s["t"], s["d"], s["name"], s["process"], s["track"], s["cat"], sorted(s["args"].items()))) for s in x.slices)
n = sum("network steps" in s["track"] for s in nested.slices)
assert look(nested) == look(flat) and n > 500, (len(nested.slices), len(flat.slices), n)
print("ok  ", n, "steps drawn")
P
done

# An operation that hangs: what it has done is in the log while it hangs, and the rest when the process ends.
cat >"$TMP/hang.scn" <<'S'
# what is sent to rank 2 never arrives
set ranks=4 nodes=2 net_steps=100
comm world label=world
coll world func=AllReduce bytes=4m repeat=3
coll world func=AllReduce bytes=16m lost=2
sleep ms=8000
exit how=exit
S
run_logged "${NESTED[@]}" NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=100000 "$TMP/hang.scn" >"$TMP/out" 2>&1 &
job=$!
hangs='(lambda n: [l for l in proxy if not l["proxy_trace"]["is_final"] and l["proxy_trace"]["proxy_op_sn"] not in n.get(l["header"]["rank"], ())])(
  (lambda n: [n.setdefault(l["header"]["rank"], set()).add(l["proxy_trace"]["proxy_op_sn"]) for l in proxy if l["proxy_trace"]["is_final"]] and n)({}))'
early() { says "len($hangs) > 4 and done() > 1000" && kill -0 $job; }
wait_for 10 early || fail "the log does not have the steps of operations that hang"
wait $job || fail "hang: $(cat "$TMP/out")"
look "at its end" "len($hangs) > 4 and done() > 1000"
checked 2
python3 - "$TMP" <<'P' || fail "the accounting of a process that hung"
import json, sys
codes = [p["code"] for p in json.load(open(sys.argv[1] + "/json"))["problems"]]
assert [c for c in codes if c not in ("in_flight", "uneven")] == [], codes
P

# Presets that change while it runs: operations without steps say nothing of them, no step is lost between.
cat >"$TMP/long.scn" <<'S'
# network operations all the time
var ops=800
set ranks=2 nodes=2 net_steps=20 rate=100
comm world label=world
coll world func=AllReduce bytes=1m channels=2 repeat=$ops
S
rm -rf "$TMP/logs"
run_logged "${NESTED[@]}" "$TMP/long.scn" >"$TMP/out" 2>&1 &
job=$!
# A process looks for control files once a second, at two of them in turn.
wait_for 10 compgen -G "$TMP/logs/*.jsonl" || fail "no log"
for preset in deep trace light; do
  "$BUILD/nccl-inspector" ctl "$TMP/logs" preset $preset >/dev/null || fail "ctl $preset"
  sleep 2.2
done
wait $job || fail "presets: $(cat "$TMP/out")"
checked 0
look "presets" 'done() > 1000 and any("steps" not in l["proxy_trace"] for l in proxy) and
  sum("control" in l for l in lines) >= 2'

# Little room: steps do not wait in it, so that it is there for those that come; what found none is counted.
run_logged "${NESTED[@]}" NCCL_INSPECTOR_PROXY_STEP_POOL_SIZE=128 "$TMP/long.scn" --set ops=100 >"$TMP/out" 2>&1 || fail "a small pool: $(cat "$TMP/out")"
rc=0
"$BUILD/nccl-inspector" check --json "$TMP/logs" >"$TMP/json" || rc=$?
python3 - "$TMP" <<'P' || fail "a small pool"
import json, sys
codes = [p["code"] for p in json.load(open(sys.argv[1] + "/json"))["problems"]]
assert set(codes) <= {"events_dropped"}, codes
P
finish
