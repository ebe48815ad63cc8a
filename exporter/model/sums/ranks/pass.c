#include "pass.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/heap.h"
#include "cells.h"
#include "paces.h"
#include "places.h"
#include "quantile.h"
#include "quickest.h"
#include "sizes.h"
#include "work_names.h"

/*
 * Where records are missing in so many spells, which are more than so many steps apart, and before one
 * operation in so many, a rank's gaps say nothing of it.
 */
enum { MISS_SPELLS = 4, MISSES_APART = 3, MISSES_ONE_IN = 1000 };
#define CYCLE_NEW 0.05f /* how far one more moves the baseline of cycles */
#define OWN_PART 0.6f   /* of the time that a rank was idle for longer */

/*
 * Of a bin so many times from call to call are kept, the first ones. Calls of one group come at once: what
 * lies between these says nothing about the CPU.
 */
enum { CALLS_OF_BIN = 128, CALLS_LEAST = 4, CALL_LEAST_NS = 2000 };
#define CALL_QUANTILE 0.25

struct rank_pass {
  struct ni_blame *b;
  struct ni_blame_rank *out;
  struct ni_blame_op *op; /* the chunk */
  size_t n;
  struct ni_places places;
  struct ni_paces paces;
  struct ni_quickest quickest;
  const struct ni_blame_function *function; /* the stream's */
  uint32_t n_functions;
  uint64_t function_ops[NI_BLAME_FUNCTIONS];
  uint64_t *token_ops;
  struct ni_step_mark mark;
  uint32_t step, bin, bins_max;
  uint32_t first_mark; /* of marks that number steps: that of its step 0 */
  uint32_t in_step;    /* operations since it began */
  uint32_t turns;      /* periods of the operations: steps, unless marks say what these are */
  int64_t sampled_ns;  /* start of the last operation in the sample */
  /* idle time before extra operations (places.h) since the last other one; where the first of them began */
  float extra_us;
  int64_t extra_ns;
  int64_t called_ns[NI_BLAME_SLOTS]; /* the last call; 0: none yet */
  float call_us[CALLS_OF_BIN];       /* from call to call, of the bin */
  uint32_t n_calls;
  uint64_t misses;      /* times that records are missing (places.h), */
  uint32_t miss_spells; /* and spells of them, */
  uint32_t missed_step; /* the last of which is in this step */
  size_t cap_sample, cap_cells, cap_incidents;
};

static void flush_quickest(struct rank_pass *x) {
  if (x->out->link_cell) /* else before the first bin */
    ni_quickest_flush(&x->quickest, &x->out->link_cell[(size_t)x->bin * x->out->max_slots]);
}

static void flush_calls(struct rank_pass *x) {
  if (x->n_calls >= CALLS_LEAST && x->bin < x->out->n_bins)
    x->out->cell[x->bin].call_us = ni_blame_quantile(x->call_us, x->n_calls, CALL_QUANTILE);
  x->n_calls = 0;
}

static int move_to_bin(struct rank_pass *x) {
  struct ni_blame_rank *o = x->out;
  flush_quickest(x);
  if (x->step / o->bin_steps != x->bin)
    flush_calls(x);
  while (x->step / o->bin_steps >= x->bins_max)
    ni_blame_coarsen(o);
  x->bin = x->step / o->bin_steps;
  if (x->bin < o->n_bins)
    return 0;
  if (x->bin >= x->cap_cells) {
    size_t was = x->cap_cells, cap = was, links = was * o->max_slots, cap_links = links;
    if (!ni_array_more(&o->cell, &cap, x->bin + 1, sizeof *o->cell) ||
        !ni_array_exact(&o->link_cell, &cap_links, cap * o->max_slots, sizeof *o->link_cell))
      return -ENOMEM;
    memset(o->cell + was, 0, (cap - was) * sizeof *o->cell);
    memset(o->link_cell + links, 0, (cap_links - links) * sizeof *o->link_cell);
    x->cap_cells = cap;
  }
  o->n_bins = x->bin + 1;
  return 0;
}

