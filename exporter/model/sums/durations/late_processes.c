#include "late_processes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/safe_text.h"

static NI_ORDER_OF(by_number, double);

static double get_late_share(const struct ni_process *p) { return (double)p->late / (double)p->compared; }

int ni_durations_find_late_share(const struct ni_summary *s, double *out) {
  double *share = malloc((s->n_processes + 1) * sizeof *share);
  size_t n = 0;
  if (!share)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (s->process[i].compared >= NI_FIND_COMPARED_MIN)
      share[n++] = get_late_share(&s->process[i]);
  qsort(share, n, sizeof *share, by_number);
  *out = n ? share[(n - 1) / 2] : 0;
  free(share);
  return 0;
}

/*
 * What a late rank cost each of its peers is a sum over operations. Those of several streams run at the same
 * time, so it can be more than the run is long: nobody waited for that long, and it is not said.
 */
static const char *waited_text(const struct ni_summary *s, double us, const char *whose, char out[112]) {
  char time[32];
  ni_duration_text(us, time);
  if (us > (double)(s->last_us - s->first_us))
    snprintf(out, 112, "what each of %s waited for it adds up to %s (operations overlap)", whose, time);
  else
    snprintf(out, 112, "each of %s waited %s for it in all", whose, time);
  return out;
}

static bool has_come_late(const struct ni_process *p) {
  return p->compared >= NI_FIND_COMPARED_MIN && (double)p->late >= NI_FIND_LATE_SHARE * (double)p->compared;
}

/* Where one rank in so many comes late, durations do not tell who of them is to blame. */
enum { LATE_ONE_IN = 4 };

/* times the loss by any other rank: it stands out among many that come late */
#define STANDS_OUT 2.0

/*
 * Somebody is the last one in any job. Where a quarter of the ranks and more come late to many operations, on
 * more than one host, who of them is to blame cannot be told from durations, unless one stands out.
 */
static bool have_many_come_late(const struct ni_summary *s) {
  uint32_t late = 0, compared = 0, host = UINT32_MAX;
  bool one_host = true;
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    compared += p->compared >= NI_FIND_COMPARED_MIN;
    if (!has_come_late(p))
      continue;
    late++;
    one_host &= host == UINT32_MAX || host == p->host;
    host = p->host;
  }
  return late > 1 && !one_host && late * LATE_ONE_IN >= compared;
}

static bool stands_out(const struct ni_summary *s, const struct ni_process *p) {
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (&s->process[i] != p && s->process[i].late_ns * STANDS_OUT > p->late_ns)
      return false;
  return true;
}

/* What the rank in the middle spent in operations. */
static int find_baseline_exec_ns(const struct ni_summary *s, double *out) {
  double *ns = malloc((s->n_processes + 1) * sizeof *ns);
  size_t n = 0;
  if (!ns)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++)
    if (s->process[i].compared)
      ns[n++] = s->process[i].exec_ns;
  qsort(ns, n, sizeof *ns, by_number);
  *out = n ? ns[(n - 1) / 2] : 0;
  free(ns);
  return 0;
}

int ni_durations_name_late(const struct ni_summary *s, struct ni_found *out, bool *explained) {
  const bool many = have_many_come_late(s);
  double exec_ns = 0;
  if (find_baseline_exec_ns(s, &exec_ns) < 0)
    return -ENOMEM;
  for (uint32_t i = 0; i < s->n_processes; i++) {
    const struct ni_process *p = &s->process[i];
    char host[81], gpu[24] = "", waited[112], ranks[48];
    if (!has_come_late(p))
      continue;
    explained[p->host] = true;
    if ((many && !stands_out(s, p)) || get_late_share(p) < 2 * s->late_share_median)
      continue; /* so are all the others: it does not stand out */
    if (p->late_ns < NI_FIND_LATE_LOSS * exec_ns)
      continue; /* somebody is always the last one, by a little */
    struct ni_finding *f = ni_found_append(out, NI_FIND_LATE_RANK, i);
    if (!f)
      return -ENOMEM;
    f->compared = p->compared;
    f->value = get_late_share(p);
    f->lost_us = p->late_ns / 1e3;
    if (p->ranks > 1) { /* durations of its ranks are one sum: who of them it was, the outliers tell */
      snprintf(f->text, sizeof f->text,
               "process %lld on %s (%s) came late to %.0f %% of %s operations with one of its ranks; %s",
               (long long)p->pid, ni_safe_text(s->host[p->host].name, host, sizeof host),
               ni_ranks_text(p, ranks), 100 * f->value, NI_COUNT(p->compared),
               waited_text(s, f->lost_us, "their peers", waited));
      continue;
    }
    if (p->gpu >= 0)
      snprintf(gpu, sizeof gpu, ", GPU %d", p->gpu);
    snprintf(f->text, sizeof f->text, "rank %d on %s%s%s came late to %.0f %% of %s operations; %s", p->rank,
             ni_safe_text(s->host[p->host].name, host, sizeof host), gpu,
             p->rank_stated ? "" : " (rank in its largest communicator)", 100 * f->value,
             NI_COUNT(p->compared), waited_text(s, f->lost_us, "its peers", waited));
  }
  return 0;
}
