#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/ranks/quantile.h"

/* A rank is odd in a place if it takes so many times as long there, or as short, as it does elsewhere. */
#define ODD_PLACE 1.25f
/*
 * Where more than one member in so many is odd the place is not compared. Where so many others wait for the
 * same as an odd member, and are not odd, that is not why it is.
 */
enum { ODD_MOST = 4, ALIKE_MIN = 2 };
/* Times shorter than this part of half a step say nothing about what a place waits for. */
#define ODD_LITTLE 0.02f
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
 * Own time in all is compared with that of so many ranks or more. A rank has to be beyond their lower
 * quartile by so many times what lies between that one and the upper one.
 */
enum { WHOLE_PEERS_MIN = 4 };
#define WHOLE_HIGH 0.75
#define WHOLE_APART 3

struct member_place {
  uint64_t at, name, waits;
  uint32_t rank, order;
  float usual_us, mean_us,
      times; /* times: what is usual for the class there; then: how much longer than that */
};
static NI_ORDER_BY(by_place, struct member_place, at, usual_us, rank);
static NI_ORDER_BY(by_order, struct member_place, rank, order);
static NI_ORDER_BY(by_rank, struct member_place, rank, times);

/* The end of the place that begins at `from`. */
static size_t find_place_end(const struct member_place *at, size_t n, size_t from) {
  size_t to = from + 1;
  while (to < n && at[to].at == at[from].at)
    to++;
  return to;
}

/* A member that waits for what most of n wait for, if more than half do. */
static const struct member_place *find_majority_wait(const struct member_place *at, size_t n) {
  const struct member_place *most = at;
  size_t votes = 0;
  for (size_t i = 0; i < n; i++) {
    if (votes == 0)
      most = &at[i];
    votes += at[i].name == most->name ? 1 : (size_t)-1;
  }
  return most;
}

/*
 * It waits for what most do, and perhaps for more: then its own time begins no earlier than theirs, and where
 * it is longer all the same, it is.
 */
static bool waits_for_as_much(const struct member_place *x, const struct member_place *most, float baseline) {
  const bool is_more = (x->waits & most->waits) == most->waits && x->usual_us > baseline;
  return x->name == most->name || is_more;
}

/* It takes far longer there than it does elsewhere, or shorter. */
static bool is_odd_there(const struct member_place *x, float baseline, float little, const float *middle) {
  const float times = (x->usual_us + little) / (baseline + little) / middle[x->rank];
  return !(times <= ODD_PLACE && times * ODD_PLACE >= 1);
}

struct compared_places {          /* of one rank, sums over its places in a step */
  float level_us;                 /* the baselines of those that it has */
  float over_us;                  /* what it takes longer; NAN: nothing is compared */
  float compared_us, left_out_us; /* what it takes in those that are compared, and in those that are not */
};

/* Others that wait for the same as this one there, and take as long as elsewhere. */
static uint32_t count_alike(const struct member_place *at, size_t n, const struct member_place *x,
                            float baseline, float little, const float *middle) {
  uint32_t alike = 0;
  for (size_t i = 0; i < n; i++)
    alike += at[i].name == x->name && !is_odd_there(&at[i], baseline, little, middle);
  return alike;
}

/*
 * Adds what the members take longer in one place. A member is odd if it takes far longer or shorter there
 * than it does elsewhere: it may wait for something else. Where many are odd the place is not compared at
 * all. Else an odd member is left out if it does wait for something else than most, unless others that wait
 * for the same are not odd.
 */
static void add_place_excess(struct member_place *at, size_t n, float little, const float *middle,
                             struct compared_places *sums) {
  const float baseline = at[n == 2 ? 0 : (n - 1) / 4].usual_us;
  const struct member_place *most = find_majority_wait(at, n);
  size_t odd = 0;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < n; i++) {
      const bool is_odd = is_odd_there(&at[i], baseline, little, middle);
      if (pass == 0 && (odd += is_odd) * ODD_MOST > n)
        return;
      if (pass == 0)
        continue;
      at[i].times = at[i].mean_us - at[n == 2 ? 0 : (n - 1) / 4].mean_us;
      struct compared_places *x = &sums[at[i].rank];
      x->level_us += baseline;
      const bool is_alone = is_odd && !waits_for_as_much(&at[i], most, baseline);
      if (is_alone && count_alike(at, n, &at[i], baseline, little, middle) < ALIKE_MIN) {
        x->left_out_us += at[i].usual_us;
        continue;
      }
      x->over_us = (isnan(x->over_us) ? 0 : x->over_us) + at[i].usual_us - baseline;
      x->compared_us += at[i].usual_us;
    }
}

