#include "quickest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "cells.h"
#include "exporter/base/mix.h"
#include "usual_step.h"

/* An operation is long if it takes so many times as long as the quickest one of its size did until then. */
#define LONG_TIMES 5.0f

enum { ALIKE_MOST = 63 }; /* what the cell has room for */

/* What a step adds to `least`, by slot: the size with the largest share of it, and of how many operations. */
struct main_size {
  float us;
  uint32_t n;
};

static uint32_t limit_token(const struct ni_blame_op *op) {
  return op->token < NI_PLACE_TOKENS ? op->token : NI_PLACE_TOKENS - 1;
}

/* The quickest of n operations of a size took us, times n. */
static void add_least(struct ni_blame_link_cell *at, struct main_size *of, uint32_t slot, float us,
                      uint32_t n) {
  at[slot].least += us;
  if (us > of[slot].us)
    of[slot] = (struct main_size){us, n};
}

static void flush_quickest(struct ni_blame_link_cell *at, struct main_size *of, struct ni_rate_least *q,
                           size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (q[i].bytes > 0)
      add_least(at, of, q[i].slot, q[i].us_per_byte * (float)q[i].bytes, q[i].n);
    q[i].bytes = 0;
    q[i].n = 0;
  }
}

void ni_quickest_flush(struct ni_quickest *q, struct ni_blame_link_cell *at) {
  struct main_size of[NI_BLAME_SLOTS] = {{0}};
  for (uint32_t i = 0; i < q->out->n_tokens && i < NI_PLACE_TOKENS; i++) {
    struct ni_token_least *t = &q->token[i];
    if (t->n)
      add_least(at, of, t->slot, t->least * (float)t->n, t->n);
    t->n = 0;
  }
  flush_quickest(at, of, q->message, NI_BLAME_SLOTS);
  flush_quickest(at, of, q->collective, NI_BLAME_FUNCTIONS);
  for (uint32_t i = 0; i < q->out->max_slots; i++) {
    const uint32_t n = of[i].n < ALIKE_MOST ? of[i].n : ALIKE_MOST;
    if (n && (!at[i].alike || n < at[i].alike))
      at[i].alike = n & ALIKE_MOST;
  }
}

/* Whose quickest one the operation may be; NULL: it is compared with those of its size. */
static struct ni_rate_least *find_quickest(struct ni_quickest *x, const struct ni_blame_op *op) {
  const uint16_t function = x->function[op->token];
  if (x->out->token_bytes[op->token] == 0)
    return NULL;
  if (x->out->slot[op->slot].kind == NI_BLAME_COLL)
    return x->many_sizes[function] ? &x->collective[function] : NULL;
  return ni_places_is_group(x->out, op->slot) ? NULL : &x->message[op->slot];
}

static void update_quickest(struct ni_rate_least *q, uint32_t slot, float us, uint64_t bytes) {
  const float rate = us / (float)bytes;
  if (!(q->bytes > 0) || rate < q->us_per_byte)
    q->us_per_byte = rate;
  q->bytes += (double)bytes;
  q->n++;
  q->slot = slot;
}

static void update_least(struct ni_quickest *x, const struct ni_blame_op *op, float us,
                         struct ni_blame_link_cell *l) {
  struct ni_token_least *t = &x->token[limit_token(op)];
  struct ni_rate_least *q = find_quickest(x, op);
  const bool is_of_several_slots = t->n && t->slot != op->slot;
  const bool is_beyond_tokens = op->token >= NI_PLACE_TOKENS - 1;
  if (q) {
    update_quickest(q, op->slot, us, x->out->token_bytes[op->token]);
  } else if (is_of_several_slots || is_beyond_tokens) {
    l->least += us; /* messages of one size to several peers; too many sizes */
  } else {
    if (t->n++ == 0 || us < t->least)
      t->least = us;
    t->slot = op->slot;
  }
}

/*
 * A size that comes for the first time is no measure of anything: state that is gathered for a checkpoint
 * takes long, and would do so without any cause. Where hardly any size comes twice the quickest one of the
 * function says what a byte takes.
 */
static void update_longest(struct ni_quickest *x, const struct ni_blame_op *op, float us,
                           struct ni_blame_link_cell *l) {
  const struct ni_blame_rank *o = x->out;
  const uint16_t function = x->function[op->token];
  const uint64_t bytes = o->token_bytes[op->token];
  const bool by_byte = bytes && x->many_sizes[function];
  float *quickest = by_byte ? &x->function_rate[function] : &x->quickest_us[op->token];
  const float rate = by_byte ? us / (float)bytes : us;
  if (*quickest > 0 && rate >= LONG_TIMES * *quickest)
    ni_cell_add_long(l, us, (uint32_t)ni_mix(o->token_hash[op->token] + op->sn) | 1);
  if (!(*quickest > 0) || rate < *quickest)
    *quickest = rate;
}

int ni_quickest_begin(struct ni_quickest *q, const struct ni_blame_rank *o, const uint16_t *function) {
  uint32_t sizes[NI_BLAME_FUNCTIONS] = {0};
  q->out = o;
  q->function = function;
  for (uint32_t i = 0; i < o->n_tokens; i++)
    q->many_sizes[function[i]] |= ++sizes[function[i]] > NI_BLAME_MANY_SIZES;
  q->quickest_us = calloc(o->n_tokens + 1, sizeof *q->quickest_us);
  return q->quickest_us ? 0 : -ENOMEM;
}

void ni_quickest_free(struct ni_quickest *q) { free(q->quickest_us); }

void ni_quickest_count(struct ni_quickest *q, const struct ni_blame_op *op, float us,
                       struct ni_blame_link_cell *l) {
  if (q->out->slot[op->slot].kind == NI_BLAME_COLL)
    update_longest(q, op, us, l);
  update_least(q, op, us, l);
}
