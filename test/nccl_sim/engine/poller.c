/*
 * The profiler thread of 2.31 and later: looks at every KernelCh in each pass, so that start, phases and stop
 * may come in one.
 *
 * NCCL waits until the slot of its own count in the channel's ring has a count no smaller. Where host and
 * device count alike, those are the work's own stamps. Where they do not (engine.h), a ring is kept: nodes
 * write their stamps into the device's slot when their kernel comes to it, and read NCCL's. What waits for
 * stamps that no kernel will leave is stuck: it stays so until later works come round the ring, or until the
 * communicator is destroyed and it is thrown away. States and threads: engine.h.
 */
#include <string.h>

#include "engine.h"
#include "truth.h"

static const char *const phase_names[] = {"initial_sync", "compute", "final_sync"};

static bool phased(const struct ni_work *w) {
  const struct ni_settings *set = &ni_run.scn->set;
  if (!(w->mask & NI_EV_KERNEL_PHASE) || w->task->kind != NI_TASK_COLL)
    return false;
  return w->task->symmetric || (set->classic_phases && (!w->task->collnet || set->collnet_phases));
}

/* The device comes to a work: its stamps go into the slot of the device's count. */
static void stamp_ring(struct ni_node *n, uint64_t now, uint64_t *next_ns) {
  const struct ni_gpu_clock *clock = &n->work->c->owner->clock;
  struct ni_slot *s = &n->ring->slot[n->device_count % 64];
  uint64_t start, stop, open, close;
  if (n->work->task->unprofiled) {
    if (ni_node_stop_at(n, &stop) && stop <= now)
      n->device_state = NI_NODE_DONE;
    return;
  }
  if (!ni_node_start_at(n, &start))
    return;
  if (n->device_state == NI_NODE_POSTED && start <= now) {
    s->start = ni_stamp_start(n, start);
    s->started = n->device_count;
    n->device_state = NI_NODE_STARTED;
  }
  if (start > now && start < *next_ns)
    *next_ns = start;
  if (!ni_node_stop_at(n, &stop))
    return;
  if (stop > now && stop < *next_ns)
    *next_ns = stop;
  if (n->device_state != NI_NODE_STARTED || stop > now)
    return;
  ni_node_phases(n, start, stop, &open, &close);
  s->open = ni_gpu_stamp(clock, open);
  s->close = ni_gpu_stamp(clock, close);
  s->stop = ni_stamp_stop(n, stop);
  s->stopped = n->device_count;
  n->device_state = NI_NODE_DONE;
}

/* Is there a start stamp for this node? */
static bool begun(const struct ni_node *n, uint64_t now, uint64_t *next_ns, uint64_t *stamp) {
  uint64_t at;
  *stamp = 0;
  if (n->work->task->held == NI_HELD_QUEUED)
    return false;
  if (n->work->nothing)
    return true;
  if (n->ring) {
    const struct ni_slot *s = &n->ring->slot[n->count % 64];
    *stamp = s->start;
    return s->started >= n->count && (!ni_run.scn->set.one_pass || s->stopped >= n->count);
  }
  bool there = ni_run.scn->set.one_pass ? ni_node_stop_at(n, &at) : ni_node_start_at(n, &at);
  if (there && at > now && at < *next_ns)
    *next_ns = at;
  if (!there || at > now)
    return false;
  (void)ni_node_start_at(n, &at);
  *stamp = ni_stamp_start(n, at);
  return true;
}

