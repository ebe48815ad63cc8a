#include "listing.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "lanes.h"

/* ---- one order ---- */

bool ni_listing_is_beside(const struct ni_program *p, const struct ni_pattern_lane *l) {
  double variance = 0;
  if (l == &p->lane[p->main_lane])
    return false;
  for (uint32_t i = l->first; i < l->first + l->n; i++) {
    const struct ni_pattern_place *x = &p->place[i];
    if (x->samples == 0)
      return true;
    const double n = (double)x->samples, mean = (double)x->before / n;
    variance += fmax(0, (double)x->before2 / n - mean * mean);
  }
  return variance > NI_LISTING_STABLE * l->n;
}

struct listing_seat {
  uint32_t behind; /* operations of the main lane */
  bool is_main;
  int64_t start_ns;
  uint32_t place;
};
static NI_ORDER_BY(by_seat, struct listing_seat, behind, is_main, start_ns, place);

/* Within a lane neither may go back. */
static uint32_t seat_lane(const struct ni_program *p, const struct ni_pattern_lane *l,
                          struct listing_seat *out) {
  const bool is_main = l == &p->lane[p->main_lane];
  uint32_t least = 0;
  int64_t start_ns = INT64_MIN;
  for (uint32_t i = 0; i < l->n; i++) {
    const struct ni_pattern_place *x = &p->place[l->first + i];
    const uint64_t n = x->samples ? x->samples : 1;
    const uint32_t mean = (uint32_t)((x->before + n / 2) / n);
    if (mean > least) {
      least = mean;
      start_ns = INT64_MIN;
    }
    if (x->start_ns / (int64_t)n > start_ns)
      start_ns = x->start_ns / (int64_t)n;
    out[i] = (struct listing_seat){is_main ? i : least, is_main, start_ns, l->first + i};
  }
  return l->n;
}

static bool is_same_comm(const struct ni_pattern_lane *x, const struct ni_pattern_lane *y) {
  return x->label == y->label && x->n_ranks == y->n_ranks && x->ordinal == y->ordinal;
}

/*
 * Seats the overlapping lanes from `lane` on that have the same communicator, ordered by when operations
 * begin. Returns their number.
 */
static uint32_t seat_overlapping_lanes(const struct ni_program *p, uint32_t lane, struct listing_seat *seat,
                                       uint32_t *order) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    const struct ni_pattern_lane *l = &p->lane[i];
    if (!is_same_comm(l, &p->lane[lane]) || !ni_listing_is_beside(p, l))
      continue;
    if (i < lane)
      return 0; /* they stand with that one */
    n += seat_lane(p, l, seat + n);
  }
  for (uint32_t i = 0; i < n; i++)
    seat[i].behind = 0;
  qsort(seat, n, sizeof *seat, by_seat);
  for (uint32_t i = 0; i < n; i++)
    order[i] = seat[i].place;
  return n;
}

static int order_operations(const struct ni_program *p, struct ni_listing *out) {
  struct listing_seat *seat = malloc((p->n_places + 1) * sizeof *seat);
  uint32_t n = 0;
  out->order = malloc((p->n_places + 1) * sizeof *out->order);
  out->begins = malloc((p->n_lanes + 1) * sizeof *out->begins);
  if (!seat || !out->order || !out->begins) {
    free(seat);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < p->n_lanes; i++)
    if (!ni_listing_is_beside(p, &p->lane[i]))
      n += seat_lane(p, &p->lane[i], seat + n);
  qsort(seat, n, sizeof *seat, by_seat);
  for (uint32_t i = 0; i < n; i++)
    out->order[i] = seat[i].place;
  out->n_ordered = n;
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    if (!ni_listing_is_beside(p, &p->lane[i]))
      continue;
    const uint32_t more = seat_overlapping_lanes(p, i, seat, out->order + n);
    if (more)
      out->begins[out->n_lists++] = n;
    n += more;
  }
  free(seat);
  return 0;
}

/* ---- folding ---- */

struct fold {
  const struct ni_program *p;
  struct ni_listing *out;
  uint64_t *symbol; /* of each operation in order: equal ones are alike */
  struct {
    uint32_t period, times;
  } within[NI_LISTING_DEPTH + 1]; /* the repetitions that the rows at hand are in */
  uint32_t depth;
};

static struct ni_listing_row *add_row(struct fold *f, enum ni_listing_kind kind, uint32_t from, uint32_t to,
                                      uint32_t times) {
  struct ni_listing *l = f->out;
  if (!ni_array_room(l->row, l->n, l->cap))
    return NULL;
  l->row[l->n] =
      (struct ni_listing_row){.kind = kind, .depth = f->depth, .from = from, .to = to, .times = times};
  return &l->row[l->n++];
}

