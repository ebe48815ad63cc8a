#include "hosts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "gpu_clock.h"
#include "steps.h"
#include "straight.h"

enum { LEAST_OF_A_SEAT = 4 };

int64_t ni_clocks_host(struct ni_clocks *c, uint32_t run, const char *name) {
  const uint64_t hash = ni_hash_text(ni_hash(0, run), name);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&c->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (c->host[k].run == run && strcmp(c->host[k].name, name) == 0)
      return k;
  if (!ni_array_room(c->host, c->n_hosts, c->cap_hosts) || ni_index_add(&c->at_hash, hash, c->n_hosts) < 0)
    return -ENOMEM;
  struct ni_clocks_host *h = &c->host[c->n_hosts];
  *h = (struct ni_clocks_host){.name = strdup(name), .run = run, .reference = c->n_hosts};
  return h->name ? (int64_t)c->n_hosts++ : -ENOMEM;
}

int ni_clocks_seat(struct ni_clocks *c, const struct ni_clocks_seat *s) {
  if (!s->anchors->n)
    return 0;
  if (!ni_array_room(c->seat, c->n_seats, c->cap_seats))
    return -ENOMEM;
  c->seat[c->n_seats++] = *s;
  return 0;
}

/* ---- who sits beside whom ---- */

static int by_run_and_name(const void *a, const void *b, void *clocks) {
  const struct ni_clocks *c = clocks;
  const struct ni_clocks_host *x = &c->host[*(const uint32_t *)a], *y = &c->host[*(const uint32_t *)b];
  return x->run != y->run ? (x->run < y->run ? -1 : 1) : strcmp(x->name, y->name);
}

static uint32_t run_of_seat(const struct ni_clocks *c, const struct ni_clocks_seat *s) {
  return c->host[s->host].run;
}

static int by_rank(const void *a, const void *b, void *clocks) {
  const struct ni_clocks_seat *x = a, *y = b;
  const uint32_t p = run_of_seat(clocks, x), q = run_of_seat(clocks, y);
  return p != q ? (p < q ? -1 : 1) : NI_BY(x, y, hash, n_ranks, rank, since_ns, host);
}

static int by_life(const void *a, const void *b, void *clocks) {
  const struct ni_clocks_seat *x = a, *y = b;
  const uint32_t p = run_of_seat(clocks, x), q = run_of_seat(clocks, y);
  return p != q ? (p < q ? -1 : 1) : NI_BY(x, y, hash, n_ranks, lives, life, rank);
}

static bool is_same_rank(const struct ni_clocks *c, const struct ni_clocks_seat *a,
                         const struct ni_clocks_seat *b) {
  return run_of_seat(c, a) == run_of_seat(c, b) && a->hash == b->hash && a->n_ranks == b->n_ranks &&
      a->rank == b->rank;
}

static bool is_same_life(const struct ni_clocks *c, const struct ni_clocks_seat *a,
                         const struct ni_clocks_seat *b) {
  return run_of_seat(c, a) == run_of_seat(c, b) && a->hash == b->hash && a->n_ranks == b->n_ranks &&
      a->lives == b->lives && a->life == b->life;
}

static void number_lives(struct ni_clocks *c) {
  if (c->n_seats > 1)
    qsort_r(c->seat, c->n_seats, sizeof *c->seat, by_rank, c);
  for (size_t i = 0, end; i < c->n_seats; i = end) {
    for (end = i + 1; end < c->n_seats && is_same_rank(c, &c->seat[end], &c->seat[i]); end++) {}
    for (size_t k = i; k < end; k++) {
      c->seat[k].lives = (uint32_t)(end - i);
      c->seat[k].life = (uint32_t)(k - i);
    }
  }
  if (c->n_seats > 1)
    qsort_r(c->seat, c->n_seats, sizeof *c->seat, by_life, c);
}

/* ---- what they did together ---- */

struct marks {
  struct ni_clocks_mark *item;
  size_t n, cap;
};

static NI_ORDER_BY(by_operation, struct ni_clocks_mark, comm, func, sn, bytes, host, start_ns);

/*
 * All that those ranks of one life kept, of no more operations than fit; seats: of all that are compared.
 */
