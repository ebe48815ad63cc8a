/*
 * How a simulated process ends when it does not finish its communicators. Threads: the one that ends the
 * process; the other application threads are parked first, so that the truth knows every operation the plugin
 * was told of; progress threads go on calling, as in a real process. Failure: none, the process is gone.
 */
#ifndef NI_SIM_ENDS_H
#define NI_SIM_ENDS_H

#include "test/nccl_sim/core/scenario.h"

_Noreturn void ni_end_process(enum ni_end how);
/* Called by an application thread that finds ni_run.halt set; never returns. */
_Noreturn void ni_park(void);

#endif
