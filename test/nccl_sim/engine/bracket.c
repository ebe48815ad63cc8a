/*
 * The bracket Group, Coll, P2p around a launched kernel, and the works that it posts; shared by the
 * application thread and the host-function thread. States, threads and ownership: engine.h. Sequences:
 * callbacks 3.1, 3.4.
 */
#include <sched.h>
#include <string.h>

#include "format/apart.h"

#include "engine.h"
#include "truth.h"

static struct ni_work *get_work(struct ni_crank *c, const struct ni_task *t) {
  pthread_mutex_lock(&c->lock);
  int most =
      ni_run.scn->set.inflight > ni_run.scn->max_tasks ? ni_run.scn->set.inflight : ni_run.scn->max_tasks;
  while (!c->free_works && c->n_works - c->n_stuck >= most)
    pthread_cond_wait(&c->room, &c->lock);
  struct ni_work *w = c->free_works;
  if (w) {
    c->free_works = w->next;
  } else {
    w = ni_xalloc(sizeof *w + (size_t)ni_run.scn->max_ch * sizeof *w->nodes);
    w->c = c;
    *NI_ADD(c->works, c->n_works) = w;
  }
  c->outstanding++;
  pthread_mutex_unlock(&c->lock);
  w->next = NULL;
  w->task = t;
  w->handle = NULL;
  w->peer = t->kind == NI_TASK_COLL ? -1 : ni_task_peer(t, c->id.rank, c->id.n_ranks);
  w->n_nodes = 0;
  w->n_done = 0;
  w->first_ns = w->last_ns = w->first_to_ns = w->last_to_ns = 0;
  w->called = w->unordered = false;
  w->head = w->tails = w->next_tail = NULL;
  w->out = NI_OUT_DONE;
  w->tag = w->replayed_from = w->replayed_to = 0;
  w->stuck_nodes = 0;
  w->stuck = w->nothing = false;
  return w;
}

void ni_work_put(struct ni_work *w) {
  if (atomic_fetch_sub_explicit(&w->refs, 1, memory_order_acq_rel) != 1)
    return;
  struct ni_crank *c = w->c;
  for (struct ni_work *t = w->tails, *next; t; t = next) { /* before the stamps that they share are gone */
    next = t->next_tail;
    t->out = w->out;
    ni_work_put(t);
  }
  ni_truth_work(w, w->out);
  ni_kernel_put(c, w->kernel);
  pthread_mutex_lock(&c->lock);
  w->next = c->free_works;
  c->free_works = w;
  c->outstanding--;
  pthread_cond_broadcast(&c->room);
  pthread_mutex_unlock(&c->lock);
}

static struct ni_kernel *kernel_get(struct ni_crank *c) {
  pthread_mutex_lock(&c->lock);
  struct ni_kernel *k = c->free_kernels;
  if (k)
    c->free_kernels = k->next;
  pthread_mutex_unlock(&c->lock);
  return k ? k : ni_xalloc(sizeof *k);
}

static void delay(uint32_t most_us, uint64_t *rng) {
  if (!most_us || ni_rand(rng) % 4)
    return;
  uint64_t until = ni_now() + ni_rand(rng) % (most_us * 1000ull);
  while (ni_now() < until)
    sched_yield();
}

static void *buffer(const struct ni_work *w, int k) {
  return (void *)(uintptr_t)(0x7f0000000000u + (uintptr_t)w->c->comm * 0x10000000u +
                             (uintptr_t)k * 0x1000000u);
}

int ni_said_channels(const struct ni_work *w) {
  const struct ni_task *t = w->task;
  bool new = ni_core_new(ni_core.release);
  if (t->announced >= 0)
    return t->announced;
  if (t->collnet && !new)
    return 0;
  if (t->symmetric && new && (t->fused_tail || !(w->mask & NI_EV_KERNEL_CH)))
    return 0;
  return t->n_ch;
}

/* What a symmetric kernel's Coll says of it. Through interfaces before v7 the translation leaves out the
 * first two. */
static void describe_symmetric(struct ni_prof_descr_v7 *d, const struct ni_task *t, char *gone, size_t cap) {
  const struct ni_settings *set = &ni_run.scn->set;
  snprintf(gone, cap, "%s", t->variant);
  d->coll.kernelVariant = set->lasting_texts ? t->variant : gone;
  d->coll.algo = set->lasting_texts ? t->algo : gone + (t->algo - t->variant);
  d->coll.isSymColl = 1;
  if (!set->empty_proto && ni_core.interface < 7)
    d->coll.proto = "SIMPLE";
}

