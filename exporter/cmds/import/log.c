#include "log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/cmds/recover/place.h"
#include "format/line_write.h"
#include "format/timing.h"

struct writing {
  struct ni_import_log *l;
  FILE *f;
  uint64_t ts_us;
  struct ni_line_prefix process, *comm; /* comm: of each; without text where it has no operation */
  struct counts {
    uint64_t n[NI_KIND_COUNT], next[NI_IMPORTED_FUNCS];
    bool known[NI_IMPORTED_FUNCS];
  } *count;
  /* of its messages, by communicator and peer; those of communicators stand among them */
  const struct ni_align_seat *pairs;
  size_t n_pairs;
  uint64_t *sent; /* of each so many are written */
  uint64_t apart; /* messages that are in none of them */
  char line[NI_LINE_MAX_BYTES];
};

static void write_line(struct writing *w, size_t n) { fwrite(w->line, 1, n, w->f); }
#define PUT(name, prefix, in) write_line(w, ni_format_##name(w->line, sizeof w->line, prefix, w->ts_us, in))

static int open_prefixes(struct writing *w) {
  const struct ni_import_log *l = w->l;
  const struct ni_imported *m = l->m;
  const struct ni_meta meta = {.git_rev = NI_GIT_REV,
                               .rec_mechanism = l->mechanism,
                               .hostname = l->host,
                               .pid = m->pid < 0 ? 0 : m->pid,
                               .producer = NI_PRODUCER " " NI_VERSION};
  const struct ni_ident whole = {.rank = m->rank, .n_ranks = m->world > 0 ? m->world : 0};
  int e = ni_line_prefix_init(&w->process, &whole, &meta);
  for (size_t i = 0; i < m->n; i++)
    w->count[m->op[i].comm].n[m->op[i].kind]++;
  for (size_t i = 0; e == 0 && i < m->n_comms; i++) {
    const struct ni_imported_comm *c = &m->comm[i];
    const struct ni_ident id = {
        .comm_hash = c->hash, .comm_name = *c->name ? c->name : NULL, .rank = c->rank, .n_ranks = c->n_ranks};
    if (w->count[i].n[NI_KIND_COLL] + w->count[i].n[NI_KIND_P2P])
      e = ni_line_prefix_init(&w->comm[i], &id, &meta);
  }
  return e;
}

static void write_note(struct writing *w, const char *text) {
  const struct ni_note_line note = {.text = text};
  PUT(note, &w->process, &note);
}

static void write_process(struct writing *w) {
  const struct ni_imported *m = w->l->m;
  char text[4096];
  const struct ni_process_line process = {.start_ns = (uint64_t)m->first_ns,
                                          .rank = m->rank,
                                          .local_rank = -1,
                                          .world_size = m->world,
                                          .nccl_version = m->nccl_version};
  PUT(process, &w->process, &process);
  snprintf(text, sizeof text, "imported from %s, %s: what that does not say is absent here", w->l->source,
           m->path);
  write_note(w, text);
  if (m->undated)
    write_note(w, "the source has no date: its times count from 2020-01-01, 00:00 UTC");
  if (m->rank_of_comm)
    write_note(w, "the process's rank is that in the communicator of all processes that were imported");
  uint64_t untimed = 0;
  for (size_t i = 0; i < m->n_comms; i++)
    untimed += m->comm[i].untimed;
  snprintf(text, sizeof text, "%" PRIu64 " operations and steps of the proxy were not timed", untimed);
  if (untimed)
    write_note(w, text);
}

static void write_comm(struct writing *w, const struct ni_imported_comm *c,
                       const struct ni_line_prefix *prefix) {
  const struct ni_comm_line comm = {.name = *c->name ? c->name : NULL,
                                    .hash = c->hash,
                                    .rank = c->rank,
                                    .n_ranks = c->n_ranks,
                                    .gpu_index = c->gpu};
  PUT(comm, prefix, &comm);
}

/* As somebody would have set them with `ctl mark`. */
static void write_step(struct writing *w, const struct ni_imported_step *s) {
  char name[32];
  snprintf(name, sizeof name, "ProfilerStep#%" PRIu32, s->number);
  const struct ni_control_line mark = {.source = w->l->mechanism,
                                       .command = "mark",
                                       .mark = name,
                                       .result = "done",
                                       .sample = 1,
                                       .ns = (uint64_t)s->ns};
  PUT(control, &w->process, &mark);
}

/*
 * Sets start and launch. A start without a known launch is that of a channel, as in verbose logs: there is no
 * enqueue to count from.
 */
static void set_begin(const struct ni_imported_op *op, struct ni_record *r, struct ni_trace *trace) {
  if (op->enqueue_ns != NI_IMPORTED_NEVER && op->enqueue_ns > 0) {
    r->has |= NI_HAS_ENQUEUE | NI_HAS_GPU_DELTA;
    r->enqueue_ns = (uint64_t)op->enqueue_ns;
    r->gpu_start_delta_ns = op->start_ns - op->enqueue_ns;
    return;
  }
  if (op->start_ns == NI_IMPORTED_NEVER)
    return;
  trace->has_ts = true;
  trace->n = 1;
  trace->event[0] = (struct ni_trace_event){.start_us = (uint64_t)op->start_ns / 1000,
                                            .stop_us = ((uint64_t)op->start_ns + op->dur_ns) / 1000};
  r->trace = trace;
}

