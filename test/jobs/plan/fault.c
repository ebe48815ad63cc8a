#include "fault.h"

#include <math.h>
#include <stddef.h>

#include "layout.h"
#include "test/jobs/draw.h"

#define BURST_SHARE 0.1     /* of the steps have an intermittent delay */
#define CONGESTED_SHARE 0.2 /* of the time */
#define CONGESTED_TIMES 4   /* at most */
#define GPU_TRANSFER 0.3    /* of a slow GPU's loss is in its transfers, too */
#define ROUTE 0.15          /* deviation of what experts get in a step */

const char *const nj_kind_names[NJ_KINDS] = {
    "healthy",       "noisy",     "late",       "intermittent", "onset",  "episode", "moving",     "nic",
    "rail",          "nvlink",    "cpu",        "gpu",          "stage",  "pair",    "congestion", "uneven",
    "two",           "gc",        "checkpoint", "evaluation",   "pauses", "flap",    "throttle",   "replica",
    "stages_differ", "inference", "two_jobs",   "two_attempts"};

const char *nj_size_unit(enum nj_kind kind) {
  switch (kind) {
    case NJ_HEALTHY:
    case NJ_NOISY:
    case NJ_TWO:
    case NJ_STAGES_DIFFER:
    case NJ_KINDS:
      return NULL;
    case NJ_GC:
    case NJ_CHECKPOINT:
    case NJ_EVALUATION:
    case NJ_PAUSES:
    case NJ_INTERMITTENT:
      return "ms";
    case NJ_FLAP:
    case NJ_NIC:
    case NJ_RAIL:
    case NJ_NVLINK:
    case NJ_CPU:
    case NJ_PAIR:
    case NJ_CONGESTION:
      return "x";
    default:
      return "%";
  }
}

double nj_size_default(enum nj_kind kind) {
  static const double sizes[NJ_KINDS] = {
      [NJ_LATE] = 10,         [NJ_INTERMITTENT] = 20, [NJ_ONSET] = 10,    [NJ_EPISODE] = 15,
      [NJ_MOVING] = 10,       [NJ_NIC] = 2,           [NJ_RAIL] = 2,      [NJ_NVLINK] = 1.5,
      [NJ_CPU] = 5,           [NJ_GPU] = 10,          [NJ_STAGE] = 15,    [NJ_PAIR] = 2,
      [NJ_CONGESTION] = 2,    [NJ_UNEVEN] = 15,       [NJ_GC] = 200,      [NJ_CHECKPOINT] = 1500,
      [NJ_EVALUATION] = 1500, [NJ_PAUSES] = 60,       [NJ_FLAP] = 4,      [NJ_THROTTLE] = 30,
      [NJ_REPLICA] = 10,      [NJ_INFERENCE] = 20,    [NJ_TWO_JOBS] = 10, [NJ_TWO_ATTEMPTS] = 10};
  return sizes[kind];
}

bool nj_in_seconds(enum nj_kind kind) {
  const char *unit = nj_size_unit(kind);
  return unit && *unit == 'm';
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
  int n = 1 + (int)(pick(job, which, 10) % CONGESTED_TIMES);
  double part = (double)job->steps / n, length = CONGESTED_SHARE * part;
  for (int i = 0; i < n; i++) {
    double at = i * part + nj_unit(pick(job, which, 11 + i)) * (part - length);
    span(f, at, at + length);
  }
}

static double between(const struct nj_job *job, int which, int what, double low, double high) {
  return low + (high - low) * nj_unit(pick(job, which, what));
}

/* Evenly by the logarithm. */
static double scaled(const struct nj_job *job, int which, int what, double low, double high) {
  return low * pow(high / low, nj_unit(pick(job, which, what)));
}

/* Every 20 to 100 steps, and four times at least; in short jobs more often. */
static int period(const struct nj_job *job, int which, double low, double times) {
  double high = fmin(100, job->steps / times);
  return (int)fmax(3, high <= low ? high : scaled(job, which, 40, low, high));
}

/* Bursts of 2 to 60 steps in 5 to 40 % of the run, apart from each other, each in its part of the run. */
static void bursts(const struct nj_job *job, int which, struct nj_fault *f) {
  double share = between(job, which, 41, 0.05, 0.4),
         length = scaled(job, which, 42, 2, fmin(60, share * job->steps / 2));
  int n = (int)fmin(NJ_SPANS, fmax(2, share * job->steps / length));
  double part = (double)job->steps / n;
  length = fmin(share * part, 60);
  for (int i = 0; i < n; i++) {
    double own = fmax(2, length * between(job, which, 100 + 2 * i, 0.6, 1.4)), room = fmax(0, part - own);
    double at = i * part + room * nj_unit(pick(job, which, 101 + 2 * i));
    span(f, floor(at), floor(at) + round(own));
  }
}

