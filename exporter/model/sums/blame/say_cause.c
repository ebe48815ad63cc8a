#include "say_cause.h"

#include <string.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/spells/spells.h"

static const char *host_text(const struct ni_blame *b, uint32_t host, char out[81]) {
  return ni_safe_text(b->s->host[host].name, out, 81);
}

static void put_rank(struct ni_put_text *w, const struct ni_blame *b, uint32_t rank) {
  const struct ni_process *p = &b->s->process[b->rank[rank].process];
  char host[81];
  ni_put(w, "rank %d on %s", p->rank, host_text(b, p->host, host));
  if (p->gpu >= 0)
    ni_put(w, ", GPU %d,", p->gpu);
  if (!p->rank_stated)
    ni_put(w, " (rank in its largest communicator)");
}

void ni_put_comm(struct ni_put_text *w, const struct ni_blame *b, uint32_t comm) {
  const struct ni_comm_row *c = &b->s->comm[comm];
  char name[81];
  if (c->name && *c->name)
    ni_put(w, "%s (%s, %s ranks)", ni_safe_text(c->name, name, sizeof name), c->id, NI_COUNT(c->n_ranks));
  else
    ni_put(w, "%s (%s ranks)", c->id, NI_COUNT(c->n_ranks));
}

/* "ranks 8-15" of those in ascending order; "24 ranks" where they lie apart. */
static void put_ranks(struct ni_put_text *w, const struct ni_finding *f, const struct ni_summary *s) {
  int32_t first = s->process[f->process[0]].rank, last = s->process[f->process[f->n_processes - 1]].rank;
  if (f->n_processes > 1 && (size_t)(last - first) + 1 == f->n_processes)
    ni_put(w, "ranks %d-%d", first, last);
  else if (f->n_processes > 6)
    ni_put(w, "%s ranks from %d to %d", NI_COUNT(f->n_processes), first, last);
  else {
    ni_put(w, f->n_processes > 1 ? "ranks" : "rank");
    for (size_t i = 0; i < f->n_processes; i++)
      ni_put(w, "%s %d", i ? "," : "", s->process[f->process[i]].rank);
  }
}

/* Of what is taken for all own time so much has to be seen, or a percentage of it says nothing. */
#define SEEN_LEAST 0.5

/*
 * Own time of a step: what it is and what it would be, as far as it is seen. Where most of the computing is
 * hidden behind operations, only how much longer it is.
 */
static void put_own_time(struct ni_put_text *w, const struct ni_cause *c, bool one) {
  const double taken = c->share > 0 ? c->excess_us / c->share : 0;
  const double baseline = c->seen_us > 0 ? c->seen_us : taken;
  const char *peers = c->n_peers > 2 ? "ranks" : "the other rank";
  char more[32], mine[32], theirs[32];
  ni_duration_text(c->excess_us, more);
  ni_duration_text(baseline + c->excess_us, mine);
  ni_duration_text(baseline, theirs);
  if (baseline < SEEN_LEAST * taken)
    ni_put(w, " take%s %s a step longer between operations than %s with the same work", one ? "s" : "", more,
           peers);
  else
    ni_put(w, " take%s %.1f %% longer between operations than %s with the same work: %s a step instead of %s",
           one ? "s" : "", baseline > 0 ? 100 * c->excess_us / baseline : 0, peers, mine, theirs);
}

/* Megatron calls all groups of a kind the same. */
static bool is_same_name(const struct ni_comm_row *x, const struct ni_comm_row *y) {
  if (!x->name || !*x->name || !y->name)
    return false;
  return strcmp(x->name, y->name) == 0;
}

static void put_links(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c) {
  uint32_t shown = 0, last = NI_BLAME_NONE, more = 0;
  char name[81];
  for (uint32_t i = 0; i < c->n_items; i++) {
    const struct ni_blame_link *l = &b->link[c->item[i]];
    if (last != NI_BLAME_NONE && (l->comm == last || is_same_name(&b->s->comm[l->comm], &b->s->comm[last])))
      continue;
    last = l->comm;
    if (shown == 4) {
      more++;
      continue;
    }
    const struct ni_comm_row *k = &b->s->comm[l->comm];
    const bool has_name = k->name && *k->name;
    ni_put(w, "%s", shown++ ? ", " : " (");
    if (has_name)
      ni_put(w, "%s", ni_safe_text(k->name, name, sizeof name));
    else
      ni_put(w, "%s%s", ni_role_words[k->role], k->id);
  }
  if (more)
    ni_put(w, " and %u more", more);
  if (shown)
    ni_put(w, ")");
}

