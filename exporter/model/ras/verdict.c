#include "verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/map.h"

/* ---- who is who: a process on a GPU, in all communicators of a look ---- */

struct seats {
  struct ni_map names;
  struct seat {
    uint64_t signs; /* sum of what its ranks say: another one when anything has changed */
    uint8_t here;   /* the worst of its ranks */
    bool counted, ahead;
  } *seat;
  size_t n, cap;
  uint32_t *of; /* by rank of the look */
};

static void free_seats(struct seats *s) {
  ni_map_free(&s->names);
  free(s->seat);
  free(s->of);
}

/* If RAS does not know the process of a rank, the rank counts as a process. */
static uint64_t hash_seat(const struct ni_ras_comm *c, const struct ni_ras_rank *x) {
  uint64_t name = ni_hash(ni_hash_text(1, x->host), (uint64_t)x->pid);
  name = ni_hash(name, (uint64_t)x->cuda_dev);
  return *x->host && x->pid >= 0 ? name : ni_hash(ni_hash(2, c->hash), (uint64_t)x->rank);
}

/* What a rank says: its counts and its state. In a sum of these the order does not matter. */
static uint64_t hash_signs(const struct ni_ras *r, const struct ni_ras_comm *c, const struct ni_ras_rank *x) {
  uint64_t h = ni_hash(ni_hash(3, c->hash), (uint64_t)x->rank);
  unsigned flags = (unsigned)x->finalize | (unsigned)x->destroy << 1 | (unsigned)x->abort << 2;
  h = ni_hash(ni_hash(h, (uint64_t)x->init_state << 32 | (uint32_t)x->async_error),
              flags | (uint64_t)x->here << 8);
  uint64_t sum = h;
  for (size_t f = 0; f < r->n_funcs; f++) /* looks may have met the functions in another order */
    if (x->count[f])
      sum += ni_hash(ni_hash_text(h, r->func[f]), x->count[f]);
  return sum;
}

static int find_seats(struct seats *s, const struct ni_ras *r) {
  if (!(s->of = calloc(r->n_ranks + 1, sizeof *s->of)))
    return -ENOMEM;
  for (size_t i = 0; i < r->n_comms; i++) {
    const struct ni_ras_comm *c = &r->comm[i];
    for (size_t k = c->first; !c->odd && k < c->first + c->n; k++) {
      const struct ni_ras_rank *x = &r->rank[k];
      int64_t at = ni_map_find_or_add(&s->names, hash_seat(c, x), 0, (uint32_t)s->n);
      if (at < 0 || !ni_array_room(s->seat, s->n, s->cap))
        return -ENOMEM;
      if ((size_t)at == s->n)
        s->seat[s->n++] = (struct seat){0};
      struct seat *seat = &s->seat[s->of[k] = (uint32_t)at];
      seat->signs += hash_signs(r, c, x);
      seat->counted |= x->here == NI_RAS_HERE;
      /* Absent from one communicator it is there in others. */
      if (x->here > NI_RAS_ABSENT && x->here > seat->here)
        seat->here = x->here;
    }
  }
  return 0;
}

/* ---- one communicator ---- */

uint64_t ni_ras_launched(const struct ni_ras_rank *x) {
  uint64_t n = 0;
  for (size_t f = 0; f < NI_RAS_FUNCS; f++)
    n = x->count[f] > UINT64_MAX - n ? UINT64_MAX : n + x->count[f];
  return n;
}

static bool has_same_counts(const struct ni_ras_rank *a, const struct ni_ras_rank *b) {
  return memcmp(a->count, b->count, sizeof a->count) == 0;
}

bool ni_ras_is_behind(const struct ni_ras_trouble *t, const struct ni_ras_rank *x) {
  return t->most && x->counted && ni_ras_launched(x) < t->most_launched;
}

bool ni_ras_is_unlike(const struct ni_ras_trouble *t, const struct ni_ras_rank *x) {
  return t->most && x->counted && ni_ras_launched(x) == t->most_launched && !has_same_counts(x, t->most);
}

/*
 * Among the ranks that have launched most: one whose counts most of them have. Without a majority, one of
 * them.
 */
static void find_majority(struct ni_ras_trouble *t, const struct ni_ras_rank *rank, size_t n) {
  size_t votes = 0;
  NI_EACH(const struct ni_ras_rank, x, rank, n) {
    uint64_t launched = x->counted ? ni_ras_launched(x) : 0;
    if (!x->counted || (t->most && launched < t->most_launched))
      continue;
    if (!t->most || launched > t->most_launched)
      votes = 0;
    if (votes == 0) {
      t->most = x;
      t->most_launched = launched;
    }
    if (has_same_counts(x, t->most))
      votes++;
    else
      votes--;
  }
}

