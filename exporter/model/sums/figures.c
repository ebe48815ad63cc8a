/*
 * The join phase: every thread takes the next cell (largest first), joins its operations, hands them to the
 * sink and sums. What a cell comes to is kept until all are done and is then put into the result in order.
 */
#include "figures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/threads.h"
#include "figures_gather.h"
#include "approx/log_sums.h"
#include "reading/tables.h"
#include "team/team.h"

struct joining {
  struct ni_run *r;
  struct ni_summary *s;
  uint32_t *by_size; /* cells, largest first */
  struct ni_cell_result *result;
  struct ni_cell_sums *ours; /* of a team: what each cell has here, until it is added up */
  size_t slice_cells;        /* so many of them have slices */
  bool page;                 /* what the page alone shows is wanted: series by time, the heat map */
  int64_t *heat_ppm;
  struct ni_sums sums;        /* under the run's lock */
  const struct ni_sink *rows; /* NULL: nobody wants them */
  atomic_uint next;           /* of by_size; relaxed: a ticket */
};

static int init_sums(struct ni_sums *t, const struct ni_summary *s) {
  t->process = calloc(s->n_processes ? s->n_processes : 1, sizeof *t->process);
  t->comm = calloc(s->n_comms ? s->n_comms : 1, sizeof *t->comm);
  t->seat = calloc(s->n_seats + 1, sizeof *t->seat);
  t->late = malloc(NI_SUM_LATE * sizeof *t->late);
  const bool has_room = t->process && t->comm && t->seat && t->late;
  if (!has_room)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_comms; i++) {
    t->comm[i].first_ns = INT64_MAX;
    t->comm[i].last_ns = INT64_MIN;
  }
  return 0;
}

static int merge_sums(struct ni_sums *a, const struct ni_sums *b, const struct ni_summary *s) {
  for (size_t i = 0; i < s->n_processes; i++)
    ni_add_counts(a->process[i].all, b->process[i].all);
  for (size_t i = 0; i < s->n_comms; i++)
    ni_comm_sums_add(&a->comm[i], &b->comm[i]);
  for (size_t i = 0; i < s->n_seats; i++)
    ni_add_counts(a->seat[i].all, b->seat[i].all);
  for (size_t i = 0; i < b->n_late; i++)
    ni_sums_keep_late(a, &b->late[i]);
  ni_add_counts(a->all, b->all);
  int e = ni_tag_sums_merge(&a->tags, &b->tags);
  if (e == 0)
    e = ni_crossings_merge(&a->crossings, &b->crossings);
  return e < 0 ? e : ni_bucket_merge(&a->buckets, &b->buckets);
}

static void free_sums(struct ni_sums *t) {
  ni_bucket_free(&t->buckets);
  ni_tag_sums_free(&t->tags);
  ni_crossings_free(&t->crossings);
  free(t->process);
  free(t->comm);
  free(t->seat);
  free(t->late);
}

static int add_slice(struct ni_slices *l, uint32_t group, uint32_t of, struct ni_value_sums *d) {
  if (!ni_array_room(l->item, l->n, l->cap))
    return -ENOMEM;
  struct ni_slice *x = &l->item[l->n++];
  x->group = group;
  x->of = of;
  x->records = d->us.n;
  x->met = d->met;
  x->transfer_us = (double)d->transfer_ns / 1e3;
  x->alone_us = (double)d->alone_ns / 1e3;
  int e = ni_dist_stats(&d->us, 1e3, &x->us);
  return e < 0 ? e : ni_dist_stats(&d->busbw, 1e9, &x->busbw_gbs);
}

/* What all processes of a host, or of a named part of the logs, come to. */
static int add_parts(const struct joining *j, struct ni_slices *out, uint32_t group,
                     const struct ni_group_sums *g, bool by_host) {
  const struct ni_summary *s = j->s;
  const size_t parts = by_host ? s->n_hosts : s->n_log_groups;
  int e = 0;
  for (uint32_t k = 0, i = 0; e == 0 && k < parts; k++) {
    struct ni_value_sums sum = {.us.limit = NI_DIST_LIMIT_SLICE, .busbw.limit = NI_DIST_LIMIT_SLICE};
    bool any = false;
    /* they stand by host */
    for (i = by_host ? i : 0; i < s->n_processes && (!by_host || s->process[i].host == k); i++) {
      const bool is_part = by_host || s->process[i].log_group == k;
      if (!g->process[i] || e < 0 || !is_part)
        continue;
      any = true;
      e = ni_dist_merge(&sum.us, &g->process[i]->us);
      if (e == 0)
        e = ni_dist_merge(&sum.busbw, &g->process[i]->busbw);
    }
    if (any && e == 0)
      e = add_slice(out, group, k, &sum);
    ni_dist_free(&sum.us);
    ni_dist_free(&sum.busbw);
  }
  return e;
}

