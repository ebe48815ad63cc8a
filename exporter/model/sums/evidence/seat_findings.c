#include "seat_findings.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/findings.h"
#include "exporter/model/sums/spells/spells.h"
#include "rare_waits.h"
#include "rolled_totals.h"
#include "rolled_waits.h"
#include "sampled_costs.h"
#include "savings.h"
#include "seats.h"

/* A host whose CPU is slow is named if that takes so much of the run: it launches ahead, mostly. */
#define LATER_LEAST 0.006

struct ni_finding *ni_found_append(struct ni_found *l, enum ni_finding_kind kind, uint32_t of) {
  if (!ni_array_room(l->item, l->n, l->cap))
    return NULL;
  l->item[l->n] = (struct ni_finding){.kind = kind,
                                      .of = of,
                                      .other = UINT32_MAX,
                                      .low_us = NAN,
                                      .cost_us = NAN,
                                      .high_us = NAN,
                                      .from_step = -1,
                                      .to_step = -1,
                                      .level = kind == NI_FIND_LATE_RANK ? NI_LEVEL_RANK
                                          : kind == NI_FIND_SLOW_COMM    ? NI_LEVEL_COMM
                                                                         : NI_LEVEL_HOST};
  return &l->item[l->n++];
}

static void put_how(struct ni_put_text *w, const struct ni_sampled_cost *x) {
  if (x->of_gradients)
    ni_put(w, " (they compute beside these: what they wait in one of a step's is taken for the cost)");
  else if (x->halved)
    ni_put(w, " (they compute beside these: half of it is taken for the cost)");
}

static void put_wait_cost(struct ni_put_text *w, const struct ni_summary *s, const struct ni_late *l,
                          const struct ni_sampled_cost *x) {
  char waited[32], in_all[32];
  if (s->one_in <= 1) {
    ni_put(w, "; the others waited %s%s for %s in all", l->at_most ? "at most " : "",
           ni_duration_text(l->cost_us, waited), l->host ? "them" : "it");
    return;
  }
  ni_put(w, "; the others waited %s for %s there, which is %s%s in all, as one operation in %.0f is recorded",
         ni_duration_text(l->cost_us, waited), l->host ? "them" : "it", l->at_most ? "at most " : "",
         ni_duration_text(l->cost_us * s->one_in, in_all), s->one_in);
  put_how(w, x);
}

static void put_cost(struct ni_put_text *w, const struct ni_finding *f) {
  char cost[32], low[32], high[32];
  if (f->cost_us == 0)
    ni_put(w, "; it costs the run nothing, which others end");
  else if (f->cost_us > 0)
    ni_put(w, "; it costs about %s, %.1f %% of the run", ni_duration_text(f->cost_us, cost),
           100 * f->cost_us / f->run_us);
  if (f->cost_us > 0 && !isnan(f->low_us))
    ni_put(w, " (%s to %s)", ni_duration_text(f->low_us, low), ni_duration_text(f->high_us, high));
}

/* Where steps differ the groups that serve requests tell (savings.h). */
static void put_sampled_cost(struct ni_put_text *w, const struct ni_summary *s, struct ni_finding *f,
                             const struct ni_sampled_cost *x, uint32_t comm) {
  const struct ni_comm_row *c = &s->comm[comm];
  if (s->steps_differ)
    return;
  f->cost_us = x->us;
  f->low_us = x->low_us;
  f->high_us = x->high_us;
  f->run_us = s->job.runs > 1 ? (double)(c->last_us - c->first_us) : (double)(s->last_us - s->first_us);
  put_cost(w, f);
}

/* Of requests: what the ranks of a communicator lost of their time, and what the run would save. */
int ni_found_put_saving(struct ni_put_text *w, const struct ni_summary *s, uint32_t comm,
                        struct ni_finding *f) {
  const struct ni_comm_row *c = &s->comm[comm];
  if (!s->steps_differ)
    return 0;
  const int e = ni_savings_find(s, comm, f->lost_us, &f->cost_us);
  f->run_us = (double)(s->last_us - s->first_us);
  ni_put(w, ", %.1f %% of their time", 100 * f->lost_us / (double)(c->last_us - c->first_us));
  put_cost(w, f);
  return e;
}

