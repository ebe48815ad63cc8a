#include "judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "peer_groups.h"
#include "exporter/model/sums/cpus/calls.h"
#include "causes.h"
#include "host_paces.h"
#include "exporter/base/order.h"
#include "exporter/base/threads.h"
#include "exporter/model/sums/findings.h"
#include "exporter/model/sums/ranks/pass.h"
#include "exporter/model/sums/spells/spells.h"
#include "replay.h"
#include "describe.h"
#include "exporter/model/sums/team/team.h"
#include "exporter/model/sums/work/number.h"
#include "exporter/model/sums/work/roles.h"
#include "exporter/model/sums/ranks/quantile.h"

/* Ranks of one job have as many steps but for so many, and for those that a log begins or ends within. */
#define STEPS_DIFFER 0.1
#define STEPS_CUT 2
/* Of the time from the first operation to the last a log has to have this part, or it says too little. */
#define SPAN_LEAST 0.5
enum { STEPS_REPEAT_MIN = 8 }; /* bins; of fewer nobody can say whether they repeat */

struct passes {
  struct ni_blame *b;
  struct ni_blame_pieces pieces;
  size_t *first;    /* of a process in pieces; one more at the end */
  atomic_uint next; /* process; relaxed: a ticket */
  atomic_int error; /* relaxed: joined by pthread_join */
};

static bool has_pieces(const void *first, uint32_t process) {
  const size_t *at = first;
  return at[process + 1] > at[process];
}

static void *run_passes(void *arg) {
  struct passes *p = arg;
  uint32_t i;
  while ((i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed)) < p->b->n_ranks) {
    if (p->b->usual_steps > 0 && !p->b->rank[i].ops_before)
      continue;
    if (p->b->r->team && p->b->r->team->rank && !has_pieces(p->first, i))
      continue; /* another rank's */
    if (ni_run_stopped(p->b->r) || atomic_load_explicit(&p->error, memory_order_relaxed))
      break;
    int e = ni_blame_pass(p->b, i, p->pieces.item + p->first[i], p->first[i + 1] - p->first[i]);
    if (e < 0)
      atomic_store_explicit(&p->error, e, memory_order_relaxed);
  }
  return NULL;
}

static int pass_all_ranks(struct ni_blame *b) {
  struct passes p = {.b = b, .first = calloc((size_t)b->n_ranks + 2, sizeof *p.first)};
  int e = p.first ? ni_blame_pieces(b->r, b->s, &p.pieces) : -ENOMEM;
  if (e == 0) {
    for (size_t i = 0; i < p.pieces.n; i++)
      p.first[p.pieces.item[i].process + 1]++;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      p.first[i + 1] += p.first[i];
    (void)ni_threads(b->r->opt.jobs, run_passes, &p, 0);
    e = b->r->stop && *b->r->stop ? -EINTR : atomic_load_explicit(&p.error, memory_order_relaxed);
  }
  if (e == 0 && b->r->team)
    e = ni_team_blame(b, has_pieces, p.first);
  free(p.pieces.item);
  free(p.first);
  return e;
}

void ni_judge_fill_begins(struct ni_summary *s, uint32_t bins) {
  int64_t next_us = s->last_us;
  for (uint32_t k = bins + 1; k-- > 0;) {
    if (!s->step[k].start_us)
      s->step[k].start_us = next_us;
    next_us = s->step[k].start_us;
  }
}

/*
 * Means of a step over the ranks that were judged. Waiting is what they spend in operations in line beyond
 * the transfers.
 */
