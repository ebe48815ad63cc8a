#!/usr/bin/env bash
# The agent asks NCCL's RAS where it is told to, never else, and not more often than every 15 s: its figures
# in /metrics.
. "$(dirname "$0")/../../lib/agent.sh"
PYTHONPATH=test/lib python3 - "$TMP/answer.json" <<'P'
import sys
import ras

ranks = [ras.rank(i, {"AllReduce": n}) for i, n in enumerate((7, 7, 6))]
gone = [ras.missing(3, dead=True), ras.missing(4, unresponsive=True)]
odd = ras.comm(0xB2, 1, [ras.rank(7, {})])
open(sys.argv[1], "w").write(ras.answer([ras.comm(0xA1, 5, ranks, gone), odd]))
P
refused "too often" "--ras-every: want 15s or more" --ras --ras-every 5s
refused "a file" "--ras: want HOST:PORT" --ras=/tmp/x
python3 test/lib/ras.py "$TMP/port" fine "$TMP/answer.json" &
wait_for 20 test -s "$TMP/port" || fatal "no server"

begin plain
settled
is "RAS is not asked" "$(curl -sfk "$URL/metrics" | grep -c '_ras_')" 0
ends 0
echo "ras = 127.0.0.1:1" >"$TMP/conf"
begin nobody --config "$TMP/conf"
settled
failed() { [ "$(metric 'agent_ras_answers_total{.*failed"}')" = 1 ]; }
wait_for 20 failed || fail "nobody there: $(curl -sfk "$URL/metrics" | grep _ras_)"
is "figures of nobody" "$(curl -sfk "$URL/metrics" | grep -c 'inspector_ras_')" 0
ends 0

begin asks --ras="127.0.0.1:$(<"$TMP/port")" --ras-every 15s
settled
answered() { [ "$(metric 'agent_ras_answers_total{.*answered"}')" = "$1" ]; }
wait_for 20 answered 1 || fail "no answer: $(curl -sfk "$URL/metrics" | grep _ras_)"
is "communicators" "$(metric 'ras_communicators{.*sound"}')/$(metric 'ras_communicators{.*odd"}')" 1.0/1.0
is "ranks" "$(for s in here not_a_member unresponsive dead; do metric "ras_ranks{.*\"$s\"}"; done | xargs)" \
  "3.0 0.0 1.0 1.0"
is "behind at one look" "$(metric ras_ranks_behind)" 0.0
[ "$(id -u)" != 0 ] || is "who asks" "$(ps -o uid= --ppid "$PID" | xargs -n 1 | grep -c 65534)" 1
begun=$SECONDS
wait_for 40 answered 2 || fail "no second answer"
[ $((SECONDS - begun)) -ge 10 ] || fail "a second answer after $((SECONDS - begun)) s"
is "behind at two looks" "$(metric ras_ranks_behind)" 1.0
[ "$(metric ras_still_seconds | cut -d. -f1)" -ge 14 ] || fail "still: $(metric ras_still_seconds)"
ends 0
finish
