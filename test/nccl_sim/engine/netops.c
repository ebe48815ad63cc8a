/*
 * Network operations of the progress thread: ProxyOp, ProxyStep, ProxyCtrl, and operations served for other
 * processes.
 *
 * One machine per operation: append -> start(ProxyOp); first pass -> in progress; then transfers one after
 * another, each with the states of callbacks 3.3 and the repetitions named there; CollNet never stops. All of
 * it runs on P; the operations are P's own. States: engine.h.
 */
#include <string.h>
#include <unistd.h>

#include "engine.h"

/* The plugin waits 100 ms for an operation's network; on a busy machine this thread may come later. */
#define NET_LATE_NS 99000000u

struct ni_netop {
  struct ni_netop *next;
  struct ni_work *work; /* NULL: served for another process */
  void *ctx, *handle, *step;
  int mask;
  bool send, foreign, never_stops;
  int phase; /* 0: not yet in progress; then states of one transfer, 1.. */
  int at, n_steps, repeats;
  size_t bytes;
};

/*
 * A ring crossing the node on a channel: one send, one receive; P2P: one. Counted only where ranks span
 * nodes.
 */
int ni_netops_of(const struct ni_crank *c, const struct ni_task *t) {
  if (c->id.n_nodes < 2)
    return 0;
  if (t->kind != NI_TASK_COLL)
    return t->n_ch;
  int per = c->id.n_ranks / c->id.n_nodes ? c->id.n_ranks / c->id.n_nodes : 1;
  bool first = c->id.rank % per == 0, last = c->id.rank % per == per - 1;
  return t->collnet ? 0 : t->n_ch * (first + last);
}

static void add(struct ni_proxy *p, struct ni_work *w, bool send, int ch, bool foreign) {
  const struct ni_task *t = w->task;
  struct ni_netop *o = ni_xalloc(sizeof *o);
  struct ni_prof_descr_v7 d;
  o->work = foreign ? NULL : w;
  /* the other process's latched mask counts */
  o->mask = w->mask | (foreign ? NI_EV_PROXY_OP | NI_EV_PROXY_STEP : 0);
  o->ctx = foreign ? ni_run.wild : w->c->ctx;
  o->send = send;
  o->foreign = foreign;
  o->never_stops = t->collnet;
  o->n_steps = ni_run.scn->set.net_steps;
  o->bytes = ni_task_bytes(t) / (t->n_ch ? t->n_ch : 1) / (uint64_t)o->n_steps;
  memset(&d, 0, sizeof d);
  d.type = NI_EV_PROXY_OP;
  d.parentObj = foreign ? (char *)ni_run.wild + 128 : w->handle;
  d.rank = foreign ? w->c->id.rank + 1 : w->c->id.rank;
  d.proxyOp.pid = foreign && t->pxn != 2 ? getpid() + 1 : getpid();
  d.proxyOp.channelId = (uint8_t)ch;
  d.proxyOp.peer = (w->c->id.rank + (send ? 1 : w->c->id.n_ranks - 1)) % w->c->id.n_ranks;
  d.proxyOp.nSteps = o->n_steps;
  d.proxyOp.chunkSize = 1048576;
  d.proxyOp.isSend = send && !t->collnet;
  ni_core_start(o->ctx, &o->handle, &d);
  if (o->work && ni_unix_now() - o->work->after_ns > NET_LATE_NS)
    atomic_fetch_add_explicit(&ni_core.late_net, 1, memory_order_relaxed);
  if (o->never_stops) { /* nothing ever calls for it again */
    free(o);
    return;
  }
  o->next = p->netops;
  p->netops = o;
}

void ni_netops_append(struct ni_proxy *p, struct ni_work *w) {
  const struct ni_task *t = w->task;
  bool self = t->kind != NI_TASK_COLL && w->peer == w->c->id.rank;
  if (t->pxn)
    add(p, w, true, t->ch0, true);
  if (self || !ni_wants_proxy_op(w->mask))
    return;
  /* Up to 2.26 the transport itself started its operations, and CollNet's had none. */
  if (t->collnet && ni_core.release >= 22700 && w->c->id.n_nodes > 1)
    for (int i = 0; i < t->n_ch; i++)
      add(p, w, false, t->ch0 + i, false);
  int n = ni_netops_of(w->c, t);
  for (int i = 0; i < n; i++) {
    bool send = t->kind == NI_TASK_SEND || (t->kind == NI_TASK_COLL && i >= n / 2);
    if (t->kind == NI_TASK_COLL && n == t->n_ch)
      send = w->c->id.rank % 2 != 0;
    add(p, w, send, t->ch0 + i % t->n_ch, false);
  }
}

static void start_step(struct ni_netop *o) {
  struct ni_prof_descr_v7 d;
  /* 2.27 starts no step under a NULL operation. */
  if (!o->handle && ni_core.release < 22800)
    return;
  memset(&d, 0, sizeof d);
  d.type = NI_EV_PROXY_STEP;
  d.parentObj = o->handle;
  d.proxyStep.step = o->at;
  ni_core_start(o->ctx, &o->step, &d);
}

