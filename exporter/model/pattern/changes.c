#include "changes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "pattern.h"

const char *const ni_step_change_names[NI_CHANGE_KINDS] = {"came",     "went",      "number",       "size",
                                                           "datatype", "algorithm", "communicator", "order"};

struct ni_digest_lane {
  char label[64];
  int32_t n_ranks, peer;
  uint32_t peers, ordinal;
  uint8_t kind;
  uint64_t ring;
  uint32_t first, n; /* kinds of operations, by function and size */
};

struct ni_digest_kind {
  char func[48], datatype[24], form[48]; /* form: "RING/SIMPLE"; "": not stated, or several */
  uint64_t bytes, times;                 /* bytes UINT64_MAX: they vary */
};

/* ---- the digest ---- */

static void format_kind(const struct ni_run *r, const struct ni_pattern_place *p, char out[48]) {
  char algo[24], proto[24];
  *out = 0;
  if (p->mixes)
    return;
  ni_safe_text(ni_name_text(&r->names, r->mix[p->mix].algo), algo, sizeof algo);
  ni_safe_text(ni_name_text(&r->names, r->mix[p->mix].proto), proto, sizeof proto);
  if (*algo || *proto)
    snprintf(out, 48, "%s%s%s", algo, *algo && *proto ? "/" : "", proto);
}

static int by_kind(const void *a, const void *b) {
  const struct ni_digest_kind *x = a, *y = b;
  const int k = strcmp(x->func, y->func);
  return k ? k : NI_BY(x, y, bytes);
}

static int add_lane(struct ni_digest *d, const struct ni_run *r, const struct ni_program *p,
                    const struct ni_pattern_lane *l) {
  if (!ni_array_room(d->lane, d->n_lanes, d->cap_lanes))
    return -ENOMEM;
  struct ni_digest_lane *to = &d->lane[d->n_lanes++];
  *to = (struct ni_digest_lane){.n_ranks = l->n_ranks,
                                .peer = l->peer,
                                .peers = l->peers,
                                .ordinal = l->ordinal,
                                .kind = l->kind,
                                .ring = l->ring,
                                .first = (uint32_t)d->n_kinds};
  ni_safe_text(l->label, to->label, sizeof to->label);
  for (uint32_t i = 0; i < l->n; i++) {
    const struct ni_pattern_place *x = &p->place[l->first + i];
    if (!ni_array_room(d->kind, d->n_kinds, d->cap_kinds))
      return -ENOMEM;
    struct ni_digest_kind *k = &d->kind[d->n_kinds++];
    *k = (struct ni_digest_kind){.bytes = l->sizes_vary && x->bytes != x->bytes_most ? UINT64_MAX : x->bytes,
                                 .times = 1};
    ni_safe_text(x->func, k->func, sizeof k->func);
    ni_safe_text(x->datatype, k->datatype, sizeof k->datatype);
    format_kind(r, x, k->form);
  }
  struct ni_digest_kind *kind = d->kind + to->first;
  if (l->n)
    qsort(kind, l->n, sizeof *kind, by_kind);
  for (uint32_t i = 0; i < l->n; i++) {
    struct ni_digest_kind *last = to->n ? &kind[to->n - 1] : NULL;
    if (!last || by_kind(last, &kind[i]) != 0) {
      kind[to->n++] = kind[i];
      continue;
    }
    last->times++;
    if (strcmp(last->form, kind[i].form) != 0)
      *last->form = 0;
    if (strcmp(last->datatype, kind[i].datatype) != 0)
      *last->datatype = 0;
  }
  d->n_kinds = to->first + to->n;
  return 0;
}

static NI_ORDER_BY(by_rank, struct ni_digest_rank, rank);

int ni_digest_make(struct ni_digest *d, const struct ni_pattern *p, const struct ni_run *r,
                   const struct ni_summary *s) {
  int e = 0;
  *d = (struct ni_digest){.program = calloc(p->n_programs + 1, sizeof *d->program),
                          .rank = calloc((size_t)p->n_ranks + 1, sizeof *d->rank)};
  if (!d->program || !d->rank)
    return -ENOMEM;
  for (uint32_t i = 0; i < p->n_programs; i++) {
    struct ni_digest_program *to = &d->program[d->n_programs++];
    to->first = (uint32_t)d->n_lanes;
    to->n = p->program[i].n_lanes;
    for (uint32_t k = 0; e == 0 && k < to->n; k++)
      e = add_lane(d, r, &p->program[i], &p->program[i].lane[k]);
  }
  for (uint32_t i = 0; i < p->n_ranks; i++)
    if (p->rank[i].program != NI_BLAME_NONE)
      d->rank[d->n_ranks++] =
          (struct ni_digest_rank){s->process[p->rank[i].process].rank, p->rank[i].program};
  qsort(d->rank, d->n_ranks, sizeof *d->rank, by_rank);
  return e;
}

