/*
 * Who is named by own time (lateness.h): hosts where most of their ranks stand out, ranks, replicas that have
 * more to do, and stages, which are compared with each other.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/cpus/calls.h"
#include "causes.h"
#include "lateness.h"
#include "peer_groups.h"
#include "uneven.h"
#include "exporter/model/sums/spells/spells.h"

/*
 * Bytes explain why a rank is late where they are more by this part of what it is late by: half, because
 * attention takes the square of a sequence, less what own time is off by.
 */
#define BYTES_EXPLAIN 0.4f
/* Ranks are late by one thing where the least late one has this part of what the latest one has. */
#define ALIKE_LEAST 0.5f
enum {
  LATER_MIN = 2,    /* one rank elsewhere that is later than a host's may have another cause */
  TOGETHER_MIN = 3, /* two late ranks may have a cause each */
  ALIKE_OF_TEN = 8  /* of those that are late together so many are about as late */
};

/* It is late in this bin of its interval: in bursts only in some of them. */
static bool is_hit(const struct ni_rank_lateness *l, uint32_t bin) { return !l->hit || l->hit[bin]; }

/* Both are late in the same bin. */
static bool are_late_at_once(const struct ni_lateness *w, const struct ni_rank_lateness *x,
                             const struct ni_rank_lateness *y) {
  if (!x->late && !x->bursts)
    return false;
  if (!y->late && !y->bursts)
    return false;
  const uint32_t from = x->from > y->from ? x->from : y->from, to = x->to < y->to ? x->to : y->to;
  for (uint32_t k = from; k < to && k < w->b->bins; k++)
    if (is_hit(x, k) && is_hit(y, k))
      return true;
  return false;
}

/* Of ranks of two teams that are late at the same time nobody is named: one may have waited for the other. */
static int clear_who_may_wait(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  bool *may = calloc(b->n_ranks + 1, sizeof *may);
  if (!may)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; k < b->n_ranks && b->rank[i].judged && !may[i]; k++)
      may[i] = b->rank[k].judged && b->rank[k].team != b->rank[i].team &&
          are_late_at_once(w, &w->late[i], &w->late[k]);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!may[i])
      continue;
    w->late[i].late = false;
    w->late[i].bursts = 0;
  }
  free(may);
  return 0;
}

/* What all ranks of a team take longer alike may be a wait that is not in the logs. */
static void clear_late_teams(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].team != NI_BLAME_NONE && !w->late[i].of_team)
      w->late[i].late = false;
}

static int append_ranks(struct ni_cause *c, const struct ni_lateness *w,
                        bool (*belongs)(const struct ni_lateness *, uint32_t, uint32_t), uint32_t of) {
  int e = 0;
  for (uint32_t i = 0; c && e == 0 && i < w->b->n_ranks; i++)
    if (w->b->rank[i].judged && belongs(w, i, of))
      e = ni_cause_add_item(c, i);
  return e;
}

static bool is_late_on(const struct ni_lateness *w, uint32_t rank, uint32_t host) {
  return ni_blame_host(w->b, rank) == host && w->late[rank].late;
}
/* So it is, or nearly so, beside others of its host that are. */
static bool is_late_with(const struct ni_lateness *w, uint32_t rank, uint32_t host) {
  return is_late_on(w, rank, host) || (ni_blame_host(w->b, rank) == host && w->late[rank].together);
}
static bool launches_late_on(const struct ni_lateness *w, uint32_t rank, uint32_t host) {
  return ni_blame_host(w->b, rank) == host && w->late[rank].launch;
}
static bool is_slow_on(const struct ni_lateness *w, uint32_t rank, uint32_t host) {
  return launches_late_on(w, rank, host) || is_late_on(w, rank, host);
}
static bool has_bursts_on(const struct ni_lateness *w, uint32_t rank, uint32_t host) {
  return ni_blame_host(w->b, rank) == host && w->late[rank].bursts;
}
static bool is_rank(const struct ni_lateness *w, uint32_t rank, uint32_t of) {
  (void)w;
  return rank == of;
}
static bool is_in_class(const struct ni_lateness *w, uint32_t rank, uint32_t cls) {
  return w->b->rank[rank].cls == cls;
}

