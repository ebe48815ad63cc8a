#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cut.h"
#include "datatypes.h"
#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "variants.h"

enum { SAMPLED_PLACES = 1 << 19, SAMPLES_LEAST = 8 };

static const struct ni_cut_lane *cut_lane_of(const struct ni_lane_reader *x, const struct ni_lane *l) {
  return &x->cut.lane[l - x->lane];
}

/* ---- places ---- */

struct filler {
  struct ni_lane_reader *x;
  struct ni_pattern_place *place;
  uint32_t n_places, main_lane;
  uint64_t steps;
  uint64_t *ns; /* [place][samples]: durations */
  uint32_t samples, *n_ns;
  uint64_t *beside_ns, *exec_ns;
  uint64_t *shared_ns; /* of each operation: time in which those of other communicators were in flight */
  size_t cap_shared;
};

static void fill_place(const struct ni_lane_reader *x, struct ni_pattern_place *p, const struct ni_lane *l,
                       const struct ni_blame_op *op) {
  const uint64_t bytes = x->cut.mine.token_bytes[op->token];
  if (!l->filled) {
    const char *func = x->cut.mine.token_func[op->token];
    *p = (struct ni_pattern_place){.func = func, .bytes = bytes, .bytes_most = bytes, .mix = op->mix};
    p->by_call = op->timing == NI_TIMING_COLLECTIVE_CPU;
    p->datatype = ni_datatype_of(x->of->types, x->of->r, cut_lane_of(x, l)->comm, func, bytes);
    return;
  }
  if (op->mix != p->mix)
    p->mixes = true;
  if (bytes < p->bytes)
    p->bytes = bytes;
  if (bytes > p->bytes_most)
    p->bytes_most = bytes;
}

static int by_start(const void *a, const void *b, void *ops) {
  const struct ni_blame_op *op = ops, *x = &op[*(const uint32_t *)a], *y = &op[*(const uint32_t *)b];
  return x->start_ns != y->start_ns ? (x->start_ns < y->start_ns ? -1 : 1) : ni_by_u32(a, b);
}
static int by_end(const void *a, const void *b, void *ops) {
  const struct ni_blame_op *op = ops, *x = &op[*(const uint32_t *)a], *y = &op[*(const uint32_t *)b];
  return x->end_ns != y->end_ns ? (x->end_ns < y->end_ns ? -1 : 1) : ni_by_u32(a, b);
}

/* The lane of an operation; NULL: it has none. For steps that were hashed. */
static const struct ni_lane *find_known_lane(const struct ni_lane_reader *x, const struct ni_blame_op *op) {
  const uint8_t k = op->slot < NI_CUT_SLOTS ? x->cut.lane_of[op->slot] : 0;
  return k ? &x->lane[k - 1] : NULL;
}

/*
 * Of each operation of the step the time in which operations of other communicators were in flight. One sweep
 * over begins and ends: shared_ns grows while those of two communicators or more are. `in_flight` of lanes of
 * one communicator is that of the first of them.
 */
static void sweep_overlaps(struct filler *f, const uint32_t *starts, const uint32_t *ends) {
  const struct ni_lane_reader *x = f->x;
  uint32_t in_flight[NI_PATTERN_LANES] = {0}, first[NI_PATTERN_LANES], busy = 0;
  uint64_t shared_ns = 0;
  int64_t last_ns = INT64_MIN;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++)
    for (first[i] = 0; x->cut.lane[first[i]].comm != x->cut.lane[i].comm;)
      first[i]++;
  for (size_t begun = 0, ended = 0; ended < x->cut.now.n;) {
    const bool begins =
        begun < x->cut.now.n && x->cut.now.op[starts[begun]].start_ns <= x->cut.now.op[ends[ended]].end_ns;
    const uint32_t i = begins ? starts[begun++] : ends[ended++];
    const int64_t at = begins ? x->cut.now.op[i].start_ns : x->cut.now.op[i].end_ns;
    const struct ni_lane *l = find_known_lane(x, &x->cut.now.op[i]);
    if (busy > 1)
      shared_ns += (uint64_t)(at - last_ns);
    last_ns = at;
    f->shared_ns[i] = begins ? shared_ns : shared_ns - f->shared_ns[i];
    if (!l)
      continue;
    uint32_t *k = &in_flight[first[l - x->lane]];
    if (begins)
      busy += (*k)++ == 0;
    else
      busy -= --*k == 0;
  }
}

