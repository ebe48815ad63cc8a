#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "exporter/base/order.h"
#include "exporter/base/sort_numbers.h"
#include "cell_figures.h"

#define LATE_PERCENT 80 /* below this share of the peers' median a rank is clearly late */

struct ni_group_sums *ni_group_of(struct ni_cell_sums *c, unsigned timing) {
  struct ni_group_sums *g = c->group[timing];
  if (g)
    return g;
  g = c->group[timing] = calloc(1, sizeof *g);
  if (!g)
    return NULL;
  g->us.limit = g->busbw.limit = g->transfer.limit = g->job.limit = NI_DIST_LIMIT_GROUP;
  if (c->series && !(g->bin = calloc(c->s->n_bins ? c->s->n_bins : 1, sizeof *g->bin)))
    return NULL;
  if (!c->slices)
    return g;
  g->comm = calloc(c->s->n_comms, sizeof *g->comm);
  g->process = calloc(c->s->n_processes, sizeof *g->process);
  return g->comm && g->process ? g : NULL;
}

struct ni_value_sums *ni_slice_of(struct ni_value_sums **at) {
  if (*at)
    return *at;
  *at = calloc(1, sizeof **at);
  if (*at)
    (*at)->us.limit = (*at)->busbw.limit = NI_DIST_LIMIT_SLICE;
  return *at;
}

static void free_values(struct ni_value_sums *v) {
  ni_dist_free(&v->us);
  ni_dist_free(&v->busbw);
}

static void free_slices(struct ni_value_sums **s, size_t n) {
  for (size_t i = 0; s && i < n; i++) {
    if (s[i])
      free_values(s[i]);
    free(s[i]);
  }
  free(s);
}

void ni_cell_free(struct ni_cell_sums *c) {
  if (!c->r)
    return; /* nothing was in it */
  for (int t = 0; t < NI_TIMING_COUNT; t++) {
    struct ni_group_sums *g = c->group[t];
    if (!g)
      continue;
    ni_dist_free(&g->us);
    ni_dist_free(&g->busbw);
    ni_dist_free(&g->transfer);
    ni_dist_free(&g->job);
    for (uint32_t i = 0; g->bin && i < c->s->n_bins; i++)
      free_values(&g->bin[i]);
    free(g->bin);
    free_slices(g->comm, c->s->n_comms);
    free_slices(g->process, c->s->n_processes);
    free(g);
  }
  ni_dist_free(&c->busbw);
  free(c->point);
  free(c->order);
  *c = (struct ni_cell_sums){0};
}

static int64_t time_of_entry(const struct ni_entry *e) {
  return e->start_ns != NI_NO_START ? e->start_ns / 1000 : (int64_t)e->dump_us;
}

static uint32_t find_time_bin(const struct ni_summary *s, int64_t us, uint32_t bins) {
  if (bins < 2 || s->last_us <= s->first_us || us <= s->first_us)
    return 0;
  uint64_t k = (uint64_t)((double)(us - s->first_us) / (double)(s->last_us - s->first_us) * bins);
  return k >= bins ? bins - 1 : (uint32_t)k;
}

static int add_values(struct ni_dist *us, struct ni_dist *busbw, const struct ni_entry *e) {
  int bad = ni_dist_add(us, e->exec_ns);
  return bad < 0 || e->bytes_per_s == NI_NO_BW ? bad : ni_dist_add(busbw, e->bytes_per_s);
}

/* The row of a record in its bucket. */
static int find_or_add_bucket(const struct ni_cell_sums *c, struct ni_sums *t, const struct ni_op_part *p,
                              uint32_t comm, struct ni_bucket_row **out) {
  const struct ni_cell *cell = &c->s->cell[c->cell];
  const struct ni_bucket_row key = {
      .bucket = ni_bucket_of(ni_time_ns(p->e.start_ns, p->e.dump_us), c->r->opt.bucket_ns),
      .comm = comm,
      .log_group = c->s->process[p->process].log_group,
      .func = cell->func,
      .kind = (uint32_t)cell->kind,
      .timing = p->e.timing};
  return ni_bucket_find_or_add(&t->buckets, &key, out);
}

