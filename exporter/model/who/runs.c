/*
 * Which run each group of processes is of (together.h): a run holds each rank once. A group joins the run
 * that most speaks for, by the job's id, communicators in common, and time; else it begins another one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "together.h"
#include "who.h"

#define RUNS_TRIED 64 /* the newest; so hostile logs cost no more than others */
#define S_NS UINT64_C(1000000000)
/* without a job id: what begins later than that is no part of a run */
#define NEAR_NS (600 * S_NS)
#define CLEAR_NS (2 * S_NS) /* ranks of one job on one host begin that close together */
#define ENGINES_NS (10 * S_NS)
#define CLEARLY 4 /* so many times nearer is clearly nearer */

/* What of a run is only needed until all are found. */
struct making {
  struct ni_log_process *first;
  uint32_t lives, turn;
};

struct run_finding {
  struct ni_runs *r;
  struct ni_together t;
  struct making *making;
  size_t cap_making;
  bool apart; /* a group became a run of its own by its communicators alone */
};

/* Are they of the same job, as far as both say? */
static bool is_same_job(const struct ni_process_head *a, const struct ni_process_head *b) {
  return a->job && b->job && strcmp(a->job, b->job) == 0;
}

/*
 * Are these two engines of one job? They begin together on different GPUs, each with the numbers of its own
 * launcher.
 */
static bool are_engines(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct ni_log_process *first = x->making[run].first;
  bool beside = is_same_job(first->head, x->t.process[g->process[0]].head);
  beside = beside && ni_apart_ns((uint64_t)x->r->run[run].start_ns, g->start_ns) < ENGINES_NS;
  for (uint32_t i = 0; beside && i < g->n; i++)
    beside = x->t.process[g->process[i]].head->gpu != 0;
  return beside;
}

static bool uses_its_gpu(struct run_finding *x, const struct ni_log_process *p, uint32_t run) {
  if (!p->head->gpu)
    return false;
  int64_t other = ni_fact_find(&x->t.facts, NI_FACT_GPU, p->head->gpu, p->host, run, false, 0);
  return other != UINT32_MAX && x->t.process[other].head->pid != p->head->pid;
}

static bool can_join_run(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->t.process[g->process[0]].head;
  bool same = is_same_job(a, b);
  if (a->job && b->job && !same)
    return false;
  if (a->attempt >= 0 && b->attempt >= 0 && a->attempt != b->attempt)
    return false;
  const bool have_ranks = a->rank >= 0 && b->rank >= 0;
  if (!same && have_ranks && a->world != b->world)
    return false;
  for (uint32_t i = 0; i < g->n; i++)
    if (uses_its_gpu(x, &x->t.process[g->process[i]], run))
      return false;
  for (uint32_t i = 0; i < g->n_seats; i++) {
    const struct ni_rank_slot *s = &x->t.slot[g->seat[i].slot];
    const struct ni_rank_space *space = &x->t.space[s->space];
    bool held =
        ni_fact_is_known(&x->t.facts, NI_FACT_HELD, space->hash, ni_pack_rank(space->n_ranks, s->rank), run);
    if (held && (space->hash || !are_engines(x, g, run)))
      return false;
  }
  return true;
}

/* A process of the run on the host of this one; NULL: none. */
static const struct ni_log_process *find_process_on_host(struct run_finding *x,
                                                         const struct ni_log_process *p, uint32_t run) {
  int64_t other = ni_fact_find(&x->t.facts, NI_FACT_ON_HOST, p->host, 0, run, false, 0);
  return other == UINT32_MAX ? NULL : &x->t.process[other];
}

/* How far the group is from the run in time: by one clock, if they have a host in common. */
static uint64_t time_to_run(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct ni_log_process *p = &x->t.process[g->process[0]], *other = find_process_on_host(x, p, run);
  return other ? ni_apart_ns(ni_process_start(p), ni_process_start(other))
               : ni_apart_ns(g->start_ns, (uint64_t)x->r->run[run].start_ns);
}

