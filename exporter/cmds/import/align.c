#include "align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "before.h"
#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "format/line.h"
#include "format/names.h"

enum { SAMPLES = 128, PLACES = 2 * NI_ALIGN_OPS };

/* ---- what ranks have in common ------------------------------------------------------------------------- */

uint64_t ni_align_func(const char *name) {
  uint64_t func = 0;
  for (; *name; name++)
    func = ni_mix(func * 31 + (unsigned char)*name);
  return func;
}

static uint64_t make_token(const struct ni_imported_op *op, uint64_t func) {
  return ni_mix(ni_mix(op->bytes * 2 + op->sized) + func * 31 + op->datatype);
}

static bool ends_together(const char *func) {
  return strcmp(func, "AllReduce") == 0 || strcmp(func, "AllGather") == 0 ||
      strcmp(func, "ReduceScatter") == 0 || strcmp(func, "AlltoAll") == 0;
}

static int add_collective(struct ni_align_seat *s, const struct ni_imported *m,
                          const struct ni_imported_op *op) {
  const bool is_in_order = !s->n || !s->n_marks || op->seq > s->ahead;
  if (op->seq == NI_NO_SN || !is_in_order)
    s->seq = false;
  s->ahead = op->seq; /* the last one, until they are found */
  s->n++;
  if (s->n_marks == NI_ALIGN_OPS)
    return 0;
  if (!ni_array_room(s->mark, s->n_marks, s->cap_marks))
    return -ENOMEM;
  const char *name = m->funcs[op->func];
  const uint64_t func = ni_align_func(name);
  s->mark[s->n_marks++] = (struct ni_align_mark){.end_ns = op->start_ns + (int64_t)op->dur_ns,
                                                 .func = func,
                                                 .token = make_token(op, func),
                                                 .seq = op->seq,
                                                 .step = op->step,
                                                 .together = ends_together(name)};
  return 0;
}

bool ni_align_is_message(const struct ni_imported *m, const struct ni_imported_op *op, bool *received) {
  const enum ni_func f = ni_func_from_name(m->funcs[op->func]);
  *received = f == NI_FUNC_RECV;
  return op->kind == NI_KIND_P2P && (f == NI_FUNC_SEND || f == NI_FUNC_RECV) && op->root >= 0;
}

/* The messages of one rank, while they are added. */
struct adding {
  struct ni_align *a;
  uint32_t file;
  size_t first;       /* the seat of its first pair */
  struct ni_index at; /* of its pairs */
  size_t marks;
};

static uint64_t hash_messages(const struct ni_imported_comm *c, int32_t peer, bool received) {
  const uint64_t from = (uint32_t)(received ? peer : c->rank), to = (uint32_t)(received ? c->rank : peer);
  return ni_mix(ni_mix(c->hash + ni_spread(3)) + (from << 32 | to));
}

/* *at SIZE_MAX: there are too many. */
static int find_or_add_messages(struct adding *x, const struct ni_imported *m,
                                const struct ni_imported_op *op, bool received, size_t *at) {
  const struct ni_imported_comm *c = &m->comm[op->comm];
  const uint64_t of = ni_align_messages(op->root, received), key = ni_hash(ni_hash(0, op->comm), of);
  uint32_t k;
  for (size_t i = 0; (k = ni_index_next(&x->at, key, &i)) != NI_INDEX_NONE;) {
    *at = x->first + k;
    if (x->a->seat[*at].comm == op->comm && x->a->seat[*at].of == of)
      return 0;
  }
  *at = SIZE_MAX;
  const size_t n = x->a->n - x->first;
  if (n == NI_ALIGN_PAIRS)
    return 0;
  if (!ni_array_room(x->a->seat, x->a->n, x->a->cap) || ni_index_add(&x->at, key, (uint32_t)n) < 0)
    return -ENOMEM;
  *at = x->a->n++;
  x->a->seat[*at] = (struct ni_align_seat){.hash = hash_messages(c, op->root, received),
                                           .file = x->file,
                                           .comm = op->comm,
                                           .of = of,
                                           .rank = received};
  return 0;
}

