/*
 * Recorded real callbacks as JSON lines: an event line holds start and stop and is split; a state line
 * belongs to the event that had its address at that time, because addresses are used again. See recording.h.
 */
#include <math.h>

#include "test/nccl_sim/core/json_scan.h"
#include "recording.h"

struct span { /* who had an address when */
  uint64_t addr, ctx;
  double from, to;
  int event;
  uint64_t parent, parent_group;
};

static const struct {
  const char *name;
  uint64_t type;
} types[] = {{"ncclProfileGroup\"", NI_EV_GROUP},
             {"ncclProfileColl\"", NI_EV_COLL},
             {"ncclProfileP2p\"", NI_EV_P2P},
             {"ncclProfileProxyOp\"", NI_EV_PROXY_OP},
             {"ncclProfileProxyStep\"", NI_EV_PROXY_STEP},
             {"ncclProfileProxyCtrl\"", NI_EV_PROXY_CTRL},
             {"ncclProfileKernelCh\"", NI_EV_KERNEL_CH},
             {"ncclProfileGroupApi\"", NI_EV_GROUP_API},
             {"ncclProfileCollApi\"", NI_EV_COLL_API},
             {"ncclProfileP2pApi\"", NI_EV_P2P_API},
             {"ncclProfileKernelLaunch\"", NI_EV_KERNEL_LAUNCH}};

static const char *string(const char *line, const char *key) {
  char text[128];
  bool there = ni_scan_text(line, key, text, sizeof text);
  return ni_recording_string(there ? text : "", there ? strlen(text) : 0);
}

static double ts_of(const char *line, const char *object, uint32_t *thread) {
  const char *at = object ? ni_scan(line, object) : line;
  *thread = (uint32_t)ni_scan_u64(at, "tid", 0);
  return ni_scan_double(at, "ts", 0);
}

static uint64_t ns(double us) { return (uint64_t)llround(us * 1000); }

static void read_event(struct ni_recording *r, const char *line, uint64_t type, struct span *s) {
  int index = ni_recording_event(r);
  struct ni_prof_descr_v7 *d = &r->events[index].d;
  d->type = type;
  bool ranked = type == NI_EV_COLL || type == NI_EV_P2P || type == NI_EV_PROXY_OP || type == NI_EV_PROXY_STEP;
  d->rank = ranked ? ni_scan_int(line, "rank", 0) : 0;
  if (type == NI_EV_COLL) {
    d->coll.func = string(line, "func");
    d->coll.seqNumber = ni_scan_u64(line, "seq", 0);
    d->coll.algo = string(line, "algo");
    d->coll.proto = string(line, "proto");
    d->coll.nChannels = (uint8_t)ni_scan_int(line, "channels", 0);
    d->coll.nWarps = (uint8_t)ni_scan_int(line, "warps", 0);
    d->coll.count = ni_scan_u64(line, "count", 0);
    d->coll.root = ni_scan_int(line, "root", 0);
    d->coll.datatype = string(line, "dtype");
    d->coll.sendBuff = (void *)(uintptr_t)ni_scan_u64(line, "sendBuff", 0);
    d->coll.recvBuff = (void *)(uintptr_t)ni_scan_u64(line, "recvBuff", 0);
  } else if (type == NI_EV_P2P) {
    d->p2p.func = string(line, "func");
    d->p2p.count = ni_scan_u64(line, "count", 0);
    d->p2p.datatype = string(line, "dtype");
    d->p2p.peer = ni_scan_int(line, "peer", 0);
    d->p2p.nChannels = (uint8_t)ni_scan_int(line, "channels", 0);
  } else if (type == NI_EV_KERNEL_CH) {
    d->kernelCh.channelId = (uint8_t)ni_scan_int(line, "channel", 0);
    d->kernelCh.pTimer = ni_scan_u64(line, "pTimer", 0);
  } else if (type == NI_EV_GROUP_API) {
    d->groupApi.groupDepth = ni_scan_int(line, "depth", 1);
  } else if (type == NI_EV_COLL_API) {
    d->collApi.func = string(line, "func");
    d->collApi.count = ni_scan_u64(line, "count", 0);
    d->collApi.datatype = string(line, "dtype");
    d->collApi.root = ni_scan_int(line, "root", 0);
    d->collApi.stream = (void *)(uintptr_t)ni_scan_u64(line, "stream", 0);
  } else if (type == NI_EV_P2P_API) {
    d->p2pApi.func = string(line, "func");
    d->p2pApi.count = ni_scan_u64(line, "count", 0);
    d->p2pApi.datatype = string(line, "dtype");
  } else if (type == NI_EV_KERNEL_LAUNCH) {
    d->kernelLaunch.stream = (void *)(uintptr_t)ni_scan_u64(line, "stream", 0);
  }
  for (int i = 0; i < r->n_comms; i++)
    if (r->comms[i].hash == ni_scan_u64(line, "commId", 0) &&
        r->comms[i].rank == ni_scan_int(line, "rank", -1))
      r->events[index].comm = i;
  uint32_t thread, stop_thread;
  s->addr = ni_scan_u64(line, "eventAddr", 0);
  s->from = ts_of(line, "start", &thread);
  s->to = ts_of(line, "stop", &stop_thread);
  s->event = index;
  s->parent = ni_scan_u64(line, "parentObj", 0);
  s->parent_group = ni_scan_u64(line, "parentGroup", 0);
  struct ni_call_rec *c = ni_recording_call(r);
  c->kind = NI_REC_START;
  c->at_ns = ns(s->from);
  c->thread = thread;
  c->event = index;
  c = ni_recording_call(r);
  c->kind = NI_REC_STOP;
  c->at_ns = ns(s->to);
  c->thread = stop_thread;
  c->event = index;
}

