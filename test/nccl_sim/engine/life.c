/*
 * Communicators: creation, draining, destruction in NCCL's order, abort, shared progress threads.
 *
 * Ranks of one process in one communicator form a clique: the last to destroy finalizes all of them in a row,
 * as NCCL does. States, threads and ownership: engine.h; order of teardown: callbacks 4.4.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine.h"
#include "truth.h"

struct ni_run ni_run;

static struct ni_crank *peer_in_process(const struct ni_crank *c, int i) {
  return ni_run.ranks[i].cranks[c->comm];
}

static void join_proxy(struct ni_crank *c, bool abort) {
  struct ni_proxy *p = c->proxy;
  pthread_mutex_lock(&ni_run.clique_lock);
  bool last = --p->users == 0;
  pthread_mutex_unlock(&ni_run.clique_lock);
  if (last || abort)
    ni_proxy_join(p, abort);
}

/* Under clique_lock. A proxy outlives its communicators: graph host functions may still post to it. All of
 * them hang on one list until the process ends, so that a leak checker finds only what is really lost. */
static struct ni_proxy *new_proxy(void *ctx, uint64_t seed) {
  static struct ni_proxy *made;
  struct ni_proxy *p = ni_xalloc(sizeof *p);
  p->made_before = made;
  made = p;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->cond, NULL);
  pthread_cond_init(&p->net_cond, NULL);
  p->rng = ni_mix(ni_run.scn->set.seed, seed);
  p->net_rng = ni_mix(p->rng, 3);
  p->creator_ctx = ctx;
  return p;
}

/* Of a new life of a communicator; with `behind` the device is ahead from its first work on. */
static void new_counters(struct ni_crank *c) {
  for (int kind = 0; kind < 2; kind++)
    for (int ch = 0; ch < NI_SIM_CHANNELS; ch++) {
      c->counted[kind][ch] = 0;
      c->device_counted[kind][ch] = kind == 0 ? (uint64_t)ni_run.scn->set.behind : 0;
      free(c->rings[kind][ch]);
      c->rings[kind][ch] = NULL;
    }
  for (int dir = 0; dir < 3; dir++)
    for (int ch = 0; ch < NI_SIM_CHANNELS; ch++)
      c->chains[dir][ch].no_phases = false;
  c->drop = 0;
}

void ni_crank_init(struct ni_crank *c) {
  if (c->up)
    return;
  const struct ni_settings *set = &ni_run.scn->set;
  c->id.hash = ni_mix(set->seed * 1000003u + c->inits++, (uint64_t)c->comm + 17);
  c->loaded = ni_core_load();
  if (c->loaded)
    __atomic_store_n(&ni_run.interface, ni_core.interface, __ATOMIC_RELAXED);
  c->ctx = NULL;
  if (c->loaded) {
    int rc = ni_core_init(&c->ctx, &c->id);
    /* 2.30 lets go at once when init failed, and once more when the communicator is freed. */
    if (rc != 0 && ni_core.release >= 23000)
      ni_core_unload();
  }
  for (int i = 0; i < NI_FUNC_COUNT; i++)
    c->sn[i] = 0;
  c->rec[0] = c->rec[1] = c->ahead = 0;
  new_counters(c);
  c->calls[0] = c->calls[1] = 0;
  pthread_mutex_lock(&ni_run.clique_lock);
  struct ni_crank *parent = c->decl->share >= 0 ? c->owner->cranks[c->decl->share] : NULL;
  if (parent && parent->up) {
    c->proxy = parent->proxy;
  } else if (set->progress_threads > 0) {
    c->proxy = &ni_run.pool[(c->comm + c->owner->rank) % set->progress_threads];
    if (c->proxy->users == 0)
      c->proxy->creator_ctx = c->ctx;
  } else {
    c->proxy = new_proxy(c->ctx, (uint64_t)c->comm * 65536 + (uint64_t)c->owner->rank);
  }
  c->proxy->users++;
  if (!c->proxy->started) {
    ni_proxy_start(c->proxy);
  }
  pthread_mutex_unlock(&ni_run.clique_lock);
  ni_truth_comm(c);
  c->up = true;
}

void ni_crank_drain(struct ni_crank *c) {
  if (!c->up)
    return;
  pthread_mutex_lock(&c->lock);
  while (c->outstanding > c->n_stuck)
    pthread_cond_wait(&c->room, &c->lock);
  pthread_mutex_unlock(&c->lock);
}

/* What the profiler thread still waits for when the kernels are over: thrown away, and nobody is told. */
static void throw_away(struct ni_crank *c) {
  pthread_mutex_lock(&c->lock);
  bool any = c->outstanding > 0;
  pthread_mutex_unlock(&c->lock);
  if (!any)
    return;
  c->drop = 1;
  while (c->drop != 2)
    ni_sleep_ns(20000);
  ni_crank_drain(c);
}

