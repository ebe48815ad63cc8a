#!/usr/bin/env bash
# Do the words name what is there? Comments of the product: identifiers, files, pages and their sections.
# Pages: links, paths, widths. Says each finding with its place; ends with "N passed, N failed".
set -u
cd "$(dirname "$0")/.." || exit 2
command -v python3 >/dev/null || { echo "skip: no python3"; exit 77; }
python3 - <<'PY'
import os, re, subprocess, sys
MAX_WIDTH = 128
WIDE = {"CHANGELOG.md"}  # generated tables are left out by their marks
# What comments name of others: NCCL's sources, the kernel's headers.
SYSTEM = {"repr"}  # functions of others
FOREIGN = {"src/collectives.cc", "src/include/channel.h", "src/include/device.h", "device.h", "linux/magic.h"}

files = [f for f in subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], capture_output=True,
                                   text=True).stdout.split("\n")
         if f and os.path.isfile(f)]
there = set(files) | {os.path.dirname(f) for f in files}
folders = set()
for f in files:
    while "/" in f:
        f = os.path.dirname(f)
        folders.add(f)
ends = {}  # every tail of every path
for f in files:
    parts = f.split("/")
    for i in range(len(parts)):
        ends.setdefault("/".join(parts[i:]), []).append(f)
text = lambda f: open(f, encoding="utf-8", errors="replace").read()

def split(source):
    """(code, [(line, comment)]) of C, C++, JavaScript."""
    code, comments, at = [], [], 1
    for m in re.finditer(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[^"\'/]+|.', source,
                         re.S):
        t = m.group(0)
        if t.startswith(("/*", "//")): comments.append((at, t))
        else: code.append(t)
        at += t.count("\n")
    return "".join(code), comments

product = [f for f in files if re.match(r"(plugin|exporter|format|include)/.*\.(c|h|cc|def)$", f)]
everything = [f for f in files
              if re.match(r"(plugin|exporter|format|include|test|scripts)/.*\.(c|h|cc|def)$", f)]
names, comments, pasted = set(), {}, []
for f in everything:
    code, comments[f] = split(text(f))
    names |= set(re.findall(r"\w+", code))
    pasted += re.findall(r"\b(ni_\w*(?:##\w+)+)", code, re.I)
# NI_F_##t, ni_##name##_run: what begins with a "_" behind a ## stands for itself, all else for any word.
pasted = [re.compile("^" + "".join(x if i == 0 or x[0] == "_" else r"\w+"
                                   for i, x in enumerate(p.split("##"))) + "$") for p in pasted]
passed = failed = 0

def part(name, findings):
    global passed, failed
    if findings: failed += 1
    else: passed += 1
    print("%s  %s" % ("FAIL" if findings else "ok  ", name))
    for line in findings[:60]: print("      " + line)

def known(name):
    if name in names or any(p.match(name) for p in pasted): return True
    return name.endswith("_") and any(n.startswith(name) for n in names)

def each_comment():
    for f in product:
        for line, c in comments[f]:
            for i, l in enumerate(c.split("\n")): yield f, line + i, l

bad = []
for f, n, l in each_comment():
    for m in re.finditer(r"\b[nN][iI]_\w+", l):
        before = l[:m.start()]
        if before.endswith(("<", "%", "/")) or before.endswith("$") or l[m.end():m.end() + 1] == ".": continue
        if not known(m.group(0)): bad.append("%s:%d: %s is nowhere" % (f, n, m.group(0)))
    # A function is one that the code somewhere names, ours or the system's.
    for name in re.findall(r"\b([a-z]\w*)\(\)", l):
        if not known(name) and name not in SYSTEM: bad.append("%s:%d: %s() is nowhere" % (f, n, name))
part("identifiers that comments name", bad)

bad = []
for f, n, l in each_comment():
    for m in re.finditer(r"(?<![\w/.*<>%-])((?:\.\./)*[\w][\w./-]*\.(?:c|h|cc|def|py|sh|md|mk|scn|sql|map|txt))\b(?![\w(])", l):
        p = re.sub(r"_vN(?=\.)", "_v1", m.group(1))  # abi_vN.c: each of them
        if p in FOREIGN or p in ends or os.path.normpath(os.path.join(os.path.dirname(f), p)) in there:
            continue
        if "://" in l[:m.start()][-60:]: continue
        bad.append("%s:%d: no file %s" % (f, n, m.group(1)))
part("files that comments name", bad)

def slug(h):
    h = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h)
    return re.sub(r"[^\w\- ]", "", h.strip().lower().replace("`", "")).replace(" ", "-")

pages = [f for f in files if f.endswith(".md") and not f.startswith("test/")]
heads, anchors = {}, {}
for f in pages:
    heads[f] = [m.group(1) for m in re.finditer(r"^#+ (.*)$",
                                                re.sub(r"^```.*?^```", "", text(f), flags=re.S | re.M), re.M)]
    anchors[f] = {slug(h) for h in heads[f]} | set(re.findall(r'<a name="([^"]+)"', text(f)))

bad, sections = [], {h.split(" ")[0].rstrip(".") for h in heads.get("docs/nccl-callbacks.md", [])}
for f in product:
    joined = re.sub(r"\n\s*\*?\s*", " ", "\n".join("%s" % c for _, c in comments[f]))
    for page, title in re.findall(r'(docs/[\w/-]+\.md), "([^"]+)"', joined):
        if page in heads and not any(title.lower() in h.lower() for h in heads[page]):
            bad.append("%s: %s has no section \"%s\"" % (f, page, title))
    for s in re.findall(r"\bcallbacks ([0-9]+(?:\.[0-9]+)?)", joined):
        if s not in sections: bad.append("%s: docs/nccl-callbacks.md has no section %s" % (f, s))
    for s in re.findall(r"\bcontract,? [Q0-9][\w.]*", joined):
        bad.append("%s: \"%s\": cite docs/nccl-callbacks.md as \"callbacks N.N\"" % (f, s))
part("sections that comments name", bad)

bad = []
for f in pages:
    for n, l in enumerate(re.sub(r"^```.*?^```", lambda m: "\n" * m.group(0).count("\n"), text(f),
                                 flags=re.S | re.M).split("\n"), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", l)):
            if re.match(r"[a-z]+:", target): continue
            path, _, anchor = target.partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(f), path)) if path else f
            if to not in there and to not in folders:
                bad.append("%s:%d: no %s" % (f, n, target))
            elif anchor and to in anchors and anchor not in anchors[to]:
                bad.append("%s:%d: no place %s" % (f, n, target))
part("links of the pages", bad)

bad = []
for f in pages:
    if f == "CHANGELOG.md": continue  # what was, too
    for n, l in enumerate(text(f).split("\n"), 1):
        for p in re.findall(r"(?<![\w/.<$-])((?:docs|test|scripts|plugin|exporter|format|include)/[\w./-]*\w/?)(?![\w*<{/$])", l):
            q = p.rstrip("/")
            if q not in there and q not in folders and not re.search(r"(^|/)N\b|\.\.\.", q):
                bad.append("%s:%d: no %s" % (f, n, p))
part("paths that the pages name", bad)

bad = []
for f in pages:
    generated = False
    if f in WIDE: continue
    for n, l in enumerate(text(f).split("\n"), 1):
        if l.startswith("<!--"): generated = "end" not in l
        if len(l) > MAX_WIDTH and not generated:
            bad.append("%s:%d: %d columns, at most %d" % (f, n, len(l), MAX_WIDTH))
part("widths of the pages", bad)
print("%d passed, %d failed" % (passed, failed))
sys.exit(failed != 0)
PY
