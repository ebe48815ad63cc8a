#!/usr/bin/env bash
# nccl_inspector.net_prof and the real net_prof, on the same files: the same results, to the last difference.
. "$(dirname "$0")/../../lib/python.sh"
. test/lib/netprof.sh
export NI_TEST_DATA=${NI_TEST_DATA:-../shared/data}
[ -e "$NI_TEST_DATA/cassini/before.txt.gz" ] || skip "no $NI_TEST_DATA/cassini"
missing=
for version in 0.1.11 0.1.6; do
  netprof_of $version ||
    missing="the comparison with net_prof $version, which cannot be had: $(tail -n 1 "$TMP/pip")"
done
"$PY" test/lib/python/net_prof_same.py "$BUILD" "$TMP" "${1:-short}"
[ -z "$missing" ] || skip "all but $missing"