static int name_late_seat(const struct ni_summary *s, const struct ni_late *l, struct ni_found *out) {
  const struct ni_comm_row *c = &s->comm[l->comm];
  char host[81], name[81], late[32];
  struct ni_finding *f = ni_found_append(out, l->host ? NI_FIND_SLOW_HOST : NI_FIND_LATE_RANK, l->of);
  if (!f)
    return -ENOMEM;
  f->compared = l->host ? 0 : l->met;
  f->value = NAN;
  struct ni_sampled_cost cost = {.us = l->cost_us * s->one_in};
  if (s->one_in > 1 && !l->host)
    cost = ni_find_sampled_cost(s, l->of, l->comm, cost.us);
  f->lost_us = cost.us;
  struct ni_put_text w = {f->text, sizeof f->text};
  if (l->host) {
    ni_put(&w, "host %s: %u of its %u ranks", ni_safe_text(s->host[l->of].name, host, sizeof host), l->late,
           l->there);
  } else {
    const struct ni_process *p = &s->process[l->of];
    ni_put(&w, "rank %d on %s", p->rank, ni_safe_text(s->host[p->host].name, host, sizeof host));
    if (p->gpu >= 0)
      ni_put(&w, ", GPU %d,", p->gpu);
    if (!p->rank_stated)
      ni_put(&w, " (rank in its largest communicator)");
  }
  ni_put(&w, " came %s later than %s peers, in the mean, to %s operations of %scommunicator %s%s%s",
         ni_duration_text(l->us, late), l->host ? "their" : "its", NI_COUNT(l->met), ni_role_words[c->role],
         ni_safe_text(c->name, name, sizeof name), c->name ? " " : "", c->id);
  put_wait_cost(&w, s, l, &cost);
  if (s->one_in > 1)
    put_sampled_cost(&w, s, f, &cost, l->comm);
  return ni_found_put_saving(&w, s, l->comm, f);
}

int ni_found_late_seats(const struct ni_summary *s, const double *slow_us, struct ni_found *out,
                        bool *explained) {
  struct ni_lates l;
  int e = ni_seats_find_late(s, slow_us, &l);
  for (size_t i = 0; e == 0 && i < l.n; i++) {
    explained[l.item[i].host ? l.item[i].of : s->process[l.item[i].of].host] = true;
    e = name_late_seat(s, &l.item[i], out);
  }
  ni_lates_free(&l);
  return e;
}

#define PAUSES_SIGMA 2.0 /* standard errors: how many of the pauses are recorded is chance */

#define PAUSES_PART 0.5  /* of what it is late by in all: else it is late at other times as well */
#define NOW_AND_THEN 0.5 /* of the steps: what comes in more of them is lateness, no pause */

/* A histogram's steps are half an octave wide, and what it was in between is not known. */
#define ROLLED_DOUBT 0.15

/* Without rank 0 nobody knows whether the first rank, which writes checkpoints, did the same. */
static bool has_rank_0(const struct ni_summary *s) {
  for (size_t i = 0; i < s->n_processes; i++)
    if (s->process[i].rank == 0)
      return true;
  return false;
}

static int name_rolled_pause(const struct ni_summary *s, const struct ni_rolled_pause *x,
                             struct ni_found *out) {
  const struct ni_comm_row *c = &s->comm[x->comm];
  const struct ni_process *p = x->host ? NULL : &s->process[x->of];
  char host[81], name[81], least[32], each[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_PAUSES, x->of);
  if (!f)
    return -ENOMEM;
  f->level = x->host ? NI_LEVEL_HOST : NI_LEVEL_RANK;
  f->value = NAN;
  f->times = x->times;
  f->each_us = x->cost_us / (double)x->times;
  f->lost_us = f->cost_us = x->cost_us;
  f->low_us = x->cost_us * (1 - ROLLED_DOUBT);
  f->high_us = x->cost_us * (1 + ROLLED_DOUBT);
  f->run_us = x->run_us;
  const bool can_be_checkpoint = p && (p->rank == 0 || (f->each_us >= NI_SPELLS_NOTE_US && !has_rank_0(s)));
  f->note = !s->steps_differ && can_be_checkpoint;
  ni_safe_text(s->host[p ? p->host : x->of].name, host, sizeof host);
  struct ni_put_text w = {f->text, sizeof f->text};
  if (p)
    ni_put(&w, "rank %d on %s%s pauses", p->rank, host,
           p->rank_stated ? "" : " (rank in its largest communicator)");
  else
    ni_put(&w, "host %s: its ranks pause together", host);
  ni_put(
      &w,
      " now and then: in %s of %s operations of %scommunicator %s%s%s the others waited %s or more for %s, "
      "%s in the mean, by the roll-ups, which count all of them",
      NI_COUNT(x->times), NI_COUNT(x->operations), ni_role_words[c->role],
      ni_safe_text(c->name, name, sizeof name), c->name ? " " : "", c->id,
      ni_duration_text(x->least_us, least), p ? "it" : "them", ni_duration_text(f->each_us, each));
  if (f->note)
    ni_put(&w, ", as for a checkpoint");
  put_cost(&w, f);
  return 0;
}

