/*
 * `summary --shard` and `merge`: shards of the input into files, and such files into what one summary would
 * have written.
 *
 * A partial result is FILE and, where Parquet files are wanted, the folder FILE.parquet with those of its
 * logs. merge gives them another name in its output (a hard link; a copy where that is another file system)
 * and leaves them where they are.
 *
 * merge reads no log, with two exceptions, which `summary` too reads a second time: time series of counters,
 * and all logs where operations had not finished, for the verdict of `hang`. Those must be as they were.
 *
 * Main thread. Failure: -errno with r->error_text.
 */
#ifndef NI_SHARDS_H
#define NI_SHARDS_H

#include "exporter/cmds/summarize.h"

/* Reads shard r->opt.shard of r->opt.shards of r->files and writes r->opt.partial. */
int ni_shard_run(struct ni_run *r);
/*
 * Puts the files r->opt.parts together and writes r->opt.output_dir, or, where r->opt.partial is set, that
 * alone. -ENOLINK: shards are missing, and r->opt.allow_missing was not set.
 */
int ni_merge_parts(struct ni_run *r, struct ni_summary *s);
/* Which logs have a Parquet file in r->tmp_dir: for ni_partial_store(). */
void ni_shard_parquets(struct ni_run *r);
/* All partials are loaded into r: what follows. */
int ni_merge_finish(struct ni_run *r, struct ni_summary *s);

#endif
