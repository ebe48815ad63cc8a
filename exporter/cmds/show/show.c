/*
 * nccl-inspector show: one operation, as all its ranks have it.
 *
 *   parts of the logs that can hold it (atlas.h) ─▶ rows, one a record ─▶ sorted by operation and rank
 *       ─▶ text or JSON
 *
 * Who came last is told by times on the GPU alone: all ranks end together, so the last one to come has the
 * shortest kernel. That needs no common clock; starts of several hosts are put on one
 * (exporter/model/clocks/hosts.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/cli/command.h"
#include "exporter/input/tags/tags.h"
#include "exporter/model/ledger/take.h"
#include "exporter/cmds/summarize.h"
#include "pattern.h"
#include "show.h"

enum { ROWS_MAX = 1 << 20 }; /* of all operations asked for */

/* What a part is: its rows, and its lines in the account, for the index. */
struct show_part {
  struct ni_show_rows rows;
  struct ni_ledger *ledger;
  const struct ni_atlas_wants *wants;
  const struct ni_tag_filter *tag;
  const struct ni_file *file;
};

static void copy_cut(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static int add_operation(struct show_part *x, const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  const struct ni_atlas_wants *w = x->wants;
  if (!ni_atlas_wants_context(w, x->file, &l->ident, &l->meta))
    return 0;
  if (w->coll->n && !ni_words_have_func(w->coll, o->func))
    return 0;
  if (!ni_ranks_have(w->sn, o->sn < INT64_MAX ? (int64_t)o->sn : INT64_MAX))
    return 0;
  if (x->tag->n && !ni_tags_have(x->tag, o->user_tag))
    return 0;
  if (x->rows.n >= ROWS_MAX)
    return -E2BIG;
  if (!ni_array_room(x->rows.item, x->rows.n, x->rows.cap))
    return -ENOMEM;
  struct ni_show_row *r = &x->rows.item[x->rows.n++];
  *r = (struct ni_show_row){.hash = l->ident.comm_hash,
                            .sn = o->sn,
                            .bytes = o->msg_bytes,
                            .exec_ns = ni_exec_ns(o),
                            .start_ns = ni_start_ns(l),
                            .pid = l->meta.pid,
                            .job_rank = ni_job_rank(&x->file->head, l->ident.rank, l->ident.n_ranks),
                            .run = x->file->run,
                            .rank = l->ident.rank,
                            .n_ranks = l->ident.n_ranks,
                            .peer = o->root,
                            .p2p = l->is_p2p,
                            .graph = o->graph,
                            .timing = (uint8_t)o->timing};
  copy_cut(r->func, sizeof r->func, o->func);
  copy_cut(r->comm, sizeof r->comm, l->ident.comm_name);
  copy_cut(r->host, sizeof r->host, l->meta.hostname);
  copy_cut(r->algo, sizeof r->algo, o->algo);
  copy_cut(r->proto, sizeof r->proto, o->proto);
  return 0;
}

static int read_record_line(void *arg, struct ni_line *l, uint64_t line_no) {
  struct show_part *x = arg;
  int e = x->ledger ? ni_ledger_take(x->ledger, l, line_no) : 0;
  return e == 0 && l->kind == NI_LINE_OP ? add_operation(x, l) : e;
}

static int count_fault(void *arg, const struct ni_fault *f) {
  struct show_part *x = arg;
  return x->ledger ? ni_ledger_fault(x->ledger, f) : 0;
}

static int read_show_part(void *arg, struct ni_scan *scan, struct ni_scan_to *to,
                          const struct ni_scan_part *p, void **result) {
  struct ni_show *s = arg;
  struct show_part *x = *result = calloc(1, sizeof *x);
  struct ni_scan_end end;
  if (!x)
    return -ENOMEM;
  x->wants = &s->wants;
  x->tag = &s->filter.tag;
  x->file = p->file;
  enum ni_atlas_mode mode = ni_atlas_mode(s->atlas, p);
  if (mode == NI_ATLAS_ACCOUNT) {
    x->ledger = ni_atlas_account(s->atlas, p);
    return 0;
  }
  if (mode != NI_ATLAS_GRANULES) {
    if (!(x->ledger = calloc(1, sizeof *x->ledger)))
      return -ENOMEM;
    ni_ledger_begin(x->ledger, p->file, p->part == 0);
    to->granules = ni_atlas_begin(s->atlas, p, x->ledger);
  }
  to->arg = x;
  to->take = read_record_line;
  to->fault = count_fault;
  int e = ni_scan_file(scan, p->file->path, &p->at, to, &end);
  if (x->ledger)
    ni_ledger_end(x->ledger, &end);
  return e;
}

static void drop_show_part(void *arg, void *part) {
  struct show_part *x = part;
  if (x->ledger)
    ni_ledgers_drop(NULL, x->ledger);
  free(x->rows.item);
  free(x);
}

static int merge_show_part(void *arg, const struct ni_scan_part *p, void *part) {
  struct ni_show *s = arg;
  struct show_part *x = part;
  int e = x->ledger ? ni_ledgers_merge(&s->ledgers, p->file_no, x->ledger) : 0;
  x->ledger = NULL;
  for (size_t i = 0; e == 0 && i < x->rows.n; i++) {
    if (s->rows.n >= ROWS_MAX)
      e = -E2BIG;
    else if (!ni_array_room(s->rows.item, s->rows.n, s->rows.cap))
      e = -ENOMEM;
    else
      s->rows.item[s->rows.n++] = x->rows.item[i];
  }
  drop_show_part(NULL, x);
  return e;
}

static int file_done(void *arg, size_t file_no) {
  return ni_ledgers_file_done(&((struct ni_show *)arg)->ledgers, file_no);
}

static int by_rank(const void *a, const void *b) {
  const struct ni_show_row *x = a, *y = b;
  int k = ni_show_by_operation(x, y);
  if (k == 0)
    k = NI_BY(x, y, rank, start_ns, pid, exec_ns);
  return k ? k : strcmp(x->host, y->host);
}

/* Names of tags can stand anywhere in the logs. */
static int resolve_tags(struct ni_show *s) {
  struct ni_scan_plan plan = {0};
  int e = ni_tags_unresolved(&s->filter.tag) ? ni_scan_plan(&plan, &s->files, true, ni_scan_jobs()) : 0;
  if (e == 0)
    e = ni_tags_resolve_by(&s->filter.tag, &plan, ni_scan_jobs(), NULL, NULL);
  ni_scan_plan_free(&plan);
  return e;
}

/* Corrects starts to the clock of the reference. */
static void correct_starts(struct ni_show *s) {
  for (size_t i = 0; i < s->rows.n; i++) {
    struct ni_show_row *r = &s->rows.item[i];
    const struct ni_host_clock *c = ni_clocks_of(&s->clocks, r->run, r->host);
    if (c && r->start_ns != NI_NO_START)
      r->start_ns = ni_clock_right(c, NULL, 0, r->start_ns);
  }
}

static int read_all_records(struct ni_show *s) {
  struct ni_ledger ledger = {0};
  struct ni_scan_plan plan = {0};
  const struct ni_filters *f = &s->filter;
  s->wants = (struct ni_atlas_wants){.since_us = INT64_MIN,
                                     .until_us = INT64_MAX,
                                     .comm = &f->comm,
                                     .host = &f->host,
                                     .coll = &f->coll,
                                     .rank = &f->rank,
                                     .job_rank = &f->job_rank,
                                     .sn = &f->sn,
                                     .size = &f->size,
                                     .records = true};
  int e = resolve_tags(s);
  if (e == 0)
    e = ni_atlas_open(&s->atlas, "nccl-inspector show", &s->files, &s->index, false);
  if (e == 0)
    e = ni_ledgers_init(&s->ledgers, &ledger, &s->files);
  s->ledgers.mapped = s->atlas ? ni_atlas_mapped : NULL;
  s->ledgers.arg = s->atlas;
  if (e == 0)
    e = ni_atlas_plan(s->atlas, &plan, &s->files, ni_scan_jobs(), &s->wants);
  if (e == 0)
    e = ni_scan_files(&(struct ni_scan_team){.plan = &plan,
                                             .jobs = ni_scan_jobs(),
                                             .progress = &s->progress,
                                             .arg = s,
                                             .part = read_show_part,
                                             .merge = merge_show_part,
                                             .file_done = file_done,
                                             .drop = drop_show_part});
  ni_atlas_close(s->atlas, e == 0, NULL);
  ni_scan_plan_free(&plan);
  ni_ledgers_free(&s->ledgers);
  if (e == 0)
    e = ni_clocks_of_ledger(&s->clocks, &ledger);
  ni_ledger_free(&ledger);
  correct_starts(s);
  if (e == 0 && s->rows.n > 1)
    qsort(s->rows.item, s->rows.n, sizeof *s->rows.item, by_rank);
  return e;
}

static const char *refuse_show(void *into) {
  const struct ni_show *s = into;
  if (s->pattern)
    return s->filter.sn.n ? "--pattern is of all operations of a step: leave out --sn" : NULL;
  if (s->all || s->step_by)
    return "--all and --step-by are of --pattern";
  if (!s->filter.comm.n)
    return "which operation? give --comm NAME --sn N; nccl-inspector check says which communicators there "
           "are";
  return !s->filter.sn.n ? "which operation of that communicator? give its number with --sn N" : NULL;
}

const struct ni_command ni_show_command = {
    .name = "show",
    .need = NI_NEED_AFTER,
    .purpose = "one operation on all ranks; or the step of the job as a program",
    .about =
        "One operation as all its ranks have it: sizes, starts, times, who came last, counters of that "
        "time. With --pattern the operations of a step, in their order, and which ranks have another step.",
    .refuse = refuse_show,
    .run = ni_show_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_LOGS(struct ni_show, 1),
            {"comm", 0, NI_OPT_NAMES, "ID|NAME,...", "Of these communicators, by hash (0x...) or name",
             NI_INTO(struct ni_show, filter.comm), .want = "names or hashes (0x...)"},
            {"sn", 0, NI_OPT_RANKS, "N,M-K,...", "The operations of these sequence numbers",
             NI_INTO(struct ni_show, filter.sn), .want = "numbers and ranges, such as 40-49,60"},
            {"coll", 0, NI_OPT_NAMES, "NAME,...", "Only these functions (AllReduce, Send, ...)",
             NI_INTO(struct ni_show, filter.coll), .want = "names, such as AllReduce,Send"},
            {"rank", 0, NI_OPT_RANKS, "N,M-K,...", "Only these ranks (within the communicator)",
             NI_INTO(struct ni_show, filter.rank)},
            {"job-rank", 0, NI_OPT_RANKS, "N,M-K,...", "Only these ranks of the job, as findings name them",
             NI_INTO(struct ni_show, filter.job_rank)},
            NI_ROW_TAG(struct ni_show),
            NI_ROWS_INDEX(struct ni_show),
            {"pattern", 0, NI_OPT_FLAG, NULL, "The step that the job repeats, as a program",
             NI_INTO(struct ni_show, pattern)},
            {"all", 0, NI_OPT_FLAG, NULL, "With --pattern: each program in full, also those of few ranks",
             NI_INTO(struct ni_show, all)},
            {"step-by", 0, NI_OPT_TEXT, "NAME",
             "With --pattern: operations of this communicator or function alone may end a step",
             NI_INTO(struct ni_show, step_by), .min = 1, .want = "a communicator or a function"},
            {"jobs", 'j', NI_OPT_NUMBER, "N",
             "With --pattern: threads, by default one for each CPU this process may use",
             NI_INTO(struct ni_show, jobs), .min = 1, .max = 1024},
            {"memory", 0, NI_OPT_SIZE, "SIZE",
             "With --pattern: keep about so much in memory, put the rest into a temporary file in $TMPDIR",
             NI_INTO(struct ni_show, memory), .def = "128M", .min = 16 << 20},
            NI_ROW_JSON(struct ni_show, "show"),
            {0}},
    .exits = {{"0", "shown"}, {"1", "could not run, or there is no such operation"}},
    .examples = {{"--comm dp0 --sn 4711 logs/", "that operation, rank by rank"},
                 {"--comm dp0 --coll AllReduce --sn 100-103 --json logs/", "for a program"},
                 {"--pattern logs/", "what a step of the job is"}}};