/* It comes in some steps, and is most of what the others wait for it; else it is late in most of them. */
static bool is_now_and_then(const struct ni_summary *s, const struct ni_rolled_pause *x,
                            const struct ni_rolled_totals *t) {
  for (size_t i = 0; i < t->n; i++) {
    const struct ni_rolled_late *y = &t->item[i];
    const bool is_same = y->host == x->host && y->of == x->of;
    if (is_same && x->cost_us < PAUSES_PART * (y->peers_us - y->us))
      return false;
  }
  const double steps = ni_estimate_sampled_steps(s, x->comm);
  return steps == 0 || (double)x->times <= NOW_AND_THEN * steps;
}

/* A rank that spends as much time in operations as its peers, or more, has not made them wait. */
static void drop_contradicted(const struct ni_summary *s, const struct ni_rolled_totals *t,
                              struct ni_found *l) {
  size_t kept = 0;
  for (size_t i = 0; i < l->n; i++) {
    const struct ni_finding *f = &l->item[i];
    const bool is_rank = f->kind == NI_FIND_LATE_RANK;
    bool is_contradicted = is_rank && t->less_us[f->of] <= 0;
    if (f->kind == NI_FIND_SLOW_HOST) {
      uint32_t less = 0, there = 0;
      for (uint32_t k = 0; k < s->n_processes; k++) {
        if (s->process[k].host != f->of || isnan(t->less_us[k]))
          continue;
        there++;
        less += t->less_us[k] > 0;
      }
      is_contradicted = there && !less;
    }
    if (!is_contradicted)
      l->item[kept++] = *f;
  }
  l->n = kept;
}

static bool is_named(const struct ni_summary *s, const struct ni_found *l, bool host, uint32_t of) {
  for (size_t i = 0; i < l->n; i++) {
    const struct ni_finding *f = &l->item[i];
    const bool is_of_rank =
        f->level == NI_LEVEL_RANK && (f->kind == NI_FIND_LATE_RANK || f->kind == NI_FIND_PAUSES);
    const bool is_of_host =
        f->level == NI_LEVEL_HOST && (f->kind == NI_FIND_SLOW_HOST || f->kind == NI_FIND_PAUSES);
    if (is_of_rank && (host ? s->process[f->of].host == of : f->of == of))
      return true;
    if (is_of_host && f->of == (host ? of : s->process[of].host))
      return true;
  }
  return false;
}

/* Hosts wait for each other in gradients, and compute beside these: between nothing and all of it is lost. */
#define HOST_PART 0.5
#define LATE_COST 0.005 /* of the run: what costs less is not named */

/* Of a rank: what the others wait for it where it has most operations. */
static int find_rolled_cost(const struct ni_summary *s, const struct ni_rolled_late *x,
                            struct ni_sampled_cost *out) {
  const uint32_t comm = x->host ? UINT32_MAX : ni_find_rolled_comm(s, x->of);
  const double less_us = x->peers_us - x->us;
  *out = (struct ni_sampled_cost){HOST_PART * less_us, 0, less_us, .halved = true};
  if (comm == UINT32_MAX)
    return 0;
  double waited_us = ni_find_rolled_wait_us(s, x->of, comm);
  if (!s->long_waits) {
    if (ni_seats_find_cost(s, x->of, comm, &waited_us) < 0)
      return -ENOMEM;
    waited_us *= s->one_in;
  }
  *out = ni_find_sampled_cost(s, x->of, comm, waited_us);
  return 0;
}

