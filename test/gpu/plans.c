/*
 * What the GPU driver can be asked to do, by name. All ranks run the same plan with the same arguments; a
 * plan leaves nothing pending. Each uses the communicator "ni-world" unless it makes its own.
 */
#include "rank.h"

#include <string.h>

static const char *const collectives[] = {"AllReduce", "AllGather", "ReduceScatter", "Broadcast", "Reduce"};
enum { N_COLLECTIVES = sizeof collectives / sizeof *collectives };

static struct ni_gcomm *world(struct ni_rank *r) {
  for (int i = 0; i < r->n_comms; i++)
    if (r->comm[i].nccl && strcmp(r->comm[i].name, "ni-world") == 0)
      return &r->comm[i];
  return ni_rank_world(r, "ni-world", false);
}

static uint64_t at_most(struct ni_rank *r, uint64_t bytes) {
  return bytes < r->opt->max_bytes ? bytes : r->opt->max_bytes;
}

/* Every size of every collective, some times each, with the gap between two events beside it. */
static void sweep(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  /* small ones first: those fit in any time */
  for (uint64_t bytes = 8; bytes <= r->opt->max_bytes; bytes *= 2)
    for (int f = 0; f < N_COLLECTIVES; f++) {
      char what[64];
      snprintf(what, sizeof what, "%s/%llu", collectives[f], (unsigned long long)bytes);
      if (!ni_rank_time_for(r, "sweep", what))
        continue;
      for (int i = 0; i < r->opt->iterations; i++)
        ni_rank_coll(r, c, collectives[f], NI_DT_FLOAT32,
                     bytes < 4u * (unsigned)c->ranks ? 4u * (unsigned)c->ranks : bytes,
                     f >= 3 ? i % c->ranks : 0);
      ni_rank_settle(r);
    }
  /*
   * What two events with next to nothing between them are apart: the part of a small operation's time that is
   * no kernel.
   */
  for (int i = 0; i < 50; i++) {
    float ms;
    ni_rank_cuda(r, r->api.cuEventRecord(r->events[0], r->stream), "cuEventRecord");
    ni_rank_cuda(r, r->api.cuMemsetD8Async(r->recv, 0, 8, r->stream), "cuMemsetD8Async");
    ni_rank_cuda(r, r->api.cuEventRecord(r->events[1], r->stream), "cuEventRecord");
    ni_rank_cuda(r, r->api.cuStreamSynchronize(r->stream), "cuStreamSynchronize");
    ni_rank_cuda(r, r->api.cuEventElapsedTime(&ms, r->events[0], r->events[1]), "cuEventElapsedTime");
    fprintf(r->truth, "gap ns=%llu\n", (unsigned long long)((double)ms * 1e6));
  }
}

static void dtypes(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  for (int f = 0; f < N_COLLECTIVES; f++)
    for (int d = 0; d < NI_DT_COUNT; d++) {
      bool reduces = f == 0 || f == 2 || f == 4, fp8 = d >= NI_DT_FLOAT8E4M3;
      if (fp8 && (r->nccl < 22400 || (reduces && r->cc < 9))) { /* NCCL refuses these */
        fprintf(r->truth, "skip plan=dtypes what=%s/%s why=unsupported\n", collectives[f], ni_dt_names[d]);
        continue;
      }
      ni_rank_coll(r, c, collectives[f], d, at_most(r, 1 << 20), 0);
      ni_rank_coll(r, c, collectives[f], d, 8u * (unsigned)c->ranks, 0);
      ni_rank_settle(r);
    }
}

static void all_to_all(struct ni_rank *r, struct ni_gcomm *c, int dtype, uint64_t share) {
  ni_rank_group_start(r);
  for (int peer = 0; peer < c->ranks; peer++) {
    ni_rank_p2p(r, c, true, dtype, share, peer, (uint64_t)peer * share);
    ni_rank_p2p(r, c, false, dtype, share, peer, (uint64_t)peer * share);
  }
  ni_rank_group_end(r);
}

