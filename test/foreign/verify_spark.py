"""Reads DIR/*.parquet with Spark and compares every value with the .json beside it (see verify_parquet.py).

Spark's vectorised reader and parquet-mr's own are both asked: they are two implementations.
"""
import glob
import json
import os
import struct
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

TYPES = {"int64": "bigint", "double": "double", "string": "string"}


def expected(column):
    kind, values = column["type"], column["values"]
    if kind == "string":
        return [None if v is None else bytes.fromhex(v).decode("utf-8", "replace") for v in values]
    if kind == "double":
        return [None if v is None else struct.unpack("<d", int(v, 16).to_bytes(8, "little"))[0]
                for v in values]
    return values


def same(kind, a, b):
    if kind == "double" and a is not None and b is not None:
        return struct.pack("<d", a) == struct.pack("<d", b) or (a != a and b != b)  # the JVM has one NaN
    return a == b


def main():
    spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled",
                                                            "false").config("spark.driver.memory", "2g")
             .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
             .config("spark.sql.session.timeZone", "UTC").getOrCreate())
    spark.sparkContext.setLogLevel("ERROR")
    files = cells = 0
    for path in sorted(glob.glob(os.path.join(sys.argv[1], "*.json"))):
        with open(path) as f:
            truth = json.load(f)
        for vectorised in ("true", "false"):
            spark.conf.set("spark.sql.parquet.enableVectorizedReader", vectorised)
            # One partition and no shuffle keep the rows in the order of the file.
            df = spark.read.parquet(path[:-5] + ".parquet").coalesce(1)
            types = {f.name: f.dataType.simpleString() for f in df.schema.fields}
            for c in truth["columns"]:
                if types.get(c["name"]) != TYPES[c["type"]]:
                    sys.exit(f"FAIL {path}: column {c['name']} is {types.get(c['name'])}, expected {TYPES[c['type']]}")
            cols = [F.col(c["name"]) for c in truth["columns"]]
            rows = df.select(*cols).collect()
            if len(rows) != truth["rows"]:
                sys.exit(f"FAIL {path}: {len(rows)} rows, expected {truth['rows']}")
            for i, c in enumerate(truth["columns"]):
                for r, want in enumerate(expected(c)):
                    if not same(c["type"], rows[r][i], want):
                        sys.exit(f"FAIL {path}: column {c['name']} ({c['type']}) row {r}: {rows[r][i]!r} expected {want!r}")
                present = [v for v in c["values"] if v is not None]
                if c["type"] == "int64" and present: # answered with the help of the bounds
                    n = df.filter(F.col(c["name"]) == max(present)).count()
                    if n != c["values"].count(max(present)):
                        sys.exit(f"FAIL {path}: column {c['name']}: filter for the largest value finds {n}")
            cells += truth["rows"] * len(truth["columns"])
        files += 1
    if not files:
        sys.exit(f"FAIL {sys.argv[1]}: no .json to compare with")
    print(f"{files} files, {cells} values: the same in Spark {spark.version}")
    spark.stop()


main()
