/* Does a process read the control files of a folder? Main thread. */
#ifndef NI_CTL_LISTEN_H
#define NI_CTL_LISTEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * rank: -1, or the global rank that is asked for; process: NULL, or with what names of its logs begin
 * (HOST-pidN).
 */
struct ni_ctl_whose {
  int64_t rank;
  const char *process;
};

/* What is known when the search ends: with the first process that may listen, or when there is none. */
struct ni_ctl_listeners {
  size_t processes; /* whose logs lie in the folder itself, and were looked at */
  /* of those that were asked for: it has written its last line, or is gone from this machine */
  size_t ended;
  bool any; /* a process that was asked for may listen */
};

/*
 * Looks at the beginning and the end of each log in the folder, not below it. A process listens unless its
 * log ends with the last line of a process, or its black box on this machine says that it is gone; of another
 * machine's process without a last line nobody knows, and it counts as one that listens. 0 or -ENOMEM; a log
 * that cannot be read counts as one that may listen.
 */
int ni_ctl_listeners(const char *dir, const struct ni_ctl_whose *whose, struct ni_ctl_listeners *out);

#endif
