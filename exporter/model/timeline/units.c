/*
 * The units (GPUs) as which processes and their members are shown, and the ranks they are called by.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "units.h"

struct order {
  struct ni_tr_member *m;
  const struct ni_who_member *who;
  const char *name;
};

/* By process, the largest communicators first, then hash and rank. */
static int by_size(const void *a, const void *b) {
  const struct order *x = a, *y = b;
  int k = NI_BY(x, y, who->process);
  if (k == 0)
    k = NI_BY(y, x, who->n_ranks);
  return k ? k : NI_BY(x, y, who->hash, who->rank, m->instance);
}

/* By unit and name: those that share a name stand together. */
static int by_name(const void *a, const void *b) {
  const struct order *x = a, *y = b;
  int k = NI_BY(x, y, m->unit);
  if (k == 0)
    k = strcmp(x->name, y->name);
  return k ? k : NI_BY(x, y, who->hash);
}

static void find_ambiguous(const struct ni_tr *r, struct order *o) {
  qsort(o, r->n_members, sizeof *o, by_name);
  for (size_t i = 0, n; i < r->n_members; i += n) {
    bool differ = false, doubled = false;
    for (n = 1;
         i + n < r->n_members && o[i + n].m->unit == o[i].m->unit && strcmp(o[i + n].name, o[i].name) == 0;
         n++) {
      const struct ni_who_member *x = o[i + n].who, *before = o[i + n - 1].who;
      if (x->hash != o[i].who->hash)
        differ = true;
      if (x->hash == before->hash && x->rank != before->rank)
        doubled = true;
    }
    for (size_t k = i; k < i + n; k++) {
      o[k].m->ambiguous = differ;
      o[k].m->doubled = doubled;
    }
  }
}

static int add_unit(struct ni_tr *r, uint32_t process, int32_t rank, int32_t gpu, uint32_t *out) {
  struct ni_tr_unit u = {.process = process, .rank = rank, .gpu = gpu, .next_in_process = NI_TR_NONE};
  if (!ni_array_room(r->unit, r->n_units, r->cap_units))
    return -ENOMEM;
  uint32_t *link = &r->process[process].first_unit;
  while (*link != NI_TR_NONE)
    link = &r->unit[*link].next_in_process;
  r->unit[r->n_units] = u;
  *link = *out = r->n_units++;
  return 0;
}

/*
 * The units of one process. One rank of everything: one unit, with the launcher's rank. Several ranks of a
 * communicator: a unit for each GPU, named by its rank in the largest communicator; where the log does not
 * know the GPUs, members can only be put together when they are ranks of that one communicator.
 */
static int make_units_of_process(struct ni_tr *r, const struct order *o, size_t n) {
  uint32_t process = o[0].who->process, u = NI_TR_NONE;
  bool several = false, gpus = true;
  for (size_t i = 0; i < n; i++) {
    if (o[i].m->gpu < 0)
      gpus = false;
    if (i && o[i].who->hash == o[i - 1].who->hash && o[i].who->rank != o[i - 1].who->rank)
      several = true;
  }
  for (size_t i = 0; i < n; i++) {
    const struct ni_who_member *who = o[i].who;
    struct ni_tr_member *m = o[i].m;
    if (!several && i > 0) {
      if (r->unit[u].gpu < 0)
        r->unit[u].gpu = m->gpu;
    } else {
      u = r->process[process].first_unit;
      if (gpus)
        while (u != NI_TR_NONE && r->unit[u].gpu != m->gpu)
          u = r->unit[u].next_in_process;
      else
        while (u != NI_TR_NONE && !(r->unit[u].rank == who->rank && who->hash == o[0].who->hash))
          u = r->unit[u].next_in_process;
      /* Without GPUs, instances of one member stay together. */
      const bool is_same_member = i && o[i - 1].m->first == m->first;
      if (u == NI_TR_NONE && !gpus && is_same_member)
        u = o[i - 1].m->unit;
      if (u == NI_TR_NONE) {
        int e = add_unit(r, process, who->rank, m->gpu, &u);
        if (e < 0)
          return e;
      }
    }
    m->unit = u;
  }
  if (!several && r->process[process].rank >= 0) {
    r->unit[u].rank = r->process[process].rank;
    r->unit[u].rank_stated = true;
  }
  return 0;
}

