#!/bin/bash
# Golden output: test/golden/<case>/ holds args (run in that folder), stdout.exact and rc. NI_GOLDEN_UPDATE=1
# rewrites.
. "$(dirname "$0")/../../lib/case.sh"
BIN=$(realpath -e "${NI_BIN:-$BUILD/nccl-inspector}") || fatal "no nccl-inspector: make first"
out=$TMP/out
n=0
for dir in test/golden/*/; do
  [ -f "$dir/args" ] || continue
  n=$((n + 1)) rc=0
  # shellcheck disable=SC2046
  (cd "$dir" && LC_ALL=C TZ=UTC "$BIN" $(cat args)) >"$out" 2>/dev/null || rc=$?
  if [ "${NI_GOLDEN_UPDATE:-0}" = 1 ]; then
    cp "$out" "$dir/stdout.exact" && echo "$rc" >"$dir/rc"
  elif [ "$rc" != "$(cat "$dir/rc")" ] || ! diff -u "$dir/stdout.exact" "$out"; then
    fail "$dir: exit code $rc, wanted $(cat "$dir/rc")"
  fi
done
[ "$n" -gt 0 ] || fatal "no golden cases found"
echo "$n golden cases"
finish
