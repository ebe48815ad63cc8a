#!/usr/bin/env python3
"""A strict reader of OpenMetrics 1.0 and of Prometheus' text 0.0.4, as far as the agent writes them.

    openmetrics.py open|text FILE [names PAGE]     names: the table of PAGE has the names of FILE, and FILE those of the table

Demands: each family's lines together, HELP and TYPE once and first, names and labels of the right letters, no
series twice, values and `le` in canonical form, buckets cumulative and +Inf equal to _count, units that end
the name, `# EOF` at the very end.
"""
import re, sys

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
NUMBER = re.compile(r"(-?(\d+|\d+\.\d+|\d(\.\d+)?e[+-]\d\d+)|[+-]Inf|NaN)\Z")
SUFFIXES = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"],
            "info": ["_info"]}


def fail(line, why):
    sys.exit(f"line {line}: {why}")


def sample(at, line):
    """(name, ((label, value), ...), value)"""
    m = re.match(r"([^{ ]+)\{", line)
    if not m or not NAME.match(m.group(1)):
        fail(at, f"no sample: {line!r}")
    p, labels = m.end(), []
    while line[p] != "}":
        q = line.index("=", p)
        if not LABEL.match(line[p:q]) or line[q + 1] != '"':
            fail(at, f"a label: {line!r}")
        name, value, p = line[p:q], "", q + 2
        while line[p] != '"':
            if line[p] == "\\":
                if line[p + 1] not in 'n\\"':
                    fail(at, f"an escape: {line!r}")
                value += {"n": "\n", "\\": "\\", '"': '"'}[line[p + 1]]
                p += 2
            else:
                value += line[p]
                p += 1
        p += 1
        if any(ord(c) < 32 for c in value):
            fail(at, f"a control character: {line!r}")
        labels.append((name, value))
        if line[p] == ",":
            p += 1
        elif line[p] != "}":
            fail(at, f"between labels: {line!r}")
    if line[p + 1] != " " or not NUMBER.match(line[p + 2 :]):
        fail(at, f"a value: {line!r}")
    if len({n for n, _ in labels}) != len(labels):
        fail(at, f"a label twice: {line!r}")
    return m.group(1), tuple(labels), line[p + 2 :]


def canonical(v):
    """As Prometheus' clients write numbers of `le`."""
    if v == float("inf"):
        return "+Inf"
    if v < 1e6:
        return repr(v)
    for n in range(18):
        digits, exponent = f"{v:.{n}e}".split("e")
        if float(f"{digits}e{exponent}") == v:
            break
    return f"{digits}e{exponent}"


def read(text, form):
    if not text.endswith("\n"):
        sys.exit("the last line does not end")
    lines = text[:-1].split("\n")
    if form == "open":
        if lines.pop() != "# EOF":
            sys.exit("no # EOF at the end")
    families, seen, family = {}, set(), None
    for at, line in enumerate(lines, 1):
        if line.startswith("# "):
            what, name, rest = line[2:].split(" ", 2)
            if what == "HELP":
                if name in families:
                    fail(at, f"{name} again")
                family = families[name] = {"help": rest, "samples": []}
                current = name
            elif name != current or family["samples"] or what.lower() in family:
                fail(at, f"{what} of {name} is not where it belongs")
            family[what.lower()] = rest
            if what == "UNIT" and (form != "open" or not name.endswith("_" + rest)):
                fail(at, f"the unit {rest} of {name}")
            continue
        name, labels, value = sample(at, line)
        kind = family.get("type") if family else fail(at, "no family")
        base = SUFFIXES[kind] if form == "open" else [""] if kind in ("counter", "gauge") else SUFFIXES[kind]
        if not any(name == current + s for s in base):
            fail(at, f"{name} in the family {current}")
        if (name, labels) in seen or (name, tuple(sorted(labels))) in seen:
            fail(at, f"twice: {line!r}")
        seen.update({(name, labels), (name, tuple(sorted(labels)))})
        if dict(labels).get("node") in (None, ""):
            fail(at, f"no node: {line!r}")
        if kind == "counter" and (float(value) < 0 or value == "NaN"):
            fail(at, f"a counter: {line!r}")
        family["samples"].append((name, labels, value))
    for name, f in families.items():
        if not f["samples"] or "type" not in f or not f["help"]:
            sys.exit(f"{name}: no samples, no type or no help")
        if f["type"] == "histogram":
            histogram(name, f["samples"])
        if form == "text" and f["type"] == "counter" and not name.endswith("_total"):
            sys.exit(f"{name}: a counter without _total")
    return families


def histogram(name, samples):
    one = {}
    for n, labels, value in samples:
        key = tuple(x for x in labels if x[0] != "le")
        one.setdefault(key, {"bucket": [], "order": []})["order"].append(n[len(name):])
        if n.endswith("_bucket"):
            le = dict(labels)["le"]
            if le != canonical(float(le.replace("+Inf", "inf"))):
                sys.exit(f"{name}: le {le!r} is not {canonical(float(le))!r}")
            one[key]["bucket"].append((float(le.replace("+Inf", "inf")), int(value)))
        else:
            one[key][n[len(name):]] = float(value)
    for key, h in one.items():
        edges, counts = [e for e, _ in h["bucket"]], [c for _, c in h["bucket"]]
        if edges != sorted(set(edges)) or counts != sorted(counts) or edges[-1] != float("inf"):
            sys.exit(f"{name} {key}: buckets {h['bucket']}")
        if counts[-1] != h["_count"] or "_sum" not in h or h["_sum"] < 0:
            sys.exit(f"{name} {key}: +Inf {counts[-1]}, count {h.get('_count')}")
        if h["order"] != ["_bucket"] * len(edges) + ["_sum", "_count"]:
            sys.exit(f"{name} {key}: not whole, or mixed with another")


def documented(page):
    """{name: type} of the table between the marks; a row may have several names and types."""
    table = re.search(r"<!-- metrics -->\n(.*?)<!-- end of metrics -->", open(page).read(), re.S).group(1)
    names = {}
    for row in table.split("\n")[2:]:
        if not row:
            continue
        cells = [c.strip() for c in row.strip("|").split("|")]
        found, types = re.findall(r"`([^`]+)`", cells[0]), cells[1].split(", ")
        for i, n in enumerate(found):
            names[n] = types[i] if len(types) == len(found) else types[0]
    return names


def main():
    form, path = sys.argv[1:3]
    families = read(open(path, encoding="utf-8", newline="").read(), form)
    told = sum(len(f["samples"]) for f in families.values())
    print(told)
    says = families["nccl_inspector_agent_series"]["samples"][0][2]
    if float(says) != told:
        sys.exit(f"agent_series is {says}")
    if len(sys.argv) > 3:
        ours = {}
        for name, f in families.items():
            suffix = {"counter": "_total", "info": "_info"}.get(f["type"], "")
            ours[(name + suffix).removeprefix("nccl_inspector_")] = f["type"]
        theirs = documented(sys.argv[4])
        for name in sorted(set(ours) ^ set(theirs)):
            print(f"{name}: " + ("not in the table" if name in ours else "not told"))
        for name in sorted(set(ours) & set(theirs)):
            if ours[name] != theirs[name]:
                print(f"{name} is a {ours[name]}, the table says {theirs[name]}")
        sys.exit(ours != theirs)


if __name__ == "__main__":
    main()
