/*
 * What became of the processes: who runs, who is gone, who has ended, and which ones an earlier run left
 * behind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/names_alike.h"
#include "fate.h"

#define RUNS 64
#define SILENT_NS UINT64_C(60000000000)
#define SLACK_NS UINT64_C(1000000000) /* clocks of two hosts */

uint64_t ni_hang_last_sign(const struct ni_hang_process *p) { return p->alive_ns ? p->alive_ns : p->file_ns; }

/*
 * When it began, by the clock of all times; 0: not known. If it seems to have begun after its own last sign
 * of life, its clock was set back in between.
 */
static uint64_t start_time_of(const struct ni_hang_process *p) {
  uint64_t start = p->who->start_ns - (uint64_t)p->skew_ns;
  return p->who->start_ns && start <= ni_hang_last_sign(p) ? start : 0;
}

bool ni_hang_is_silent(const struct ni_hang_verdict *v, const struct ni_hang_process *p) {
  const struct ni_hang_model *m = v->model;
  uint64_t since = ni_hang_last_sign(p) + (v->after_ns < SILENT_NS ? v->after_ns : SILENT_NS);
  bool copies = false;
  const bool is_told = p->life != NI_HANG_LIFE_UNKNOWN || !p->ours || p->boxless || p->has_box || p->has_dump;
  if (m->box_dir || is_told)
    return false;
  if (v->earlier[p - m->process] || v->now_ns < since)
    return false;
  for (size_t i = 0; i < m->n_processes; i++) {
    copies |= m->process[i].has_box;
    if (m->process[i].has_box && strcmp(m->process[i].who->host, p->who->host) == 0)
      return false;
  }
  return copies;
}

/* Processes of one run were started together, whatever the clocks of their hosts say. */
static bool is_same_run(const struct ni_hang_process *p, const struct ni_hang_process *q) {
  return p->run && p->run == q->run;
}

/*
 * Has q taken the place of p in the job?
 *
 * If p is over, the next process of its rank may have begun at once. It did not begin before the last sign of
 * life of p, which is older than the end of p; clocks of two hosts may differ by SLACK_NS. The number of
 * ranks may have changed. If p may still live, it is only silent for a while.
 */
static bool replaces_process(const struct ni_hang_process *q, const struct ni_hang_process *p) {
  uint64_t end = ni_hang_last_sign(p);
  const bool is_same_rank = p->rank >= 0 && q->rank == p->rank;
  if (is_same_run(p, q) || !is_same_rank || start_time_of(q) <= start_time_of(p))
    return false;
  if (p->life == NI_HANG_LIFE_UNKNOWN)
    return start_time_of(q) > end + SLACK_NS && q->world == p->world;
  return start_time_of(q) + (strcmp(q->who->host, p->who->host) == 0 ? 0 : SLACK_NS) > end;
}

static int by_rank(const void *a, const void *b) {
  const struct ni_hang_process *x = *(const struct ni_hang_process *const *)a,
                               *y = *(const struct ni_hang_process *const *)b;
  return NI_BY(x, y, rank, who->start_ns);
}

/* The process that began last, among those of other runs; NULL: there is none. */
static const struct ni_hang_process *find_newest_of_other_runs(const struct ni_hang_model *m,
                                                               const struct ni_hang_process *p) {
  const struct ni_hang_process *newest = NULL;
  for (size_t i = 0; i < m->n_processes; i++) {
    const struct ni_hang_process *q = &m->process[i];
    if (p && is_same_run(p, q))
      continue;
    if (!newest || start_time_of(q) > start_time_of(newest))
      newest = q;
  }
  return newest;
}

/*
 * Finds processes of earlier runs in the same folder. A process belongs to one if it is over and others began
 * a while after its last sign of life, or if another process took its place at once. A process that may still
 * live belongs to one only if its place was taken. Only the newest RUNS processes of a rank are compared.
 */
static int find_earlier_runs(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  size_t n = m->n_processes, end = n;
  const struct ni_hang_process **at = malloc((n + 1) * sizeof *at);
  const struct ni_hang_process *newest, *newest_else; /* of whichever run, and of the other runs */
  v->earlier = calloc(n + 1, sizeof *v->earlier);
  if (!at || !v->earlier) {
    free(at);
    return -ENOMEM;
  }
  for (size_t i = 0; i < n; i++)
    at[i] = &m->process[i];
  newest = find_newest_of_other_runs(m, NULL);
  newest_else = find_newest_of_other_runs(m, newest);
  if (n > 1)
    qsort(at, n, sizeof *at, by_rank);
  for (size_t i = n; i-- > 0;) {
    const struct ni_hang_process *p = at[i];
    bool followed = false, over = p->life == NI_HANG_DEAD || p->life == NI_HANG_LEFT;
    if (p->rank != at[end - 1]->rank)
      end = i + 1;
    for (size_t j = end; j-- > i + 1 && j + RUNS >= end && !followed;)
      followed = replaces_process(at[j], p);
    const struct ni_hang_process *q = is_same_run(p, newest) ? newest_else : newest;
    bool outlived = over && q && start_time_of(q) > ni_hang_last_sign(p) + SLACK_NS;
    v->earlier[p - m->process] = p->life != NI_HANG_ALIVE && (followed || outlived);
  }
  free(at);
  return 0;
}

