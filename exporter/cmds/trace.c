/*
 * nccl-inspector trace: the command line, and the phases one after the other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/cli/command.h"
#include "exporter/base/text/plural.h"
#include "exporter/model/timeline/choose.h"
#include "exporter/model/timeline/scan.h"
#include "exporter/model/timeline/with.h"
#include "exporter/output/timeline/emit.h"
#include "exporter/output/timeline/emit_parts.h"
#include "exporter/output/timeline/event.h"
#include "exporter/output/timeline/write.h"
#include "result.h"
#include "trace_print.h"

static const char *refuse_trace(void *into) {
  return ni_filters_refuse(&((struct ni_tr_options *)into)->filter);
}

#define IN(member) NI_INTO(struct ni_tr_options, member)
const struct ni_command ni_trace_command = {
    .name = "trace",
    .need = NI_NEED_AFTER,
    .purpose = "a timeline for Perfetto and chrome://tracing, all clocks aligned",
    .about =
        "A timeline of a job for Perfetto (https://ui.perfetto.dev) and chrome://tracing: a process for "
        "each rank, all clocks aligned.",
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_LOGS(struct ni_tr_options, 1),
            {"output", 'o', NI_OPT_TEXT, "FILE",
             "Where to write (default: NAME-trace.json.gz in the current folder); compressed when it ends in "
             ".gz; - is standard output",
             IN(output), .min = 1, .want = "a file name, or - for standard output"},
            NI_ROWS_FILTERS(struct ni_tr_options, "what runs", "of the job"),
            {"with", 0, NI_OPT_INPUTS, "[RANK=]FILE",
             "Draw this trace of torch.profiler (.json, .json.gz, or a folder of them) below its rank, its "
             "clock put right",
             IN(with)},
            {"no-flows", 0, NI_OPT_FLAG, NULL, "No arrows", IN(no_flows)},
            {"memory", 0, NI_OPT_SIZE, "SIZE",
             "Sort in about so much memory, put the rest into a temporary file beside the output",
             IN(memory_bytes), .def = "64M", .min = 1 << 20},
            NI_ROWS_INDEX(struct ni_tr_options),
            {"json", 0, NI_OPT_FLAG, NULL,
             "What was done as JSON (schema nccl-inspector-trace-1) instead of text", IN(json)},
            {"quiet", 'q', NI_OPT_FLAG, NULL, "Totals only", IN(quiet)},
            {0}},
    .exits = {{"0", "all there"},
              {"1", "could not run"},
              {"2", "the logs are incomplete or not all of them could be drawn"}},
    .examples = {{"logs/", "logs-trace.json.gz, to be opened in Perfetto"},
                 {"--with profiles/ logs/", "the same with the traces of torch.profiler, a file each rank"},
                 {"--rank 0-7 --since=-10s -o end.json.gz logs/",
                  "the last ten seconds of the first eight ranks"}},
    .refuse = refuse_trace,
    .run = ni_trace_run};

/* "logs/" -> "logs-trace.json.gz" */
static char *make_default_output(const char *input) {
  char *real = realpath(input, NULL), *out = NULL;
  const char *slash = real ? strrchr(real, '/') : NULL, *name = slash && slash[1] ? slash + 1 : "nccl";
  size_t n = strcspn(name, ".");
  if (asprintf(&out, "%.*s-trace.json.gz", n ? (int)n : (int)strlen(name), name) < 0)
    out = NULL;
  free(real);
  return out;
}

/* Folder of a file, for the temporary one beside it. */
static char *make_folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (strcmp(path, "-") == 0)
    return strdup(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  return slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
}

static void resolve_times(struct ni_tr *r) {
  bool any = r->first_ns != INT64_MAX;
  int64_t first = any ? r->first_ns / 1000 : 0, last = any ? r->last_ns / 1000 : 0;
  int64_t since = ni_when_resolve(&r->opt.filter.since, INT64_MIN, first, last),
          until = ni_when_resolve(&r->opt.filter.until, INT64_MAX, first, last);
  r->since_ns = since == INT64_MIN ? INT64_MIN : since * 1000;
  r->until_ns = until == INT64_MAX ? INT64_MAX : until * 1000;
}

int (*ni_trace_share)(struct ni_atlas *a, const struct ni_files *files);

/* Reads accounts and maps of all logs. Logs that no index knows are read, in all threads. */
static int read_accounts(struct ni_tr *r) {
  r->opt.index.maps = true;
  int e = ni_atlas_open(&r->atlas, "nccl-inspector trace", &r->files, &r->opt.index, false);
  if (e == 0 && ni_trace_share)
    e = ni_trace_share(r->atlas, &r->files);
  if (e == 0)
    e = ni_atlas_read_ledger(r->atlas, &r->ledger, &r->files, ni_scan_jobs(), &r->progress);
  return e < 0 ? e : ni_tr_choose_begin(r);
}

