/*
 * gpu_contract: does a recording of real callbacks keep what plugin and simulator take for granted?
 *
 * The statements are those of docs/architecture.md ("When is an operation finished?", "GPU time") and of the
 * scenarios. One that a recording breaks is a difference between the simulator and NCCL: it is to be
 * corrected in the simulator, with a scenario, and then looked at in the plugin. Rows as gpu_check's:
 * verdict, what, figures. One thread. Usage: gpu_contract RECORDING...; exit 0 all hold, 1 one does not.
 */
#include <string.h>

#include "test/nccl_sim/replay/recording.h"

struct seen { /* one event */
  uint64_t start_ns, stop_ns, stamp[2];
  int starts, stops, children, child_stops;
  uint32_t thread;
  bool has_stamp;
};

struct rule {
  const char *what;
  uint64_t held, broken;
  char first[200];
};

enum {
  ONCE,
  PARENT,
  STATE22,
  STAMPS,
  COUNT_COLL,
  COUNT_P2P,
  CAPTURED,
  SELF,
  FIFO,
  DEVICE_ORDER,
  NUMBERS,
  BRACKET,
  POLLER,
  RANK,
  N_RULES
};
static struct rule rules[N_RULES] = {
    [ONCE] = {.what = "an event starts once and stops once"},
    [PARENT] = {.what = "a KernelCh's parent is a Coll or P2p that has started"},
    [STATE22] = {.what = "a KernelCh has its stop stamp before its stop"},
    [STAMPS] = {.what = "stamps are not 0, the stop's not before the start's"},
    [COUNT_COLL] = {.what = "a Coll has as many KernelCh as its nChannels"},
    [COUNT_P2P] = {.what = "a P2p has as many KernelCh as its nChannels"},
    [CAPTURED] = {.what = "a captured symmetric Coll has no KernelCh, whatever it announces"},
    [SELF] = {.what = "P2ps with the own rank have no KernelCh, or (from 2.31 on) all of them nChannels"},
    [FIFO] = {.what = "on a channel and direction the next starts after the one before stopped, or (2.31 on) "
                      "beside it"},
    [DEVICE_ORDER] = {.what = "device stamps of a channel and direction do not run backwards"},
    [NUMBERS] = {.what = "seqNumber counts by 1 per communicator and function"},
    [BRACKET] = {.what = "Coll and P2p lie inside their Group"},
    [POLLER] = {.what = "one thread raises all KernelCh of a communicator"},
    [RANK] = {.what = "Coll and P2p carry their communicator's rank"},
};

