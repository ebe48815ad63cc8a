#include "engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"
#include "links.h"
#include "test/jobs/draw.h"
#include "test/jobs/plan/fault.h"
#include "test/jobs/plan/layout.h"

#define NOISE 0.01 /* of transfers */
#define SKEW_NS 1000

struct actor { /* one stream of one rank */
  int rank, stream, at, round;
  int open; /* operations of a group that are not done */
  double ready, last, started;
  bool blocked; /* within an operation */
};

struct meeting { /* of a communicator's ranks for its next collective */
  int there;
  uint64_t number[NJ_PROGRAMS];
  double *start; /* by rank */
};

struct message {                 /* the next one from a to b */
  const struct nj_part *part[2]; /* sent, received */
  double start[2];
};

struct run {
  const struct nj_job *job;
  unsigned active;
  const struct nj_watch *watch;
  struct nj_round *round; /* of all, and what stands behind the last */
  int rounds;
  struct actor *actor;      /* NJ_STREAMS of each rank */
  struct meeting *meeting;  /* of each communicator */
  struct message **message; /* of each communicator with Send and Receive: n x n */
  double *event;            /* NJ_EVENTS of each rank */
  int *event_round;         /* how often it was recorded */
  struct nj_cpu *cpu;       /* of each rank */
  int *list, n_list;        /* actors that may go on */
  bool *listed;
  double *begin, end;
};

static void wake(struct run *u, int actor) {
  if (u->listed[actor])
    return;
  u->listed[actor] = true;
  u->list[u->n_list++] = actor;
}

static void wake_rank(struct run *u, int rank) {
  for (int s = 0; s < NJ_STREAMS; s++)
    if (!u->actor[rank * NJ_STREAMS + s].blocked)
      wake(u, rank * NJ_STREAMS + s);
}

static const struct nj_round *round_of(const struct run *u, const struct actor *a) {
  return &u->round[a->round];
}

static const struct nj_code *code_of(const struct run *u, const struct actor *a) {
  return &u->job->rank[a->rank].code[round_of(u, a)->program];
}

static struct nj_when moment(const struct run *u, const struct actor *a, double at) {
  return (struct nj_when){round_of(u, a)->step + (double)a->at / code_of(u, a)->n, at};
}

static void next_round_of_cpu(struct run *u, int rank, int round, double from) {
  struct nj_cpu *cpu = &u->cpu[rank];
  int step = u->round[round].step;
  cpu->round = round;
  nj_cpu_step(u->job, u->active, rank, &u->round[round], from, cpu);
  if (round < u->rounds && u->begin && (u->begin[step] < 0 || from < u->begin[step]))
    u->begin[step] = from;
}

static void compute(struct run *u, struct actor *a, const struct nj_instr *i) {
  const struct nj_job *job = u->job;
  struct nj_cpu *cpu = &u->cpu[a->rank];
  int step = round_of(u, a)->step;
  double jitter = nj_normal(
      nj_draw(job->noise, NJ_DRAW_JITTER, round_of(u, a)->name, (uint64_t)a->rank, (uint64_t)a->at));
  double ns = i->ns * job->rank[a->rank].speed * (1 + job->model.jitter * jitter);
  ns *= job->slower;
  if (!i->fixed)
    ns *= nj_compute_factor(job, u->active, a->rank, moment(u, a, a->ready));
  if (!i->fixed)
    ns *= nj_batch(job, u->active, a->rank, step);
  if (i->expert >= 0)
    ns *= nj_route(job, u->active, a->rank, i->expert, step);
  double extra = nj_compute_extra(job, u->active, a->rank, step, a->at);
  double start = fmax(a->ready, cpu->issue[a->at] + NJ_LATENCY_NS);
  double end = fmax(start + ns + extra, cpu->issue[a->at + 1] + NJ_LATENCY_NS + NJ_KERNEL_NS);
  if (u->watch && u->watch->incident) {
    struct nj_incident x = {a->rank, step, "delay", start + ns, extra};
    if (extra > NJ_INCIDENT_NS)
      u->watch->incident(u->watch->context, &x);
  }
  if (u->watch && u->watch->worked)
    u->watch->worked(u->watch->context, a->rank, step, start, end);
  a->ready = end;
}

