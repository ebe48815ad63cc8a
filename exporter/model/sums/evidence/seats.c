#include "seats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"

#define SEATS_MIN 24         /* operations of a seat: of fewer, chance has the most part */
#define SEATS_US 3.0         /* it is late by so much in the mean: stamps are no more exact than that */
#define SEATS_SIGMA 5.0      /* and by so many standard errors, */
#define SEATS_APART 8.0      /* and by so many times what the others lie apart; */
#define SEATS_APART_HOST 4.0 /* by less where most ranks of its host are late: that is no chance */
/*
 * It comes last to so many of its operations, beyond its share by chance. A pause now and then makes it last
 * to fewer, and so does a slow message.
 */
#define SEATS_LAST 0.2
#define SEATS_LAST_MESSAGES 0.25
#define SEATS_OF_RUN 0.006  /* of the run: what costs less is not named */
#define SEATS_FEW 8u        /* ranks: of fewer nobody knows how far they lie apart */
#define SEATS_PASSED_ON 0.5 /* it only passes on its lateness if it waited for so much of that elsewhere */
#define SEATS_ALIKE 0.02    /* bytes of an operation of peers differ by no more, as those of links */
#define SEATS_OF_HOST 0.75 /* of a host's ranks are late: it is the host, as for own time (blame/causes.h), */
#define SEATS_STANDS_OUT \
  2.0 /* unless one of them is late by so many times their mean: then it is that rank */
/* A loss is named if it is so much of the largest one, whose waits turn others' noise into small ones. */
#define SEATS_OF_MOST 0.25
/* These quantiles are both of seats that are not late, and so many standard deviations from each other. */
#define SEATS_SPREAD_LOW 0.1
#define SEATS_SPREAD_HIGH 0.4
#define SEATS_SPREAD 1.03

enum { PEERS = 64 }; /* of a rank that are asked, about */

struct member_key { /* a member, to be numbered */
  uint32_t comm, process, member;
};
static NI_ORDER_BY(by_seat, struct member_key, comm, process, member);

int ni_seats_build(struct ni_run *r, struct ni_summary *s) {
  const uint32_t n = r->who.n_members;
  struct member_key *key = malloc((n + 1) * sizeof *key);
  s->seat = calloc(n + 1, sizeof *s->seat);
  r->seat_at = calloc(n + 1, sizeof *r->seat_at);
  if (!key || !s->seat || !r->seat_at) {
    free(key);
    return -ENOMEM;
  }
  for (uint32_t i = 0; i < n; i++) {
    const struct ni_who_member *m = &r->who.member[i];
    key[i] = (struct member_key){r->comm_at[m->comm], r->process_at[m->process], i};
  }
  qsort(key, n, sizeof *key, by_seat);
  for (uint32_t i = 0; i < n; i++) {
    const bool same = i > 0 && key[i].comm == key[i - 1].comm && key[i].process == key[i - 1].process;
    if (!same)
      s->seat[s->n_seats++] = (struct ni_seat){.comm = key[i].comm, .process = key[i].process};
    r->seat_at[key[i].member] = (uint32_t)s->n_seats - 1;
  }
  free(key);
  return 0;
}

/* What one seat shows. */
struct seat_lateness {
  /* beyond what is usual there: of an operation, over all of them; 0: it does not stand out */
  double us, lost_us;
  bool late;      /* so much that it is worth a look */
  bool alone;     /* so much that it stands out without others of its host */
  bool passed_on; /* it waited elsewhere */
  bool together;  /* it is late like all of another communicator within its host */
};

struct seat_judge {
  const struct ni_summary *s;
  const double *slow_us;
  struct seat_lateness *view; /* by seat */
  size_t *of_comm;            /* first seat of a communicator; one more at the end */
  uint32_t *of_process;       /* seats by process */
  size_t *first;              /* of a process in of_process; one more at the end */
  double *waited;             /* by seat */
  double *apart;              /* by communicator: how far such seats lie apart */
  double *chance_us; /* by communicator: what is waited for one of such seats alone in an operation */
  double *x;         /* scratch: seats or communicators */
  double least_us;   /* a loss that is worth a look */
};

static NI_ORDER_OF(by_number, double);