/* What is only thought to be as slow: it has no like. */
static void put_unmatched_links(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c) {
  for (uint32_t i = 0; i < c->n_unmatched; i++) {
    const uint32_t comm = b->link[c->unmatched[i]].comm;
    ni_put(w, "%s%scommunicator ", i ? " and " : "; ", ni_role_words[b->s->comm[comm].role]);
    ni_put_comm(w, b, comm);
  }
  if (c->n_unmatched)
    ni_put(w, ", which nothing is like, %s taken to lose as much", c->n_unmatched > 1 ? "are" : "is");
}

static void put_pauses(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c) {
  const bool one = c->level == NI_LEVEL_RANK;
  char host[81], time[32];
  if (one)
    put_rank(w, b, c->of);
  else
    ni_put(w, "host %s:", host_text(b, c->of, host));
  ni_put(w, " %s %s times between operations, %s on the mean, ", one ? "pauses" : "its ranks pause",
         NI_COUNT(c->bins_hit), ni_duration_text(c->excess_us, time));
  ni_put(w, c->few ? "longer than other ranks" : "far more often than other ranks");
  if (c->crowded > 0)
    ni_put(w, "; in the same steps transfers across hosts take %.2f times as long as otherwise",
           1 + c->crowded);
}

/*
 * Of a pause. All ranks may do other work together and idle for a part of it only: then it is what that
 * costs.
 */
double ni_cause_pause_us(const struct ni_cause *c) {
  if (c->kind != NI_FIND_PAUSES && c->kind != NI_FIND_PERIODIC)
    return 0;
  return c->level == NI_LEVEL_JOB ? c->cost_us / c->bins_hit : c->excess_us;
}

/* What takes so long is guessed from nothing but that: so it is "as", not "is". */
static void put_periodic(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                         const struct ni_finding *f) {
  const bool all = c->level == NI_LEVEL_JOB, one = f->n_processes == 1;
  char host[81], time[32];
  if (all)
    ni_put(w, f->n_processes == c->n_peers ? "all ranks" : "nearly all ranks");
  else if (c->level == NI_LEVEL_HOST)
    ni_put(w, "host %s: its ranks", host_text(b, c->of, host));
  else if (one)
    put_rank(w, b, c->of);
  else
    put_ranks(w, f, b->s);
  ni_put(w, " %s something else each %u steps, %u times, for %s on the mean, ", one ? "does" : "do",
         c->period, c->bins_hit, ni_duration_text(ni_cause_pause_us(c), time));
  if (c->in_place && !all)
    ni_put(w, "each time in the same place of the step, ");
  if (all)
    ni_put(w, "as an evaluation is");
  else if (f->note)
    ni_put(w, "as a checkpoint is");
  else if (c->in_place)
    ni_put(w, "which no other host does, as input that comes late");
  else if (c->excess_us >= NI_SPELLS_NOTE_US)
    ni_put(w, "which no other rank does");
  else
    ni_put(w, "as garbage collection is");
}

static void put_throttling(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                           const struct ni_finding *f) {
  const bool one = c->level == NI_LEVEL_RANK;
  char host[81];
  if (one)
    put_rank(w, b, c->of);
  else {
    ni_put(w, "host %s: its ", host_text(b, c->of, host));
    put_ranks(w, f, b->s);
  }
  ni_put(w, " compute%s %.0f %% longer in %u bursts, %.0f %% of the steps, ", one ? "s" : "", 100 * c->share,
         c->bins_hit, 100 * c->of_run);
  ni_put(w, c->one_by_one ? "mostly of one step" : "as a GPU that is throttled does");
}

/* "call NCCL 4.20 times as slowly as elsewhere: the CPU keeps the GPUs waiting 2.30 ms a step" */
static void put_calls(struct ni_put_text *w, const struct ni_cause *c, bool one) {
  char time[32];
  if (c->at) {
    ni_put(w, " call%s NCCL %.2f times as slowly as otherwise in %u bursts, %.0f %% of the steps, ",
           one ? "s" : "", c->calls, c->bins_hit, 100 * c->of_run);
    ni_put(w, "as where something else takes the CPU");
  } else {
    ni_put(w, " call%s NCCL %.2f times as slowly as others with the same work", one ? "s" : "", c->calls);
    if (c->excess_us > 0)
      ni_put(w, ": %s CPU keeps the GPU%s waiting %s a step longer than elsewhere", one ? "its" : "the",
             one ? "" : "s", ni_duration_text(c->excess_us, time));
    if (c->hidden)
      ni_put(w, "; most of it is launched ahead");
  }
  if (c->crowded > 0)
    ni_put(w, "; in the same steps transfers across hosts take %.2f times as long as otherwise",
           1 + c->crowded);
}

