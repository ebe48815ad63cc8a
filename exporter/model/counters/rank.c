#include "rank.h"

#include <math.h>
#include <stdlib.h>

static const char *const trouble[] = {
    "*err*",   "*drop*", "*discard*", "*nack*", "*retr*",    "*timeout*", "*replay*", "*uncor*",
    "*_ucor*", "*oflw*", "*overrun*", "*down*", "*restart*", "*cancel*",  "*mbe*",    NULL};
static const char *const quiet[] = {"*idle*", "hni_pcs_good_cw", "hni_llr_*ack*", NULL};

double ni_counter_unusual(const char *name, double rate, double usual) {
  if (ni_metric_fits_any(quiet, name))
    return -1;
  bool bad = ni_metric_fits_any(trouble, name);
  double least = bad ? 0.01 : 1; /* a second: less is as good as nothing */
  if (isnan(usual) && !bad)
    return 0;
  return fabs(log2((rate + least) / ((isnan(usual) ? 0 : usual) + least)));
}

/* The median of the same counter on the other entities of its kind. of: room for all entities. */
static double find_baseline(const struct ni_pair *p, const struct ni_pair_row *r, double *of) {
  size_t n = 0;
  for (uint32_t k = 0; k < p->n_entities; k++) {
    const struct ni_pair_entity *e = &p->entity[k];
    if (k == r->entity || e->of->source != p->entity[r->entity].of->source || e->seconds <= 0)
      continue;
    const struct ni_pair_row *o = ni_pair_row(p, k, r->name);
    if (o && o->change.state <= NI_CHANGE_CHANGED)
      of[n++] = ni_pair_rate(o);
  }
  return ni_pair_median(of, n);
}

static int by_rank(const void *a, const void *b, void *pair) {
  const struct ni_ranked *x = a, *y = b;
  const struct ni_pair *p = pair;
  double v = ni_pair_rate(&p->row[x->row]), w = ni_pair_rate(&p->row[y->row]);
  if (x->unusual != y->unusual)
    return x->unusual > y->unusual ? -1 : 1;
  if (v != w)
    return v > w ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

enum { NOT_CHANGED = -2, PROOF = 1000 };

struct ni_ranked *ni_rank(const struct ni_pair *p, const struct ni_counter_findings *f) {
  struct ni_ranked *out = calloc(p->n_rows + 1, sizeof *out);
  double *room = malloc((p->n_entities + 1) * sizeof *room);
  if (!out || !room) {
    free(out);
    free(room);
    return NULL;
  }
  for (uint32_t i = 0; i < p->n_rows; i++) {
    const struct ni_pair_row *r = &p->row[i];
    /* A level says nothing of what happened in between. */
    out[i] = (struct ni_ranked){i, NAN, r->change.state == NI_CHANGE_LEVEL ? 0 : NOT_CHANGED};
    if (r->change.state != NI_CHANGE_CHANGED)
      continue;
    out[i].usual = find_baseline(p, r, room);
    out[i].unusual = ni_counter_unusual(r->name, ni_pair_rate(r), out[i].usual);
  }
  free(room);
  for (size_t i = 0; i < f->n; i++) {
    const struct ni_counter_finding *x = &f->finding[i];
    if (x->row && x->level > NI_LEVEL_INFO)
      out[x->row - p->row].unusual += PROOF * x->level;
  }
  for (size_t k = 0; k < p->n_entities; k++)
    qsort_r(out + p->entity[k].first, p->entity[k].n, sizeof *out, by_rank, (void *)p);
  return out;
}
