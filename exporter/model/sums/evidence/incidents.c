#include "incidents.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/model/sums/spells/spells.h"

/* pauses around one operation that are looked at: bounds the time that odd logs take */
enum { MANY = 1 << 16 };

/* In steps. Moments of other hosts are told by the begins of bins, so they are a little off. */
#define BEHIND_MOST 1.2 /* a pause delays operations for so long after it: to the end of the next step */
#define BEFORE_END \
  0.3 /* a pause on another host may seem to end so long after the operation that it delayed */
#define OF_OTHER_RANK \
  0.2 /* a pause of another rank counts as if it were so much earlier: one's own is likelier */
#define OF_OTHER_HOST 0.4  /* and one on another host by so much */
enum { STEPS_AROUND = 4 }; /* steps before an operation in which pauses are looked for */

struct pause {
  double at; /* its end, in µs that can be compared between hosts */
  int64_t end_ns;
  float us;
  uint32_t rank, step;
  uint32_t entry; /* + 1; 0: none yet. UINT32_MAX: it has none, since its finding has enough */
};

/* An operation to which its rank came late. */
struct late_operation {
  uint32_t rank, comm;
  int64_t start_ns;
  double lost_us;
};

struct incident_search {
  const struct ni_blame *b;
  struct ni_summary *s;
  struct pause *pause; /* by `at` */
  size_t n_pauses;
  struct late_operation *late; /* by start */
  size_t n_late;
  /* by rank: operations were left out, and what it waited for among them */
  bool *sampled;
  /* of a communicator's collectives; NI_BLAME_NONE */
  uint32_t *link;
  const struct ni_blame_rank *of;                              /* whose begins of bins are the measure */
  double step_us, longest_us;                                  /* a step; the longest pause */
  uint32_t n;                                                  /* entries */
  bool *waited;                                                /* [entry][rank] */
  bool *reached;                                               /* by host: scratch */
  uint32_t of_finding[NI_SUM_FINDINGS], last[NI_SUM_FINDINGS]; /* entries of incidents, the last of them */
};

/* The rank's bin of its own that the moment lies in. */
static uint32_t find_own_bin(const struct ni_blame_rank *o, int64_t ns) {
  uint32_t lo = 0, hi = o->n_bins;
  while (hi - lo > 1) {
    uint32_t mid = (lo + hi) / 2;
    if (o->cell[mid].start_ns && o->cell[mid].start_ns <= ns)
      lo = mid;
    else
      hi = mid;
  }
  return lo;
}

/* The step of the job, the first of its bin; -1: not known. */
static int64_t find_step(const struct incident_search *w, uint32_t rank, int64_t ns) {
  const struct ni_blame_rank *o = &w->b->rank[rank];
  return o->judged && ns != NI_NO_START
      ? ((int64_t)find_own_bin(o, ns) + o->shift / (int32_t)w->b->bin_steps) * w->b->bin_steps
      : -1;
}

/* The moment by the clock of the rank that is the measure. NAN: it is not known. */
static double convert_moment(const struct incident_search *w, uint32_t rank, int64_t ns) {
  const struct ni_blame_rank *o = &w->b->rank[rank];
  int64_t step = find_step(w, rank, ns), k = (step - w->of->shift) / w->b->bin_steps;
  if (step < 0)
    return NAN;
  k = k < 0 ? 0 : k >= w->of->n_bins ? (int64_t)w->of->n_bins - 1 : k;
  return (double)(w->of->cell[k].start_ns - w->of->first_ns + ns - o->cell[find_own_bin(o, ns)].start_ns) /
      1e3;
}

static NI_ORDER_BY(by_moment, struct pause, at, rank, end_ns);
static NI_ORDER_BY(by_start, struct late_operation, start_ns, comm, rank);

static void mark_sampled(struct incident_search *w) {
  const struct ni_run *r = w->b->r;
  for (uint32_t i = 0; i < r->who.n_processes && i < r->ledger.n_processes; i++)
    if (r->ledger.process[i] && r->ledger.process[i]->sample > 1)
      w->sampled[r->process_at[i]] = true;
}

