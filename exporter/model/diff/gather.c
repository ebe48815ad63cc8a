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
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/blame/alike.h"

/* The same in each process, unlike ni_hash(): keys decide the order in which numbers are added up. */
static uint64_t of_number(uint64_t key, uint64_t part) { return ni_mix(ni_mix(key + 1) + part); }
static uint64_t of_text(uint64_t key, const char *text) {
  while (*text) key = of_number(key, (unsigned char)*text++);
  return key;
}

static struct ni_diff_item *add(struct ni_diff_run *o, enum ni_diff_kind kind, uint64_t key, uint32_t bins) {
  if (!ni_array_room(o->item, o->n, o->cap)) return NULL;
  struct ni_diff_item *i = &o->item[o->n];
  *i = (struct ni_diff_item){
      .kind = kind, .key = key, .like = key, .n = bins, .members = 1, .value = NAN, .se = NAN, .df = NAN};
  if (bins && !(i->x = malloc(bins * sizeof *i->x))) return NULL;
  for (uint32_t k = 0; k < bins; k++) i->x[k] = NAN;
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
    struct ni_diff_item *i = add(o, NI_DIFF_STEP, p, o->bins);
    if (!i) return -ENOMEM;
    snprintf(i->name, sizeof i->name, "%s", names[p]);
    i->per_step = 1;
    for (uint32_t k = 0; k < o->bins; k++) {
      const struct ni_step *s = &step[k + 1];
      const float part[NI_DIFF_PARTS] = {0, 0, s->compute, s->exposed, s->waiting, s->hidden, s->outside};
      if (s->compute + s->exposed + s->waiting > 0)
        i->x[k] = p < NI_DIFF_COMPUTE ? s->compute + s->exposed + s->waiting + s->outside : part[p];
    }
  }
  return 0;
}

/* Operations that begin together are slow together: as many values as steps, or as 30 of these where there are none. */
int ni_diff_add_function(struct ni_diff_run *o, const char *func, const char *type, uint64_t bytes,
                         enum ni_timing timing, const struct ni_stats *us, bool transfer, double per_step) {
  char size[32], name[64];
  struct ni_diff_item *i;
  o->timings |= 1u << timing;
  if (us->n < 20 || !(us->p50 > 0)) return 0;
  uint64_t key = of_text(of_number(bytes, (uint32_t)timing * 2 + transfer), func);
  if (!(i = add(o, NI_DIFF_FUNC, of_text(key, type), 0))) return -ENOMEM;
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

/* Own time by that which is usual in the places of the bin: a lost record takes both away. */
static struct ni_diff_item *own_time(struct ni_diff_run *o, const struct ni_blame *b, uint32_t rank) {
  char host[64];
  const struct ni_blame_rank *r = &b->rank[rank];
  struct ni_diff_item *i = add(o, NI_DIFF_RANK, (uint32_t)ni_blame_global(b, rank), o->bins);
  if (!i || !(i->place = malloc((r->n_places + 1) * sizeof *i->place))) return NULL;
  snprintf(i->name, sizeof i->name, "rank %" PRId32 " on %s", ni_blame_global(b, rank),
           ni_safe_text(b->s->host[ni_blame_host(b, rank)].name, host, sizeof host));
  memcpy(i->place, r->place, r->n_places * sizeof *i->place);
  i->n_places = r->n_places;
  for (uint32_t k = 0; k < o->bins; k++) {
    const struct ni_blame_cell *c = ni_blame_cell_at(b, rank, k + 1);
    if (c && c->usual > 0) i->x[k] = 1 + c->dev / c->usual;
  }
  i->per_step = 1;
  return i;
}

/* By host the lowest rank on it, which is the same in both runs; its name may not be. */
static int hosts_and_ranks(struct ni_diff_run *o, const struct ni_blame *b) {
  int e = 0;
  struct ni_diff_item *all = add(o, NI_DIFF_HOST, NI_DIFF_ALL_RANKS, 0);
  if (!all) return -ENOMEM;
  snprintf(all->name, sizeof all->name, "all ranks");
  all->members = o->ranks;
  all->per_step = 1;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++) {
    size_t first = o->n;
    struct ni_diff_item *host = add(o, NI_DIFF_HOST, 0, 0);
    int32_t least = INT32_MAX, most = 0;
    if (!host) return -ENOMEM;
    for (uint32_t r = 0; r < b->n_ranks; r++) {
      if (!b->rank[r].judged || ni_blame_host(b, r) != h) continue;
      if (!own_time(o, b, r)) return -ENOMEM;
      if (ni_blame_global(b, r) < least) least = ni_blame_global(b, r);
      if (ni_blame_global(b, r) > most) most = ni_blame_global(b, r);
    }
    host = &o->item[first];
    host->members = (uint32_t)(o->n - first - 1);
    host->per_step = 1;
    host->key = of_number((uint32_t)least, host->members);
    char name[64];
    snprintf(host->name, sizeof host->name, "%s (ranks %d to %d)", ni_safe_text(b->s->host[h].name, name, sizeof name),
             least, most);
    for (size_t i = first + 1; i < o->n; i++) o->item[i].like = host->key;
  }
  return e;
}

