/*
 * Runs the program of --on-hang when a job hangs: without a shell, with the verdict as JSON on its standard
 * input (nccl-inspector-on-hang-1). Four at once, each ended after 60 s; a further hang waits. Never waits
 * itself. Main thread.
 */
#ifndef NI_HOOKS_H
#define NI_HOOKS_H
#include "exporter/model/live/live.h"
#include "exporter/base/process/task.h"

enum { NI_HOOKS_MAX = 4, NI_HOOKS_TOLD = 1024 };
struct ni_hooks {                       /* all 0: nothing was told */
  uint64_t told[NI_HOOKS_TOLD], n_told; /* told: hashes of verdicts, the oldest go */
  struct ni_task task[NI_HOOKS_MAX];
};
/* Call it once a second. argv: of the program; NULL: none is run, and hangs count as reported. */
void ni_hooks_turn(struct ni_hooks *h, char *const *argv, const struct ni_live *l, const char *node,
                   uint64_t mono_ns);
#endif