static void count_ranks(struct ni_ras_trouble *t, const struct ni_ras_rank *rank, size_t n) {
  find_majority(t, rank, n);
  NI_EACH(const struct ni_ras_rank, x, rank, n) {
    t->in[x->here]++;
    if (x->here != NI_RAS_HERE)
      continue;
    t->here++;
    t->behind += ni_ras_is_behind(t, x);
    t->unlike += ni_ras_is_unlike(t, x);
    t->errors += x->async_error > 0 && x->async_error != NI_RAS_IN_PROGRESS;
    t->aborts += x->abort;
    t->starting += x->init_state > 0;
  }
}

static bool is_in_order(const struct ni_ras_trouble *t) {
  return !ni_ras_is_wait(t) && !t->in[NI_RAS_ABSENT] && !t->errors && !t->aborts && !t->starting;
}

/* ---- two looks ---- */

struct look_pair {
  const struct ni_ras_look *now, *before;
  struct seats is, was;
  struct ni_map comms; /* of `before` */
  bool *moved;         /* by seat of `is` */
};

static uint64_t hash_comm(const struct ni_ras_comm *c) {
  return ni_hash(ni_hash_text(ni_hash(4, c->hash), c->secondary), (uint64_t)c->size);
}

static int find_moved(struct look_pair *p) {
  int e = find_seats(&p->is, &p->now->ras);
  if (e == 0 && p->before)
    e = find_seats(&p->was, &p->before->ras);
  if (e == 0 && !(p->moved = calloc(p->is.n + 1, sizeof *p->moved)))
    e = -ENOMEM;
  for (size_t i = 0; e == 0 && p->before && i < p->is.names.n; i++) {
    const struct ni_map_place *at = &p->is.names.place[i];
    int64_t then = ni_map_get(&p->was.names, at->name, 0);
    p->moved[at->number] = then < 0 || p->was.seat[then].signs != p->is.seat[at->number].signs;
  }
  for (size_t i = 0; e == 0 && p->before && i < p->before->ras.n_comms; i++)
    if (ni_map_find_or_add(&p->comms, hash_comm(&p->before->ras.comm[i]), 0, (uint32_t)i) < 0)
      e = -ENOMEM;
  return e;
}

static void free_pair(struct look_pair *p) {
  free_seats(&p->is);
  free_seats(&p->was);
  ni_map_free(&p->comms);
  free(p->moved);
}

/* Since which look no rank of it has moved. A rank that does not answer says nothing. */
static uint64_t standing_since(const struct look_pair *p, const struct ni_ras_comm *c) {
  int64_t then = p->before && !c->odd ? ni_map_get(&p->comms, hash_comm(c), 0) : -1;
  if (then < 0)
    return p->now->ns;
  for (size_t k = c->first; k < c->first + c->n; k++)
    if (p->now->ras.rank[k].here == NI_RAS_HERE && p->moved[p->is.of[k]])
      return p->now->ns;
  return p->before->still_since[then];
}

/* ---- the verdict ---- */

static int by_weight(const void *a, const void *b) {
  const struct ni_ras_trouble *x = a, *y = b;
  bool p = ni_ras_is_wait(x), q = ni_ras_is_wait(y);
  if (x->hangs != y->hangs)
    return x->hangs ? -1 : 1;
  if (p != q)
    return p ? -1 : 1;
  if (x->consequence != y->consequence)
    return x->consequence ? 1 : -1;
  if (x->still_ns != y->still_ns)
    return x->still_ns > y->still_ns ? -1 : 1;
  if (x->here != y->here)
    return x->here > y->here ? -1 : 1;
  return x->comm->hash < y->comm->hash ? -1 : x->comm->hash > y->comm->hash;
}

/*
 * A rank that has launched what others of the communicator have not waits for them there. Where it is behind
 * elsewhere, that is why.
 */
static void find_consequences(struct ni_ras_verdict *v, struct look_pair *p) {
  const struct ni_ras *r = &p->now->ras;
  bool any_root = false;
  NI_EACH(const struct ni_ras_trouble, t, v->trouble, v->n)
  for (size_t k = t->comm->first; t->behind && k < t->comm->first + t->comm->n; k++)
    if (r->rank[k].counted && !ni_ras_is_behind(t, &r->rank[k]))
      p->is.seat[p->is.of[k]].ahead = true;
  NI_EACH(struct ni_ras_trouble, t, v->trouble, v->n) {
    for (size_t k = t->comm->first; k < t->comm->first + t->comm->n; k++)
      t->consequence |= ni_ras_is_behind(t, &r->rank[k]) && p->is.seat[p->is.of[k]].ahead;
    any_root |= ni_ras_is_wait(t) && !t->consequence;
  }
  if (any_root)
    return;
  NI_EACH(struct ni_ras_trouble, t, v->trouble, v->n) t->consequence = false;
}

