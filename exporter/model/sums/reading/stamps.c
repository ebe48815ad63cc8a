#include "stamps.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/partial/tables.h"
#include "reading.h"

/* ---- a range ------------------------------------------------------------------------------------------- */

void ni_stamps_of_context(const struct ni_sum_range *x, struct ni_seen_context *c) {
  c->stamp = 0;
  for (uint32_t i = 0; i < x->n_stamps; i++)
    if (x->stamp[i].member == c->c.member)
      c->stamp = i + 1;
}

static int find_or_add_stamp(struct ni_sum_range *x, uint32_t member, uint32_t *out) {
  for (*out = 0; *out < x->n_stamps; ++*out)
    if (x->stamp[*out].member == member)
      return 0;
  if (!ni_array_room(x->stamp, x->n_stamps, x->cap_stamps))
    return -ENOMEM;
  x->stamp[x->n_stamps++] = (struct ni_stamps_seen){.member = member};
  for (size_t i = 0; i < CONTEXT_SLOTS; i++)
    if (x->seen[i].used && x->seen[i].c.member == member)
      x->seen[i].stamp = x->n_stamps;
  return 0;
}

int ni_stamps_take(struct ni_sum_range *x, const struct ni_seen_context *c, const struct ni_clock_line *k) {
  uint32_t i;
  if (!ni_gpu_point_sound(k->gpu_offset_at_ns, k->gpu_offset_ns))
    return 0;
  int e = find_or_add_stamp(x, c->c.member, &i);
  if (e < 0)
    return e;
  x->stamp[i].stated_ns = ni_gpu_stated(k->gpu_offset_ns);
  return ni_gpu_points_add(&x->stamp[i].points, k->gpu_offset_at_ns, k->gpu_offset_ns);
}

int ni_stamps_note(struct ni_sum_range *x, int range) {
  int e = 0;
  pthread_mutex_lock(&x->r->lock);
  for (uint32_t i = 0; e == 0 && i < x->n_stamps; i++) {
    struct ni_stamps_log *l = ni_stamps_log(&x->r->stamps, x->stamp[i].member);
    if (l && ni_array_room(l->part, l->n, l->cap))
      l->part[l->n++] = (struct ni_stamps_part){(uint32_t)x->file_no, (uint32_t)range, x->stamp[i].stated_ns};
    else
      e = -ENOMEM;
  }
  pthread_mutex_unlock(&x->r->lock);
  return e;
}

static int add_points(struct ni_sum_range *x) {
  int e = 0;
  pthread_mutex_lock(&x->r->lock);
  for (uint32_t i = 0; e == 0 && i < x->n_stamps; i++) {
    struct ni_stamps_log *l = ni_stamps_log(&x->r->stamps, x->stamp[i].member);
    e = l ? ni_gpu_points_merge(&l->points, &x->stamp[i].points) : -ENOMEM;
  }
  pthread_mutex_unlock(&x->r->lock);
  return e;
}

int ni_stamps_hand_over(struct ni_sum_range *x, const struct ni_scan_part *p) {
  const struct ni_atlas *a = x->r->atlas;
  const enum ni_atlas_mode mode = ni_atlas_mode(a, p);
  struct ni_scan_part last = *p;
  if (mode == NI_ATLAS_ACCOUNT) /* granules are told already; what has grown behind them tells itself */
    last.part = x->r->plan.of_file[x->file_no].n - 1;
  int e = mode == NI_ATLAS_GRANULES ? 0 : add_points(x);
  if (e == 0 && mode != NI_ATLAS_GRANULES &&
      (last.part == p->part || ni_atlas_mode(a, &last) != NI_ATLAS_TAIL))
    e = ni_stamps_note(x, last.part);
  for (uint32_t i = 0; i < x->n_stamps; i++)
    ni_gpu_points_free(&x->stamp[i].points);
  x->n_stamps = 0;
  return e;
}

/* ---- the run ------------------------------------------------------------------------------------------- */