/* Twice to eight times, 0.3 to 3 s each, a third of the run at most in all. */
void nj_faults_moments(struct nj_job *job, double ns) {
  for (int k = 0; k < job->n_faults; k++) {
    struct nj_fault *f = &job->fault[k];
    if (f->kind != NJ_FLAP)
      continue;
    int n = 2 + (int)(pick(job, k, 50) % 7);
    if (ns / 3 / n < 0.3e9)
      n = (int)fmax(2, ns / 3 / 0.3e9);
    f->timed = true;
    f->n_spans = 0;
    for (int i = 0; i < n; i++) {
      double part = ns / n, longest = part / 3;
      double length = longest < 0.3e9 ? longest : scaled(job, k, 51 + 2 * i, 0.3e9, fmin(3e9, 2 * longest));
      double at = i * part + (part - length) * between(job, k, 52 + 2 * i, 0.05, 0.95);
      span(f, at, at + length);
    }
  }
}

static void choose(const struct nj_job *job, int which, enum nj_kind kind, double size, struct nj_fault *f) {
  int rank = (int)(pick(job, which, 0) % (uint64_t)job->world), host = job->rank[rank].host;
  *f = (struct nj_fault){
      .kind = kind, .thing = kind, .rank = -1, .host = -1, .stage = -1, .rank_b = -1, .host_b = -1};
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
    case NJ_UNEVEN:
      f->rank = rank;
      break;
    case NJ_RAIL:
      f->rank = rank;
      f->host = host;
      break;
    case NJ_NIC:
    case NJ_NVLINK:
    case NJ_CPU:
      f->host = host;
      break;
    case NJ_STAGE:
      f->stage = job->rank[rank].pp;
      break;
    case NJ_CONGESTION:
      congested(job, which, f);
      break;
    case NJ_GC:
      f->rank = rank;
      f->period = period(job, which, 20, 4);
      f->phase = (int)(pick(job, which, 43) % (uint64_t)f->period);
      break;
    case NJ_CHECKPOINT:
      f->who = pick(job, which, 44) % 2             ? NJ_RANK
          : job->tp > 1 && pick(job, which, 45) % 2 ? NJ_REPLICAS_FIRST
                                                    : NJ_HOSTS_FIRST;
      if (f->who == NJ_RANK)
        f->rank = 0;
      f->period = period(job, which, 20, 4);
      break;
    case NJ_EVALUATION:
      f->who = NJ_ALL;
      f->period = period(job, which, 60, 3);
      f->together = pick(job, which, 46) % 3 == 0;
      break;
    case NJ_PAUSES:
      f->who = pick(job, which, 47) % 3 ? NJ_RANK : NJ_HOST;
      if (f->who == NJ_RANK)
        f->rank = rank;
      else
        f->host = host;
      break;
    case NJ_THROTTLE:
      f->who = pick(job, which, 48) % 3 ? NJ_RANK : NJ_HOST;
      if (f->who == NJ_RANK)
        f->rank = rank;
      else
        f->host = host;
      bursts(job, which, f);
      break;
    case NJ_REPLICA:
      f->who = NJ_REPLICA_RANKS;
      f->replica = job->rank[rank].dp;
      break;
    case NJ_INFERENCE:
      f->rank = rank;
      break;
    case NJ_FLAP: {
      static const enum nj_kind with_tp[] = {NJ_NIC, NJ_RAIL, NJ_NVLINK, NJ_PAIR},
                                experts[] = {NJ_NIC, NJ_RAIL, NJ_PAIR};
      f->thing = job->tp > 1 ? with_tp[pick(job, which, 49) % 4]
          : job->ep          ? experts[pick(job, which, 49) % 3]
                             : NJ_NIC;
      if (f->thing == NJ_RAIL)
        f->rank = rank;
      if (f->thing != NJ_PAIR)
        f->host = host;
      break;
    }
    default:
      break;
  }
}

static bool bulk_crosses(const struct nj_job *job, const struct nj_comm *c) {
  return c->n_hosts > 1 && (c->role != 'w' || job->layout == 'F' || job->layout == 'D');
}

