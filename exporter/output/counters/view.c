#include "view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

const char *ni_counter_meaning(unsigned source, const char *name, char *out) {
  if (!ni_metric_meaning((enum ni_metric_source)source, name, out, NI_METRIC_MEANING))
    snprintf(out, NI_METRIC_MEANING, "its driver alone knows");
  return out;
}

const char *ni_change_name(unsigned state) {
  static const char *const names[] = {"none",  "changed", "level", "reset",     "stuck",
                                      "stale", "gone",    "new",   "unreadable"};
  return state < sizeof names / sizeof *names ? names[state] : "";
}

static bool is_figure_of(const struct ni_entity *e, const struct ni_figures *f) {
  const bool gpu = e->source == NI_METRIC_GPU;
  return gpu == (f->of->source == NI_METRIC_GPU) && strcmp(e->name, f->of->name) == 0;
}

static bool order_by_use(struct ni_counters_view *v) {
  const struct ni_pair *p = &v->pair;
  bool *taken = calloc(p->n_entities + 1, sizeof *taken);
  size_t n = 0;
  v->in_use = calloc(p->n_entities + 1, sizeof *v->in_use);
  for (size_t f = 0; taken && v->in_use && f <= v->n_figures; f++)
    for (uint32_t i = 0; i < p->n_entities; i++) {
      if (taken[i] || (f < v->n_figures && !is_figure_of(p->entity[i].of, &v->figures[f])))
        continue;
      taken[i] = true;
      v->in_use[n++] = i;
    }
  free(taken);
  return taken && v->in_use;
}

bool ni_counters_view_make(struct ni_counters_view *v) {
  const struct ni_sweep *b = &v->sweep[0], *a = &v->sweep[1];
  if (ni_pair_make(&v->pair, &b->set, b->reading, &a->set, a->reading) < 0 ||
      ni_counter_findings_make(&v->findings, &v->pair) < 0)
    return false;
  v->incomplete = ni_set_n_unread(&b->set) || ni_set_n_unread(&a->set);
  for (size_t i = 0; i < v->pair.n_entities; i++)
    v->changed += v->pair.entity[i].changed;
  for (size_t i = 0; i < v->pair.n_rows; i++)
    v->incomplete |= v->pair.row[i].change.state >= NI_CHANGE_STALE;
  v->ranked = ni_rank(&v->pair, &v->findings);
  v->figures = ni_figures_make(&v->pair, &v->n_figures);
  return v->ranked && v->figures && order_by_use(v);
}

/* The sweeps of a file that is to hold n of them; false: why is said. */
static bool read_sweeps(struct ni_sweep out[2], const char *path, int n, char *why, size_t cap) {
  char said[512];
  int got = ni_sweep_read(out, path, said, sizeof said);
  if (got == n)
    return true;
  snprintf(why, cap, "%s: %s", path,
           got < 0        ? said
               : got == 1 ? "one sweep: what came after it?"
                          : "holds two sweeps already: give it alone");
  if (got > 0)
    ni_sweep_free(&out[0]);
  if (got > 1)
    ni_sweep_free(&out[1]);
  return false;
}

bool ni_counters_view_read(struct ni_counters_view *v, const char *before, const char *after, char *why,
                           size_t cap) {
  struct ni_sweep second[2];
  *v = (struct ni_counters_view){0};
  bool has_read = read_sweeps(v->sweep, before, after ? 1 : 2, why, cap);
  if (has_read && after && (has_read = read_sweeps(second, after, 1, why, cap)))
    v->sweep[1] = second[0];
  if (has_read && ni_counters_view_make(v))
    return true;
  if (has_read)
    snprintf(why, cap, "%s", strerror(ENOMEM));
  ni_counters_view_free(v);
  return false;
}

void ni_counters_view_free(struct ni_counters_view *v) {
  ni_counter_findings_free(&v->findings);
  ni_pair_free(&v->pair);
  free(v->ranked);
  free(v->figures);
  free(v->in_use);
  ni_sweep_free(&v->sweep[0]);
  ni_sweep_free(&v->sweep[1]);
  *v = (struct ni_counters_view){0};
}

const char *ni_counters_verdict(const struct ni_counters_view *v, char *out, size_t size) {
  const struct ni_counter_findings *f = &v->findings;
  char took[32];
  if (f->n_faults)
    snprintf(out, size, "%s: %zu %s, first: %s", ni_level_name(f->finding->level), f->n_faults,
             ni_plural(f->n_faults, "finding", "findings"), f->finding->text);
  else if (v->pair.seconds > 0)
    snprintf(out, size, "%s: %s of %s counters changed in %s, and no finding",
             v->incomplete ? "incomplete" : "healthy", NI_COUNT(v->changed), NI_COUNT(v->pair.n_rows),
             ni_duration_text(v->pair.seconds * 1e6, took));
  else
    snprintf(out, size, "nothing to compare: no counter was read at two times");
  return out;
}
