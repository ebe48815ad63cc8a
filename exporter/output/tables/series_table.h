/*
 * Sums by time (model/sums/buckets/buckets.h) as files: summary/series.csv, series_rollups.csv,
 * series_hosts.csv, the same as Parquet in parquet_series/, and as `series` in summary.json. One list of
 * columns gives all three.
 *
 * Threads: main. Failure: -ENOMEM, -errno. Nothing is written where no sums by time were asked for.
 * path, of PATH_MAX bytes: of the file that was written last, so of the one that failed.
 */
#ifndef NI_SERIES_TABLE_H
#define NI_SERIES_TABLE_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"
#include "exporter/output/parquet/writer.h"

int ni_series_csv(const struct ni_summary *s, const char *dir, char *path);
/* dir: of all of the output; parquet_series is made in it. */
int ni_series_parquet(const struct ni_summary *s, const char *dir, enum ni_pq_codec codec, char *path);
void ni_series_json(struct ni_json *j, const struct ni_summary *s);

#endif