static void start_task(struct ni_work *w, void *group, void *api) {
  struct ni_crank *c = w->c;
  const struct ni_task *t = w->task;
  struct ni_prof_descr_v7 d;
  memset(&d, 0, sizeof d);
  d.parentObj = api;
  d.rank = c->id.rank;
  bool coll = t->kind == NI_TASK_COLL;
  bool wants = coll ? ni_wants_coll(w->mask) : ni_wants_p2p(w->mask, ni_core.release);
  w->parent = api != NULL;
  w->tag = ni_run.scn->set.rearch || (w->by_graph && !ni_run.scn->set.replay_tag) ? 0 : t->tag;
  char gone[64] = "";
  /* A native 2.27 raises tasks only under a Group that the plugin gave a handle to. */
  if (ni_core.release < 22800 && !group)
    wants = false;
  w->sn = 0;
  if (coll) {
    /* A replay consumes a number only if KernelCh was latched at capture. */
    bool takes = !w->by_graph || (w->mask & NI_EV_KERNEL_CH);
    if (w->by_graph && ni_core_new(ni_core.release))
      takes = takes && (group || api);
    w->sn = atomic_fetch_add_explicit(&c->sn[t->func], takes, memory_order_relaxed);
  }
  w->before_ns = w->after_ns = ni_unix_now();
  w->apart = false;
  if (!wants)
    return;
  if (coll) {
    /* NCCL rewrites these two to bytes when the task is made. */
    bool bytes = t->func == NI_FUNC_ALLGATHER || t->func == NI_FUNC_BROADCAST;
    d.type = NI_EV_COLL;
    d.coll.seqNumber = w->sn;
    d.coll.func = t->func_name;
    d.coll.sendBuff = buffer(w, 0);
    d.coll.recvBuff = buffer(w, 1);
    d.coll.count = bytes ? ni_task_bytes(t) : t->count;
    d.coll.root = t->root;
    d.coll.datatype = bytes ? "ncclInt8" : t->dtype;
    d.coll.nChannels = (uint8_t)ni_said_channels(w);
    d.coll.nWarps = t->warps;
    d.coll.algo = t->algo;
    d.coll.proto = t->proto;
    d.coll.parentGroup = group;
    d.coll.userTag = w->tag;
    if (t->symmetric)
      describe_symmetric(&d, t, gone, sizeof gone);
  } else {
    d.type = NI_EV_P2P;
    d.p2p.func = t->func_name;
    d.p2p.buff = buffer(w, t->kind);
    d.p2p.datatype = t->dtype;
    d.p2p.count = t->count;
    d.p2p.peer = w->peer;
    d.p2p.nChannels = (uint8_t)ni_said_channels(w);
    d.p2p.parentGroup = group;
    d.p2p.userTag = w->tag;
  }
  if (t->kind != NI_TASK_COLL && w->peer == c->id.rank && ni_core_self_silent(ni_core.release)) {
    uint32_t channels = ni_core_p2p_channels(ni_core.release, ni_core.interface) ? (uint32_t)t->n_ch : 0;
    /* RCCL: over more than two nodes parts lie on channels that are not known here. */
    bool anywhere = ni_core.rccl && c->id.n_nodes > 2 && channels != 1;
    uint64_t on = anywhere ? NI_APART_ALL : ni_apart_of_self(ni_core.release, channels);
    atomic_fetch_or_explicit(&c->ahead, on, memory_order_relaxed);
  }
  w->apart = atomic_load_explicit(&c->ahead, memory_order_relaxed) != 0;
  w->called = ni_core.interface != 0;
  w->rec = atomic_fetch_add_explicit(&c->rec[!coll], 1, memory_order_relaxed);
  w->before_ns = ni_unix_now();
  ni_core_who(&c->id);
  ni_core_start(c->ctx, &w->handle, &d);
  w->after_ns = ni_unix_now();
  memset(gone, '#', strlen(gone));
}

/* Does a work raise KernelCh of its own? None of a replayed symmetric kernel do, and a fused one's all lie
 * under its head. */
static bool has_kernel_ch(const struct ni_work *w) {
  const struct ni_task *t = w->task;
  bool self = t->kind != NI_TASK_COLL && w->peer == w->c->id.rank;
  if (!(w->mask & NI_EV_KERNEL_CH) || ni_core.interface < 3)
    return false;
  if (t->symmetric && (w->by_graph || t->fused_tail))
    return false;
  return !(self && ni_core_self_silent(ni_core.release));
}

