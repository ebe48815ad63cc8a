#!/usr/bin/env python3
"""plants.py BUILD [part of a name...]   plants what test/gate/plants.txt says; the gate must notice each.

One after the other, in a copy of the tree with its build folder, so on the build as it is shipped. The last
line is "N passed, N failed, N skipped".
"""
import os
import shutil
import subprocess
import sys
import tempfile

os.chdir(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, "test/mutation")
from mutate import read_list

GATE_LIMIT_S = 600
COPIED = ("Makefile", "scripts", "packaging", "include", "format", "plugin", "exporter", "test", "schemas")


def gate(tree, build, runs):
    p = subprocess.run(["make", "-s", "-j2", "BUILD=" + build, "GATE_RUNS=^" + runs + "$", "gate"], cwd=tree,
                       timeout=GATE_LIMIT_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT)
    return p.returncode, p.stdout.decode(errors="replace")


def plant(tree, build, m):
    """What is wrong, or None."""
    path = os.path.join(tree, m["file"])
    text, old = open(path).read(), "".join(l + "\n" for l in m["old"])
    if text.count(old) != 1:
        return "its lines occur %d times in %s, not once" % (text.count(old), m["file"])
    open(path, "w").write(text.replace(old, "".join(l + "\n" for l in m["new"])))
    try:
        runs, function = m["by"][0].removeprefix("gate ").split("|")
        rc, said = gate(tree, build, runs)
        named = any(l.startswith("      ") and "  %s, from" % function in l for l in said.splitlines())
        if rc and "FAIL" in said and named:
            telling = [l for l in said.splitlines() if l.startswith("FAIL") or "  %s, from" % function in l]
            print("\n".join("      " + l for l in telling))
            return None
        return "the gate %s:\n%s" % ("names not " + function if rc else "passes", said[-3000:])
    finally:
        open(path, "w").write(text)


def main():
    build, words = sys.argv[1], sys.argv[2:]
    blocks = [b for b in read_list("test/gate/plants.txt") if not words or any(w in b["name"] for w in words)]
    failed = 0
    with tempfile.TemporaryDirectory(prefix="ni-plants-") as tree:
        for d in COPIED:
            (shutil.copytree if os.path.isdir(d) else shutil.copy2)(d, os.path.join(tree, d))
        left_out = shutil.ignore_patterns("test-logs", "node_modules", "bench-logs")
        shutil.copytree(build, os.path.join(tree, build), ignore=left_out, symlinks=True)
        for m in blocks:
            wrong = plant(tree, build, m)
            failed += wrong is not None
            print("FAIL %s: %s" % (m["name"], wrong) if wrong else "ok   " + m["name"], flush=True)
    print("%d passed, %d failed, 0 skipped" % (len(blocks) - failed, failed))
    return failed != 0


sys.exit(main())