static int measure_overlap(struct filler *f) {
  const struct ni_lane_reader *x = f->x;
  const size_t n = x->cut.now.n;
  uint32_t *starts = ni_order((uint32_t)n, by_start, x->cut.now.op),
           *ends = ni_order((uint32_t)n, by_end, x->cut.now.op);
  const bool has_room =
      n <= f->cap_shared || ni_array_more(&f->shared_ns, &f->cap_shared, n, sizeof *f->shared_ns);
  const int e = starts && ends && has_room ? 0 : -ENOMEM;
  if (e == 0)
    sweep_overlaps(f, starts, ends);
  free(starts);
  free(ends);
  return e;
}

/* Figures of an operation of a sampled step. */
static void sample_op(struct filler *f, uint32_t place, const struct ni_blame_op *op, uint64_t shared_ns) {
  const uint64_t ns = (uint64_t)(op->end_ns - op->start_ns);
  if (f->n_ns[place] < f->samples)
    f->ns[(size_t)place * f->samples + f->n_ns[place]++] = ns;
  f->exec_ns[place] += ns;
  f->beside_ns[place] += shared_ns < ns ? shared_ns : ns;
}

/*
 * main_start: start of the first operation of the main lane. before: how many operations of that lane there
 * were so far.
 */
static void measure_to_main(struct ni_pattern_place *p, const struct ni_blame_op *op, int64_t main_start,
                            uint64_t before) {
  p->start_ns += op->start_ns - main_start;
  p->before += before;
  p->before2 += before * before;
  p->samples++;
}

/*
 * Fills in the step at hand: the places of its lanes, and figures if it is sampled. exact: it is exactly the
 * program.
 */
static int fill_step(struct filler *f, bool sampled, bool *exact) {
  struct ni_lane_reader *x = f->x;
  const struct ni_lane *main = &x->lane[f->main_lane];
  uint32_t at[NI_PATTERN_LANES] = {0};
  int64_t main_start = 0;
  bool fits[NI_PATTERN_LANES];
  ni_variants_hash(x);
  *exact = true;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++) {
    fits[i] = ni_variants_fit(&x->lane[i]);
    const bool is_foreign = ni_variants_are_rare(&x->lane[i], f->steps) && x->lane[i].ops;
    *exact &= x->lane[i].regular ? fits[i] : !is_foreign;
  }
  int e = sampled ? measure_overlap(f) : 0;
  for (size_t i = 0; e == 0 && i < x->cut.now.n && !main_start; i++)
    if (find_known_lane(x, &x->cut.now.op[i]) == main)
      main_start = x->cut.now.op[i].start_ns;
  for (size_t i = 0; e == 0 && i < x->cut.now.n; i++) {
    const struct ni_blame_op *op = &x->cut.now.op[i];
    const struct ni_lane *l = find_known_lane(x, op);
    if (!l || !fits[l - x->lane])
      continue;
    const uint32_t place = l->first + at[l - x->lane]++;
    fill_place(x, &f->place[place], l, op);
    if (!sampled)
      continue;
    sample_op(f, place, op, f->shared_ns[i]);
    if (fits[f->main_lane])
      measure_to_main(&f->place[place], op, main_start, at[f->main_lane] - (l == main));
  }
  for (uint32_t i = 0; i < x->cut.n_lanes; i++)
    x->lane[i].filled |= fits[i];
  return e;
}

static NI_ORDER_OF(by_ns, uint64_t);

static void sum_up(struct filler *f) {
  for (uint32_t i = 0; i < f->n_places; i++) {
    struct ni_pattern_place *p = &f->place[i];
    uint64_t *ns = &f->ns[(size_t)i * f->samples];
    if (!f->n_ns[i])
      continue;
    qsort(ns, f->n_ns[i], sizeof *ns, by_ns);
    p->median_ns = ns[f->n_ns[i] / 2];
    p->beside_permille =
        f->exec_ns[i] ? (uint64_t)((double)f->beside_ns[i] * 1000 / (double)f->exec_ns[i]) : 0;
    p->ranks = 1;
  }
}

static int fill_all_steps(struct filler *f, uint64_t *exact_steps) {
  struct ni_lane_reader *x = f->x;
  const uint64_t stride = f->steps / f->samples + 1;
  int e = ni_cut_begin(&x->cut);
  bool exact;
  for (uint64_t step = 0; e == 0 && (e = ni_cut_next(&x->cut)) > 0; step++) {
    e = fill_step(f, step % stride == stride / 2, &exact);
    *exact_steps += exact;
  }
  return e;
}

/* ---- the program ---- */

uint64_t ni_place_hash(const struct ni_pattern_place *p, bool sizes_vary) {
  uint64_t hash = ni_mix(sizes_vary ? UINT64_MAX : p->bytes + 1);
  for (const char *c = p->func; *c; c++)
    hash = ni_mix(hash + (unsigned char)*c);
  return hash;
}

/*
 * The place of a ring from which it is the least: equal rings are equal sequences from there on. Two
 * candidates; each comparison moves one of them on.
 */
