"""Logs full of text that would steer a terminal or a spreadsheet, and a look at what came out of them.

  text_hostile.py logs FROM TO      copies logs; names, ids and words of the job become hostile, TO's file names too
  text_hostile.py name              a hostile part of a path
  text_hostile.py look FOLDER...    every file below: text without such characters, CSV without formulas, valid JSON
"""
import csv
import glob
import gzip
import io
import json
import os
import re
import sys

# ESC, BEL, BS, DEL, C1 (CSI), right-to-left override, isolates, marks, no width, separators; a line of its
# own; formulas.
BAD = ["=cmd|' /C calc'!A0\x1b[31m", '"+tp\x07\r\n', "-1+1\u009b31m\u202e", "@SUM(1)\u2066\u061c\u200f",
       "\u200b\ufeff\u2028\x7f\x08", "x\nFORGED LINE\n", "\t=1\x85"]
UNFIT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
KEPT = {"id", "hash", "inspector_output_format_version", "rec_mechanism", "kind", "source", "boot_id",
        "record_type", "parent_type", "api", "seen", "what", "direction", "why", "stream", "interface",
        "state", "channels_open"}
FUNCS = {"AllReduce": "AllReduce\x1b]0;owned\x07\u202e" + "A" * 120}


def bad(text, salt):
    return BAD[sum(map(ord, salt)) % len(BAD)] + text


def hostile(x, key=""):
    if isinstance(x, dict):
        grown = {"dropped_by": 3, "filtered_by": 2, "timing_fallback_by": 1, "strays": 4}.get(key)
        out = {k: hostile(v, k) for k, v in x.items()}
        if grown:
            out.update({bad("word", key + str(i)): grown for i in range(len(BAD))})
        return out
    if not isinstance(x, str) or key in KEPT or key.endswith("timing_source"):
        return x
    return FUNCS.get(x, x) if key in ("coll", "p2p", "func", "parent_func") else bad(x, key + x)


def logs(old, new):
    os.makedirs(new, exist_ok=True)
    for i, path in enumerate(sorted(glob.glob(old + "/*"))):
        out, last = [], None
        for line in (gzip.open if path.endswith(".gz") else open)(path, "rt"):
            last = json.loads(line)
            out.append(json.dumps(hostile(last), ensure_ascii=False))
        kind = [k for k in last if k not in ("header", "metadata")][0]
        last[bad("kind", str(i))] = last.pop(kind)
        out.append(json.dumps(hostile(last), ensure_ascii=False))
        data = "\n".join(out).encode() + b'\n{"header":\x1b[31m \xc2\x9b \xe2\x80\xae nothing\n\xff\x9b31m FORGED\n'
        name = os.path.basename(path).split(".")[0] + BAD[i % len(BAD)].replace("/", "") + ".jsonl"
        with open(os.path.join(new.encode(), name.encode()), "wb") as f:
            f.write(data)
    with open(os.path.join(new, "cut\x1b[31m\u202e.jsonl.gz"), "wb") as f:
        f.write(gzip.compress(out[0].encode() * 100)[:-40])
    os.symlink("/nonexistent\x1b", os.path.join(new, "gone\x9b\x1b[31m.jsonl"))
    os.symlink("/nonexistent\x1b", os.path.join(new.encode(), b"bytes\x9b31m\xff.jsonl"))


def wrong(name, data):
    text = data.decode(errors="surrogateescape")
    # of gnuplot and of the page's program
    text = text.replace("\t", "") if name.endswith((".gp", ".html", ".svg")) else text
    if found := UNFIT.search(text) or re.search("[\ud800-\udfff]", text):
        yield f"{found.group()!r} in {text[max(0, found.start() - 60):found.end() + 20]!r}"
    if not name.endswith(".html"):
        yield from (f"a line of its own: {line!r}" for line in text.split("\n") if line.startswith("FORGED"))
    if name.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(text)))
        yield from (f"row of {len(r)} cells, {len(rows[0])} in the head: {r}" for r in rows
                    if len(r) != len(rows[0]))
        for cell in (c for r in rows for c in r):
            if cell[:1] in tuple("=+-@\t\r") and not re.fullmatch(r"-?[0-9.]+(e[-+]?[0-9]+)?", cell):
                yield f"a formula: {cell!r}"
    if name.endswith(".json") and text:
        yield from bad_json(text)


def bad_json(text):
    try:
        values = json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError as e:
        yield f"no JSON: {e}"
        return
    if ("nothing of the logs" not in text and '"hostname"' in values and "\\u001b" not in values and
        "\u202e" not in values):
        yield "the values of the logs are not in it as they were"


def look(folders):
    n = faults = 0
    for folder in folders:
        for path in (os.path.join(d, f) for d, _, names in os.walk(folder) for f in names):
            data, name = open(path, "rb").read(), os.path.relpath(path, folder)
            if name.endswith(".parquet"):  # for programs; its name is that of its log
                data, name = b"", "p.parquet"
            if name.endswith(".gz"):
                data, name = gzip.decompress(data), name[:-3]
            n += 1
            for what in list(wrong(name, data))[:3] + list(
                wrong("name", name.encode(errors="surrogateescape"))):
                print(f"{name!r}: {what}")
                faults += 1
    print(f"{n} outputs, {faults} faults")
    return faults > 0 or n == 0


if __name__ == "__main__":
    if sys.argv[1] == "logs":
        logs(sys.argv[2], sys.argv[3])
    elif sys.argv[1] == "name":
        print("=dir\x1b[31m\u009b\u202e\u200b\x07\n FORGED\nCOMPLETE", end="")
    else:
        sys.exit(look(sys.argv[2:]))
