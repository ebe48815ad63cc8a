"""Tables of outcomes (judge.py): a line for each kind and size, in Markdown, which a terminal shows as well."""
import collections

HEAD = ["cause", "jobs", "cost %", "first", "exactly", "at all", "both", "innocents", "said / true", "onset error", "undecided"]


def quantile(values, q):
    values = sorted(values)
    if not values:
        return None
    at = q * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (at - low)


def number(v):
    return "-" if v is None else "%.0f" % v if v >= 100 else "%.3g" % v


def of_jobs(n, all_):
    return "%d" % n if n in (0, all_) else "%d (%.0f %%)" % (n, 100.0 * n / all_)


def line(name, outcomes):
    n = len(outcomes)
    guilty = [o for o in outcomes if o["causes"]]
    accusing = [o for o in outcomes if o["innocents"]]
    lost = [o["lost"] for o in outcomes if o["lost"] is not None]
    onset = [o["onset"] for o in outcomes if o["onset"] is not None]
    two = [o for o in guilty if o["causes"] > 1]
    cells = [name, "%d" % n, "%.1f" % (sum(o["cost"] for o in outcomes) / n)]
    for key in ("first", "exactly", "named"):
        cells.append(of_jobs(sum(bool(o[key]) for o in guilty), n) if guilty else "-")
    cells.append(of_jobs(sum(o["named"] == o["causes"] for o in two), len(two)) if two else "-")
    cells.append("%d (%.1f)" % (len(accusing), sum(o["innocents"] for o in accusing) / n) if accusing else "0")
    cells.append(number(quantile(lost, 0.5)))
    cells.append("%s, p95 %s" % (number(quantile(onset, 0.5)), number(quantile(onset, 0.95))) if onset else "-")
    cells.append("%d" % sum(o["undecided"] for o in outcomes))
    return cells


def rows(outcomes, by_layout=False):
    """Outcomes by row, in their order; what cannot be told apart stands by itself."""
    out = collections.OrderedDict()
    for o in outcomes:
        name = o["row"] + ("" if o["identifiable"] else " (like any other)")
        out.setdefault((o["layout"] + " " if by_layout else "") + name, []).append(o)
    return out


def markdown(outcomes, by_layout=False):
    lines = [HEAD] + [line(name, o) for name, o in rows(outcomes, by_layout).items()]
    text = ["| " + " | ".join(c) + " |" for c in lines]
    return "\n".join([text[0], "|" + "---|" * len(HEAD)] + text[1:])


def terminal(outcomes, by_layout=False):
    lines = [HEAD] + [line(name, o) for name, o in rows(outcomes, by_layout).items()]
    wide = [max(len(x[i]) for x in lines) for i in range(len(HEAD))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(x, wide))) for x in lines)


def failing(o):
    """Why a job is not right, or None."""
    if not o["complete"]:
        return "incomplete"
    if o["causes"] == 0:
        return "accused" if o["findings"] else None
    if o["innocents"]:
        return "innocents"
    if o["identifiable"] and o["named"] < o["causes"]:
        return "not named"
    if o["identifiable"] and not o["first"]:
        return "not first"
    return None if not o["identifiable"] or o["named_exactly"] == o["causes"] else "not exactly"


def write_between(path, marker, text):
    """Replaces what stands between <!-- marker --> and <!-- end of marker --> in a document."""
    with open(path) as f:
        before = f.read()
    begin, end = "<!-- %s -->\n" % marker, "<!-- end of %s -->" % marker
    head, rest = before.split(begin, 1)
    _, tail = rest.split(end, 1)
    with open(path, "w") as f:
        f.write(head + begin + text + "\n" + end + tail)