/* All records of an operation; it counts itself where its first one is. */
static int add_to_buckets(const struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                          uint32_t comm) {
  struct ni_bucket_row *row;
  uint32_t first = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < op->n; i++) {
    const struct ni_entry *x = &op->part[i].e, *f = &op->part[first].e;
    if (ni_time_ns(x->start_ns, x->dump_us) < ni_time_ns(f->start_ns, f->dump_us))
      first = i;
    if ((e = find_or_add_bucket(c, t, &op->part[i], comm, &row)) < 0)
      break;
    row->records++;
    ni_add_capped(&row->bytes, c->s->cell[c->cell].msg_bytes);
    if (!x->tail)
      ni_add_capped(&row->ns, x->exec_ns);
    if (x->exec_ns > row->max_ns)
      row->max_ns = x->exec_ns;
    if (x->bytes_per_s == NI_NO_BW)
      row->no_bandwidth++;
    else
      row->bytes_per_s += x->bytes_per_s;
  }
  if (e == 0 && (e = find_or_add_bucket(c, t, &op->part[first], comm, &row)) == 0)
    row->operations++;
  return e;
}

static int add_record(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_op_part *p, uint32_t comm) {
  struct ni_group_sums *g = ni_group_of(c, p->e.timing);
  if (!g)
    return -ENOMEM;
  g->records++;
  g->mix[p->e.mix]++;
  if (p->e.bytes_per_s == NI_NO_BW)
    g->no_bandwidth++;
  if (p->e.tail) {
    g->tails++;
    g->tail_ns += p->e.exec_ns;
  }
  int e = add_values(&g->us, &g->busbw, &p->e);
  if (e == 0 && g->bin) {
    struct ni_value_sums *b = &g->bin[find_time_bin(c->s, time_of_entry(&p->e), c->s->n_bins)];
    e = add_values(&b->us, &b->busbw, &p->e);
  }
  if (e == 0 && g->comm) {
    struct ni_value_sums *of_comm = ni_slice_of(&g->comm[comm]),
                         *of_process = ni_slice_of(&g->process[p->process]);
    if (!of_comm || !of_process)
      return -ENOMEM;
    e = add_values(&of_comm->us, &of_comm->busbw, &p->e);
    if (e == 0)
      e = add_values(&of_process->us, &of_process->busbw, &p->e);
  }
  struct ni_process_sums *ps = &t->process[p->process];
  ps->records++;
  if (!p->e.tail)
    ps->exec_ns += p->e.exec_ns;
  struct ni_comm_sums *cs = &t->comm[comm];
  int64_t us = time_of_entry(&p->e);
  if (!cs->any || us < cs->first_us)
    cs->first_us = us;
  if (!cs->any || us > cs->last_us)
    cs->last_us = us;
  cs->any = true;
  cs->records++;
  c->records++;
  t->records++;
  return e;
}

/* Larger loss first; then what cannot be the same twice. */
static bool is_worse(const struct ni_outlier *a, const struct ni_outlier *b) {
  if (a->lost_us != b->lost_us)
    return a->lost_us > b->lost_us;
  if (a->comm != b->comm)
    return a->comm < b->comm;
  if (a->sn != b->sn)
    return a->sn < b->sn;
  if (a->group != b->group)
    return a->group < b->group;
  return a->rank < b->rank;
}

/* For a heap with the least loss first. */
#define IS_LESS(a, b) is_worse(&(b), &(a))

void ni_keep_worst(struct ni_outlier *list, uint32_t *n, const struct ni_outlier *o) {
  if (*n == NI_SUM_OUTLIERS && !is_worse(o, &list[*n - 1]))
    return;
  uint32_t i = *n < NI_SUM_OUTLIERS ? (*n)++ : *n - 1;
  for (; i > 0 && is_worse(o, &list[i - 1]); i--)
    list[i] = list[i - 1];
  list[i] = *o;
}

void ni_sums_keep_late(struct ni_sums *t, const struct ni_outlier *o) {
  if (t->n_late < NI_SUM_LATE) {
    t->late[t->n_late++] = *o;
    ni_heap_up(t->late, t->n_late - 1, IS_LESS);
  } else if (is_worse(o, &t->late[0])) {
    t->late[0] = *o;
    ni_heap_down(t->late, t->n_late, 0, IS_LESS);
  }
}