static int index_seats(struct seat_judge *w) {
  const struct ni_summary *s = w->s;
  w->view = calloc(s->n_seats + 1, sizeof *w->view);
  w->of_comm = calloc(s->n_comms + 2, sizeof *w->of_comm);
  w->of_process = calloc(s->n_seats + 1, sizeof *w->of_process);
  w->first = calloc(s->n_processes + 2, sizeof *w->first);
  w->x = malloc((s->n_seats + s->n_comms + 1) * sizeof *w->x);
  w->waited = calloc(s->n_seats + 1, sizeof *w->waited);
  w->apart = calloc(s->n_comms + 1, sizeof *w->apart);
  w->chance_us = calloc(s->n_comms + 1, sizeof *w->chance_us);
  const bool has_index = w->of_comm && w->of_process && w->first;
  const bool has_figures = w->view && w->waited && w->apart && w->chance_us;
  if (!has_index || !has_figures || !w->x)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_seats; i++) {
    w->of_comm[s->seat[i].comm + 1]++;
    w->first[s->seat[i].process + 2]++;
  }
  for (size_t i = 0; i < s->n_comms; i++)
    w->of_comm[i + 1] += w->of_comm[i];
  for (size_t i = 0; i < s->n_processes; i++)
    w->first[i + 2] += w->first[i + 1];
  for (uint32_t i = 0; i < s->n_seats; i++)
    w->of_process[w->first[s->seat[i].process + 1]++] = i;
  return 0;
}

static void free_index(struct seat_judge *w) {
  free(w->view);
  free(w->of_comm);
  free(w->of_process);
  free(w->first);
  free(w->waited);
  free(w->apart);
  free(w->chance_us);
  free(w->x);
}

static double mean_us(const struct ni_seat *x) { return x->behind_us / (double)x->met; }

static double error_us(const struct ni_seat *x) {
  const double n = (double)x->met, mean = mean_us(x), var = x->behind_us2 / n - mean * mean;
  return var > 0 ? sqrt(var / n) : 0;
}

static bool is_same_kind(const struct ni_comm_row *a, const struct ni_comm_row *b) {
  const bool is_same_role = a->type == b->type && a->role == b->role;
  return is_same_role && a->n_ranks == b->n_ranks && a->run == b->run;
}

static size_t gather_means(const struct seat_judge *w, uint32_t comm, double *x) {
  size_t n = 0;
  for (size_t i = w->of_comm[comm]; i < w->of_comm[comm + 1]; i++)
    if (w->s->seat[i].met >= SEATS_MIN)
      x[n++] = mean_us(&w->s->seat[i]);
  return n;
}

/*
 * How far the seats of such communicators lie apart that are not late: 10 and 40 % of them are below two
 * numbers 1.03 deviations from each other. GPUs are not equally fast, and that is in it.
 */
static double measure_apart(const struct seat_judge *w, uint32_t comm) {
  const struct ni_summary *s = w->s;
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_comms; i++)
    if (is_same_kind(&s->comm[comm], &s->comm[i]))
      n += gather_means(w, i, w->x + n);
  if (n < SEATS_FEW)
    return 0;
  qsort(w->x, n, sizeof *w->x, by_number);
  const size_t low = (size_t)(SEATS_SPREAD_LOW * (double)(n - 1) + 0.5);
  const size_t high = (size_t)(SEATS_SPREAD_HIGH * (double)(n - 1) + 0.5);
  return (w->x[high] - w->x[low]) / SEATS_SPREAD;
}

/*
 * Somebody is the last one in each operation, so others wait a little for any rank alone: the median of such
 * seats, of one operation. What is waited for a late rank has that much in it that nobody would save.
 */
static double measure_chance(const struct seat_judge *w, uint32_t comm) {
  const struct ni_summary *s = w->s;
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_comms; i++)
    for (size_t k = w->of_comm[i]; is_same_kind(&s->comm[comm], &s->comm[i]) && k < w->of_comm[i + 1]; k++)
      if (s->seat[k].met >= SEATS_MIN)
        w->x[n++] = s->seat[k].alone_us / (double)s->seat[k].met;
  qsort(w->x, n, sizeof *w->x, by_number);
  return n ? w->x[(n - 1) / 2] : 0;
}

