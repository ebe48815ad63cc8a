#!/usr/bin/env bash
# A life of the plugin, from the first communicator to the last, begins its log at once: a process that is
# killed before its first flush has left a process line without the process's last line, so nobody takes its
# log for complete.
. "$(dirname "$0")/../../host/lib.sh"
US=NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS

killed() { # NAME FILES [NAME=value ...] verbs... : waits until that many logs are there, then SIGKILL
  local name=$1 files=$2
  shift 2
  # shellcheck disable=SC2016
  RC=137 run "$name" "$@" sh "for i in \$(seq 100); do [ \$(ls $TMP/logs 2>/dev/null | wc -l) = $files ] && exit; sleep 0.1; done" kill
  python3 - "$TMP/logs" "$files" <<'P' && echo "ok   $name" || fail "$name"
import gzip, json, os, sys
folder, files = sys.argv[1], int(sys.argv[2])
logs = {}
for name in os.listdir(folder):
    data = gzip.open(os.path.join(folder, name),
                     "rt") if name.endswith(".gz") else open(os.path.join(folder, name))
    lines = [json.loads(l) for l in data]
    logs[lines[0]["process"]["start_ns"]] = lines
assert len(logs) == files, (files, os.listdir(folder))
final = lambda l: "dump_stats" in l and l["header"]["id"] == "0x0" and l["dump_stats"]["final"]
*whole, cut = [logs[k] for k in sorted(logs)]
for lines in whole:
    assert sum(map(final, lines)) == 1, "a life that ended has its last line"
assert not any(map(final, cut)), "the life that was cut has no last line"
kind = [k for k in cut[1] if k not in ("header", "metadata")]
assert kind == ["comm"], kind
P
}

for interval in -1 0 30000000; do
  killed "interval $interval" 1 $US=$interval init 0 ops 0 500
  killed "interval $interval, second life" 2 $US=$interval init 0 ops 0 100 fin 0 init 1 ops 1 500
done
killed "two communicators, nothing else" 1 $US=-1 init 0 init 1
killed "plain text" 2 $US=-1 NCCL_INSPECTOR_DUMP_FORMAT=jsonl init 0 ops 0 100 fin 0 init 1
killed "no black box" 2 $US=-1 NCCL_INSPECTOR_BLACKBOX=0 init 0 ops 0 100 fin 0 init 1 ops 1 500
killed "fixed pools" 2 $US=30000000 NCCL_INSPECTOR_POOL_GROW=0 init 0 ops 0 100 fin 0 init 1 ops 1 500
killed "no dump thread" 2 NCCL_INSPECTOR_DUMP_THREAD_ENABLE=0 init 0 ops 0 100 fin 0 init 1 ops 1 500

# Where a communicator's identity comes with its first operation (v1 to v3) the head is the process alone.
CASE="interface v1"
rm -rf "$TMP/logs"
printf '%s\n' 'set ranks=1' 'comm w size=1' 'sleep ms=20000' >"$TMP/late.scn"
env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_BLACKBOX=0 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" \
  NCCL_INSPECTOR_DUMP_FORMAT=jsonl $US=30000000 \
  "$BUILD/nccl-sim" --quiet --plugin "$PLUGIN" --scenario "$TMP/late.scn" --nccl 2.23 >"$TMP/out" 2>&1 &
sim=$!
wait_for 10 compgen -G "$TMP/logs/*.jsonl" || fail "$CASE: no log"
kill -9 $sim
wait $sim 2>/dev/null || true
[ "$(cut -c1-2000 "$TMP"/logs/*.jsonl | grep -c '"process"')" = 1 ] ||
  fail "$CASE: $(ls -l "$TMP/logs" 2>&1; cat "$TMP/out")"

# The head is not waited for by anybody, and tried again: a disk that refuses at first costs nothing.
run "no disk at first" LD_PRELOAD="$BUILD/test/fault_io.so" $US=30000000 fault open=EACCES init 0 ops 0 500 \
  sleep 200 fault all=ok \
  sh "for i in \$(seq 100); do [ -n \"\$(ls $TMP/logs 2>/dev/null)\" ] && exit; sleep 0.1; done; exit 1" ops \
  0 500 fin 0
verify --files 1 --end destroy
# Without control lines there is no head: an empty file would say nothing.
run "no control lines" NCCL_INSPECTOR_DUMP_CONTROL_LINES=0 $US=30000000 init 0 sleep 300 sh \
  "[ ! -e $TMP/logs ]" ops 0 500 fin 0
verify --no-control --files 1
finish
