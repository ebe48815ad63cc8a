-- Questions to the samples of counters that `nccl-inspector summary` leaves in parquet_counters/ (docs/summary.md has the columns).
--
--   duckdb -init /dev/null -c ".read docs/queries_counters.sql"        (from the output folder)

CREATE OR REPLACE VIEW counters AS SELECT * FROM read_parquet('parquet_counters/*.parquet');

-- Bytes that each device sent, by the second.
SELECT hostname, device, realtime_ns // 1000000000 AS second, sum(delta) AS bytes
FROM counters WHERE unit = 'bytes' AND counter LIKE '%tx%' AND state IN ('changed', 'wrapped') GROUP BY ALL ORDER BY ALL;

-- Every counter that began anew, stood at its maximum or could not be read.
SELECT hostname, device, counter, state, count(*) AS samples
FROM counters WHERE state IN ('reset', 'saturated', 'unreadable', 'gone', 'new') GROUP BY ALL ORDER BY ALL;

-- What the NICs of a host moved beside its collectives, second by second of the clock. (A record counts where it starts.)
CREATE OR REPLACE VIEW ops AS SELECT * FROM read_parquet('parquet_files/*.parquet', union_by_name = true);
SELECT c.hostname, c.second, c.nic_bytes, o.records, o.exec_time_us, o.busbw FROM (
  SELECT hostname, realtime_ns // 1000000000 AS second, sum(delta) AS nic_bytes FROM counters
  WHERE unit = 'bytes' AND counter LIKE '%tx%' AND state IN ('changed', 'wrapped') GROUP BY ALL) c
LEFT JOIN (
  SELECT hostname, coalesce(coll_enqueue_ns + coll_gpu_start_delta_ns, dump_timestamp_us * 1000) // 1000000000 AS second,
         count(*) AS records, sum(coll_exec_time_us) AS exec_time_us, avg(coll_busbw_gbs) AS busbw FROM ops GROUP BY ALL) o
ON c.hostname = o.hostname AND c.second = o.second ORDER BY c.hostname, c.second;
