#!/usr/bin/env bash
# Flight Recorder dumps of PyTorch: of 8 ranks alone, as JSON, as PyTorch's pickler and as Python's write
# them; and with logs.
. "$(dirname "$0")/../../lib/hang.sh"
world="default_pg (process group 0)"

# dumps KIND FORM CODE CHECKER EXPECTED...: what is said of them.
dumps() {
  local kind=$1 form=$2
  shift 2
  look_at "$TMP/all/$kind-$form" --box-dir "$BOXES"
  checked "$kind, $form" "$@"
  grep -q '"flight_recorder_dumps":8,"bad_lines":0,"unreadable":0' "$TMP/verdict" ||
    fail "$kind, $form: not all were read"
}
python3 test/lib/flight_dumps.py "$TMP/all" {never,batch,given_up,aborted,gloo}-{json,torch,2,4,5} \
  {other,timed,behind,size,type,inside,send,healthy,coalesced}-{json,torch}
dumps never json 3 expect "$world" "all_reduce 4" never_called=3 inside=0,1,2,4,5,6,7 verdict=likely \
  consequences=2
dumps timed json 3 expect "$world" "all_reduce 4" never_called=3 inside=0,1,2,4,5,6,7 consequences=2
dumps behind json 3 expect "tp (process group 2)" "_all_gather_base 4" never_called=3 inside=2 consequences=1
dumps other json 3 expect "$world" "all_reduce 4" other_call=5 inside=0,1,2,3,4,6,7 mismatch=function
names "the other call" "rank 5 called broadcast 4 instead"
dumps size json 3 expect "$world" "all_reduce 4" inside=0,1,2,3,4,5,6,7 mismatch=size
names "the size" "rank 5 called it with 2,048 bytes, others with 2,097,152 bytes"
dumps type json 3 expect "$world" "all_reduce 4" inside=0,1,2,3,4,5,6,7 mismatch=datatype
names "the type" "rank 5 called it with Half, others with BFloat16"
dumps given_up json 3 expect "$world" "all_reduce 4" never_called=3 inside=0,1,2,4,5,6,7
dumps aborted json 3 expect "$world" "all_reduce 4" never_called=3 inside=0,1,2,4,5,6,7
dumps gloo json 0 job unknown "no hang: 8 ranks, 8 communicators; .*" unknown=8
dumps inside json 3 expect "$world" "all_reduce 4" inside=0,1,2,3,4,5,6,7
names "nobody" "everyone is inside: nobody is missing"
dumps send json 3 expect "process group 7" p2p inside=0 never_called=4
dumps batch json 3 expect "process group 7" p2p inside=0 never_called=4
names "the wait" "rank 4 has no matching call under way; rank 0 waits in Send to rank 1"
dumps healthy json 0 job unknown "no hang: 8 ranks, 8 communicators; .*" unknown=8
dumps coalesced json 0 job unknown "no hang: 8 ranks, 8 communicators; .*" unknown=8
# Pickles of the same say the same.
for pickle in "$TMP"/all/*-{torch,2,4,5}; do
  for form in "$pickle" "${pickle%-*}-json"; do
    "$INSPECTOR" hang "$form" --box-dir "$BOXES" | sed 's/ ([^()]* ago)//' >"$TMP/${form##*/}.text" || true
  done
  cmp "$TMP/${pickle##*/}.text" "$TMP/$(basename "${pickle%-*}")-json.text" || fail "${pickle##*/} says another thing than its JSON"
done
# Of some ranks alone; one file, named outright; a name that says no rank.
python3 test/lib/flight_dumps.py "$TMP/part" never json 0,1,2,4
look_at "$TMP/part" --box-dir "$BOXES"
checked "half of them" 3 expect "$world" "all_reduce 4" inside=0,1,2,4
names "who is not there" "no data from"
cp -p "$TMP/all/healthy-json/nccl_trace_rank_3" "$TMP/any.thing"
look_at "$TMP/any.thing" --box-dir "$BOXES"
grep -q "any.thing: no rank in it, and no number in its name" "$TMP/verdict.err" ||
  fail "without a rank: $(cat "$TMP/verdict.err")"
sed 's/^{/{"rank": 2147483647, /' "$TMP/all/healthy-json/nccl_trace_rank_3" >"$TMP/any.thing"
look_at "$TMP/any.thing" --box-dir "$BOXES"
grep -q "any.thing: rank 2147483647 is none: ranks are below 2147483647" "$TMP/verdict.err" ||
  fail "with a rank that none is: $(cat "$TMP/verdict.err")"
