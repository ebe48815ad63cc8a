#include "before.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"

enum { PLACES = 2 * NI_ALIGN_OPS }; /* numbers that are further apart: nothing between them was recorded */

size_t ni_before_end_of(const struct ni_align *a, size_t from) {
  size_t to = from;
  while (to < a->n && a->seat[to].hash == a->seat[from].hash)
    to++;
  return to;
}

/* ---- counts of functions ------------------------------------------------------------------------------- */

static int add_to(struct ni_align_counts *c, uint64_t func, uint64_t n) {
  size_t i = 0;
  while (i < c->n && c->item[i].func != func)
    i++;
  if (i == c->n) {
    if (!ni_array_room(c->item, c->n, c->cap))
      return -ENOMEM;
    c->item[c->n++] = (struct ni_align_count){.func = func};
  }
  c->item[i].n += n;
  return 0;
}

static const struct ni_align_count *find_count(const struct ni_align_counts *c, uint64_t func) {
  for (size_t i = 0; i < c->n; i++)
    if (c->item[i].func == func)
      return &c->item[i];
  return NULL;
}

static uint64_t count_of(const struct ni_align_counts *c, uint64_t func) {
  const struct ni_align_count *found = find_count(c, func);
  return found ? found->n : 0;
}

/* Each function of both as often as it is in the one where it is more often. */
static int raise_to(struct ni_align_counts *most, const struct ni_align_counts *c) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < c->n; i++) {
    const uint64_t had = count_of(most, c->item[i].func), has = c->item[i].n;
    e = add_to(most, c->item[i].func, has > had ? has - had : 0);
  }
  return e;
}

uint64_t ni_align_before(const struct ni_align_seat *s, uint64_t func) {
  const struct ni_align_count *found = find_count(&s->before, func);
  if (found)
    return found->n;
  return s->how == NI_ALIGN_APART ? s->ahead : 0;
}

/* ---- in a communicator --------------------------------------------------------------------------------- */

/* Is it known at which place its recording begins? */
static bool is_placed(const struct ni_align_seat *s) { return s->how != NI_ALIGN_APART && !s->sparse; }

/* Finds a rank that recorded at that place and says which function it was; NULL: nobody did. */
static const struct ni_align_mark *find_mark_at(const struct ni_align_seat *s, size_t n, uint64_t place) {
  for (size_t i = 0; i < n; i++)
    if (s[i].how != NI_ALIGN_APART && s[i].ahead <= place && place - s[i].ahead < s[i].n_marks)
      return &s[i].mark[place - s[i].ahead];
  return NULL;
}

int ni_before_count(struct ni_align_seat *s, size_t n) {
  uint64_t last = 0;
  for (size_t i = 0; i < n; i++)
    if (is_placed(&s[i]) && s[i].ahead > last)
      last = s[i].ahead;
  if (last > PLACES)
    last = 0;
  for (uint64_t place = 0; place < last; place++) {
    const struct ni_align_mark *mark = find_mark_at(s, n, place);
    for (size_t i = 0; mark && i < n; i++)
      if (s[i].how != NI_ALIGN_APART && s[i].ahead > place && add_to(&s[i].before, mark->func, 1) < 0)
        return -ENOMEM;
  }
  return 0;
}

/* ---- the moment that communicators side by side are counted to ----------------------------------------- */

/* A step, or, of files without them, the end of an operation that all ranks did. */
struct moment {
  uint32_t step;
  int64_t *end_ns; /* step 0: by file, in its own time */
};

static bool is_behind(const struct moment *m, const struct ni_align_seat *s,
                      const struct ni_align_mark *mark) {
  return m->step ? mark->step >= m->step : mark->end_ns > m->end_ns[s->file];
}

static uint32_t find_last_file(const struct ni_align *a) {
  uint32_t last = 0;
  for (size_t i = 0; i < a->n; i++)
    if (a->seat[i].file > last)
      last = a->seat[i].file;
  return last;
}

static int count_files(const struct ni_align *a, uint32_t *n) {
  bool *seen = calloc((size_t)find_last_file(a) + 1, sizeof *seen);
  if (!seen)
    return -ENOMEM;
  for (size_t i = 0; i < a->n; i++) {
    *n += !seen[a->seat[i].file];
    seen[a->seat[i].file] = true;
  }
  free(seen);
  return 0;
}

/* Finds the first step that all files recorded from its begin; 0: some have no steps. */
static int find_common_step(const struct ni_align *a, uint32_t *common) {
  uint32_t *first = calloc((size_t)find_last_file(a) + 1, sizeof *first);
  if (!first)
    return -ENOMEM;
  for (size_t i = 0; i < a->n; i++)
    for (size_t k = 0; k < a->seat[i].n_marks; k++) {
      const uint32_t step = a->seat[i].mark[k].step;
      uint32_t *x = &first[a->seat[i].file];
      if (step && (!*x || step < *x))
        *x = step;
    }
  bool all_have_steps = true;
  uint32_t latest = 0;
  for (size_t i = 0; i < a->n; i++) {
    const uint32_t step = first[a->seat[i].file];
    all_have_steps = all_have_steps && step;
    if (step > latest)
      latest = step;
  }
  free(first);
  *common = a->n && all_have_steps ? latest + 1 : 0; /* the first one is cut */
  return 0;
}

