/*
 * Who wrote the lines: hosts, processes, communicator members and the units (GPUs) they are shown as.
 *
 * A process is a (host, pid, start), or, in logs that do not say when it started, a (host, pid) in the files of one name.
 * A hash can come back in a process after destroy and init: comm lines with another init_ns begin another instance, and
 * the second pass chooses the same instances as the first because it reads the same lines in the same order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "who.h"

static int find_host(struct ni_tr *r, const char *name, const char *boot, uint32_t *out) {
  struct ni_tr_host h = {.via = NI_TR_NONE};
  int e = ni_name(&r->names, &r->cache, name, &h.name);
  if (e == 0) e = ni_name(&r->names, &r->cache, boot, &h.boot);
  if (e < 0) return e;
  for (uint32_t i = 0; i < r->n_hosts; i++)
    if (r->host[i].name == h.name && r->host[i].boot == h.boot) {
      *out = i;
      return 0;
    }
  if (!ni_array_room(r->host, r->n_hosts, r->cap_hosts)) return -ENOMEM;
  r->host[r->n_hosts] = h;
  *out = r->n_hosts++;
  return 0;
}

static bool same_process(const struct ni_tr *r, uint32_t p, const struct ni_tr_file *f, const struct ni_line *l,
                         uint64_t start_ns) {
  const struct ni_tr_process *x = &r->process[p];
  if (x->pid != l->meta.pid || strcmp(ni_name_text(&r->names, r->host[x->host].name), l->meta.hostname) != 0) return false;
  if (start_ns && x->start_ns) return x->start_ns == start_ns;
  return x->origin == f->origin || f->process == p; /* roll-ups have files of another name, which begin with a process line */
}

int ni_tr_find_process(struct ni_tr *r, struct ni_tr_file *f, const struct ni_line *l, uint32_t *out) {
  uint64_t start_ns = l->kind == NI_LINE_PROCESS ? l->process.start_ns : 0;
  uint32_t p = f->process;
  if (p == NI_TR_NONE || !same_process(r, p, f, l, start_ns)) {
    for (p = 0; p < r->n_processes && !same_process(r, p, f, l, start_ns); p++) {}
    if (p == r->n_processes) {
      struct ni_tr_process x = {.pid = l->meta.pid, .origin = f->origin, .rank = -1, .world_size = -1,
                                .first_unit = NI_TR_NONE, .ours = l->meta.producer != NULL};
      int e = find_host(r, l->meta.hostname, l->kind == NI_LINE_PROCESS ? l->process.boot_id : NULL, &x.host);
      if (e < 0) return e;
      if (!ni_array_room(r->process, p, r->cap_processes)) return -ENOMEM;
      r->process[r->n_processes++] = x;
    }
  }
  struct ni_tr_process *x = &r->process[p];
  if (l->kind == NI_LINE_PROCESS) {
    x->start_ns = start_ns;
    if (l->process.rank >= 0) x->rank = l->process.rank;
    if (l->process.world_size > 0) x->world_size = l->process.world_size;
    int e = ni_name(&r->names, &r->cache, l->process.exe, &x->exe);
    if (e < 0) return e;
  }
  if ((int64_t)l->meta.dump_timestamp_us > x->last_us) x->last_us = (int64_t)l->meta.dump_timestamp_us;
  f->process = *out = p;
  return 0;
}

static int find_key(struct ni_tr *r, const struct ni_tr_key *want, uint32_t *out) {
  const uint64_t hash = ni_hash(ni_hash(want->hash, (uint32_t)want->rank), want->process);
  for (size_t at = 0; (*out = ni_index_next(&r->key_at_hash, hash, &at)) != NI_INDEX_NONE;) {
    const struct ni_tr_key *x = &r->key[*out];
    if (x->hash == want->hash && x->rank == want->rank && x->process == want->process) return 0;
  }
  if (!ni_array_room(r->key, r->n_keys, r->cap_keys) || ni_index_add(&r->key_at_hash, hash, r->n_keys) < 0) return -ENOMEM;
  *out = r->n_keys++;
  r->key[*out] = *want;
  return 0;
}

static int new_member(struct ni_tr *r, struct ni_tr_key *k, const struct ni_line *l, uint32_t instance) {
  struct ni_tr_member m = {.process = k->process, .unit = NI_TR_NONE, .hash = k->hash, .rank = k->rank, .gpu = -1,
                           .n_ranks = l->ident.n_ranks, .nnodes = l->ident.nnodes, .instance = instance,
                           .newer = NI_TR_NONE, .gpu_offset_ns = NI_NO_OFFSET};
  if (!ni_array_room(r->member, r->n_members, r->cap_members)) return -ENOMEM;
  if (k->current == NI_TR_NONE) {
    k->oldest = r->n_members;
  } else {
    uint32_t last = k->oldest;
    while (r->member[last].newer != NI_TR_NONE) last = r->member[last].newer;
    r->member[last].newer = r->n_members;
  }
  m.oldest = k->oldest;
  r->member[r->n_members] = m;
  k->current = r->n_members++;
  return 0;
}

