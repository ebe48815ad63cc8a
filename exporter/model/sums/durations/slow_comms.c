#include "slow_comms.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/evidence/seat_findings.h"

/* operations and bytes of communicators that did the same work differ by no more */
#define ALIKE 0.02

static NI_ORDER_OF(by_number, double);

/* What one communicator did. Records without a kernel's time are in none of it, as in transfer_ns. */
struct comm_work {
  uint32_t comm, run;
  int type, n_ranks;
  double operations, bytes, transfer_ns;
};

static int by_shape(const void *a, const void *b) {
  const struct comm_work *x = a, *y = b;
  if (x->type != y->type)
    return x->type - y->type;
  return NI_BY(x, y, run, n_ranks, operations, bytes, comm);
}

/* Of two the lower one: then the other is measured by it. scratch has room for n. */
static double find_baseline_transfer(const struct comm_work *w, size_t n, double *scratch) {
  for (size_t i = 0; i < n; i++)
    scratch[i] = w[i].transfer_ns;
  qsort(scratch, n, sizeof *scratch, by_number);
  return n == 2 ? scratch[0] : (scratch[(n - 1) / 2] + scratch[n / 2]) / 2;
}

static bool is_same_work(const struct comm_work *a, const struct comm_work *b) {
  if (a->type != b->type || a->n_ranks != b->n_ranks || a->run != b->run)
    return false;
  return b->operations - a->operations <= ALIKE * b->operations &&
      fabs(b->bytes - a->bytes) <= ALIKE * fmax(a->bytes, b->bytes);
}

void ni_durations_peers_text(const struct ni_summary *s, size_t n_peers, char out[80]) {
  const char *like = s->steps_differ ? "like it, at equal sizes" : "that did the same work";
  if (n_peers == 2)
    snprintf(out, 80, "the other one %s", like);
  else
    snprintf(out, 80, "the median of %s %s", NI_COUNT(n_peers), like);
}

/*
 * Sampled logs have other operations of one communicator than of the next, and replicas serve other requests,
 * so what they come to cannot be compared: the same function and about the same size can, by the time a byte
 * takes. Sizes of a class are within a fifth of each other, so requests of any length find their like.
 */
#define SIZE_CLASSES 4.0  /* of a factor of two */
#define SLOW_OF_HOST 0.75 /* of the communicators within a host: then it is the host */
enum { SAMPLED_MIN = 8 }; /* of one function and class of sizes on a communicator */

static bool is_same_kind(const struct ni_comm_row *a, const struct ni_comm_row *b) {
  const bool is_same_role = a->type == b->type && a->role == b->role;
  return is_same_role && a->n_ranks == b->n_ranks && a->run == b->run;
}

struct comm_transfers { /* of a communicator */
  double us, peers_us;  /* what its transfers took, and those of its peers would have */
  size_t n_peers;
};

static bool is_slow(const struct comm_transfers *l) {
  return l->n_peers >= 2 && l->us > NI_FIND_TRANSFER * l->peers_us;
}

static bool is_same_class(const struct ni_group *a, const struct ni_group *b) {
  const bool is_same_function = a->type == b->type && a->kind == b->kind && strcmp(a->func, b->func) == 0;
  return is_same_function &&
      floor(SIZE_CLASSES * log2((double)a->msg_bytes)) == floor(SIZE_CLASSES * log2((double)b->msg_bytes));
}

struct class_transfers { /* of a communicator, of one function and class of sizes */
  double us, bytes;
  uint64_t met;
};

struct class_judge {
  const struct ni_summary *s;
  struct class_transfers *sum; /* by communicator; nothing between two classes */
  uint32_t *there;             /* those that have any */
  size_t n_there;
  double *x; /* scratch: communicators */
};

/*
 * Of slices [from, to), which are one class, those timed like that. A rank without a log may have come last:
 * then the least duration is no transfer.
 */
static void add_class(struct class_judge *w, size_t from, size_t to, enum ni_timing timing) {
  const struct ni_summary *s = w->s;
  w->n_there = 0;
  for (size_t i = from; i < to; i++) {
    const struct ni_slice *y = &s->by_comm[i];
    const struct ni_group *g = &s->group[y->group];
    const bool has_all_logs = (int64_t)s->comm[y->of].ranks_seen >= s->comm[y->of].n_ranks;
    if (g->timing != timing || !y->met || !has_all_logs)
      continue;
    struct class_transfers *t = &w->sum[y->of];
    if (!t->met)
      w->there[w->n_there++] = y->of;
    t->met += y->met;
    t->us += y->transfer_us;
    t->bytes += (double)g->msg_bytes * (double)y->met;
  }
}

static void compare_class(struct class_judge *w, struct comm_transfers *of) {
  const struct ni_summary *s = w->s;
  for (size_t i = 0; i < w->n_there; i++) {
    const struct class_transfers *mine = &w->sum[w->there[i]];
    size_t n = 0;
    for (size_t k = 0; k < w->n_there && mine->met >= SAMPLED_MIN; k++) {
      const struct class_transfers *y = &w->sum[w->there[k]];
      if (y->met >= SAMPLED_MIN && is_same_kind(&s->comm[w->there[i]], &s->comm[w->there[k]]))
        w->x[n++] = y->us / y->bytes;
    }
    if (n < 2)
      continue;
    qsort(w->x, n, sizeof *w->x, by_number);
    struct comm_transfers *l = &of[w->there[i]];
    l->us += mine->us;
    l->peers_us += (n == 2 ? w->x[0] : (w->x[(n - 1) / 2] + w->x[n / 2]) / 2) * mine->bytes;
    if (n > l->n_peers)
      l->n_peers = n;
  }
  for (size_t i = 0; i < w->n_there; i++)
    w->sum[w->there[i]] = (struct class_transfers){.met = 0};
}