/* Once a kind: a job of 10,000 ranks has thousands of communicators of few kinds. */
static void fill_kinds(struct seat_judge *w) {
  const struct ni_summary *s = w->s;
  for (uint32_t i = 0; i < s->n_comms; i++) {
    uint32_t first = 0;
    while (!is_same_kind(&s->comm[first], &s->comm[i]))
      first++;
    w->apart[i] = first < i ? w->apart[first] : measure_apart(w, i);
    w->chance_us[i] = first < i ? w->chance_us[first] : measure_chance(w, i);
  }
}

static double find_cost_us(const struct seat_judge *w, const struct ni_seat *x) {
  return fmax(0, x->alone_us - w->chance_us[x->comm] * (double)x->met);
}

/* Messages have no part in seats: their communicators met nobody. */
static bool has_messages(const struct seat_judge *w, uint32_t process) {
  for (size_t k = w->first[process]; k < w->first[process + 1]; k++)
    if (!w->s->seat[w->of_process[k]].met)
      return true;
  return false;
}

/* It comes last so often that it is no chance. */
static bool is_often_last(const struct seat_judge *w, const struct ni_seat *x, size_t ranks) {
  const double by_chance = 1.0 / (double)ranks;
  const double beyond = has_messages(w, x->process) ? SEATS_LAST_MESSAGES : SEATS_LAST;
  return (double)x->last >= (by_chance + beyond * (1 - by_chance)) * (double)x->met;
}

/* Compares the seats of one communicator with each other. */
static void compare_seats(struct seat_judge *w, uint32_t comm) {
  const struct ni_summary *s = w->s;
  const double apart = w->apart[comm];
  const size_t n = gather_means(w, comm, w->x);
  /* whoever is late may have waited for those who are between its ranks */
  const bool is_told =
      s->comm[comm].neighbours || !s->process[s->seat[w->of_comm[comm]].process].may_wait_unseen;
  if (n < 2 || !is_told)
    return;
  qsort(w->x, n, sizeof *w->x, by_number);
  /* the peers of a late one come early by as much as there are few of them */
  const double baseline = fmax(0, w->x[(n - 1) / 4]);
  for (size_t i = w->of_comm[comm]; i < w->of_comm[comm + 1]; i++) {
    const struct ni_seat *x = &s->seat[i];
    if (x->met < SEATS_MIN)
      continue;
    const double us = mean_us(x) - baseline;
    if (us < SEATS_US || us < SEATS_SIGMA * error_us(x))
      continue;
    struct seat_lateness *v = &w->view[i];
    v->us = us;
    v->lost_us = us * (double)x->met;
    const bool is_one_rank = s->process[x->process].ranks <= 1;
    v->late = v->lost_us >= w->least_us && us >= SEATS_APART_HOST * apart && is_one_rank;
    v->alone = us >= SEATS_APART * apart && is_often_last(w, x, n);
  }
}

/* How late a process is in its other communicators, at most. */
static double find_lateness_elsewhere(const struct seat_judge *w, uint32_t process, uint32_t but) {
  double most = 0;
  for (size_t k = w->first[process]; k < w->first[process + 1]; k++) {
    const uint32_t i = w->of_process[k];
    if (w->s->seat[i].comm != but)
      most = fmax(most, w->view[i].lost_us);
  }
  return most;
}

/*
 * What delayed a process in a communicator: waits for others, and slow transfers. How long it waited for
 * messages is not known; but a sender that is late elsewhere may have made it wait for as long.
 */
static double find_waited(const struct seat_judge *w, uint32_t seat) {
  const struct ni_summary *s = w->s;
  const uint32_t comm = s->seat[seat].comm, process = s->seat[seat].process;
  double most = 0;
  for (size_t i = w->of_comm[comm]; i < w->of_comm[comm + 1]; i++) {
    const bool messages = !s->seat[i].met && !s->seat[seat].met;
    if (s->seat[i].process == process)
      continue;
    const double later = w->view[i].lost_us - w->view[seat].lost_us;
    most = fmax(most, messages ? find_lateness_elsewhere(w, s->seat[i].process, comm) : later);
  }
  return most + w->slow_us[comm];
}

/*
 * What its peers in `here` waited for, in communicators of the same kind as that of `there`: the median. A
 * wait that they had as well did not make it late.
 */