/* Durations in order, the number of the part in the low bits lost: parts look themselves up by value. */
static int sort_durations(struct ni_cell_sums *c, const struct ni_operation *op) {
  if (2 * (size_t)op->n > c->cap_order &&
      !ni_array_more(&c->order, &c->cap_order, 2 * (size_t)op->n, sizeof *c->order))
    return -ENOMEM;
  for (uint32_t i = 0; i < op->n; i++)
    c->order[i] = op->part[i].e.exec_ns;
  ni_sort_numbers(c->order, c->order + op->n, op->n);
  return 0;
}

/* Twice the median of all durations but one of value v: whole numbers stay whole. */
static uint64_t double_peers_median(const uint64_t *order, uint32_t n, uint64_t v) {
  uint32_t m = n - 1, lo = (m - 1) / 2, hi = m / 2;
  /*
   * Leaving out v shifts all places at or behind its own by one. v < order[k] says that its place is before
   * k.
   */
  uint64_t a = v <= order[lo] ? order[lo + 1] : order[lo], b = v <= order[hi] ? order[hi + 1] : order[hi];
  return a + b;
}

/* Longer says no more than that, so that the sums of squares hold. */
#define LONGEST_US 100000
static int64_t clamp_us(int64_t us) {
  if (us > LONGEST_US)
    return LONGEST_US;
  return us < -LONGEST_US ? -LONGEST_US : us;
}

/*
 * Who came last, by what each kernel waited for its peers on its own clock: clocks of hosts have no part in
 * it.
 */
static int compare_waits(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op) {
  if (2 * (size_t)op->n > c->cap_order &&
      !ni_array_more(&c->order, &c->cap_order, 2 * (size_t)op->n, sizeof *c->order))
    return -ENOMEM;
  for (uint32_t i = 0; i < op->n; i++) {
    if (op->part[i].e.peer_or_wait <= 0)
      return 0; /* kernels without phases may be among them */
    c->order[i] = (uint64_t)op->part[i].e.peer_or_wait - 1;
  }
  ni_sort_numbers(c->order, c->order + op->n, op->n);
  for (uint32_t i = 0; i < op->n; i++) {
    struct ni_process_sums *ps = &t->process[op->part[i].process];
    const uint64_t own = (uint64_t)op->part[i].e.peer_or_wait - 1;
    int64_t us = ((int64_t)(double_peers_median(c->order, op->n, own) / 2) - (int64_t)own) / 1000;
    us = clamp_us(us);
    ps->timed_waits++;
    ps->behind_ns += (uint64_t)(us * 1000);
    ps->behind_us2 += (uint64_t)(us * us);
  }
  return 0;
}

bool ni_func_has_root(const char *func) {
  return strcmp(func, "Broadcast") == 0 || strcmp(func, "Reduce") == 0 || strcmp(func, "Gather") == 0 ||
      strcmp(func, "Scatter") == 0;
}

/*
 * All ranks of a collective end it together, so who began it so much later has so much shorter a duration: no
 * clock of another host is asked.
 */
static void add_delay(struct ni_seat_sums *seat, uint64_t peers_twice_ns, uint64_t exec_ns) {
  int64_t us = (int64_t)(peers_twice_ns / 2 - exec_ns) / 1000;
  us = clamp_us(us);
  seat->met++;
  seat->behind_us += (uint64_t)us;
  seat->behind_us2 += (uint64_t)(us * us);
}

/* Without the last one all would have waited for the next. */
static void add_lead_of_last(const struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                             uint32_t last) {
  const struct ni_op_part *l = &op->part[last];
  const uint32_t host = c->s->process[l->process].host;
  uint64_t elsewhere = UINT64_MAX;
  for (uint32_t i = 0; i < op->n; i++)
    if (c->s->process[op->part[i].process].host != host && op->part[i].e.exec_ns < elsewhere)
      elsewhere = op->part[i].e.exec_ns;
  t->seat[l->seat].last++;
  t->seat[l->seat].alone_ns += c->order[1] - c->order[0];
  if (elsewhere != UINT64_MAX)
    t->seat[l->seat].host_alone_ns += elsewhere - l->e.exec_ns;
}

