#include "clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

#define SAMPLES 3 /* fewer say nothing: one rank may have been late to see an end */

/* ---- moving times ---- */

static void move(uint64_t *at, int64_t by_ns) {
  if (*at && (by_ns >= 0 || *at > (uint64_t)-by_ns)) *at += (uint64_t)by_ns;
}

static void move_op(struct ni_hang_op *op, int64_t by_ns) {
  move(&op->enqueue_ns, by_ns);
  move(&op->seen_ns, by_ns);
}

void ni_hang_move_process(struct ni_hang_process *p, int64_t by_ns) {
  move(&p->alive_ns, by_ns);
  move(&p->look_ns, by_ns);
  move(&p->file_ns, by_ns);
  move(&p->ended_ns, by_ns);
}

void ni_hang_move_member(struct ni_hang_member *x, int64_t by_ns) {
  for (size_t i = 0; i < x->n_recent; i++) move_op(&x->recent[i], by_ns);
  for (size_t i = 0; i < x->n_open; i++) move_op(&x->open[i], by_ns);
  for (int k = 0; k < NI_KIND_COUNT; k++) move(&x->passed_ns[k], by_ns);
  move(&x->started_ns, by_ns);
  move(&x->ended_ns, by_ns);
  move(&x->open_ns, by_ns);
  move(&x->active_ns, by_ns);
  move(&x->log_ns, by_ns);
  move(&x->end_ns, by_ns);
}

/* ---- comparing hosts ---- */

/* host[b]'s clock minus host[a]'s, as one collective says, or the middle of those. a < b. */
struct difference {
  uint32_t a, b;
  int64_t ns;
};

static NI_ORDER_BY(by_hosts, struct difference, a, b, ns)

struct hosts {
  const struct ni_hang_model *m;
  uint32_t *of_process; /* number of each process's host */
  size_t n;
  struct difference *at;
  size_t n_at, cap;
  int64_t *offset; /* of each host */
  bool *reached;
};

static int by_host(const void *a, const void *b, void *arg) {
  const struct ni_hang_model *m = arg;
  return strcmp(m->process[*(const uint32_t *)a].who->host, m->process[*(const uint32_t *)b].who->host);
}

static int number_hosts(struct hosts *h) {
  const struct ni_hang_model *m = h->m;
  uint32_t *order = ni_order((uint32_t)m->n_processes, by_host, (void *)(uintptr_t)m);
  h->of_process = calloc(m->n_processes + 1, sizeof *h->of_process);
  for (size_t i = 0; order && h->of_process && i < m->n_processes; i++) {
    h->n += i == 0 || strcmp(m->process[order[i]].who->host, m->process[order[i - 1]].who->host) != 0;
    h->of_process[order[i]] = (uint32_t)h->n - 1;
  }
  free(order);
  return order && h->of_process ? 0 : -ENOMEM;
}

static const struct ni_hang_op *same_op(const struct ni_hang_member *x, const struct ni_hang_op *op) {
  for (uint32_t i = 0; i < x->n_recent; i++)
    if (ni_hang_is(&x->recent[i], op->func, op->sn) && x->recent[i].seen_ns) return &x->recent[i];
  return NULL;
}

/* Data flows one way in these: their root is done long before the others. */
static bool has_one_end(const struct ni_hang_model *m, const struct ni_hang_op *op) {
  static const char *const other[] = {"Broadcast", "Reduce", "Gather", "Scatter"};
  for (size_t i = 0; i < sizeof other / sizeof *other; i++)
    if (strcmp(ni_hang_text(m, op->func), other[i]) == 0) return false;
  return true;
}

/* What two members of one communicator, on two hosts, say of each other's clock. */
static int compare(struct hosts *h, const struct ni_hang_member *x, const struct ni_hang_member *y) {
  uint32_t a = h->of_process[x->who->process], b = h->of_process[y->who->process];
  if (a == b) return 0;
  for (uint32_t i = 0; i < x->n_recent; i++) {
    const struct ni_hang_op *op = &x->recent[i],
                            *same = op->seen_ns && has_one_end(h->m, op) ? same_op(y, op) : NULL;
    if (!same) continue;
    if (!ni_array_room(h->at, h->n_at, h->cap)) return -ENOMEM;
    int64_t ns = (int64_t)(same->seen_ns - op->seen_ns);
    h->at[h->n_at++] = a < b ? (struct difference){a, b, ns} : (struct difference){b, a, -ns};
  }
  return 0;
}

/* A member, and how often its rank was one of that communicator: a job that began again may have the same hash. */
struct life {
  const struct ni_hang_member *x;
  uint32_t lives, number; /* number: which of these it is */
};

