#!/usr/bin/env bash
# Files that say very much: slots in flight, communicators, processes, numbers in any order, texts without
# end. Each is judged in seconds (a second or less where nothing else runs), and what is printed stays short.
. "$(dirname "$0")/../../lib/hang.sh"
LIMIT=${LIMIT:-5}
# 160,000 forged communicators once took 9 s and 800 MB. A sanitizer wants all addresses there are.
room=()
[ -n "$VARIANT" ] || room=(prlimit --as=512000000)

cat >"$TMP/forge.py" <<'PY'
import os, random, sys
sys.path.insert(0, "test/lib")
import logs
from logs import T0
def many(kind, body):
    """A line of which there will be many."""
    meta = logs.metadata("%d", "%s", "%d", git_rev="g", producer="nccl-inspector-c t")
    return logs.template(logs.line(logs.header("%s", "%d", "%d", 1), meta, kind, body))
PROCESS = many("process", logs.process("%d", "%d", "%d", "b", exe="x", local_rank=0))
COMM = many("comm", logs.comm(logs.header("%s", "%d", "%d", 1), "%d", gpu_index=0))
STUCK = [many("stuck", logs.stuck("%s", "%s", "%d", "%d", "%d", (8, 8, 0), T0 + 10**9, 310000, "0xff", datatype="ncclFloat32", root="%d", peer=peer))
         for peer in (None, "%d")]
RECORD = many("coll_perf", logs.perf("coll", "AllReduce", sn="%d", msg_size_bytes=8, exec_time_us=5, timing_source="kernel_gpu", algobw_gbs=1.0,
                                     busbw_gbs=1.0, rec_sn="%d"))
STATS = many("dump_stats", {"coll_records": 0, "final": False, "coll": logs.counts(3, 3),
                            "p2p": {"started": 0, "written": 0, "incomplete": 0, "in_flight": 0}})