gzip -c "$TMP/all/never-torch/nccl_trace_rank_5" >"$TMP/nccl_trace_rank_5.gz"
look_at "$TMP/nccl_trace_rank_5.gz" --box-dir "$BOXES"
grep -q '"flight_recorder_dumps":1' "$TMP/verdict" || fail "a dump that gzip made small is not read"
# Names that end in a node's number: two ranks do not become one, and both files are named. So beside a name
# that says the rank.
two_of_one() { # DIR TAKEN OTHER: what is said of a folder with two dumps of "rank 1"
  look_at "$TMP/$1" --box-dir "$BOXES"
  local why="$TMP/$1/$3: left out: rank 1 has a dump already, $TMP/$1/$2. That $3 is of the same rank, only the last number"
  grep -q '"flight_recorder_dumps":1,.*"unreadable":1,' "$TMP/verdict" ||
    fail "$1: not one of two was read: $(cat "$TMP/verdict")"
  grep -q "\"first_unreadable\":\"$why.*Name dumps by their ranks, as PyTorch does: nccl_trace_rank_3" \
    "$TMP/verdict" ||
    fail "$1: not both files are named: $(cat "$TMP/verdict")"
}
mkdir "$TMP/nodes" "$TMP/beside"
for r in 0 3; do cp -p "$TMP/all/never-json/nccl_trace_rank_$r" "$TMP/nodes/fr-gpu$r-node1"; done
two_of_one nodes fr-gpu0-node1 fr-gpu3-node1
cp -p "$TMP/all/never-json/nccl_trace_rank_1" "$TMP/beside/nccl_trace_rank_1"
cp -p "$TMP/all/never-json/nccl_trace_rank_3" "$TMP/beside/fr-gpu3-node1"
two_of_one beside nccl_trace_rank_1 fr-gpu3-node1
# A number that 64 bits cannot hold, in JSON as a program of others wrote it, does not cost the dump.
mkdir "$TMP/wide"
for r in 0 1 2 3 4 5 6 7; do
  python3 - "$TMP/all/never-json/nccl_trace_rank_$r" "$TMP/wide/nccl_trace_rank_$r" <<'PY'
import json, os, sys
dump = json.load(open(sys.argv[1]))
for e in dump["entries"]:
    e["stream"] = 2**64
json.dump(dump, open(sys.argv[2], "w"))
os.utime(sys.argv[2], ns=(os.stat(sys.argv[1]).st_mtime_ns,) * 2)
PY
done
look_at "$TMP/wide" --box-dir "$BOXES"
checked "numbers of more than 64 bits" 3 expect "$world" "all_reduce 4" never_called=3 inside=0,1,2,4,5,6,7 \
  verdict=likely consequences=2
mkdir "$TMP/none"
echo '{"a":1}' >"$TMP/none/x.json"
look_at "$TMP/none" --box-dir "$BOXES"
grep -q '"unreadable":0' "$TMP/verdict" || fail "a file that is no dump: $(cat "$TMP/verdict")"

# With logs: of all ranks, ours alone counts; of one rank, the dumps say what it lacks. A rank is one, however
# many sources.
python3 - "$TMP" <<'PY'
import os, sys
sys.path.insert(0, "test/lib")
import flight_dumps
flight_dumps.GROUPS = {"0": ("default_pg", [0, 1])}
for r in (0, 1):
    x = flight_dumps.Rank(r)
    x.now += 11 * flight_dumps.S
    x.call("0", "all_reduce", "completed")
    if r == 0:
        x.call("0", "all_reduce", "scheduled")
    os.makedirs(sys.argv[1] + "/two", exist_ok=True)
    path = "%s/two/nccl_trace_rank_%d" % (sys.argv[1], r)
    open(path, "wb").write(flight_dumps.torch_pickle(x.dump("torch")))
    os.utime(path, ns=(flight_dumps.T0 + 400 * flight_dumps.S,) * 2)
PY
mkdir "$TMP/logs"
python3 test/lib/hang_logs.py "$TMP/logs" AllReduce AllReduce
look_at "$TMP/logs" "$TMP/two" --box-dir "$BOXES"
checked "with logs of all" 3 expect world "AllReduce 20" inside=0,1 consequences=0
python3 test/lib/hang_logs.py "$TMP/logs" AllReduce -
look_at "$TMP/logs" "$TMP/two" --box-dir "$BOXES"
checked "with logs that lack one" 3 expect "$world" "all_reduce 2" inside=0 never_called=1 consequences=0
names "its host" "rank 1 (node-1) never called it"
python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); assert d["ranks"] == d["processes"] == 2, d' \
  "$TMP/verdict" || fail "ranks are counted twice"

finish
