/*
 * Communicators and operations of the scripted host: each callback as NCCL makes it, with values from
 * truth.h.
 *
 * GPU time is CLOCK_MONOTONIC plus an offset; an operation's stop is never reported before its time has come,
 * and each starts after the one before it on the communicator has ended, as a stream has it.
 */
#ifndef NI_TEST_HOST_OPS_H
#define NI_TEST_HOST_OPS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>

#include "test/bench/plug.h"
#include "truth.h"

#define GPU_OFFSET UINT64_C(5000000000000000)
#define MAX_COMMS 16384
#define RING 4096

enum mode { RUN, OPEN, HALF };
static const char *const mode_names[] = {"run", "open", "half"};

struct comm {
  uint64_t hash;
  void *ctx;
  int rank, n_ranks;
  _Atomic uint64_t next[2]; /* record number to come, collectives and P2P */
  _Atomic uint64_t done[2]; /* of mode run: all below have finished */
  uint64_t gpu_ns;
  int channels;
  uint64_t base_ns;
};
static struct comm comms_here[MAX_COMMS];
static struct comm *comms = comms_here; /* or in a file that outlives us: verb "live" */
_Static_assert(sizeof(struct comm) == 80 && offsetof(struct comm, done) == 40, "verify.py --live reads it");
static _Atomic uint64_t next_hash = 0xc0de0000;
static struct plug plug;
static int p2p_self;

static inline void wait_until_gpu(uint64_t ns) {
  while (plug_now_ns() + GPU_OFFSET < ns) {}
}

/* One operation between its callbacks. */
struct op {
  void *handle, *group, *ch[64];
  uint64_t n, start, stop;
  int kind, n_ch, first;
};

static inline void op_start(struct comm *c, int kind, struct op *o) {
  struct ni_prof_descr_v6 d = {.type = NI_EV_GROUP, .rank = c->rank};
  o->kind = kind;
  o->n = c->next[kind]++;
  o->n_ch = kind && p2p_self ? 0 : truth_channels(o->n, c->channels);
  o->first = truth_first_channel(o->n);
  o->group = o->handle = NULL;
  plug.start(c->ctx, &o->group, &d);
  memset(&d, 0, sizeof d);
  d.rank = c->rank;
  d.type = kind ? NI_EV_P2P : NI_EV_COLL;
  d.parentObj = plug.version == 4 ? o->group : NULL;
  if (kind) {
    d.p2p.func = o->n % 2 ? "Recv" : "Send";
    d.p2p.datatype = truth_type[o->n % 4];
    d.p2p.count = truth_count(c->hash, o->n);
    d.p2p.peer = p2p_self ? c->rank : (c->rank + 1) % c->n_ranks;
    d.p2p.nChannels = (uint8_t)(p2p_self ? 1 : o->n_ch);
    if (plug.version > 4)
      d.p2p.parentGroup = o->group;
  } else {
    d.coll.seqNumber = o->n / 5;
    d.coll.func = truth_func[o->n % 5];
    d.coll.datatype = truth_type[o->n % 4];
    d.coll.algo = truth_algo[o->n % 3];
    d.coll.proto = truth_proto[o->n / 3 % 3];
    d.coll.count = truth_count(c->hash, o->n);
    d.coll.root = (int)(o->n % (uint64_t)c->n_ranks);
    d.coll.nChannels = (uint8_t)o->n_ch;
    d.coll.nWarps = 16;
    if (plug.version > 4)
      d.coll.parentGroup = o->group;
  }
  plug.start(c->ctx, &o->handle, &d);
}

static inline void op_close(struct op *o) {
  if (o->handle)
    plug.stop(o->handle);
  if (o->group)
    plug.stop(o->group);
}

static inline void op_channels_start(struct comm *c, struct op *o) {
  uint64_t exec = truth_exec_ns(o->n, c->base_ns), now = plug_now_ns() + GPU_OFFSET;
  o->start = now > c->gpu_ns + 4 ? now : c->gpu_ns + 4;
  o->stop = o->start + exec;
  c->gpu_ns = o->stop;
  struct ni_prof_descr_v6 d = {.type = NI_EV_KERNEL_CH, .rank = c->rank, .parentObj = o->handle};
  wait_until_gpu(o->start);
  for (int i = 0; i < o->n_ch; i++) { /* the first starts earliest, the last stops latest */
    d.kernelCh.channelId = (uint8_t)(o->first + i);
    d.kernelCh.pTimer = o->start + (uint64_t)i;
    o->ch[i] = NULL;
    plug.start(c->ctx, &o->ch[i], &d);
  }
}

