#include "leads.h"

#include <math.h>

#include "exporter/model/sums/ranks/quantile.h"

/* Gaps that are longer by less say nothing about others that get ahead. */
#define LEAD_LEAST_US 20.0f
/* A late rank has to take longer in so many places, or nothing is said about others that get ahead. */
enum { LEAD_PLACES_MIN = 4 };
/* The first place is longer by this part of their mean: others run ahead all the time. */
#define LEAD_RISES 0.15f
/* It is longer by this part: they do not run ahead at all. In between it is said in part. */
#define LEAD_FLAT 0.45f
/* Others wait for the operation before a gap if theirs is less than this part of the late rank's. */
#define LEAD_HELD 0.02f
/* They run ahead of it if they are held up in this part of what its gaps are longer by. */
#define LEAD_HELD_OF 0.25
/* Others whose gap is less than this part of what the rank computes are held up now and then, by chance. */
#define LEAD_CHANCE 0.04f
/* Others that are ahead by less than this part of what they were have waited, and get ahead anew. */
#define LEAD_AGAIN 0.6f
/* The same, where it is only known that they were ahead by so much or more. */
#define LEAD_AGAIN_HELD 0.85f
/* Others were ahead before if gaps are so many times as long as a place that begins anew says. */
#define LEAD_CARRIED 3
/*
 * Of what the rank computes: so much has to lie in places that tell its rate, to say that others stay ahead.
 */
#define LEAD_ALL 0.9
/* Of its gaps: so much has to lie in places that tell its rate. */
#define LEAD_TOLD 0.02
/* No rank is longer by more than this part of what a place took, whatever few places say. */
#define LEAD_MOST 0.9

/*
 * Late once: beside the places that are compared it is late by less than this part of the rate of these, and
 * by so many times what it is late by in one of them at most.
 */
#define ONCE_RATE 0.2f
#define ONCE_MORE 2.0f

/*
 * How far others are ahead of a late rank, place by place. Its gap in a place is longer than theirs by
 * all that they are ahead there (`us`), as far as they see: where they begin as soon as the operation
 * before has ended they are held up, and further ahead than that. Where what is left of their gap is no
 * more than computing differs by chance some of them are held up in some steps, and the means say too
 * little. Where they are ahead by far less than they were (LEAD_AGAIN), they waited for that operation to
 * compute on, and are ahead by what the rank took longer in this place alone. If that is less than what a
 * rank is named for, it does there what does not make it late (it waits for its CPU when a step begins):
 * it is late by its rate in all the rest. There nobody is ahead: others begin to get ahead in the next place
 * in which it does take longer.
 */
struct lead_track {
  float us;
  bool exact;             /* else they are so far ahead or further */
  bool even;              /* nobody is ahead */
  double longer, elapsed; /* what it took longer in places that tell it, and how long these were */
  double anew, anew_own;  /* of those in which others begin to get ahead */
  double apart;           /* places in which it does not take longer */
  double held;            /* what it took longer where others are held up */
  double hidden;          /* operations that it overlapped with computing, in us */
};

static bool are_others_held_up(const struct ni_member_place *at) {
  const float others = at->mean_us - at->times;
  return at->times >= LEAD_LEAST_US && others < fmaxf(LEAD_LEAST_US, LEAD_HELD * at->mean_us);
}

static void follow_place(struct lead_track *x, const struct ni_member_place *at, float op_us, float least) {
  const float own = at->mean_us, more = at->times, others = own - more;
  if (isnan(more) || own < least)
    return; /* one after the other: nothing is computed between */
  if (are_others_held_up(at) || (more >= LEAD_LEAST_US && others < LEAD_CHANCE * (own + op_us))) {
    x->us = fmaxf(x->us, more);
    x->exact = x->even = false;
    x->held += more;
    x->hidden += op_us;
    return;
  }
  const bool again = more < (x->exact ? LEAD_AGAIN : LEAD_AGAIN_HELD) * x->us;
  const bool is_little = more < NI_CAUSE_OWN * own;
  const bool begins = again || (x->even && !is_little);
  if (again && is_little)
    x->apart += own;
  else if (again || x->exact) {
    const float added = again ? more : more - x->us;
    x->longer += added;
    x->elapsed += own + (again ? 0 : op_us);
    x->anew += begins ? added : 0;
    x->anew_own += begins ? own : 0;
  }
  x->hidden += again ? 0 : op_us;
  x->exact |= again;
  x->even = is_little && (again || x->even);
  x->us = fmaxf(0, more);
}

/*
 * Others get ahead of a rank and stay ahead. Then its gaps are longer by several times the rate that it takes
 * longer at where they begin to get ahead. Where each operation waits for all, and nothing overlaps it, all
 * gaps are longer by the same rate. sum, own: of all gaps.
 */
static bool is_lead_carried(const struct lead_track *x, double sum, double own, double all) {
  if (x->anew <= 0 || x->elapsed < LEAD_ALL * all)
    return false;
  return (sum - x->anew) * x->anew_own >= LEAD_CARRIED * x->anew * (own - x->anew_own);
}