static int find_troubles(struct ni_ras_verdict *v, struct look_pair *p) {
  const struct ni_ras *r = &p->now->ras;
  size_t cap = 0;
  for (size_t i = 0; i < r->n_comms; i++) {
    struct ni_ras_trouble t = {.comm = &r->comm[i]};
    v->odd += t.comm->odd != NULL;
    if (t.comm->odd)
      continue;
    v->comms++;
    count_ranks(&t, r->rank + t.comm->first, t.comm->n);
    if (is_in_order(&t))
      continue;
    t.still_ns = p->now->ns - p->now->still_since[i];
    t.hangs = ni_ras_is_wait(&t) && p->before && t.still_ns >= v->limit_ns;
    if (!ni_array_room(v->trouble, v->n, cap))
      return -ENOMEM;
    v->trouble[v->n++] = t;
  }
  find_consequences(v, p);
  if (v->n > 1)
    qsort(v->trouble, v->n, sizeof *v->trouble, by_weight);
  return 0;
}

static void count_processes(struct ni_ras_verdict *v, const struct look_pair *p) {
  for (size_t i = 0; i < p->is.n; i++) {
    const struct seat *s = &p->is.seat[i];
    enum ni_ras_here here = s->here ? (enum ni_ras_here)s->here : s->counted ? NI_RAS_HERE : NI_RAS_ABSENT;
    v->in[here]++;
    v->processes += here == NI_RAS_HERE;
    v->moved += here == NI_RAS_HERE && p->moved[i];
  }
}

/* How long the whole job has stood still: by what moved last, of all communicators. */
static uint64_t all_standing_ns(const struct ni_ras_verdict *v) {
  const struct ni_ras_look *l = v->look;
  uint64_t since = 0;
  for (size_t i = 0; i < l->ras.n_comms; i++)
    if (!l->ras.comm[i].odd && l->still_since[i] > since)
      since = l->still_since[i];
  return since ? l->ns - since : 0;
}

static enum ni_hang_answer decide_answer(const struct ni_ras_verdict *v) {
  bool gone = v->in[NI_RAS_DEAD] || v->in[NI_RAS_UNRESPONSIVE], stands = false, hangs = false;
  if (v->comms == 0 && v->odd == 0)
    return NI_HANG_NO_DATA_AT_ALL;
  NI_EACH(const struct ni_ras_trouble, t, v->trouble, v->n) {
    hangs |= t->hangs;
    stands |= ni_ras_is_wait(t) && t->still_ns > 0;
  }
  if (hangs)
    return NI_HANG_LIKELY;
  if (!v->apart_ns || gone || v->comms == 0)
    return NI_HANG_CANNOT_TELL;
  if (stands)
    return NI_HANG_NOT_YET;
  return v->processes && v->moved == v->processes ? NI_HANG_NO_HANG : NI_HANG_CANNOT_TELL;
}

int ni_ras_judge(struct ni_ras_verdict *v, struct ni_ras_look *now, const struct ni_ras_look *before,
                 uint64_t limit_ns) {
  struct look_pair p = {.now = now, .before = before && before->ns < now->ns ? before : NULL};
  *v = (struct ni_ras_verdict){
      .look = now, .limit_ns = limit_ns, .apart_ns = p.before ? now->ns - before->ns : 0};
  free(now->still_since);
  now->still_since = calloc(now->ras.n_comms + 1, sizeof *now->still_since);
  int e = now->still_since ? find_moved(&p) : -ENOMEM;
  for (size_t i = 0; e == 0 && i < now->ras.n_comms; i++)
    now->still_since[i] = standing_since(&p, &now->ras.comm[i]);
  if (e == 0)
    e = find_troubles(v, &p);
  if (e == 0)
    count_processes(v, &p);
  free_pair(&p);
  if (e < 0)
    return e;
  v->still_ns = all_standing_ns(v);
  v->answer = decide_answer(v);
  return 0;
}

void ni_ras_verdict_free(struct ni_ras_verdict *v) {
  free(v->trouble);
  *v = (struct ni_ras_verdict){0};
}

void ni_ras_look_free(struct ni_ras_look *look) {
  ni_ras_free(&look->ras);
  free(look->still_since);
  *look = (struct ni_ras_look){0};
}
