#!/usr/bin/env bash
# What a command was asked to write and cannot: exit code 1 and a message that names it and says why, also
# where all else is written.
. "$(dirname "$0")/../../lib/case.sh"
recording=$(realpath -m "${NI_TEST_DATA:-../shared/data}")/kineto/rank0-of-2.json.gz
cd "$TMP"
"$BUILD/test/host/loggen" logs --ranks 2 --node 2 --ops 300 --format ours --comm-name
: >file
page=$([ -s "$BUILD/report/report_assets.tail" ] && echo 1 || true) # else this build makes no pages

# unwritten WHAT COMMAND...: exit code 1, and WHAT begins what the last line of standard error says after the
# command's name.
# MOST: kilobytes that a file may have.
unwritten() {
  local what=$1 rc=0
  shift
  (ulimit -f "${MOST:-unlimited}" && exec "$INSPECTOR" "$@") >stdout 2>stderr || rc=$?
  [ $rc = 1 ] || fail "exit code $rc, wanted 1: $*"
  [[ $(tail -n 1 stderr) == "nccl-inspector $1: $what"* ]] || fail "$*: no word of $what: $(tail -n 1 stderr)"
}

# ---- a path below a file: nobody may make a folder there, root neither ----
for to in file/x file/x/y; do
  unwritten "$to: Not a directory" summary logs --no-index --output-dir $to
  unwritten "$to" summary logs --no-index --partial $to
  unwritten "$to: Not a directory" trace logs --no-index --output $to
  unwritten "$to: Not a directory" convert logs --pfw $to
  unwritten "$to: Not a directory" convert logs --bulk $to
  unwritten "$to: Not a directory" convert logs --dataset $to
  [ -z "$page" ] || unwritten "$to: Not a directory" diff logs logs --html $to
  unwritten "--output $to: Not a directory" snapshot --box-dir "$TMP" --output $to
  unwritten "the index of logs is not written: $to: Not a directory" index logs --index-dir $to
done

# ---- a disk without room, as a limit on the size of a file ----
trap '' XFSZ # else the limit would end us
for more in "" --json "--format nccl-tests" --quiet; do
  [ -n "$page" ] || break
  rm -rf out
  # shellcheck disable=SC2086
  MOST=200 unwritten "out/report.html: File too large" summary logs --no-index --only page --output-dir out \
    $more
  [ ! -e out/report.html ] && [ -s out/summary/summary.json ] && [ -s stdout ] ||
    fail "no page, and not all else: $more"
  grep -q 'ERROR - report.html: File too large' out/output.log ||
    fail "output.log does not say why there is no page"
done
rm -rf out
MOST=2 unwritten "out/summary/summary.csv: File too large" summary logs --no-index --only tables \
  --output-dir out
[ ! -e out ] || fail "half a result: $(ls out)"
MOST=2 unwritten "t.json: File too large" trace logs --no-index --output t.json
MOST=2 unwritten "x.nd: File too large" convert logs --bulk x.nd
[ -z "$page" ] || MOST=2 unwritten "d.html: File too large" diff logs logs --html d.html
[ ! -e "$recording" ] || MOST=1 unwritten "imported: File too large" import kineto "$recording" --out imported
[ ! -e t.json ] && [ ! -e x.nd ] && [ ! -e d.html ] || fail "half a file"
trap - XFSZ

# ---- standard output ----
if [ -w /dev/full ]; then
  said() { # COMMAND...
    local rc=0
    "$INSPECTOR" "$@" >/dev/full 2>stderr || rc=$?
    [ $rc = 1 ] && grep -q '^nccl-inspector: standard output: No space left on device$' stderr ||
      fail "exit code $rc on a full disk: $*"
  }
  for command in --help "summary --help" --version "completion bash" "check logs" \
    "check logs --json" "show --pattern logs" \
    "summary logs --only tables --output-dir out" "summary logs --only tables --output-dir out --json" \
    "diff logs logs" "hang logs"; do
    # shellcheck disable=SC2086
    said $command
  done
fi

# ---- pictures on a full disk: gnuplot says nothing of those that it could not write ----
mkdir small
command -v gnuplot >/dev/null && mount -t tmpfs -o size=400k ni-test small 2>/dev/null ||
  finish "without pictures"
at_exit 'umount "$TMP/small" 2>/dev/null || true'
unwritten "small/out/summary (pictures): No space left on device" summary logs --no-index --only plots \
  --output-dir small/out
[ -s small/out/summary/summary.json ] && [ -n "$(find small -name '*.png' -print -quit)" ] ||
  fail "not all else: $(find small)"
find small -name '*.png' | while read -r f; do
  tail -c 8 "$f" | grep -qa IEND || { echo "$f: half a picture"; exit 1; }
done || fail "a picture that ends in the middle"
finish
