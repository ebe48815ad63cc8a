/* A run as a list of quantities, from its tables. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/order.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/blame/peer_groups.h"

/*
 * Unlike ni_hash(), the result is the same in each process: keys decide the order in which numbers are added
 * up.
 */
static uint64_t mix_number(uint64_t key, uint64_t part) { return ni_mix(ni_mix(key + 1) + part); }
static uint64_t mix_text(uint64_t key, const char *text) {
  while (*text)
    key = mix_number(key, (unsigned char)*text++);
  return key;
}

static struct ni_diff_item *add_item(struct ni_diff_run *o, enum ni_diff_kind kind, uint64_t key,
                                     uint32_t bins) {
  if (!ni_array_room(o->item, o->n, o->cap))
    return NULL;
  struct ni_diff_item *i = &o->item[o->n];
  *i = (struct ni_diff_item){.kind = kind, .key = key, .value = NAN, .se = NAN, .df = NAN};
  if (bins && !(i->x = calloc(bins, sizeof *i->x)))
    return NULL;
  o->n++;
  return i;
}

/* The first and the last bin are begun or ended in the middle of a step. */
int ni_diff_add_steps(struct ni_diff_run *o, const struct ni_step *step, uint32_t n) {
  static const char *const names[NI_DIFF_PARTS] = {
      "typical step",         "mean step", "compute", "exposed transfers", "waiting for others",
      "hidden communication", "pauses"};
  o->bins = n > 2 ? n - 2 : 0;
  for (uint32_t p = 0; p < NI_DIFF_PARTS && o->bins; p++) {
    struct ni_diff_item *i = add_item(o, NI_DIFF_STEP, p, o->bins);
    if (!i)
      return -ENOMEM;
    snprintf(i->name, sizeof i->name, "%s", names[p]);
    i->per_step = 1;
    for (uint32_t k = 0; k < o->bins; k++) {
      const struct ni_step *s = &step[k + 1];
      const float busy = s->compute + s->exposed + s->waiting, whole = busy + s->outside;
      const float part[NI_DIFF_PARTS] = {whole,      whole,     s->compute, s->exposed,
                                         s->waiting, s->hidden, s->outside};
      i->x[k] = busy > 0 ? part[p] : NAN;
    }
  }
  return 0;
}

/*
 * Operations that begin together are slow together: as many values as steps, or as 30 of these where there
 * are none.
 */
int ni_diff_add_function(struct ni_diff_run *o, const char *func, const char *type, uint64_t bytes,
                         enum ni_timing timing, const struct ni_stats *us, bool transfer, double per_step) {
  char size[32], name[64];
  o->timings |= 1u << timing;
  if (us->n < 20 || !(us->p50 > 0))
    return 0;
  uint64_t key = mix_text(mix_number(bytes, (uint32_t)timing * 2 + transfer), func);
  struct ni_diff_item *i = add_item(o, NI_DIFF_FUNC, mix_text(key, type), 0);
  if (!i)
    return -ENOMEM;
  ni_human_bytes(bytes, size);
  snprintf(i->name, sizeof i->name, "%s %s, %s%s", ni_safe_text(func, name, sizeof name), size, type,
           transfer ? "" : " (kernel time)");
  double n = fmin((double)us->n, o->bins ? o->bins : 30);
  i->value = us->p50;
  i->se = 1.2533 * (us->p75 - us->p25) / 1.349 / sqrt(n);
  i->df = n - 1;
  i->per_step = per_step;
  i->bytes = (double)bytes;
  return 0;
}

/*
 * Compute time of each rank, by bin and by place of the step. If there is only one communicator (FSDP, DDP),
 * all time outside of operations is compute time.
 */
static int gather_ranks(struct ni_diff_run *o, const struct ni_blame *b) {
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_blame_rank *rank = &b->rank[r];
    bool one = rank->n_slots == 1;
    if (!rank->judged)
      continue;
    struct ni_diff_item *i = add_item(o, NI_DIFF_RANK, (uint32_t)ni_blame_global(b, r), o->bins);
    if (!i || (!one && !(i->place = malloc((rank->n_places + 1) * sizeof *i->place))))
      return -ENOMEM;
    if (!one)
      memcpy(i->place, rank->place, (i->n_places = rank->n_places) * sizeof *i->place);
    for (uint32_t k = 0; k < o->bins; k++) {
      const struct ni_blame_cell *c = ni_blame_cell_at(b, r, k + 1);
      i->x[k] = c && c->baseline > 0 ? (c->dev + c->baseline) / (float)b->bin_steps : NAN;
    }
    i->like = 1 + ni_blame_host(b, r);
    i->per_step = 1;
    ni_safe_text(b->s->host[ni_blame_host(b, r)].name, i->group, 64);
    snprintf(i->name, sizeof i->name, "rank %" PRId32 " on %.63s", ni_blame_global(b, r), i->group);
  }
  return 0;
}

