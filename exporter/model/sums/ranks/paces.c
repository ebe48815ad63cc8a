#include "paces.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "quantile.h"

int ni_paces_begin(struct ni_paces *x, const struct ni_blame_rank *out,
                   const struct ni_blame_function *functions, const uint16_t *function) {
  x->out = out;
  x->functions = functions;
  x->function = function;
  x->last_token = NI_BLAME_NONE;
  x->of_token = calloc(out->n_tokens + 1, sizeof *x->of_token);
  return x->of_token ? 0 : -ENOMEM;
}

void ni_paces_free(struct ni_paces *x) { free(x->of_token); }

static int32_t find_size_class(uint64_t bytes) {
  return (int32_t)floorf(NI_PACE_CLASSES * log2f((float)bytes));
}

static uint16_t find_or_add_pace(struct ni_paces *x, const struct ni_blame_op *op) {
  const uint64_t bytes = x->out->token_bytes[op->token];
  if (bytes == 0)
    return UINT16_MAX;
  const uint16_t function = x->function[op->token];
  const int32_t size = find_size_class(bytes);
  uint32_t i = 0;
  while (i < x->n && (x->pace[i].function != function || x->pace[i].size != size))
    i++;
  if (i == NI_PACES)
    return UINT16_MAX;
  if (i == x->n)
    x->pace[x->n++] = (struct ni_pace_gaps){
        .function = function, .slot = op->slot, .size = size, .inner.every = 1, .first.every = 1};
  return (uint16_t)(i + 1);
}

static void keep_every_second(struct ni_gap_sample *x) {
  for (uint32_t i = 0; i < NI_PACE_SAMPLES / 2; i++)
    x->us[i] = x->us[2 * i];
  x->kept = NI_PACE_SAMPLES / 2;
  x->every *= 2;
}

static void add_gap(struct ni_gap_sample *x, int64_t ns) {
  const uint64_t at = x->seen++;
  if (at % x->every)
    return;
  if (x->kept == NI_PACE_SAMPLES)
    keep_every_second(x);
  if (at % x->every == 0)
    x->us[x->kept++] = ns > 0 ? (float)ns / 1e3f : 0;
}

static void count_operation(struct ni_paces *x, const struct ni_blame_op *op) {
  uint16_t *of = &x->of_token[op->token];
  if (!*of)
    *of = find_or_add_pace(x, op);
  if (*of == UINT16_MAX)
    return;
  struct ni_pace_gaps *p = &x->pace[*of - 1];
  /* nothing of the rank lies between them, not even what the log misses */
  const bool are_neighbours = op->token == x->last_token && op->sn == x->last_sn + 1;
  p->ops++;
  if (are_neighbours)
    add_gap(&p->inner, op->start_ns - x->last_end_ns);
  else if (op->token != x->last_token && x->last_end_ns)
    add_gap(&p->first, op->start_ns - x->last_end_ns);
}

void ni_paces_count(struct ni_paces *x, const struct ni_blame_op *op, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const bool is_message = x->out->slot[op[i].slot].kind != NI_BLAME_COLL;
    if (!is_message)
      count_operation(x, &op[i]);
    x->last_token = is_message ? NI_BLAME_NONE : op[i].token;
    x->last_sn = op[i].sn;
    x->last_end_ns = op[i].end_ns;
  }
}

/* Pauses cut off. */
static float measure_mean(struct ni_gap_sample *x) {
  const float most = NI_PACE_PAUSE * ni_blame_quantile(x->us, x->kept, 0.5);
  double sum = 0;
  for (uint32_t i = 0; i < x->kept; i++)
    sum += fminf(x->us[i], most);
  return (float)(sum / x->kept);
}

static struct ni_blame_pace describe_pace(const struct ni_paces *x, const struct ni_blame *b,
                                          struct ni_pace_gaps *p) {
  const uint32_t comm = x->out->slot[p->slot].comm;
  const bool has_first = p->first.seen >= NI_PACE_LEAST;
  return (struct ni_blame_pace){
      .function = ni_blame_hash_function(x->functions[p->function].name, b->s->comm[comm].n_ranks),
      .comm = comm,
      .size = p->size,
      .ops = p->ops,
      .us = measure_mean(&p->inner),
      .firsts = has_first ? p->first.seen : 0,
      .first_us = has_first ? ni_blame_quantile(p->first.us, p->first.kept, NI_PACE_FIRST) : 0};
}

int ni_paces_end(struct ni_paces *x, const struct ni_blame *b, struct ni_blame_rank *out) {
  if (!(out->pace = malloc((x->n + 1) * sizeof *out->pace)))
    return -ENOMEM;
  for (uint32_t i = 0; i < x->n; i++)
    if (x->pace[i].inner.seen >= NI_PACE_LEAST)
      out->pace[out->n_paces++] = describe_pace(x, b, &x->pace[i]);
  return 0;
}
