/*
 * What the logs state as lost, and what their numbers show as missing: by process, by rank of each communicator.
 *
 * A record that went with its file is told by its process alone, so the numbers that it leaves open are none of a
 * communicator's losses.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/expiry.h"
#include "losses.h"

static const char *const kind_words[NI_KIND_COUNT] = {"collectives", "P2P"};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* What a line says. 0 or -ENOMEM. */
static int told_by(struct ni_run *r, const struct ni_line *l, struct ni_told *t) {
  const struct ni_stats_line *s = &l->stats;
  int e = 0;
  *t = (struct ni_told){.ours = s->has_accounting, .stamp_us = l->meta.dump_timestamp_us};
  for (int k = 0; !s->has_accounting && k < NI_KIND_COUNT; k++) t->dropped[k] = s->dropped_total[k];
  if (!s->has_accounting) return 0;
  t->refused = s->refused_communicators;
  t->final = s->final;
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    const struct ni_kind_stats *n = &s->kind[k];
    t->started[k] = n->started;
    t->written[k] = n->written;
    t->filtered[k] = n->filtered_by.total;
    t->dropped[k] = n->dropped_by.total;
    t->incomplete[k] = n->incomplete;
    t->in_flight[k] = n->in_flight;
    for (uint32_t i = 0; i < n->filtered_by.n; i++)
      if (strcmp(n->filtered_by.item[i].name, "sampled") == 0) t->sampled[k] = n->filtered_by.item[i].count;
    t->n_causes[k] = n->dropped_by.n;
    for (uint32_t i = 0; e == 0 && i < n->dropped_by.n; i++) {
      if (strcmp(n->dropped_by.item[i].name, "expired") == 0) t->expired += n->dropped_by.item[i].count;
      e = ni_name(&r->names, NULL, n->dropped_by.item[i].name, &t->cause[k][i].name);
      t->cause[k][i].count = n->dropped_by.item[i].count;
    }
  }
  return e;
}

/* Totals only grow, so the newest line is the one with the latest time, whoever reads it first. Under the lock. */
static int keep_newest(struct ni_told **slot, const struct ni_told *t) {
  if (!*slot && !(*slot = calloc(1, sizeof **slot))) return -ENOMEM;
  struct ni_told *have = *slot;
  if (!t->ours)
    for (int k = 0; k < NI_KIND_COUNT; k++) have->dropped[k] = larger(have->dropped[k], t->dropped[k]);
  else if (!have->ours || t->final > have->final || (t->final == have->final && t->stamp_us >= have->stamp_us))
    *have = *t;
  return 0;
}

int ni_take_told(struct ni_run *r, uint32_t member, const struct ni_line *l) {
  struct ni_told t;
  int e = told_by(r, l, &t);
  pthread_mutex_lock(&r->lock);
  struct ni_sum_member *m = &r->member[member];
  if (e == 0) e = keep_newest(&m->told, &t);
  r->comm[m->comm].p2p_sampled |= t.sampled[NI_KIND_P2P] != 0;
  pthread_mutex_unlock(&r->lock);
  return e;
}

int ni_take_process_told(struct ni_run *r, uint32_t process, const struct ni_line *l) {
  struct ni_told t;
  int e = told_by(r, l, &t);
  pthread_mutex_lock(&r->lock);
  if (e == 0) e = keep_newest(&r->process[process].told, &t);
  pthread_mutex_unlock(&r->lock);
  return e;
}

int ni_count_add(struct ni_counts *c, const char *name, uint64_t count) {
  for (size_t i = 0; i < c->n; i++)
    if (strcmp(c->item[i].name, name) == 0) {
      c->item[i].count += count;
      return 0;
    }
  if (!ni_array_room(c->item, c->n, c->cap)) return -ENOMEM;
  c->item[c->n] = (struct ni_count){strdup(name), count};
  return c->item[c->n++].name ? 0 : -ENOMEM;
}