/* Who has more to do: nobody is slow. */
static void put_uneven(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                       const struct ni_finding *f) {
  const bool one = c->level == NI_LEVEL_RANK;
  char time[32];
  if (c->level == NI_LEVEL_JOB) {
    ni_put(w,
           "steps differ: in %u of %u all ranks take longer, by %s in the mean, as where a batch has longer ",
           c->bins_hit, b->steps, ni_duration_text(c->cost_us / c->bins_hit, time));
    ni_put(w, "sequences; uneven work, not slow ranks");
    return;
  }
  if (!one && c->more_bytes <= 0) {
    put_ranks(w, f, b->s);
    ni_put(w, ", all that some communicators join,");
    put_own_time(w, c, one);
    ni_put(w, ", about as much each; so do busy experts or long sequences: uneven work, not slow ranks");
    return;
  }
  if (one)
    put_rank(w, b, c->of);
  else {
    ni_put(w, "a replica, ");
    put_ranks(w, f, b->s);
    ni_put(w, ",");
  }
  ni_put(w, " ha%s %.0f %% more bytes to exchange than %s like and", one ? "s" : "ve", 100 * c->more_bytes,
         one ? "its" : "their");
  put_own_time(w, c, one);
  ni_put(w, "; uneven work, %s", one ? "not a slow rank" : "no rank of it is slow");
}

/* "transfers take 2.31 times as long", "transfers were slow 3 times, then 4.8 times as long" */
static void put_slowdown(struct ni_put_text *w, const struct ni_cause *c) {
  if (c->kind == NI_FIND_FLAPPING)
    ni_put(w, " were slow %u times, then %.*f times as long", c->bins_hit, c->share < 9 ? 1 : 0,
           1 + c->share);
  else
    ni_put(w, " take %.2f times as long", 1 + c->share);
}

static void put_slow_comms(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c) {
  const char *role = ni_role_words[b->s->comm[b->link[c->of].comm].role];
  if (c->n_items > 1)
    ni_put(w, "%u %scommunicators", c->n_items, role);
  else
    ni_put(w, "%scommunicator ", role);
  if (c->n_items > 1)
    put_links(w, b, c);
  else
    ni_put_comm(w, b, b->link[c->of].comm);
  ni_put(w, c->n_items > 1 ? ": their transfers" : ": its transfers");
  put_slowdown(w, c);
  if (c->n_peers > c->n_items)
    ni_put(w, " as those of the %u like %s; ", c->n_peers - c->n_items, c->n_items > 1 ? "them" : "it");
  else
    ni_put(w, " as otherwise, and none of its ranks came late; ");
  if (c->n_peers <= c->n_items && c->n_items == 1 && b->link[c->of].host < 0)
    ni_put(w, "whether a NIC, an NVLink, a way between two hosts or the network is slow cannot be told");
  else if (c->n_items > 1)
    ni_put(w, "what they share on a host, such as a NIC, is slow; on which one cannot be told");
  else
    ni_put(w, "which of its ranks is slow cannot be told");
}

/* "the NIC of rank 3 on node-0, GPU 3: transfers across it" */
static void put_rank_link(struct ni_put_text *w, const struct ni_blame *b, uint32_t rank, const char *what) {
  ni_put(w, "the %s of ", what);
  put_rank(w, b, rank);
  if (w->at[-1] == ',') {
    w->at--;
    w->left++;
  }
  ni_put(w, ": transfers across it");
}

/* "host gpu-1: transfers across the NICs of its ranks 8-11, or what these share," */
static void put_shared_nic(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                           const struct ni_finding *f) {
  const uint32_t of = ni_blame_host(b, c->of);
  char host[81], other[81];
  if (c->link == NI_FIND_SLOW_NIC)
    ni_put(w, "host %s: transfers across the NICs of its ", host_text(b, of, host));
  else
    ni_put(w, "between hosts %s and %s transfers of ", host_text(b, of, host),
           host_text(b, ni_blame_host(b, c->other), other));
  put_ranks(w, f, b->s);
  if (c->link == NI_FIND_SLOW_NIC)
    ni_put(w, ", or what these share,");
}

