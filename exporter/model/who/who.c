#include "who.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/input/discover.h"

int64_t ni_who_process(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns,
                       const char *origin) {
  if (!ni_array_room(w->process, w->n_processes, w->cap_processes))
    return -ENOMEM;
  uint64_t name = ni_hash_text((uint64_t)pid, host), started = ni_hash(name, start_ns);
  int64_t known = start_ns ? ni_map_get(&w->process_names, started, 0) : -1;
  uint32_t next = (uint32_t)(known < 0 ? (int64_t)w->n_processes : known);
  /* the origin learns of it, too */
  int64_t k = ni_map_find_or_add(&w->process_names, ni_hash_text(~name, origin), start_ns, next);
  if (k >= 0 && known >= 0)
    k = known;
  if (k >= 0 && start_ns && ni_map_find_or_add(&w->process_names, started, 0, (uint32_t)k) < 0)
    k = -ENOMEM;
  if (k < 0)
    return k;
  struct ni_who_process *p = &w->process[k];
  if ((size_t)k == w->n_processes) {
    *p = (struct ni_who_process){.host = strdup(host), .origin = strdup(origin), .pid = pid};
    w->n_processes++;
    if (!p->host || !p->origin)
      return -ENOMEM;
  }
  if (start_ns)
    p->start_ns = start_ns;
  return k;
}

int64_t ni_who_process_in(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns,
                          const char *path) {
  char origin[PATH_MAX];
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(path, NULL), path);
  return ni_who_process(w, host, pid, start_ns, origin);
}

/*
 * Keeps the smallest name, so that the result does not depend on who came first. The name of the communicator
 * is that of a member.
 */
static int keep_smallest_name(struct ni_who_comm *c, struct ni_who_member *m, const char *name) {
  if (m->name && strcmp(name, m->name) >= 0)
    return 0;
  char *copy = strdup(name);
  if (!copy)
    return -ENOMEM;
  if (!c->name || strcmp(copy, c->name) < 0)
    c->name = copy;
  free(m->name);
  m->name = copy;
  return 0;
}

/* Finds the communicator, or adds it. Sets only what identifies it. */
static int64_t find_or_add_comm(struct ni_who *w, uint64_t name, uint32_t run, const struct ni_ident *id) {
  if (!ni_array_room(w->comm, w->n_comms, w->cap_comms))
    return -ENOMEM;
  int64_t k = ni_map_find_or_add(&w->comm_names, name, 0, (uint32_t)w->n_comms);
  if (k == (int64_t)w->n_comms)
    w->comm[w->n_comms++] = (struct ni_who_comm){.hash = id->comm_hash, .run = run, .n_ranks = id->n_ranks};
  return k;
}

int64_t ni_who_member(struct ni_who *w, uint32_t process, uint32_t run, const struct ni_ident *id,
                      uint64_t init_ns) {
  uint64_t comm_name = ni_hash(ni_hash(run, id->comm_hash), (uint32_t)id->n_ranks),
           name = ni_hash(ni_hash(comm_name, process), (uint32_t)id->rank);
  if (!ni_array_room(w->member, w->n_members, w->cap_members))
    return -ENOMEM;
  int64_t k = ni_map_find_or_add(&w->member_names, name, init_ns, (uint32_t)w->n_members);
  if (k < 0)
    return k;
  struct ni_who_member *m = &w->member[k];
  /* lines change their member often, so the communicator is looked up here alone */
  if ((size_t)k == w->n_members) {
    int64_t comm = find_or_add_comm(w, comm_name, run, id);
    if (comm < 0)
      return comm;
    *m = (struct ni_who_member){.process = process,
                                .comm = (uint32_t)comm,
                                .hash = id->comm_hash,
                                .rank = id->rank,
                                .n_ranks = id->n_ranks,
                                .nnodes = id->nnodes};
    w->n_members++;
  }
  struct ni_who_comm *c = &w->comm[m->comm];
  if (init_ns)
    m->init_ns = init_ns;
  if (id->nnodes > c->nnodes)
    c->nnodes = id->nnodes;
  return id->comm_name && keep_smallest_name(c, m, id->comm_name) < 0 ? -ENOMEM : k;
}

void ni_who_rewind(struct ni_who *w) {
  ni_map_rewind(&w->process_names);
  ni_map_rewind(&w->member_names);
}

void ni_who_free(struct ni_who *w) {
  for (size_t i = 0; i < w->n_processes; i++) {
    free(w->process[i].host);
    free(w->process[i].origin);
  }
  for (size_t i = 0; i < w->n_members; i++)
    free(w->member[i].name);
  free(w->process);
  free(w->comm);
  free(w->member);
  ni_map_free(&w->process_names);
  ni_map_free(&w->comm_names);
  ni_map_free(&w->member_names);
  *w = (struct ni_who){0};
}