static int add_life(struct marks *m, const struct ni_clocks_seat *s, size_t n, uint32_t comm, size_t seats) {
  const size_t most = NI_MATCH_ENTRIES / seats > LEAST_OF_A_SEAT ? NI_MATCH_ENTRIES / seats : LEAST_OF_A_SEAT;
  uint32_t halved = 0;
  for (size_t i = 0; i < n; i++) {
    size_t kept = most + 1;
    while (kept > most && halved < 63) {
      kept = 0;
      for (uint32_t k = 0; k < s[i].anchors->n; k++)
        kept += s[i].anchors->item[k].pick <= UINT64_MAX >> halved;
      halved += kept > most;
    }
  }
  for (size_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < s[i].anchors->n; k++) {
      const struct ni_anchor *x = &s[i].anchors->item[k];
      if (x->pick > UINT64_MAX >> halved)
        continue;
      if (!ni_array_room(m->item, m->n, m->cap))
        return -ENOMEM;
      m->item[m->n++] =
          (struct ni_clocks_mark){comm, x->func, s[i].host, x->sn, x->bytes, x->start_ns, x->end_ns};
    }
  return 0;
}

/*
 * Gathers the operations of these seats, which belong to one run: those that several hosts did, each host's
 * once.
 */
static int gather_marks(const struct ni_clocks *c, const struct ni_clocks_seat *s, size_t n,
                        struct marks *m) {
  size_t kept = 0;
  uint32_t comm = 0;
  int e = 0;
  for (size_t i = 0, end; e == 0 && i < n; i = end, comm++) {
    bool several = false;
    for (end = i + 1; end < n && is_same_life(c, &s[end], &s[i]); end++)
      several |= s[end].host != s[i].host;
    if (several)
      e = add_life(m, s + i, end - i, comm, n);
  }
  if (m->n > 1)
    qsort(m->item, m->n, sizeof *m->item, by_operation);
  for (size_t i = 0; i < m->n; i++) {
    struct ni_clocks_mark *x = &m->item[i], *last = kept ? &m->item[kept - 1] : NULL;
    const bool same = last && NI_BY(last, x, comm, func, sn, bytes, host) == 0;
    if (same && x->start_ns > last->start_ns)
      last->start_ns = x->start_ns;
    if (same && x->end_ns < last->end_ns)
      last->end_ns = x->end_ns;
    if (!same)
      m->item[kept++] = *x;
  }
  m->n = kept;
  return e;
}

/* ---- lines ---- */

static uint32_t host_of(void *arg, uint32_t member) {
  (void)arg;
  return member;
}

static int fill_match(struct ni_match *match, const struct marks *m) {
  int e = ni_match_init(match, m->n);
  for (size_t i = 0; e == 0 && i < m->n; i++) {
    const struct ni_clocks_mark *x = &m->item[i];
    const uint64_t key = ni_match_key(ni_mix((uint64_t)x->comm << 8 | x->func), 0, "", x->sn, x->bytes);
    const struct ni_match_entry entry = {.start_ns = x->start_ns, .end_ns = x->end_ns, .member = x->host};
    e = ni_match_add(match, key, &entry);
  }
  return e;
}

static int fit_hosts(struct ni_straight *s, uint32_t reference) {
  for (uint32_t i = 0; i < s->n_hosts; i++)
    s->clock[i].gpu_ns = 0;
  s->reference = reference;
  return ni_straight_fit(s);
}

struct host_place {
  double ahead;
  uint32_t host;
};

static NI_ORDER_BY(by_ahead, struct host_place, ahead, host);

/*
 * Of those aligned the one whose clock is in the middle; of the two in the middle the one that stands first.
 * room: one a host.
 */
static uint32_t middle_of(const struct ni_straight *s, struct host_place *room) {
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_hosts; i++)
    if (s->clock[i].aligned)
      room[n++] = (struct host_place){s->clock[i].offset_ns, i};
  qsort(room, n, sizeof *room, by_ahead);
  const uint32_t low = room[(n - 1) / 2].host, high = room[n / 2].host;
  return low < high ? low : high;
}

