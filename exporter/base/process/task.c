#include "task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"

bool ni_task_begin(struct ni_task *t, char *const *argv, const int fd[3], uint64_t most, bool stays,
                   uint64_t end_ns) {
  const struct rlimit file = {most, most};
  struct rlimit memory;
  sigset_t none;
  pid_t child = fork();
  if (child > 0) {
    *t = (struct ni_task){child, end_ns};
    (void)setpgid(child, 0); /* here, too: it may be killed at once */
  }
  if (child != 0)
    return child > 0;
  int null = open("/dev/null", O_RDWR);
  setpgid(0, 0);
  if (!stays)
    prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getrlimit(RLIMIT_AS, &memory) == 0) {
    memory.rlim_cur = memory.rlim_max;
    setrlimit(RLIMIT_AS, &memory);
  } /* a reader's is lower */
  if (most)
    setrlimit(RLIMIT_FSIZE, &file);
  signal(SIGPIPE, SIG_DFL);
  sigprocmask(SIG_SETMASK, (sigemptyset(&none), &none), NULL);
  for (int i = 0; i < 3; i++)
    dup2(fd[i] < 0 ? null : fd[i], i);
  /* where it is unknown, exec closes what is ours */
  (void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
  execvp(argv[0], argv);
  /* no ni_say(): another thread may have had the heap's lock at the fork */
  int e = errno, to = STDERR_FILENO;
  char safe[256];
  dprintf(to, "%s: %s. It is looked for in PATH\n", ni_safe_text(argv[0], safe, sizeof safe), strerror(e));
  _exit(127);
}

bool ni_task_over(struct ni_task *t, uint64_t now_ns, int *status) {
  pid_t ended = waitpid(t->pid, status, WNOHANG);
  if (ended == 0 && now_ns > t->end_ns)
    kill(-t->pid, SIGKILL);
  if (ended < 0)
    *status = -1;
  if (ended)
    t->pid = 0;
  return ended != 0;
}

void ni_task_end(struct ni_task *t) {
  if (t->pid) {
    kill(-t->pid, SIGKILL);
    (void)waitpid(t->pid, NULL, WNOHANG);
  }
  t->pid = 0;
}