static NI_ORDER_BY(by_rank, struct life, x->who->comm, x->who->rank, x->active_ns, x->who->process)
static NI_ORDER_BY(by_place_of, struct life, x->who->comm, x->who->rank)
static NI_ORDER_BY(by_turn, struct life, x->who->comm, lives, number)
static NI_ORDER_BY(by_number, struct life, x->who->comm, lives, number, x->who->rank, x->who->process)

/* For free(); NULL: no memory. Those of one communicator whose ranks have as many lives lie together by their number. */
static struct life *order_lives(const struct ni_hang_model *m, size_t *n) {
  struct life *all = calloc(m->n_members + 1, sizeof *all);
  bool several = false;
  *n = 0;
  for (size_t i = 0; all && i < m->n_members; i++)
    if (!m->member[i]->dump) all[(*n)++].x = m->member[i];
  if (*n > 1) qsort(all, *n, sizeof *all, by_rank);
  for (size_t i = 0, end; i < *n; i = end) {
    for (end = i + 1; end < *n && by_place_of(&all[end], &all[i]) == 0; end++) {}
    for (size_t k = i; k < end; k++) all[k].lives = (uint32_t)(end - i), all[k].number = (uint32_t)(k - i);
    several |= end - i > 1;
  }
  if (several) qsort(all, *n, sizeof *all, by_number);
  return all;
}

/* Each member with the first one of its communicator that has as many lives, in the same one of them: between two runs of a
 * job lies time that is no difference of clocks. */
static int gather(struct hosts *h) {
  size_t n;
  struct life *all = order_lives(h->m, &n), *first = all;
  int e = all ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++) {
    if (by_turn(first, &all[i]) != 0) first = &all[i];
    else e = compare(h, first->x, all[i].x);
  }
  free(all);
  return e;
}

/* Of each two hosts the middle difference, where there are enough. */
static void take_middles(struct hosts *h) {
  size_t kept = 0;
  if (h->n_at > 1) qsort(h->at, h->n_at, sizeof *h->at, by_hosts);
  for (size_t i = 0, end; i < h->n_at; i = end) {
    for (end = i + 1; end < h->n_at && h->at[end].a == h->at[i].a && h->at[end].b == h->at[i].b; end++) {}
    if (end - i >= SAMPLES) h->at[kept++] = h->at[i + (end - i) / 2];
  }
  h->n_at = kept;
}

/* Hosts that can be compared with one another get their offsets to the first of them. */
static void spread(struct hosts *h) {
  for (size_t first = 0; first < h->n; first++) {
    bool more = !h->reached[first];
    h->reached[first] = true;
    while (more) {
      more = false;
      for (size_t i = 0; i < h->n_at; i++) {
        const struct difference *d = &h->at[i];
        if (h->reached[d->a] == h->reached[d->b]) continue;
        if (h->reached[d->a]) h->offset[d->b] = h->offset[d->a] + d->ns;
        else h->offset[d->a] = h->offset[d->b] - d->ns;
        h->reached[d->a] = h->reached[d->b] = more = true;
      }
    }
  }
}

/* The clock that most agree with: the middle one. */
static int64_t middle(const struct hosts *h) {
  int64_t *sorted = malloc((h->n + 1) * sizeof *sorted), m = 0;
  if (!sorted) return 0;
  memcpy(sorted, h->offset, h->n * sizeof *sorted);
  qsort(sorted, h->n, sizeof *sorted, ni_by_i64);
  m = h->n ? sorted[(h->n - 1) / 2] : 0;
  free(sorted);
  return m;
}

static void put_right(struct hosts *h, struct ni_hang_model *m) {
  int64_t right = middle(h);
  for (size_t i = 0; i < m->n_processes; i++) {
    int64_t ahead = h->offset[h->of_process[i]] - right;
    if (ahead > -NI_HANG_SKEW_NS && ahead < NI_HANG_SKEW_NS) continue;
    m->process[i].skew_ns = ahead;
    ni_hang_move_process(&m->process[i], -ahead);
  }
  for (size_t i = 0; i < m->n_members; i++) {
    int64_t ahead = m->process[m->member[i]->who->process].skew_ns;
    if (ahead) ni_hang_move_member(m->member[i], -ahead);
  }
}

int ni_hang_align_clocks(struct ni_hang_model *m) {
  struct hosts h = {.m = m};
  int e = number_hosts(&h);
  if (e == 0 && h.n > 1) {
    e = gather(&h);
    h.offset = calloc(h.n, sizeof *h.offset);
    h.reached = calloc(h.n, sizeof *h.reached);
    if (!h.offset || !h.reached) e = -ENOMEM;
    if (e == 0) {
      take_middles(&h);
      spread(&h);
      put_right(&h, m);
    }
  }
  free(h.of_process);
  free(h.at);
  free(h.offset);
  free(h.reached);
  return e;
}
