#!/usr/bin/env python3
"""schemas/*.schema.json and the types of the Python package, made from schemas/schemas.txt, which says how it
is read.

schemas.py            writes them
schemas.py --check    says what is not up to date; exit code 1
schemas/log-line.schema.json is made from format/lines.def: build/test/unit/test_line_schema --json
"""
import json
import keyword
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TYPES = "python/nccl_inspector/types.py"
TYPED = ("check", "summary", "counters")  # documents that the package hands out
SCALARS = {"count": ({"type": "integer", "minimum": 0}, "int"), "int": ({"type": "integer"}, "int"),
           "number": ({"type": "number"}, "float"), "text": ({"type": "string"}, "str"),
           "bool": ({"type": "boolean"}, "bool"),
           # of a counter: or why it has none
           "hash": ({"type": "string", "pattern": "^0x[0-9a-f]{1,16}$"}, "str"), "any": (True, "Any"),
           "value": ({"type": ["integer", "string", "null"]}, "Union[int, str, None]")}


class Object:
    def __init__(self, name, document=None):
        self.name, self.document, self.keys = name, document, []  # keys: (key, always, type)


def read(path):
    objects, documents, now = {}, [], None
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"): continue
            if line.startswith("  "):
                keys, kind = line.strip().split(": ")
                for key in keys.split(): now.keys.append((key.rstrip("?"), not key.endswith("?"), kind))
            else:
                m = re.fullmatch(r"object (\w+)|([\w-]+) (\S+) (\S+): (.*)", line)
                if not m: sys.exit("%s:%d: %s" % (path, number, line))
                now = Object(m[1]) if m[1] else Object(m[2], m.groups()[2:])
                if m[2]: documents.append(now)
                if now.name in objects: sys.exit("%s:%d: %s stands twice" % (path, number, now.name))
                objects[now.name] = now
    return objects, documents


def schema_of(kind, objects, used):
    if kind.endswith("~"):
        inner = schema_of(kind[:-1], objects, used)
        if isinstance(inner.get("type"), str):
            return {**inner, "type": [inner["type"], "null"],
                    **({"enum": inner["enum"] + [None]} if "enum" in inner else {})}
        return {"anyOf": [inner, {"type": "null"}]}
    if kind[0] == "[": return {"type": "array", "items": schema_of(kind[1:-1], objects, used)}
    if kind[0] == "{": return {"type": "object", "additionalProperties": schema_of(kind[1:-1], objects, used)}
    if kind in SCALARS: return SCALARS[kind][0]
    if kind in objects:
        if kind not in used:
            used.append(kind)
            for _, _, t in objects[kind].keys: schema_of(t, objects, used)
        return {"$ref": "#/$defs/" + kind}
    if kind.startswith("nccl-inspector-"): return {"const": kind}
    if not re.fullmatch(r"[\w-]+(\|[\w-]+)+", kind): sys.exit("schemas.txt: what is %s" % kind)
    return {"type": "string", "enum": kind.split("|")}


def body(o, objects, used):
    return {"type": "object", "properties": {k: schema_of(t, objects, used) for k, _, t in o.keys},
            "required": [k for k, always, _ in o.keys if always]}


def text_of(value, depth=0):
    """JSON with a line for each property and object, so that a change of one key is a change of one line."""
    if (isinstance(value, dict) and (
        depth < 2 or "properties" in value or depth == 2 and "type" not in value and "$ref" not in value)):
        pad = "  " * (depth + 1)
        return "{\n%s\n%s}" % (",\n".join("%s%s: %s" % (pad, json.dumps(k), text_of(v, depth + 1))
                                          for k, v in value.items()), "  " * depth)
    if isinstance(value, dict) and depth > 2 and value and all(isinstance(v, dict) for v in value.values()):
        pad = "  " * (depth + 1)
        return "{\n%s\n%s}" % (",\n".join("%s%s: %s" % (pad, json.dumps(k), json.dumps(v))
                                          for k, v in value.items()), "  " * depth)
    return json.dumps(value, ensure_ascii=False)