/* Nodes and references of a work whose start has been called. */
static void fill_nodes(struct ni_work *w) {
  const struct ni_task *t = w->task;
  bool self = t->kind != NI_TASK_COLL && w->peer == w->c->id.rank;
  int net = 0;
  bool raises = has_kernel_ch(w);
  bool ghost = !raises && !t->symmetric && ni_core_new(ni_core.release) && ni_run.scn->set.shift_stamps &&
      !(w->mask & NI_EV_KERNEL_CH);
  if (raises || ghost)
    for (int i = 0; i < t->n_ch; i++) {
      if (t->ch0 + i == t->missing_ch)
        continue;
      struct ni_node *n = &w->nodes[w->n_nodes++];
      n->next = NULL;
      n->work = w;
      n->ch = (uint8_t)(t->ch0 + i);
      n->state = NI_NODE_POSTED;
      n->anothers = n->stuck = false;
      n->ghost = ghost;
      n->phases = 0;
      n->ring = NULL;
      n->device_state = NI_NODE_POSTED;
      n->start_stamp = n->stop_stamp = 0;
    }
  if (!self && !t->symmetric)
    net = ni_netops_of(w->c, t);
  if (!ni_wants_proxy_op(w->mask))
    net = 0;
  /* bracket, nodes or kernel, network */
  atomic_store_explicit(&w->refs, 1 + (w->n_nodes ? w->n_nodes : 1) + net + ni_network_asks(w),
                        memory_order_relaxed);
}

/* The others of a fused symmetric kernel end with its head, if that has KernelCh. */
static void tie_to_head(struct ni_work **works, int n) {
  struct ni_work *head = works[0];
  if (!head->n_nodes || n < 2 || !works[1]->task->fused_tail)
    return;
  for (int i = n; i-- > 1;) {
    works[i]->head = head;
    works[i]->next_tail = head->tails;
    head->tails = works[i];
    /* Until P has taken this one out of its queue. */
    atomic_fetch_add_explicit(&head->refs, 1, memory_order_relaxed);
  }
}

/* NCCL counts a work whose mask has KernelCh; the device all of them (contract: AllGatherV surely, the rest
 * by `mask_shifts`). */
static bool device_counts(const struct ni_task *t, bool counted) {
  bool allgatherv =
      t->kind == NI_TASK_COLL && t->func == NI_FUNC_BROADCAST && ni_run.scn->set.allgatherv && !t->config;
  return counted || allgatherv || ni_run.scn->set.mask_shifts;
}

/* Both counts of one channel go on; under lock. */
static void count_channel(struct ni_crank *c, int kind, int ch, bool counted, bool on_device) {
  c->counted[kind][ch] += counted;
  c->device_counted[kind][ch] += on_device;
  bool differ = c->counted[kind][ch] != c->device_counted[kind][ch] || ni_run.scn->set.shift_stamps;
  if (differ && !c->rings[kind][ch])
    c->rings[kind][ch] = ni_xalloc(sizeof *c->rings[kind][ch]);
}

/*
 * The counts of the works of a plan, in the order in which the device comes to them; under lock. A pair of
 * Send and Recv is one work. A replayed symmetric kernel is not the profiled one and counts nothing.
 */
static void count_works(struct ni_crank *c, struct ni_work **works, int n) {
  for (int i = 0; i < n; i++) {
    struct ni_work *w = works[i];
    const struct ni_task *t = w->task;
    int kind = t->symmetric;
    bool pair = t->paired && t->kind != NI_TASK_COLL && i > 0 && works[i - 1]->task == t - 1;
    bool counted = (w->mask & NI_EV_KERNEL_CH) != 0;
    if (t->symmetric && (w->by_graph || t->fused_tail || !counted))
      continue;
    for (int ch = t->ch0; ch < t->ch0 + t->n_ch && !pair; ch++) {
      count_channel(c, kind, ch, counted, device_counts(t, counted));
      if (t->unprofiled && !c->rings[kind][ch])
        c->rings[kind][ch] = ni_xalloc(sizeof *c->rings[kind][ch]);
    }
    for (int k = 0; k < w->n_nodes; k++) {
      struct ni_node *x = &w->nodes[k];
      x->count = c->counted[kind][x->ch];
      x->device_count = c->device_counted[kind][x->ch];
      x->ring = c->rings[kind][x->ch];
      x->anothers = x->count != x->device_count;
    }
  }
}

void ni_silent_plan(struct ni_crank *c, const struct ni_plan *plan) {
  if (!ni_core_new(ni_core.release))
    return;
  pthread_mutex_lock(&c->lock);
  for (int i = 0; i < plan->n_tasks; i++) {
    const struct ni_task *t = &plan->tasks[i];
    bool pair = t->paired && t->kind != NI_TASK_COLL && i > 0 && ni_task_mine(c, t - 1);
    if (t->symmetric || pair || !ni_task_mine(c, t))
      continue;
    for (int ch = t->ch0; ch < t->ch0 + t->n_ch; ch++)
      count_channel(c, 0, ch, false, device_counts(t, false));
  }
  pthread_mutex_unlock(&c->lock);
}

