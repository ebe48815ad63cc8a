/*
 * The progress thread: takes posted works, polls the device, raises KernelCh and the network events.
 *
 * As in NCCL: works come in append batches of at most 16 operation counts every 8 passes; each polls through
 * a chain of its own per (communicator, channel, direction), first in, first out; only the head of a chain is
 * polled, once per pass, so that start and stop of one KernelCh never fall in the same pass. From 2.31 on a
 * profiler thread polls otherwise (poller.c), and the progress thread has the network alone. States and
 * threads: engine.h.
 */
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

#include "engine.h"
#include "format/apart.h"
#include "truth.h"

enum { APPEND_BATCH = 16, APPEND_EVERY = 8 };

void ni_proxy_post(struct ni_proxy *p, struct ni_work *first, struct ni_work *last, int n) {
  pthread_mutex_lock(&p->lock);
  last->next = NULL;
  if (p->posted_tail)
    p->posted_tail->next = first;
  else
    p->posted = first;
  p->posted_tail = last;
  p->n_posted += n;
  atomic_store_explicit(&p->wake, 1, memory_order_release);
  pthread_cond_signal(&p->cond);
  pthread_mutex_unlock(&p->lock);
}

static void serve(struct ni_proxy *p, struct ni_crank *c) {
  if (c->running)
    return;
  c->running = true;
  *NI_ADD(p->run, p->n_run) = c;
}

static void take_kernels(struct ni_crank *c) {
  pthread_mutex_lock(&c->lock);
  struct ni_kernel *k = c->posted_kernels, *tail = c->posted_tail;
  c->posted_kernels = c->posted_tail = NULL;
  pthread_mutex_unlock(&c->lock);
  if (!k)
    return;
  if (c->gpu_tail)
    c->gpu_tail->next = k;
  else
    c->gpu_head = k;
  c->gpu_tail = tail;
}

bool ni_network_asks(const struct ni_work *w) {
  return ni_core_new(ni_core.release) && !w->task->symmetric && (w->c->id.n_nodes > 1 || w->task->pxn);
}

static void append_work(struct ni_proxy *p, struct ni_work *w) {
  struct ni_crank *c = w->c;
  serve(p, c);
  if (w->head) { /* the others of a fused kernel end with their head */
    ni_work_put(w->head);
    return;
  }
  int dir = w->task->kind == NI_TASK_RECV ? 1 : w->task->symmetric ? 2 : 0;
  if (!w->n_nodes) {
    w->next = c->shadow;
    c->shadow = w;
  }
  int n = w->n_nodes; /* the last node done frees the work */
  for (int i = 0; i < n; i++) {
    struct ni_chain *ch = &c->chains[dir][w->nodes[i].ch];
    if (ch->tail)
      ch->tail->next = &w->nodes[i];
    else
      ch->head = &w->nodes[i];
    ch->tail = &w->nodes[i];
    c->active[dir][w->nodes[i].ch / 64] |= 1ull << w->nodes[i].ch % 64;
  }
  if (!ni_core_new(ni_core.release)) {
    ni_netops_append(p, w);
    return;
  }
  if (!ni_network_asks(w))
    return;
  pthread_mutex_lock(&p->lock);
  w->net_next = NULL;
  if (p->net_tail)
    p->net_tail->net_next = w;
  else
    p->net_posted = w;
  p->net_tail = w;
  pthread_cond_signal(&p->net_cond);
  pthread_mutex_unlock(&p->lock);
}

/* Returns how many works came over. */
static int append(struct ni_proxy *p) {
  struct ni_work *list;
  int n = 0, counts = 0;
  pthread_mutex_lock(&p->lock);
  list = p->posted;
  struct ni_work *w = list, *last = NULL;
  while (w && counts < APPEND_BATCH) {
    /* Polling operations of a P2P have one count per channel: a batch ends earlier with them. */
    counts += w->task->kind == NI_TASK_COLL ? 1 : w->n_nodes ? w->n_nodes : 1;
    last = w;
    w = w->next;
    n++;
  }
  p->posted = w;
  if (!w)
    p->posted_tail = NULL;
  p->n_posted -= n;
  pthread_mutex_unlock(&p->lock);
  if (!n)
    return 0;
  last->next = NULL;
  for (struct ni_work *x = list, *next; x; x = next) {
    next = x->next;
    append_work(p, x);
  }
  return n;
}