/* Shows the step of the job, by the machinery of `summary`, which takes over the inputs and the filters. */
static int show_pattern(struct ni_show *s, const char *name) {
  struct ni_run r;
  struct ni_summary sum = {0};
  struct ni_pattern p = {0};
  int e = ni_summarize_init(&r);
  r.opt.inputs = s->inputs;
  r.opt.filter = s->filter;
  s->inputs = (struct ni_inputs){0};
  s->filter = (struct ni_filters){0};
  if (s->jobs)
    r.opt.jobs = s->jobs;
  r.opt.memory_bytes = s->memory;
  r.opt.step_by = s->step_by;
  r.opt.no_parquet = r.opt.no_csv = true;
  r.opt.quiet = s->json;
  if (e == 0)
    e = ni_inputs_find(&r.opt.inputs, name, &r.files, &r.runs);
  const bool said = e == -ENOENT;
  if (e == 0)
    ni_inputs_unreadable(name, &r.files);
  if (e == 0)
    e = ni_summarize_pattern(&r, &sum, &p);
  if (e == 0)
    ni_filters_say_unmet(&r.opt.filter, name);
  const struct ni_show_pattern x = {&r, &sum, &p, s->all};
  if (e == 0 && p.n_counts == 0) {
    e = -ENODATA;
    ni_say(stderr, "%s: there is no operation in these logs%s\n", name,
           r.tally.filtered ? " that passes the options" : "");
  } else if (e == 0) {
    e = s->json ? ni_show_pattern_json(&x) : ni_show_pattern_text(&x);
  }
  if (e < 0 && !said && e != -ENODATA)
    ni_say(stderr, "%s: %s\n", name, *r.error_text ? r.error_text : strerror(-e));
  ni_pattern_free(&p);
  ni_summary_free(&sum);
  ni_summarize_free(&r);
  return e < 0 ? NI_EXIT_COULD_NOT_RUN : NI_EXIT_FINE;
}