/* Which transfers are slow, and how much: all the time, or now and then. */
static void put_slow_links(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                           const struct ni_finding *f) {
  char host[81], other[81];
  switch (c->link) {
    case NI_FIND_SLOW_NVLINK:
      if (c->level == NI_LEVEL_HOST)
        ni_put(w, "host %s: transfers between its GPUs", host_text(b, c->of, host));
      else
        put_rank_link(w, b, c->of, "NVLink");
      put_slowdown(w, c);
      ni_put(w, c->level == NI_LEVEL_HOST ? " as like ones on other hosts" : " as like ones elsewhere");
      put_links(w, b, c);
      break;
    case NI_FIND_SLOW_NIC:
      if (c->level == NI_LEVEL_HOST)
        ni_put(w, "host %s: all transfers across its NICs", host_text(b, c->of, host));
      else if (c->n_beside)
        put_shared_nic(w, b, c, f);
      else
        put_rank_link(w, b, c->of, "NIC");
      put_slowdown(w, c);
      ni_put(w, " as like ones elsewhere");
      put_links(w, b, c);
      if (c->level == NI_LEVEL_HOST && c->other != NI_BLAME_NONE)
        ni_put(w, "; all of them go to %s, so it can be the way there", host_text(b, c->other, other));
      if (c->level == NI_LEVEL_RANK && c->other != NI_BLAME_NONE)
        ni_put(w, "; all of them go to rank %d, so it can be the way there", ni_blame_global(b, c->other));
      put_unmatched_links(w, b, c);
      break;
    case NI_FIND_SLOW_PAIR:
      if (c->level == NI_LEVEL_HOST)
        ni_put(w, "between hosts %s and %s transfers", host_text(b, c->of, host),
               host_text(b, c->other, other));
      else if (c->n_beside)
        put_shared_nic(w, b, c, f);
      else {
        ni_put(w, "between ");
        put_rank(w, b, c->of);
        ni_put(w, " and ");
        put_rank(w, b, c->other);
        ni_put(w, " transfers");
      }
      put_slowdown(w, c);
      ni_put(w, " as like ones elsewhere");
      put_links(w, b, c);
      break;
    default:
      put_slow_comms(w, b, c);
      put_unmatched_links(w, b, c);
      break;
  }
}

static void put_cause(struct ni_put_text *w, const struct ni_blame *b, const struct ni_cause *c,
                      const struct ni_finding *f) {
  char host[81], time[32];
  const bool one = c->level == NI_LEVEL_RANK;
  switch (c->kind) {
    case NI_FIND_UNEVEN:
      put_uneven(w, b, c, f);
      break;
    case NI_FIND_LATE_RANK:
    case NI_FIND_SLOW_HOST:
      if (one)
        put_rank(w, b, c->of);
      else
        ni_put(w, "host %s: its ", host_text(b, c->of, host));
      if (!one)
        put_ranks(w, f, b->s);
      if (c->calls > 0)
        put_calls(w, c, one);
      else if (c->launch)
        ni_put(w, " launch%s operations late: %s CPU keeps the GPU%s waiting %s a step longer than elsewhere",
               one ? "es its" : " their", one ? "its" : "the", one ? "" : "s",
               ni_duration_text(c->excess_us, time));
      else if (c->of_stages)
        ni_put(
            w, "%s compute %.1f %% longer than the stages on other hosts: %s more a step%s",
            c->of_one_stage ? ", a stage of the pipeline," : "", 100 * c->share,
            ni_duration_text(c->excess_us, time),
            c->of_one_stage ? "; whether the host is slow or the stage has more to do cannot be told" : "");
      else
        put_own_time(w, c, one);
      break;
    case NI_FIND_PAUSES:
      put_pauses(w, b, c);
      break;
    case NI_FIND_PERIODIC:
      put_periodic(w, b, c, f);
      break;
    case NI_FIND_THROTTLING:
      put_throttling(w, b, c, f);
      break;
    case NI_FIND_SLOW_STAGE:
      ni_put(w, "pipeline stage of ");
      put_ranks(w, f, b->s);
      ni_put(w, " computes %.1f %% longer than the other stages: %s more a step", 100 * c->share,
             ni_duration_text(c->excess_us, time));
      if (c->by_layers)
        ni_put(w, ", for as many layers as its gradients state");
      if (c->can_be_work && c->at_end)
        ni_put(
            w,
            "; it is the first or the last one, and an embedding or a loss beside its layers looks the same");
      else if (c->can_be_work)
        ni_put(w, "; layers that do something else look the same");
      break;
    case NI_FIND_SLOW_NVLINK:
    case NI_FIND_SLOW_NIC:
    case NI_FIND_SLOW_PAIR:
    case NI_FIND_SLOW_COMM:
    case NI_FIND_FLAPPING:
      put_slow_links(w, b, c, f);
      break;
    case NI_FIND_CONGESTION:
      ni_put(w,
             "the network between hosts: in %u of %u %s all transfers take %.2f times as long as otherwise",
             c->bins_hit * b->bin_steps, b->steps, "steps", 1 + c->share);
      break;
    default:
      break;
  }
}