/* Is there a stop stamp? The work's own come with those between its phases. */
static bool ended(struct ni_node *n, uint64_t now, uint64_t *next_ns, uint64_t *stamp) {
  const struct ni_gpu_clock *clock = &n->work->c->owner->clock;
  uint64_t start, at, open, close;
  *stamp = 0;
  if (n->work->task->held != NI_HELD_NOT)
    return false;
  if (n->work->nothing)
    return true;
  if (n->ring) {
    const struct ni_slot *s = &n->ring->slot[n->count % 64];
    if (s->stopped < n->count)
      return false;
    *stamp = s->stop;
    n->open_stamp = s->open;
    n->close_stamp = s->close;
    return true;
  }
  if (!ni_node_stop_at(n, &at))
    return false;
  if (at > now) {
    if (at < *next_ns)
      *next_ns = at;
    return false;
  }
  if (!ni_node_start_at(n, &start))
    start = at;
  ni_node_phases(n, start, at, &open, &close);
  n->open_stamp = ni_gpu_stamp(clock, open);
  n->close_stamp = ni_gpu_stamp(clock, close);
  *stamp = ni_stamp_stop(n, at);
  return true;
}

static void start_node(struct ni_node *n, uint64_t stamp) {
  struct ni_work *w = n->work;
  struct ni_prof_descr_v7 d;
  ni_truth_lock(w->c);
  n->state = NI_NODE_STARTED;
  n->start_stamp = stamp;
  bool first = !w->first_ns;
  if (first)
    w->first_ns = ni_unix_now();
  ni_truth_unlock(w->c);
  memset(&d, 0, sizeof d);
  d.type = NI_EV_KERNEL_CH;
  d.parentObj = w->handle;
  d.kernelCh.channelId = n->ch;
  d.kernelCh.pTimer = stamp;
  ni_core_start(w->c->ctx, &n->handle, &d);
  if (first)
    w->first_to_ns = ni_unix_now();
}

/* A phase of no length is left out, so that the others lie side by side. */
static void raise_phases(struct ni_node *n, uint64_t stop) {
  const uint64_t edge[4] = {n->start_stamp, n->open_stamp, n->close_stamp, stop};
  for (int i = 0; i < 3; i++) {
    struct ni_prof_descr_v7 d;
    union ni_prof_state_v4 a = {.kernelCh = {edge[i + 1]}};
    void *handle = NULL;
    if (edge[i] == edge[i + 1] || !edge[i] || !edge[i + 1])
      continue;
    memset(&d, 0, sizeof d);
    d.type = NI_EV_KERNEL_PHASE;
    d.parentObj = n->handle;
    d.kernelPhase.channelId = n->ch;
    d.kernelPhase.phaseId = (uint8_t)i;
    d.kernelPhase.phaseName = phase_names[i];
    d.kernelPhase.pTimer = edge[i];
    ni_core_start(n->work->c->ctx, &handle, &d);
    ni_core_record(handle, NI_ST_KERNEL_PHASE_STOP, &a);
    ni_core_stop(handle);
  }
}

static void stop_node(struct ni_chain *ch, struct ni_node *n, uint64_t stamp) {
  struct ni_work *w = n->work;
  union ni_prof_state_v4 a = {.kernelCh = {stamp}};
  bool with = phased(w);
  n->phases = (uint8_t)(with ? ch->no_phases && ni_run.scn->set.old_phases ? 2 : 1 : 0);
  if (n->phases == 2) { /* of the work that had this slot when phases were last asked for */
    n->open_stamp = n->start_stamp - 10000000;
    n->close_stamp = n->start_stamp - 9000000;
  }
  ch->no_phases = !with && !(w->mask & NI_EV_KERNEL_PHASE);
  ni_truth_lock(w->c);
  n->stop_stamp = stamp;
  if (w->n_done == w->n_nodes - 1)
    w->last_ns = ni_unix_now(); /* before the callback: an upper one follows in truth */
  ni_truth_unlock(w->c);
  if (with && n->handle)
    raise_phases(n, stamp);
  ni_core_record(n->handle, NI_ST_KERNEL_CH_STOP, &a);
  ni_core_stop(n->handle);
  ni_truth_lock(w->c);
  if (w->n_done == w->n_nodes - 1)
    w->last_to_ns = ni_unix_now();
  n->state = NI_NODE_DONE;
  w->n_done++;
  ni_truth_unlock(w->c);
}