void ni_digest_free(struct ni_digest *d) {
  free(d->lane);
  free(d->kind);
  free(d->program);
  free(d->rank);
  *d = (struct ni_digest){0};
}

/* ---- two programs ---- */

struct digest_pair {
  const struct ni_digest *d[2];
  const struct ni_digest_program *p[2];
  struct ni_step_changes *out;
  struct ni_step_change *found; /* of these two programs */
  size_t n, cap;
};

static const struct ni_digest_lane *lane_at(const struct digest_pair *x, int side, uint32_t i) {
  return &x->d[side]->lane[x->p[side]->first + i];
}

static bool is_same_place(const struct ni_digest_lane *a, const struct ni_digest_lane *b) {
  return a->kind == b->kind && a->n_ranks == b->n_ranks && a->peer == b->peer;
}
static bool has_same_name(const struct ni_digest_lane *a, const struct ni_digest_lane *b) {
  return is_same_place(a, b) && a->ordinal == b->ordinal && strcmp(a->label, b->label) == 0;
}

static void name_digest_comm(const struct ni_digest_lane *l, char out[96]) {
  struct ni_put_text w = {out, 96};
  ni_put(&w, "%s", l->label);
  if (l->ordinal)
    ni_put(&w, " %u", l->ordinal + 1);
  if (l->n_ranks > 0 && !ni_pattern_is_size(l->label))
    ni_put(&w, " (%d)", l->n_ranks);
}

static void name_func(const struct ni_digest_lane *l, const char *func, char out[64]) {
  char text[96];
  const struct ni_pattern_lane as = {.kind = l->kind, .peer = l->peer, .peers = l->peers};
  snprintf(out, 64, "%.63s", ni_pattern_func_text(&as, func, text));
}

static struct ni_step_change *add_change(struct digest_pair *x, enum ni_step_change_kind kind,
                                         const struct ni_digest_lane *l, const struct ni_digest_kind *a,
                                         const struct ni_digest_kind *b) {
  const struct ni_digest_kind *any = a ? a : b;
  if (!ni_array_room(x->found, x->n, x->cap))
    return NULL;
  struct ni_step_change *c = &x->found[x->n++];
  memset(c, 0, sizeof *c); /* they are compared as bytes */
  c->kind = kind;
  if (a) {
    c->bytes_a = a->bytes;
    c->times_a = a->times;
  }
  if (b) {
    c->bytes_b = b->bytes;
    c->times_b = b->times;
  }
  if (any)
    name_func(l, any->func, c->func);
  name_digest_comm(l, c->comm);
  return c;
}

static int add_came_or_went(struct digest_pair *x, const struct ni_digest_lane *l,
                            const struct ni_digest_kind *a, const struct ni_digest_kind *b) {
  return add_change(x, a ? NI_CHANGE_WENT : NI_CHANGE_CAME, l, a, b) ? 0 : -ENOMEM;
}

/* The same function and size: as often, as the same data, by the same algorithm? */
static int compare_kind(struct digest_pair *x, const struct ni_digest_lane *l, const struct ni_digest_kind *a,
                        const struct ni_digest_kind *b) {
  const struct {
    enum ni_step_change_kind kind;
    const char *was, *is;
  } text[] = {{NI_CHANGE_DATATYPE, a->datatype, b->datatype}, {NI_CHANGE_ALGORITHM, a->form, b->form}};
  if (a->times != b->times && !add_change(x, NI_CHANGE_NUMBER, l, a, b))
    return -ENOMEM;
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    if (!*text[i].was || !*text[i].is || strcmp(text[i].was, text[i].is) == 0)
      continue;
    struct ni_step_change *c = add_change(x, text[i].kind, l, a, b);
    if (!c)
      return -ENOMEM;
    snprintf(c->was, sizeof c->was, "%s", text[i].was);
    snprintf(c->is, sizeof c->is, "%s", text[i].is);
  }
  return 0;
}