static int fill_steps(const struct ni_blame *b, struct ni_summary *s) {
  if (!(s->step = calloc(b->bins + 1, sizeof *s->step)))
    return -ENOMEM;
  s->n_step_bins = b->bins;
  s->bin_steps = b->bin_steps;
  s->n_steps = b->steps;
  for (uint32_t k = 0; k < b->bins; k++) {
    struct ni_step *x = &s->step[k];
    uint32_t n = 0;
    for (uint32_t r = 0; r < b->n_ranks; r++) {
      const struct ni_blame_rank *o = &b->rank[r];
      const struct ni_blame_cell *c = o->judged ? ni_blame_cell_at(b, r, k) : NULL;
      if (!c)
        continue;
      float transfer = 0, exec = 0;
      const struct ni_blame_link_cell *l = &o->link_cell[(size_t)(c - o->cell) * o->max_slots];
      for (uint32_t i = 0; i < o->n_slots; i++) {
        if (o->slot[i].overlapped || o->slot[i].link == NI_BLAME_NONE || l[i].n == 0)
          continue;
        exec += l[i].exec;
        transfer += b->link[o->slot[i].link].us[k] * (float)l[i].n;
      }
      n++;
      if (!x->start_us || c->start_ns / 1000 < x->start_us)
        x->start_us = c->start_ns / 1000;
      int64_t end = c + 1 < o->cell + o->n_bins && c[1].start_ns ? c[1].start_ns : o->last_ns;
      float us = (float)(end - c->start_ns) / 1e3f - c->exposed - c->burst;
      x->compute += us > 0 ? us : 0;
      x->outside += c->burst;
      x->hidden += c->hidden;
      float waiting = exec > transfer ? exec - transfer : 0;
      if (waiting > c->exposed)
        waiting = c->exposed;
      x->waiting += waiting;
      x->exposed += c->exposed - waiting;
    }
    /* fewer in the last bin */
    uint32_t left = b->steps - k * b->bin_steps, steps = left < b->bin_steps ? left : b->bin_steps;
    float by = (float)(n * steps);
    if (n && steps) {
      x->compute /= by;
      x->outside /= by;
      x->hidden /= by;
      x->waiting /= by;
      x->exposed /= by;
    }
  }
  /* nothing comes after the last mark */
  while (s->n_step_bins && !s->step[s->n_step_bins - 1].start_us)
    s->n_step_bins--;
  if (s->n_steps > s->n_step_bins * s->bin_steps)
    s->n_steps = s->n_step_bins * s->bin_steps;
  if (s->n_steps > b->whole_steps)
    s->n_steps = b->whole_steps;
  ni_judge_fill_begins(s, b->bins);
  return 0;
}

static int allocate_beyond(struct ni_blame *b) {
  const size_t n = (size_t)b->n_ranks * b->bins;
  if (!(b->beyond_us = malloc((n + 1) * sizeof *b->beyond_us)))
    return -ENOMEM;
  for (size_t i = 0; i < n; i++)
    b->beyond_us[i] = NAN;
  return 0;
}

/* One rank of those that are late together saves so much of what all of them do. */
#define ALONE_OF_TOGETHER 0.5

/*
 * Ranks that are late together may wait for one of them in what they are not known to wait for. Then the run
 * saves as much without the delay of that one as without the delay of all: it is that rank, and the cause
 * becomes its own.
 */
static int find_one_of_many(struct ni_blame *b, struct ni_cause *together) {
  struct ni_causes each = {0};
  struct ni_replay replay;
  int e = 0;
  struct ni_cause *all = ni_cause_add(&each, together->kind, together->level, together->of);
  for (uint32_t i = 0; e == 0 && i < together->n_items && each.n < NI_CAUSES_MAX; i++) {
    struct ni_cause *x = ni_cause_add(&each, NI_FIND_LATE_RANK, NI_LEVEL_RANK, together->item[i]);
    ni_cause_take_delay(x, together);
    e = ni_cause_add_item(x, together->item[i]);
    if (e == 0)
      e = ni_cause_add_item(all, together->item[i]);
  }
  ni_cause_take_delay(all, together);
  if (e == 0)
    e = ni_replay_once(b, &each, &replay);
  const struct ni_cause *best = &each.item[1];
  for (uint32_t i = 2; e == 0 && i < each.n; i++)
    if (each.item[i].cost_us > best->cost_us)
      best = &each.item[i];
  if (e == 0 && best->cost_us >= ALONE_OF_TOGETHER * all->cost_us) {
    together->kind = best->kind;
    together->level = best->level;
    together->of = together->item[0] = best->of;
    together->n_items = 1;
  }
  ni_causes_free(&each);
  return e;
}

int ni_judge_together(struct ni_blame *b, struct ni_causes *causes) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < causes->n; i++) {
    struct ni_cause *c = &causes->item[i];
    const bool are_late_alike =
        c->kind == NI_FIND_UNEVEN && c->level == NI_LEVEL_REPLICA && c->more_bytes <= 0;
    if (are_late_alike && c->n_items > 1)
      e = find_one_of_many(b, c);
  }
  return e;
}