/* Of the longest ones, a heap with the shortest of them first. */
#define IS_SHORTER(a, b) ((a).us < (b).us)

static int add_incident(struct rank_pass *x, int64_t end_ns, float us, bool is_pause, bool is_own) {
  struct ni_blame_rank *o = x->out;
  const struct ni_blame_incident i = {end_ns, us, x->step, x->in_step, is_pause, is_own};
  o->incidents++;
  if (o->n_incidents < NI_BLAME_INCIDENTS) {
    if (!ni_array_room(o->incident, o->n_incidents, x->cap_incidents))
      return -ENOMEM;
    o->incident[o->n_incidents++] = i;
    ni_heap_up(o->incident, o->n_incidents - 1, IS_SHORTER);
  } else if (us > o->incident[0].us) {
    o->incident[0] = i;
    ni_heap_down(o->incident, o->n_incidents, 0, IS_SHORTER);
  }
  return 0;
}

/*
 * Did the rank begin the operation later than the baseline after the one before had begun, by most of
 * `longer` us? Where operations overlap with its computing, a rank that waits in them for a shorter time is
 * idle for longer, and begins the next one as always: that is no time of its own.
 */
static bool delayed_operations(struct ni_place_key *k, const struct ni_place_gap *g, float longer) {
  if (g->cycle < 0)
    return false;
  const float us = (float)g->cycle / 1e3f, baseline = k->cycle_us;
  k->cycle_us = baseline > 0 ? baseline + (fminf(us, 2 * baseline) - baseline) * CYCLE_NEW : us;
  return us - baseline >= OWN_PART * longer && baseline > 0;
}

/*
 * The rank computes while operations of the slot run, as far as is known: of a rank with one communicator
 * nothing tells. What most operations are in is waited for, as experts' messages, though gradients begin
 * meanwhile. How long it is idle behind them depends on how long it waited in them then.
 */
static bool computes_beside(const struct rank_pass *x, uint32_t slot) {
  const struct ni_blame_rank *o = x->out;
  return o->one_comm || (o->slot[slot].overlapped && !x->places.inner[x->places.group[slot]]);
}

/*
 * What a rank does before extra operations is not usual, however often it comes: a checkpoint before its
 * barrier, an evaluation before its result. It is a pause, less what the next operation begins earlier by:
 * the optimizer before a loss that is logged now and then comes in each step.
 */
static int count_extra(struct rank_pass *x, struct ni_blame_cell *c, const struct ni_place_gap *g,
                       const struct ni_baseline *next) {
  const float own = (float)g->own / 1e3f, longer = x->extra_us - fmaxf(0, next->us - own);
  const int64_t ns = x->extra_ns;
  x->extra_us = 0;
  if (!(longer > NI_BLAME_BURST_US) || !(longer > NI_BLAME_FAR * next->width))
    return 0;
  c->burst += longer;
  return add_incident(x, ns, longer, true, true);
}

/* Own time of an operation goes to the bin. */
static int count_own_time(struct rank_pass *x, struct ni_blame_cell *c, const struct ni_place_gap *g,
                          const struct ni_blame_op *op) {
  struct ni_place_key *k = &x->places.key[g->key];
  float own = (float)g->own / 1e3f, idle = (float)g->idle / 1e3f, baseline = k->baseline.us;
  k->n++;
  x->out->idle_us += idle;
  c->idle += idle;
  if (op->launched_late) {
    x->out->late_idle_us += idle;
    c->late_idle += idle;
  }
  if (x->places.inner[ni_place_slot(k)])
    x->out->own_us += own;
  if (g->extra) {
    x->extra_ns = x->extra_us > 0 ? x->extra_ns : op->start_ns;
    x->extra_us += idle;
    return 0;
  }
  if (isnan(baseline))
    return 0;
  if (x->extra_us > 0) {
    int e = count_extra(x, c, g, &k->baseline);
    if (e < 0)
      return e;
  }
  const float longer = idle - baseline;
  const bool is_own = delayed_operations(k, g, longer);
  const bool is_long = longer > NI_BLAME_BURST_US, is_gap = is_long && idle > 1.5f * baseline;
  if (is_gap && (is_own || !computes_beside(x, op->slot))) {
    c->burst += longer;
    return add_incident(x, op->start_ns, longer, true, is_own);
  }
  if (is_own && is_long && longer > NI_BLAME_FAR * k->baseline.width) {
    int e = add_incident(x, op->start_ns, longer, false, true);
    if (e < 0)
      return e;
  }
  const bool is_pause = own > fmaxf(baseline + NI_BLAME_BURST_US, 1.5f * baseline);
  if (!ni_place_is_compared(&x->places, k) || is_pause)
    return 0;
  c->places++;
  c->dev += own - baseline;
  c->baseline += baseline;
  k->own += own;
  k->steady++;
  return 0;
}

