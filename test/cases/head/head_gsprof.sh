#!/usr/bin/env bash
# The command gsprof as its users call it, each command against a head that was begun by it
# (test/lib/head_gsprof.py).
. "$(dirname "$0")/../../lib/head.sh"
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || skip "no fake NVML is built"
mkdir "$TMP/bin"
ln -s "$INSPECTOR" "$TMP/bin/gsprof"
python3 test/lib/head_gsprof.py "$TMP/bin/gsprof"
