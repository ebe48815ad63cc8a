#include "series_pairs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/discover.h"

bool ni_is_series(const char *path) { return strstr(ni_path_name(path), "-counters-") != NULL; }

struct memory {
  const struct ni_series_pairs *to;
  struct ni_reading *before;
  size_t cap;
  uint64_t set_sn;
  bool any; /* a sample of set_sn */
};

static int sample(void *arg, const struct ni_series_sample *s) {
  struct memory *m = arg;
  int e = 0;
  if (s->interval_ns == 0) return 0;
  if (!m->any || m->set_sn != s->set_sn) {
    if (m->to->set && (e = m->to->set(m->to->arg, s->host, s->set)) < 0) return e;
    if (s->set->n_counters > m->cap && !ni_array_exact(&m->before, &m->cap, s->set->n_counters, sizeof *m->before)) return -ENOMEM;
  } else {
    e = m->to->pair(m->to->arg, s, m->before);
  }
  m->any = true;
  m->set_sn = s->set_sn;
  if (s->set->n_counters) memcpy(m->before, s->reading, s->set->n_counters * sizeof *m->before);
  return e;
}

int ni_series_pairs(const char *path, const struct ni_series_pairs *to, struct ni_series_end *end) {
  struct memory m = {.to = to};
  int e = ni_series_read(path, &(struct ni_series_to){.arg = &m, .sample = sample}, end);
  free(m.before);
  return e;
}