/* Of sampled logs, by size: how much longer than the last one the next one was in it. */
static int add_lead_by_size(const struct ni_cell_sums *c, const struct ni_operation *op,
                            struct ni_group_sums *g, uint32_t last) {
  for (uint32_t i = 0; i < op->n && c->s->one_in > 1 && g->process; i++) {
    struct ni_value_sums *of_process = ni_slice_of(&g->process[op->part[i].process]);
    if (!of_process)
      return -ENOMEM;
    of_process->met++;
    if (i == last)
      of_process->alone_ns += c->order[1] - c->order[0];
  }
  return 0;
}

/*
 * Of sampled logs: its least duration is its transfer between hosts, as all ranks are there. first: who has
 * it.
 */
static int add_crossing(const struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                        uint32_t comm, uint32_t first) {
  const bool is_wanted = c->s->one_in > 1 && !c->r->team && c->s->comm[comm].one_host < 0;
  const struct ni_entry *e = &op->part[first].e;
  if (!is_wanted || op->n < (uint32_t)c->r->who.comm[op->comm].n_ranks)
    return 0;
  return ni_crossings_add(&t->crossings,
                          &(struct ni_crossing){.at_us = time_of_entry(e),
                                                .sn = op->sn,
                                                .comm = comm,
                                                .cell = c->cell,
                                                .us = (float)e->exec_ns / 1e3f});
}

/* A rank that came clearly later than its peers: twice: theirs, doubled; keep: it may be an outlier. */
static int add_late(const struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                    uint32_t comm, const struct ni_op_part *p, uint64_t twice, bool keep) {
  struct ni_process_sums *ps = &t->process[p->process];
  const uint64_t lost = twice / 2 - p->e.exec_ns;
  ps->late++;
  ps->late_ns += lost;
  if (c->r->opt.bucket_ns) {
    struct ni_bucket_row *row;
    const int e = find_or_add_bucket(c, t, p, comm, &row);
    if (e < 0)
      return e;
    row->late++;
    row->late_ns += lost;
  }
  const struct ni_outlier o = {.kind = NI_OUTLIER_LATE,
                               .group = c->cell * NI_TIMING_COUNT + p->e.timing,
                               .comm = comm,
                               .process = p->process,
                               .rank = p->rank,
                               .sn = op->sn,
                               .us = (double)p->e.exec_ns / 1000,
                               .peers_us = (double)twice / 2000,
                               .lost_us = (double)(twice - 2 * p->e.exec_ns) / 2000,
                               .time_us = time_of_entry(&p->e),
                               .start_ns = p->e.start_ns};
  if (keep)
    ni_sums_keep_late(t, &o);
  return 0;
}

static void add_heat(const struct ni_cell_sums *c, const struct ni_op_part *p, uint64_t ppm,
                     struct ni_heat *heat, int64_t *heat_ppm) {
  if (!heat->rows)
    return;
  const size_t at = (size_t)p->process * heat->bins + find_time_bin(c->s, time_of_entry(&p->e), heat->bins);
  __atomic_fetch_add(&heat_ppm[at], (int64_t)ppm, __ATOMIC_RELAXED);
  __atomic_fetch_add(&heat->count[at], 1, __ATOMIC_RELAXED);
}

/* The operation's transfer is its least duration; first: who has it. */
static int add_transfer(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                        uint32_t comm, struct ni_group_sums *g, uint32_t first) {
  const struct ni_op_part *shortest = &op->part[first];
  const uint64_t least = shortest->e.exec_ns;
  if (g->comm) {
    struct ni_value_sums *of_comm = ni_slice_of(&g->comm[comm]);
    if (!of_comm)
      return -ENOMEM;
    of_comm->met++;
    of_comm->transfer_ns += least;
  }
  t->comm[comm].transfer_ns += least;
  const int e = add_crossing(c, t, op, comm, first);
  if (e < 0)
    return e;
  const struct ni_outlier slow = {.kind = NI_OUTLIER_SLOW,
                                  .group = shortest->e.timing,
                                  .comm = comm,
                                  .process = shortest->process,
                                  .rank = shortest->rank,
                                  .sn = op->sn,
                                  .us = (double)least / 1000,
                                  .lost_us = (double)least / 1000,
                                  .time_us = time_of_entry(&shortest->e),
                                  .start_ns = shortest->e.start_ns};
  ni_keep_worst(g->slow, &g->n_slow, &slow);
  return ni_dist_add(&g->transfer, least);
}

