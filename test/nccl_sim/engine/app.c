/*
 * A rank's application thread: walks the scenario's steps, launches kernels and raises what NCCL raises
 * around them. States, threads and ownership: engine.h. Sequences: callbacks 3.1 to 3.7.
 */
#include <string.h>

#include "engine.h"
#include "ends.h"
#include "truth.h"

bool ni_takes_part(const struct ni_crank *c, const struct ni_step *st) {
  if (st->skip_rank == c->id.rank || (st->only_rank >= 0 && st->only_rank != c->id.rank))
    return false;
  return st->pair_from < 0 || st->pair_from == c->id.rank || st->pair_to == c->id.rank;
}

/* An empty collective, and any on a communicator of one rank, returns before anything is raised. */
bool ni_task_mine(const struct ni_crank *c, const struct ni_task *t) {
  if (t->kind == NI_TASK_COLL && (t->count == 0 || c->id.n_ranks < 2))
    return false;
  return t->only_rank < 0 || t->only_rank == c->id.rank;
}

int ni_participants(const struct ni_crank *c, const struct ni_plan *plan) {
  int live = c->decl->live, n = 0;
  for (int i = 0; i < plan->n_tasks; i++) {
    int rank = plan->tasks[i].only_rank;
    if (rank < 0)
      return live; /* a rank that skips is still waited for */
    bool known = rank >= live;
    for (int k = 0; k < i && !known; k++)
      known = plan->tasks[k].only_rank == rank;
    n += !known;
  }
  return n;
}

/* Returns the call's number; -1 when no API event is raised. */
static struct ni_called start_api(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st,
                                  const struct ni_task *t, int mask, bool captured) {
  struct ni_prof_descr_v7 d;
  struct ni_called called = {NULL, -1};
  void *stream = (void *)(uintptr_t)(0x5500000000u + (uintptr_t)c->comm * 64);
  bool coll = t->kind == NI_TASK_COLL, shown = ni_core.interface >= 5;
  if (ni_core.release < 22800 || (ni_run.scn->set.rearch && ni_core_new(ni_core.release)))
    return called;
  if (!r->group_api && ni_wants_group_api(mask)) {
    memset(&d, 0, sizeof d);
    d.type = NI_EV_GROUP_API;
    d.groupApi.graphCaptured = captured;
    d.groupApi.groupDepth = st->user_group ? 2 : 1;
    ni_core_start(c->ctx, &r->group_api, &d);
    ni_core_record(r->group_api, NI_ST_GROUP_API_START_END, NULL);
  }
  memset(&d, 0, sizeof d);
  d.parentObj = r->group_api;
  if (coll && ni_wants_coll_api(mask)) {
    d.type = NI_EV_COLL_API;
    d.collApi.func = t->func_name;
    d.collApi.count = t->count;
    d.collApi.datatype = t->dtype;
    d.collApi.root = t->root;
    d.collApi.stream = stream;
    d.collApi.graphCaptured = captured;
    d.collApi.userTag = t->tag;
    r->coll_api = NULL;
    if (shown)
      called.call = c->calls[0]++;
    ni_core_start(c->ctx, &r->coll_api, &d);
  } else if (!coll && ni_wants_p2p_api(mask)) {
    d.type = NI_EV_P2P_API;
    d.p2pApi.func = t->func_name;
    d.p2pApi.count = t->count;
    d.p2pApi.datatype = t->dtype;
    d.p2pApi.stream = stream;
    d.p2pApi.graphCaptured = captured;
    d.p2pApi.userTag = t->tag;
    r->p2p_api = NULL;
    if (shown)
      called.call = c->calls[1]++;
    ni_core_start(c->ctx, &r->p2p_api, &d);
  }
  /* Stopped also when nothing was started now: the old handle is still there (callbacks 3.5). */
  called.handle = coll ? r->coll_api : r->p2p_api;
  ni_core_stop(called.handle);
  return called;
}

