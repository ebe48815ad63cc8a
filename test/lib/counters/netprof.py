"""Files as net_prof writes them, and net_prof itself as oracle.

netprof.py sweep OUT [--form dict|list|text] [--seconds S] [--nics 0,1,...] [--cassini FILE.gz] [--set
cxi0:NAME=VALUE ...]
    One sweep. --cassini: the values of that file; else every counter of names.txt is 1000. VALUE: a number,
    "gone", "+N" more than it would be, or "eio": a line without a value (text only).
netprof.py oracle DIR SUMMARY.json BEFORE AFTER
    Runs the real net_prof (installed into DIR) on the two files and compares every difference with our
    summary's.
"""
import contextlib
import gzip
import io
import json
import os
import sys
from datetime import datetime, timezone
from unittest import mock

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../.."))
NAMES = open(os.path.join(ROOT, "exporter/input/netprof/names.txt")).read().split()
START = 1767225600


def values(cassini, nics, seconds):
    """{nic: {name: (value, stamp as text)}}"""
    if not cassini:
        return {n: {name: (1000, "%d.%09d" % (START + int(seconds), round(seconds % 1 * 1e9) + i))
                    for i, name in enumerate(NAMES)}
                for n in nics}
    with gzip.open(cassini, "rt") as f:
        lines = [line.strip().split("@") for line in f]
    return {n: {name: (int(v), s) for name, (v, s) in zip(NAMES, lines[n * 1890:(n + 1) * 1890])}
            for n in nics}


def sweep(args):
    out, form, seconds, nics, cassini, sets = args.pop(0), "dict", 0.0, list(range(8)), None, []
    while args:
        option = args.pop(0)
        if option == "--form": form = args.pop(0)
        elif option == "--seconds": seconds = float(args.pop(0))
        elif option == "--nics": nics = [int(n) for n in args.pop(0).split(",")]
        elif option == "--cassini": cassini = args.pop(0)
        elif option == "--set": sets.append(args.pop(0))
        else: sys.exit("what is " + option)
    data = values(cassini, nics, seconds)
    for s in sets:
        where, value = s.split("=", 1)
        nic, name = where.split(":")
        of = data[int(nic[3:])]
        old = of.get(name, (0, "%d.5" % (START + seconds)))
        if value == "gone": del of[name]
        elif value == "eio": of[name] = (None, old[1])
        elif value[0] == "+": of[name] = (old[0] + int(value), old[1])
        else: of[name] = (int(value), old[1])
    write = gzip.open if out.endswith(".gz") else open
    with write(out, "wt") as f:
        if form == "text":
            for n in nics:
                for name in NAMES: f.write("\n" if data[n][name][0] is None else "%d@%s\n" % data[n][name])
            return
        entries = []
        for n in nics:
            for i, name in enumerate(sorted(data[n]), 1):
                value, stamp = data[n][name]
                e = {"id": i, "interface": n + 1, "counter_name": name, "value": value,
                     "timestamp": float(stamp), "timestamp_ISO_8601": datetime.fromtimestamp(float(stamp), timezone.utc).isoformat()}
                if form == "list": e.update(group="UNGROUPED", description="No description")
                else: e.update(groups=["UNGROUPED"], descriptions=["No description"], units=["No Units"])
                entries.append(e)
        meta = {"input_path": "/sys/class/cxi", "started_at": "2026-01-01T00:00:00+00:00",
                "finished_at": "2026-01-01T00:00:01+00:00", "duration_s": 1.0}
        json.dump(entries if form == "list" else {"meta": meta, "counters": entries}, f, indent=2)


def oracle(folder, summary, before, after):
    sys.path.insert(0, folder)
    for name in ("matplotlib", "matplotlib.pyplot", "numpy"):
        sys.modules[name] = mock.MagicMock()  # only its pictures need them
    from net_prof import engine
    theirs = engine.summarize(before, after)
    said = io.StringIO()
    with contextlib.redirect_stdout(said): engine.dump(theirs)
    ours = json.load(open(summary))
    diffs = {}
    for e in ours["entities"]:
        ids = {name: i for i, name in enumerate(NAMES, 1)}
        for c in e["counters"]:
            if "metric_id" in c: diffs[e["interface"], c["metric_id"]] = c.get("diff")
        for name in e["unchanged"]:
            if name in ids: diffs[e["interface"], ids[name]] = 0
    bad = 0
    for key, diff in theirs["full_diffs"].items():
        own = diffs.get(key, 0)
        if own != diff:
            bad += 1
            print("FAIL", key, NAMES[key[1] - 1], "net_prof", diff, "ours", own)
    for k, n in theirs["non_zero_per_iface"].items():
        if ours["non_zero_per_iface"].get(str(k), 0) != n: bad += 1; print("FAIL interface", k, n)
    for k, m in theirs["important_metrics"].items():
        own = ours["important_metrics"][str(k)]
        if (own["metric_name"] != m["metric_name"] or
            any(m["diffs"][int(i)] != (d or 0) for i, d in own["diffs"].items())):
            bad += 1; print("FAIL important", k, m, own)
    if sum(ours["non_zero_per_iface"].values()) != theirs["total_non_zero"]:
        bad += 1
        print("FAIL total", theirs["total_non_zero"])
    meta = theirs["before_meta"]
    if meta and meta["input_path"] != ours["before"]["input_path"]: bad += 1; print("FAIL meta", meta)
    if "Important Metrics" not in said.getvalue(): bad += 1; print("FAIL dump")
    print("%d differences of net_prof, %d differ" % (len(theirs["full_diffs"]), bad))
    sys.exit(bad != 0)


if __name__ == "__main__":
    if sys.argv[1] == "sweep": sweep(sys.argv[2:])
    else: oracle(*sys.argv[2:])
