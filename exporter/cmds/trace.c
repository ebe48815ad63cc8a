/*
 * nccl-inspector trace: the command line, and the phases one after the other.
 */
#include "exporter/model/timeline/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cli/command.h"
#include "exporter/base/text/plural.h"
#include "exporter/output/timeline/event.h"

#define DEFAULT_MEMORY_BYTES (64ULL << 20)
#define MIN_MEMORY_BYTES (1ULL << 20)

enum { OPT_OUTPUT = 'o', OPT_MEMORY = NI_OPT_OWN, OPT_SINCE, OPT_UNTIL, OPT_COLL, OPT_COMM, OPT_HOST, OPT_RANK, OPT_NO_FLOWS };

int ni_tr_fail(struct ni_tr *r, int e, const char *text, ...) {
  va_list ap;
  if (!*r->error_text) {
    va_start(ap, text);
    vsnprintf(r->error_text, sizeof r->error_text, text, ap);
    va_end(ap);
  }
  return e;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct ni_tr_options *o = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&o->inputs, arg) < 0 ? ENOMEM : 0;
    case OPT_OUTPUT:
      if (!*arg) argp_error(state, "--output=: want a file name, or - for standard output");
      o->output = arg;
      return 0;
    case OPT_MEMORY:
      if (ni_parse_size(arg, &o->memory_bytes) < 0 || o->memory_bytes < MIN_MEMORY_BYTES)
        argp_error(state, "--memory=%s: want a size of 1M or more, such as 64M or 2G", arg);
      return 0;
    case OPT_SINCE:
    case OPT_UNTIL:
      if (ni_parse_when(arg, key == OPT_SINCE ? &o->since : &o->until) < 0)
        argp_error(state, "--%s=%s: want 2026-11-21T08:00:00Z, seconds since 1970, -10m (before the end) or +5m (after "
                   "the start)", key == OPT_SINCE ? "since" : "until", arg);
      return 0;
    case OPT_COLL: return ni_option_added(state, "coll", arg, ni_words_add(&o->coll, arg), "names, such as AllReduce,Send");
    case OPT_COMM: return ni_option_added(state, "comm", arg, ni_words_add(&o->comm, arg), "names or hashes (0x...)");
    case OPT_HOST: return ni_option_added(state, "host", arg, ni_words_add(&o->host, arg), "names of hosts");
    case OPT_RANK: return ni_option_added(state, "rank", arg, ni_ranks_add(&o->rank, arg), "ranks and ranges, such as 0-7,16");
    case OPT_NO_FLOWS: o->no_flows = true; return 0;
    case NI_OPT_JSON: o->json = true; return 0;
    case 'q': o->quiet = true; return 0;
    case ARGP_KEY_END:
      if (o->inputs.n == 0) argp_error(state, "which logs? give a directory, files or a pattern");
      return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp_option options[] = {
    {"input-dir", NI_OPT_INPUT_DIR, "DIR", 0, "Logs to read: a directory, a file or a pattern (also as plain argument)", 0},
    {"output", OPT_OUTPUT, "FILE", 0,
     "Where to write (default: NAME-trace.json.gz in the current folder); compressed when it ends in .gz; - is standard "
     "output", 0},
    {"since", OPT_SINCE, "TIME", 0,
     "Only what runs after then: 2026-11-21T08:00:00Z, seconds since 1970, -10m before the end, +5m after the start", 1},
    {"until", OPT_UNTIL, "TIME", 0, "Only what runs before then", 1},
    {"rank", OPT_RANK, "N,M-K,...", 0, "Only these ranks (of the job)", 1},
    {"host", OPT_HOST, "NAME,...", 0, "Only these hosts", 1},
    {"comm", OPT_COMM, "ID|NAME,...", 0, "Only these communicators, by hash (0x...) or name", 1},
    {"coll", OPT_COLL, "NAME,...", 0, "Only these functions (AllReduce, Send, ...)", 1},
    {"no-flows", OPT_NO_FLOWS, NULL, 0, "No arrows", 2},
    {"memory", OPT_MEMORY, "SIZE", 0,
     "Sort in about so much memory, put the rest into a temporary file beside the output (default 64M)", 2},
    {"json", NI_OPT_JSON, NULL, 0, "What was done as JSON (schema nccl-inspector-trace-1) instead of text", 3},
    {"quiet", 'q', NULL, 0, "Totals only", 3},
    {0}};

/* "logs/" -> "logs-trace.json.gz" */
static char *default_output(const char *input) {
  char *real = realpath(input, NULL), *out = NULL;
  const char *slash = real ? strrchr(real, '/') : NULL, *name = slash && slash[1] ? slash + 1 : "nccl";
  size_t n = strcspn(name, ".");
  if (asprintf(&out, "%.*s-trace.json.gz", n ? (int)n : (int)strlen(name), name) < 0) out = NULL;
  free(real);
  return out;
}

