#!/usr/bin/env bash
# The page of a job that hangs begins with what `hang` says and the command for more, as text whatever the names hold; that of a
# healthy one has no such box. In headless Chromium.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=$(realpath -m "${BUILD:-build}")
BROWSER=${NI_CHROMIUM:-/usr/bin/chromium}
skip() { echo "$1"; exit 77; }
[ -x "$BROWSER" ] || skip "no /usr/bin/chromium (NI_CHROMIUM names another)"
[ -s "$BUILD/report/report_assets.tail" ] || skip "this build makes no report.html"
command -v python3 >/dev/null || skip "no python3"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# page LOGS: the box as the browser has it.
page() {
  "$BUILD/nccl-inspector" summary -q --no-plots --no-parquet --force --output-dir "$work/out" "$1" >/dev/null || true
  HOME=$work timeout 60 "$BROWSER" --headless --no-sandbox --disable-gpu --virtual-time-budget=3000 --dump-dom "file://$work/out/report.html" \
    2>/dev/null | tr '\n' ' ' | grep -o '<div id="hang"[^>]*>.*<section id="s-complete"' || true
}
python3 test/lib/hang_plant.py "$work/a hang's logs" never A 0 >/dev/null
sed -i 's/"hostname":"node-\([0-9]\)"/"hostname":"<b>node-\1"/' "$work/a hang's logs"/*.jsonl
box=$(page "$work/a hang's logs")
[[ $box == '<div id="hang" class="banner bad" role="alert">HANG (likely): AllReduce '*' of communicator tp: no data from rank '*'&lt;b&gt;node-'* ]] ||
  { echo "FAIL the box: $box"; exit 1; }
[[ $box == *"<code>nccl-inspector hang '$work/a hang'\\''s logs'</code>"* ]] || { echo "FAIL the command: $box"; exit 1; }
mkdir "$work/two"
python3 test/lib/hang_logs.py "$work/two" - -
box=$(page "$work/two")
[[ $box == '<div id="hang" class="banner bad" role="alert" hidden="">'*'</div>'* ]] || { echo "FAIL a healthy job: $box"; exit 1; }
echo "ok"