static int add_message(struct adding *x, const struct ni_imported *m, const struct ni_imported_op *op,
                       bool received) {
  size_t at;
  const int e = find_or_add_messages(x, m, op, received, &at);
  if (e < 0 || at == SIZE_MAX)
    return e;
  struct ni_align_seat *s = &x->a->seat[at];
  s->n++;
  if (s->n_marks == NI_ALIGN_MESSAGES || x->marks == NI_ALIGN_MESSAGES_ALL)
    return 0;
  if (!ni_array_room(s->mark, s->n_marks, s->cap_marks))
    return -ENOMEM;
  x->marks++;
  const uint64_t func = ni_align_func(NI_ALIGN_MESSAGE);
  s->mark[s->n_marks++] = (struct ni_align_mark){.end_ns = op->start_ns + (int64_t)op->dur_ns,
                                                 .func = func,
                                                 .token = make_token(op, func),
                                                 .step = op->step,
                                                 .together = true};
  return 0;
}

int ni_align_add(struct ni_align *a, uint32_t file, const struct ni_imported *m) {
  const size_t first = a->n;
  int e = 0;
  for (size_t i = 0; i < m->n_comms; i++) {
    if (!ni_array_room(a->seat, a->n, a->cap))
      return -ENOMEM;
    a->seat[a->n++] = (struct ni_align_seat){
        .hash = m->comm[i].hash, .file = file, .comm = (uint32_t)i, .rank = m->comm[i].rank, .seq = true};
  }
  struct adding x = {.a = a, .file = file, .first = a->n};
  for (size_t i = 0; e == 0 && i < m->n; i++) {
    const struct ni_imported_op *op = &m->op[i];
    bool received;
    if (op->kind == NI_KIND_COLL)
      e = add_collective(&a->seat[first + op->comm], m, op);
    else if (ni_align_is_message(m, op, &received))
      e = add_message(&x, m, op, received);
  }
  ni_index_free(&x.at);
  if (e < 0)
    return e;
  NI_EACH(struct ni_align_seat, s, a->seat + first, a->n - first)
  ni_array_fit(s->mark, s->n_marks, s->cap_marks);
  return 0;
}

/* ---- one rank upon another ----------------------------------------------------------------------------- */

/* Of s its mark i is the measure's i + shift. */
struct shift_place {
  int64_t shift;
  int64_t scatter_ns;
  uint32_t same_steps, steps;
};

static void find_overlap(const struct ni_align_seat *of, const struct ni_align_seat *s, int64_t shift,
                         size_t *from, size_t *to) {
  const int64_t end = (int64_t)of->n_marks - shift;
  *from = shift < 0 ? (size_t)-shift : 0;
  *to = end < 0 ? 0 : (size_t)end < s->n_marks ? (size_t)end : s->n_marks;
}

static bool has_same_tokens(const struct ni_align_seat *of, const struct ni_align_seat *s, int64_t shift) {
  size_t from, to;
  find_overlap(of, s, shift, &from, &to);
  /* A few that agree at the very end say nothing. */
  const size_t least = s->n_marks < of->n_marks ? s->n_marks : of->n_marks;
  if (to <= from || (to - from) * 2 < least)
    return false;
  for (size_t i = from; i < to; i++)
    if (s->mark[i].token != of->mark[(int64_t)i + shift].token)
      return false;
  return true;
}

static int by_value(const void *a, const void *b) {
  const int64_t *x = a, *y = b;
  return *x < *y ? -1 : *x > *y;
}

/* Judges the shift by the distance between the quartiles of the differences of ends. */
static void judge_shift(const struct ni_align_seat *of, const struct ni_align_seat *s,
                        struct shift_place *p) {
  int64_t apart[SAMPLES];
  size_t from, to, n = 0, together = 0;
  find_overlap(of, s, p->shift, &from, &to);
  for (size_t i = from; i < to; i++)
    together += s->mark[i].together;
  const bool choose = together >= 8;
  const size_t all = choose ? together : to - from, every = all / SAMPLES + 1;
  for (size_t i = from, k = 0; i < to; i++) {
    const struct ni_align_mark *x = &s->mark[i], *y = &of->mark[(int64_t)i + p->shift];
    if (x->step && y->step) {
      p->steps++;
      p->same_steps += x->step == y->step;
    }
    if (choose && !x->together)
      continue;
    if (k++ % every || n == SAMPLES)
      continue;
    apart[n++] = x->end_ns - y->end_ns;
  }
  qsort(apart, n, sizeof *apart, by_value);
  p->scatter_ns = n ? apart[n * 3 / 4] - apart[n / 4] : INT64_MAX;
}

