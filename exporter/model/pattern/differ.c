#include "differ.h"

#include <errno.h>
#include <stdlib.h>

#include "lanes.h"

static const struct ni_pattern_lane *find_lane_like(const struct ni_program *p,
                                                    const struct ni_pattern_lane *l) {
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    const struct ni_pattern_lane *x = &p->lane[i];
    const bool same_comm = x->label == l->label && x->n_ranks == l->n_ranks && x->ordinal == l->ordinal;
    if (same_comm && x->kind == l->kind && x->peer == l->peer)
      return x;
  }
  return NULL;
}

static uint64_t hash_at(const struct ni_program *p, const struct ni_pattern_lane *l, uint32_t i) {
  return ni_place_hash(&p->place[l->first + i % l->n], l->sizes_vary);
}

/* Counts how many operations are equal, if the other lane is counted from `from`. */
static uint32_t count_equal_ops(const struct ni_program *p, const struct ni_pattern_lane *l,
                                const struct ni_program *q, const struct ni_pattern_lane *m, uint32_t from) {
  uint32_t n = 0;
  while (n < l->n && n < m->n && hash_at(p, l, n) == hash_at(q, m, from + n))
    n++;
  return n;
}

/* From where the other lane is to be counted: from its begin, unless already the first operations differ. */
static uint32_t find_turn(const struct ni_program *p, const struct ni_pattern_lane *l,
                          const struct ni_program *q, const struct ni_pattern_lane *m) {
  uint32_t best = 0, most = count_equal_ops(p, l, q, m, 0);
  for (uint32_t from = 1; most == 0 && from < m->n; from++)
    if (count_equal_ops(p, l, q, m, from)) {
      best = from;
      break;
    }
  return best;
}

static void set_difference(struct ni_pattern_difference *out, uint32_t position,
                           const struct ni_pattern_lane *lane, const struct ni_pattern_place *here,
                           const struct ni_pattern_place *there) {
  if (out->lane && position >= out->position)
    return;
  *out = (struct ni_pattern_difference){position, lane, here, there};
}

static void compare_lanes(const struct ni_program *p, const struct ni_pattern_lane *l,
                          const uint32_t *position, const struct ni_program *q,
                          struct ni_pattern_difference *out) {
  const struct ni_pattern_lane *m = find_lane_like(q, l);
  if (m && m->ring == l->ring)
    return;
  if (l->n == 0) {
    set_difference(out, UINT32_MAX, l, NULL, m && m->n ? &q->place[m->first] : NULL);
    return;
  }
  if (!m || m->n == 0) {
    set_difference(out, position[l->first], l, &p->place[l->first], NULL);
    return;
  }
  const uint32_t from = find_turn(p, l, q, m), same = count_equal_ops(p, l, q, m, from);
  const bool has_more = same == l->n, ends = same == m->n;
  const uint32_t at = l->first + (has_more ? l->n - 1 : same);
  set_difference(out, position[at], l, has_more ? NULL : &p->place[at],
                 ends ? NULL : &q->place[m->first + (from + same) % m->n]);
}

/* Operations on equal lanes all count. On other lanes they count as far as the lanes begin equally. */
static uint32_t count_in_common(const struct ni_program *p, const struct ni_program *q) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    const struct ni_pattern_lane *l = &p->lane[i], *m = find_lane_like(q, l);
    if (!m || !l->n || !m->n)
      continue;
    n += 1 + (m->ring == l->ring ? l->n : count_equal_ops(p, l, q, m, find_turn(p, l, q, m)));
  }
  return n;
}

uint32_t ni_pattern_nearest(const struct ni_pattern *p, uint32_t first, uint32_t k) {
  uint32_t best = first, most = 0;
  for (uint32_t i = first; i < k; i++) {
    const uint32_t n = count_in_common(&p->program[k], &p->program[i]);
    if (n > most) {
      best = i;
      most = n;
    }
  }
  return best;
}

int ni_pattern_differ(const struct ni_program *p, const struct ni_listing *list,
                      const struct ni_program *other, struct ni_pattern_difference *out) {
  uint32_t *position = malloc((p->n_places + 1) * sizeof *position);
  *out = (struct ni_pattern_difference){.position = UINT32_MAX};
  if (!position)
    return -ENOMEM;
  for (uint32_t i = 0; i < p->n_places; i++)
    position[list->order[i]] = i;
  for (uint32_t i = 0; i < p->n_lanes; i++)
    compare_lanes(p, &p->lane[i], position, other, out);
  for (uint32_t i = 0; i < other->n_lanes; i++) {
    const struct ni_pattern_lane *m = &other->lane[i];
    if (!find_lane_like(p, m))
      set_difference(out, UINT32_MAX, m, NULL, m->n ? &other->place[m->first] : NULL);
  }
  free(position);
  return 0;
}
