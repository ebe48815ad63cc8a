#include "describe.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/put.h"
#include "exporter/model/sums/cpus/calls.h"
#include "exporter/model/sums/spells/spells.h"
#include "say_cause.h"

static int by_rank(const void *a, const void *b, void *of) {
  const struct ni_summary *s = of;
  const struct ni_process *x = &s->process[*(const uint32_t *)a], *y = &s->process[*(const uint32_t *)b];
  if (x->rank != y->rank)
    return x->rank < y->rank ? -1 : 1;
  return x < y ? -1 : x > y;
}

static bool is_beside(const struct ni_cause *c, uint32_t rank) {
  bool is = false;
  for (uint32_t i = 0; i < c->n_beside; i++)
    is |= c->beside[i] == rank;
  return is;
}

/* The cause names this rank, which takes part in one of its links. */
static bool is_named_by(const struct ni_blame *b, const struct ni_cause *c, uint32_t rank) {
  const bool is_pair = c->link == NI_FIND_SLOW_PAIR;
  const uint32_t host = ni_blame_host(b, rank);
  switch (c->level) {
    case NI_LEVEL_COMM:
    case NI_LEVEL_FABRIC:
      return true;
    case NI_LEVEL_HOST:
      return host == c->of || (is_pair && host == c->other);
    case NI_LEVEL_RANK:
      return rank == c->of || (is_pair && rank == c->other) || is_beside(c, rank);
    default:
      return false;
  }
}

/* The processes that a cause names: of slow links, those of their ranks that it names. */
static int fill_processes(const struct ni_blame *b, const struct ni_cause *c, struct ni_finding *f) {
  bool *in = calloc(b->n_ranks + 1, sizeof *in);
  if (!in || !(f->process = malloc((b->n_ranks + 1) * sizeof *f->process))) {
    free(in);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < c->n_items; i++) {
    if (!c->links)
      in[c->item[i]] = true;
    for (uint32_t k = 0; c->links && k < b->link[c->item[i]].n_ranks; k++) {
      const uint32_t rank = b->link[c->item[i]].rank[k];
      in[rank] |= is_named_by(b, c, rank);
    }
  }
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (in[i])
      f->process[f->n_processes++] = b->rank[i].process;
  free(in);
  qsort_r(f->process, f->n_processes, sizeof *f->process, by_rank, b->s);
  return 0;
}

static void fill_interval(const struct ni_blame *b, const struct ni_cause *c, struct ni_finding *f) {
  f->from_step = c->from > 0 ? (int64_t)c->from * b->bin_steps : -1;
  f->to_step = c->to < b->bins ? (int64_t)c->to * b->bin_steps - 1 : -1;
  if (f->from_step >= 0)
    f->from_us = b->s->step[c->from].start_us;
  if (f->to_step >= 0)
    f->to_us = b->s->step[c->to].start_us;
}

/* Notes come behind what accuses somebody. */
static bool is_note(const struct ni_cause *c) {
  return c->kind == NI_FIND_UNEVEN || c->can_be_work || c->hidden || ni_spells_is_note(c);
}

/* The times at which a flapping link is slow. */
static int fill_moments(const struct ni_blame *b, const struct ni_cause *c, struct ni_finding *f) {
  const struct ni_summary *s = b->s;
  if (c->kind != NI_FIND_FLAPPING)
    return 0;
  if (!(f->moment = calloc(NI_FIND_MOMENTS, sizeof *f->moment)))
    return -ENOMEM;
  for (uint32_t k = c->from, to; k < c->to && f->n_moments < NI_FIND_MOMENTS; k = to) {
    for (to = k + 1; ni_cause_is_active(c, k) && ni_cause_is_active(c, to);)
      to++;
    if (!ni_cause_is_active(c, k))
      continue;
    struct ni_moment *m = &f->moment[f->n_moments++];
    const uint32_t end = to < b->bins ? to : b->bins - 1;
    *m = (struct ni_moment){s->step[k].start_us, s->step[end].start_us, (int64_t)k * b->bin_steps,
                            (int64_t)to * b->bin_steps - 1};
  }
  return 0;
}

