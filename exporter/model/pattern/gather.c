/* The programs of all ranks: threads find them, and they are put together in the order of ranks. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datatypes.h"
#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/put.h"
#include "exporter/base/threads.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/blame/judge.h"
#include "lanes.h"
#include "listing.h"

struct gather {
  struct ni_pattern *out;
  struct ni_lanes_of of;
  const struct ni_blame *b;
  struct ni_blame_pieces pieces;
  size_t *first;      /* of a process in pieces; one more at the end */
  size_t cap, places; /* of all programs */
  struct ni_index at_hash;
  pthread_mutex_t lock;
  pthread_cond_t merged;
  uint32_t next, turn; /* under the lock: whose program is looked for next, whose is taken next */
  int error;           /* under the lock */
};

/* ---- labels of communicators ---- */

static NI_ORDER_OF(by_pair, uint64_t);

/* What is done on each communicator, as one number. */
static int find_profiles(const struct gather *g, uint64_t *profile) {
  uint64_t *pair = malloc((g->pieces.n + 1) * sizeof *pair); /* communicator and cell */
  if (!pair)
    return -ENOMEM;
  for (size_t i = 0; i < g->pieces.n; i++)
    pair[i] = (uint64_t)g->pieces.item[i].comm << 32 | g->pieces.item[i].cell;
  if (g->pieces.n)
    qsort(pair, g->pieces.n, sizeof *pair, by_pair);
  for (size_t i = 0; i < g->pieces.n; i++) {
    if (i && pair[i] == pair[i - 1])
      continue;
    const struct ni_sum_cell *c = &g->of.r->cell[g->of.r->cell_order[pair[i] & UINT32_MAX]];
    uint64_t hash = ni_mix(c->msg_bytes * 2 + c->kind + 1);
    for (const char *p = ni_name_text(&g->of.r->names, c->func); *p; p++)
      hash = ni_mix(hash + (unsigned char)*p);
    profile[pair[i] >> 32] += hash;
  }
  free(pair);
  return 0;
}

/* Not RCCL's "unknown", and no number. */
static bool has_name(const struct ni_comm_row *c) {
  return c->name && strcmp(c->name, "unknown") != 0 && strspn(c->name, "0123456789") < strlen(c->name);
}

/*
 * Roles are found for each communicator, and if a rank is missing not always. A communicator of which nothing
 * is known has the role of those of its size that do the same, if these have only one.
 */
static enum ni_role find_role(const struct ni_summary *s, const uint64_t *profile, size_t i) {
  const struct ni_comm_row *c = &s->comm[i];
  enum ni_role role = c->role;
  const bool is_told = c->role != NI_ROLE_NONE || has_name(c);
  for (size_t k = 0; !is_told && k < s->n_comms; k++) {
    const struct ni_comm_row *x = &s->comm[k];
    if (x->role == NI_ROLE_NONE || x->n_ranks != c->n_ranks || profile[k] != profile[i])
      continue;
    if (role != NI_ROLE_NONE && role != x->role)
      return NI_ROLE_NONE;
    role = x->role;
  }
  return role;
}

/*
 * The label: "tp": its role; "embedding": its name without digits at the end; "8 ranks"; "unknown": nobody
 * says how many. NULL: no memory.
 */
static char *make_label(const struct ni_comm_row *c, enum ni_role role) {
  char *label = NULL;
  if (role != NI_ROLE_NONE)
    return strdup(ni_role_names[role]);
  if (has_name(c)) {
    if (!(label = strdup(c->name)))
      return NULL;
    for (size_t n = strlen(label); n && isdigit((unsigned char)label[n - 1]);)
      label[--n] = 0;
    return label;
  }
  if (c->n_ranks <= 0)
    return strdup("unknown");
  return asprintf(&label, "%d ranks", c->n_ranks) < 0 ? NULL : label;
}