/* The last on one host, the first on the other: neighbours in the ring. */
static void neighbours(const struct nj_job *job, const struct nj_comm *c, struct nj_fault *f) {
  f->rank = f->rank_b = -1;
  for (int i = 0; i < c->n; i++) {
    if (job->rank[c->rank[i]].host == f->host)
      f->rank = c->rank[i];
    if (job->rank[c->rank[i]].host == f->host_b && f->rank_b < 0)
      f->rank_b = c->rank[i];
  }
}

/*
 * Hosts that talk to each other: of stages that follow each other, of a ring; half of the time two ranks of
 * them alone.
 */
static void choose_pair(const struct nj_job *job, int which, struct nj_fault *f) {
  const struct nj_comm *c;
  for (int i = 0;; i++) {
    c = &job->comm[pick(job, which, 20 + 2 * i) % (uint64_t)job->n_comms];
    if (bulk_crosses(job, c))
      break;
  }
  int at = (int)(pick(job, which, 7) % (uint64_t)(c->n_hosts - 1));
  f->host = c->host[at];
  f->host_b = c->host[at + 1];
  if (c->role != 'w' && pick(job, which, 8) % 2 == 0)
    neighbours(job, c, f);
}

/* From the rank's host to the next one of a communicator of the rank; between two ranks where it was. */
static bool move_pair(const struct nj_job *job, struct nj_fault *f, int rank) {
  const struct nj_rank *r = &job->rank[rank];
  for (int k = 0; k < r->n_comms; k++) {
    const struct nj_comm *c = &job->comm[r->comm[k]];
    for (int i = 0; bulk_crosses(job, c) && i + 1 < c->n_hosts; i++) {
      if (c->host[i] != r->host)
        continue;
      f->host = c->host[i];
      f->host_b = c->host[i + 1];
      if (f->rank >= 0)
        neighbours(job, c, f);
      return true;
    }
  }
  return false;
}

bool nj_fault_move(struct nj_job *job, int which, int rank) {
  struct nj_fault *f = &job->fault[which];
  if (which >= job->n_faults || rank >= job->world)
    return false;
  if (f->thing == NJ_PAIR)
    return move_pair(job, f, rank);
  const bool replicas = f->who == NJ_REPLICA_RANKS;
  if (f->rank < 0 && f->host < 0 && f->stage < 0 && !replicas)
    return false;
  f->rank = f->rank >= 0 ? rank : -1;
  f->host = f->host >= 0 ? job->rank[rank].host : -1;
  f->stage = f->stage >= 0 ? job->rank[rank].pp : -1;
  f->replica = replicas ? job->rank[rank].dp : f->replica;
  return true;
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
    if (x != y)
      break;
  }
  job->n_faults = 2;
  return NULL;
}

const char *nj_faults(struct nj_job *job) {
  bool links = job->tp > 1;
  bool none = job->kind <= NJ_NOISY || job->kind == NJ_STAGES_DIFFER;
  job->n_faults = none ? 0 : 1;
  if (job->kind == NJ_STAGES_DIFFER && job->pp < 2)
    return "stages are of B, C, P, L";
  if (job->kind == NJ_REPLICA && (job->tp < 2 || job->dp < 2))
    return "replicas of several ranks are of A, B, C, P, L";
  if (job->kind == NJ_INFERENCE && job->tp < 2)
    return "requests are served by A, B, C, P, L";
  /* Half of the servers have a late rank. */
  if (job->kind == NJ_INFERENCE && pick(job, 0, 39) % 2)
    job->n_faults = 0;
  if (job->n_faults == 0)
    return NULL;
  if (job->kind == NJ_STAGE && job->pp < 2)
    return "stages are of B, C, P, L";
  if (job->kind == NJ_NVLINK && !links)
    return "NVLink shows in A, B, C, P, L alone";
  if (job->kind == NJ_TWO)
    return two(job);
  if (job->kind == NJ_TWO_JOBS || job->kind == NJ_TWO_ATTEMPTS) {
    choose(job, 0, NJ_LATE, job->size, &job->fault[0]);
    return NULL;
  }
  choose(job, 0, job->kind, job->size, &job->fault[0]);
  if (job->fault[0].thing == NJ_PAIR)
    choose_pair(job, 0, &job->fault[0]);
  if (job->kind == NJ_MOVING) {
    for (int i = 0; i < 2; i++) {
      choose(job, i, NJ_LATE, job->size, &job->fault[i]);
      span(&job->fault[i], i * job->steps / 2, (i + 1) * job->steps / 2);
    }
    job->n_faults = 2;
    while (job->fault[1].rank == job->fault[0].rank)
      job->fault[1].rank = (job->fault[1].rank + 1) % job->world;
  }
  return NULL;
}