static void tell(struct run *u, const struct actor *a, const struct nj_instr *i, const struct nj_part *part,
                 double start, double last, double end, double bytes) {
  if (!u->watch || !u->watch->done)
    return;
  struct nj_done d = {.rank = a->rank,
                      .comm = i->comm,
                      .step = round_of(u, a)->step,
                      .peer = part ? part->peer : -1,
                      .recv = part && part->recv,
                      .func = (enum nj_func)i->func,
                      .bytes = bytes,
                      .start = start,
                      .last = last,
                      .end = end,
                      .enqueue = u->cpu[a->rank].issue[a->at]};
  u->watch->done(u->watch->context, &d);
}

static double skew(const struct run *u, const struct actor *a) {
  return SKEW_NS *
      nj_unit(nj_draw(u->job->noise, NJ_DRAW_SKEW, round_of(u, a)->name, (uint64_t)a->rank, (uint64_t)a->at));
}

/* A replica's own traffic grows with its tokens. */
static double by_batch(const struct run *u, const struct nj_comm *c, double bytes, int step) {
  bool own = c->role == 't' || c->role == 'p';
  double by = own ? nj_batch(u->job, u->active, c->rank[0], step) : 1;
  return by == 1 ? bytes : fmax(256, floor(bytes * by / 256) * 256);
}

static double coll_bytes(const struct run *u, const struct nj_comm *c, const struct nj_instr *i, int step) {
  return by_batch(u, c, i->bytes, step);
}

/* The last rank has come: all end. The others stand at their own instruction of this stream. */
static void collective(struct run *u, struct actor *last, const struct nj_instr *i) {
  const struct nj_job *job = u->job;
  int id = job->rank[last->rank].comm[i->comm];
  const struct nj_comm *c = &job->comm[id];
  struct meeting *m = &u->meeting[id];
  m->start[job->rank[last->rank].member[i->comm]] =
      fmax(last->ready, u->cpu[last->rank].issue[last->at] + NJ_LATENCY_NS);
  last->blocked = true;
  if (++m->there < c->n)
    return;
  enum nj_program program = round_of(u, last)->program;
  uint64_t number = m->number[program]++ + ((uint64_t)program << 40);
  double begin = m->start[0],
         noise = nj_normal(nj_draw(job->noise, NJ_DRAW_TRANSFER, (uint64_t)id, number, 0));
  for (int k = 1; k < c->n; k++)
    begin = fmax(begin, m->start[k]);
  double bytes = coll_bytes(u, c, i, round_of(u, last)->step);
  double ns = nj_coll_ns(job, u->active, c, (enum nj_func)i->func, bytes, moment(u, last, begin)) *
      (1 + NOISE * noise);
  m->there = 0;
  for (int k = 0; k < c->n; k++) {
    struct actor *a = &u->actor[c->rank[k] * NJ_STREAMS + i->stream];
    double end = begin + ns + skew(u, a);
    tell(u, a, &code_of(u, a)->instr[a->at], NULL, m->start[k], begin, end, bytes);
    a->ready = end;
    a->blocked = false;
    a->at++;
    wake(u, (int)(a - u->actor));
  }
}

static double part_bytes(const struct run *u, const struct nj_comm *c, const struct nj_instr *i,
                         const struct nj_part *p, int me, int step) {
  if (i->expert < 0)
    return by_batch(u, c, p->bytes, step);
  /* To the experts it is the receiver's share that counts, on the way back the sender's. */
  bool back = i->expert & 1, mine = p->recv != back;
  double by = nj_route(u->job, u->active, c->rank[mine ? me : p->peer], i->expert, step);
  return floor(p->bytes * by / 256) * 256;
}

