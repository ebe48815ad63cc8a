-- Questions to the Parquet files of `nccl-inspector summary`, for DuckDB and Spark SQL (3.4 or later) alike.
-- Columns: docs/summary.md. Times are microseconds unless the name says ns; bandwidths GB/s.
--
--   duckdb -init /dev/null -c ".read docs/queries.sql"        (from the output folder)
-- Spark, in place of the first statement:
--   spark.read.parquet("OUT/parquet_files/*.parquet").createOrReplaceTempView("ops")

CREATE OR REPLACE VIEW ops AS SELECT * FROM read_parquet('parquet_files/*.parquet', union_by_name = true);

-- The summary by type, function, size and timing source, with exact percentiles.
SELECT comm_type, kind, coll, coll_msg_size_bytes, coll_timing_source, count(*) AS records,
       avg(coll_exec_time_us) AS mean_us,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY coll_exec_time_us) AS p50_us,
       percentile_cont(0.99) WITHIN GROUP (ORDER BY coll_exec_time_us) AS p99_us,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY coll_busbw_gbs) AS p50_busbw
FROM ops GROUP BY ALL ORDER BY records DESC;

-- One row per operation: transfer time (the last to arrive waits for nobody) and what the ranks waited.
SELECT id, coll, coll_sn, coll_msg_size_bytes, count(*) AS ranks, min(coll_exec_time_us) AS transfer_us,
       max(coll_exec_time_us) - min(coll_exec_time_us) AS longest_wait_us
FROM ops WHERE kind = 'coll' GROUP BY id, coll, coll_sn, coll_msg_size_bytes
ORDER BY longest_wait_us DESC LIMIT 20;

-- Who is late: how often a rank has the shortest kernel of its operation.
SELECT hostname, pid, rank, count(*) AS shortest FROM (
  SELECT hostname, pid, rank, row_number() OVER (PARTITION BY id, coll, coll_sn, coll_msg_size_bytes
                                                 ORDER BY coll_exec_time_us, rank) AS place
  FROM ops WHERE kind = 'coll' AND n_ranks > 1) AS placed
WHERE place = 1 GROUP BY hostname, pid, rank ORDER BY shortest DESC LIMIT 20;

-- Like communicators side by side: a slow node is slower than its peers at the same function and size.
SELECT id, min(hostname) AS a_host, coll, coll_msg_size_bytes, avg(coll_busbw_gbs) AS busbw, count(*) AS records
FROM ops WHERE kind = 'coll' AND comm_type = 'nvlink-only' GROUP BY id, coll, coll_msg_size_bytes
ORDER BY coll, coll_msg_size_bytes, busbw;

-- P2P by pair: coll_root holds the peer, coll is Send or Recv.
SELECT id, rank, coll, coll_root AS peer, coll_msg_size_bytes, count(*) AS records, avg(coll_busbw_gbs) AS busbw
FROM ops WHERE kind = 'p2p' GROUP BY id, rank, coll, coll_root, coll_msg_size_bytes ORDER BY busbw LIMIT 20;

-- Real start and stop where our plugin wrote them: nanoseconds since 1970.
SELECT hostname, rank, coll, coll_sn, coll_enqueue_ns + coll_gpu_start_delta_ns AS start_ns,
       coll_enqueue_ns + coll_gpu_start_delta_ns + coll_exec_time_ns AS stop_ns
FROM ops WHERE coll_gpu_start_delta_ns IS NOT NULL ORDER BY start_ns LIMIT 20;

-- Algorithm and protocol by size.
SELECT coll, coll_msg_size_bytes, coll_algo, coll_proto, count(*) AS records, avg(coll_busbw_gbs) AS busbw
FROM ops WHERE coll_algo IS NOT NULL GROUP BY coll, coll_msg_size_bytes, coll_algo, coll_proto
ORDER BY coll, coll_msg_size_bytes, records DESC;

