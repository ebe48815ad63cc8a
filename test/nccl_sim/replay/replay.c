/*
 * nccl-sim --replay: recorded callbacks are played to a plugin, in their order, from as many threads, at
 * their pace.
 *
 * The calls are those that a core would make for the mask this plugin asks for; events whose plugin handle is
 * NULL get no stop and no state. The truth that comes out has the recorded device times, so that --verify
 * compares a log with what really ran on the device. Threads: one per recorded thread; a turn counter lets
 * them call one after the other.
 */
#include <string.h>
#include <unistd.h>

#include "format/apart.h"

#include "test/nccl_sim/modes.h"
#include "format/release.h"
#include "recording.h"
#include "test/nccl_sim/core/settings.h"
#include "test/nccl_sim/engine/truth.h"

struct played { /* one event */
  void *handle;
  bool called;
  uint64_t before_ns, after_ns, start_stamp, stop_stamp, first_ns, first_to, last_ns, last_to, rec;
  uint64_t gpu_first, gpu_last;
  int channels, done, mask;
  int sound;            /* channels whose stamps are the operation's */
  bool apart, anothers; /* of an operation: there may be others; of a KernelCh: it is such a one */
  uint64_t behind_ns;
  bool has_op; /* of an API call: a Coll, P2p or copy names it */
  /* of an API call: its number; of an operation: that of the call it comes from, -1 none was shown */
  int64_t call;
};

static struct {
  struct ni_recording r;
  struct played *played;
  void **ctx;
  uint64_t (*rec)[2];  /* operations started, by communicator and kind */
  int64_t (*calls)[2]; /* API calls shown to the plugin, likewise */
  pthread_mutex_t lock;
  pthread_cond_t cond;
  int turn;
  uint64_t t0_ns, first_ns;
  /* by how much the replay lags; whoever has the turn writes (release), all read (acquire) */
  _Atomic uint64_t behind_ns;
  /* by communicator: channels on which the device counts further than NCCL (ni_apart.h) */
  uint64_t *ahead;
  /* overrun=1: some stamps are those of a later kernel; only what is called GPU time is compared */
  bool late_stamps;
} play;

static bool wanted(uint64_t type) {
  int m = ni_core_mask();
  switch (type) {
    case NI_EV_GROUP:
      return ni_wants_group(m);
    case NI_EV_COLL:
      return ni_wants_coll(m);
    case NI_EV_P2P:
      return ni_wants_p2p(m, ni_core.release);
    case NI_EV_PROXY_OP:
      return ni_wants_proxy_op(m);
    case NI_EV_PROXY_STEP:
      return ni_wants_proxy_step(m);
    case NI_EV_GROUP_API:
      return ni_wants_group_api(m);
    case NI_EV_COLL_API:
      return ni_wants_coll_api(m);
    case NI_EV_P2P_API:
      return ni_wants_p2p_api(m);
    default:
      return m & (int)type;
  }
}

static void *handle_of(int event) { return event >= 0 ? play.played[event].handle : NULL; }