static int gather_late_operations(struct incident_search *w) {
  const struct ni_summary *s = w->s;
  w->sampled = calloc(w->b->n_ranks + 1, sizeof *w->sampled);
  w->late = malloc((s->n_outliers + 1) * sizeof *w->late);
  if (!w->sampled || !w->late)
    return -ENOMEM;
  mark_sampled(w);
  for (size_t i = 0; i < s->n_outliers; i++) {
    const struct ni_outlier *o = &s->outlier[i];
    if (o->kind == NI_OUTLIER_LATE && o->start_ns != NI_NO_START)
      w->late[w->n_late++] = (struct late_operation){o->process, o->comm, o->start_ns, o->lost_us};
  }
  qsort(w->late, w->n_late, sizeof *w->late, by_start);
  return 0;
}

/*
 * Can a pause of the rank be told from a wait? What is not in the logs joins its host with others. Of a team
 * it is a wait if most of them pause (ni_is_team_wait()). A rank without one waits in what is recorded for
 * those that its communicators reach; if these are on all hosts, its host paused, else another one may have.
 */
static bool can_tell_pauses(const struct incident_search *w, uint32_t rank, bool *reached) {
  const struct ni_blame *b = w->b;
  const struct ni_blame_rank *o = &b->rank[rank];
  if (!b->waits_unseen || o->team != NI_BLAME_NONE)
    return true;
  memset(reached, 0, w->s->n_hosts * sizeof *reached);
  for (uint32_t i = 0; i < o->n_slots; i++) {
    const struct ni_blame_link *l = o->slot[i].link == NI_BLAME_NONE ? NULL : &b->link[o->slot[i].link];
    for (uint32_t k = 0; l && k < l->n_ranks; k++)
      reached[ni_blame_host(b, l->rank[k])] = true;
  }
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && !reached[ni_blame_host(b, i)])
      return false;
  return true;
}

static int gather_pauses(struct incident_search *w) {
  const struct ni_blame *b = w->b;
  size_t n = 0;
  uint32_t widest = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    n += b->rank[i].n_incidents;
  w->pause = calloc(n + 1, sizeof *w->pause);
  w->link = malloc((w->s->n_comms + 1) * sizeof *w->link);
  w->waited = calloc((size_t)NI_SUM_OUTLIERS * b->n_ranks + 1, sizeof *w->waited);
  w->reached = malloc(w->s->n_hosts + 1);
  const bool has_room = w->pause && w->link && w->waited;
  if (!has_room || !w->reached)
    return -ENOMEM;
  memset(w->link, 0xff, (w->s->n_comms + 1) * sizeof *w->link);
  for (uint32_t i = 0; i < b->n_links; i++)
    if (b->link[i].from < 0)
      w->link[b->link[i].comm] = i;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && b->rank[i].n_bins > widest)
      widest = (w->of = &b->rank[i])->n_bins;
  w->step_us = (double)(w->of->last_ns - w->of->first_ns) / 1e3 / w->of->n_steps;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    if (!o->judged || !can_tell_pauses(w, i, w->reached))
      continue;
    for (uint32_t k = 0; k < o->n_incidents; k++) {
      const struct ni_blame_incident *x = &o->incident[k];
      if (!x->is_own || ni_is_team_wait(b, i, x->step + (uint32_t)o->shift))
        continue;
      /* it put off the begin of the bin */
      double began = o->cell[find_own_bin(o, x->end_ns)].start_ns == x->end_ns ? x->us : 0;
      w->pause[w->n_pauses++] = (struct pause){.at = convert_moment(w, i, x->end_ns) + began,
                                               .end_ns = x->end_ns,
                                               .us = x->us,
                                               .rank = i,
                                               .step = x->step + (uint32_t)o->shift};
    }
  }
  for (size_t i = 0; i < w->n_pauses; i++)
    w->longest_us = fmax(w->longest_us, w->pause[i].us);
  qsort(w->pause, w->n_pauses, sizeof *w->pause, by_moment);
  return 0;
}

