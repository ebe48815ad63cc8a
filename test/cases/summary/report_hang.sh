#!/usr/bin/env bash
# The page of a job that hangs begins with what `hang` says and the command for more, as text whatever the
# names hold; that of a healthy one has no such box. In headless Chromium.
. "$(dirname "$0")/../../lib/case.sh"
BROWSER=${NI_CHROMIUM:-/usr/bin/chromium}
[ -x "$BROWSER" ] || skip "no /usr/bin/chromium (NI_CHROMIUM names another)"
[ -s "$BUILD/report/report_assets.tail" ] || skip "this build makes no report.html"
need python3
# page LOGS: the box as the browser has it.
page() {
  "$BUILD/nccl-inspector" summary -q --no-plots --no-parquet --force --output-dir "$TMP/out" "$1" \
    >/dev/null || true
  HOME=$TMP timeout 60 "$BROWSER" --headless --no-sandbox --disable-gpu --virtual-time-budget=3000 \
    --dump-dom "file://$TMP/out/report.html" \
    2>/dev/null | tr '\n' ' ' | grep -o '<div id="hang"[^>]*>.*<section id="s-complete"' || true
}
python3 test/lib/hang_plant.py "$TMP/a hang's logs" never A 0 >/dev/null
sed -i 's/"hostname":"node-\([0-9]\)"/"hostname":"<b>node-\1"/' "$TMP/a hang's logs"/*.jsonl
box=$(page "$TMP/a hang's logs")
[[ $box == '<div id="hang" class="banner bad" role="alert">HANG (likely): AllReduce '*' of communicator tp: no data from rank '*'&lt;b&gt;node-'* ]] ||
  fatal "the box: $box"
[[ $box == *"<code>nccl-inspector hang '$TMP/a hang'\\''s logs'</code>"* ]] || fatal "the command: $box"
mkdir "$TMP/two"
python3 test/lib/hang_logs.py "$TMP/two" - -
box=$(page "$TMP/two")
[[ $box == '<div id="hang" class="banner bad" role="alert" hidden="">'*'</div>'* ]] ||
  fatal "a healthy job: $box"
echo "ok"
