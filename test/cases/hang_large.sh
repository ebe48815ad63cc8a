#!/usr/bin/env bash
# A job of 1,024 ranks of which two are missing, from logs alone and from black boxes. 4,096 ranks: test/long/hang_4096.sh.
. "$(dirname "$0")/../lib/hang.sh"
GEN=$BUILD/test/host/hanggen
[ -x "$GEN" ] || { echo "$GEN is not built"; exit 77; }
ranks=${1:-1024}
for what in logs boxes; do
  "$GEN" "$TMP/$what" "$ranks" $what 80
  RC=0
  started=$(date +%s%N)
  "$INSPECTOR" hang "$TMP/$what" --box-dir "$TMP/none" --json >"$TMP/verdict" || RC=$?
  took=$((($(date +%s%N) - started) / 1000000))
  if [ "$RC" = 3 ] && python3 test/lib/hang_expect.py world "AllReduce 40" never_called=17,$((ranks - 4)) <"$TMP/verdict" >"$TMP/said"; then
    echo "ok   $ranks ranks from $what, $took ms: $(tail -n 1 "$TMP/said")"
  else
    fail "$what: exit code $RC, $(head -c 300 "$TMP/verdict")"
  fi
done
"$INSPECTOR" hang "$TMP/logs" "$TMP/boxes" >"$TMP/said" || true
grep -q "^HANG .*rank 17 (node-2) and rank $((ranks - 4)) .*everyone else ($((ranks - 2)) ranks) is inside" "$TMP/said" || fail "logs and boxes together"
rm "$TMP"/boxes/*-pid1005-*.box "$TMP"/boxes/*-pid101[0-9]-*.box
"$INSPECTOR" hang "$TMP/boxes" | sed -n 1,2p >"$TMP/said" || true
grep -q 'no data from 11 ranks (5, 10-19 of world)' "$TMP/said" || fail "ranks without data: $(cat "$TMP/said")"
finish