/* Sums figures over all operations that a row stands for: those of the repetitions that it is in. */
static void sum_up_row(const struct fold *f, struct ni_listing_row *row, uint32_t at, uint32_t level,
                       uint64_t *n) {
  if (level < f->depth) {
    for (uint32_t i = 0; i < f->within[level].times; i++)
      sum_up_row(f, row, at + i * f->within[level].period, level + 1, n);
    return;
  }
  for (uint32_t i = 0; i < row->times; i++) {
    const struct ni_pattern_place *x = &f->p->place[f->out->order[at + i]];
    if (x->bytes < row->bytes)
      row->bytes = x->bytes;
    if (x->bytes_most > row->bytes_most)
      row->bytes_most = x->bytes_most;
    if (!x->ranks)
      continue;
    row->us += (double)x->median_ns / 1e3;
    row->beside += (double)x->beside_permille / 1e3;
    *n += x->ranks;
  }
}

static int add_listing_op(struct fold *f, uint32_t at, uint32_t times) {
  struct ni_listing_row *row = add_row(f, NI_LISTING_OP, at, at + times - 1, times);
  uint64_t n = 0;
  if (!row)
    return -ENOMEM;
  row->place = f->out->order[at];
  row->lane = f->p->place[row->place].lane;
  row->bytes = UINT64_MAX;
  sum_up_row(f, row, at, 0, &n);
  row->us = n ? row->us / (double)n : NAN;
  row->beside = n ? row->beside / (double)n : NAN;
  return 0;
}

/* How often the `period` operations that begin at `at` repeat before `end`. */
static uint32_t count_repeats(const struct fold *f, uint32_t at, uint32_t end, uint32_t period) {
  uint32_t same = 0;
  while (at + period + same < end && f->symbol[at + same] == f->symbol[at + period + same])
    same++;
  return 1 + same / period;
}

static int fold_range(struct fold *f, uint32_t from, uint32_t end) {
  int e = 0;
  for (uint32_t at = from; e == 0 && at < end;) {
    uint32_t period = 1, times = 1;
    for (uint32_t p = 1; p <= NI_LISTING_PERIOD && p <= (end - at) / 2; p++) {
      const uint32_t n = count_repeats(f, at, end, p);
      const bool is_shorter = p == 1 || p * n > p + 2; /* in rows: it has one before and one behind */
      const bool covers_more = p * n > period * times;
      if (n > 1 && is_shorter && covers_more) {
        period = p;
        times = n;
      }
    }
    if (period == 1 || f->depth == NI_LISTING_DEPTH) {
      if (period > 1)
        times = 1;
      e = add_listing_op(f, at, times);
      at += times;
      continue;
    }
    if (!add_row(f, NI_LISTING_OPEN, at, at + period * times - 1, times))
      return -ENOMEM;
    f->within[f->depth].period = period;
    f->within[f->depth++].times = times;
    e = fold_range(f, at, at + period);
    f->depth--;
    if (e == 0 && !add_row(f, NI_LISTING_CLOSE, at, at + period * times - 1, times))
      e = -ENOMEM;
    at += period * times;
  }
  return e;
}

static void find_symbols(struct fold *f) {
  const struct ni_program *p = f->p;
  for (uint32_t i = 0; i < p->n_places; i++) {
    const struct ni_pattern_place *x = &p->place[f->out->order[i]];
    const uint64_t form = x->mixes ? UINT64_MAX : x->mix;
    f->symbol[i] = ni_mix(ni_mix(ni_place_hash(x, p->lane[x->lane].sizes_vary) + x->lane) + form);
  }
}

int ni_listing_make(const struct ni_program *p, struct ni_listing *out) {
  struct fold f = {.p = p, .out = out, .symbol = malloc((p->n_places + 1) * sizeof *f.symbol)};
  *out = (struct ni_listing){0};
  int e = f.symbol ? order_operations(p, out) : -ENOMEM;
  if (e == 0) {
    find_symbols(&f);
    e = fold_range(&f, 0, out->n_ordered);
  }
  for (size_t i = 0; e == 0 && i < out->n_lists; i++) {
    const uint32_t from = out->begins[i], to = i + 1 < out->n_lists ? out->begins[i + 1] : p->n_places;
    struct ni_listing_row *row = add_row(&f, NI_LISTING_BESIDE, from, to - 1, 1);
    if (!row)
      e = -ENOMEM;
    else
      row->lane = p->place[out->order[from]].lane;
    if (e == 0)
      e = fold_range(&f, from, to);
  }
  free(f.symbol);
  return e;
}

void ni_listing_free(struct ni_listing *l) {
  free(l->row);
  free(l->begins);
  free(l->order);
  *l = (struct ni_listing){0};
}
