#include "fault.h"

#include <stddef.h>

#include "layout.h"
#include "test/jobs/draw.h"

#define BURST_SHARE 0.1     /* of the steps have an intermittent delay */
#define CONGESTED_SHARE 0.2 /* of the time */
#define GPU_TRANSFER 0.3    /* of a slow GPU's loss is in its transfers, too */
#define ROUTE 0.15          /* deviation of what experts get in a step */

const char *const nj_kind_names[NJ_KINDS] = {"healthy", "noisy", "late",       "intermittent", "onset", "episode",
                                             "moving",  "nic",   "rail",       "nvlink",       "cpu",   "gpu",
                                             "stage",   "pair",  "congestion", "uneven",       "two"};

const char *nj_size_unit(enum nj_kind kind) {
  switch (kind) {
    case NJ_HEALTHY:
    case NJ_NOISY:
    case NJ_TWO:
    case NJ_KINDS: return NULL;
    case NJ_INTERMITTENT: return "ms";
    case NJ_NIC:
    case NJ_RAIL:
    case NJ_NVLINK:
    case NJ_CPU:
    case NJ_PAIR:
    case NJ_CONGESTION: return "x";
    default: return "%";
  }
}

double nj_size_default(enum nj_kind kind) {
  static const double sizes[NJ_KINDS] = {
      [NJ_LATE] = 10,  [NJ_INTERMITTENT] = 20, [NJ_ONSET] = 10,     [NJ_EPISODE] = 15, [NJ_MOVING] = 10,
      [NJ_NIC] = 2,    [NJ_RAIL] = 2,          [NJ_NVLINK] = 1.5,   [NJ_CPU] = 5,      [NJ_GPU] = 10,
      [NJ_STAGE] = 15, [NJ_PAIR] = 2,          [NJ_CONGESTION] = 2, [NJ_UNEVEN] = 15};
  return sizes[kind];
}

static uint64_t pick(const struct nj_job *job, int which, int what) {
  return nj_draw(job->seed, NJ_DRAW_FAULT, (uint64_t)which, (uint64_t)what, (uint64_t)job->kind);
}

static void span(struct nj_fault *f, double from, double to) {
  f->from[f->n_spans] = from;
  f->to[f->n_spans++] = to;
}

/* One to four pieces of the run, apart from each other. */
static void congested(const struct nj_job *job, int which, struct nj_fault *f) {
  int n = 1 + (int)(pick(job, which, 10) % NJ_SPANS);
  double part = (double)job->steps / n, length = CONGESTED_SHARE * part;
  for (int i = 0; i < n; i++) {
    double at = i * part + nj_unit(pick(job, which, 11 + i)) * (part - length);
    span(f, at, at + length);
  }
}

static void choose(const struct nj_job *job, int which, enum nj_kind kind, double size, struct nj_fault *f) {
  int rank = (int)(pick(job, which, 0) % (uint64_t)job->world), host = job->rank[rank].host;
  *f = (struct nj_fault){.kind = kind, .rank = -1, .host = -1, .stage = -1, .rank_b = -1, .host_b = -1};
  const char *unit = nj_size_unit(kind);
  f->x = unit && *unit == 'x' ? size - 1 : unit && *unit == 'm' ? size * 1e6 : size / 100;
  switch (kind) {
    case NJ_ONSET:
      span(f, job->steps / 2, job->steps);
      f->rank = rank;
      break;
    case NJ_EPISODE:
      span(f, job->steps / 3, 2 * job->steps / 3);
      f->rank = rank;
      break;
    case NJ_LATE:
    case NJ_INTERMITTENT:
    case NJ_GPU:
    case NJ_UNEVEN: f->rank = rank; break;
    case NJ_RAIL:
      f->rank = rank;
      f->host = host;
      break;
    case NJ_NIC:
    case NJ_NVLINK:
    case NJ_CPU: f->host = host; break;
    case NJ_STAGE: f->stage = job->rank[rank].pp; break;
    case NJ_CONGESTION: congested(job, which, f); break;
    default: break;
  }
}

/* Hosts that talk to each other: of stages that follow each other, of a ring; half of the time two ranks of them alone. */
static void choose_pair(const struct nj_job *job, int which, struct nj_fault *f) {
  const struct nj_comm *c;
  for (int i = 0;; i++) {
    c = &job->comm[pick(job, which, 20 + 2 * i) % (uint64_t)job->n_comms];
    if (c->n_hosts > 1 && (c->role != 'w' || job->layout == 'F' || job->layout == 'D')) break;
  }
  int at = (int)(pick(job, which, 7) % (uint64_t)(c->n_hosts - 1));
  f->host = c->host[at];
  f->host_b = c->host[at + 1];
  if (c->role == 'w' || pick(job, which, 8) % 2) return;
  for (int i = 0; i < c->n; i++) { /* the last on one host, the first on the other: neighbours in the ring */
    if (job->rank[c->rank[i]].host == f->host) f->rank = c->rank[i];
    if (job->rank[c->rank[i]].host == f->host_b && f->rank_b < 0) f->rank_b = c->rank[i];
  }
}

static const char *two(struct nj_job *job) {
  static const enum nj_kind with_tp[] = {NJ_LATE, NJ_NVLINK, NJ_RAIL}, without[] = {NJ_LATE, NJ_INTERMITTENT};
  const enum nj_kind *kinds = job->tp > 1 ? with_tp : without;
  uint64_t n = job->tp > 1 ? 3 : 2, a = pick(job, 0, 30) % n, b = (a + 1 + pick(job, 0, 31) % (n - 1)) % n;
  choose(job, 0, kinds[a], nj_size_default(kinds[a]), &job->fault[0]);
  for (int i = 1; i < 64; i++) { /* on another host, else one explains both */
    choose(job, i, kinds[b], nj_size_default(kinds[b]), &job->fault[1]);
    int x = job->fault[0].rank >= 0 ? job->rank[job->fault[0].rank].host : job->fault[0].host;
    int y = job->fault[1].rank >= 0 ? job->rank[job->fault[1].rank].host : job->fault[1].host;
    if (x != y) break;
  }
  job->n_faults = 2;
  return NULL;
}

