/*
 * The modes of nccl-sim. Each runs to its end and returns the program's exit status (sim.h); called once, by
 * main.
 */
#ifndef NI_SIM_MODES_H
#define NI_SIM_MODES_H

#include "test/nccl_sim/engine/engine.h"

enum { NI_MAX_SETS = 64 };

struct ni_options {
  const char *scenario, *truth;
  const char *sets[NI_MAX_SETS];
  int n_sets, iterations;
  bool quiet, pool_report;
};

/* Runs the scenario in this process, or in one child per rank. */
int ni_job_run(struct ni_scn *s, const struct ni_options *o);
/* The training job of --job NxG as a scenario. */
struct ni_scn *ni_job_scenario(const char *shape, const struct ni_options *o);
int ni_verify_main(const char *truth, const char *logs, bool quiet);
int ni_replay_main(const char *path, const struct ni_options *o);
/* Prints what pools the finished run needed, from the truth and from the logs. */
int ni_pool_report(const char *truth, const char *logs);
/* Runs the job first. */
int ni_pool_report_run(struct ni_scn *s, struct ni_options *o);

#endif