static uint32_t find_ring_begin(const uint64_t *hash, uint32_t n) {
  uint32_t i = 0, j = 1, k = 0;
  while (i < n && j < n && k < n) {
    const uint64_t a = hash[(i + k) % n], b = hash[(j + k) % n];
    if (a == b) {
      k++;
      continue;
    }
    if (a > b)
      i += k + 1;
    else
      j += k + 1;
    if (i == j)
      j++;
    k = 0;
  }
  return i < j ? i : j;
}

static int hash_ring(struct ni_pattern_lane *l, const struct ni_pattern_place *place) {
  uint64_t *hash = malloc((l->n + 1) * sizeof *hash);
  if (!hash)
    return -ENOMEM;
  for (uint32_t i = 0; i < l->n; i++)
    hash[i] = ni_place_hash(&place[l->first + i], l->sizes_vary);
  const uint32_t from = find_ring_begin(hash, l->n);
  l->ring = ni_mix(l->n + 1);
  for (uint32_t i = 0; i < l->n; i++)
    l->ring = ni_mix(l->ring + hash[(from + i) % l->n]);
  free(hash);
  return 0;
}

/*
 * How many ranks further the peer is. In a ring of n the shorter way; half the ring stays as the numbers are.
 */
static int32_t shift_to_peer(const struct ni_cut_lane *l, int32_t n) {
  if (l->kind == NI_BLAME_COLL)
    return 0;
  if (l->peer == NI_PATTERN_ALL_PEERS)
    return NI_PATTERN_ALL_PEERS;
  const int64_t on = (int64_t)l->peer - l->rank, shorter = on * 2 > n ? on - n : on * 2 < -n ? on + n : on;
  return (int32_t)shorter;
}

static int by_lane(const void *a, const void *b) {
  const struct ni_pattern_lane *x = a, *y = b;
  const int k = NI_BY(x, y, kind, n_ranks, peer);
  const int label = strcmp(x->label, y->label);
  return label ? label : k ? k : NI_BY(x, y, irregular, n, ring, first);
}

static bool has_same_name(const struct ni_pattern_lane *x, const struct ni_pattern_lane *y) {
  return x->label == y->label && x->kind == y->kind && x->n_ranks == y->n_ranks && x->peer == y->peer;
}

/*
 * Sorts lanes by what they are called, and their places with them. main_first: the first place of the main
 * lane so far.
 */
static int sort_lanes(struct ni_program *out, uint32_t main_first) {
  struct ni_pattern_place *sorted = malloc((out->n_places + 1) * sizeof *sorted);
  uint32_t n = 0;
  if (!sorted)
    return -ENOMEM;
  qsort(out->lane, out->n_lanes, sizeof *out->lane, by_lane);
  for (uint32_t i = 0; i < out->n_lanes; i++) {
    struct ni_pattern_lane *l = &out->lane[i];
    if (i && has_same_name(l, l - 1))
      l->ordinal = l[-1].ordinal + 1;
    if (l->n && l->first == main_first)
      out->main_lane = i;
    for (uint32_t k = 0; k < l->n; k++) {
      sorted[n + k] = out->place[l->first + k];
      sorted[n + k].lane = i;
    }
    l->first = n;
    n += l->n;
    out->hash = ni_mix(out->hash + l->ring + 2 * l->irregular + 1);
    for (const char *c = l->label; *c; c++)
      out->hash = ni_mix(out->hash + (unsigned char)*c);
    out->hash = ni_mix(ni_mix(ni_mix(out->hash + l->kind) + (uint32_t)l->n_ranks) + (uint32_t)l->peer);
  }
  free(out->place);
  out->place = sorted;
  return 0;
}

static int make_program(struct ni_lane_reader *x, const struct filler *f, struct ni_program *out) {
  int e = 0;
  out->place = f->place;
  out->n_places = f->n_places;
  if (!(out->lane = calloc(x->cut.n_lanes + 1, sizeof *out->lane)))
    return -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < x->cut.n_lanes; i++) {
    const struct ni_lane *l = &x->lane[i];
    const struct ni_cut_lane *who = &x->cut.lane[i];
    const struct ni_comm_row *c = &x->of->s->comm[who->comm];
    struct ni_pattern_lane *to = &out->lane[out->n_lanes];
    if (ni_variants_are_rare(l, out->steps))
      continue;
    *to = (struct ni_pattern_lane){.label = x->of->label[who->comm],
                                   .n_ranks = c->n_ranks,
                                   .kind = who->kind,
                                   .peer = shift_to_peer(who, c->n_ranks),
                                   .peers = who->peers,
                                   .first = l->first,
                                   .n = l->regular ? l->chosen.ops : 0,
                                   .sizes_vary = l->sizes_vary,
                                   .irregular = !l->regular,
                                   .least = l->ops_least,
                                   .most = l->ops_most};
    out->n_lanes++;
    if (l->regular)
      e = hash_ring(to, out->place);
  }
  return e == 0 ? sort_lanes(out, x->lane[f->main_lane].first) : e;
}