/* Compares the ranks that are judged. What an earlier run left in the tables of all ranks goes. */
static int judge_ranks(struct ni_blame *b, struct ni_summary *s) {
  struct ni_causes causes = {0};
  struct ni_replay replay;
  ni_blame_free_links(b);
  free(s->step);
  s->step = NULL;
  int e = ni_number_steps(b);
  if (e == 0)
    e = ni_group_peers(b);
  if (e == 0)
    e = allocate_beyond(b);
  if (e == 0)
    e = ni_find_congestion(b, &causes);
  /* before links: there are more links than ranks, and room for so many causes alone */
  if (e == 0)
    e = ni_find_late_ranks(b, &causes);
  if (e == 0)
    e = ni_find_slow_links(b, &causes);
  if (e == 0)
    ni_find_busy_host(b, &causes);
  if (e == 0)
    ni_settle_uneven_steps(b, &causes);
  if (e == 0)
    e = fill_steps(b, s);
  if (e == 0)
    e = ni_judge_together(b, &causes);
  if (e == 0)
    e = ni_replay(b, &causes, &replay);
  if (e == 0)
    e = ni_describe_causes(b, &causes, &replay, s);
  ni_causes_free(&causes);
  return e;
}

static double get_span_s(const struct ni_blame_rank *o) { return (double)(o->last_ns - o->first_ns) / 1e9; }

/* It has as many steps as most ranks, in all or in the time that its log is of: a part may be cut off. */
static bool has_baseline_steps(const struct ni_blame *b, uint32_t i) {
  const struct ni_blame_rank *o = &b->rank[i];
  const double part = o->usual_span_s > 0 ? get_span_s(o) / o->usual_span_s : 1;
  const double wanted = part >= SPAN_LEAST && part < 1 ? part * o->usual_steps : o->usual_steps;
  return fabs(o->n_steps - o->usual_steps) <= STEPS_DIFFER * o->usual_steps + STEPS_CUT ||
      fabs(o->n_steps - wanted) <= STEPS_DIFFER * wanted + STEPS_CUT;
}

static uint32_t find_last_run(const struct ni_blame *b) {
  uint32_t last = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].run > last)
      last = b->rank[i].run;
  return last;
}

static bool could_mark(const struct ni_blame_rank *o, uint64_t kind) {
  for (uint32_t k = 0; k < NI_STEP_KINDS && o->mark.could_be[k]; k++)
    if (o->mark.could_be[k] == kind)
      return true;
  return false;
}

struct mark_votes {
  uint64_t kind;
  uint32_t could, does;
};
static NI_ORDER_BY(by_kind, struct mark_votes, kind, does);

/* Those of one kind become one. Returns how many kinds there are. */
static size_t add_up_votes(struct mark_votes *vote, size_t n) {
  size_t kinds = 0;
  qsort(vote, n, sizeof *vote, by_kind);
  for (size_t i = 0; i < n; i++) {
    if (!kinds || vote[kinds - 1].kind != vote[i].kind) {
      vote[kinds++] = vote[i];
      continue;
    }
    vote[kinds - 1].could += vote[i].could;
    vote[kinds - 1].does += vote[i].does;
  }
  return kinds;
}

/*
 * What could end the steps of most ranks of a run, and of several such the one that ends most. Several
 * operations can come once a step, and which of them a rank takes depends on its own time. With another one
 * its steps begin elsewhere, and what others do in one step it does in two. That matters where steps differ.
 * vote: room for all.
 */
static uint64_t find_usual_mark(const struct ni_blame *b, uint32_t run, struct mark_votes *vote) {
  const struct mark_votes *best = NULL;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    const bool is_of_run = o->run == run && o->judged && has_baseline_steps(b, i);
    for (uint32_t k = 0; is_of_run && k < NI_STEP_KINDS && o->mark.could_be[k]; k++)
      vote[n++] = (struct mark_votes){o->mark.could_be[k], 1, o->mark.could_be[k] == o->mark.kind};
  }
  n = add_up_votes(vote, n);
  for (size_t i = 0; i < n; i++) {
    const bool is_more = !best || vote[i].could > best->could;
    if (is_more || (vote[i].could == best->could && vote[i].does > best->does))
      best = &vote[i];
  }
  return best ? best->kind : 0;
}

