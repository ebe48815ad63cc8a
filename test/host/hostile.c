/*
 * hostile SO    calls that no correct NCCL makes: NULL everywhere, unknown types and states, channels above 63, foreign,
 * forged, stale and doubled handles and contexts, zero ranks. The plugin must neither crash nor record what
 * it cannot know; what it counted is checked by the script against what is printed here. In between, 100 good
 * operations per interface version.
 */
#include "test/bench/plug.h"

static unsigned seed = 12345;
static uint64_t rnd(void) {
  uint64_t x = 0;
  for (int i = 0; i < 8; i++) {
    seed = seed * 1664525u + 1013904223u;
    x = x << 8 | seed >> 24;
  }
  return x;
}

static void good(struct plug *p, void *ctx, struct plug_op *o, int n) {
  for (int i = 0; i < n; i++) {
    void *h = plug_launch(p, ctx, o);
    plug_channels(p, ctx, o, h, 4, 20000);
  }
}

static void nulls(struct plug *p, void *ctx) {
  struct ni_prof_descr_v6 d = {.type = NI_EV_COLL};
  void *h = (void *)1;
  union ni_prof_state_v4 st = {0};
  p->start(ctx, NULL, &d);
  p->start(ctx, &h, NULL);
  if (h)
    printf("bad: a handle without a descriptor\n");
  p->start(NULL, NULL, NULL);
  h = (void *)1;
  p->start(NULL, &h, &d);
  if (h)
    printf("bad: a handle without a context\n");
  p->stop(NULL);
  p->record(NULL, NI_ST_KERNEL_CH_STOP, &st);
  p->record(NULL, NI_ST_KERNEL_CH_STOP, NULL);
  p->finalize(NULL);
  if (p->version == 4) {
    const struct ni_prof_vtable_v4 *v = p->vtable;
    v->init(NULL, NULL, NULL, 0, 0, 0, 0, NULL);
  } else {
    const struct ni_prof_vtable_v5 *v = p->vtable;
    v->init(NULL, 0, NULL, NULL, 0, 0, 0, NULL);
  }
}

/* All strings NULL: Coll and P2p with nothing in them. They are operations, and are recorded as such. */
static void empty(struct plug *p, void *ctx) {
  struct ni_prof_descr_v6 d = {.type = NI_EV_COLL};
  void *h = NULL;
  d.coll.nChannels = 1;
  p->start(ctx, &h, &d);
  p->stop(h);
  struct ni_prof_descr_v6 k = {.type = NI_EV_KERNEL_CH, .parentObj = h};
  void *c = NULL;
  p->start(ctx, &c, &k); /* stamp 0 */
  p->record(c, NI_ST_KERNEL_CH_STOP, NULL);
  p->stop(c);
}

static void unknown(struct plug *p, void *ctx) {
  static const uint64_t types[] = {0, 3, 0x80, 0xff, 0x55};
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    struct ni_prof_descr_v6 d = {.type = types[i]};
    void *h = (void *)1;
    p->start(ctx, &h, &d);
    if (h)
      printf("bad: a handle for type %llx\n", (unsigned long long)types[i]);
  }
}

/*
 * Every kind of event with everything in it NULL or wild, states that belong to others, payloads of nobody.
 */