/* What the ranks of a host show together. */
struct host_lateness {
  uint32_t there, n, launched, slow_cpus, elsewhere, n_elsewhere, from, to;
  float sum, share, of_gaps, seen_us, most, calls;
  struct ni_lead lead; /* sums */
};

static struct host_lateness sum_up_host(const struct ni_lateness *w, uint32_t h,
                                        bool (*belongs)(const struct ni_lateness *, uint32_t, uint32_t)) {
  const struct ni_blame *b = w->b;
  struct host_lateness x = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_rank_lateness *l = &w->late[i];
    if (!b->rank[i].judged)
      continue;
    if (ni_blame_host(b, i) != h) {
      x.elsewhere++;
      x.n_elsewhere += belongs(w, i, ni_blame_host(b, i));
      continue;
    }
    x.there++;
    if (!belongs(w, i, h))
      continue;
    if (x.n == 0 || l->from < x.from)
      x.from = l->from;
    if (l->to > x.to)
      x.to = l->to;
    x.launched += l->launch;
    x.calls += l->calls;
    x.slow_cpus += l->calls > 0;
    x.sum += l->excess_us;
    x.most = fmaxf(x.most, l->share);
    x.share += l->share;
    x.of_gaps += l->of_gaps;
    x.seen_us += l->seen_us;
    x.lead.part += l->lead.part;
    x.lead.apart += l->lead.apart;
    x.n++;
  }
  return x;
}

/* Ranks elsewhere that are later than those of this host are in the mean. */
static uint32_t count_later_elsewhere(const struct ni_lateness *w, uint32_t host,
                                      const struct host_lateness *x) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const bool is_elsewhere = w->b->rank[i].judged && ni_blame_host(w->b, i) != host;
    n += is_elsewhere && w->late[i].late && w->late[i].share * (float)x->n > x->share;
  }
  return n;
}

/*
 * Most ranks of the host are late, at least twice as often as ranks elsewhere, and none of them stands out:
 * else it is that rank. Launches are an exception, because the CPU is the host's. Ranks are compared by
 * `share`, since of some stages more own time is seen than of others.
 */
static bool is_slow_host(const struct host_lateness *x) {
  if (x->n < 2 || (float)x->n < NI_CAUSE_OF_HOST * (float)x->there ||
      x->n_elsewhere * x->there * 2 > x->n * x->elsewhere)
    return false;
  return x->launched || x->most * (float)x->n <= NI_CAUSE_OF_HOST_MOST * x->share;
}

/*
 * Those of the host's ranks that launch late are all there are that do their work, and others on the host
 * launch as quickly as elsewhere: then it is that work, as of the first stage, which begins a step with
 * nothing launched ahead.
 */
static bool is_late_by_work(const struct ni_lateness *w, uint32_t host) {
  const struct ni_blame *b = w->b;
  uint32_t quick = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged || ni_blame_host(b, i) != host)
      continue;
    if (w->late[i].launch && !w->late[i].no_peers)
      return false;
    quick += !w->late[i].launch && !w->late[i].late;
  }
  return b->stages && quick > 0;
}

/* Fills `at` with the bins that are in a burst of half of the ranks, and what the cause says of these. */
static int set_burst_bins(struct ni_cause *c, const struct ni_lateness *w) {
  const uint32_t bins = w->b->bins;
  uint32_t hit = 0;
  if (!(c->at = calloc(bins + 1, sizeof *c->at)))
    return -ENOMEM;
  c->bins_hit = 0;
  for (uint32_t k = 0; k < bins; k++) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_items; i++)
      n += w->late[c->item[i]].hit[k];
    c->at[k] = n > 0 && n * 2 >= c->n_items;
    hit += c->at[k];
    c->bins_hit += c->at[k] && (k == 0 || !c->at[k - 1]);
  }
  c->of_run = (float)hit / (float)bins;
  c->one_by_one = hit < 2 * c->bins_hit;
  return 0;
}

