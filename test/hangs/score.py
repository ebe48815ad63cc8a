#!/usr/bin/env python3
"""Scores `nccl-inspector hang` on made-up endings, healthy and quiet jobs (docs/hang.md, docs/testing.md).

score.py --exporter build/nccl-inspector                     all kinds, development seeds 0 to 4 and seeds
kept back score.py --short                                             some 100 cases; fails below the
stated scores score.py --only PART --seeds 0 --verbose --keep DIR          some kinds, every wrong answer,
and the inputs kept score.py --write docs/hang.md                                puts the tables between
<!-- hangs --> markers
"""

import argparse
import collections
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import answer
import case as cases
import graphs  # its kinds come behind those of kinds.py, as quiet's do
import jobs
import middle  # as graphs
import quiet  # its kinds come behind those of kinds.py, in the same table
import scene
from kept import kinds as kept

ROOT = os.path.dirname(os.path.dirname(HERE))
Truth = collections.namedtuple("Truth", "answers causes")
Row = collections.namedtuple("Row", "part name group source when seed case answer score")


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--exporter", default=os.path.join(ROOT, "build", "nccl-inspector"))
    p.add_argument("--only", default="", help="kinds whose name holds this")
    p.add_argument(
        "--part",
        choices=["open", "kept", "both"],
        default="both",
        help="kinds of kinds.py, those of kept/, both",
    )
    p.add_argument("--source", default="", help="one source alone")
    p.add_argument("--when", default="", help="one time of looking alone")
    p.add_argument("--seeds", default="0-4", help="first-last, of development")
    p.add_argument("--held", default="3000-3004", help="first-last, of the seeds kept back; empty: none")
    p.add_argument(
        "--quiet-jobs", type=int, default=0, help="so many more jobs without a hang, of seeds kept back"
    )
    p.add_argument("--short", action="store_true")
    p.add_argument("--write", help="a document whose tables between <!-- hangs --> markers are replaced")
    p.add_argument(
        "--least", default="", help="percentages below which it fails: verdict,operation,ranks,agree"
    )
    p.add_argument("-j", type=int, default=2, help="so many at a time")
    p.add_argument("--verbose", action="store_true", help="every wrong answer")
    p.add_argument("--keep", help="a folder in which the inputs of wrong answers stay")
    o = p.parse_args()
    o.exporter = os.path.abspath(o.exporter)
    return o


def span(text):
    if not text:
        return []
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def forms(part, o):
    table = {"open": quiet.KINDS, "kept": kept.KINDS}[part]
    for name, (make, sources, whens, group) in table.items():
        if o.only not in name:
            continue
        for source in sources:
            for when in whens:
                if source == cases.DUMPS and when not in ("late", "now"):
                    continue
                if o.source in ("", source) and o.when in ("", when):
                    yield name, make, source, when, group


def play(o, stand_ins, part, form, seed):
    name, make, source, when, group = form
    for draw in range(10):
        rnd = random.Random("%s/%s/%s/%d" % (name, source, when, seed) + "/%d" % draw * (draw > 0))
        try:
            c = make(cases.Maker(rnd, source, when))
            break
        except cases.NotThisKind:
            if draw == 9:
                raise
    c.draw_releases(random.Random("releases/%s" % rnd.random()))
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = tempfile.mkdtemp(prefix="hangs-", dir=memory)
    try:
        paths, boxes, now = scene.lay_out(c, folder, stand_ins)
        if name == "all end in order" and source == cases.LOGS:
            sound(o, paths)
        a = answer.ask(o.exporter, paths, boxes, now, folder)
        s = answer.score(c, a)
        a.d = {}
        row = Row(part, name, group, source, when, seed, Truth(c.answers, c.causes), a, s)
        if o.keep and wrong(row):
            to = os.path.join(
                o.keep,
                "%s-%s-%s-%d"
                % (name.replace(" ", "_").replace(".", ""), source.replace(" ", "_"), when, seed),
            )
            os.makedirs(o.keep, exist_ok=True)
            scene.sweep(to)
            os.system("cp -r %s '%s'" % (folder, to.replace("'", "")))
        return row
    finally:
        scene.sweep(folder)


