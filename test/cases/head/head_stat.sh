#!/bin/bash
# `session stat` on files of all forms: figures, differences, torn and damaged ones, pictures that are not
# empty.
. "$(dirname "$0")/../../lib/top.sh"
need python3
D=$TMP
I=$INSPECTOR
python3 test/lib/session_files.py "$D"
python3 test/lib/session_stat.py "$I" "$D"
"$I" session stat "$D/a.json" "$D/b.json" >"$D/beside"
grep -Eq 'bus bandwidth +GB/s +100 +200 +100 +\+100.0 % n0 77' "$D/beside" ||
  fail "no difference: $(cat "$D/beside")"
"$I" session stat "$D/a.json" >"$D/one"
# Slow rates have the unit that leaves a digit before the point; what is many times more is told so, and not
# in percent.
sed 's/"busbw_gb_s":100/"busbw_gb_s":0.00005/; s/"nic_rx":\[12.5\]/"nic_rx":[0.0005]/; s/"dram_util"/"disk_util":[30,31],"client_cpu":[3,4],&/; s/"oldest_s":0.5/"oldest_s":38725.9/' \
  "$D/a.json" >"$D/slow.json"
"$I" session stat "$D/slow.json" >"$D/slow.txt"
grep -Eq '^bus bandwidth +kB/s( +50\.0){5} n0 77$' "$D/slow.txt" || fail "a slow rate: $(cat "$D/slow.txt")"
grep -Eq '^NIC receive +kB/s( +500){5} n0:cxi0$' "$D/slow.txt" || fail "a slow NIC: $(cat "$D/slow.txt")"
grep -Eq '^oldest in flight s( +38,726){5} n0 77$' "$D/slow.txt" || fail "a long time: $(cat "$D/slow.txt")"
"$I" session stat "$D/slow.json" "$D/b.json" |
  grep -Eq '^bus bandwidth +GB/s 0.000050 +200 +200 +x 4.00 M n0 77$' || fail "many times as much"
grep -Eq 'GPU utilization +% +19.5 +0 +19.0 +37.0 +39.0 n0:0:NVIDIA' "$D/one" ||
  fail "no figures: $(cat "$D/one")"
for none in beside /dev/null; do
  rc=0
  "$I" session stat "$D/$none" 2>"$D/err" >/dev/null || rc=$?
  [ $rc = 1 ] || fail "$none: exit $rc"
done
[ "$("$I" session stat --plot x.gif "$D/a.json" 2>&1 >/dev/null | head -n 1 | grep -c 'want a file that ends with')" = 1 ] || fail ".gif is drawn"
# What a head left on the disk, without a head.
if [ -x "$BUILD/test/host/session_feed" ]; then
  mkdir "$D/feed"
  "$BUILD/test/host/session_feed" load "$D/feed" 2 2 5 1 fast >/dev/null
  cd "$D/feed"
  "$I" session recover | grep -Eq '^s0 .* no +2.* 10 +0 +0' || fail "recover: $("$I" session recover)"
  "$I" session export s0 2>"$D/err" && fail "s0.json was written over"
  "$I" session recover --name s0 --export "$D/again.json" && cmp "$D/again.json" s0.json ||
    fail "another file than at the end"
  "$I" session export none 2>>"$D/err" && fail "a session that is not there is exported"
  [ "$(grep -c 's0.json is there\|no such session' "$D/err")" = 2 ] || fail "$(cat "$D/err")"
  cd - >/dev/null
fi
if ! command -v gnuplot >/dev/null; then echo "no gnuplot: no pictures"; finish; fi
for end in png svg pdf; do "$I" session stat "$D/a.json" --plot "$D/it's one.$end" >/dev/null; done
"$I" session stat "$D/a.json" "$D/old.json" --plot "$D/two.svg" >/dev/null
for head in 'GPU utilization' 'GPU memory' PCIe NVLink 'NIC receive' 'bus bandwidth' 'in flight' \
  'age of numbers' 'oldest in flight'; do
  grep -q ">$head" "$D/it's one.svg" || fail "no panel $head"
done
# One unit an axis, and CPU, memory and disk have a panel.
"$I" session stat "$D/slow.json" --plot "$D/slow.svg" >/dev/null
for head in 'bus bandwidth, kB/s' 'NIC receive, kB/s' 'host memory, %' 'disk, %' 'CPU, %' \
  'oldest in flight'; do
  grep -q ">$head<" "$D/slow.svg" || fail "no panel $head"
done
tics() {
  grep -o '<tspan[^>]*>[^<]*</tspan>\|<text>[^<]*</text>' "$D/slow.svg" | sed 's/<[^>]*>//g' | tr '\n' ','
}
tics | grep -q 'bus bandwidth, kB/s' || fail "no tics: $(tics)"
if tics | grep -qE '[0-9]e[-+]?[0-9]'; then fail "exponents at an axis: $(tics)"; fi
head -c 5 "$D/it's one.pdf" | grep -q %PDF || fail "no PDF"
# Pixels of the first colour: lines were drawn.
python3 - "$D/it's one.png" <<'P' || fail "the picture is empty"
import struct, sys, zlib
data, at, rows = open(sys.argv[1], "rb").read(), 8, b""
while at < len(data):
    n, kind = struct.unpack(">I4s", data[at:at + 8])
    if kind == b"IHDR": width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
    if kind == b"IDAT": rows += data[at + 8:at + 8 + n]
    at += n + 12
rows = zlib.decompress(rows)
assert width == 1000 and height > 1000 and depth == 8, (width, height)
assert len(set(rows[i:i + 3000] for i in range(0, len(rows) - 3000, 3001))) > 200
P
[ -z "$(find "$D" -name '.tmp*')" ] || fail "hidden files are left"
finish