-- The slowest collectives by communicator and hour (of the clock, UTC): start, or the dump where no start is known.
SELECT CAST(floor(coalesce(coll_enqueue_ns + coll_gpu_start_delta_ns, dump_timestamp_us * 1000) / 3600000000000.0) AS BIGINT) AS hour_since_1970,
       id, min(comm_name) AS comm_name, coll, coll_msg_size_bytes, count(*) AS records, max(coll_exec_time_us) AS slowest_us,
       percentile_cont(0.5) WITHIN GROUP (ORDER BY coll_exec_time_us) AS p50_us
FROM ops WHERE kind = 'coll' GROUP BY 1, id, coll, coll_msg_size_bytes ORDER BY slowest_us DESC LIMIT 20;

-- Bandwidth percentiles by function and size.
SELECT coll, coll_msg_size_bytes, count(coll_busbw_gbs) AS records,
       percentile_cont(0.1) WITHIN GROUP (ORDER BY coll_busbw_gbs) AS p10, percentile_cont(0.5) WITHIN GROUP (ORDER BY coll_busbw_gbs) AS p50,
       percentile_cont(0.9) WITHIN GROUP (ORDER BY coll_busbw_gbs) AS p90, max(coll_busbw_gbs) AS best
FROM ops WHERE coll_busbw_gbs IS NOT NULL GROUP BY coll, coll_msg_size_bytes ORDER BY coll, coll_msg_size_bytes;

-- Stragglers: kernels below 80 % of their operation's median, since the others waited; and what that cost one of these.
SELECT hostname, pid, rank, count(*) AS compared, sum(CASE WHEN us < 0.8 * median_us THEN 1 ELSE 0 END) AS late,
       sum(CASE WHEN us < 0.8 * median_us THEN median_us - us ELSE 0 END) AS late_us FROM (
  SELECT o.hostname, o.pid, o.rank, o.coll_exec_time_us AS us, m.median_us FROM ops o JOIN (
    SELECT id, coll, coll_sn, coll_msg_size_bytes, percentile_cont(0.5) WITHIN GROUP (ORDER BY coll_exec_time_us) AS median_us
    FROM ops WHERE kind = 'coll' GROUP BY id, coll, coll_sn, coll_msg_size_bytes HAVING count(*) > 1) m
  ON o.id = m.id AND o.coll = m.coll AND o.coll_sn = m.coll_sn AND o.coll_msg_size_bytes = m.coll_msg_size_bytes
  WHERE o.kind = 'coll') AS beside
GROUP BY hostname, pid, rank ORDER BY late DESC, late_us DESC LIMIT 20;

-- A timeline for each host: what ran in each second of the clock.
SELECT hostname, CAST(floor(coalesce(coll_enqueue_ns + coll_gpu_start_delta_ns, dump_timestamp_us * 1000) / 1000000000.0) AS BIGINT) AS second,
       count(*) AS records, sum(coll_msg_size_bytes) AS bytes, sum(coll_exec_time_us) AS exec_time_us, avg(coll_busbw_gbs) AS busbw
FROM ops GROUP BY hostname, 2 ORDER BY hostname, second;

-- Where the time goes: share of each function and communicator in the time of all records.
SELECT id, min(comm_name) AS comm_name, coll, count(*) AS records, sum(coll_exec_time_us) AS exec_time_us,
       sum(coll_exec_time_us) * 100.0 / (SELECT sum(coll_exec_time_us) FROM ops) AS percent
FROM ops GROUP BY id, coll ORDER BY exec_time_us DESC LIMIT 20;

-- Operations that some ranks did not write (or that were lost): fewer records than ranks.
SELECT id, coll, n_ranks, count(*) AS operations, sum(CASE WHEN records < n_ranks THEN 1 ELSE 0 END) AS partly FROM (
  SELECT id, coll, coll_sn, coll_msg_size_bytes, n_ranks, count(*) AS records FROM ops WHERE kind = 'coll'
  GROUP BY id, coll, coll_sn, coll_msg_size_bytes, n_ranks) AS seen
GROUP BY id, coll, n_ranks ORDER BY partly DESC, id, coll LIMIT 20;
