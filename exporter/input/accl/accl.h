/*
 * Operations from the logs of ACCL, AMD's profiler plugin for RCCL:
 * accl_profiler_rank<N>_<host>_pid<PID>_0x<commHash>.jsonl, one for each communicator of a process. <N> is
 * the rank in that communicator; that of the job is not in it.
 *
 * A line is a collective: {"header": {"rank", "n_ranks"}, "coll_perf": {..}}. Its times are ticks of the GPU
 * (100 MHz) that nothing ties to a clock, so operations have a length and no start. The last line is
 * {"summary": {..}}: what was not recorded; without it the process died. coll_sn is NCCL's number by
 * function, as in our logs. The proxy's times are not used: releases charge them to the wrong state
 * (rocm-systems pull request 11881).
 *
 * Source: rocm-systems, projects/rccl, ACCL's README and its source. Threads: any. Memory: 1 MiB
 * for a line, and the operations. Failure: -ENODATA (no collective), -EBADMSG (not such a file), -EFBIG,
 * -ENOMEM, -errno; what take() returned.
 */
#ifndef NI_ACCL_H
#define NI_ACCL_H

#include "exporter/base/progress.h"
#include "exporter/input/imported/imported.h"

/* What a file's name says; host "", pid -1, comm 0: not stated. */
struct ni_accl_name {
  int32_t rank;
  int64_t pid;
  uint64_t comm;
  char host[256];
};
bool ni_accl_parse_name(const char *path, struct ni_accl_name *name);

/* Does the name of a file end as theirs do (.jsonl, .jsonl.gz), and begin with accl_profiler_rank? */
bool ni_accl_is_log(const char *name);
/* Compares two names so that all files of a process follow each other. */
int ni_accl_by_process(const char *a, const char *b);
bool ni_accl_same_process(const char *a, const char *b);

/* The files of one process. Of several those that are no logs are counted (unread). An empty one is of a
 * communicator whose process died before its first collective had ended. */
int ni_accl_read(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                 struct ni_progress *progress);

#endif
