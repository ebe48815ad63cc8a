#!/usr/bin/env bash
# show --pattern: each rank of simulated jobs has the calls that were planted, and no others; of written-down
# steps it says what differs and where, what runs beside, what comes now and then, and where nothing repeats;
# threads and memory change no byte.
. "$(dirname "$0")/../../lib/case.sh"
cd "$TMP"
show() { # EXIT_CODE options...
  rc=0; "$INSPECTOR" show "${@:2}" >text 2>err || rc=$?
  [ $rc = "$1" ] || { cat text err; fatal "show ${*:2}: $rc"; }
}
has() { grep -qE -- "$1" text err || { cat text err; fatal "no '$1'"; }; }
hasnt() { ! grep -qE -- "$1" text || { cat text; fatal "'$1' is there"; }; }
is() { python3 -c 'import json, sys; j = json.load(open("text")); p = [p for r in j["runs"] for p in r["programs"]]; assert eval(sys.argv[1])' "$1" || { head -c 2000 text; fatal "not so: $1"; }; }
logs() { rm -rf "$1"; python3 "$ROOT/test/lib/pattern_logs.py" "$1"; } # NAME <SPEC

# Stages, experts, sharded parameters; 14: what is sent beside the mark of a step begins now before, now
# behind it.
for job in "B 11" "C 14 --overlap-us 100 --timer-ns 1024" "F 11" "M 11" "M 19 --kind evaluation"; do
  # shellcheck disable=SC2086
  set -- $job
  rm -rf job
  "$BUILD/test/ni-jobs" --layout "$1" --seed "$2" --steps 30 --stored --out job "${@:3}" >/dev/null
  show 0 --pattern --json job
  # shellcheck disable=SC2046
  python3 "$ROOT/test/lib/pattern_check.py" job/truth.json text $([ "$1" != F ] || echo ordered) || fail \
    "$job"
  cp text one
  show 0 --pattern --json -j1 --memory 16M job
  cmp one text || fail "$job: other bytes with one thread"
done

# Two stages of four ranks; rank 2 does something else in its eighth call; an evaluation each fifth step.
spec() { python3 - "$@" <<'P'
import json, sys
twice = [["AllReduce", "tp", 4194304], ["AllReduce", "tp", 4194304, {"us": 200}]]
first = (twice * 3 + [["Send", "pp", 1048576,
                       {"peer": 1}]]) * 2 + ([["Recv", "pp", 1048576, {"peer": 1}]] + twice * 3) * 2
last = ([["Recv", "pp", 1048576, {"peer": -1}]] + twice * 6 + [["Send", "pp", 1048576, {"peer": -1}]]) * 2
end = [["AllGather", "world", 4096, {"every": 5}],
       ["ReduceScatter", "tp", 65536, {"datatype": "ncclFloat32"}],
       ["AllReduce", "world", 4, {"algo": "TREE", "proto": "LL"}]]
other = list(first)
other[7] = ["ReduceScatter", "tp", 4194304]
programs = [{"ranks": [0, 1, 3], "calls": first + end}, {"ranks": [2], "calls": other + end},
            {"ranks": [4, 5, 6, 7], "calls": last + end}]
print(json.dumps({"steps": 20, "hosts": 2,
                  "comms": {"tp0": [0, 1, 2, 3], "tp1": [4, 5, 6, 7], "pp0": [0, 4], "pp1": [1, 5],
                            "pp2": [2, 6],
                  "pp3": [3, 7], "world": list(range(8))}, "programs": programs, **json.loads(sys.argv[1])}))
P
}
spec '{}' | logs odd
show 0 --pattern odd
has '^a step of 30 operations; 4 of 8 ranks have it: 4-7$'
has '^the step came 20 times, 80\.0 % of them exactly so$'
has '^1-28 +2 x \{$'
has '^2-13 +12 x AllReduce +4\.19 MB Bfloat16 tp \(4\) +1[45][0-9] us +0 % RING/SIMPLE$'
has '^1 +Recv from previous +1\.05 MB Bfloat16 pp \(2\)'
has '^29 +ReduceScatter +65\.54 kB Float32 +tp \(4\)'
has '^30 +AllReduce +4 B Bfloat16 world \(8\) .* TREE/LL$'
has '^ranks 0, 1, 3: another program, 30 operations, that differs from that of ranks 4-7 first at operation 1: nothing in place of Recv from previous'
has '^rank 2: another program, 30 operations, that differs from that of ranks 0, 1, 3 first at operation 8: ReduceScatter 4\.19 MB on tp \(4\) in place of AllReduce 4\.19 MB on tp \(4\)$'
hasnt 'AllGather'
[ "$(grep -c '^a step of' text)" = 2 ] || fail "not two programs in full"
show 0 --pattern --all odd
[ "$(grep -c '^a step of' text)" = 3 ] || fail "--all: not three programs in full"
show 0 --pattern --json odd
is '[x["ranks"] for x in p] == [[4, 5, 6, 7], [0, 1, 3], [2]] and p[0]["exactly_so"] == 0.8'
is 'p[2]["differs_first"]["from_program"] == 1 and p[2]["differs_first"]["operation"] == 7'
is '[o["function"] for o in p[0]["operations"]] == (["Recv"] + ["AllReduce"] * 12 + ["Send"]) * 2 + ["ReduceScatter", "AllReduce"]'
is 'p[0]["folded"][0] == {"from": 0, "operations": 14, "times": 2} and all(o["in_order"] for x in p for o in x["operations"])'
show 0 --pattern --comm tp1 odd
has '^a step of 25 operations; 4 of 4 ranks have it: 4-7$'
hasnt 'no step'
has 'records are left out by the options'
show 0 --pattern --rank 2 --json odd

