"""Compares what `nccl-inspector hang --json` says (stdin) with what was planted.

  hang_expect.py COMM OPERATION [WHERE=ranks ...] [mismatch=size,...] [ring=N] [verdict=certain]
  [consequences=N]

OPERATION is "AllReduce 50" or "p2p". Ranks are global; all ranks named under a WHERE must be there and no
others.
"""
import json
import sys

doc = json.load(sys.stdin)
comm, operation = sys.argv[1:3]
want = dict(a.split("=", 1) for a in sys.argv[3:])
print(doc["sentence"])
assert doc["verdict"] in ("likely", "certain"), doc["verdict"]
assert (doc["verdict"] == "certain") == (doc["missing"] == []), doc["missing"]
if "verdict" in want:
    assert doc["verdict"] == want.pop("verdict"), (doc["verdict"], doc["missing"])
hangs = [w for w in doc["waits"] if w["hangs"]]
roots = [w for w in hangs if w["root"]]
if "consequences" in want:
    assert len(hangs) - len(roots) == int(want.pop("consequences")), (len(hangs), len(roots))
if "ring" in want:
    assert len([w for w in roots if w["ring"]]) == int(want.pop("ring")), [w["ring"] for w in hangs]
else:
    assert len(roots) == 1 and roots[0]["ring"] == 0, [(w["comm_name"], w["ring"]) for w in roots]
named = [w for w in roots if w["comm_name"] == comm]
assert named, [w["comm_name"] for w in roots]
w = named[0]
op = w["operation"]
assert operation == ("p2p" if w["kind"] == "p2p" else "%s %d" % (op["func"], op["sn"])), op
assert set(w["mismatch"]) == set(filter(None, want.pop("mismatch", "").split(","))), w["mismatch"]
for where, ranks in want.items():
    got = sorted(r["global_rank"] for r in w["ranks"] if r["where"] == where)
    assert got == [int(r) for r in ranks.split(",")], (where, got)
print(doc["sentence"])
