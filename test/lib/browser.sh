# For cases with a real browser, behind test/lib/case.sh: skips where there is none; sets tool, where
# test/browser/*.mjs and playwright-core are.
# shellcheck shell=bash
[ -x "${NI_CHROMIUM:-/usr/bin/chromium}" ] || skip "no /usr/bin/chromium (NI_CHROMIUM names another)"
command -v npm >/dev/null && command -v node >/dev/null || skip "no npm or no node"
[ -s "$BUILD/report/report_assets.tail" ] || skip "this build makes no pages"
tool=$BUILD/browser
mkdir -p "$tool"
cp test/browser/*.json test/browser/*.mjs "$tool/"
if ! cmp -s "$tool/package-lock.json" "$tool/installed.json"; then
  (cd "$tool" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) >"$tool/npm.log" 2>&1 ||
    skip "npm could not get playwright-core ($tool/npm.log)"
  cp "$tool/package-lock.json" "$tool/installed.json"
fi
