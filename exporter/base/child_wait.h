/* Waiting for a child process with a limit. Any thread. */
#ifndef NI_CHILD_WAIT_H
#define NI_CHILD_WAIT_H

#include <stdbool.h>
#include <sys/types.h>

/* Has it ended, or does it within so many ms? It is still there for waitpid(). A stopped one has not ended. */
bool ni_child_ended(pid_t child, unsigned ms);

#endif
