#!/usr/bin/env bash
# bundle.sh FOLDER: makes FOLDER/{report,counters,diff,head}_assets.head and report_assets.tail from src/ and package-lock.json, and of
# the packages in them licences/ and bundled.json.
# Never fails for want of npm or of a network: then the pieces are empty and one line says why.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$1
mkdir -p "$out"
out=$(cd "$out" && pwd)

without() {
  echo "report.html: $1; this build makes no page (exporter/output/report/report.mk says what it takes)" >&2
  : >"$out/report_assets.head"
  : >"$out/counters_assets.head"
  : >"$out/diff_assets.head"
  : >"$out/head_assets.head"
  : >"$out/report_assets.tail"
  rm -rf "$out/licences" "$out/bundled.json" # of a page that was made before
  exit 0
}
command -v npm >/dev/null && command -v node >/dev/null || without "no npm or no node found"

work=$out/bundle
rm -rf "$work"
mkdir -p "$work"
trap 'rm -rf "$work"' EXIT # the packages take 80 MB
cp -r "$here"/package.json "$here"/package-lock.json "$here"/bundle.mjs "$here"/src "$work"/
# Without a network npm would try for minutes, and again at every make.
patience="--fetch-retries=1 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=3000 --fetch-timeout=20000"
# shellcheck disable=SC2086
if ! (cd "$work" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error $patience) >"$out/npm.log" 2>&1; then
  without "npm ci failed ($out/npm.log)"
fi
# From here on an error is a defect of the page and fails the build.
(cd "$work" && node bundle.mjs "$out")
