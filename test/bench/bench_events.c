/*
 * bench_events SO NOOP [--interface N] [--bursts N]
 *
 * Cost of each kind of callback, in nanoseconds per callback, net of the same calls on a do-nothing plugin:
 * sequences as NCCL raises them, back to back on one thread, in bursts with a pause between that lets the
 * dump thread drain. The median and the lowest burst of each: on a machine that others use the lowest is the
 * nearer one. Which kinds are recorded is the environment's (NCCL_INSPECTOR_EVENTS); a kind that is not is
 * what it costs to refuse.
 */
#include <stdbool.h>
#include <unistd.h>

#include "plug.h"

enum { MAX_BURSTS = 64 };
static int bursts = 15;
static struct plug *p;
static void *ctx;
static struct plug_op op;
static union ni_prof_state_v4 none;

static void *begin(uint64_t type, void *parent, struct ni_prof_descr_v6 *d) {
  void *h = NULL;
  d->type = type;
  d->parentObj = parent;
  p->start(ctx, &h, d);
  return h;
}

static void coll(int n) {
  for (int i = 0; i < n; i++)
    plug_bracket(p, ctx, &op, NULL);
}

static void collective(int n) {
  for (int i = 0; i < n; i++) {
    void *h = plug_launch(p, ctx, &op);
    if (h)
      plug_channels(p, ctx, &op, h, 8, 50000);
  }
}

/* The API events and the launch of a call, without the Coll between them. */
static void api(int n) {
  struct ni_prof_descr_v6 g = {0}, c = {0}, l = {0};
  c.collApi.func = "AllReduce";
  c.collApi.datatype = "ncclFloat32";
  c.collApi.count = 1024;
  for (int i = 0; i < n; i++) {
    void *group = begin(NI_EV_GROUP_API, NULL, &g);
    if (group)
      p->record(group, NI_ST_GROUP_API_START_END, NULL);
    void *call = begin(NI_EV_COLL_API, group, &c);
    if (call)
      p->stop(call);
    if (group)
      p->record(group, NI_ST_GROUP_API_END_BEGIN, NULL);
    void *launch = begin(NI_EV_KERNEL_LAUNCH, group, &l);
    if (launch)
      p->stop(launch);
    if (group)
      p->stop(group);
  }
}

static void *proxy(bool send, void *parent) {
  struct ni_prof_descr_v6 d = {0};
  d.proxyOp.pid = 1;
  d.proxyOp.nSteps = 64;
  d.proxyOp.chunkSize = 1 << 20;
  d.proxyOp.isSend = send;
  return begin(NI_EV_PROXY_OP, parent, &d);
}

static void proxy_op(int n) {
  for (int i = 0; i < n; i++) {
    void *h = proxy(true, NULL);
    if (!h)
      continue;
    p->record(h, NI_ST_PROXY_OP_IN_PROGRESS, &none);
    p->stop(h);
  }
}

/* 64 transfers an operation; one repeated wait each (callbacks 3.3). Four in flight. */
static void send_steps(int n) {
  struct ni_prof_descr_v6 d = {0};
  union ni_prof_state_v4 size = {.proxyStep = {1 << 20}};
  void *h[4];
  for (int i = 0; i < n; i++) {
    void *o = proxy(true, NULL);
    for (int k = 0; k < 64; k += 4) {
      for (int j = 0; j < 4; j++) {
        d.proxyStep.step = k + j;
        h[j] = begin(NI_EV_PROXY_STEP, o, &d);
        if (h[j])
          p->record(h[j], NI_ST_PROXY_STEP_SEND_GPU_WAIT, &size);
      }
      for (int j = 0; j < 4; j++) {
        if (!h[j])
          continue;
        p->record(h[j], NI_ST_PROXY_STEP_SEND_PEER_WAIT, &size);
        p->record(h[j], NI_ST_PROXY_STEP_SEND_PEER_WAIT, &size);
        p->record(h[j], NI_ST_PROXY_STEP_SEND_WAIT, &size);
      }
      for (int j = 0; j < 4; j++)
        if (h[j])
          p->stop(h[j]);
    }
    if (o)
      p->stop(o);
  }
}