/* Compares what only one lane has. If both have one function equally often, it has another size. */
static int compare_rest(struct digest_pair *x, const struct ni_digest_lane *l, const struct ni_digest_lane *m,
                        const bool *in_both_a, bool *in_both_b) {
  const struct ni_digest_kind *a = x->d[0]->kind + l->first, *b = x->d[1]->kind + m->first;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < l->n; i++) {
    uint32_t k = 0;
    if (in_both_a[i])
      continue;
    for (; k < m->n; k++) {
      const bool is_same = a[i].times == b[k].times && strcmp(a[i].func, b[k].func) == 0;
      if (!in_both_b[k] && is_same)
        break;
    }
    if (k < m->n)
      in_both_b[k] = true;
    if (k == m->n)
      e = add_came_or_went(x, l, &a[i], NULL);
    else if (!add_change(x, NI_CHANGE_SIZE, m, &a[i], &b[k]))
      e = -ENOMEM;
    if (e == 0 && k < m->n)
      e = compare_kind(x, m, &a[i], &b[k]);
  }
  for (uint32_t k = 0; e == 0 && k < m->n; k++)
    if (!in_both_b[k])
      e = add_came_or_went(x, m, NULL, &b[k]);
  return e;
}

static int compare_digest_lanes(struct digest_pair *x, const struct ni_digest_lane *l,
                                const struct ni_digest_lane *m) {
  const struct ni_digest_kind *a = x->d[0]->kind + l->first, *b = x->d[1]->kind + m->first;
  bool *both = calloc((size_t)l->n + m->n + 1, sizeof *both);
  const size_t before = x->n;
  int e = both ? 0 : -ENOMEM;
  for (uint32_t i = 0, k = 0; e == 0 && i < l->n && k < m->n;) {
    const int order = by_kind(&a[i], &b[k]);
    if (order == 0) {
      both[i] = both[l->n + k] = true;
      e = compare_kind(x, m, &a[i], &b[k]);
    }
    i += order <= 0;
    k += order >= 0;
  }
  if (e == 0)
    e = compare_rest(x, l, m, both, both + l->n);
  bool same_operations = true; /* as often */
  for (size_t i = before; i < x->n; i++)
    same_operations &= x->found[i].kind == NI_CHANGE_DATATYPE || x->found[i].kind == NI_CHANGE_ALGORITHM;
  const bool turned = same_operations && l->ring && m->ring && l->ring != m->ring;
  if (e == 0 && turned && !add_change(x, NI_CHANGE_ORDER, m, NULL, NULL))
    e = -ENOMEM;
  free(both);
  return e;
}

static int report_lane_alone(struct digest_pair *x, int side, const struct ni_digest_lane *l) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < l->n; i++) {
    const struct ni_digest_kind *k = &x->d[side]->kind[l->first + i];
    e = add_came_or_went(x, l, side == 0 ? k : NULL, side == 1 ? k : NULL);
  }
  return e;
}

/* Finds what left one communicator and came on another, equally large and equally often. */
static void find_moved(struct digest_pair *x) {
  size_t kept = 0;
  for (size_t i = 0; i < x->n; i++) {
    struct ni_step_change *went = &x->found[i];
    for (size_t k = 0; went->kind == NI_CHANGE_WENT && k < x->n; k++) {
      struct ni_step_change *came = &x->found[k];
      const bool is_it =
          came->kind == NI_CHANGE_CAME && came->bytes_b == went->bytes_a && came->times_b == went->times_a;
      if (!is_it || strcmp(came->func, went->func) != 0)
        continue;
      went->kind = NI_CHANGE_COMMUNICATOR;
      went->bytes_b = came->bytes_b;
      went->times_b = came->times_b;
      snprintf(went->comm_b, sizeof went->comm_b, "%s", came->comm);
      came->kind = NI_CHANGE_KINDS; /* told with that */
    }
  }
  for (size_t i = 0; i < x->n; i++)
    if (x->found[i].kind != NI_CHANGE_KINDS)
      x->found[kept++] = x->found[i];
  x->n = kept;
}

/* Compares lanes of the same name, then lanes at the same place. */
static int compare_programs(struct digest_pair *x) {
  const uint32_t n = x->p[0]->n, m = x->p[1]->n;
  bool *used = calloc((size_t)n + m + 1, sizeof *used);
  int e = used ? 0 : -ENOMEM;
  for (int round = 0; e == 0 && round < 2; round++)
    for (uint32_t i = 0; e == 0 && i < n; i++) {
      const struct ni_digest_lane *l = lane_at(x, 0, i);
      uint32_t k = 0;
      if (used[i])
        continue;
      for (; k < m; k++) {
        const struct ni_digest_lane *to = lane_at(x, 1, k);
        if (!used[n + k] && (round == 0 ? has_same_name(l, to) : is_same_place(l, to)))
          break;
      }
      if (k == m)
        continue;
      used[i] = used[n + k] = true;
      e = compare_digest_lanes(x, l, lane_at(x, 1, k));
    }
  for (uint32_t i = 0; e == 0 && i < n; i++)
    if (!used[i])
      e = report_lane_alone(x, 0, lane_at(x, 0, i));
  for (uint32_t k = 0; e == 0 && k < m; k++)
    if (!used[n + k])
      e = report_lane_alone(x, 1, lane_at(x, 1, k));
  if (e == 0)
    find_moved(x);
  free(used);
  return e;
}

