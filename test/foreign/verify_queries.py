"""Asks docs/queries.sql (argv[1]) of the Parquet files in argv[2], with Spark and with DuckDB, and compares
the answers.

Rows that a LIMIT leaves out are compared too: which of equal ones it takes is up to the engine.
"""
import glob
import math
import os
import re
import sys

import duckdb
from pyspark.sql import SparkSession

text = "\n".join(line.split("--")[0] for line in open(sys.argv[1]))
queries = [re.sub(r"\s+LIMIT \d+\s*$", "", q.strip()) for q in text.split(";")
           if q.strip().startswith("SELECT")]
assert len(queries) >= 7, queries
files = os.path.join(sys.argv[2], "*.parquet")
assert glob.glob(files)
duck = duckdb.connect()
duck.execute(f"CREATE VIEW ops AS SELECT * FROM read_parquet('{files}', union_by_name = true)")
spark = (SparkSession.builder.master("local[2]").config("spark.ui.enabled",
                                                        "false").config("spark.driver.memory", "2g")
         .config("spark.driver.bindAddress", "127.0.0.1").config("spark.driver.host", "127.0.0.1")
         .config("spark.sql.session.timeZone", "UTC").getOrCreate())
spark.sparkContext.setLogLevel("ERROR")
spark.read.parquet(files).createOrReplaceTempView("ops")


def key(row):  # doubles last: they may differ in the last digit
    return tuple((v is None, str(v)) for v in row
                 if not isinstance(v, float)), tuple(v for v in row if isinstance(v, float))


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9) or (a != a and b != b)
    return a == b


for q in queries:
    one = sorted(map(tuple, duck.execute(q).fetchall()), key=key)
    two = sorted((tuple(r) for r in spark.sql(q).collect()), key=key)
    assert len(one) == len(two) and one, (q, len(one), len(two))
    for a, b in zip(one, two):
        if len(a) != len(b) or not all(map(same, a, b)):
            sys.exit(f"{q}\nDuckDB {a}\nSpark  {b}")
print(f"{len(queries)} queries, the same rows from DuckDB and Spark {spark.version}")