static void kernel_launch(struct ni_rank *r, struct ni_crank *c, int mask) {
  void *launch = NULL;
  if (ni_core.release < 22800 || !(mask & NI_EV_KERNEL_LAUNCH))
    return;
  struct ni_prof_descr_v7 d;
  memset(&d, 0, sizeof d);
  d.type = NI_EV_KERNEL_LAUNCH;
  d.parentObj = r->group_api;
  d.kernelLaunch.stream = (void *)(uintptr_t)(0x5500000000u + (uintptr_t)c->comm * 64);
  ni_core_start(c->ctx, &launch, &d);
  ni_core_stop(launch);
}

/*
 * 2.29 and later give a lone Broadcast no events unless NCCL_ALLGATHERV_ENABLE=0; its number still advances.
 */
static int latch(const struct ni_task *t, int mask) {
  bool hidden = t->kind == NI_TASK_COLL && t->func == NI_FUNC_BROADCAST && ni_core.release >= 22900 &&
      ni_run.scn->set.allgatherv;
  return hidden && !t->config ? 0 : mask;
}

struct group { /* what the launching of a group needs, perhaps on a helper thread */
  struct ni_rank *r;
  struct ni_crank *c;
  const struct ni_step *st;
  const int *masks;
  const struct ni_called *api;
  int first; /* mask of the group */
  bool part, captured;
};

/* A plan whose host part waits behind a replay on the host stream. */
struct behind {
  const struct group *g;
  const struct ni_plan *plan;
  const int *masks;
  const struct ni_called *api;
  uint64_t index;
};

static void bracket_behind(void *arg) {
  const struct behind *b = arg;
  ni_bracket(b->g->c, b->g->st, b->plan, b->masks, b->api, NI_EAGER, NULL, ni_now(), b->index,
             &b->g->r->h_rng);
}

static void launch_group(const struct group *g) {
  const struct ni_step *st = g->st;
  struct ni_crank *c = g->c;
  for (int p = 0, at = 0; p < st->n_plans; at += st->plans[p++].n_tasks) {
    bool mine = false;
    for (int i = 0; i < st->plans[p].n_tasks; i++)
      mine |= ni_task_mine(c, &st->plans[p].tasks[i]);
    bool symmetric = st->plans[p].tasks[0].symmetric;
    if (symmetric && !ni_core_new(ni_core.release))
      continue; /* another scheduler's: neither launch nor bracket is raised */
    uint64_t index = c->next_index;
    if (!g->captured && ni_participants(c, &st->plans[p]) > 1)
      c->next_index++;
    if (!g->part || !mine)
      continue;
    kernel_launch(g->r, c, g->first);
    struct behind b = {g, &st->plans[p], g->masks + at, g->api + at, index};
    if (!g->captured && symmetric && st->plans[p].tasks[0].behind_replay)
      ni_graph_behind(g->r, bracket_behind, &b);
    else if (!g->captured)
      ni_bracket(c, st, &st->plans[p], g->masks + at, g->api + at, NI_EAGER, NULL, ni_now(), index,
                 &g->r->rng);
  }
}

static void *helper_main(void *arg) {
  const struct group *g = arg;
  ni_sleep_ns(g->st->nonblocking_ms * 1000000ull);
  launch_group(g);
  ni_core_flush_counts();
  return NULL;
}

/* The API calls of one communicator's operations of a group. */
static void call_group(const struct group *g, int *masks, struct ni_called *api) {
  const struct ni_step *st = g->st;
  int n = 0;
  for (int p = 0; p < st->n_plans; p++)
    for (int i = 0; i < st->plans[p].n_tasks; i++, n++) {
      const struct ni_task *t = &st->plans[p].tasks[i];
      uint64_t before = ni_unix_now();
      api[n] = (struct ni_called){NULL, -1};
      /* From 2.31 on read once a group, and by the new way of queueing work when a task is made. */
      int live = ni_core_new(ni_core.release) && !ni_run.scn->set.rearch ? g->first : ni_core_mask();
      masks[n] = latch(t, live);
      if (!g->part || !ni_task_mine(g->c, t))
        continue;
      if (t->second_part && n > 0) {
        api[n] = api[n - 1];
        continue;
      }
      api[n] = start_api(g->r, g->c, st, t, live, g->captured);
      bool unseen = (t->symmetric && !ni_core_new(ni_core.release)) || !ni_wants_coll(masks[n]);
      if (unseen && !g->captured && t->kind == NI_TASK_COLL && api[n].call >= 0 && (live & NI_EV_COLL))
        ni_truth_call(g->c, t, api[n].call, "api", before, ni_unix_now());
    }
}

