/*
 * What NCCL 2.31 brought and a profiler sees: symmetric kernels and the application's tags. Fixed sequences,
 * always in this order: test/gpu/inferences.py finds what it checks by function, size and tag. See rank.h.
 */
#include "rank.h"

#include <unistd.h>

/* Sizes of which each belongs to one sequence only. */
enum { FUSED = 24576, CAPTURED = 40960, CAPTURED_FUSED = 57344, LATE = 786432, LATE_MS = 20 };

static struct ni_gcomm *own(struct ni_rank *r, const char *name) { return ni_rank_world(r, name, false); }

static void all_reduce(struct ni_rank *r, struct ni_gcomm *c, uint64_t bytes) {
  ni_rank_coll(r, c, "AllReduce", NI_DT_FLOAT32, bytes, 0);
}

static void fused(struct ni_rank *r, struct ni_gcomm *c, uint64_t bytes) {
  ni_rank_group_start(r);
  for (int i = 0; i < 3; i++)
    all_reduce(r, c, bytes);
  ni_rank_group_end(r);
}

void ni_plan_symmetric(struct ni_rank *r) {
  static const char *const funcs[] = {"AllReduce", "AllGather", "ReduceScatter"};
  static const uint64_t sizes[] = {8192, 131072, 1048576};
  struct ni_gcomm *c = own(r, "ni-symmetric");
  if (!ni_rank_windows_open(r, c, 1 << 20))
    fprintf(r->truth, "skip plan=symmetric what=windows why=unsupported\n");
  for (int i = 0; i < r->opt->iterations; i++)
    for (int s = 0; s < 3; s++)
      for (int f = 0; f < 3; f++)
        ni_rank_coll(r, c, funcs[f], NI_DT_FLOAT32, sizes[s], 0);
  ni_rank_settle(r);
  for (int i = 0; i < r->opt->iterations; i++)
    fused(r, c, FUSED);
  ni_rank_settle(r);
  ni_rank_coll(r, c, "Reduce", NI_DT_FLOAT32, 65536, 0); /* which has no symmetric kernel */
  ni_rank_settle(r);
  /* Each capture: what is in it runs once before, so that nothing has to be made while capturing. */
  all_reduce(r, c, CAPTURED);
  fused(r, c, CAPTURED_FUSED);
  all_reduce(r, c, NI_BEHIND_BYTES);
  ni_rank_capture_start(r);
  all_reduce(r, c, CAPTURED);
  fused(r, c, CAPTURED_FUSED);
  ni_rank_capture_end(r, 5, c);
  for (int i = 0; i < r->opt->iterations; i++) { /* the last rank is late: all others wait for it */
    ni_rank_barrier(r);
    if (c->rank == c->ranks - 1)
      usleep(LATE_MS * 1000);
    all_reduce(r, c, LATE);
    ni_rank_settle(r);
  }
  ni_rank_windows_close(r, c);
  ni_rank_close(r, c, "destroy");
}

void ni_plan_tags(struct ni_rank *r) {
  static const char *const funcs[] = {"AllReduce", "AllGather", "ReduceScatter", "Reduce", "Broadcast"};
  struct ni_gcomm *c = own(r, "ni-tags");
  if (!ni_rank_tags(r)) {
    fprintf(r->truth, "skip plan=tags what=ncclCollConfig_t why=unsupported\n");
    return;
  }
  for (uint64_t f = 0; f < 5; f++) {
    r->tag = 1000 + f;
    ni_rank_coll(r, c, funcs[f], NI_DT_FLOAT32, 4096, 0);
  }
  r->tag = UINT64_C(1) << 63 | 77; /* reserved for NCCL, and nothing forbids it */
  all_reduce(r, c, 4096);
  r->tag = 0;
  all_reduce(r, c, 4096);
  ni_rank_settle(r);
  r->tag = 2000;
  ni_rank_alltoall(r, c, NI_DT_FLOAT32, 4096);
  ni_rank_settle(r);
  ni_rank_group_start(r); /* two tags in one group, and of equal calls, which may share a kernel */
  for (r->tag = 3000; r->tag < 3002; r->tag++)
    all_reduce(r, c, 4096);
  ni_rank_group_end(r);
  ni_rank_capture_start(r);
  r->tag = 4000;
  all_reduce(r, c, 4096);
  r->tag = 0;
  ni_rank_capture_end(r, 3, NULL);
  ni_rank_close(r, c, "destroy");
}