static void fill_bins(const struct ni_summary *s, const struct ni_group_sums *g, struct ni_time_bin *bin) {
  for (uint32_t i = 0; i < s->n_bins; i++) {
    const struct ni_dist *us = &g->bin[i].us, *bw = &g->bin[i].busbw;
    bin[i] = (struct ni_time_bin){.n = us->n,
                                  .us_p10 = (float)ni_dist_quantile_coarse(us, 0.10, 1e3),
                                  .us_p50 = (float)ni_dist_quantile_coarse(us, 0.50, 1e3),
                                  .us_p90 = (float)ni_dist_quantile_coarse(us, 0.90, 1e3),
                                  .us_p99 = (float)ni_dist_quantile_coarse(us, 0.99, 1e3),
                                  .busbw_p10 = (float)ni_dist_quantile_coarse(bw, 0.10, 1e9),
                                  .busbw_p50 = (float)ni_dist_quantile_coarse(bw, 0.50, 1e9),
                                  .busbw_p90 = (float)ni_dist_quantile_coarse(bw, 0.90, 1e9)};
  }
}

static int fill_group(const struct joining *j, const struct ni_cell_sums *c, unsigned timing,
                      struct ni_cell_result *out) {
  struct ni_group_sums *g = c->group[timing];
  const struct ni_cell *cell = &j->s->cell[c->cell];
  if (!ni_array_room(out->group, out->n_groups, out->cap_groups))
    return -ENOMEM;
  uint32_t at = out->n_groups++;
  struct ni_group *x = &out->group[at];
  *x = (struct ni_group){.cell = c->cell,
                         .type = cell->type,
                         .kind = cell->kind,
                         .func = cell->func,
                         .msg_bytes = cell->msg_bytes,
                         .timing = (enum ni_timing)timing,
                         .records = g->records,
                         .operations = g->operations,
                         .no_bandwidth = g->no_bandwidth,
                         .of_best = NAN,
                         .tails = g->tails,
                         .tail_ns = g->tail_ns,
                         .mix = (uint32_t)out->n_mix};
  int e = ni_dist_stats(&g->us, 1e3, &x->us);
  if (e == 0)
    e = ni_dist_stats(&g->busbw, 1e9, &x->busbw_gbs);
  if (e == 0)
    e = ni_dist_stats(&g->transfer, 1e3, &x->transfer_us);
  if (e == 0)
    e = ni_dist_stats(&g->job, 1e3, &x->job_us);
  x->bin = j->s->no_bins;
  if (e == 0 && c->series && !(x->bin = calloc(j->s->n_bins ? j->s->n_bins : 1, sizeof *x->bin)))
    e = -ENOMEM;
  if (e < 0)
    return e;
  if (c->series)
    fill_bins(j->s, g, x->bin);
  for (unsigned m = 0; m <= NI_MIX_MAX; m++) {
    if (!g->mix[m])
      continue;
    if (!ni_array_room(out->mix, out->n_mix, out->cap_mix))
      return -ENOMEM;
    out->mix[out->n_mix++] = (struct ni_mix){ni_name_text(&j->r->names, j->r->mix[m].algo),
                                             ni_name_text(&j->r->names, j->r->mix[m].proto), g->mix[m]};
    x->n_mix++;
  }
  for (uint32_t i = 0; e == 0 && i < j->s->n_comms; i++)
    if (c->slices && g->comm[i])
      e = add_slice(&out->comm, at, i, g->comm[i]);
  for (uint32_t i = 0; e == 0 && i < j->s->n_processes; i++)
    if (c->slices && g->process[i])
      e = add_slice(&out->process, at, i, g->process[i]);
  if (e == 0 && c->slices)
    e = add_parts(j, &out->host, at, g, true);
  if (e == 0 && c->slices)
    e = add_parts(j, &out->log_group, at, g, false);
  /* Slow as a whole: twice the usual transfer time, and more. */
  for (uint32_t i = 0; i < g->n_slow && e == 0; i++) {
    struct ni_outlier o = g->slow[i];
    o.peers_us = x->transfer_us.p50;
    o.lost_us = o.us - o.peers_us;
    if (o.us <= 2 * o.peers_us)
      break;
    if (!ni_array_room(out->outlier, out->n_outliers, out->cap_outliers))
      return -ENOMEM;
    o.group = at;
    out->outlier[out->n_outliers++] = o;
  }
  return e;
}

