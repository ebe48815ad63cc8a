#!/bin/bash
# counters record: what its series says is what the counters showed, over a wrap, a reset, what cannot be read and a NIC that comes;
# a killed recorder leaves a sound file; check counts it and says what is missing; a log beside it is judged as before.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
BIN=${NI_BIN:-$BUILD/nccl-inspector}
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$dir"' EXIT
fail() { echo "FAIL: $*"; cat "$dir"/err* 2>/dev/null; exit 1; }
tree() { python3 test/lib/counters/counter_trees.py "$dir/tree" "$@"; }
series() { python3 test/lib/counters/counter_series.py "$@"; }
expect() { # WHAT WANTED GOT
  [ "$2" = "$3" ] || { printf 'FAIL: %s\nwanted:\n%s\ngot:\n%s\n' "$1" "$2" "$3"; exit 1; }
}
# Until the recorder has read so many files more: what is there now has been seen.
seen() {
  local from now
  from=$(awk '/^syscr/ {print $2}' /proc/$pid/io)
  for _ in $(seq 600); do
    now=$(awk '/^syscr/ {print $2}' /proc/$pid/io)
    [ $((now - from)) -gt "$1" ] && return
    sleep 0.05
  done
  fail "the recorder reads nothing"
}

# ---- exactness ----
tree mlx5 mlx5_0 packet_seq_err=4294967290 port_xmit_data=1000 out_of_sequence=7
tree host
NI_ROOT=$dir/tree "$BIN" counters record --every 10ms "$dir/series" 2>"$dir/err1" & pid=$!
for _ in $(seq 600); do grep -q 'every 10.0 ms' "$dir/err1" && break; sleep 0.05; done
at=sys/class/infiniband/mlx5_0/ports/1
seen 1000
tree put $at/hw_counters/packet_seq_err 10 -- put $at/counters/port_xmit_data 18446744073709551615 -- put $at/hw_counters/out_of_sequence 3
seen 1000
: >"$dir/tree/$at/hw_counters/packet_seq_err" # nothing to read
tree put $at/counters/port_xmit_data 9223372036854775809
seen 1000
tree put $at/hw_counters/packet_seq_err 11
seen 1000
tree mlx5 mlx5_1 packet_seq_err=5
seen 8000 # 60 samples, then it looks for what is there
kill -TERM $pid
wait $pid || fail "a recorder that is told to end ends with $?"
pid=
file=$(echo "$dir"/series/*-counters-*.jsonl.gz)
# A file that is just being written anew can be met empty: null for a moment. Here it is empty for long, or no counter any more.
values() { series "$file" "$@" | grep -E '^[0-9]'; }
expect "a wrap of 32 bits" $'4294967290\n10\n11' "$(values mlx5_0:1 packet_seq_err)"
series "$file" mlx5_0:1 packet_seq_err | sed -n '/^10$/,/^11$/p' | grep -qE '^(null|-)$' || fail "what could not be read is not told"
expect "64 bits" $'1000\n18446744073709551615\n9223372036854775809' "$(values mlx5_0:1 port_xmit_data)"
expect "a reset" $'7\n3' "$(values mlx5_0:1 out_of_sequence)"
expect "a NIC that came" '-' "$(series "$file" mlx5_1:1 packet_seq_err | sed -n 1p)"
expect "a NIC that came" 5 "$(values mlx5_1:1 packet_seq_err | tail -n 1)"
# No difference is written where a counter was reset: the sample has the values themselves.
python3 - "$file" <<'PY' || exit 1
import sys
sys.path.insert(0, "test/lib/counters")
from counter_series import samples
before, resets = None, 0
for c, s, now in samples(sys.argv[1]):
    value = now.get(("ib", "mlx5_0:1", "out_of_sequence"))
    if c.get("full") or value is None:
        continue
    if before == 7 and value == 3:
        resets += 1
        assert "since_sn" not in c, "a reset as a difference: %s" % c
    before = value
assert resets == 1, resets
PY
samples=$(series "$file" | sed -n 's/^samples \([0-9]*\) missed.*/\1/p')
missed=$(series "$file" | sed -n 's/^samples .* missed //p')
grep -q "counters record: $samples samples of .*, $missed missed; .* in $file\$" "$dir/err1" || fail "the last sentence"

# ---- check ----
"$BIN" check "$dir/series" >"$dir/check" || fail "check: $?"
expect "the host in JSON" "$(basename "$file" | sed 's/-counters-.*//')" \
  "$("$BIN" check --json "$dir/series" | python3 -c 'import json, sys; print(json.load(sys.stdin)["counters"][0]["host"])')"
grep -qE "^counters    $samples samples of [0-9]+ counters from 1 host, every 0.0 s, and 2 sweeps of all\$" "$dir/check" ||
  fail "check does not count the samples: $(cat "$dir/check")"
grep -q '0 processes on 0 hosts' "$dir/check" || fail "the recorder is a process of the job"
if [ "$missed" = 0 ]; then
  ! grep -q 'not taken in time' "$dir/check" || fail "check says that samples were missed"
else
  grep -q "note  *$missed samples\? of counters not taken in time" "$dir/check" || fail "check does not say that $missed were missed"
fi

# Samples that are not there any more.
mkdir "$dir/lost"
zcat "$file" | grep -vE '"sample_sn":(5|6|7),' | gzip >"$dir/lost/a-counters-1.jsonl.gz"
"$BIN" check "$dir/lost" >"$dir/check" || fail "a sound log is not sound for want of samples"
grep -q 'note  *3 samples of counters lost' "$dir/check" || fail "check does not miss samples: $(cat "$dir/check")"

# ---- killed ----
rm -rf "$dir/tree" "$dir/series"
if [ -d "${NI_TEST_DATA:-../shared/data}/cassini" ]; then tree cxi before 2 -- host
else tree mlx5 mlx5_0 -- mlx5 mlx5_1 -- host; fi
NI_ROOT=$dir/tree "$BIN" counters record --every 10ms --all "$dir/series" 2>"$dir/err2" & pid=$!
for _ in $(seq 1200); do # a busy machine brings few samples into the first write
  [ -s "$(echo "$dir"/series/*.gz)" ] && [ "$(series "$dir"/series/*.gz | tail -n 1 | cut -d' ' -f2)" -gt 5 ] && break
  sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null || true
pid=
file=$(echo "$dir"/series/*.gz)
gzip -t "$file" || fail "a killed recorder leaves half a member"
"$BIN" check "$dir/series" | grep -q '^COMPLETE' || fail "a killed recorder's file is not sound"
[ "$(series "$file" | tail -n 1 | cut -d' ' -f2)" -gt 5 ] || fail "nothing in a killed recorder's file"

# ---- a folder that goes, and what cannot be ----
NI_ROOT=$dir/tree "$BIN" counters record --every 10ms --all "$dir/gone" 2>"$dir/err3" & pid=$!
for _ in $(seq 600); do grep -q 'counters of' "$dir/err3" && break; sleep 0.05; done
rm -rf "$dir/gone"
rc=0; wait $pid || rc=$?
pid=
[ $rc = 1 ] || fail "a folder that is gone: exit code $rc"
grep -q "the file is gone, or its folder" "$dir/err3" || fail "a folder that is gone is not told"
rc=0; "$BIN" counters record --every 1ms "$dir/none" 2>"$dir/err4" || rc=$?
{ [ $rc = 64 ] && grep -q '10ms' "$dir/err4"; } || fail "an interval that is too short: $rc"
rc=0; "$BIN" counters record --cpus 900-901 --for 100ms "$dir/none" 2>"$dir/err6" || rc=$?
{ [ $rc = 1 ] && grep -q -- '--cpus: none of these' "$dir/err6" && [ ! -e "$dir/none" ]; } || fail "processors that are not there: $rc"
"$BIN" counters record --counters 'nosuch*' --for 100ms "$dir/some" 2>"$dir/err7" || true
grep -q -- '--counters nosuch\*: no counter here has such a name' "$dir/err7" || fail "a pattern that fits nothing is not told"

# ---- this machine ----
"$BIN" counters record --for 300ms --every 100ms "$dir/here" 2>"$dir/err5" || { grep -q 'nothing to record' "$dir/err5" && exit 0; fail "this machine: $?"; }
"$BIN" check "$dir/here" | grep -q '^COMPLETE' || fail "this machine's series is not sound"