static void p2p(struct ni_rank *r) {
  static const uint64_t sizes[] = {8, 4096, 65536, 1 << 20, 16 << 20};
  struct ni_gcomm *c = world(r);
  int right = (c->rank + 1) % c->ranks, left = (c->rank + c->ranks - 1) % c->ranks;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    uint64_t bytes = at_most(r, sizes[s]);
    if (!ni_rank_time_for(r, "p2p", "size"))
      continue;
    for (int i = 0; i < r->opt->iterations; i++) { /* a ring, both directions in one group */
      ni_rank_group_start(r);
      ni_rank_p2p(r, c, true, NI_DT_FLOAT32, bytes, right, 0);
      ni_rank_p2p(r, c, false, NI_DT_FLOAT32, bytes, left, 0);
      ni_rank_group_end(r);
    }
    ni_rank_settle(r);
    if ((c->rank ^ 1) < c->ranks) /* one way, without a group: even ranks send */
      ni_rank_p2p(r, c, c->rank % 2 == 0, NI_DT_FLOAT32, bytes, c->rank ^ 1, 0);
    ni_rank_settle(r);
    uint64_t share = bytes / (uint64_t)c->ranks / 4 * 4;
    all_to_all(r, c, NI_DT_FLOAT32, share > 0 ? share : 4);
    ni_rank_settle(r);
  }
  for (int d = 0; d < NI_DT_COUNT; d++) {
    if (d >= NI_DT_FLOAT8E4M3 && r->nccl < 22400)
      continue;
    all_to_all(r, c, d, 4096 / (uint64_t)c->ranks / 8 * 8);
    ni_rank_settle(r);
  }
}

/* The API call of 2.28: NCCL makes the same sends and receives of it. */
static void alltoall(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  uint64_t share = at_most(r, 1 << 20) / (uint64_t)c->ranks / 4 * 4;
  if (!r->api.AlltoAll) {
    fprintf(r->truth, "skip plan=alltoall what=ncclAlltoAll why=unsupported\n");
    return;
  }
  for (int i = 0; i < r->opt->iterations; i++)
    ni_rank_alltoall(r, c, NI_DT_FLOAT32, share);
  ni_rank_settle(r);
}

static void groups(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  int right = (c->rank + 1) % c->ranks, left = (c->rank + c->ranks - 1) % c->ranks;
  for (int i = 0; i < r->opt->iterations; i++) {
    ni_rank_group_start(r); /* same function, three sizes */
    for (uint64_t bytes = 1024; bytes <= at_most(r, 1 << 20); bytes *= 32)
      ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, bytes, 0);
    ni_rank_group_end(r);
    /* equal ones, which NCCL fuses into one batch of a kernel: all start before the first stops */
    ni_rank_group_start(r);
    for (int k = 0; k < 4; k++)
      ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 4096, 0);
    ni_rank_group_end(r);
    ni_rank_group_start(r); /* different functions */
    ni_rank_coll(r, c, "AllGather", NI_DT_FLOAT32, at_most(r, 65536), 0);
    ni_rank_coll(r, c, "ReduceScatter", NI_DT_FLOAT32, at_most(r, 262144), 0);
    ni_rank_coll(r, c, "Reduce", NI_DT_FLOAT32, 4096, i % c->ranks);
    ni_rank_group_end(r);
    ni_rank_group_start(r); /* collectives and P2P */
    ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 4096, 0);
    ni_rank_p2p(r, c, true, NI_DT_FLOAT32, 4096, right, 0);
    ni_rank_p2p(r, c, false, NI_DT_FLOAT32, 4096, left, 0);
    ni_rank_group_end(r);
  }
  ni_rank_settle(r);
}

static void graph(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  int right = (c->rank + 1) % c->ranks, left = (c->rank + c->ranks - 1) % c->ranks;
  for (int round = 0; round < 2; round++) {
    /* What is captured runs once before, so that nothing has to be connected while capturing. */
    for (int captured = 0; captured < 2; captured++) {
      if (captured)
        ni_rank_capture_start(r);
      ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, at_most(r, 1 << 20), 0);
      ni_rank_coll(r, c, "AllGather", NI_DT_FLOAT32, at_most(r, 65536), 0);
      ni_rank_group_start(r);
      ni_rank_p2p(r, c, true, NI_DT_FLOAT32, 4096, right, 0);
      ni_rank_p2p(r, c, false, NI_DT_FLOAT32, 4096, left, 0);
      ni_rank_group_end(r);
      if (captured)
        ni_rank_capture_end(r, 20, NULL);
      else
        ni_rank_settle(r);
    }
    ni_rank_coll(r, c, "ReduceScatter", NI_DT_FLOAT32, 8192, 0); /* eager again */
    ni_rank_settle(r);
  }
}