static int by_from(const void *a, const void *b) {
  const struct ni_span *x = a, *y = b;
  return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

struct numbers {
  uint64_t distinct, doubles, missing; /* missing: below the highest, from where counting starts */
  uint64_t untold;                     /* of those missing: at or above `counted` of join_spans */
  uint64_t lowest, highest, hole_from, hole_to;
};

/* All spans of one kind of a member, from all files, as one set. counted: what is missing from here on is untold. */
static int join_spans(const struct ni_sum_member *m, const struct ni_seq *first, uint64_t counted, struct numbers *out) {
  struct ni_span *all = NULL;
  size_t n = 0, at = 0;
  for (const struct ni_seq *q = m->seqs; q; q = q->next)
    if (q->kind == first->kind && q->func == first->func) n += q->n;
  *out = (struct numbers){0};
  if (n == 0) return 0;
  all = malloc(n * sizeof *all);
  if (!all) return -ENOMEM;
  for (const struct ni_seq *q = m->seqs; q; q = q->next)
    if (q->kind == first->kind && q->func == first->func) {
      if (q->n) memcpy(all + at, q->span, q->n * sizeof *all);
      at += q->n;
    }
  qsort(all, n, sizeof *all, by_from);
  /* Counting starts at 0 or 1, by version. */
  uint64_t next = all[0].from <= 1 ? all[0].from : 0;
  out->lowest = all[0].from;
  for (size_t i = 0; i < n; i++) {
    uint64_t len = all[i].to - all[i].from + 1, seen = all[i].from < next ? next - all[i].from : 0;
    if (all[i].from > next) {
      if (!out->missing) {
        out->hole_from = next;
        out->hole_to = all[i].from - 1;
      }
      out->missing += all[i].from - next;
      if (all[i].from > counted) out->untold += all[i].from - (next > counted ? next : counted);
    }
    if (seen > len) seen = len;
    out->doubles += seen;
    out->distinct += len - seen;
    if (all[i].to + 1 > next) next = all[i].to + 1;
  }
  out->highest = next - 1;
  free(all);
  return 0;
}

static bool earlier_kind(const struct ni_sum_member *m, const struct ni_seq *q) {
  for (const struct ni_seq *p = m->seqs; p != q; p = p->next)
    if (p->kind == q->kind && p->func == q->func) return true;
  return false;
}

/* An order that does not depend on who was read first; of members, too. */
static int compare_processes(const struct ni_run *r, const struct ni_sum_process *p, const struct ni_sum_process *q) {
  int k = strcmp(ni_name_text(&r->names, p->host), ni_name_text(&r->names, q->host));
  if (k) return k;
  if (p->pid != q->pid) return p->pid < q->pid ? -1 : 1;
  if (p->start_ns != q->start_ns) return p->start_ns < q->start_ns ? -1 : 1;
  return p->file < q->file ? -1 : p->file > q->file;
}

static int by_process(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  return compare_processes(r, &r->process[*(const uint32_t *)a], &r->process[*(const uint32_t *)b]);
}

static int by_member(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_sum_member *x = &r->member[*(const uint32_t *)a], *y = &r->member[*(const uint32_t *)b];
  const struct ni_sum_comm *c = &r->comm[x->comm], *d = &r->comm[y->comm];
  if (c->hash != d->hash) return c->hash < d->hash ? -1 : 1;
  if (c->n_ranks != d->n_ranks) return c->n_ranks < d->n_ranks ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  int k = compare_processes(r, &r->process[x->process], &r->process[y->process]);
  return k ? k : x->nnodes - y->nnodes;
}

static void place(const struct ni_run *r, const struct ni_sum_member *m, const char *more, char *out, size_t size) {
  const struct ni_sum_process *p = &r->process[m->process];
  if (*out) return;
  snprintf(out, size, "communicator 0x%" PRIx64 " rank %d (%.80s pid %lld)%s", r->comm[m->comm].hash, m->rank,
           ni_name_text(&r->names, p->host), (long long)p->pid, more);
}

static void place_process(const struct ni_run *r, const struct ni_sum_process *p, const char *more, const char *why, char *out,
                          size_t size) {
  if (*out) return;
  snprintf(out, size, "%.80s pid %lld%s%s", ni_name_text(&r->names, p->host), (long long)p->pid, more, why);
}

static int count_causes(const struct ni_run *r, const struct ni_told *t, int k, struct ni_counts *causes) {
  uint64_t named = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < t->n_causes[k]; i++) {
    named += t->cause[k][i].count;
    if (t->cause[k][i].count) e = ni_count_add(causes, ni_name_text(&r->names, t->cause[k][i].name), t->cause[k][i].count);
  }
  if (e == 0 && t->dropped[k] > named)
    e = ni_count_add(causes, t->ours ? "other" : "nvidia_ring_overwritten", t->dropped[k] - named);
  return e;
}

