/*
 * Is everything there? What the logs state as lost, what their numbers show as missing, and what could not be read, as
 * counts and as sentences that name the place.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "state.h"

static const char *const kind_words[NI_KIND_COUNT] = {"collectives", "P2P"};

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Totals only grow, so the newest line is the one with the latest time, whoever reads it first. */
int ni_take_told(struct ni_run *r, uint32_t member, const struct ni_line *l) {
  const struct ni_stats_line *s = &l->stats;
  int e = 0;
  uint32_t code[NI_KIND_COUNT][NI_BY_MAX] = {{0}};
  for (int k = 0; k < NI_KIND_COUNT; k++)
    for (uint32_t i = 0; e == 0 && s->has_accounting && i < s->kind[k].dropped_by.n; i++)
      e = ni_name(&r->names, NULL, s->kind[k].dropped_by.item[i].name, &code[k][i]);
  if (e < 0) return e;
  pthread_mutex_lock(&r->lock);
  struct ni_sum_member *m = &r->member[member];
  if (!m->told) m->told = calloc(1, sizeof *m->told);
  struct ni_told *t = m->told;
  if (!t) e = -ENOMEM;
  else if (!s->has_accounting) {
    for (int k = 0; k < NI_KIND_COUNT; k++) t->dropped[k] = larger(t->dropped[k], s->dropped_total[k]);
  } else if (!t->ours || s->final > t->final ||
             (s->final == t->final && l->meta.dump_timestamp_us >= t->stamp_us)) {
    t->ours = true;
    t->refused = s->refused_communicators;
    t->final = s->final;
    t->stamp_us = l->meta.dump_timestamp_us;
    for (int k = 0; k < NI_KIND_COUNT; k++) {
      const struct ni_kind_stats *n = &s->kind[k];
      t->started[k] = n->started;
      t->written[k] = n->written;
      t->filtered[k] = n->filtered_by.total;
      t->dropped[k] = n->dropped_by.total;
      t->incomplete[k] = n->incomplete;
      t->in_flight[k] = n->in_flight;
      for (uint32_t i = 0; k == NI_KIND_P2P && i < n->filtered_by.n; i++)
        if (strcmp(n->filtered_by.item[i].name, "sampled") == 0) r->comm[m->comm].p2p_sampled = true;
      t->n_causes[k] = n->dropped_by.n;
      for (uint32_t i = 0; i < n->dropped_by.n; i++) {
        t->cause[k][i].name = code[k][i];
        t->cause[k][i].count = n->dropped_by.item[i].count;
      }
    }
  }
  pthread_mutex_unlock(&r->lock);
  return e;
}

struct lists {
  struct ni_count *item;
  size_t n;
};

static int count_add(struct lists *c, const char *name, uint64_t count) {
  for (size_t i = 0; i < c->n; i++)
    if (strcmp(c->item[i].name, name) == 0) {
      c->item[i].count += count;
      return 0;
    }
  struct ni_count *p = realloc(c->item, (c->n + 1) * sizeof *p);
  if (!p) return -ENOMEM;
  c->item = p;
  p[c->n].name = strdup(name);
  p[c->n].count = count;
  return p[c->n++].name ? 0 : -ENOMEM;
}

static int by_count(const void *a, const void *b) {
  const struct ni_count *x = a, *y = b;
  return x->count != y->count ? (x->count > y->count ? -1 : 1) : strcmp(x->name, y->name);
}

