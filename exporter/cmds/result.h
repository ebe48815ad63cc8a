/* What `summary` and `merge` have in common: options for the result, and what is said of it. */
#ifndef NI_CMD_RESULT_H
#define NI_CMD_RESULT_H

#include "exporter/cli/command.h"
#include "exporter/model/sums/state.h"

#define NI_RESULT_IN(member) NI_INTO(struct ni_sum_options, member)
/* clang-format off */
#define NI_ROWS_RESULT_PLACE \
  {"output-dir", 0, NI_OPT_TEXT, "DIR", "Where to write (default: NAME-analysis in the current folder)", \
   NI_RESULT_IN(output_dir), .min = 1, .want = "a folder"}, \
  {"force", 0, NI_OPT_FLAG, NULL, "Write into a folder that holds other files", NI_RESULT_IN(force)}, \
  {"jobs", 'j', NI_OPT_NUMBER, "N", "Threads, by default one for each CPU this process may use", \
   NI_RESULT_IN(jobs), .min = 1, .max = 1024}, \
  {"memory", 0, NI_OPT_SIZE, "SIZE", \
   "Keep about so much in memory, put the rest into temporary files in the output folder", \
   NI_RESULT_IN(memory_bytes), .def = "128M", .min = 16 << 20}, \
  {"only", 0, NI_OPT_TAKE, "PART,...", \
   "Only these parts of the result (default all): tables, operations, plots, page, parquet", \
   .take = ni_parse_only, .want = "a list of tables, operations, plots, page, parquet"}, \
  /* How parts were left out before there was --only. */ \
  {"no-plots", 0, NI_OPT_FLAG, NULL, NULL, NI_RESULT_IN(no_plots)}, \
  {"no-html", 0, NI_OPT_FLAG, NULL, NULL, NI_RESULT_IN(no_html)}, \
  {"no-csv", 0, NI_OPT_FLAG, NULL, NULL, NI_RESULT_IN(no_csv)}, \
  {"plot-format", 0, NI_OPT_CHOICE, "FORMAT", "Of the pictures", NI_RESULT_IN(plot_format), \
   .def = "png", .want = "png|svg|pdf"}, \
  {"keep-scripts", 0, NI_OPT_FLAG, NULL, NULL, NI_RESULT_IN(keep_scripts)}
#define NI_ROWS_RESULT_TEXT \
  {"json", 0, NI_OPT_FLAG, NULL, "summary.json on standard output instead of the text", NI_RESULT_IN(json)}, \
  {"format", 0, NI_OPT_CHOICE, "nccl-tests", "The table of nccl-tests, with its sizes, on standard output", \
   NI_RESULT_IN(nccl_tests), .want = "nccl-tests"}, \
  {"quiet", 'q', NI_OPT_FLAG, NULL, "Totals and verdict only", NI_RESULT_IN(quiet)}
/* clang-format on */

/*
 * --only: all parts that it does not name are left out. Tables are always written: "tables" alone leaves out
 * all else. The Parquet files of `merge` are those of the partial results.
 */
int ni_parse_only(const struct ni_opt *o, void *into, const char *arg);

/* How `summary` makes its result: ni_summarize(), or what another program sets before it runs the command. */
extern int (*ni_summary_work)(struct ni_run *r, struct ni_summary *s);
/* How `check` reads: the account of all files; likewise. 0 or -errno. */
extern int (*ni_check_work)(struct ni_ledger *c, struct ni_files *files, const struct ni_inputs *in,
                            struct ni_progress *progress);
/* Who reads logs that no index knows for `trace`, beside this process; NULL: nobody does. What they have not
 * brought (ni_atlas_wire_made()), it reads itself. 0 or -errno. */
extern int (*ni_trace_share)(struct ni_atlas *a, const struct ni_files *files);

/*
 * Does the work, which a signal can stop, and shows the result or says why there is none. who: the command,
 * for messages. work: 0, NI_SUMMARY_NOT_ALL, or -errno, with r->error_text. show: NULL, as the options of
 * `summary` say. Returns the exit code.
 */
int ni_result_of(struct ni_run *r, const char *who, int (*work)(struct ni_run *r, struct ni_summary *s),
                 void (*show)(const struct ni_run *r, const struct ni_summary *s));

#endif
