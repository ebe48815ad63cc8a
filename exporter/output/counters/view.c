#include "view.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/plural.h"

const char *ni_change_name(unsigned state) {
  static const char *const names[] = {"none", "changed", "level", "reset", "stuck", "stale", "gone", "new", "unreadable"};
  return state < sizeof names / sizeof *names ? names[state] : "";
}

static void count(struct ni_counters_view *v) {
  for (size_t i = 0; i < v->pair.n_rows; i++) {
    v->state[v->pair.row[i].change.state]++;
    v->wrapped += v->pair.row[i].change.wrapped;
  }
  v->changed = v->state[NI_CHANGE_CHANGED] + v->state[NI_CHANGE_LEVEL];
  v->incomplete = v->state[NI_CHANGE_STALE] || v->state[NI_CHANGE_GONE] || v->state[NI_CHANGE_NEW] || v->state[NI_CHANGE_UNREADABLE] ||
                  v->sweep[0].set.n_unread || v->sweep[1].set.n_unread;
}

static bool work_out(struct ni_counters_view *v) {
  const struct ni_sweep *b = &v->sweep[0], *a = &v->sweep[1];
  if (ni_pair_make(&v->pair, &b->set, b->reading, &a->set, a->reading) < 0) return false;
  if (ni_counter_findings_make(&v->findings, &v->pair) < 0) return false;
  count(v);
  return (v->ranked = ni_rank(&v->pair, &v->findings)) != NULL;
}

bool ni_counters_view_read(struct ni_counters_view *v, const char *before, const char *after, char *why, size_t cap) {
  struct ni_sweep first[2] = {{.path = NULL}}, second[2] = {{.path = NULL}};
  char said[512];
  *v = (struct ni_counters_view){0};
  int n = ni_sweep_read(first, before, said, sizeof said), m = 0;
  const char *wrong = n < 0 ? said : n == 2 && after ? "holds two sweeps already: give it alone" : NULL;
  if (n == 1 && !after) wrong = "one sweep: what came after it?";
  if (!wrong && after) {
    before = after;
    m = ni_sweep_read(second, after, said, sizeof said);
    wrong = m < 0 ? said : m == 2 ? "holds two sweeps already: give it alone" : NULL;
  }
  v->sweep[0] = first[0];
  v->sweep[1] = n == 2 && !m ? first[1] : second[0];
  if (n == 2 && m) ni_sweep_free(&first[1]);
  if (m == 2) ni_sweep_free(&second[1]);
  if (wrong) snprintf(why, cap, "%s: %s", before, wrong);
  else if (!work_out(v)) snprintf(why, cap, "%s", strerror(ENOMEM));
  else return true;
  ni_counters_view_free(v);
  return false;
}

void ni_counters_view_free(struct ni_counters_view *v) {
  ni_counter_findings_free(&v->findings);
  ni_pair_free(&v->pair);
  free(v->ranked);
  ni_sweep_free(&v->sweep[0]);
  ni_sweep_free(&v->sweep[1]);
  *v = (struct ni_counters_view){0};
}

int ni_counters_worst(const struct ni_counters_view *v) {
  int worst = -1;
  for (size_t i = 0; i < v->findings.n; i++)
    if (v->findings.finding[i].level > worst) worst = v->findings.finding[i].level;
  return worst;
}

const char *ni_counters_verdict(const struct ni_counters_view *v, char *out, size_t size) {
  size_t faults = 0;
  for (size_t i = 0; i < v->findings.n; i++) faults += v->findings.finding[i].level > NI_LEVEL_INFO;
  if (faults)
    snprintf(out, size, "%s: %zu %s, first: %s", ni_counters_worst(v) == NI_LEVEL_CRITICAL ? "critical" : "warning", faults,
             ni_plural(faults, "finding", "findings"), v->findings.finding[0].text);
  else if (v->pair.seconds > 0)
    snprintf(out, size, "%s: %" PRIu64 " of %zu counters changed in %.3g s, and no finding",
             v->incomplete ? "incomplete" : "healthy", v->changed, v->pair.n_rows, v->pair.seconds);
  else snprintf(out, size, "nothing to compare: no counter was read at two times");
  return out;
}