/* Nothing of a work will come any more, or it comes after all: who waits for the communicator to be idle is
 * told. */
static void tell_stuck(struct ni_work *w) {
  struct ni_crank *c = w->c;
  int with = 1;
  bool now = w->stuck_nodes > 0 && w->stuck_nodes + w->n_done == w->n_nodes;
  if (now == w->stuck)
    return;
  w->stuck = now;
  for (const struct ni_work *t = w->tails; t; t = t->next_tail)
    with++;
  pthread_mutex_lock(&c->lock);
  c->n_stuck += now ? with : -with;
  pthread_cond_broadcast(&c->room);
  pthread_mutex_unlock(&c->lock);
}

static void set_stuck(struct ni_node *n, bool stuck) {
  if (n->stuck == stuck)
    return;
  n->stuck = stuck;
  n->work->stuck_nodes += stuck ? 1 : -1;
  tell_stuck(n->work);
}

/* Has the device left this node's kernel without leaving what the node waits for? */
static bool waits_in_vain(const struct ni_node *n, uint64_t now) {
  uint64_t at;
  if (n->state == NI_NODE_DONE)
    return false;
  if (n->ring)
    return n->device_state == NI_NODE_DONE;
  return n->work->task->held != NI_HELD_NOT && ni_node_stop_at(n, &at) && at <= now;
}

static void cut(struct ni_chain *ch, struct ni_node *before, struct ni_node *n, struct ni_node *next) {
  if (before)
    before->next = next;
  else
    ch->head = next;
  if (ch->tail == n)
    ch->tail = before;
}

bool ni_poll_chain(struct ni_crank *c, struct ni_chain *ch, uint64_t now, uint64_t *next_ns) {
  bool moved = false;
  uint64_t stamp;
  struct ni_node *before = NULL;
  (void)c;
  for (struct ni_node *n = ch->head, *next; n; n = next) {
    next = n->next;
    if (n->ring && n->device_state != NI_NODE_DONE)
      stamp_ring(n, now, next_ns);
    if (!n->ghost && n->state == NI_NODE_POSTED && begun(n, now, next_ns, &stamp)) {
      set_stuck(n, false);
      start_node(n, stamp);
      moved = true;
    }
    bool stopped = !n->ghost && n->state == NI_NODE_STARTED && ended(n, now, next_ns, &stamp);
    if (stopped) {
      set_stuck(n, false);
      stop_node(ch, n, stamp);
      tell_stuck(n->work);
      moved = true;
    }
    if (!n->ghost)
      set_stuck(n, waits_in_vain(n, now));
    if ((!n->ghost && n->state != NI_NODE_DONE) || (n->ring && n->device_state != NI_NODE_DONE)) {
      before = n;
      continue;
    }
    cut(ch, before, n, next);
    ni_work_put(n->work);
    moved = true;
  }
  return moved;
}

/* With destroy_open: the buffer of stamps has been freed, and what lies there now is taken for them. */
static void read_freed(struct ni_node *n) {
  if (ni_run.scn->set.destroy_open && n->state == NI_NODE_POSTED)
    start_node(n, 0x5a5a5a5a5a5a5a5aull ^ (uint64_t)(uintptr_t)n);
}

void ni_poll_drop(struct ni_crank *c) {
  for (int dir = 0; dir < 3; dir++) {
    for (int i = 0; i < NI_SIM_CHANNELS; i++) {
      struct ni_chain *ch = &c->chains[dir][i];
      for (struct ni_node *n = ch->head, *next; n; n = next) {
        next = n->next;
        if (!n->ghost) {
          read_freed(n);
          set_stuck(n, false);
          if (n->state != NI_NODE_DONE)
            n->work->out = NI_OUT_THROWN;
        }
        ni_work_put(n->work);
      }
      ch->head = ch->tail = NULL;
    }
    memset(c->active[dir], 0, sizeof c->active[dir]);
  }
}