/* What kind of link it is, in words: the one place that knows roles. */
static void role_of(const struct ni_blame *b, const struct ni_blame_link *l, char out[64]) {
  const struct ni_comm_row *c = &b->s->comm[l->comm];
  const char *where = l->host >= 0 ? "within hosts" : "across hosts";
  if (l->from >= 0) snprintf(out, 64, "messages %s", where);
  else if ((size_t)c->n_ranks == b->s->n_processes) snprintf(out, 64, "collectives of all ranks");
  else snprintf(out, 64, "collectives of %" PRId32 " ranks %s", c->n_ranks, where);
}

static int by_rank(const void *a, const void *b) {
  int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
  return x < y ? -1 : x > y;
}

static int one_link(struct ni_diff_run *o, const struct ni_blame *b, const struct ni_blame_link *l) {
  int32_t *rank = malloc((l->n_ranks + 1) * sizeof *rank);
  char role[64], name[80];
  if (!rank) return -ENOMEM;
  role_of(b, l, role);
  uint64_t key = of_text(0, role);
  for (uint32_t i = 0; i < l->n_ranks; i++) rank[i] = ni_blame_global(b, l->rank[i]);
  bool back = l->from >= 0 && l->n_ranks == 2 && b->rank[l->rank[0]].process != UINT32_MAX && l->from > l->to;
  qsort(rank, l->n_ranks, sizeof *rank, by_rank);
  for (uint32_t i = 0; i < l->n_ranks; i++) key = of_number(key, (uint32_t)rank[i]);
  struct ni_diff_item *i = add(o, NI_DIFF_LINK, of_number(key, back), o->bins);
  if (i) {
    if (l->from >= 0 && l->n_ranks == 2) snprintf(name, sizeof name, "rank %d to %d", rank[back], rank[!back]);
    else
      snprintf(name, sizeof name, "%s of ranks %d%s to %d", l->from >= 0 ? "messages" : "collectives", rank[0],
               l->n_ranks > 2 ? ", ..." : "", rank[l->n_ranks - 1]);
    snprintf(i->name, sizeof i->name, "%s%s", name, l->host >= 0 ? "" : ", across hosts");
    i->like = of_text(0, role);
    i->bytes = l->bytes;
    i->per_step = l->per_step;
    for (uint32_t k = 0; k < o->bins; k++) i->x[k] = l->us[k + 1];
  }
  free(rank);
  return i ? 0 : -ENOMEM;
}

static int by_key(const void *a, const void *b) {
  const struct ni_diff_item *x = a, *y = b;
  if (x->like != y->like) return x->like < y->like ? -1 : 1;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->bytes != y->bytes        ? (x->bytes < y->bytes ? -1 : 1)
         : x->per_step < y->per_step ? -1
                                     : x->per_step > y->per_step;
}

/* Mean over the links of a role, each as a part of its own usual: one that is missing in a bin takes nothing away. */
static int one_role(struct ni_diff_run *o, size_t first, size_t end, uint64_t like, const char *name) {
  struct ni_diff_item *role = add(o, NI_DIFF_ROLE, like, o->bins);
  double all = 0;
  if (!role) return -ENOMEM;
  float *weight = calloc(o->bins + 1, sizeof *weight);
  if (!weight) return -ENOMEM;
  snprintf(role->name, sizeof role->name, "%s", name);
  memset(role->x, 0, o->bins * sizeof *role->x);
  role->members = 0;
  for (const struct ni_diff_item *i = o->item + first; i < o->item + end; i++) {
    double sum = 0, n = 0;
    if (i->like != like) continue;
    for (uint32_t k = 0; k < o->bins; k++)
      if (!isnan(i->x[k])) sum += i->x[k], n++;
    if (n < NI_DIFF_STEPS) continue;
    for (uint32_t k = 0; k < o->bins; k++)
      if (!isnan(i->x[k])) role->x[k] += i->x[k], weight[k] += (float)(sum / n);
    all += sum / n;
    role->members++;
    role->per_step += i->per_step;
  }
  if (role->members) role->per_step /= role->members;
  for (uint32_t k = 0; k < o->bins; k++)
    role->x[k] = weight[k] > 0 ? role->x[k] / weight[k] * (float)(all / role->members) : NAN;
  free(weight);
  return 0;
}