/* With compute_us: the kernel's turn among those of its rank, and what the rank computes before it. */
static void compute_before(struct ni_crank *c, struct ni_kernel *k, enum ni_occasion when) {
  const struct ni_settings *set = &ni_run.scn->set;
  struct ni_rank *r = c->owner;
  k->compute_ns = 0;
  if (!set->compute_us || when != NI_EAGER)
    return;
  k->turn = atomic_fetch_add_explicit(&r->turns, 1, memory_order_relaxed);
  uint64_t noise = ni_mix(ni_mix(set->seed, (uint64_t)r->rank), k->turn) % 1024;
  double longer = r->rank == set->slow_gpu ? 1 + set->slow_gpu_percent / 100 : 1;
  k->compute_ns = (uint64_t)(set->compute_us * 1e3 * longer * (0.99 + 0.02 * (double)noise / 1024));
}

void ni_bracket(struct ni_crank *c, const struct ni_step *st, const struct ni_plan *plan, const int *masks,
                const struct ni_called *api, enum ni_occasion when, uint64_t (*before)[2], uint64_t launch_ns,
                uint64_t index, uint64_t *rng) {
  bool by_graph = when == NI_REPLAY;
  const struct ni_settings *set = &ni_run.scn->set;
  struct ni_work *works[NI_MAX_TASKS];
  int n = 0, any = 0, participants = ni_participants(c, plan);
  struct ni_kernel *k = kernel_get(c);
  k->next = NULL;
  k->plan = plan;
  k->index = index;
  k->participants = participants;
  k->hash = ni_mix(ni_mix(set->seed, (uint64_t)c->comm), participants > 1 ? index : ni_rand(rng));
  k->noise = 1024 + (uint32_t)((k->hash >> 50) % 1024) * 2 * (uint32_t)set->vary_percent / 100 -
      1024 * (uint32_t)set->vary_percent / 100;
  k->state = 0;
  k->hangs = false;
  compute_before(c, k, when);
  for (int i = 0; i < plan->n_tasks && n < NI_MAX_TASKS; i++) {
    const struct ni_task *t = &plan->tasks[i];
    if (!ni_task_mine(c, t))
      continue;
    struct ni_work *w = works[n++] = get_work(c, t);
    w->kernel = k;
    w->mask = masks[i];
    w->call = api[i].call;
    w->by_graph = by_graph;
    w->captured = when != NI_EAGER;
    w->unordered = c->decl->two_threads;
    any |= masks[i];
    if (t->hang_rank == -2 || t->hang_rank == c->id.rank)
      k->hangs = true;
  }
  atomic_store_explicit(&k->refs, n + 1, memory_order_relaxed);
  void *group = NULL;
  if (ni_wants_group(any)) {
    struct ni_prof_descr_v7 d;
    memset(&d, 0, sizeof d);
    d.type = NI_EV_GROUP;
    ni_core_start(c->ctx, &group, &d);
  }
  for (int i = 0, j = 0; i < plan->n_tasks && j < n; i++)
    if (ni_task_mine(c, &plan->tasks[i]))
      start_task(works[j++], group, api[i].handle);
  for (int i = 0, j = 0; before && i < plan->n_tasks && j < n; i++) {
    if (!ni_task_mine(c, &plan->tasks[i]))
      continue;
    works[j]->replayed_from = before[i][0];
    works[j]->replayed_to = before[i][1];
    before[i][0] = works[j]->before_ns;
    before[i][1] = works[j++]->after_ns;
  }
  for (int i = 0; i < n; i++)
    fill_nodes(works[i]);
  tie_to_head(works, n);
  for (int i = 0; i < n; i++) {
    works[i]->nothing = plan->tasks[0].behind_replay && plan->tasks[0].symmetric && set->counter0;
    atomic_store_explicit(&works[i]->busy, 1, memory_order_release);
    if (i > 0)
      works[i - 1]->next = works[i];
  }
  /* In a graph the host function comes before the kernel. */
  k->launch_ns = (by_graph ? ni_now() : launch_ns) + set->launch_us * 1000ull + st->queue_ms * 1000000ull;
  pthread_mutex_lock(&c->lock);
  if (c->posted_tail)
    c->posted_tail->next = k;
  else
    c->posted_kernels = k;
  c->posted_tail = k;
  if (ni_core_new(ni_core.release) && when != NI_CAPTURE)
    count_works(c, works, n);
  /*
   * Under the same lock: with A and H at once, the works must come in the order in which the device runs
   * them.
   */
  ni_proxy_post(c->proxy, works[0], works[n - 1], n);
  pthread_mutex_unlock(&c->lock);
  delay(set->stop_delay_us, rng);
  for (int i = 0; i < n; i++)
    ni_core_stop(works[i]->handle);
  ni_core_stop(group);
  for (int i = n; i-- > 0;)
    ni_work_put(works[i]); /* a fused kernel's head after the others, who need it */
}
