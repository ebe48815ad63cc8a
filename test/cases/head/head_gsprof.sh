#!/usr/bin/env bash
# The command gsprof as its users call it, each command against a head that was begun by it (test/lib/head_gsprof.py).
set -euo pipefail
. "$(dirname "$0")/../../lib/head.sh"
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || { echo "no fake NVML is built"; exit 77; }
mkdir "$WORK/bin"
ln -s "$INSPECTOR" "$WORK/bin/gsprof"
python3 test/lib/head_gsprof.py "$WORK/bin/gsprof"
