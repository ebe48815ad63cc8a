#!/bin/bash
# Golden output: test/golden/<case>/ holds args (run in that folder), stdout.exact and rc. NI_GOLDEN_UPDATE=1 rewrites.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
BIN=$(realpath -e "${NI_BIN:-$BUILD/nccl-inspector}") || { echo "no nccl-inspector: make first"; exit 1; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0 n=0
for dir in test/golden/*/; do
  [ -f "$dir/args" ] || continue
  n=$((n + 1)) rc=0
  # shellcheck disable=SC2046
  (cd "$dir" && LC_ALL=C TZ=UTC "$BIN" $(cat args)) >"$out" 2>/dev/null || rc=$?
  if [ "${NI_GOLDEN_UPDATE:-0}" = 1 ]; then
    cp "$out" "$dir/stdout.exact" && echo "$rc" >"$dir/rc"
  elif [ "$rc" != "$(cat "$dir/rc")" ] || ! diff -u "$dir/stdout.exact" "$out"; then
    echo "FAILED $dir: exit code $rc, wanted $(cat "$dir/rc")"
    failed=1
  fi
done
[ "$n" -gt 0 ] || { echo "no golden cases found"; exit 1; }
echo "$n golden cases"
exit $failed