/* An offset that is less than can be known is left as it is. */
static bool is_off(const struct ni_host_clock *c) {
  const double at[] = {ni_clock_ahead(c, c->first_ns), ni_clock_ahead(c, c->last_ns)};
  const int64_t scatter = c->spread_ns > NI_CLOCKS_LEAST_NS ? c->spread_ns : NI_CLOCKS_LEAST_NS;
  const double known = (double)(c->error_ns < scatter ? c->error_ns : scatter);
  return c->n_steps || fabs(at[0]) > known || fabs(at[1]) > known;
}

static void set_sync_times(struct ni_straight *s, const struct marks *m) {
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (uint32_t i = 0; i < s->n_hosts; i++) {
    s->clock[i].first_ns = INT64_MAX;
    s->clock[i].last_ns = INT64_MIN;
  }
  for (size_t i = 0; i < m->n; i++) {
    struct ni_host_clock *c = &s->clock[m->item[i].host];
    if (m->item[i].start_ns < c->first_ns)
      c->first_ns = m->item[i].start_ns;
    if (m->item[i].end_ns > c->last_ns)
      c->last_ns = m->item[i].end_ns;
    if (m->item[i].start_ns < first)
      first = m->item[i].start_ns;
    if (m->item[i].end_ns > last)
      last = m->item[i].end_ns;
  }
  s->epoch_ns = m->n ? first / 2 + last / 2 : 0;
}

/* What the alignment of a run works on; by the number of a host in it. */
struct alignment {
  struct ni_straight s;
  struct ni_host_clock *result;
  struct host_place *room;
  uint32_t *group, groups; /* from 1 on; 0: of none yet */
};

/*
 * Aligns host i, and all that met it, directly or by others: a group. Returns how many it has, or -ENOMEM;
 * their references are told by order.
 */
