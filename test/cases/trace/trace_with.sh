#!/usr/bin/env bash
# trace --with: traces of torch.profiler on our clock, from the kernels that both recorded; refused where
# these do not tell.
. "$(dirname "$0")/../../lib/case.sh"
inspector=$BUILD/nccl-inspector
draw() { # rc name options...
  local want=$1 name=$2 rc=0
  "$inspector" trace "$TMP/far" -o "$TMP/$name.json" "${@:3}" >"$TMP/$name.txt" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$name: exit $rc, want $want"; cat "$TMP/$name.txt"; }
}
said() { grep -qE "$2" "$TMP/$1.txt" || { fail "$1 does not say: $2"; cat "$TMP/$1.txt"; }; }
kineto() { python3 test/lib/kineto_logs.py "$TMP/far.truth" "$TMP/$1" "${@:2}"; }
# name expression: over x, k (NCCL kernels of PyTorch's that are ours), off (how far each is from the truth,
# ns), w
expect() {
  python3 - "$TMP/$1.json" "$2" <<'P' || fail "$1: $2"
import sys
sys.path.insert(0, "test/lib")
import trace_check
x = trace_check.load(sys.argv[1])
torch = [s for s in x.slices if s["track"].startswith("PyTorch")]
k = [s for s in torch if " true_ns=" in s["name"]]
off = [abs(x.start + s["t"] - int(s["name"].split("=")[1])) for s in k] or [0]
w = x.other.get("with", [])
ok = eval(sys.argv[2])
if not ok: print(len(k), max(off), w)
sys.exit(not ok)
P
}
python3 test/lib/trace_logs.py "$TMP/far" "$TMP/far.truth" --gpu-drift 20 --offset 0,1.5,-0.04 \
  --drift 0,20,-5 --ops 120
"$inspector" trace "$TMP/far" -o "$TMP/alone.json" >/dev/null

# Clocks that are seconds apart and drift; kernels missing at both ends, and of all; others of groups that no
# log knows.
kineto far0 --offset 3.25 --drift 8 --from 30 --to 200 --lost 10 --extra 1
draw 0 far0 --with "$TMP/far0"
expect far0 'len(k) > 280 and max(off) < 10000 and len(w) == 2 and all(c["aligned"] and float(c["error_us"]) < 5 for c in w)'
said far0 '^with  .*node_773\.1790000000.*, rank 3: 1[0-9]{2} of [0-9]+ NCCL kernels are ours, clock -3\.25.* s, error below .*us, drift -[78]\.[0-9]+ ppm; [0-9,]+ events, 1 left out'
# What is drawn, where, and by which name; nothing of ours is another.
expect far0 '{s["track"] for s in torch} >= {"PyTorch CPU: thread 4003 (python3)", "PyTorch GPU 3: stream 24 ", "PyTorch GPU 0: stream 28 "}'
expect far0 '{s["process"].split(",")[0] for s in torch} == {"rank 0", "rank 3"} and len([s for s in torch if s["name"] in ("c10d::allreduce_", "record_param_comms")]) == 4 * len(k)'
expect far0 'sum("</script>" in s["name"] and "é" in s["name"] and "\x1b" in s["name"] for s in torch) == 2'
draw 0 small --with "$TMP/far0" --memory 1M
cmp "$TMP/far0.json" "$TMP/small.json" || fail "memory changes the output"
draw 0 rank1 --with "$TMP/far0" --rank 1
expect rank1 'not torch'
draw 0 window --with "$TMP/far0" --since +40s --until +60s
expect window '0 < len(k) < 100 and max(off) < 10000'

# Arguments that nobody can hold do not cost their event, nor the clock.
kineto wide --wide --offset 3.25 --drift 8 --from 30 --to 200 --lost 10 --extra 1
draw 0 wide --with "$TMP/wide"
for x in far0 wide; do sed '/^written/d; s/far0/wide/' "$TMP/$x.txt" >"$TMP/$x.said"; done
diff "$TMP/far0.said" "$TMP/wide.said" >"$TMP/other" ||
  fail "numbers of more than 64 bits: $(cat "$TMP/other")"