def sound(o, logs):
    """The generator's own proof: what it writes of a job that ended in order is complete by its accounts."""
    p = subprocess.run([o.exporter, "check", *logs, "--no-index"], stdout=subprocess.PIPE, text=True)
    if p.returncode != 0 or "COMPLETE" not in p.stdout.splitlines()[-1:]:
        raise RuntimeError("made-up logs are not sound: " + p.stdout[-600:])


def play_all(o, stand_ins, todo):
    """All cases, o.j processes at a time; rows in the order of todo."""
    global work
    work = lambda i: play(o, stand_ins, *todo[i])
    with multiprocessing.get_context("fork").Pool(o.j) as pool:
        return list(pool.imap(call_work, range(len(todo)), 8))


def call_work(i):
    return work(i)


def wrong(row):
    return any(v is False for v in row.score.values())


def tell(row):
    bad = ", ".join(k for k, v in row.score.items() if v is False)
    print("%s | %s | %s | seed %d: %s wrong" % (row.name, row.source, row.when, row.seed, bad))
    print(
        "    right: %s; %s"
        % (" or ".join(sorted(row.case.answers)), "; ".join(map(repr, row.case.causes)) or "no cause asked")
    )
    print("    said:  %s" % row.answer.sentence[:300])
    print(
        "    cause: %s %s of %s, ranks %s; exit code %d%s"
        % (
            row.answer.func,
            row.answer.sn,
            row.answer.comm,
            sorted(row.answer.ranks, key=str),
            row.answer.code,
            "; " + row.answer.errors.strip()[:200] if row.answer.errors.strip() else "",
        )
    )


def share(rows, what):
    asked = [r for r in rows if r.score[what] is not None]
    return (sum(1 for r in asked if r.score[what]), len(asked))


def cell(pair):
    return "-" if not pair[1] else "%d of %d" % pair


COLUMNS = (
    ("verdict", "verdict"),
    ("operation", "operation first"),
    ("ranks", "ranks"),
    ("agree", "one answer"),
)


def table(rows):
    """Rows of text: kind, n, and the columns."""
    by = collections.OrderedDict()
    for r in rows:
        by.setdefault(r.name, []).append(r)
    out = [(name, str(len(rs)), *(cell(share(rs, k)) for k, _ in COLUMNS)) for name, rs in by.items()]
    out.append(("all", str(len(rows)), *(cell(share(rows, k)) for k, _ in COLUMNS)))
    return out


def terminal(title, rows):
    lines = [("kind", "n", *(t for _, t in COLUMNS))] + table(rows)
    widths = [max(len(x[i]) for x in lines) for i in range(len(lines[0]))]
    print("\n%s" % title)
    for x in lines:
        print("  ".join(v.ljust(w) if i == 0 else v.rjust(w) for i, (v, w) in enumerate(zip(x, widths))))


def false_alarms(rows):
    quiet = [r for r in rows if r.group == "quiet"]
    return [r for r in quiet if r.answer.answer in ("hang", "dead")], quiet


def main():
    o = options()
    stand_ins = scene.Stand_ins()
    rows = []
    try:
        parts = ["open", "kept"] if o.part == "both" else [o.part]
        todo = []
        for part in parts:
            for form in forms(part, o):
                for seed in list(span(o.seeds)) + list(span(o.held)):
                    todo.append((part, form, seed))
        if o.short:
            todo = short(todo)
        quiet_forms = [(p, f) for p in parts for f in forms(p, o) if f[4] == "quiet"]
        for i in range(o.quiet_jobs if quiet_forms else 0):
            todo.append((*quiet_forms[i % len(quiet_forms)], 2000 + i))
        rows = play_all(o, stand_ins, todo)
    finally:
        stand_ins.end()
    sys.exit(report(o, rows))


