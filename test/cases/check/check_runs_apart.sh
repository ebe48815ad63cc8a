#!/usr/bin/env bash
# Jobs that began together, attempts of one job, hosts whose clocks are minutes off, in one folder: runs are
# told apart, or it is said that they cannot be. All commands see the same runs.
. "$(dirname "$0")/../../lib/case.sh"
I=$BUILD/nccl-inspector
python3 test/lib/run_logs.py "$I" "$TMP" >"$TMP/out" || fail "$(cat "$TMP/out")"

made() { # NAME: into $TMP/logs; of two jobs `first` and `second` are how many operations they have
  rm -rf "$TMP/logs"
  mkdir "$TMP/logs"
  python3 test/lib/run_logs.py --write "$1" "$TMP/logs" >"$TMP/has"
  first=$(sed -n '1s/.* //p' "$TMP/has") second=$(sed -n '2s/.* //p' "$TMP/has")
}
summary() {
  "$I" summary "$TMP/logs" "$@" --no-index --output-dir "$TMP/made" --force --no-plots --no-html \
    --no-parquet --no-csv || true
}
# the logs have no ends: its exit code says that
look() { "$I" hang "$TMP/logs" --no-index --box-dir "$TMP/made" "$@" || true; }
says() { grep -q -- "$1" "$2" || fail "$made_of: no '$1': $(cat "$2")"; }

for made_of in "same hosts" "two attempts, the same hashes, a host 317 s ahead"; do
  made "$made_of"
  [ "$(summary --run 1 --json | jq .records)" = "$first" ] || fail "$made_of: summary --run 1"
  [ "$(summary --run 2 --json | jq .records)" = "$second" ] || fail "$made_of: summary --run 2"
  summary >"$TMP/text"
  says '^note: 2 runs in these logs' "$TMP/text"
done
made_of="same hosts"
made "$made_of"
look >"$TMP/text"
says '^2 runs in these logs, judged together: --run chooses one' "$TMP/text"
says '  run 2 (8 processes, from ' "$TMP/text"
[ "$(look --json | jq '.runs | length')" = 2 ] || fail "hang --json has no runs"
look --run 1 >"$TMP/text"
if grep -q 'runs in these logs' "$TMP/text"; then fail "hang --run 1 tells of others: $(cat "$TMP/text")"; fi
made_of="... that nothing tells"
made "$made_of"
"$I" check "$TMP/logs" --no-index >"$TMP/text" || true
says 'run 1 (.*; nothing tells it from run 2 for sure)' "$TMP/text"
look >"$TMP/text"
says 'run 1 (.*; nothing tells it from run 2 for sure)' "$TMP/text"
summary >"$TMP/text"
says 'for sure' "$TMP/text"

# Numbers that can be: an id that is of all logs, and each process that is missing once.
made_of="with job ids"
made "$made_of"
[ "$(summary --json | jq .job.id)" = null ] || fail "logs of two jobs have the id of one"
[ "$(summary --run 2 --json | jq -r .job.id)" = 2 ] || fail "one job of them has none"
made_of="ranks missing, no launcher's ranks"
made "$made_of"
[ "$({ "$I" check "$TMP/logs" --no-index --json || true; } | jq '.problems[] | select(.code == "ranks").count')" = 6 ] ||
  fail "of two jobs of 8 with 5 logs each 6 are missing: $("$I" check "$TMP/logs" --no-index | grep 'ranks missing')"
finish