/*
 * Others run ahead of a rank if they are held up in much of what it takes longer, or stay ahead. Then its
 * gaps add up to more than it is late by. It is late by the rate of those places that tell it, in all that it
 * computes except where it takes no longer. The rate is of all that it computes, so a few places alone name
 * nobody. rate 0: nobody runs ahead, or no place tells it. op_us: of one operation; at, n, sum: as in
 * find_lead().
 */
static struct ni_lead estimate_late_rate(const struct ni_member_place *at, size_t n, float op_us,
                                         double sum) {
  struct lead_track x = {.us = 0};
  double own = 0;
  for (size_t i = 0; i < n; i++)
    own += at[i].mean_us;
  /* A gap of a launch or two is no computing. Who is ahead stays ahead there, though no gap is longer. */
  const float least = fmaxf(LEAD_LEAST_US, LEAD_HELD * (float)(own / (double)n));
  for (int pass = 0; pass < 2; pass++) { /* once to know where they are when the step begins */
    x = (struct lead_track){.us = x.us, .exact = x.exact, .even = x.even};
    for (size_t i = 0; i < n; i++)
      follow_place(&x, &at[i], op_us, least);
  }
  const double all = own + x.hidden;
  if (x.held < LEAD_HELD_OF * sum && !is_lead_carried(&x, sum, own, all))
    return (struct ni_lead){0};
  if (x.elapsed < LEAD_TOLD * own || x.longer <= 0)
    return (struct ni_lead){0};
  const double late = fmin(LEAD_MOST, x.longer / x.elapsed) * (all - x.apart);
  return (struct ni_lead){.rate = (float)(late / (all - late)), .of_sum = (float)fmin(1, late / sum)};
}

/* What a rank does in a step beside the places that are compared, us. */
struct rest_of_step {
  float mine, others;
};

static float measure_rest(const struct ni_blame_rank *o, const struct ni_member_place *at, size_t n) {
  float us = (float)(o->idle_us / o->n_steps);
  for (size_t i = 0; i < n; i++)
    us -= isnan(at[i].times) ? 0 : at[i].mean_us;
  return us;
}

/*
 * It is late once, as where its input comes late, and others that compute on are as far ahead of it in all
 * places: its gaps are longer by the same time there, and by no more where it computes for far longer. A rank
 * that is slow is so by a part of what it computes.
 */
static bool is_late_once(const struct ni_member_place *at, size_t n, struct rest_of_step rest) {
  float others = 0, more = 0;
  uint32_t compared = 0;
  for (size_t i = 0; i < n; i++) {
    if (isnan(at[i].times))
      continue;
    more += at[i].times;
    others += at[i].mean_us - at[i].times;
    compared++;
  }
  const float usual = more / (float)compared, beyond = rest.mine - rest.others;
  const bool is_known = compared >= LEAD_PLACES_MIN && more > 0 && rest.others > others;
  const bool is_as_much = beyond <= ONCE_MORE * usual;
  return is_known && is_as_much && beyond * others < ONCE_RATE * more * rest.others;
}

/*
 * How far others get ahead of a rank that has one communicator only, and computes while operations run. They
 * get ahead of a late one from place to place, until they wait for an operation, and each of its gaps is
 * longer by all of that. Then it is late by the longest of these gaps, not by their sum. at: its places, in
 * order; step_us: of its step.
 */
static struct ni_lead find_lead(const struct ni_member_place *at, size_t n, float step_us,
                                struct rest_of_step rest) {
  float most = 0, first = 0;
  double sum = 0, own = 0;
  uint32_t longer = 0;
  for (size_t i = 0; i < n; i++) {
    own += at[i].mean_us;
    if (!(at[i].times > LEAD_LEAST_US))
      continue;
    if (longer++ == 0)
      first = at[i].times;
    most = fmaxf(most, at[i].times);
    sum += at[i].times;
  }
  if (longer < LEAD_PLACES_MIN)
    return (struct ni_lead){.part = 1, .apart = 1};
  struct ni_lead lead = estimate_late_rate(at, n, (float)fmax(0, step_us - own) / (float)n, sum);
  float rise = first * (float)longer / (float)sum;
  lead.part = (float)(most / sum);
  lead.apart = fminf(1, fmaxf(0, (rise - LEAD_RISES) / (LEAD_FLAT - LEAD_RISES)));
  if (is_late_once(at, n, rest))
    lead.apart = 0;
  return lead;
}

void ni_find_leads(const struct ni_blame *b, struct ni_compared *w, const struct ni_member_place *at,
                   size_t n, float *scratch) {
  size_t members = 0;
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from; to < n && at[to].rank == at[from].rank; to++) {}
    scratch[members++] = measure_rest(&b->rank[at[from].rank], at + from, to - from);
  }
  const float others = ni_blame_quantile(scratch, members, 0.5);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from; to < n && at[to].rank == at[from].rank; to++) {}
    const struct ni_blame_rank *o = &b->rank[at[from].rank];
    const float step = (float)(o->last_ns - o->first_ns) / 1e3f / (float)o->n_steps;
    const struct rest_of_step rest = {measure_rest(o, at + from, to - from), others};
    w->lead[at[from].rank] =
        o->one_comm ? find_lead(at + from, to - from, step, rest) : (struct ni_lead){.part = 1, .apart = 1};
  }
}
