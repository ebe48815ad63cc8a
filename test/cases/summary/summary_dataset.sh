#!/usr/bin/env bash
# --dataset: pyarrow and DuckDB read it as one table partitioned by host, the rows are those of the files by log, sorted;
# the same bytes whatever --jobs and --memory; hosts with odd names.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
build=${BUILD:-build}
case $build in /*) ;; *) build=$root/$build ;; esac
python=$(BUILD=$build "$root/test/foreign/setup.sh")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
plain="--no-plots --no-html --no-csv -q --dataset"
"$build/test/host/loggen" "$work/a" --ranks 12 --node 4 --ops 4000 --comm-name --p2p 10 --gzip --member-lines 1000
"$build/test/host/loggen" "$work/b" --ranks 6 --node 3 --ops 500 --format ours --p2p 10
for f in "$work"/b/*; do sed -i 's/"hostname":"node-1"/"hostname":"gpu.x=\/y z%41\\u00e4"/' "$f"; done
first=
for how in "--jobs 1" "--jobs 3" "--jobs 2 --memory 16M"; do
  out=$work/out-${how//[^0-9]/}
  # shellcheck disable=SC2086
  "$build/nccl-inspector" summary "$work/a" "$work/b" --output-dir "$out" $plain $how >/dev/null
  [ -z "$first" ] || diff -r "$first/dataset" "$out/dataset"
  first=${first:-$out}
done
# shellcheck disable=SC2086
"$build/nccl-inspector" summary "$work/a" "$work/b" --output-dir "$work/alone" $plain --no-parquet >/dev/null
diff -r "$first/dataset" "$work/alone/dataset"
[ ! -e "$work/alone/parquet_files" ]
"$python" - "$first" <<'P'
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
assert row(table) == row(logs) and table.num_rows > 100000
for f in glob.glob(out + "/dataset/*/part-0.parquet"):
    t = pq.ParquetFile(f).read(columns=["id", "kind", "coll", "coll_sn", "rank", "dump_timestamp_us"])
    key = list(zip(*(t[n].to_pylist() for n in t.schema.names)))
    assert key == sorted(key), f
db = duckdb.sql(f"select host, count(*), sum(coll_exec_time_us) from read_parquet('{out}/dataset/*/*.parquet', hive_partitioning=true) group by 1 order by 1").fetchall()
log = duckdb.sql(f"select hostname, count(*), sum(coll_exec_time_us) from read_parquet('{out}/parquet_files/*.parquet') group by 1 order by 1").fetchall()
assert db == log, (db, log)
print(f"{table.num_rows} rows of {len(hosts)} hosts agree")
P
