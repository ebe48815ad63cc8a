#include "said.h"

#include <string.h>

static void keep(char *to, size_t cap, const char *from) { snprintf(to, cap, "%s", from ? from : ""); }

static void add_part(struct ni_said *s, const struct ni_line *l, enum ni_said_kind kind, const char *which,
                     uint64_t from, uint64_t to) {
  *NI_ADD(s->parts, s->n_parts) = (struct ni_said_part){
      kind, (int)l->meta.pid, l->ident.rank, which && which[0] == 'p', l->ident.comm_hash, from, to};
}

static void take_call(struct ni_said *s, const struct ni_line *l) {
  struct ni_said_op *r = NI_ADD(s->calls, s->n_calls);
  *r = (struct ni_said_op){
      .pid = (int)l->meta.pid, .rank = l->ident.rank, .hash = l->ident.comm_hash, .r = l->op};
  keep(r->func, sizeof r->func, l->op.func);
  keep(r->dtype, sizeof r->dtype, l->op.datatype);
}

struct ni_said_events *ni_said_events_of(struct ni_said *s, int pid) {
  for (size_t i = 0; i < s->n_events; i++)
    if (s->events[i].pid == pid)
      return &s->events[i];
  struct ni_said_events *e = NI_ADD(s->events, s->n_events);
  e->pid = pid;
  return e;
}

static void take_events(struct ni_said *s, const struct ni_line *l) {
  if (l->kind == NI_LINE_DUMP_STATS && l->stats.final && l->stats.has_events) {
    struct ni_said_events *t = ni_said_events_of(s, (int)l->meta.pid);
    for (int k = 0; k < NI_EVENT_COUNT; k++) {
      t->started[k] += l->stats.events.kind[k].started;
      t->dropped[k] += l->stats.events.kind[k].dropped;
    }
  } else if (l->kind == NI_LINE_PROXY) {
    struct ni_said_events *t = ni_said_events_of(s, (int)l->meta.pid);
    bool op = strcmp(l->proxy.record_type, "proxy_op") == 0;
    t->step_lines += strcmp(l->proxy.record_type, "proxy_step") == 0 ? 1 : l->proxy.steps.n;
    if (op)
      t->bytes += l->proxy.trans_size_bytes;
    if (op)
      t->steps += l->proxy.n_steps_completed;
  }
}

static void take_stats(struct ni_said *said, const struct ni_line *l) {
  struct ni_said_stats *s = NI_ADD(said->stats, said->n_stats);
  s->pid = (int)l->meta.pid;
  s->rank = l->ident.rank;
  s->hash = l->ident.comm_hash;
  for (int k = 0; k < 2; k++) {
    const struct ni_kind_stats *a = &l->stats.kind[k];
    s->k[k].started = a->started;
    s->k[k].written = a->written;
    s->k[k].filtered = a->filtered_by.total;
    for (uint32_t i = 0; i < a->filtered_by.n; i++)
      if (strcmp(a->filtered_by.item[i].name, "sampled") == 0)
        s->sampled[k] = a->filtered_by.item[i].count;
    s->k[k].dropped = a->dropped_by.total;
    s->k[k].incomplete = a->incomplete;
    s->k[k].in_flight = a->in_flight;
    s->k[k].late = a->late;
  }
}

static void take_line(const struct ni_line *l, void *arg) {
  struct ni_said *s = arg;
  take_events(s, l);
  if (l->kind == NI_LINE_OP && l->op.src != NI_SRC_EVENT) {
    take_call(s, l);
  } else if (l->kind == NI_LINE_OP) {
    struct ni_said_op *r = NI_ADD(s->ops, s->n_ops);
    *r = (struct ni_said_op){.pid = (int)l->meta.pid,
                             .rank = l->ident.rank,
                             .n_ranks = l->ident.n_ranks,
                             .nnodes = l->ident.nnodes,
                             .hash = l->ident.comm_hash,
                             .r = l->op,
                             .named = l->ident.comm_name != NULL};
    keep(r->func, sizeof r->func, l->op.func);
    keep(r->dtype, sizeof r->dtype, l->op.datatype);
    keep(r->algo, sizeof r->algo, l->op.algo);
    keep(r->proto, sizeof r->proto, l->op.proto);
    keep(r->kernel, sizeof r->kernel, l->op.kernel);
    keep(r->name, sizeof r->name, l->ident.comm_name);
  } else if (l->kind == NI_LINE_GAP) {
    add_part(s, l, NI_SAID_GAP, l->gap.kind, l->gap.rec_sn_from, l->gap.rec_sn_to);
  } else if (l->kind == NI_LINE_LATE) {
    add_part(s, l, NI_SAID_LATE, l->late.kind, l->late.rec_sn, l->late.rec_sn);
  } else if (l->kind == NI_LINE_INCOMPLETE) {
    add_part(s, l, NI_SAID_INCOMPLETE, l->unfinished.kind, l->unfinished.rec_sn, l->unfinished.rec_sn);
  } else if (l->kind == NI_LINE_DUMP_STATS && l->stats.has_accounting && l->stats.final &&
             l->ident.comm_hash) {
    take_stats(s, l);
  }
}

void ni_said_load(struct ni_said *s, const char *logs, struct ni_log_totals *totals) {
  memset(s, 0, sizeof *s);
  (void)ni_logs_read(logs, take_line, s, totals);
}

void ni_said_free(struct ni_said *s) {
  free(s->ops);
  free(s->calls);
  free(s->stats);
  free(s->parts);
  free(s->events);
}

struct ni_said_stats *ni_said_stats_of(struct ni_said *s, int pid, uint64_t hash, int rank) {
  for (size_t i = 0; i < s->n_stats; i++)
    if (s->stats[i].hash == hash && s->stats[i].rank == rank && s->stats[i].pid == pid)
      return &s->stats[i];
  return NULL;
}

int ni_said_parts_of(const struct ni_said *s, const struct ni_true_op *o, enum ni_said_kind kind) {
  int n = 0;
  for (size_t i = 0; i < s->n_parts; i++) {
    const struct ni_said_part *p = &s->parts[i];
    n += p->kind == kind && p->pid == o->pid && p->hash == o->hash && p->rank == o->rank &&
        p->p2p == o->p2p && o->rec >= p->from && o->rec <= p->to;
  }
  return n;
}
