#!/usr/bin/env bash
# What the agent sends by OTLP arrives, and is sent again exactly when the specification says so; foreign code reads it, too.
set -euo pipefail
cd "$(dirname "$0")/../../.."
BUILD=${BUILD:-build}
export no_proxy='*'
driver=$BUILD/test/host/otlp_send
[ -x "$driver" ] || { echo "$driver is not built: it needs libmicrohttpd, libcurl and ncurses"; exit 77; }
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
proto=$BUILD/opentelemetry-proto
if [ ! -e "$proto/opentelemetry" ]; then
  TMP=$(mktemp -d)
  trap 'rm -rf "$TMP"' EXIT
  if python3 -m pip install -q --disable-pip-version-check --target "$TMP/proto" opentelemetry-proto >"$TMP/pip" 2>&1; then
    mv "$TMP/proto" "$proto" 2>/dev/null || true
  else
    python3 test/lib/otlp.py "$driver"
    echo "all but foreign code that decodes it: no opentelemetry-proto from pip ($(tail -n 1 "$TMP/pip"))"
    exit 77
  fi
fi
python3 test/lib/otlp.py "$driver" "$proto"
