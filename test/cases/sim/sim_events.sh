#!/usr/bin/env bash
# Traps of the events that are not operations.
. "$(dirname "$0")/../../lib/sim.sh"
# Each transfer once however often it was started; a context that is another process's, whatever its pid;
# operations that never stop; a progress thread whose communicator is gone.
for how in "--nccl 2.30" "--nccl 2.27" "--nccl 2.30 --interface v4"; do
  # shellcheck disable=SC2086
  verified NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_DUMP_FORMAT=jsonl traps_events $how
done
python3 - "$TMP"/logs/*.jsonl <<'PY' || { fail "what the lines say"; }
import json, sys
foreign = open_ops = high = 0
for line in open(sys.argv[1]):
    o = json.loads(line)
    if "proxy_trace" in o and o["proxy_trace"]["record_type"] == "proxy_op":
        p = o["proxy_trace"]
        if "origin_pid" in p:
            foreign += 1
            assert o["header"]["id"] == "0x0" and p["parent_type"] is None and p["parent_sn"] is None, p
        elif p["total_us"] is None:
            open_ops += 1
            assert p["state"] == "none" and p["parent_func"] == "AllReduce", p
        else:
            assert ("state" not in p and p["n_steps_started"] == p["n_steps_completed"] == 12 and
                    p["n_steps_dropped"] == 0), p
            phases = {"send": ["gpu_produce_us", "peer_credit_us", "wire_us"],
                      "recv": ["peer_credit_us", "wire_us", "flush_us", "gpu_consume_us"]}[p["direction"]]
            assert not [k for k in p if k.endswith("_us") and
                        k.split("_us")[0] in ("gpu_produce", "flush", "gpu_consume") and k not in phases], p
            assert 0 < p["max_step_us"] <= p["total_us"], p
    if "pool_stats" in o and o["pool_stats"]["kind"] == "proxy":
        high = max(high, o["pool_stats"]["high_water"])
assert foreign == 2 * 10 and open_ops == 2 * 10, (foreign, open_ops)
# Held at once: what the kernels in flight have, not what was ever started.
assert 0 < high <= 256, high
print("ok   foreign %d, never stopped %d, held at most %d" % (foreign, open_ops, high))
PY
verified NCCL_INSPECTOR_EVENTS=trace split_share
# The mask goes away and comes back between calls: the old handle of an API call is stopped once more
# (callbacks 3.5).
verified NCCL_INSPECTOR_EVENTS=deep mask
verified NCCL_INSPECTOR_EVENTS=deep graph
# Without KernelCh an operation is finished before its network begins: it waits for it, sampled away or not.
# Not for ever: on a busy machine some network operations begin too late, and the simulator counts them. Nor
# when a communicator is closed.
for vars in NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=0 NCCL_INSPECTOR_SAMPLE=1/100; do
  verified NCCL_INSPECTOR_EVENTS=light NCCL_INSPECTOR_DUMP_FORMAT=jsonl $vars 4x1 --rate 200 --iterations 20
  all=$(cat "$TMP"/logs/*.jsonl | grep -v '"id":"0x0"' | grep -c '"record_type":"proxy_op"')
  lost=$(cat "$TMP"/logs/*.jsonl | grep -v '"id":"0x0"' | grep -c '"parent_type":null' || true)
  late=$(sed -n 's/.*"late_net":\([0-9]*\).*/\1/p' "$TMP/truth" | awk '{n += $1} END {print n + 0}')
  what="$lost of $all network operations lost their operation, $late began late"
  if [ "$all" -ge 1000 ] && [ "$late" -lt "$all" ] && [ $(((lost - late) * 20)) -le "$all" ]; then
    echo "ok   $what"
  else
    fail "$vars: $what"
  fi
done
# Operation lines only: nothing else is asked for, whatever the settings name.
run_logged NCCL_INSPECTOR_DUMP_CONTROL_LINES=0 NCCL_INSPECTOR_EVENTS=trace NCCL_INSPECTOR_DUMP_FORMAT=jsonl \
  net >"$TMP/out" 2>&1 ||
  { cat "$TMP/out"; failures=$((failures + 1)); }
if grep -qv '"coll_perf"\|"p2p_perf"' "$TMP"/logs/*.jsonl; then
  fail "other lines than operations: $(grep -v '"coll_perf"\|"p2p_perf"' "$TMP"/logs/*.jsonl | head -n 1)"
fi
# A limit of proxy operations: what does not fit is dropped and counted, and check says so.
rc=0
NCCL_INSPECTOR_PROXY_OP_POOL_SIZE=1 run_logged NCCL_INSPECTOR_ENABLE_PROXY=1 \
  NCCL_INSPECTOR_PROXY_OP_POOL_SIZE=1 \
  2x4 --rate 0 --iterations 40 >"$TMP/out" 2>&1 || { cat "$TMP/out"; failures=$((failures + 1)); }
"$BUILD/nccl-inspector" check --json "$TMP/logs" >"$TMP/json" || rc=$?
if grep -q '"proxy_dropped_total":[1-9]' <(zcat "$TMP"/logs/*.gz); then
  [ $rc = 2 ] && grep -q '"code":"events_dropped"' "$TMP/json" ||
    { fail "check does not tell dropped events"; }
  echo "ok   dropped proxy operations are told"
fi
finish