static void do_work(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st) {
  bool captured = st->verb == NI_DO_GRAPH;
  int masks[NI_MAX_TASKS], masks2[NI_MAX_TASKS];
  struct ni_called api[NI_MAX_TASKS], api2[NI_MAX_TASKS];
  struct ni_crank *other = st->with >= 0 ? r->cranks[st->with] : NULL;
  struct group g = {.r = r,
                    .c = c,
                    .st = st,
                    .masks = masks,
                    .api = api,
                    .first = ni_core_mask(),
                    .part = ni_takes_part(c, st),
                    .captured = captured};
  struct group g2 = g;
  if (st->n_tasks > NI_MAX_TASKS)
    ni_die(NI_SIM_USAGE, "line %d: more than %d operations", st->line, NI_MAX_TASKS);
  r->group_api = NULL;
  call_group(&g, masks, api);
  if (other && other->up) {
    g2.c = other;
    g2.part = ni_takes_part(other, st);
    g2.masks = masks2;
    g2.api = api2;
    call_group(&g2, masks2, api2);
  }
  ni_core_record(r->group_api, NI_ST_GROUP_API_END_BEGIN, NULL);
  if (st->nonblocking_ms && !captured) {
    pthread_t helper;
    ni_core_stop(r->group_api);
    if (pthread_create(&helper, NULL, helper_main, &g))
      ni_die(NI_SIM_FAILED, "cannot create a thread");
    pthread_join(helper, NULL);
  } else {
    launch_group(&g);
    if (g2.c != c)
      launch_group(&g2);
    if (captured)
      ni_graph_capture(r, c, st, masks, api);
    ni_core_stop(r->group_api);
  }
  r->group_api = NULL;
}

static void do_ce(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st) {
  const struct ni_task *t = &st->plans[0].tasks[0];
  int mask = ni_core_mask();
  void *coll = NULL;
  struct ni_prof_descr_v7 d;
  uint64_t before = ni_unix_now();
  r->group_api = NULL;
  struct ni_called api = start_api(r, c, st, t, mask, st->captured);
  bool raised = ni_core.release >= 22900 && (mask & (NI_EV_CE_COLL | NI_EV_CE_SYNC | NI_EV_CE_BATCH));
  ni_core_record(r->group_api, NI_ST_GROUP_API_END_BEGIN, NULL);
  if (raised) {
    bool bytes = t->func == NI_FUNC_ALLGATHER;
    memset(&d, 0, sizeof d);
    d.type = NI_EV_CE_COLL;
    d.parentObj = api.handle;
    d.rank = c->id.rank;
    d.ceColl.seqNumber = d.ceColl.ceSeqNum = (uint32_t)atomic_fetch_add(&c->sn[NI_FUNC_OTHER], 1);
    d.ceColl.func = t->func_name;
    d.ceColl.count = bytes ? ni_task_bytes(t) : t->count;
    d.ceColl.datatype = bytes ? "ncclInt8" : t->dtype;
    d.ceColl.syncStrategy = "UC";
    d.ceColl.userTag = ni_run.scn->set.rearch ? 0 : t->tag;
    ni_core_start(c->ctx, &coll, &d);
    for (int i = 0; coll && i < st->ce_syncs + st->ce_batches; i++) {
      bool sync = i < st->ce_syncs / 2 || i >= st->ce_syncs / 2 + st->ce_batches;
      void *child = NULL;
      if (!(ni_core_mask() & (sync ? NI_EV_CE_SYNC : NI_EV_CE_BATCH)))
        continue;
      memset(&d, 0, sizeof d);
      d.type = sync ? NI_EV_CE_SYNC : NI_EV_CE_BATCH;
      d.parentObj = coll;
      d.rank = c->id.rank;
      if (sync) {
        d.ceCollSync.isComplete = i > st->ce_syncs / 2;
        d.ceCollSync.nRanks = c->id.n_ranks;
      } else {
        d.ceCollBatch.numOps = c->id.n_ranks;
        d.ceCollBatch.totalBytes = ni_task_bytes(t) * (uint64_t)c->id.n_ranks;
      }
      ni_core_start(c->ctx, &child, &d);
      ni_core_stop(child);
    }
    ni_core_stop(coll);
  }
  /* A CeColl carries the pair that was rewritten to bytes. */
  struct ni_task shown = *t;
  bool ce = raised && ni_core.interface >= 6;
  if (ce && t->func == NI_FUNC_ALLGATHER)
    shown.dtype = "ncclInt8";
  if (api.call >= 0 && (mask & NI_EV_COLL))
    ni_truth_call(c, &shown, api.call, ce ? "ce" : "api", before, ni_unix_now());
  ni_core_stop(r->group_api);
  r->group_api = NULL;
}

