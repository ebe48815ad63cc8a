/*
 * Words of NVTX ranges and of the environment. Pure; any thread.
 */
#ifndef NI_NSYS_WORDS_H
#define NI_NSYS_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/names.h"

enum ni_nsys_range {
  NI_NSYS_OTHER = 0,
  NI_NSYS_CALL,        /* NCCL's: ncclAllReduce, ncclSend, ...; func says which */
  NI_NSYS_GROUP_BEGIN, /* ncclGroupStart */
  NI_NSYS_GROUP_END,   /* ncclGroupEnd: what was called since the group's begin is launched in it */
  NI_NSYS_COMM,        /* ncclCommInitRank, ncclCommSplit, ...: a communicator's ranks */
  NI_NSYS_TORCH,       /* PyTorch's around NCCL's (emit_nvtx): nccl:all_reduce */
};
enum ni_nsys_range ni_nsys_range_of(const char *text, enum ni_func *func);

/* "iteration 17", "step_17", "ProfilerStep#17", "train step: 17": the number, and how much of the text
 * comes before it. */
bool ni_nsys_step(const char *text, uint32_t *number, size_t *before);

/* The rank of a job and its ranks that an environment states ("NAME=value" behind each other, whatever
 * is between): torchrun's, Open MPI's, MPICH's, Slurm's, in this order. name: of the variable that
 * said it. -1: none. */
int32_t ni_nsys_rank_in(const char *environment, int32_t *world, const char **name);

#endif
