#include "together.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"

/* ---- processes ---- */

static void merge_head(struct ni_process_head *to, struct ni_process_head *from) {
  if (!to->job) {
    to->job = from->job;
    from->job = NULL;
  }
  if (to->rank < 0) {
    to->rank = from->rank;
    to->world = from->world;
  }
  if (to->attempt < 0)
    to->attempt = from->attempt;
  if (!to->gpu)
    to->gpu = from->gpu;
}

/* If a file does not say when its process began: files of the same name are of one process, like a copy. */
static int number_process(struct ni_together *x, struct ni_process_head *h) {
  const char *path = x->files->file[h->file].path;
  char origin[PATH_MAX];
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(path, NULL), path);
  uint64_t who = ni_hash_text((uint64_t)h->pid, h->host), name = ni_hash_text(0, origin);
  uint64_t when = h->log.start_ns ? h->log.start_ns : (uint64_t)h->at_ns;
  if (!ni_array_room(x->process, x->n_processes, x->cap_processes))
    return -ENOMEM;
  int64_t p = ni_fact_find(&x->facts, NI_FACT_PROCESS, who, when, 0, false, 0);
  if (p == UINT32_MAX && !h->log.start_ns)
    p = ni_fact_find(&x->facts, NI_FACT_FILES, who, name, 0, false, 0);
  if (p == UINT32_MAX) {
    p = (int64_t)x->n_processes;
    x->process[x->n_processes++] = (struct ni_log_process){.head = h};
  } else
    merge_head(x->process[p].head, h);
  x->process_of[h->file] = (uint32_t)p + 1;
  if (ni_fact_find(&x->facts, NI_FACT_PROCESS, who, when, 0, true, (size_t)p) < 0)
    return -ENOMEM;
  return ni_fact_find(&x->facts, NI_FACT_FILES, who, name, 0, true, (size_t)p) < 0 ? -ENOMEM : 0;
}

/* Gives its host and its job a number, since names are long. */
static int identify_process(struct ni_together *x, struct ni_log_process *p) {
  const struct ni_process_head *h = p->head;
  uint64_t job = h->job ? ni_hash_text(1, h->job) : 0;
  int64_t host = ni_fact_find(&x->facts, NI_FACT_HOST_NAME, ni_hash_text(0, h->host), 0, 0, true, x->facts.n);
  int64_t identity =
      ni_fact_find(&x->facts, NI_FACT_IDENTITY, job, (uint64_t)(uint32_t)h->attempt, 0, true, x->facts.n);
  p->host = (uint32_t)host;
  p->identity = (uint32_t)identity;
  return host < 0 || identity < 0 ? -ENOMEM : 0;
}

/* ---- which of them belong together ---- */

static int add_seat(struct ni_together *x, uint32_t process, uint64_t hash, int32_t n_ranks, int32_t rank) {
  const struct ni_log_process *p = &x->process[process];
  if (!ni_array_room(x->space, x->n_spaces, x->cap_spaces))
    return -ENOMEM;
  if (!ni_array_room(x->slot, x->n_slots, x->cap_slots))
    return -ENOMEM;
  if (!ni_array_room(x->seat, x->n_seats, x->cap_seats))
    return -ENOMEM;
  int64_t s = ni_fact_find(&x->facts, NI_FACT_SPACE, hash, (uint32_t)n_ranks, p->identity, true, x->n_spaces);
  if (s < 0)
    return (int)s;
  if ((size_t)s == x->n_spaces)
    x->space[x->n_spaces++] = (struct ni_rank_space){hash, n_ranks, process, 0, false};
  int64_t k = ni_fact_find(&x->facts, NI_FACT_SLOT, (uint64_t)s, (uint32_t)rank, 0, true, x->n_slots);
  if (k < 0)
    return (int)k;
  if ((size_t)k == x->n_slots)
    x->slot[x->n_slots++] = (struct ni_rank_slot){
        .space = (uint32_t)s, .process = process, .group = UINT32_MAX, .rank = rank, .gap_ns = UINT64_MAX};
  else if (x->slot[k].process == process)
    return 0;
  else {
    int64_t seat = ni_fact_find(&x->facts, NI_FACT_CLAIM, (uint64_t)k, process, 0, true, x->n_seats);
    if (seat != (int64_t)x->n_seats)
      return seat < 0 ? (int)seat : 0;
    x->space[s].several = true;
  }
  x->space[s].processes++; /* several ranks of one process count as often: then nothing is whole */
  x->seat[x->n_seats++] = (struct ni_comm_seat){.process = process, .slot = (uint32_t)k};
  return 0;
}

static int add_seats(struct ni_together *x, const struct ni_process_head *h) {
  uint32_t p = x->process_of[h->file] - 1;
  int e = 0;
  for (unsigned i = 0; e == 0 && i < h->n_seats; i++)
    e = add_seat(x, p, h->seat[i].hash, h->seat[i].n_ranks, h->seat[i].rank);
  if (e == 0 && x->process[p].head == h && h->rank >= 0)
    e = add_seat(x, p, 0, h->world, h->rank);
  return e;
}

/* joined: room for all processes. */
static void join_by_communicators(struct ni_together *x, uint32_t *joined) {
  ni_disjoint_begin(joined, (uint32_t)x->n_processes);
  for (size_t i = 0; i < x->n_seats; i++) {
    const struct ni_rank_space *s = &x->space[x->slot[x->seat[i].slot].space];
    if (s->hash && !s->several)
      ni_disjoint_join(joined, x->seat[i].process, s->first);
  }
}

