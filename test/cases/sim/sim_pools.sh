#!/usr/bin/env bash
# The pool report agrees with the plugin's own figures, with growth and without.
. "$(dirname "$0")/../../lib/sim.sh"
for grow in 1 0; do
  for s in pool_fixed p2p; do
    NCCL_INSPECTOR_POOL_GROW=$grow NCCL_INSPECTOR_DUMP_DIR=$TMP/pools$grow$s "$SIM" --quiet --plugin \
      "$PLUGIN" \
      --scenario $s --pool-report --truth "$TMP/truth" >"$TMP/out" 2>"$TMP/err" || {
      fail "$s, growth $grow"; cat "$TMP/out" "$TMP/err"; }
    grep -q ' agrees$' "$TMP/out" || { fail "$s, growth $grow: no pool was judged"; }
  done
done
grep -E '^growth off; all pools together need [1-9][0-9]* slots' "$TMP/out" >/dev/null ||
  { cat "$TMP/out"; exit 1; }
finish
