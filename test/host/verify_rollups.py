"""For verify.py: do the roll-ups of a communicator agree with its records and its final line?"""


def bucket_edge(ns):
    """Lower edge of the roll-ups' bucket, docs/format.md."""
    if ns < 1024:
        return 0
    e = min(ns.bit_length() - 1, 36)
    return 1 << 36 if e == 36 else (ns >> (e - 2)) << (e - 2)


def rollup_errors(h, name, rolls, want, final):
    """Yields what is wrong. want: (func, size, timing, exec_ns) of all operations that were counted; None
    where the files do not tell."""
    count = sum(r["count"] for r in rolls)
    if count != final["written"] + final["filtered_by"].get("sampled", 0):
        yield "0x%x %s: roll-ups count %d, the final line says %s" % (h, name, count, final)
    for r in rolls:
        if r["func"] == "(others)":
            if "hist" in r or not r["count"]:
                yield "0x%x %s: roll-up %s" % (h, name, r)
            continue
        hist = {int(k): v for k, v in r["hist"].items()}
        if sum(hist.values()) != r["count"] or not r["count"] or bucket_edge(r["min_ns"]) != min(hist) or \
           bucket_edge(r["max_ns"]) != max(hist) or not r["from_ns"] <= r["to_ns"]:
            yield "0x%x %s: roll-up %s" % (h, name, r)
        if "msg_size_to_bytes" not in r and r["sum_bytes"] != r["count"] * r["msg_size_bytes"]:
            yield "0x%x %s: roll-up %s" % (h, name, r)
    if want is None:
        return
    # By function and timing source; all together where the plugin had more of them than a table holds.
    others = any(r["func"] == "(others)" for r in rolls)
    got, is_, hists = {}, {}, ({}, {})
    for r in rolls:
        g = got.setdefault(None if others else (r["func"], r["timing_source"]), [0, 0, 0, 1 << 63, 0])
        g[:] = [g[0] + r["count"], g[1] + r["sum_bytes"], g[2] + r["sum_ns"], min(g[3], r["min_ns"]),
                max(g[4], r["max_ns"])]
        for k, v in r.get("hist", {}).items():
            hists[0][int(k)] = hists[0].get(int(k), 0) + v
    exact = {}
    for func, size, timing, ns in want:
        g = is_.setdefault(None if others else (func, timing), [0, 0, 0, 1 << 63, 0])
        g[:] = [g[0] + 1, g[1] + size, g[2] + ns, min(g[3], ns), max(g[4], ns)]
        hists[1][bucket_edge(ns)] = hists[1].get(bucket_edge(ns), 0) + 1
        exact.setdefault((func, size, timing), []).append(ns)
    if got != is_:
        yield "0x%x %s: roll-ups are %s, the operations %s" % (h, name, got, is_)
    if hists[0] != hists[1] and not others:
        yield "0x%x %s: histograms are %s, the operations' %s" % (h, name, hists[0], hists[1])
    for r in rolls:
        ns = exact.get((r["func"], r["msg_size_bytes"], r["timing_source"]))
        if ("msg_size_to_bytes" not in r and r["func"] != "(others)" and (
            not ns or r["count"] > len(ns) or r["min_ns"] not in ns or r["max_ns"] not in ns)):
            yield "0x%x %s: roll-up %s, operations %s" % (h, name, r, ns)
