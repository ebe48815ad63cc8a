#include "rows.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/map.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/put.h"

#define TEXT(kind, member, bytes, key, head, drop) \
  {key, offsetof(struct ni_top_##kind, member), bytes, head, 0, drop},
#define NUMBER(kind, member, key, head, unit, drop) \
  {key, offsetof(struct ni_top_##kind, member), 0, head, unit, drop},
static const struct ni_top_field job[] = {NI_TOP_JOB(TEXT, NUMBER)}, gpu[] = {NI_TOP_GPU(TEXT, NUMBER)},
                                 nic[] = {NI_TOP_NIC(TEXT, NUMBER)}, rank[] = {NI_TOP_RANK(TEXT, NUMBER)};
#define TABLE(list, kind) {list, kind, sizeof kind / sizeof *kind, sizeof(struct ni_top_##kind)}
const struct ni_top_table ni_top_tables[] = {TABLE("jobs", job), TABLE("gpus", gpu), TABLE("nics", nic),
                                             TABLE("ranks", rank)};
const char *const ni_top_sort_names[] = {"rank", "age", "bandwidth", "late"};

/*
 * Nodes are sampled a second apart, and asked at slightly different times. Starts that lie that close
 * together say nothing about order.
 */
enum { APART_MS = 2000, ONE_LOOK_MS = 100, LONG_S = 5, NAMED = 3 };

/* NAN goes last. */
static int by_number(double a, double b) {
  return isnan(a) || isnan(b) ? isnan(a) - isnan(b) : (a > b) - (a < b);
}

/* Who is to blame comes before who waits. */
static double age_of(const struct ni_top_rank *r) {
  return r->tone == NI_TOP_CULPRIT || r->alive == 0 ? INFINITY : r->age;
}

/* GPUs and NICs: by node, which is their first member, and by the column after that. */
static int by_name(const void *x, const void *y, void *column) {
  const struct ni_top_field *c = column;
  const char *a = *(const char *const *)x, *b = *(const char *const *)y, *p = a + c->at, *q = b + c->at;
  return strverscmp(a, b)
      ?: c->text ? strverscmp(p, q)
                 : by_number(*(const double *)(const void *)p, *(const double *)(const void *)q);
}

static int by_sort(const void *x, const void *y, void *top) {
  const struct ni_top_rank *a = *(struct ni_top_rank *const *)x, *b = *(struct ni_top_rank *const *)y;
  enum ni_top_sort sort = ((const struct ni_top *)top)->sort;
  int c = 0;
  if (sort == NI_TOP_BY_AGE)
    c = by_number(-age_of(a), -age_of(b));
  else if (sort == NI_TOP_BY_LATE)
    c = by_number(-a->late, -b->late);
  else if (sort == NI_TOP_BY_BANDWIDTH)
    c = by_number(a->bus, b->bus);
  c = c ?: strverscmp(a->label, b->label) ?: by_number(a->rank, b->rank);
  return c ?: strverscmp(a->node, b->node) ?: strcmp(a->comm, b->comm);
}

static int is_same_comm(const struct ni_top_rank *a, const struct ni_top_rank *b) {
  return strcmp(a->label, b->label) ?: strcmp(a->comm_id, b->comm_id);
}

static int by_collectives(const void *x, const void *y) {
  const struct ni_top_rank *a = *(struct ni_top_rank *const *)x, *b = *(struct ni_top_rank *const *)y;
  return is_same_comm(a, b) ?: by_number(a->collectives, b->collectives) ?: by_number(a->rank, b->rank);
}

static double rank_number(const struct ni_top_rank *r) { return r->rank >= 0 ? r->rank : r->comm_rank; }

/* Appends the first of `behind` ranks, and how many more there are. */
static void append_ranks(struct ni_put_text *w, struct ni_top_rank *const *first, size_t behind, bool whole) {
  size_t named = behind > NAMED + 1 ? NAMED : behind;
  for (size_t k = 0; k < named; k++) {
    ni_put(w, whole ? "%srank %.0f" : "%sr%.0f", k ? ", " : "", rank_number(first[k]));
    if (whole)
      ni_put(w, " (%s)", first[k]->node);
  }
  if (behind > named)
    ni_put(w, ", +%zu", behind - named);
}

static uint64_t hash_numbered(uint64_t name, double number) {
  return ni_hash(name, (uint64_t)(int64_t)(number >= 0 ? number : -1));
}

/* Of one communicator: who has waited there for the longest of those that wait for 5 s. */
struct long_wait {
  struct ni_top_rank *const *first; /* those of the communicator, by `collectives` */
  const struct ni_top_rank *oldest; /* NULL: nobody */
  size_t waiting, behind; /* how many wait; so many from the first on have not come to the oldest's call */
};

static bool is_inside(const struct ni_top_rank *r, double least_s) {
  const bool is_message = strcmp(r->function, "Send") == 0 || strcmp(r->function, "Recv") == 0;
  return r->alive != 0 && r->call < r->collectives && r->age >= least_s && !is_message;
}

/* A rank of a job, in whichever communicator. Its number there is of that communicator alone. */
static uint64_t name_rank(const struct ni_top_rank *r) {
  return hash_numbered(ni_hash_text(ni_hash_text(1, r->label), r->node), r->rank);
}

/*
 * Finds who waits for whom in the communicator of n rows from first on. Ranks that have not come to the call
 * that another rank of it is in are at the beginning of a list ordered by `collectives`. waits: ranks that
 * wait for somebody are added; without memory one is not, and then counts as one that others wait for.
 */
static struct long_wait find_waits_of_comm(struct ni_top_rank **first, size_t n, double least_s,
                                           struct ni_map *waits) {
  struct long_wait l = {.first = first};
  double most = -1, long_most = -1;
  for (size_t i = 0, behind; i < n; i++) {
    struct ni_top_rank *r = first[i];
    struct ni_put_text w = {r->waits, sizeof r->waits};
    if (!is_inside(r, least_s))
      continue;
    ni_array_search(behind, n, first[behind]->collectives <= r->call);
    append_ranks(&w, first, behind, false);
    most = fmax(most, r->call);
    if (behind && r->rank >= 0)
      (void)ni_map_find_or_add(waits, name_rank(r), 0, 0);
    if (!behind || !(r->age >= LONG_S))
      continue;
    long_most = fmax(long_most, r->call);
    l.waiting++;
    if (!l.oldest || r->age > l.oldest->age) {
      l.oldest = r;
      l.behind = behind;
    }
  }
  for (size_t i = 0; i < n && first[i]->collectives <= most; i++)
    if (first[i]->alive != 0)
      first[i]->tone = first[i]->collectives <= long_most ? NI_TOP_CULPRIT : NI_TOP_WAITED;
  return l;
}

/*
 * Ranks that have not come and that wait for nobody elsewhere go to the front of `named`, which has room for
 * all of the communicator. Returns how many they are; 0: each of them waits for others.
 */
static size_t find_culprits(const struct long_wait *l, const struct ni_map *waits,
                            struct ni_top_rank **named) {
  size_t n = 0;
  for (size_t i = 0; i < l->behind; i++)
    if (l->first[i]->rank < 0 || ni_map_get(waits, name_rank(l->first[i]), 0) < 0)
      named[n++] = l->first[i];
  return n;
}

static void say_wait(struct ni_top *t, const struct long_wait *l, struct ni_top_rank *const *named,
                     size_t n) {
  const struct ni_top_rank *oldest = l->oldest;
  struct ni_put_text w = {t->waits, sizeof t->waits};
  char text[32];
  ni_put(&w, "job %s: %zu %s in %s of %s for %s; not there: ", oldest->label, l->waiting,
         ni_plural(l->waiting, "rank waits", "ranks wait"), oldest->function,
         *oldest->comm ? oldest->comm : oldest->comm_id, ni_duration_text(oldest->age * 1e6, text));
  append_ranks(&w, named, n, true);
}

/*
 * Says for whom the others wait: of the communicators in which somebody is missing who waits for nobody else,
 * in the one that waits for the longest. Where each waits for another one, in the one that waits for longest.
 */
static void find_waiting(struct ni_top *t, size_t n) {
  const double least_s = (t->nodes > 1 ? APART_MS : ONE_LOOK_MS) / 1e3;
  struct long_wait *of = malloc((n + 1) * sizeof *of);
  struct ni_top_rank **named = malloc((n + 1) * sizeof *named);
  struct ni_map waits = {0};
  size_t n_comms = 0;
  double longest = 0;
  bool is_root = false;
  *t->waits = 0;
  qsort(t->by_comm, n, sizeof *t->by_comm, by_collectives);
  for (size_t from = 0, to; of && from < n; from = to) {
    for (to = from; to < n && is_same_comm(t->by_comm[from], t->by_comm[to]) == 0;)
      to++;
    of[n_comms++] = find_waits_of_comm(t->by_comm + from, to - from, least_s, &waits);
  }
  for (size_t i = 0; named && i < n_comms; i++) {
    const struct long_wait *l = &of[i];
    const size_t culprits = l->oldest ? find_culprits(l, &waits, named) : 0;
    const bool is_better =
        l->oldest && (culprits > 0) >= is_root && ((culprits > 0) > is_root || l->oldest->age > longest);
    if (!is_better)
      continue;
    longest = l->oldest->age;
    is_root = culprits > 0;
    say_wait(t, l, is_root ? named : l->first, is_root ? culprits : l->behind);
  }
  ni_map_free(&waits);
  free(named);
  free(of);
}

/* Is the rank to be shown? */
static bool add_rank(struct ni_top *t, const struct ni_top_source *s, struct ni_top_rank *r,
                     struct ni_map seen[4], size_t *n_comm) {
  int64_t g = ni_map_get(seen + 3, hash_numbered(ni_hash_text(0, r->node), r->gpu), 0);
  const struct ni_top_gpu *own = r->gpu >= 0 && g >= 0 ? t->item[NI_TOP_GPUS][g] : NULL;
  const char *filter = t->filter;
  struct ni_put_text w = {r->label, sizeof r->label};
  ni_put(&w, *r->attempt && strcmp(r->attempt, "0") != 0 ? "%s#%s" : "%s", r->job, r->attempt);
  if (t->users && r->uid >= 0)
    ni_put(&w, " (uid %.0f)", r->uid);
  uint64_t name = ni_hash_text(1, r->label);
  (void)ni_map_find_or_add(seen, ni_hash_text(0, r->node), 0, 0);
  (void)ni_map_find_or_add(seen + 1, name, 0, 0);
  (void)ni_map_find_or_add(seen + 2, hash_numbered(name, r->rank), 0, 0);
  t->in_flight += r->in_flight > 0 ? r->in_flight : 0;
  t->stuck += r->stuck > 0 ? r->stuck : 0;
  if (r->alive == 0)
    memcpy(r->state, "killed", sizeof "killed");
  r->busy = own ? own->busy : NAN;
  r->clock = own ? own->clock : NAN;
  if (r->late > 1)
    r->late = 1; /* an agent of an older release counts waiting for several at once as often */
  r->tone = *s->error ? NI_TOP_GREY : r->stuck > 0 || r->alive == 0 ? NI_TOP_ALERT : NI_TOP_PLAIN;
  *r->waits = 0;
  if (!*s->error && *r->comm_id && !isnan(r->collectives))
    t->by_comm[(*n_comm)++] = r;
  return !*filter || strcasestr(r->job, filter) || strcasestr(r->node, filter) ||
      strcasestr(r->comm, filter) || strcasestr(r->function, filter);
}

/* What is counted while rows are taken. */
struct row_counts {
  struct ni_map seen[4]; /* nodes, jobs, ranks; GPUs */
  size_t n_comm;
  double uid; /* of the last job; NAN: none yet */
};

/* Takes a row of the source, unless the filter leaves it out. */
static void take_row(struct ni_top *t, struct ni_top_source *from, int kind, void *item,
                     struct row_counts *counts) {
  const struct ni_top_gpu *g = item;
  struct ni_top_nic *c = item;
  const struct ni_top_job *j = item;
  if (kind == NI_TOP_JOBS && j->uid >= 0) {
    t->users |= counts->uid >= 0 && j->uid != counts->uid;
    counts->uid = j->uid;
  }
  if (kind == NI_TOP_RANKS && !add_rank(t, from, item, counts->seen, &counts->n_comm))
    return;
  if (kind == NI_TOP_NICS)
    c->used = c->link > 0 ? fmax(c->rx, c->tx) / c->link : NAN;
  if (kind == NI_TOP_GPUS)
    (void)ni_map_find_or_add(counts->seen + 3, hash_numbered(ni_hash_text(0, g->node), g->gpu), 0,
                             (uint32_t)t->n[kind]);
  t->item[kind][t->n[kind]++] = item;
}

int ni_top_look(struct ni_top *t) {
  struct row_counts counts = {.uid = NAN};
  int e = 0;
  t->in_flight = t->stuck = 0;
  t->users = false;
  for (int kind = 0; kind < NI_TOP_KINDS; kind++) {
    size_t n = t->n[kind] = t->rows = 0;
    for (size_t i = 0; i < t->n_sources; i++)
      t->rows += t->source[i].list[kind].n;
    if (!ni_array_exact(&t->item[kind], &n, t->rows + 1, sizeof(void *)) ||
        !ni_array_exact(&t->by_comm, &n, t->rows + 1, sizeof(void *)))
      e = -ENOMEM;
    for (size_t i = 0; e == 0 && i < t->n_sources; i++)
      for (size_t k = 0; k < t->source[i].list[kind].n; k++)
        take_row(t, t->source + i, kind, t->source[i].list[kind].item + k * ni_top_tables[kind].bytes,
                 &counts);
  }
  t->nodes = counts.seen[0].n;
  t->jobs = counts.seen[1].n;
  t->ranks = counts.seen[2].n;
  for (int k = 0; k < 4; k++)
    ni_map_free(counts.seen + k);
  if (e < 0)
    return e;
  find_waiting(t, counts.n_comm);
  for (int kind = NI_TOP_GPUS; kind <= NI_TOP_NICS; kind++)
    qsort_r(t->item[kind], t->n[kind], sizeof(void *), by_name, (void *)&ni_top_tables[kind].field[1]);
  qsort_r(t->item[NI_TOP_RANKS], t->n[NI_TOP_RANKS], sizeof(void *), by_sort, t);
  return 0;
}

void ni_top_free(struct ni_top *t) {
  for (size_t i = 0; i < t->n_sources * NI_TOP_KINDS; i++)
    free(t->source[i / NI_TOP_KINDS].list[i % NI_TOP_KINDS].item);
  for (size_t i = 0; i < t->n_sources; i++)
    free(t->source[i].document);
  for (int kind = 0; kind < NI_TOP_KINDS; kind++)
    free(t->item[kind]);
  free(t->by_comm);
  free(t->source);
}