static int find_usual_marks(struct ni_blame *b) {
  struct mark_votes *vote = malloc(((size_t)b->n_ranks * NI_STEP_KINDS + 1) * sizeof *vote);
  for (uint32_t run = 0; vote && run <= find_last_run(b); run++) {
    const uint64_t mark = find_usual_mark(b, run, vote);
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].run == run)
        b->rank[i].usual_mark = mark;
  }
  free(vote);
  return vote ? 0 : -ENOMEM;
}

/*
 * The middle. Where the order of operations alone tells steps those of the last stage of a pipeline, up to
 * half of the ranks, are its micro-batches, of which no step has less than one.
 */
static double usual_quantile(const struct ni_blame *b, uint32_t run) {
  uint32_t by_order = 0, ranks = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const bool is_of_run = b->rank[i].run == run && b->rank[i].judged;
    ranks += is_of_run;
    by_order += is_of_run && b->rank[i].mark.by_order;
  }
  return 2 * by_order > ranks ? 0.25 : 0.5;
}

/*
 * Ranks of one job have as many steps. A few that took something else for steps than most (every micro-batch,
 * say) look once more for what comes as often as most ranks' steps; those that find nothing are not judged.
 */
static int64_t reset_odd_ranks(struct ni_blame *b) {
  float *n = malloc((b->n_ranks + 1) * sizeof *n);
  int64_t again = 0;
  if (!n)
    return -ENOMEM;
  b->usual_steps = 0;
  for (uint32_t run = 0; run <= find_last_run(b); run++) {
    size_t judged = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].run == run && b->rank[i].judged)
        n[judged++] = (float)b->rank[i].n_steps;
    const double baseline = judged ? ni_blame_quantile(n, judged, usual_quantile(b, run)) : 0;
    judged = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].run == run && b->rank[i].judged)
        n[judged++] = (float)get_span_s(&b->rank[i]);
    const double span_s = judged ? ni_blame_quantile(n, judged, 0.5) : 0;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].run == run) {
        b->rank[i].usual_steps = baseline;
        b->rank[i].usual_span_s = span_s;
      }
    b->usual_steps = fmax(b->usual_steps, baseline);
  }
  free(n);
  if (find_usual_marks(b) < 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks && !b->r->marks.n; i++) {
    struct ni_blame_rank *o = &b->rank[i];
    const bool has_other_mark = o->mark.kind != o->usual_mark && could_mark(o, o->usual_mark);
    if (!o->judged || (has_baseline_steps(b, i) && !(has_other_mark && o->ops_vary)))
      continue;
    ni_blame_reset_rank(o, o->ops);
    again++;
  }
  return again;
}

static int match_step_counts(struct ni_blame *b) {
  int64_t again = b->r->team ? ni_team_steps(b, reset_odd_ranks) : reset_odd_ranks(b);
  int e = again > 0 ? pass_all_ranks(b) : (int)again;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    struct ni_blame_rank *o = &b->rank[i];
    if (!o->judged || has_baseline_steps(b, i))
      continue;
    o->judged = false;
    o->why_not = "its steps are others than those of most ranks";
  }
  return e;
}

/* Where another process of the team judges, this one makes its tables, and learns the judgement. */
static int pass_for_others(struct ni_blame *b, struct ni_summary *s) {
  int e = pass_all_ranks(b);
  if (e == 0)
    e = match_step_counts(b);
  ni_blame_free(b);
  return e == 0 ? ni_team_agree(b->r, s) : e;
}

/*
 * Own time of a step beyond that of its peers, times its steps: whether a rank that came late to operations
 * was late by itself.
 */
static int fill_own_time(const struct ni_blame *b, struct ni_summary *s) {
  if (b->waits_unseen)
    return 0; /* what it waited for looks like own time */
  float *x = malloc((b->n_ranks + 1) * sizeof *x);
  if (!x)
    return -ENOMEM;
  for (uint32_t c = 0; c < b->n_classes; c++) {
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].judged && b->rank[i].cls == c)
        x[n++] = (float)(b->rank[i].own_us / b->rank[i].n_steps);
    const float baseline = ni_blame_quantile(x, n, NI_CAUSE_BASELINE);
    for (uint32_t i = 0; i < b->n_ranks && n > 1; i++) {
      const struct ni_blame_rank *o = &b->rank[i];
      if (o->judged && o->cls == c)
        s->process[o->process].own_us = o->own_us - (double)baseline * o->n_steps;
    }
  }
  free(x);
  return 0;
}