def document_text(d, objects):
    version, page, title = d.document
    used = []
    top = body(d, objects, used)
    if version != "-":
        top["properties"] = {"schema_version": {"const": version}, **top["properties"]}
        top["required"].insert(0, "schema_version")
    out = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:nccl-inspector:" + d.name,
           "title": title,
           "description": "Made from schemas/schemas.txt; %s says it in words." % page, **top,
           "$defs": {name: body(objects[name], objects, []) for name in used}}
    if not used: del out["$defs"]
    return text_of(out) + "\n"


def python_of(kind, objects, used):
    if kind.endswith("~"): return "Optional[%s]" % python_of(kind[:-1], objects, used)
    if kind[0] == "[": return "List[%s]" % python_of(kind[1:-1], objects, used)
    if kind[0] == "{": return "Dict[str, %s]" % python_of(kind[1:-1], objects, used)
    if kind in SCALARS: return SCALARS[kind][1]
    if kind in objects:
        if kind not in used: used.append(kind)
        return class_name(kind)
    return "Literal[%s]" % ", ".join(json.dumps(w) for w in kind.split("|"))


def class_name(name):
    return "".join(w.capitalize() for w in re.split(r"[-_]", name))


def python_class(o, objects, used, first):
    """Keys that are always there, then those that are not: a TypedDict of each."""
    out, bases = [], []
    parts = [(always, [(k, python_of(t, objects, used)) for k, a, t in o.keys if a == always])
             for always in (True, False)]
    parts[0][1][:0] = first
    for always, keys in parts:
        if not keys: continue
        name = class_name(o.name) if not parts[1][1] else ("_%sAlways" if always
                                                           else "_%sSometimes") % class_name(o.name)
        bases.append(name)
        total = "" if always else ", total=False"
        if any(keyword.iskeyword(k) for k, _ in keys):
            out.append("%s = TypedDict(\n    %s,\n    {\n%s    },%s\n)\n" % (name, json.dumps(name), "".join("        %s: %s,\n" % (json.dumps(k), json.dumps(t)) for k, t in keys), "" if always else "\n    total=False,"))
        else:
            out.append("class %s(TypedDict%s):\n%s" % (name, total,
                                                       "".join("    %s: %s\n" % (k, t) for k, t in keys)))
    if parts[1][1]: out.append("class %s(%s):\n    pass\n" % (class_name(o.name), ", ".join(bases)))
    return out


def types_text(objects):
    used, classes = [], []
    for name in TYPED: classes += python_class(objects[name], objects, used, [("schema_version", "str")])
    at = 0
    while at < len(used):
        classes += python_class(objects[used[at]], objects, used, [])
        at += 1
    return ('"""What the commands say, as types. Made by scripts/schemas.py from schemas/schemas.txt, like the JSON Schemas."""\n\n'
            "from __future__ import annotations\n\nfrom typing import Any, Dict, List, Literal, Optional, TypedDict, Union\n\n\n" + "\n\n".join(classes))


def main():
    objects, documents = read(ROOT + "/schemas/schemas.txt")
    want = {"schemas/%s.schema.json" % d.name: document_text(d, objects) for d in documents}
    want[TYPES] = types_text(objects)
    there = {"schemas/" + f for f in os.listdir(ROOT + "/schemas")
             if f.endswith(".schema.json")} - {"schemas/log-line.schema.json"}
    wrong = sorted(there - set(want))
    for path, text in sorted(want.items()):
        old = None
        if os.path.exists(ROOT + "/" + path):
            with open(ROOT + "/" + path, encoding="utf-8") as f: old = f.read()
        if old == text: continue
        if sys.argv[1:] == ["--check"]: wrong.append(path)
        else:
            with open(ROOT + "/" + path, "w", encoding="utf-8") as f: f.write(text)
    for path in wrong: print("%s is not what schemas/schemas.txt says: scripts/schemas.py makes it" % path)
    sys.exit(bool(wrong))


main()