static int by_group(const void *a, const void *b, void *arg) {
  const struct ni_log_process *p = &((const struct ni_together *)arg)->process[*(const uint32_t *)a];
  const struct ni_log_process *q = &((const struct ni_together *)arg)->process[*(const uint32_t *)b];
  return p->group != q->group ? NI_BY(p, q, group) : p < q ? -1 : p > q;
}

static int by_group_of_seat(const void *a, const void *b, void *arg) {
  const struct ni_together *x = arg;
  const struct ni_comm_seat *s = a, *t = b;
  uint32_t g = x->process[s->process].group, h = x->process[t->process].group;
  return g != h ? (g < h ? -1 : 1) : NI_BY(s, t, slot, process);
}

static int make_groups(struct ni_together *x, uint32_t *joined) {
  x->group = calloc(x->n_processes + 1, sizeof *x->group);
  if (!x->group)
    return -ENOMEM;
  for (uint32_t p = 0; p < x->n_processes; p++) {
    uint32_t root = ni_disjoint_root(joined, p);
    uint32_t g = x->process[p].group = root == p ? (uint32_t)x->n_groups++ : x->process[root].group;
    uint64_t start = ni_process_start(&x->process[p]);
    if (!x->group[g].n++ || start < x->group[g].start_ns)
      x->group[g].start_ns = start;
    x->group[g].number = g;
  }
  if (x->n_groups == 1)
    return 0;
  if (!(x->member = ni_order((uint32_t)x->n_processes, by_group, x)))
    return -ENOMEM;
  if (x->n_seats > 1)
    qsort_r(x->seat, x->n_seats, sizeof *x->seat, by_group_of_seat, x);
  struct ni_comm_seat *seat = x->seat;
  uint32_t *member = x->member;
  for (size_t g = 0; g < x->n_groups; member += x->group[g++].n) {
    x->group[g].process = member;
    x->group[g].seat = seat;
    while (seat < x->seat + x->n_seats && x->process[seat->process].group == g)
      seat++;
    x->group[g].n_seats = (uint32_t)(seat - x->group[g].seat);
  }
  return 0;
}

/*
 * Counts how often each rank is claimed, and the turn of each group among those who claim it. Groups come in
 * the order of their begin.
 */
static void count_claims(struct ni_together *x) {
  for (uint32_t g = 0; g < x->n_groups; g++)
    for (uint32_t i = 0; i < x->group[g].n_seats; i++) {
      struct ni_comm_seat *seat = &x->group[g].seat[i];
      struct ni_rank_slot *s = &x->slot[seat->slot];
      const struct ni_log_process *p = &x->process[seat->process];
      if (s->group == g)
        continue;
      if (s->claims && ni_apart_ns(ni_process_start(p), s->last_ns) < s->gap_ns)
        s->gap_ns = ni_apart_ns(ni_process_start(p), s->last_ns);
      s->host = s->claims == 0 || s->host == p->host ? p->host : UINT32_MAX;
      s->last_ns = ni_process_start(p);
      s->group = g;
      seat->turn = s->claims++;
    }
  for (uint32_t g = 0; g < x->n_groups; g++) {
    struct ni_joined_processes *of = &x->group[g];
    for (uint32_t i = 0; i < of->n_seats; i++) {
      const struct ni_rank_slot *s = &x->slot[of->seat[i].slot];
      const struct ni_rank_space *space = &x->space[s->space];
      const bool is_one_space = space->hash && !space->several;
      of->whole |= of->n > 1 && is_one_space && space->processes == of->n;
      if (s->claims <= of->lives)
        continue;
      of->lives = s->claims;
      of->slot = of->seat[i].slot;
      of->turn = of->seat[i].turn;
    }
  }
}

static int by_time(const void *a, const void *b, void *arg) {
  const struct ni_process_head *x = arg;
  return NI_BY(&x[*(const uint32_t *)a], &x[*(const uint32_t *)b], at_ns, file);
}

static int join_all(struct ni_together *x) {
  uint32_t *joined = malloc((x->n_processes + 1) * sizeof *joined);
  if (!joined)
    return -ENOMEM;
  join_by_communicators(x, joined);
  const int e = make_groups(x, joined);
  free(joined);
  return e;
}

int ni_together_find(struct ni_together *x) {
  size_t n = x->files->n;
  uint32_t *order = ni_order((uint32_t)n, by_time, x->head);
  x->process_of = calloc(n + 1, sizeof *x->process_of);
  int e = order && x->process_of ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++)
    if (x->head[order[i]].host)
      e = number_process(x, &x->head[order[i]]);
  for (size_t i = 0; e == 0 && i < x->n_processes; i++)
    e = identify_process(x, &x->process[i]);
  for (size_t i = 0; e == 0 && i < n; i++)
    if (x->head[order[i]].host)
      e = add_seats(x, &x->head[order[i]]);
  free(order);
  if (e == 0)
    e = join_all(x);
  if (e == 0 && x->n_groups > 1)
    count_claims(x);
  return e;
}

void ni_together_free(struct ni_together *x) {
  ni_facts_free(&x->facts);
  free(x->process);
  free(x->space);
  free(x->slot);
  free(x->seat);
  free(x->group);
  free(x->member);
  free(x->process_of);
  *x = (struct ni_together){.files = x->files, .head = x->head};
}