static void record_step(struct ni_netop *o, enum ni_prof_state state) {
  union ni_prof_state_v4 a = {.proxyStep = {o->bytes}};
  if (o->handle)
    ni_core_record(o->step, state, &a);
  bool sized = state == NI_ST_PROXY_STEP_SEND_WAIT || state == NI_ST_PROXY_STEP_RECV_FLUSH_WAIT;
  if (!sized || !o->step)
    return; /* each transfer passes one of the two, once */
  atomic_fetch_add_explicit(&ni_core.steps, 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&ni_core.step_bytes, o->bytes, memory_order_relaxed);
}

/* 2.27 and later say once that it moves; before, each stage of each transfer, with the bytes so far. */
static void record_op(struct ni_netop *o, enum ni_prof_state stage) {
  union ni_prof_state_v4 a = {.proxyStep = {o->bytes * (uint64_t)o->at}};
  if (ni_core.release >= 22700)
    ni_core_record(o->handle, NI_ST_PROXY_OP_IN_PROGRESS, NULL);
  else
    ni_core_record(o->handle, stage, &a);
}

/* One pass over one operation; true when it is finished. */
static bool advance(struct ni_proxy *p, struct ni_netop *o) {
  bool steps = ni_wants_proxy_step(o->mask);
  if (ni_core_has_diag(o->mask))
    ni_core_diag(o->handle);
  if (o->phase == 0) {
    record_op(o, o->send ? NI_ST_PROXY_OP_SEND_POSTED : NI_ST_PROXY_OP_RECV_POSTED);
    o->phase = 1;
    return false;
  }
  if (!steps)
    o->at = o->n_steps;
  if (o->at < o->n_steps) {
    int most = ni_run.scn->set.repeats;
    switch (o->phase) {
      case 1:
        o->step = NULL;
        start_step(o);
        if (o->send)
          record_step(o, NI_ST_PROXY_STEP_SEND_GPU_WAIT);
        o->repeats = most ? (int)(ni_rand(&p->net_rng) % (unsigned)(most + 1)) : 0;
        o->phase = 2;
        break;
      case 2: /* send: waits for a peer's credit, once or more; recv: asks again and again with a new start */
        if (!o->send && o->repeats)
          start_step(o);
        else if (o->send && ni_core.release >= 22700)
          record_step(o, NI_ST_PROXY_STEP_SEND_PEER_WAIT);
        if (o->repeats-- <= 0)
          o->phase = 3;
        break;
      case 3:
        record_step(o, o->send ? NI_ST_PROXY_STEP_SEND_WAIT : NI_ST_PROXY_STEP_RECV_WAIT);
        o->phase = o->send ? 6 : o->work && o->work->task->lost_rank == o->work->c->id.rank ? 7 : 4;
        break;
      case 7:
        return false; /* waits for a peer that is lost */
      case 4:
        record_step(o, NI_ST_PROXY_STEP_RECV_FLUSH_WAIT);
        o->phase = 5;
        break;
      case 5:
        record_step(o, NI_ST_PROXY_STEP_RECV_GPU_WAIT);
        o->phase = 6;
        break;
      default:
        ni_core_stop(o->step);
        o->step = NULL;
        o->at++;
        if (ni_core.release < 22700)
          record_op(o, o->send ? NI_ST_PROXY_OP_SEND_DONE : NI_ST_PROXY_OP_RECV_DONE);
        o->phase = 1;
        break;
    }
    return false;
  }
  /* It cannot be finished before the kernel is. */
  if (o->work && (o->work->kernel->state != 2 || ni_kernel_end(o->work->kernel) > ni_now()))
    return false;
  ni_core_stop(o->handle);
  return true;
}

bool ni_netops_pass(struct ni_proxy *p, uint64_t now) {
  (void)now;
  bool moved = false;
  for (struct ni_netop **at = &p->netops, *o; (o = *at);) {
    int phase = o->phase, step = o->at;
    if (advance(p, o)) {
      *at = o->next;
      if (o->work)
        ni_work_put(o->work);
      free(o);
      moved = true;
    } else {
      moved |= o->phase != phase || o->at != step;
      at = &o->next;
    }
  }
  return moved;
}

/*
 * A ProxyCtrl event with its two states; the live mask is read for each call, so records can vanish while the
 * stop still comes. SLEEP blocks in between until something is posted.
 */
void ni_proxy_ctrl(struct ni_proxy *p, enum ni_prof_state first, enum ni_prof_state last, int appended) {
  void *handle = NULL;
  union ni_prof_state_v4 a;
  struct ni_prof_descr_v7 d;
  memset(&a, 0, sizeof a);
  memset(&d, 0, sizeof d);
  d.type = NI_EV_PROXY_CTRL;
  if (ni_core_mask() & NI_EV_PROXY_CTRL)
    ni_core_start(p->creator_ctx, &handle, &d);
  if (ni_core_mask() & NI_EV_PROXY_CTRL)
    ni_core_record(handle, first, &a);
  if (first == NI_ST_PROXY_CTRL_IDLE || first == NI_ST_PROXY_CTRL_ACTIVE) { /* these have one state only */
    ni_core_stop(handle);
    return;
  }
  if (first == NI_ST_PROXY_CTRL_SLEEP)
    ni_proxy_sleep(p);
  a.proxyCtrl.appendedProxyOps = appended < 0 ? 0 : appended;
  if (ni_core_mask() & NI_EV_PROXY_CTRL)
    ni_core_record(handle, last, &a);
  ni_core_stop(handle);
}