static void clear_host(struct ni_lateness *w, uint32_t host, bool bursts) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    struct ni_rank_lateness *l = &w->late[i];
    if (!w->b->rank[i].judged || ni_blame_host(w->b, i) != host)
      continue;
    if (bursts)
      l->bursts = 0;
    else
      l->late = l->launch = l->together = false;
  }
}

/*
 * Most ranks of a host: the host, in the interval that most of them share. A slow CPU shows as late launches
 * in some ranks and as own time in others, by what they have to wait for: they are one host.
 */
static int name_late_hosts(struct ni_lateness *w, struct ni_causes *out,
                           bool (*belongs)(const struct ni_lateness *, uint32_t, uint32_t)) {
  const struct ni_blame *b = w->b;
  const bool bursts = belongs == has_bursts_on;
  const bool is_by_own_time = belongs == is_late_on || belongs == is_late_with;
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++) {
    struct host_lateness x = sum_up_host(w, h, belongs);
    if (!is_slow_host(&x) || (belongs == is_slow_on && !x.launched))
      continue;
    if (b->waits_unseen && !x.launched) { /* all of it may wait alike */
      clear_host(w, h, bursts);
      continue;
    }
    if (x.launched && is_late_by_work(w, h))
      continue;
    if (is_by_own_time && count_later_elsewhere(w, h, &x) >= LATER_MIN)
      continue; /* what the host's ranks have in common is not what makes ranks late here */
    const bool launch = x.launched * 2 >= x.n;
    if (belongs == is_slow_on)
      x = sum_up_host(w, h, launch ? launches_late_on : is_late_on); /* how much: what most of them show */
    struct ni_cause *c = ni_cause_add(out, bursts ? NI_FIND_THROTTLING : NI_FIND_SLOW_HOST, NI_LEVEL_HOST, h);
    if (!c)
      return 0;
    c->from = x.from;
    c->to = x.to;
    c->excess_us = x.sum / (float)x.n;
    c->share = x.share / (float)x.n;
    c->of_gaps = x.of_gaps / (float)x.n;
    c->seen_us = launch ? 0 : x.seen_us / (float)x.n;
    c->launch = launch;
    c->calls = x.slow_cpus * 2 >= x.n ? x.calls / (float)x.slow_cpus : 0;
    c->rest = is_by_own_time;
    if (is_by_own_time)
      c->lead = (struct ni_lead){.part = x.lead.part / (float)x.n, .apart = x.lead.apart / (float)x.n};
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (ni_blame_host(b, i) == h)
        c->rest &= b->rank[i].one_comm;
    c->n_peers = b->n_ranks;
    if ((e = append_ranks(c, w, belongs, h)) < 0)
      return e;
    if (bursts && (e = set_burst_bins(c, w)) < 0)
      return e;
    if (c->calls > 0 && (e = ni_calls_find_pauses(b, c)) < 0)
      return e;
    clear_host(w, h, bursts);
  }
  return e;
}

static int compare_by_lateness(const void *a, const void *b, void *of) {
  const struct ni_rank_lateness *l = of;
  const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  const float x = l[i].excess_us, y = l[k].excess_us;
  if (x > y || x < y)
    return x > y ? -1 : 1;
  return i < k ? -1 : 1;
}

/*
 * Periodic work of the rank is half or more of what its CPU keeps the GPU waiting in a step: what comes after
 * a checkpoint is launched late, too, and it has been told.
 */
static bool is_periodic_work(const struct ni_blame *b, const struct ni_causes *out,
                             const struct ni_rank_lateness *l, uint32_t rank) {
  for (uint32_t i = 0; i < out->n; i++) {
    const struct ni_cause *c = &out->item[i];
    const bool is_of_rank = c->kind == NI_FIND_PERIODIC && c->level == NI_LEVEL_RANK && c->of == rank;
    if (is_of_rank && 2 * c->excess_us * (float)c->bins_hit >= l->excess_us * (float)b->steps)
      return true;
  }
  return false;
}

