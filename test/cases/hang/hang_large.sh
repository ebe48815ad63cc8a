#!/usr/bin/env bash
# A job of 1,024 ranks of which two are missing, from logs alone and from black boxes. 4,096 ranks:
# test/long/hang_4096.sh.
. "$(dirname "$0")/../../lib/hang.sh"
GEN=$BUILD/test/host/hanggen
mkdir "$TMP/none"
need "$GEN"
ranks=${1:-1024}
for what in logs boxes; do
  "$GEN" "$TMP/$what" "$ranks" $what 80
  started=$(date +%s%N)
  look_at "$TMP/$what" --box-dir "$TMP/none"
  took=$((($(date +%s%N) - started) / 1000000))
  checked "$ranks ranks from $what, $took ms" 3 expect world "AllReduce 40" never_called=17,$((ranks - 4))
done
"$INSPECTOR" hang "$TMP/logs" "$TMP/boxes" >"$TMP/said" || true
grep -q "^HANG .*rank 17 (node-2) and rank $((ranks - 4)) .*everyone else ([0-9,]* ranks) is inside" \
  "$TMP/said" || fail "logs and boxes together"
rm "$TMP"/boxes/*-pid1005-*.box "$TMP"/boxes/*-pid101[0-9]-*.box
"$INSPECTOR" hang "$TMP/boxes" | sed -n 1,2p >"$TMP/said" || true
grep -q 'no data from 11 ranks (5, 10-19 of world)' "$TMP/said" ||
  fail "ranks without data: $(cat "$TMP/said")"
finish
