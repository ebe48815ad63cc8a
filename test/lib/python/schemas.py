"""JSON against schemas/*.schema.json, strictly: what has properties has no others. schemas.py SCHEMA=FILE...
checks the documents of a file; SCHEMA+=FILE: one a line, of which each shape is looked at once. Prints what
is wrong; exit code 1.

As a module: Schemas().wrong(name, document) -> sentences.
"""
import gzip
import json
import os
import sys

import jsonschema

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../schemas"))


def strict(schema):
    """Published schemas allow keys to come; a test must see them."""
    if isinstance(schema, dict):
        for value in schema.values(): strict(value)
        if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
    elif isinstance(schema, list):
        for value in schema: strict(value)
    return schema


def shape(value):
    if isinstance(value, dict): return tuple((k, shape(v)) for k, v in value.items())
    if isinstance(value, list): return tuple(sorted({repr(shape(v)) for v in value}))
    return type(value).__name__


class Schemas:
    def __init__(self):
        self.of = {}

    def validator(self, name):
        if name not in self.of:
            with open("%s/%s.schema.json" % (FOLDER, name), encoding="utf-8") as f: schema = json.load(f)
            jsonschema.Draft202012Validator.check_schema(schema)
            self.of[name] = jsonschema.Draft202012Validator(strict(schema))
        return self.of[name]

    def wrong(self, name, document):
        return ["%s: %s: %s" % (name, "/".join(map(str, e.absolute_path)), e.message[:300])
                for e in self.validator(name).iter_errors(document)]


def documents(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        seen = set()
        for line in f:
            if not line.startswith("{"): continue
            document = json.loads(line)
            kind = shape(document)
            if kind not in seen: yield document
            seen.add(kind)


def main(words):
    schemas, bad, n = Schemas(), 0, 0
    for word in words:
        name, path = word.split("=", 1)
        lines = name.endswith("+")
        if lines: found = documents(path)
        else:
            with open(path, encoding="utf-8") as f: found = [json.load(f)]
        for document in found:
            n += 1
            wrong = schemas.wrong(name.rstrip("+"), document)
            for sentence in wrong[:5]: print("FAIL %s: %s" % (path, sentence))
            bad += bool(wrong)
    print("%d documents and shapes of lines, %d are not as their schemas say" % (n, bad))
    return bad != 0


if __name__ == "__main__": sys.exit(main(sys.argv[1:]))
