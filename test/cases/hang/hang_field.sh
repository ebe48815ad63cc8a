#!/usr/bin/env bash
# Hangs that people have reported: each folder of field-cases/ has the inputs and says what is right.
. "$(dirname "$0")/../../lib/hang.sh"
CASES=$(realpath -m "${NI_FIELD_CASES:-../shared/field-cases}")
[ -d "$CASES" ] || skip "no folder of field cases ($CASES): NI_FIELD_CASES names it"
ROOT=$TMP/prod
mkdir "$ROOT"
chmod 755 "$TMP" "$ROOT" # one case runs as another user
ln -s "$BUILD" "$ROOT/build"
for number in 01 06 08 15; do
  run=$(find "$CASES" -path "*/$number-*/run.sh" | head -n 1)
  [ -n "$run" ] || { fail "case $number: no run.sh"; continue; }
  [ $number != 15 ] || [ "$(id -u)" = 0 ] || { echo "case 15: left out, needs root"; continue; }
  rc=0
  PROD=$ROOT timeout 120 "$run" >"$TMP/out" 2>&1 || rc=$?
  if [ $rc = 0 ]; then echo "ok   $(basename "$(dirname "$run")")"; else fail "$(basename "$(dirname "$run")"): exit status $rc"; cat "$TMP/out"; fi
done
finish