static double find_peers_waited(const struct seat_judge *w, uint32_t here, uint32_t there) {
  const struct ni_summary *s = w->s;
  const uint32_t comm = s->seat[here].comm;
  const struct ni_comm_row *kind = &s->comm[s->seat[there].comm];
  const size_t every = (w->of_comm[comm + 1] - w->of_comm[comm]) / PEERS + 1;
  size_t n = 0;
  for (size_t i = w->of_comm[comm]; i < w->of_comm[comm + 1]; i += every) {
    const uint32_t peer = s->seat[i].process;
    if (i == here)
      continue;
    double most = 0;
    for (size_t k = w->first[peer]; k < w->first[peer + 1]; k++) {
      const uint32_t at = w->of_process[k];
      const bool is_such = is_same_kind(kind, &s->comm[s->seat[at].comm]) && s->seat[at].comm != comm;
      if (is_such)
        most = fmax(most, w->waited[at]);
    }
    w->x[n++] = most;
  }
  qsort(w->x, n, sizeof *w->x, by_number);
  return n ? w->x[(n - 1) / 2] : 0;
}

/* Most ranks of a communicator are as late elsewhere, and nobody was late in it. */
static bool are_together(const struct seat_judge *w, uint32_t comm, double least) {
  size_t members = 0, late = 0;
  for (size_t i = w->of_comm[comm]; i < w->of_comm[comm + 1]; i++) {
    if (w->view[i].lost_us >= least)
      return false;
    members++;
    late += find_lateness_elsewhere(w, w->s->seat[i].process, comm) >= least;
  }
  return late >= 2 && late >= SEATS_OF_HOST * (double)members;
}

static double get_operation_bytes(const struct ni_comm_row *c) {
  return c->timed ? (double)c->timed_bytes / (double)c->timed : 0;
}

/*
 * Its operations are larger than those of its peers: its ranks have more to do, as a replica with more of the
 * batch.
 */
static bool has_more_work(const struct seat_judge *w, uint32_t comm) {
  const struct ni_summary *s = w->s;
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_comms; i++)
    if (is_same_kind(&s->comm[comm], &s->comm[i]))
      w->x[n++] = get_operation_bytes(&s->comm[i]);
  qsort(w->x, n, sizeof *w->x, by_number);
  return get_operation_bytes(&s->comm[comm]) > (1 + SEATS_ALIKE) * w->x[(n - 1) / 2];
}

/* Whether another seat of its process explains why a seat is late. */
static void explain_by_seat(const struct seat_judge *w, uint32_t here, uint32_t there) {
  struct seat_lateness *v = &w->view[here];
  const double least = SEATS_PASSED_ON * v->lost_us;
  const uint32_t comm = w->s->seat[there].comm;
  v->passed_on |= w->waited[there] - find_peers_waited(w, here, there) >= least;
  if (!w->s->seat[there].met || !are_together(w, comm, least))
    return;
  if (w->s->comm[comm].one_host < 0 || has_more_work(w, comm))
    v->passed_on = true;
  else
    v->together = true;
}

static void explain_seat(const struct seat_judge *w, uint32_t seat) {
  const struct ni_seat *x = &w->s->seat[seat];
  for (size_t k = w->first[x->process]; k < w->first[x->process + 1]; k++) {
    const uint32_t there = w->of_process[k];
    if (w->s->seat[there].comm != x->comm)
      explain_by_seat(w, seat, there);
  }
}

/*
 * Where a quarter of the ranks or more come late, on more than one host, the program's order is why: they are
 * the stage of a pipeline that ends last.
 */
static void clear_many_late(const struct seat_judge *w, uint32_t comm) {
  const struct ni_summary *s = w->s;
  uint32_t late = 0, host = UINT32_MAX;
  const size_t from = w->of_comm[comm], to = w->of_comm[comm + 1];
  bool one_host = true;
  for (size_t i = from; i < to; i++) {
    const uint32_t h = s->process[s->seat[i].process].host;
    if (!w->view[i].late)
      continue;
    one_host &= late++ == 0 || h == host;
    host = h;
  }
  const bool many = to - from >= SEATS_FEW && late * 4 >= to - from && !one_host;
  for (size_t i = from; i < to && many; i++)
    w->view[i] = (struct seat_lateness){.us = 0};
}