static int compare_mixes(const void *a, const void *b) {
  const struct ni_mix *x = a, *y = b;
  if (x->records != y->records)
    return x->records > y->records ? -1 : 1;
  int k = strcmp(x->algo, y->algo);
  return k ? k : strcmp(x->proto, y->proto);
}

static int fill_cell(const struct joining *j, struct ni_cell_sums *c, struct ni_cell_result *out) {
  struct ni_cell *x = &j->s->cell[c->cell];
  x->records = c->records;
  x->operations = c->operations;
  size_t cap = NI_SUM_SCATTER;
  ni_array_fit(c->point, c->n_points, cap);
  x->point = c->point;
  x->n_points = c->n_points;
  x->point_stride = c->stride ? c->stride : 1;
  c->point = NULL;
  int e = ni_dist_stats(&c->busbw, 1e12, &x->busbw_gbs);
  if (e == 0)
    e = ni_dist_hist(&c->busbw, 1e12, &x->hist);
  if (e == 0)
    e = ni_dist_box(&c->busbw, 1e12, &x->box);
  for (unsigned t = 0; t < NI_TIMING_COUNT && e == 0; t++)
    if (c->group[t]) {
      const uint32_t at = out->n_groups;
      e = fill_group(j, c, t, out);
      if (e == 0)
        qsort(out->mix + out->group[at].mix, out->group[at].n_mix, sizeof *out->mix, compare_mixes);
    }
  /* There may be tens of thousands of cells with a few slices each. */
  struct ni_slices *slices[] = {&out->comm, &out->process, &out->host, &out->log_group};
  for (size_t i = 0; i < 4; i++)
    ni_array_fit(slices[i]->item, slices[i]->n, slices[i]->cap);
  ni_array_fit(out->group, out->n_groups, out->cap_groups);
  return e;
}

/* The row of one operation, and the mean it states in bytes/s. */
static double make_row(const struct joining *j, const struct ni_cell *cell, const struct ni_operation *op,
                       int32_t *nnodes, struct ni_operation_row *row) {
  const struct ni_run *r = j->r;
  const struct ni_who_comm *k = &r->who.comm[op->comm];
  unsigned __int128 sum = 0;
  uint64_t n = 0;
  *row = (struct ni_operation_row){.id = ni_name_text(&r->names, r->comm[op->comm].id),
                                   .sn = op->sn,
                                   .msg_bytes = cell->msg_bytes,
                                   .count = op->n,
                                   .n_ranks = k->n_ranks,
                                   .nnodes = nnodes,
                                   .first_us = UINT64_MAX,
                                   .rank = op->part[0].rank,
                                   .peer = ni_entry_peer(&op->part[0].e),
                                   .mean_busbw_gbs = NAN};
  for (uint32_t i = 0; i < op->n; i++) {
    const struct ni_op_part *p = &op->part[i];
    if (p->e.bytes_per_s != NI_NO_BW) {
      sum += p->e.bytes_per_s;
      n++;
    }
    if (p->e.dump_us < row->first_us)
      row->first_us = p->e.dump_us;
    if (p->e.dump_us > row->last_us)
      row->last_us = p->e.dump_us;
    unsigned at = 0;
    while (at < row->n_nnodes && nnodes[at] < p->nnodes)
      at++;
    if ((at < row->n_nnodes && nnodes[at] == p->nnodes) || row->n_nnodes == 8)
      continue;
    for (unsigned m = row->n_nnodes++; m > at; m--)
      nnodes[m] = nnodes[m - 1];
    nnodes[at] = p->nnodes;
  }
  if (n == 0)
    return NAN;
  row->mean_busbw_gbs = (double)sum / ((double)n * 1e9);
  return (double)sum / (double)n;
}

static int count_joined_operation(const struct joining *j, struct ni_cell_sums *c, struct ni_sums *t,
                                  const struct ni_operation *op, void *rows) {
  int32_t nnodes[8];
  struct ni_operation_row row;
  double mean = make_row(j, &j->s->cell[c->cell], op, nnodes, &row);
  int e = rows ? j->rows->row(rows, &row) : 0;
  return e < 0 ? e : ni_cell_add(c, t, op, mean, &j->s->heat, j->heat_ppm);
}

