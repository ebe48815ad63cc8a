#!/usr/bin/env python3
"""counter_series.py FILE [ENTITY COUNTER]   a time series of counters as docs/format.md has it, read without the product's code.

With a counter: its values in order, as the file says them, a line each that differs from the one before:
number, or "null" where it could not be read, "-" where its set does not have it (sweeps over all counters are
left out). Without: a line a set.
Also counts: as a last line "samples N missed M".
"""
import gzip
import json
import sys


def samples(path):
    """(sample's record, set's record, {(entity, name): value or None}) of each sample."""
    sets, values = {}, {}
    number = 0
    for text in gzip.open(path, "rt") if path.endswith(".gz") else open(path):
        line = json.loads(text)
        assert line["header"] == {"id": "0x0", "rank": -1, "n_ranks": 0, "nnodes": 0}, line["header"]
        if "counter_names" in line:
            n = line["counter_names"]
            s = sets.setdefault(n["set_sn"],
                                {"interval_ns": n["interval_ns"], "names": {}, "n": n["n_counters"]})
            for i, m in enumerate(n["metrics"]):
                s["names"][n["first"] + i] = (n["source"], n["name"], m["name"])
            continue
        c = line["counters"]
        if not c.get("first"):
            assert c["sample_sn"] == number, "sample %d after %d" % (c["sample_sn"], number - 1)
            number += 1
            at = values.setdefault(c["set_sn"], {})
            if "since_sn" in c:
                assert at["sn"] == c["since_sn"]
            else:
                at.clear()
            at["sn"], now = c["sample_sn"], {}
        s = sets[c["set_sn"]]
        for i, v in enumerate(c["values"], c.get("first", 0)):
            if v is not None:
                at[i] = (at.get(i, 0) + v) % 2**64
            now[s["names"][i]] = at[i] if v is not None else None
        if len(now) == s["n"]:
            yield c, s, now


def main(path, entity=None, counter=None):
    before, n, missed = None, 0, 0
    for c, s, now in samples(path):
        if c.get("full"):
            continue
        n += 1
        missed += c.get("missed", 0)
        if not entity:
            text = "set %d: %d counters every %d ns" % (c["set_sn"], s["n"], s["interval_ns"])
        else:
            found = [v for k, v in now.items() if k[1:] == (entity, counter)]
            assert len(found) < 2, found
            text = "-" if not found else "null" if found[0] is None else str(found[0])
        if text != before:
            print(text)
        before = text
    print("samples %d missed %d" % (n, missed))


if __name__ == "__main__":
    main(*sys.argv[1:])
