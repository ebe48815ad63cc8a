#include "rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const trouble[] = {"*err*",  "*drop*", "*discard*", "*nack*",  "*retr*",  "*timeout*", "*replay*", "*uncor*",
                                      "*_ucor*", "*oflw*", "*overrun*", "*down*", "*restart*", "*cancel*", "*mbe*"};
static const char *const quiet[] = {"*idle*", "hni_pcs_good_cw", "hni_llr_*ack*"};

static bool fits_any(const char *const *pattern, size_t n, const char *name) {
  for (size_t i = 0; i < n; i++)
    if (ni_metric_fits(pattern[i], name)) return true;
  return false;
}
#define FITS(list, name) fits_any(list, sizeof list / sizeof *(list), name)

double ni_counter_unusual(const char *name, double rate, double usual) {
  if (FITS(quiet, name)) return -1;
  bool bad = FITS(trouble, name);
  double least = bad ? 0.01 : 1; /* a second: less is as good as nothing */
  if (isnan(usual) && !bad) return 0;
  return fabs(log2((rate + least) / ((isnan(usual) ? 0 : usual) + least)));
}

static int by_size(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* The median of the same counter of the others of its kind. All mostly have it at the same place. of: room for all entities. */
static double usual(const struct ni_pair *p, const struct ni_pair_row *r, double *of) {
  const struct ni_pair_entity *own = &p->entity[r->entity];
  uint32_t place = (uint32_t)(r - p->row) - own->first;
  size_t n = 0;
  for (uint32_t k = 0; k < p->n_entities; k++) {
    const struct ni_pair_entity *e = &p->entity[k];
    if (k == r->entity || e->of->source != own->of->source || e->seconds <= 0) continue;
    const struct ni_pair_row *o = place < e->n ? &p->row[e->first + place] : NULL;
    if (!o || strcmp(o->name, r->name) != 0) o = ni_pair_row(p, k, r->name);
    if (o && o->change.state <= NI_CHANGE_CHANGED) of[n++] = ni_pair_rate(o);
  }
  qsort(of, n, sizeof *of, by_size);
  return n ? of[n / 2] : NAN;
}

static int by_rank(const void *a, const void *b, void *pair) {
  const struct ni_ranked *x = a, *y = b;
  const struct ni_pair *p = pair;
  double v = ni_pair_rate(&p->row[x->row]), w = ni_pair_rate(&p->row[y->row]);
  if (x->unusual != y->unusual) return x->unusual > y->unusual ? -1 : 1;
  if (v != w) return v > w ? -1 : 1;
  return x->row < y->row ? -1 : x->row > y->row;
}

enum { NOT_CHANGED = -2, PROOF = 1000 };

struct ni_ranked *ni_rank(const struct ni_pair *p, const struct ni_counter_findings *f) {
  struct ni_ranked *out = calloc(p->n_rows + 1, sizeof *out);
  double *room = malloc((p->n_entities + 1) * sizeof *room);
  for (uint32_t i = 0; out && room && i < p->n_rows; i++) {
    const struct ni_pair_row *r = &p->row[i];
    out[i] = (struct ni_ranked){i, NAN, NOT_CHANGED};
    if (r->change.state == NI_CHANGE_CHANGED) {
      out[i].usual = usual(p, r, room);
      out[i].unusual = ni_counter_unusual(r->name, ni_pair_rate(r), out[i].usual);
    } else if (r->change.state == NI_CHANGE_LEVEL) {
      out[i].unusual = 0; /* a level says nothing of what happened in between */
    }
  }
  for (size_t i = 0; out && room && i < f->n; i++)
    if (f->finding[i].row && f->finding[i].level > NI_LEVEL_INFO) out[f->finding[i].row - p->row].unusual += PROOF * f->finding[i].level;
  for (size_t k = 0; out && room && k < p->n_entities; k++)
    qsort_r(out + p->entity[k].first, p->entity[k].n, sizeof *out, by_rank, (void *)p);
  if (!room) {
    free(out);
    out = NULL;
  }
  free(room);
  return out;
}