static int compare_by_function(const struct ni_summary *s, struct comm_transfers *of) {
  struct class_judge w = {.s = s,
                          .sum = calloc(s->n_comms + 1, sizeof *w.sum),
                          .there = malloc((s->n_comms + 1) * sizeof *w.there),
                          .x = malloc((s->n_comms + 1) * sizeof *w.x)};
  const bool has_room = w.sum && w.there && w.x;
  for (size_t from = 0, to; has_room && from < s->n_by_comm; from = to) {
    const struct ni_group *first = &s->group[s->by_comm[from].group];
    for (to = from; to < s->n_by_comm && is_same_class(&s->group[s->by_comm[to].group], first); to++) {}
    for (unsigned t = 0; t < NI_TIMING_COUNT && first->msg_bytes; t++) {
      add_class(&w, from, to, (enum ni_timing)t);
      compare_class(&w, of);
    }
  }
  free(w.sum);
  free(w.there);
  free(w.x);
  return has_room ? 0 : -ENOMEM;
}

/* Of a host it is one communicator, not the host, where others within the host are as fast as elsewhere. */
static bool is_slow_by_itself(const struct ni_slow_host *h) { return h->slow < SLOW_OF_HOST * h->compared; }

static int name_slow_comm(const struct ni_summary *s, uint32_t comm, double transfer_us, double peers_us,
                          size_t n_peers, struct ni_slow_host *h, struct ni_found *out) {
  const struct ni_comm_row *c = &s->comm[comm];
  double factor = transfer_us / peers_us, lost = (transfer_us - peers_us) * s->one_in;
  if (c->one_host >= 0 && !is_slow_by_itself(&h[c->one_host])) {
    h += c->one_host;
    if (h->n++ == 0)
      h->first = comm;
    h->factor += factor;
    h->n_peers = n_peers;
    if (lost > h->lost_us)
      h->lost_us = lost;
    return 0;
  }
  char name[81], host[81], peers[80], more[32];
  struct ni_finding *f = ni_found_append(out, NI_FIND_SLOW_COMM, comm);
  if (!f)
    return -ENOMEM;
  f->compared = n_peers;
  f->value = factor;
  f->lost_us = lost;
  ni_durations_peers_text(s, n_peers, peers);
  struct ni_put_text w = {f->text, sizeof f->text};
  if (c->one_host >= 0)
    ni_put(&w, "host %s: its ", ni_safe_text(s->host[c->one_host].name, host, sizeof host));
  ni_put(&w, "%scommunicator %s%s%s (%s, %s ranks) needs %.2f times the transfer time of %s: %s more",
         ni_role_words[c->role], ni_safe_text(c->name, name, sizeof name), c->name ? " " : "", c->id,
         ni_comm_type_words[c->type], NI_COUNT(c->n_ranks), factor, peers, ni_duration_text(lost, more));
  if (ni_found_put_saving(&w, s, comm, f) < 0)
    return -ENOMEM;
  if (c->one_host >= 0)
    ni_put(&w, "; others within the host are not slow");
  return 0;
}

int ni_durations_name_slow_comms(const struct ni_summary *s, struct ni_slow_host *hosts,
                                 struct ni_found *out) {
  struct comm_work *w = calloc(s->n_comms + 1, sizeof *w);
  double *scratch = calloc(s->n_comms + 1, sizeof *scratch);
  size_t n = 0;
  int e = w && scratch ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    const struct ni_comm_row *c = &s->comm[i];
    if (c->n_ranks > 1 && c->transfer_ns > 0)
      w[n++] = (struct comm_work){
          i, c->run, (int)c->type, c->n_ranks, (double)c->timed, (double)c->timed_bytes, c->transfer_ns};
  }
  if (n)
    qsort(w, n, sizeof *w, by_shape);
  /* Neighbours that did the same work as the first of them. */
  for (size_t from = 0, to; e == 0 && from < n; from = to) {
    for (to = from + 1; to < n && is_same_work(&w[from], &w[to]); to++) {}
    double baseline = find_baseline_transfer(w + from, to - from, scratch);
    for (size_t i = from; e == 0 && to - from >= 2 && i < to; i++)
      if (w[i].transfer_ns > NI_FIND_TRANSFER * baseline)
        e = name_slow_comm(s, w[i].comm, w[i].transfer_ns / 1e3, baseline / 1e3, to - from, hosts, out);
  }
  free(w);
  free(scratch);
  return e;
}

int ni_durations_name_slow_functions(const struct ni_summary *s, struct ni_slow_host *hosts, double *slow_us,
                                     struct ni_found *out) {
  struct comm_transfers *of = calloc(s->n_comms + 1, sizeof *of);
  int e = of ? compare_by_function(s, of) : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    if (s->comm[i].one_host < 0 || of[i].n_peers < 2)
      continue;
    hosts[s->comm[i].one_host].compared++;
    hosts[s->comm[i].one_host].slow += is_slow(&of[i]);
  }
  for (uint32_t i = 0; e == 0 && i < s->n_comms; i++) {
    slow_us[i] = fmax(0, of[i].us - of[i].peers_us);
    if (!is_slow(&of[i]))
      continue;
    e = name_slow_comm(s, i, of[i].us, of[i].peers_us, of[i].n_peers, hosts, out);
  }
  free(of);
  return e;
}