/* What kind of link it is, in words. */
static void word_link_role(const struct ni_blame *b, const struct ni_blame_link *l, char out[64]) {
  const struct ni_comm_row *c = &b->s->comm[l->comm];
  const char *role = c->role == NI_ROLE_WORLD ? "" : ni_role_words[c->role];
  const char *where = l->host >= 0 ? "within hosts" : "across hosts";
  if (l->from >= 0)
    snprintf(out, 64, "%smessages %s", role, where);
  else if ((size_t)c->n_ranks == b->s->n_processes)
    snprintf(out, 64, "collectives of all ranks");
  else
    snprintf(out, 64, "%scollectives of %" PRId32 " ranks %s", role, c->n_ranks, where);
}

static NI_ORDER_OF(by_rank, int32_t);

static int one_link(struct ni_diff_run *o, const struct ni_blame *b, const struct ni_blame_link *l) {
  int32_t *rank = malloc((l->n_ranks + 1) * sizeof *rank);
  struct ni_diff_item *i = rank ? add_item(o, NI_DIFF_LINK, 0, o->bins) : NULL;
  if (i) {
    const char *far = l->host >= 0 ? "" : ", across hosts";
    bool two = l->from >= 0 && l->n_ranks == 2, back = two && l->from > l->to;
    word_link_role(b, l, i->group);
    i->like = mix_text(0, i->group);
    /* roles may be unknown */
    i->key = mix_number(mix_number(l->host >= 0, l->from >= 0), (uint32_t)b->s->comm[l->comm].n_ranks);
    for (uint32_t k = 0; k < l->n_ranks; k++)
      rank[k] = ni_blame_global(b, l->rank[k]);
    qsort(rank, l->n_ranks, sizeof *rank, by_rank);
    for (uint32_t k = 0; k < l->n_ranks; k++)
      i->key = mix_number(i->key, (uint32_t)rank[k]);
    i->key = mix_number(i->key, back);
    if (two)
      snprintf(i->name, sizeof i->name, "rank %d to %d%s", rank[back], rank[!back], far);
    else
      snprintf(i->name, sizeof i->name, "%s of ranks %d%s to %d%s", l->from >= 0 ? "messages" : "collectives",
               rank[0], l->n_ranks > 2 ? ", ..." : "", rank[l->n_ranks - 1], far);
    i->bytes = l->bytes;
    i->per_step = l->per_step;
    memcpy(i->x, l->us + 1, o->bins * sizeof *i->x);
  }
  free(rank);
  return i ? 0 : -ENOMEM;
}

static void append_text(char *out, size_t size, const char *format, ...) {
  size_t at = strlen(out);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(out + at, size - at, format, args);
  va_end(args);
}

static int by_number(const void *a, const void *b) { return by_rank(b, a); }

void ni_diff_layout(struct ni_diff_run *o, int32_t *n_ranks, size_t n) {
  qsort(n_ranks, n, sizeof *n_ranks, by_number);
  for (size_t i = 0, k; i < n; i = k) {
    for (k = i; k < n && n_ranks[k] == n_ranks[i]; k++) {}
    append_text(o->layout, sizeof o->layout, "%s%zu of %d", i ? ", " : "", k - i, n_ranks[i]);
  }
}

static int describe_layout(struct ni_diff_run *o, const struct ni_summary *s) {
  int32_t *n = malloc((s->n_comms + 1) * sizeof *n);
  size_t have = 0;
  if (!n)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_comms; i++)
    if (s->comm[i].operations >= NI_DIFF_STEPS && s->comm[i].n_ranks > 1)
      n[have++] = s->comm[i].n_ranks;
  ni_diff_layout(o, n, have);
  free(n);
  return 0;
}

