#!/usr/bin/env bash
# --dataset: pyarrow and DuckDB read it as one table partitioned by host, the rows are those of the files by
# log, sorted;
# the same bytes whatever --jobs and --memory; hosts with odd names.
. "$(dirname "$0")/../../lib/case.sh"
python=$("$ROOT/test/foreign/setup.sh")
plain="--no-plots --no-html --no-csv -q --dataset"
"$BUILD/test/host/loggen" "$TMP/a" --ranks 12 --node 4 --ops 4000 --comm-name --p2p 10 --gzip \
  --member-lines 1000
"$BUILD/test/host/loggen" "$TMP/b" --ranks 6 --node 3 --ops 500 --format ours --p2p 10
for f in "$TMP"/b/*; do sed -i 's/"hostname":"node-1"/"hostname":"gpu.x=\/y z%41\\u00e4"/' "$f"; done
first=
for how in "--jobs 1" "--jobs 3" "--jobs 2 --memory 16M"; do
  out=$TMP/out-${how//[^0-9]/}
  # shellcheck disable=SC2086
  "$BUILD/nccl-inspector" summary "$TMP/a" "$TMP/b" --output-dir "$out" $plain $how >/dev/null
  [ -z "$first" ] || diff -r "$first/dataset" "$out/dataset"
  first=${first:-$out}
done
# shellcheck disable=SC2086
"$BUILD/nccl-inspector" summary "$TMP/a" "$TMP/b" --output-dir "$TMP/alone" $plain --no-parquet >/dev/null
diff -r "$first/dataset" "$TMP/alone/dataset"
[ ! -e "$TMP/alone/parquet_files" ]
# By other folders, and by convert: the same rows.
rc=0; "$BUILD/nccl-inspector" convert "$TMP/a" "$TMP/b" --dataset "$TMP/by" --partition comm,host \
  -q 2>/dev/null || rc=$?
[ $rc = 0 ] || [ $rc = 2 ]
rc=0; "$BUILD/nccl-inspector" convert "$TMP/a" "$TMP/b" --dataset "$TMP/comm" --partition comm -j 2 \
  -q 2>/dev/null || rc=$?
"$BUILD/nccl-inspector" summary "$TMP/a" "$TMP/b" --output-dir "$TMP/comm2" $plain --partition comm -j 1 \
  >/dev/null
diff -r "$TMP/comm/dataset" "$TMP/comm2/dataset"
# Hours and days are gone: named, and the other folders as without them.
rc=0; "$BUILD/nccl-inspector" convert "$TMP/a" "$TMP/b" --dataset "$TMP/hour" --partition hour,comm \
  -q 2>"$TMP/err" || rc=$?
grep -qx 'nccl-inspector convert: no effect any more: --partition=hour' "$TMP/err"
diff -r "$TMP/comm/dataset" "$TMP/hour/dataset"
"$BUILD/nccl-inspector" summary "$TMP/a" "$TMP/b" --output-dir "$TMP/day" $plain --partition day \
  2>"$TMP/err" >/dev/null
[ "$(cat "$TMP/err")" = "nccl-inspector summary: no effect any more: --partition=day" ]
diff -r "$first/dataset" "$TMP/day/dataset"
for bad in comm,comm foo "" "host," hour,foo; do
  rc=0; "$BUILD/nccl-inspector" convert "$TMP/a" --dataset "$TMP/bad" --partition "$bad" 2>"$TMP/err" || rc=$?
  [ $rc = 64 ] && grep -q 'want host, comm, each once' "$TMP/err"
done
"$python" - "$first" "$TMP" <<'P'
import glob, os, sys
import duckdb
import pyarrow as pa, pyarrow.dataset as ds, pyarrow.parquet as pq
out = sys.argv[1]
table = ds.dataset(out + "/dataset", partitioning="hive").to_table()
logs = pa.concat_tables([pq.read_table(f) for f in glob.glob(out + "/parquet_files/*.parquet")])
hosts = sorted(set(logs["hostname"].to_pylist()))
assert sorted(set(table["host"].to_pylist())) == hosts and "gpu.x=/y z%41\u00e4" in hosts, hosts
assert table["host"].to_pylist() == table["hostname"].to_pylist()
assert len(os.listdir(out + "/dataset")) == len(hosts)
names = logs.schema.names
assert [n for n in table.schema.names if n != "host"] == names
row = lambda t: sorted(map(repr, zip(*(t[n].to_pylist() for n in names))))
all_rows = row(logs)
assert row(table) == all_rows and table.num_rows > 100000
for f in glob.glob(out + "/dataset/*/part-0.parquet"):
    t = pq.ParquetFile(f).read(columns=["id", "kind", "coll", "coll_sn", "rank", "dump_timestamp_us"])
    key = list(zip(*(t[n].to_pylist() for n in t.schema.names)))
    assert key == sorted(key), f