/* Records that went with whole files, of whichever communicator they were; communicators that there was no memory for. */
static int judge_process(const struct ni_run *r, struct ni_sum_process *p, struct ni_losses *loss, struct ni_counts *causes) {
  const struct ni_told *t = p->told;
  const char *host = ni_name_text(&r->names, p->host);
  int e = ni_unended_add(&loss->unended, p->has_line, t && t->final, host, r->file[p->file].file->path);
  if (!t) return e;
  for (int k = 0; e == 0 && k < NI_KIND_COUNT; k++) {
    p->gone += t->dropped[k];
    e = count_causes(r, t, k, causes);
  }
  uint64_t expired = t->expired < p->gone ? t->expired : p->gone;
  loss->expired += expired;
  loss->dropped += p->gone - expired;
  if (expired)
    place_process(r, p, ", removed by ", ni_expiry_text(p->limits), loss->expired_at, sizeof loss->expired_at);
  if (p->gone > expired)
    place_process(r, p, ": in files that somebody deleted", "", loss->dropped_at, sizeof loss->dropped_at);
  if (e == 0 && t->refused) {
    e = ni_count_add(causes, "refused_communicators", t->refused);
    loss->refused += t->refused;
    place_process(r, p, "", "", loss->refused_at, sizeof loss->refused_at);
  }
  return e;
}

static int judge_stated(const struct ni_run *r, const struct ni_sum_member *m, struct ni_losses *loss,
                        struct ni_counts *causes) {
  const struct ni_told *t = m->told;
  int e = 0;
  for (int k = 0; t && k < NI_KIND_COUNT && e == 0; k++) {
    uint64_t unfinished = t->incomplete[k] + (t->final ? t->in_flight[k] : 0);
    e = count_causes(r, t, k, causes);
    if (e == 0 && t->incomplete[k]) e = ni_count_add(causes, "incomplete", t->incomplete[k]);
    if (e == 0 && t->final && t->in_flight[k]) e = ni_count_add(causes, "in_flight", t->in_flight[k]);
    loss->dropped += t->dropped[k];
    loss->unfinished += unfinished;
    if (t->dropped[k]) place(r, m, "", loss->dropped_at, sizeof loss->dropped_at);
    if (unfinished) place(r, m, "", loss->unfinished_at, sizeof loss->unfinished_at);
  }
  /* What a communicator that is over said last may have gone with a file. */
  const struct ni_sum_process *p = &r->process[m->process];
  bool gone = p->told && (p->told->dropped[0] || p->told->dropped[1]);
  if ((t ? t->ours && !t->final : p->has_line) && !gone) {
    loss->no_final++;
    place(r, m, "", loss->no_final_at, sizeof loss->no_final_at);
  }
  return e;
}

/* q: one of the numbers' sequences; n: what it comes to; explained: numbers whose absence has a cause. */
static void add_gap(const struct ni_run *r, const struct ni_sum_member *m, int kind, const char *func, const struct numbers *n,
                    uint64_t missing, uint64_t explained, struct ni_losses *loss) {
  const struct ni_sum_process *p = &r->process[m->process];
  bool may = p->limits && !(p->told && p->told->final); /* how many expired is on the process's last line only */
  char more[256];
  if (missing <= explained) return;
  loss->gaps += missing - explained;
  if (n->missing)
    snprintf(more, sizeof more, ", first hole: %.60s %" PRIu64 " to %" PRIu64 "%s%s", func ? func : kind_words[kind],
             n->hole_from, n->hole_to, may ? ", may have expired by " : "", may ? ni_expiry_text(p->limits) : "");
  else if (n->distinct)
    snprintf(more, sizeof more, ": %s after rec_sn %" PRIu64, kind_words[kind], n->highest);
  else
    snprintf(more, sizeof more, ": no %s there", kind_words[kind]);
  place(r, m, more, loss->gap_at, sizeof loss->gap_at);
}

