/*
 * nccl-inspector summary: the command line, and the phases one after the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/cli/command.h"
#include "exporter/input/filters.h"
#include "exporter/output/plot/plot.h"
#include "exporter/base/text/plural.h"
#include "exporter/output/report/report.h"
#include "exporter/model/sums/figures.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/records/dataset.h"
#include "exporter/output/records/records.h"
#include "exporter/output/tables/operations_csv.h"
#include "exporter/output/tables/out_tables.h"
#include "exporter/output/tables/output.h"
#include "exporter/output/tables/summary_json.h"
#include "summary_print.h"

/* Of --memory for packed records; an eighth may wait for its turn at Parquet, the rest is what is made of them. */
#define NI_STORE_SHARE 16

static const char *refuse(void *into) {
  static char text[64];
  const struct ni_sum_options *o = into;
  if (o->dataset && o->compat) return "--dataset is no part of NVIDIA's output: leave out --compat";
  if (o->inputs.n == 0 && !o->compat) return "which logs? give a directory, files or a pattern";
  if (ni_pq_codec_available(o->codec)) return NULL;
  snprintf(text, sizeof text, "--compression=%s: not built in", ni_pq_codec_name(o->codec));
  return text;
}

#define IN(member) NI_INTO(struct ni_sum_options, member)
const struct ni_command ni_summary_command = {
    .name = "summary", .need = NI_NEED_AFTER, .purpose = "figures, tables, Parquet files, plots and one page from logs",
    .about = "Figures, tables, Parquet files, plots and one page from inspector logs.", .refuse = refuse, .run = ni_summary_run,
    .opt = (const struct ni_opt[]){
        NI_ROWS_LOGS(struct ni_sum_options, 0),
        {"output-dir", 0, NI_OPT_TEXT, "DIR", "Where to write (default: NAME-analysis in the current folder)", IN(output_dir), .min = 1,
         .want = "a folder"},
        {"force", 0, NI_OPT_FLAG, NULL, "Write into a folder that holds other files", IN(force)},
        {"jobs", 'j', NI_OPT_NUMBER, "N", "Threads, by default one for each CPU this process may use", IN(jobs), .min = 1, .max = 1024},
        {"memory", 0, NI_OPT_SIZE, "SIZE", "Keep about so much in memory, put the rest into temporary files in the output folder",
         IN(memory_bytes), .def = "128M", .min = 16 << 20},
        {"no-plots", 0, NI_OPT_FLAG, NULL, "No pictures", IN(no_plots)},
        {"no-html", 0, NI_OPT_FLAG, NULL, "No report.html", IN(no_html)},
        {"no-parquet", 0, NI_OPT_FLAG, NULL, "No Parquet files", IN(no_parquet)},
        {"no-csv", 0, NI_OPT_FLAG, NULL, "No table of each single operation", IN(no_csv)},
        {"dataset", 0, NI_OPT_FLAG, NULL, "Also all records as one sorted Parquet data set, partitioned by host", IN(dataset)},
        {"compression", 0, NI_OPT_CHOICE, "CODEC", "Of Parquet pages; zstd where it is built in", IN(codec),
         .want = "zstd|snappy|gzip|none"},
        {"plot-format", 0, NI_OPT_CHOICE, "FORMAT", "Of the pictures", IN(plot_format), .def = "png", .want = "png|svg|pdf"},
        {"keep-scripts", 0, NI_OPT_FLAG, NULL, "Keep the plots' gnuplot scripts", IN(keep_scripts)},
        {"compat", 0, NI_OPT_FLAG, NULL, "Only the files, columns and exit codes of NVIDIA's exporter", IN(compat)},
        NI_ROWS_FILTERS(struct ni_sum_options, "records", "within the communicator"),
        {"sn", 0, NI_OPT_RANKS, "N,M-K,...", "Only operations of these sequence numbers", IN(sn)},
        {"skip-first", 0, NI_OPT_NUMBER, "N", "Leave out the first N operations of each function, size and communicator (warm-up)",
         IN(skip_first)},
        {"json", 0, NI_OPT_FLAG, NULL, "summary.json on standard output instead of the text", IN(json)},
        {"format", 0, NI_OPT_CHOICE, "nccl-tests", "The table of nccl-tests, with its sizes, on standard output", IN(nccl_tests),
         .want = "nccl-tests"},
        {"quiet", 'q', NI_OPT_FLAG, NULL, "Totals and verdict only", IN(quiet)},
        {"progress", 0, NI_OPT_CHOICE, "json", "Progress as JSON lines on standard error", IN(progress_json), .want = "json"},
        {0}},
    .exits = {{"0", "all there"}, {"1", "could not run"}, {"2", "the data is incomplete (what, how many and where is said)"}},
    .more = "With --compat the exit codes are those of NVIDIA's exporter.",
    .files = {{"report.html", "one page, to be opened in a browser"}, {"summary/", "tables and pictures"},
              {"parquet_files/", "the records, a file per log"}, {"dataset/", "with --dataset: the records, sorted, a part per host"},
              {"output.log", "what was read and found"}},
    .examples = {{"logs/", "logs-analysis/ with everything; the figures on the terminal"},
                 {"--no-plots --quiet --output-dir /tmp/x logs/", "tables alone"},
                 {"--since=-10m --coll AllReduce --rank 0-7 logs/", "the end of a run"},
                 {"--json --skip-first 10 logs/", "for a program, without warm-up"}}};