static int gather_functions(struct ni_diff_run *o, const struct ni_summary *s) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    bool transfer = g->transfer_us.n > 0;
    double per_step = s->n_steps ? (double)g->records / (double)s->n_processes / s->n_steps : 0;
    /* its links say it, without the waiting */
    if (g->kind == NI_KIND_P2P && o->bins)
      o->timings |= 1u << g->timing;
    else
      e = ni_diff_add_function(o, g->func, ni_comm_type_words[g->type], g->msg_bytes, g->timing,
                               transfer ? &g->transfer_us : &g->us, transfer, per_step);
  }
  /* Too few records: how far times lie apart is told by where 99 of 100 are below. */
  bool rolled = o->n == 0 && s->n_rolled;
  for (size_t i = 0; e == 0 && rolled && i < s->n_rolled; i++) {
    const struct ni_rolled *r = &s->rolled[i];
    double mean = r->count ? (double)r->sum_ns / 1e3 / (double)r->count : NAN;
    double sigma = fmax((double)(r->p99_ns ? r->p99_ns : r->max_ns) / 1e3 - mean, 0) / 2.33;
    struct ni_stats us = {
        .n = r->count, .p50 = mean, .p25 = mean - sigma * 0.6745, .p75 = mean + sigma * 0.6745};
    o->from = "roll-ups";
    e = ni_diff_add_function(o, r->func, "mean", r->msg_bytes, r->timing, &us, false, 0);
  }
  return e;
}

/* What is said where it differs. */
static void gather_facts(struct ni_diff_run *o, const struct ni_summary *s) {
  char a[48], b[48], both[100], *text = o->fact[NI_DIFF_ALGOS];
  if (s->job.nccl_version >= 0)
    append_text(o->fact[NI_DIFF_NCCL], sizeof *o->fact, "%d", s->job.nccl_version);
  if (s->n_steps)
    append_text(o->fact[NI_DIFF_N_STEPS], sizeof *o->fact, "%u", s->n_steps);
  for (size_t i = 0; i < s->n_hosts; i++)
    append_text(o->fact[NI_DIFF_HOSTS], sizeof *o->fact, "%s%s", i ? ", " : "",
                ni_safe_text(s->host[i].name, a, sizeof a));
  for (size_t i = 0; i < s->n_mix; i++) {
    const struct ni_mix *m = &s->mix[i];
    snprintf(both, sizeof both, "%s/%s", ni_safe_text(m->algo, a, sizeof a),
             ni_safe_text(m->proto, b, sizeof b));
    if (strlen(both) > 1 && !strstr(text, both))
      append_text(text, sizeof *o->fact, "%s%s", *text ? ", " : "", both);
  }
}

static void keep_clock_text(void *run, const char *text) {
  struct ni_diff_run *o = run;
  if (!*o->clocks)
    snprintf(o->clocks, sizeof o->clocks, "%s", text);
}

int ni_diff_gather(struct ni_diff_run *o, const struct ni_summary *s, const struct ni_blame *b) {
  const char *why = s->why_durations ? s->why_durations : "steps were not found";
  o->from = "logs";
  if (s->clocks)
    ni_clocks_say(s->clocks, true, keep_clock_text, o);
  o->world_size = s->job.world_size;
  o->ranks = (uint32_t)s->n_processes;
  o->steps = s->n_steps;
  o->bin_steps = s->bin_steps;
  o->per_step = s->n_steps ? (double)s->records / (double)s->n_processes / s->n_steps : 0;
  if (!s->complete)
    append_text(o->trouble, sizeof o->trouble, "%s",
                s->input.n_trouble ? s->input.trouble[0] : "something is missing");
  if (!s->n_step_bins)
    append_text(o->why_no_steps, sizeof o->why_no_steps, "%s", why);
  gather_facts(o, s);
  int e = describe_layout(o, s);
  if (e == 0)
    e = ni_diff_add_steps(o, s->step, s->n_step_bins);
  if (e == 0 && o->bins >= NI_DIFF_STEPS)
    e = gather_ranks(o, b);
  for (uint32_t i = 0; e == 0 && o->bins >= NI_DIFF_STEPS && i < b->n_links; i++)
    if (b->link[i].us)
      e = one_link(o, b, &b->link[i]);
  return e == 0 ? gather_functions(o, s) : e;
}
