#!/usr/bin/env bash
# NVIDIA's Prometheus mode by the real dump thread: one window of 30 s, read by promtool and by node_exporter;
# gone at the end.
. "$(dirname "$0")/../../host/lib.sh"
cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$TMP/libcuda.so.1" -x c - <<'C' || skip "no compiler"
#include <string.h>
int cuCtxGetDevice(int *d) { *d = 3; return 0; }
int cuDeviceGetUuid(unsigned char *u, int d) { for (int i = 0; i < 16; i++) u[i] = i; return 0; }
int cuDeviceGetPCIBusId(char *s, int n, int d) { strncpy(s, "0000:1B:00.0", n); return 0; }
C
name=nccl_inspector_metrics_GPU-00010203-0405-0607-0809-0a0b0c0d0e0f.prom
run "a window" LD_PRELOAD="$TMP/libcuda.so.1" NCCL_INSPECTOR_PROM_DUMP=1 NCCL_INSPECTOR_PROM_DUMP_STATS=1 \
  SLURM_JOB_ID=4711 umask 077 initname 0 dp ops 0 200 p2p 0 50 \
  sleep 30600 sh "cp -p $TMP/logs/*.prom $TMP/" fin 0
verify
[ -e "$TMP/$name" ] || fail "no $name while the job ran: $(ls "$TMP" "$TMP/logs")"
[ "$(stat -c %a "$TMP/$name")" = 644 ] ||
  fail "node_exporter cannot read a file of mode $(stat -c %a "$TMP/$name")"
left=$(find "$TMP/logs" -name '*prom*')
[ -z "$left" ] || fail "left behind: $left"
grep -q '^nccl_bus_bandwidth_gbs{version="v6.1",slurm_job_id="4711",node="[^"]*",gpu="GPU3",comm_name="dp",n_nodes="[0-9]*",nranks="8",collective="[A-Za-z]*",message_size="[^"]*",algo_proto="[^"]*"} [0-9.]*$' "$TMP/$name" ||
  { fail "no bandwidth of dp"; head -n 20 "$TMP/$name"; }
grep -q '^nccl_p2p_exec_time_microseconds{.*p2p_operation="[A-Za-z]*",message_size="[^"]*"} [0-9.]*$' \
  "$TMP/$name" || fail "no time of Sends"
labels='{version="v6.1",slurm_job_id="4711",node="[^"]*",gpu="GPU3"}'
grep -q "^nccl_collectives_total$labels 200\$" "$TMP/$name" &&
  grep -q "^nccl_p2p_total$labels 50\$" "$TMP/$name" &&
  grep -q "^nccl_p2p_dropped_total$labels 0\$" "$TMP/$name" ||
  { fail "no totals of 200 and 50"; grep _total "$TMP/$name"; }
# Means over all size classes, weighted by what the log has: the same as the log's.
python3 - "$TMP/$name" "$TMP/logs" <<'P' || fail "means differ from the log's"
import collections, glob, gzip, json, math, re, sys
want = collections.defaultdict(list)
for path in glob.glob(sys.argv[2] + "/*.gz"):
    for line in gzip.open(path, "rt"):
        r = json.loads(line)
        for kind in ("coll", "p2p"):
            p = r.get(kind + "_perf")
            if p and kind + "_exec_time_ns" in p:
                size, unit = p[kind + "_msg_size_bytes"], 0
                while size >= 1024 and unit < 4:
                    size, unit = size // 1024, unit + 1
                label = "%d-%d%s" % (size, size + 1, ("B", "KB", "MB", "GB", "TB")[unit]) if size else "0B"
                key = kind, p["coll" if kind == "coll"
                              else "p2p"], label, (p["coll_algo"] + "_" +
                                                   p["coll_proto"]) if kind == "coll" else ""
                want[key].append((p[kind + "_exec_time_ns"] / 1e3, p[kind + "_busbw_gbs"]))
got = {}
for line in open(sys.argv[1]):
    m = re.match(r'nccl_(p2p_|collective_|)(bus_bandwidth_gbs|exec_time_microseconds)\{(.*)\} (.*)', line)
    if m:
        l = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', m[3]))
        kind = "p2p" if m[1] == "p2p_" else "coll"
        got[kind, l.get("collective") or l["p2p_operation"], l["message_size"], l.get("algo_proto", ""),
            m[2]] = float(m[4])
assert want and len(got) == 2 * len(want), (len(want), sorted(got))
for key, values in want.items():
    took = sum(v[0] for v in values) / len(values)
    bus = math.exp(sum(math.log(v[1]) for v in values) / len(values))
    assert abs(got[key + ("exec_time_microseconds",)] - took) < 1e-3 + 1e-6 * took, (key, took)
    assert abs(got[key + ("bus_bandwidth_gbs",
                          )] - bus) < 1e-5 * bus + 2e-6, (key, bus, got[key + ("bus_bandwidth_gbs",)])
P
if command -v promtool >/dev/null; then
  # That the unit is no base unit is NVIDIA's name; nothing else may be said of it.
  promtool check metrics <"$TMP/$name" >"$TMP/lint" 2>&1 || true # 3 for that
  ! grep -qv 'use base unit "seconds" instead of "microseconds"' "$TMP/lint" ||
    { fail "promtool"; cat "$TMP/lint"; }
else
  echo "no promtool (package prometheus): not linted"
fi
free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
if command -v prometheus-node-exporter >/dev/null; then
  port=$(free_port)
  mkdir "$TMP/textfile" && mv "$TMP/$name" "$TMP/textfile/"
  prometheus-node-exporter --web.listen-address="127.0.0.1:$port" --collector.disable-defaults \
    --collector.textfile \
    --collector.textfile.directory="$TMP/textfile" >"$TMP/exporter.log" 2>&1 &
  wait_for 10 curl -s -o "$TMP/metrics" "http://127.0.0.1:$port/metrics" ||
    fail "node_exporter does not serve"
  grep -q '^node_textfile_scrape_error 0' "$TMP/metrics" ||
    { fail "node_exporter refuses the file"; cat "$TMP/exporter.log"; }
  grep -q '^nccl_collective_exec_time_microseconds{.*nranks="8"' "$TMP/metrics" ||
    fail "node_exporter does not tell it"
  if command -v prometheus >/dev/null; then
    asked=$(free_port)
    printf '%s\n' 'global: {scrape_interval: 1s}' 'scrape_configs:' '- job_name: node' \
      "  static_configs: [{targets: ['127.0.0.1:$port']}]" >"$TMP/prometheus.yml"
    prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/tsdb" \
      --web.listen-address="127.0.0.1:$asked" >"$TMP/prometheus.log" 2>&1 &
    got=
    scraped() {
      got=$(curl -s "http://127.0.0.1:$asked/api/v1/query" --data-urlencode 'query=count(nccl_bus_bandwidth_gbs{gpu="GPU3",slurm_job_id="4711"})' |
        jq -r '.data.result[0].value[1] // empty' 2>/dev/null) && [ -n "$got" ]
    }
    wait_for 20 scraped || true # told below
    want=$(grep -c '^nccl_bus_bandwidth_gbs{' "$TMP/textfile/$name")
    [ "$got" = "$want" ] || fail "Prometheus has ${got:-no} series of bandwidth, the file has $want"
  fi
else
  echo "no prometheus-node-exporter: not read by it"
fi
finish
