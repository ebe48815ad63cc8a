#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/base/order.h"
#include "heads.h"
#include "who.h"

#define RUNS_TRIED 64 /* the newest; so hostile logs cost no more than others */
#define S_NS UINT64_C(1000000000)
/* without a job id: what begins later than that is no part of a run */
#define NEAR_NS (600 * S_NS)
#define CLEAR_NS (2 * S_NS) /* ranks of one job on one host begin that close together */
#define ENGINES_NS (10 * S_NS)
#define CLEARLY 4 /* so many times nearer is clearly nearer */

enum {
  A_PROCESS = 1,
  A_FILES,
  A_HOST_NAME,
  A_IDENTITY,
  A_SPACE,
  A_SLOT,
  A_CLAIM,
  A_HELD,
  A_HAS,
  A_ON_HOST,
  A_GPU
};

/* What is known of a thing: numbers by keys. */
struct known_fact {
  uint64_t a, b;
  uint32_t c, what, number;
};

struct log_process {
  struct ni_process_head *head; /* the first of its files; what later ones know is put there, too */
  uint32_t host, identity;
  uint32_t parent; /* of the union: a process that it belongs together with */
  uint32_t group;
};

/*
 * Where each rank is there once: a communicator, or the launcher's numbers of a job (hash 0). Of one batch
 * job alone.
 */
struct space {
  uint64_t hash;
  int32_t n_ranks;
  uint32_t first, processes; /* first: the process it was seen in first */
  bool several;              /* two processes are one rank of it: it is there several times */
};

/* A rank of a space. */
struct slot {
  uint32_t space, process, group; /* process: that claimed it first; group: that claimed it last */
  int32_t rank;
  uint32_t claims, host;    /* claims: by how many groups; host: of all of them, else UINT32_MAX */
  uint64_t last_ns, gap_ns; /* when the last claimant began; the least time between two */
};

struct comm_seat {
  uint32_t process, slot, turn; /* turn: how many groups claimed the slot before */
};

/* Processes that belong together by their communicators. */
struct joined_processes {
  uint32_t *process;
  struct comm_seat *seat;
  uint32_t n, n_seats, number;
  uint32_t lives, slot, turn; /* of its most contended slot */
  uint64_t start_ns;
  bool whole; /* two or more, all in one communicator: they need no others to be a job */
};

/* What of a run is only needed until all are found. */
struct making {
  struct log_process *first;
  uint32_t lives, turn;
};

struct run_finding {
  struct ni_runs *r;
  struct ni_files *files;
  struct ni_process_head *head;
  uint32_t *process_of; /* of each file, + 1 */
  struct known_fact *known;
  struct log_process *process;
  struct space *space;
  struct slot *slot;
  struct comm_seat *seat;
  struct joined_processes *group;
  struct making *making;
  uint32_t *member; /* processes, those of one group beside each other */
  size_t n_known, cap_known, n_processes, cap_processes, n_spaces, cap_spaces, n_slots, cap_slots, n_seats,
      cap_seats, n_groups, cap_making;
  struct ni_index at_hash;
  bool apart; /* a group became a run of its own by its communicators alone */
};

static uint64_t hash_fact(uint32_t what, uint64_t a, uint64_t b, uint32_t c) {
  return ni_hash(ni_hash(ni_hash(ni_hash(0, what), a), b), c);
}

static struct known_fact *look_up_fact(struct run_finding *x, uint64_t hash, uint32_t what, uint64_t a,
                                       uint64_t b, uint32_t c) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&x->at_hash, hash, &at)) != NI_INDEX_NONE;) {
    struct known_fact *s = &x->known[k];
    const bool is_same_key = s->a == a && s->b == b && s->c == c;
    if (is_same_key && s->what == what)
      return s;
  }
  return NULL;
}