/* --skip-first: the first operations of each communicator in this cell are warm-up. */
static bool is_skipped(const struct joining *j, uint64_t *taken, const struct ni_operation *op) {
  return j->r->opt.skip_first && taken[op->comm]++ < j->r->opt.skip_first;
}

/* Its operations, joined, to the sums and to the sink. */
static int join_cell(const struct joining *j, struct ni_sum_cell *ours, struct ni_cell_sums *c,
                     struct ni_sums *t) {
  struct ni_run *r = j->r;
  struct ni_join *join = NULL;
  void *rows = NULL;
  struct ni_operation op;
  uint64_t *taken = calloc(r->who.n_comms, sizeof *taken), n = 0;
  int e = taken ? 0 : -ENOMEM, got = 0;
  if (e == 0)
    e = ni_join_begin(&join, r, ours);
  if (e == 0 && j->rows)
    e = j->rows->open(j->rows->to, &j->s->cell[c->cell], &rows);
  while (e == 0 && (got = ni_join_next(join, &op)) > 0) {
    if ((++n & 1023) == 0 && ni_run_stopped(r))
      break;
    if (is_skipped(j, taken, &op)) {
      t->skipped += op.n;
      continue;
    }
    if (ours->kind != NI_KIND_P2P) {
      e = count_joined_operation(j, c, t, &op, rows);
      continue;
    }
    for (uint32_t i = 0; i < op.n && e == 0; i++) {
      struct ni_operation one = {op.sn, op.comm, 1, &op.part[i]};
      e = count_joined_operation(j, c, t, &one, rows);
    }
  }
  if (e == 0)
    e = got < 0 ? got : 0;
  if (join)
    t->duplicates += ni_join_duplicates(join);
  ni_join_end(join);
  int e2 = rows ? j->rows->close(rows) : 0;
  free(taken);
  return e == 0 ? e2 : e;
}

/* place: among all cells by number of records. */
static struct ni_cell_sums init_cell_sums(const struct joining *j, uint32_t at, uint32_t place) {
  return (struct ni_cell_sums){.r = j->r,
                               .s = j->s,
                               .cell = at,
                               .busbw.limit = NI_DIST_LIMIT_GROUP,
                               .series = j->page && place < NI_SUM_SERIES,
                               .slices = place < j->slice_cells};
}

static int sum_cell(const struct joining *j, uint32_t at, uint32_t place, struct ni_sums *t) {
  struct ni_run *r = j->r;
  struct ni_sum_cell *ours = &r->cell[r->cell_order[at]];
  struct ni_cell_sums c = init_cell_sums(j, at, place);
  int e = r->opt.approximate ? ni_log_sums_cell(&c, t, ours) : join_cell(j, ours, &c, t);
  if (e == 0 && j->ours) {
    j->ours[at] = c;
    c = (struct ni_cell_sums){0};
  } else if (e == 0) {
    e = fill_cell(j, &c, &j->result[at]);
  }
  ni_cell_free(&c);
  ni_cell_drop(r, ours); /* what was joined is not read again */
  return e;
}

static void *sum_cells_of_thread(void *arg) {
  struct joining *j = arg;
  struct ni_run *r = j->r;
  struct ni_sums t = {0};
  int e = init_sums(&t, j->s);
  while (e == 0 && !ni_run_stopped(r)) {
    uint32_t i = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
    if (i >= j->s->n_cells)
      break;
    uint32_t at = j->by_size[i];
    if (j->ours && !j->s->cell[at].chunks)
      continue; /* another rank's */
    e = sum_cell(j, at, i, &t);
    ni_progress_add(&r->progress, r->cell[r->cell_order[at]].records, 1);
  }
  pthread_mutex_lock(&r->lock);
  if (t.process && t.comm && t.late && e == 0)
    e = merge_sums(&j->sums, &t, j->s);
  pthread_mutex_unlock(&r->lock);
  if (e == -E2BIG)
    ni_buckets_fail_too_many(r, "series", "part of the logs, communicator, function and timing source");
  else if (e < 0)
    ni_run_fail(r, e, "%s/summary: %s", r->tmp_dir, strerror(-e));
  free_sums(&t);
  return NULL;
}

