#!/bin/bash
# Every example line of docs/format.md parses, is of the kind the page says, and has no key the parser does
# not know.
. "$(dirname "$0")/../../lib/case.sh"
BIN=${NI_BIN:-$BUILD/nccl-inspector}
need python3
python3 - "$BIN" "$TMP" <<'PY'
import glob, json, re, subprocess, sys
sys.path.insert(0, "test/lib")
from doc_lines import doc_lines
lines = [l for l in doc_lines("docs/format.md") if l.startswith('{"header"') or l.startswith('..."')]
full = next(l for l in lines if '"coll_perf"' in l)
head = full[:full.index('"coll_perf"')]
meta = head[head.index('"metadata"'):].rstrip(",")
out, kinds = [], set()
for l in lines:
    if l.startswith("..."):
        l = head + l[3:]
    l = l.replace('"metadata":{...}', meta)
    if l.startswith('{"header":{...}'):
        continue
    kinds |= set(json.loads(l)) - {"header", "metadata"}
    out.append(l)
want = set()
for f in glob.glob("format/*.def"):
    want |= set(re.findall(r'^(?:KIND|OPERATION)\("(\w+)"', open(f).read(), re.M))
assert len(want) >= 25 and kinds == want, "examples of %s missing or extra" % (kinds ^ want)
open(sys.argv[2] + "/x.jsonl", "w").write("".join(l + "\n" for l in out))
doc = json.loads(subprocess.run([sys.argv[1], "check", "--json", sys.argv[2]], capture_output=True,
                                text=True).stdout)
assert doc["lines"] == len(out) and doc["bad_lines"] == 0, doc["bad_line_samples"]
assert doc["unknown_keys"] == 0 and doc["unknown_kinds"] == {}, "a key of the page is unknown to the parser"
print("%d example lines" % len(out))
codes = set(re.findall(r'  X\(\w+, "(\w+)"', open("exporter/model/ledger/ledger.h").read()))
page = open("docs/check.md").read()
missing = sorted(c for c in codes if "`%s`" % c not in page)
assert len(codes) > 20 and not missing, "check says what docs/check.md does not explain: %s" % missing
PY
