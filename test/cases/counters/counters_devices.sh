#!/usr/bin/env bash
# What RDMA devices count beside their ports, NICs of AMD (ionic) and Omni-Path; and nothing is left out in
# silence, nor called a fault.
. "$(dirname "$0")/../../lib/counters.sh"
export NI_ROOT=$TMP/root
tree() { python3 test/lib/counters/counter_trees.py "$NI_ROOT" "$@"; }
# EXPRESSION of Python, true of $TMP/a.json: e[source, name] are an entity's counters, out what is left out
swept() {
  python3 - "$TMP/a.json" "$1" <<'END' || fail "not so: $1"
import json, sys
of = json.load(open(sys.argv[1]))["nccl_inspector"]
e = {(x["source"], x["name"]): [c["name"] for c in x["counters"]] for x in of["entities"]}
out = {u["path"].split("/sys/")[-1]: u["why"] for u in of["unread"] if u["left_out"]}
assert not [u for u in of["unread"] if not u["left_out"]]
sys.exit(not eval(sys.argv[2]))
END
}

tree hfi1 hfi1_0 -- mlx5 mlx5_0 -- bnxt bnxt_re0 -- ionic ionic_0 -- host \
  -- put sys/class/infiniband/mlx5_0/ports/1/counters_ext/port_xmit_data_64 7 -- put \
  sys/class/net/dummy0/statistics/rx_bytes 1
said before 0 collect "$TMP/b.json"
tree hfi1 hfi1_0 RcTimeOut=2 TxSbHdrUncErr=1 -- ionic ionic_0 tx_rdma_ack_timeout=12 tx_rdma_retx_pkts=60000 \
  tx_rdma_ucast_pkts=5001000 resp_rx_outof_buf=70
said after 0 collect "$TMP/a.json"
has after 'left out: .*/mlx5_0/ports/1/counters_ext: a folder of counters that only this driver has'
swept '"DcFltCrdts" in e["ibdev", "hfi1_0"] and "TxFlitVL0,32" in e["ib", "hfi1_0:1"] and "DcFltCrdts" not in e["ib", "hfi1_0:1"]'
swept '("ibdev", "mlx5_0") not in e and "out_of_buffer" in e["ib", "mlx5_0:1"]'
swept 'out["class/infiniband/mlx5_0/hw_counters/out_of_buffer"].endswith("mlx5_0/ports/1/hw_counters has a counter of that name, which is read")'
swept '"fills it from another counter" in out["class/infiniband/bnxt_re0/ports/1/hw_counters/recoverable_errors"] and "not up" in out["class/net/dummy0"]'
said findings 3 summarize --gate --json "$TMP/b.json" "$TMP/a.json"
is findings "[(f['id'], f['entity']) for f in j['findings'] if f['level'] == 'critical'] == [('hardware', 'hfi1_0'), ('ack-timeout', 'ionic_0:1'), ('ack-timeout', 'hfi1_0:1')]"
is findings "('lossy', 'ionic_0:1') in [(f['id'], f['entity']) for f in j['findings']] and ('software-slow', 'ionic_0:1') in [(f['id'], f['entity']) for f in j['findings']]"
is findings "j['complete'] and [u for u in j['unread'] if u['left_out']]"
said text 0 summarize "$TMP/b.json" "$TMP/a.json"
has text '^left out   after, .*recoverable_errors'

# Each second: bytes of ionic, retries of Omni-Path.
said record 0 record --every 100ms --for 300ms "$TMP"
zcat "$TMP"/*-counters-*.jsonl.gz >"$TMP/series"
python3 - "$TMP/series" <<'END' || fail "the short lists have not what they should"
import json, sys
names = [x["counter_names"] for x in map(json.loads, open(sys.argv[1])) if "counter_names" in x]
few = json.dumps([n for n in names if n["interval_ns"]])
wanted = "tx_rdma_ucast_bytes rx_rdma_ucast_bytes tx_rdma_retx_pkts tx_rdma_ack_timeout RcTimeOut RcResend".split()
sys.exit(not all('"%s"' % w in few for w in wanted) or '"DcFltCrdts"' in few)
END

# A tree without /proc lacks nothing that could be had, and is counted alike by both.
rm -r "$NI_ROOT/proc"
said "no /proc" 0 collect "$TMP/c.json"
has "no /proc" 'left out: .*/proc/net/snmp: No such file'
counted=$(sed -n 's/.*c.json: \([0-9]*\) counters of \([0-9]*\) sources in .*/\1 \2/p' "$TMP/errors")
said list 0 list --json
is list "'%d %d' % (sum(e['counters'] for e in j['entities']), len(j['entities'])) == '$counted'"
said quiet 0 collect -q "$TMP/c.json"
hasnt quiet .
finish "devices, ionic and Omni-Path are read, and what is left out is said"
