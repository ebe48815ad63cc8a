#!/bin/bash
# counters record: what its series says is what the counters showed, over a wrap, a reset, what cannot be read
# and a NIC that comes;
# a killed recorder leaves a sound file; check counts it and says what is missing; a log beside it is judged
# as before.
. "$(dirname "$0")/../../lib/case.sh"
BIN=${NI_BIN:-$BUILD/nccl-inspector}
need python3
# each part begins where the one before it left off
stop() { cat "$TMP"/err* 2>/dev/null || true; fatal "$@"; }
tree() { python3 test/lib/counters/counter_trees.py "$TMP/tree" "$@"; }
series() { python3 test/lib/counters/counter_series.py "$@"; }
expect() { # WHAT WANTED GOT
  [ "$2" = "$3" ] || { printf 'wanted:\n%s\ngot:\n%s\n' "$2" "$3"; fatal "$1"; }
}
# Until the recorder has read so many files more: what is there now has been seen.
reads() { awk '/^syscr/ {print $2}' /proc/$pid/io; }
has_read() { [ "$(reads)" -gt "$1" ]; }
seen() { wait_for 30 has_read $(($(reads) + $1)) || stop "the recorder reads nothing"; }

# ---- exactness ----
tree mlx5 mlx5_0 packet_seq_err=4294967290 port_xmit_data=1000 out_of_sequence=7
tree host
NI_ROOT=$TMP/tree "$BIN" counters record --every 10ms "$TMP/series" 2>"$TMP/err1" & pid=$!
wait_for 30 grep -q 'every 10.0 ms' "$TMP/err1" || stop "it does not begin"
at=sys/class/infiniband/mlx5_0/ports/1
seen 1000
tree put $at/hw_counters/packet_seq_err 10 -- put $at/counters/port_xmit_data 18446744073709551615 -- put \
  $at/hw_counters/out_of_sequence 3
seen 1000
: >"$TMP/tree/$at/hw_counters/packet_seq_err" # nothing to read
tree put $at/counters/port_xmit_data 9223372036854775809
seen 1000
tree put $at/hw_counters/packet_seq_err 11
seen 1000
tree mlx5 mlx5_1 packet_seq_err=5
seen 8000 # 60 samples, then it looks for what is there
kill -TERM $pid
wait $pid || stop "a recorder that is told to end ends with $?"
file=$(echo "$TMP"/series/*-counters-*.jsonl.gz)
# A file that is just being written anew can be met empty: null for a moment. Here it is empty for long, or no
# counter any more.
values() { series "$file" "$@" | grep -E '^[0-9]'; }
expect "a wrap of 32 bits" $'4294967290\n10\n11' "$(values mlx5_0:1 packet_seq_err)"
series "$file" mlx5_0:1 packet_seq_err | sed -n '/^10$/,/^11$/p' | grep -qE '^(null|-)$' ||
  stop "what could not be read is not told"
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
grep -q "counters record: $(grouped "$samples") samples of .*, $(grouped "$missed") missed; .* in $file\$" \
  "$TMP/err1" || stop "the last sentence"

# ---- check ----
"$BIN" check "$TMP/series" >"$TMP/check" || stop "check: $?"
expect "the host in JSON" "$(basename "$file" | sed 's/-counters-.*//')" \
  "$("$BIN" check --json "$TMP/series" | python3 -c 'import json, sys; print(json.load(sys.stdin)["counters"][0]["host"])')"
grep -qE "^counters    $(grouped "$samples") samples of [0-9]+ counters from 1 host, every 0.0 s, and 2 sweeps of all\$" "$TMP/check" ||
  stop "check does not count the samples: $(cat "$TMP/check")"
grep -q '0 processes on 0 hosts' "$TMP/check" || stop "the recorder is a process of the job"
if [ "$missed" = 0 ]; then
  ! grep -q 'not taken in time' "$TMP/check" || stop "check says that samples were missed"
else
  grep -q "note  *$(grouped "$missed") samples\? of counters not taken in time" "$TMP/check" ||
    stop "check does not say that $missed were missed"
fi

# Samples that are not there any more.
mkdir "$TMP/lost"
zcat "$file" | grep -vE '"sample_sn":(5|6|7),' | gzip >"$TMP/lost/a-counters-1.jsonl.gz"
"$BIN" check "$TMP/lost" >"$TMP/check" || stop "a sound log is not sound for want of samples"
grep -q 'note  *3 samples of counters lost' "$TMP/check" ||
  stop "check does not miss samples: $(cat "$TMP/check")"

# ---- killed ----
rm -rf "$TMP/tree" "$TMP/series"
if [ -d "${NI_TEST_DATA:-../shared/data}/cassini" ]; then tree cxi before 2 -- host
else tree mlx5 mlx5_0 -- mlx5 mlx5_1 -- host; fi
NI_ROOT=$TMP/tree "$BIN" counters record --every 10ms --all "$TMP/series" 2>"$TMP/err2" & pid=$!
# A busy machine brings few samples into the first write.
has_samples() {
  [ -s "$(echo "$TMP"/series/*.gz)" ] && [ "$(series "$TMP"/series/*.gz | tail -n 1 | cut -d' ' -f2)" -gt 5 ]
}
wait_for 60 has_samples || stop "nothing is written"
kill -9 $pid
wait $pid 2>/dev/null || true
file=$(echo "$TMP"/series/*.gz)
gzip -t "$file" || stop "a killed recorder leaves half a member"
"$BIN" check "$TMP/series" | grep -q '^COMPLETE' || stop "a killed recorder's file is not sound"
[ "$(series "$file" | tail -n 1 | cut -d' ' -f2)" -gt 5 ] || stop "nothing in a killed recorder's file"

# ---- a folder that goes, and what cannot be ----
NI_ROOT=$TMP/tree "$BIN" counters record --every 10ms --all "$TMP/gone" 2>"$TMP/err3" & pid=$!
wait_for 30 grep -q 'counters of' "$TMP/err3" || stop "it does not begin"
rm -rf "$TMP/gone"
rc=0; wait $pid || rc=$?
[ $rc = 1 ] || stop "a folder that is gone: exit code $rc"
grep -q "the file is gone, or its folder" "$TMP/err3" || stop "a folder that is gone is not told"
rc=0; "$BIN" counters record --every 1ms "$TMP/none" 2>"$TMP/err4" || rc=$?
{ [ $rc = 64 ] && grep -q '10ms' "$TMP/err4"; } || stop "an interval that is too short: $rc"
rc=0; "$BIN" counters record --cpus 900-901 --for 100ms "$TMP/none" 2>"$TMP/err6" || rc=$?
{ [ $rc = 1 ] && grep -q -- '--cpus: none of these' "$TMP/err6" && [ ! -e "$TMP/none" ]; } ||
  stop "processors that are not there: $rc"
"$BIN" counters record --counters 'nosuch*' --for 100ms "$TMP/some" 2>"$TMP/err7" || true
grep -q -- '--counters nosuch\*: no counter here has such a name' "$TMP/err7" ||
  stop "a pattern that fits nothing is not told"

# ---- this machine ----
"$BIN" counters record --for 300ms --every 100ms "$TMP/here" 2>"$TMP/err5" ||
  { grep -q 'nothing to record' "$TMP/err5" && exit 0; stop "this machine: $?"; }
"$BIN" check "$TMP/here" | grep -q '^COMPLETE' || stop "this machine's series is not sound"