int ni_tr_find_member(struct ni_tr *r, uint32_t process, const struct ni_line *l, uint32_t *out) {
  struct ni_tr_key want = {.process = process, .rank = l->ident.rank, .hash = l->ident.comm_hash, .oldest = NI_TR_NONE,
                           .current = NI_TR_NONE};
  uint32_t at;
  int e = find_key(r, &want, &at);
  if (e < 0) return e;
  struct ni_tr_key *k = &r->key[at];
  if (k->current == NI_TR_NONE && (e = new_member(r, k, l, 0)) < 0) return e;
  if (l->kind == NI_LINE_COMM && l->comm.init_ns) {
    /* A first instance without a comm line takes the first init that comes. */
    uint32_t i = k->oldest, n = 0;
    for (; i != NI_TR_NONE && r->member[i].init_ns && r->member[i].init_ns != l->comm.init_ns; n++) i = r->member[i].newer;
    if (i != NI_TR_NONE) k->current = i;
    else if ((e = new_member(r, k, l, n)) < 0) return e;
    r->member[k->current].init_ns = l->comm.init_ns;
    if (l->comm.gpu_index >= 0) r->member[k->current].gpu = l->comm.gpu_index;
  }
  *out = k->current;
  struct ni_tr_member *m = &r->member[*out];
  return m->name || !l->ident.comm_name ? 0 : ni_name(&r->names, &r->cache, l->ident.comm_name, &m->name);
}

void ni_tr_rewind(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_keys; i++) r->key[i].current = r->key[i].oldest;
  for (uint32_t i = 0; i < r->n_members; i++) r->member[i].gpu_offset_ns = NI_NO_OFFSET;
}

/* ---- units ------------------------------------------------------------------------------------------------------- */

struct order {
  const struct ni_tr_member *m;
  uint32_t member;
};

/* By process, the largest communicators first, then hash and rank. */
static int by_size(const void *a, const void *b) {
  const struct ni_tr_member *x = ((const struct order *)a)->m, *y = ((const struct order *)b)->m;
  if (x->process != y->process) return x->process < y->process ? -1 : 1;
  if (x->n_ranks != y->n_ranks) return x->n_ranks > y->n_ranks ? -1 : 1;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  return x->instance < y->instance ? -1 : x->instance > y->instance;
}

/* By unit and name: who has a name in common stands together. */
static int by_name(const void *a, const void *b) {
  const struct ni_tr_member *x = ((const struct order *)a)->m, *y = ((const struct order *)b)->m;
  if (x->unit != y->unit) return x->unit < y->unit ? -1 : 1;
  if (x->name != y->name) return x->name < y->name ? -1 : 1;
  return x->hash < y->hash ? -1 : x->hash > y->hash;
}

static void find_ambiguous(struct ni_tr *r, struct order *o) {
  qsort(o, r->n_members, sizeof *o, by_name);
  for (size_t i = 0, n; i < r->n_members; i += n) {
    bool differ = false, doubled = false;
    for (n = 1; i + n < r->n_members && o[i + n].m->unit == o[i].m->unit && o[i + n].m->name == o[i].m->name; n++)
    {
      if (o[i + n].m->hash != o[i].m->hash) differ = true;
      if (o[i + n].m->hash == o[i + n - 1].m->hash && o[i + n].m->rank != o[i + n - 1].m->rank) doubled = true;
    }
    for (size_t k = i; k < i + n; k++) {
      r->member[o[k].member].ambiguous = differ;
      r->member[o[k].member].doubled = doubled;
    }
  }
}

static int new_unit(struct ni_tr *r, uint32_t process, int32_t rank, int32_t gpu, uint32_t *out) {
  struct ni_tr_unit u = {.process = process, .rank = rank, .gpu = gpu, .next_in_process = NI_TR_NONE};
  if (!ni_array_room(r->unit, r->n_units, r->cap_units)) return -ENOMEM;
  uint32_t *link = &r->process[process].first_unit;
  while (*link != NI_TR_NONE) link = &r->unit[*link].next_in_process;
  r->unit[r->n_units] = u;
  *link = *out = r->n_units++;
  return 0;
}

/*
 * The units of one process. One rank of everything: one unit, with the launcher's rank. Several ranks of a communicator:
 * a unit for each GPU, named by its rank in the largest communicator; where the log does not know the GPUs, members can
 * only be put together when they are ranks of that one communicator.
 */