static void put_interval(struct ni_put_text *w, const struct ni_finding *f, const struct ni_summary *s) {
  char from[32], to[32];
  if (f->from_step > 0)
    ni_duration_text((double)(f->from_us - s->first_us), from);
  if (f->to_step >= 0)
    ni_duration_text((double)(f->to_us - s->first_us), to);
  if (f->from_step > 0 && f->to_step >= 0)
    ni_put(w, ", in steps %s to %s (%s to %s after the start)", NI_COUNT(f->from_step), NI_COUNT(f->to_step),
           from, to);
  else if (f->from_step > 0)
    ni_put(w, ", since step %s (%s after the start)", NI_COUNT(f->from_step), from);
  else if (f->to_step >= 0)
    ni_put(w, ", until step %s (%s after the start)", NI_COUNT(f->to_step), to);
}

enum { MOMENTS_SHOWN = 3 };

/* "; at step 40 (1.83 s after the start) for 310 ms, at step ..." */
static void put_moments(struct ni_put_text *w, const struct ni_finding *f, const struct ni_summary *s) {
  char at[32], length[32];
  for (size_t i = 0; i < f->n_moments && i < MOMENTS_SHOWN; i++) {
    const struct ni_moment *m = &f->moment[i];
    ni_put(w, "%s at step %s (%s after the start) for %s", i ? "," : ";", NI_COUNT(m->from_step),
           ni_duration_text((double)(m->from_us - s->first_us), at),
           ni_duration_text((double)(m->to_us - m->from_us), length));
  }
  if (f->times > MOMENTS_SHOWN)
    ni_put(w, " and %s more", NI_COUNT(f->times - MOMENTS_SHOWN));
}

/*
 * Does it cost more than what a step is longer between operations, each step? Then it computes longer during
 * operations as well, which nobody sees but by what it costs.
 */
static bool costs_more_than_seen(const struct ni_blame *b, const struct ni_cause *c,
                                 const struct ni_finding *f) {
  const bool is_own_time = c->excess_us > 0 && !c->links && !ni_cause_comes_and_goes(b, c);
  const double last = f->to_step >= 0 ? (double)f->to_step : b->steps,
               first = f->from_step > 0 ? (double)f->from_step : 0;
  return is_own_time && f->lost_us > 1.1 * c->excess_us * (last - first);
}

static void put_cost(struct ni_put_text *w, const struct ni_finding *f, bool more) {
  char cost[32], low[32], high[32];
  if (f->lost_us <= 0) {
    ni_put(w, "; it costs the run nothing that shows");
    return;
  }
  ni_put(w, "; it costs %s, %.1f %% of the run (%s to %s)%s", ni_duration_text(f->lost_us, cost),
         100 * f->lost_us / f->run_us, ni_duration_text(f->low_us, low), ni_duration_text(f->high_us, high),
         more ? ", computing during operations included" : "");
}

void ni_say_cause(const struct ni_blame *b, const struct ni_cause *c, struct ni_finding *f) {
  struct ni_put_text w = {f->text, sizeof f->text};
  if (b->run)
    ni_put(&w, "run %u: ", b->run);
  put_cause(&w, b, c, f);
  if (f->n_moments)
    put_moments(&w, f, b->s);
  else
    put_interval(&w, f, b->s);
  put_cost(&w, f, costs_more_than_seen(b, c, f));
}
