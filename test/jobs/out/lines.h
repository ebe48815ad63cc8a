/* The logs of a job: one file a rank, as docs/format.md has it, written while the job runs. */
#ifndef NI_JOBS_LINES_H
#define NI_JOBS_LINES_H

#include "test/jobs/model/engine.h"

struct nj_lines;

/* Makes all files in dir, with their first lines. */
struct nj_lines *nj_lines_open(const struct nj_job *job, const char *dir);
/* struct nj_watch's done; context: struct nj_lines. */
void nj_lines_done(void *lines, const struct nj_done *d);
/* Last lines; end: the job's, ns. Returns how many records were written. */
uint64_t nj_lines_close(struct nj_lines *l, double end);
/* "node-3" */
const char *nj_host_name(int host, char out[16]);

#endif
