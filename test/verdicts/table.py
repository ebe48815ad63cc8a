"""Tables of outcomes (judge.py): a line for each kind and size, in Markdown, which a terminal shows as
well."""
import collections

HEAD = ["cause", "jobs", "cost %", "first", "exactly", "at all", "both", "innocents", "said / true",
        "onset error", "undecided", "wrong notes", "period, length, moments"]


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


def details(about):
    """How many of the findings that have a period, a length, moments have them right."""
    out = []
    for key in ("period", "length", "moments"):
        said = [a[key] for a in about if a.get(key) is not None]
        if said:
            out.append("%s %d of %d" % (key, sum(x >= 0.5 for x in said), len(said)))
    return ", ".join(out) or "-"


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
    cells.append("%d (%.1f)" % (len(accusing), sum(o["innocents"] for o in accusing) / n) if accusing
                 else "0")
    cells.append(number(quantile(lost, 0.5)))
    cells.append("%s, p95 %s" % (number(quantile(onset, 0.5)), number(quantile(onset, 0.95))) if onset
                 else "-")
    cells.append("%d" % sum(o["undecided"] for o in outcomes))
    cells.append("%d" % sum(o["wrong_notes"] > 0 for o in outcomes))
    cells.append(details([o["about"] for o in outcomes]))
    return cells


def rows(outcomes, by_layout=False):
    """Outcomes by row, in their order; what cannot be told apart stands by itself."""
    out = collections.OrderedDict()
    for o in outcomes:
        name = o["row"] + ("" if o["identifiable"] else " (like any other)")
        out.setdefault((o["layout"] + " " if by_layout else "") + name, []).append(o)
    return out


def in_markdown(lines):
    text = ["| " + " | ".join(c) + " |" for c in lines]
    return "\n".join([text[0], "|" + "---|" * len(lines[0])] + text[1:])


def in_columns(lines):
    wide = [max(len(x[i]) for x in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(x, wide)))
                     for x in lines)


def markdown(outcomes, by_layout=False):
    lines = [HEAD] + [line(name, o) for name, o in rows(outcomes, by_layout).items()]
    return in_markdown(totals(outcomes)) + "\n\n" + in_markdown(lines)


def terminal(outcomes, by_layout=False):
    lines = [HEAD] + [line(name, o) for name, o in rows(outcomes, by_layout).items()]
    return in_columns(lines) + "\n\n" + in_columns(totals(outcomes))


def percent(n, of):
    return "-" if not of else "%.1f %% of %d" % (100.0 * n / of, of)


def began(outcomes):
    """Of the largest waits that are told, how many say rightly who began them or that nobody is known to, how
    many name a wrong one."""
    of = [o["incidents"] for o in outcomes if o.get("incidents")]
    n = {k: sum(i.get(k, 0) for i in of) for k in ("right", "wrong", "nobody", "entries")}
    told = ", %d wrong, of %d nobody" % (n["wrong"], n["nobody"]) if n["entries"] else ""
    return percent(n["right"], n["entries"]) + told


# by the names that both models have for it
LEFT_OUT = ("sample", "min_bytes", "min_size", "no_p2p", "alone", "alone_one", "missing", "missing_ranks",
            "missing_hosts")


def is_whole(outcome):
    """The logs of all ranks are there, with each operation."""
    return not any(name in outcome["weather"] for name in LEFT_OUT)


def totals(outcomes):
    """What is promised, of causes that operations can tell and that cost 2 % or more: a line for each layout,
    where some logs lack operations or ranks for these and for whole ones, and for all."""
    lines = [["causes of 2 % and more", "named", "first", "right level", "said / true in 0.7 to 1.5",
              "onset within 5 steps", "jobs with innocents", "healthy accused", "noisy accused",
              "wrong notes", "who began a pause"]]
    groups = [("layout " + x, [o for o in outcomes if o["layout"] == x])
              for x in sorted({o["layout"] for o in outcomes})]
    whole = [o for o in outcomes if is_whole(o)]
    if len(whole) < len(outcomes):
        groups += [("whole logs", whole),
                   ("operations or ranks left out", [o for o in outcomes if not is_whole(o)])]
    for name, mine in groups + [("all", outcomes)]:
        large = [(o, c) for o in mine for c in o["each"] if c["identifiable"] and c["cost"] >= 2]
        ratio = [c["ratio"] for _, c in large if c["ratio"] is not None]
        onset = [o["onset"] for o, _ in large if o["onset"] is not None]
        first = [o for o, _ in large]
        guilty = [o for o in mine if o["causes"]]
        silent = {k: [o for o in mine if o["kind"] == k] for k in ("healthy", "noisy")}
        lines.append([name, percent(sum(c["match"] > 0 for _, c in large), len(large)),
                      percent(sum(o["first"] for o in first), len(first)),
                      percent(sum(c["match"] == 2 for _, c in large), len(large)),
                      percent(sum(0.7 <= r <= 1.5 for r in ratio), len(ratio)),
                      percent(sum(e <= 5 for e in onset), len(onset)),
                      "%d of %d" % (sum(o["innocents"] > 0 for o in guilty), len(guilty))] +
                     ["%d of %d" % (sum(o["findings"] > 0 for o in silent[k]), len(silent[k]))
                      for k in ("healthy", "noisy")] +
                     ["%d of %d" % (sum(o["wrong_notes"] > 0 for o in mine), len(mine)), began(mine)])
    return lines


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