static void on_signal(int sig) { ni_summary_stop = sig; }

/* The reference refuses to mix; it knows these four by name. */
static int compat_refuses(const struct ni_run *r) {
  if (r->files.n == 0) {
    ni_say(stdout, "No inspector logs found\n");
    return 1;
  }
  if (r->files.kinds & (r->files.kinds - 1)) {
    ni_say(stderr, "CRITICAL:root:Appear to have mixed .log, .log.gz, .jsonl and .jsonl.gz files; bailing!\n");
    return 1;
  }
  return 0;
}

static void log_counts(struct ni_run *r, const char *what, const struct ni_counts *c) {
  for (size_t i = 0; i < c->n; i++)
    ni_out_log(r, "WARNING", "%s, %s: %llu", what, c->item[i].name, (unsigned long long)c->item[i].count);
}

static void write_log(struct ni_run *r, const struct ni_summary *s) {
  ni_out_log(r, "INFO", "%llu %s, %llu %s, %llu %s", (unsigned long long)s->input.files,
             ni_plural(s->input.files, "file", "files"), (unsigned long long)s->input.lines,
             ni_plural(s->input.lines, "line", "lines"), (unsigned long long)s->input.records,
             ni_plural(s->input.records, "record", "records"));
  if (s->groups_without_slices)
    ni_out_log(r, "WARNING", "%llu %s with the fewest records: not in the tables by communicator, rank and host",
               (unsigned long long)s->groups_without_slices, ni_plural(s->groups_without_slices, "group", "groups"));
  for (size_t i = 0; i < r->files.n; i++)
    if (r->file[i].has_trace)
      ni_out_log(r, "INFO", "%s: event traces (event_trace_sn, event_trace_ts) are not in its Parquet file",
                 r->file[i].file->path);
  for (size_t i = 0; i < s->input.n_trouble; i++) ni_out_log(r, "WARNING", "%s", s->input.trouble[i]);
  for (size_t i = 0; i < s->input.n_notes; i++) ni_out_log(r, "INFO", "%s", s->input.note[i]);
  log_counts(r, "bad lines", &s->input.bad_by_reason);
  for (size_t i = 0; i < s->input.n_where; i++) ni_out_log(r, "ERROR", "%s", s->input.where[i]);
  log_counts(r, "stated as lost or unfinished", &s->input.losses_by_cause);
  log_counts(r, "left out of the statistics", &s->input.out_of_range_by);
}

/* Tables, plots and page. What cannot be drawn is told and does not take the figures away. */
static int render(struct ni_run *r, const struct ni_summary *s, const char *command) {
  struct ni_render_options o = {.plot_format = r->opt.plot_format,
                                .keep_scripts = r->opt.keep_scripts, .compat = r->opt.compat, .quiet = r->opt.quiet,
                                .jobs = r->opt.jobs, .command = command, .input = r->opt.inputs.path[0], .inputs = r->opt.inputs.path,
                                .n_inputs = r->opt.inputs.n, .version = NI_VERSION};
  char dir[PATH_MAX], path[PATH_MAX + 16];
  int e = 0;
  snprintf(dir, sizeof dir, "%s/summary", r->tmp_dir);
  if ((s->n_cells || !r->opt.compat) && mkdir(dir, 0777) < 0 && errno != EEXIST) return -errno;
  if (!r->opt.compat) {
    snprintf(path, sizeof path, "%s/summary.json", dir);
    e = ni_write_tables(s, dir);
    if (e == 0) e = ni_write_json(s, path);
  }
  if (e < 0) return e;
  if (!r->opt.no_plots && s->n_cells && (e = ni_plots_render(s, &o, dir)) < 0)
    ni_out_log(r, "ERROR", "plots: %s", strerror(-e));
  if (!r->opt.no_html && !r->opt.compat) {
    snprintf(path, sizeof path, "%s/report.html", r->tmp_dir);
    if ((e = ni_report_render(s, &o, path)) < 0) ni_out_log(r, "ERROR", "report.html: %s", strerror(-e));
  }
  return 0;
}

