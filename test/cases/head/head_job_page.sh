#!/usr/bin/env bash
# The page of a real head in headless Chromium: its nodes, charts, sessions by its buttons, a hang, the head
# killed meanwhile (test/lib/head_page.py).
. "$(dirname "$0")/../../lib/head.sh"
. test/lib/browser.sh
[ -e "$BUILD/test/nvml/libnvidia-ml.so.1" ] || skip "no fake NVML is built"
python3 test/lib/head_page.py "${PICTURES:-}" node "$tool/head.mjs"