/*
 * Own time of a step that is seen: the median of the members. Not the sum of all places, because members may
 * have different ones: half of them count theirs from elsewhere.
 */
static float find_level(const struct ni_compared *w, const struct compared_places *sums, float *scratch) {
  size_t n = 0;
  for (uint32_t i = 0; i < w->n; i++)
    if (sums[w->member[i]].level_us > 0)
      scratch[n++] = sums[w->member[i]].level_us;
  return n ? ni_blame_quantile(scratch, n, 0.5) : 0;
}

/* All own time of a step, wherever it lies in the step and whatever the rank waited for; without pauses. */
static float find_whole_own_time(const struct ni_blame_rank *o) {
  double pauses = 0;
  for (uint32_t k = 0; k < o->n_bins; k++)
    pauses += o->cell[k].burst;
  return (float)((o->own_us - pauses) / o->n_steps);
}

/*
 * The slowest rank of a pipeline's stage never waits for messages: they are there before it asks. Its peers
 * do. So it waits for something else than they do wherever its time is, and no place says how late it is. Its
 * own time in all does, where its peers agree about theirs. That says nothing where waits are missing in the
 * logs, or where most of the computing lies beside operations.
 */
static void compare_whole_own_time(const struct ni_blame *b, struct ni_compared *w,
                                   const struct compared_places *sums, float *scratch) {
  if (b->waits_unseen || b->teams_wait_unseen || w->n < WHOLE_PEERS_MIN)
    return;
  for (uint32_t i = 0; i < w->n; i++)
    scratch[i] = find_whole_own_time(&b->rank[w->member[i]]);
  const float baseline = ni_blame_quantile(scratch, w->n, NI_CAUSE_BASELINE);
  const float apart = ni_blame_quantile(scratch, w->n, WHOLE_HIGH) - baseline;
  for (uint32_t i = 0; i < w->n; i++) {
    const uint32_t rank = w->member[i];
    const float over = find_whole_own_time(&b->rank[rank]) - baseline;
    const bool is_left_out = sums[rank].left_out_us > sums[rank].compared_us;
    if (!is_left_out || over < WHOLE_APART * apart || baseline < w->level_us)
      continue;
    w->over_us[rank] = over;
    w->seen_us[rank] = baseline;
  }
}

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

static bool are_others_held_up(const struct member_place *at) {
  const float others = at->mean_us - at->times;
  return at->times >= LEAD_LEAST_US && others < fmaxf(LEAD_LEAST_US, LEAD_HELD * at->mean_us);
}

