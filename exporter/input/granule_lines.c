/*
 * Of a map: the lines that it keeps, and when the operations and events of a granule ran.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "granules.h"

static bool has_room(struct ni_granules *g, size_t bytes) {
  g->odd |= g->n_text + g->n_kept * NI_KEPT_CLOCK + bytes > NI_KEPT_MAX;
  return !g->odd;
}

int ni_kept_text(struct ni_granules *g, uint32_t granule, const char *text, size_t len) {
  if (!has_room(g, len + NI_KEPT_CLOCK) || !len)
    return 0;
  if (g->cap_text < g->n_text + len && !ni_array_more(&g->kept_text, &g->cap_text, g->n_text + len, 1))
    return -ENOMEM;
  if (!ni_array_room(g->kept, g->n_kept, g->cap_kept))
    return -ENOMEM;
  memcpy(g->kept_text + g->n_text, text, len);
  g->kept[g->n_kept++] = (struct ni_kept){.granule = granule, .at = g->n_text, .len = len};
  g->n_text += len;
  return 0;
}

int ni_kept_clock(struct ni_granules *g, uint32_t granule, uint32_t context, int64_t at_ns,
                  int64_t offset_ns) {
  struct ni_granule_context *c = &g->context[context];
  if ((c->clock_offset_ns == offset_ns && c->clock_at_ns == at_ns) || !has_room(g, NI_KEPT_CLOCK))
    return 0;
  if (!ni_array_room(g->kept, g->n_kept, g->cap_kept))
    return -ENOMEM;
  g->kept[g->n_kept++] =
      (struct ni_kept){.granule = granule, .context = context, .at_ns = at_ns, .offset_ns = offset_ns};
  c->clock_at_ns = at_ns;
  c->clock_offset_ns = offset_ns;
  return 0;
}

enum ni_placed ni_place(const struct ni_line *l, int64_t *start_ns, int64_t *dur_ns) {
  const struct ni_record *o = &l->op;
  enum ni_placed how = NI_NOWHERE;
  uint64_t exec = ni_exec_ns(o);
  if (exec > NI_MAX_EXEC_NS)
    return NI_NOWHERE;
  *dur_ns = (int64_t)exec;
  if (o->timing == NI_TIMING_KERNEL_GPU && (o->has & NI_HAS_ENQUEUE) && (o->has & NI_HAS_GPU_DELTA)) {
    if (__builtin_add_overflow((int64_t)o->enqueue_ns, o->gpu_start_delta_ns, start_ns))
      return NI_NOWHERE;
    how = NI_BY_GPU;
  } else if (o->timing != NI_TIMING_COLLECTIVE_CPU && (*start_ns = ni_first_channel_ns(l))) {
    how = NI_BY_CPU;
  }
  if (how == NI_NOWHERE && (o->has & NI_HAS_ENQUEUE)) {
    *start_ns = (int64_t)o->enqueue_ns;
    how = NI_BY_ENQUEUE;
  }
  const struct ni_trace *t = how == NI_NOWHERE ? l->trace : NULL;
  if (t && t->has_ts && t->start_us && t->start_us < INT64_MAX / 1000) {
    *start_ns = (int64_t)t->start_us * 1000;
    how = NI_BY_ENQUEUE;
  }
  return how != NI_NOWHERE && ni_time_of_a_job(*start_ns) ? how : NI_NOWHERE;
}

/* dur_ns < 0: without an end. */
static void extend_reach(struct ni_granule *x, int64_t from_ns, int64_t dur_ns) {
  int64_t to;
  if (!ni_time_of_a_job(from_ns))
    return; /* is not drawn */
  if (dur_ns < 0 || __builtin_add_overflow(from_ns, dur_ns, &to))
    to = INT64_MAX;
  if (from_ns < x->begin_ns)
    x->begin_ns = from_ns;
  if (to > x->end_ns)
    x->end_ns = to;
}