static int run_phases(struct ni_run *r, struct ni_summary *s, const char *command) {
  int e = ni_result_begin(r);
  if (e < 0) return e;
  ni_store_init(&r->store, r->tmp_dir, r->opt.memory_bytes / NI_STORE_SHARE);
  r->progress.mode = r->opt.progress_json ? NI_PROGRESS_JSON : r->opt.quiet ? NI_PROGRESS_NONE : NI_PROGRESS_AUTO;
  ni_ledger_runs(&r->ledger, &r->runs, &r->files);
  e = ni_plan(r);
  if (e == 0) e = ni_resolve_times(r);
  for (size_t i = 0; e == 0 && i < r->files.n; i++) e = ni_parquet_new(&r->file[i]);
  if (e == 0 && r->since_us > r->until_us) e = (ni_run_fail(r, -EINVAL, "%s", NI_WHEN_REVERSED), -EINVAL);
  struct ni_records records;
  if (e == 0 && (e = ni_records_init(&records, r)) == 0) {
    r->records = &records.sink;
    e = ni_read_all(r);
    int ended = ni_records_end(&records);
    if (e == 0) e = ended;
  }
  if (e == 0) ni_filters_say_unmet("nccl-inspector summary", &r->opt.coll, &r->opt.comm, &r->opt.host, &r->opt.rank, &r->opt.sn);
  if (e == 0 && r->opt.dataset) e = ni_dataset_write(r);
  if (e == 0) e = ni_build_begin(r, s);
  if (e == 0) e = ni_pairs_all(r, s);
  struct ni_sink csv = ni_operations_csv(r);
  if (e == 0) e = ni_figures_all(r, s, r->opt.no_csv ? NULL : &csv);
  if (e == 0) e = ni_build_end(r, s);
  if (e == 0) e = ni_rollups_build(r, s);
  if (e < 0) return e;
  if (s->records == 0 && s->input.filtered_out && !r->opt.compat) {
    bool earlier = ni_result_earlier(r);
    ni_run_fail(r, -ENODATA, "nothing is left: %s%" PRIu64 " %s left out by the options%s%s%s",
                ni_plural(s->input.filtered_out, "the ", "all of "), s->input.filtered_out,
                ni_plural(s->input.filtered_out, "record is", "records are"), earlier ? "; " : "", earlier ? r->out_dir : "",
                earlier ? " is as it was" : "");
    return -ENODATA;
  }
  write_log(r, s);
  e = render(r, s, command);
  if (e < 0) {
    ni_run_fail(r, e, "%s: %s", r->tmp_dir, strerror(-e));
    return e;
  }
  return ni_result_commit(r);
}

static void show_path(const struct ni_run *r, const char *name, const char *what) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", r->out_dir, name) < (int)sizeof path && access(path, F_OK) == 0)
    ni_say(stdout, "  %s: %s\n", path, what);
}

static void show(const struct ni_run *r, const struct ni_summary *s) {
  if (r->opt.compat) {
    ni_say(stdout, "Number of files: %zu\nOutput directory: %s\nDone!\n", r->files.n, r->out_dir);
    return;
  }
  if (r->opt.json) {
    ni_json_summary(s, stdout);
    return;
  }
  if (r->opt.nccl_tests) {
    ni_print_nccl_tests(s, stdout);
    return;
  }
  ni_print_summary(s, r, stdout);
  ni_say(stdout, "\nwritten:\n");
  show_path(r, "report.html", "one page, open it in a browser");
  show_path(r, "summary/", r->opt.no_plots ? "tables" : "tables and pictures");
  show_path(r, "parquet_files/", "the records, a file per log");
  show_path(r, "dataset/", "the records, sorted, a part per host");
  show_path(r, "output.log", "what was read and found");
}

