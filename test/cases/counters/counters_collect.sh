#!/usr/bin/env bash
# What is read of this machine goes into a file that net_prof reads, and comes back whole: Cassini under
# net_prof's keys, the other fabrics, links and what could not be read under ours.
. "$(dirname "$0")/../../lib/counters.sh"
[ -e "$CASSINI/before.txt.gz" ] || skip "no $CASSINI"
own_memory # 15,000 small files
export NI_ROOT=$FAST/root
tree() { python3 test/lib/counters/counter_trees.py "$NI_ROOT" "$@"; }
octets=hni_sts_tx_ok_octets

tree cxi before 8 -- rh cxi0 -- mlx5 mlx5_0 -- eth ens1 -- host
said collect 0 collect "$TMP/before.json"
has collect 'before.json: [0-9,]+ counters of [0-9]+ sources in '
tree cxi after 8 -- mlx5 mlx5_0 port_xmit_data=1000000 -- rh cxi0 spt_timeouts=7
said collect 0 collect -q "$TMP/after.json"
hasnt collect .
python3 - "$TMP" <<'PY' || fail "not net_prof's keys"
import json, sys
names = sorted(open("exporter/input/netprof/names.txt").read().split())
j = json.load(open(sys.argv[1] + "/before.json"))
c = j["counters"]
assert (list(j)[:2] == ["meta", "counters"] and
        list(j["meta"]) == ["input_path", "started_at", "finished_at", "duration_s"])
assert len(c) == 15120 and [x["interface"] for x in c[::1890]] == [1, 2, 3, 4, 5, 6, 7, 8]
assert all(list(x) == ["id", "interface", "counter_name", "value", "timestamp", "timestamp_ISO_8601",
                       "groups", "descriptions", "units"] for x in c)
assert [(x["id"], x["counter_name"]) for x in c[1890:3780]] == list(enumerate(names, 1))
assert all(len(x["groups"]) == len(x["descriptions"]) == len(x["units"]) >= 1 for x in c)
paused = [x for x in c if x["counter_name"] == "hni_tx_paused_1"][0]
assert paused["groups"] == ["CxiPerfStats", "CxiCongestion"] and paused["units"] == ["cycles", "cycles"]
assert (c[0]["groups"] == ["UNGROUPED"] and c[0]["descriptions"] == ["No description"] and
        c[0]["units"] == ["No Units"])
from datetime import datetime
assert all(abs(datetime.fromisoformat(x["timestamp_ISO_8601"]).timestamp() - x["timestamp"]) < 2e-6
           for x in c)
PY
said read 0 summarize --json "$TMP/before.json" "$TMP/after.json"
is read '[j["non_zero_per_iface"][str(i)] for i in range(1, 9)] == [280, 143, 188, 187, 170, 146, 177, 215]'
is read 'all(e["link_bytes_per_s"] == 25e9 and e["pci"] and e["numa"] >= 0 for e in j["entities"] if e["source"] == "cxi")'
is read 'c("mlx5_0:1", "port_xmit_data")["rate"] > 0 and c("mlx5_0:1", "port_xmit_data")["unit"] == "bytes"'
is read '[r["diff"] for e in j["entities"] if e["source"] == "rh" for r in e["counters"] if r["name"] == "spt_timeouts"] == [7]'
is read 'j["before"]["input_path"] == "/sys/class/cxi" and 0 < j["before"]["duration_s"] < 60'
cp "$TMP/said" "$TMP/summary.json"
# Nothing is lost on the way: the same differences as of the text that the values come from, and its times to
# the nanosecond.
said text 0 summarize --json "$CASSINI/before.txt.gz" "$CASSINI/after.txt.gz"
python3 - "$TMP/said" "$TMP/summary.json" "$TMP/before.json" "$CASSINI/before.txt.gz" <<'PY' || fail "a sweep that was written and read again is another one"
import gzip, json, sys
from decimal import Decimal
def rows(f):
    return {(e["name"], r["name"]): (r["before"], r["after"], r["diff"])
            for e in json.load(open(f))["entities"] if e["source"] == "cxi" for r in e["counters"]}
a, b = rows(sys.argv[1]), rows(sys.argv[2])
names = open("exporter/input/netprof/names.txt").read().split()
at = {(i // 1890 + 1, names[i % 1890]): Decimal(line.split("@")[1])
      for i, line in enumerate(gzip.open(sys.argv[4], "rt"))}
written = {(x["interface"], x["counter_name"]): x["timestamp"]
           for x in json.load(open(sys.argv[3]), parse_float=Decimal)["counters"]}
sys.exit(a != b or len(a) != 1506 or at != written)
PY

# A counter that cannot be read, and a telemetry folder that is named.
tree fault cxi3 $octets eio -- fault cxi3 pct_spt_timeouts noat -- fault cxi3 pct_sct_timeouts gone
said faults 2 collect "$TMP/faults.json"
has faults "not read: .*cxi3.*$octets"
has faults 'not read: .*cxi3.*pct_spt_timeouts'
said faults 2 summarize --json "$TMP/before.json" "$TMP/faults.json"
is faults 'c("cxi3", "pct_sct_timeouts")["state"] == "gone" and all(c("cxi3", n)["state"] in ("unreadable", "gone") and "diff" not in c("cxi3", n) for n in ("hni_sts_tx_ok_octets", "pct_spt_timeouts"))'
is faults 'sum(e["non_zero"] for e in j["entities"] if e["source"] == "cxi" and e["name"] != "cxi3") == 1506 - 187'
said "one NIC" 0 collect --from "$NI_ROOT/sys/class/cxi/cxi5/device/telemetry" "$TMP/one.json"
python3 -c 'import json, sys; c = json.load(open(sys.argv[1]))["counters"]; sys.exit(len(c) != 1890 or {x["interface"] for x in c} != {6})' "$TMP/one.json" || fail "one NIC"
said "all NICs" 2 collect --from "$NI_ROOT/sys/class/cxi" "$TMP/all.json"
said gzip 64 collect "$TMP/all.json.gz"
said "no folder" 1 collect --from "$TMP/none" "$TMP/none.json"
has "no folder" none
[ ! -e "$TMP/none.json" ] || fail "a file of nothing"
said "no place" 1 collect "$TMP/none/none.json"
has "no place" 'none/none.json: No such file'
said "standard output" 0 collect --from "$NI_ROOT/sys/class/cxi/cxi5/device/telemetry" -
cmp -s <(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["counters"])' "$TMP/said") \
  <(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["counters"])' "$TMP/one.json") ||
  fail "standard output"

# The real one reads ours: of one NIC, because it looks through all of a file for each difference.
sweep_of() { python3 - "$TMP/$1.json" "$TMP/small.$1.json" <<'PY'
import json, sys
j = json.load(open(sys.argv[1]))
j["counters"] = [c for c in j["counters"] if c["interface"] == 1 and
                 c["counter_name"][:3] in ("hni", "atu", "pct")]
json.dump(j, open(sys.argv[2], "w"))
PY
}
sweep_of before; sweep_of after
netprof 0.1.11
said small 0 summarize --json "$TMP/small.before.json" "$TMP/small.after.json"
python3 test/lib/counters/netprof.py oracle "$NETPROF" "$TMP/said" "$TMP/small.before.json" \
  "$TMP/small.after.json" || fail "net_prof reads it otherwise"
finish