static void do_start(const struct ni_call_rec *c) {
  const struct ni_event_rec *e = &play.r.events[c->event];
  struct played *p = &play.played[c->event];
  if (!wanted(e->d.type))
    return;
  struct ni_prof_descr_v7 d = e->d;
  struct played *parent = e->parent >= 0 ? &play.played[e->parent] : NULL;
  /* A child is raised only if its operation was: the mask was latched there. */
  if ((e->d.type & (NI_EV_KERNEL_CH | NI_EV_KERNEL_PHASE)) && (!parent || !parent->called))
    return;
  if (e->d.type == NI_EV_KERNEL_PHASE) {
    const struct played *op = &play.played[play.r.events[e->parent].parent];
    if (!parent->handle)
      return;
    p->start_stamp = d.kernelPhase.pTimer += d.kernelPhase.pTimer ? op->behind_ns : 0;
  }
  d.parentObj = handle_of(e->parent);
  bool coll = d.type == NI_EV_COLL, op = coll || d.type == NI_EV_P2P;
  if (coll)
    d.coll.parentGroup = handle_of(e->parent_group);
  if (d.type == NI_EV_P2P)
    d.p2p.parentGroup = handle_of(e->parent_group);
  if (d.type == NI_EV_PROXY_OP)
    d.proxyOp.pid = getpid();
  p->called = true;
  p->mask = ni_core_mask();
  p->before_ns = ni_unix_now();
  p->behind_ns = atomic_load_explicit(&play.behind_ns, memory_order_acquire);
  if (d.type == NI_EV_KERNEL_CH) {
    /* A device that is behind as the host was when it launched: no kernel begins before that. */
    p->start_stamp = d.kernelCh.pTimer += d.kernelCh.pTimer ? parent->behind_ns : 0;
    p->anothers = parent->apart && (play.ahead[play.r.events[e->parent].comm] >> d.kernelCh.channelId & 1);
    parent->channels++;
    if (!p->anothers) {
      if (!parent->sound++)
        parent->first_ns = p->before_ns;
      if (!parent->gpu_first || p->start_stamp < parent->gpu_first)
        parent->gpu_first = p->start_stamp;
    }
  }
  if (d.type == NI_EV_P2P && e->comm >= 0 && d.p2p.peer == play.r.comms[e->comm].rank &&
      ni_core_self_silent(ni_core.release))
    play.ahead[e->comm] |= ni_apart_of_self(
        ni_core.release, ni_core_p2p_channels(ni_core.release, ni_core.interface) ? d.p2p.nChannels : 0);
  if (op && e->comm >= 0)
    p->apart = play.ahead[e->comm] != 0;
  p->call = -1;
  if (op && e->comm >= 0) {
    p->rec = play.rec[e->comm][!coll]++;
    bool from_call =
        parent && parent->called && (play.r.events[e->parent].d.type & (NI_EV_COLL_API | NI_EV_P2P_API));
    if (from_call)
      p->call = parent->call;
  }
  if ((op || d.type == NI_EV_CE_COLL) && parent)
    parent->has_op = true;
  if ((d.type & (NI_EV_COLL_API | NI_EV_P2P_API)) && e->comm >= 0 && ni_core.interface >= 5)
    p->call = play.calls[e->comm][d.type == NI_EV_P2P_API]++;
  ni_core_start(e->comm >= 0 ? play.ctx[e->comm] : NULL, &p->handle, &d);
  p->after_ns = ni_unix_now();
  if (d.type == NI_EV_KERNEL_CH && !p->anothers && parent->sound == 1)
    parent->first_to = p->after_ns;
}

static void do_state(const struct ni_call_rec *c) {
  const struct ni_event_rec *e = &play.r.events[c->event];
  struct played *p = &play.played[c->event];
  union ni_prof_state_v4 a;
  memcpy(&a, &c->args, sizeof a);
  if (!p->called)
    return;
  if (c->state == NI_ST_KERNEL_CH_STOP && e->parent >= 0) {
    struct played *parent = &play.played[e->parent];
    if (a.kernelCh.pTimer)
      a.kernelCh.pTimer += parent->behind_ns;
    p->stop_stamp = a.kernelCh.pTimer;
    parent->done++;
    parent->last_ns = ni_unix_now();
    if (!p->anothers && p->stop_stamp > parent->gpu_last)
      parent->gpu_last = p->stop_stamp;
  }
  if (c->state == NI_ST_KERNEL_PHASE_STOP && e->parent >= 0) {
    const struct played *op = &play.played[play.r.events[e->parent].parent];
    if (a.kernelCh.pTimer)
      a.kernelCh.pTimer += op->behind_ns;
    p->stop_stamp = a.kernelCh.pTimer;
  }
  ni_core_record(p->handle, (enum ni_prof_state)c->state, c->has_args ? &a : NULL);
  if (c->state == NI_ST_KERNEL_CH_STOP && e->parent >= 0)
    play.played[e->parent].last_to = ni_unix_now();
}