/* ---- all ranks ---- */

static void count_change(struct ni_step_changes *out, const struct ni_step_change *c, uint32_t ranks) {
  for (size_t i = 0; i < out->n; i++) {
    struct ni_step_change known = out->change[i];
    known.ranks = 0;
    if (memcmp(&known, c, sizeof known) != 0)
      continue;
    out->change[i].ranks += ranks;
    return;
  }
  if (out->n == NI_CHANGES) {
    out->left_out++;
    return;
  }
  out->change[out->n] = *c;
  out->change[out->n++].ranks = ranks;
}

static NI_ORDER_OF(by_pair, uint64_t);

int ni_step_changes_find(const struct ni_digest *a, const struct ni_digest *b, struct ni_step_changes *out) {
  uint64_t *pair = malloc((a->n_ranks + 1) * sizeof *pair); /* programs of A and B of one rank */
  size_t n = 0;
  int e = pair ? 0 : -ENOMEM;
  out->known = false;
  out->n = out->left_out = 0;
  for (size_t i = 0, k = 0; e == 0 && i < a->n_ranks && k < b->n_ranks;) {
    const int32_t x = a->rank[i].rank, y = b->rank[k].rank;
    if (x == y)
      pair[n++] = (uint64_t)a->rank[i].program << 32 | b->rank[k].program;
    i += x <= y;
    k += y <= x;
  }
  if (n)
    qsort(pair, n, sizeof *pair, by_pair);
  out->known = n > 0;
  out->ranks = (uint32_t)n;
  for (size_t i = 0, to; e == 0 && i < n; i = to) {
    for (to = i + 1; to < n && pair[to] == pair[i]; to++) {}
    struct digest_pair x = {
        .d = {a, b}, .p = {&a->program[pair[i] >> 32], &b->program[pair[i] & UINT32_MAX]}, .out = out};
    e = compare_programs(&x);
    for (size_t k = 0; e == 0 && k < x.n; k++)
      count_change(out, &x.found[k], (uint32_t)(to - i));
    free(x.found);
  }
  free(pair);
  return e;
}

static const char *format_size(uint64_t bytes, char out[48]) {
  if (bytes == UINT64_MAX)
    snprintf(out, 48, "of varying sizes");
  else
    ni_size_text(bytes, out);
  return out;
}

const char *ni_step_change_text(const struct ni_step_changes *all, const struct ni_step_change *c,
                                char out[400]) {
  struct ni_put_text w = {out, 400};
  char a[48], b[48];
  format_size(c->times_a ? c->bytes_a : c->bytes_b, a);
  format_size(c->bytes_b, b);
  if (c->kind == NI_CHANGE_CAME)
    ni_put(&w, "%" PRIu64 " x %s %s on %s came", c->times_b, c->func, a, c->comm);
  else if (c->kind == NI_CHANGE_WENT)
    ni_put(&w, "%" PRIu64 " x %s %s on %s went", c->times_a, c->func, a, c->comm);
  else if (c->kind == NI_CHANGE_NUMBER)
    ni_put(&w, "%s %s on %s: %" PRIu64 " a step instead of %" PRIu64, c->func, a, c->comm, c->times_b,
           c->times_a);
  else if (c->kind == NI_CHANGE_SIZE)
    ni_put(&w, "%" PRIu64 " x %s on %s: %s instead of %s", c->times_b, c->func, c->comm, b, a);
  else if (c->kind == NI_CHANGE_COMMUNICATOR)
    ni_put(&w, "%" PRIu64 " x %s %s: on %s instead of %s", c->times_b, c->func, a, c->comm_b, c->comm);
  else if (c->kind == NI_CHANGE_ORDER)
    ni_put(&w, "operations on %s come in another order", c->comm);
  else
    ni_put(&w, "%s %s on %s: %s instead of %s", c->func, b, c->comm, c->is, c->was);
  if (c->ranks < all->ranks)
    ni_put(&w, " (%u of %u ranks)", c->ranks, all->ranks);
  return out;
}
