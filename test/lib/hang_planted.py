"""Plants hangs in logs alone (hang_plant.py), asks `nccl-inspector hang` about each and compares.

  hang_planted.py INSPECTOR DIR [KIND ...]     all kinds, layouts and two seeds (SEEDS). Ends with 1 if one is not named right.

Right is: the operation comes first, is a root, and exactly the planted rank is missing from it, called
something else or another size; of a Send without its Recv the sender is the one who waits, for the rank that
left it out. And the sentence names them. No other operation is a root but those that the same rank is missing
from, or that are of the same ring.
"""
import json
import os
import subprocess
import sys

import hang_plant

MISSING = ("no_data", "never_called", "gone", "left", "called", "other_call")


def wrong(doc, right):
    """Why what is said is not right; None: it is."""
    if doc["verdict"] != "likely":
        return "verdict " + doc["verdict"]
    first = doc["waits"][0]
    op = first["operation"]
    at = "%s %s %s %s" % (first["comm_name"], first["hash"], op["func"], op["sn"])
    if first["hash"] != right["hash"] or not (first["hangs"] and first["root"]):
        return "first is " + at
    views = {r["global_rank"]: r for r in first["ranks"]}
    missing = sorted(g for g, v in views.items() if v["where"] in MISSING)
    comm_rank = {g: i for i, g in enumerate(right["members"])}
    where, rank = right["where"], right["rank"]
    names = ["rank %d " % rank]
    if where == "norecv":
        sender = views[right["sender"]]
        if first["kind"] != "p2p" or op["func"] != "Send" or op["peer"] != comm_rank[rank]:
            return "p2p: " + at
        if sender["where"] != "inside" or sender.get("waits_for") != comm_rank[rank]:
            return "the sender: %s" % sender
        names = ["rank %d " % right["sender"], " Send to rank %d" % comm_rank[rank]]
    elif (op["func"], op["sn"]) != (right["func"], right["sn"]):
        return "operation: " + at
    elif where == "size":
        names = ["rank %d (%s) called it with 1,024 bytes" % (rank, views[rank]["hostname"])]
        if first["mismatch"] != ["size"] or missing:
            return "size: %s, missing %s" % (first["mismatch"], missing)
    elif where == "inside":
        names = ["everyone is inside: nobody is missing"]
        if missing:
            return "missing: %s" % missing
    elif missing != [rank] or views[rank]["where"] != where:
        return "missing: %s (%s), not %d (%s)" % (missing, views[rank]["where"], rank, where)
    for w in doc["waits"]: # other ends: the same rank is missing there, or they are of one ring
        absent = [v["global_rank"] for v in w["ranks"] if v["where"] in MISSING]
        if (w["hangs"] and w["root"] and
            not (absent == [rank] if where == "no_data" else w is first or
                 (w["ring"] and w["ring"] == first["ring"]))):
            return "%s %s is no consequence" % (w["comm_name"], w["hash"])
    lacks = [n for n in names if n not in doc["sentence"]]
    return "the sentence lacks %s" % lacks if lacks else None


def main(inspector, directory, kinds):
    table, bad = {}, 0
    for kind in kinds:
        for layout in hang_plant.LAYOUTS:
            for seed in range(int(os.environ.get("SEEDS", "2"))):
                at = "%s/%s-%s-%d" % (directory, kind, layout, seed)
                right = hang_plant.make(at, kind, layout, seed)
                if not right:
                    continue
                command = [inspector, "hang", "--json", "--box-dir", directory, at]
                doc = json.loads(subprocess.run(command, capture_output=True, check=False).stdout)
                why = wrong(doc, right)
                good, all_ = table.get((kind, layout), (0, 0))
                table[kind, layout] = (good + (why is None), all_ + 1)
                bad += why is not None
                if why:
                    print("FAIL %s-%s-%d: %s: %s\n     right: %s" %
                          (kind, layout, seed, why, doc["sentence"][:600], right))
    for kind in kinds:
        print("%-7s" % kind, *("%s %d/%d  " % (layout, *table.get((kind, layout), (0, 0)))
                               for layout in hang_plant.LAYOUTS))
    n = sum(t[1] for t in table.values())
    print("%d of %d are named right" % (n - bad, n))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:] or hang_plant.KINDS))
