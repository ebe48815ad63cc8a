#!/usr/bin/env bash
# The black box in a hostile surrounding: it comes, goes, and never costs the job or a record. The kills are
# in fault_kill.
. "$(dirname "$0")/../../host/lib.sh"
[ "$BOXES" != 0 ] || skip "no /dev/shm to keep a black box in"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
IO=LD_PRELOAD=$BUILD/test/fault_io.so
boxes() { find "$BOXES" -name '*.box' | wc -l; }
left() { [ "$(boxes)" = "$1" ] || { fail "$CASE: $(boxes) boxes are left, $1 expected"; ls -la "$BOXES"; }; }
process_line() {
  "$BUILD/nccl-inspector" check "$TMP/logs" >/dev/null 2>&1; cat "$TMP"/logs/*.gz | gzip -dc |
    grep -m1 '"process"'
}
recovered() { # what the kill left, with the values of the truth
  "$BUILD/nccl-inspector" recover --box-dir "$BOXES" "$TMP/logs" >"$TMP/recover" 2>&1 ||
    { fail "$CASE: recover"; cat "$TMP/recover"; }
  verify --live "$TMP/live" --cut --started-free --open
  rm -f "$BOXES"/*.box
}

# It goes when all is in the log, however the process ends.
for end in "fin 0 exit 0" "exit 0" "fin 0 init 1 ops 1 50 exit 0" "quick 0"; do
  # shellcheck disable=SC2086
  run "gone after: $end" $US=20000 init 0 ops 0 300 sh "ls $BOXES/*.box" $end
  verify
  left 0
done
run "unfinished, exit" $US=20000 init 0 ops 0 300 open 0 3 half 0 2 exit 0
verify
left 0
[ "$(gzip -dc "$TMP"/logs/*.gz | grep -c '"in_flight":{"kind"')" = 5 ] ||
  fail "$CASE: five in_flight lines expected"
run "no thread" NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 ops 0 3000 fin 0 exit 0
verify
left 0
# Left EMPTY by a process that ended roughly; the next process takes it away.
run "finalized, then _exit" $US=20000 init 0 ops 0 300 fin 0 _exit 0
left 1
run "the next process" $US=20000 init 0 ops 0 300 sleep 200 exit 0
left 0

# Ends that leave it: all is there.
if [ -z "$VARIANT" ]; then
  for end in "134 abort" "137 kill" "139 sh"; do
    CASE=${end#* } rc=0
    words=("$CASE")
    [ "$CASE" = sh ] && words=(sh 'kill -SEGV $PPID') CASE="a segmentation fault"
    { host $US=1000000 live "$TMP/live" init 0 init 1 duet 0 5000 0 half 1 3 p2p 1 400 "${words[@]}"; } 2>/dev/null || rc=$?
    [ $rc = "${end% *}" ] || fail "$CASE: the host ended with $rc, not ${end% *}"
    left 1
    recovered
  done
  # It grows with what waits: 4 MiB from the start hold 32,000 operations.
  CASE="growth"
  { host $US=30000000 init 0 paced 0 60000 40000 sleep 50 kill; } 2>/dev/null || true
  "$BUILD/nccl-inspector" recover --box-dir "$BOXES" "$TMP/logs" >"$TMP/recover" 2>&1 || true
  grep -q ' 60,000 records' "$TMP/recover" || fail "$CASE: $(cat "$TMP/recover")"
  rm -f "$BOXES"/*.box
fi

# A forked child has no part in its parent's box, and has its own.
if own_init; then
  run "fork" $US=20000 init 0 ops 0 300 fork exit 0 end sh "ls $BOXES/*.box" fork init 1 ops 1 40 sh \
    "[ \$(ls $BOXES | wc -l) = 2 ]" \
    exit 0 end sh "[ \$(ls $BOXES | wc -l) = 1 ]" ops 0 300 fin 0 exit 0
  verify --files 2
  left 0
fi

# No box, and why.
run "a folder that is no tmpfs" NCCL_INSPECTOR_BLACKBOX="$PWD" init 0 ops 0 100 fin 0
verify
case $(process_line) in *'"blackbox":null,"blackbox_why":"'*tmpfs*) ;; *) fail "$CASE: $(process_line)" ;; \
  esac
said "no black box: "
run "a folder that is not there" NCCL_INSPECTOR_BLACKBOX=/dev/shm/no-such-folder init 0 ops 0 100 fin 0
verify
run "switched off" NCCL_INSPECTOR_BLACKBOX=0 init 0 ops 0 100 fin 0
verify
case $(process_line) in *blackbox_why*) fail "$CASE: a reason for what was asked for" ;; esac
for call in ftruncate@1 mmap@2 statx@1 getrandom; do
  run "$call fails" $IO NI_FAULT=${call%@*}=ENOMEM$([[ $call == *@* ]] && echo "@${call#*@}") init 0 ops 0 500 fin 0
  [ $call = getrandom ] && verify # the others may switch the plugin off, or its log
done
run "RLIMIT_FSIZE" $US=20000 fsize 300000 init 0 ops 0 500 fsize 100000000 fin 0
verify

# Removed or replaced under us: the records do not notice, and a stranger's file is not touched.
run "the box is removed" $US=1000 init 0 ops 0 500 sh "rm $BOXES/*.box" ops 0 40000 fin 0 exit 0
verify
run "the box is replaced" $US=20000 init 0 ops 0 500 sh "f=\$(ls $BOXES/*.box); rm \$f; echo mine > \$f" ops \
  0 500 fin 0 exit 0
verify
grep -q mine "$BOXES"/*.box || fail "$CASE: another's file was touched"
rm -f "$BOXES"/*.box

# A /dev/shm that is full, or fills up: at most a quarter is taken, the rest of the arena is ordinary memory,
# no SIGBUS.
mkdir -p "$TMP/small"
if mount -t tmpfs -o size=16m ni-test "$TMP/small" 2>/dev/null; then
  at_exit 'umount "$TMP/small" 2>/dev/null || true'
  run "a quarter" NCCL_INSPECTOR_BLACKBOX="$TMP/small" $US=-1 init 0 ops 0 40000 \
    sh "[ \$(du -k $TMP/small/*.box | cut -f1) -le 4096 ]" fin 0 exit 0
  verify
  run "it fills up" NCCL_INSPECTOR_BLACKBOX="$TMP/small" $US=-1 init 0 ops 0 3000 \
    sh "head -c 20000000 /dev/zero > $TMP/small/fill; true" ops 0 40000 fin 0 exit 0
  verify
  run "full from the first" NCCL_INSPECTOR_BLACKBOX="$TMP/small" init 0 ops 0 3000 fin 0 exit 0
  verify
  said "no black box: "
  umount "$TMP/small"
else
  echo "no tmpfs can be mounted here: left out"
fi
finish