static void others(struct plug *p, void *ctx, long n) {
  static const uint64_t types[] = {NI_EV_GROUP,         NI_EV_PROXY_OP,  NI_EV_PROXY_STEP, NI_EV_PROXY_CTRL,
                                   NI_EV_NET_PLUGIN,    NI_EV_GROUP_API, NI_EV_COLL_API,   NI_EV_P2P_API,
                                   NI_EV_KERNEL_LAUNCH, NI_EV_CE_COLL,   NI_EV_CE_SYNC,    NI_EV_CE_BATCH};
  static const unsigned char payload[64];
  void *kept[32] = {0};
  for (long i = 0; i < n; i++) {
    struct ni_prof_descr_v6 d;
    uint64_t x = rnd();
    memset(&d, x & 1 ? 0 : (int)(x >> 8), sizeof d);
    d.type = types[x % (sizeof types / sizeof *types)];
    if (p->version < 5 && d.type > 0xff)
      continue;
    if (p->version < 3 && d.type > 0x3f)
      continue;
    d.parentObj = x & 2 ? kept[x >> 16 & 31] : (void *)(uintptr_t)rnd();
    switch (d.type) { /* strings and payloads are NCCL's and valid; all else is not */
      case NI_EV_COLL_API:
        d.collApi.func = d.collApi.datatype = NULL;
        break;
      case NI_EV_P2P_API:
        d.p2pApi.func = d.p2pApi.datatype = NULL;
        break;
      case NI_EV_CE_COLL:
        d.ceColl.func = d.ceColl.datatype = d.ceColl.syncStrategy = NULL;
        break;
      case NI_EV_NET_PLUGIN:
        d.netPlugin.id = x & 4 ? 0x10001 : x & 8 ? 0x20001 : (int64_t)rnd();
        d.netPlugin.data = d.netPlugin.id == 0x10001 || d.netPlugin.id == 0x20001 ? (void *)payload
                                                                                  : (void *)(uintptr_t)rnd();
        break;
      default:
        break;
    }
    void *h = (void *)1, *where = x & 16 ? ctx : d.type == NI_EV_PROXY_OP ? (void *)(uintptr_t)rnd() : NULL;
    p->start(where, &h, &d);
    if (h == (void *)1)
      printf("bad: a handle was left alone\n");
    void **place = &kept[x >> 24 & 31];
    union ni_prof_state_v4 st = {.proxyStep = {(size_t)rnd()}};
    if (h)
      *place = h;
    p->record(kept[x >> 32 & 31], (enum ni_prof_state)(x >> 40 & 63), x & 32 ? &st : NULL);
    if (x & 64)
      p->stop(kept[x >> 48 & 31]);
  }
}

static void channels(struct plug *p, void *ctx, struct plug_op *o) {
  void *h = plug_launch(p, ctx, o), *c = NULL;
  for (int ch = 64; ch < 256; ch++) {
    o->ch.parentObj = h;
    o->ch.kernelCh.channelId = (uint8_t)ch;
    o->ch.kernelCh.pTimer = 1;
    c = (void *)1;
    p->start(ctx, &c, &o->ch);
    if (c)
      printf("bad: a handle for channel %d\n", ch);
  }
  plug_channels(p, ctx, o, h, 4, 20000);
}

/* Handles of nobody: random words, random words of each kind, pointers, our own with one bit changed. */
static void forged(struct plug *p, void *ctx, struct plug_op *o, long n) {
  void *mine = plug_launch(p, ctx, o);
  union ni_prof_state_v4 st = {.kernelCh = {1}};
  for (long i = 0; i < n; i++) {
    uint64_t x = rnd();
    switch (i % 4) {
      case 0:
        break;
      case 1:
        x = (x & 0x0fffffffffffffff) | (uint64_t)(i / 4 % 16) << 60;
        break;
      case 2:
        x = (uint64_t)(uintptr_t)&st + (x & 0xffff);
        break;
      case 3:
        x = (uint64_t)(uintptr_t)mine ^ UINT64_C(1) << (x % 64);
        break;
    }
    void *h = (void *)(uintptr_t)x, *c = NULL;
    if (h == mine)
      continue;
    p->stop(h);
    p->record(h, NI_ST_KERNEL_CH_STOP, &st);
    p->record(h, (enum ni_prof_state)(x % 40), &st);
    o->ch.parentObj = h;
    o->ch.kernelCh.channelId = (uint8_t)(x % 64);
    p->start(ctx, &c, &o->ch);
    if (c)
      p->stop(c);
    struct ni_prof_descr_v6 d = o->op;
    d.parentObj = h;
    void *op = NULL;
    p->start(h, &op, &d); /* as a context */
    if (op)
      printf("bad: an operation on a forged context %llx\n", (unsigned long long)x);
    if (h != ctx)
      p->finalize(h);
  }
  plug_channels(p, ctx, o, mine, 4, 20000); /* and ours is still good */
}

static void doubled(struct plug *p, void *ctx, struct plug_op *o) {
  void *h = plug_launch(p, ctx, o), *c = NULL;
  union ni_prof_state_v4 st;
  p->stop(h);
  p->stop(h); /* its bracket is closed */
  o->ch.parentObj = h;
  o->ch.kernelCh.channelId = 0;
  o->gpu_ns += 30000;
  o->ch.kernelCh.pTimer = o->gpu_ns;
  p->start(ctx, &c, &o->ch);
  st.kernelCh.pTimer = o->gpu_ns + 1000;
  p->record(c, NI_ST_KERNEL_CH_STOP, &st);
  p->stop(c);
  p->stop(c); /* a second time */
  p->stop(c);
  p->record(c, NI_ST_KERNEL_CH_STOP, &st);
  for (int ch = 1; ch < 4; ch++) {
    o->ch.kernelCh.channelId = (uint8_t)ch;
    p->start(ctx, &c, &o->ch);
    p->record(c, NI_ST_KERNEL_CH_STOP, &st);
    p->stop(c);
  }
  p->stop(h); /* finished by now */
}