static int append_sample(struct rank_pass *x, const struct ni_blame_op *op, const struct ni_place_gap *g) {
  struct ni_blame_rank *o = x->out;
  if (!ni_array_room(o->sample, o->n_sample, x->cap_sample))
    return -ENOMEM;
  if (o->n_sample == 0)
    o->sample_ns = x->sampled_ns = op->start_ns;
  struct ni_blame_sampled *s = &o->sample[o->n_sample++];
  size_t back = g->main.at ? o->n_sample - g->main.at : 0;
  float gap = (float)(op->start_ns - g->main.ns) / 1e3f,
        over = g->key == NI_BLAME_NONE ? 0 : gap - x->places.key[g->key].baseline.us;
  *s = (struct ni_blame_sampled){.after_us = (float)(op->start_ns - x->sampled_ns) / 1e3f,
                                 .exec_us = (float)(op->end_ns - op->start_ns) / 1e3f,
                                 .sn = (uint32_t)op->sn,
                                 .step = x->step,
                                 .token = (uint16_t)op->token,
                                 .slot = op->slot & 63,
                                 .launched_late = op->launched_late};
  x->sampled_ns = op->start_ns;
  if (back == 0 || back > UINT16_MAX)
    return 0;
  s->main = (uint16_t)back;
  s->gap_us = gap;
  s->pause_us = over > NI_BLAME_BURST_US && over > (gap - over) / 2 ? over : 0;
  return 0;
}

/* When the last operation in line has ended, of those before. */
static int64_t find_last_end_in_line(const struct rank_pass *x) {
  int64_t last = 0;
  for (uint32_t i = 0; i < x->out->n_slots; i++) {
    const int64_t end = x->places.end[x->places.group[i]][0].ns;
    if (!x->out->slot[i].overlapped && end > last)
      last = end;
  }
  return last;
}

static void count_function(struct rank_pass *x, const struct ni_blame_op *op) {
  x->function_ops[x->places.function[op->token]]++;
  x->token_ops[op->token]++;
}

static void count_transfer(struct rank_pass *x, const struct ni_blame_op *op, float us) {
  struct ni_blame_rank *o = x->out;
  struct ni_blame_slot *s = &o->slot[op->slot];
  struct ni_blame_link_cell *l = &o->link_cell[(size_t)x->bin * o->max_slots + op->slot];
  s->ops++;
  s->exec_us += us;
  s->bytes += o->token_bytes[op->token];
  l->n++;
  l->exec += us;
  ni_quickest_count(&x->quickest, op, us, l);
  o->ops++;
  o->late_ops += op->launched_late;
  count_function(x, op);
}

static void count_call(struct rank_pass *x, const struct ni_blame_op *op) {
  if (op->called_ns == NI_NO_START)
    return;
  int64_t *last = &x->called_ns[op->slot];
  const int64_t since = op->called_ns - *last;
  if (*last && since >= CALL_LEAST_NS && x->n_calls < CALLS_OF_BIN)
    x->call_us[x->n_calls++] = (float)since / 1e3f;
  *last = op->called_ns;
}

