/*
 * nccl-inspector summary: the command line, and the phases one after the other.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/model/sums/partial/partial.h"
#include "exporter/cli/command.h"
#include "result.h"
#include "exporter/cmds/merge/shards.h"
#include "summarize.h"
#include "exporter/input/filters.h"
#include "exporter/output/parquet/page_codec.h"
#include "exporter/output/tables/output.h"
#include "exporter/output/tables/summary_json.h"
#include "summary_print.h"

/* "500ms", "10s", "1m": whole ms, so that relative times are whole, too. */
static int parse_width(const struct ni_opt *o, void *into, const char *arg) {
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = {{"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};
  struct ni_sum_options *x = into;
  char *end;
  if (*arg < '0' || *arg > '9')
    return -EINVAL;
  const uint64_t n = strtoull(arg, &end, 10);
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(end, units[i].unit) != 0)
      continue;
    if (n > NI_BUCKET_MAX_NS / units[i].ns || n * units[i].ns < NI_BUCKET_MIN_NS)
      return -EINVAL;
    x->bucket_ns = n * units[i].ns;
    return 0;
  }
  return -EINVAL;
}

static int parse_shard(const struct ni_opt *row, void *into, const char *arg) {
  struct ni_sum_options *o = into;
  int end = 0;
  if (sscanf(arg, "%9u/%9u%n", &o->shard, &o->shards, &end) != 2 || arg[end] || *arg == '-')
    return -EINVAL;
  return o->shard >= 1 && o->shard <= o->shards && o->shards <= NI_SHARDS_MAX ? 0 : -EINVAL;
}

static const char *refuse_summary(void *into) {
  static char text[64];
  struct ni_sum_options *o = into;
  if (o->shard && !o->partial)
    return "--shard reads a part of the logs, which is no result yet: name a file for it with --partial";
  if (o->partial && o->dataset)
    return "--dataset sorts all records, so it goes without --partial";
  if (o->partial && o->output_dir)
    return "--partial writes no result: leave out --output-dir, it is for merge";
  if (o->partial && !o->shard)
    o->shard = o->shards = 1;
  if (o->dataset && o->compat)
    return "--dataset is no part of NVIDIA's output: leave out --compat";
  if (o->bucket_ns && o->compat)
    return "--time-granularity is no part of NVIDIA's output: leave out --compat";
  const bool wants_steps = o->bucket_ns || o->skip_first || o->step_by;
  const bool wants_other = o->compat || o->dataset || o->partial || ni_filters_any(&o->filter);
  if (o->approximate && (wants_other || wants_steps))
    return "--approximate is of all records and of sums alone: it goes without filters, --skip-first, "
           "--step-by, --time-granularity, "
           "--dataset, --partial and --compat";
  if (o->approximate)
    o->no_plots = o->no_html = o->no_parquet = o->no_csv = true;
  if (o->inputs.n == 0 && !o->compat)
    return "which logs? give a directory, files or a pattern";
  if (ni_pq_codec_available(o->codec))
    return ni_filters_refuse(&o->filter);
  snprintf(text, sizeof text, "--compression=%s: not built in", ni_pq_codec_name(o->codec));
  return text;
}

int ni_parse_only(const struct ni_opt *row, void *into, const char *arg) {
  enum { PARTS = 5 };
  static const char *const parts[PARTS] = {"tables", "operations", "plots", "page", "parquet"};
  struct ni_sum_options *o = into;
  bool *left_out[PARTS] = {NULL, &o->no_csv, &o->no_plots, &o->no_html, &o->no_parquet};
  bool named[PARTS] = {false};
  (void)row;
  for (const char *word = arg;; word++) {
    const size_t n = strcspn(word, ",");
    size_t k = 0;
    while (k < PARTS && (strlen(parts[k]) != n || strncmp(parts[k], word, n) != 0))
      k++;
    if (k == PARTS)
      return -EINVAL;
    named[k] = true;
    word += n;
    if (!*word)
      break;
  }
  for (size_t k = 1; k < PARTS; k++)
    *left_out[k] |= !named[k];
  return 0;
}

static int parse_size(const struct ni_opt *o, void *into, const char *arg) {
  return ni_sizes_add(&((struct ni_sum_options *)into)->filter.size, arg);
}

