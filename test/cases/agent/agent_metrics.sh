#!/usr/bin/env bash
# The agent's metrics as Prometheus reads them: promtool finds nothing to say, a strict reader of OpenMetrics
# neither; names that are hostile, more series than the limit, none at all; the table of docs/agent.md has all
# names, and no others.
. "$(dirname "$0")/../../lib/case.sh"
series() { # STATE FORM [names PAGE]: how many there are
  "$BUILD/test/unit/test_metrics" --print "$1" "$2" >"$TMP/$1.$2" || fail "$1 $2: exit $?"
  python3 test/lib/openmetrics.py "$2" "$TMP/$1.$2" \
    "${@:3}" >"$TMP/said" 2>&1 || { fail "$1 $2"; cat "$TMP/said"; }
  head -n 1 "$TMP/said"
}
for state in full hostile many empty; do
  open=$(series $state open)
  text=$(series $state text)
  [ "$open" = "$text" ] || fail "$state: $open series in OpenMetrics, $text in text"
  [ "$text" -le 5000 ] || fail "$state: $text series"
  if command -v promtool >/dev/null; then
    promtool check metrics <"$TMP/$state.text" >"$TMP/said" 2>&1 ||
      { fail "$state: promtool, exit $?"; cat "$TMP/said"; }
  fi
done
[ "$(grep -c '^nccl_inspector_agent_series_left_out{.*} 0.0$' "$TMP/full.text")" = 1 ] ||
  fail "full: something is left out"
series full open names docs/agent.md
# A reader of that name finds the text of the name: quotes and backslashes stand for themselves.
grep -qF 'job_id="a\"b\\c?d"' "$TMP/hostile.text" || fail "the name with quotes is not there"
# Not one byte that steers a terminal, and only UTF-8.
if LC_ALL=C grep -nP '[\x00-\x09\x0b-\x1f\x7f]' "$TMP/hostile.text" | head -n 3 | grep .; then
  fail "control characters"
fi
iconv -f UTF-8 -t UTF-8 "$TMP/hostile.text" >"$TMP/said" || fail "not UTF-8"
command -v promtool >/dev/null || skip "no promtool (package prometheus); the rest passed"
finish