/* Operations whose every number is garbage. */
static void garbage(struct plug *p, void *ctx, int n) {
  struct plug_op o;
  plug_op_init(&o, 0, 2);
  for (int i = 0; i < n; i++) {
    uint64_t x = rnd();
    if (i % 2) {
      o.op.coll.count = i % 4 == 1 ? SIZE_MAX : (size_t)x;
      o.op.coll.datatype = i % 8 == 1 ? "ncclFloat32" : "ncclNothing";
      o.op.coll.root = (int)(x >> 16) | INT32_MIN;
      o.sn = x;
      plug_channels(p, ctx, &o, plug_launch(p, ctx, &o), 2, 1000);
      continue;
    }
    struct ni_prof_descr_v6 d = {.type = NI_EV_P2P};
    d.p2p.func = "Send";
    d.p2p.datatype = "ncclFloat64";
    d.p2p.count = (size_t)1 << (i % 64);
    d.p2p.peer = i % 4 ? INT32_MAX : -5;
    d.p2p.nChannels = 2;
    void *h = NULL;
    p->start(ctx, &h, &d);
    p->stop(h);
    plug_channels(p, ctx, &o, h, 2, 1000);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: hostile SO\n");
    return 64;
  }
  int n_comms = 0;
  for (int version = 4; version <= 6; version++) {
    static struct plug p; /* the activation mask lies in NCCL, not on a stack */
    p = plug_open(argv[1], version);
    struct plug_op o;
    nulls(&p, NULL);
    void *ctx = plug_init(&p, 0xa000 + (uint64_t)version, "hostile", 1, 4, 0, NULL);
    void *other = plug_init(&p, 0xb000 + (uint64_t)version, NULL, 0, 0, -1, NULL); /* no ranks at all */
    void *dead = plug_init(&p, 0xc000 + (uint64_t)version, "dead", -1, -1, 2147483647, NULL);
    p.finalize(dead);
    void *wild = plug_init(&p, 0xd000 + (uint64_t)version, "wild", 2, 4, 9, NULL); /* rank 9 of 4 */
    garbage(&p, wild, 200);
    p.finalize(wild);
    plug_op_init(&o, 1024, 4);
    good(&p, ctx, &o, 50);
    good(&p, other, &o, 3);
    struct plug_op dead_op = o;
    if (plug_launch(&p, dead, &dead_op))
      printf("bad: an operation after finalize\n");
    nulls(&p, ctx);
    empty(&p, ctx);
    unknown(&p, ctx);
    channels(&p, ctx, &o);
    doubled(&p, ctx, &o);
    forged(&p, ctx, &o, 200000);
    others(&p, ctx, 100000);
    good(&p, ctx, &o, 50);
    p.finalize(ctx);
    p.finalize(other);
    n_comms += 4;
  }
  /* v1 to v3: other descriptors of Coll and P2p, so only the rest. */
  for (int version = 1; version <= 3; version++) {
    static struct plug p; /* the activation mask lies in NCCL, not on a stack */
    p = plug_open(argv[1], version);
    void *ctx = plug_init(&p, 0, NULL, 0, 0, 0, NULL), *h = (void *)1;
    p.start(ctx, &h, NULL);
    if (h)
      printf("bad: a handle without a descriptor\n");
    p.start(ctx, NULL, NULL);
    p.stop(NULL);
    p.record(NULL, NI_ST_PROXY_STEP_SEND_WAIT, NULL);
    others(&p, ctx, 50000);
    struct ni_prof_descr_v1 d = {.type = NI_EV_COLL};
    d.coll.func = d.coll.datatype = d.coll.algo = d.coll.proto = 255; /* numbers of nothing */
    if (version == 1)
      p.start(ctx, &h, (struct ni_prof_descr_v6 *)(void *)&d);
    if (version == 1)
      p.stop(h);
    p.finalize(ctx);
  }
  printf("communicators %d\n", n_comms);
  return 0;
}
