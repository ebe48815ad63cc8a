/*
 * Logs to figures, tables, pictures and a page: all of `nccl-inspector summary` but its command line and its
 * terminal.
 *
 * Nothing is shared between two runs: several can be made in one process at once, each by a thread of its
 * own, which starts r->opt.jobs - 1 more. Ownership: ni_summarize_free() and ni_summary_free(), in any case.
 */
#ifndef NI_SUMMARIZE_H
#define NI_SUMMARIZE_H

#include "exporter/cli/words.h"
#include "exporter/model/pattern/changes.h"
#include "exporter/model/sums/ranks/blame.h"

/* --partition of summary and convert: words into an array of enum ni_partition. */
int ni_parse_partition(const struct ni_opt *o, void *into, const char *arg);
#define NI_ROW_PARTITION(help_or_null, into) \
  {"partition", \
   0, \
   NI_OPT_TAKE, \
   "host,comm", \
   help_or_null, \
   into, \
   .want = "host, comm, each once", \
   .take = ni_parse_partition, \
   .gone = "day|hour"}

/* A picture or the page could not be written; all else was, and r->error_text says which and why. */
enum { NI_SUMMARY_NOT_ALL = 1 };

/* Defaults; r->opt is the caller's to change then. 0 or -ENOMEM. */
int ni_summarize_init(struct ni_run *r);
/*
 * Reads r->files, which the caller has found, and writes into r->opt.output_dir. 0,
 * NI_SUMMARY_NOT_ALL, or -errno with r->error_text: the caller says that, and calls ni_result_abort().
 */
int ni_summarize(struct ni_run *r, struct ni_summary *s);
/* Its three parts, for those who read the input in another way (partial.h). Where packed records that do not
 * fit into memory are put aside: in folder, NULL: $TMPDIR. */
void ni_summarize_store(struct ni_run *r, const char *folder);
/* What is r's of the input, its Parquet files included, which go into r->tmp_dir. */
int ni_summarize_read(struct ni_run *r);
/* All that follows, from ni_result_begin() on to the end. Returns what ni_summarize() does. */
int ni_summarize_finish(struct ni_run *r, struct ni_summary *s);
/* What the other ranks of a team do meanwhile, once all have the tables (ni_team_tables()). */
int ni_summarize_serve(struct ni_run *r);
/* The same without an output folder, and without anything written but a temporary file without a name in
 * $TMPDIR: s and the tables of its ranks, for the caller, who frees these by ni_blame_free(); and what their
 * steps are, which he frees by ni_digest_free(). */
int ni_summarize_tables(struct ni_run *r, struct ni_summary *s, struct ni_blame *keep,
                        struct ni_digest *steps);
/*
 * Likewise the programs of all ranks and the account alone, without figures. The caller frees pattern by
 * ni_pattern_free().
 */
int ni_summarize_pattern(struct ni_run *r, struct ni_summary *s, struct ni_pattern *pattern);
/*
 * Only the data set, with r->opt.dataset and what else is asked for by r->opt. The ledger is judged.
 * *records: in it.
 */
int ni_summarize_dataset(struct ni_run *r, const char *command, uint64_t *records);
void ni_summarize_free(struct ni_run *r);

#endif
