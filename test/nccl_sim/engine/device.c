/* The simulated device: when kernels and their channels start and stop. States and threads: engine.h. */
#include <string.h>

#include "engine.h"

static uint64_t scaled(const struct ni_kernel *k, uint64_t ns) { return ns * k->noise >> 10; }

uint64_t ni_kernel_end(const struct ni_kernel *k) { return k->met_ns + scaled(k, k->plan->total_ns); }

void ni_kernel_put(struct ni_crank *c, struct ni_kernel *k) {
  if (atomic_fetch_sub_explicit(&k->refs, 1, memory_order_acq_rel) != 1)
    return;
  pthread_mutex_lock(&c->lock);
  k->next = c->free_kernels;
  c->free_kernels = k;
  pthread_mutex_unlock(&c->lock);
}

/* The rank's kernel before this one, on whichever communicator, has not ended yet. */
static bool waits_for_turn(const struct ni_crank *c, const struct ni_kernel *k) {
  return k->compute_ns && atomic_load_explicit(&c->owner->turns_over, memory_order_acquire) != k->turn;
}

/*
 * The first kernel of a rank that computes begins so much before the others and runs until P looks at it. So
 * one look is a prompt one on any machine, and the plugin knows from then on how the clocks of CPU and GPU
 * relate.
 */
enum { FIRST_BEFORE_NS = 150000000 };
_Thread_local uint64_t ni_looked_ns;

static bool ends_when_looked_at(const struct ni_kernel *k) { return k->compute_ns && k->turn == 0; }

/* What the kernel waits for in its stream, and the computing that comes before it. */
static uint64_t compute_start(const struct ni_crank *c, const struct ni_kernel *k) {
  if (ends_when_looked_at(k))
    return c->owner->turn_free_ns - FIRST_BEFORE_NS;
  uint64_t free_ns = k->compute_ns ? c->owner->turn_free_ns : c->stream_free_ns;
  return (k->launch_ns > free_ns ? k->launch_ns : free_ns) + k->compute_ns;
}

static void pass_turn(struct ni_crank *c, const struct ni_kernel *k) {
  if (!k->compute_ns)
    return;
  if (!ends_when_looked_at(k))
    c->owner->turn_free_ns = c->stream_free_ns;
  atomic_store_explicit(&c->owner->turns_over, k->turn + 1, memory_order_release);
}

void ni_device_advance(struct ni_crank *c) {
  for (struct ni_kernel *k; (k = c->gpu_head);) {
    if (k->state == 0) {
      if (waits_for_turn(c, k))
        return;
      k->start_ns = compute_start(c, k);
      if (!k->hangs && k->participants > 1 && !ni_meet_arrive(c->meet, k->index, k->start_ns))
        return;
      k->state = 1;
    }
    if (k->hangs)
      return;
    if (k->state == 1) {
      if (k->participants > 1) {
        if (!ni_meet_done(c->meet, k->index, k->participants, &k->met_ns))
          return;
      } else {
        k->met_ns = k->start_ns;
      }
      k->state = 2;
    }
    c->stream_free_ns = ni_kernel_end(k);
    pass_turn(c, k);
    c->gpu_head = k->next;
    if (!c->gpu_head)
      c->gpu_tail = NULL;
    ni_kernel_put(c, k);
  }
}

static uint64_t jitter(const struct ni_kernel *k, int ch, int which) {
  return (k->hash >> ((ch * 5 + which * 11) % 48)) & (k->plan->jitter_ns - 1);
}

bool ni_node_start_at(const struct ni_node *n, uint64_t *at) {
  const struct ni_kernel *k = n->work->kernel;
  const struct ni_task *t = n->work->task;
  if (k->state == 0)
    return false;
  if (n->ch == t->late_ch) { /* counted from the moment the other channels have stopped */
    if (k->state != 2)
      return false;
    *at = k->met_ns + scaled(k, t->rel_stop_ns + t->late_ns) + k->plan->jitter_ns + jitter(k, n->ch, 0);
    return true;
  }
  if (t->rel_start_ns == 0) {
    *at = k->start_ns + jitter(k, n->ch, 0);
    return true;
  }
  if (k->state != 2)
    return false;
  *at = k->met_ns + scaled(k, t->rel_start_ns) + jitter(k, n->ch, 0);
  return true;
}