static void add_untold(const struct ni_run *r, const struct ni_sum_member *m, int kind, const struct numbers *n, uint64_t from,
                       struct ni_losses *loss) {
  char more[160];
  snprintf(more, sizeof more, ": %s from rec_sn %" PRIu64 " on, of which NCCL_INSPECTOR_SAMPLE writes 1 in %" PRIu64,
           kind_words[kind], from, r->process[m->process].sample);
  loss->untold += n->untold;
  place(r, m, more, loss->untold_at, sizeof loss->untold_at);
}

/* Ours: rec_sn counts what was started. */
static int judge_ours(struct ni_run *r, const struct ni_sum_member *m, int k, struct ni_losses *loss) {
  const struct ni_told *t = m->told;
  struct ni_sum_process *p = &r->process[m->process];
  const struct ni_seq *q = m->seqs;
  struct numbers n = {0};
  while (q && (q->func != 0 || q->kind != k)) q = q->next;
  /* Behind the last accounting of a rank that samples and has no final line nobody has counted what was left out. */
  uint64_t counted = p->sample && !(t && t->final) ? (t && t->ours ? t->started[k] : 0) : UINT64_MAX;
  int e = q ? join_spans(m, q, counted, &n) : 0;
  if (e < 0) return e;
  if (n.untold) add_untold(r, m, k, &n, counted, loss);
  uint64_t missing = n.missing - n.untold, explained = 0, end = n.distinct ? n.highest + 1 : 0;
  if (t && t->ours) {
    uint64_t gone = t->final && t->written[k] > n.distinct ? t->written[k] - n.distinct : 0;
    if (gone > p->gone) gone = p->gone;
    p->gone -= gone;
    explained = t->filtered[k] + t->dropped[k] + t->incomplete[k] + t->in_flight[k] + gone;
    if (t->final && t->started[k] > end) missing += t->started[k] - end;
  }
  add_gap(r, m, k, NULL, &n, missing, explained, loss);
  /* What a killed process had counted since its last roll-ups is in its records and in what recover says of it. Numbers of
   * records are followed whatever is chosen, roll-ups are not. */
  bool chosen = r->opt.coll.n || r->opt.comm.n || r->opt.host.n || r->opt.rank.n;
  uint64_t all = m->rolled[k];
  if (!chosen) all = larger(all, t && t->ours ? larger(n.distinct, t->written[k] + t->sampled[k]) : n.distinct);
  loss->rolled += m->rolled[k];
  if (all > n.distinct) loss->no_record += all - n.distinct;
  loss->unrolled += all - m->rolled[k];
  return 0;
}

static int judge_member(struct ni_run *r, const struct ni_sum_member *m, struct ni_losses *loss, struct ni_counts *causes) {
  int e = judge_stated(r, m, loss, causes);
  for (int k = 0; e == 0 && k < NI_KIND_COUNT; k++) e = judge_ours(r, m, k, loss);
  for (const struct ni_seq *q = m->seqs; q && e == 0; q = q->next) {
    struct numbers n;
    if (q->func == 0 || earlier_kind(m, q)) continue;
    if ((e = join_spans(m, q, UINT64_MAX, &n)) == 0 && n.distinct)
      add_gap(r, m, q->kind, ni_name_text(&r->names, q->func), &n, n.missing, m->told ? m->told->dropped[q->kind] : 0,
              loss);
  }
  return e;
}

int ni_judge_losses(struct ni_run *r, struct ni_losses *out, struct ni_counts *causes) {
  uint32_t *process = ni_order(r->n_processes, by_process, r), *member = ni_order(r->n_members, by_member, r);
  int e = process && member ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < r->n_processes; i++) e = judge_process(r, &r->process[process[i]], out, causes);
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++) e = judge_member(r, &r->member[member[i]], out, causes);
  free(process);
  free(member);
  return e;
}