/* Folder of a file, for the temporary one beside it. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (strcmp(path, "-") == 0) return strdup(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  return slash ? strndup(path, (size_t)(slash - path) + (slash == path)) : strdup(".");
}

static void resolve_times(struct ni_tr *r) {
  bool any = r->first_ns != INT64_MAX;
  int64_t first = any ? r->first_ns / 1000 : 0, last = any ? r->last_ns / 1000 : 0;
  int64_t since = ni_when_resolve(&r->opt.since, INT64_MIN, first, last), until = ni_when_resolve(&r->opt.until, INT64_MAX, first, last);
  r->since_ns = since == INT64_MIN ? INT64_MIN : since * 1000;
  r->until_ns = until == INT64_MAX ? INT64_MAX : until * 1000;
}

static int run_phases(struct ni_tr *r, const char *folder) {
  int e = ni_sort_new(&r->sort, folder, r->opt.memory_bytes);
  if (e == 0) e = ni_names_init(&r->names);
  if (e == 0) e = ni_tr_plan(r);
  if (e == 0) e = ni_tr_scan(r);
  if (e < 0) return ni_tr_fail(r, e, "%s", strerror(-e));
  if (r->count.operations == 0 && r->n_processes == 0)
    return ni_tr_fail(r, -ENODATA, "no inspector logs found: no line in %zu file%s is one of an inspector", r->files.n,
                      ni_plural(r->files.n, "", "s"));
  resolve_times(r);
  e = ni_tr_align(r);
  if (e == 0) e = ni_tr_emit(r);
  /* The lives of communicators alone are no answer to who asked for certain functions. */
  bool none_of_them = r->opt.coll.n && r->count.shown == 0 && r->count.open == 0;
  if (e == 0 && (r->count.events == 0 || none_of_them))
    e = ni_tr_fail(r, -ENODATA, "nothing to draw: %llu %s read, %llu without a start time%s",
                   (unsigned long long)r->count.operations,
                   ni_plural(r->count.operations, "operation", "operations"), (unsigned long long)r->count.no_start,
                   r->count.no_start ? " (NVIDIA's inspector states it with NCCL_INSPECTOR_DUMP_VERBOSE=1)"
                                     : ", the others left out by the options");
  return e == 0 ? ni_tr_write(r) : e;
}

static void run_free(struct ni_tr *r) {
  ni_sort_free(r->sort);
  ni_tr_tracks_free(r);
  ni_match_free(&r->match);
  ni_tr_who_free(r);
  ni_names_free(&r->names);
  ni_files_free(&r->files);
  ni_inputs_free(&r->opt.inputs);
  ni_words_free(&r->opt.coll);
  ni_words_free(&r->opt.comm);
  ni_words_free(&r->opt.host);
  ni_ranks_free(&r->opt.rank);
  free(r->file);
  free(r->out_path);
  ni_ledger_free(&r->ledger);
}

int ni_trace_run(int argc, char **argv) {
  static const struct argp argp = {
      options, parse_option, "DIR|FILE|PATTERN...",
      "A timeline of a job for Perfetto (https://ui.perfetto.dev) and chrome://tracing: a process for each rank, all clocks "
      "aligned."
      "\vExit codes: 0 all there, 2 the logs are incomplete or not all of them could be drawn, 1 could not run, 64 wrong usage.",
      NULL, NULL, NULL};
  struct ni_tr r = {.progress = NI_PROGRESS_INIT, .opt = {.memory_bytes = DEFAULT_MEMORY_BYTES}};
  char *folder = NULL;
  int done, code = ni_options_parse(&argp, argc, argv, &r.opt, &done), e;
  if (done) goto out;
  code = NI_EXIT_COULD_NOT_RUN;
  r.out_path = r.opt.output ? strdup(r.opt.output) : default_output(r.opt.inputs.path[0]);
  folder = r.out_path ? folder_of(r.out_path) : NULL;
  e = folder ? ni_inputs_find(&r.opt.inputs, argv[0], &r.files) : -ENOMEM;
  if (e == -ENOENT) goto out;
  if (e < 0) ni_tr_fail(&r, e, "%s", strerror(-e));
  else ni_inputs_unreadable(argv[0], &r.files);
  if (r.opt.quiet) r.progress.mode = NI_PROGRESS_NONE;
  if (e == 0) e = run_phases(&r, folder);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", argv[0], r.error_text);
    goto out;
  }
  if (r.opt.json) ni_tr_print_json(&r);
  else ni_tr_print(&r);
  code = ni_tr_incomplete(&r) ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
out:
  run_free(&r);
  free(folder);
  return code;
}