static void start_node(struct ni_chain *ch, struct ni_node *n, uint64_t at) {
  struct ni_work *w = n->work;
  ni_truth_lock(w->c);
  n->state = NI_NODE_STARTED;
  n->anothers = w->apart && ni_apart_has(atomic_load_explicit(&w->c->ahead, memory_order_relaxed), n->ch);
  unsigned lag = n->anothers ? 1 : (unsigned)ni_run.scn->set.behind;
  ch->stamps[ch->n_stamped % 64].start = ni_stamp_start(n, at);
  n->start_stamp = ch->stamps[(ch->n_stamped - (lag <= ch->n_stamped ? lag : 0)) % 64].start;
  n->number = ch->n_stamped++;
  bool first = !w->first_ns && !n->anothers;
  if (first)
    w->first_ns = ni_unix_now();
  ni_truth_unlock(w->c);
  struct ni_prof_descr_v7 d;
  d.type = NI_EV_KERNEL_CH;
  d.parentObj = w->handle;
  d.rank = 0;
  d.kernelCh.channelId = n->ch;
  d.kernelCh.pTimer = n->start_stamp;
  ni_core_start(w->c->ctx, &n->handle, &d);
  if (first)
    w->first_to_ns = ni_unix_now();
}

static void stop_node(struct ni_chain *ch, struct ni_node *n, uint64_t at) {
  struct ni_work *w = n->work;
  union ni_prof_state_v4 a;
  unsigned lag = n->anothers ? 1 : (unsigned)ni_run.scn->set.behind;
  uint64_t mine = n->number;
  ni_truth_lock(w->c);
  ch->stamps[mine % 64].stop = ni_stamp_stop(n, at);
  n->stop_stamp = ch->stamps[(mine - (lag <= mine ? lag : 0)) % 64].stop;
  /* before the callback: an upper one follows in truth */
  if (w->n_done == w->n_nodes - 1)
    w->last_ns = ni_unix_now();
  ni_truth_unlock(w->c);
  a.kernelCh.pTimer = n->stop_stamp;
  ni_core_record(n->handle, NI_ST_KERNEL_CH_STOP, &a);
  ni_core_stop(n->handle);
  ni_truth_lock(w->c);
  if (w->n_done == w->n_nodes - 1)
    w->last_to_ns = ni_unix_now();
  n->state = NI_NODE_DONE;
  w->n_done++;
  ni_truth_unlock(w->c);
}

/* A channel that lags more than 64 works behind the device reads the slot of a later work (callbacks 3.8). */
static struct ni_node *overrun(struct ni_node *n, uint64_t now, bool start) {
  struct ni_node *x = n;
  for (int i = 0; i < 64 && x; i++)
    x = x->next;
  uint64_t at;
  if (x && (start ? ni_node_start_at(x, &at) : ni_node_stop_at(x, &at)) && at <= now)
    return x;
  return n;
}

/* Has the device come to the next of a node's two stamps? *at: that of the work whose slot is read. */
static bool reached(struct ni_node *n, uint64_t now, uint64_t *next_ns, uint64_t *at) {
  bool start = n->state == NI_NODE_POSTED;
  if (!(start ? ni_node_start_at(n, at) : ni_node_stop_at(n, at)))
    return false;
  if (*at > now) {
    if (*at < *next_ns)
      *next_ns = *at;
    return false;
  }
  if (ni_run.scn->set.overrun) {
    struct ni_node *x = overrun(n, now, start);
    if (x != n)
      (void)(start ? ni_node_start_at(x, at) : ni_node_stop_at(x, at));
  }
  return true;
}

/* One look at the head of one chain, as up to 2.30. */
static bool poll_head(struct ni_crank *c, struct ni_chain *ch, uint64_t now, uint64_t *next_ns) {
  (void)c;
  struct ni_node *n = ch->head;
  uint64_t at;
  if (!reached(n, now, next_ns, &at))
    return false;
  if (n->state == NI_NODE_POSTED) {
    start_node(ch, n, at);
    return true;
  }
  struct ni_node *next = n->next;
  stop_node(ch, n, at);
  ch->head = next;
  if (!next)
    ch->tail = NULL;
  ni_work_put(n->work);
  return true;
}

static bool poll_crank(struct ni_proxy *p, struct ni_crank *c, uint64_t now, uint64_t *next_ns) {
  bool moved = false;
  for (int dir = 0; dir < 3; dir++) {
    /* Channels in a different order each pass: nothing may rest on it. */
    unsigned turn = ni_rand(&p->rng) & 63;
    for (unsigned word = 0; word < NI_SIM_CHANNELS / 64; word++) {
      uint64_t mask = c->active[dir][word];
      mask = turn ? mask >> turn | mask << (64 - turn) : mask;
      for (; mask; mask &= mask - 1) {
        unsigned bit = ((unsigned)__builtin_ctzll(mask) + turn) & 63;
        struct ni_chain *ch = &c->chains[dir][64 * word + bit];
        moved |= (ni_core_new(ni_core.release) ? ni_poll_chain : poll_head)(c, ch, now, next_ns);
        if (!ch->head)
          c->active[dir][word] &= ~(1ull << bit);
      }
    }
  }
  /* Works nobody polls end with their kernel. */
  struct ni_work *keep = NULL;
  for (struct ni_work *w = c->shadow, *next; w; w = next) {
    next = w->next;
    uint64_t end = w->kernel->state == 2 ? ni_kernel_end(w->kernel) : UINT64_MAX;
    if (end <= now) {
      ni_work_put(w);
      moved = true;
    } else {
      if (end < *next_ns)
        *next_ns = end;
      w->next = keep;
      keep = w;
    }
  }
  c->shadow = keep;
  return moved;
}

