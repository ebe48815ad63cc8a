#include "child_wait.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "now.h"

bool ni_child_ended(pid_t child, unsigned ms) {
  enum { STEP_MS = 10 };
  uint64_t now, until = ni_now_ns(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);
  struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
  siginfo_t info = {0};
  bool ended;
  /* Without pidfd_open (before Linux 5.3) it is asked again and again. */
  while (!(ended = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child) &&
         (now = ni_now_ns(CLOCK_MONOTONIC)) < until) {
    int left = (int)((until - now) / 1000000) + 1;
    (void)poll(&p, p.fd >= 0, p.fd >= 0 || left < STEP_MS ? left : STEP_MS);
  }
  if (p.fd >= 0) close(p.fd);
  return ended;
}