static void run_free(struct ni_run *r) {
  for (size_t i = 0; r->file && i < r->files.n; i++) {
    struct ni_sum_file *f = &r->file[i];
    ni_parquet_abort(f);
    free(f->parquet);
  }
  free(r->file);
  ni_scan_plan_free(&r->plan);
  ni_ledger_free(&r->ledger);
  ni_files_free(&r->files);
  ni_runs_free(&r->runs);
  ni_tables_free(r);
  ni_rollups_free(r);
  ni_store_close(&r->store);
  if (r->tmp_fd >= 0) close(r->tmp_fd);
  if (r->out_fd >= 0) close(r->out_fd);
  free(r->comm_at);
  free(r->process_at);
  free(r->cell_order);
  free(r->sorted);
  free(r->out_dir);
  ni_inputs_free(&r->opt.inputs);
  ni_words_free(&r->opt.coll);
  ni_words_free(&r->opt.comm);
  ni_words_free(&r->opt.host);
  ni_ranks_free(&r->opt.rank);
  ni_ranks_free(&r->opt.sn);
}

static char *join_words(int argc, char **argv) {
  size_t n = 1;
  for (int i = 0; i < argc; i++) n += strlen(argv[i]) + 1;
  char *text = calloc(n, 1);
  for (int i = 0; text && i < argc; i++) {
    if (i) strcat(text, " ");
    strcat(text, argv[i]);
  }
  return text;
}

int ni_summary_run(int argc, char **argv) {
  struct ni_run r = {.out_fd = -1, .tmp_fd = -1, .lock_fd = -1, .progress = NI_PROGRESS_INIT, .opt = {.jobs = ni_scan_jobs(),
                             .codec = ni_pq_codec_available(NI_PQ_ZSTD) ? NI_PQ_ZSTD : NI_PQ_GZIP}};
  struct ni_summary s = {0};
  char *command = join_words(argc, argv);
  int done, code, e = ni_run_tables(&r);
  if (e < 0 || !command) return NI_EXIT_COULD_NOT_RUN;
  code = ni_words_parse(&ni_summary_command, argc, argv, &r.opt, &done);
  if (done) goto out;
  if (ni_when_reversed(&r.opt.since, &r.opt.until)) {
    ni_say(stderr, "%s: %s\n", argv[0], NI_WHEN_REVERSED);
    code = NI_EXIT_USAGE;
    goto out;
  }
  code = NI_EXIT_COULD_NOT_RUN;
  if (r.opt.compat && ni_pq_codec_available(NI_PQ_SNAPPY)) r.opt.codec = NI_PQ_SNAPPY;
  if (r.opt.inputs.n == 0) {
    ni_say(stderr, "%s: --input_dir is missing\n", argv[0]);
    goto out;
  }
  e = r.opt.compat ? ni_discover(&r.files, r.opt.inputs.path, r.opt.inputs.n) : ni_inputs_find(&r.opt.inputs, argv[0], &r.files, &r.runs);
  if (e == -ENOENT || (e == 0 && r.opt.compat && compat_refuses(&r))) goto out;
  struct sigaction act = {.sa_handler = on_signal}, old_int, old_term, old_hup;
  sigaction(SIGINT, &act, &old_int);
  sigaction(SIGTERM, &act, &old_term);
  sigaction(SIGHUP, &act, &old_hup);
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes gives EFBIG, and the temporary folder goes */
  if (e == 0) e = run_phases(&r, &s, command);
  if (e < 0) {
    bool earlier = ni_result_earlier(&r);
    ni_result_abort(&r);
    if (ni_summary_stop)
      ni_say(stderr, "%s: stopped by signal %d; %s\n", argv[0], (int)ni_summary_stop,
             earlier ? "the result of before is as it was" : "nothing was written");
    else ni_say(stderr, "%s: %s\n", argv[0], *r.error_text ? r.error_text : strerror(-e));
  } else {
    show(&r, &s);
    code = s.complete || r.opt.compat ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
  }
  sigaction(SIGINT, &old_int, NULL);
  sigaction(SIGTERM, &old_term, NULL);
  sigaction(SIGHUP, &old_hup, NULL);
out:
  ni_summary_free(&s);
  run_free(&r);
  free(command);
  return code;
}