/* Equal labels are one text, so that pointers can be compared. All of them are kept to be freed. */
static int find_labels(struct gather *g) {
  const struct ni_summary *s = g->of.s;
  struct ni_pattern *out = g->out;
  char **at = calloc(s->n_comms + 1, sizeof *at);
  if (!(out->label = calloc(s->n_comms + 1, sizeof *out->label)) || !at) {
    free(at);
    return -ENOMEM;
  }
  struct ni_index seen = {0};
  uint64_t *profile = calloc(s->n_comms + 1, sizeof *profile);
  int e = profile ? find_profiles(g, profile) : -ENOMEM;
  for (size_t i = 0; e == 0 && i < s->n_comms; i++) {
    char *label = make_label(&s->comm[i], find_role(s, profile, i));
    if (!label)
      e = -ENOMEM;
    const uint64_t hash = label ? ni_hash_text(0, label) : 0;
    uint32_t k = NI_INDEX_NONE;
    for (size_t from = 0; label && (k = ni_index_next(&seen, hash, &from)) != NI_INDEX_NONE;)
      if (strcmp(out->label[k], label) == 0)
        break;
    if (label && k != NI_INDEX_NONE) {
      free(label);
    } else if (label) {
      k = (uint32_t)out->n_labels;
      out->label[out->n_labels++] = label;
      e = ni_index_add(&seen, hash, k);
    }
    if (e == 0)
      at[i] = out->label[k];
  }
  ni_index_free(&seen);
  free(profile);
  g->of.label = at;
  return e;
}

/* ---- programs ---- */

static void free_program(struct ni_program *p) {
  free(p->lane);
  free(p->place);
}

static bool has_same_lanes(const struct ni_program *p, const struct ni_program *q) {
  const bool is_same_size = p->n_lanes == q->n_lanes && p->n_places == q->n_places;
  if (p->hash != q->hash || p->run != q->run || !is_same_size)
    return false;
  for (uint32_t i = 0; i < p->n_lanes; i++)
    if (p->lane[i].ring != q->lane[i].ring || p->lane[i].label != q->lane[i].label)
      return false;
  return true;
}

/* Do their steps begin at the same place? Otherwise figures of a place are of different operations. */
static bool have_same_begin(const struct ni_program *p, const struct ni_program *q) {
  for (uint32_t i = 0; i < p->n_places; i++) {
    const bool vary = p->lane[p->place[i].lane].sizes_vary;
    if (ni_place_hash(&p->place[i], vary) != ni_place_hash(&q->place[i], vary))
      return false;
  }
  return true;
}

static uint64_t mean_before(const struct ni_pattern_place *p) {
  return p->samples ? (p->before + p->samples / 2) / p->samples : 0;
}

/* Are their lanes interleaved in the same way? Stages of a pipeline do the same at different moments. */
static bool has_same_order(const struct ni_program *p, const struct ni_program *q) {
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    const struct ni_pattern_lane *l = &p->lane[i], *m = &q->lane[i];
    const bool beside = ni_listing_is_beside(p, l);
    if (beside != ni_listing_is_beside(q, m))
      return false;
    for (uint32_t k = 0; !beside && i != p->main_lane && k < l->n; k++)
      if (mean_before(&p->place[l->first + k]) != mean_before(&q->place[m->first + k]))
        return false;
  }
  return true;
}

static void add_order(struct ni_pattern_place *to, const struct ni_pattern_place *p) {
  to->start_ns += p->start_ns;
  to->before += p->before;
  to->before2 += p->before2;
  to->samples += p->samples;
}

static void add_place(struct ni_pattern_place *to, const struct ni_pattern_place *p) {
  if (p->bytes < to->bytes)
    to->bytes = p->bytes;
  if (p->bytes_most > to->bytes_most)
    to->bytes_most = p->bytes_most;
  if (p->mix != to->mix)
    to->mixes = true;
  to->mixes |= p->mixes;
  if (to->datatype != p->datatype)
    to->datatype = NULL;
  to->median_ns += p->median_ns;
  to->beside_permille += p->beside_permille;
  to->ranks += p->ranks;
}