/* Both sides of a message are there. Their parts end together. */
static void deliver(struct run *u, const struct nj_comm *c, struct message *x, int from, int to,
                    const struct nj_instr *i, const struct nj_round *round) {
  const struct nj_job *job = u->job;
  int rank[2] = {c->rank[from], c->rank[to]};
  struct actor *side[2];
  for (int k = 0; k < 2; k++)
    side[k] = &u->actor[rank[k] * NJ_STREAMS + i->stream];
  uint64_t name = (uint64_t)side[0]->at << 20 | (uint64_t)(from * c->n + to);
  double noise = nj_normal(nj_draw(job->noise, NJ_DRAW_TRANSFER, round->name, (uint64_t)rank[0], name));
  int share = i->parts / 2 > 1 ? i->parts / 2 : 1;
  double bytes = part_bytes(u, c, &code_of(u, side[0])->instr[side[0]->at], x->part[0], from, round->step);
  double begin = fmax(x->start[0], x->start[1]);
  struct nj_when when = moment(u, side[0], begin);
  double ns = nj_p2p_ns(job, u->active, rank[0], rank[1], bytes, share, when) * (1 + NOISE * noise);
  double end = begin + ns;
  for (int k = 0; k < 2; k++) {
    struct actor *a = side[k];
    const struct nj_instr *own = &code_of(u, a)->instr[a->at];
    double own_end = end + skew(u, a);
    tell(u, a, own, x->part[k], x->start[k], begin, own_end, bytes);
    a->last = fmax(a->last, own_end);
    if (--a->open > 0)
      continue;
    a->ready = a->last;
    a->blocked = false;
    a->at++;
    wake(u, (int)(a - u->actor));
  }
  x->part[0] = x->part[1] = NULL;
}

static void group(struct run *u, struct actor *a, const struct nj_instr *i) {
  const struct nj_job *job = u->job;
  const struct nj_rank *r = &job->rank[a->rank];
  int id = r->comm[i->comm], me = r->member[i->comm];
  const struct nj_comm *c = &job->comm[id];
  double start = fmax(a->ready, u->cpu[a->rank].issue[a->at] + NJ_LATENCY_NS);
  a->open = i->parts;
  a->last = 0;
  a->blocked = true;
  for (int k = 0; k < i->parts; k++) {
    const struct nj_part *p = &r->part[i->part + k];
    int from = p->recv ? p->peer : me, to = p->recv ? me : p->peer;
    struct message *x = &u->message[id][from * c->n + to];
    x->part[p->recv] = p;
    x->start[p->recv] = start;
    if (x->part[0] && x->part[1])
      deliver(u, c, x, from, to, i, round_of(u, a));
  }
}

/* The end of a round: the CPU sees it and launches the next one. */
static void synchronise(struct run *u, struct actor *a) {
  const struct nj_cpu *cpu = &u->cpu[a->rank];
  int round = a->round + 1, step = u->round[round].step;
  if (a->ready > u->end)
    u->end = a->ready;
  next_round_of_cpu(u, a->rank, round, a->ready);
  if (!u->watch || !u->watch->incident || round >= u->rounds)
    return;
  struct nj_incident own = {a->rank, step, "pause", cpu->paused_at, cpu->pause};
  struct nj_incident planted = {a->rank, step, "planted", cpu->planted_at, cpu->planted};
  if (own.ns > NJ_INCIDENT_NS)
    u->watch->incident(u->watch->context, &own);
  /* Where all ranks pause together nobody began it. */
  if (planted.ns > NJ_INCIDENT_NS && u->job->kind != NJ_EVALUATION)
    u->watch->incident(u->watch->context, &planted);
}

/* One actor, until it must wait. */
static void go(struct run *u, struct actor *a) {
  while (!a->blocked && a->round < u->rounds) {
    const struct nj_code *code = code_of(u, a);
    if (a->at == code->n) {
      a->at = 0;
      a->round++;
      continue;
    }
    const struct nj_instr *i = &code->instr[a->at];
    int event = a->rank * NJ_EVENTS + i->event;
    if (u->cpu[a->rank].round < a->round)
      return;
    if (i->stream != a->stream) {
      a->at++;
      continue;
    }
    switch (i->what) {
      case NJ_COMPUTE:
        compute(u, a, i);
        break;
      case NJ_COLL:
        collective(u, a, i);
        continue;
      case NJ_P2P:
        group(u, a, i);
        continue;
      case NJ_SYNC:
        synchronise(u, a);
        wake_rank(u, a->rank);
        break;
      case NJ_RECORD:
        u->event[event] = a->ready;
        u->event_round[event] = a->round + 1;
        wake_rank(u, a->rank);
        break;
      case NJ_WAIT:
        if (u->event_round[event] < a->round + 1)
          return;
        a->ready = fmax(a->ready, u->event[event]);
        break;
      default:
        break;
    }
    a->at++;
  }
}

