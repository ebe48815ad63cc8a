/*
 * CUDA graphs: what capture raises on the application thread, and what each replay raises on the
 * host-function thread. Callbacks 3.6; states and threads: engine.h. H serves one request at a time; A waits
 * for it unless the replay is `concurrent`, where both threads call for one communicator.
 */
#include <string.h>

#include "engine.h"

static void run_plan(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st, int p, const int *masks,
                     const struct ni_called *api, enum ni_occasion when, uint64_t (*before)[2]) {
  const struct ni_plan *plan = &st->plans[p];
  uint64_t index = c->next_index;
  bool mine = false;
  for (int i = 0; i < plan->n_tasks; i++)
    mine |= ni_task_mine(c, &plan->tasks[i]);
  if (ni_participants(c, plan) > 1)
    c->next_index++; /* counted by every rank, called or not */
  if (mine && ni_takes_part(c, st))
    ni_bracket(c, st, plan, masks, api, when, before, ni_now(), index,
               when == NI_REPLAY ? &r->h_rng : &r->rng);
}

/* Has a captured plan a host part, which runs at each replay? Without one it ran at capture, once. From 2.31
 * on each has its own. */
static bool plan_replays(const struct ni_crank *c, const struct ni_graph *g, const struct ni_plan *plan,
                         const int *masks) {
  bool replays = c->id.n_nodes > 1 && !plan->tasks[0].symmetric;
  if (!ni_core_new(ni_core.release))
    return g->has_proxy;
  for (int i = 0; i < plan->n_tasks; i++)
    replays |= (masks[i] & NI_EV_KERNEL_CH) != 0;
  return replays;
}

void ni_graph_capture(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st, const int *masks,
                      const struct ni_called *api) {
  struct ni_graph *g = &r->graphs[st->graph];
  size_t n = (size_t)st->n_tasks;
  g->step = st;
  g->masks = ni_xalloc(n * sizeof *g->masks);
  g->api = ni_xalloc(n * sizeof *g->api);
  g->before = ni_xalloc(n * sizeof *g->before);
  memcpy(g->masks, masks, n * sizeof *g->masks);
  memcpy(g->api, api, n * sizeof *g->api);
  g->has_proxy = c->id.n_nodes > 1;
  for (size_t i = 0; i < n; i++)
    g->has_proxy |= (masks[i] & NI_EV_KERNEL_CH) != 0;
  for (int p = 0, at = 0; p < st->n_plans; at += st->plans[p++].n_tasks)
    if (!plan_replays(c, g, &st->plans[p], masks + at))
      run_plan(r, c, st, p, masks + at, api + at, NI_CAPTURE, NULL);
}

static void replay(struct ni_rank *r, const struct ni_step *st) {
  struct ni_crank *c = r->cranks[st->comm];
  const struct ni_graph *g = &r->graphs[st->graph];
  if (!g->step)
    return;
  for (int p = 0, at = 0; p < g->step->n_plans; at += g->step->plans[p++].n_tasks)
    if (plan_replays(c, g, &g->step->plans[p], g->masks + at))
      run_plan(r, c, g->step, p, g->masks + at, g->api + at, NI_REPLAY, g->before + at);
    else if (ni_takes_part(c, g->step))
      ni_silent_plan(c, &g->step->plans[p]);
}

static void *h_main(void *arg) {
  struct ni_rank *r = arg;
  pthread_mutex_lock(&r->h_lock);
  for (;;) {
    while (!r->h_todo && !r->h_stop)
      pthread_cond_wait(&r->h_cond, &r->h_lock);
    if (!r->h_todo)
      break;
    const struct ni_step *st = r->h_step;
    void (*call)(void *) = r->h_call;
    r->h_call = NULL;
    pthread_mutex_unlock(&r->h_lock);
    if (call) {
      call(r->h_arg);
    } else {
      if (st->every_ms)
        ni_sleep_ns(st->every_ms * 1000000ull);
      replay(r, st);
    }
    pthread_mutex_lock(&r->h_lock);
    r->h_todo--;
    pthread_cond_broadcast(&r->h_cond);
  }
  pthread_mutex_unlock(&r->h_lock);
  ni_core_flush_counts();
  return NULL;
}

static void wait_idle(struct ni_rank *r) {
  while (r->h_todo)
    pthread_cond_wait(&r->h_cond, &r->h_lock);
}

static void start_thread(struct ni_rank *r) {
  if (r->h_started)
    return;
  if (pthread_create(&r->h, NULL, h_main, r))
    ni_die(NI_SIM_FAILED, "cannot create a thread");
  r->h_started = true;
}

void ni_graph_behind(struct ni_rank *r, void (*f)(void *), void *arg) {
  start_thread(r);
  pthread_mutex_lock(&r->h_lock);
  wait_idle(r);
  r->h_call = f;
  r->h_arg = arg;
  r->h_todo = 1;
  pthread_cond_broadcast(&r->h_cond);
  wait_idle(r);
  pthread_mutex_unlock(&r->h_lock);
}

void ni_graph_replay(struct ni_rank *r, const struct ni_step *st) {
  start_thread(r);
  pthread_mutex_lock(&r->h_lock);
  wait_idle(r);
  r->h_step = st;
  r->h_todo = st->times;
  pthread_cond_broadcast(&r->h_cond);
  if (!st->concurrent)
    wait_idle(r);
  pthread_mutex_unlock(&r->h_lock);
}

void ni_graph_stop(struct ni_rank *r) {
  if (!r->h_started)
    return;
  pthread_mutex_lock(&r->h_lock);
  r->h_stop = true;
  pthread_cond_broadcast(&r->h_cond);
  pthread_mutex_unlock(&r->h_lock);
  pthread_join(r->h, NULL);
  r->h_started = false;
}