static int64_t align_group(struct ni_clocks *c, struct alignment *a, uint32_t i, const uint32_t *order) {
  struct ni_host_clock *clock = a->s.clock;
  const bool met_nobody = clock[i].first_ns == INT64_MAX;
  int64_t members = 0;
  int e = 0;
  a->groups++;
  if (met_nobody)
    clock[i] = (struct ni_host_clock){.aligned = true, .via = i, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
  else if ((e = fit_hosts(&a->s, i)) == 0)
    e = fit_hosts(&a->s, middle_of(&a->s, a->room));
  if (e < 0)
    return e;
  for (uint32_t k = met_nobody ? i : 0, end = met_nobody ? i + 1 : a->s.n_hosts; k < end; k++) {
    if (!clock[k].aligned)
      continue;
    members++;
    a->group[k] = a->groups;
    a->result[k] = clock[k];
    c->host[order[k]].reference = order[met_nobody ? i : a->s.reference];
  }
  return members;
}

/*
 * Aligns the hosts of one run, order[0..n): those that are joined with each other, one group after the other.
 */
static int align_run(struct ni_clocks *c, const uint32_t *order, uint32_t n, struct marks *m) {
  struct ni_match match = {0};
  struct ni_host_clock *clock = calloc(n, sizeof *clock);
  struct alignment a = {.s = {.clock = clock,
                              .n_hosts = n,
                              .match = &match,
                              .host_of = host_of,
                              .since_ns = INT64_MIN,
                              .until_ns = INT64_MAX},
                        .result = calloc(n, sizeof *a.result),
                        .room = calloc(n, sizeof *a.room),
                        .group = calloc(n, sizeof *a.group)};
  int64_t largest = 0;
  uint32_t best = 0;
  const bool has_memory = clock && a.result && a.room && a.group;
  int e = has_memory ? 0 : -ENOMEM;
  if (e == 0)
    e = ni_clocks_find_steps(m->item, m->n, clock, n, NI_CLOCKS_STEP_NS + 2 * c->noise_ns);
  if (e == 0)
    e = ni_clocks_remove_steps(m->item, m->n, clock, n);
  if (e == 0)
    set_sync_times(&a.s, m);
  if (e == 0)
    e = fill_match(&match, m);
  for (uint32_t i = 0; e == 0 && i < n; i++) {
    if (a.group[i])
      continue;
    const int64_t members = align_group(c, &a, i, order);
    if (members < 0)
      e = (int)members;
    if (members > largest) {
      largest = members;
      best = a.groups;
    }
  }
  for (uint32_t i = 0; e == 0 && i < n; i++) {
    struct ni_clocks_host *h = &c->host[order[i]];
    h->clock = a.result[i];
    h->clock.via = order[a.result[i].via];
    h->joined = a.group[i] == best;
    h->off = is_off(&h->clock);
    c->any |= h->off;
  }
  ni_match_free(&match);
  free(clock);
  free(a.result);
  free(a.room);
  free(a.group);
  return e;
}

/* place: the number of each host among those of its run. */
static int align_found_run(struct ni_clocks *c, const uint32_t *order, uint32_t n, const uint32_t *place,
                           const struct ni_clocks_seat *s, size_t n_seats) {
  struct marks m = {0};
  if (n > NI_STRAIGHT_HOSTS) {
    c->too_many = true;
    return 0;
  }
  int e = n > 1 ? gather_marks(c, s, n_seats, &m) : 0;
  for (size_t i = 0; i < m.n; i++)
    m.item[i].host = place[m.item[i].host];
  if (m.n > 1)
    qsort(m.item, m.n, sizeof *m.item, by_operation);
  if (e == 0 && n > 1)
    e = align_run(c, order, n, &m);
  if (n == 1)
    c->host[order[0]].joined = true;
  free(m.item);
  return e;
}

int ni_clocks_find(struct ni_clocks *c) {
  uint32_t *place = calloc(c->n_hosts + 1, sizeof *place);
  c->order = ni_order(c->n_hosts, by_run_and_name, c);
  int e = place && c->order ? 0 : -ENOMEM;
  if (e == 0)
    number_lives(c);
  size_t seat = 0;
  for (uint32_t i = 0, end; e == 0 && i < c->n_hosts; i = end) {
    const uint32_t run = c->host[c->order[i]].run;
    for (end = i; end < c->n_hosts && c->host[c->order[end]].run == run; end++)
      place[c->order[end]] = end - i;
    const size_t first = seat;
    while (seat < c->n_seats && run_of_seat(c, &c->seat[seat]) == run)
      seat++;
    e = align_found_run(c, c->order + i, end - i, place, seat > first ? &c->seat[first] : NULL, seat - first);
  }
  free(place);
  free(c->seat);
  c->seat = NULL;
  c->n_seats = c->cap_seats = 0;
  return e;
}

static const struct ni_who_member *who_of_member(const struct ni_ledger *l, size_t i) {
  return l->member[i]->who ? l->member[i]->who : &l->who.member[i];
}

/* Copies of the anchors of a log whose GPU times are not right, as times of its host. */
static int correct_stamps(struct ni_anchors *to, const struct ni_anchors *a, const struct ni_gpu_clock *c) {
  int e = 0;
  to->halved = a->halved;
  for (uint32_t i = 0; e == 0 && i < a->n; i++) {
    struct ni_anchor x = a->item[i];
    const int64_t by_ns = x.stated_ns ? ni_gpu_clock_correction(c, x.stated_ns, x.start_ns) : 0;
    x.start_ns += by_ns;
    x.end_ns += by_ns;
    e = ni_anchors_add(to, &x);
  }
  return e;
}

/* Of each member the anchors by which it is compared: its own, or those in right[], which are put right. */
static int correct_anchors(const struct ni_ledger *l, const struct ni_anchors **of,
                           struct ni_anchors *right) {
  struct ni_gpu_seat *seat = calloc(l->n_members + 1, sizeof *seat);
  const struct ni_gpu_clock **clock = calloc(l->n_members + 1, sizeof(struct ni_gpu_clock *));
  struct ni_gpu_units units = {0};
  int e = seat && clock ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < l->n_members; i++) {
    const struct ni_who_member *m = who_of_member(l, i);
    seat[i] = (struct ni_gpu_seat){m->process, m->hash, m->rank, &l->member[i]->anchors.gpu, &clock[i]};
  }
  if (e == 0)
    e = ni_gpu_units_find(&units, seat, l->n_members);
  for (size_t i = 0; e == 0 && i < l->n_members; i++) {
    of[i] = clock[i] ? &right[i] : &l->member[i]->anchors;
    if (clock[i])
      e = correct_stamps(&right[i], &l->member[i]->anchors, clock[i]);
  }
  ni_gpu_units_free(&units);
  free(clock);
  free(seat);
  return e;
}