/* The job's steps, and before some of them the rounds of an evaluation. */
static void plan_rounds(struct run *u) {
  const struct nj_job *job = u->job;
  int n = job->steps;
  for (int s = 0; s < job->steps; s++)
    n += nj_eval_rounds(job, u->active, s);
  u->round = nj_more(NULL, (unsigned)(n + 1) * sizeof *u->round);
  u->rounds = 0;
  for (int s = 0; s <= job->steps; s++) {
    int rounds = s < job->steps ? nj_eval_rounds(job, u->active, s) : 0;
    for (int k = 0; k < rounds; k++)
      u->round[u->rounds++] =
          (struct nj_round){NJ_EVAL, s, (uint64_t)1 << 32 | (uint64_t)s << 12 | (uint64_t)k};
    u->round[u->rounds++] = (struct nj_round){NJ_TRAIN, s, (uint64_t)s};
  }
  u->rounds--; /* what stands behind the last */
}

static void begin_run(struct run *u) {
  const struct nj_job *job = u->job;
  plan_rounds(u);
  size_t n = (size_t)job->world, actors = n * NJ_STREAMS;
  u->actor = calloc(actors, sizeof *u->actor);
  u->list = calloc(actors, sizeof *u->list);
  u->listed = calloc(actors, sizeof *u->listed);
  u->event = calloc(n * NJ_EVENTS, sizeof *u->event);
  u->event_round = calloc(n * NJ_EVENTS, sizeof *u->event_round);
  u->cpu = calloc(n, sizeof *u->cpu);
  u->meeting = calloc((size_t)job->n_comms, sizeof *u->meeting);
  u->message = calloc((size_t)job->n_comms, sizeof *u->message);
  if (!u->actor || !u->list || !u->listed || !u->event || !u->event_round || !u->cpu || !u->meeting ||
      !u->message)
    nj_more(NULL, ~0ul);
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    u->meeting[k].start = nj_more(NULL, (unsigned)c->n * sizeof(double));
    if (c->role != 'p' && c->role != 'e')
      continue;
    u->message[k] = nj_more(NULL, (size_t)c->n * (size_t)c->n * sizeof **u->message);
    memset(u->message[k], 0, (size_t)c->n * (size_t)c->n * sizeof **u->message);
  }
  for (int k = 0; u->begin && k < job->steps; k++)
    u->begin[k] = -1;
  for (int r = 0; r < job->world; r++) {
    const struct nj_code *code = job->rank[r].code;
    int longest = code[NJ_TRAIN].n > code[NJ_EVAL].n ? code[NJ_TRAIN].n : code[NJ_EVAL].n;
    u->cpu[r].issue = nj_more(NULL, (unsigned)(longest + 1) * sizeof(double));
    next_round_of_cpu(u, r, 0, 0);
    for (int s = 0; s < NJ_STREAMS; s++) {
      u->actor[r * NJ_STREAMS + s].rank = r;
      u->actor[r * NJ_STREAMS + s].stream = s;
      wake(u, r * NJ_STREAMS + s);
    }
  }
}

static void end_run(struct run *u) {
  for (int k = 0; k < u->job->n_comms; k++) {
    free(u->meeting[k].start);
    free(u->message[k]);
  }
  for (int r = 0; r < u->job->world; r++)
    free(u->cpu[r].issue);
  free(u->round);
  free(u->actor);
  free(u->list);
  free(u->listed);
  free(u->event);
  free(u->event_round);
  free(u->cpu);
  free(u->meeting);
  free(u->message);
}

double nj_run(const struct nj_job *job, unsigned active, double *begin, const struct nj_watch *watch) {
  struct run u = {.job = job, .active = active, .watch = watch, .begin = begin};
  begin_run(&u);
  while (u.n_list) {
    int next = u.list[--u.n_list];
    u.listed[next] = false;
    go(&u, &u.actor[next]);
  }
  for (int i = 0; i < job->world * NJ_STREAMS; i++) {
    if (u.actor[i].round == u.rounds)
      continue;
    fprintf(stderr, "ni-jobs: rank %d waits for ever in round %d at %d\n", u.actor[i].rank, u.actor[i].round,
            u.actor[i].at);
    exit(1);
  }
  end_run(&u);
  return u.end;
}