/*
 * When the first operation is due: on all ranks at once, as the first collective of a job sees to. Processes
 * that each counted from their own start would be late by the same time for ever. Who does not come within so
 * long is not waited for.
 */
static uint64_t common_start(uint64_t patience_ns) {
  struct ni_start *s = ni_run.start;
  uint64_t at, give_up = ni_now() + patience_ns;
  if (atomic_fetch_add_explicit(&s->arrived, 1, memory_order_relaxed) + 1 == ni_run.scn->set.ranks)
    atomic_store_explicit(&s->at_ns, ni_now() + 1000000u, memory_order_release);
  while (!(at = atomic_load_explicit(&s->at_ns, memory_order_acquire)) && ni_now() < give_up &&
         !atomic_load_explicit(&ni_run.halt, memory_order_relaxed))
    ni_sleep_ns(200000);
  return at ? at : ni_now();
}

/*
 * With compute_us: all devices begin at one moment, so much later that each application is ahead of its
 * device by then, also where a busy machine lets some processes begin seconds after others.
 */
static void begin_turns(struct ni_rank *r) {
  enum { PATIENCE_MS = 20000, AHEAD_MS = 500 };
  if (r->turns_begun)
    return;
  r->turns_begun = true;
  r->turn_free_ns = common_start(PATIENCE_MS * 1000000ull) + AHEAD_MS * 1000000ull;
}

/* Holds the application back to the rate and lets a straggler be late. */
static void pace(struct ni_rank *r, const struct ni_step *st) {
  const struct ni_settings *set = &ni_run.scn->set;
  uint64_t period = set->rate > 0 ? (uint64_t)(1e9 / set->rate) : 0;
  if (atomic_load_explicit(&ni_run.halt, memory_order_relaxed))
    ni_park();
  if (set->gap_us)
    ni_sleep_ns(set->gap_us * 1000ull);
  if (set->compute_us)
    begin_turns(r);
  if (period) {
    if (!r->next_due_ns)
      r->next_due_ns = common_start(1000000000u);
    uint64_t now = ni_now();
    if (now > r->next_due_ns + 1000000000u)
      r->next_due_ns = now;
    if (r->next_due_ns > now + 80000)
      ni_sleep_ns(r->next_due_ns - now - 60000);
    while (ni_now() < r->next_due_ns) {}
    r->next_due_ns += period * (uint64_t)(st->n_tasks > 0 ? st->n_tasks : 1);
  }
  /* After the wait for its turn, which would hide the delay. */
  if (set->straggler_rank == r->rank && st->pair_from < 0)
    ni_sleep_ns((uint64_t)(set->straggler_ms * 1e6 * (0.8 + (ni_rand(&r->rng) % 400) / 1000.0)));
}

struct job {
  pthread_t thread;
  void (*f)(struct ni_crank *);
  struct ni_crank *c;
};

static void *job_main(void *arg) {
  struct job *j = arg;
  j->f(j->c);
  ni_core_flush_counts();
  return NULL;
}