static void recv_steps(int n) {
  struct ni_prof_descr_v6 d = {0};
  union ni_prof_state_v4 size = {.proxyStep = {1 << 20}};
  void *h[4];
  for (int i = 0; i < n; i++) {
    void *o = proxy(false, NULL);
    for (int k = 0; k < 64; k += 4) {
      for (int twice = 0; twice < 2; twice++) /* Q1 */
        for (int j = 0; j < 4; j++) {
          d.proxyStep.step = k + j;
          h[j] = begin(NI_EV_PROXY_STEP, o, &d);
        }
      for (int j = 0; j < 4; j++) {
        if (!h[j])
          continue;
        p->record(h[j], NI_ST_PROXY_STEP_RECV_WAIT, &size);
        p->record(h[j], NI_ST_PROXY_STEP_RECV_FLUSH_WAIT, &size);
        p->record(h[j], NI_ST_PROXY_STEP_RECV_GPU_WAIT, &size);
      }
      for (int j = 0; j < 4; j++)
        if (h[j])
          p->stop(h[j]);
    }
    if (o)
      p->stop(o);
  }
}

static void ctrl(int n) {
  struct ni_prof_descr_v6 d = {0};
  for (int i = 0; i < n; i++) {
    void *h = begin(NI_EV_PROXY_CTRL, NULL, &d);
    if (!h)
      continue;
    p->record(h, NI_ST_PROXY_CTRL_APPEND, &none);
    p->record(h, NI_ST_PROXY_CTRL_APPEND_END, &none);
    p->stop(h);
  }
}

static void ce(int n) {
  struct ni_prof_descr_v6 c = {0}, s = {0}, b = {0};
  c.ceColl.func = "AllGather";
  c.ceColl.datatype = "ncclInt8";
  c.ceColl.syncStrategy = "UC";
  for (int i = 0; i < n; i++) {
    void *h = begin(NI_EV_CE_COLL, NULL, &c);
    if (!h)
      continue;
    void *k = begin(NI_EV_CE_SYNC, h, &s);
    if (k)
      p->stop(k);
    k = begin(NI_EV_CE_BATCH, h, &b);
    if (k)
      p->stop(k);
    p->stop(h);
  }
}

static const struct {
  const char *name;
  void (*run)(int n);
  int n, calls, api,
      from; /* sequences a burst; callbacks of one on a plugin that takes everything, and so many more
                              from v5 on; interface */
} rows[] = {
    {"whole, 8 channels", collective, 4000, 28, 6, 4},
    {"group+coll", coll, 4000, 4, 0, 4},
    {"api+launch", api, 2000, 8, 0, 5},
    {"proxy op", proxy_op, 4000, 3, 0, 1},
    {"proxy steps, send", send_steps, 400, 64 * 6 + 2, 0, 1},
    {"proxy steps, recv", recv_steps, 400, 64 * 6 + 2, 0, 1},
    {"proxy ctrl", ctrl, 4000, 4, 0, 1},
    {"copy engine", ce, 2000, 6, 0, 6},
};

static int up(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* Of this thread, so that what preempts it does not count. */
static uint64_t cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void measure(struct plug *which, void *context, size_t row, double *sorted) {
  int calls = rows[row].calls + (which->version > 4 ? rows[row].api : 0);
  p = which;
  ctx = context;
  for (int b = -1; b < bursts; b++) {
    uint64_t t = cpu_ns();
    rows[row].run(rows[row].n);
    t = cpu_ns() - t;
    if (b >= 0)
      sorted[b] = (double)t / rows[row].n / calls;
    usleep(60000);
  }
  qsort(sorted, (size_t)bursts, sizeof *sorted, up);
}

int main(int argc, char **argv) {
  int version = 6;
  if (argc < 3) {
    fprintf(stderr, "usage: bench_events SO NOOP [--interface N] [--bursts N]\n");
    return 64;
  }
  for (int i = 3; i + 1 < argc; i += 2) {
    if (!strcmp(argv[i], "--interface"))
      version = atoi(argv[i + 1]);
    if (!strcmp(argv[i], "--bursts"))
      bursts = atoi(argv[i + 1]);
  }
  if (bursts > MAX_BURSTS)
    bursts = MAX_BURSTS;
  struct plug mine = plug_open(argv[1], version), noop = plug_open(argv[2], version < 4 ? 4 : version);
  void *a = plug_init(&mine, 0x1000, "bench", 2, 8, 0, plug_quiet),
       *b = plug_init(&noop, 0x1000, "bench", 2, 8, 0, plug_quiet);
  plug_op_init(&op, 262144, 8);
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    if (version < rows[r].from)
      continue;
    double base[MAX_BURSTS], got[MAX_BURSTS];
    measure(&noop, b, r, base);
    measure(&mine, a, r, got);
    printf("%-20s median %7.2f lowest %7.2f ns per callback net (empty: %.2f)\n", rows[r].name,
           got[bursts / 2] - base[bursts / 2], got[0] - base[0], base[0]);
  }
  mine.finalize(a);
  return 0;
}