static int name_rolled_late(const struct ni_summary *s, const struct ni_rolled_late *x,
                            struct ni_found *out) {
  char host[81], mine[32], theirs[32];
  struct ni_sampled_cost cost;
  if (find_rolled_cost(s, x, &cost) < 0)
    return -ENOMEM;
  /* it has other work than those with as many operations, such as other requests: nobody waits for it */
  if (cost.us < LATE_COST * x->run_us)
    return 0;
  struct ni_finding *f = ni_found_append(out, x->host ? NI_FIND_SLOW_HOST : NI_FIND_LATE_RANK, x->of);
  if (!f)
    return -ENOMEM;
  f->compared = x->host ? 0 : x->peers;
  f->value = NAN;
  f->lost_us = f->cost_us = cost.us;
  f->low_us = cost.low_us;
  f->high_us = cost.high_us;
  f->run_us = x->run_us;
  struct ni_put_text w = {f->text, sizeof f->text};
  if (x->host) {
    ni_put(&w, "host %s: %u of its %u ranks spent", ni_safe_text(s->host[x->of].name, host, sizeof host),
           x->late, x->there);
  } else {
    const struct ni_process *p = &s->process[x->of];
    ni_put(&w, "rank %d on %s", p->rank, ni_safe_text(s->host[p->host].name, host, sizeof host));
    if (p->gpu >= 0)
      ni_put(&w, ", GPU %d,", p->gpu);
    if (!p->rank_stated)
      ni_put(&w, " (rank in its largest communicator)");
    ni_put(&w, " spent");
  }
  ni_put(&w, " %s in operations, %sranks with the same work %s and more, by %s: the others wait for %s",
         ni_duration_text(x->us, mine), x->host ? "and other " : "", ni_duration_text(x->peers_us, theirs),
         s->long_waits ? "the roll-ups, which count all of them" : "those that are recorded",
         x->host ? "them" : "it");
  put_how(&w, &cost);
  put_cost(&w, f);
  return 0;
}

/* What others waited for the rank's pauses is most of what it spends less in operations: it is not late. */
static bool do_pauses_explain(const struct ni_summary *s, const struct ni_rolled_totals *t,
                              const struct ni_pausing *x) {
  for (size_t i = 0; i < t->n; i++) {
    const struct ni_rolled_late *y = &t->item[i];
    if (!y->host && y->of == x->process)
      return x->us * s->one_in >= PAUSES_PART * (y->peers_us - y->us);
  }
  return true;
}

/* By the records alone. */
static int name_rare_waits(const struct ni_summary *s, const struct ni_rolled_totals *totals,
                           struct ni_found *out) {
  struct ni_pausing x;
  char host[81], name[81], each[32], all[32];
  const int e = ni_find_rare_waits(s, &x);
  if (e < 0 || x.process == UINT32_MAX)
    return e;
  if (!do_pauses_explain(s, totals, &x))
    return 0;
  for (size_t i = 0; i < out->n; i++)
    if (out->item[i].kind == NI_FIND_LATE_RANK && out->item[i].of == x.process)
      return 0;
  struct ni_finding *f = ni_found_append(out, NI_FIND_PAUSES, x.process);
  if (!f)
    return -ENOMEM;
  const struct ni_process *p = &s->process[x.process];
  const struct ni_comm_row *c = &s->comm[x.comm];
  f->level = NI_LEVEL_RANK;
  f->value = NAN;
  f->times = x.times;
  f->each_us = x.us / x.times;
  double waited_us;
  if (ni_seats_find_cost(s, x.process, x.comm, &waited_us) < 0)
    return -ENOMEM;
  f->lost_us = waited_us * s->one_in;
  /* the first rank writes checkpoints and logs; who serves requests writes no checkpoint */
  f->note = !s->steps_differ && (f->each_us >= NI_SPELLS_NOTE_US || p->rank == 0);
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w,
         "rank %d on %s%s pauses now and then: in %s operations of %scommunicator %s%s%s the others waited "
         "%s for it, in the mean; with shorter waits that is %s in all",
         p->rank, ni_safe_text(s->host[p->host].name, host, sizeof host),
         p->rank_stated ? "" : " (rank in its largest communicator)", NI_COUNT(x.times),
         ni_role_words[c->role], ni_safe_text(c->name, name, sizeof name), c->name ? " " : "", c->id,
         ni_duration_text(f->each_us, each), ni_duration_text(f->lost_us, all));
  if (s->one_in > 1)
    ni_put(&w, ", as one operation in %.0f is recorded", s->one_in);
  if (f->note)
    ni_put(&w, ", as for a checkpoint");
  if (ni_savings_is_waited_lost(s, x.process, x.comm)) {
    const double doubt = fmin(1, PAUSES_SIGMA / sqrt(x.times));
    f->run_us = (double)(s->last_us - s->first_us);
    f->cost_us = f->lost_us;
    f->low_us = f->cost_us * (1 - doubt);
    f->high_us = f->cost_us * (1 + doubt);
    put_cost(&w, f);
  }
  return ni_found_put_saving(&w, s, x.comm, f);
}

