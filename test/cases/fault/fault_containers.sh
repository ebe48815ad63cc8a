#!/usr/bin/env bash
# A container in a crash loop: each life has a pid namespace of its own, and all share one small /dev/shm. The
# boxes of dead lives must not eat it, the newest must be recoverable, and the box of a stopped process stays.
. "$(dirname "$0")/../../host/lib.sh"
skip_under asan "30 lives take too long"
skip_under tsan "30 lives take too long"
unshare --pid --fork --mount-proc true 2>/dev/null || skip "needs root: unshare --pid is refused"
own_mounts
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS
SHM=$TMP/shm
mkdir "$SHM"
mount -t tmpfs -o size=64m ni-test "$SHM"
at_exit '[ -z "${STOPPED:-}" ] || kill -KILL "$STOPPED" 2>/dev/null; umount "$SHM" 2>/dev/null || true'

boxes() { find "$SHM" -name '*.box' | wc -l; }
newest() { find "$SHM" -name '*.box' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d' ' -f2; }
free_kb() { df --output=avail -k "$SHM" | tail -n 1; }

# The first process of a pid namespace cannot kill itself: a shell is that.
cat >"$TMP/contained" <<EOF
#!/bin/sh
exec unshare --pid --fork --mount-proc sh -c '"\$@"; true' contained "$HOST" "\$@"
EOF
chmod +x "$TMP/contained"
life() { # verbs: one life in a pid namespace of its own
  local HOST=$TMP/contained
  { host NCCL_INSPECTOR_BLACKBOX="$SHM" $US=30000000 live "$TMP/live" "$@"; } 2>/dev/null || true
}

# A process that is stopped all the while is not dead: its box stays, whoever looks from whichever namespace.
life init 0 ops 0 50 sh "kill -STOP \$PPID" exit 0 &
is_stopped() {
  STOPPED=$(pgrep -f "^$HOST .* kill -STOP" || true)
  [ -n "$STOPPED" ] && grep -q '^State:.T' "/proc/$STOPPED/status"
}
wait_for 10 is_stopped || fail "$CASE: it is not stopped"
[ "$(boxes)" = 1 ] || fail "the stopped process has no box"
HELD=$(newest)

CASE="30 killed lives"
for i in $(seq 30); do
  life init 0 ops 0 "$((3000 + i))" half 0 2 kill
done
echo "30 lives: $(boxes) boxes, $(free_kb) KB of 65536 are free"
[ "$(free_kb)" -ge 32768 ] || fail "$CASE: only $(free_kb) KB of 65536 are free"
[ -e "$HELD" ] || fail "$CASE: the box of a process that is stopped was removed"
mkdir -p "$TMP/logs"
"$BUILD/nccl-inspector" recover --live "$(newest)" --output "$TMP/logs" >"$TMP/recover" 2>&1 ||
  { fail "$CASE: recover"; cat "$TMP/recover"; }
grep -q ' 3,030 records' "$TMP/recover" || fail "$CASE: the newest box: $(cat "$TMP/recover")"

CASE="a life that leaves its box empty"
before=$(newest)
life init 0 ops 0 300 fin 0 _exit 0
empty=$(newest) # it may have made room for itself: there can be fewer boxes than before
[ "$empty" != "$before" ] || fail "$CASE: it left no box"
life init 0 ops 0 300 fin 0 exit 0
[ ! -e "$empty" ] || fail "$CASE: it is still there"

CASE="goes on after the stop"
kill -CONT "$STOPPED"
wait
[ ! -e "$HELD" ] || fail "$CASE: its box is left"
STOPPED=
finish
