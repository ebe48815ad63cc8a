/* Child processes with a time limit; see child.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "exporter/base/text/safe_text.h"
#include "child.h"

enum { TEXT_MAX = 1 << 20 };

static int ms_left(uint64_t ns) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  return now < ns ? (int)((ns - now) / 1000000) : 0;
}

/* Reads until the other end is closed everywhere, or time is up. */
static bool read_until_closed(int fd, uint64_t until, char *text) {
  size_t n = 0;
  for (;;) {
    struct pollfd p = {fd, POLLIN, 0};
    int rc = poll(&p, 1, ms_left(until));
    if (rc < 0 && errno == EINTR)
      continue;
    if (rc <= 0)
      return false;
    char drop[4096], *to = n < TEXT_MAX - 1 ? text + n : drop;
    ssize_t got = read(fd, to, to == drop ? sizeof drop : TEXT_MAX - 1 - n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return true;
    if (to != drop)
      n += (size_t)got;
    text[n] = 0;
  }
}

int ni_child_call(int (*fn)(void *arg, int fd), void *arg, unsigned seconds, char **text) {
  int pipe_fd[2], status;
  *text = calloc(1, TEXT_MAX);
  if (!*text || pipe2(pipe_fd, O_CLOEXEC) < 0)
    return NI_CHILD_FAILED;
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + seconds * UINT64_C(1000000000);
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    setpgid(0, 0); /* what it starts ends with it */
    close(pipe_fd[0]);
    _exit(fn(arg, pipe_fd[1]));
  }
  close(pipe_fd[1]);
  if (pid < 0) {
    close(pipe_fd[0]);
    return NI_CHILD_FAILED;
  }
  bool ended = read_until_closed(pipe_fd[0], until, *text);
  close(pipe_fd[0]);
  /* its descriptor is closed, it may still run */
  ended = ended && ni_child_ended(pid, (unsigned)ms_left(until));
  if (!ended) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    (void)ni_child_ended(pid, 1000); /* inside a system call that hangs it cannot die now */
  }
  (void)waitpid(pid, &status, ended ? 0 : WNOHANG);
  if (!ended)
    return NI_CHILD_TIME;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

struct program {
  char *const *argv, *const *env;
};

static int exec_program(void *arg, int fd) {
  const struct program *p = arg;
  int null = open("/dev/null", O_RDONLY);
  if (null >= 0)
    dup2(null, 0);
  dup2(fd, 1);
  dup2(fd, 2);
  for (char *const *e = p->env; e && *e; e++)
    putenv(*e);
  execvp(p->argv[0], p->argv);
  ni_say(stderr, "%s: %s\n", p->argv[0], strerror(errno));
  fflush(stderr);
  return 127;
}

int ni_child_exec(char *const *argv, char *const *env, unsigned seconds, char **text) {
  struct program p = {argv, env};
  return ni_child_call(exec_program, &p, seconds, text);
}

const char *ni_child_why(int rc, char *buf, size_t cap) {
  if (rc == NI_CHILD_TIME)
    snprintf(buf, cap, "no end in time");
  else if (rc == NI_CHILD_FAILED)
    snprintf(buf, cap, "no process could be made");
  else if (rc < 0)
    snprintf(buf, cap, "ended by signal %d (%s)", -rc, strsignal(-rc));
  else
    snprintf(buf, cap, "ended with status %d", rc);
  return buf;
}