static int units_of(struct ni_tr *r, struct order *o, size_t n) {
  uint32_t process = o[0].m->process, u = NI_TR_NONE;
  bool several = false, gpus = true;
  for (size_t i = 0; i < n; i++) {
    if (o[i].m->gpu < 0) gpus = false;
    if (i && o[i].m->hash == o[i - 1].m->hash && o[i].m->rank != o[i - 1].m->rank) several = true;
  }
  for (size_t i = 0; i < n; i++) {
    struct ni_tr_member *m = &r->member[o[i].member];
    if (!several && i > 0) {
      if (r->unit[u].gpu < 0) r->unit[u].gpu = m->gpu;
    } else {
      u = r->process[process].first_unit;
      if (gpus)
        while (u != NI_TR_NONE && r->unit[u].gpu != m->gpu) u = r->unit[u].next_in_process;
      else
        while (u != NI_TR_NONE && !(r->unit[u].rank == m->rank && m->hash == o[0].m->hash)) u = r->unit[u].next_in_process;
      /* Without GPUs, instances of one member stay together. */
      if (u == NI_TR_NONE && !gpus && i && o[i - 1].m->hash == m->hash && o[i - 1].m->rank == m->rank)
        u = r->member[o[i - 1].member].unit;
      if (u == NI_TR_NONE) {
        int e = new_unit(r, process, m->rank, m->gpu, &u);
        if (e < 0) return e;
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

static bool comm_wanted(const struct ni_tr *r, const struct ni_tr_member *m) {
  return !r->opt.comm.n || ni_words_have_comm(&r->opt.comm, m->hash, ni_name_text(&r->names, m->name));
}

/* Processes of the timeline are numbered by the system's pid where that is unique, else from 1 in order of rank. */
static void number_units(struct ni_tr *r) {
  bool unique = true;
  for (uint32_t i = 0; unique && i < r->n_units; i++) {
    int64_t pid = r->process[r->unit[i].process].pid;
    if (pid <= 0 || pid > INT32_MAX) unique = false;
    for (uint32_t k = 0; unique && k < i; k++)
      if (r->process[r->unit[k].process].pid == pid) unique = false;
  }
  for (uint32_t i = 0; i < r->n_units; i++) {
    uint32_t n = 1;
    for (uint32_t k = 0; !unique && k < r->n_units; k++)
      if (r->unit[k].rank < r->unit[i].rank || (r->unit[k].rank == r->unit[i].rank && k < i)) n++;
    r->unit[i].out_pid = unique ? (uint32_t)r->process[r->unit[i].process].pid : n;
  }
}

int ni_tr_settle(struct ni_tr *r) {
  struct order *o = malloc((r->n_members + 1) * sizeof *o);
  int e = o ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++) o[i] = (struct order){&r->member[i], i};
  if (e == 0) qsort(o, r->n_members, sizeof *o, by_size);
  for (size_t i = 0, n; e == 0 && i < r->n_members; i += n) {
    for (n = 1; i + n < r->n_members && o[i + n].m->process == o[i].m->process; n++) {}
    e = units_of(r, o + i, n);
  }
  if (e == 0) find_ambiguous(r, o);
  free(o);
  /* A process without communicators is one, too: its marks and notes. */
  for (uint32_t p = 0, u; e == 0 && p < r->n_processes; p++)
    if (r->process[p].first_unit == NI_TR_NONE && (e = new_unit(r, p, r->process[p].rank, -1, &u)) == 0)
      r->unit[u].rank_stated = r->process[p].rank >= 0;
  for (uint32_t i = 0; e == 0 && i < r->n_units; i++) {
    struct ni_tr_unit *u = &r->unit[i];
    const char *host = ni_name_text(&r->names, r->host[r->process[u->process].host].name);
    bool rank = !r->opt.rank.n || ni_ranks_have(&r->opt.rank, u->rank);
    u->shown = (!r->opt.host.n || ni_words_have(&r->opt.host, host)) && rank;
  }
  for (uint32_t i = 0; e == 0 && i < r->n_members; i++)
    r->member[i].shown = comm_wanted(r, &r->member[i]) && r->unit[r->member[i].unit].shown;
  for (uint32_t i = 0; e == 0 && i < r->n_points; i++)
    e = ni_gpu_clock_add(&r->unit[r->member[r->point[i].member].unit].clock, r->point[i].at_ns, r->point[i].offset_ns);
  for (uint32_t i = 0; e == 0 && i < r->n_units; i++) e = ni_gpu_clock_finish(&r->unit[i].clock);
  if (e == 0) number_units(r);
  free(r->point);
  r->point = NULL;
  return e;
}

void ni_tr_who_free(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_members; i++) {
    free(r->member[i].gap);
    free(r->member[i].open);
  }
  for (uint32_t i = 0; i < r->n_units; i++) ni_gpu_clock_free(&r->unit[i].clock);
  free(r->host);
  free(r->process);
  free(r->unit);
  free(r->member);
  free(r->key);
  ni_index_free(&r->key_at_hash);
  free(r->point);
}