/*
 * Is lane i longer than lane k? Of equally long ones the first by name, so that ranks with the same work
 * choose the same.
 */
static bool is_before(const struct ni_lane_reader *x, uint32_t i, uint32_t k) {
  const struct ni_cut_lane *a = &x->cut.lane[i], *b = &x->cut.lane[k];
  const int label = strcmp(x->of->label[a->comm], x->of->label[b->comm]);
  if (x->lane[i].chosen.ops != x->lane[k].chosen.ops)
    return x->lane[i].chosen.ops > x->lane[k].chosen.ops;
  const int32_t n = x->of->s->comm[a->comm].n_ranks, m = x->of->s->comm[b->comm].n_ranks;
  if (label || n != m)
    return label ? label < 0 : n > m;
  return a->kind != b->kind ? a->kind < b->kind : shift_to_peer(a, n) < shift_to_peer(b, m);
}

static uint32_t find_longest_lane(const struct ni_lane_reader *x) {
  uint32_t best = NI_BLAME_NONE;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++)
    if (x->lane[i].regular && (best == NI_BLAME_NONE || is_before(x, i, best)))
      best = i;
  return best;
}

static int find_program_places(struct ni_lane_reader *x, uint32_t places, struct ni_program *out) {
  struct filler f = {.x = x, .n_places = places, .steps = out->steps, .main_lane = find_longest_lane(x)};
  f.samples = SAMPLED_PLACES / places;
  if (f.samples > NI_PATTERN_SAMPLES)
    f.samples = NI_PATTERN_SAMPLES;
  if (f.samples < SAMPLES_LEAST)
    f.samples = SAMPLES_LEAST;
  f.place = calloc(places, sizeof *f.place);
  f.ns = malloc((size_t)places * f.samples * sizeof *f.ns);
  f.n_ns = calloc(places, sizeof *f.n_ns);
  f.beside_ns = calloc(places, sizeof *f.beside_ns);
  f.exec_ns = calloc(places, sizeof *f.exec_ns);
  const bool has_room = f.place && f.ns && f.n_ns && f.beside_ns && f.exec_ns;
  int e = has_room ? fill_all_steps(&f, &out->exact_steps) : -ENOMEM;
  if (e == 0) {
    sum_up(&f);
    e = make_program(x, &f, out);
  } else {
    free(f.place);
  }
  free(f.ns);
  free(f.n_ns);
  free(f.beside_ns);
  free(f.exec_ns);
  free(f.shared_ns);
  return e;
}

static int find_program(struct ni_lane_reader *x, struct ni_program *out, const char **why_not) {
  uint32_t places = 0;
  int e = ni_variants_find(x, &out->steps, &places);
  const uint64_t ops = x->cut.ops, left_out = x->left_out;
  if (e == -E2BIG) {
    *why_not = "one step of it has more than 65,536 operations";
    return 0;
  }
  if (e < 0)
    return e;
  if (out->steps < NI_PATTERN_STEPS_MIN)
    *why_not = "its operations repeat less than 3 times";
  else if (!ni_variants_are_steps(x, places, out->steps))
    *why_not = "each of its steps has other operations";
  else
    e = find_program_places(x, places, out);
  ni_cut_end(&x->cut);
  x->cut.ops = ops;
  x->left_out = left_out;
  return e;
}

int ni_lanes_find(const struct ni_lanes_of *of, const struct ni_blame_rank *rank,
                  const struct ni_blame_piece *piece, size_t n, struct ni_program *out,
                  struct ni_pattern_rank *to) {
  struct ni_lane_reader *x = calloc(1, sizeof *x);
  if (!x)
    return -ENOMEM;
  int e = 0;
  to->no_operations = n == 0;
  if (n == 0)
    to->why_not = "it has no operations";
  else if (rank->no_start && !rank->mark.found)
    to->why_not = "its log does not say when operations started";
  else if (!rank->mark.found)
    to->why_not = "nothing in its operations comes again at even distances";
  if (!to->why_not) {
    x->of = of;
    x->cut.r = of->r;
    x->cut.s = of->s;
    x->cut.rank = rank;
    x->cut.piece = piece;
    x->cut.n_pieces = n;
    e = find_program(x, out, &to->why_not);
    to->ops = x->cut.ops;
    to->left_out = x->left_out;
  }
  ni_cut_free(&x->cut);
  free(x);
  return e;
}
