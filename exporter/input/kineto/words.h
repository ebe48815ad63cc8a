/*
 * PyTorch's words in ours: collectives, datatypes, releases, lists of ranks. Sources: c10d's
 * ProcessGroupNCCL.cpp and ParamCommsUtils.cpp, c10's scalar types. Pure; any thread.
 */
#ifndef NI_KINETO_WORDS_H
#define NI_KINETO_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "format/names.h"

/*
 * "allreduce", "_allgather_base", "all_to_allv", "recvAnySource", ...; NI_FUNC_OTHER: barrier, coalesced,
 * wait, ...
 */
enum ni_func ni_kineto_collective(const char *name);

/*
 * "BFloat16" -> "ncclBfloat16", 2; "ComplexFloat" -> "", 8: NCCL is handed another one. bytes 0: not known.
 */
const char *ni_kineto_datatype(const char *name, uint32_t *bytes);

/* "2.21.5" -> 22105; -1: none. */
int32_t ni_kineto_release(const char *text);

/* The ranks of a group, in its order. */
struct ni_kineto_ranks {
  struct ni_kineto_seat {
    int32_t rank, index; /* of the job; in the group */
  } *seat;               /* by rank */
  size_t n;
};
/*
 * text: "[0, 1]"; of a cut list, "[0, 1, 2, ..., 63]", those that it names. size: of the group. 0 or -ENOMEM;
 * free(seat).
 */
int ni_kineto_ranks(struct ni_kineto_ranks *r, const char *text, int64_t size);
/* -1: not known. */
int32_t ni_kineto_index(const struct ni_kineto_ranks *r, int64_t rank);

#endif
