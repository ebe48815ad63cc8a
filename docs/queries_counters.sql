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