# Without names communicators are told apart by their sizes; a job of its own in the folder is a run of its
# own.
spec '{"unnamed": true}' | logs unnamed
show 0 --pattern --json unnamed
is 'len(p) == 3 and [len(x["operations"]) for x in p] == [30, 30, 30]'
spec '{"job": 1, "start_ns": 1790000900000000000, "steps": 12}' |
  (python3 "$ROOT/test/lib/pattern_logs.py" odd)
show 0 --pattern odd
has '^run 1 \(job 77, 8 processes'
has '^run 2 \(job 78, 8 processes'
[ "$(grep -c '; 4 of 8 ranks have it: 4-7$' text)" = 2 ] || fail "not each run by itself"

# What overlaps: 20 us of each 300 us; the share is of the time of the operation itself.
python3 - <<'P' | logs beside
import json
calls = [["AllReduce", "dp", 8388608, {"us": 300, "beside": True}], ["AllReduce", "tp", 4194304],
         ["AllReduce", "tp", 2097152]]
print(json.dumps({"steps": 40, "comms": {"tp": [0, 1], "dp": [0, 1]},
                  "programs": [{"ranks": [0, 1], "calls": calls}]}))
P
show 0 --pattern --json beside
is 'len(p) == 1 and p[0]["ranks"] == [0, 1] and p[0]["exactly_so"] == 1'
is '{(o["function"], o["bytes"]): o["beside"] > 0.5 for o in p[0]["operations"]} == {("AllReduce", 8388608): True, ("AllReduce", 4194304): True, ("AllReduce", 2097152): True}'

# One rank, one communicator; calls that were timed on the CPU alone.
python3 - <<'P' | logs alone
import json
calls = [["AllReduce", "tp", 4194304,
          {"timing": "collective_cpu"}]] * 4 + [["Broadcast", "tp", 64, {"timing": "collective_cpu"}]]
print(json.dumps({"steps": 12, "comms": {"tp": [0, 1]}, "programs": [{"ranks": [0], "calls": calls}]}))
P
show 0 --pattern alone
has '^a step of 5 operations; 1 of 1 rank has it: 0$'
has ' 4 x AllReduce +4\.19 MB Bfloat16 tp \(2\) +- +- '

# A pipeline without tensor parallelism: the norm is its one collective, and what ends the step.
python3 - <<'P' | logs pipe
import json
get, put = ["Recv", "pp", 3145728, {"peer": -1}], ["Send", "pp", 3145728, {"peer": 1}]
calls = [[put] * 6, [get, put] * 6, [get, put] * 6, [get] * 6]
print(json.dumps({"steps": 20, "comms": {"pp": [0, 1, 2, 3], "world": [0, 1, 2, 3]},
                  "programs": [{"ranks": [r], "calls": calls[r] + [["AllReduce", "world", 4]]}
                               for r in range(4)]}))
P
show 0 --pattern pipe
has '^a step of 13 operations; 2 of 4 ranks have it: 1, 2$'
has '^1-12 +6 x \{$'
has '^rank 0: another program, 7 operations, .* first at operation 1: nothing in place of Recv from previous 3\.15 MB on pp \(4\)$'

# A server: what tokens have in common with requests of any length is no step.
python3 - <<'P' | logs serve
import json, random
draw, calls = random.Random(5), []
for request in range(60):
    size = 32768 if request % 10 else draw.randrange(2, 64) * 32768
    calls += [["AllReduce", "tp", size]] * 8 + ([["AllGather", "tp", 131072]] if request % 7 else [])
print(json.dumps({"steps": 1, "comms": {"tp": [0, 1]}, "programs": [{"ranks": [0, 1], "calls": calls}]}))
P
show 0 --pattern serve
hasnt '^a step of [1-7] operation'

# Nothing repeats: requests of any size; records by chance; no start times. Each says so, and what there is.
python3 - <<'P' | logs chance
import json, random
draw = random.Random(3)
calls = [["AllReduce", "tp", draw.randrange(1, 400) * 4096] for _ in range(300)]
print(json.dumps({"steps": 1, "comms": {"tp": [0, 1]}, "programs": [{"ranks": [0, 1], "calls": calls}]}))
P
show 0 --pattern chance
has '^ranks 0, 1 have no step: nothing in its operations comes again at even distances$'
has '^AllReduce, [12][0-9][0-9] sizes +[0-9.]+ kB - 1\.6[0-9] MB Bfloat16 tp \(2\) +600 100\.0 %$'
show 0 --pattern --json chance
is 'p == [] and j["runs"][0]["histogram"][0]["records"] == 600 and [x["rank"] for x in j["runs"][0]["without_step"]] == [0, 1]'
spec '{"sample": 4}' | logs sampled
show 0 --pattern sampled
has 'have no step'
python3 - <<'P' | logs no_start
import json
spec = {"steps": 20, "comms": {"tp": [0, 1]},
        "programs": [{"ranks": [0, 1],
                      "calls": [["AllReduce", "tp", 4096, {"no_start": True}],
                                ["Broadcast", "tp", 64, {"no_start": True}]]}]}
print(json.dumps(spec))
P
show 0 --pattern no_start
has '^ranks 0, 1 have no step: its log does not say when operations started$'
has '^Broadcast +64 B .* 40 +50\.0 %$'

# Recorded of a simulated job: what runs beside the mark moves to another place for good. Each pass must cut
# the same steps.
mkdir recorded
cp "$ROOT/test/data/pattern/beside.jsonl.gz" recorded/
show 0 --pattern recorded
has '^a step of 16 operations; 1 of 1 rank has it: 0$'

show 1 --pattern --comm none odd
has 'there is no operation in these logs that passes the options'
show 64 --pattern --sn 3 odd
show 64 --all --comm tp0 --sn 3 odd
finish