static bool is_in_comm(const struct incident_search *w, uint32_t comm, uint32_t rank) {
  const struct ni_blame_link *l = w->link[comm] == NI_BLAME_NONE ? NULL : &w->b->link[w->link[comm]];
  for (uint32_t i = 0; l && i < l->n_ranks; i++)
    if (l->rank[i] == rank)
      return true;
  return false;
}

static NI_FIRST_FROM(find_first_late, struct late_operation, int64_t, x->start_ns < from);
static NI_FIRST_FROM(find_first_end, struct pause, double, x->at < from);

/*
 * The most that was lost in operations that began in [from, to): to which the rank came late, or of its
 * communicators, whoever did.
 */
static double find_most_lost(const struct incident_search *w, uint32_t rank, int64_t from, int64_t to,
                             bool whoever) {
  double most = 0;
  size_t lo = find_first_late(w->late, w->n_late, from);
  const size_t hi = lo + MANY < w->n_late ? lo + MANY : w->n_late;
  for (; lo < hi && w->late[lo].start_ns < to; lo++) {
    const struct late_operation *x = &w->late[lo];
    if (!(x->lost_us > most))
      continue;
    if (x->rank == rank || (whoever && is_in_comm(w, x->comm, rank)))
      most = x->lost_us;
  }
  return most;
}

/* It has messages, and whoever waits for one of them is not known to have waited. */
static bool has_messages(const struct ni_blame_rank *o) {
  for (uint32_t i = 0; i < o->n_slots; i++)
    if (o->slot[i].kind != NI_BLAME_COLL)
      return true;
  return false;
}

static bool is_as_long(double us, const struct pause *p) {
  return fabs(us - (double)p->us) <= NI_INCIDENTS_AS_LONG * (double)p->us;
}

/* An earlier pause of the rank, in the two steps before, that was just as long. */
static bool has_earlier_pause(const struct incident_search *w, const struct pause *p, double us) {
  const struct pause *first = p - w->pause > MANY ? p - MANY : w->pause;
  for (const struct pause *q = p; q-- > first && q->at > p->at - 2 * w->step_us - w->longest_us;)
    if (q->rank == p->rank && is_as_long(us, q))
      return true;
  return false;
}

/*
 * Can the pause have begun that wait? Yes, if others waited for its rank after it, and had not waited as long
 * before it. (A rank that is late all along, and overlaps computing with operations that it waits in for a
 * shorter time, looks as if it paused.) Where they waited for just as long as it paused, other waits before
 * the pause do not count, nor those that an earlier pause made.
 */
static bool can_have_made_wait(const struct incident_search *w, const struct pause *p,
                               const struct ni_outlier *o) {
  const int64_t step = (int64_t)(1e3 * w->step_us), begin = p->end_ns - (int64_t)(1e3 * (double)p->us);
  const double own = find_most_lost(w, p->rank, begin - step / 2, p->end_ns, false);
  const double after = find_most_lost(w, p->rank, p->end_ns, p->end_ns + step + step / 5, false);
  const double others = is_as_long(after, p) ? 0 : find_most_lost(w, p->rank, begin - step / 10, begin, true);
  const double before = is_as_long(after, p) && has_earlier_pause(w, p, own) ? 0 : fmax(own, others);
  if (after >= NI_INCIDENTS_PART * o->lost_us)
    return before < after / 2;
  const bool unseen = p->rank != o->process && has_messages(&w->b->rank[p->rank]);
  return unseen && p->us >= NI_INCIDENTS_UNSEEN * o->lost_us && before < o->lost_us / 2;
}

