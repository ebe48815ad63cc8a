/*
 * How long an operation takes on the simulated device, and on which channels: a latency and a bandwidth per
 * algorithm.
 *
 * Pure functions of scenario and task. The figures are of the size that eight-GPU nodes with 400 Gb/s
 * networks show; they make tables and plots look right and are no claim about any machine. Promised is only
 * what tests rest on: works of one channel follow each other, and paired works share their times.
 */
#include "core.h"
#include "scenario.h"

#include <string.h>

void ni_model_defaults(const struct ni_scn *s, const struct ni_comm_decl *c, struct ni_task *t) {
  uint64_t bytes = ni_task_bytes(t);
  (void)s;
  if (t->kind != NI_TASK_COLL) {
    if (!t->n_ch)
      t->n_ch = bytes == 0 ? 1 : 2;
    return;
  }
  bool small = bytes < 65536;
  if (t->symmetric && !t->n_ch)
    t->n_ch = small ? 2 : 8;
  if (!t->algo)
    t->algo = small && c->n_ranks > 2 && t->func == NI_FUNC_ALLREDUCE ? "TREE" : "RING";
  if (!t->proto)
    t->proto = small ? "LL" : bytes < 1048576 ? "LL128" : "SIMPLE";
  if (!t->n_ch)
    t->n_ch = (uint16_t)(small ? 1 : bytes < 1048576 ? 4 : bytes < 33554432 ? 8 : 16);
  if (t->ch0 + t->n_ch > NI_SIM_CHANNELS)
    t->ch0 = 0;
  t->collnet = !t->symmetric && t->algo[0] == 'C'; /* COLLNET_DIRECT, COLLNET_CHAIN */
  if (t->collnet)
    t->ch0 = 0;
}

static double model_ns(const struct ni_scn *s, const struct ni_comm_decl *c, const struct ni_task *t) {
  double size = (double)ni_nccl_tests_bytes(t->func, ni_task_bytes(t), c->n_ranks);
  double factor = ni_bus_factor(t->func, c->n_ranks);
  bool net = c->n_nodes > 1;
  double gbs = net ? 48 : t->kind == NI_TASK_COLL ? 380 : 300;
  if (t->proto && strcmp(t->proto, "LL") == 0)
    gbs /= 4;
  double steps = c->n_ranks > 1 ? __builtin_log2((double)c->n_ranks) : 1;
  double ns = (net ? 9000 : 3500) + 1500 * steps + size * (factor > 0 ? factor : 1) / gbs;
  for (int i = 0; i < c->n_ranks && s->set.slow_rank >= 0; i++)
    if (i < c->live && c->ranks[i] == s->set.slow_rank)
      return ns * s->set.slow_factor;
  return ns;
}

void ni_model_times(const struct ni_scn *s, const struct ni_comm_decl *c, struct ni_plan *p) {
  uint64_t cursor[NI_SIM_CHANNELS] = {0};
  p->total_ns = 0;
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < p->n_tasks; i++) {
    double ns = model_ns(s, c, &p->tasks[i]) * s->set.time_scale;
    uint64_t d = ns < 256 ? 256 : (uint64_t)ns;
    p->tasks[i].rel_stop_ns = d;
    if (d < shortest)
      shortest = d;
  }
  if (p->n_tasks > 1 && p->tasks[1].fused_tail) /* one kernel does all of them, one after the other */
    for (int i = 1; i < p->n_tasks; i++)
      p->tasks[0].rel_stop_ns += p->tasks[i].rel_stop_ns;
  p->jitter_ns = 16;
  while (p->jitter_ns * 16 < shortest && p->jitter_ns < 512)
    p->jitter_ns *= 2;
  for (int i = 0; i < p->n_tasks; i++) {
    struct ni_task *t = &p->tasks[i];
    uint64_t dur = t->rel_stop_ns, start = 0;
    if (t->paired) {
      t->rel_start_ns = t[-1].rel_start_ns;
      t->rel_stop_ns = t[-1].rel_stop_ns;
      /* a pair's channels move together: late on both, as read from one line */
      t->late_ns = t->late_ms * 1000000ull;
    } else {
      for (int ch = t->ch0; ch < t->ch0 + t->n_ch; ch++)
        if (cursor[ch] > start)
          start = cursor[ch];
      t->late_ns = t->late_ms * 1000000ull;
      t->rel_start_ns = start;
      t->rel_stop_ns = start + dur;
    }
    for (int ch = t->ch0; ch < t->ch0 + t->n_ch; ch++) {
      uint64_t end = t->rel_stop_ns + 4 * p->jitter_ns;
      if (ch == t->late_ch)
        end += t->late_ns + dur;
      if (end > cursor[ch])
        cursor[ch] = end;
      if (end > p->total_ns)
        p->total_ns = end;
    }
  }
}