static int fill_finding(const struct ni_blame *b, const struct ni_cause *c, double run_us,
                        struct ni_finding *f) {
  *f = (struct ni_finding){.kind = c->kind,
                           .level = c->level,
                           .link = c->link,
                           .of = c->of,
                           .other = c->other,
                           .compared = c->n_peers,
                           .value = 1 + c->share,
                           .lost_us = c->cost_us,
                           .low_us = c->low_us,
                           .high_us = c->high_us,
                           .times = c->bins_hit,
                           .period_steps = c->period,
                           .each_us = ni_cause_pause_us(c),
                           .of_run = c->of_run,
                           .note = is_note(c),
                           .run = b->run,
                           .run_us = run_us};
  int e = fill_processes(b, c, f);
  if (e == 0)
    e = fill_moments(b, c, f);
  if (e < 0)
    return e;
  fill_interval(b, c, f);
  if (c->level == NI_LEVEL_RANK) {
    f->of = b->rank[c->of].process;
    if (c->other != NI_BLAME_NONE)
      f->other = b->rank[c->other].process;
  } else if ((c->level == NI_LEVEL_STAGE || c->level == NI_LEVEL_REPLICA) && f->n_processes)
    f->of = f->process[0];
  else if (c->level == NI_LEVEL_COMM)
    f->of = b->link[c->of].comm;
  ni_say_cause(b, c, f);
  struct ni_put_text w = {f->next, sizeof f->next};
  if (f->n_processes && c->level != NI_LEVEL_FABRIC && c->level != NI_LEVEL_JOB) {
    ni_put(&w, "trace LOGS --rank ");
    for (size_t i = 0; i < f->n_processes && i < 8; i++)
      ni_put(&w, "%s%d", i ? "," : "", b->s->process[f->process[i]].rank);
    if (b->run && !b->r->opt.inputs.run)
      ni_put(&w, " --run %u", b->run);
  }
  return 0;
}

/*
 * Messages between two ranks one of which is named itself: what it does late or slowly shows there as well.
 */
static bool is_covered(const struct ni_causes *causes, const struct ni_cause *pair) {
  for (uint32_t i = 0; i < causes->n; i++) {
    const struct ni_cause *c = &causes->item[i];
    if (c == pair || c->level != NI_LEVEL_RANK || c->other != NI_BLAME_NONE)
      continue;
    if (c->of == pair->of || c->of == pair->other || is_beside(c, pair->of) || is_beside(c, pair->other))
      return true;
  }
  return false;
}

/* Nobody waits for the others, or chance can do as much. */
static bool is_worth_saying(const struct ni_blame *b, const struct ni_cause *c,
                            const struct ni_replay *replay, double largest_us) {
  double cost = (ni_cause_comes_and_goes(b, c) ? c->low_us : c->cost_us) / replay->run_us;
  if (c->kind == NI_FIND_PERIODIC)
    return cost >= NI_SPELLS_COST;
  if (c->few)
    return cost >= NI_SPELLS_LONG_COST;
  if (replay->blocks < 2 && !ni_cause_is_sure_once(c, cost))
    return false;
  if (c->rest && cost < NI_CAUSE_REST_COST)
    return false;
  if (!c->links && cost < NI_CAUSE_OF_LARGEST_COST && c->cost_us < NI_CAUSE_OF_LARGEST * largest_us)
    return false;
  const bool is_small = cost < NI_CAUSE_DROP_SMALL && c->cost_us < NI_CAUSE_OF_LARGEST * largest_us;
  if (c->kind == NI_FIND_FLAPPING && is_small)
    return false;
  const bool is_of_one_link = c->link == NI_FIND_CONGESTION && c->n_items == 1;
  if (c->links && (c->link == NI_FIND_SLOW_COMM || is_of_one_link))
    return cost >= NI_CAUSE_LINK_SMALL_COST;
  if (c->links)
    return cost >= (c->share < NI_CAUSE_LINK_SMALL ? NI_CAUSE_LINK_SMALL_COST : NI_CAUSE_LINK_COST);
  return cost >= (c->share < NI_CAUSE_SMALL ? NI_CAUSE_SMALL_COST : NI_CAUSE_COST);
}

/*
 * All CPUs of a host call far more slowly than others. That is worth knowing where it costs next to nothing
 * as well, since programs launch ahead: what else they do on the host is as slow.
 */
static bool is_slow_cpu(const struct ni_cause *c) {
  return c->level == NI_LEVEL_HOST && !c->at && c->calls >= NI_CALLS_NOTED;
}

static int by_cost(const void *a, const void *b) {
  const struct ni_cause *x = a, *y = b;
  const bool p = is_note(x), q = is_note(y);
  if (p != q)
    return p ? 1 : -1;
  if (x->cost_us != y->cost_us)
    return x->cost_us > y->cost_us ? -1 : 1;
  if (x->kind != y->kind)
    return (int)x->kind - (int)y->kind;
  return x->of < y->of ? -1 : x->of > y->of;
}

