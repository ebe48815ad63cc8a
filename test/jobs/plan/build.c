#include "build.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "layout.h"

/* Whole elements, and sizes that look like tensors'. */
static double whole(double bytes) { return bytes < 4096 ? bytes : floor(bytes / 4096) * 4096; }

struct nj_build nj_build_begin(struct nj_job *job, int rank, enum nj_program program) {
  struct nj_rank *r = &job->rank[rank];
  return (struct nj_build){.job = job, .r = r, .code = &r->code[program], .rank = rank};
}

static struct nj_instr *add(struct nj_build *b, enum nj_what what, enum nj_stream stream) {
  struct nj_code *c = b->code;
  if (c->n == c->cap) {
    c->cap = c->cap ? 2 * c->cap : 64;
    c->instr = nj_more(c->instr, (unsigned)c->cap * sizeof *c->instr);
  }
  c->instr[c->n] = (struct nj_instr){.what = (uint8_t)what, .stream = (uint8_t)stream, .expert = -1};
  return &c->instr[c->n++];
}

void nj_compute(struct nj_build *b, double ns, bool fixed, int expert) {
  struct nj_instr *i = add(b, NJ_COMPUTE, NJ_MAIN);
  i->ns = ns;
  i->fixed = fixed;
  i->expert = (int16_t)expert;
}

void nj_coll(struct nj_build *b, enum nj_stream stream, int comm, enum nj_func func, double bytes) {
  struct nj_instr *i = add(b, NJ_COLL, stream);
  i->comm = comm;
  i->func = (uint8_t)func;
  i->bytes = whole(bytes);
}

void nj_group(struct nj_build *b, enum nj_stream stream, int comm, int expert) {
  struct nj_instr *i = add(b, NJ_P2P, stream);
  i->comm = comm;
  i->expert = (int16_t)expert;
  i->part = b->r->n_parts;
}

static void part(struct nj_build *b, int peer, bool recv, double bytes) {
  struct nj_rank *r = b->r;
  if (r->n_parts == r->cap_parts) {
    r->cap_parts = r->cap_parts ? 2 * r->cap_parts : 32;
    r->part = nj_more(r->part, (unsigned)r->cap_parts * sizeof *r->part);
  }
  r->part[r->n_parts++] = (struct nj_part){.peer = peer, .recv = recv, .bytes = whole(bytes)};
  b->code->instr[b->code->n - 1].parts++;
}

void nj_send(struct nj_build *b, int peer, double bytes) { part(b, peer, false, bytes); }
void nj_recv(struct nj_build *b, int peer, double bytes) { part(b, peer, true, bytes); }

int nj_event(struct nj_build *b, enum nj_stream stream) {
  if (b->events == NJ_EVENTS) {
    fprintf(stderr, "ni-jobs: a step of more than %d events\n", NJ_EVENTS);
    exit(1);
  }
  add(b, NJ_RECORD, stream)->event = (uint16_t)b->events;
  return b->events++;
}

void nj_wait(struct nj_build *b, enum nj_stream waits, int event) {
  add(b, NJ_WAIT, waits)->event = (uint16_t)event;
}

void nj_join(struct nj_build *b, enum nj_stream waits, enum nj_stream stream) {
  nj_wait(b, waits, nj_event(b, stream));
}

void nj_sync(struct nj_build *b) { add(b, NJ_SYNC, NJ_MAIN); }