/*
 * How late a process is by itself, by one of its communicators. One in which it is late alone comes before
 * those in which it is late with others of its host. Of several the one with the most operations tells,
 * because its ranks wait for each other there. The others have a few operations a step, which overlap
 * computing: the same lateness is waited for in one after the other, or hidden.
 */
static struct ni_late find_own_lateness(const struct seat_judge *w, uint32_t process) {
  struct ni_late l = {.of = process, .together = true};
  for (size_t k = w->first[process]; k < w->first[process + 1]; k++) {
    const struct ni_seat *x = &w->s->seat[w->of_process[k]];
    const struct seat_lateness *v = &w->view[w->of_process[k]];
    const bool together = v->together || !v->alone;
    if (!v->late || v->passed_on)
      continue;
    l.lost_us = fmax(l.lost_us, v->lost_us);
    if (together > l.together || (together == l.together && x->met <= l.met))
      continue;
    l.comm = x->comm;
    l.met = x->met;
    l.us = v->us;
    l.cost_us = find_cost_us(w, x);
    l.together = together;
  }
  return l;
}

static int by_loss(const void *a, const void *b) {
  const struct ni_late *x = a, *y = b;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  return x->host != y->host ? (int)y->host - (int)x->host : x->of < y->of ? -1 : x->of > y->of;
}

static void append_late_ranks(const struct seat_judge *w, struct ni_lates *out) {
  for (uint32_t i = 0; i < w->s->n_processes; i++) {
    struct ni_late l = find_own_lateness(w, i);
    l.at_most = w->first[i + 1] - w->first[i] == 1;
    if (l.lost_us > 0)
      out->item[out->n++] = l;
  }
}

/*
 * What others waited for the host, beyond the last rank elsewhere: the mean over communicators that it is
 * late in.
 */
static double find_host_cost(const struct seat_judge *w, uint32_t host) {
  const struct ni_summary *s = w->s;
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t c = 0; c < s->n_comms; c++) {
    double us = 0;
    bool any = false;
    for (size_t i = w->of_comm[c]; i < w->of_comm[c + 1]; i++) {
      if (s->process[s->seat[i].process].host != host)
        continue;
      us += s->seat[i].host_alone_us;
      any |= w->view[i].late && !w->view[i].passed_on;
    }
    if (any) {
      sum += us;
      n++;
    }
  }
  return n ? sum / n : 0;
}

/*
 * One of the host's ranks is late by itself in a communicator within the host, by a part of `most` that is no
 * noise. Then the others are late elsewhere because of it. (Where collectives overlap computing, `most`, a
 * sum over them, is several times what it is late by.)
 */
static bool has_one_late_rank(const struct seat_judge *w, const struct ni_lates *l, uint32_t host,
                              double most) {
  for (size_t i = 0; i < l->n; i++) {
    const struct ni_late *x = &l->item[i];
    const bool there =
        !x->host && w->s->process[x->of].host == host && w->s->comm[x->comm].one_host == (int32_t)host;
    if (there && !x->together && x->us * (double)x->met >= SEATS_OF_MOST * most)
      return true;
  }
  return false;
}

/* Those of the host that are late with others of it. */
static void drop_together(const struct seat_judge *w, struct ni_lates *l, uint32_t host) {
  size_t kept = 0;
  for (size_t i = 0; i < l->n; i++) {
    const struct ni_late *x = &l->item[i];
    const bool of_host = !x->host && w->s->process[x->of].host == host;
    if (!of_host || (!x->together && w->s->comm[x->comm].one_host == (int32_t)host))
      l->item[kept++] = *x;
  }
  l->n = kept;
}