static void extend_reach_us(struct ni_granule *x, uint64_t from_us, uint64_t to_us) {
  if (from_us && from_us < INT64_MAX / 1000)
    extend_reach(x, (int64_t)from_us * 1000,
                 to_us < from_us                ? 0
                     : to_us < INT64_MAX / 1000 ? (int64_t)(to_us - from_us) * 1000
                                                : -1);
}

/* A plain one of a GPU, as most are: extend_reach() of its start and of its enqueue. */
static bool extend_reach_plain(struct ni_granules *g, const struct ni_record *o, int64_t start) {
  struct ni_granule *x = &g->item[g->n - 1];
  const uint64_t exec = ni_exec_ns(o);
  const int64_t enqueue = (int64_t)o->enqueue_ns, begin = enqueue < start ? enqueue : start,
                end = start + (int64_t)exec;
  const bool has_times = o->timing == NI_TIMING_KERNEL_GPU && o->has & NI_HAS_GPU_DELTA;
  if (!has_times || exec > NI_MAX_EXEC_NS)
    return false;
  if (!ni_time_of_a_job(begin) || !ni_time_of_a_job(start))
    return false;
  if (start < g->first_ns)
    g->first_ns = start;
  if (start > g->last_ns)
    g->last_ns = start;
  if (begin < x->begin_ns)
    x->begin_ns = begin;
  if (end > x->end_ns)
    x->end_ns = end;
  if (enqueue > x->end_ns)
    x->end_ns = enqueue;
  return true;
}

void ni_reach_operation(struct ni_granules *g, uint32_t sort, const struct ni_line *l, int64_t start_ns) {
  struct ni_granule *x = &g->item[g->n - 1];
  const struct ni_trace *t = l->trace;
  int64_t start, dur;
  if (!t && start_ns != NI_NO_START && extend_reach_plain(g, &l->op, start_ns))
    return;
  if (ni_place(l, &start, &dur) == NI_NOWHERE) {
    g->sort[sort].untimed++;
    return;
  }
  if (start < g->first_ns)
    g->first_ns = start;
  if (start > g->last_ns)
    g->last_ns = start;
  extend_reach(x, start, dur);
  if (l->op.has & NI_HAS_ENQUEUE)
    extend_reach(x, (int64_t)l->op.enqueue_ns, 0);
  if (!t || !t->has_ts)
    return;
  if ((l->op.has & NI_HAS_ENQUEUE) && t->stop_us > t->start_us && t->stop_us - t->start_us < 3600000000u)
    extend_reach(x, (int64_t)l->op.enqueue_ns, (int64_t)(t->stop_us - t->start_us) * 1000);
  for (uint32_t i = 0; i < t->n; i++)
    extend_reach_us(x, t->event[i].start_us, t->event[i].stop_us);
}

/* -1: no time of a network operation. */
static int64_t convert_known_us(double us) {
  return isfinite(us) && us >= 0 && us < 3.6e9 ? llround(us * 1000) : -1;
}

void ni_reach_event(struct ni_granules *g, const struct ni_line *l) {
  struct ni_granule *x = &g->item[g->n - 1];
  const struct ni_proxy_line *p = &l->proxy;
  if (l->kind != NI_LINE_PROXY) {
    bool flip = l->kind == NI_LINE_PROXY_CTRL &&
        (strcmp(l->event.what, "idle") == 0 || strcmp(l->event.what, "active") == 0);
    extend_reach(x, (int64_t)l->event.start_ns, flip ? 0 : l->event.dur_ns);
    return;
  }
  for (uint64_t i = 0; i < p->steps.n; i++) {
    int64_t ns = convert_known_us(p->steps.list[i].total_us);
    extend_reach(x, (int64_t)p->steps.list[i].start_ns, ns < 0 ? 0 : ns);
  }
  if (ni_proxy_has_figures(p))
    extend_reach(x, (int64_t)p->start_ns, convert_known_us(p->total_us));
}