struct ni_stamps_log *ni_stamps_log(struct ni_stamps *s, uint32_t member) {
  while (s->n <= member) {
    if (!ni_array_room(s->log, s->n, s->cap))
      return NULL;
    s->log[s->n++] = (struct ni_stamps_log){0};
  }
  return &s->log[member];
}

static int compare_parts(const void *a, const void *b) {
  const struct ni_stamps_part *x = a, *y = b;
  return NI_BY(x, y, file, range);
}

/* What was stated last before that piece of the member's; NI_NO_OFFSET: nothing. */
static int64_t find_stated_before(const struct ni_stamps_log *l, const struct ni_piece *p) {
  const struct ni_stamps_part here = {.file = p->file, .range = p->range};
  size_t i;
  ni_array_search(i, l->n, compare_parts(&l->part[i], &here) < 0);
  return i ? l->part[i - 1].stated_ns : NI_NO_OFFSET;
}

int ni_stamps_find(struct ni_run *r) {
  struct ni_stamps *s = &r->stamps;
  struct ni_gpu_seat *seat = s->n ? calloc(s->n, sizeof *seat) : NULL;
  if (!seat)
    return s->n ? -ENOMEM : 0;
  for (uint32_t i = 0; i < s->n; i++) {
    struct ni_stamps_log *l = &s->log[i];
    const struct ni_who_member *m = &r->who.member[i];
    if (l->n > 1)
      qsort(l->part, l->n, sizeof *l->part, compare_parts);
    seat[i] = (struct ni_gpu_seat){m->process, m->comm, m->rank, &l->points, &l->clock};
  }
  const int e = ni_gpu_units_find(&s->units, seat, s->n);
  free(seat);
  return e;
}

void ni_stamps_free(struct ni_stamps *s) {
  for (size_t i = 0; i < s->n; i++) {
    ni_gpu_points_free(&s->log[i].points);
    free(s->log[i].part);
  }
  ni_gpu_units_free(&s->units);
  free(s->log);
  *s = (struct ni_stamps){0};
}

void ni_correct_stamp(const struct ni_stamps_log *l, const struct ni_piece *p, struct ni_entry *e) {
  if (e->timing != NI_TIMING_KERNEL_GPU || !ni_time_of_a_job(e->start_ns))
    return;
  const int64_t stated_ns = e->stated_ns ? e->stated_ns : find_stated_before(l, p);
  e->start_ns += ni_gpu_clock_correction(l->clock, stated_ns, e->start_ns);
}

/* ---- partial results ----------------------------------------------------------------------------------- */

static void wire_part(struct ni_wire *w, const struct ni_run *r, struct ni_stamps_part *p) {
  ni_wire_below(w, &p->file, r->files.n);
  NI_WIRE(w, &p->range, &p->stated_ns);
}

static void wire_log(struct ni_wire *w, const struct ni_run *r, struct ni_stamps_log *l) {
  size_t n = w->load ? 0 : l->n;
  if (!w->load && n > 1)
    qsort(l->part, n, sizeof *l->part, compare_parts);
  ni_gpu_points_wire(w, &l->points);
  ni_wire_count(w, &n, 3);
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_stamps_part p = {0};
    wire_part(w, r, w->load ? &p : &l->part[i]);
    if (!w->load || w->bad)
      continue;
    if (ni_gpu_offset_sound(p.stated_ns) && ni_array_room(l->part, l->n, l->cap))
      l->part[l->n++] = p;
    else
      w->bad = true;
  }
}

void ni_stamps_wire(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x) {
  struct ni_stamps *s = &r->stamps;
  for (uint32_t i = 0; i < x->member.n && !w->bad; i++) {
    const uint32_t member = x->member.number[i];
    bool any = !w->load && member < s->n && s->log[member].n;
    ni_wire_bool(w, &any);
    struct ni_stamps_log *l = any && !w->bad ? ni_stamps_log(s, member) : NULL;
    w->bad |= any && !l;
    if (l)
      wire_log(w, r, l);
  }
}
