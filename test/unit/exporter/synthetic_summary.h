/*
 * A summary as the pipeline would leave it, made up: nodes x 8 ranks, tensor-parallel communicators within a
 * node, one data-parallel communicator over all, point-to-point; one rank that is late from half of the run
 * on, one slow node, names that try to break out of every language they pass through.
 *
 * Everything is drawn from a fixed generator, so two calls give equal structs.
 */
#ifndef NI_SYNTHETIC_SUMMARY_H
#define NI_SYNTHETIC_SUMMARY_H

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/durations/durations.h"
#include "exporter/model/sums/findings.h"
#include "exporter/model/sums/model.h"

#define HOSTILE_HOST "</script><img src=x onerror=alert(1)>'`\"$(id)"
#define HOSTILE_COMM "dp <b>{a|x}</b> @{^_} 'quit' \\ ; !touch x"

static uint64_t rng_state;
static double rng(void) { /* 0..1 */
  rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
  return (double)(rng_state >> 11) / 9007199254740992.0;
}
static double bell(void) { return rng() + rng() + rng() + rng() - 2; } /* about -2..2 */

/*
 * Everything made here hangs on one chain, freed by synthetic_free(): leak checkers shall see the renderers'
 * only.
 */
union synthetic_block {
  union synthetic_block *next;
  max_align_t align;
};
static union synthetic_block *synthetic_blocks;

static void *zeroed(size_t n, size_t size) {
  union synthetic_block *b = calloc(1, sizeof *b + (n ? n : 1) * size);
  if (!b)
    abort();
  b->next = synthetic_blocks;
  synthetic_blocks = b;
  return b + 1;
}

static void synthetic_free(void) {
  while (synthetic_blocks) {
    union synthetic_block *b = synthetic_blocks;
    synthetic_blocks = b->next;
    free(b);
  }
}

