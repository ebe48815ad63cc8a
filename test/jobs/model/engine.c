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
  int rank, stream, at, step;
  int open; /* operations of a group that are not done */
  double ready, last, started;
  bool blocked; /* within an operation */
};

struct meeting { /* of a communicator's ranks for its next collective */
  int there;
  uint64_t number;
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
  struct actor *actor;      /* NJ_STREAMS of each rank */
  struct meeting *meeting;  /* of each communicator */
  struct message **message; /* of each communicator with Send and Receive: n x n */
  double *event;            /* NJ_EVENTS of each rank */
  int *event_step;          /* how often it was recorded */
  struct nj_cpu *cpu;       /* of each rank */
  int *list, n_list;        /* actors that may go on */
  bool *listed;
  double *begin, end;
};

static void wake(struct run *u, int actor) {
  if (u->listed[actor]) return;
  u->listed[actor] = true;
  u->list[u->n_list++] = actor;
}

static void wake_rank(struct run *u, int rank) {
  for (int s = 0; s < NJ_STREAMS; s++)
    if (!u->actor[rank * NJ_STREAMS + s].blocked) wake(u, rank * NJ_STREAMS + s);
}

static double part_of_run(const struct run *u, const struct actor *a) {
  return a->step + (double)a->at / u->job->rank[a->rank].n;
}

static void next_step_of_cpu(struct run *u, int rank, int step, double from) {
  struct nj_cpu *cpu = &u->cpu[rank];
  nj_cpu_step(u->job, u->active, rank, step, from, cpu);
  if (step < u->job->steps && u->begin && (u->begin[step] < 0 || from < u->begin[step])) u->begin[step] = from;
}

static void compute(struct run *u, struct actor *a, const struct nj_instr *i) {
  const struct nj_job *job = u->job;
  struct nj_cpu *cpu = &u->cpu[a->rank];
  double jitter = nj_normal(nj_draw(job->noise, NJ_DRAW_JITTER, (uint64_t)a->step, (uint64_t)a->rank, (uint64_t)a->at));
  double ns = i->ns * job->rank[a->rank].speed * (1 + job->model.jitter * jitter);
  ns *= job->slower;
  if (!i->fixed) ns *= nj_compute_factor(job, u->active, a->rank, part_of_run(u, a));
  if (i->expert >= 0) ns *= nj_route(job, u->active, a->rank, i->expert, a->step);
  double extra = nj_compute_extra(job, u->active, a->rank, a->step, a->at);
  double start = fmax(a->ready, cpu->issue[a->at] + NJ_LATENCY_NS);
  double end = fmax(start + ns + extra, cpu->issue[a->at + 1] + NJ_LATENCY_NS + NJ_KERNEL_NS);
  if (u->watch && u->watch->incident) {
    struct nj_incident x = {a->rank, a->step, "delay", start + ns, extra};
    if (extra > NJ_INCIDENT_NS) u->watch->incident(u->watch->context, &x);
  }
  if (u->watch && u->watch->worked) u->watch->worked(u->watch->context, a->rank, a->step, start, end);
  a->ready = end;
}

static void tell(struct run *u, const struct actor *a, const struct nj_instr *i, const struct nj_part *part,
                 double start, double end, double bytes) {
  if (!u->watch || !u->watch->done) return;
  struct nj_done d = {.rank = a->rank,
                      .comm = i->comm,
                      .step = a->step,
                      .peer = part ? part->peer : -1,
                      .recv = part && part->recv,
                      .func = (enum nj_func)i->func,
                      .bytes = bytes,
                      .start = start,
                      .end = end,
                      .enqueue = u->cpu[a->rank].issue[a->at]};
  u->watch->done(u->watch->context, &d);
}

static double skew(const struct run *u, const struct actor *a) {
  return SKEW_NS * nj_unit(nj_draw(u->job->noise, NJ_DRAW_SKEW, (uint64_t)a->step, (uint64_t)a->rank, (uint64_t)a->at));
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
  if (++m->there < c->n) return;
  double begin = m->start[0], noise = nj_normal(nj_draw(job->noise, NJ_DRAW_TRANSFER, (uint64_t)id, m->number++, 0));
  for (int k = 1; k < c->n; k++) begin = fmax(begin, m->start[k]);
  double ns =
      nj_coll_ns(job, u->active, c, (enum nj_func)i->func, i->bytes, part_of_run(u, last)) * (1 + NOISE * noise);
  m->there = 0;
  for (int k = 0; k < c->n; k++) {
    struct actor *a = &u->actor[c->rank[k] * NJ_STREAMS + i->stream];
    double end = begin + ns + skew(u, a);
    tell(u, a, &job->rank[a->rank].instr[a->at], NULL, m->start[k], end, i->bytes);
    a->ready = end;
    a->blocked = false;
    a->at++;
    wake(u, (int)(a - u->actor));
  }
}

static double part_bytes(const struct run *u, const struct nj_comm *c, const struct nj_instr *i,
                         const struct nj_part *p, int me, int step) {
  if (i->expert < 0) return p->bytes;
  /* To the experts it is the receiver's share that counts, on the way back the sender's. */
  bool back = i->expert & 1, mine = p->recv != back;
  double by = nj_route(u->job, u->active, c->rank[mine ? me : p->peer], i->expert, step);
  return floor(p->bytes * by / 256) * 256;
}