static int compare_cells_by_records(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  uint64_t p = r->cell[r->cell_order[x]].records, q = r->cell[r->cell_order[y]].records;
  if (p != q)
    return p > q ? -1 : 1;
  return x < y ? -1 : 1;
}

/* Cell after cell, so that rank 0 has one at a time. */
static int sum_team_cells(struct joining *j) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < j->s->n_cells; i++) {
    const uint32_t at = j->by_size[i];
    struct ni_cell_sums *c = &j->ours[at];
    if (!c->r)
      *c = init_cell_sums(j, at, i);
    e = ni_team_cell(c);
    if (e == 0 && j->r->team->rank == 0)
      e = fill_cell(j, c, &j->result[at]);
    ni_cell_free(c);
  }
  return e == 0 ? ni_team_sums(j->r, j->s, &j->sums, j->heat_ppm) : e;
}

static int init_heat(struct joining *j) {
  struct ni_heat *h = &j->s->heat;
  if (!j->page || j->s->n_processes < 2 || j->s->n_processes > NI_SUM_HEAT_CELLS)
    return 0;
  h->bins = (uint32_t)(NI_SUM_HEAT_CELLS / j->s->n_processes);
  if (h->bins > NI_SUM_TIME_BINS)
    h->bins = NI_SUM_TIME_BINS;
  h->rows = (uint32_t)j->s->n_processes;
  size_t n = (size_t)h->rows * h->bins;
  h->relative = calloc(n, sizeof *h->relative);
  h->count = calloc(n, sizeof *h->count);
  j->heat_ppm = calloc(n, sizeof *j->heat_ppm);
  return h->relative && h->count && j->heat_ppm ? 0 : -ENOMEM;
}

int ni_figures_sum(struct ni_run *r, struct ni_summary *s, const struct ni_sink *rows) {
  struct joining j = {.r = r, .s = s, .rows = rows, .page = !r->opt.no_html && !r->opt.compat};
  int e = init_sums(&j.sums, s);
  j.by_size = ni_order((uint32_t)s->n_cells, compare_cells_by_records, r);
  j.result = calloc(s->n_cells + 1, sizeof *j.result);
  if (r->team)
    j.ours = calloc(s->n_cells + 1, sizeof *j.ours);
  const bool has_room = j.by_size && j.result && (!r->team || j.ours);
  if (!has_room)
    e = -ENOMEM;
  j.slice_cells = NI_SUM_SLICES / (s->n_processes + s->n_comms + s->n_hosts + s->n_log_groups + 1);
  if (j.slice_cells == 0)
    j.slice_cells = 1;
  s->no_bins = calloc(s->n_bins + 1, sizeof *s->no_bins);
  if (!s->no_bins)
    e = -ENOMEM;
  for (uint32_t i = 0; s->no_bins && i <= s->n_bins; i++)
    s->no_bins[i] = (struct ni_time_bin){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
  if (e == 0)
    e = init_heat(&j);
  if (e == 0) {
    uint64_t records = 0;
    for (uint32_t i = 0; i < r->n_cells; i++)
      records += r->cell[i].records;
    ni_progress_begin(&r->progress, "figures", records, false, s->n_cells);
    (void)ni_threads(r->opt.jobs, sum_cells_of_thread, &j, 0);
    ni_progress_end(&r->progress);
    e = r->stop && *r->stop ? -EINTR : atomic_load_explicit(&r->error, memory_order_relaxed);
  }
  if (e == 0 && r->team)
    e = sum_team_cells(&j);
  const bool here = e == 0 && (!r->team || r->team->rank == 0);
  if (here)
    e = ni_figures_gather(s, j.result, &j.sums);
  if (here && e == 0)
    ni_figures_spread(s, &j.sums, j.heat_ppm);
  s->tag_sums = j.sums.tags;
  j.sums.tags = (struct ni_tag_sums){0};
  s->crossing = j.sums.crossings.item;
  s->n_crossings = j.sums.crossings.n;
  j.sums.crossings = (struct ni_crossings){0};
  s->buckets.records = j.sums.buckets;
  j.sums.buckets = (struct ni_bucket_table){0};
  for (size_t i = 0; j.result && i < s->n_cells; i++)
    ni_cell_result_free(&j.result[i], s);
  for (size_t i = 0; j.ours && i < s->n_cells; i++)
    ni_cell_free(&j.ours[i]);
  free(j.ours);
  free(j.result);
  free(j.by_size);
  free(j.heat_ppm);
  free_sums(&j.sums);
  return e;
}