static struct pause *find_first_pause(const struct incident_search *w, const struct ni_outlier *o) {
  double at = convert_moment(w, o->process, o->start_ns), best = INFINITY;
  struct pause *found = NULL;
  if (isnan(at) || w->sampled[o->process])
    return NULL;
  size_t lo = find_first_end(w->pause, w->n_pauses, at - STEPS_AROUND * w->step_us - w->longest_us);
  const size_t hi = lo + MANY < w->n_pauses ? lo + MANY : w->n_pauses;
  for (; lo < hi && w->pause[lo].at <= at + w->step_us + w->longest_us; lo++) {
    struct pause *p = &w->pause[lo];
    bool clock = ni_blame_host(w->b, p->rank) == ni_blame_host(w->b, o->process);
    double since = clock ? (double)(o->start_ns - p->end_ns) / 1e3 : at - p->at;
    /*
     * Of other hosts the begins of bins lie on either side of it, as steps end with other operations there.
     */
    if (!clock)
      since = since > p->us ? since - p->us : since < -p->us ? since + p->us : 0;
    const double earliest = clock ? 0 : -BEFORE_END * w->step_us;
    if (p->us < NI_INCIDENTS_PART * o->lost_us || since > BEHIND_MOST * w->step_us || since < earliest)
      continue;
    if (p->rank == o->process)
      since = fabs(since);
    else
      since = fabs(since) + (clock ? OF_OTHER_RANK : OF_OTHER_HOST) * w->step_us;
    if (since < best && !w->sampled[p->rank] && can_have_made_wait(w, p, o)) {
      best = since;
      found = p;
    }
  }
  return found;
}

/*
 * A flapping link is slow in its moments only. Behind the last one that is kept, it may be slow in any step.
 */
static bool is_in_moment(const struct ni_finding *f, int64_t step) {
  for (size_t i = 0; i < f->n_moments; i++)
    if (step >= f->moment[i].from_step && step <= f->moment[i].to_step)
      return true;
  return f->times > f->n_moments && step > f->moment[f->n_moments - 1].to_step;
}

static bool is_of_pauses(const struct ni_finding *f) {
  return f->kind == NI_FIND_PAUSES || f->kind == NI_FIND_PERIODIC;
}

/*
 * What a pause began belongs to pauses. What no pause began cannot belong to periodic work, whose moments are
 * known. But it can belong to a rank that pauses again and again: one more pause may have been too short to
 * tell.
 */
static bool can_belong_to(const struct ni_finding *f, bool pause) {
  return pause ? is_of_pauses(f) : f->kind != NI_FIND_PERIODIC;
}

static bool is_within_steps(const struct ni_finding *f, int64_t step) {
  const bool is_before = f->from_step >= 0 && step < f->from_step;
  const bool is_after = f->to_step >= 0 && step > f->to_step;
  return !is_before && !is_after;
}

/* What ranks do themselves makes no operation slow, only late. */
static bool is_of_ranks_themselves(const struct ni_finding *f) {
  switch (f->kind) {
    case NI_FIND_LATE_RANK:
    case NI_FIND_UNEVEN:
    case NI_FIND_PAUSES:
    case NI_FIND_SLOW_HOST:
    case NI_FIND_THROTTLING:
      return true;
    default:
      return false;
  }
}

/* The finding that it belongs to, slow ones also by what they ran on; -1: none. */
static int32_t find_finding(const struct incident_search *w, uint32_t process, int64_t step, bool pause,
                            const struct ni_outlier *o) {
  const bool comm = o->kind == NI_OUTLIER_SLOW;
  for (int near = 0; near < 2; near++)
    for (size_t i = 0; i < w->s->n_findings; i++) {
      const struct ni_finding *f = &w->s->finding[i];
      const bool is_other_run = f->run && w->b->rank[process].run != f->run;
      if (is_other_run || !is_within_steps(f, step))
        continue;
      if (f->kind == NI_FIND_FLAPPING && !is_in_moment(f, step))
        continue;
      if (!can_belong_to(f, pause))
        continue;
      if (comm && is_of_ranks_themselves(f))
        continue;
      const bool takes_host = near && !pause && f->level == NI_LEVEL_RANK;
      for (size_t k = 0; k < f->n_processes; k++) {
        const uint32_t named = f->process[k];
        const bool ran_on = comm && is_in_comm(w, o->comm, named);
        const bool of_host = takes_host && w->s->process[process].host == w->s->process[named].host;
        if (named == process || ran_on || of_host)
          return (int32_t)i;
      }
    }
  return -1;
}

