"""The summary worked out again by DuckDB, from our Parquet files and from the logs' own JSON, and
docs/queries.sql run.

Usage: verify_summary.py OUT_DIR LOG_GLOB QUERIES_SQL
"""
import json
import os
import sys

import duckdb
import pyarrow.parquet as pq

out, logs, queries = sys.argv[1:4]
got = json.load(open(out + "/summary/summary.json"))
db = duckdb.connect()
wrong = 0


def near(a, b):
    return ((a is None and b is None) or (
            a is not None and b is not None and abs(a - b) <= 1e-9 * max(abs(a), abs(b))))


def compare(name, table):
    global wrong
    db.execute("CREATE OR REPLACE VIEW r AS " + table)
    rows = db.execute("""
        SELECT comm_type, kind, coll, size, coalesce(timing, ''), count(*), avg(us), stddev_samp(us), min(us), max(us),
               quantile_cont(us, [0.5, 0.9, 0.99]), avg(bw), min(bw), max(bw), quantile_cont(bw, [0.1, 0.5, 0.99])
        FROM r GROUP BY ALL""").fetchall()
    mine = {(g["comm_type"], g["kind"], g["func"], g["msg_size_bytes"], g["timing_source"]): g
            for g in got["groups"]}
    if len(rows) != len(mine):
        print("%s: %d groups, the summary has %d" % (name, len(rows), len(mine)))
        wrong += 1
    for r in rows:
        g = mine[r[:5]]
        us, bw = g["exec_time_us"], g["busbw_gbs"]
        pairs = [(g["records"], r[5]), (us["mean"], r[6]), (us["min"], r[8]), (us["max"], r[9]),
                 (us["p50"], r[10][0]), (us["p90"], r[10][1]), (us["p99"], r[10][2]), (bw["mean"], r[11]),
                 (bw["min"], r[12]), (bw["max"], r[13]), (bw["p10"], r[14][0]), (bw["p50"], r[14][1]),
                 (bw["p99"], r[14][2])]
        for a, b in pairs:
            if not near(a, b):
                print(name, r[:5], a, b)
                wrong += 1
        # DuckDB's running variance loses digits that whole numbers keep.
        if r[7] is not None and abs(us["stddev"] - r[7]) > 1e-6 * max(abs(r[7]), 1e-3):
            print(name, r[:5], "stddev", us["stddev"], r[7])
            wrong += 1
    print("%s: %d groups compared" % (name, len(rows)))


files = out + "/parquet_files/*.parquet"
compare("parquet", """SELECT comm_type, kind, coll, coll_msg_size_bytes AS size, coll_timing_source AS timing,
    coalesce(coll_exec_time_ns / 1000.0, coll_exec_time_us) AS us, coll_busbw_gbs AS bw
    FROM read_parquet('%s', union_by_name = true)""" % files)
compare("logs", """SELECT CASE WHEN n = 1 THEN 'single-rank' WHEN nn < 1 THEN 'unknown' WHEN nn = 1 THEN 'nvlink-only' WHEN n = nn THEN 'hca-only' ELSE 'mixed' END AS comm_type,
    kind, coll, size, timing, us, bw FROM (
      SELECT (header->>'n_ranks')::INT AS n, (header->>'nnodes')::INT AS nn, CASE WHEN coll_perf IS NULL THEN 'p2p' ELSE 'coll' END AS kind,
             coalesce(coll_perf->>'coll', p2p_perf->>'p2p') AS coll,
             coalesce(coll_perf->>'coll_msg_size_bytes', p2p_perf->>'p2p_msg_size_bytes')::BIGINT AS size,
             coalesce(coll_perf->>'coll_timing_source', p2p_perf->>'p2p_timing_source') AS timing,
             coalesce((coll_perf->>'coll_exec_time_ns')::DOUBLE / 1000, (p2p_perf->>'p2p_exec_time_ns')::DOUBLE / 1000,
                      (coll_perf->>'coll_exec_time_us')::DOUBLE, (p2p_perf->>'p2p_exec_time_us')::DOUBLE) AS us,
             coalesce(coll_perf->>'coll_busbw_gbs', p2p_perf->>'p2p_busbw_gbs')::DOUBLE AS bw
      FROM read_json('%s', format = 'newline_delimited', columns = {header: 'JSON', metadata: 'JSON', coll_perf: 'JSON', p2p_perf: 'JSON'})
      WHERE coll_perf IS NOT NULL OR p2p_perf IS NOT NULL)""" % logs)

names = [f.name for f in pq.read_schema(next(f.path for f in os.scandir(out + "/parquet_files")
                                             if f.name.endswith(".parquet")))]
contract = ["id", "comm_name", "rank", "n_ranks", "nnodes", "comm_type", "coll", "coll_sn",
            "coll_msg_size_bytes",
            "coll_exec_time_us", "coll_timing_source", "coll_algobw_gbs", "coll_busbw_gbs",
            "inspector_output_format_version", "git_rev", "rec_mechanism", "dump_timestamp_us", "hostname",
            "pid"]
newer = ["user_tag", "nccl_tag", "symmetric", "coll_kernel", "shared_span", "initial_sync_ns", "compute_ns",
         "final_sync_ns",
         "prev_replay_ns"]  # behind all that earlier releases had, whose last one is "kind"
if names[:len(contract)] != contract or names[names.index("kind") + 1:] != newer:
    print("columns", names)
    wrong += 1

os.chdir(out)
ran = 0
for statement in duckdb.extract_statements(open(queries).read()):
    result = db.execute(statement).fetchall()
    ran += 1
    if (ran in (2, 3, 4, 5) or ran > 8) and not result:
        print("no rows: %s" % statement.query)
        wrong += 1
print("%d queries of docs/queries.sql run" % ran)
sys.exit(1 if wrong or ran < 14 else 0)