/*
 * Finds the first operation of a communicator that all of its files recorded behind their first one. false:
 * there is none, or it is not known which of their operations are the same.
 */
static bool find_common_place(const struct ni_align_seat *s, size_t n, uint64_t *place) {
  uint64_t last_begin = 0, first_end = UINT64_MAX;
  for (size_t i = 0; i < n; i++) {
    const bool is_one_of_file = i == 0 || s[i].file != s[i - 1].file;
    if (s[i].of || !is_placed(&s[i]) || !is_one_of_file)
      return false;
    if (s[i].ahead > last_begin)
      last_begin = s[i].ahead;
    if (s[i].ahead + s[i].n_marks < first_end)
      first_end = s[i].ahead + s[i].n_marks;
  }
  *place = last_begin + 1;
  return *place < first_end;
}

/*
 * Finds such an operation of a communicator that all files are in, or of several the one with the fewest
 * operations, and when it ended in each file. false: there is none.
 */
static bool find_common_end(const struct ni_align *a, uint32_t n_files, int64_t *end_ns) {
  const struct ni_align_seat *best = NULL;
  uint64_t best_place = 0, place;
  for (size_t from = 0, to; from < a->n; from = to) {
    const struct ni_align_seat *s = &a->seat[from];
    to = ni_before_end_of(a, from);
    const bool is_of_all = to - from == n_files;
    const bool is_smaller = !best || s->n < best->n;
    if (!is_of_all || !is_smaller || !find_common_place(s, to - from, &place))
      continue;
    best = s;
    best_place = place;
  }
  for (uint32_t i = 0; best && i < n_files; i++)
    end_ns[best[i].file] = best[i].mark[best_place - best[i].ahead].end_ns;
  return best != NULL;
}

/* ---- communicators side by side ------------------------------------------------------------------------ */

/* Counts each function of a communicator before that moment. *reached: somebody in it recorded beyond it. */
static int count_to_moment(const struct ni_align_seat *s, size_t n, const struct moment *m,
                           struct ni_align_counts *to, bool *reached) {
  uint64_t place = UINT64_MAX;
  for (size_t i = 0; i < n && place == UINT64_MAX; i++) {
    if (!is_placed(&s[i]))
      continue;
    for (size_t k = 0; k < s[i].n_marks && place == UINT64_MAX; k++)
      if (is_behind(m, &s[i], &s[i].mark[k]))
        place = s[i].ahead + k;
  }
  *reached = place <= PLACES;
  for (uint64_t k = 0; *reached && k < place; k++) {
    const struct ni_align_mark *mark = find_mark_at(s, n, k);
    if (mark && add_to(to, mark->func, 1) < 0)
      return -ENOMEM;
  }
  return 0;
}

/* Each function as often as the communicator counts it that counts it most often up to the moment. */
static int find_most(const struct ni_align *a, const struct moment *m, struct ni_align_counts *most) {
  int e = 0;
  for (size_t from = 0, end; e == 0 && from < a->n; from = end) {
    struct ni_align_counts to = {0};
    bool reached;
    end = ni_before_end_of(a, from);
    e = count_to_moment(a->seat + from, end - from, m, &to, &reached);
    if (e == 0)
      e = raise_to(most, &to);
    free(to.item);
  }
  return e;
}

/* to: what this communicator counts to. */
static int shift_seats(struct ni_align_seat *s, size_t n, const struct ni_align_counts *to,
                       const struct ni_align_counts *most) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; is_placed(&s[i]) && k < most->n; k++) {
      const uint64_t func = most->item[k].func;
      if (add_to(&s[i].before, func, most->item[k].n - count_of(to, func)) < 0)
        return -ENOMEM;
    }
  return 0;
}

static int shift_to_most(struct ni_align *a, const struct moment *m, const struct ni_align_counts *most) {
  int e = 0;
  for (size_t from = 0, end; e == 0 && from < a->n; from = end) {
    struct ni_align_counts to = {0};
    bool reached;
    end = ni_before_end_of(a, from);
    e = count_to_moment(a->seat + from, end - from, m, &to, &reached);
    if (e == 0 && reached)
      e = shift_seats(a->seat + from, end - from, &to, most);
    free(to.item);
  }
  return e;
}

int ni_before_beside(struct ni_align *a) {
  struct moment moment = {.end_ns = calloc((size_t)find_last_file(a) + 1, sizeof *moment.end_ns)};
  struct ni_align_counts most = {0};
  uint32_t n_files = 0;
  int e = moment.end_ns ? count_files(a, &n_files) : -ENOMEM;
  if (e == 0)
    e = find_common_step(a, &moment.step);
  if (e == 0 && (moment.step || find_common_end(a, n_files, moment.end_ns))) {
    e = find_most(a, &moment, &most);
    if (e == 0)
      e = shift_to_most(a, &moment, &most);
  }
  free(most.item);
  free(moment.end_ns);
  return e;
}