/*
 * Two ranks paused at once, for as long: their host did, or they waited for something that is not in the
 * logs.
 */
static bool are_at_once(const struct pause *p, const struct pause *q) {
  const double us = fmin(p->us, q->us), longer = fmax(p->us, q->us);
  return longer * NI_INCIDENTS_PART <= us &&
      fabs((double)(p->end_ns - q->end_ns)) / 1e3 <= NI_INCIDENTS_ONCE_US;
}

/* Who paused at once: this rank alone; ranks of its host; or such of several hosts. */
enum { ALONE, OF_HOST, OF_SEVERAL };

static int mark_together(struct incident_search *w, const struct pause *p, uint32_t entry) {
  int found = ALONE;
  for (size_t i = 0; i < w->n_pauses; i++) {
    struct pause *q = &w->pause[i];
    if (q->rank == p->rank || !are_at_once(p, q))
      continue;
    const bool host = ni_blame_host(w->b, q->rank) == ni_blame_host(w->b, p->rank);
    if (found != OF_SEVERAL)
      found = host ? OF_HOST : OF_SEVERAL;
    if (!q->entry)
      q->entry = entry;
  }
  return found;
}

/* Fills a new entry of a pause. False: its finding has enough of them, or there are enough in all. */
static bool fill_pause_entry(struct incident_search *w, struct ni_outlier *o, struct pause *p) {
  uint32_t *of = o->finding < 0 ? NULL : &w->of_finding[o->finding];
  if (of && *of == NI_INCIDENTS_OF_ONE) {
    w->s->outlier[w->last[o->finding]].more++;
    p->entry = UINT32_MAX;
  }
  if (p->entry || w->n == NI_SUM_OUTLIERS)
    return false;
  if (of) {
    ++*of;
    w->last[o->finding] = w->n;
  }
  p->entry = w->n + 1;
  const int who = mark_together(w, p, p->entry);
  if (who == OF_SEVERAL)
    return true;
  if (who == OF_HOST)
    o->began_host = ni_blame_host(w->b, p->rank);
  else
    o->began = w->b->rank[p->rank].process;
  o->began_us = p->us;
  o->began_time_us = p->end_ns / 1000 - (int64_t)p->us;
  return true;
}

/*
 * An entry without a pause that says the same: of the same finding; else of the same step, or for slow
 * operations of a communicator, or of the network, in a row.
 */
static bool is_same_incident(const struct incident_search *w, const struct ni_outlier *x,
                             const struct ni_outlier *o, int64_t step) {
  const bool slow = o->kind == NI_OUTLIER_SLOW;
  if (!isnan(x->began_us) || x->finding != o->finding || x->kind != o->kind)
    return false;
  if (o->finding >= 0)
    return true;
  if (!slow)
    return x->began_step == step;
  const bool across_hosts = w->s->comm[x->comm].one_host < 0 && w->s->comm[o->comm].one_host < 0;
  const bool in_a_row = llabs(step - x->began_step) <= NI_INCIDENTS_ROW * (int64_t)w->b->bin_steps;
  return in_a_row && (x->comm == o->comm || across_hosts);
}

/* Who began it is whom its finding names, if it names one. */
static void take_culprit(const struct incident_search *w, struct ni_outlier *o) {
  const struct ni_finding *f = o->finding < 0 ? NULL : &w->s->finding[o->finding];
  if (!f || f->other != UINT32_MAX)
    return;
  if (f->level == NI_LEVEL_RANK)
    o->began = f->of;
  if (f->level == NI_LEVEL_HOST)
    o->began_host = f->of;
}

enum entry { NO_ENTRY, OLD_ENTRY, NEW_ENTRY };

