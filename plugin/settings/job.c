/*
 * What launchers say about a process. A launcher's rank, local rank and size are taken together: a batch
 * script inside a Slurm allocation has SLURM_PROCID=0 in every process that its own mpirun starts, so Slurm
 * is asked last, and nobody's size is combined with somebody else's rank.
 */
#include "job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "detail_text.h"
#include "plugin/os/host.h"

static const struct {
  const char *rank, *local_rank, *size;
} launchers[] = {
    {"RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", NULL, NULL},
    {"PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"},
    {"SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
};

static const char *const recorded[] = {"RANK",
                                       "LOCAL_RANK",
                                       "WORLD_SIZE",
                                       "SLURM_PROCID",
                                       "SLURM_JOB_ID",
                                       "SLURM_RESTART_COUNT",
                                       "OMPI_COMM_WORLD_RANK",
                                       "PMI_RANK",
                                       "PMIX_RANK",
                                       "POD_NAME",
                                       "TORCHELASTIC_RESTART_COUNT"};
_Static_assert(sizeof recorded / sizeof *recorded <= NI_PAIRS_WRITTEN, "all fit");

static const char *const job_ids[] = {"SLURM_JOB_ID", "SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID"};

/* 0 .. 2^31 - 1, digits only; -1 otherwise. */
static int64_t env_number(const char *name) {
  const char *s = name ? getenv(name) : NULL;
  uint64_t v;
  return s && ni_digits(&s, INT32_MAX, &v) && !*s ? (int64_t)v : -1;
}

static const char *find_job_id(void) {
  for (size_t i = 0; i < sizeof job_ids / sizeof *job_ids; i++) {
    const char *id = getenv(job_ids[i]);
    if (id && *id)
      return id;
  }
  /* JOB_NAME means something only inside a pod: build servers set it as well. */
  if (!getenv("KUBERNETES_SERVICE_HOST"))
    return "";
  const char *id = getenv("JOB_NAME");
  if (!id || !*id)
    id = getenv("POD_NAME");
  return id ? id : "";
}

void ni_job_read(struct ni_job *j) {
  memset(j, 0, sizeof *j);
  ni_path_component(j->job_id, sizeof j->job_id, find_job_id(), "unknown-jobid");
  j->rank = j->local_rank = j->world_size = -1;
  for (size_t i = 0; i < sizeof launchers / sizeof *launchers && j->rank < 0; i++) {
    j->rank = env_number(launchers[i].rank);
    if (j->rank < 0)
      continue;
    j->local_rank = env_number(launchers[i].local_rank);
    j->world_size = env_number(launchers[i].size);
  }
  for (size_t i = 0; i < sizeof recorded / sizeof *recorded; i++) {
    const char *v = getenv(recorded[i]);
    if (!v || strlen(v) >= NI_PAIR_VALUE_BYTES)
      continue;
    j->env[j->n_env].name = recorded[i];
    strcpy(j->env[j->n_env++].value, v);
  }
}

int ni_job_dump_dir(const struct ni_job *j, const char *dir, const char *host, int64_t pid, char *out,
                    size_t cap) {
  size_t n = 0;
  for (const char *t = dir; *t; t++) {
    char text[NI_JOB_ID_BYTES] = {*t, 0};
    if (*t == '%') {
      switch (t[1]) {
        case 'h':
          ni_path_component(text, sizeof text, host ? host : "", "unknown-host");
          break;
        case 'p':
          snprintf(text, sizeof text, "%lld", (long long)pid);
          break;
        case 'j':
          ni_path_component(text, sizeof text, j->job_id, "unknown-jobid");
          break;
        case 'r':
          if (j->rank >= 0)
            snprintf(text, sizeof text, "%lld", (long long)j->rank);
          else
            strcpy(text, "unknown-rank");
          break;
        case '%':
          break;
        default:
          t--;
          break; /* not ours: the percent sign stays, and what follows is looked at by itself */
      }
      t++;
    }
    size_t len = strlen(text);
    if (n + len >= cap) {
      if (cap)
        out[0] = 0;
      return -ENAMETOOLONG;
    }
    memcpy(out + n, text, len);
    n += len;
  }
  if (cap)
    out[n] = 0;
  return (int)n;
}
