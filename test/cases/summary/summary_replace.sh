#!/usr/bin/env bash
# An earlier result stays whole where a later one cannot be put in its place, or is killed meanwhile.
. "$(dirname "$0")/../../lib/case.sh"
loggen=$BUILD/test/host/loggen
need "$loggen" "$BUILD/test/fail_rename.so"
cd "$TMP"
"$loggen" first --ranks 2 --node 2 --ops 20 --format ours
"$loggen" second --ranks 2 --node 2 --ops 30 --format ours
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
run() { # HOW N|NAME: a result of `second` in place of what is there
  RC=0
  env LD_PRELOAD="$BUILD/test/fail_rename.so" "NI_RENAME_$1=$2" "$INSPECTOR" summary second --output-dir out \
    --no-plots --force >text 2>&1 || RC=$?
}
hidden() { find out -maxdepth 1 -name '.tmp-*'; }
"$INSPECTOR" summary first --output-dir whole --no-plots --no-html --no-parquet >text 2>&1 ||
  fatal "summary: $(cat text)"
! grep -q 'earlier result' text || fail "there was none before: $(cat text)"
rm -rf whole/summary/*.csv # what the later result has, and this one does not: parquet_files, report.html
n=0
for how in FAILS KILLS; do
  for ((n = 1; n < 60; n++)); do
    rm -rf out
    cp -a whole out
    run $how $n
    [ $RC != 0 ] || break
    # The next run finds what a kill has left; it fails itself, and so leaves what there was.
    [ $how = FAILS ] || run NEVER old-output.log
    diff -r whole out >differs || { fail "$how $n: the earlier result is not as it was:"; cat differs text; }
    [ -z "$(hidden)" ] || fail "$how $n: left: $(hidden)"
  done
  [ $n -gt 6 ] && [ $n -lt 60 ] || fail "$how: $n renames mean nothing"
  grep -q '^all of it in place of the earlier result in out, which is gone' text ||
    fail "what is gone is not said: $(cat text)"
  [ -e out/report.html ] || fail "$how: the later result did not come"
  [ -z "$(hidden)" ] || fail "$how: left by the run that came through: $(hidden)"
done
finish "each of $((n - 1)) renames failed, and was killed before"