static bool any_active(const struct ni_crank *c) {
  for (int dir = 0; dir < 3; dir++)
    for (int word = 0; word < NI_SIM_CHANNELS / 64; word++)
      if (c->active[dir][word])
        return true;
  return false;
}

static void back_off(uint64_t now, uint64_t next_ns) {
  uint64_t wait = next_ns > now ? next_ns - now : 0;
  if (wait > 60000)
    ni_sleep_ns(next_ns == UINT64_MAX ? 30000 : wait - 50000 > 500000 ? 500000 : wait - 50000);
  else
    sched_yield();
}

/*
 * With compute_us nothing of a kernel's times depends on when it is looked at, so a quarter of the computing
 * is often enough where it is not known when something happens. Else the thread sleeps until then: on a busy
 * machine who wakes comes on at once, and who yields comes back much later, which is all that the plugin then
 * knows of how the clocks of CPU and GPU relate.
 */
static void sleep_on(uint64_t now, uint64_t next_ns) {
  uint64_t most_ns = ni_run.scn->set.compute_us * 250ull, wait = next_ns > now ? next_ns - now : 0;
  if (most_ns < 30000)
    most_ns = 30000;
  ni_sleep_ns(wait < most_ns ? wait + 1000 : most_ns);
}

/* One pass over the communicators that have something on the device. True: something moved. */
static bool pass(struct ni_proxy *p, uint64_t now, uint64_t *next_ns) {
  bool moved = false;
  p->passes++;
  ni_looked_ns = now;
  for (int i = 0; i < p->n_run; i++) {
    struct ni_crank *c = p->run[i];
    take_kernels(c);
    ni_device_advance(c);
    moved |= poll_crank(p, c, now, next_ns);
    if (c->drop == 1) {
      ni_poll_drop(c);
      c->drop = 2;
    }
    if (!c->gpu_head && !any_active(c) && !c->shadow) {
      c->running = false;
      p->run[i--] = p->run[--p->n_run];
    }
  }
  return moved;
}

static void dawdle(uint64_t *rng) {
  uint32_t most_us = ni_run.scn->set.poll_delay_us;
  if (most_us && ni_rand(rng) % 16 == 0)
    ni_sleep_ns(ni_rand(rng) % (most_us * 1000ull));
}

/* The one thread up to 2.30. */
static void *progress_main(void *arg) {
  struct ni_proxy *p = arg;
  prctl(PR_SET_NAME, "NCCL Progress 0");
  for (bool idle = true;;) {
    if (idle && !p->netops) {
      pthread_mutex_lock(&p->lock);
      bool stop = p->stop && !p->posted, quiet = !p->posted && !p->stop;
      pthread_mutex_unlock(&p->lock);
      if (stop)
        break;
      if (quiet) {
        ni_proxy_ctrl(p, NI_ST_PROXY_CTRL_SLEEP, NI_ST_PROXY_CTRL_WAKEUP, -1);
      }
    }
    pthread_mutex_lock(&p->lock);
    bool abort = p->abort;
    int posted = p->n_posted;
    pthread_mutex_unlock(&p->lock);
    if (abort)
      break;
    int appended = 0;
    if (posted && (idle || p->passes % APPEND_EVERY == 0)) {
      appended = append(p);
      ni_proxy_ctrl(p, NI_ST_PROXY_CTRL_APPEND, NI_ST_PROXY_CTRL_APPEND_END, appended);
    }
    uint64_t now = ni_now(), next_ns = UINT64_MAX;
    bool moved = pass(p, now, &next_ns) || appended > 0;
    moved |= ni_netops_pass(p, now);
    bool was_idle = idle;
    idle = p->n_run == 0 && !p->netops;
    if (idle != was_idle)
      ni_proxy_ctrl(p, idle ? NI_ST_PROXY_CTRL_IDLE : NI_ST_PROXY_CTRL_ACTIVE, NI_ST_PROXY_CTRL_IDLE, -1);
    if (!moved && !idle)
      (ni_run.scn->set.compute_us ? sleep_on : back_off)(now, next_ns);
    dawdle(&p->rng);
  }
  ni_core_flush_counts();
  return NULL;
}