static void add_program_to(struct ni_program *to, const struct ni_program *p) {
  to->ranks++;
  to->steps += p->steps;
  to->exact_steps += p->exact_steps;
  if (p->steps < to->steps_least)
    to->steps_least = p->steps;
  if (p->steps > to->steps_most)
    to->steps_most = p->steps;
  for (uint32_t i = 0; i < p->n_lanes; i++) {
    if (p->lane[i].least < to->lane[i].least)
      to->lane[i].least = p->lane[i].least;
    if (p->lane[i].most > to->lane[i].most)
      to->lane[i].most = p->lane[i].most;
  }
  if (!have_same_begin(to, p))
    return;
  const bool ordered = has_same_order(to, p);
  to->ordered += ordered;
  for (uint32_t i = 0; i < p->n_places; i++) {
    add_place(&to->place[i], &p->place[i]);
    if (ordered)
      add_order(&to->place[i], &p->place[i]);
  }
}

/* Files the program of a rank; ranks come in order. Takes over p. */
static int file_program(struct gather *g, uint32_t rank, struct ni_program *p) {
  struct ni_pattern_rank *to = &g->out->rank[rank];
  uint32_t k;
  p->run = to->run;
  for (size_t at = 0; (k = ni_index_next(&g->at_hash, p->hash, &at)) != NI_INDEX_NONE;)
    if (has_same_lanes(&g->out->program[k], p)) {
      add_program_to(&g->out->program[k], p);
      to->program = k;
      free_program(p);
      return 0;
    }
  if (g->places + p->n_places > NI_PATTERN_PLACES) {
    to->why_not = "there are too many programs to keep";
    free_program(p);
    return 0;
  }
  size_t cap = g->cap;
  int e = ni_array_room(g->out->program, g->out->n_programs, cap) ? 0 : -ENOMEM;
  g->cap = cap;
  if (e == 0)
    e = ni_index_add(&g->at_hash, p->hash, g->out->n_programs);
  if (e < 0) {
    free_program(p);
    return e;
  }
  p->first_rank = rank;
  p->ranks = p->ordered = 1;
  p->steps_least = p->steps_most = p->steps;
  g->places += p->n_places;
  to->program = g->out->n_programs;
  g->out->program[g->out->n_programs++] = *p;
  return 0;
}

static void *read_programs(void *arg) {
  struct gather *g = arg;
  pthread_mutex_lock(&g->lock);
  while (g->next < g->b->n_ranks && g->error == 0) {
    const uint32_t i = g->next++;
    struct ni_program p = {0};
    pthread_mutex_unlock(&g->lock);
    int e = ni_run_stopped(g->of.r) ? -EINTR : 0;
    if (e == 0)
      e = ni_lanes_find(&g->of, &g->b->rank[i], g->pieces.item + g->first[i], g->first[i + 1] - g->first[i],
                        &p, &g->out->rank[i]);
    pthread_mutex_lock(&g->lock);
    while (g->turn != i && g->error == 0)
      pthread_cond_wait(&g->merged, &g->lock);
    if (e == 0 && g->error == 0 && !g->out->rank[i].why_not)
      e = file_program(g, i, &p);
    else
      free_program(&p);
    if (e < 0 && g->error == 0)
      g->error = e;
    g->turn++;
    pthread_cond_broadcast(&g->merged);
  }
  pthread_mutex_unlock(&g->lock);
  return NULL;
}

static int find_all_programs(struct gather *g) {
  const struct ni_blame *b = g->b;
  struct ni_pattern *out = g->out;
  g->first = calloc((size_t)b->n_ranks + 2, sizeof *g->first);
  out->rank = calloc((size_t)b->n_ranks + 1, sizeof *out->rank);
  out->n_ranks = b->n_ranks;
  if (!g->first || !out->rank)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    out->rank[i] = (struct ni_pattern_rank){.process = i, .run = b->rank[i].run, .program = NI_BLAME_NONE};
  for (size_t i = 0; i < g->pieces.n; i++)
    g->first[g->pieces.item[i].process + 1]++;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    g->first[i + 1] += g->first[i];
  (void)ni_threads(g->of.r->opt.jobs, read_programs, g, 0);
  return g->error;
}

