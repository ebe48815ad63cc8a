#!/usr/bin/env bash
# Results of two folders of logs that are called the same have one name, on which scripts rely: where one takes
# the place of the other, that is said. Of the same logs again nothing is. A timeline in the place of an earlier
# one says so.
. "$(dirname "$0")/../../lib/case.sh"
loggen=$BUILD/test/host/loggen
need "$loggen" "$INSPECTOR"
cd "$TMP"
mkdir a b
for of in a b; do "$loggen" $of/logs --ranks 2 --node 2 --ops 20 --format ours --gzip >/dev/null; done
summary() { "$INSPECTOR" summary "$@" --only tables >text 2>err || [ $? = 2 ] || fail "summary $*: $(cat err)"; }
summary a/logs
[ -e logs-analysis/summary/summary.json ] && [ ! -s err ] || fail "the plain name: $(ls) $(cat err)"
summary b/logs
gone='nccl-inspector summary: the result in logs-analysis was of other logs, and is gone; --output-dir keeps both'
grep -qxF "$gone" err || fail "that is not said: $(cat err)"
summary a/logs --json
grep -qxF "$gone" err || fail "with --json it is not said: $(cat err)"
for again in a/logs "$TMP/a/logs/" a/logs/*.gz; do
  [ -n "${again##*.gz}" ] && summary "$again" || summary a/logs/*.gz
  [ ! -s err ] || fail "the same logs again: $(cat err)"
  grep -qx 'all of it in place of the earlier result in logs-analysis, which is gone; --output-dir names another folder' \
    text || fail "the same logs, in place of what? $(cat text)"
done
[ "$(find . -maxdepth 1 -name 'logs-analysis*' | wc -l)" = 1 ] || fail "too many: $(ls)"
summary b/logs --output-dir logs-analysis
grep -q '^all of it in place of the earlier result in logs-analysis, which is gone (it was of other logs);' text ||
  fail "a folder that is named: $(tail -n 1 text)"
# What an earlier version has left says nothing of its logs, and is replaced as it was.
echo "Written by nccl-inspector summary." >logs-analysis/.nccl-inspector-output
summary a/logs
[ ! -s err ] && grep -q '^all of it in place of the earlier result in logs-analysis, which is gone;' text ||
  fail "of an earlier version: $(cat err text)"
# NVIDIA's exporter has one name.
"$INSPECTOR" summary b/logs --compat >text 2>&1 || fail "--compat: $(cat text)"
grep -qx 'Output directory: logs-analysis' text || fail "--compat: $(cat text)"

"$INSPECTOR" trace a/logs >text 2>&1 || [ $? = 2 ] || fail "trace: $(cat text)"
grep -q 'in place of' text && fail "there was none before: $(cat text)"
"$INSPECTOR" trace b/logs >text 2>&1 || [ $? = 2 ] || fail "trace: $(cat text)"
grep -qx ' *in place of an earlier timeline, which is gone; -o FILE names another file' text ||
  fail "in place of a timeline: $(cat text)"
finish
