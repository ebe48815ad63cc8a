#!/usr/bin/env bash
# diff says what a step of B does differently: operations that came, went, or come another number of times,
# sizes, datatypes, algorithms, communicators, order, on which ranks; it is silent where steps are equal.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
job() { # NAME PYTHON: a job whose calls p the statement has changed; p: of two stages, each a list of calls
  python3 - "$2" <<'P' | python3 "$ROOT/test/lib/pattern_logs.py" "$1"
import json, sys
spec = {"steps": 30, "hosts": 2,
        "comms": {"tp0": [0, 1, 2, 3], "tp1": [4, 5, 6, 7], "pp0": [0, 4], "pp1": [1, 5], "pp2": [2, 6],
        "pp3": [3, 7], "world": list(range(8))}}
layer = [["AllGather", "tp", 2097152], ["ReduceScatter", "tp", 2097152]]
p = [layer * 4 + [["Send", "pp", 1048576, {"peer": 1}], ["Recv", "pp", 1048576, {"peer": 1}]] + layer * 4,
     [["Recv", "pp", 1048576, {"peer": -1}]] + layer * 8 + [["Send", "pp", 1048576, {"peer": -1}]]]
for x in p: x += [["AllReduce", "tp", 65536], ["AllReduce", "world", 4]]
exec(sys.argv[1])
spec["programs"] = [{"ranks": [4 * i + r for r in range(4)], "calls": x} for i, x in enumerate(p)]
print(json.dumps(spec))
P
}
# told LINE...: these lines of the step, and no others.
told() {
  local rc=0
  "$INSPECTOR" diff good other >said 2>errors || rc=$?
  [ $rc = 2 ] || { cat said errors; fatal "exit code $rc"; } # the logs have no last lines
  diff <(printf 'step of B: %s\n' "$@") <(sed -n '/^step of B/p' said) || fail "not what is told"
}
other() { rm -rf other; job other "$1"; }

job good ''
other 'spec["seed"] = 7'
"$INSPECTOR" diff good other >said || true
! grep 'step of B' said || fail "equal steps are told"
"$INSPECTOR" diff --json good other >said || true
python3 -c 'import json; assert json.load(open("said"))["program"] == {"ranks": 8, "changed": 0, "changes": []}'

other 'p = [[c if c[0] != "AllGather" else ["AllGather", "tp", 4194304] for c in x] for x in p]'
told '8 x AllGather on tp (4): 4.19 MB instead of 2.10 MB'
"$INSPECTOR" diff --json -j1 good other >said || true
cp said one
"$INSPECTOR" diff --json -j3 --memory 16M good other >said || true
cmp one said || fail "other bytes with three threads"
python3 - <<'P'
import json
c, = json.load(open("said"))["program"]["changes"]
assert c == {"kind": "size", "text": "8 x AllGather on tp (4): 4.19 MB instead of 2.10 MB",
             "operation": "AllGather", "communicator": "tp (4)",
             "bytes_a": 2097152, "bytes_b": 4194304, "times_a": 8, "times_b": 8, "ranks": 8}, c
P
other 'p[1].insert(3, ["Broadcast", "tp", 1024])'
told '1 x Broadcast 1.02 kB on tp (4) came (4 of 8 ranks)'
other 'p[0] = [c for c in p[0] if c[2] != 65536]'
told '1 x AllReduce 65.54 kB on tp (4) went (4 of 8 ranks)'
other 'p[0] = p[0][:2] + p[0]'
told 'AllGather 2.10 MB on tp (4): 9 a step instead of 8 (4 of 8 ranks)' \
  'ReduceScatter 2.10 MB on tp (4): 9 a step instead of 8 (4 of 8 ranks)'
other 'p = [[c if c[2] != 65536 else c + [{"algo": "NVLS"}] for c in x] for x in p]'
told 'AllReduce 65.54 kB on tp (4): NVLS/SIMPLE instead of RING/SIMPLE'
other 'p = [[c if c[2] != 65536 else c + [{"datatype": "ncclFloat32"}] for c in x] for x in p]'
told 'AllReduce 65.54 kB on tp (4): ncclFloat32 instead of ncclBfloat16'
other 'p = [[c if c[2] != 65536 else ["AllReduce", "world", 65536] for c in x] for x in p]'
told '1 x AllReduce 65.54 kB: on world (8) instead of tp (4)'
other 'p[1][1], p[1][2] = p[1][2], p[1][1]'
told 'operations on tp (4) come in another order (4 of 8 ranks)'

# The line about steps comes also where nothing else can be compared.
other 'spec["comms"] = {k: v for k, v in spec["comms"].items() if k[:2] != "tp"} | {"tp0": [0, 1], "tp1": [2, 3], "tp2": [4, 5], "tp3": [6, 7]}'
rc=0
"$INSPECTOR" diff good other >said 2>errors || rc=$?
[ $rc = 1 ] || fatal "another layout: exit code $rc"
grep -q 'another layout' errors || fail "another layout is not told"
finish