const char *nj_faults(struct nj_job *job) {
  bool links = job->tp > 1;
  job->n_faults = job->kind <= NJ_NOISY ? 0 : 1;
  if (job->n_faults == 0) return NULL;
  if (job->kind == NJ_STAGE && job->pp < 2) return "stages are of B, C, P, L";
  if (job->kind == NJ_NVLINK && !links) return "NVLink shows in A, B, C, P, L alone";
  if (job->kind == NJ_TWO) return two(job);
  choose(job, 0, job->kind, job->size, &job->fault[0]);
  if (job->kind == NJ_PAIR) choose_pair(job, 0, &job->fault[0]);
  if (job->kind == NJ_MOVING) {
    for (int i = 0; i < 2; i++) {
      choose(job, i, NJ_LATE, job->size, &job->fault[i]);
      span(&job->fault[i], i * job->steps / 2, (i + 1) * job->steps / 2);
    }
    job->n_faults = 2;
    while (job->fault[1].rank == job->fault[0].rank) job->fault[1].rank = (job->fault[1].rank + 1) % job->world;
  }
  return NULL;
}

void nj_faults_scale(struct nj_job *job, double by) {
  for (int i = 0; i < job->n_faults; i++) job->fault[i].x *= by;
}

bool nj_at_work(const struct nj_fault *f, double step) {
  for (int i = 0; i < f->n_spans; i++)
    if (step >= f->from[i] && step < f->to[i]) return true;
  return f->n_spans == 0;
}

#define EACH(f)                                                                    \
  for (const struct nj_fault *f = job->fault; f < job->fault + job->n_faults; f++) \
    if (active >> (f - job->fault) & 1 && nj_at_work(f, step))

double nj_compute_factor(const struct nj_job *job, unsigned active, int rank, double step) {
  double by = 1;
  EACH(f) {
    bool here = f->rank == rank || (f->kind == NJ_STAGE && f->stage == job->rank[rank].pp);
    bool works = f->kind == NJ_LATE || f->kind == NJ_ONSET || f->kind == NJ_EPISODE || f->kind == NJ_GPU ||
                 f->kind == NJ_STAGE || (f->kind == NJ_UNEVEN && !job->ep);
    if (here && works) by *= 1 + f->x;
  }
  return by;
}

double nj_compute_extra(const struct nj_job *job, unsigned active, int rank, int step, int instr) {
  EACH(f) {
    if (f->kind != NJ_INTERMITTENT || f->rank != rank) continue;
    uint64_t x = nj_draw(job->seed, NJ_DRAW_FAULT, (uint64_t)step, 99, 0);
    if (nj_unit(x) >= BURST_SHARE) continue;
    /* Each of the step's instructions has its turn; the first compute from there on. */
    int at = (int)((x & 0x7ff) * (uint64_t)job->rank[rank].n >> 11);
    for (int i = 0; i < job->rank[rank].n; i++, at = (at + 1) % job->rank[rank].n)
      if (job->rank[rank].instr[at].what == NJ_COMPUTE && !job->rank[rank].instr[at].fixed) break;
    if (at == instr) return f->x;
  }
  return 0;
}

double nj_launch_factor(const struct nj_job *job, unsigned active, int rank, double step) {
  double by = 1;
  EACH(f) if (f->kind == NJ_CPU && f->host == job->rank[rank].host) by *= 1 + f->x;
  return by;
}

double nj_nvlink_factor(const struct nj_job *job, unsigned active, int host, double step) {
  double by = 1;
  EACH(f) if (f->kind == NJ_NVLINK && f->host == host) by *= 1 + f->x;
  return by;
}

double nj_nic_factor(const struct nj_job *job, unsigned active, int rank, double step) {
  double by = 1;
  EACH(f) {
    if (f->kind == NJ_NIC && f->host == job->rank[rank].host) by *= 1 + f->x;
    if (f->kind == NJ_RAIL && f->rank == rank) by *= 1 + f->x;
    if (f->kind == NJ_CONGESTION) by *= 1 + f->x;
  }
  return by;
}

double nj_way_factor(const struct nj_job *job, unsigned active, int rank, int other, double step) {
  double by = 1;
  EACH(f) {
    if (f->kind != NJ_PAIR) continue;
    int a = job->rank[rank].host, b = job->rank[other].host;
    bool ranks = f->rank < 0 || (f->rank == rank && f->rank_b == other) || (f->rank == other && f->rank_b == rank);
    if (ranks && ((a == f->host && b == f->host_b) || (a == f->host_b && b == f->host))) by *= 1 + f->x;
  }
  return by;
}

double nj_gpu_factor(const struct nj_job *job, unsigned active, int rank, double step) {
  double by = 1;
  EACH(f) if (f->kind == NJ_GPU && f->rank == rank) by *= 1 + GPU_TRANSFER * f->x;
  return by;
}

double nj_route(const struct nj_job *job, unsigned active, int rank, int expert, int step) {
  double by =
      1 + ROUTE * nj_normal(nj_draw(job->noise, NJ_DRAW_ROUTE, (uint64_t)step, (uint64_t)rank, (uint64_t)expert / 2));
  EACH(f) if (f->kind == NJ_UNEVEN && f->rank == rank) by *= 1 + f->x;
  return by;
}