# Half of ours alone; old files in Unix us with no rank in them; every one of our clocks.
kineto half --offset -0.75 --drift -40 --every 2 --extra 2 --ranks 0,2,5
draw 0 half --with "$TMP/half"
expect half 'len(k) == 360 and max(off) < 10000'
kineto old --offset 1 --absolute --nameless --plain
draw 0 old --with "$TMP/old/node_rank3.pt.trace.json" --with "0=$TMP/old/node_rank0.pt.trace.json"
expect old 'len(k) == 480 and max(off) < 10000'
kineto exact --noise 0
draw 0 exact --with "$TMP/exact" --json
expect exact 'max(off) < 2000'
python3 -c 'import json, sys
w = json.load(open(sys.argv[1]))["with"]
assert [(x["rank"], x["aligned"], x["kernels_matched"], x["left_out"]) for x in w] == [(0, True, 240, 1), (3, True, 240, 1)], w
assert all(x["file"].endswith("/exact/node_77%d.1790000000.pt.trace.json.gz" % x["rank"]) for x in w), w' "$TMP/exact.txt" || fail "--json"

# Nothing tells: starts by chance, two kernels, another rank's file. Then the host's clock is used, and it is
# said.
kineto chaos --chaos
kineto two --from 10 --to 12 --offset 5
kineto wrong --ranks 0
for x in chaos two "wrong 4=$TMP/wrong/node_770.1790000000.pt.trace.json.gz"; do
  read -r name path <<<"$x"
  draw 2 "$name" --with "${path:-$TMP/$name}"
  said "$name" 'CLOCK NOT PUT RIGHT: its own is used'
  said "$name" '^incomplete +[12] files? of --with ha(s|ve) a clock of its own'
done
expect two 'max(off) > 4.9e9 and min(off) > 3.4e9 and not any(c["aligned"] for c in w)'
# No such rank; no rank at all; no such file; no trace in the folder.
draw 2 rank9 --with "9=$TMP/wrong"
said rank9 'rank 9: not in the logs: left out'
mkdir "$TMP/named" "$TMP/empty"
cp "$TMP/old/node_rank3.pt.trace.json" "$TMP/named/x.json"
draw 2 named --with "$TMP/named"
said named 'no rank: neither its distributedInfo nor its name says whose it is: --with RANK=FILE'
draw 1 gone --with "$TMP/gone"
said gone 'with .*gone: No such file'
draw 1 empty --with "$TMP/empty"
said empty 'no \.json or \.json\.gz in it'

# Files that no profiler writes cost what they say, in bounded memory; what is whole of them is drawn.
mkdir "$TMP/hostile" "$TMP/drawn"
python3 test/lib/kineto_hostile.py "$TMP/old/node_rank0.pt.trace.json" "$TMP/hostile"
python3 test/lib/trace_logs.py "$TMP/few" "$TMP/few.truth" --hosts 1 --ops 10
for f in "$TMP"/hostile/*; do
  rc=0 h=$TMP/drawn/$(basename "$f" .gz)
  ([ -n "${NI_VARIANT:-}" ] || ulimit -v 500000; timeout 60 "$inspector" trace "$TMP/few" -o "$h" --with "$f") >"$h.txt" 2>&1 || rc=$?
  { [ $rc = 0 ] || [ $rc = 2 ]; } || { fail "$f: exit $rc"; cat "$h.txt"; }
  case $(basename "$f") in # the folder has a name of its own
  *digits*) # as long as an event may be, it is drawn
    grep -q '4 events, 3 left out' "$h.txt" || { fail "$f: $(cat "$h.txt")"; }
    for name in million fraction exponent many; do
      grep -q "\"$name\"" "$h" || fail "$f: $name is not drawn"
    done ;;
  *crowd*) grep -q '^note .* 19,744 slices of --with left out' "$h.txt" ||
    { fail "$f: not said"; cat "$h.txt"; } ;;
  *cut_0* | *gz* | *unclosed* | *empty* | *array* | *deep* | *quote*) grep -q 'not whole' "$h.txt" ||
    { fail "$f: not said"; cat "$h.txt"; } ;;
  esac
done
python3 test/lib/trace_check.py "$TMP"/drawn/*.json >"$TMP/checked" || fail "$(cat "$TMP/checked")"
finish