/* Runs in one folder have nothing to do with each other: each rank gets the number of its run. */
static void number_runs(struct ni_blame *b) {
  const struct ni_run *r = b->r;
  for (uint32_t i = 0; i < r->who.n_members && r->runs.n > 1; i++) {
    const struct ni_who_member *m = &r->who.member[i];
    b->rank[r->process_at[m->process]].run = r->who.comm[m->comm].run;
  }
}

static uint64_t count_run_ops(const struct ni_blame *b, uint32_t run) {
  uint64_t ops = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    ops += b->rank[i].run == run ? b->rank[i].ops : 0;
  return ops;
}

/*
 * Steps repeat where the longer ones of the middle half take at most STEPS_ALIKE times as long as the shorter
 * ones, and operations of the same sizes come again. Requests of inference do not: what lies in one "step" of
 * them is not what lies in another, and no bin can be compared with another. Where somebody stops in most
 * steps all ranks have steps of any length, but they compute as long as ever between their operations: that
 * tells as well, where it is STEPS_TOLD of a step or more, and one communicator is not all that is in the
 * logs: else others can be waited for between its operations.
 */
#define STEPS_ALIKE 2.0f
#define STEPS_TOLD 0.1f

int ni_judge_repeat(const struct ni_blame_rank *o, bool *repeat) {
  float *us = malloc((2 * (size_t)o->n_bins + 1) * sizeof *us);
  size_t n = 0;
  if (!us)
    return -ENOMEM;
  float *own_us = us + o->n_bins;
  for (uint32_t k = 1; k + 2 < o->n_bins; k++) {
    const struct ni_blame_cell *c = &o->cell[k];
    if (!c->start_ns || !o->cell[k + 1].start_ns)
      continue;
    us[n] = (float)(o->cell[k + 1].start_ns - c->start_ns) / 1e3f;
    own_us[n++] = c->baseline + c->dev;
  }
  const float shorter = ni_blame_quantile(us, n, 0.25), longer = ni_blame_quantile(us, n, 0.75);
  const float least = ni_blame_quantile(own_us, n, 0.25), most = ni_blame_quantile(own_us, n, 0.75);
  const bool are_as_long = n < STEPS_REPEAT_MIN || longer <= STEPS_ALIKE * shorter;
  const bool is_told = !o->one_comm && least >= STEPS_TOLD * shorter;
  const bool compute_alike = is_told && most <= STEPS_ALIKE * least;
  *repeat = (are_as_long || compute_alike) && !o->sizes_differ;
  free(us);
  return 0;
}

/*
 * Of most ranks that are judged; else nobody is. Where nobody is, since no steps were found, sizes of
 * operations tell as well that there are none.
 */
static int require_repeating_steps(struct ni_blame *b, struct ni_summary *s, uint32_t run, uint32_t *judged) {
  uint32_t repeats = 0, ranks = 0, differ = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    bool repeat = false;
    if (b->rank[i].judged && ni_judge_repeat(&b->rank[i], &repeat) < 0)
      return -ENOMEM;
    repeats += repeat;
    ranks += b->rank[i].run == run;
    differ += b->rank[i].run == run && b->rank[i].sizes_differ;
  }
  const bool has_no_steps = *judged * 2 <= ranks && differ * 2 > ranks;
  if (repeats * 2 >= *judged && !has_no_steps)
    return 0;
  s->why_durations = "what it does differs from step to step, as requests of inference do";
  s->steps_differ = true;
  *judged = 0;
  return ni_calls_tell(b, s);
}

/* Ranks of the run alone are judged from here on. out: most of them can be. may: by rank: it can be. */
static int choose_run(struct ni_blame *b, struct ni_summary *s, uint32_t run, const bool *may, bool *out) {
  uint32_t ranks = 0, judged = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    b->rank[i].judged = may[i] && b->rank[i].run == run;
    judged += b->rank[i].judged;
    ranks += b->rank[i].run == run;
  }
  const int e = require_repeating_steps(b, s, run, &judged);
  *out = judged * 2 > ranks && judged >= 2;
  return e;
}

static int judge_run(struct ni_blame *b, struct ni_summary *s, uint32_t run, const bool *may) {
  bool can = false;
  int e = choose_run(b, s, run, may, &can);
  if (e < 0 || !can)
    return e;
  s->by_own_time = true;
  b->run = find_last_run(b) ? run : 0;
  e = judge_ranks(b, s);
  return e == 0 ? fill_own_time(b, s) : e;
}

