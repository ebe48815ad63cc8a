#include "rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define RATE_NS INT64_C(1900000000) /* two writes of a log, however the ticks lie */
#define APART_NS (RATE_NS / 4)      /* leaps that are nearer to each other count as one */
enum { LEAPS = 8 };

struct leap {
  int64_t time_ns;
  uint64_t number; /* of all leaps of the job */
  uint64_t operations, bytes;
  double bus_bytes, bus_seconds;
};
struct ni_rates_job {
  char job[64], attempt[16];
  uint32_t uid;
  struct leap last, at[LEAPS]; /* last: the newest; at: some before it and it, the oldest first */
  unsigned n;
  int64_t gap_ns; /* how far leaps are apart */
  bool silent;
  double operations_s, bytes_s, bus_got, bus_took;
};

static bool same(const struct leap *a, const struct leap *b) {
  return a->operations == b->operations && a->bytes == b->bytes && a->bus_bytes == b->bus_bytes &&
      a->bus_seconds == b->bus_seconds;
}

static void tell(struct ni_rates_job *r, double operations_s, double bytes_s, double bus_got,
                 double bus_took) {
  r->operations_s = operations_s;
  r->bytes_s = bytes_s;
  r->bus_got = bus_got;
  r->bus_took = bus_took;
}

static void begin(struct ni_rates_job *r, const struct leap *now) {
  r->last = r->at[0] = *now;
  r->n = 1;
  r->gap_ns = 0;
  r->silent = false;
  tell(r, NAN, NAN, 0, 0);
}

static void leap(struct ni_rates_job *r, struct leap *now) {
  unsigned from = r->n - 1;
  now->number = r->last.number + 1;
  if (now->number == 1 && now->time_ns - r->last.time_ns < RATE_NS)
    return begin(r, now);
  if (r->silent) {
    r->at[from = 0] = r->last;
    r->at[0].time_ns = now->time_ns - r->gap_ns;
    r->n = 1;
    r->silent = false;
  }
  while (from > 0 && now->time_ns - r->at[from].time_ns < RATE_NS)
    from--;
  const struct leap *was = &r->at[from];
  double s = (double)(now->time_ns - was->time_ns) / 1e9;
  r->gap_ns = (now->time_ns - was->time_ns) / (int64_t)(now->number - was->number);
  tell(r, (double)(now->operations - was->operations) / s, (double)(now->bytes - was->bytes) / s,
       now->bus_bytes - was->bus_bytes, now->bus_seconds - was->bus_seconds);
  r->last = *now;
  if (now->time_ns - r->at[r->n - 1].time_ns < APART_NS)
    return;
  if (r->n == LEAPS)
    memmove(r->at, r->at + 1, --r->n * sizeof *r->at);
  r->at[r->n++] = *now;
}

static void take(struct ni_rates_job *r, const struct ni_sample_job *j, int64_t time_ns) {
  struct leap now = {time_ns, 0, j->operations, j->bytes, j->bus_bytes, j->bus_seconds}, *last = &r->last;
  int64_t quiet = 2 * r->gap_ns > RATE_NS ? 2 * r->gap_ns : RATE_NS;
  if (j->operations < last->operations || j->bytes < last->bytes || j->bus_bytes < last->bus_bytes ||
      j->bus_seconds < last->bus_seconds)
    begin(r, &now);
  else if (!same(&now, last) && time_ns > last->time_ns)
    leap(r, &now);
  else if (!r->silent && r->gap_ns && time_ns - last->time_ns > quiet) {
    r->silent = true;
    tell(r, 0, 0, 0, 0);
  }
}

void ni_rates_take(struct ni_rates *r, struct ni_sample *s) {
  struct ni_rates_job *all = s->n_jobs ? calloc(s->n_jobs, sizeof *all) : NULL;
  for (uint32_t i = 0; i < s->n_jobs; i++) {
    struct ni_sample_job *j = &s->job[i];
    j->operations_s = j->bytes_s = (double)NAN;
    j->bus_got = j->bus_took = 0;
    if (!all)
      continue;
    const struct ni_rates_job *was = NULL;
    for (size_t k = 0; k < r->n && !was; k++)
      if (r->of[k].uid == j->uid && !strcmp(r->of[k].job, j->job) && !strcmp(r->of[k].attempt, j->attempt))
        was = &r->of[k];
    if (was) {
      all[i] = *was;
      take(&all[i], j, s->time_ns);
    } else {
      memcpy(all[i].job, j->job, sizeof j->job);
      memcpy(all[i].attempt, j->attempt, sizeof j->attempt);
      all[i].uid = j->uid;
      begin(&all[i], &(struct leap){s->time_ns, 0, j->operations, j->bytes, j->bus_bytes, j->bus_seconds});
    }
    j->operations_s = all[i].operations_s;
    j->bytes_s = all[i].bytes_s;
    j->bus_got = all[i].bus_got;
    j->bus_took = all[i].bus_took;
  }
  free(r->of);
  r->of = all;
  r->n = all ? s->n_jobs : 0;
}

void ni_rates_free(struct ni_rates *r) {
  free(r->of);
  *r = (struct ni_rates){0};
}
