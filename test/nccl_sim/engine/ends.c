/* Ends of a process that skip NCCL's teardown. States and threads: ends.h. */
#include "ends.h"

#include <signal.h>
#include <unistd.h>

#include "engine.h"
#include "truth.h"

void ni_park(void) {
  atomic_fetch_add_explicit(&ni_run.halted, 1, memory_order_release);
  for (;;)
    pause();
}

void ni_end_process(enum ni_end how) {
  atomic_store_explicit(&ni_run.halt, true, memory_order_relaxed);
  /*
   * A thread that waits in a full communicator cannot park; 100 ms is longer than any operation it may be
   * inside.
   */
  for (int i = 0; i < 100 && atomic_load_explicit(&ni_run.halted, memory_order_acquire) < ni_run.n_ranks - 1;
       i++)
    ni_sleep_ns(1000000);
  for (int i = 0; i < ni_run.n_ranks; i++)
    for (int k = 0; k < ni_run.scn->n_comms; k++) {
      struct ni_crank *c = ni_run.ranks[i].cranks[k];
      if (c && c->up)
        ni_truth_close_comm(c, NI_OUT_OPEN);
    }
  ni_truth_end(how);
  switch (how) {
    case NI_END_SIGKILL:
      kill(getpid(), SIGKILL);
      break;
    case NI_END_UNDERSCORE_EXIT:
      _exit(0);
    case NI_END_QUICK_EXIT:
      quick_exit(0);
    default:
      break;
  }
  exit(0);
}