/* Most of a host's ranks are late by themselves, and none of them stands out: one for all of them. */
static void join_late_hosts(const struct seat_judge *w, struct ni_lates *out) {
  const struct ni_summary *s = w->s;
  for (uint32_t h = 0; h < s->n_hosts && s->n_hosts > 1; h++) {
    struct ni_late x = {.host = true, .of = h};
    double most = 0, us = 0;
    for (uint32_t i = 0; i < s->n_processes; i++)
      x.there += s->process[i].host == h && w->first[i] < w->first[i + 1];
    for (size_t i = 0; i < out->n; i++) {
      const struct ni_late *l = &out->item[i];
      if (l->host || s->process[l->of].host != h)
        continue;
      x.late++;
      us += l->us;
      if (l->lost_us <= most)
        continue;
      most = l->lost_us;
      x.at_most = l->at_most;
      x.comm = l->comm;
      x.met = l->met;
      x.lost_us = most;
    }
    x.us = x.late ? us / x.late : 0;
    x.cost_us = find_host_cost(w, h);
    double all = 0;
    for (size_t i = 0; i < out->n; i++)
      if (!out->item[i].host && s->process[out->item[i].of].host == h)
        all += out->item[i].lost_us;
    const bool most_are_late = x.late >= 2 && x.late >= SEATS_OF_HOST * x.there;
    if (!most_are_late || most * x.late > SEATS_STANDS_OUT * all)
      continue;
    if (has_one_late_rank(w, out, h, most)) {
      drop_together(w, out, h);
      continue;
    }
    size_t kept = 0;
    for (size_t i = 0; i < out->n; i++)
      if (out->item[i].host || s->process[out->item[i].of].host != h)
        out->item[kept++] = out->item[i];
    out->n = kept;
    out->item[out->n++] = x;
  }
}

/* Late together, but not most of a host: which of them it is nobody knows; or not late enough by itself. */
static void drop_late_groups(struct ni_lates *l) {
  size_t kept = 0;
  for (size_t i = 0; i < l->n; i++)
    if (!l->item[i].together)
      l->item[kept++] = l->item[i];
  l->n = kept;
}

void ni_seats_find_spans(const struct ni_summary *s, struct ni_process_span *of) {
  for (uint32_t i = 0; i < s->n_processes; i++)
    of[i] = (struct ni_process_span){INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < s->n_seats; i++) {
    const struct ni_comm_row *c = &s->comm[s->seat[i].comm];
    struct ni_process_span *x = &of[s->seat[i].process];
    if (!c->operations)
      continue;
    x->first_us = c->first_us < x->first_us ? c->first_us : x->first_us;
    x->last_us = c->last_us > x->last_us ? c->last_us : x->last_us;
  }
}

int ni_seats_find_late(const struct ni_summary *s, const double *slow_us, struct ni_lates *out) {
  struct seat_judge w = {
      .s = s, .slow_us = slow_us, .least_us = SEATS_OF_RUN * (double)(s->last_us - s->first_us) / s->one_in};
  int e = index_seats(&w);
  *out = (struct ni_lates){.item = calloc(s->n_processes + s->n_hosts + 1, sizeof *out->item)};
  if (!out->item)
    e = -ENOMEM;
  if (e == 0) {
    fill_kinds(&w);
    for (uint32_t i = 0; i < s->n_comms; i++)
      compare_seats(&w, i);
    for (uint32_t i = 0; i < s->n_comms; i++)
      clear_many_late(&w, i);
    for (uint32_t i = 0; i < s->n_seats; i++)
      w.waited[i] = find_waited(&w, i);
    for (uint32_t i = 0; i < s->n_seats; i++)
      if (w.view[i].late)
        explain_seat(&w, i);
    append_late_ranks(&w, out);
    join_late_hosts(&w, out);
    drop_late_groups(out);
    if (out->n)
      qsort(out->item, out->n, sizeof *out->item, by_loss);
    while (out->n && out->item[out->n - 1].lost_us < SEATS_OF_MOST * out->item[0].lost_us)
      out->n--;
  }
  free_index(&w);
  return e;
}

int ni_seats_find_cost(const struct ni_summary *s, uint32_t process, uint32_t comm, double *out) {
  struct seat_judge w = {.s = s};
  const int e = index_seats(&w);
  *out = 0;
  for (size_t i = e == 0 ? w.of_comm[comm] : 0; e == 0 && i < w.of_comm[comm + 1]; i++) {
    if (s->seat[i].process != process)
      continue;
    w.chance_us[comm] = measure_chance(&w, comm);
    *out = find_cost_us(&w, &s->seat[i]);
  }
  free_index(&w);
  return e;
}

void ni_lates_free(struct ni_lates *l) { free(l->item); }