def short(todo):
    """Of each kind a few forms: what fits into some seconds. The choice is always the same."""
    by = collections.OrderedDict()
    for t in todo:
        by.setdefault((t[0], t[1][0]), []).append(t)
    out = []
    for (part, name), ts in by.items():
        rnd = random.Random(zlib.crc32(name.encode()))
        out += rnd.sample(ts, min(2, len(ts)))
    return out


def report(o, rows):
    for r in rows:
        if o.verbose and wrong(r):
            tell(r)
    sets = [
        ("%s kinds, seeds %s" % (p, s), [r for r in rows if r.part == p and (r.seed >= 1000) == held])
        for p in ("open", "kept")
        for s, held in (("of development", False), ("kept back", True))
    ]
    for title, rs in sets:
        if rs:
            terminal(title, rs)
    if o.write:
        write_between(o.write, markdown(rows))
    alarms, quiet = false_alarms(rows)
    print("\n%d jobs without a hang: %d called HANG or DEAD" % (len(quiet), len(alarms)))
    for r in alarms if not o.verbose else []:
        tell(r)
    took = sorted(r.answer.seconds for r in rows)
    print("seconds an answer took: median %.3f, longest %.3f" % (took[len(took) // 2], took[-1]))
    return below(o, rows, alarms)


def below(o, rows, alarms):
    """1: some share is below what was demanded, or a job without a hang was called HANG or DEAD."""
    if not o.least:
        return 0
    failed = len(alarms)
    for (what, title), least in zip(COLUMNS, o.least.split(",")):
        right, asked = share(rows, what)
        if asked and 100 * right < float(least) * asked:
            print("%s: %d of %d is less than %s %%" % (title, right, asked, least))
            failed += 1
    return 1 if failed else 0


def percent(pair):
    """A share in words: all and none are said as such, what rounds to 100 % is not called that."""
    right, asked = pair
    if not asked:
        return "-"
    return "all" if right == asked else "%.1f %%" % min(100 * right / asked, 99.9)


def markdown(rows):
    """A table a set: kinds with how many cases of development and kept back there are, and of those kept back
    what was right."""
    out = []
    for part, title in (("open", "Kinds"), ("kept", "Kinds whose every case was kept back")):
        mine = [r for r in rows if r.part == part]
        held = [r for r in mine if r.seed >= 1000] or mine
        if not mine:
            continue
        out += [
            "| %s | n | %s |" % (title, " | ".join(t for _, t in COLUMNS)),
            "|---|---|%s" % ("---|" * len(COLUMNS)),
        ]
        by = collections.OrderedDict((r.name, []) for r in mine)
        for r in held:
            by[r.name].append(r)
        for name, rs in list(by.items()) + [("**all, seeds kept back**", held)]:
            out.append(
                "| %s | %d | %s |" % (name, len(rs), " | ".join(percent(share(rs, k)) for k, _ in COLUMNS))
            )
        dev = [r for r in mine if r.seed < 1000]
        if dev and dev != held:
            out.append(
                "| all, seeds of development | %d | %s |"
                % (len(dev), " | ".join(percent(share(dev, k)) for k, _ in COLUMNS))
            )
        out.append("")
    alarms, quiet = false_alarms(rows)
    out.append(
        "Of %d healthy, quiet, ended and restarted jobs %s called HANG or DEAD."
        % (len(quiet), "%d were" % len(alarms) if alarms else "none was")
    )
    return "\n".join(out) + "\n"


def write_between(path, text):
    with open(path, encoding="utf-8") as f:
        old = f.read()
    before, begin, rest = old.partition("<!-- hangs -->\n")
    _, end, after = rest.partition("<!-- end of hangs -->\n")
    if not begin or not end:
        sys.exit("score.py: %s has no <!-- hangs --> markers" % path)
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + begin + text + end + after)


if __name__ == "__main__":
    main()