/* The latest first: there is not room for all where chance lets many of thousands stand out. */
static int name_late_ranks(struct ni_lateness *w, struct ni_causes *out) {
  uint32_t *order = malloc((w->b->n_ranks + 1) * sizeof *order);
  int e = order ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < w->b->n_ranks; i++)
    order[i] = i;
  if (e == 0)
    qsort_r(order, w->b->n_ranks, sizeof *order, compare_by_lateness, w->late);
  for (uint32_t k = 0; e == 0 && k < w->b->n_ranks; k++) {
    const uint32_t i = order[k];
    const struct ni_rank_lateness *l = &w->late[i];
    if (!l->late && !l->launch && !l->bursts)
      continue;
    /* a stage that has more to do has more idle time; of a host all ranks show it */
    if (l->no_peers || (l->launch && is_periodic_work(w->b, out, l, i)))
      continue;
    if (out->n >= NI_CAUSES_MAX / 2) { /* the other half is for stages and links */
      out->left_out++;
      continue;
    }
    struct ni_cause *c =
        ni_cause_add(out, l->bursts ? NI_FIND_THROTTLING : NI_FIND_LATE_RANK, NI_LEVEL_RANK, i);
    c->from = l->from;
    c->to = l->to;
    c->excess_us = l->excess_us;
    c->share = l->share;
    c->of_gaps = l->of_gaps;
    c->seen_us = l->seen_us;
    c->launch = l->launch;
    c->calls = l->calls;
    if (!l->bursts)
      c->lead = l->lead;
    c->rest = !l->launch && w->b->rank[i].one_comm;
    c->n_peers = l->n_peers;
    e = append_ranks(c, w, is_rank, i);
    if (e == 0 && l->bursts)
      e = set_burst_bins(c, w);
  }
  free(order);
  return e;
}

/* It has at least `least` more bytes, and they explain why it is late (BYTES_EXPLAIN). */
static bool is_explained_by_bytes(const struct ni_rank_lateness *l, float more, float least) {
  return l->late && !l->launch && more >= fmaxf(least, BYTES_EXPLAIN * l->share);
}

static uint32_t count_members(const struct ni_lateness *w, const uint32_t *part, uint32_t of) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    n += part[i] == of;
  return n;
}

/*
 * One cause for a replica that has more to do, by those of its ranks that are late by that. In a pipeline
 * most of the work of some lies between messages, where it is not compared. None of them is late any longer.
 * more: NULL where all of them are late, and no bytes say why.
 */
static int name_replica(struct ni_lateness *w, struct ni_causes *out, const uint32_t *part, const float *more,
                        uint32_t of) {
  const struct ni_blame *b = w->b;
  const uint32_t members = count_members(w, part, of);
  uint32_t n = 0, n_peers = 0, from = 0, to = 0;
  float excess_us = 0, share = 0, of_gaps = 0, seen_us = 0, bytes = 0;
  struct ni_lead lead = {0}; /* sums */
  bool rest = true;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_rank_lateness *l = &w->late[i];
    if (part[i] != of)
      continue;
    if (more) {
      bytes += more[i];
      if (!is_explained_by_bytes(l, more[i], members > 1 ? NI_UNEVEN_REPLICA : NI_UNEVEN_BYTES))
        continue;
    }
    if (n++ == 0 || l->from < from)
      from = l->from;
    if (l->to > to)
      to = l->to;
    excess_us += l->excess_us;
    share += l->share;
    of_gaps += l->of_gaps;
    seen_us += l->seen_us;
    lead.part += l->lead.part;
    lead.apart += l->lead.apart;
    rest &= b->rank[i].one_comm;
    n_peers = l->n_peers;
  }
  if (n == 0)
    return 0;
  struct ni_cause *c = ni_cause_add(out, NI_FIND_UNEVEN, members > 1 ? NI_LEVEL_REPLICA : NI_LEVEL_RANK, of);
  if (!c)
    return 0;
  c->from = from;
  c->to = to;
  c->excess_us = excess_us / (float)n;
  c->share = share / (float)n;
  c->of_gaps = of_gaps / (float)n;
  c->more_bytes = bytes / (float)members;
  c->n_peers = n_peers;
  if (members == 1) {
    c->lead = w->late[of].lead;
    c->rest = b->rank[of].one_comm;
  } else if (!more) {
    c->lead = (struct ni_lead){.part = lead.part / (float)n, .apart = lead.apart / (float)n};
    c->rest = rest;
    c->seen_us = seen_us / (float)n;
  }
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (part[i] != of)
      continue;
    w->late[i].late = false;
    e = ni_cause_add_item(c, i);
  }
  return e;
}