#define IN(member) NI_INTO(struct ni_sum_options, member)
const struct ni_command ni_summary_command = {
    .name = "summary",
    .need = NI_NEED_AFTER,
    .purpose = "who is slow; figures, tables, Parquet files, plots and one page",
    .about =
        "Who is slow and what it costs; figures, tables, Parquet files, plots and one page from "
        "inspector logs.",
    .refuse = refuse_summary,
    .run = ni_summary_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_LOGS(struct ni_sum_options, 0),
            NI_ROWS_RESULT_PLACE,
            /* Earlier spellings: of --only, and of what `convert --dataset DIR` writes. */
            {"no-parquet", 0, NI_OPT_FLAG, NULL, NULL, IN(no_parquet)},
            {"dataset", 0, NI_OPT_FLAG, NULL, NULL, IN(dataset)},
            NI_ROW_PARTITION(NULL, IN(partition)),
            {"compression", 0, NI_OPT_CHOICE, "CODEC", "Of Parquet pages; zstd where it is built in",
             IN(codec), .want = "zstd|snappy", .gone = "gzip|none"},
            {"compat", 0, NI_OPT_FLAG, NULL, "Only the files, columns and exit codes of NVIDIA's exporter",
             IN(compat)},
            NI_ROWS_FILTERS(struct ni_sum_options, "records", "within the communicator"),
            {"size", 0, NI_OPT_TAKE, "BYTES,A-B,...", "Only operations of these sizes, such as 4K or 1M-16M",
             .take = parse_size, .want = "sizes such as 4096, 1M or 64K-1M, with commas between"},
            NI_ROWS_INDEX(struct ni_sum_options),
            {"sn", 0, NI_OPT_RANKS, "N,M-K,...", "Only operations of these sequence numbers", IN(filter.sn),
             .want = "numbers and ranges, such as 40-49,60"},
            {"approximate", 0, NI_OPT_FLAG, NULL,
             "Tables from the index alone: percentiles within 0.4 %, nobody is compared", IN(approximate)},
            {"skip-first", 0, NI_OPT_NUMBER, "N",
             "Leave out the first N operations of each function, size and communicator (warm-up)",
             IN(skip_first)},
            {"step-by", 0, NI_OPT_TEXT, "NAME",
             "What ends a step: a communicator, a function, or mark (of ctl)", IN(step_by), .min = 1,
             .want = "the name of a communicator or a function, or mark"},
            {"time-granularity", 0, NI_OPT_TAKE, "W",
             "Also sums by time, in buckets so wide: 1ms to 1h (ms, s, m, h)",
             .want = "1ms to 1h, such as 500ms or 10s", .take = parse_width},
            {"groups", 0, NI_OPT_TEXT, "FILE",
             "Lines `NAME: GLOB...`: figures for each such part of the logs, by the names of files",
             IN(groups), .min = 1, .want = "a file"},
            {"comm-map", 0, NI_OPT_TEXT, "FILE",
             "Lines `NAME, HASH or GLOB` and tp, dp, pp, ep, world, -: roles of communicators", IN(comm_map),
             .min = 1, .want = "a file"},
            {"shard", 0, NI_OPT_TAKE, "I/N",
             "Read one of N parts of the logs, for --partial (merge puts them together)", .take = parse_shard,
             .want = "I/N, from 1/N to N/N, N at most 65536"},
            {"partial", 0, NI_OPT_TEXT, "FILE",
             "Write a partial result for merge, and its Parquet files into FILE.parquet/", IN(partial),
             .min = 1, .want = "a file"},
            NI_ROWS_RESULT_TEXT,
            {0}},
    .exits = {{"0", "all there"},
              {"1", "could not run, or could not write all that it should"},
              {"2", "the data is incomplete (what, how many and where is said)"}},
    .more = "With --compat the exit codes are those of NVIDIA's exporter.",
    .files = {{"report.html", "one page, to be opened in a browser"},
              {"summary/", "tables and pictures"},
              {"parquet_files/", "the records, a file per log"},
              {"parquet_counters/", "samples of counters, where they were recorded"},
              {"output.log", "what was read and found"}},
    .examples = {{"logs/", "logs-analysis/ with everything; the figures on the terminal"},
                 {"--only tables --quiet --output-dir /tmp/x logs/",
                  "no page, no pictures, no rows of single operations"},
                 {"--since=-10m logs/", "the end of a run"},
                 {"--json --skip-first 10 logs/", "for a program, without warm-up"}}};

static volatile sig_atomic_t stop; /* set by the signal handler, read by all threads of the command */

static void on_signal(int sig) { stop = sig; }

/* The reference refuses to mix; it knows these four by name. */
static int is_refused_by_compat(const struct ni_run *r) {
  if (r->files.n == 0) {
    ni_say(stdout, "No inspector logs found\n");
    return 1;
  }
  if (r->files.kinds & (r->files.kinds - 1)) {
    ni_say(stderr,
           "CRITICAL:root:Appear to have mixed .log, .log.gz, .jsonl and .jsonl.gz files; bailing!\n");
    return 1;
  }
  return 0;
}

static void print_path(const struct ni_run *r, const char *name, const char *what) {
  char path[PATH_MAX];
  if (snprintf(path, sizeof path, "%s/%s", r->out_dir, name) < (int)sizeof path && access(path, F_OK) == 0)
    ni_say(stdout, "  %s: %s\n", path, what);
}