/* Chooses the shift with which most operations in steps are in the same steps, if no other has as many. */
static bool choose_by_steps(const struct shift_place *p, size_t n, size_t *best) {
  uint32_t most = 0, second = 0;
  for (size_t i = 0; i < n; i++) {
    const uint32_t share = p[i].steps >= 2 ? (uint32_t)((uint64_t)p[i].same_steps * 1000 / p[i].steps) : 0;
    if (share > most) {
      second = most;
      most = share;
      *best = i;
    } else if (share > second)
      second = share;
  }
  return most >= 900 && second < most;
}

static bool choose_by_ends(const struct shift_place *p, size_t n, size_t *best) {
  int64_t least = INT64_MAX, second = INT64_MAX;
  for (size_t i = 0; i < n; i++) {
    if (p[i].scatter_ns < least) {
      second = least;
      least = p[i].scatter_ns;
      *best = i;
    } else if (p[i].scatter_ns < second)
      second = p[i].scatter_ns;
  }
  return least < INT64_MAX && least < second / 2;
}

/* *shift: of s upon the measure. */
static enum ni_align_how find_shift(const struct ni_align_seat *of, const struct ni_align_seat *s,
                                    struct shift_place *place, int64_t *shift) {
  size_t n = 0, best = 0;
  for (int64_t k = 1 - (int64_t)s->n_marks; k < (int64_t)of->n_marks; k++) {
    if (!has_same_tokens(of, s, k))
      continue;
    place[n] = (struct shift_place){.shift = k};
    judge_shift(of, s, &place[n++]);
  }
  if (n == 0)
    return NI_ALIGN_APART;
  enum ni_align_how how = NI_ALIGN_APART;
  if (n == 1)
    how = NI_ALIGN_ONE;
  else if (choose_by_steps(place, n, &best))
    how = NI_ALIGN_STEPS;
  else if (choose_by_ends(place, n, &best))
    how = NI_ALIGN_ENDS;
  *shift = place[best].shift;
  return how;
}

/* ---- all of a communicator ----------------------------------------------------------------------------- */

static void shift_by_numbers(struct ni_align_seat *s, size_t n) {
  uint64_t least = UINT64_MAX;
  bool sparse = false;
  for (size_t i = 0; i < n; i++) {
    const uint64_t first = s[i].mark[0].seq;
    if (first < least)
      least = first;
    sparse = sparse || s[i].ahead - first + 1 != s[i].n;
  }
  for (size_t i = 0; i < n; i++) {
    s[i].how = NI_ALIGN_SEQ;
    s[i].sparse = sparse;
    s[i].ahead = sparse ? least : s[i].mark[0].seq - least;
  }
}

/*
 * Where the numbers of a rank begin that is not to be compared. A rank has less than 2^22 operations, and
 * some readers take only the lower 32 bits of a number. No other rank of the first 1,023 has these numbers.
 */
static uint64_t first_own_number(size_t i) {
  const uint64_t nth = i + 1;
  return nth << 32 | (nth & 0x3ff) << 22;
}

static void shift_by_comparison(struct ni_align_seat *s, size_t n, struct shift_place *place,
                                int64_t *shift) {
  size_t of = 0;
  int64_t least = 0;
  for (size_t i = 1; i < n; i++)
    if (s[i].n > s[of].n)
      of = i;
  for (size_t i = 0; i < n; i++) {
    shift[i] = 0;
    s[i].how = i == of ? n > 1 ? NI_ALIGN_ONE : NI_ALIGN_ALONE : find_shift(&s[of], &s[i], place, &shift[i]);
    if (s[i].how != NI_ALIGN_APART && shift[i] < least)
      least = shift[i];
  }
  for (size_t i = 0; i < n; i++)
    s[i].ahead = s[i].how == NI_ALIGN_APART ? first_own_number(i) : (uint64_t)(shift[i] - least);
}