/* Of sampled logs. Where roll-ups say who pauses, records have no more to say of that. */
static int name_of_sample(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  struct ni_rolled_pauses pauses = {0};
  struct ni_rolled_totals totals = {0};
  int e = ni_find_rolled_pauses(s, &pauses);
  if (e == 0)
    e = ni_find_rolled_totals(s, &totals);
  if (e == 0 && totals.known)
    drop_contradicted(s, &totals, out);
  if (e == 0 && !pauses.known)
    e = name_rare_waits(s, &totals, out);
  for (int often = 0; often < 2; often++) {
    for (size_t i = 0; e == 0 && i < pauses.n; i++) {
      const struct ni_rolled_pause *x = &pauses.item[i];
      const bool is_this = is_now_and_then(s, x, &totals) == !often;
      if (is_this && !is_named(s, out, x->host, x->of))
        e = name_rolled_pause(s, x, out);
    }
    for (size_t i = 0; e == 0 && i < totals.n && !often; i++) {
      const struct ni_rolled_late *x = &totals.item[i];
      if (is_named(s, out, x->host, x->of))
        continue;
      explained[x->host ? x->of : s->process[x->of].host] = true;
      e = name_rolled_late(s, x, out);
    }
  }
  ni_rolled_pauses_free(&pauses);
  ni_rolled_totals_free(&totals);
  return e;
}

int ni_found_waited_for(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  const struct ni_rolled_totals none = {0};
  return s->one_in > 1 ? name_of_sample(s, out, explained) : name_rare_waits(s, &none, out);
}

/* How many times as slowly as others the CPU of the host calls; 0: as quickly. */
static double measure_calls(const struct ni_summary *s, uint32_t host) {
  double sum = 0;
  uint32_t n = 0;
  for (size_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    if (p->host != host || !(p->calls > 0))
      continue;
    sum += p->calls;
    n++;
  }
  return n ? sum / n : 0;
}

/* Hosts whose CPUs are slow, where requests are served: what they do takes longer by that. */
int ni_found_slow_cpus(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  int e = 0;
  const double run_us = (double)(s->last_us - s->first_us);
  for (uint32_t h = 0; e == 0 && h < s->n_hosts && s->steps_differ; h++) {
    const double calls = measure_calls(s, h), later_us = s->host[h].paced.later_us;
    char host[81], later[32];
    if (!(calls > 0) || !(later_us >= LATER_LEAST * run_us))
      continue;
    struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_HOST, h);
    if (!f)
      return -ENOMEM;
    explained[h] = true;
    f->value = calls;
    f->lost_us = later_us;
    f->run_us = run_us;
    struct ni_put_text w = {f->text, sizeof f->text};
    ni_put(
        &w,
        "host %s: its ranks call NCCL %.2f times as slowly as others, and take longer between operations of "
        "the same size: %s in all",
        ni_safe_text(s->host[h].name, host, sizeof host), calls, ni_duration_text(later_us, later));
    e = ni_savings_find_of_host(s, h, later_us, &f->cost_us);
    put_cost(&w, f);
  }
  return e;
}

static bool is_host_named(const struct ni_found *l, uint32_t host) {
  for (size_t i = 0; i < l->n; i++)
    if (l->item[i].kind == NI_FIND_SLOW_HOST && l->item[i].of == host)
      return true;
  return false;
}

static int fill_processes_of_host(const struct ni_summary *s, struct ni_finding *f) {
  if (!(f->process = malloc((s->host[f->of].n_processes + 1) * sizeof *f->process)))
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (s->process[i].host == f->of)
      f->process[f->n_processes++] = i;
  return 0;
}

static int name_slow_gpus(const struct ni_summary *s, uint32_t h, struct ni_found *out) {
  const struct ni_paced *x = &s->host[h].paced;
  char host[81], lost[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_HOST, h);
  if (!f)
    return -ENOMEM;
  f->value = NAN;
  f->lost_us = x->lost_us;
  f->run_us = (double)(s->last_us - s->first_us);
  struct ni_put_text w = {f->text, sizeof f->text};
  ni_put(&w,
         "host %s: its ranks compute %.2f times as long as others between operations of the same size, small "
         "and large ones alike (%u sizes): %s more%s",
         ni_safe_text(s->host[h].name, host, sizeof host), x->times, x->sizes,
         ni_duration_text(x->lost_us, lost),
         x->in_stage ? ", unless its stage has more to do in each layer" : "");
  int e = ni_savings_find_of_host(s, h, x->lost_us, &f->cost_us);
  put_cost(&w, f);
  return e == 0 ? fill_processes_of_host(s, f) : e;
}

int ni_found_slow_gpus(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < s->n_hosts; h++) {
    if (!(s->host[h].paced.times > 0) || is_host_named(out, h))
      continue;
    explained[h] = true;
    e = name_slow_gpus(s, h, out);
  }
  return e;
}
