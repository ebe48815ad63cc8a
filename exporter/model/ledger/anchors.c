#include "anchors.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "exporter/input/granules.h"
#include "implausible.h"
#include "format/names.h"

/*
 * In these functions every rank needs something from every other rank, so none ends before the last one has
 * begun.
 */
static bool is_meeting_point(enum ni_func func) {
  return func == NI_FUNC_ALLREDUCE || func == NI_FUNC_ALLGATHER || func == NI_FUNC_REDUCESCATTER;
}

static void drop_unwanted(struct ni_anchors *a) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < a->n; i++)
    if (a->item[i].pick <= UINT64_MAX >> a->halved)
      a->item[kept++] = a->item[i];
  a->n = kept;
}

int ni_anchors_add(struct ni_anchors *a, const struct ni_anchor *x) {
  if (x->pick > UINT64_MAX >> a->halved)
    return 0;
  for (uint32_t i = 0; i < a->n; i++) {
    struct ni_anchor *y = &a->item[i];
    if (y->pick != x->pick || y->sn != x->sn || y->func != x->func)
      continue;
    if (x->start_ns < y->start_ns || (x->start_ns == y->start_ns && x->end_ns < y->end_ns))
      *y = *x;
    return 0;
  }
  if (!ni_array_room(a->item, a->n, a->cap))
    return -ENOMEM;
  a->item[a->n++] = *x;
  while (a->n > NI_ANCHORS_MOST && a->halved < 63) {
    a->halved++;
    drop_unwanted(a);
  }
  return 0;
}

int ni_anchors_add_clock(struct ni_anchors *a, const struct ni_clock_line *k) {
  if (!ni_gpu_point_sound(k->gpu_offset_at_ns, k->gpu_offset_ns))
    return 0;
  a->stated_ns = ni_gpu_stated(k->gpu_offset_ns);
  return ni_gpu_points_add(&a->gpu, k->gpu_offset_at_ns, k->gpu_offset_ns);
}

int ni_anchors_add_line(struct ni_anchors *a, const struct ni_line *l) {
  const struct ni_record *o = &l->op;
  const enum ni_func func = ni_func_from_name(o->func);
  const bool kernel = o->timing == NI_TIMING_KERNEL_GPU || o->timing == NI_TIMING_KERNEL_CPU;
  const int64_t start = ni_start_ns(l), exec = (int64_t)ni_exec_ns(o);
  const bool tells = kernel && is_meeting_point(func) && o->msg_bytes > 0 && ni_time_of_a_job(start) &&
      ni_implausible(o) == NI_PLAUSIBLE;
  const bool by_gpu = o->timing == NI_TIMING_KERNEL_GPU && (o->has & NI_HAS_GPU_DELTA);
  /*
   * Of several calls that one kernel did all have its time: the numbers tell them apart, and the times are
   * right.
   */
  if (!tells)
    return 0;
  return ni_anchors_add(a,
                        &(struct ni_anchor){.pick = ni_anchor_pick(o->sn, o->msg_bytes),
                                            .sn = o->sn,
                                            .bytes = o->msg_bytes,
                                            .start_ns = start,
                                            .end_ns = start + exec,
                                            .stated_ns = by_gpu ? a->stated_ns : NI_NO_OFFSET,
                                            .func = (uint32_t)func});
}

int ni_anchors_merge(struct ni_anchors *a, const struct ni_anchors *b) {
  int e = 0;
  if (b->halved > a->halved) {
    a->halved = b->halved;
    drop_unwanted(a);
  }
  for (uint32_t i = 0; e == 0 && i < b->n; i++) {
    struct ni_anchor x = b->item[i];
    x.stated_ns = x.stated_ns ? x.stated_ns : a->stated_ns;
    e = ni_anchors_add(a, &x);
  }
  if (e == 0)
    e = ni_gpu_points_merge(&a->gpu, &b->gpu);
  a->stated_ns = b->stated_ns ? b->stated_ns : a->stated_ns;
  return e;
}

static NI_ORDER_BY(by_number, struct ni_anchor, func, bytes, sn);

void ni_anchors_wire(struct ni_wire *w, struct ni_anchors *a) {
  size_t n = a->n;
  struct ni_anchor last = {0};
  if (!w->load && n > 1)
    qsort(a->item, n, sizeof *a->item, by_number);
  ni_wire_below(w, &a->halved, 64);
  ni_wire_count(w, &n, 5);
  w->bad |= n > NI_ANCHORS_MOST;
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_anchor x = w->load ? (struct ni_anchor){0} : a->item[i];
    int64_t sn = (int64_t)(x.sn - last.sn);
    bool same = x.func == last.func && x.bytes == last.bytes;
    uint64_t length = (uint64_t)x.end_ns - (uint64_t)x.start_ns;
    int64_t since = (int64_t)((uint64_t)x.start_ns - (uint64_t)last.start_ns);
    NI_WIRE(w, &same, &sn, &since, &length);
    if (!same) {
      ni_wire_below(w, &x.func, NI_FUNC_COUNT);
      ni_wire_u64(w, &x.bytes);
    }
    if (w->load) {
      if (same) {
        x.func = last.func;
        x.bytes = last.bytes;
      }
      x.sn = last.sn + (uint64_t)sn;
      x.start_ns = (int64_t)((uint64_t)last.start_ns + (uint64_t)since);
      x.end_ns = (int64_t)((uint64_t)x.start_ns + length);
      x.pick = ni_anchor_pick(x.sn, x.bytes);
      const bool sound = ni_time_of_a_job(x.start_ns) && length <= NI_MAX_EXEC_NS;
      w->bad = w->bad || !sound || ni_anchors_add(a, &x) < 0;
    }
    last = x;
  }
}

static void wire_stated(struct ni_wire *w, int64_t *stated_ns) {
  ni_wire_i64(w, stated_ns);
  w->bad |= *stated_ns != NI_NO_OFFSET && !ni_gpu_offset_sound(*stated_ns);
}

void ni_anchors_wire_clock(struct ni_wire *w, struct ni_anchors *a) {
  ni_gpu_points_wire(w, &a->gpu);
  wire_stated(w, &a->stated_ns);
  for (uint32_t i = 0; i < a->n && !w->bad; i++)
    wire_stated(w, &a->item[i].stated_ns);
}

void ni_anchors_free(struct ni_anchors *a) {
  free(a->item);
  ni_gpu_points_free(&a->gpu);
  *a = (struct ni_anchors){0};
}