/*
 * Behind all findings: where all links of congestion, one of these, touch one host, its NICs would look like
 * the network. Where they touch several hosts it may be any of these, so none is named.
 */
static void add_undecided(const struct ni_blame *b, const struct ni_cause *c, size_t number,
                          struct ni_summary *s) {
  char name[81];
  uint32_t hosts = 0, first = 0;
  for (uint32_t h = 0; h < s->n_hosts; h++)
    if (ni_cause_touches_host(b, c, h) && hosts++ == 0)
      first = h;
  if (!hosts || s->n_findings == NI_SUM_FINDINGS)
    return;
  struct ni_finding *f = &s->finding[s->n_findings++];
  *f = (struct ni_finding){.kind = NI_FIND_UNDECIDED,
                           .level = NI_LEVEL_JOB,
                           .other = UINT32_MAX,
                           .from_step = -1,
                           .to_step = -1,
                           .low_us = NAN,
                           .high_us = NAN,
                           .value = NAN,
                           .note = true};
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w, "undecided: whether finding %zu is the network or one host, since all links across hosts touch ",
         number);
  if (hosts == 1)
    ni_put(&w, "%s; counters of its", ni_safe_text(s->host[first].name, name, sizeof name));
  else
    ni_put(&w, "each of %s hosts; counters of their", NI_COUNT(hosts));
  ni_put(&w, " NICs and GPUs would tell (nccl-inspector counters)");
}

/* What ends a step: marks in the logs, or what the first rank with steps was cut by. */
static void describe_step_mark(const struct ni_blame *b, struct ni_summary *s) {
  char text[81];
  *s->step_mark = '\0'; /* of an earlier run */
  if (b->r->marks.n)
    snprintf(s->step_mark, sizeof s->step_mark, "marks in the logs, the first one \"%s\"",
             ni_safe_text(ni_name_text(&b->r->names, b->r->marks.text), text, sizeof text));
  for (uint32_t i = 0; i < b->n_ranks && !*s->step_mark; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    struct ni_put_text w = {s->step_mark, sizeof s->step_mark};
    char func[81];
    if (!o->judged)
      continue;
    if (o->mark_func)
      ni_put(&w, "%s on ", ni_safe_text(o->mark_func, func, sizeof func));
    else
      ni_put(&w, "a gap before operations on ");
    ni_put_comm(&w, b, o->slot[o->mark_slot].comm);
  }
}

int ni_describe_causes(const struct ni_blame *b, const struct ni_causes *causes,
                       const struct ni_replay *replay, struct ni_summary *s) {
  struct ni_cause sorted[NI_CAUSES_MAX];
  const struct ni_cause *crowded = NULL;
  double largest_us = 0;
  size_t number = 0; /* of the finding it is, from 1 on */
  int e = 0;
  memcpy(sorted, causes->item, causes->n * sizeof *sorted);
  for (uint32_t i = 0; i < causes->n; i++)
    largest_us = fmax(largest_us, sorted[i].cost_us);
  for (uint32_t i = 0; i < causes->n; i++)
    sorted[i].hidden = is_slow_cpu(&sorted[i]) && !is_worth_saying(b, &sorted[i], replay, largest_us);
  qsort(sorted, causes->n, sizeof *sorted, by_cost);
  s->cost = (struct ni_cost){replay->blocks > 0, replay->run_us,   replay->without_us, replay->own,
                             replay->pauses,     replay->transfer, replay->model};
  s->causes_not_judged = causes->left_out; /* not findings: most causes cost too little to be named */
  for (uint32_t i = 0; e == 0 && i < causes->n; i++) {
    const bool is_pair = sorted[i].link == NI_FIND_SLOW_PAIR && sorted[i].level == NI_LEVEL_RANK;
    if (is_pair && is_covered(causes, &sorted[i]))
      continue;
    if (!sorted[i].hidden && !is_worth_saying(b, &sorted[i], replay, largest_us))
      continue;
    if (sorted[i].kind == NI_FIND_CONGESTION) {
      crowded = &sorted[i];
      number = s->n_findings + 1;
    }
    if (s->n_findings == NI_SUM_FINDINGS)
      s->findings_left_out++;
    else
      e = fill_finding(b, &sorted[i], replay->run_us, &s->finding[s->n_findings++]);
  }
  if (e == 0 && crowded && !b->run)
    add_undecided(b, crowded, number, s);
  s->cost_run = b->run;
  describe_step_mark(b, s);
  return e;
}