/* Programs with the most ranks come first, by run. Ranks get the new numbers. */
static NI_ORDER_BY(by_size, struct ni_program, run, minus_ranks, first_rank);

static int sort_programs(struct ni_pattern *out) {
  uint32_t *at = calloc(out->n_programs + 1, sizeof *at);
  if (!at)
    return -ENOMEM;
  for (uint32_t i = 0; i < out->n_programs; i++)
    out->program[i].minus_ranks = -(int64_t)out->program[i].ranks;
  if (out->n_programs)
    qsort(out->program, out->n_programs, sizeof *out->program, by_size);
  for (uint32_t i = 0; i < out->n_programs; i++)
    at[out->rank[out->program[i].first_rank].program] = i;
  for (uint32_t i = 0; i < out->n_ranks; i++)
    if (out->rank[i].program != NI_BLAME_NONE)
      out->rank[i].program = at[out->rank[i].program];
  free(at);
  return 0;
}

/* ---- the histogram ---- */

static int by_what(const void *a, const void *b) {
  const struct ni_pattern_count *x = a, *y = b;
  int k = NI_BY(x, y, run, n_ranks);
  if (k == 0)
    k = strcmp(x->func, y->func);
  if (k == 0)
    k = strcmp(x->label, y->label);
  return k ? k : NI_BY(x, y, bytes);
}

static int by_number(const void *a, const void *b) {
  const struct ni_pattern_count *x = a, *y = b;
  if (x->run != y->run)
    return x->run < y->run ? -1 : 1;
  return x->records != y->records ? (x->records > y->records ? -1 : 1) : by_what(a, b);
}

static void add_count(struct ni_pattern_count *to, const struct ni_pattern_count *x) {
  to->records += x->records;
  if (x->bytes_most > to->bytes_most)
    to->bytes_most = x->bytes_most;
  if (to->datatype != x->datatype)
    to->datatype = NULL;
}

static bool is_same_function(const struct ni_pattern_count *x, const struct ni_pattern_count *y) {
  return x->func == y->func && x->label == y->label && x->run == y->run && x->n_ranks == y->n_ranks;
}

/*
 * Functions with many sizes, such as requests of any length, become one row each. In the order of what they
 * are.
 */
static size_t join_sizes(struct ni_pattern_count *count, size_t n) {
  size_t kept = 0;
  for (size_t i = 0, to; i < n; i = to) {
    const struct ni_pattern_count *x = &count[i];
    for (to = i + 1; to < n && is_same_function(&count[to], x); to++) {}
    const bool many = to - i > NI_PATTERN_SIZES;
    for (size_t k = i; k < to; k++) {
      if (!many || k == i) {
        count[kept++] = count[k];
        continue;
      }
      add_count(&count[kept - 1], &count[k]);
      count[kept - 1].sizes++;
    }
  }
  return kept;
}