/* How much speaks for the group being of that run; 0: nothing. */
static unsigned measure_affinity(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->t.process[g->process[0]].head;
  unsigned sum = is_same_job(a, b) ? 2 : 0;
  for (uint32_t i = 0; i < g->n_seats && sum < 4; i++) {
    const struct ni_rank_space *space = &x->t.space[x->t.slot[g->seat[i].slot].space];
    if (space->hash && ni_fact_is_known(&x->t.facts, NI_FACT_HAS, space->hash, (uint32_t)space->n_ranks, run))
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
static bool is_clear(const struct run_finding *x, const struct ni_joined_processes *g,
                     const struct choice *best, const struct choice *next) {
  if (best->affinity != next->affinity)
    return true;
  if (best->turn != next->turn)
    return x->t.slot[g->slot].gap_ns >= CLEAR_NS;
  return next->far_ns >= CLEAR_NS && next->far_ns / CLEARLY >= best->far_ns;
}

static struct choice weigh_run(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct making *m = &x->making[run];
  const struct ni_log_process *p = &x->t.process[g->process[0]], *other = find_process_on_host(x, p, run);
  bool counted = g->lives > 1 && m->lives == g->lives && x->t.slot[g->slot].host != UINT32_MAX;
  return (struct choice){
      .run = run,
      .affinity = measure_affinity(x, g, run),
      .turn = counted && m->turn == g->turn,
      .far_ns = time_to_run(x, g, run),
      .far_pid = other ? ni_apart_ns((uint64_t)p->head->pid, (uint64_t)other->head->pid) : 0};
}

/*
 * Two launchers start their processes one after the other. Process numbers tell them apart where times do
 * not.
 */
static bool is_told_by_pid(const struct choice *a, const struct choice *b) {
  return a->far_pid && b->far_pid && b->far_pid / CLEARLY >= a->far_pid;
}

/* Chooses the run that a group is of. UINT32_MAX: none of those that exist. */
static uint32_t choose_run(struct run_finding *x, const struct ni_joined_processes *g) {
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

static int claim_ranks(struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  int64_t e = 0;
  for (uint32_t i = 0; e >= 0 && i < g->n_seats; i++) {
    const struct ni_rank_slot *s = &x->t.slot[g->seat[i].slot];
    const struct ni_rank_space *space = &x->t.space[s->space];
    e = ni_fact_find(&x->t.facts, NI_FACT_HELD, space->hash, ni_pack_rank(space->n_ranks, s->rank), run, true,
                     0);
    if (e >= 0)
      e = ni_fact_find(&x->t.facts, NI_FACT_HAS, space->hash, (uint32_t)space->n_ranks, run, true, 0);
  }
  for (uint32_t i = 0; e >= 0 && i < g->n; i++) {
    const struct ni_log_process *p = &x->t.process[g->process[i]];
    e = ni_fact_set(&x->t.facts, NI_FACT_ON_HOST, p->host, 0, run,
                    g->process[i]); /* the next one there is nearest to the latest */
    if (e >= 0 && p->head->gpu)
      e = ni_fact_find(&x->t.facts, NI_FACT_GPU, p->head->gpu, p->host, run, true, g->process[i]);
  }
  return e < 0 ? (int)e : 0;
}

/* Does only the time hold the run together? Ranks of one launcher, or the id of a job, would do so better. */
static bool is_loose(const struct run_finding *x, const struct ni_joined_processes *g, uint32_t run) {
  const struct ni_process_head *a = x->making[run].first->head, *b = x->t.process[g->process[0]].head;
  return !is_same_job(a, b) && (a->rank < 0 || b->rank < 0);
}

static int assign_run(struct run_finding *x, const struct ni_joined_processes *g) {
  struct ni_runs *r = x->r;
  bool lone = x->t.n_groups == 1;
  uint32_t run = lone ? UINT32_MAX : choose_run(x, g);
  if (run == UINT32_MAX) {
    run = (uint32_t)r->n;
    if (!ni_array_room(r->run, r->n, r->cap) || !ni_array_room(x->making, run, x->cap_making))
      return -ENOMEM;
    x->making[run] = (struct making){&x->t.process[lone ? 0 : g->process[0]], g->lives, g->turn};
    r->run[r->n++] = (struct ni_job_run){.start_ns = (int64_t)g->start_ns, .parts = 1};
  } else if (is_loose(x, g, run) && measure_affinity(x, g, run) < 4)
    r->run[run].parts++;
  struct ni_job_run *of = &r->run[run];
  if ((int64_t)g->start_ns < of->start_ns)
    of->start_ns = (int64_t)g->start_ns;
  of->processes += g->n;
  for (uint32_t i = 0; !of->job && i < g->n; i++) {
    const char *job = x->t.process[lone ? i : g->process[i]].head->job;
    if (job && !(of->job = strdup(job)))
      return -ENOMEM;
  }
  x->t.group[g->number].number = run;
  if (lone)
    return 0;
  return claim_ranks(x, g, run);
}

/*
 * Groups whose rank is there most often come first. Each of these begins another run, and the others are
 * assigned to them.
 */
static int by_lives(const void *a, const void *b, void *arg) {
  const struct ni_joined_processes *all = arg, *g = &all[*(const uint32_t *)a],
                                   *h = &all[*(const uint32_t *)b];
  if (g->lives != h->lives)
    return g->lives > h->lives ? -1 : 1;
  return NI_BY(g, h, slot, number);
}

static int assign_all_runs(struct run_finding *x) {
  uint32_t *order = ni_order((uint32_t)x->t.n_groups, by_lives, x->t.group);
  int e = order ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < x->t.n_groups; i++)
    e = assign_run(x, &x->t.group[order[i]]);
  free(order);
  return e;
}

static void free_finding(struct run_finding *x) {
  ni_together_free(&x->t);
  free(x->making);
  *x = (struct run_finding){.r = x->r, .t = x->t};
}

static int find_all_runs(struct run_finding *x) {
  const int e = ni_together_find(&x->t);
  return e == 0 && x->t.n_groups ? assign_all_runs(x) : e;
}

/*
 * What the first lines of the logs leave open, more lines may tell: other communicators. All logs are read
 * again, and runs are found anew.
 */
static int find_again_with_more_lines(struct run_finding *x) {
  bool open = x->apart || ni_runs_are_doubtful(x->r);
  if (!open)
    return 0;
  bool *wanted = malloc(x->t.files->n + 1);
  if (!wanted)
    return -ENOMEM;
  for (size_t i = 0; i < x->t.files->n; i++)
    wanted[i] = x->t.process_of[i] != 0;
  int e = ni_heads_read(x->t.head, x->t.files, wanted);
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
  for (size_t i = 0; e == 0 && i < x->t.files->n; i++) {
    uint32_t p = x->t.process_of[i];
    if (p) /* 0: without a line. Nobody knows whose that file is: it is read with whatever is read. */
      x->t.files->file[i].run = now[x->t.group[x->t.process[p - 1].group].number];
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
  struct run_finding x = {.r = out, .t = {.files = files, .head = calloc(files->n + 1, sizeof *x.t.head)}};
  int e = x.t.head ? ni_heads_read(x.t.head, files, NULL) : -ENOMEM;
  if (e == 0 && out)
    e = find_all_runs(&x);
  if (e == 0 && out)
    e = find_again_with_more_lines(&x);
  if (e == 0 && out)
    e = number_runs(&x);
  for (size_t i = 0; x.t.head && i < files->n; i++) {
    const uint32_t p = x.t.process_of ? x.t.process_of[i] : 0;
    files->file[i].head = x.t.head[i].log;
    note_job_rank(&files->file[i].head, p ? x.t.process[p - 1].head : &x.t.head[i]);
  }
  for (size_t i = 0; x.t.head && i < files->n; i++)
    ni_head_free(&x.t.head[i]);
  free_finding(&x);
  free(x.t.head);
  return e;
}
