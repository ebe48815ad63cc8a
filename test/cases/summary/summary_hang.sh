#!/usr/bin/env bash
# Logs with operations that never finished: the summary says what `hang` says of them, on the terminal, in
# summary.json and in the page's data, with the same bytes tomorrow. Logs of a healthy job, also of one that
# was slow for a while, have nothing of it.
. "$(dirname "$0")/../../lib/case.sh"
I=$BUILD/nccl-inspector
need "$I"
need python3
# Its words, less how long ago something was.
hang_says() { { "$I" hang --json --box-dir "$TMP" "$1" || true; } | python3 -c 'import json, re, sys
print(re.sub(r" \([0-9]+ [a-z]+ ago\)", "", json.load(sys.stdin)["sentence"]))'; }

# says NAME LOGS VERDICT PATTERN
says() {
  local name=$1 logs=$2 verdict=$3 sentence
  sentence=$(hang_says "$logs")
  [[ $sentence =~ $4 ]] || fail "$name: hang says $sentence"
  for out in a b; do
    "$I" summary --no-plots --no-parquet --force --output-dir "$TMP/$out" "$logs" >"$TMP/text" 2>&1 || true
  done
  cmp -s "$TMP/a/summary/summary.json" "$TMP/b/summary/summary.json" ||
    fail "$name: another summary.json the second time"
  grep -qxF -- "$sentence" "$TMP/text" && grep -qxF "     next: $I hang $logs" "$TMP/text" ||
    fail "$name: the terminal does not say it: $(cat "$TMP/text")"
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1]))["hang"]; assert d == {"verdict": sys.argv[2], "sentence": sys.argv[3]}, d' \
    "$TMP/a/summary/summary.json" "$verdict" "$sentence" || fail "$name: summary.json"
  [ ! -e "$TMP/a/report.html" ] || grep -qF -- "\"hang\":\"$sentence\"" "$TMP/a/report.html" ||
    fail "$name: the page's data"
  echo "ok   $name: $sentence"
}
# silent NAME LOGS
silent() {
  "$I" summary --no-plots --no-parquet --force --output-dir "$TMP/a" "$2" >"$TMP/text" 2>&1 || true
  ! grep -q 'HANG\|DEAD\|next: .* hang ' "$TMP/text" || fail "$1: the terminal: $(cat "$TMP/text")"
  ! grep -q '"hang":' "$TMP/a/summary/summary.json" || fail "$1: summary.json"
  [ ! -e "$TMP/a/report.html" ] || ! grep -q '"hang":"' "$TMP/a/report.html" || fail "$1: the page's data"
  echo "ok   $1"
}

python3 test/lib/hang_plant.py "$TMP/late" late B 1 >/dev/null
says "a rank that never came" "$TMP/late" likely '^HANG \(likely\): ReduceScatter 3 of communicator dp: no data from rank '
mkdir "$TMP/killed"
python3 test/lib/hang_logs.py "$TMP/killed" AllReduce AllReduce 1
rm "$TMP"/killed/*-pid20?.jsonl
says "killed while it hung" "$TMP/killed" likely '^HANG .* by now both processes are gone .*, last sign of life 2026-09-21T14:18:32Z$'
sed -i 's/"enqueue_ns":1790000012000000000/"enqueue_ns":1790000311000000000/' "$TMP"/killed/*.jsonl
says "killed" "$TMP/killed" dead '^DEAD \(2 ranks, 1 communicator\): both processes are gone .*; in flight then: AllReduce 20 '
mkdir "$TMP/two"
python3 test/lib/hang_logs.py "$TMP/two" - -
silent "nothing in flight" "$TMP/two"
# It went on after the line that said it was stuck.
python3 test/lib/hang_logs.py "$TMP/two" AllReduce AllReduce
for f in "$TMP"/two/*.jsonl; do
  grep '"coll_sn":19' "$f" | sed 's/"coll_sn":19/"coll_sn":20/; s/"rec_sn":19/"rec_sn":20/; s/"dump_timestamp_us":[0-9]*/"dump_timestamp_us":1790000313000000/' >>"$f"
done
silent "slow, and it went on" "$TMP/two"
finish