db = duckdb.sql(f"select host, count(*), sum(coll_exec_time_us) from read_parquet('{out}/dataset/*/*.parquet', hive_partitioning=true) group by 1 order by 1").fetchall()
log = duckdb.sql(f"select hostname, count(*), sum(coll_exec_time_us) from read_parquet('{out}/parquet_files/*.parquet') group by 1 order by 1").fetchall()
assert db == log, (db, log)
for folder, keys in (("by", ("comm", "host")), ("comm", ("comm",))):
    part = ds.dataset(sys.argv[2] + "/" + folder + "/dataset",
                      partitioning=ds.partitioning(pa.schema([(k, pa.string()) for k in keys]),
                                                   flavor="hive"))
    t = part.to_table()
    assert t.num_rows == logs.num_rows, folder
    n = 0
    for r in t.take(list(range(0, t.num_rows, 97))).to_pylist():
        want = {"host": r["hostname"], "comm": r["id"]}
        assert all(r[k] == want[k] for k in keys), r
        n += 1
    duck = duckdb.sql(f"select count(*), sum(coll_exec_time_us) from read_parquet('{sys.argv[2]}/{folder}/dataset/**/*.parquet', hive_partitioning=true)").fetchall()[0]
    assert duck == (logs.num_rows, sum(logs["coll_exec_time_us"].to_pylist())), duck
    print(folder, len(part.files), "files", n)
print(f"{table.num_rows} rows of {len(hosts)} hosts agree")
P
# What NCCL 2.31 adds, behind the columns that were there before; null where the log says nothing. Files and
# data set have the same.
python3 test/lib/tag_logs.py "$TMP/tagged"
"$BUILD/nccl-inspector" summary "$TMP/tagged" --output-dir "$TMP/tagged-out" --no-plots --no-html --dataset \
  >/dev/null
"$python" - "$TMP/tagged-out" <<'P'
import glob, sys
import pyarrow as pa, pyarrow.parquet as pq
NEW = ["user_tag", "nccl_tag", "symmetric", "coll_kernel", "shared_span", "initial_sync_ns", "compute_ns",
       "final_sync_ns", "prev_replay_ns"]
read = lambda where: pa.concat_tables([pq.ParquetFile(f).read()
                                       for f in sorted(glob.glob(sys.argv[1] + where))])
tables = [read("/parquet_files/*.parquet"), read("/dataset/*/*.parquet")]
for t in tables:
    assert t.schema.names[-10:] == ["kind"] + NEW, t.schema.names
    rows = sorted(t.to_pylist(), key=lambda r: (r["rank"], r["kind"], r["coll_sn"]))
    of = lambda r: tuple(r[k] for k in NEW)
    mine = [of(r) for r in rows if r["rank"] == 1 and r["kind"] == "coll"]
    K, none = "AllReduce_RSxLD_AGxST", (None,) * 5
    assert mine == [(7, None, *none, None, None)] * 10 + [(9, None, *none, None, None)] * 5 + [(None, 5, *none, None, None)] + [(None,) * 9] * 4 + \
        [(7, None, 1, K, None, 10000, 45000, 5000,
          None)] + [(9, None, 1, K, 1, None, None, None, None)] * 3 + \
        [(None, None, 1, K, None, None, None, None, x)
         for x in (None, 2000000, 2000000, 2000000, None, 2000000, 3000000)], mine
    assert [of(r) for r in rows if r["kind"] == "p2p"] == [(12, *(None,) * 8)] * 2
P