static void finish(struct ni_crank *c) {
  ni_core_finalize(c->ctx);
  if (c->loaded)
    ni_core_unload();
  c->up = false;
}

void ni_crank_destroy(struct ni_crank *c) {
  if (!c->up)
    return;
  ni_crank_drain(c);
  throw_away(c);
  ni_truth_close_comm(c, NI_OUT_OPEN);
  int members = 0;
  for (int i = 0; i < ni_run.n_ranks; i++)
    members += peer_in_process(c, i) != NULL;
  pthread_mutex_lock(&ni_run.clique_lock);
  bool last = ++ni_run.clique[c->comm] == members;
  if (last)
    ni_run.clique[c->comm] = 0;
  pthread_mutex_unlock(&ni_run.clique_lock);
  if (!last) {
    /* finalized by the last; this rank must not start again before that */
    while (c->up)
      ni_sleep_ns(50000);
    return;
  }
  for (int i = 0; i < ni_run.n_ranks; i++)
    if (peer_in_process(c, i))
      join_proxy(peer_in_process(c, i), false);
  for (int i = 0; i < ni_run.n_ranks; i++)
    if (peer_in_process(c, i))
      finish(peer_in_process(c, i));
}

void ni_crank_abort(struct ni_crank *c) {
  if (!c->up)
    return;
  join_proxy(c, true);
  ni_truth_close_comm(c, NI_OUT_ABORT);
  finish(c);
}

static void new_crank(struct ni_rank *r, int comm, int comm_rank) {
  const struct ni_comm_decl *d = &ni_run.scn->comms[comm];
  struct ni_crank *c = ni_xalloc(sizeof *c);
  c->decl = d;
  c->comm = comm;
  c->owner = r;
  c->id = (struct ni_comm_ident){d->label || !ni_core.rccl ? d->label : "unknown", 0, d->n_nodes, d->n_ranks,
                                 comm_rank};
  c->meet = ni_run.meets[comm];
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->room, NULL);
  r->cranks[comm] = c;
}

/* Only the ranks of this process get their structures; `proc` of `procs` has been set by then. */
void ni_run_prepare(const struct ni_scn *s, const char *scenario) {
  ni_run.scn = s;
  ni_run.scenario = scenario;
  ni_run.unix_minus_mono = (int64_t)ni_unix_now() - (int64_t)ni_now();
  ni_run.clique = ni_xalloc((size_t)s->n_comms * sizeof(int));
  pthread_mutex_init(&ni_run.clique_lock, NULL);
  ni_run.n_ranks = s->set.procs ? 1 : s->set.ranks;
  ni_run.ranks = ni_xalloc((size_t)ni_run.n_ranks * sizeof *ni_run.ranks);
  pthread_barrier_init(&ni_run.barrier, NULL, (unsigned)ni_run.n_ranks);
  ni_run.wild = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (ni_run.wild == MAP_FAILED)
    ni_die(NI_SIM_FAILED, "mmap of a forbidden page failed");
  if (s->set.progress_threads > 0) {
    ni_run.pool = ni_xalloc((size_t)s->set.progress_threads * sizeof *ni_run.pool);
    for (int i = 0; i < s->set.progress_threads; i++) {
      struct ni_proxy *p = new_proxy(NULL, (uint64_t)i);
      ni_run.pool[i] = *p;
      free(p);
      pthread_mutex_init(&ni_run.pool[i].lock, NULL);
      pthread_cond_init(&ni_run.pool[i].cond, NULL);
      pthread_cond_init(&ni_run.pool[i].net_cond, NULL);
    }
  }
  uint64_t now = ni_now();
  for (int i = 0; i < ni_run.n_ranks; i++) {
    struct ni_rank *r = &ni_run.ranks[i];
    r->run = &ni_run;
    r->rank = s->set.procs ? ni_run.proc : i;
    r->rng = ni_mix(s->set.seed, (uint64_t)r->rank + 1);
    r->h_rng = ni_mix(s->set.seed, (uint64_t)r->rank + 77777);
    r->cranks = ni_xalloc((size_t)s->n_comms * sizeof *r->cranks);
    pthread_mutex_init(&r->h_lock, NULL);
    pthread_cond_init(&r->h_cond, NULL);
    ni_gpu_clock_set(&r->clock, now, ni_run.unix_minus_mono, ni_mix(s->set.seed + 99, (uint64_t)r->rank),
                     s->set.gpu_offset_us, s->set.gpu_drift_ppm, ni_core.rccl ? NI_RCCL_TICK_NS : 1);
    for (int k = 0; k < s->n_comms; k++)
      for (int m = 0; m < s->comms[k].live; m++)
        if (s->comms[k].ranks[m] == r->rank)
          new_crank(r, k, m);
  }
}