/* Where a host's clock is set back records come in another order for a while, and some seem to be missing. */
static void count_miss(struct rank_pass *x, const struct ni_place_gap *g) {
  if (!g->misses)
    return;
  x->miss_spells += x->misses++ == 0 || x->step > x->missed_step + MISSES_APART;
  x->missed_step = x->step;
}

static int count_operation(struct rank_pass *x, struct ni_blame_op *op) {
  struct ni_blame_rank *o = x->out;
  struct ni_blame_slot *s = &o->slot[op->slot];
  const float us = (float)(op->end_ns - op->start_ns) / 1e3f;
  const int64_t busy = find_last_end_in_line(x);
  /*
   * The k-th Send of a rank meets the k-th Recv of its peer; records' own numbers count all messages of a
   * communicator.
   */
  const bool coll = s->kind == NI_BLAME_COLL;
  if (!coll && !op->paired)
    op->sn = x->places.messages[op->slot];
  s->paired = op->paired;
  ni_anchor_update(s, coll ? o->token_hash[op->token] | 1 : NI_BLAME_MESSAGE, op->sn, x->step, x->in_step);
  x->in_step++;
  const struct ni_place_gap g = ni_places_measure_gap(&x->places, op);
  count_miss(x, &g);
  struct ni_blame_cell *c = &o->cell[x->bin];
  if (!c->start_ns)
    c->start_ns = op->start_ns;
  count_transfer(x, op, us);
  count_call(x, op);
  if (s->overlapped)
    c->hidden += us;
  else if (op->end_ns > busy)
    c->exposed += op->start_ns >= busy ? us : (float)(op->end_ns - busy) / 1e3f;
  int e = g.own >= 0 ? count_own_time(x, c, &g, op) : 0;
  const bool is_sampled = x->step / NI_BLAME_BLOCK % x->b->sample_every == 0 && op->token <= UINT16_MAX;
  if (e == 0 && is_sampled)
    e = append_sample(x, op, &g);
  ni_places_count(&x->places, op, is_sampled ? (uint32_t)o->n_sample : 0);
  return e;
}

/*
 * A log that begins later than others has none of the first steps: its own ones are counted from where it
 * begins, as what it does is divided by their number. Their numbers in the job come from the operations
 * (work/number.h).
 */
static void skip_marks_before_log(struct rank_pass *x) {
  const struct ni_step_marks *m = &x->b->r->marks;
  while (x->first_mark + 1 < m->n && m->at[x->first_mark + 1] <= x->op[0].start_ns)
    x->first_mark++;
}

static uint32_t mark_of_step(const struct rank_pass *x, uint32_t step) { return x->first_mark + step; }

/* The operation ended a period of the operations: a step, unless marks say what these are. */
static int begin_next_step(struct rank_pass *x, int64_t now) {
  const struct ni_step_marks *m = &x->b->r->marks; /* a step begins with the first period behind its mark */
  const uint32_t step = x->step;
  x->turns++;
  if (!m->n)
    x->step++;
  while (mark_of_step(x, x->step + 1) < m->n && m->at[mark_of_step(x, x->step + 1)] <= now)
    x->step++;
  if (x->step > step)
    x->in_step = 0;
  ni_places_next_step(&x->places);
  return move_to_bin(x);
}

static int count_chunk(struct rank_pass *x) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    struct ni_blame_op *op = &x->op[i];
    const bool ends = ni_steps_advance(&x->mark, op);
    const bool ended_before = ends && !x->mark.n; /* by a gap before the operation */
    if (!ended_before)
      e = count_operation(x, op);
    if (e == 0 && ends)
      e = begin_next_step(x, ended_before ? op->start_ns : op->end_ns);
    if (e == 0 && ended_before)
      e = count_operation(x, op);
    x->out->last_ns = op->end_ns;
  }
  return e;
}

