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
#include "savings.h"
#include "seats.h"

/* What others waited for while they computed costs between nothing and all of it: half is taken. */
#define HIDDEN_PART 0.5
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

/*
 * Transfers of all ranks' gradients and parameters overlap the computing, and the same lateness is waited for
 * in one operation after the other. So between nothing and all of that waiting makes a step longer.
 */
static bool is_cost_halved(const struct ni_summary *s, const struct ni_late *l) {
  return l->at_most && !l->host && s->comm[l->comm].one_host < 0;
}

static void put_wait_cost(struct ni_put_text *w, const struct ni_summary *s, const struct ni_late *l) {
  char waited[32], in_all[32];
  if (s->one_in <= 1) {
    ni_put(w, "; the others waited %s%s for %s in all", l->at_most ? "at most " : "",
           ni_duration_text(l->cost_us, waited), l->host ? "them" : "it");
    return;
  }
  ni_put(w, "; the others waited %s for %s there, which is %s%s in all, as one operation in %.0f is recorded",
         ni_duration_text(l->cost_us, waited), l->host ? "them" : "it", l->at_most ? "at most " : "",
         ni_duration_text(l->cost_us * s->one_in, in_all), s->one_in);
  if (is_cost_halved(s, l))
    ni_put(w, " (they compute beside these: half of it is taken for the cost)");
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
  f->lost_us = l->cost_us * s->one_in * (is_cost_halved(s, l) ? HIDDEN_PART : 1);
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
  put_wait_cost(&w, s, l);
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

int ni_found_pausing_rank(const struct ni_summary *s, struct ni_found *out) {
  struct ni_pausing x;
  char host[81], name[81], each[32], all[32];
  const int e = ni_find_rare_waits(s, &x);
  if (e < 0 || x.process == UINT32_MAX)
    return e;
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