static bool is_symmetric(const struct ni_event_rec *e) {
  return e->d.type == NI_EV_COLL && (e->d.coll.isSymColl || (e->d.coll.proto && !*e->d.coll.proto));
}

/* Whose KernelCh tell an operation's time: of several calls in one symmetric kernel the first's. */
static int head_of(int event, bool *shared) {
  const struct ni_event_rec *e = &play.r.events[event];
  int first = event, n = 0;
  *shared = false;
  if (!is_symmetric(e) || e->parent_group < 0)
    return event;
  for (int i = play.r.n_events; i-- > 0;) {
    const struct ni_event_rec *x = &play.r.events[i];
    if (!is_symmetric(x) || x->parent_group != e->parent_group)
      continue;
    first = i;
    n++;
  }
  *shared = n > 1 && play.played[first].channels > 0;
  return *shared ? first : event;
}

/* The parts of a symmetric kernel, where each of its KernelCh has some. */
static void sum_phases(struct ni_truth_op *o, int event) {
  uint64_t open = 0, close = 0;
  const struct played *op = &play.played[event];
  o->phases_known = op->channels > 0;
  for (int i = 0; i < play.r.n_events; i++) {
    if (play.r.events[i].parent != event || play.r.events[i].d.type != NI_EV_KERNEL_CH)
      continue;
    uint64_t begins = play.played[i].start_stamp, ends = play.played[i].stop_stamp;
    bool any = false;
    for (int k = 0; k < play.r.n_events; k++) {
      if (play.r.events[k].parent != i || play.r.events[k].d.type != NI_EV_KERNEL_PHASE)
        continue;
      any |= play.played[k].called;
      if (play.r.events[k].d.kernelPhase.phaseId == 0)
        begins = play.played[k].stop_stamp;
      if (play.r.events[k].d.kernelPhase.phaseId == 2)
        ends = play.played[k].start_stamp;
    }
    o->phases_known &= any;
    if (begins > open)
      open = begins;
    if (ends > close)
      close = ends;
  }
  if (!o->phases_known)
    return;
  o->initial_ns = open - op->gpu_first;
  o->compute_ns = close - open;
  o->final_ns = op->gpu_last - close;
}

/* What is new with v7, of a recording that has it. */
static void tell_new(struct ni_truth_op *o, int event, int head) {
  const struct ni_event_rec *e = &play.r.events[event];
  const struct ni_event_rec *call = e->parent >= 0 ? &play.r.events[e->parent] : NULL;
  o->symmetric = is_symmetric(e);
  o->parent = call && play.played[e->parent].handle;
  o->captured = call && call->d.type == NI_EV_COLL_API && call->d.collApi.graphCaptured;
  if (ni_core.interface >= 7) {
    o->tag = e->d.type == NI_EV_COLL ? e->d.coll.userTag : e->d.p2p.userTag;
    if (o->symmetric)
      o->kernel = e->d.coll.kernelVariant;
    if (o->symmetric)
      sum_phases(o, head);
  }
  for (int i = 0; o->captured && i < event; i++) {
    const struct ni_event_rec *x = &play.r.events[i];
    if (x->parent != e->parent || x->d.type != e->d.type)
      continue;
    o->replayed_from = play.played[i].before_ns;
    o->replayed_to = play.played[i].after_ns;
  }
}