/* Which entry an operation belongs to: *at, one that is there; or a new one, which *o becomes; or none. */
static enum entry find_entry(struct incident_search *w, struct ni_outlier *o, uint32_t *at) {
  struct pause *p = o->kind == NI_OUTLIER_SLOW ? NULL : find_first_pause(w, o);
  o->before = p && p->rank == o->process && p->end_ns == o->start_ns;
  int64_t step = p ? p->step : find_step(w, o->process, o->start_ns);
  if (p && p->entry == UINT32_MAX)
    return NO_ENTRY;
  if (p && p->entry) {
    *at = p->entry - 1;
    return OLD_ENTRY;
  }
  o->finding = find_finding(w, p ? p->rank : o->process, step, p != NULL, o);
  o->began = o->began_host = UINT32_MAX;
  o->began_us = NAN;
  o->began_step = step;
  if (p) {
    if (!fill_pause_entry(w, o, p))
      return NO_ENTRY;
  } else {
    for (*at = 0; *at < w->n; ++*at)
      if (is_same_incident(w, &w->s->outlier[*at], o, step))
        return OLD_ENTRY;
    take_culprit(w, o);
  }
  if (w->n == NI_SUM_OUTLIERS)
    return NO_ENTRY;
  if (o->began != UINT32_MAX)
    o->began_host = w->s->process[o->began].host;
  *at = w->n;
  return NEW_ENTRY;
}

/*
 * Counts who waited in it: all ranks of its communicator except the late one, and except the one that began
 * it all, unless nobody else was there. Where the communicator's ranks were not compared it is only known how
 * many took part, and one of these was late.
 */
static void count_waiting(struct incident_search *w, uint32_t i, const struct ni_outlier *o) {
  struct ni_outlier *x = &w->s->outlier[i];
  const struct ni_blame_link *l = w->link[o->comm] == NI_BLAME_NONE ? NULL : &w->b->link[w->link[o->comm]];
  bool *waited = &w->waited[(size_t)i * w->b->n_ranks], late = o->kind == NI_OUTLIER_LATE;
  uint32_t there = 0, least = w->s->comm[o->comm].max_ranks_seen;
  for (int pass = 0; pass < 2 && !there; pass++)
    for (uint32_t k = 0; l && k < l->n_ranks; k++) {
      uint32_t rank = l->rank[k];
      const bool made_it_late = rank == o->process || (rank == x->began && !pass);
      if (late && made_it_late)
        continue;
      there++;
      x->ranks += !waited[rank];
      waited[rank] = true;
    }
  least -= late && least > 1;
  if (!there && x->ranks < least)
    x->ranks = least;
}

static void add_operation(struct incident_search *w, const struct ni_outlier *from) {
  struct ni_outlier o = *from;
  uint32_t i = 0;
  const enum entry entry = find_entry(w, &o, &i);
  if (entry == NO_ENTRY)
    return;
  struct ni_outlier *x = &w->s->outlier[i];
  if (entry == NEW_ENTRY) {
    w->n++;
    *x = o;
    x->most_us = o.lost_us; /* they come by their loss */
  } else if (o.before && !x->before && o.lost_us >= x->most_us / 2) {
    const struct ni_outlier was = *x; /* the better example: the operation that the rank paused before */
    *x = o;
    x->began = was.began;
    x->began_host = was.began_host;
    x->began_step = was.began_step;
    x->began_us = was.began_us;
    x->began_time_us = was.began_time_us;
    x->finding = was.finding;
    x->more = was.more;
    x->operations = was.operations;
    x->ranks = was.ranks;
    x->most_us = was.most_us;
    x->total_us = was.total_us;
  }
  x->operations++;
  x->total_us += o.lost_us;
  count_waiting(w, i, &o);
}

int ni_group_incidents(const struct ni_blame *b, struct ni_summary *s) {
  struct incident_search w = {.b = b, .s = s};
  if (!s->by_own_time || !b->bins)
    return 0;
  int e = gather_late_operations(&w);
  if (e == 0)
    e = gather_pauses(&w);
  for (size_t i = 0; e == 0 && i < s->n_outliers; i++)
    add_operation(&w, &s->outlier[i]);
  if (e == 0)
    s->n_outliers = w.n;
  free(w.pause);
  free(w.late);
  free(w.sampled);
  free(w.link);
  free(w.waited);
  free(w.reached);
  return e;
}
