#!/usr/bin/env bash
# Flight Recorder dumps that nobody's PyTorch wrote: cut at every byte, with opcodes that would execute
# something, forged lengths, memos and marks, any value under any key, bytes changed, 10^6 entries. Each is
# refused with its reason or read.
. "$(dirname "$0")/../../lib/hang.sh"

# hostile WHAT PATTERN: an end in order, little text, with the pattern in it.
hostile() {
  local rc=0
  python3 test/lib/flight_hostile.py "$TMP/$1" "$1"
  timeout 60 "$INSPECTOR" hang "$TMP/$1" --box-dir "$BOXES" >"$TMP/text" 2>&1 || rc=$?
  if [ $rc -gt 4 ] || grep -q "Sanitizer\|runtime error" "$TMP/text" ||
    [ "$(wc -c <"$TMP/text")" -gt 65536 ] || ! grep -q "$2" "$TMP/text"; then
    fail "hostile $1: exit status $rc, $(head -c 400 "$TMP/text")"
  else
    echo "ok   hostile $1: exit status $rc, $(head -c 100 "$TMP/text" | head -n 1)"
  fi
}
hostile cuts "no Flight Recorder dump, or a part of one"
for op in global:c:0x63 reduce:R:0x52 stack_global:x:0x93; do
  [ -d "$TMP/opcodes" ] || hostile opcodes "opcode 0x"
  rc=0
  "$INSPECTOR" hang "$TMP/opcodes/${op%%:*}_2" --box-dir "$BOXES" >"$TMP/text" 2>&1 || rc=$?
  { [ $rc = 1 ] && grep -q "${op%%:*}_2: opcode ${op##*:}.*nothing is executed.*_dump_nccl_trace_json" "$TMP/text"; } || fail "$op: $rc, $(cat "$TMP/text")"
done
hostile forged .
hostile random .
hostile many "Flight Recorder dump"
hostile values "more than 8388608 values"
finish