static int add_fact(struct run_finding *x, uint64_t hash, struct known_fact s) {
  if (!ni_array_room(x->known, x->n_known, x->cap_known))
    return -ENOMEM;
  if (ni_index_add(&x->at_hash, hash, (uint32_t)x->n_known) < 0)
    return -ENOMEM;
  x->known[x->n_known++] = s;
  return 0;
}

/* The number of a thing. If it is new: `number`; with put false UINT32_MAX, and it stays unknown. */
static int64_t find_number(struct run_finding *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c, bool put,
                           size_t number) {
  uint64_t hash = hash_fact(what, a, b, c);
  const struct known_fact *s = look_up_fact(x, hash, what, a, b, c);
  if (s)
    return s->number;
  if (!put)
    return UINT32_MAX;
  return add_fact(x, hash, (struct known_fact){a, b, c, what, (uint32_t)number}) < 0 ? -ENOMEM
                                                                                     : (int64_t)number;
}

/* Sets a number that changes. 0 or -ENOMEM. */
static int set_number(struct run_finding *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c,
                      size_t number) {
  uint64_t hash = hash_fact(what, a, b, c);
  struct known_fact *s = look_up_fact(x, hash, what, a, b, c);
  if (s)
    s->number = (uint32_t)number;
  return s ? 0 : add_fact(x, hash, (struct known_fact){a, b, c, what, (uint32_t)number});
}

static bool is_known(struct run_finding *x, uint32_t what, uint64_t a, uint64_t b, uint32_t c) {
  return find_number(x, what, a, b, c, false, 0) != UINT32_MAX;
}

static uint64_t pack_rank(int32_t n_ranks, int32_t rank) {
  return (uint64_t)(uint32_t)n_ranks << 32 | (uint32_t)rank;
}