int ni_show_run(int argc, char **argv) {
  struct ni_show s = {.progress = NI_PROGRESS_INIT};
  int done, code = ni_words_parse(&ni_show_command, argc, argv, &s, &done), e;
  if (done)
    goto out;
  if (s.pattern) {
    code = show_pattern(&s, argv[0]);
    goto out;
  }
  code = NI_EXIT_COULD_NOT_RUN;
  e = ni_inputs_find(&s.inputs, argv[0], &s.files, &s.runs);
  if (e == -ENOENT)
    goto out;
  ni_inputs_unreadable(argv[0], &s.files);
  s.progress.mode = ni_inputs_progress(&s.inputs, s.json);
  if (e == 0)
    e = read_all_records(&s);
  if (e == 0)
    ni_filters_say_unmet(&s.filter, argv[0]);
  if (e == 0)
    e = ni_show_say(&s);
  if (e == -E2BIG)
    ni_say(stderr,
           "%s: more than %d records: ask for fewer numbers with --sn, or for one function with --coll\n",
           argv[0], ROWS_MAX);
  else if (e < 0)
    ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
  else if (s.rows.n == 0)
    ni_say(stderr,
           "%s: there is no such operation in these logs; one that never finished is told by nccl-inspector "
           "hang\n",
           argv[0]);
  else
    code = NI_EXIT_FINE;
out:
  free(s.rows.item);
  ni_clocks_free(&s.clocks);
  ni_files_free(&s.files);
  ni_runs_free(&s.runs);
  ni_inputs_free(&s.inputs);
  ni_filters_free(&s.filter);
  return code;
}