static int compare_ranks(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                         uint32_t comm, struct ni_group_sums *g, struct ni_heat *heat, int64_t *heat_ppm) {
  int e = sort_durations(c, op);
  if (e < 0)
    return e;
  uint64_t sum = 0;
  uint32_t first = 0;
  const bool alike = !ni_func_has_root(c->s->cell[c->cell].func);
  while (op->part[first].e.exec_ns != c->order[0])
    first++;
  if (alike) {
    add_lead_of_last(c, t, op, first);
    e = add_lead_by_size(c, op, g, first);
    if (e < 0)
      return e;
  }
  for (uint32_t i = 0; i < op->n; i++) {
    const struct ni_op_part *p = &op->part[i];
    struct ni_process_sums *ps = &t->process[p->process];
    const uint64_t twice = double_peers_median(c->order, op->n, p->e.exec_ns);
    const uint64_t ppm = (uint64_t)((unsigned __int128)p->e.exec_ns * 2000000 / twice);
    const bool is_first = i == first;
    if (alike)
      add_delay(&t->seat[p->seat], twice, p->e.exec_ns);
    sum += p->e.exec_ns;
    ps->compared++;
    ps->relative_ppm += ppm;
    ps->shortest += is_first;
    /* with incidents: the last one, all waited for it; a root that waits for requests is not late */
    const bool is_kept = c->s->by_own_time ? is_first : alike || !c->s->steps_differ;
    if (p->e.exec_ns * 200 < twice * LATE_PERCENT)
      e = add_late(c, t, op, comm, p, twice, is_kept);
    if (e < 0)
      return e;
    add_heat(c, p, ppm, heat, heat_ppm);
  }
  t->comm[comm].kernel_ns += sum;
  return add_transfer(c, t, op, comm, g, first);
}

/* Last stop - first start. The ranks of a collective overlap; where they do not, their clocks disagree. */
static int add_job_time(struct ni_sums *t, const struct ni_operation *op, uint32_t comm,
                        struct ni_group_sums *g) {
  int64_t first = INT64_MAX, last = INT64_MIN, latest_start = INT64_MIN, earliest_stop = INT64_MAX;
  struct ni_comm_sums *cs = &t->comm[comm];
  for (uint32_t i = 0; i < op->n; i++) {
    const struct ni_entry *e = &op->part[i].e;
    if (e->start_ns == NI_NO_START) {
      cs->no_start = true;
      return 0;
    }
    int64_t stop = e->start_ns + (int64_t)e->exec_ns;
    if (e->start_ns < first)
      first = e->start_ns;
    if (e->start_ns > latest_start)
      latest_start = e->start_ns;
    if (stop > last)
      last = stop;
    if (stop < earliest_stop)
      earliest_stop = stop;
  }
  if (first < cs->first_ns || cs->first_ns > cs->last_ns)
    cs->first_ns = first;
  if (last > cs->last_ns)
    cs->last_ns = last;
  if (op->n < 2)
    return 0;
  if (latest_start > earliest_stop) {
    t->clocks_disagree++;
    return 0;
  }
  return ni_dist_add(&g->job, (uint64_t)(last - first));
}

/*
 * Which operations are points: those whose number of what they are can be divided by the stride. So it
 * depends on no order.
 */
static uint64_t hash_point(const struct ni_cell_sums *c, const struct ni_point *p) {
  return ni_mix(ni_mix(p->sn + 1) ^ (uint64_t)p->time_us) ^ ni_mix(c->s->comm[p->comm].hash);
}

/* From now on half as many. */
static void thin_out_points(struct ni_cell_sums *c) {
  uint32_t n = 0;
  c->stride *= 2;
  for (uint32_t i = 0; i < c->n_points; i++)
    if (hash_point(c, &c->point[i]) % c->stride == 0)
      c->point[n++] = c->point[i];
  c->n_points = n;
}

static int add_point(struct ni_cell_sums *c, const struct ni_point *p) {
  if (!c->series)
    return 0;
  if (!c->point && !(c->point = malloc(NI_SUM_SCATTER * sizeof *c->point)))
    return -ENOMEM;
  if (c->stride == 0)
    c->stride = 1;
  for (; hash_point(c, p) % c->stride == 0; thin_out_points(c)) {
    if (c->n_points == NI_SUM_SCATTER && c->stride < 1u << 30)
      continue;
    if (c->n_points < NI_SUM_SCATTER)
      c->point[c->n_points++] = *p;
    break;
  }
  return 0;
}

