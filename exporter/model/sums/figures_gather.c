#include "figures_gather.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"

static int compare_outliers_by_loss(const void *a, const void *b) {
  const struct ni_outlier *x = a, *y = b;
  if (x->lost_us != y->lost_us)
    return x->lost_us > y->lost_us ? -1 : 1;
  return NI_BY(x, y, group, comm, sn, rank, kind);
}

static void append_slices(struct ni_slice *to, size_t *n, const struct ni_slices *from, uint32_t base) {
  for (size_t i = 0; i < from->n; i++) {
    to[*n] = from->item[i];
    to[(*n)++].group += base;
  }
}

void ni_cell_result_free(struct ni_cell_result *x, const struct ni_summary *s) {
  for (uint32_t g = 0; g < x->n_groups; g++)
    if (x->group[g].bin != s->no_bins)
      free(x->group[g].bin);
  free(x->group);
  free(x->mix);
  free(x->comm.item);
  free(x->process.item);
  free(x->host.item);
  free(x->log_group.item);
  free(x->outlier);
  *x = (struct ni_cell_result){0};
}

/* All cells' shares, in order, into the result. */
int ni_figures_gather(struct ni_summary *s, struct ni_cell_result *result, const struct ni_sums *t) {
  size_t groups = 0, mixes = 0, comm = 0, process = 0, host = 0, log_group = 0, outliers = 0;
  for (size_t i = 0; i < s->n_cells; i++) {
    const struct ni_cell_result *x = &result[i];
    groups += x->n_groups;
    mixes += x->n_mix;
    comm += x->comm.n;
    process += x->process.n;
    host += x->host.n;
    log_group += x->log_group.n;
    outliers += x->n_outliers;
  }
  s->group = calloc(groups + 1, sizeof *s->group);
  s->mix = calloc(mixes + 1, sizeof *s->mix);
  s->by_comm = calloc(comm + 1, sizeof *s->by_comm);
  s->by_process = calloc(process + 1, sizeof *s->by_process);
  s->by_host = calloc(host + 1, sizeof *s->by_host);
  s->by_log_group = calloc(log_group + 1, sizeof *s->by_log_group);
  s->outlier = calloc(outliers + t->n_late + 1, sizeof *s->outlier);
  const bool has_slices = s->by_comm && s->by_process && s->by_host && s->by_log_group;
  const bool has_room = s->group && s->mix && has_slices && s->outlier;
  if (!has_room)
    return -ENOMEM;
  for (size_t i = 0; i < s->n_cells; i++) {
    struct ni_cell_result *x = &result[i];
    uint32_t base = (uint32_t)s->n_groups;
    for (uint32_t g = 0; g < x->n_groups; g++) {
      s->group[s->n_groups] = x->group[g];
      s->group[s->n_groups++].mix += (uint32_t)s->n_mix;
      x->group[g].bin = NULL;
    }
    if (x->n_groups && x->process.n == 0)
      s->groups_without_slices += x->n_groups;
    for (size_t m = 0; m < x->n_mix; m++)
      s->mix[s->n_mix++] = x->mix[m];
    append_slices(s->by_comm, &s->n_by_comm, &x->comm, base);
    append_slices(s->by_process, &s->n_by_process, &x->process, base);
    append_slices(s->by_host, &s->n_by_host, &x->host, base);
    append_slices(s->by_log_group, &s->n_by_log_group, &x->log_group, base);
    for (uint32_t o = 0; o < x->n_outliers; o++) {
      s->outlier[s->n_outliers] = x->outlier[o];
      s->outlier[s->n_outliers++].group += base;
    }
    ni_cell_result_free(x, s); /* what was moved is not held twice */
  }
  uint32_t *group = calloc(s->n_cells * NI_TIMING_COUNT + 1, sizeof *group);
  if (!group)
    return -ENOMEM;
  for (uint32_t g = 0; g < s->n_groups; g++)
    group[s->group[g].cell * NI_TIMING_COUNT + s->group[g].timing] = g;
  for (size_t i = 0; i < t->n_late; i++) {
    s->outlier[s->n_outliers] = t->late[i];
    s->outlier[s->n_outliers++].group = group[t->late[i].group];
  }
  free(group);
  qsort(s->outlier, s->n_outliers, sizeof *s->outlier, compare_outliers_by_loss);
  return 0;
}

void ni_figures_spread(struct ni_summary *s, const struct ni_sums *t, const int64_t *heat_ppm) {
  s->records = t->records;
  s->operations = t->operations;
  s->clocks_disagree = t->clocks_disagree;
  if (s->approximate)
    s->late_share_median = NAN;
  s->input.duplicates = t->duplicates;
  s->input.filtered_out += t->skipped;
  for (size_t i = 0; i < s->n_processes; i++) {
    const struct ni_process_sums *x = &t->process[i];
    struct ni_process *p = &s->process[i];
    p->records = x->records;
    p->exec_ns = (double)x->exec_ns;
    p->compared = x->compared;
    p->shortest = x->shortest;
    p->late = x->late;
    p->late_ns = s->approximate ? NAN : (double)x->late_ns;
    p->timed_waits = x->timed_waits;
    p->behind_ns = (double)(int64_t)x->behind_ns;
    p->behind_us2 = (double)x->behind_us2;
    p->relative = x->compared ? (double)x->relative_ppm / 1e6 / (double)x->compared : NAN;
  }
  for (size_t i = 0; i < s->n_seats; i++) {
    const struct ni_seat_sums *x = &t->seat[i];
    s->seat[i].met = x->met;
    s->seat[i].last = x->last;
    s->seat[i].behind_us = (double)(int64_t)x->behind_us;
    s->seat[i].behind_us2 = (double)x->behind_us2;
    s->seat[i].alone_us = (double)x->alone_ns / 1e3;
    s->seat[i].host_alone_us = (double)x->host_alone_ns / 1e3;
  }
  for (size_t i = 0; i < s->n_comms; i++) {
    const struct ni_comm_sums *x = &t->comm[i];
    struct ni_comm_row *c = &s->comm[i];
    double members = c->ranks_seen ? c->ranks_seen : 1;
    c->records = x->records;
    c->operations = x->operations;
    c->partial_operations = x->partial;
    c->max_ranks_seen = (uint32_t)x->max_ranks;
    c->transfer_ns = (double)x->transfer_ns;
    c->timed = x->timed;
    c->timed_bytes = x->timed_bytes;
    c->waiting_ns = (double)x->kernel_ns / members - c->transfer_ns;
    if (c->waiting_ns < 0)
      c->waiting_ns = 0; /* ranks that are missing in some operations */
    c->span_ns = c->outside_ns = NAN;
    if (s->approximate)
      c->transfer_ns = c->waiting_ns = NAN;
    if (!x->no_start && x->first_ns <= x->last_ns) {
      c->span_ns = (double)(x->last_ns - x->first_ns);
      c->outside_ns = c->span_ns - c->transfer_ns - c->waiting_ns;
      if (c->outside_ns < 0)
        c->outside_ns = 0; /* operations of one communicator that overlap */
    }
    c->first_us = x->first_us;
    c->last_us = x->last_us;
  }
  for (size_t i = 0; s->heat.rows && i < (size_t)s->heat.rows * s->heat.bins; i++)
    s->heat.relative[i] = s->heat.count[i] ? (float)((double)heat_ppm[i] / 1e6 / s->heat.count[i]) : NAN;
}
