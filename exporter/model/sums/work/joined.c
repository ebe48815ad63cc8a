#include "joined.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/sets/disjoint.h"

struct run_ranks { /* ranks of one run */
  /* with logs; without, of communicators that some have logs of; as the job states */
  int64_t seen, absent, world;
  uint32_t root; /* of the first one's communicators */
  bool pieces;   /* others are not joined with it */
};

/* Runs are few, and each process is of one. */
static uint32_t find_last_run(const struct ni_run *r) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < r->who.n_comms; i++)
    if (r->who.comm[i].run > last)
      last = r->who.comm[i].run;
  return last;
}

static void join_processes(const struct ni_summary *s, uint32_t *up) {
  ni_disjoint_begin(up, s->n_processes);
  for (size_t i = 1; i < s->n_seats; i++) {
    if (s->seat[i].comm != s->seat[i - 1].comm)
      continue;
    ni_disjoint_join(up, s->seat[i - 1].process, s->seat[i].process);
  }
}

/* of: the run of each process; UINT32_MAX: it has no communicator. */
static void count_run_ranks(const struct ni_run *r, const struct ni_summary *s, uint32_t *up, uint32_t *of,
                            struct run_ranks *run) {
  for (uint32_t i = 0; i < s->n_processes; i++)
    of[i] = UINT32_MAX;
  for (uint32_t i = 0; i < r->who.n_members; i++) {
    const struct ni_who_member *m = &r->who.member[i];
    const uint32_t process = r->process_at[m->process];
    struct run_ranks *x = &run[r->who.comm[m->comm].run];
    if (r->process[m->process].world_size > x->world)
      x->world = r->process[m->process].world_size;
    if (of[process] != UINT32_MAX)
      continue;
    of[process] = r->who.comm[m->comm].run;
    const uint32_t root = ni_disjoint_root(up, process);
    if (x->seen == 0)
      x->root = root;
    x->pieces |= root != x->root;
    x->seen += s->process[process].ranks > 1 ? s->process[process].ranks : 1;
  }
  for (uint32_t i = 0; i < r->who.n_comms; i++) {
    const struct ni_comm_row *c = &s->comm[r->comm_at[i]];
    if (c->n_ranks > (int64_t)c->ranks_seen)
      run[r->who.comm[i].run].absent += c->n_ranks - (int64_t)c->ranks_seen;
  }
}

/* Of processes of one rank that state it; else nobody knows, and they are taken to be. */
static void find_neighbours(struct ni_summary *s) {
  for (size_t from = 0, to; from < s->n_seats; from = to) {
    struct ni_comm_row *c = &s->comm[s->seat[from].comm];
    int64_t low = INT32_MAX, high = -1;
    bool stated = true;
    for (to = from; to < s->n_seats && s->seat[to].comm == s->seat[from].comm; to++) {
      const struct ni_process *p = &s->process[s->seat[to].process];
      stated &= p->rank_stated && p->ranks <= 1;
      if (p->rank < low)
        low = p->rank;
      if (p->rank > high)
        high = p->rank;
    }
    c->neighbours = !stated || high - low < c->n_ranks;
  }
}

int ni_joined_find(const struct ni_run *r, struct ni_summary *s) {
  uint32_t *up = malloc((s->n_processes + 1) * sizeof *up), *of = malloc((s->n_processes + 1) * sizeof *of);
  struct run_ranks *run = calloc((size_t)find_last_run(r) + 1, sizeof *run);
  const bool has_room = up && of && run;
  if (has_room) {
    join_processes(s, up);
    count_run_ranks(r, s, up, of, run);
    find_neighbours(s);
    for (uint32_t i = 0; i < s->n_processes; i++) {
      const struct run_ranks *x = of[i] == UINT32_MAX ? NULL : &run[of[i]];
      const bool is_whole = x && !x->pieces && x->world <= x->seen + x->absent;
      s->process[i].may_wait_unseen = x && !is_whole;
    }
  }
  free(up);
  free(of);
  free(run);
  return has_room ? 0 : -ENOMEM;
}