static void follow_place(struct lead_track *x, const struct member_place *at, float op_us, float least) {
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
static struct ni_lead estimate_late_rate(const struct member_place *at, size_t n, float op_us, double sum) {
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

static float measure_rest(const struct ni_blame_rank *o, const struct member_place *at, size_t n) {
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
static bool is_late_once(const struct member_place *at, size_t n, struct rest_of_step rest) {
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
static struct ni_lead find_lead(const struct member_place *at, size_t n, float step_us,
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

/* Fills w->lead. at: places of all members, by rank and order; scratch: of members. */
static void find_leads(const struct ni_blame *b, struct ni_compared *w, const struct member_place *at,
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

int ni_compare_places(const struct ni_blame *b, struct ni_compared *w) {
  size_t n = 0, all = 0;
  for (uint32_t i = 0; i < w->n; i++)
    all += b->rank[w->member[i]].n_places;
  struct member_place *at = malloc((all + 1) * sizeof *at);
  float *middle = malloc(((size_t)b->n_ranks + 1) * sizeof *middle);
  struct compared_places *sums = calloc((size_t)b->n_ranks + 1, sizeof *sums);
  float *step_us = malloc((w->n + 1) * sizeof *step_us);
  if (!at || !middle || !sums || !step_us) {
    free(at);
    free(middle);
    free(sums);
    free(step_us);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < w->n; i++) {
    const struct ni_blame_rank *o = &b->rank[w->member[i]];
    for (uint32_t k = 0; k < o->n_places; k++) {
      const struct ni_blame_place *p = &o->place[k];
      at[n++] =
          (struct member_place){p->at, p->name, p->waits, w->member[i], p->order, p->usual_us, p->mean_us, 1};
    }
    sums[w->member[i]].over_us = NAN;
    step_us[i] = (float)(o->last_ns - o->first_ns) / 1e3f / (float)o->n_steps;
  }
  w->of_us = ni_blame_quantile(step_us, w->n, 0.5) / 2;
  const float little = ODD_LITTLE * w->of_us;
  qsort(at, n, sizeof *at, by_place);
  for (size_t from = 0, to; from < n; from = to) {
    to = find_place_end(at, n, from);
    float baseline = at[from + (to - from == 2 ? 0 : (to - from - 1) / 4)].usual_us;
    for (size_t i = from; i < to; i++)
      at[i].times = (at[i].usual_us + little) / (baseline + little);
  }
  qsort(at, n, sizeof *at, by_rank);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from; to < n && at[to].rank == at[from].rank; to++) {}
    middle[at[from].rank] = at[from + (to - from - 1) / 2].times;
  }
  qsort(at, n, sizeof *at, by_place);
  /* where a place is compared: how much longer it is there */
  for (size_t i = 0; i < n; i++)
    at[i].times = NAN;
  for (size_t from = 0, to; from < n; from = to) {
    to = find_place_end(at, n, from);
    if (to - from >= 2 && (to - from) * 2 >= (size_t)w->n)
      add_place_excess(at + from, to - from, little, middle, sums);
  }
  w->level_us = find_level(w, sums, step_us);
  w->of_us = fmaxf(w->level_us, w->of_us);
  for (uint32_t i = 0; i < w->n; i++) {
    w->over_us[w->member[i]] = sums[w->member[i]].over_us;
    w->seen_us[w->member[i]] = w->level_us;
  }
  compare_whole_own_time(b, w, sums, step_us);
  qsort(at, n, sizeof *at, by_order);
  find_leads(b, w, at, n, step_us);
  free(at);
  free(middle);
  free(sums);
  free(step_us);
  return 0;
}

/*
 * Stages do not have the same places: one has more layers than the other, and the first and the last one do
 * something besides. But a layer computes as long in one stage as in another. So the times between operations
 * of one stage, all of them by one factor, are found again in the other, and the factor under which most of
 * them are found again says how much longer the stage computes. Each time is found once only: a layer that
 * takes 1.2 times as long forward as backward does not make its stage 1.2 times as long. What a stage does
 * besides is a few places, however long they are.
 */
enum { STAGE_PLACES = 32, STAGE_PLACES_MIN = 8 }; /* fewer places can agree by chance */
#define STAGE_SAME 0.02f                          /* times that differ by no more are the same; */
#define STAGE_FOUND 0.7f                          /* so many of both must be found again; */
#define STAGE_AS_GOOD \
  0.85f /* a factor half as far from one under which so many of those are found is the right one */
#define STAGE_MOST 2.0f   /* larger factors are other work */
#define STAGE_PARTLY 0.2f /* so many of its places as long as in the other are no chance */
/* of the longest place: in less there is no layer, as where a kernel follows on another */
#define STAGE_LEAST 0.01f
enum { STAGE_LEFT_MIN = 6 }; /* places of those that are left without these */

struct stage {
  /*
   * Places of one rank in the middle of it, longest first. Of more than there is room for, as many of each
   * length as their share is: the longest ones can be what the stage does besides, such as a loss.
   */
  float us[STAGE_PLACES];
  uint32_t n;    /* 0: too few to find a factor by */
  uint32_t n_us; /* so many there are in any case */
  float pass_us; /* nothing but whole passes lies before its messages: of one; 0: there is more */
  float idle_us,
      late_us; /* of a step that rank is idle, or computes; late_us: before what is launched late */
  float off;   /* how far that rank is from its peers */
  bool whole;  /* all its layers lie in each of its places: without tensor parallelism */
  bool at_end; /* the first or the last one */
  bool taken;
  uint32_t ranks;
  /* of its ranks' own collectives, a step: gradients, and what its layers exchange */
  double bytes;
};

static int compare_longest_first(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x > y ? -1 : x < y;
}

/* Its messages go to earlier stages alone, or to later ones, as numbered in their communicators. */
static bool is_end_stage(const struct ni_blame_rank *o) {
  bool earlier = false, later = false;
  for (uint32_t i = 0; i < o->n_slots; i++) {
    if (o->slot[i].kind == NI_BLAME_COLL)
      continue;
    earlier |= o->slot[i].peer < o->slot[i].rank;
    later |= o->slot[i].peer > o->slot[i].rank;
  }
  return !earlier || !later;
}

/*
 * The last stage goes on from the forward pass of a micro-batch to its backward pass, and talks to nobody
 * between: all that lies before its messages is as long. 0: it is not so.
 */
enum { PASSES_MIN = 2 };

static float find_whole_pass(const struct ni_blame_rank *o) {
  float shortest = INFINITY, longest = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_places; i++) {
    if (!o->place[i].message)
      continue;
    shortest = fminf(shortest, o->place[i].usual_us);
    longest = fmaxf(longest, o->place[i].usual_us);
    n++;
  }
  return n >= PASSES_MIN && longest <= (1 + 2 * STAGE_SAME) * shortest ? (longest + shortest) / 2 : 0;
}

static int fill_stage(const struct ni_blame *b, uint32_t rank, float off, struct stage *s) {
  const struct ni_blame_rank *o = &b->rank[rank];
  if (s->taken && !(off < s->off))
    return 0;
  float *us = malloc((o->n_places + 1) * sizeof *us);
  if (!us)
    return -ENOMEM;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_places; i++)
    if (!o->place[i].message)
      us[n++] = o->place[i].usual_us; /* before a message lie all layers of a stage, however many they are */
  s->whole = n < STAGE_PLACES_MIN;
  for (uint32_t i = 0; s->whole && i < o->n_places; i++)
    if (o->place[i].message)
      us[n++] = o->place[i].usual_us;
  s->bytes = 0;
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind == NI_BLAME_COLL && b->s->comm[o->slot[i].comm].n_ranks <= (int64_t)s->ranks)
      s->bytes += (double)o->slot[i].bytes / o->n_steps;
  qsort(us, n, sizeof *us, compare_longest_first);
  const bool enough = n >= STAGE_PLACES_MIN;
  while (n && us[n - 1] < STAGE_LEAST * us[0])
    n--;
  s->n_us = n < STAGE_PLACES ? n : STAGE_PLACES;
  s->n = enough && n >= STAGE_LEFT_MIN ? s->n_us : 0;
  for (uint32_t i = 0; i < s->n_us; i++)
    s->us[i] = us[(2 * i + 1) * n / (2 * s->n_us)];
  s->pass_us = s->whole ? find_whole_pass(o) : 0;
  s->idle_us = (float)(o->idle_us / o->n_steps);
  s->late_us = (float)(o->late_idle_us / o->n_steps);
  s->off = off;
  s->taken = true;
  s->at_end = is_end_stage(o);
  free(us);
  return 0;
}

/*
 * Where all layers of a stage lie in each place, the bytes of its gradients say how many these are. Stages
 * with other ones are compared for as many layers, and whether they are slow, or layers differ in what they
 * do, cannot be told. Times of several lengths, such as forward and backward, have to be found again. The
 * first and the last one can have more to do all the same: an embedding or a loss takes as many times longer
 * backward than forward as layers do. So no other stage is compared with them, and whether they are slow
 * cannot be told.
 */
#define STAGE_LENGTHS 1.5f /* times the shortest one of them is the longest */
#define STAGE_LAYERS 4.0   /* times as many layers: of a stage with more, nobody says so by its gradients */

static bool can_compare(const struct stage *x, const struct stage *y) {
  if (x->whole != y->whole)
    return false;
  /* Logs of ranks are missing: those that are there may be of one replica. */
  if (2 * x->ranks <= y->ranks || 2 * y->ranks <= x->ranks)
    return false;
  if (!x->whole)
    return true;
  if (y->at_end && !x->at_end)
    return false;
  const double more = fmax(x->bytes, y->bytes), less = fmin(x->bytes, y->bytes);
  return less > 0 && more <= STAGE_LAYERS * less;
}

/* By the bytes of their gradients. */
static bool has_as_many_layers(const struct stage *x, const struct stage *y) {
  return fabs(x->bytes - y->bytes) <= NI_BLAME_EQUAL * fmax(x->bytes, y->bytes);
}

/* A backward pass takes so many times as long as the forward pass of the same layers. */
#define BACKWARD_LEAST 1.5f
#define BACKWARD_MOST 4.0f
/* How much longer a stage is idle in a step may differ by so much from how much longer it computes. */
#define STAGE_IDLE 0.04f

/*
 * Of two whole stages, where only whole passes lie before the messages of one: as long as that is a place of
 * the other one (a backward pass with the next forward pass), or two of them, a forward and a backward pass.
 * Which of them it is all the time says that they compute in a step: gradients that run beside the computing
 * hide some of that, so alone it says little. Returns how much longer x computes than y; NAN: not known.
 */
static float compare_whole_passes(const struct stage *x, const struct stage *y) {
  const struct stage *other = x->pass_us > 0 ? y : x;
  const float pass_us = x->pass_us > 0 ? x->pass_us : y->pass_us;
  const float rough = x->idle_us / y->idle_us;
  float best = NAN;
  if (2 * x->late_us > x->idle_us - y->idle_us)
    return NAN;
  for (uint32_t i = 0; i < other->n_us; i++)
    for (uint32_t k = i; k < other->n_us; k++) {
      const float back = other->us[i], forth = k == i ? 0 : other->us[k];
      if (k > i && !(back >= BACKWARD_LEAST * forth && back <= BACKWARD_MOST * forth))
        continue;
      const float times = other == y ? pass_us / (back + forth) : (back + forth) / pass_us;
      if (!(fabsf(times - rough) >= fabsf(best - rough)))
        best = times;
    }
  return fabsf(best - rough) <= STAGE_IDLE * rough ? best : NAN;
}

/*
 * The share of the places of both that are found in the other, if all of x took 1/by of its time. ratio: how
 * much longer x takes in the middle one of these.
 */
static float match_stage_places(const struct stage *x, const struct stage *y, float by, float *ratio) {
  float longest = 0, shortest = INFINITY, times[STAGE_PLACES];
  uint32_t i = 0, k = 0, n = 0;
  while (i < x->n && k < y->n) {
    float mine = x->us[i] / by, theirs = y->us[k];
    if (fabsf(mine - theirs) <= STAGE_SAME * theirs) {
      times[n++] = x->us[i] / theirs;
      longest = fmaxf(longest, theirs);
      shortest = fminf(shortest, theirs);
      i++;
      k++;
    } else if (mine > theirs)
      i++;
    else
      k++;
  }
  if (ratio)
    *ratio = n ? ni_blame_quantile(times, n, 0.5) : by;
  if (x->whole && longest < STAGE_LENGTHS * shortest)
    return 0;
  return 2.0f * (float)n / (float)(x->n + y->n);
}

/*
 * Is a part of x as long as in y, beside what is found again if all of x took 1/by of its time? All of a slow
 * stage is slow: a stage of which some layers are as long as elsewhere has other work in the rest.
 */
static bool is_partly_as_long(const struct stage *x, const struct stage *y, float by) {
  struct stage rest = {0}, others = {0};
  uint32_t i = 0, k = 0;
  while (i < x->n || k < y->n) {
    const float mine = i < x->n ? x->us[i] / by : 0, theirs = k < y->n ? y->us[k] : 0;
    if (i < x->n && k < y->n && fabsf(mine - theirs) <= STAGE_SAME * theirs) {
      others.us[others.n++] = y->us[k++];
      i++;
    } else if (k == y->n || (i < x->n && mine > theirs)) {
      rest.us[rest.n++] = x->us[i++];
    } else {
      others.us[others.n++] = y->us[k++];
    }
  }
  return match_stage_places(&rest, &others, 1, NULL) * (float)(rest.n + others.n) >
      2 * STAGE_PARTLY * (float)x->n;
}

/* How much longer x computes than y, by the places of both; 1: as long. NAN: they do other work. */
static float compare_stage_places(const struct stage *x, const struct stage *y) {
  if (x->n == 0 || y->n == 0)
    return NAN;
  float best = 1, most = match_stage_places(x, y, 1, NULL), ratio,
        right = INFINITY; /* right: the one nearest to 1 that is as good */
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < x->n; i++)
      for (uint32_t k = 0; k < y->n; k++) {
        float by = y->us[k] > 0 ? x->us[i] / y->us[k] : 0;
        if (!(by < STAGE_MOST && by * STAGE_MOST > 1))
          continue;
        float found = match_stage_places(x, y, by, NULL);
        const bool is_better = found > most || (found == most && fabsf(by - 1) < fabsf(best - 1));
        if (pass == 0 && is_better) {
          most = found;
          best = by;
        }
        bool nearer = fabsf(by - 1) <= fabsf(best - 1) / 2 && fabsf(by - 1) < fabsf(right - 1);
        if (pass == 1 && nearer && found >= STAGE_AS_GOOD * most)
          right = by;
      }
  if (most < STAGE_FOUND)
    return NAN;
  if (match_stage_places(x, y, 1, NULL) >= STAGE_AS_GOOD * most)
    return 1;
  if (isinf(right))
    right = best;
  if (is_partly_as_long(x, y, right))
    return NAN;
  (void)match_stage_places(x, y, right, &ratio);
  return ratio;
}