static int count_all_operations(struct gather *g) {
  const struct ni_run *r = g->of.r;
  struct ni_pattern *out = g->out;
  size_t n = 0;
  if (!(out->count = malloc((g->pieces.n + 1) * sizeof *out->count)))
    return -ENOMEM;
  for (size_t i = 0; i < g->pieces.n; i++) {
    const struct ni_blame_piece *p = &g->pieces.item[i];
    const struct ni_sum_cell *c = &r->cell[r->cell_order[p->cell]];
    const char *func = ni_name_text(&r->names, c->func);
    out->count[i] =
        (struct ni_pattern_count){.run = g->b->rank[p->process].run,
                                  .label = g->of.label[p->comm],
                                  .func = func,
                                  .bytes = c->msg_bytes,
                                  .bytes_most = c->msg_bytes,
                                  .sizes = 1,
                                  .records = p->piece->s.n,
                                  .n_ranks = g->of.s->comm[p->comm].n_ranks,
                                  .datatype = ni_datatype_of(g->of.types, r, p->comm, func, c->msg_bytes)};
  }
  if (g->pieces.n)
    qsort(out->count, g->pieces.n, sizeof *out->count, by_what);
  for (size_t i = 0; i < g->pieces.n; i++) {
    struct ni_pattern_count *last = n ? &out->count[n - 1] : NULL;
    if (!last || by_what(last, &out->count[i]) != 0) {
      out->count[n++] = out->count[i];
      continue;
    }
    add_count(last, &out->count[i]);
  }
  n = join_sizes(out->count, n);
  if (n)
    qsort(out->count, n, sizeof *out->count, by_number);
  out->n_counts = n > NI_PATTERN_HISTOGRAM ? NI_PATTERN_HISTOGRAM : (uint32_t)n;
  out->counts_left_out = (uint32_t)n - out->n_counts;
  return 0;
}

int ni_pattern_find(struct ni_run *r, struct ni_summary *s, const struct ni_blame *b,
                    const struct ni_datatypes *types, struct ni_pattern *out) {
  struct ni_blame own = {0};
  struct gather g = {.out = out, .of = {.r = r, .s = s, .types = types}, .b = b};
  *out = (struct ni_pattern){0};
  int e = -pthread_mutex_init(&g.lock, NULL);
  if (e < 0)
    return e;
  if ((e = -pthread_cond_init(&g.merged, NULL)) < 0) {
    pthread_mutex_destroy(&g.lock);
    return e;
  }
  if (!b || !b->rank) {
    g.b = &own;
    e = ni_judge_steps(r, s, &own);
  }
  if (e == 0)
    e = ni_blame_pieces(r, s, &g.pieces);
  if (e == 0)
    e = find_labels(&g);
  if (e == 0)
    e = find_all_programs(&g);
  if (e == 0)
    e = sort_programs(out);
  if (e == 0)
    e = count_all_operations(&g);
  free((void *)g.of.label);
  free(g.pieces.item);
  free(g.first);
  ni_index_free(&g.at_hash);
  ni_blame_free(&own);
  pthread_cond_destroy(&g.merged);
  pthread_mutex_destroy(&g.lock);
  return e;
}

void ni_pattern_free(struct ni_pattern *p) {
  for (uint32_t i = 0; i < p->n_programs; i++)
    free_program(&p->program[i]);
  for (size_t i = 0; i < p->n_labels; i++)
    free(p->label[i]);
  free(p->program);
  free(p->rank);
  free(p->count);
  free(p->label);
  *p = (struct ni_pattern){0};
}

bool ni_pattern_is_size(const char *label) {
  const size_t digits = strspn(label, "0123456789");
  return digits && strcmp(label + digits, " ranks") == 0;
}

const char *ni_pattern_lane_text(const struct ni_pattern_lane *l, char out[96]) {
  struct ni_put_text w = {out, 96};
  ni_put(&w, "%.60s", l->label);
  if (l->ordinal)
    ni_put(&w, " %u", l->ordinal + 1);
  return out;
}

const char *ni_pattern_func_text(const struct ni_pattern_lane *l, const char *func, char out[96]) {
  struct ni_put_text w = {out, 96};
  const char *way = l->kind == NI_BLAME_SEND ? "to" : "from";
  ni_put(&w, "%.60s", func);
  if (l->kind == NI_BLAME_COLL)
    return out;
  if (l->peer == NI_PATTERN_ALL_PEERS)
    ni_put(&w, " %s %u others", way, l->peers);
  else if (l->peer == 1 || l->peer == -1)
    ni_put(&w, " %s %s", way, l->peer == 1 ? "next" : "previous");
  else
    ni_put(&w, " %s %+d", way, l->peer);
  return out;
}