static uint64_t apart_ns(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static uint64_t start_time_of(const struct log_process *p) {
  return p->head->at_ns > 0 ? (uint64_t)p->head->at_ns : 0;
}

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
static int number_process(struct run_finding *x, struct ni_process_head *h) {
  const char *path = x->files->file[h->file].path;
  char origin[PATH_MAX];
  snprintf(origin, sizeof origin, "%.*s", (int)ni_log_stem(path, NULL), path);
  uint64_t who = ni_hash_text((uint64_t)h->pid, h->host), name = ni_hash_text(0, origin);
  uint64_t when = h->log.start_ns ? h->log.start_ns : (uint64_t)h->at_ns;
  if (!ni_array_room(x->process, x->n_processes, x->cap_processes))
    return -ENOMEM;
  int64_t p = find_number(x, A_PROCESS, who, when, 0, false, 0);
  if (p == UINT32_MAX && !h->log.start_ns)
    p = find_number(x, A_FILES, who, name, 0, false, 0);
  if (p == UINT32_MAX) {
    p = (int64_t)x->n_processes;
    x->process[x->n_processes++] = (struct log_process){.head = h, .parent = (uint32_t)p};
  } else
    merge_head(x->process[p].head, h);
  x->process_of[h->file] = (uint32_t)p + 1;
  if (find_number(x, A_PROCESS, who, when, 0, true, (size_t)p) < 0)
    return -ENOMEM;
  return find_number(x, A_FILES, who, name, 0, true, (size_t)p) < 0 ? -ENOMEM : 0;
}

/* Gives its host and its job a number, since names are long. */
static int identify_process(struct run_finding *x, struct log_process *p) {
  const struct ni_process_head *h = p->head;
  uint64_t job = h->job ? ni_hash_text(1, h->job) : 0;
  int64_t host = find_number(x, A_HOST_NAME, ni_hash_text(0, h->host), 0, 0, true, x->n_known);
  int64_t identity = find_number(x, A_IDENTITY, job, (uint64_t)(uint32_t)h->attempt, 0, true, x->n_known);
  p->host = (uint32_t)host;
  p->identity = (uint32_t)identity;
  return host < 0 || identity < 0 ? -ENOMEM : 0;
}

/* ---- which of them belong together ---- */

static int add_seat(struct run_finding *x, uint32_t process, uint64_t hash, int32_t n_ranks, int32_t rank) {
  const struct log_process *p = &x->process[process];
  if (!ni_array_room(x->space, x->n_spaces, x->cap_spaces))
    return -ENOMEM;
  if (!ni_array_room(x->slot, x->n_slots, x->cap_slots))
    return -ENOMEM;
  if (!ni_array_room(x->seat, x->n_seats, x->cap_seats))
    return -ENOMEM;
  int64_t s = find_number(x, A_SPACE, hash, (uint32_t)n_ranks, p->identity, true, x->n_spaces);
  if (s < 0)
    return (int)s;
  if ((size_t)s == x->n_spaces)
    x->space[x->n_spaces++] = (struct space){hash, n_ranks, process, 0, false};
  int64_t k = find_number(x, A_SLOT, (uint64_t)s, (uint32_t)rank, 0, true, x->n_slots);
  if (k < 0)
    return (int)k;
  if ((size_t)k == x->n_slots)
    x->slot[x->n_slots++] = (struct slot){
        .space = (uint32_t)s, .process = process, .group = UINT32_MAX, .rank = rank, .gap_ns = UINT64_MAX};
  else if (x->slot[k].process == process)
    return 0;
  else {
    int64_t seat = find_number(x, A_CLAIM, (uint64_t)k, process, 0, true, x->n_seats);
    if (seat != (int64_t)x->n_seats)
      return seat < 0 ? (int)seat : 0;
    x->space[s].several = true;
  }
  x->space[s].processes++; /* several ranks of one process count as often: then nothing is whole */
  x->seat[x->n_seats++] = (struct comm_seat){.process = process, .slot = (uint32_t)k};
  return 0;
}

static int add_seats(struct run_finding *x, const struct ni_process_head *h) {
  uint32_t p = x->process_of[h->file] - 1;
  int e = 0;
  for (unsigned i = 0; e == 0 && i < h->n_seats; i++)
    e = add_seat(x, p, h->seat[i].hash, h->seat[i].n_ranks, h->seat[i].rank);
  if (e == 0 && x->process[p].head == h && h->rank >= 0)
    e = add_seat(x, p, 0, h->world, h->rank);
  return e;
}

static uint32_t find_root(struct run_finding *x, uint32_t p) {
  while (x->process[p].parent != p)
    p = x->process[p].parent = x->process[x->process[p].parent].parent;
  return p;
}

/* The smallest number is the root, so that the result does not depend on the order of joining. */
static void join_processes(struct run_finding *x, uint32_t p, uint32_t q) {
  p = find_root(x, p);
  q = find_root(x, q);
  if (p < q)
    x->process[q].parent = p;
  else
    x->process[p].parent = q;
}

static void join_by_communicators(struct run_finding *x) {
  for (size_t i = 0; i < x->n_seats; i++) {
    const struct space *s = &x->space[x->slot[x->seat[i].slot].space];
    if (s->hash && !s->several)
      join_processes(x, x->seat[i].process, s->first);
  }
}

static int by_group(const void *a, const void *b, void *arg) {
  const struct log_process *p = &((const struct run_finding *)arg)->process[*(const uint32_t *)a];
  const struct log_process *q = &((const struct run_finding *)arg)->process[*(const uint32_t *)b];
  return p->group != q->group ? NI_BY(p, q, group) : p < q ? -1 : p > q;
}

static int by_group_of_seat(const void *a, const void *b, void *arg) {
  const struct run_finding *x = arg;
  const struct comm_seat *s = a, *t = b;
  uint32_t g = x->process[s->process].group, h = x->process[t->process].group;
  return g != h ? (g < h ? -1 : 1) : NI_BY(s, t, slot, process);
}

static int make_groups(struct run_finding *x) {
  x->group = calloc(x->n_processes + 1, sizeof *x->group);
  if (!x->group)
    return -ENOMEM;
  for (uint32_t p = 0; p < x->n_processes; p++) {
    uint32_t root = find_root(x, p);
    uint32_t g = x->process[p].group = root == p ? (uint32_t)x->n_groups++ : x->process[root].group;
    uint64_t start = start_time_of(&x->process[p]);
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
  struct comm_seat *seat = x->seat;
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
static void count_claims(struct run_finding *x) {
  for (uint32_t g = 0; g < x->n_groups; g++)
    for (uint32_t i = 0; i < x->group[g].n_seats; i++) {
      struct comm_seat *seat = &x->group[g].seat[i];
      struct slot *s = &x->slot[seat->slot];
      const struct log_process *p = &x->process[seat->process];
      if (s->group == g)
        continue;
      if (s->claims && apart_ns(start_time_of(p), s->last_ns) < s->gap_ns)
        s->gap_ns = apart_ns(start_time_of(p), s->last_ns);
      s->host = s->claims == 0 || s->host == p->host ? p->host : UINT32_MAX;
      s->last_ns = start_time_of(p);
      s->group = g;
      seat->turn = s->claims++;
    }
  for (uint32_t g = 0; g < x->n_groups; g++) {
    struct joined_processes *of = &x->group[g];
    for (uint32_t i = 0; i < of->n_seats; i++) {
      const struct slot *s = &x->slot[of->seat[i].slot];
      const struct space *space = &x->space[s->space];
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

/* ---- runs ---- */

/* Are they of the same job, as far as both say? */
static bool is_same_job(const struct ni_process_head *a, const struct ni_process_head *b) {
  return a->job && b->job && strcmp(a->job, b->job) == 0;
}

/*
 * Are these two engines of one job? They begin together on different GPUs, each with the numbers of its own
 * launcher.
 */
static bool are_engines(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct log_process *first = x->making[run].first;
  bool beside = is_same_job(first->head, x->process[g->process[0]].head);
  beside = beside && apart_ns((uint64_t)x->r->run[run].start_ns, g->start_ns) < ENGINES_NS;
  for (uint32_t i = 0; beside && i < g->n; i++)
    beside = x->process[g->process[i]].head->gpu != 0;
  return beside;
}

static bool uses_its_gpu(struct run_finding *x, const struct log_process *p, uint32_t run) {
  if (!p->head->gpu)
    return false;
  int64_t other = find_number(x, A_GPU, p->head->gpu, p->host, run, false, 0);
  return other != UINT32_MAX && x->process[other].head->pid != p->head->pid;
}

static bool can_join_run(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->process[g->process[0]].head;
  bool same = is_same_job(a, b);
  if (a->job && b->job && !same)
    return false;
  if (a->attempt >= 0 && b->attempt >= 0 && a->attempt != b->attempt)
    return false;
  const bool have_ranks = a->rank >= 0 && b->rank >= 0;
  if (!same && have_ranks && a->world != b->world)
    return false;
  for (uint32_t i = 0; i < g->n; i++)
    if (uses_its_gpu(x, &x->process[g->process[i]], run))
      return false;
  for (uint32_t i = 0; i < g->n_seats; i++) {
    const struct slot *s = &x->slot[g->seat[i].slot];
    const struct space *space = &x->space[s->space];
    bool held = is_known(x, A_HELD, space->hash, pack_rank(space->n_ranks, s->rank), run);
    if (held && (space->hash || !are_engines(x, g, run)))
      return false;
  }
  return true;
}

/* A process of the run on the host of this one; NULL: none. */
static const struct log_process *find_process_on_host(struct run_finding *x, const struct log_process *p,
                                                      uint32_t run) {
  int64_t other = find_number(x, A_ON_HOST, p->host, 0, run, false, 0);
  return other == UINT32_MAX ? NULL : &x->process[other];
}

/* How far the group is from the run in time: by one clock, if they have a host in common. */
static uint64_t time_to_run(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct log_process *p = &x->process[g->process[0]], *other = find_process_on_host(x, p, run);
  return other ? apart_ns(start_time_of(p), start_time_of(other))
               : apart_ns(g->start_ns, (uint64_t)x->r->run[run].start_ns);
}

/* How much speaks for the group being of that run; 0: nothing. */
static unsigned measure_affinity(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->process[g->process[0]].head;
  unsigned sum = is_same_job(a, b) ? 2 : 0;
  for (uint32_t i = 0; i < g->n_seats && sum < 4; i++) {
    const struct space *space = &x->space[x->slot[g->seat[i].slot].space];
    if (space->hash && is_known(x, A_HAS, space->hash, (uint32_t)space->n_ranks, run))
      sum += 4;
  }
  bool ranked = a->rank >= 0 && b->rank >= 0; /* of one world, see can_join_run() */
  const bool may_join = ranked || !g->whole;
  if (sum == 0 && may_join && time_to_run(x, g, run) < NEAR_NS)
    sum = 1;
  return sum;
}

struct choice {
  uint32_t run;
  unsigned affinity;
  bool turn; /* the how manyth claim of its rank tells */
  uint64_t far_ns, far_pid;
};

static bool is_better(const struct choice *a, const struct choice *b) {
  if (a->affinity != b->affinity)
    return a->affinity > b->affinity;
  if (a->turn != b->turn)
    return a->turn;
  return a->far_ns < b->far_ns;
}

/* Does this decide it, or is the next best choice as good? */
static bool is_clear(const struct run_finding *x, const struct joined_processes *g, const struct choice *best,
                     const struct choice *next) {
  if (best->affinity != next->affinity)
    return true;
  if (best->turn != next->turn)
    return x->slot[g->slot].gap_ns >= CLEAR_NS;
  return next->far_ns >= CLEAR_NS && next->far_ns / CLEARLY >= best->far_ns;
}

static struct choice weigh_run(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct making *m = &x->making[run];
  const struct log_process *p = &x->process[g->process[0]], *other = find_process_on_host(x, p, run);
  bool counted = g->lives > 1 && m->lives == g->lives && x->slot[g->slot].host != UINT32_MAX;
  return (struct choice){.run = run,
                         .affinity = measure_affinity(x, g, run),
                         .turn = counted && m->turn == g->turn,
                         .far_ns = time_to_run(x, g, run),
                         .far_pid = other ? apart_ns((uint64_t)p->head->pid, (uint64_t)other->head->pid) : 0};
}

/*
 * Two launchers start their processes one after the other. Process numbers tell them apart where times do
 * not.
 */
static bool is_told_by_pid(const struct choice *a, const struct choice *b) {
  return a->far_pid && b->far_pid && b->far_pid / CLEARLY >= a->far_pid;
}

/* Chooses the run that a group is of. UINT32_MAX: none of those that exist. */
static uint32_t choose_run(struct run_finding *x, const struct joined_processes *g) {
  struct choice best = {.run = UINT32_MAX}, next = best;
  size_t n = x->r->n;
  for (size_t i = n > RUNS_TRIED ? n - RUNS_TRIED : 0; i < n; i++) {
    if (!can_join_run(x, g, (uint32_t)i))
      continue;
    struct choice c = weigh_run(x, g, (uint32_t)i);
    x->apart |= !c.affinity && c.far_ns < NEAR_NS;
    if (!c.affinity)
      continue;
    if (best.run == UINT32_MAX || is_better(&c, &best)) {
      next = best;
      best = c;
    } else if (next.run == UINT32_MAX || is_better(&c, &next))
      next = c;
  }
  if (next.run == UINT32_MAX || is_clear(x, g, &best, &next))
    return best.run;
  if (is_told_by_pid(&best, &next))
    return best.run;
  if (is_told_by_pid(&next, &best))
    return next.run;
  x->r->run[best.run].mixed_with = next.run + 1;
  x->r->run[next.run].mixed_with = best.run + 1;
  return best.run;
}

static int claim_ranks(struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  int64_t e = 0;
  for (uint32_t i = 0; e >= 0 && i < g->n_seats; i++) {
    const struct slot *s = &x->slot[g->seat[i].slot];
    const struct space *space = &x->space[s->space];
    e = find_number(x, A_HELD, space->hash, pack_rank(space->n_ranks, s->rank), run, true, 0);
    if (e >= 0)
      e = find_number(x, A_HAS, space->hash, (uint32_t)space->n_ranks, run, true, 0);
  }
  for (uint32_t i = 0; e >= 0 && i < g->n; i++) {
    const struct log_process *p = &x->process[g->process[i]];
    e = set_number(x, A_ON_HOST, p->host, 0, run,
                   g->process[i]); /* the next one there is nearest to the latest */
    if (e >= 0 && p->head->gpu)
      e = find_number(x, A_GPU, p->head->gpu, p->host, run, true, g->process[i]);
  }
  return e < 0 ? (int)e : 0;
}

/* Does only the time hold the run together? Ranks of one launcher, or the id of a job, would do so better. */
static bool is_loose(const struct run_finding *x, const struct joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->process[g->process[0]].head;
  return !is_same_job(a, b) && (a->rank < 0 || b->rank < 0);
}

static int assign_run(struct run_finding *x, const struct joined_processes *g) {
  struct ni_runs *r = x->r;
  bool lone = x->n_groups == 1;
  uint32_t run = lone ? UINT32_MAX : choose_run(x, g);
  if (run == UINT32_MAX) {
    run = (uint32_t)r->n;
    if (!ni_array_room(r->run, r->n, r->cap) || !ni_array_room(x->making, run, x->cap_making))
      return -ENOMEM;
    x->making[run] = (struct making){&x->process[lone ? 0 : g->process[0]], g->lives, g->turn};
    r->run[r->n++] = (struct ni_job_run){.start_ns = (int64_t)g->start_ns, .parts = 1};
  } else if (is_loose(x, g, run) && measure_affinity(x, g, run) < 4)
    r->run[run].parts++;
  struct ni_job_run *of = &r->run[run];
  if ((int64_t)g->start_ns < of->start_ns)
    of->start_ns = (int64_t)g->start_ns;
  of->processes += g->n;
  for (uint32_t i = 0; !of->job && i < g->n; i++) {
    const char *job = x->process[lone ? i : g->process[i]].head->job;
    if (job && !(of->job = strdup(job)))
      return -ENOMEM;
  }
  x->group[g->number].number = run;
  if (lone)
    return 0;
  return claim_ranks(x, g, run);
}

/*
 * Groups whose rank is there most often come first. Each of these begins another run, and the others are
 * assigned to them.
 */
static int by_lives(const void *a, const void *b, void *arg) {
  const struct joined_processes *all = arg, *g = &all[*(const uint32_t *)a], *h = &all[*(const uint32_t *)b];
  if (g->lives != h->lives)
    return g->lives > h->lives ? -1 : 1;
  return NI_BY(g, h, slot, number);
}

static int assign_all_runs(struct run_finding *x) {
  uint32_t *order = ni_order((uint32_t)x->n_groups, by_lives, x->group);
  int e = order ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < x->n_groups; i++)
    e = assign_run(x, &x->group[order[i]]);
  free(order);
  return e;
}

/* ---- all of it ---- */

static void free_finding(struct run_finding *x) {
  ni_index_free(&x->at_hash);
  free(x->known);
  free(x->process);
  free(x->space);
  free(x->slot);
  free(x->seat);
  free(x->group);
  free(x->making);
  free(x->member);
  free(x->process_of);
  *x = (struct run_finding){.r = x->r, .files = x->files, .head = x->head};
}

static int by_time(const void *a, const void *b, void *arg) {
  const struct ni_process_head *x = arg;
  return NI_BY(&x[*(const uint32_t *)a], &x[*(const uint32_t *)b], at_ns, file);
}

static int find_all_runs(struct run_finding *x) {
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
  if (e == 0) {
    join_by_communicators(x);
    e = make_groups(x);
  }
  if (e == 0 && x->n_groups > 1)
    count_claims(x);
  return e == 0 && x->n_groups ? assign_all_runs(x) : e;
}

/*
 * What the first lines of the logs leave open, more lines may tell: other communicators. All logs are read
 * again, and runs are found anew.
 */
static int find_again_with_more_lines(struct run_finding *x) {
  bool open = x->apart || ni_runs_are_doubtful(x->r);
  if (!open)
    return 0;
  bool *wanted = malloc(x->files->n + 1);
  if (!wanted)
    return -ENOMEM;
  for (size_t i = 0; i < x->files->n; i++)
    wanted[i] = x->process_of[i] != 0;
  int e = ni_heads_read(x->head, x->files, wanted);
  free(wanted);
  ni_runs_free(x->r);
  free_finding(x);
  return e == 0 ? find_all_runs(x) : e;
}

static int by_start(const void *a, const void *b, void *arg) {
  const struct ni_job_run *x = arg;
  uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  int c = NI_BY(&x[i], &x[k], start_ns);
  return c ? c : (i > k) - (i < k);
}

/* Runs are numbered as they began. */
static int number_runs(struct run_finding *x) {
  struct ni_runs *r = x->r;
  uint32_t *order = ni_order((uint32_t)r->n, by_start, r->run), *now = calloc(r->n + 1, sizeof *now);
  struct ni_job_run *run = malloc((r->n + 1) * sizeof *run);
  int e = order && now && run ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < r->n; i++) {
    now[order[i]] = (uint32_t)i + 1;
    run[i] = r->run[order[i]];
  }
  for (size_t i = 0; e == 0 && i < r->n; i++)
    if (run[i].mixed_with)
      run[i].mixed_with = now[run[i].mixed_with - 1];
  if (e == 0 && r->n)
    memcpy(r->run, run, r->n * sizeof *run);
  for (size_t i = 0; e == 0 && i < x->files->n; i++) {
    uint32_t p = x->process_of[i];
    if (p) /* 0: without a line. Nobody knows whose that file is: it is read with whatever is read. */
      x->files->file[i].run = now[x->group[x->process[p - 1].group].number];
  }
  free(order);
  free(now);
  free(run);
  return e;
}

/* As `trace` and `summary` call the process. */
static void note_job_rank(struct ni_log_head *log, const struct ni_process_head *h) {
  const struct ni_head_seat *largest = NULL;
  bool several = false;
  for (unsigned i = 0; i < h->n_seats; i++) {
    for (unsigned k = 0; k < i; k++)
      several |= h->seat[k].hash == h->seat[i].hash; /* a seat stands there once */
    if (!largest || h->seat[i].n_ranks > largest->n_ranks)
      largest = &h->seat[i];
  }
  log->job_size = several ? largest->n_ranks : 0;
  log->job_rank = h->rank >= 0 || !largest ? h->rank : largest->rank;
}

int ni_runs_find(struct ni_runs *out, struct ni_files *files) {
  struct run_finding x = {.r = out, .files = files, .head = calloc(files->n + 1, sizeof *x.head)};
  int e = x.head ? ni_heads_read(x.head, files, NULL) : -ENOMEM;
  if (e == 0 && out)
    e = find_all_runs(&x);
  if (e == 0 && out)
    e = find_again_with_more_lines(&x);
  if (e == 0 && out)
    e = number_runs(&x);
  for (size_t i = 0; x.head && i < files->n; i++) {
    const uint32_t p = x.process_of ? x.process_of[i] : 0;
    files->file[i].head = x.head[i].log;
    note_job_rank(&files->file[i].head, p ? x.process[p - 1].head : &x.head[i]);
  }
  for (size_t i = 0; x.head && i < files->n; i++)
    ni_head_free(&x.head[i]);
  free_finding(&x);
  free(x.head);
  return e;
}
