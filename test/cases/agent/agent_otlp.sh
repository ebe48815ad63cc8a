#!/usr/bin/env bash
# What the agent sends by OTLP arrives, and is sent again exactly when the specification says so; foreign code
# reads it, too.
. "$(dirname "$0")/../../lib/case.sh"
export no_proxy='*'
driver=$BUILD/test/host/otlp_send
[ -x "$driver" ] || skip "$driver is not built: it needs libmicrohttpd, libcurl and ncurses"
need python3
proto=$BUILD/opentelemetry-proto
if [ ! -e "$proto/opentelemetry" ]; then
  if python3 -m pip install -q --disable-pip-version-check --target "$TMP/proto" opentelemetry-proto \
    >"$TMP/pip" 2>&1; then
    mv "$TMP/proto" "$proto" 2>/dev/null || true
  else
    python3 test/lib/otlp.py "$driver"
    skip "all but foreign code that decodes it: no opentelemetry-proto from pip ($(tail -n 1 "$TMP/pip"))"
  fi
fi
python3 test/lib/otlp.py "$driver" "$proto"