/* The seats of a file stand in one row. */
static int open_pairs(struct writing *w) {
  const struct ni_align *a = w->l->align;
  size_t from, to;
  ni_array_search(from, a->n, a->seat[from].file < w->l->file);
  ni_array_search(to, a->n, a->seat[to].file <= w->l->file);
  w->pairs = a->n ? a->seat + from : NULL;
  w->n_pairs = to - from;
  w->sent = calloc(w->n_pairs + 1, sizeof *w->sent);
  return w->sent ? 0 : -ENOMEM;
}

/* false: it is no message with two sides, or the source numbers operations itself. */
static bool find_pair_number(struct writing *w, const struct ni_imported_op *op, uint64_t *pair_sn) {
  bool received;
  if (w->l->m->numbered || !ni_align_is_message(w->l->m, op, &received))
    return false;
  const struct ni_align_seat *s =
      ni_align_of(w->l->align, w->l->file, op->comm, ni_align_messages(op->root, received));
  if (!s)
    *pair_sn = ni_align_apart(received) + w->apart++;
  else
    *pair_sn = ni_align_before(s, ni_align_func(NI_ALIGN_MESSAGE)) + w->sent[s - w->pairs]++;
  return true;
}

static void write_op(struct writing *w, const struct ni_imported_op *op, uint64_t sn, uint64_t rec_sn) {
  const struct ni_imported *m = w->l->m;
  struct ni_trace trace;
  struct ni_record r = {.kind = (enum ni_kind)op->kind,
                        .has = NI_HAS_REC_SN,
                        .func = m->funcs[op->func],
                        .datatype = ni_imported_datatype(op->datatype),
                        .sn = sn,
                        .rec_sn = rec_sn,
                        .root = op->root,
                        .msg_bytes = op->bytes,
                        .nchannels = op->blocks,
                        .nchannels_observed = op->blocks > 0,
                        .graph = op->graph};
  memset(&trace, 0, offsetof(struct ni_trace, event));
  if (op->blocks)
    r.has |= NI_HAS_NCHANNELS;
  if (op->root >= 0)
    r.has |= NI_HAS_ROOT;
  if (find_pair_number(w, op, &r.pair_sn))
    r.has |= NI_HAS_PAIR_SN;
  if (op->algo)
    r.algo = m->funcs[op->algo - 1];
  if (op->proto)
    r.proto = m->funcs[op->proto - 1];
  const bool by_gpu = op->timing == NI_TIMING_KERNEL_GPU,
             of_kernel = by_gpu || op->timing == NI_TIMING_KERNEL_CPU;
  const struct ni_timing_in in = {.gpu_ok = by_gpu,
                                  .has_kernel = of_kernel,
                                  .gpu_ns = op->dur_ns,
                                  .kernel_cpu_ns = op->dur_ns,
                                  .bracket_ns = op->dur_ns};
  ni_timing_fill(&r, ni_func_from_name(r.func), m->comm[op->comm].n_ranks, &in);
  if (!op->sized)
    r.has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_TESTS_SIZE);
  set_begin(op, &r, &trace);
  write_line(w, ni_format_op(w->line, sizeof w->line, &w->comm[op->comm], w->ts_us, &r));
}

/*
 * The next number. Collectives are counted by function, from where the other ranks of the communicator are.
 */
static uint64_t next_number(struct writing *w, const struct ni_imported_op *op, uint64_t rec_sn) {
  if (w->l->m->numbered && op->seq != NI_NO_SN)
    return op->seq;
  const struct ni_align_seat *s =
      op->kind == NI_KIND_COLL ? ni_align_of(w->l->align, w->l->file, op->comm, 0) : NULL;
  if (!s)
    return rec_sn;
  if (s->sparse)
    return op->seq - s->ahead;
  struct counts *c = &w->count[op->comm];
  if (!c->known[op->func]) {
    c->known[op->func] = true;
    c->next[op->func] = ni_align_before(s, ni_align_func(w->l->m->funcs[op->func]));
  }
  return c->next[op->func]++;
}

static void write_ops(struct writing *w) {
  const struct ni_imported *m = w->l->m;
  memset(w->count, 0, m->n_comms * sizeof *w->count);
  NI_EACH(const struct ni_imported_op, op, m->op, m->n) {
    const uint64_t rec_sn = w->count[op->comm].n[op->kind]++;
    write_op(w, op, next_number(w, op, rec_sn), rec_sn);
  }
}

