#!/usr/bin/env bash
# Dashboards and rules in contrib/: each alert fires on what was planted for it and not on what is healthy,
# each expression parses and finds something, each metric is one that docs/agent.md has.
. "$(dirname "$0")/../../lib/case.sh"
need promtool prometheus python3
PIDS=()

promtool check rules contrib/prometheus/*.yml || fail "promtool check rules"
# The alerts' texts are not repeated in the tests.
for f in contrib/prometheus/*.yml; do
  awk '/^        annotations:/ {skip = 1; next} skip && /^          / {next} {skip = 0; print}' "$f" \
    >"$TMP/$(basename "$f")"
done
cp test/cases/agent/rules/*.yml "$TMP/"
for f in test/cases/agent/rules/*.yml; do
  promtool test rules "$TMP/$(basename "$f")" >"$TMP/out" 2>&1 || fail "$f: $(cat "$TMP/out")"
done
cat test/cases/agent/rules/*.yml >"$TMP/all_rules"
for a in $(sed -n 's/.*- alert: //p' contrib/prometheus/nccl-inspector-alerts.yml); do
  grep -q exp_alerts: < <(grep -A 2 "alertname: $a\$" "$TMP/all_rules") || fail "no test in which $a fires"
  grep -q "alertname: $a, exp_alerts: \[\]\|alertname: $a\$" "$TMP/all_rules" || fail "no test of $a"
done
python3 test/lib/dashboards.py names || fail "names"

# A Prometheus of its own that reads a fake agent.
python3 test/lib/dashboards.py serve >"$TMP/port" &
PIDS+=($!)
wait_for 60 test -s "$TMP/port" || fail "there is no fake agent"
cat >"$TMP/prometheus.yml" <<C
global: {scrape_interval: 250ms, evaluation_interval: 250ms}
rule_files: ["$PWD/contrib/prometheus/*.yml"]
scrape_configs:
  - {job_name: nccl-inspector, static_configs: [{targets: ["127.0.0.1:$(cat "$TMP/port")"]}]}
C
promtool check config "$TMP/prometheus.yml" >"$TMP/out" 2>&1 || fail "configuration: $(cat "$TMP/out")"
for _ in 1 2 3; do # a free port may be taken meanwhile
  PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/data" \
    --web.listen-address="127.0.0.1:$PORT" >"$TMP/prometheus.log" 2>&1 &
  PIDS+=($!)
  serves() { curl -sf "http://127.0.0.1:$PORT/-/ready" >/dev/null || ! kill -0 "${PIDS[-1]}" 2>/dev/null; }
  wait_for 60 serves
  kill -0 "${PIDS[-1]}" 2>/dev/null && break
done
all_find() { python3 test/lib/dashboards.py ask "http://127.0.0.1:$PORT" --all >"$TMP/out" 2>&1; }
wait_for 60 all_find || fail "expressions: $(cat "$TMP/out"); $(tail -n 3 "$TMP/prometheus.log")"
tail -n 1 "$TMP/out"
# The check itself: a metric that is nowhere, an expression that does not parse, one that finds nothing.
mkdir -p "$TMP/tree/test/lib"
cp -r contrib docs "$TMP/tree/"
cp test/lib/dashboards.py "$TMP/tree/test/lib/"
sed -i '0,/nccl_inspector_job_processes{/s//nccl_inspector_jobs_processes{/' \
  "$TMP/tree/contrib/grafana/nccl-inspector-jobs.json"
! python3 "$TMP/tree/test/lib/dashboards.py" names >"$TMP/out" 2>&1 ||
  fail "a metric that is nowhere is not found"
! python3 "$TMP/tree/test/lib/dashboards.py" ask "http://127.0.0.1:$PORT" --all >"$TMP/out" 2>&1 ||
  fail "an expression that finds nothing is not told"
sed -i '0,/sum by (job_id, user, function) (rate/s//sum by (job_id, user, function) ((rate/' \
  "$TMP/tree/contrib/grafana/nccl-inspector-jobs.json"
! python3 "$TMP/tree/test/lib/dashboards.py" ask "http://127.0.0.1:$PORT" >"$TMP/out" 2>&1 ||
  fail "an expression that does not parse is not told"
finish
