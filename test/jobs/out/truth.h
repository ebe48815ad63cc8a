/* DIR/truth.json: what was planted and what it cost, as the scorer (test/verdicts) and people read it. */
#ifndef NI_JOBS_TRUTH_H
#define NI_JOBS_TRUTH_H

#include "test/jobs/model/engine.h"

struct nj_truth {
  const struct nj_job *job;
  double with, without; /* the job's time with all faults and with none, ns */
  double cost[2];       /* of each fault: what is gained without it alone, ns */
  double *begin;        /* of each step */
  struct nj_incident *incident;
  int n_incidents, cap_incidents;
  struct nj_exposed *exposed; /* exposed.h; NULL: not asked */
  uint64_t records;
};

/* struct nj_watch's incident; context: struct nj_truth. */
void nj_truth_incident(void *truth, const struct nj_incident *i);
/* Ends the program with a message when it cannot be written. */
void nj_truth_write(const struct nj_truth *t, const char *dir);

#endif