static void emit(int event) {
  const struct ni_event_rec *e = &play.r.events[event];
  const struct played *p = &play.played[event];
  const struct ni_comm_rec *c = &play.r.comms[e->comm];
  bool coll = e->d.type == NI_EV_COLL, shared;
  int head = head_of(event, &shared);
  const struct played *in = &play.played[head];
  const char *dtype = coll ? e->d.coll.datatype : e->d.p2p.datatype;
  int nch = coll ? e->d.coll.nChannels : e->d.p2p.nChannels;
  struct ni_truth_op o = {.hash = c->hash,
                          .sn = coll ? e->d.coll.seqNumber : 0,
                          .rec = p->rec,
                          .bytes = (coll ? e->d.coll.count : e->d.p2p.count) * ni_datatype_bytes(dtype),
                          .shared = shared,
                          .exec_ns = in->gpu_last > in->gpu_first ? in->gpu_last - in->gpu_first : 0,
                          .enq_from = p->before_ns,
                          .enq_to = p->after_ns,
                          .first_ns = in->first_ns,
                          .first_to = in->first_to,
                          .last_ns = in->last_ns,
                          .last_to = in->last_to,
                          .rank = c->rank,
                          .root = coll ? e->d.coll.root : 0,
                          .peer = coll ? -1 : e->d.p2p.peer,
                          .nch = nch,
                          .desc_nch = nch,
                          .done_ch = in->done,
                          .mask = p->mask,
                          .coll = coll,
                          .called = true,
                          .null_handle = p->handle == NULL,
                          .func = coll ? e->d.coll.func : e->d.p2p.func,
                          .dtype = dtype,
                          .algo = coll ? e->d.coll.algo : "",
                          .proto = coll ? e->d.coll.proto : "",
                          .timing = in->sound ? "kernel_gpu" : "collective_cpu",
                          .stamps = play.late_stamps ? "overrun" : "good",
                          .call = p->call,
                          .out = in->channels == in->done ? NI_OUT_DONE : NI_OUT_OPEN};
  tell_new(&o, event, head);
  for (int i = 0; i < play.r.n_events && o.n_channels < NI_SIM_CHANNELS; i++)
    if (play.r.events[i].parent == head && play.r.events[i].d.type == NI_EV_KERNEL_CH)
      o.channels[o.n_channels++] = (struct ni_truth_channel){
          play.r.events[i].d.kernelCh.channelId, play.played[i].start_stamp, play.played[i].stop_stamp};
  ni_truth_line(&o);
}

/* A collective without an event of its own (Broadcast since 2.29): what the plugin can know is the call. */
static void emit_call(int event) {
  const struct ni_event_rec *e = &play.r.events[event];
  const struct played *p = &play.played[event];
  const struct ni_comm_rec *c = &play.r.comms[e->comm];
  if (p->call < 0 || p->has_op || e->d.collApi.graphCaptured || !(p->mask & NI_EV_COLL))
    return;
  ni_truth_called_line(
      &(struct ni_truth_called){.hash = c->hash,
                                .tag = ni_core.interface >= 7 ? e->d.collApi.userTag : 0,
                                .bytes = e->d.collApi.count * ni_datatype_bytes(e->d.collApi.datatype),
                                .enq_from = p->before_ns,
                                .enq_to = p->after_ns,
                                .call = p->call,
                                .rank = c->rank,
                                .root = e->d.collApi.root,
                                .func = e->d.collApi.func,
                                .dtype = e->d.collApi.datatype,
                                .src = "api"});
}

static void do_call(const struct ni_call_rec *c) {
  switch (c->kind) {
    case NI_REC_INIT: {
      const struct ni_comm_rec *m = &play.r.comms[c->event];
      struct ni_comm_ident id = {m->name, m->hash, m->n_nodes, m->n_ranks, m->rank};
      if (!ni_core_load())
        return;
      ni_core_init(&play.ctx[c->event], &id);
      ni_truth_comm_line(&id);
      return;
    }
    case NI_REC_FINALIZE:
      if (c->event < 0)
        return;
      for (int i = 0; i < play.r.n_events; i++) {
        if (play.r.events[i].comm != c->event || !play.played[i].called)
          continue;
        if (play.r.events[i].d.type & (NI_EV_COLL | NI_EV_P2P))
          emit(i);
        if (play.r.events[i].d.type == NI_EV_COLL_API)
          emit_call(i);
      }
      ni_core_finalize(play.ctx[c->event]);
      ni_core_unload();
      play.ctx[c->event] = NULL;
      return;
    case NI_REC_START:
      do_start(c);
      return;
    case NI_REC_STATE:
      do_state(c);
      return;
    case NI_REC_STOP:
      if (play.played[c->event].called)
        ni_core_stop(play.played[c->event].handle);
      return;
  }
}

