#include "megatron.h"

#include "build.h"
#include "layout.h"

struct plan { /* of one rank */
  struct nj_build b;
  int tp, dp, pp, world; /* its own numbers of communicators; -1: none */
  double forward;        /* ns of one layer of one micro-batch */
  double tp_bytes, dp_bytes, pp_bytes;
  double embedding, head; /* of the first and the last stage: what they compute besides, in layers */
  int layers, released;   /* buckets on their way */
  bool serves;            /* requests, with nobody outside the replica */
};

static void tensor(struct plan *p, bool before) {
  const struct nj_job *job = p->b.job;
  if (p->tp < 0)
    return;
  if (!job->sequence && !before)
    nj_coll(&p->b, NJ_MAIN, p->tp, NJ_ALL_REDUCE, p->tp_bytes);
  if (job->sequence)
    nj_coll(&p->b, NJ_MAIN, p->tp, before ? NJ_ALL_GATHER : NJ_REDUCE_SCATTER, p->tp_bytes / job->tp);
}

static void bucket(struct plan *p) {
  const struct nj_job *job = p->b.job;
  if (p->dp < 0)
    return;
  nj_join(&p->b, NJ_SIDE, NJ_MAIN);
  if (job->sharded)
    nj_coll(&p->b, NJ_SIDE, p->dp, NJ_REDUCE_SCATTER, p->dp_bytes / job->dp);
  else
    nj_coll(&p->b, NJ_SIDE, p->dp, NJ_ALL_REDUCE, p->dp_bytes);
  p->released++;
}

/* What a layer and its neighbour outside the layers compute, in layers. */
static double in_layers(const struct plan *p, int layer) {
  return 1 + (layer == 0 ? p->embedding : 0) + (layer == p->layers - 1 ? p->head : 0);
}

static void forward(struct plan *p) {
  for (int l = 0; l < p->layers; l++) {
    tensor(p, true);
    nj_compute(&p->b, p->forward * in_layers(p, l), false, -1);
    tensor(p, false);
  }
}

/*
 * In the last micro-batch gradients become ready piece by piece, and their buckets leave while the rest is
 * worked on.
 */
static void backward(struct plan *p, bool last) {
  int buckets = p->b.job->buckets, pieces = last ? (buckets + p->layers - 1) / p->layers : 1;
  for (int l = 0; l < p->layers; l++) {
    tensor(p, true);
    for (int i = 0; i < pieces; i++) {
      nj_compute(&p->b, 2 * p->forward * in_layers(p, p->layers - 1 - l) / pieces, false, -1);
      if (i == pieces - 1)
        tensor(p, false);
      if (last && p->released < buckets)
        bucket(p);
    }
  }
}

/*
 * A group of the pipeline's stream: what is sent waits for the main stream, which waits for what is received.
 */
static void exchange(struct plan *p, int send_to, int recv_from) {
  if (send_to < 0 && recv_from < 0)
    return;
  if (send_to >= 0)
    nj_join(&p->b, NJ_PIPE, NJ_MAIN);
  nj_group(&p->b, NJ_PIPE, p->pp, -1);
  if (send_to >= 0)
    nj_send(&p->b, send_to, p->pp_bytes);
  if (recv_from >= 0)
    nj_recv(&p->b, recv_from, p->pp_bytes);
  if (recv_from >= 0)
    nj_join(&p->b, NJ_MAIN, NJ_PIPE);
}

static void one_f_one_b(struct plan *p) {
  const struct nj_job *job = p->b.job;
  int stage = p->b.r->pp, micro = job->micro, up = stage > 0 ? stage - 1 : -1,
      down = stage < job->pp - 1 ? stage + 1 : -1;
  int warm = job->pp - 1 - stage < micro ? job->pp - 1 - stage : micro, done = 0;
  for (int i = 0; i < warm; i++) {
    exchange(p, -1, up);
    forward(p);
    exchange(p, down, -1);
  }
  if (warm < micro)
    exchange(p, -1, up);
  for (int i = 0; i < micro - warm; i++) {
    forward(p);
    exchange(p, down, down);
    backward(p, ++done == micro);
    exchange(p, up, i < micro - warm - 1 ? up : -1);
  }
  for (int i = 0; i < warm; i++) {
    exchange(p, -1, down);
    backward(p, ++done == micro);
    exchange(p, up, -1);
  }
}

/* Micro-batches go through the stages once, forward. */
static void forward_only(struct plan *p) {
  const struct nj_job *job = p->b.job;
  int stage = p->b.r->pp, up = stage > 0 ? stage - 1 : -1, down = stage < job->pp - 1 ? stage + 1 : -1;
  for (int i = 0; i < (p->serves ? 1 : job->micro); i++) {
    exchange(p, -1, up);
    forward(p);
    exchange(p, down, -1);
  }
  if (job->pp > 1)
    nj_join(&p->b, NJ_MAIN, NJ_PIPE);
  if (!p->serves)
    nj_coll(&p->b, NJ_MAIN, p->world, NJ_ALL_REDUCE, 4);
  nj_sync(&p->b);
}

void nj_megatron(struct nj_job *job, int rank, enum nj_program program) {
  const struct nj_model *m = &job->model;
  int stage = job->rank[rank].pp;
  struct plan p = {.b = nj_build_begin(job, rank, program), .layers = job->stage_layers[stage]};
  p.tp = nj_comm_of(job, rank, 't');
  p.dp = nj_comm_of(job, rank, 'd');
  p.pp = nj_comm_of(job, rank, 'p');
  p.world = nj_comm_of(job, rank, 'w');
  /*
   * A stage has less to do, so that steps of all layouts are about as long: its pipeline is filled and
   * emptied in each.
   */
  int slots = job->micro + job->pp - 1, ops = slots * job->layers * 2;
  p.forward = m->compute / 3 / (slots * job->layers);
  *(stage > 0 ? &p.head : &p.embedding) = (job->stage_more[stage] - 1) * p.layers;
  p.tp_bytes = m->tp_ns / ops * m->nvlink * job->tp / (2.0 * (job->tp - 1));
  p.dp_bytes = m->dp_ns / job->buckets * m->nic * job->dp / (2.0 * (job->dp - 1));
  p.pp_bytes = m->pp_ns / (2 * slots) * m->nic;
  p.serves = job->kind == NJ_INFERENCE;
  if (p.serves || program == NJ_EVAL) {
    p.forward *= NJ_EVAL_COMPUTE;
    forward_only(&p);
    return;
  }
  nj_compute(&p.b, m->fixed, true, -1);
  if (job->sharded && p.dp >= 0) {
    nj_join(&p.b, NJ_SIDE, NJ_MAIN);
    nj_coll(&p.b, NJ_SIDE, p.dp, NJ_ALL_GATHER, p.dp_bytes / job->dp);
    nj_join(&p.b, NJ_MAIN, NJ_SIDE);
  }
  if (job->pp > 1)
    one_f_one_b(&p);
  else
    for (int i = 0; i < job->micro; i++) {
      forward(&p);
      backward(&p, i == job->micro - 1);
    }
  if (job->pp > 1)
    nj_join(&p.b, NJ_MAIN, NJ_PIPE);
  nj_join(&p.b, NJ_MAIN, NJ_SIDE);
  if (job->norm)
    nj_coll(&p.b, NJ_MAIN, p.world, NJ_ALL_REDUCE, 4);
  nj_sync(&p.b);
}