bool ni_node_stop_at(const struct ni_node *n, uint64_t *at) {
  const struct ni_kernel *k = n->work->kernel;
  const struct ni_task *t = n->work->task;
  if (k->state != 2)
    return false;
  uint64_t rel = t->rel_stop_ns;
  if (n->ch == t->late_ch)
    rel += t->late_ns + (t->rel_stop_ns - t->rel_start_ns);
  *at = k->met_ns + scaled(k, rel) + jitter(k, n->ch, 1) + (n->ch == t->late_ch ? 2 * k->plan->jitter_ns : 0);
  if (ends_when_looked_at(k) && ni_looked_ns > *at)
    *at = ni_looked_ns;
  return true;
}

enum phases { PHASES_CLASSIC, PHASES_BARRIER, PHASES_LL, PHASES_OWN_NODE };

/*
 * What the stamps between the kernel's own stand for. Classic kernels take the first before they meet a peer.
 * Barrier kernels wait for all ranks; a ReduceScatter over the network for those of its own node, and for the
 * others where it computes: here its node is taken to be there. LL kernels wait with the first exchange of
 * data, which is nearly all of a small one.
 */
static enum phases phases_of(const struct ni_task *t) {
  if (!t->symmetric || !ni_run.scn->set.barrier_phases)
    return PHASES_CLASSIC;
  if (strncmp(t->algo, "RailA2A", 7) == 0)
    return PHASES_OWN_NODE;
  return strncmp(t->algo, "LL", 2) == 0 || strstr(t->algo, "xLL") ? PHASES_LL : PHASES_BARRIER;
}

void ni_node_phases(const struct ni_node *n, uint64_t start_at, uint64_t stop_at, uint64_t *open_at,
                    uint64_t *close_at) {
  const struct ni_kernel *k = n->work->kernel;
  uint64_t own = stop_at - k->met_ns < stop_at - start_at ? k->met_ns : start_at; /* when all are in it */
  uint64_t work = stop_at - own, first = start_at, last = stop_at;
  switch (phases_of(n->work->task)) {
    case PHASES_CLASSIC:
      first = start_at + jitter(k, n->ch, 2) % 64;
      last = stop_at - jitter(k, n->ch, 3) % 64;
      break;
    case PHASES_OWN_NODE:
      first = start_at + work / 16;
      last = stop_at - work / 16;
      break;
    case PHASES_BARRIER:
      first = own + work / 16;
      last = stop_at - work / 16;
      break;
    case PHASES_LL:
      first = stop_at - work / 8;
      break;
  }
  *open_at = first < start_at ? start_at : first > stop_at ? stop_at : first;
  *close_at = last < *open_at ? *open_at : last > stop_at ? stop_at : last;
}

/*
 * The planted fault is on the task's last channel only: one bad stamp must spoil the operation, not a
 * majority.
 */
static enum ni_stamps fault(const struct ni_node *n) {
  const struct ni_task *t = n->work->task;
  return n->ch == t->ch0 + t->n_ch - 1 ? t->stamps : NI_STAMPS_GOOD;
}

uint64_t ni_stamp_start(const struct ni_node *n, uint64_t at) {
  const struct ni_gpu_clock *clock = &n->work->c->owner->clock;
  switch (fault(n)) {
    case NI_STAMPS_ZERO:
      return 0;
    case NI_STAMPS_STALE:
      return ni_gpu_stamp(clock, at - 20000000000u);
    case NI_STAMPS_LONG:
      return ni_gpu_stamp(clock, at - 7200000000000u);
    default:
      return ni_gpu_stamp(clock, at);
  }
}

uint64_t ni_stamp_stop(const struct ni_node *n, uint64_t at) {
  const struct ni_gpu_clock *clock = &n->work->c->owner->clock;
  switch (fault(n)) {
    case NI_STAMPS_BACKWARD:
      return n->start_stamp - 4096;
    case NI_STAMPS_STALE:
      return n->start_stamp + 8192;
    case NI_STAMPS_FUTURE:
      return ni_gpu_stamp(clock, at + 10000000000u);
    default:
      return ni_gpu_stamp(clock, at);
  }
}
