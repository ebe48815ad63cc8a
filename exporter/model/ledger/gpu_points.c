#include "gpu_points.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "format/timing.h"

enum { COARSEST = 62 };

static NI_ORDER_BY(by_time, struct ni_gpu_point, at_ns, offset_ns);

static bool is_lower(const struct ni_gpu_point *a, const struct ni_gpu_point *b) {
  return a->offset_ns != b->offset_ns ? a->offset_ns < b->offset_ns : a->at_ns < b->at_ns;
}

void ni_gpu_points_sort(struct ni_gpu_points *c) {
  if (c->n > 1)
    qsort(c->item, c->n, sizeof *c->item, by_time);
  for (bool any = true; any; c->coarse += any) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
      const struct ni_gpu_point *p = &c->item[i];
      if (kept && c->item[kept - 1].at_ns >> c->coarse == p->at_ns >> c->coarse) {
        if (is_lower(p, &c->item[kept - 1]))
          c->item[kept - 1] = *p;
      } else {
        c->item[kept++] = *p;
      }
    }
    c->n = kept;
    any = kept > NI_GPU_POINTS_MOST && c->coarse < COARSEST;
  }
}

int ni_gpu_points_add(struct ni_gpu_points *c, int64_t at_ns, int64_t offset_ns) {
  if (c->n >= 2 * (size_t)NI_GPU_POINTS_MOST)
    ni_gpu_points_sort(c);
  if (!ni_array_room(c->item, c->n, c->cap))
    return -ENOMEM;
  c->item[c->n++] = (struct ni_gpu_point){at_ns, offset_ns};
  return 0;
}

int ni_gpu_points_merge(struct ni_gpu_points *c, const struct ni_gpu_points *b) {
  int e = 0;
  if (b->coarse > c->coarse)
    c->coarse = b->coarse;
  c->was_set |= b->was_set;
  for (size_t i = 0; e == 0 && i < b->n; i++)
    e = ni_gpu_points_add(c, b->item[i].at_ns, b->item[i].offset_ns);
  return e;
}

void ni_gpu_points_wire(struct ni_wire *w, struct ni_gpu_points *c) {
  struct ni_gpu_point before = {0};
  uint32_t coarse = 0;
  if (!w->load) {
    ni_gpu_points_sort(c);
    coarse = c->coarse;
  }
  size_t n = w->load ? 0 : c->n;
  ni_wire_below(w, &coarse, COARSEST + 1);
  ni_wire_count(w, &n, 2);
  w->bad |= n > NI_GPU_POINTS_MOST;
  if (coarse > c->coarse)
    c->coarse = coarse;
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_gpu_point p = w->load ? (struct ni_gpu_point){0} : c->item[i];
    int64_t at = p.at_ns - before.at_ns, up = (int64_t)((uint64_t)p.offset_ns - (uint64_t)before.offset_ns);
    NI_WIRE(w, &at, &up);
    if (w->load && __builtin_add_overflow(before.at_ns, at, &p.at_ns))
      w->bad = true;
    if (w->load)
      p.offset_ns = (int64_t)((uint64_t)before.offset_ns + (uint64_t)up);
    w->bad |= !ni_gpu_point_sound(p.at_ns, p.offset_ns);
    if (w->load && !w->bad && ni_gpu_points_add(c, p.at_ns, p.offset_ns) < 0)
      w->bad = true;
    before = p;
  }
}

void ni_gpu_points_judge(struct ni_gpu_points *c) {
  ni_gpu_points_sort(c);
  for (size_t i = 1; i < c->n; i++) {
    const struct ni_gpu_point *a = &c->item[i - 1], *b = &c->item[i];
    const int64_t up = ni_sub_sat(b->offset_ns, a->offset_ns);
    const int64_t may = ni_gpu_tolerance((uint64_t)a->at_ns, (uint64_t)b->at_ns);
    const bool is_settled = b->at_ns - c->item[0].at_ns > NI_GPU_SETTLING_NS;
    c->was_set |= up > may || up < -(is_settled ? may : NI_GPU_LATEST_NS);
  }
}

void ni_gpu_points_free(struct ni_gpu_points *c) {
  free(c->item);
  *c = (struct ni_gpu_points){0};
}