/* Faults before notes, then what costs most. */
static int by_class_and_cost(const void *a, const void *b) {
  const struct ni_finding *x = a, *y = b;
  if (x->note != y->note)
    return x->note ? 1 : -1;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  return x->run < y->run ? -1 : x->run > y->run;
}

/*
 * Each run by itself. Steps and what the run consists of are told of the one with the most operations, which
 * comes last. If that one cannot be judged by own time, durations judge all.
 */
static int judge_runs(struct ni_blame *b, struct ni_summary *s) {
  const uint32_t last = find_last_run(b);
  bool *may = malloc(b->n_ranks + 1);
  uint32_t largest = 0;
  int e = may ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    may[i] = b->rank[i].judged;
  for (uint32_t run = 1; run <= last; run++)
    if (count_run_ops(b, run) > count_run_ops(b, largest))
      largest = run;
  bool can = false;
  if (e == 0)
    e = choose_run(b, s, largest, may, &can);
  for (uint32_t run = 0; e == 0 && can && run <= last; run++)
    if (run != largest)
      e = judge_run(b, s, run, may);
  if (e == 0 && can)
    e = judge_run(b, s, largest, may);
  if (e == 0 && last)
    qsort(s->finding, s->n_findings, sizeof *s->finding, by_class_and_cost);
  free(may);
  return e;
}

static int allocate_ranks(struct ni_blame *b, bool all_ops) {
  if (!(b->rank = calloc(b->n_ranks + 1, sizeof *b->rank)))
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    b->rank[i].process = i;
    b->rank[i].all_ops = all_ops;
  }
  number_runs(b);
  return 0;
}

int ni_judge_steps(struct ni_run *r, struct ni_summary *s, struct ni_blame *b) {
  *b = (struct ni_blame){.r = r, .s = s, .n_ranks = (uint32_t)s->n_processes, .sample_every = UINT32_MAX};
  int e = allocate_ranks(b, true);
  if (e == 0)
    e = pass_all_ranks(b);
  if (e == 0)
    e = match_step_counts(b);
  return e == 0 ? ni_roles_tell(b) : e;
}

/* Filters by time or by rank leave all operations of what is left; these do not. */
static bool only_some_operations(const struct ni_filters *f) {
  const bool by_name = f->coll.n || f->comm.n || f->tag.n;
  return by_name || f->sn.n || f->size.n;
}

int ni_judge_all(struct ni_run *r, struct ni_summary *s, struct ni_blame *keep) {
  struct ni_blame b = {.r = r,
                       .s = s,
                       .n_ranks = (uint32_t)s->n_processes,
                       .sample_every = (uint32_t)(r->tally.records / NI_BLAME_SAMPLE) + 1,
                       .messages_left_out = ni_run_has_left_out(r, NI_KIND_P2P),
                       .collectives_left_out = ni_run_has_left_out(r, NI_KIND_COLL)};
  if (r->opt.compat)
    return 0;
  if (only_some_operations(&r->opt.filter))
    s->why_durations =
        "only some operations were chosen; who is late in these may have waited for another "
        "rank in the others";
  if (s->n_processes < 2 || s->why_durations)
    return ni_roles_tell(&b);
  int e = allocate_ranks(&b, false);
  if (e == 0 && r->team && r->team->rank)
    return pass_for_others(&b, s);
  if (e == 0)
    e = pass_all_ranks(&b);
  if (e == 0)
    e = match_step_counts(&b);
  if (e == 0)
    e = ni_roles_tell(&b);
  for (uint32_t i = 0; e == 0 && i < b.n_ranks; i++) {
    struct ni_blame_rank *o = &b.rank[i];
    s->process[i].own_us = NAN;
    if (s->process[i].ranks > 1) {
      o->judged = false;
      o->why_not = "processes drive several GPUs";
    }
    if (s->one_in >= NI_SAMPLED_OUT) {
      o->judged = false;
      o->why_not = ni_why_sampled;
    }
    if (o->why_not)
      s->why_durations = o->why_not;
  }
  if (e == 0)
    e = judge_runs(&b, s);
  if (e == 0 && !s->by_own_time && s->one_in < NI_SAMPLED_OUT)
    e = ni_paces_tell(&b, s);
  if (e == 0 && r->team)
    e = ni_team_agree(r, s);
  if (keep && e == 0)
    *keep = b;
  else
    ni_blame_free(&b);
  return e;
}
