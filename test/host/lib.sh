# For test/cases/{fault,life,load,hostile}_*.sh: run the scripted host (test/host/host.c) against the plugin,
# compare its logs with what it did. Sourced; sets HOST and BOXES (0: there is no /dev/shm), beside what
# test/lib/case.sh has.
# shellcheck shell=bash
. "$(dirname "${BASH_SOURCE[0]}")/../lib/case.sh"
HOST=$BUILD/test/host/host
need "$HOST" "$PLUGIN"
own_boxes

# The address sanitizer of gcc 12 takes no care of its allocator's locks at fork(): a child that allocates
# while a thread of the parent did may wait for ever. Children that start anew (fork ... init) are left to the
# other builds.
own_init() { [ "$VARIANT" != asan ]; }

# The plugin frees nothing at exit, because callbacks may still run; preloaded objects come before the
# sanitizer's.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0:verify_asan_link_order=0:abort_on_error=0:exitcode=99}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=0:exitcode=99:die_after_fork=0:report_thread_leaks=0}

# host [NAME=value ...] verbs...: runs the script. Leaves $TMP/logs, $TMP/truth, $TMP/out and NCCL's log in
# $TMP/nccl.log.
host() {
  local -a vars=()
  while [[ $1 == *=* ]]; do vars+=("$1"); shift; done
  rm -rf "$TMP/logs" "$TMP/truth" "$TMP/nccl.log"
  env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_BLACKBOX="$BOXES" \
    HOST_LOG="$TMP/nccl.log" "${vars[@]}" \
    timeout --kill-after=2 "${LIMIT:-60}" "$HOST" "$PLUGIN" "$TMP/truth" "$@" >"$TMP/out" 2>&1
}

# run NAME [NAME=value ...] verbs... : the host must end with status $RC (default 0).
run() {
  local name=$1 rc=0
  shift
  CASE=$name
  { host "$@"; } 2>/dev/null || rc=$?
  if [ $rc != "${RC:-0}" ]; then
    fail "$name: the host ended with $rc, ${RC:-0} expected"
    tail -n 15 "$TMP/out"
    [ -e "$TMP/nccl.log" ] && tail -n 5 "$TMP/nccl.log"
    return 0
  fi
  if grep -q 'ERROR: .*Sanitizer\|WARNING: ThreadSanitizer\|runtime error:' "$TMP/out"; then
    fail "$name: a sanitizer has something to say"
    head -n 40 "$TMP/out"
  fi
}

# verify [options]: the log of the last run against its truth.
verify() {
  if python3 test/host/verify.py "$TMP/logs" "$TMP/truth" "$@" >"$TMP/verify" 2>&1; then
    printf 'ok   %-32s %s\n' "$CASE" "$(tail -n 1 "$TMP/verify")"
  else
    fail "$CASE"
    cat "$TMP/verify"
  fi
}

# checked RC [options]: what nccl-inspector check says of the last log; RC 0 fine, 2 incomplete.
checked() {
  local want=$1 rc=0
  shift
  [ -x "$BUILD/nccl-inspector" ] || return 0
  "$BUILD/nccl-inspector" check "$TMP/logs" "$@" >"$TMP/check" 2>&1 || rc=$?
  [ $rc = "$want" ] || { fail "$CASE: nccl-inspector check returns $rc, not $want"; tail -n 15 "$TMP/check"; }
}

# said TEXT: NCCL's log must have the text; unsaid: must not.
said() {
  grep -q -- "$1" "$TMP/nccl.log" 2>/dev/null ||
    { fail "$CASE: NCCL's log does not say: $1"; tail -n 5 "$TMP/nccl.log" 2>/dev/null; }
}
unsaid() {
  if grep -q -- "$1" "$TMP/nccl.log" 2>/dev/null; then fail "$CASE: NCCL's log says: $1"; fi
}

# In mounts of the case's own: what it mounts goes with it, however it ends. Begins the case anew; before
# anything is made.
own_mounts() {
  [ -z "${NI_OWN_MOUNTS:-}" ] || return 0
  unshare --mount --propagation private true 2>/dev/null || skip "needs root: unshare --mount is refused"
  local rc=0
  NI_OWN_MOUNTS=1 unshare --mount --propagation private "$0" "$@" || rc=$?
  exit $rc
}
