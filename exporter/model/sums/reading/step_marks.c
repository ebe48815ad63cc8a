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
  const bool wanted = m->n_lines < NI_STEP_MARKS_LINES,
             room = wanted && ni_array_room(m->line, m->n_lines, m->cap);
  if (room)
    m->line[m->n_lines++] = (struct ni_step_mark_line){(uint64_t)process << 32 | text, ns, text, 0};
  pthread_mutex_unlock(&r->lock);
  return wanted && !room ? -ENOMEM : 0;
}

static int compare_by_key(const void *a, const void *b) {
  const struct ni_step_mark_line *x = a, *y = b;
  return NI_BY(x, y, key, ns);
}

/* Do they look like steps? */
static bool are_steps(const struct ni_run *r, const struct ni_step_mark_line *x, size_t n) {
  const int64_t all = x[n - 1].ns - x[0].ns, mean = all / (int64_t)n;
  size_t even = 0;
  for (size_t i = 1; i < n; i++)
    even += x[i].ns - x[i - 1].ns >= mean / 3 && (x[i].ns - x[i - 1].ns) / 3 <= mean;
  return n >= NI_STEP_MARKS_MIN && all / 1000 >= (r->tally.last_us - r->tally.first_us) / 2 &&
      even * 10 >= (n - 1) * 8;
}

int ni_step_marks_find(struct ni_run *r) {
  struct ni_step_marks *m = &r->marks;
  struct ni_step_mark_line *x = m->line;
  const bool all = r->opt.step_by && strcmp(r->opt.step_by, "mark") == 0;
  size_t n = 0, first = 0, most = 0;
  if (!m->n_lines || (r->opt.step_by && !all))
    return 0;
  qsort(x, m->n_lines, sizeof *x, compare_by_key);
  for (size_t i = 1; i < m->n_lines; i++)
    x[i].times = x[i].key == x[i - 1].key ? x[i - 1].times + 1 : 0;
  for (size_t i = 0; i < m->n_lines; i++)
    x[i].key = (uint64_t)x[i].text << 32 | x[i].times;
  qsort(x, m->n_lines, sizeof *x, compare_by_key);
  for (size_t i = 0; i < m->n_lines; i++) /* the first one of each mark */
    if (i == 0 || x[i].key != x[i - 1].key)
      x[n++] = x[i];
  for (size_t i = 0; i < n; i++) {
    x[i].key = 0;
    for (const char *p = all ? "" : ni_name_text(&r->names, x[i].text); *p; p++)
      if (!isdigit((unsigned char)*p))
        x[i].key = ni_mix(x[i].key + (unsigned char)*p);
  }
  qsort(x, n, sizeof *x, compare_by_key);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && x[to].key == x[from].key;)
      to++;
    if (to - from > most) {
      first = from;
      most = to - from;
    }
  }
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