static int read_chunk(struct rank_pass *x, struct ni_blame_stream *s) {
  int e = 1;
  for (x->n = 0; x->n < NI_PASS_CHUNK && (e = ni_blame_next(s, &x->op[x->n])) > 0; x->n++) {}
  ni_paces_count(&x->paces, x->op, x->n);
  return e < 0 ? e : 0;
}

/* The function on a communicator that has most of its collectives. */
static uint32_t find_main_function(const struct rank_pass *x) {
  uint32_t main = NI_BLAME_NONE;
  for (uint32_t i = 0; i < x->n_functions; i++) {
    const bool is_collective = x->function[i].slot != NI_BLAME_NONE;
    if (is_collective && (main == NI_BLAME_NONE || x->function_ops[i] > x->function_ops[main]))
      main = i;
  }
  return main;
}

/*
 * Sizes that do not come in every other step, and differ by half, or nobody could say that steps do. Where
 * there are no steps to speak against it less will do: a tenth of the operations, by a fourth. What the order
 * of operations takes for steps does not speak: requests come in one order as well.
 */
#define SELDOM_OF_STEPS 0.5
#define SIZES_DIFFER 1.5
#define SELDOM_OF_OPS 0.1
#define SIZES_DIFFER_NO_STEPS 1.25
static int check_sizes_differ(struct rank_pass *x) {
  struct ni_blame_rank *o = x->out;
  const uint32_t main = find_main_function(x);
  if (main == NI_BLAME_NONE || !x->quickest.many_sizes[main])
    return 0;
  struct ni_size_bounds bounds = {SELDOM_OF_STEPS * o->n_steps, SIZES_DIFFER};
  if (!o->n_steps || o->mark.by_order)
    bounds = (struct ni_size_bounds){SELDOM_OF_OPS * (double)x->function_ops[main], SIZES_DIFFER_NO_STEPS};
  return ni_sizes_differ(o, x->places.function, main, x->token_ops, bounds, &o->sizes_differ);
}

static int finish_rank(struct rank_pass *x) {
  struct ni_blame_rank *o = x->out;
  o->n_steps = x->step + 1;
  o->overlap_us = (float)x->places.overlap_ns / 1e3f;
  /*
   * What an operation ends has as many steps as there were of it, as `show --pattern` counts: the rest is the
   * begin of one that never ended, in a job that hung. A gap begins a step.
   */
  const bool is_ended = o->mark.found && o->mark.n && x->step > 0 && !x->b->r->marks.n;
  const bool is_rest = is_ended || (uint64_t)x->in_step * 2 * o->n_steps < o->ops;
  o->whole_steps = o->n_steps - is_rest;
  const struct ni_work_seen seen = {x->b, &x->places, x->function, x->n_functions, x->function_ops, x->turns};
  int e = ni_work_names(&seen);
  if (e == 0)
    e = check_sizes_differ(x);
  if (e < 0)
    return e;
  const bool is_whole = !x->b->messages_left_out && !x->b->collectives_left_out;
  o->gaps_unknown = is_whole && x->miss_spells >= MISS_SPELLS && x->misses * MISSES_ONE_IN > o->ops;
  o->judged = o->n_places > 0 && o->n_steps >= 5;
  if (!o->judged)
    o->why_not = "nothing lies between its operations";
  return 0;
}

/* By the first chunk. 0 or -ENOMEM; mark.found: there are steps. */
static int find_mark(struct rank_pass *x) {
  struct ni_blame_rank *o = x->out;
  uint32_t wanted = 0;
  if (o->ops_before)
    wanted = (uint32_t)(o->usual_steps * (double)x->n / (double)o->ops_before + 0.5);
  for (size_t i = 0; i < x->n; i++)
    o->slot[x->op[i].slot].ops++;
  const int e = ni_steps_find(x->b, o, x->op, x->n, wanted, &x->mark);
  for (uint32_t i = 0; i < o->n_slots; i++)
    o->slot[i].ops = 0;
  if (e < 0)
    return e;
  if (!x->mark.found) {
    o->why_not = "no steps were found in its operations";
    return 0;
  }
  o->mark = x->mark;
  o->mark_slot = x->mark.slot;
  o->mark_func = x->mark.n ? o->token_func[x->mark.token] : NULL;
  return 0;
}

