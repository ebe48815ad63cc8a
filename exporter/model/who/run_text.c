/* How runs are named, by users and to them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/plural.h"
#include "exporter/base/text/time_text.h"
#include "who.h"

uint32_t ni_runs_named(const struct ni_runs *r, const char *which) {
  uint32_t found = 0;
  char *end;
  if (strcmp(which, "last") == 0)
    return (uint32_t)r->n;
  for (size_t i = 0; i < r->n; i++)
    if (r->run[i].job && strcmp(r->run[i].job, which) == 0) {
      if (found)
        return 0; /* a job that was started again: by number */
      found = (uint32_t)i + 1;
    }
  unsigned long n = strtoul(which, &end, 10);
  const bool is_number = *which >= '1' && *which <= '9' && !*end && n <= r->n;
  if (found)
    return found;
  return is_number ? (uint32_t)n : 0;
}

const char *ni_run_text(const struct ni_runs *r, size_t run, char out[256]) {
  const struct ni_job_run *x = &r->run[run];
  char when[40] = "", doubt[96] = "";
  if (x->start_ns)
    ni_utc_text(x->start_ns / 1000, ' ', 0, when);
  if (x->mixed_with)
    snprintf(doubt, sizeof doubt, "; nothing tells it from run %u for sure", x->mixed_with);
  else if (x->parts > 1)
    snprintf(doubt, sizeof doubt, "; or several jobs: %u groups without a communicator in common", x->parts);
  snprintf(out, 256, "run %zu (%s%.80s%s%u %s%s%s%s)", run + 1, x->job ? "job " : "", x->job ? x->job : "",
           x->job ? ", " : "", x->processes, ni_plural(x->processes, "process", "processes"),
           *when ? ", from " : "", when, doubt);
  return out;
}

bool ni_runs_are_doubtful(const struct ni_runs *r) {
  for (size_t i = 0; i < r->n; i++)
    if (r->run[i].mixed_with || r->run[i].parts > 1)
      return true;
  return false;
}

void ni_runs_free(struct ni_runs *r) {
  for (size_t i = 0; i < r->n; i++)
    free(r->run[i].job);
  free(r->run);
  *r = (struct ni_runs){0};
}
