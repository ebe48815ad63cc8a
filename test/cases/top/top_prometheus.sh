#!/usr/bin/env bash
# `top --prometheus`: one query brings all families into the same table; against answers in Prometheus's form,
# and against the real one, where it is installed, that scrapes pages in the form of /metrics (docs/agent.md).
. "$(dirname "$0")/../../lib/top.sh"
mkdir "$TMP/web"
python3 - "$TMP/web/api" <<'END'
import json, sys
result = []
def add(top, value, **labels):
    result.append({"metric": dict(labels, top=top, instance="i", job="agents"),
                   "value": [1790000000.1, str(value)]})
for node, ranks in (("n0", (0, 1)), ("n1", (2,))):
    for r in ranks:
        who = dict(node=node, job_id="77", attempt="0", user="1001", rank=str(r), gpu=str(r % 2), comm="dp0")
        add("in_flight", 2 if r else 0, **who)
        add("age_s", 41.5 + r if r else 0, **who)
        add("stuck", int(r == 1), **who)
        add("operations_s", 800 + r, **who)
        add("bus_bytes_s", "NaN" if r == 2 else 1.5e11 + r * 1e9, **who)
        add("late_share", 0.25 * r, **who)
        add("alive", int(r != 2), **who)
        add("utilization", 0.5 + r / 10, node=node, gpu=str(r % 2))
        add("sm_hz", 1.5e9 + r * 1e6, node=node, gpu=str(r % 2))
    add("alive", 0, node=node, job_id="77", attempt="0", user="1001", rank="3") if node == "n1" else None
    add("rx_bytes_s", 2e9, node=node, nic="mlx5_0")
    add("link_bytes_s", 5e10, node=node, nic="mlx5_0")
    add("hangs", 1, node=node, job_id="77", attempt="0", user="1001", hang="likely")
    add("hangs", 0, node=node, job_id="78", attempt="0", hang="certain")
json.dump({"status": "success", "data": {"resultType": "vector", "result": result}}, open(sys.argv[1], "w"))
END
serve "$TMP/web"
top 0 "" --once --prometheus "http://127.0.0.1:$PORT/"
says out ', 4 in flight, 1 stuck$' '  2 nodes, 1 job, 4 ranks' '^job 77: likely$' \
  '^77     0 n0     0 dp0  -        - +-   800  150G 0.0%  50% 1500M$' \
  '^77     1 n0     1 dp0  -        - +42.5 s   801  151G  25%  60% 1501M$' \
  '^77     3 n1     - -    -        killed ' \
  '^77     2 n1     0 dp0  -        killed +43.5 s   802     -  50%  70% 1502M$' \
  '^n1   mlx5_0     2.0G    -  50G' '^n0     1  60% 1501M'
says_not out '^job 78'
grep -q '^/api/v1/query query=label_replace(nccl_inspector_in_flight_operations,"top","in_flight","","") or ' "$TMP/web/asked" || fail "another query"
top 1 "" --once --prometheus "http://127.0.0.1:$PORT/else"
top 64 "" --once --prometheus "http://127.0.0.1:$PORT" --agent x
top 64 "" --json --prometheus "http://127.0.0.1:$PORT"
echo '{"status":"success","data":{"resultType":"vector","result":[]}}' >"$TMP/web/api"
top 2 "" --once --prometheus "http://127.0.0.1:$PORT"
says err 'does it scrape the agents'

if command -v prometheus >/dev/null; then
  # A counter rises by itself from scrape to scrape: the page is written anew twice a second.
  mkdir "$TMP/prom"
  python3 - "$TMP" <<'END' &
import os, sys, time
web = sys.argv[1] + "/web"
for k in range(120):
    who = 'node="n0",job_id="77",attempt="0",user="1001",rank="3",gpu="1",comm="dp0"'
    page = f"""nccl_inspector_in_flight_operations{{{who}}} 2
nccl_inspector_oldest_in_flight_seconds{{{who}}} 7.5
nccl_inspector_stuck_operations{{{who}}} 1
nccl_inspector_process_up{{node="n0",job_id="77",attempt="0",user="1001",rank="3"}} 1
nccl_inspector_process_up{{node="n0",job_id="77",attempt="0",user="1002",rank="3"}} 0
nccl_inspector_operations_total{{{who},function="AllReduce"}} {k * 100}
nccl_inspector_operations_total{{{who},function="AllGather"}} {k * 50}
nccl_inspector_bus_bytes_total{{{who},function="AllReduce"}} {k * 4e9}
nccl_inspector_bus_seconds_total{{{who},function="AllReduce"}} {k * 0.25}
nccl_inspector_late_seconds_total{{{who},function="AllReduce"}} {k * 0.05}
nccl_inspector_job_hang{{node="n0",job_id="77",attempt="0",user="1001",verdict="likely"}} 1
nccl_inspector_gpu_utilization_ratio{{node="n0",gpu="1"}} 0.75
nccl_inspector_gpu_sm_clock_hertz{{node="n0",gpu="1"}} 1.7e9
nccl_inspector_gpu_power_watts{{node="n0",gpu="1"}} 600
nccl_inspector_gpu_temperature_celsius{{node="n0",gpu="1"}} 66
nccl_inspector_nic_link_bytes_per_second{{node="n0",nic="cxi0"}} 2.5e10
nccl_inspector_nic_receive_bytes_total{{node="n0",nic="cxi0"}} {k * 1e9}
nccl_inspector_nic_transmit_bytes_total{{node="n0",nic="cxi0"}} {k * 2e9}
"""
    open(web + "/page.new", "w").write(page)
    os.rename(web + "/page.new", web + "/page")
    time.sleep(0.5)
END
  writer=$!
  printf 'global: {scrape_interval: 500ms}\nscrape_configs: [{job_name: a, metrics_path: /page, static_configs: [{targets: ["127.0.0.1:%s"]}]}]\n' "$PORT" >"$TMP/prom/p.yml"
  free=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  prometheus --config.file="$TMP/prom/p.yml" --storage.tsdb.path="$TMP/prom/data" \
    --web.listen-address="127.0.0.1:$free" >"$TMP/prom/log" 2>&1 &
  real=$!
  filled() {
    "$INSPECTOR" top --once --prometheus "http://127.0.0.1:$free" >"$TMP/out" 2>"$TMP/err" </dev/null &&
      grep -E ' [1-9][0-9]* +16G ' "$TMP/out" >"$TMP/rates" &&
      grep -E '^n0 +cxi0 +[0-9.]+[GM] ' "$TMP/out" >"$TMP/rates"
  }
  wait_for 30 filled || true
  kill $real $writer
  # Rates grow until they have thirty seconds; what they are of each other does not.
  says out '^77 +3 n0 +1 dp0  - +- +7.50 s +[1-9][0-9]* +16G +[0-9.]+%  75% 1700M$' \
    '^job 77: hangs \(likely\): nccl-inspector-hang/verdict.txt' '^n0 +1 +75% 1700M  600W  66C' \
    '^n0 +cxi0 .* 25G +[0-9]' ' 1 node, 1 job, 1 rank, 2 in flight, 1 stuck$'
  wait $real $writer 2>/dev/null || true
fi
finish