static inline void op_channels_stop(struct op *o, int from) {
  wait_until_gpu(o->stop);
  for (int i = from; i < o->n_ch; i++) {
    union ni_prof_state_v4 st = {.kernelCh = {o->stop - (uint64_t)(o->n_ch - 1 - i)}};
    if (!o->ch[i])
      continue;
    plug.record(o->ch[i], NI_ST_KERNEL_CH_STOP, &st);
    plug.stop(o->ch[i]);
  }
}

static inline void announce(struct comm *c, int kind, uint64_t n, enum mode m) {
  truth("R %llx %c %llu %llu %s %d %llu\n", (unsigned long long)c->hash, kind ? 'p' : 'c',
        (unsigned long long)atomic_load(&c->next[kind]), (unsigned long long)n,
        m == RUN && kind && p2p_self ? "self" : mode_names[m], c->channels, (unsigned long long)c->base_ns);
}
static inline void finished(struct comm *c, int kind) {
  truth("D %llx %c %llu run\n", (unsigned long long)c->hash, kind ? 'p' : 'c',
        (unsigned long long)atomic_load(&c->done[kind]));
}

/* n operations on one thread; rate 0: as fast as possible, else that many a second. */
static inline void run_ops(struct comm *c, int kind, uint64_t n, enum mode m, double rate) {
  struct op o;
  uint64_t begin = plug_now_ns();
  announce(c, kind, n, m);
  for (uint64_t i = 0; i < n; i++) {
    if (rate > 0)
      while ((double)(plug_now_ns() - begin) < (double)i * 1e9 / rate)
        if (rate < 50000)
          usleep(20);
    op_start(c, kind, &o);
    op_close(&o);
    if (m == OPEN)
      continue;
    op_channels_start(c, &o);
    op_channels_stop(&o, m == HALF);
    if (m == RUN)
      atomic_store(&c->done[kind], o.n + 1);
  }
  if (m == RUN)
    finished(c, kind);
}

/* The same on two threads, as NCCL has it: the caller starts and closes, another one serves the channels. */
struct duet {
  struct comm *c;
  int kind;
  uint64_t n;
  struct op ring[RING];
  _Atomic uint64_t pushed, closed, served;
};

static inline void *duet_poller(void *arg) {
  struct duet *d = arg;
  for (uint64_t i = 0; i < d->n; i++) {
    while (atomic_load(&d->pushed) <= i)
      sched_yield();
    struct op *o = &d->ring[i % RING];
    op_channels_start(d->c, o);
    op_channels_stop(o, 0);
    uint64_t n = o->n;
    /* "done" needs both; the callbacks above raced the bracket */
    while (atomic_load(&d->closed) <= i)
      sched_yield();
    atomic_store(&d->c->done[d->kind], n + 1);
    atomic_store(&d->served, i + 1);
  }
  return NULL;
}

static inline void run_duet(struct comm *c, int kind, uint64_t n, double rate) {
  struct duet *d = calloc(1, sizeof *d);
  pthread_t t;
  d->c = c;
  d->kind = kind;
  d->n = n;
  announce(c, kind, n, RUN);
  if (pthread_create(&t, NULL, duet_poller, d))
    _exit(67);
  uint64_t begin = plug_now_ns();
  for (uint64_t i = 0; i < n; i++) {
    while (i - atomic_load(&d->served) >= RING)
      sched_yield();
    if (rate > 0)
      while ((double)(plug_now_ns() - begin) < (double)i * 1e9 / rate)
        sched_yield();
    struct op *o = &d->ring[i % RING];
    op_start(c, kind, o);
    void *handle = o->handle, *group = o->group;
    atomic_store(&d->pushed, i + 1);
    struct op close_only = {.handle = handle, .group = group};
    op_close(&close_only);
    atomic_store(&d->closed, i + 1);
  }
  pthread_join(t, NULL);
  free(d);
  finished(c, kind);
}

#endif
