#!/usr/bin/env bash
# Dashboards and rules in contrib/: each alert fires on what was planted for it and not on what is healthy, each expression parses and
# finds something, each metric is one that docs/agent.md has.
set -euo pipefail
cd "$(dirname "$0")/../../.."
for tool in promtool prometheus python3; do
  command -v $tool >/dev/null || { echo "no $tool"; exit 77; }
done
TMP=$(mktemp -d)
PIDS=()
ended() {
  [ ${#PIDS[@]} = 0 ] || kill "${PIDS[@]}" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$TMP"
}
trap ended EXIT
failures=0
fail() { echo "FAIL $*"; failures=$((failures + 1)); }

promtool check rules contrib/prometheus/*.yml || fail "promtool check rules"
# The alerts' texts are not repeated in the tests.
for f in contrib/prometheus/*.yml; do
  awk '/^        annotations:/ {skip = 1; next} skip && /^          / {next} {skip = 0; print}' "$f" >"$TMP/$(basename "$f")"
done
cp test/cases/agent/rules/*.yml "$TMP/"
for f in test/cases/agent/rules/*.yml; do
  promtool test rules "$TMP/$(basename "$f")" >"$TMP/out" 2>&1 || fail "$f: $(cat "$TMP/out")"
done
for a in $(sed -n 's/.*- alert: //p' contrib/prometheus/nccl-inspector-alerts.yml); do
  cat test/cases/agent/rules/*.yml | grep -A 2 "alertname: $a\$" | grep -q exp_alerts: || fail "no test in which $a fires"
  cat test/cases/agent/rules/*.yml | grep -q "alertname: $a, exp_alerts: \[\]\|alertname: $a\$" || fail "no test of $a"
done
python3 test/lib/dashboards.py names || fail "names"

# A Prometheus of its own that reads a fake agent.
python3 test/lib/dashboards.py serve >"$TMP/port" &
PIDS+=($!)
for _ in $(seq 50); do [ -s "$TMP/port" ] && break; sleep 0.1; done
cat >"$TMP/prometheus.yml" <<C
global: {scrape_interval: 250ms, evaluation_interval: 250ms}
rule_files: ["$PWD/contrib/prometheus/*.yml"]
scrape_configs:
  - {job_name: nccl-inspector, static_configs: [{targets: ["127.0.0.1:$(cat "$TMP/port")"]}]}
C
promtool check config "$TMP/prometheus.yml" >"$TMP/out" 2>&1 || fail "configuration: $(cat "$TMP/out")"
for _ in 1 2 3; do # a free port may be taken meanwhile
  PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/data" --web.listen-address="127.0.0.1:$PORT" >"$TMP/prometheus.log" 2>&1 &
  PIDS+=($!)
  for _ in $(seq 50); do
    curl -sf "http://127.0.0.1:$PORT/-/ready" >/dev/null && break 2
    kill -0 "${PIDS[-1]}" 2>/dev/null || break
    sleep 0.1
  done
done
for _ in $(seq 8); do
  sleep 0.5
  python3 test/lib/dashboards.py ask "http://127.0.0.1:$PORT" --all >"$TMP/out" 2>&1 && break
done
python3 test/lib/dashboards.py ask "http://127.0.0.1:$PORT" --all >"$TMP/out" 2>&1 || fail "expressions: $(cat "$TMP/out"); $(tail -n 3 "$TMP/prometheus.log")"
tail -n 1 "$TMP/out"
# The check itself: a metric that is nowhere, an expression that does not parse, one that finds nothing.
mkdir -p "$TMP/tree/test/lib"
cp -r contrib docs "$TMP/tree/"
cp test/lib/dashboards.py "$TMP/tree/test/lib/"
sed -i '0,/nccl_inspector_job_processes{/s//nccl_inspector_jobs_processes{/' "$TMP/tree/contrib/grafana/nccl-inspector-jobs.json"
! python3 "$TMP/tree/test/lib/dashboards.py" names >"$TMP/out" 2>&1 || fail "a metric that is nowhere is not found"
! python3 "$TMP/tree/test/lib/dashboards.py" ask "http://127.0.0.1:$PORT" --all >"$TMP/out" 2>&1 || fail "an expression that finds nothing is not told"
sed -i '0,/sum by (job_id, user, function) (rate/s//sum by (job_id, user, function) ((rate/' "$TMP/tree/contrib/grafana/nccl-inspector-jobs.json"
! python3 "$TMP/tree/test/lib/dashboards.py" ask "http://127.0.0.1:$PORT" >"$TMP/out" 2>&1 || fail "an expression that does not parse is not told"
[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
