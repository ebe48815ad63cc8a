/* Messages of the checkers, for the rooms of nccl-sim that they use (sim.h). */
#include <unistd.h>

#include "test/nccl_sim/core/sim.h"

void ni_sim_say(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
}

void ni_die(int status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  exit(status);
}
