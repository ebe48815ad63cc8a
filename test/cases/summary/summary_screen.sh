#!/usr/bin/env bash
# The first screen: one line of whose logs these are, then what stands out, then operations, last what is said
# of the logs; no number that cannot be: a rank that is missing in several communicators is one, two jobs are
# two, times have units that fit.
. "$(dirname "$0")/../../lib/case.sh"
loggen=$BUILD/test/host/loggen
summary() { "$INSPECTOR" summary "$@" --no-plots --no-html --no-parquet --no-csv || [ $? = 2 ]; }
"$loggen" "$TMP/job" --ranks 8 --node 4 --ops 60 --format ours --ext .jsonl
summary "$TMP/job" --output-dir "$TMP/out" >"$TMP/text"
head -n 1 "$TMP/text" | grep -qE '^job 77, python3: 2 hosts, 8 ranks, [0-9.]+ m?s, COMPLETE$' ||
  fail "the first line: $(head -n 1 "$TMP/text")"
order=$(grep -nE 'stands? out|^ *time .*type|^the logs:|^written:' "$TMP/text" | cut -d: -f1 | tr '\n' ' ')
[ "$(wc -w <<<"$order")" = 4 ] &&
  [ "$(tr ' ' '\n' <<<"$order" | sort -n | tr '\n' ' ' | xargs)" = "$(xargs <<<"$order")" ] ||
  fail "the order of the screen: $order: $(cat "$TMP/text")"

# Half of the ranks of several communicators have no log, and no line says how many ranks the job has.
"$loggen" "$TMP/half" --ranks 8 --node 8 --ops 60 --format v4.0 --ext .jsonl
for f in "$TMP"/half/*; do
  sed -n 's/"id":"0x5/"id":"0x6/p' "$f" >"$TMP/more"
  cat "$TMP/more" >>"$f"
done
find "$TMP/half" -type f | sort | tail -n 4 | xargs rm
summary "$TMP/half" --output-dir "$TMP/out" >"$TMP/text"
head -n 1 "$TMP/text" | grep -q ' 4 of 8 ranks, .*, INCOMPLETE$' ||
  fail "half of the ranks: $(head -n 1 "$TMP/text")"
grep -q '^INCOMPLETE: 4 ranks missing: ' "$TMP/text" || fail "a rank counts once: $(cat "$TMP/text")"

# Two jobs in one folder.
mkdir "$TMP/two"
cp "$TMP"/job/* "$TMP/two"
for f in "$TMP"/job/*; do
  sed 's/"pid":4/"pid":5/; s/"start_ns":179/"start_ns":180/; s/"id":"0x[57]/"id":"0x9/; s/"77"/"78"/' "$f" \
    >"$TMP/two/again-$(basename "$f")"
done
summary "$TMP/two" --output-dir "$TMP/out" >"$TMP/text"
head -n 1 "$TMP/text" | grep -q '^2 jobs (77 and 78), python3: 2 hosts, 16 ranks in all, ' ||
  fail "two jobs: $(head -n 1 "$TMP/text")"
summary "$TMP/two" --run 78 --output-dir "$TMP/out" >"$TMP/text"
head -n 1 "$TMP/text" | grep -q '^job 78, python3: 2 hosts, 8 ranks, ' ||
  fail "one of them: $(head -n 1 "$TMP/text")"

# Operations of 38.7 s.
mkdir "$TMP/long"
for f in "$TMP"/job/*; do
  sed -E 's/"coll_exec_time_us": ?[0-9]+/"coll_exec_time_us": 38725916/; s/"coll_exec_time_ns": ?[0-9]+/"coll_exec_time_ns": 38725915900/' "$f" >"$TMP/long/$(basename "$f")"
done
summary "$TMP/long" --output-dir "$TMP/out" >"$TMP/text"
grep -qE 'kernel_gpu +38\.7 s +38\.7 s ' "$TMP/text" || fail "a unit that fits: $(grep kernel "$TMP/text")"
finish
