#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test/jobs/draw.h"

void *nj_more(void *p, unsigned long bytes) {
  p = realloc(p, bytes ? bytes : 1);
  if (p)
    return p;
  fprintf(stderr, "ni-jobs: out of memory\n");
  exit(1);
}

int nj_comm_of(const struct nj_job *job, int rank, char role) {
  const struct nj_rank *r = &job->rank[rank];
  for (int i = 0; i < r->n_comms; i++)
    if (job->comm[r->comm[i]].role == role)
      return i;
  return -1;
}

static void name_comm(const struct nj_job *job, struct nj_comm *c, int number) {
  static const struct {
    char role;
    const char *brief, *megatron;
  } names[] = {{'t', "tp", "TENSOR_MODEL_PARALLEL_GROUP"},
               {'d', "dp", "DATA_PARALLEL_GROUP_WITH_CP"},
               {'p', "pp", "PIPELINE_MODEL_PARALLEL_GROUP"},
               {'e', "ep", "EXPERT_MODEL_PARALLEL_GROUP"},
               {'w', "world", "default_pg"}};
  c->name[0] = 0;
  for (size_t i = 0; job->named && i < sizeof names / sizeof *names; i++) {
    if (names[i].role != c->role)
      continue;
    if (job->megatron_names)
      snprintf(c->name, sizeof c->name, "%s", names[i].megatron);
    else if (c->role == 'w')
      snprintf(c->name, sizeof c->name, "%s", names[i].brief);
    else
      snprintf(c->name, sizeof c->name, "%s%d", names[i].brief, number);
  }
}

/* A communicator of n ranks: first, first + step, ... */
static void add_comm(struct nj_job *job, char role, int number, const int *ranks, int n) {
  job->comm = nj_more(job->comm, (unsigned)(job->n_comms + 1) * sizeof *job->comm);
  struct nj_comm *c = &job->comm[job->n_comms];
  *c = (struct nj_comm){.role = role, .n = n};
  c->hash = nj_draw(job->kept, NJ_DRAW_NAME, (uint64_t)role, (uint64_t)number, 0) | 1;
  c->rank = nj_more(NULL, (unsigned)n * sizeof *c->rank);
  c->host = nj_more(NULL, (unsigned)n * sizeof *c->host);
  for (int i = 0; i < n; i++) {
    struct nj_rank *r = &job->rank[ranks[i]];
    int known = 0;
    c->rank[i] = ranks[i];
    while (known < c->n_hosts && c->host[known] != r->host)
      known++;
    if (known == c->n_hosts)
      c->host[c->n_hosts++] = r->host;
    r->comm[r->n_comms] = job->n_comms;
    r->member[r->n_comms++] = i;
  }
  name_comm(job, c, number);
  job->n_comms++;
}

/* All communicators of a role: ranks that share what key() says, in order. */
static void add_role(struct nj_job *job, char role, int groups, int (*key)(const struct nj_job *, int)) {
  int *ranks = nj_more(NULL, (unsigned)job->world * sizeof *ranks);
  for (int g = 0; g < groups; g++) {
    int n = 0;
    for (int r = 0; r < job->world; r++)
      if (key(job, r) == g)
        ranks[n++] = r;
    if (n > 1)
      add_comm(job, role, g, ranks, n);
  }
  free(ranks);
}

static int key_tp(const struct nj_job *j, int r) { return j->rank[r].pp * j->dp + j->rank[r].dp; }
static int key_dp(const struct nj_job *j, int r) { return j->rank[r].pp * j->tp + j->rank[r].tp; }
static int key_pp(const struct nj_job *j, int r) { return j->rank[r].dp * j->tp + j->rank[r].tp; }
static int key_ep(const struct nj_job *j, int r) { return r % (j->world / j->ep); }
static int key_world(const struct nj_job *j, int r) {
  (void)j;
  (void)r;
  return 0;
}

static double between(const struct nj_job *job, int what, double low, double high) {
  return low + (high - low) * nj_unit(nj_draw(job->seed, NJ_DRAW_SHAPE, (uint64_t)what, 0, 0));
}
static bool in_share(const struct nj_job *job, int what, double share) {
  return between(job, what, 0, 1) < share;
}

/* How the constants were found: docs/verdicts.md. */
static void constants(struct nj_job *job) {
  struct nj_model *m = &job->model;
  m->jitter = between(job, 0, 0.02, 0.05);
  m->nvlink = 340;
  m->nic = 44;
  m->launch = between(job, 1, 0.28, 0.38);
  m->pauses = job->kind == NJ_NOISY ? 0.01 : 0.001;
  m->compute = between(job, 2, 19e6, 23e6) * (job->pp > 1 ? 1.15 : 1);
  m->fixed = between(job, 3, 2e6, 4e6);
  m->tp_ns = job->pp > 1 ? between(job, 4, 2.8e6, 4.2e6) : between(job, 4, 2.6e6, 4e6);
  m->dp_ns = job->pp > 1 ? between(job, 5, 2e6, 3e6) : between(job, 5, 6.5e6, 9e6);
  m->pp_ns = between(job, 6, 1.2e6, 2e6);
}