/* Writes what was begun and has no record. The numbers are ours: those of lost operations come last. */
static void write_losses(struct writing *w, size_t comm, uint64_t n) {
  const struct ni_imported_comm *c = &w->l->m->comm[comm];
  const struct ni_gap_line gap = {.kind = ni_kind_names[NI_KIND_COLL],
                                  .cause = ni_drop_names[NI_DROP_POOL_FULL],
                                  .count = c->dropped,
                                  .rec_sn_from = n,
                                  .rec_sn_to = n + c->dropped - 1};
  if (c->dropped)
    PUT(gap, &w->comm[comm], &gap);
}

static void write_end(struct writing *w, size_t comm) {
  const struct ni_imported_comm *c = &w->l->m->comm[comm];
  struct ni_stats_line s = {.final = true, .has_accounting = true};
  for (int kind = 0; kind < NI_KIND_COUNT; kind++)
    s.records[kind] = s.kind[kind].started = s.kind[kind].written = w->count[comm].n[kind];
  struct ni_kind_stats *k = &s.kind[NI_KIND_COLL];
  if (c->dropped)
    k->dropped_by = (struct ni_by){
        .total = c->dropped, .n = 1, .item[0] = {ni_drop_names[NI_DROP_POOL_FULL], c->dropped}};
  s.dropped_total[NI_KIND_COLL] = s.dropped_since[NI_KIND_COLL] = c->dropped;
  k->started += c->dropped + c->leaked;
  k->in_flight = c->leaked; /* begun, and not told to have ended: as many of ours at the end */
  PUT(dump_stats, &w->comm[comm], &s);
}

/* Writes the ends. A recording without an end leaves a log without one, and so check knows of it. */
static void write_ends(struct writing *w) {
  const struct ni_imported *m = w->l->m;
  const struct ni_stats_line process = {.final = true, .has_accounting = true};
  bool died = false;
  for (size_t i = 0; i < m->n_comms; i++) {
    died = died || m->comm[i].died;
    if (!w->comm[i].text)
      continue;
    write_losses(w, i, w->count[i].n[NI_KIND_COLL]);
    if (!m->comm[i].died)
      write_end(w, i);
  }
  if (!died)
    PUT(dump_stats, &w->process, &process);
}

/*
 * <host>-pid<pid>-<start>.jsonl.gz, as the plugin's; of several of that name (containers count pids by
 * themselves) with -2, -3, ...
 */
static int name_log(struct ni_import_log *l, struct ni_out_file *out) {
  char host[256], nth[16] = "";
  const int64_t start = l->m->first_ns / 1000000000;
  int e = -EEXIST;
  snprintf(host, sizeof host, "%s", l->host);
  for (char *p = host; *p; p++)
    if (*p == '/' || (p == host && *p == '.'))
      *p = '_';
  if (l->before)
    snprintf(nth, sizeof nth, "-%zu", l->before + 1);
  snprintf(l->name, sizeof l->name, "%s-pid%" PRId64 "-%" PRId64 "%s.jsonl.gz", host,
           l->m->pid < 0 ? 0 : l->m->pid, start, nth);
  e = ni_out_commit(out, l->name, false);
  if (e == -EEXIST) {
    snprintf(l->why, sizeof l->why,
             "%s is there already; give a new folder, or remove what an earlier import left there", l->name);
    ni_out_drop(out);
  }
  return e;
}

static int write_all(struct writing *w, struct ni_out_file *out) {
  const struct ni_imported *m = w->l->m;
  w->comm = calloc(m->n_comms + 1, sizeof *w->comm);
  w->count = calloc(m->n_comms + 1, sizeof *w->count);
  int e = w->comm && w->count ? open_prefixes(w) : -ENOMEM;
  if (e == 0)
    e = open_pairs(w);
  if (e == 0 && !(w->f = ni_recover_lines(out->fd)))
    e = -ENOMEM;
  if (e == 0) {
    write_process(w);
    for (size_t i = 0; i < m->n_comms; i++)
      if (w->comm[i].text)
        write_comm(w, &m->comm[i], &w->comm[i]);
    NI_EACH(const struct ni_imported_step, s, m->step, m->n_steps) write_step(w, s);
    write_ops(w);
    write_ends(w);
    e = ni_out_end(w->f);
  }
  for (size_t i = 0; w->comm && i < m->n_comms; i++)
    ni_line_prefix_free(&w->comm[i]);
  ni_line_prefix_free(&w->process);
  free(w->comm);
  free(w->count);
  free(w->sent);
  return e;
}

int ni_import_log(struct ni_import_log *l, int dir) {
  struct ni_out_file out;
  struct writing *w = calloc(1, sizeof *w);
  l->why[0] = 0;
  int e = w ? ni_out_begin(&out, dir, 0666) : -ENOMEM;
  if (e == 0) {
    w->l = l;
    w->ts_us = (uint64_t)l->m->last_ns / 1000;
    e = write_all(w, &out);
    if (e < 0)
      ni_out_drop(&out);
    else
      e = name_log(l, &out);
  }
  free(w);
  if (e < 0 && !*l->why)
    snprintf(l->why, sizeof l->why, "%s", strerror(-e));
  return e;
}