/* Both sides of a message are there. Their parts end together. */
static void deliver(struct run *u, const struct nj_comm *c, struct message *x, int from, int to,
                    const struct nj_instr *i, int step) {
  const struct nj_job *job = u->job;
  int rank[2] = {c->rank[from], c->rank[to]};
  struct actor *side[2];
  for (int k = 0; k < 2; k++) side[k] = &u->actor[rank[k] * NJ_STREAMS + i->stream];
  uint64_t name = (uint64_t)side[0]->at << 20 | (uint64_t)(from * c->n + to);
  double noise = nj_normal(nj_draw(job->noise, NJ_DRAW_TRANSFER, (uint64_t)step, (uint64_t)rank[0], name));
  int share = i->parts / 2 > 1 ? i->parts / 2 : 1;
  double bytes = part_bytes(u, c, &job->rank[rank[0]].instr[side[0]->at], x->part[0], from, step);
  double ns = nj_p2p_ns(job, u->active, rank[0], rank[1], bytes, share, part_of_run(u, side[0])) * (1 + NOISE * noise);
  double end = fmax(x->start[0], x->start[1]) + ns;
  for (int k = 0; k < 2; k++) {
    struct actor *a = side[k];
    const struct nj_instr *own = &job->rank[rank[k]].instr[a->at];
    double own_end = end + skew(u, a);
    tell(u, a, own, x->part[k], x->start[k], own_end, bytes);
    a->last = fmax(a->last, own_end);
    if (--a->open > 0) continue;
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
    if (x->part[0] && x->part[1]) deliver(u, c, x, from, to, i, a->step);
  }
}

/* The end of a step: the CPU sees it and launches the next one. */
static void synchronise(struct run *u, struct actor *a) {
  if (a->ready > u->end) u->end = a->ready;
  next_step_of_cpu(u, a->rank, a->step + 1, a->ready);
  if (u->watch && u->watch->incident && u->cpu[a->rank].pause > NJ_INCIDENT_NS && a->step + 1 < u->job->steps) {
    const struct nj_cpu *cpu = &u->cpu[a->rank];
    struct nj_incident x = {a->rank, a->step + 1, "pause", cpu->paused_at, cpu->pause};
    u->watch->incident(u->watch->context, &x);
  }
}

/* One actor, until it must wait. */
static void go(struct run *u, struct actor *a) {
  const struct nj_rank *r = &u->job->rank[a->rank];
  while (!a->blocked && a->step < u->job->steps) {
    if (a->at == r->n) {
      a->at = 0;
      a->step++;
      continue;
    }
    const struct nj_instr *i = &r->instr[a->at];
    int event = a->rank * NJ_EVENTS + i->event;
    if (u->cpu[a->rank].step < a->step) return;
    if (i->stream != a->stream) {
      a->at++;
      continue;
    }
    switch (i->what) {
      case NJ_COMPUTE: compute(u, a, i); break;
      case NJ_COLL: collective(u, a, i); continue;
      case NJ_P2P: group(u, a, i); continue;
      case NJ_SYNC:
        synchronise(u, a);
        wake_rank(u, a->rank);
        break;
      case NJ_RECORD:
        u->event[event] = a->ready;
        u->event_step[event] = a->step + 1;
        wake_rank(u, a->rank);
        break;
      case NJ_WAIT:
        if (u->event_step[event] < a->step + 1) return;
        a->ready = fmax(a->ready, u->event[event]);
        break;
      default: break;
    }
    a->at++;
  }
}

static void begin_run(struct run *u) {
  const struct nj_job *job = u->job;
  size_t n = (size_t)job->world, actors = n * NJ_STREAMS;
  u->actor = calloc(actors, sizeof *u->actor);
  u->list = calloc(actors, sizeof *u->list);
  u->listed = calloc(actors, sizeof *u->listed);
  u->event = calloc(n * NJ_EVENTS, sizeof *u->event);
  u->event_step = calloc(n * NJ_EVENTS, sizeof *u->event_step);
  u->cpu = calloc(n, sizeof *u->cpu);
  u->meeting = calloc((size_t)job->n_comms, sizeof *u->meeting);
  u->message = calloc((size_t)job->n_comms, sizeof *u->message);
  if (!u->actor || !u->list || !u->listed || !u->event || !u->event_step || !u->cpu || !u->meeting || !u->message)
    nj_more(NULL, ~0ul);
  for (int k = 0; k < job->n_comms; k++) {
    const struct nj_comm *c = &job->comm[k];
    u->meeting[k].start = nj_more(NULL, (unsigned)c->n * sizeof(double));
    if (c->role != 'p' && c->role != 'e') continue;
    u->message[k] = nj_more(NULL, (size_t)c->n * (size_t)c->n * sizeof **u->message);
    memset(u->message[k], 0, (size_t)c->n * (size_t)c->n * sizeof **u->message);
  }
  for (int k = 0; u->begin && k < job->steps; k++) u->begin[k] = -1;
  for (int r = 0; r < job->world; r++) {
    u->cpu[r].issue = nj_more(NULL, (unsigned)(job->rank[r].n + 1) * sizeof(double));
    next_step_of_cpu(u, r, 0, 0);
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
  for (int r = 0; r < u->job->world; r++) free(u->cpu[r].issue);
  free(u->actor);
  free(u->list);
  free(u->listed);
  free(u->event);
  free(u->event_step);
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
    if (u.actor[i].step == job->steps) continue;
    fprintf(stderr, "ni-jobs: rank %d waits for ever in step %d at %d\n", u.actor[i].rank, u.actor[i].step,
            u.actor[i].at);
    exit(1);
  }
  end_run(&u);
  return u.end;
}