static void rule(int r, bool holds, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void rule(int r, bool holds, const char *fmt, ...) {
  va_list ap;
  if (holds) {
    rules[r].held++;
  } else if (rules[r].broken++ == 0) {
    va_start(ap, fmt);
    vsnprintf(rules[r].first, sizeof rules[r].first, fmt, ap);
    va_end(ap);
  }
}

struct chain { /* communicator, channel, direction */
  int last;    /* event, -1 none */
};

static void check(const char *path) {
  struct ni_recording rec;
  ni_recording_read(&rec, path);
  struct seen *s = ni_xalloc((size_t)rec.n_events * sizeof *s);
  struct chain(*chains)[64][2] = ni_xalloc((size_t)(rec.n_comms + 1) * sizeof *chains);
  uint32_t *poller = ni_xalloc((size_t)(rec.n_comms + 1) * sizeof *poller);
  uint64_t late_children = 0, same_thread = 0, beside = 0;
  int first_beside = -1;
  for (int c = 0; c <= rec.n_comms; c++)
    for (int ch = 0; ch < 64; ch++)
      chains[c][ch][0].last = chains[c][ch][1].last = -1;

  for (int i = 0; i < rec.n_calls; i++) {
    const struct ni_call_rec *call = &rec.calls[i];
    if (call->kind == NI_REC_INIT || call->kind == NI_REC_FINALIZE || call->event < 0)
      continue;
    const struct ni_event_rec *e = &rec.events[call->event];
    struct seen *x = &s[call->event];
    struct seen *parent = e->parent >= 0 ? &s[e->parent] : NULL;
    bool kernel = e->d.type == NI_EV_KERNEL_CH;
    int ptype = e->parent >= 0 ? (int)rec.events[e->parent].d.type : 0,
        comm = parent ? rec.events[e->parent].comm : -1;
    int recv = ptype == NI_EV_P2P && strcmp(rec.events[e->parent].d.p2p.func, "Recv") == 0;
    struct chain *chain = kernel && comm >= 0 && e->d.kernelCh.channelId < 64
        ? &chains[comm][e->d.kernelCh.channelId][recv]
        : NULL;
    if (call->kind == NI_REC_START) {
      x->starts++;
      x->start_ns = call->at_ns;
      x->thread = call->thread;
      if (!kernel)
        continue;
      x->stamp[0] = e->d.kernelCh.pTimer;
      rule(PARENT, parent && parent->starts && (ptype == NI_EV_COLL || ptype == NI_EV_P2P),
           "event %d, parent %d", call->event, e->parent);
      if (!parent)
        continue;
      parent->children++;
      late_children += parent->stops;
      if (comm >= 0) {
        same_thread += parent->thread == call->thread;
        if (!poller[comm])
          poller[comm] = call->thread;
        rule(POLLER, poller[comm] == call->thread, "communicator %d: threads %u and %u", comm, poller[comm],
             call->thread);
      }
      if (chain) {
        struct seen *before = chain->last >= 0 ? &s[chain->last] : NULL;
        if (before) {
          if (before->stops == 0 && beside++ == 0)
            first_beside = call->event;
          rule(DEVICE_ORDER, x->stamp[0] >= before->stamp[0],
               "communicator %d channel %d: start %lld ns earlier", comm, e->d.kernelCh.channelId,
               (long long)(before->stamp[0] - x->stamp[0]));
        }
        chain->last = call->event;
      }
    } else if (call->kind == NI_REC_STATE) {
      if (kernel && call->state == NI_ST_KERNEL_CH_STOP) {
        x->stamp[1] = call->args;
        x->has_stamp = call->has_args && !x->stops;
      }
    } else {
      x->stops++;
      x->stop_ns = call->at_ns;
      if (!kernel)
        continue;
      if (parent)
        parent->child_stops++;
      rule(STATE22, x->has_stamp, "event %d", call->event);
      rule(STAMPS, x->stamp[0] && x->stamp[1] >= x->stamp[0], "event %d: %llu to %llu", call->event,
           (unsigned long long)x->stamp[0], (unsigned long long)x->stamp[1]);
    }
  }

  bool whole = false; /* a communicator was finalized: what it began has ended */
  for (int i = 0; i < rec.n_calls; i++)
    whole |= rec.calls[i].kind == NI_REC_FINALIZE;
  uint64_t(*next)[6] = ni_xalloc((size_t)(rec.n_comms + 1) * sizeof *next);
  static const char *const funcs[6] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce", ""};
  bool any_kernel = false;
  for (int i = 0; i < rec.n_events; i++)
    any_kernel |= rec.events[i].d.type == NI_EV_KERNEL_CH;
  int heard = -1; /* has a P2p with the own rank KernelCh in this release? -1: none seen yet */
  for (int i = 0; i < rec.n_events; i++) {
    const struct ni_event_rec *e = &rec.events[i];
    const struct seen *x = &s[i];
    if (e->d.type &
        (NI_EV_GROUP | NI_EV_COLL | NI_EV_P2P | NI_EV_KERNEL_CH | NI_EV_PROXY_OP | NI_EV_KERNEL_PHASE))
      rule(ONCE, x->starts == 1 && (x->stops == 1 || (!whole && x->stops == 0)),
           "event %d of type 0x%llx: %d starts, %d stops", i, (unsigned long long)e->d.type, x->starts,
           x->stops);
    bool coll = e->d.type == NI_EV_COLL;
    if ((!coll && e->d.type != NI_EV_P2P) || e->comm < 0)
      continue;
    rule(RANK, e->d.rank == rec.comms[e->comm].rank, "event %d: rank %d of %d", i, e->d.rank,
         rec.comms[e->comm].rank);
    if (e->parent_group >= 0) {
      const struct seen *g = &s[e->parent_group];
      rule(BRACKET, g->start_ns <= x->start_ns && (!g->stops || !x->stops || g->stop_ns >= x->stop_ns),
           "event %d", i);
    }
    if (coll) {
      int f = 0;
      while (f < 5 && strcmp(e->d.coll.func, funcs[f]))
        f++;
      rule(NUMBERS, next[e->comm][f] == 0 || e->d.coll.seqNumber == next[e->comm][f],
           "communicator %d %s: %llu after %llu", e->comm, e->d.coll.func,
           (unsigned long long)e->d.coll.seqNumber, (unsigned long long)next[e->comm][f] - 1);
      next[e->comm][f] = e->d.coll.seqNumber + 1;
    }
    if (!any_kernel || (!whole && x->children != x->child_stops))
      continue;
    int want = coll ? e->d.coll.nChannels : e->d.p2p.nChannels;
    const struct ni_event_rec *call = e->parent >= 0 ? &rec.events[e->parent] : NULL;
    bool captured = call && call->d.type == NI_EV_COLL_API && call->d.collApi.graphCaptured;
    if (coll && captured && e->d.coll.isSymColl) {
      rule(CAPTURED, x->children == 0, "event %d (%s): %d of %d", i, e->d.coll.func, x->children, want);
      continue;
    }
    if (!coll && e->d.p2p.peer == rec.comms[e->comm].rank) {
      if (heard < 0)
        heard = x->children > 0;
      rule(SELF, x->children == (heard ? want : 0), "event %d: %d of %d", i, x->children, heard ? want : 0);
    } else if (want)
      rule(coll ? COUNT_COLL : COUNT_P2P, x->children == want, "event %d (%s): %d of %d", i,
           coll ? e->d.coll.func : e->d.p2p.func, x->children, want);
  }
  /*
   * Both came with 2.31: KernelCh of P2ps with the own rank, and a thread that looks at all works at every
   * pass.
   */
  if (any_kernel)
    rule(FIFO, !beside || heard != 0, "%llu times, first event %d", (unsigned long long)beside, first_beside);
  printf(
      "info\trecording %s\t%d calls, %d events, %d communicators, %d threads; %llu KernelCh began after "
      "their "
      "operation's stop, %llu on its thread, %llu beside another of their channel\n",
      path, rec.n_calls, rec.n_events, rec.n_comms, rec.n_threads, (unsigned long long)late_children,
      (unsigned long long)same_thread, (unsigned long long)beside);
  for (int c = 0; c < rec.n_comms; c++)
    free((char *)(uintptr_t)rec.comms[c].name);
  free(rec.comms);
  free(rec.events);
  free(rec.calls);
  free(next);
  free(poller);
  free(chains);
  free(s);
}

int main(int argc, char **argv) {
  int broken = 0;
  if (argc < 2)
    ni_die(64, "Usage: gpu_contract RECORDING...");
  for (int i = 1; i < argc; i++)
    check(argv[i]);
  for (int r = 0; r < N_RULES; r++) {
    const struct rule *x = &rules[r];
    const char *verdict = x->broken ? "FAIL" : x->held ? "ok" : "info";
    printf("%s\t%s\t%llu times, %llu exceptions%s%s\n", verdict, x->what, (unsigned long long)x->held,
           (unsigned long long)x->broken,
           x->broken     ? "; first: "
               : x->held ? ""
                         : " (not in it)",
           x->first);
    broken += x->broken > 0;
  }
  return broken ? 1 : 0;
}