static void print_partial(const struct ni_run *r) {
  const struct ni_partial *p = r->partial;
  char missing[200];
  uint32_t lack = ni_partial_missing(p, missing);
  size_t logs = 0;
  for (size_t i = 0; i < r->files.n; i++)
    logs += p->have[p->shard_of[i]];
  ni_say(stdout, "%s: %u of %u shards, %zu of %zu logs, %llu records\n", r->opt.partial, p->of - lack, p->of,
         logs, r->files.n, (unsigned long long)r->tally.records);
}

static void print_all(const struct ni_run *r, const struct ni_summary *s) {
  const bool took_its_name = r->replaces && r->of_others && !r->opt.output_dir && !r->opt.compat;
  if (took_its_name) /* two folders of logs are called the same; scripts rely on the name */
    ni_say(
        stderr,
        "nccl-inspector summary: the result in %s was of other logs, and is gone; --output-dir keeps both\n",
        r->out_dir);
  if (r->opt.partial) {
    print_partial(r);
    return;
  }
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
  print_path(r, "report.html", "one page, open it in a browser");
  print_path(r, "summary/", r->opt.no_plots ? "tables" : "tables and pictures");
  print_path(r, "parquet_files/", "the records, a file per log");
  print_path(r, "parquet_counters/", "samples of counters, a file per series");
  print_path(r, "parquet_series/", "sums by time, also in summary/series.csv");
  print_path(r, "dataset/", "the records, sorted, as one data set");
  print_path(r, "output.log", "what was read and found");
  if (r->replaces)
    ni_say(stdout,
           "all of it in place of the earlier result in %s, which is gone%s; --output-dir names another "
           "folder\n",
           r->out_dir, r->of_others ? " (it was of other logs)" : "");
}

int ni_result_of(struct ni_run *r, const char *who, int (*work)(struct ni_run *r, struct ni_summary *s),
                 void (*show)(const struct ni_run *r, const struct ni_summary *s)) {
  static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction old[sizeof stops / sizeof *stops];
  struct ni_summary s = {0};
  int code = NI_EXIT_COULD_NOT_RUN;
  r->stop = &stop;
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
    sigaction(stops[i], &(struct sigaction){.sa_handler = on_signal}, &old[i]);
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes gives EFBIG, and the temporary folder goes */
  int e = work(r, &s);
  if (e < 0) {
    bool earlier = ni_result_earlier(r);
    ni_result_abort(r);
    if (stop)
      ni_say(stderr, "%s: stopped by signal %d; %s\n", who, (int)stop,
             earlier ? "the result of before is as it was" : "nothing was written");
    else
      ni_say(stderr, "%s: %s\n", who, *r->error_text ? r->error_text : strerror(-e));
    if (e == -ENOLINK && !stop)
      code = NI_EXIT_INCOMPLETE;
  } else {
    (show ? show : print_all)(r, &s);
    code = s.complete || r->opt.compat || r->opt.partial ? NI_EXIT_FINE : NI_EXIT_INCOMPLETE;
    if (e == NI_SUMMARY_NOT_ALL) {
      fflush(stdout); /* the message comes last where both go to one place */
      ni_say(stderr, "%s: %s\n", who, r->error_text);
      code = NI_EXIT_COULD_NOT_RUN;
    }
  }
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
    sigaction(stops[i], &old[i], NULL);
  ni_summary_free(&s);
  return code;
}

static int summarize_alone(struct ni_run *r, struct ni_summary *s) {
  return r->opt.partial ? ni_shard_run(r) : ni_summarize(r, s);
}

int (*ni_summary_work)(struct ni_run *r, struct ni_summary *s) = summarize_alone;

int ni_summary_run(int argc, char **argv) {
  struct ni_run r;
  int done, code, e = ni_summarize_init(&r);
  if (e < 0)
    return NI_EXIT_COULD_NOT_RUN;
  code = ni_words_parse(&ni_summary_command, argc, argv, &r.opt, &done);
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  if (r.opt.compat && ni_pq_codec_available(NI_PQ_SNAPPY))
    r.opt.codec = NI_PQ_SNAPPY;
  if (r.opt.inputs.n == 0) {
    ni_say(stderr, "%s: --input_dir is missing\n", argv[0]);
    goto out;
  }
  if (!r.opt.compat)
    e = ni_inputs_find(&r.opt.inputs, argv[0], &r.files, &r.runs);
  else if ((e = ni_discover(&r.files, r.opt.inputs.path, r.opt.inputs.n)) == 0)
    e = ni_runs_find(NULL, &r.files);
  const bool is_refused = e == 0 && r.opt.compat && is_refused_by_compat(&r);
  if (e == -ENOENT || is_refused)
    goto out;
  if (e == 0)
    code = ni_result_of(&r, argv[0], ni_summary_work, NULL);
  else
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
out:
  ni_summarize_free(&r);
  return code;
}