/* Without steps: its paces, and what it does. */
static int read_without_steps(struct rank_pass *x, struct ni_blame_stream *s) {
  int e = 0;
  for (bool is_last = false; e == 0 && !is_last;) {
    for (size_t i = 0; i < x->n; i++)
      count_function(x, &x->op[i]);
    is_last = x->n < NI_PASS_CHUNK;
    if (!is_last)
      e = read_chunk(x, s);
  }
  return e == 0 ? check_sizes_differ(x) : e;
}

static int run_pass(struct rank_pass *x, struct ni_blame_stream *s) {
  struct ni_blame_rank *o = x->out;
  x->n_functions = ni_blame_functions(s, &x->function, &x->places.function);
  int e = ni_paces_begin(&x->paces, o, x->function, x->places.function);
  if (e == 0)
    e = read_chunk(x, s);
  if (e < 0 || x->n == 0)
    return e;
  x->token_ops = calloc(o->n_tokens + 1, sizeof *x->token_ops);
  e = ni_quickest_begin(&x->quickest, o, x->places.function);
  if (e < 0 || !x->token_ops)
    return -ENOMEM;
  o->first_ns = x->op[0].start_ns;
  o->max_slots = o->n_slots;
  e = find_mark(x);
  if (e == 0 && !x->mark.found)
    return read_without_steps(x, s);
  if (e < 0)
    return e;
  if ((e = ni_places_find(&x->places, x->op, x->n, &x->mark)) < 0)
    return e;
  o->bin_steps = 1;
  skip_marks_before_log(x);
  e = move_to_bin(x);
  while (e == 0 && x->n) {
    const bool is_last = x->n < NI_PASS_CHUNK;
    e = count_chunk(x);
    if (is_last)
      break;
    if (e == 0)
      e = read_chunk(x, s);
  }
  if (e < 0)
    return e;
  flush_quickest(x);
  flush_calls(x);
  ni_array_fit(o->sample, o->n_sample, x->cap_sample);
  return finish_rank(x);
}

/* So many bins that those of all ranks have the room of NI_BLAME_CELLS. */
static uint32_t limit_bins(const struct ni_blame *b, const struct ni_blame_rank *o) {
  const size_t share = NI_BLAME_CELLS / b->n_ranks / (sizeof *o->cell + 8 * sizeof *o->link_cell);
  if (share < NI_BLAME_BINS_MIN)
    return NI_BLAME_BINS_MIN;
  return share > NI_BLAME_BINS_MAX ? NI_BLAME_BINS_MAX : (uint32_t)share;
}

int ni_blame_pass(struct ni_blame *b, uint32_t process, const struct ni_blame_piece *item, size_t n) {
  struct ni_blame_rank *o = &b->rank[process];
  struct ni_blame_stream *s = NULL;
  struct rank_pass *x = calloc(1, sizeof *x);
  int e = x ? 0 : -ENOMEM;
  if (e == 0) {
    x->b = b;
    x->out = x->places.out = o;
    x->bins_max = limit_bins(b, o);
    x->op = malloc(NI_PASS_CHUNK * sizeof *x->op);
    e = x->op ? ni_blame_open(&s, b->r, item, n, o) : -ENOMEM;
  }
  if (e == 0)
    e = run_pass(x, s);
  if (e == 0)
    e = ni_paces_end(&x->paces, b, o);
  if (e == 0 && o->no_start) {
    o->judged = false;
    o->why_not = "its log does not say when operations started";
  }
  ni_blame_close(s);
  if (x) {
    ni_places_free(&x->places);
    ni_paces_free(&x->paces);
    free(x->op);
    free(x->token_ops);
    ni_quickest_free(&x->quickest);
  }
  free(x);
  return e;
}
