#include "clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/ledger/anchors.h"
#include "format/names.h"

/* ---- moving times ---- */

static void move_time(uint64_t *at, int64_t by_ns) {
  if (*at && (by_ns >= 0 || *at > (uint64_t)-by_ns))
    *at += (uint64_t)by_ns;
}

static void move_op(struct ni_hang_op *op, int64_t by_ns) {
  move_time(&op->enqueue_ns, by_ns);
  move_time(&op->seen_ns, by_ns);
}

void ni_hang_move_process(struct ni_hang_process *p, int64_t by_ns) {
  move_time(&p->alive_ns, by_ns);
  move_time(&p->look_ns, by_ns);
  move_time(&p->file_ns, by_ns);
  move_time(&p->ended_ns, by_ns);
}

void ni_hang_move_member(struct ni_hang_member *x, int64_t by_ns) {
  for (size_t i = 0; i < x->n_recent; i++)
    move_op(&x->recent[i], by_ns);
  for (size_t i = 0; i < x->n_open; i++)
    move_op(&x->open[i], by_ns);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    move_time(&x->passed_ns[k], by_ns);
  move_time(&x->started_ns, by_ns);
  move_time(&x->ended_ns, by_ns);
  move_time(&x->open_ns, by_ns);
  move_time(&x->active_ns, by_ns);
  move_time(&x->log_ns, by_ns);
  move_time(&x->end_ns, by_ns);
  for (uint32_t i = 0; i < x->anchors.n; i++) {
    x->anchors.item[i].start_ns += by_ns;
    x->anchors.item[i].end_ns += by_ns;
  }
}

/* ---- putting right ---- */

static void correct_time(uint64_t *at, const struct ni_host_clock *c) {
  if (*at && *at < INT64_MAX)
    *at = (uint64_t)ni_clock_right(c, NULL, 0, (int64_t)*at);
}

static void correct_op(struct ni_hang_op *op, const struct ni_host_clock *c) {
  correct_time(&op->enqueue_ns, c);
  correct_time(&op->seen_ns, c);
}

static void correct_process(struct ni_hang_process *p, const struct ni_host_clock *c) {
  uint64_t start = p->who->start_ns ? p->who->start_ns : p->alive_ns;
  correct_time(&start, c);
  p->skew_ns = (int64_t)((p->who->start_ns ? p->who->start_ns : p->alive_ns) - start);
  correct_time(&p->alive_ns, c);
  correct_time(&p->look_ns, c);
  correct_time(&p->file_ns, c);
  correct_time(&p->ended_ns, c);
}

static void correct_member(struct ni_hang_member *x, const struct ni_host_clock *c) {
  for (size_t i = 0; i < x->n_recent; i++)
    correct_op(&x->recent[i], c);
  for (size_t i = 0; i < x->n_open; i++)
    correct_op(&x->open[i], c);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    correct_time(&x->passed_ns[k], c);
  correct_time(&x->started_ns, c);
  correct_time(&x->ended_ns, c);
  correct_time(&x->open_ns, c);
  correct_time(&x->active_ns, c);
  correct_time(&x->log_ns, c);
  correct_time(&x->end_ns, c);
}

/* ---- finding ---- */

/*
 * Does the operation end on all ranks at about the same time? In the functions with one root data flows one
 * way, and some ranks are done long before others. Sends and receives have different numbers on each rank.
 */
static bool ends_together(const struct ni_hang_model *m, const struct ni_hang_op *op) {
  const enum ni_func func = ni_func_from_name(ni_hang_text(m, op->func));
  const bool one_end = func == NI_FUNC_BROADCAST || func == NI_FUNC_REDUCE || func == NI_FUNC_GATHER ||
      func == NI_FUNC_SCATTER;
  return op->kind == NI_KIND_COLL && func != NI_FUNC_OTHER && !one_end;
}

/*
 * For a rank whose log was not read: the newest operations of its black box. Their ends are known to about a
 * second.
 */
static int add_recent_anchors(struct ni_anchors *a, const struct ni_hang_model *m,
                              const struct ni_hang_member *x) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < x->n_recent; i++) {
    const struct ni_hang_op *op = &x->recent[i];
    const int64_t end = (int64_t)op->seen_ns;
    if (!op->seen_ns || op->seen_ns > INT64_MAX || !ends_together(m, op))
      continue;
    e = ni_anchors_add(a,
                       &(struct ni_anchor){.pick = ni_anchor_pick(op->sn, op->bytes),
                                           .sn = op->sn,
                                           .bytes = op->bytes,
                                           .start_ns = end - NI_HANG_END_NS,
                                           .end_ns = end + NI_HANG_END_NS,
                                           .func = (uint32_t)ni_func_from_name(ni_hang_text(m, op->func))});
  }
  return e;
}

static int add_member_anchors(struct ni_hang_model *m, struct ni_hang_member *x, bool of_boxes) {
  const struct ni_who_process *p = m->process[x->who->process].who;
  const int64_t host = ni_clocks_host(&m->clocks, 0, p->host);
  int e = host < 0 ? (int)host : 0;
  if (e == 0 && of_boxes) {
    ni_anchors_free(&x->anchors);
    e = add_recent_anchors(&x->anchors, m, x);
  }
  if (e < 0)
    return e;
  return ni_clocks_seat(&m->clocks,
                        &(struct ni_clocks_seat){.hash = x->who->hash,
                                                 .since_ns = (int64_t)x->active_ns,
                                                 .n_ranks = x->who->n_ranks,
                                                 .rank = x->who->rank,
                                                 .host = (uint32_t)host,
                                                 .anchors = &x->anchors});
}

/* Is there a host where only black boxes tell what has finished? 1, 0 or -ENOMEM. */
static int has_host_without_log(struct ni_hang_model *m) {
  enum { RECENT = 1, ANCHORS = 2 };
  uint8_t *has = calloc(m->n_processes + 1, sizeof *has);
  int found = has ? 0 : -ENOMEM;
  for (size_t i = 0; found == 0 && i < m->n_members; i++) {
    const struct ni_hang_member *x = m->member[i];
    const int64_t host = x->dump ? 0 : ni_clocks_host(&m->clocks, 0, m->process[x->who->process].who->host);
    if (host < 0)
      found = (int)host;
    else if (!x->dump)
      has[host] |= (x->n_recent ? RECENT : 0) | (x->anchors.n ? ANCHORS : 0);
  }
  for (uint32_t i = 0; found == 0 && i < m->clocks.n_hosts; i++)
    found = has[i] == RECENT;
  free(has);
  return found;
}

int ni_hang_align_clocks(struct ni_hang_model *m) {
  const int of_boxes = has_host_without_log(m);
  int e = of_boxes < 0 ? of_boxes : 0;
  if (of_boxes > 0)
    m->clocks.noise_ns = 2 * NI_HANG_END_NS;
  for (size_t i = 0; e == 0 && i < m->n_members; i++)
    if (!m->member[i]->dump)
      e = add_member_anchors(m, m->member[i], of_boxes);
  if (e == 0)
    e = ni_clocks_find(&m->clocks);
  for (size_t i = 0; e == 0 && m->clocks.any && i < m->n_members; i++) {
    const struct ni_host_clock *c =
        ni_clocks_of(&m->clocks, 0, m->process[m->member[i]->who->process].who->host);
    if (c)
      correct_member(m->member[i], c);
  }
  for (size_t i = 0; e == 0 && m->clocks.any && i < m->n_processes; i++) {
    const struct ni_host_clock *c = ni_clocks_of(&m->clocks, 0, m->process[i].who->host);
    if (c)
      correct_process(&m->process[i], c);
  }
  return e;
}
