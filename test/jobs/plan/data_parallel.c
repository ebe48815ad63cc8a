#include "data_parallel.h"

#include "build.h"
#include "layout.h"

/* all transfers of a step over its compute: most of them are hidden behind it */
#define FSDP_COMM 0.75
#define DDP_COMM 0.5
#define MOE_COMM 0.3

static struct nj_build begin(struct nj_job *job, int rank, enum nj_program program) {
  struct nj_build b = nj_build_begin(job, rank, program);
  if (program == NJ_TRAIN)
    nj_compute(&b, job->model.fixed, true, -1);
  nj_join(&b, NJ_SIDE, NJ_MAIN);
  return b;
}

/* The loss of all ranks, and the end. */
static void end(struct nj_build *b, int world) {
  nj_join(b, NJ_SIDE, NJ_MAIN);
  nj_coll(b, NJ_SIDE, world, NJ_ALL_REDUCE, 4);
  nj_join(b, NJ_MAIN, NJ_SIDE);
  nj_sync(b);
}

/* All NICs of a host carry a communicator of all ranks. */
static double world_bytes(const struct nj_job *job, double ns, double share) {
  return ns * job->model.nic * NJ_HOST_GPUS / share;
}

/* Parameters of a layer are gathered while the two before it are worked on: up to two wait. */
void nj_fsdp(struct nj_job *job, int rank, enum nj_program program) {
  struct nj_build b = begin(job, rank, program);
  bool eval = program == NJ_EVAL;
  int world = nj_comm_of(job, rank, 'w'), n = job->layers, passes = (eval ? 1 : 2) * n, ready[64];
  double layer = job->model.compute / 3 / n;
  double bytes = world_bytes(job, FSDP_COMM * job->model.compute / (3 * n), job->world - 1);
  for (int l = 0; l < 2; l++) {
    nj_coll(&b, NJ_SIDE, world, NJ_ALL_GATHER, bytes);
    ready[l] = nj_event(&b, NJ_SIDE);
  }
  for (int i = 0; i < passes; i++) { /* forward up, backward down */
    nj_wait(&b, NJ_MAIN, ready[i]);
    nj_compute(&b, eval ? NJ_EVAL_COMPUTE * layer : i < n ? layer : 2 * layer, false, -1);
    nj_join(&b, NJ_SIDE, NJ_MAIN);
    if (i + 2 < passes) {
      nj_coll(&b, NJ_SIDE, world, NJ_ALL_GATHER, bytes);
      ready[i + 2] = nj_event(&b, NJ_SIDE);
    }
    if (i >= n)
      nj_coll(&b, NJ_SIDE, world, NJ_REDUCE_SCATTER, bytes);
  }
  end(&b, world);
}

void nj_ddp(struct nj_job *job, int rank, enum nj_program program) {
  struct nj_build b = begin(job, rank, program);
  bool eval = program == NJ_EVAL;
  int world = nj_comm_of(job, rank, 'w'), n = job->layers;
  double layer = job->model.compute / 3 / n, bytes = world_bytes(job, DDP_COMM * job->model.compute / n, 2);
  for (int l = 0; l < n; l++)
    nj_compute(&b, eval ? NJ_EVAL_COMPUTE * layer : layer, false, -1);
  for (int l = 0; l < n && !eval; l++) {
    nj_compute(&b, 2 * layer, false, -1);
    nj_join(&b, NJ_SIDE, NJ_MAIN);
    nj_coll(&b, NJ_SIDE, world, NJ_ALL_REDUCE, bytes);
  }
  end(&b, world);
}

/*
 * Tokens to the experts and back; grouped Send and Receive carry what routing gives, AlltoAll a fixed
 * capacity.
 */
static void all_to_all(struct nj_build *b, int comm, int layer, bool back, double bytes) {
  const struct nj_job *job = b->job;
  int n = job->ep, me = b->r->member[comm];
  if (!job->grouped_all_to_all) {
    nj_coll(b, NJ_MAIN, comm, NJ_ALL_TO_ALL, bytes / n);
    return;
  }
  nj_group(b, NJ_MAIN, comm, 2 * layer + back);
  for (int i = 1; i < n; i++) {
    nj_send(b, (me + i) % n, bytes / n);
    nj_recv(b, (me + n - i) % n, bytes / n);
  }
}

void nj_moe(struct nj_job *job, int rank, enum nj_program program) {
  struct nj_build b = begin(job, rank, program);
  int world = nj_comm_of(job, rank, 'w'), experts = nj_comm_of(job, rank, 'e'), n = job->layers;
  double layer = job->model.compute / 3 / n, bytes = MOE_COMM * job->model.compute / (4 * n) * job->model.nic;
  double gradients = world_bytes(job, job->model.dp_ns / n, 2);
  for (int l = 0; l < n; l++) {
    nj_compute(&b, layer / 2, false, -1);
    all_to_all(&b, experts, l, false, bytes);
    nj_compute(&b, layer / 2, false, 2 * l);
    all_to_all(&b, experts, l, true, bytes);
  }
  for (int l = n - 1; l >= 0 && program == NJ_TRAIN; l--) {
    all_to_all(&b, experts, l, false, bytes);
    nj_compute(&b, layer, false, 2 * l);
    all_to_all(&b, experts, l, true, bytes);
    nj_compute(&b, layer, false, -1);
    nj_join(&b, NJ_SIDE, NJ_MAIN);
    nj_coll(&b, NJ_SIDE, world, NJ_ALL_REDUCE, gradients);
  }
  end(&b, world);
}