/*
 * Aligns messages of one side, or of a sender and a receiver. If there are more sides, as with two recordings
 * of a rank, nobody is the counterpart.
 */
static void align_messages(struct ni_align_seat *s, size_t n, struct shift_place *place, int64_t *shift) {
  const bool alone = n == 1, both = n == 2 && s[0].rank != s[1].rank,
             marked = s[0].n_marks && (alone || s[1].n_marks);
  if (marked && (alone || both))
    shift_by_comparison(s, n, place, shift);
  for (size_t i = 0; i < n; i++) {
    if (!marked || !(alone || both))
      s[i].how = NI_ALIGN_APART;
    if (s[i].how == NI_ALIGN_APART)
      s[i].ahead = ni_align_apart(s[i].rank);
  }
}

/* ---- all communicators --------------------------------------------------------------------------------- */

static int by_communicator(const void *a, const void *b) {
  const struct ni_align_seat *x = a, *y = b;
  if (x->hash != y->hash)
    return x->hash < y->hash ? -1 : 1;
  if (x->rank != y->rank)
    return x->rank < y->rank ? -1 : 1;
  return x->file < y->file ? -1 : x->file > y->file;
}

static int by_file(const void *a, const void *b) {
  const struct ni_align_seat *x = a, *y = b;
  if (x->file != y->file)
    return x->file < y->file ? -1 : 1;
  if (x->comm != y->comm)
    return x->comm < y->comm ? -1 : 1;
  return x->of < y->of ? -1 : x->of > y->of;
}

/* Drops seats without collectives. */
static void drop_empty(struct ni_align *a) {
  size_t kept = 0;
  for (size_t i = 0; i < a->n; i++)
    if (a->seat[i].n)
      a->seat[kept++] = a->seat[i];
  a->n = kept;
}

/* s: all of one communicator, or of both sides of a pair's messages. */
static void align_seats(struct ni_align_seat *s, size_t n, struct shift_place *place, int64_t *shift) {
  bool seq = true;
  for (size_t i = 0; i < n; i++)
    seq = seq && s[i].seq;
  if (s->of)
    align_messages(s, n, place, shift);
  else if (seq)
    shift_by_numbers(s, n);
  else
    shift_by_comparison(s, n, place, shift);
}

int ni_align_find(struct ni_align *a) {
  struct shift_place *place = malloc(PLACES * sizeof *place);
  int64_t *shift = malloc((a->n + 1) * sizeof *shift);
  int e = place && shift ? 0 : -ENOMEM;
  drop_empty(a);
  if (a->n)
    qsort(a->seat, a->n, sizeof *a->seat, by_communicator);
  for (size_t from = 0, to; e == 0 && from < a->n; from = to) {
    struct ni_align_seat *s = &a->seat[from];
    to = ni_before_end_of(a, from);
    align_seats(s, to - from, place, shift);
    e = ni_before_count(s, to - from);
  }
  if (e == 0)
    e = ni_before_beside(a);
  if (a->n)
    qsort(a->seat, a->n, sizeof *a->seat, by_file);
  free(place);
  free(shift);
  return e;
}

const struct ni_align_seat *ni_align_of(const struct ni_align *a, uint32_t file, uint32_t comm, uint64_t of) {
  const struct ni_align_seat wanted = {.file = file, .comm = comm, .of = of};
  size_t i;
  ni_array_search(i, a->n, by_file(&a->seat[i], &wanted) < 0);
  return i < a->n && by_file(&a->seat[i], &wanted) == 0 ? &a->seat[i] : NULL;
}

void ni_align_free(struct ni_align *a) {
  NI_EACH(struct ni_align_seat, s, a->seat, a->n) {
    free(s->mark);
    free(s->before.item);
  }
  free(a->seat);
  *a = (struct ni_align){0};
}