/* The event that a child started at `at` means by its parent's address: the newest one of an allowed type. */
static int parent_at(const struct ni_recording *r, const struct span *spans, int n, uint64_t addr, double at,
                     int allowed) {
  int best = -1;
  double newest = -1;
  for (int i = 0; i < n && addr; i++)
    if (spans[i].addr == addr && spans[i].from <= at && spans[i].from > newest &&
        (r->events[spans[i].event].d.type & (uint64_t)allowed)) {
      best = spans[i].event;
      newest = spans[i].from;
    }
  return best;
}

static int parents_of(uint64_t type) {
  switch (type) {
    case NI_EV_COLL:
      return NI_EV_COLL_API;
    case NI_EV_P2P:
      return NI_EV_P2P_API;
    case NI_EV_PROXY_OP:
    case NI_EV_KERNEL_CH:
      return NI_EV_COLL | NI_EV_P2P;
    case NI_EV_PROXY_STEP:
      return NI_EV_PROXY_OP;
    case NI_EV_COLL_API:
    case NI_EV_P2P_API:
    case NI_EV_KERNEL_LAUNCH:
      return NI_EV_GROUP_API;
    default:
      return 0;
  }
}

void ni_recording_json(struct ni_recording *r, const char *path, char *text) {
  struct span *spans = NULL;
  int n = 0;
  for (int pass = 0; pass < 2; pass++) { /* states need all events' times */
    for (char *line = text, *next; line && *line; line = next) {
      next = strchr(line, '\n');
      if (next)
        *next = 0;
      uint32_t thread;
      if (strstr(line, "\"ProfilerLifecycle\"") && pass == 0) {
        bool init = strstr(line, "\"ProfilerInit\"") != NULL;
        uint64_t hash = ni_scan_u64(line, "commId", 0);
        int rank = ni_scan_int(line, "rank", 0), index = -1;
        for (int i = 0; i < r->n_comms; i++)
          if (r->comms[i].hash == hash && r->comms[i].rank == rank)
            index = i;
        if (init && index < 0) {
          index = ni_recording_comm(r);
          const char *name = string(line, "commName");
          r->comms[index] =
              (struct ni_comm_rec){hash, 1, ni_scan_int(line, "nranks", 1), rank, *name ? name : NULL};
        }
        struct ni_call_rec *c = ni_recording_call(r);
        c->kind = init ? NI_REC_INIT : NI_REC_FINALIZE;
        c->at_ns = ns(ts_of(line, "start", &thread));
        c->thread = thread;
        c->event = index;
      } else if (strstr(line, "\"recordType\":\"event\"") && pass == 0) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
          if (strstr(line, types[i].name))
            read_event(r, line, types[i].type, NI_ADD(spans, n));
      } else if (strstr(line, "\"recordType\":\"state\"") && pass == 1) {
        double at = ts_of(line, NULL, &thread);
        uint64_t addr = ni_scan_u64(line, "eventAddr", 0);
        int event = -1;
        for (int i = 0; i < n; i++)
          if (spans[i].addr == addr && spans[i].from <= at && at <= spans[i].to)
            event = spans[i].event;
        if (event < 0)
          ni_die(NI_SIM_FAILED, "%s: a state of no event at %.3f", path, at);
        struct ni_call_rec *c = ni_recording_call(r);
        c->kind = NI_REC_STATE;
        c->at_ns = ns(at);
        c->thread = thread;
        c->event = event;
        c->state = ni_scan_int(line, "id", 0);
        c->has_args = true;
        c->args = c->state == NI_ST_KERNEL_CH_STOP ? ni_scan_u64(line, "pTimer", 0)
                                                   : ni_scan_u64(line, "appendedProxyOps", 0);
      }
      if (next)
        *next++ = '\n';
    }
  }
  for (int i = 0; i < n; i++) {
    struct ni_event_rec *e = &r->events[spans[i].event];
    e->parent = parent_at(r, spans, n, spans[i].parent, spans[i].from, parents_of(e->d.type));
    e->parent_group = parent_at(r, spans, n, spans[i].parent_group, spans[i].from, NI_EV_GROUP);
  }
  free(spans);
}