static int up(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double quantile(const double *v, size_t n, double q) {
  double at = q * (double)(n - 1);
  size_t i = (size_t)at;
  return i + 1 < n ? v[i] + (at - (double)i) * (v[i + 1] - v[i]) : v[n - 1];
}
static struct ni_stats stats_of(double *v, size_t n) {
  struct ni_stats s = {.n = n};
  double sum = 0, square = 0;
  if (n == 0) {
    s.mean = s.stddev = s.min = s.p10 = s.p25 = s.p50 = s.p75 = s.p90 = s.p99 = s.max = NAN;
    return s;
  }
  qsort(v, n, sizeof *v, up);
  for (size_t i = 0; i < n; i++)
    sum += v[i];
  s.mean = sum / (double)n;
  for (size_t i = 0; i < n; i++)
    square += (v[i] - s.mean) * (v[i] - s.mean);
  s.stddev = n > 1 ? sqrt(square / (double)(n - 1)) : NAN;
  s.min = v[0];
  s.p10 = quantile(v, n, 0.1);
  s.p25 = quantile(v, n, 0.25);
  s.p50 = quantile(v, n, 0.5);
  s.p75 = quantile(v, n, 0.75);
  s.p90 = quantile(v, n, 0.9);
  s.p99 = quantile(v, n, 0.99);
  s.max = v[n - 1];
  return s;
}

static char *text_of(const char *before, unsigned a, const char *behind) {
  char *t = zeroed(80, 1);
  snprintf(t, 80, "%s%u%s", before, a, behind);
  return t;
}

/*
 * One cell and its group: busbw around `best` reached at large sizes, two clusters when there is a slow node.
 */
static void add_cell(struct ni_summary *s, enum ni_comm_type type, enum ni_kind kind, const char *func,
                     uint64_t bytes, double best, double latency_us, uint64_t operations, unsigned ranks,
                     uint32_t first_comm, uint32_t n_comms) {
  struct ni_cell *c = &s->cell[s->n_cells];
  struct ni_group *g = &s->group[s->n_groups];
  size_t n = operations < 4000 ? operations : 4000;
  double *bw = zeroed(n, sizeof *bw), *us = zeroed(n, sizeof *us), *transfer = zeroed(n, sizeof *us);
  *c = (struct ni_cell){
      .type = type, .kind = kind, .func = func, .msg_bytes = bytes, .operations = operations};
  c->records = operations * (kind == NI_KIND_P2P ? 1 : ranks);
  ni_human_bytes(bytes, c->human);
  c->point = zeroed(n, sizeof *c->point);
  c->point_stride = 1;
  while (operations / c->point_stride > NI_SUM_SCATTER)
    c->point_stride *= 2;
  for (size_t i = 0; i < n; i++) {
    uint32_t comm = first_comm + (uint32_t)(i % (n_comms ? n_comms : 1));
    double ideal = latency_us + (double)bytes / 1e3 / best;
    us[i] = ideal * (1 + 0.04 * bell()) * (comm % 5 == 2 ? 1.6 : 1) * (rng() < 0.004 ? 3 + 4 * rng() : 1);
    bw[i] = (double)bytes / 1e3 / us[i];
    transfer[i] = us[i] * 0.93;
    if (i % c->point_stride == 0 && c->n_points < NI_SUM_SCATTER)
      c->point[c->n_points++] = (struct ni_point){
          .sn = i, .comm = comm, .busbw_gbs = (float)bw[i], .time_us = s->first_us + (int64_t)(i * 1000)};
  }
  c->busbw_gbs = stats_of(bw, n);
  struct ni_stats *b = &c->busbw_gbs;
  c->hist = (struct ni_hist){.log = b->max > 10 * b->min, .n = 40, .lo = b->min, .hi = b->max};
  for (size_t i = 0; i < n; i++) {
    double at =
        c->hist.log ? log(bw[i] / b->min) / log(b->max / b->min) : (bw[i] - b->min) / (b->max - b->min);
    unsigned bin = (unsigned)(at * 40);
    c->hist.count[bin > 39 ? 39 : bin]++;
  }
  double iqr = b->p75 - b->p25;
  c->box = (struct ni_whisker){.min = b->min,
                               .q1 = b->p25,
                               .median = b->p50,
                               .q3 = b->p75,
                               .max = b->max,
                               .n = n,
                               .whisker_lo = b->min,
                               .whisker_hi = b->max};
  for (size_t i = 0; i < n; i++) { /* sorted by stats_of() */
    if (bw[i] < b->p25 - 1.5 * iqr) {
      c->box.whisker_lo = bw[i + 1];
      c->box.n_outside++;
    }
    if (bw[i] <= b->p75 + 1.5 * iqr)
      c->box.whisker_hi = bw[i];
    else
      c->box.n_outside++;
  }
  *g = (struct ni_group){.cell = (uint32_t)s->n_cells,
                         .type = type,
                         .kind = kind,
                         .func = func,
                         .msg_bytes = bytes,
                         .timing = NI_TIMING_KERNEL_GPU,
                         .records = c->records,
                         .operations = operations,
                         .busbw_gbs = *b,
                         .mix = (uint32_t)s->n_mix};
  g->us = stats_of(us, n);
  g->transfer_us = kind == NI_KIND_P2P ? stats_of(transfer, 0) : stats_of(transfer, n);
  g->job_us = stats_of(transfer, 0);
  g->time_share = g->us.mean * (double)g->records;
  if (kind == NI_KIND_COLL) {
    s->mix[s->n_mix++] =
        (struct ni_mix){"RING", bytes > 1000000 ? "SIMPLE" : "LL128", c->records - c->records / 10};
    s->mix[s->n_mix++] = (struct ni_mix){"TREE", "SIMPLE", c->records / 10};
    g->n_mix = 2;
  }
  g->bin = zeroed(s->n_bins, sizeof *g->bin);
  for (uint32_t i = 0; i < s->n_bins; i++) {
    double drift = (i > s->n_bins / 2 ? 1.35 : 1) * (1 + 0.02 * bell());
    g->bin[i] = (struct ni_time_bin){.n = i % 37 == 5 ? 0 : g->records / s->n_bins + 1,
                                     .us_p10 = (float)(g->us.p10 * drift),
                                     .us_p50 = (float)(g->us.p50 * drift),
                                     .us_p90 = (float)(g->us.p90 * drift * 1.02),
                                     .us_p99 = (float)(g->us.p99 * drift * (1.1 + 0.3 * rng())),
                                     .busbw_p10 = (float)(b->p10 / drift),
                                     .busbw_p50 = (float)(b->p50 / drift),
                                     .busbw_p90 = (float)(b->p90 / drift)};
  }
  s->n_cells++;
  s->n_groups++;
  s->records += c->records;
  s->operations += operations;
}

static void finish_groups(struct ni_summary *s) {
  double total = 0;
  for (size_t i = 0; i < s->n_groups; i++)
    total += s->group[i].time_share;
  for (size_t i = 0; i < s->n_groups; i++) {
    struct ni_group *g = &s->group[i];
    double best = 0;
    g->time_share /= total;
    for (size_t k = 0; k < s->n_groups; k++)
      if (s->group[k].type == g->type && strcmp(s->group[k].func, g->func) == 0 &&
          s->group[k].busbw_gbs.p90 > best)
        best = s->group[k].busbw_gbs.p90;
    g->of_best = g->busbw_gbs.p50 / best;
  }
}

static void add_who(struct ni_summary *s, unsigned nodes) {
  unsigned ranks = nodes * 8, late = ranks > 11 ? 11 : 3;
  s->host = zeroed(nodes, sizeof *s->host);
  s->process = zeroed(ranks, sizeof *s->process);
  s->n_hosts = nodes;
  s->n_processes = ranks;
  for (unsigned h = 0; h < nodes; h++)
    s->host[h] = (struct ni_host){.name = h == 1 ? HOSTILE_HOST : text_of("gpu-node-", 100 + h, ""),
                                  .n_processes = 8,
                                  .relative = 1,
                                  .busbw_relative = h == 2 ? 0.62 : 1};
  for (unsigned r = 0; r < ranks; r++) {
    struct ni_process *p = &s->process[r];
    struct ni_host *h = &s->host[r / 8];
    *p = (struct ni_process){.host = r / 8,
                             .pid = 4000 + r,
                             .rank = (int32_t)r,
                             .rank_stated = true,
                             .gpu = (int32_t)(r % 8),
                             .file = text_of("logs/node-pid", 4000 + r, ".jsonl.gz"),
                             .records = s->records / ranks,
                             .exec_ns = 4.1e9 * (1 + 0.01 * bell()),
                             .compared = 40000,
                             .shortest = r == late ? 21000 : 500,
                             .late = r == late ? 19000 : 3,
                             .late_ns = r == late ? 2.2e9 : 2e5,
                             .relative = r == late ? 0.78 : 1 + 0.01 * bell(),
                             .busbw_relative = r / 8 == 2 ? 0.62 : 1 + 0.01 * bell()};
    h->records += p->records;
    h->exec_ns += p->exec_ns;
    h->compared += p->compared;
    h->shortest += p->shortest;
    h->late += p->late;
    h->late_ns += p->late_ns;
  }
  s->heat = (struct ni_heat){.rows = ranks, .bins = s->n_bins};
  s->heat.relative = zeroed((size_t)ranks * s->n_bins, sizeof(float));
  s->heat.count = zeroed((size_t)ranks * s->n_bins, sizeof(uint32_t));
  for (unsigned r = 0; r < ranks; r++)
    for (uint32_t b = 0; b < s->n_bins; b++) {
      size_t at = (size_t)r * s->n_bins + b;
      double v = 1 + 0.02 * bell();
      if (r == late && b > s->n_bins / 2)
        v = 0.55 + 0.03 * bell();
      else if (r / 8 == late / 8 && b > s->n_bins / 2)
        v = 1.05;
      if (r == ranks - 2 && b > 30 && b < 42)
        v = 1.9;
      s->heat.count[at] = b % 37 == 5 ? 0 : 20;
      s->heat.relative[at] = b % 37 == 5 ? NAN : (float)v;
    }
  s->outlier = zeroed(NI_SUM_OUTLIERS, sizeof *s->outlier);
  for (unsigned i = 0; i < 24; i++) {
    struct ni_outlier *o = &s->outlier[s->n_outliers++];
    *o = (struct ni_outlier){.kind = i % 4 == 3 ? NI_OUTLIER_SLOW : NI_OUTLIER_LATE,
                             .group = i % 3,
                             .comm = i % 3 ? 0 : 1,
                             .process = late,
                             .rank = (int32_t)(i % 3 ? late : late % 8),
                             .sn = 20400 + i * 37,
                             .us = i % 4 == 3 ? 9100 - 90.0 * i : 300 + i,
                             .peers_us = i % 4 == 3 ? 800 : 4100 - 60.0 * i,
                             .time_us = s->first_us + 61000000 + (int64_t)i * 1111111};
    o->lost_us = fabs(o->us - o->peers_us);
  }
}

static void add_comms(struct ni_summary *s, unsigned nodes) {
  s->comm = zeroed(nodes + 1, sizeof *s->comm);
  s->n_comms = nodes + 1;
  for (unsigned i = 0; i <= nodes; i++) {
    struct ni_comm_row *c = &s->comm[i];
    bool all = i == 0;
    double span = (double)(s->last_us - s->first_us) * 1e3, slow = i == 3 ? 1.5 : 1;
    *c = (struct ni_comm_row){.hash = 0x5d1c7e90aa4100 + i,
                              .name = all ? HOSTILE_COMM : text_of("tp", i - 1, ""),
                              .type = all ? NI_TYPE_MIXED : NI_TYPE_NVLINK_ONLY,
                              .n_ranks = (int32_t)(all ? nodes * 8 : 8),
                              .nnodes = (int32_t)(all ? nodes : 1),
                              .one_host = all && nodes > 1 ? -1
                                  : all                    ? 0
                                                           : (int32_t)i - 1,
                              .ranks_seen = all ? nodes * 8 : 8,
                              .hosts_seen = all ? nodes : 1,
                              .records = all ? 200000 : 320000,
                              .operations = 40000,
                              .timed = 40000,
                              .timed_bytes = UINT64_C(40000) << 20,
                              .transfer_ns = span * (all ? 0.21 : 0.14 * slow),
                              .waiting_ns = span * (all ? 0.09 : 0.02 + 0.01 * rng()),
                              .first_us = s->first_us,
                              .last_us = s->last_us,
                              .span_ns = span};
    c->outside_ns = span - c->transfer_ns - c->waiting_ns;
    snprintf(c->id, sizeof c->id, "0x%llx", (unsigned long long)c->hash);
  }
}

/* sizes: message sizes of the largest function, 1..60. */
static struct ni_summary *synthetic_summary(unsigned nodes, unsigned sizes) {
  struct ni_summary *s = zeroed(1, sizeof *s);
  rng_state = 42;
  s->first_us = 1790000000123456;
  s->last_us = s->first_us + 120000000;
  s->n_bins = NI_SUM_TIME_BINS;
  s->cell = zeroed(400, sizeof *s->cell);
  s->group = zeroed(400, sizeof *s->group);
  s->mix = zeroed(800, sizeof *s->mix);
  for (int mixed = 0; mixed < 2; mixed++)
    for (unsigned i = 0; i < sizes; i++) {
      uint64_t bytes =
          sizes > 20 ? 1024 + (uint64_t)i * i * 65536 : 1024ull << (i * 20 / (sizes > 1 ? sizes - 1 : 1));
      if (mixed)
        add_cell(s, NI_TYPE_MIXED, NI_KIND_COLL, "AllReduce", bytes, 180, 38, 5000, nodes * 8, 0, 1);
      else
        add_cell(s, NI_TYPE_NVLINK_ONLY, NI_KIND_COLL, "AllReduce", bytes, 460, 14, 3000, 8, 1, nodes);
    }
  add_cell(s, NI_TYPE_MIXED, NI_KIND_COLL, "AllGather", 33554432, 175, 60, 4000, nodes * 8, 0, 1);
  add_cell(s, NI_TYPE_MIXED, NI_KIND_COLL, "ReduceScatter", 33554432, 172, 60, 4000, nodes * 8, 0, 1);
  add_cell(s, NI_TYPE_MIXED, NI_KIND_COLL, "Broadcast", 8, 0.4, 30, 3, nodes * 8, 0, 1);
  add_cell(s, NI_TYPE_MIXED, NI_KIND_P2P, "Send", 4194304, 48, 22, 9000, 1, 0, 1);
  finish_groups(s);
  add_comms(s, nodes);
  add_who(s, nodes);
  s->n_by_comm = s->n_by_process = s->n_by_host = 0;
  s->by_comm = zeroed(2000, sizeof *s->by_comm);
  s->by_process = zeroed(nodes * 8 * 2 + 1, sizeof *s->by_process);
  s->by_host = zeroed(nodes * 2, sizeof *s->by_host);
  for (uint32_t g = 0; g < 2; g++) {
    const struct ni_group *x = &s->group[g];
    struct ni_slice slice = {.group = g, .records = 5000, .us = x->us, .busbw_gbs = x->busbw_gbs};
    for (uint32_t i = 1; i <= nodes && s->n_by_comm < 2000; i++) {
      struct ni_slice one = slice;
      double k = i % 5 == 2 ? 0.7 : 1 + 0.01 * bell();
      one.of = i;
      one.busbw_gbs.p10 *= k;
      one.busbw_gbs.p25 *= k;
      one.busbw_gbs.p50 *= k;
      one.busbw_gbs.p75 *= k;
      one.busbw_gbs.p90 *= k;
      s->by_comm[s->n_by_comm++] = one;
    }
    for (uint32_t i = 0; i < nodes * 8; i++) {
      slice.of = i;
      s->by_process[s->n_by_process++] = slice;
    }
    for (uint32_t i = 0; i < nodes; i++) {
      slice.of = i;
      s->by_host[s->n_by_host++] = slice;
    }
  }
  static struct ni_count bad[] = {{"json", 3}, {"cut", 1}},
                         losses[] = {{"pool full", 112}, {"filtered <small>", 9}},
                         range[] = {{"busbw above 10,000 GB/s", 1}};
  static char *trouble[] = {
      (char *)"121 records lost, as the logs state: pool full 112, filtered 9 (gpu-node-000)",
      (char *)"4 lines not readable in 2 files, first logs/a.jsonl:17"};
  static char *where[] = {(char *)"logs/a.jsonl:17: json (unexpected <end>)",
                          (char *)"logs/b.jsonl.gz:9001: cut"};
  s->job = (struct ni_job_facts){.id = "81234",
                                 .exe = "python3.11",
                                 .world_size = (int32_t)(nodes * 8),
                                 .nccl_version = 22807,
                                 .formats = "v4.0",
                                 .producers = "nccl-inspector-c 0.1.0"};
  s->input = (struct ni_input){.files = nodes * 8,
                               .bytes = 41000000,
                               .text_bytes = 900000000,
                               .lines = s->records + 999,
                               .records = s->records,
                               .control_lines = 999,
                               .bad_lines = 4,
                               .out_of_range = 1,
                               .duplicates = 2,
                               .gaps = 121,
                               .stated_losses = 121,
                               .bad_by_reason = {bad, 2, 0},
                               .losses_by_cause = {losses, 2, 0},
                               .out_of_range_by = {range, 1, 0},
                               .trouble = trouble,
                               .n_trouble = 2,
                               .where = where,
                               .n_where = 2};
  s->time_from = NI_TIME_START;
  if (ni_judge_by_durations(s) < 0)
    abort();
  return s;
}

/*
 * As if judged by own time: so many steps of 10 ms, a rank late in the second half of them, pauses of
 * another, the network.
 */
static inline void synthetic_steps(struct ni_summary *s, unsigned n) {
  s->by_own_time = true;
  s->why_durations = NULL;
  s->n_step_bins = s->n_steps = n;
  s->bin_steps = 1;
  s->step = calloc(n, sizeof *s->step);
  if (!s->step)
    abort();
  snprintf(s->step_mark, sizeof s->step_mark, "AllReduce on <world> (0x1, 16 ranks)");
  for (unsigned i = 0; i < n; i++)
    s->step[i] = (struct ni_step){
        s->first_us + i * 10000, 7000.25F + (i >= n / 2 ? 900.125F : 0), 1500.5F, 800, 1200.75F,
        i % 50 == 17 ? 30000 : 0};
  s->cost = (struct ni_cost){true, n * 10000.0, n * 9500.0, 0.75, 0.05, 0.2, 1};
  s->n_findings = 3;
  s->findings_left_out = 2;
  s->finding[0] = (struct ni_finding){.kind = NI_FIND_LATE_RANK,
                                      .lost_us = n * 400.0,
                                      .low_us = n * 300.0,
                                      .high_us = n * 500.0,
                                      .from_step = n / 2,
                                      .to_step = -1,
                                      .text = "rank 11 on </script><b> takes 12.0 % longer",
                                      .evidence = "<i>clock</i> 900 MHz",
                                      .next = "trace LOGS --rank 11"};
  s->finding[1] = (struct ni_finding){.kind = NI_FIND_PAUSES,
                                      .lost_us = n * 90.0,
                                      .low_us = 0,
                                      .high_us = n * 200.0,
                                      .from_step = -1,
                                      .to_step = -1,
                                      .text = "rank 3 on node-0 pauses 6 times",
                                      .next = "trace LOGS --rank 3"};
  s->finding[2] = (struct ni_finding){.kind = NI_FIND_CONGESTION,
                                      .lost_us = n * 10.0,
                                      .low_us = n * 9.0,
                                      .high_us = n * 11.0,
                                      .from_step = 20,
                                      .to_step = 39,
                                      .text = "the network between hosts"};
  /*
   * Rank 11 is late by 10 % of a step where its finding says so, in the heat map and its box; the others are
   * not.
   */
  s->finding[0].from_us = s->first_us + (s->last_us - s->first_us) / 2;
  s->finding[0].process = calloc(1, sizeof(uint32_t));
  if (!s->finding[0].process)
    abort();
  *s->finding[0].process = 11;
  s->finding[0].n_processes = 1;
  s->heat.by_own = true;
  for (size_t i = 0; i < (size_t)s->heat.rows * s->heat.bins; i++)
    s->heat.relative[i] = i / s->heat.bins == 11 && i % s->heat.bins >= s->heat.bins / 2 ? 0.1F : 0;
  s->comm[0].path_us = n * 2000.0;
  s->comm[0].cost_us = n * 500.0;
}

#endif
