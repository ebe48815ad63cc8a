#!/usr/bin/env bash
# What the settings leave out is counted and nothing else is missing; formats hold the same lines.
. "$(dirname "$0")/../../host/lib.sh"
S=NCCL_INSPECTOR
all=(init 0 ops 0 2000 p2p 0 500 self 0 100)
run "MIN_SIZE 100k" ${S}_DUMP_MIN_SIZE_BYTES=100000 "${all[@]}" fin 0
verify --min-size 100000
grep -q 'verified: [1-9]' "$TMP/verify" || fail "$CASE: nothing is left"
run "MIN_SIZE 100k, children of filtered ones on two threads" ${S}_DUMP_MIN_SIZE_BYTES=100000 init 0 duet 0 \
  20000 0 exit 0
verify --min-size 100000
run "MIN_SIZE 1g: nothing" ${S}_DUMP_MIN_SIZE_BYTES=1g "${all[@]}" fin 0
verify --min-size 1073741824
run "P2P disabled" ${S}_ENABLE_P2P=0 "${all[@]}" fin 0
verify --no-p2p
run "REQUIRE_KERNEL_TIMING" ${S}_REQUIRE_KERNEL_TIMING=1 "${all[@]}" fin 0
verify --kernel-only
# No line is written for them, and their slots come back all the same.
batch=(self 0 2000 sleep 60)
run "REQUIRE_KERNEL_TIMING, only others" ${S}_REQUIRE_KERNEL_TIMING=1 ${S}_POOL_MAX_BYTES=1m init 0 \
  "${batch[@]}" "${batch[@]}" \
  "${batch[@]}" "${batch[@]}" "${batch[@]}" "${batch[@]}" ops 0 10 fin 0
verify --kernel-only
run "CONTROL_LINES=0" ${S}_DUMP_CONTROL_LINES=0 "${all[@]}" fin 0
verify --no-control
run "CONTROL_LINES=0, nothing recorded: no file" ${S}_DUMP_CONTROL_LINES=0 init 0 fin 0
[ ! -d "$TMP/logs" ] || [ -z "$(find "$TMP/logs" -type f -size +0)" ] || fail "$CASE: a file"
for f in jsonl.gz jsonl log log.gz; do
  run "format $f" ${S}_DUMP_FORMAT=$f "${all[@]}" exit 0
  verify
  [ "$(find "$TMP/logs" -name "*.$f" | wc -l)" = 1 ] || fail "$CASE: $(ls "$TMP/logs")"
done
run "umask 077" umask 077 "${all[@]}" fin 0
verify
[ "$(stat -c %a "$TMP"/logs/* "$TMP/logs" | tr '\n' ' ')" = "600 700 " ] ||
  fail "$CASE: $(stat -c '%a %n' "$TMP"/logs/*)"
run "umask 0" umask 0 "${all[@]}" fin 0
[ "$(stat -c %a "$TMP"/logs/* "$TMP/logs" | tr '\n' ' ')" = "644 755 " ] ||
  fail "$CASE: $(stat -c '%a %n' "$TMP"/logs/*)"
run "descriptors 0 to 2 closed" closefds "${all[@]}" sh "echo to stdout; echo to stderr >&2; true" sleep 1100 ops 0 10 fin 0
verify
run "nothing on stdout or stderr" "${all[@]}" fin 0
[ ! -s "$TMP/out" ] || fail "$CASE: $(head -c 300 "$TMP/out")"
own_init || finish
run "two processes, one second, one pid name space each" \
  "${all[@]}" fork init 1 ops 1 10 fin 1 exit 0 end fin 0
verify --files 2
finish