static int name_uneven_replicas(struct ni_lateness *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  float *more = malloc((b->n_ranks + 1) * sizeof *more);
  bool *uneven = calloc(b->n_ranks + 1, sizeof *uneven);
  uint32_t *part = malloc((b->n_ranks + 1) * sizeof *part);
  int e = more && uneven && part ? ni_uneven_find(b, more) : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    uneven[i] = more[i] > 0;
  if (e == 0)
    ni_uneven_find_replicas(b, uneven, part);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (uneven[i] && part[i] == i)
      e = name_replica(w, out, part, more, i);
  free(more);
  free(uneven);
  free(part);
  return e;
}

/*
 * Nearly all ranks of this part are about as late as each other, and there are enough of them. Of the first
 * stage less is seen: what it waits for when a step begins is not known.
 */
static bool are_late_alike(const struct ni_lateness *w, const uint32_t *part, uint32_t of) {
  const uint32_t members = count_members(w, part, of);
  float most = 0;
  uint32_t alike = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    if (part[i] == of)
      most = fmaxf(most, w->late[i].share);
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    alike += part[i] == of && w->late[i].share >= ALIKE_LEAST * most;
  return members >= TOGETHER_MIN && alike * 10 >= members * ALIKE_OF_TEN;
}

/*
 * All ranks of some communicators are late, by about as much: those that hold the same experts, or a replica
 * with longer sequences. They have no more bytes where sizes are padded, or where only the computing is
 * longer. Each of them alone costs nearly nothing, since the job waits as long for the others. They have more
 * to do: faults of machines do not follow communicators, but for those of one host, which is named before.
 */
static int name_late_together(struct ni_lateness *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  bool *late = calloc(b->n_ranks + 1, sizeof *late);
  uint32_t *part = malloc((b->n_ranks + 1) * sizeof *part);
  int e = late && part ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    late[i] = b->rank[i].judged && w->late[i].late && !w->late[i].launch;
  if (e == 0)
    ni_uneven_find_replicas(b, late, part);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (late[i] && part[i] == i && are_late_alike(w, part, i))
      e = name_replica(w, out, part, NULL, i);
  free(late);
  free(part);
  return e;
}

static float get_own_time(const struct ni_blame *b, uint32_t cls) {
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    float us = 0;
    for (uint32_t k = 0; b->rank[i].cls == cls && k < b->rank[i].n_places; k++)
      us += b->rank[i].place[k].usual_us;
    if (us > 0)
      return us;
  }
  return 0;
}

/* It is slow, and nothing that it has to do can be why. */
static bool is_slow_stage(const struct ni_stage_more *more) {
  return more->share > NI_CAUSE_STAGE - 1 && !more->can_be_work;
}

static bool is_class_on(const struct ni_blame *b, uint32_t cls, uint32_t host) {
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && b->rank[i].cls == cls && ni_blame_host(b, i) != host)
      return false;
  return true;
}

/*
 * Slow stages are all that is on this host, and are nowhere else. Of two or more it is the host, since layers
 * do not follow hosts' bounds; of one it may be either. None of them is slower by far than another: else it
 * is that stage.
 */
static bool is_host_of_slow_stages(const struct ni_blame *b, const struct ni_stage_more *more,
                                   uint32_t host) {
  bool any = false;
  float least = INFINITY, most = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const uint32_t cls = b->rank[i].cls;
    if (!b->rank[i].judged || ni_blame_host(b, i) != host)
      continue;
    if (cls == NI_BLAME_NONE || !is_slow_stage(&more[cls]) || !is_class_on(b, cls, host))
      return false;
    any = true;
    least = fminf(least, more[cls].share);
    most = fmaxf(most, more[cls].share);
  }
  return any && most <= NI_CAUSE_OF_HOST_MOST * least;
}

