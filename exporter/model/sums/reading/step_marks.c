#include "step_marks.h"

#include <ctype.h>
#include <errno.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/state.h"

int ni_step_marks_add(struct ni_run *r, uint32_t process, int64_t ns, uint32_t text) {
  struct ni_step_marks *m = &r->marks;
  if (!ni_time_of_a_job(ns) || ns / 1000 < r->since_us || ns / 1000 > r->until_us)
    return 0;
  pthread_mutex_lock(&r->lock);
  const bool is_wanted = m->n_lines < NI_STEP_MARKS_LINES;
  const bool has_room = is_wanted && ni_array_room(m->line, m->n_lines, m->cap);
  if (has_room)
    m->line[m->n_lines++] = (struct ni_step_mark_line){(uint64_t)process << 32 | text, ns, text, 0};
  pthread_mutex_unlock(&r->lock);
  return is_wanted && !has_room ? -ENOMEM : 0;
}

static int compare_by_key(const void *a, const void *b) {
  const struct ni_step_mark_line *x = a, *y = b;
  return NI_BY(x, y, key, ns);
}

/* Do they look like steps? */
static bool are_steps(const struct ni_run *r, const struct ni_step_mark_line *x, size_t n) {
  const int64_t all = x[n - 1].ns - x[0].ns, mean = all / (int64_t)n;
  size_t even = 0;
  for (size_t i = 1; i < n; i++) {
    const int64_t apart = x[i].ns - x[i - 1].ns;
    even += apart >= mean / 3 && apart / 3 <= mean;
  }
  const bool are_over_run = all / 1000 >= (r->tally.last_us - r->tally.first_us) / 2;
  return n >= NI_STEP_MARKS_MIN && are_over_run && even * 10 >= (n - 1) * 8;
}

/* Of all ranks' lines of one mark the first one stays. Returns how many do. */
static size_t keep_first_lines(struct ni_step_mark_line *x, size_t n) {
  size_t kept = 0;
  qsort(x, n, sizeof *x, compare_by_key);
  for (size_t i = 1; i < n; i++)
    x[i].times = x[i].key == x[i - 1].key ? x[i - 1].times + 1 : 0;
  for (size_t i = 0; i < n; i++)
    x[i].key = (uint64_t)x[i].text << 32 | x[i].times;
  qsort(x, n, sizeof *x, compare_by_key);
  for (size_t i = 0; i < n; i++)
    if (i == 0 || x[i].key != x[i - 1].key)
      x[kept++] = x[i];
  return kept;
}

/* Marks whose texts differ in digits alone get one key; all: all do. */
static void key_by_text(const struct ni_run *r, struct ni_step_mark_line *x, size_t n, bool all) {
  for (size_t i = 0; i < n; i++) {
    x[i].key = 0;
    for (const char *p = all ? "" : ni_name_text(&r->names, x[i].text); *p; p++)
      if (!isdigit((unsigned char)*p))
        x[i].key = ni_mix(x[i].key + (unsigned char)*p);
  }
  qsort(x, n, sizeof *x, compare_by_key);
}

/* The key with the most marks: how many, and where they begin. */
static size_t find_largest_group(const struct ni_step_mark_line *x, size_t n, size_t *first) {
  size_t most = 0;
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && x[to].key == x[from].key;)
      to++;
    if (to - from > most) {
      *first = from;
      most = to - from;
    }
  }
  return most;
}

int ni_step_marks_find(struct ni_run *r) {
  struct ni_step_marks *m = &r->marks;
  struct ni_step_mark_line *x = m->line;
  const bool all = r->opt.step_by && strcmp(r->opt.step_by, "mark") == 0;
  size_t first = 0;
  if (!m->n_lines || (r->opt.step_by && !all))
    return 0;
  const size_t n = keep_first_lines(x, m->n_lines);
  key_by_text(r, x, n, all);
  const size_t most = find_largest_group(x, n, &first);
  if (!all && !are_steps(r, x + first, most))
    return 0;
  if (!(m->at = malloc(most * sizeof *m->at)))
    return -ENOMEM;
  while (m->n < most) {
    m->at[m->n] = x[first + m->n].ns;
    m->n++;
  }
  m->text = x[first].text;
  return 0;
}