/* Two communicators of the same ranks are told apart by the size of what they carry. */
static int links_and_roles(struct ni_diff_run *o, const struct ni_blame *b) {
  size_t first = o->n, end;
  int e = 0;
  char role[64];
  for (uint32_t i = 0; e == 0 && i < b->n_links; i++)
    if (b->link[i].us) e = one_link(o, b, &b->link[i]);
  end = o->n;
  qsort(o->item + first, end - first, sizeof *o->item, by_key);
  for (size_t i = end; i-- > first + 1;) {
    uint32_t nth = 0;
    for (size_t k = i; k > first && o->item[k - 1].key == o->item[i].key; k--) nth++;
    if (nth) o->item[i].key = of_number(o->item[i].key, nth);
  }
  for (uint32_t i = 0; e == 0 && i < b->n_links; i++) {
    role_of(b, &b->link[i], role);
    uint64_t like = of_text(0, role);
    size_t k = end;
    while (k < o->n && o->item[k].key != like) k++;
    if (k == o->n && b->link[i].us) e = one_role(o, first, end, like, role);
  }
  return e;
}

static void append(char *out, size_t size, const char *format, ...) {
  size_t at = strlen(out);
  va_list args;
  va_start(args, format);
  (void)vsnprintf(out + at, size - at, format, args);
  va_end(args);
}

static int by_number(const void *a, const void *b) { return by_rank(b, a); }

/* How many communicators of how many ranks: those that were used more than now and then. */
static int layout(struct ni_diff_run *o, const struct ni_summary *s) {
  int32_t *n = malloc((s->n_comms + 1) * sizeof *n);
  size_t have = 0;
  if (!n) return -ENOMEM;
  for (size_t i = 0; i < s->n_comms; i++)
    if (s->comm[i].operations >= NI_DIFF_STEPS && s->comm[i].n_ranks > 1) n[have++] = s->comm[i].n_ranks;
  qsort(n, have, sizeof *n, by_number);
  for (size_t i = 0, k; i < have; i = k) {
    for (k = i; k < have && n[k] == n[i]; k++) {}
    append(o->layout, sizeof o->layout, "%s%zu of %d", i ? ", " : "", k - i, n[i]);
  }
  free(n);
  return 0;
}

static int functions(struct ni_diff_run *o, const struct ni_summary *s) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < s->n_groups; i++) {
    const struct ni_group *g = &s->group[i];
    bool transfer = g->transfer_us.n > 0;
    double per_step = s->n_steps ? (double)g->records / (double)s->n_processes / s->n_steps : 0;
    if (g->kind == NI_KIND_P2P && o->bins) { /* its links say it, without the waiting */
      o->timings |= 1u << g->timing;
      continue;
    }
    e = ni_diff_add_function(o, g->func, ni_comm_type_words[g->type], g->msg_bytes, g->timing,
                             transfer ? &g->transfer_us : &g->us, transfer, per_step);
  }
  for (size_t i = 0; e == 0 && s->n_groups == 0 && i < s->n_rolled; i++) {
    const struct ni_rolled *r = &s->rolled[i];
    double mean = r->count ? (double)r->sum_ns / 1e3 / (double)r->count : NAN,
           spread = (double)(r->max_ns - r->min_ns) / 1e3;
    struct ni_stats us = {.n = r->count, .p50 = mean, .p25 = mean - spread / 8, .p75 = mean + spread / 8};
    o->from = "roll-ups";
    e = ni_diff_add_function(o, r->func, "mean", r->msg_bytes, r->timing, &us, false, 0);
  }
  return e;
}

int ni_diff_gather(struct ni_diff_run *o, const struct ni_summary *s, const struct ni_blame *b) {
  o->from = "logs";
  o->world = s->job.world_size;
  o->version = s->job.nccl_version;
  o->ranks = (uint32_t)s->n_processes;
  o->steps = s->n_steps;
  o->bin_steps = s->bin_steps;
  o->per_step = s->n_steps ? (double)s->records / (double)s->n_processes / s->n_steps : 0;
  if (!s->complete)
    snprintf(o->trouble, sizeof o->trouble, "%s", s->input.n_trouble ? s->input.trouble[0] : "something is missing");
  if (!s->n_step_bins)
    snprintf(o->why_no_steps, sizeof o->why_no_steps, "%s",
             s->why_durations ? s->why_durations : "steps were not found");
  for (size_t i = 0; i < s->n_hosts; i++) {
    char name[64];
    append(o->hosts, sizeof o->hosts, "%s%s", i ? ", " : "", ni_safe_text(s->host[i].name, name, sizeof name));
  }
  for (size_t i = 0; i < s->n_mix; i++) {
    char algo[48], proto[48], both[100];
    snprintf(both, sizeof both, "%s/%s", ni_safe_text(s->mix[i].algo, algo, sizeof algo),
             ni_safe_text(s->mix[i].proto, proto, sizeof proto));
    if (strlen(both) > 1 && !strstr(o->algos, both))
      append(o->algos, sizeof o->algos, "%s%s", *o->algos ? ", " : "", both);
  }
  int e = layout(o, s);
  if (e == 0) e = ni_diff_add_steps(o, s->step, s->n_step_bins);
  if (e == 0 && o->bins >= NI_DIFF_STEPS) e = hosts_and_ranks(o, b);
  if (e == 0 && o->bins >= NI_DIFF_STEPS) e = links_and_roles(o, b);
  return e == 0 ? functions(o, s) : e;
}
