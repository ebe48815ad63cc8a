/*
 * What the launcher says about this process, and the dump directory that follows from it. Environment: as
 * config.h says.
 */
#ifndef NI_JOB_H
#define NI_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "format/line.h"

#define NI_JOB_ID_BYTES 128

/* What the launcher says about this process. */
struct ni_job {
  /* safe as a path component: [A-Za-z0-9._-], not starting with '.'; "unknown-jobid" */
  char job_id[NI_JOB_ID_BYTES];
  int64_t rank, local_rank, world_size; /* -1: not stated */
  uint32_t n_env;
  struct {
    const char *name;                /* constant */
    char value[NI_PAIR_VALUE_BYTES]; /* hostile text */
  } env[NI_PAIRS_WRITTEN];           /* the launcher variables that are set, for the process line */
};

/*
 * Reads what the launcher says. Job id: SLURM_JOB_ID, SLURM_JOBID, PBS_JOBID, LSB_JOBID, FLUX_JOB_ID, and
 * inside a Kubernetes pod (KUBERNETES_SERVICE_HOST is set) JOB_NAME, then POD_NAME; every character unsafe in
 * a path becomes '_'. Global rank: RANK, OMPI_COMM_WORLD_RANK, PMIX_RANK, PMI_RANK, FLUX_TASK_RANK,
 * SLURM_PROCID; the first that holds a number counts, and local rank and world size come from the same
 * launcher.
 */
void ni_job_read(struct ni_job *j);

/*
 * NCCL_INSPECTOR_DUMP_DIR with its tokens put in: %h host (made path-safe), %p pid, %j job id, %r global rank
 * or "unknown-rank", %% a percent sign; any other %x stays as it is. Returns its length without terminator,
 * or -ENAMETOOLONG when it does not fit (out is then empty).
 */
int ni_job_dump_dir(const struct ni_job *j, const char *dir, const char *host, int64_t pid, char *out,
                    size_t cap);

#endif
