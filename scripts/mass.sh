#!/usr/bin/env bash
# What a reader of the product meets, room by room: a table to look at, and no test. None of its numbers is a
# target.
#   scripts/mass.sh              this tree, beside two projects of the same field
#   scripts/mass.sh --of DIR     the same counts of any other C project, as one row
# Needs python3. Comments, blanks and tests are not counted; a file belongs to the room whose path is its
# longest head.
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "$@" <<'PYTHON'
import os
import re
import subprocess
import sys

WIDE = 110
# Names, numbers, texts, and operators: the longest ones first. A text counts as one token, as a name does.
TOKEN = re.compile(r'''"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\.?[0-9](?:[eEpP][+-]|[\w.'])*|[A-Za-z_$]\w*|'''
                   r'''<<=|>>=|\.\.\.|->|\+\+|--|<<|>>|[<>=!]=|&&|\|\||[-+*/%&|^]=|\#\#|::|\S''')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
# As lizard counts them, without the one that it adds for each function.
DECISIONS = {"if", "for", "while", "case", "catch", "&&", "||", "?"}
SCRIPTS = (".js",)
SOURCES = (".c", ".h", ".cc", ".def") + SCRIPTS
# Two C projects, counted by --of: uftrace a0e54077 (uftrace.[ch], arch, cmds, libmcount, misc, utils),
# liburing 27255f4c (src).
ANCHORS = [("uftrace", [121, 49679, 323900, 7402, 21, 204]), ("liburing", [27, 4835, 27200, 290, 0, 51])]


def without_comments(text):
    """Comments become blanks, lines stay where they are."""
    return COMMENT.sub(lambda m: m[0] if m[0][0] in "\"'" else " " + "\n" * m[0].count("\n"), text)


def measure(path):
    """Counts of one file, in the order of COLUMNS."""
    with open(path, encoding="utf-8", errors="replace") as f:
        text = f.read()
    code = without_comments(text)
    tokens = TOKEN.findall(code)
    structs = sum(a in ("struct", "union") and c == "{" for a, c in zip(tokens, tokens[2:]))
    return [1, sum(bool(line.strip()) for line in code.split("\n")), len(tokens),
            sum(t in DECISIONS for t in tokens),
            sum(len(line) > WIDE for line in text.split("\n")), structs]


def total(rows):
    return [sum(column) for column in zip(*rows)]


def say(name, counts):
    files, lines, tokens, decisions, wide, structs = counts
    print("%-34s %5d %7d %7.1f %8.1f %10.1f %6d %7d" % (name, files, lines, tokens / 1000,
                                                        tokens / max(lines, 1), 100 * decisions / max(lines, 1), wide, structs))


def title(what):
    print("%-34s %5s %7s %7s %8s %10s %6s %7s" % (what, "files", "lines", "k tokens", "a line", "decisions",
                                                  "wide", "structs"))


def tracked(*patterns):
    out = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "--", *patterns],
                         stdout=subprocess.PIPE, text=True,
                         check=True).stdout.split("\n")
    return [f for f in out if f and os.path.isfile(f)]


def other(folder):
    found = [os.path.join(at, f) for at, _, names in os.walk(folder) for f in names if f.endswith(SOURCES)]
    title("project")
    say(os.path.basename(os.path.abspath(folder)), total([measure(f) for f in found] or [[0] * 6]))


def rooms():
    """Paths in their order, lowest first."""
    seen = []
    with open("scripts/rooms") as f:
        for line in f:
            seen += [r for r in ([] if line.startswith("#") else line.split()) if r not in seen]
    return seen


def count(pattern, files):
    """Matches of a pattern, and the files that hold them."""
    hits = {}
    for f in files:
        with open(f, encoding="utf-8", errors="replace") as text:
            n = len(re.findall(pattern, without_comments(text.read()), re.M))
        if n:
            hits[f] = n
    return sum(hits.values()), sorted(hits)


def this():
    files = [f for f in tracked(*rooms()) if f.endswith(SOURCES)]
    of = {}
    for f in files:
        of.setdefault(max((r for r in rooms() if f.startswith(r + "/")), key=len), []).append(measure(f))
    title("room")
    for room in rooms():
        if room in of:
            say(room, total(of[room]))
    say("sum", total([row for rows in of.values() for row in rows]))
    print()
    for name, counts in ANCHORS:
        say(name, counts)
    options, _ = count(r'\bNI_OPT_(?!END\b|REST\b)[A-Z]+,', files)
    settings, _ = count(r'^\s*\{"NCCL_INSPECTOR_', ["plugin/settings/config.c"])
    idle, _ = count(r'^\s*\{"NCCL_INSPECTOR_', ["plugin/settings/no_effect.h"])
    formats, where = count(r'magic\[8\] =|define NI_\w*_MAGIC "', files)
    pages = tracked("README.md", "CONTRIBUTING.md", "docs/*.md", "docs/internals/*.md")
    words = sum(len(open(p, encoding="utf-8").read().split()) for p in pages)
    print("\n%d options of commands, %d settings of the plugin and %d without effect" % (options, settings, idle))
    print("%d binary formats of our own: %s" % (formats, ", ".join(where)))
    print("%d pages of %d words" % (len(pages), words))


if sys.argv[1:2] == ["--of"] and len(sys.argv) == 3:
    other(sys.argv[2])
elif len(sys.argv) == 1:
    this()
else:
    sys.exit("usage: scripts/mass.sh [--of DIR]")
PYTHON
