#!/usr/bin/env python3
"""format_doc.py DOC LOGDIR...   compares the lines of logs with docs/format.md, key by key.

Every kind of line and every key that is written is named by the page, in the section of its kind; every key
of the page's lists and examples is written by some run, but for NOT_HERE; values have the type that the
page's example has (null only where the page says so), keys come in the page's order.
"""
import glob, gzip, json, re, sys

from doc_lines import doc_lines

# The simulator has no network plugin, and captures no Send or Recv.
# The plugin writes no counters, and no pair_sn: that is of imported logs (import_kineto).
NOT_HERE = {"net": None, "counter_names": None, "counters": None, "p2p_perf": {"graph", "pair_sn"}}
# A list of keys of lines.def that is not called as the kind of line that has it.
LISTS = {"coll": ["coll_perf"], "p2p": ["p2p_perf"], "trace": ["coll_perf", "p2p_perf"],
         "event": ["coll_perf", "p2p_perf"], "stats": ["dump_stats"], "kind_stats": ["dump_stats"],
         "pool": ["pool_stats"], "unfinished": ["stuck", "in_flight"],
         "proxy": ["proxy_trace"], "step": ["proxy_trace"], "metric": ["counter_names"]}
errors = set()


def kind_of(line):
    return [k for k in line if k not in ("header", "metadata")]


def walk(value, path=()):
    """Keys of an object with their paths; a member of a list as of one object. Objects by cause, by setting,
    ... are values."""
    for k, v in value.items():
        yield path + (k,), v
        if (isinstance(v, dict) and k not in ("env", "settings", "hist") and not k.endswith("_by") and
            k != "strays" and path != ("events",)):
            yield from walk(v, path + (k,))
        for e in v if isinstance(v, list) else ():
            yield from walk(e, path + (k,))


# ---- the page ----
class Kind:
    def __init__(self):
        self.words, self.text, self.examples, self.rows = set(), "", [], set()


doc = "\n".join(doc_lines(sys.argv[1]))
kinds, current, common, common_text = {}, [], set(), ""
intro = False  # keys that the kinds of a section have in common
listed = None  # the list that the line is of
for line in doc[doc.index("## 2."):doc.index("## 6.")].split("\n"):
    if line.startswith("..."):
        line = '{"header":{},"metadata":{},' + line[3:]
    if line.startswith('{"header":{"id"') or line.startswith('{"header":{},'):
        example = json.loads(line.replace('"metadata":{...}', '"metadata":{}'))
        kinds[kind_of(example)[0]].examples.append(example[kind_of(example)[0]])
        continue
    begin = (re.match(r"((?:, )?\*\*\w+\*\*)+", line) or re.match(r"`(\w+_perf|header|metadata)`", line) or
             line.startswith("#"))
    if begin is True:
        current, intro = [], line.startswith("## 4b")
    elif begin:
        names = re.findall(r"\*\*(\w+)\*\*", line.split(":")[0]) or [begin.group(1)]
        current = [kinds.setdefault(n, Kind()) for n in names]
    mark = re.match(r"<!-- (keys of (\w+)|end of keys) -->", line)
    if mark:
        listed = mark.group(2)
    words = {w.strip('"') for w in re.findall(r"`([^`]+)`", line)}
    for k in [kinds.setdefault(n, Kind()) for n in LISTS.get(listed, [listed])] if listed else current:
        k.words |= words
        k.text += line
        # Of an operation's line some run writes every key, of others those that have no condition.
        row = re.match(r"- ((?:`\w+`(?:, )?)+) \(([^)]*)", line)
        if row and listed != "trace" and (";" not in row.group(2) or listed in ("coll", "p2p")):
            k.rows |= set(re.findall(r"`(\w+)`", row.group(1)))
    if ((intro and not current) or "Verbose lines" in line or "event_trace_" in line or
        "kernel_events" in line):
        common |= words
        common_text += line

# ---- the logs ----
seen, n_lines = {}, 0
for path in sorted(p for d in sys.argv[2:] for p in glob.glob(d + "/*.jsonl*")):
    for text in gzip.open(path, "rt") if path.endswith(".gz") else open(path):
        line = json.loads(text)
        n_lines += 1
        if list(line)[:2] != ["header", "metadata"] or len(line) != 3:
            errors.add("top level %s" % list(line))
        for kind in list(line):
            where = kinds.get(kind)
            if where is None:
                errors.add("a line of kind %s is not on the page" % kind)
                continue
            keys = seen.setdefault(kind, {})
            examples = [dict(walk(e)) for e in where.examples]
            types = {}
            for e in examples:
                for p, v in e.items():
                    types.setdefault(p, set()).add(type(v))
            for p, v in walk(line[kind]):
                keys.setdefault(p[-1], set()).add(type(v))
                if (p not in types and p[-1] not in where.words | common and
                    not (kind == "dump_stats" and p[0] == "events")):
                    errors.add("%s: %s is not on the page" % (kind, ".".join(p)))
                if (p in types and v is not None and type(None) not in types[p] and
                    type(v) not in types[p] and types[p] != {type(None)}):
                    errors.add("%s: %s is %r, in the example %s" % (kind, ".".join(p), v, types[p]))
                if v is None and "null" not in where.text and not (p[-1] in common and "null" in common_text):
                    errors.add("%s: %s is null, which the page does not say" % (kind, ".".join(p)))
                if re.search(r"_(ns|bytes|sn)$", p[-1]) and not isinstance(v, (int, type(None), dict)):
                    errors.add("%s: %s is %r" % (kind, ".".join(p), v))
            ours = list(line[kind])
            for e in where.examples:
                both = [k for k in e if k in ours]
                if sorted(both, key=ours.index) != both and set(ours) >= set(e):
                    errors.add("%s: keys in the order %s, in the example %s" % (kind, ours, list(e)))

# ---- what the page has and no run writes ----
for name, k in kinds.items():
    if NOT_HERE.get(name, set()) is None:
        continue
    if name not in seen:
        errors.add("no run writes a line of kind %s" % name)
        continue
    wanted = k.rows | {p[-1] for e in k.examples for p, _ in walk(e)}
    for key in sorted(wanted - set(seen[name]) - NOT_HERE.get(name, set())):
        errors.add("%s: no run writes %s" % (name, key))
for e in sorted(errors):
    print("format_doc:", e)
print("%d lines, %d kinds, %d keys" % (n_lines, len(seen), sum(len(k) for k in seen.values())))
sys.exit(bool(errors))