def process(f, pid, rank, world, start=T0, host="h"):
    f.write(PROCESS % ("0x0", rank, world, T0 // 1000, host, pid, start, rank, world))
def comm(f, id_, rank, n, pid, init):
    f.write(COMM % (id_, rank, n, T0 // 1000, "h", pid, id_, rank, n, init))
def stuck(f, id_, rank, n, pid, sn, func="AllReduce", peer=None, t=400):
    f.write(STUCK[peer is not None] % (id_, rank, n, T0 // 1000 + t * 10**6, "h", pid, "p2p" if peer is not None else "coll", func, sn, sn, 4 + sn, peer or 0))
def record(f, id_, rank, n, pid, sn):
    f.write(RECORD % (id_, rank, n, T0 // 1000, "h", pid, sn, sn))
what, out, n = sys.argv[1], sys.argv[2], int(sys.argv[3])
os.makedirs(out)
with open(out + "/h-pid1-1790000000.jsonl", "w") as f:
    if what != "processes": process(f, 1, 0, 2)
    if what == "communicators":    # each another one that waits, with hashes that differ in their highest bits
        for i in range(n): stuck(f, hex(i << 40 | 1), 0, 2**31 - 1, 1, 3)
    elif what == "lives":          # one hash, begun again and again
        for i in range(n): comm(f, "0xabc", 0, 2, 1, T0 + i)
    elif what == "processes":
        for i in range(n): process(f, 1 + i, i % 7, 7, T0 + i * 10**6, "h%d" % i)
    elif what == "starts":         # one process, begun again and again
        for i in range(n): process(f, 1, 0, 7, T0 + i * 10**6)
    elif what == "ranks":          # all in one communicator, each in another operation of another size
        for i in range(n): stuck(f, "0xabc", i, n, 1, i)
    elif what == "peers":
        for i in range(n): stuck(f, "0xabc", i, n, 1, i, "Send", (i + n // 2) % (2 * n))
    elif what == "texts":
        for i in range(n): stuck(f, "0xabc", 0, 2, 1, i, "F%d" % i)
    elif what == "repeats":
        for i in range(n): stuck(f, "0xabc", 0, 2, 1, i % 100, t=i % 50)
    elif what == "numbers":        # every other number first, then the holes, in any order
        r = list(range(0, 2 * n, 2)); random.Random(1).shuffle(r)
        for i in r: record(f, "0xabc", 0, 2, 1, i)
        for i in r: record(f, "0xabc", 0, 2, 1, i + 1)
if what == "rings":                # two processes, each waiting in half of the communicators for the other
    for p in (0, 1):
        with open(out + "/h-pid%d-1790000000.jsonl" % (p + 1), "w") as f:
            process(f, p + 1, p, 2)
            for i in range(n):
                comm(f, hex(0xabc + i), p, 2, p + 1, T0)
                if i % 2 == p: stuck(f, hex(0xabc + i), p, 2, p + 1, 3)
                f.write(STATS % (hex(0xabc + i), p, 2, T0 // 1000 + (350 if i % 2 == p else 500) * 10**6, "h", p + 1))
PY

# judged NAME COMMAND...: within the limit of CPU time, with a verdict, and with less than 64 kB of text.
judged() {
  local name=$1 rc=0 text ms TIMEFORMAT='%U %S'
  shift
  { time timeout $((12 * LIMIT)) "${room[@]}" "$INSPECTOR" "$@" >"$TMP/text" 2>&1; } 2>"$TMP/cpu" || rc=$?
  ms=$(awk '{print int(1000 * ($1 + $2))}' "$TMP/cpu")
  text=$(wc -c <"$TMP/text")
  if [ $rc -le 4 ] && ! grep -q "Cannot allocate memory" "$TMP/text" && [ $ms -lt $((LIMIT * 1000)) ] &&
    [ "$text" -lt 65536 ]; then
    echo "ok   $name: $1 $ms ms, $(head -c 110 "$TMP/text" | head -n 1)"
  else
    fail "$name: $1 exit status $rc after $ms ms, $text bytes of text: $(head -c 200 "$TMP/text")"
  fi
}
box() { # NAME [parameters of forge_box.py for one of two boxes] -- [for the other]
  local name=$1 out=$BOXES/$1
  shift
  mkdir -p "$out"
  local made; made=$(date +%s%N)
  local -a one=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do one+=("$1"); shift; done
  [ $# = 0 ] || shift
  python3 test/lib/forge_box.py "$out/" pid=11 rank=0 made_ns="$made" "${one[@]}" >/dev/null
  python3 test/lib/forge_box.py "$out/" pid=12 rank=1 made_ns="$made" "$@" >/dev/null
  judged "$name" hang "$out"
  rm -rf "$out"
}
N=${N:-20000}
box slots ops=100000 -- ops=100000 first_sn=50
box "slots with nothing in common" ops="$N" -- ops="$N" func=Broadcast
box "slots of one number" ops="$N" same="$N" -- ops="$N" same="$N"
box "sends and receives" ops="$N" func=Send root=1 -- ops="$N" func=Recv root=0
box "sends to each other" ops="$N" func=Send root=1 -- ops="$N" func=Send root=0
python3 "$TMP/forge.py" communicators "$TMP/json" "$N"
from=$SECONDS
timeout 60 "$INSPECTOR" hang --json "$TMP/json" --box-dir "$TMP" >"$TMP/verdict" || true
python3 -c 'import json, sys; d = json.load(sys.stdin); assert len(d["waits"]) + d["more_waits"] == int(sys.argv[1]) > 2 * len(d["waits"]), d' "$N" \
  <"$TMP/verdict" || fail "JSON of $N communicators after $((SECONDS - from)) s"
for what in communicators lives processes starts ranks peers texts repeats numbers rings; do
  n=$N
  case $what in communicators) n=$((N * 8 / 5)) ;; ranks | peers | texts | rings) n=$((N * 3 / 5)) ;; esac
  python3 "$TMP/forge.py" $what "$TMP/$what" "$n"
  judged "$n $what" hang "$TMP/$what" --box-dir "$TMP"
  case $what in communicators | lives | processes | starts) judged "$n $what" check "$TMP/$what" ;; esac
  rm -rf "${TMP:?}/$what"
done
finish