struct rank_place {
  const char *name;
  uint64_t hash;
  uint32_t process;
  int32_t rank;
};

static NI_ORDER_BY(by_place, struct rank_place, process, hash, rank);

/*
 * A process has as many ranks as the communicator has in it that has most; where two have several,
 * perhaps more (ni_names_alike()).
 */
static int count_ranks(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  struct rank_place *at = malloc((m->n_members + 1) * sizeof *at);
  size_t n = 0;
  if (!at)
    return -ENOMEM;
  for (size_t i = 0; i < m->n_members; i++) {
    const struct ni_hang_member *x = m->member[i];
    if (!v->earlier[x->who->process])
      at[n++] = (struct rank_place){x->who->name, x->who->hash, x->who->process, x->who->rank};
  }
  if (n > 1)
    qsort(at, n, sizeof *at, by_place);
  const char *of = NULL;
  bool more = false;
  for (size_t i = 0, most = 0, end; i < n; i = end) {
    size_t here = 1;
    for (end = i + 1; end < n && at[end].process == at[i].process && at[end].hash == at[i].hash; end++)
      here += at[end].rank != at[end - 1].rank;
    if (here >= most)
      more = here == most && (more || ni_names_alike(of, at[i].name));
    if (here > most) {
      most = here;
      of = at[i].name;
    }
    if (end < n && at[end].process == at[i].process)
      continue;
    v->fate.ranks += most;
    v->fate.more_ranks |= most > 1 && more;
    most = 0;
    more = false;
  }
  free(at);
  return 0;
}

/*
 * How long is too long for this job? A hang lasts several times longer than anything that the job has had. A
 * job that began a short while ago has had no pause that tells anything yet.
 */
static void find_limit(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  uint64_t longest = 0, first = UINT64_MAX;
  for (size_t i = 0; i < m->n_processes; i++) {
    const struct ni_hang_process *p = &m->process[i];
    if (v->earlier[i])
      continue;
    ni_hang_raise(&longest, p->longest_operation_ns);
    ni_hang_raise(&longest, p->longest_gap_ns);
    uint64_t start = start_time_of(p);
    if (start && start < first)
      first = start;
  }
  uint64_t ran_ns = v->fate.moved_ns > first ? v->fate.moved_ns - first : 0;
  v->fate.learnt_ns = ni_hang_learnt(longest, ran_ns);
  v->limit_ns = ni_hang_limit(v->after_ns, longest, ran_ns);
}

int ni_hang_find_fate(struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  struct ni_hang_fate *f = &v->fate;
  if (find_earlier_runs(v) < 0)
    return -ENOMEM;
  f->first_ns = UINT64_MAX;
  for (size_t i = 0; i < m->n_processes; i++) {
    const struct ni_hang_process *p = &m->process[i];
    uint64_t seen = ni_hang_last_sign(p);
    if (v->earlier[i]) {
      f->earlier++;
      if (seen > f->earlier_ns)
        f->earlier_ns = seen;
      continue;
    }
    f->processes++;
    f->in[p->life]++;
    f->boxes_alone += p->has_box && !p->has_log;
    f->dead_boxes += p->has_box && p->life == NI_HANG_DEAD;
    bool dark = !p->has_box && !p->has_dump && p->life == NI_HANG_LIFE_UNKNOWN;
    f->dark += dark;
    f->dark_foreign += dark && !p->ours;
    if (seen > f->last_ns)
      f->last_ns = seen;
    if (p->life == NI_HANG_DEAD && seen < f->first_ns)
      f->first_ns = seen;
  }
  f->over = f->processes > 0 && f->in[NI_HANG_DEAD] + f->in[NI_HANG_LEFT] == f->processes;
  for (size_t i = 0; i < m->n_members; i++) {
    const struct ni_hang_member *x = m->member[i];
    if (!v->earlier[x->who->process] && x->active_ns > f->moved_ns)
      f->moved_ns = x->active_ns;
  }
  find_limit(v);
  return count_ranks(v);
}