static int seat_members(struct ni_clocks *c, const struct ni_ledger *l, const struct ni_anchors **of) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < l->n_members; i++) {
    const struct ni_ledger_member *x = l->member[i];
    const struct ni_who_member *m = who_of_member(l, i);
    const struct ni_who_process *p = &l->who.process[m->process];
    const int64_t host = ni_clocks_host(c, x->process->file->run, p->host);
    if (host < 0)
      return (int)host;
    e = ni_clocks_seat(c,
                       &(struct ni_clocks_seat){.hash = m->hash,
                                                .since_ns = (int64_t)(m->init_ns ? m->init_ns : p->start_ns),
                                                .n_ranks = m->n_ranks,
                                                .rank = m->rank,
                                                .host = (uint32_t)host,
                                                .anchors = of[i]});
  }
  return e;
}

int ni_clocks_of_ledger(struct ni_clocks *c, const struct ni_ledger *l) {
  const struct ni_anchors **of = calloc(l->n_members + 1, sizeof(struct ni_anchors *));
  struct ni_anchors *right = calloc(l->n_members + 1, sizeof *right);
  int e = of && right ? correct_anchors(l, of, right) : -ENOMEM;
  if (e == 0)
    e = seat_members(c, l, of);
  if (e == 0)
    e = ni_clocks_find(c);
  for (size_t i = 0; right && i < l->n_members; i++)
    ni_anchors_free(&right[i]);
  free(right);
  free(of);
  return e;
}

void ni_clocks_free(struct ni_clocks *c) {
  for (uint32_t i = 0; i < c->n_hosts; i++)
    free(c->host[i].name);
  free(c->host);
  free(c->order);
  free(c->seat);
  ni_index_free(&c->at_hash);
  *c = (struct ni_clocks){0};
}

static void wire_host(struct ni_wire *w, struct ni_clocks_host *h) {
  struct ni_host_clock *x = &h->clock;
  NI_WIRE(w, &h->reference, &h->joined, &h->off, &x->aligned, &x->offset_ns, &x->drift, &x->epoch_ns,
          &x->error_ns);
  NI_WIRE(w, &x->spread_ns, &x->first_ns, &x->last_ns);
  ni_wire_below(w, &x->n_steps, NI_CLOCK_STEPS + 1);
  for (uint32_t k = 0; k < x->n_steps && !w->bad; k++)
    NI_WIRE(w, &x->step[k].before_ns, &x->step[k].after_ns, &x->step[k].by_ns);
}

void ni_clocks_wire(struct ni_wire *w, struct ni_clocks *c) {
  uint32_t n = c->n_hosts;
  NI_WIRE(w, &n, &c->any, &c->too_many);
  for (uint32_t i = 0; i < n && !w->bad; i++) {
    uint32_t run = w->load ? 0 : c->host[i].run;
    char *name = w->load ? NULL : c->host[i].name;
    NI_WIRE(w, &run, &name);
    if (w->load)
      w->bad = w->bad || !name || ni_clocks_host(c, run, name) != i;
    if (!w->bad)
      wire_host(w, &c->host[i]);
    if (w->load)
      free(name);
  }
  if (w->load && !w->bad)
    w->bad = !(c->order = ni_order(c->n_hosts, by_run_and_name, c));
}

const struct ni_host_clock *ni_clocks_of(const struct ni_clocks *c, uint32_t run, const char *host) {
  const uint64_t hash = ni_hash_text(ni_hash(0, run), host);
  uint32_t k;
  if (!c->any)
    return NULL;
  for (size_t at = 0; (k = ni_index_next(&c->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (c->host[k].run == run && strcmp(c->host[k].name, host) == 0)
      return c->host[k].off ? &c->host[k].clock : NULL;
  return NULL;
}

int64_t ni_clocks_widest(const struct ni_clocks *c) {
  double most = 0;
  for (uint32_t i = 0; i < c->n_hosts; i++) {
    const struct ni_host_clock *x = &c->host[i].clock;
    double steps = 0;
    if (!c->host[i].off)
      continue;
    for (uint32_t k = 0; k < x->n_steps; k++)
      steps += fabs((double)x->step[k].by_ns);
    most =
        fmax(most, steps + fmax(fabs(ni_clock_ahead(x, x->first_ns)), fabs(ni_clock_ahead(x, x->last_ns))));
  }
  return (int64_t)most;
}