/* Names these stages as their host; they are not slow by themselves any longer. */
static int name_host_of_stages(struct ni_causes *out, const struct ni_blame *b, struct ni_stage_more *more,
                               uint32_t host) {
  struct ni_cause *x = ni_cause_add(out, NI_FIND_SLOW_HOST, NI_LEVEL_HOST, host);
  int e = 0;
  if (!x)
    return 0;
  x->to = b->bins;
  x->of_stages = x->of_one_stage = true;
  x->n_peers = b->n_classes;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!b->rank[i].judged || ni_blame_host(b, i) != host)
      continue;
    const struct ni_stage_more *m = &more[b->rank[i].cls];
    x->of_one_stage &= x->n_items == 0 || b->rank[i].cls == b->rank[x->item[0]].cls;
    x->share += m->share;
    x->excess_us += get_own_time(b, b->rank[i].cls) * (1 - 1 / (1 + m->share));
    e = ni_cause_add_item(x, i);
  }
  if (e < 0)
    return e;
  x->share /= (float)x->n_items;
  x->of_gaps = x->share;
  x->excess_us /= (float)x->n_items;
  for (uint32_t i = 0; i < x->n_items; i++)
    more[b->rank[x->item[i]].cls].share = 0;
  return 0;
}

static int name_slow_stages(struct ni_lateness *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  struct ni_stage_more *more = calloc(b->n_classes + 1, sizeof *more);
  int e = more ? ni_compare_stages(b, w->c.over_us, more) : -ENOMEM;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++)
    if (is_host_of_slow_stages(b, more, h))
      e = name_host_of_stages(out, b, more, h);
  for (uint32_t c = 0; e == 0 && c < b->n_classes; c++) {
    if (!(more[c].share > NI_CAUSE_STAGE - 1))
      continue;
    struct ni_cause *x = ni_cause_add(out, NI_FIND_SLOW_STAGE, NI_LEVEL_STAGE, c);
    if (!x)
      break;
    x->to = b->bins;
    x->share = x->of_gaps = more[c].share;
    x->can_be_work = more[c].can_be_work;
    x->at_end = more[c].at_end;
    x->by_layers = more[c].by_layers;
    x->n_peers = b->n_classes;
    x->excess_us = get_own_time(b, c) * (1 - 1 / (1 + more[c].share));
    e = append_ranks(x, w, is_in_class, c);
  }
  free(more);
  return e;
}

int ni_find_late_ranks(const struct ni_blame *b, struct ni_causes *out) {
  struct ni_lateness w;
  int e = ni_lateness_begin(&w, b, out->crowded);
  if (e == 0)
    e = ni_lateness_judge(&w);
  if (e == 0 && b->waits_unseen)
    e = clear_who_may_wait(&w);
  if (e == 0)
    e = name_uneven_replicas(&w, out);
  if (e == 0 && b->teams_wait_unseen)
    clear_late_teams(&w); /* but a replica that has more to do: its bytes say so */
  if (e == 0)
    e = name_late_hosts(&w, out, is_slow_on);
  if (e == 0)
    e = name_late_hosts(&w, out, is_late_on);
  if (e == 0)
    e = ni_lateness_judge_hosts(&w, out);
  if (e == 0)
    e = name_late_hosts(&w, out, is_late_with);
  if (e == 0)
    e = name_late_together(&w, out);
  if (e == 0)
    e = name_late_hosts(&w, out, has_bursts_on);
  if (e == 0)
    e = ni_find_pauses(b, out);
  if (e == 0)
    e = ni_find_busy_cpus(b, out);
  if (e == 0)
    e = ni_find_evaluations(b, out);
  if (e == 0)
    e = name_late_ranks(&w, out);
  if (e == 0)
    ni_drop_waiting_hosts(b, out);
  if (e == 0 && b->stages && !b->waits_unseen)
    e = name_slow_stages(&w, out);
  ni_lateness_end(&w);
  return e;
}