static float compare_stage_times(const struct stage *x, const struct stage *y) {
  return x->pass_us > 0 || y->pass_us > 0 ? compare_whole_passes(x, y) : compare_stage_places(x, y);
}

/* The same for as many layers. */
static float compare_stage_pair(const struct stage *x, const struct stage *y) {
  if (!can_compare(x, y))
    return NAN;
  const float times = compare_stage_times(x, y);
  return x->whole ? times * (float)(y->bytes / x->bytes) : times;
}

/*
 * A stage in the middle that has no like, as the one of three. An embedding and a loss make the first and the
 * last stage longer, never shorter. So if it takes longer than both, and has no more layers by the bytes of
 * its gradients, it is slow by that or by more. Returns how much longer it computes; NAN: nothing says so.
 */
static float compare_with_ends(const struct stage *x, const struct stage *stage, uint32_t n) {
  float least = INFINITY;
  uint32_t ends = 0;
  if (!x->whole || x->at_end || !(x->bytes > 0))
    return NAN;
  for (uint32_t k = 0; k < n; k++) {
    const struct stage *y = &stage[k];
    if (!y->at_end)
      continue;
    const bool is_as_large = y->whole && x->bytes <= (1 + NI_BLAME_EQUAL) * y->bytes;
    const float times = is_as_large ? compare_stage_times(x, y) : NAN;
    if (!(times > 1))
      return NAN;
    least = fminf(least, times);
    ends++;
  }
  return ends == 2 ? least : NAN;
}