static void *thread_main(void *arg) {
  uint32_t me = *(const uint32_t *)arg;
  for (int i = 0; i < play.r.n_calls; i++) {
    const struct ni_call_rec *c = &play.r.calls[i];
    if (c->thread != me)
      continue;
    uint64_t at = play.t0_ns + (c->at_ns - play.first_ns), now = ni_now();
    uint64_t due = at + atomic_load_explicit(&play.behind_ns, memory_order_acquire);
    if (due > now + 200000)
      ni_sleep_ns(due - now - 100000);
    pthread_mutex_lock(&play.lock);
    while (play.turn != i)
      pthread_cond_wait(&play.cond, &play.lock);
    pthread_mutex_unlock(&play.lock);
    while ((now = ni_now()) < at + play.behind_ns) {}
    if (now - at - play.behind_ns > 100000)
      atomic_store_explicit(&play.behind_ns, now - at, memory_order_release);
    do_call(c);
    pthread_mutex_lock(&play.lock);
    play.turn++;
    pthread_cond_broadcast(&play.cond);
    pthread_mutex_unlock(&play.lock);
  }
  ni_core_flush_counts();
  return NULL;
}

int ni_replay_main(const char *path, const struct ni_options *o) {
  struct ni_settings set;
  char why[256], host[128] = "";
  pthread_t threads[256];
  ni_settings_default(&set);
  for (int i = 0; i < o->n_sets; i++) {
    char name[NI_SET_NAME_BYTES];
    const char *value = ni_set_split(o->sets[i], name);
    if (!ni_settings_set(&set, name, value, why, sizeof why) || *why)
      ni_die(NI_SIM_USAGE, "--set %s: %s", o->sets[i], *why ? why : "no such setting");
  }
  ni_core_become(set.release);
  ni_core.want_interface = set.interface;
  ni_core.poison = (enum ni_poison)set.poison;
  play.late_stamps = set.overrun;
  ni_recording_read(&play.r, path);
  play.played = ni_xalloc((size_t)play.r.n_events * sizeof *play.played);
  play.ctx = ni_xalloc((size_t)play.r.n_comms * sizeof *play.ctx);
  play.rec = ni_xalloc((size_t)play.r.n_comms * sizeof *play.rec);
  play.ahead = ni_xalloc((size_t)play.r.n_comms * sizeof *play.ahead);
  play.calls = ni_xalloc((size_t)play.r.n_comms * sizeof *play.calls);
  pthread_mutex_init(&play.lock, NULL);
  pthread_cond_init(&play.cond, NULL);
  ni_run.scenario = "replay";
  ni_truth_open(o->truth);
  gethostname(host, sizeof host - 1);
  ni_truth_process(host, set.seed, 0);
  play.first_ns = play.r.calls[0].at_ns;
  play.t0_ns = ni_now();
  for (int i = 0; i < play.r.n_threads; i++)
    if (pthread_create(&threads[i], NULL, thread_main, &play.r.threads[i]))
      ni_die(NI_SIM_FAILED, "cannot create a thread");
  for (int i = 0; i < play.r.n_threads; i++)
    pthread_join(threads[i], NULL);
  ni_truth_end(NI_END_FINALIZE);
  char release[40];
  if (!o->quiet)
    printf("replayed %d calls of %d events, %d communicators, %d threads, NCCL %s v%d\n", play.r.n_calls,
           play.r.n_events, play.r.n_comms, play.r.n_threads, ni_release_text(ni_core.release, release),
           set.interface ? set.interface : ni_core_newest(ni_core.release));
  return 0;
}