static void split(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  struct ni_gcomm *own = ni_rank_split(r, c, 0, "ni-split", false),
                  *shared = ni_rank_split(r, c, 0, "ni-split-share", true);
  for (int i = 0; i < r->opt->iterations; i++) {
    ni_rank_coll(r, own, "AllReduce", NI_DT_FLOAT32, 4096, 0);
    ni_rank_coll(r, shared, "AllGather", NI_DT_FLOAT32, 4096, 0);
    ni_rank_coll(r, c, "ReduceScatter", NI_DT_FLOAT32, 4096, 0);
  }
  ni_rank_settle(r);
  ni_rank_close(r, own, "destroy");
  ni_rank_coll(r, shared, "AllReduce", NI_DT_FLOAT32, 8192, 0);
  ni_rank_settle(r);
  ni_rank_close(r, shared, "destroy");
}

static void nonblocking(struct ni_rank *r) {
  struct ni_gcomm *c = ni_rank_world(r, "ni-nonblocking", true);
  for (int i = 0; i < r->opt->iterations; i++) {
    ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 4096, 0);
    ni_rank_group_start(r);
    ni_rank_coll(r, c, "AllGather", NI_DT_FLOAT32, 4096, 0);
    ni_rank_coll(r, c, "ReduceScatter", NI_DT_FLOAT32, 8192, 0);
    ni_rank_group_end(r);
  }
  ni_rank_settle(r);
  ni_rank_close(r, c, "finalize");
}

/*
 * Communicators that come and go: each ends its plugin context, the last one unloads the plugin when no other
 * lives.
 */
static void comms(struct ni_rank *r) {
  for (int i = 0; i < 3; i++) {
    char name[32];
    snprintf(name, sizeof name, "ni-short-%d", i);
    struct ni_gcomm *c = ni_rank_world(r, name, false);
    for (int k = 0; k < r->opt->iterations; k++)
      ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 1024, 0);
    ni_rank_settle(r);
    ni_rank_close(r, c, "destroy");
  }
}

/* A little of everything, short enough to be kept as a recording. */
static void mix(struct ni_rank *r) {
  struct ni_gcomm *c = world(r);
  for (int f = 0; f < N_COLLECTIVES; f++)
    for (uint64_t bytes = 64; bytes <= at_most(r, 4 << 20); bytes *= 256)
      ni_rank_coll(r, c, collectives[f], NI_DT_FLOAT32, bytes, 0);
  ni_rank_settle(r);
  all_to_all(r, c, NI_DT_FLOAT32, 4096);
  ni_rank_group_start(r);
  ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 65536, 0);
  ni_rank_coll(r, c, "AllGather", NI_DT_FLOAT32, 65536, 0);
  ni_rank_group_end(r);
  ni_rank_settle(r);
  ni_rank_capture_start(r);
  ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, 65536, 0);
  ni_rank_capture_end(r, 3, NULL);
  ni_rank_coll(r, c, "ReduceScatter", NI_DT_FLOAT32, 65536, 0);
  ni_rank_settle(r);
}

/* One small operation: does this layout work at all? */
static void probe(struct ni_rank *r) {
  ni_rank_coll(r, world(r), "AllReduce", NI_DT_FLOAT32, 1024, 0);
  ni_rank_settle(r);
}

static const struct {
  const char *name;
  void (*run)(struct ni_rank *);
  const char *help;
} plans[] = {
    {"probe", probe, "one AllReduce"},
    {"sweep", sweep, "all collectives, 8 B to --max-bytes"},
    {"dtypes", dtypes, "all collectives, all datatypes"},
    {"p2p", p2p, "ring, one way, all-to-all by groups, all datatypes"},
    {"alltoall", alltoall, "ncclAlltoAll, where the release has it"},
    {"groups", groups, "several collectives and P2P in one group"},
    {"graph", graph, "captured once, replayed 20 times, twice"},
    {"split", split, "ncclCommSplit with and without shared resources"},
    {"nonblocking", nonblocking, "a non-blocking communicator, finalized and destroyed"},
    {"comms", comms, "three communicators one after the other"},
    {"symmetric", ni_plan_symmetric,
     "symmetric kernels, eager, fused, captured, with a late rank; 2.31 and later"},
    {"tags", ni_plan_tags, "collectives with the application's tag; 2.31 and later"},
    {"mix", mix, "a little of everything, for recordings"},
    {"cost", ni_plan_cost, "host time of an operation, for the comparison of presets"},
};

bool ni_plan_run(struct ni_rank *r, const char *name) {
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
    if (strcmp(plans[i].name, name) == 0) {
      plans[i].run(r);
      return true;
    }
  return false;
}

void ni_plan_list(FILE *f) {
  for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
    fprintf(f, "    %-12s %s\n", plans[i].name, plans[i].help);
}
