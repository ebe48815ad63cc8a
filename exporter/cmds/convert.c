/*
 * nccl-inspector convert: records in the form of other programs (exporter/output/convert/convert.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/cli/command.h"
#include "exporter/model/ledger/judge.h"
#include "exporter/output/convert/convert.h"
#include "exporter/output/tables/output.h"
#include "summarize.h"

static const char *refuse_convert(void *into) {
  const struct ni_convert *c = into;
  if (!!c->pfw + !!c->bulk + !!c->dataset != 1)
    return "into what? give one of --pfw DIR, --bulk FILE and --dataset DIR";
  return *c->partition && !c->dataset ? "--partition is of --dataset alone" : ni_filters_refuse(&c->filter);
}

#define IN(member) NI_INTO(struct ni_convert, member)
const struct ni_command ni_convert_command = {
    .name = "convert",
    .need = NI_NEED_AFTER,
    .purpose = "records for DuckDB, Spark, dfanalyzer, Elasticsearch and others",
    .about = "Writes the records of logs in the form that other programs read.",
    .refuse = refuse_convert,
    .run = ni_convert_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_LOGS(struct ni_convert, 1),
            {"pfw", 0, NI_OPT_TEXT, "DIR", "A .pfw.gz for each process into this new folder, for dfanalyzer",
             IN(pfw), .min = 1, .want = "a folder"},
            {"bulk", 0, NI_OPT_TEXT, "FILE",
             "Lines for the bulk interface of Elasticsearch and OpenSearch, compressed when it ends in .gz; "
             "an index template beside it",
             IN(bulk), .min = 1, .want = "a file name"},
            {"dataset", 0, NI_OPT_TEXT, "DIR",
             "Sorted Parquet files in DIR/dataset, for DuckDB, Spark, Dask, pandas; an earlier result is "
             "replaced",
             IN(dataset), .min = 1, .want = "a folder"},
            NI_ROW_PARTITION("What the data set's folders are by, the outermost first (default host)",
                             IN(partition)),
            {"jobs", 'j', NI_OPT_NUMBER, "N", "Threads, by default one for each CPU this process may use",
             IN(jobs), .min = 1, .max = 1024},
            NI_ROWS_FILTERS(struct ni_convert, "records", "within the communicator"),
            {"quiet", 'q', NI_OPT_FLAG, NULL, "No text on standard output", IN(quiet)},
            {0}},
    .exits = {{"0", "all there"},
              {"1", "could not run; nothing was written"},
              {"2", "written, but the logs are incomplete: check says what is missing"}},
    .examples = {
        {"--pfw job-pfw logs/", "then dfanalyzer trace_path=job-pfw"},
        {"--dataset job --partition host,comm logs/",
         "job/dataset/host=node-a/comm=0x8f2a4c/part-0.parquet, ..."},
        {"--bulk job.ndjson logs/", "then curl --data-binary @job.ndjson .../nccl-inspector/_bulk"}}};

static volatile sig_atomic_t stop; /* set by the signal handler, read by all threads of the command */

static void on_signal(int sig) { stop = sig; }

static void print_result(const struct ni_convert *c) {
  const struct ni_convert_counts *n = &c->count;
  const char *to = c->bulk ? c->bulk : c->pfw;
  ni_say(stdout, "%s: %s of %s %s", to, NI_COUNT(n->written), NI_COUNT(n->records),
         ni_plural(n->records, "record", "records"));
  if (c->pfw)
    ni_say(stdout, " in %s %s", NI_COUNT(n->files), ni_plural(n->files, "file", "files"));
  ni_say(stdout, "\n");
  if (c->bulk)
    ni_say(stdout, "%s-template.json: the index template\n", to);
  if (n->filtered)
    ni_say(stdout, "  %s left out by the options\n", NI_COUNT(n->filtered));
  if (n->no_duration)
    ni_say(stdout, "  %s left out: no duration that can be true (summary leaves them out, too)\n",
           NI_COUNT(n->no_duration));
  if (n->no_start)
    ni_say(stdout, "  %s stand at the time of their dump, since the log states no start\n",
           NI_COUNT(n->no_start));
}

static int judge_completeness(const struct ni_ledger *ledger, const char *name) {
  if (ni_ledger_complete(ledger))
    return NI_EXIT_FINE;
  ni_say(stderr, "%s: the logs are incomplete; `nccl-inspector check` says what is missing\n", name);
  return NI_EXIT_INCOMPLETE;
}

enum { DATASET_MEMORY = 128 << 20 }; /* as of summary */

/* Writes the data set of summary, and nothing else: the same rows by the same code. */
static int write_dataset(struct ni_convert *c, struct ni_runs *runs, const char *name) {
  struct ni_run r;
  uint64_t records = 0;
  int e = ni_summarize_init(&r), code = NI_EXIT_COULD_NOT_RUN;
  if (e < 0)
    return code;
  r.stop = &stop;
  r.files = c->files;
  r.runs = *runs;
  r.opt.inputs = c->inputs; /* all these are the run's from here on */
  r.opt.filter = c->filter;
  r.opt.jobs = c->jobs;
  r.opt.output_dir = c->dataset;
  r.opt.dataset = r.opt.no_parquet = true;
  r.opt.quiet = c->quiet;
  r.opt.memory_bytes = DATASET_MEMORY;
  memcpy(r.opt.partition, c->partition, sizeof r.opt.partition);
  *c = (struct ni_convert){0};
  *runs = (struct ni_runs){0};
  e = ni_summarize_dataset(&r, name, &records);
  if (e < 0) {
    ni_result_abort(&r);
    if (stop)
      ni_say(stderr, "%s: stopped by signal %d\n", name, (int)stop);
    else
      ni_say(stderr, "%s: %s\n", name, *r.error_text ? r.error_text : strerror(-e));
  } else {
    if (!r.opt.quiet)
      ni_say(stdout, "%s/dataset: %s %s\n", r.out_dir, NI_COUNT(records),
             ni_plural(records, "record", "records"));
    code = judge_completeness(&r.ledger, name);
  }
  ni_summarize_free(&r);
  return code;
}

int ni_convert_run(int argc, char **argv) {
  static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction old[sizeof stops / sizeof *stops];
  struct ni_convert c = {.jobs = ni_scan_jobs(), .stop = &stop, .progress = NI_PROGRESS_INIT};
  struct ni_runs runs = {0};
  int done, code = ni_words_parse(&ni_convert_command, argc, argv, &c, &done), e;
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&c.inputs, argv[0], &c.files, &runs);
  if (e == -ENOENT)
    goto out;
  c.progress.mode = ni_inputs_progress(&c.inputs, c.quiet);
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
    sigaction(stops[i], &(struct sigaction){.sa_handler = on_signal}, &old[i]);
  if (e == 0)
    ni_inputs_unreadable(argv[0], &c.files);
  if (e == 0 && c.dataset) {
    code = write_dataset(&c, &runs, argv[0]);
    goto restore;
  }
  if (e == 0)
    e = ni_convert_all(&c);
  if (e == 0)
    e = ni_ledger_judge(&c.ledger);
  if (e < 0)
    ni_say(stderr, "%s: %s\n", argv[0], *c.error_text ? c.error_text : strerror(-e));
  if (c.count.records)
    ni_filters_say_unmet(&c.filter, argv[0]);
  if (e == 0) {
    if (!c.quiet)
      print_result(&c);
    code = judge_completeness(&c.ledger, argv[0]);
  }
restore:
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
    sigaction(stops[i], &old[i], NULL);
out:
  ni_convert_free(&c);
  ni_runs_free(&runs);
  return code;
}
