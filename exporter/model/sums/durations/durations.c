#include "durations.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "congestion.h"
#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/put.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/model/sums/evidence/seat_findings.h"
#include "late_processes.h"
#include "slow_comms.h"

static NI_ORDER_OF(by_number, double);

bool ni_durations_are_of_seats(const struct ni_summary *s) {
  return !s->by_own_time && (s->one_in > 1 || s->steps_differ);
}

/* Of the host in the middle: waiting and noise make it less than 1 where nothing is slow. */
static int find_baseline_busbw(const struct ni_summary *s, double *out) {
  double *x = malloc((s->n_hosts + 1) * sizeof *x);
  size_t n = 0;
  if (!x)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_hosts; i++)
    if (s->host[i].busbw_relative > 0)
      x[n++] = s->host[i].busbw_relative;
  qsort(x, n, sizeof *x, by_number);
  *out = n ? fmin(1, x[n / 2]) : 1;
  free(x);
  return 0;
}

/* What its ranks wait for may not be in the logs. */
static bool has_unseen_waits(const struct ni_summary *s, uint32_t host) {
  for (size_t i = 0; i < s->n_processes; i++)
    if (s->process[i].host == host && s->process[i].may_wait_unseen)
      return true;
  return false;
}

static int name_hosts_by_durations(const struct ni_summary *s, const struct ni_slow_host *slow,
                                   const bool *explained, struct ni_found *out) {
  double baseline;
  int e = find_baseline_busbw(s, &baseline);
  for (uint32_t i = 0; e == 0 && i < s->n_hosts; i++) {
    const struct ni_host *h = &s->host[i];
    const struct ni_slow_host *x = &slow[i];
    const bool told = s->one_in == 1 && !explained[i] && !has_unseen_waits(s, i);
    const bool low = told && h->busbw_relative < NI_FIND_BUSBW * baseline;
    char host[81], name[81], peers[80], more[32];
    if (x->n == 0 && !low)
      continue;
    struct ni_finding *f = ni_found_append(out, x->n ? NI_FIND_SLOW_NVLINK : NI_FIND_SLOW_HOST, i);
    if (!f)
      return -ENOMEM;
    ni_safe_text(h->name, host, sizeof host);
    if (x->n == 0) {
      f->value = h->busbw_relative;
      f->lost_us = (1 - f->value) * h->exec_ns / 1e3 / (h->n_processes ? h->n_processes : 1);
      snprintf(f->text, sizeof f->text,
               "host %s: its bus bandwidth is %.0f %% of the median of like operations on all hosts "
               "(waiting included)",
               host, 100 * f->value);
      continue;
    }
    f->compared = x->n_peers;
    f->value = x->factor / x->n;
    f->lost_us = x->lost_us;
    ni_durations_peers_text(s, x->n_peers, peers);
    const struct ni_comm_row *c = &s->comm[x->first];
    struct ni_put_text w = {f->text, sizeof f->text};
    if (x->n == 1) {
      ni_put(&w,
             "host %s: its %scommunicator %s%s%s (%s ranks) needs %.2f times the transfer time of "
             "%s: %s more",
             host, ni_role_words[c->role], ni_safe_text(c->name, name, sizeof name), c->name ? " " : "",
             c->id, NI_COUNT(c->n_ranks), f->value, peers, ni_duration_text(f->lost_us, more));
      e = ni_found_put_saving(&w, s, x->first, f);
    } else
      snprintf(f->text, sizeof f->text,
               "host %s: %u of its communicators need %.2f times the transfer time of those that "
               "did the same work: up to %s more",
               host, x->n, f->value, ni_duration_text(f->lost_us, more));
  }
  return e;
}

static int by_loss(const void *a, const void *b) {
  const struct ni_finding *x = a, *y = b;
  if (x->note != y->note)
    return x->note ? 1 : -1;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  if (x->kind != y->kind)
    return (int)x->kind - (int)y->kind;
  return x->of < y->of ? -1 : x->of > y->of;
}

static int by_rank(const void *a, const void *b, void *summary) {
  const struct ni_process *process = ((const struct ni_summary *)summary)->process;
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  const int32_t one = process[x].rank, other = process[y].rank;
  return one != other ? (one < other ? -1 : 1) : x < y ? -1 : x > y;
}

/* Whose a slow communicator is: all of its ranks. */
static int fill_processes_of_comm(struct ni_summary *s, struct ni_finding *f) {
  size_t n = 0;
  for (size_t i = 0; i < s->n_seats; i++)
    n += s->seat[i].comm == f->of;
  if (!(f->process = malloc((n + 1) * sizeof *f->process)))
    return -ENOMEM;
  for (size_t i = 0; i < s->n_seats; i++)
    if (s->seat[i].comm == f->of)
      f->process[f->n_processes++] = s->seat[i].process;
  qsort_r(f->process, n, sizeof *f->process, by_rank, s);
  return 0;
}

int ni_judge_by_durations(struct ni_summary *s) {
  struct ni_found found = {0};
  bool *explained = calloc(s->n_hosts + 1, sizeof *explained);
  struct ni_slow_host *hosts = calloc(s->n_hosts + 1, sizeof *hosts);
  double *slow_us = calloc(s->n_comms + 1, sizeof *slow_us);
  const bool sampled = s->one_in > 1, one_by_one = ni_durations_are_of_seats(s);
  bool by_seats = one_by_one;
  for (size_t i = 0; i < s->n_processes; i++)
    by_seats |= s->process[i].may_wait_unseen;
  int e = explained && hosts && slow_us ? 0 : -ENOMEM;
  if (e == 0)
    e = ni_durations_find_late_share(s, &s->late_share_median);
  if (e == 0)
    e = one_by_one ? ni_durations_name_slow_functions(s, hosts, slow_us, &found)
                   : ni_durations_name_slow_comms(s, hosts, &found);
  if (e == 0 && sampled)
    e = ni_durations_name_congestion(s, &found);
  if (e == 0)
    e = by_seats ? ni_found_late_seats(s, slow_us, &found, explained)
                 : ni_durations_name_late(s, &found, explained);
  if (e == 0 && one_by_one)
    e = ni_found_waited_for(s, &found, explained);
  if (e == 0)
    e = ni_found_slow_cpus(s, &found, explained);
  if (e == 0)
    e = ni_found_slow_gpus(s, &found, explained);
  if (e == 0)
    e = name_hosts_by_durations(s, hosts, explained, &found);
  if (e == 0) {
    if (found.n)
      qsort(found.item, found.n, sizeof *found.item, by_loss);
    s->n_findings = found.n < NI_SUM_FINDINGS ? found.n : NI_SUM_FINDINGS;
    s->findings_left_out = found.n - s->n_findings;
    if (found.n)
      memcpy(s->finding, found.item, s->n_findings * sizeof *found.item);
  }
  for (size_t i = 0; e == 0 && i < s->n_findings; i++)
    if (s->finding[i].level == NI_LEVEL_COMM)
      e = fill_processes_of_comm(s, &s->finding[i]);
  free(found.item);
  free(explained);
  free(hosts);
  free(slow_us);
  return e;
}