static bool is_comm_wanted(const struct ni_tr *r, const struct ni_tr_member *m) {
  return !r->opt.filter.comm.n ||
      ni_words_have_comm(&r->opt.filter.comm, ni_tr_who(r, m)->hash, ni_tr_comm_name(r, m));
}

/*
 * Processes of the timeline are numbered by the system's pid where that is unique, else from 1 in order of
 * rank.
 */
static void number_units(struct ni_tr *r) {
  bool unique = true;
  for (uint32_t i = 0; unique && i < r->n_units; i++) {
    int64_t pid = r->who.process[r->unit[i].process].pid;
    if (pid <= 0 || pid > INT32_MAX)
      unique = false;
    for (uint32_t k = 0; unique && k < i; k++)
      if (r->who.process[r->unit[k].process].pid == pid)
        unique = false;
  }
  for (uint32_t i = 0; i < r->n_units; i++) {
    uint32_t n = 1;
    for (uint32_t k = 0; !unique && k < r->n_units; k++)
      if (r->unit[k].rank < r->unit[i].rank || (r->unit[k].rank == r->unit[i].rank && k < i))
        n++;
    r->unit[i].out_pid = unique ? (uint32_t)r->who.process[r->unit[i].process].pid : n;
  }
}

int ni_tr_settle(struct ni_tr *r) {
  struct order *o = malloc((r->n_members + 1) * sizeof *o);
  int e = o ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++)
    o[i] = (struct order){&r->member[i], &r->who.member[i], ni_tr_comm_name(r, &r->member[i])};
  if (e == 0)
    qsort(o, r->n_members, sizeof *o, by_size);
  for (size_t i = 0, n; e == 0 && i < r->n_members; i += n) {
    for (n = 1; i + n < r->n_members && o[i + n].who->process == o[i].who->process; n++) {}
    e = make_units_of_process(r, o + i, n);
  }
  if (e == 0)
    find_ambiguous(r, o);
  free(o);
  /* A process without communicators is one, too: its marks and notes. */
  for (uint32_t p = 0, u; e == 0 && p < r->n_processes; p++)
    if (r->process[p].first_unit == NI_TR_NONE && (e = add_unit(r, p, r->process[p].rank, -1, &u)) == 0)
      r->unit[u].rank_stated = r->process[p].rank >= 0;
  for (uint32_t i = 0; e == 0 && i < r->n_units; i++) {
    struct ni_tr_unit *u = &r->unit[i];
    const char *host = r->who.process[u->process].host;
    const struct ni_ranks *rank_of[] = {&r->opt.filter.rank,
                                        &r->opt.filter.job_rank}; /* both are the job's */
    bool rank = true;
    for (size_t k = 0; k < sizeof rank_of / sizeof *rank_of; k++)
      rank &= !rank_of[k]->n || ni_ranks_have(rank_of[k], u->rank);
    u->shown = (!r->opt.filter.host.n || ni_words_have(&r->opt.filter.host, host)) && rank;
  }
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++)
    r->member[i].shown = is_comm_wanted(r, &r->member[i]) && r->unit[r->member[i].unit].shown;
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++) {
    e = ni_gpu_points_merge(&r->unit[r->member[i].unit].clock.points, &r->member[i].points);
    ni_gpu_points_free(&r->member[i].points);
  }
  for (uint32_t i = 0; e == 0 && i < r->n_units; i++)
    e = ni_gpu_clock_finish(&r->unit[i].clock);
  if (e == 0)
    number_units(r);
  return e;
}