void nj_faults_scale(struct nj_job *job, double by) {
  for (int i = 0; i < job->n_faults; i++)
    job->fault[i].x *= by;
}

bool nj_at_work(const struct nj_fault *f, struct nj_when when) {
  double now = f->timed ? when.at : when.step;
  for (int i = 0; i < f->n_spans; i++)
    if (now >= f->from[i] && now < f->to[i])
      return true;
  return f->n_spans == 0;
}

#define EACH(f) \
  for (const struct nj_fault *f = job->fault; f < job->fault + job->n_faults; f++) \
    if (active >> (f - job->fault) & 1 && nj_at_work(f, when))

bool nj_concerns(const struct nj_job *job, const struct nj_fault *f, int rank) {
  const struct nj_rank *r = &job->rank[rank];
  switch (f->who) {
    case NJ_RANK:
      return f->rank == rank;
    case NJ_HOST:
      return f->host == r->host;
    case NJ_HOSTS_FIRST:
      return r->local == 0;
    case NJ_REPLICAS_FIRST:
      return r->tp == 0 && r->pp == 0;
    case NJ_REPLICA_RANKS:
      return f->replica == r->dp;
    case NJ_ALL:
      return true;
  }
  return false;
}

static struct nj_when in_step(int step) { return (struct nj_when){step, -1}; }

double nj_compute_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when) {
  double by = 1;
  EACH(f) {
    bool here = f->rank == rank || (f->kind == NJ_STAGE && f->stage == job->rank[rank].pp);
    bool works = f->kind == NJ_LATE || f->kind == NJ_ONSET || f->kind == NJ_EPISODE || f->kind == NJ_GPU ||
        f->kind == NJ_STAGE || f->kind == NJ_INFERENCE || (f->kind == NJ_UNEVEN && !job->ep);
    if (here && works)
      by *= 1 + f->x;
    if (f->kind == NJ_THROTTLE && nj_concerns(job, f, rank))
      by *= 1 + f->x;
  }
  return by;
}

double nj_compute_extra(const struct nj_job *job, unsigned active, int rank, int step, int instr) {
  const struct nj_code *code = &job->rank[rank].code[NJ_TRAIN];
  struct nj_when when = in_step(step);
  EACH(f) {
    if (f->kind != NJ_INTERMITTENT || f->rank != rank)
      continue;
    uint64_t x = nj_draw(job->seed, NJ_DRAW_FAULT, (uint64_t)step, 99, 0);
    if (nj_unit(x) >= BURST_SHARE)
      continue;
    /* Each of the step's instructions has its turn; the first compute from there on. */
    int at = (int)((x & 0x7ff) * (uint64_t)code->n >> 11);
    for (int i = 0; i < code->n; i++, at = (at + 1) % code->n)
      if (code->instr[at].what == NJ_COMPUTE && !code->instr[at].fixed)
        break;
    if (at == instr)
      return f->x;
  }
  return 0;
}

/* In which steps, and how long this time. */
static double planted_ns(const struct nj_job *job, const struct nj_fault *f, int rank, int step) {
  uint64_t number = (uint64_t)(f - job->fault),
           who = f->who == NJ_RANK || f->who == NJ_HOST ? 0 : (uint64_t)rank + 1;
  uint64_t x = nj_draw(job->noise, NJ_DRAW_PLANTED, (uint64_t)step, number, who);
  if (step == 0 || !nj_concerns(job, f, rank))
    return 0;
  if (f->kind == NJ_PAUSES) {
    double share = 0.02 + 0.06 * nj_unit(pick(job, (int)number, 60));
    return nj_unit(x) < share ? f->x * exp(2.4 * nj_unit(ni_mix(x)) - 1.2) : 0;
  }
  bool due = f->period > 0 && step % f->period == f->phase;
  return due ? f->x * (1 + 0.05 * nj_normal(x)) : 0;
}

double nj_planted_pause(const struct nj_job *job, unsigned active, int rank, int step, int n, int *where) {
  struct nj_when when = in_step(step);
  EACH(f) {
    bool pauses = f->kind == NJ_GC || f->kind == NJ_CHECKPOINT || f->kind == NJ_PAUSES ||
        (f->kind == NJ_EVALUATION && f->together);
    double ns = pauses ? planted_ns(job, f, rank, step) : 0;
    if (ns <= 0)
      continue;
    bool between_steps = f->kind == NJ_CHECKPOINT || f->kind == NJ_EVALUATION;
    const uint64_t drawn = nj_draw(job->noise, NJ_DRAW_PLANTED, (uint64_t)step, 7, 0);
    *where = between_steps ? 0 : (int)(drawn % (uint64_t)n);
    return ns;
  }
  return 0;
}

