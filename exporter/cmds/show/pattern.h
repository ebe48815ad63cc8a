/* What `show --pattern` says: text, or JSON (schema nccl-inspector-show-pattern-1). Main thread. */
#ifndef NI_SHOW_PATTERN_H
#define NI_SHOW_PATTERN_H

#include "exporter/model/pattern/listing.h"

struct ni_show_pattern {
  const struct ni_run *r;
  const struct ni_summary *s;
  const struct ni_pattern *p;
  bool all; /* each program in full */
};

/* On standard output. 0 or -ENOMEM. */
int ni_show_pattern_text(const struct ni_show_pattern *x);
int ni_show_pattern_json(const struct ni_show_pattern *x);

/*
 * Who has a program, by global rank, as "0-7, 12 and 3 more"; NI_BLAME_NONE: none, for that reason. Returns
 * out.
 */
const char *ni_show_ranks_text(const struct ni_show_pattern *x, uint32_t run, uint32_t program,
                               const char *why_not, char out[200]);
/* Algorithm and protocol of a place. False: not stated, or several. Constants of the run. */
bool ni_show_form(const struct ni_show_pattern *x, const struct ni_pattern_place *p, const char **algo,
                  const char **proto);
/* One of so many operations has a record, at most; 1: all. */
uint64_t ni_show_sample(const struct ni_show_pattern *x);
/* The first run, and the last one: programs and ranks have these numbers. */
uint32_t ni_show_runs(const struct ni_show_pattern *x);

#endif