static void shape(struct nj_job *job) {
  static const struct {
    char layout;
    int world, tp, pp, dp, ep, micro, layers, steps;
  } shapes[] = {{'A', 32, 8, 1, 4, 0, 1, 8, 300},  {'B', 32, 8, 2, 2, 0, 4, 2, 300},
                {'C', 32, 4, 4, 2, 0, 6, 1, 300},  {'P', 32, 4, 4, 2, 0, 6, 1, 300},
                {'F', 32, 1, 1, 32, 0, 1, 7, 300}, {'D', 32, 1, 1, 32, 0, 1, 12, 300},
                {'M', 32, 1, 1, 32, 8, 1, 3, 300}, {'L', 1024, 8, 8, 16, 0, 8, 1, 16}};
  int i = 0;
  while (shapes[i].layout != job->layout)
    i++;
  job->world = shapes[i].world;
  job->hosts = job->world / NJ_HOST_GPUS;
  job->tp = shapes[i].tp;
  job->pp = shapes[i].pp;
  job->dp = shapes[i].dp;
  job->ep = shapes[i].ep;
  job->micro = shapes[i].micro;
  job->layers = shapes[i].layers;
  job->sequence = job->tp > 1 && job->layout != 'L' && in_share(job, 20, 0.33);
  job->sharded = job->tp > 1 && in_share(job, 21, 0.4);
  job->named = in_share(job, 22, 0.5);
  job->megatron_names = in_share(job, 23, 0.5);
  job->norm = in_share(job, 27, 0.7);
  job->call_sn = in_share(job, 24, 0.7);
  job->grouped_all_to_all = job->ep && (job->kind == NJ_UNEVEN || in_share(job, 25, 0.5));
  job->buckets = (job->pp > 2 ? 1 : 2) + (int)between(job, 26, 0, 2);
  if (job->grouped_all_to_all)
    job->layers = 1;
  if (job->layout == 'A')
    job->layers -= (int)between(job, 28, 0, 3);
  if (job->sequence && job->layers > 1)
    job->layers /= 2; /* two operations where others have one */
  if (job->kind == NJ_STAGES_DIFFER || (job->weather.stages && job->pp > 1 && job->layout != 'L')) {
    job->layers = job->pp > 2 ? 3 : 4; /* one less is a third or a fourth less */
    if (job->steps <= 0)
      job->steps = 150;
  }
  if (job->kind == NJ_INFERENCE && job->steps <= 0)
    job->steps = 4 * shapes[i].steps;
  if (job->steps <= 0)
    job->steps = job->grouped_all_to_all ? 150 : shapes[i].steps;
}

/*
 * All stages alike; or other numbers of layers (mode 0), something more in the first and the last (1), or
 * both.
 */
static void stages(struct nj_job *job) {
  for (int s = 0; s < NJ_STAGES; s++) {
    job->stage_layers[s] = job->layers;
    job->stage_more[s] = 1;
  }
  if (job->kind != NJ_STAGES_DIFFER && (!job->weather.stages || job->pp < 2 || job->layout == 'L'))
    return;
  uint64_t mode = nj_draw(job->seed, NJ_DRAW_STAGES, 0, 0, 0) % 3;
  if (mode != 1) { /* one stage or two have a layer less or more, never all */
    int from = (int)(nj_draw(job->seed, NJ_DRAW_STAGES, 1, 0, 0) % (uint64_t)job->pp);
    job->stage_layers[from] += nj_draw(job->seed, NJ_DRAW_STAGES, 2, 0, 0) % 2 ? 1 : -1;
    if (job->pp > 2)
      job->stage_layers[(from + 2) % job->pp] += nj_draw(job->seed, NJ_DRAW_STAGES, 3, 0, 0) % 2 ? 1 : -1;
  }
  if (mode == 0)
    return;
  job->stage_more[0] = 1 + 0.12 * nj_unit(nj_draw(job->seed, NJ_DRAW_STAGES, 4, 0, 0));
  job->stage_more[job->pp - 1] = 1.05 + 0.25 * nj_unit(nj_draw(job->seed, NJ_DRAW_STAGES, 5, 0, 0));
}

void nj_layout(struct nj_job *job) {
  shape(job);
  stages(job);
  constants(job);
  job->rank = nj_more(NULL, (unsigned)job->world * sizeof *job->rank);
  memset(job->rank, 0, (unsigned)job->world * sizeof *job->rank);
  for (int r = 0; r < job->world; r++) {
    struct nj_rank *x = &job->rank[r];
    int rest = r / job->tp;
    x->host = r / NJ_HOST_GPUS;
    x->local = r % NJ_HOST_GPUS;
    x->tp = r % job->tp;
    x->dp = job->layout == 'P' ? rest / job->pp : rest % job->dp;
    x->pp = job->layout == 'P' ? rest % job->pp : rest / job->dp;
    x->speed = 1 + 0.003 * nj_normal(nj_draw(job->noise, NJ_DRAW_RANK, (uint64_t)r, 0, 0));
  }
  add_role(job, 'w', 1, key_world);
  if (job->tp > 1)
    add_role(job, 't', job->world / job->tp, key_tp);
  if (job->dp > 1 && job->dp < job->world)
    add_role(job, 'd', job->world / job->dp, key_dp);
  if (job->pp > 1)
    add_role(job, 'p', job->world / job->pp, key_pp);
  if (job->ep)
    add_role(job, 'e', job->world / job->ep, key_ep);
}
