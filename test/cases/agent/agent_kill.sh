#!/usr/bin/env bash
# The agent is killed again and again while a job runs: no counter falls, and in the end each record was
# counted once. What the job's ranks do is in /v1/now while it runs.
. "$(dirname "$0")/../../lib/agent.sh"
need "$SIM"
need_boxes
boxes=$BOXES
env NCCL_INSPECTOR_ENABLE=1 NCCL_INSPECTOR_DUMP_DIR="$TMP/logs" NCCL_INSPECTOR_BLACKBOX="$boxes" \
  SLURM_JOB_ID=77 \
  NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS=100000 timeout 200 "$BUILD/nccl-sim" --quiet --plugin \
  "$BUILD/libnccl-profiler-inspector.so" \
  --job 2x2 --set rate=300 --iterations 600 --truth "$TMP/truth" >"$TMP/sim" 2>&1 &
job=$!
wait_for 10 eval "ls '$TMP'/logs/*.gz" || fail "the job does not begin"
python3 -c 'print()' >"$TMP/all"
for _ in 1 2; do
  begin kill --box-dir "$boxes" --log-dir "$TMP/logs"
  settled
  wait_for 5 eval "curl -s '$URL/metrics' | grep -q '^nccl_inspector_operations_total'" || true
  sleep 0.3
  seen='([.ranks[].rank] | contains([0, 1])) and ([.nics[].nic] | contains(["lo"]))'
  wait_for 20 eval "curl -sf '$URL/v1/now' >'$TMP/now' && jq -e '$seen' '$TMP/now'" ||
    fail "no ranks or no NICs in /v1/now"
  curl -sf "$URL/metrics" >>"$TMP/all" || fail "no metrics"
  kill -9 "$PID"
  wait "$PID" 2>/dev/null || true
done
wait $job || { fail "nccl-sim:"; cat "$TMP/sim"; }
begin kill --box-dir "$boxes" --log-dir "$TMP/logs"
settled
records=$(gzip -dcq "$TMP"/logs/*.gz | grep -c '"rec_sn"' || true)
wait_for 10 eval "[ \$(curl -s '$URL/metrics' | awk '/^nccl_inspector_operations_total/ {n += \$2} END {print n + 0}') -ge $records ]" ||
  fail "not all of $records records are read"
curl -sf "$URL/metrics" >>"$TMP/all"
is "state lost" "$(metric agent_state_lost_total)" 0
ends 0
python3 - "$TMP" "$records" <<'P' || fail "what was shown"
import json, sys
tmp, records = sys.argv[1], int(sys.argv[2])
last, falls = {}, []
for line in open(tmp + "/all"):
    if line.startswith("nccl_inspector_") and not line.startswith("nccl_inspector_agent_"):
        name, value = line.rsplit(" ", 1)
        if "_total{" in name or "_bucket{" in name or "_count{" in name:
            if (float(value) < last.get(name, 0) and
                not name.startswith(("nccl_inspector_host", "nccl_inspector_nic"))):
                falls.append((name, last[name], value))
            last[name] = float(value)
assert not falls, falls[:5]
total = sum(v for k, v in last.items() if k.startswith("nccl_inspector_operations_total"))
assert records > 300 and total == records, (total, records)
now = json.load(open(tmp + "/now"))
job, = now["jobs"]
assert (job["job_id"] == "77" and job["state"] == "running" and job["processes"] >= 1 and
        job["hang"] is None), job
ranks = now["ranks"]
assert {r["rank"] for r in ranks} >= {0, 1} and {r["comm"] for r in ranks} >= {"dp0", "tp1"}, ranks
for r in ranks:
    assert (r["job_id"] == "77" and r["alive"] is True and r["collectives"] > 0 and
            r["comm_id"].startswith("0x") and r["n_ranks"] >= 2), r
    assert (r["function"] is None) == (r["state"] is None) and r["age_s"] >= 0, r
assert any(n["nic"] == "lo" for n in now["nics"]), now["nics"]
P
finish