static int run_phases(struct ni_tr *r, struct ni_spill *store) {
  r->store = store;
  int e = ni_sort_new(&r->sort, store, r->opt.memory_bytes, ni_tr_by_time, NULL);
  if (e == 0)
    e = ni_names_init(&r->names);
  if (e == 0)
    e = ni_tr_with_find(r);
  if (e == 0 && ni_tr_is_choosing(&r->opt))
    e = read_accounts(r);
  if (e == 0)
    e = ni_tr_scan(r);
  if (e < 0)
    return ni_tr_fail(r, e, "%s", strerror(-e));
  if (r->count.operations == 0 && r->n_processes == 0)
    return ni_tr_fail(r, -ENODATA, "no inspector logs found: no line in %zu file%s is one of an inspector",
                      r->files.n, ni_plural(r->files.n, "", "s"));
  if ((e = ni_tags_resolve(&r->opt.filter.tag, &r->tags)) < 0)
    return ni_tr_fail(r, e, "%s", strerror(-e));
  resolve_times(r);
  if (r->since_ns > r->until_ns)
    return ni_tr_fail(r, -EINVAL, "%s", NI_WHEN_REVERSED);
  e = ni_tr_clocks(r);
  if (e == 0)
    e = ni_tr_with_scan(r);
  if (e == 0)
    e = ni_tr_emit(r);
  /* The lives of communicators alone are no answer to who asked for certain functions or tags. */
  if (e == 0)
    ni_filters_say_unmet(&r->opt.filter, "nccl-inspector trace");
  const bool is_filtered = r->opt.filter.coll.n || r->opt.filter.tag.n;
  bool none_of_them = is_filtered && r->count.shown == 0 && r->count.open == 0;
  if (e == 0 && (r->count.events == 0 || none_of_them))
    e = ni_tr_fail(r, -ENODATA, "nothing to draw: %llu %s read, %llu without a start time%s",
                   (unsigned long long)r->count.operations,
                   ni_plural(r->count.operations, "operation", "operations"),
                   (unsigned long long)r->count.no_start,
                   r->count.no_start ? ni_tr_start_advice(r) : ", the others left out by the options");
  return e == 0 ? ni_tr_write(r, ni_tr_other_data) : e;
}

static void free_run(struct ni_tr *r) {
  ni_sort_free(r->sort);
  ni_tr_tracks_free(r);
  ni_atlas_close(r->atlas, r->log != NULL, NULL);
  ni_tr_choose_free(r);
  ni_tr_replays_free(r);
  ni_tr_free(r);
  ni_files_free(&r->files);
  ni_runs_free(&r->runs);
  ni_inputs_free(&r->opt.inputs);
  ni_inputs_free(&r->opt.with);
  ni_filters_free(&r->opt.filter);
  free(r->out_path);
  ni_ledger_free(&r->ledger);
}

int ni_trace_run(int argc, char **argv) {
  struct ni_tr r = {.progress = NI_PROGRESS_INIT};
  struct ni_spill store;
  char *folder = NULL;
  int done, code = ni_words_parse(&ni_trace_command, argc, argv, &r.opt, &done), e;
  if (done)
    goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  r.out_path = r.opt.output ? strdup(r.opt.output) : make_default_output(r.opt.inputs.path[0]);
  r.replaces = !r.opt.output && r.out_path && access(r.out_path, F_OK) == 0;
  folder = r.out_path ? make_folder_of(r.out_path) : NULL;
  e = folder ? ni_inputs_find(&r.opt.inputs, argv[0], &r.files, &r.runs) : -ENOMEM;
  if (e == -ENOENT)
    goto out;
  if (e < 0)
    ni_tr_fail(&r, e, "%s", strerror(-e));
  else
    ni_inputs_unreadable(argv[0], &r.files);
  r.progress.mode = ni_inputs_progress(&r.opt.inputs, r.opt.quiet);
  ni_spill_init(&store, folder, 0);
  if (e == 0)
    e = run_phases(&r, &store);
  ni_spill_close(&store);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], r.error_text);
    goto out;
  }
  if (r.opt.json)
    ni_tr_print_json(&r);
  else
    ni_tr_print(&r);
  code = ni_tr_incomplete(&r) ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
out:
  free_run(&r);
  free(folder);
  return code;
}