static int add_text(char ***list, size_t *n, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int add_text(char ***list, size_t *n, const char *format, ...) {
  char **p = realloc(*list, (*n + 1) * sizeof(char *));
  if (!p) return -ENOMEM;
  *list = p;
  va_list ap;
  va_start(ap, format);
  int k = vasprintf(&p[*n], format, ap);
  va_end(ap);
  if (k < 0) return -ENOMEM;
  ++*n;
  return 0;
}
#define TROUBLE(...) \
  do { if (e == 0) e = add_text(&s->input.trouble, &s->input.n_trouble, __VA_ARGS__); } while (0)

static int by_from(const void *a, const void *b) {
  const struct ni_span *x = a, *y = b;
  return x->from != y->from ? (x->from < y->from ? -1 : 1) : x->to < y->to ? -1 : x->to > y->to;
}

struct numbers {
  uint64_t distinct, doubles, missing; /* missing: below the highest, from where counting starts */
  uint64_t lowest, highest, hole_from, hole_to;
};

/* All spans of one kind of a member, from all files, as one set. */
static int join_spans(const struct ni_sum_member *m, const struct ni_seq *first, struct numbers *out) {
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

struct loss {
  uint64_t gaps, stated, no_final, refused, rolled, no_record;
  char refused_at[256], gap_at[256], no_final_at[256], stated_at[256];
};

/* Members in an order that does not depend on who was read first. */
static int by_member(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct ni_sum_member *x = &r->member[*(const uint32_t *)a], *y = &r->member[*(const uint32_t *)b];
  const struct ni_sum_comm *c = &r->comm[x->comm], *d = &r->comm[y->comm];
  if (c->hash != d->hash) return c->hash < d->hash ? -1 : 1;
  if (c->n_ranks != d->n_ranks) return c->n_ranks < d->n_ranks ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  const struct ni_sum_process *p = &r->process[x->process], *q = &r->process[y->process];
  int k = strcmp(ni_name_text(&r->names, p->host), ni_name_text(&r->names, q->host));
  if (k) return k;
  if (p->pid != q->pid) return p->pid < q->pid ? -1 : 1;
  if (p->start_ns != q->start_ns) return p->start_ns < q->start_ns ? -1 : 1;
  return p->file != q->file ? (p->file < q->file ? -1 : 1) : x->nnodes - y->nnodes;
}

static void place(const struct ni_run *r, const struct ni_sum_member *m, const char *more, char *out, size_t size) {
  const struct ni_sum_process *p = &r->process[m->process];
  if (*out) return;
  snprintf(out, size, "communicator 0x%" PRIx64 " rank %d (%.80s pid %lld)%s", r->comm[m->comm].hash, m->rank,
           ni_name_text(&r->names, p->host), (long long)p->pid, more);
}

static int judge_member(struct ni_run *r, const struct ni_sum_member *m, struct loss *loss, struct lists *causes) {
  const struct ni_told *t = m->told;
  int e = 0;
  for (int k = 0; t && k < NI_KIND_COUNT && e == 0; k++) {
    uint64_t lost = t->dropped[k] + t->incomplete[k] + (t->final ? t->in_flight[k] : 0), named = 0;
    for (uint32_t i = 0; e == 0 && i < t->n_causes[k]; i++) {
      named += t->cause[k][i].count;
      if (t->cause[k][i].count)
        e = count_add(causes, ni_name_text(&r->names, t->cause[k][i].name), t->cause[k][i].count);
    }
    if (e == 0 && t->dropped[k] > named)
      e = count_add(causes, t->ours ? "other" : "nvidia_ring_overwritten", t->dropped[k] - named);
    if (e == 0 && t->incomplete[k]) e = count_add(causes, "incomplete", t->incomplete[k]);
    if (e == 0 && t->final && t->in_flight[k]) e = count_add(causes, "in_flight", t->in_flight[k]);
    loss->stated += lost;
    if (lost) place(r, m, "", loss->stated_at, sizeof loss->stated_at);
  }
  if (e == 0 && t && t->refused) {
    e = count_add(causes, "refused_communicators", t->refused);
    loss->refused += t->refused;
    place(r, m, "", loss->refused_at, sizeof loss->refused_at);
  }
  if (t && t->ours && !t->final) {
    loss->no_final++;
    place(r, m, "", loss->no_final_at, sizeof loss->no_final_at);
  }
  uint64_t present[NI_KIND_COUNT] = {0};
  for (const struct ni_seq *q = m->seqs; q && e == 0; q = q->next) {
    if (earlier_kind(m, q)) continue;
    struct numbers n;
    if ((e = join_spans(m, q, &n)) < 0) return e;
    if (n.distinct == 0) continue;
    if (q->func == 0) present[q->kind] += n.distinct;
    uint64_t explained = 0, missing = n.missing;
    if (q->func == 0) { /* ours: rec_sn counts what was started */
      int k = q->kind;
      if (t) explained = t->filtered[k] + t->dropped[k] + t->incomplete[k] + t->in_flight[k];
      if (t && t->final && t->started[k] > n.highest + 1) missing += t->started[k] - n.highest - 1;
    } else if (t) {
      explained = t->dropped[q->kind];
    }
    if (missing <= explained) continue;
    loss->gaps += missing - explained;
    char more[160];
    if (n.missing)
      snprintf(more, sizeof more, ", first hole: %s %" PRIu64 " to %" PRIu64,
               q->func ? ni_name_text(&r->names, q->func) : kind_words[q->kind], n.hole_from, n.hole_to);
    else
      snprintf(more, sizeof more, ": %s after rec_sn %" PRIu64, kind_words[q->kind], n.highest);
    place(r, m, more, loss->gap_at, sizeof loss->gap_at);
  }
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    loss->rolled += m->rolled[k];
    if (m->rolled[k] > present[k]) loss->no_record += m->rolled[k] - present[k];
  }
  return e;
}

/* The line's number in the file: ranges count from 1 each. */
static int collect_bad_lines(struct ni_run *r, struct ni_summary *s) {
  uint32_t per_reason[NI_REJ_COUNT] = {0};
  int e = 0;
  for (size_t i = 0; i < r->files.n; i++) {
    uint64_t base = 0;
    for (int k = 0; k < r->file[i].n_ranges; k++) {
      const struct ni_sum_range *g = &r->file[i].range[k];
      for (uint32_t b = 0; b < g->n_bad && e == 0; b++)
        if (per_reason[g->bad[b].reason]++ < NI_SUM_WHERES)
          e = add_text(&s->input.where, &s->input.n_where, "%s:%" PRIu64 ": %s%s%s%s", r->file[i].file->path,
                       base + g->bad[b].line, ni_reject_name((enum ni_reject)g->bad[b].reason),
                       g->bad[b].key ? " (" : "", g->bad[b].key ? g->bad[b].key : "", g->bad[b].key ? ")" : "");
      base += g->lines;
    }
  }
  return e;
}

static int judge_files(struct ni_run *r, struct ni_summary *s) {
  struct ni_input *in = &s->input;
  const char *first_cut = NULL, *first_bad = NULL, *first_fail = r->files.n_bad ? r->files.bad[0].path : NULL;
  const char *fail_why = r->files.n_bad ? ni_unreadable_why(&r->files.bad[0]) : "";
  int e = 0;
  in->files = r->files.n;
  in->files_failed = r->files.n_bad;
  for (size_t i = 0; i < r->files.n; i++) {
    const struct ni_sum_file *f = &r->file[i];
    bool cut = false, damaged = false, failed = false;
    uint64_t lines = 0;
    in->bytes += f->file->bytes;
    for (int k = 0; k < f->n_ranges; k++) {
      const struct ni_reader_stats *st = &f->range[k].stats;
      in->text_bytes += st->text_bytes;
      lines += st->lines;
      cut = cut || st->cut;
      damaged = damaged || st->damages > (st->cut ? 1u : 0u) || st->garbage_bytes || st->gave_up;
      if (f->range[k].error && !failed) {
        failed = true;
        if (!first_fail) {
          first_fail = f->file->path;
          fail_why = strerror(-f->range[k].error);
        }
      }
    }
    if (failed) in->files_failed++;
    else if (lines == 0) in->files_empty++;
    if (cut && !in->cut_files++) first_cut = f->file->path;
    if (damaged && !in->damaged_files++) first_bad = f->file->path;
  }
  if (in->files_failed)
    TROUBLE("%" PRIu64 " files or folders could not be read: %s: %s", in->files_failed, first_fail, fail_why);
  if (in->cut_files) TROUBLE("%" PRIu64 " files are cut at the end: %s", in->cut_files, first_cut);
  if (in->damaged_files) TROUBLE("%" PRIu64 " files hold damaged gzip data: %s", in->damaged_files, first_bad);
  return e;
}

int ni_judge_input(struct ni_run *r, struct ni_summary *s) {
  struct ni_input *in = &s->input;
  const struct ni_tally_sum *t = &r->tally;
  struct lists reasons = {0}, causes = {0}, ranges = {0};
  struct loss loss = {0};
  int e = judge_files(r, s);
  in->lines = t->lines;
  in->records = t->records;
  in->filtered_out += t->filtered; /* besides those of --skip-first */
  in->control_lines = t->control;
  in->proxy_lines = t->proxy;
  in->bad_lines = t->bad;
  in->orphans = t->orphans;
  in->unknown_lines = t->unknown;
  in->no_bandwidth = t->no_bandwidth;
  for (int i = 1; e == 0 && i < NI_REJ_COUNT; i++)
    if (t->reason[i]) e = count_add(&reasons, ni_reject_name((enum ni_reject)i), t->reason[i]);
  if (e == 0) e = collect_bad_lines(r, s);
  if (in->bad_lines)
    TROUBLE("%" PRIu64 " bad lines, first %s", in->bad_lines, in->n_where ? in->where[0] : "?");
  if (in->orphans) TROUBLE("%" PRIu64 " records without a header and without a marker before them", in->orphans);
  if (r->marker_surplus)
    TROUBLE("%" PRIu64 " records more or less than the markers before them announce", r->marker_surplus);

  uint32_t *order = calloc(r->n_members ? r->n_members : 1, sizeof *order);
  if (!order) e = -ENOMEM;
  for (uint32_t i = 0; order && i < r->n_members; i++) order[i] = i;
  if (order) qsort_r(order, r->n_members, sizeof *order, by_member, r);
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++) e = judge_member(r, &r->member[order[i]], &loss, &causes);
  free(order);
  in->gaps = loss.gaps;
  in->rolled = loss.rolled;
  in->rolled_without_record = loss.no_record;
  in->stated_losses = loss.stated;
  if (loss.stated) TROUBLE("%" PRIu64 " operations are stated as lost by the logs: %s", loss.stated, loss.stated_at);
  if (loss.refused)
    TROUBLE("%" PRIu64 " communicators were not recorded at all: %s", loss.refused, loss.refused_at);
  if (loss.gaps) TROUBLE("%" PRIu64 " operations are missing by their numbers: %s", loss.gaps, loss.gap_at);
  if (loss.no_final)
    TROUBLE("%" PRIu64 " communicators end without a final line (process killed, or still running): %s", loss.no_final,
            loss.no_final_at);
  if (in->missing_ranks) {
    uint32_t c = 0;
    while (c < s->n_comms && s->comm[c].ranks_seen >= (uint32_t)s->comm[c].n_ranks) c++;
    if (c < s->n_comms)
      TROUBLE("%" PRIu64 " ranks are missing: communicator %s has %u of %d", in->missing_ranks, s->comm[c].id,
              s->comm[c].ranks_seen, s->comm[c].n_ranks);
  }
  if (in->missing_hosts)
    TROUBLE("%" PRIu64 " hosts are missing, by the number of nodes in the headers", in->missing_hosts);
  if (in->duplicates) TROUBLE("%" PRIu64 " records came twice and were counted once", in->duplicates);
  struct { const char *name; uint64_t n; } limits[] = {
      {"time_zero", t->zero_time}, {"time_over_one_hour", t->long_time}, {"bandwidth_over_10000_gbs", t->no_link},
      {"bandwidth_negative", t->negative}};
  for (int i = 0; i < 4; i++) {
    in->out_of_range += limits[i].n;
    if (e == 0 && limits[i].n) e = count_add(&ranges, limits[i].name, limits[i].n);
  }
  if (in->out_of_range)
    TROUBLE("%" PRIu64 " records hold values that cannot be (%s) and are left out of the statistics", in->out_of_range,
            ranges.n ? ranges.item[0].name : "?");
  if (reasons.n) qsort(reasons.item, reasons.n, sizeof *reasons.item, by_count);
  if (causes.n) qsort(causes.item, causes.n, sizeof *causes.item, by_count);
  if (ranges.n) qsort(ranges.item, ranges.n, sizeof *ranges.item, by_count);
  in->bad_by_reason = reasons.item;
  in->n_bad_by_reason = reasons.n;
  in->losses_by_cause = causes.item;
  in->n_losses_by_cause = causes.n;
  in->out_of_range_by = ranges.item;
  in->n_out_of_range_by = ranges.n;
  s->complete = in->n_trouble == 0;
  return e;
}
