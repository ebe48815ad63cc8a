#!/usr/bin/env bash
# Each counter that a table, a page, a CSV or JSON shows has words for what it counts: all of Cassini's (also
# those of Cassini 2), of its retry handler and driver, of ports and devices of InfiniBand, RoCE, EFA, ionic
# and Omni-Path, interfaces, TCP, the host and GPUs.
. "$(dirname "$0")/../../lib/counters.sh"
[ -e "$CASSINI/before.txt.gz" ] || skip "no $CASSINI"
own_memory # 10,000 small files
export NI_ROOT=$FAST/root
tree() { python3 test/lib/counters/counter_trees.py "$NI_ROOT" "$@"; }
NVML=$BUILD/test/nvml
if [ -e "$NVML/libnvidia-ml.so.1" ]; then
  cp test/fake_nvml/healthy.txt "$TMP/nvml"
  export NI_FAKE_NVML=$TMP/nvml LD_LIBRARY_PATH=$NVML
fi

# All counters that there are, as their rows in two sweeps; of the second one all but gauges are higher.
tree cxi cassini2 2 -- rh cxi0 -- mlx5 mlx5_0 -- bnxt bnxt_re0 -- efa efa_0 -- hfi1 hfi1_0 -- ionic ionic_0 \
  -- eth ens1 -- host
said before 0 collect -q "$TMP/b.json"
python3 - "$TMP" <<'END'
import json, sys
j = json.load(open(sys.argv[1] + "/b.json"))
for c in j["counters"] + [c for e in j["nccl_inspector"]["entities"] for c in e["counters"]]:
    c["timestamp"] += 10
    if isinstance(c.get("value"), int):
        c["value"] += 3
json.dump(j, open(sys.argv[1] + "/a.json", "w"))
END
said json 0 summarize --json "$TMP/b.json" "$TMP/a.json"
cp "$TMP/said" "$TMP/all.json"
said text 0 summarize --top 5000 --groups --csv "$TMP/all.csv" "$TMP/b.json" "$TMP/a.json"
if [ -s "$BUILD/report/report_assets.tail" ]; then
  said page 0 summarize --html "$TMP/page.html" "$TMP/b.json" "$TMP/a.json"
fi
# What two working nodes moved, as they were recorded.
said recorded 0 summarize --json "$CASSINI/before.txt.gz" "$CASSINI/after.txt.gz"
cp "$TMP/said" "$TMP/recorded.json"
said compare 0 compare --json "$CASSINI/before.txt.gz,$CASSINI/after.txt.gz" "$TMP/b.json,$TMP/a.json"
python3 - "$TMP" "$CASSINI/counter-names.txt" <<'END' || fail "a counter is shown without what it counts"
import csv, json, os, re, sys
tmp, bad = sys.argv[1], []
UNKNOWN = "its driver alone knows"

def good(where, name, text):
    if (not text or text == UNKNOWN or len(text) < 10 or "$" in text or text in ("-", "No description") or (
        "_" in name and name in text)):
        bad.append("%s: %s: %r" % (where, name, text))

shown = set()
for f in "all", "recorded":
    for e in json.load(open("%s/%s.json" % (tmp, f)))["entities"]:
        for c in e["counters"]:
            good(f, c["name"], c["meaning"])
            shown.add((e["source"], c["name"]))
names = {n for s, n in shown if s == "cxi"}
assert names >= set(open(sys.argv[2]).read().split()) and len(names) == 1922, len(names)
assert {s for s, _ in shown} >= {"cxi", "rh", "cxidev", "ib", "ibdev", "eth", "tcp", "host"}, shown
assert "LD_LIBRARY_PATH" not in os.environ or len([1 for s, _ in shown if s == "gpu"]) > 20
for r in csv.DictReader(open(tmp + "/all.csv")):
    good("csv", r["counter"], r["meaning"])
# net_prof's groups; what is in none has net_prof's words
for c in json.load(open(tmp + "/b.json"))["counters"]:
    for d in c["descriptions"] if c["groups"] != ["UNGROUPED"] else []:
        good("sweep", c["counter_name"], d)
if os.path.exists(tmp + "/page.html"):
    data = re.search(r'<script[^>]*id="?data"?[^>]*>(.*?)</script>', open(tmp + "/page.html").read(),
                     re.S).group(1)
    page = json.loads(data)
    for group, name, unit, text in page["more"]["meanings"]:
        good("page, " + group, name, text)
    for e in page["pair"]["entities"]:
        for c in e["counters"]:
            good("page, " + e["name"], c["name"], c["meaning"])
print("\n".join(bad[:20]))
sys.exit(bool(bad))
END
said text 0 summarize --top 5000 --groups "$TMP/b.json" "$TMP/a.json"
has text '  what it counts$'
hasnt text 'its driver alone knows'
has text '^ *[0-9]+ +[0-9]+ atu_cache_evictions .* translations that made room for others in the cache$'
finish "each counter that is shown has words for what it counts"