static int compare_points(const void *a, const void *b) {
  const struct ni_point *x = a, *y = b;
  return NI_BY(x, y, sn, comm);
}

void ni_comm_sums_add(struct ni_comm_sums *to, const struct ni_comm_sums *from) {
  if (from->any && (!to->any || from->first_us < to->first_us))
    to->first_us = from->first_us;
  if (from->any && (!to->any || from->last_us > to->last_us))
    to->last_us = from->last_us;
  to->any = to->any || from->any;
  ni_add_counts(to->added, from->added);
  if (from->max_ranks > to->max_ranks)
    to->max_ranks = from->max_ranks;
  if (from->first_ns < to->first_ns)
    to->first_ns = from->first_ns;
  if (from->last_ns > to->last_ns)
    to->last_ns = from->last_ns;
  to->no_start = to->no_start || from->no_start;
}

int ni_points_add(struct ni_cell_sums *c, const void *points, uint32_t n, uint64_t stride) {
  const bool both = c->n_points > 0;
  int e = 0;
  while (c->stride < stride)
    if (c->stride == 0)
      c->stride = 1;
    else
      thin_out_points(c);
  for (uint32_t i = 0; e == 0 && i < n; i++) {
    struct ni_point p;
    memcpy(&p, (const char *)points + i * sizeof p, sizeof p);
    e = add_point(c, &p);
  }
  if (both)
    qsort(c->point, c->n_points, sizeof *c->point, compare_points);
  return e;
}

int ni_cell_add(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                double mean_bytes_per_s, struct ni_heat *heat, int64_t *heat_ppm) {
  uint32_t comm = c->r->comm_at[op->comm];
  bool p2p = c->s->cell[c->cell].kind == NI_KIND_P2P;
  unsigned seen = 0, timing = op->part[0].e.timing;
  bool tagged = false, tail = false;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < op->n; i++) {
    seen |= 1u << op->part[i].e.timing;
    tagged |= op->part[i].e.tag != 0;
    tail |= op->part[i].e.tail;
    e = add_record(c, t, &op->part[i], comm);
  }
  if (e == 0 && c->r->opt.bucket_ns)
    e = add_to_buckets(c, t, op, comm);
  if (e == 0 && tagged && !c->r->opt.compat)
    e = ni_tag_sums_count(&t->tags, op, c->s->cell[c->cell].msg_bytes, ni_name_text(&c->r->names, 0));
  for (int i = 0; i < NI_TIMING_COUNT; i++)
    if (seen & 1u << i && c->group[i])
      c->group[i]->operations++;
  if (e == 0 && !isnan(mean_bytes_per_s)) {
    e = ni_dist_add(&c->busbw, (uint64_t)llround(mean_bytes_per_s * 1000));
    if (e == 0)
      e = add_point(
          c,
          &(struct ni_point){op->sn, comm, (float)(mean_bytes_per_s / 1e9), time_of_entry(&op->part[0].e)});
  }
  struct ni_comm_sums *cs = &t->comm[comm];
  c->operations++;
  t->operations++;
  cs->operations++;
  if (p2p || e < 0)
    return e;
  if (op->n > cs->max_ranks)
    cs->max_ranks = op->n;
  if (op->n < (uint32_t)c->r->who.comm[op->comm].n_ranks)
    cs->partial++;
  /* Durations by different clocks are not compared. */
  if (seen & (seen - 1))
    return 0;
  /* the kernel's ranks are compared, and its time is counted, where its first call is */
  if (tail)
    return 0;
  /* the bracket around the enqueue says nothing of the kernel */
  if (timing == NI_TIMING_COLLECTIVE_CPU)
    return 0;
  cs->timed++;
  cs->timed_bytes += c->s->cell[c->cell].msg_bytes;
  if (op->n > 1) {
    e = compare_ranks(c, t, op, comm, c->group[timing], heat, heat_ppm);
    if (e == 0)
      e = compare_waits(c, t, op);
  } else {
    cs->transfer_ns += op->part[0].e.exec_ns;
    cs->kernel_ns += op->part[0].e.exec_ns;
  }
  return e < 0 ? e : add_job_time(t, op, comm, c->group[timing]);
}
