/*
 * Flight Recorder dumps (flight/tree.h) -> model: what PyTorch's watchdog saw of each process group of one
 * rank.
 *
 * A process group is a communicator of its own, hash and name from the group's name and ranks, its operations
 * numbered by collective_seq_id, which counts all functions: sn and rec_sn. Of several at one number, and of
 * sends and receives of one batch, the newest ("coalesced") has the state of all. Completed is finished,
 * started is in the kernel, scheduled waits in its stream; where a dump says of no operation when it started
 * (no TORCH_NCCL_ENABLE_TIMING) the rank's oldest counts as started. Retired says only that PyTorch no longer
 * looks at it: finished is that of gloo, which knows no completed, and up to the last one that the group's
 * status calls completed; else it was given up. A kernel also ends when its communicator is aborted: what was
 * completed after its own time-out, or after the first time-out in any of the dumps, did not finish.
 *
 * A dump does not say when it was made. It is taken for as old as its file, but no younger than the newest
 * time in any dump, or the end of the first time-out in one: a copy has the time of copying.
 *
 * Its rank is what it says, or the last number in its file's name. It is put to the process of that rank in
 * logs or boxes; else to a process without host and with the rank for a pid.
 *
 * Of each dump: the newest NI_HANG_ENTRIES entries of a group, 1,048,576 in all; NI_HANG_GROUPS groups. One
 * thread.
 */
#ifndef NI_HANG_READ_DUMPS_H
#define NI_HANG_READ_DUMPS_H

#include "read_boxes.h"

#define NI_HANG_ENTRIES 65536
#define NI_HANG_GROUPS 4096

/* Files in folders may be dumps if their names end in a digit, .json, .pkl or .pickle. */
bool ni_hang_dump_name(const char *name);
/*
 * Which of the paths are dumps: such files, and files that are named. Root reads only files of root. 0 or
 * -ENOMEM.
 */
int ni_hang_find_dumps(struct ni_files *out, const struct ni_inputs *in);
/*
 * Adds what the dumps say. Counts those that cannot be read and those without a rank. The logs are in *m
 * already. 0 or -ENOMEM.
 */
int ni_hang_read_dumps(struct ni_hang_model *m, const struct ni_files *dumps,
                       const struct ni_hang_looks *looks);

#endif