int nj_eval_rounds(const struct nj_job *job, unsigned active, int step) {
  struct nj_when when = in_step(step);
  EACH(f) {
    if (f->kind != NJ_EVALUATION || f->together || step == 0 || step % f->period != f->phase)
      continue;
    double round_ns = job->model.compute * job->slower / 3 * NJ_EVAL_COMPUTE;
    return (int)fmax(2, f->x / round_ns);
  }
  return 0;
}

/* Requests: most rounds make one token for each of a batch that grows and shrinks, some read a prompt. */
static double requests(const struct nj_job *job, int replica, int step) {
  uint64_t x = nj_draw(job->noise, NJ_DRAW_BATCH, (uint64_t)replica, (uint64_t)step, 0);
  uint64_t slow = nj_draw(job->noise, NJ_DRAW_BATCH, (uint64_t)replica, (uint64_t)step / 23, 1);
  if (nj_unit(x) < 0.15)
    return 0.2 * exp(2 * nj_unit(ni_mix(x)));
  return 0.02 + 0.13 * nj_unit(slow) + 0.01 * nj_unit(ni_mix(x));
}

double nj_batch(const struct nj_job *job, unsigned active, int rank, int step) {
  double by = job->kind == NJ_INFERENCE ? requests(job, job->rank[rank].dp, step) : 1;
  struct nj_when when = in_step(step);
  if (job->weather.tokens > 0)
    by *= 1 +
        job->weather.tokens *
            nj_normal(nj_draw(job->noise, NJ_DRAW_BATCH, (uint64_t)job->rank[rank].dp, (uint64_t)step, 3));
  EACH(f) if (f->kind == NJ_REPLICA && nj_concerns(job, f, rank)) by *= 1 + f->x;
  return by;
}

double nj_launch_factor(const struct nj_job *job, unsigned active, int rank, int step) {
  struct nj_when when = in_step(step);
  double by = 1;
  EACH(f) if (f->kind == NJ_CPU && f->host == job->rank[rank].host) by *= 1 + f->x;
  return by;
}

double nj_nvlink_factor(const struct nj_job *job, unsigned active, int host, struct nj_when when) {
  double by = 1;
  EACH(f) if (f->thing == NJ_NVLINK && f->host == host) by *= 1 + f->x;
  return by;
}

double nj_nic_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when) {
  double by = 1;
  EACH(f) {
    if (f->thing == NJ_NIC && f->host == job->rank[rank].host)
      by *= 1 + f->x;
    if (f->thing == NJ_RAIL && f->rank == rank)
      by *= 1 + f->x;
    if (f->kind == NJ_CONGESTION)
      by *= 1 + f->x;
  }
  return by;
}

double nj_way_factor(const struct nj_job *job, unsigned active, int rank, int other, struct nj_when when) {
  double by = 1;
  EACH(f) {
    if (f->thing != NJ_PAIR)
      continue;
    int a = job->rank[rank].host, b = job->rank[other].host;
    bool ranks =
        f->rank < 0 || (f->rank == rank && f->rank_b == other) || (f->rank == other && f->rank_b == rank);
    if (ranks && ((a == f->host && b == f->host_b) || (a == f->host_b && b == f->host)))
      by *= 1 + f->x;
  }
  return by;
}

double nj_gpu_factor(const struct nj_job *job, unsigned active, int rank, struct nj_when when) {
  double by = 1;
  EACH(f) if (f->kind == NJ_GPU && f->rank == rank) by *= 1 + GPU_TRANSFER * f->x;
  return by;
}

double nj_route(const struct nj_job *job, unsigned active, int rank, int expert, int step) {
  double by = 1 +
      ROUTE *
          nj_normal(nj_draw(job->noise, NJ_DRAW_ROUTE, (uint64_t)step, (uint64_t)rank, (uint64_t)expert / 2));
  if (job->weather.experts > 0 && job->grouped_all_to_all)
    by *= exp(job->weather.experts *
              nj_normal(nj_draw(job->seed, NJ_DRAW_ROUTE, 1u << 30, (uint64_t)rank, (uint64_t)expert / 2)));
  struct nj_when when = in_step(step);
  EACH(f) if (f->kind == NJ_UNEVEN && f->rank == rank) by *= 1 + f->x;
  return by;
}