/*
 * Where stages differ by nature, as layers of several kinds do, each of them is longer than some others. So
 * of three and more another one has to be near the middle one, that is at `at` of those in order.
 */
#define STAGE_AGREES 0.5f

static bool agree_others(const float *x, size_t n, size_t at) {
  const float most = STAGE_AGREES * fabsf(x[at] - 1);
  const bool longer = at > 0 && x[at - 1] - x[at] <= most;
  return n < 3 || longer || (at + 1 < n && x[at] - x[at + 1] <= most);
}

/*
 * The middle one of n factors by which a stage is longer than others; of an even number the smaller one of
 * the two. 1: the others do not agree. Of what is told as a note they need not.
 */
static float find_middle_factor(float *x, size_t n, bool is_note) {
  if (n == 0)
    return 1;
  qsort(x, n, sizeof *x, compare_longest_first);
  return is_note || agree_others(x, n, n / 2) ? x[n / 2] : 1;
}

/* What comes with an embedding or a loss is among the places of a stage: by so much they make it longer. */
#define END_WORK 0.045f

int ni_compare_stages(const struct ni_blame *b, const float *over_us, struct ni_stage_more *more) {
  struct stage *stage = calloc(b->n_classes + 1, sizeof *stage);
  float *x = malloc((b->n_classes + 1) * sizeof *x);
  int e = stage && x ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].cls != NI_BLAME_NONE)
      stage[b->rank[i].cls].ranks++;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].cls != NI_BLAME_NONE)
      e = fill_stage(b, i, fabsf(over_us[i]), &stage[b->rank[i].cls]);
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) {
    size_t n = 0, alike = 0;
    for (uint32_t k = 0; k < b->n_classes; k++) {
      const float times = k == c ? NAN : compare_stage_pair(&stage[c], &stage[k]);
      if (isnan(times))
        continue;
      x[n++] = times;
      alike += has_as_many_layers(&stage[c], &stage[k]);
    }
    const bool is_note = stage[c].whole && stage[c].at_end;
    const float beside_ends = n ? NAN : compare_with_ends(&stage[c], stage, b->n_classes);
    more[c].share = (isnan(beside_ends) ? find_middle_factor(x, n, is_note) : beside_ends) - 1;
    more[c].at_end = stage[c].at_end;
    more[c].by_layers = stage[c].whole && alike < n;
    const bool by_end = is_note || (stage[c].at_end && more[c].share < END_WORK);
    more[c].can_be_work = by_end || (stage[c].whole && alike == 0 && isnan(beside_ends));
  }
  free(stage);
  free(x);
  return e;
}