static void each_comm(struct ni_rank *r, const struct ni_step *st, void (*f)(struct ni_crank *)) {
  struct job *jobs = ni_xalloc((size_t)st->n_comms * sizeof *jobs);
  int n = 0;
  for (int i = 0; i < st->n_comms; i++) {
    struct ni_crank *c = r->cranks[st->comms[i]];
    if (!c)
      continue;
    jobs[n] = (struct job){.f = f, .c = c};
    if (!st->concurrent)
      f(c);
    else if (pthread_create(&jobs[n].thread, NULL, job_main, &jobs[n]))
      ni_die(NI_SIM_FAILED, "cannot create a thread");
    else
      n++;
  }
  while (n > 0)
    pthread_join(jobs[--n].thread, NULL);
  free(jobs);
}

static void run_step(struct ni_rank *r, const struct ni_step *st) {
  struct ni_crank *c = st->comm >= 0 ? r->cranks[st->comm] : NULL;
  bool mine = st->who < 0 || st->who == r->rank;
  switch (st->verb) {
    case NI_DO_WORK:
    case NI_DO_CE:
    case NI_DO_GRAPH:
      if (!c || !c->up)
        return;
      for (uint64_t i = 0; i < st->times; i++) {
        if (st->verb != NI_DO_GRAPH)
          pace(r, st);
        if (st->verb == NI_DO_CE)
          do_ce(r, c, st);
        else
          do_work(r, c, st);
      }
      return;
    case NI_DO_REPLAY:
      if (c && c->up)
        ni_graph_replay(r, st);
      return;
    case NI_DO_INIT:
      each_comm(r, st, ni_crank_init);
      return;
    case NI_DO_DESTROY:
      each_comm(r, st, ni_crank_destroy);
      return;
    case NI_DO_ABORT:
      each_comm(r, st, ni_crank_abort);
      return;
    case NI_DO_SYNC:
      each_comm(r, st, ni_crank_drain);
      return;
    case NI_DO_SLEEP:
      if (mine)
        ni_sleep_ns(st->value);
      return;
    case NI_DO_MASK:
      if (mine || ni_run.scn->set.procs)
        atomic_store_explicit(ni_core.mask, (int)st->value, memory_order_relaxed);
      return;
    case NI_DO_RAS:
      if (mine || ni_run.scn->set.procs)
        ni_core_ras((int)st->value);
      return;
    case NI_DO_PUT:
      return; /* put, signal and wait raise nothing, not even GroupApi, and no counter moves */
    case NI_DO_BARRIER:
      pthread_barrier_wait(&ni_run.barrier);
      return;
    case NI_DO_END:
      /* Without a rank it is every process; one that holds several ranks ends by its first. */
      if (st->who < 0 ? ni_run.scn->set.procs || r->rank == 0 : mine)
        ni_end_process(st->how);
      return;
    case NI_DO_LOOP:
    case NI_DO_END_LOOP:
      return;
  }
}

void *ni_app_main(void *arg) {
  struct ni_rank *r = arg;
  const struct ni_scn *s = ni_run.scn;
  uint64_t left[16];
  int depth = 0;
  for (int i = 0; i < s->n_comms; i++)
    if (r->cranks[i] && !s->comms[i].explicit_init)
      ni_crank_init(r->cranks[i]);
  for (int i = 0; i < s->n_steps; i++) {
    const struct ni_step *st = &s->steps[i];
    if (st->verb == NI_DO_LOOP) {
      if (st->times == 0)
        i = st->match;
      else
        left[depth++] = st->times;
    } else if (st->verb == NI_DO_END_LOOP) {
      if (--left[depth - 1] > 0)
        i = st->match;
      else
        depth--;
    } else {
      run_step(r, st);
    }
  }
  ni_graph_stop(r);
  if (s->set.end == NI_END_FINALIZE)
    for (int i = 0; i < s->n_comms; i++)
      if (r->cranks[i] && r->cranks[i]->up)
        ni_crank_destroy(r->cranks[i]);
  ni_core_flush_counts();
  return NULL;
}
