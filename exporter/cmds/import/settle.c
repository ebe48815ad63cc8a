#include "settle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"

/* A communicator of a process. */
struct import_seat {
  uint64_t hash;
  size_t process;
  struct ni_imported_comm *comm;
  int32_t rank;     /* of its process */
  const char *host; /* the same */
};

static int by_hash(const void *a, const void *b) {
  const struct import_seat *x = a, *y = b;
  if (x->hash != y->hash)
    return x->hash < y->hash ? -1 : 1;
  if (x->rank != y->rank)
    return x->rank < y->rank ? -1 : 1;
  if (x->process != y->process)
    return x->process < y->process ? -1 : 1;
  return x->comm < y->comm ? -1 : x->comm > y->comm;
}

static int by_rank(const void *a, const void *b) {
  const int32_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

static size_t find_end(const struct import_seat *s, size_t n, size_t from) {
  size_t to = from;
  while (to < n && s[to].hash == s[from].hash)
    to++;
  return to;
}

/* ---- the job's communicator ---------------------------------------------------------------------------- */

/* Is each process in it exactly once, each with a different rank? rank: room for all. */
static bool has_all_processes(const struct import_seat *s, size_t n, size_t n_processes, int32_t *rank) {
  if (n != n_processes)
    return false;
  for (size_t i = 0; i < n; i++) {
    if (s[i].comm->n_ranks < 1 || s[i].comm->n_ranks != s[0].comm->n_ranks)
      return false;
    if (i > 0 && s[i].process == s[i - 1].process)
      return false;
    rank[i] = s[i].comm->rank;
  }
  qsort(rank, n, sizeof *rank, by_rank);
  for (size_t i = 1; i < n; i++)
    if (rank[i] == rank[i - 1])
      return false;
  return true;
}

/* Does a process state another size of the job? A stated size decides. */
static bool is_size_contradicted(struct ni_imported *const *m, size_t n, int32_t size) {
  for (size_t i = 0; i < n; i++)
    if (m[i]->world > 0 && m[i]->world != size)
      return true;
  return false;
}

static int assign_ranks(struct ni_imported *const *m, size_t n, const struct import_seat *s, size_t n_seats,
                        struct ni_settled *out) {
  const struct import_seat *job = NULL;
  int32_t *rank = malloc((n + 1) * sizeof *rank);
  if (!rank)
    return -ENOMEM;
  for (size_t from = 0, to; from < n_seats; from = to) {
    to = find_end(s, n_seats, from);
    const bool larger = !job || s[from].comm->n_ranks > job->comm->n_ranks;
    if (larger && has_all_processes(s + from, to - from, n, rank))
      job = s + from;
  }
  free(rank);
  if (!job || is_size_contradicted(m, n, job->comm->n_ranks))
    return 0;
  for (size_t i = 0; i < n; i++) {
    struct ni_imported *x = m[job[i].process];
    if (x->rank >= 0 && !x->rank_of_name)
      continue;
    x->rank = job[i].comm->rank;
    x->world = job[i].comm->n_ranks;
    x->rank_of_name = false;
    x->rank_of_comm = true;
    out->ranks++;
  }
  out->job = job->hash;
  return 0;
}

/* ---- communicators whose making was not recorded ------------------------------------------------------- */

/* s: those of one id, in order of ranks. */
static bool are_members(const struct import_seat *s, size_t n) {
  bool distinct = n > 1 && s[0].rank >= 0;
  for (size_t i = 0; distinct && i < n; i++)
    distinct = s[i].comm->open && (i == 0 || s[i].rank > s[i - 1].rank);
  return distinct;
}

static int by_gpu(const void *a, const void *b) {
  const struct import_seat *x = a, *y = b;
  const int host = strcmp(x->host, y->host);
  return host ? host : x->comm->gpu < y->comm->gpu ? -1 : x->comm->gpu > y->comm->gpu;
}

/* Does nobody state a rank, while all are on different GPUs? Then s is in the order of these afterwards. */
static bool are_on_gpus(struct import_seat *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const bool has_gpu = *s[i].host && s[i].comm->gpu >= 0;
    if (s[i].rank >= 0 || !s[i].comm->open || !has_gpu)
      return false;
  }
  qsort(s, n, sizeof *s, by_gpu);
  for (size_t i = 1; i < n; i++)
    if (by_gpu(&s[i - 1], &s[i]) == 0)
      return false;
  return n > 1;
}

static void assign_seats(struct import_seat *s, size_t n, struct ni_settled *out) {
  const bool by_ranks = are_members(s, n), by_gpus = !by_ranks && are_on_gpus(s, n),
             known = by_ranks || by_gpus;
  bool any = false;
  for (size_t i = 0; i < n; i++) {
    struct ni_imported_comm *c = s[i].comm;
    if (!c->open)
      continue;
    any = true;
    c->open = false;
    if (known) {
      c->rank = (int32_t)i;
      c->n_ranks = (int32_t)n;
    } else
      c->hash = ni_mix(c->hash + ni_mix(s[i].process * 64 + i + 1));
  }
  out->seated += any && by_ranks;
  out->by_gpu += any && by_gpus;
  out->alone += any && !known;
}

int ni_import_settle(struct ni_imported *const *m, size_t n, struct ni_settled *out) {
  size_t n_seats = 0, k = 0;
  *out = (struct ni_settled){0};
  for (size_t i = 0; i < n; i++)
    n_seats += m[i]->n_comms;
  struct import_seat *s = malloc((n_seats + 1) * sizeof *s);
  if (!s)
    return -ENOMEM;
  for (size_t i = 0; i < n; i++)
    NI_EACH(struct ni_imported_comm, c, m[i]->comm, m[i]->n_comms)
  s[k++] = (struct import_seat){c->hash, i, c, m[i]->rank, m[i]->host};
  qsort(s, n_seats, sizeof *s, by_hash);
  int e = assign_ranks(m, n, s, n_seats, out);
  for (size_t i = 0; i < n_seats; i++)
    s[i].rank = m[s[i].process]->rank;
  qsort(s, n_seats, sizeof *s, by_hash);
  for (size_t from = 0, to; e == 0 && from < n_seats; from = to) {
    to = find_end(s, n_seats, from);
    assign_seats(s + from, to - from, out);
  }
  free(s);
  return e;
}