/* The profiler thread of 2.31 and later, and the device; it hands the network to the progress thread. */
static void *profiler_main(void *arg) {
  struct ni_proxy *p = arg;
  prctl(PR_SET_NAME, "NCCL Profiler");
  for (bool idle = true;;) {
    pthread_mutex_lock(&p->lock);
    while (idle && !p->posted && !p->stop && !p->abort)
      pthread_cond_wait(&p->cond, &p->lock);
    bool abort = p->abort, stop = idle && p->stop && !p->posted;
    int posted = p->n_posted;
    pthread_mutex_unlock(&p->lock);
    if (abort || stop)
      break;
    int appended = posted ? append(p) : 0;
    uint64_t now = ni_now(), next_ns = UINT64_MAX;
    bool moved = pass(p, now, &next_ns) || appended > 0;
    idle = p->n_run == 0;
    if (!moved && !idle)
      (ni_run.scn->set.compute_us ? sleep_on : back_off)(now, next_ns);
    dawdle(&p->rng);
  }
  ni_core_flush_counts();
  return NULL;
}

/* The progress thread of 2.31 and later: the network alone. */
static void *network_main(void *arg) {
  struct ni_proxy *p = arg;
  prctl(PR_SET_NAME, "NCCL Progress 0");
  for (bool idle = true;;) {
    if (idle)
      ni_proxy_ctrl(p, NI_ST_PROXY_CTRL_SLEEP, NI_ST_PROXY_CTRL_WAKEUP, -1);
    pthread_mutex_lock(&p->lock);
    struct ni_work *list = p->net_posted;
    p->net_posted = p->net_tail = NULL;
    bool abort = p->abort, stop = idle && p->net_stop && !list;
    pthread_mutex_unlock(&p->lock);
    if (abort || stop)
      break;
    int appended = 0;
    for (struct ni_work *w = list, *next; w; w = next, appended++) {
      next = w->net_next;
      ni_netops_append(p, w);
      ni_work_put(w);
    }
    if (appended)
      ni_proxy_ctrl(p, NI_ST_PROXY_CTRL_APPEND, NI_ST_PROXY_CTRL_APPEND_END, appended);
    bool moved = ni_netops_pass(p, ni_now()) || appended > 0, was_idle = idle;
    idle = !p->netops;
    if (idle != was_idle)
      ni_proxy_ctrl(p, idle ? NI_ST_PROXY_CTRL_IDLE : NI_ST_PROXY_CTRL_ACTIVE, NI_ST_PROXY_CTRL_IDLE, -1);
    if (!moved && !idle)
      back_off(0, UINT64_MAX);
    dawdle(&p->net_rng);
  }
  ni_core_flush_counts();
  return NULL;
}

void ni_proxy_sleep(struct ni_proxy *p) {
  bool new = ni_core_new(ni_core.release);
  pthread_mutex_lock(&p->lock);
  while (!(new ? p->net_posted : p->posted) && !(new ? p->net_stop : p->stop) && !p->abort)
    pthread_cond_wait(new ? &p->net_cond : &p->cond, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

static void start_thread(pthread_t *thread, void *(*main)(void *), struct ni_proxy *p) {
  pthread_attr_t a;
  pthread_attr_init(&a);
  pthread_attr_setstacksize(&a, 256 * 1024);
  if (pthread_create(thread, &a, main, p))
    ni_die(NI_SIM_FAILED,
           "cannot create a progress thread; progress_threads=N shares N between all communicators");
  pthread_attr_destroy(&a);
}

void ni_proxy_start(struct ni_proxy *p) {
  bool new = ni_core_new(ni_core.release);
  p->stop = p->net_stop = p->abort = false;
  start_thread(&p->thread, new ? profiler_main : progress_main, p);
  if (new)
    start_thread(&p->net_thread, network_main, p);
  p->started = true;
}

void ni_proxy_join(struct ni_proxy *p, bool abort) {
  bool new = ni_core_new(ni_core.release);
  pthread_mutex_lock(&p->lock);
  bool started = p->started;
  p->stop = true;
  p->abort |= abort;
  p->started = false;
  pthread_cond_broadcast(&p->cond);
  pthread_cond_broadcast(&p->net_cond);
  pthread_mutex_unlock(&p->lock);
  if (!started)
    return;
  pthread_join(p->thread, NULL);
  pthread_mutex_lock(&p->lock);
  p->net_stop = true;
  pthread_cond_broadcast(&p->net_cond);
  pthread_mutex_unlock(&p->lock);
  if (new)
    pthread_join(p->net_thread, NULL);
}
