#include "gnuplot_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What gnuplot writes to its stderr after each figure; a control character, so that no data can look like it. */
#define MARK '\006'
static const char mark_command[] = "printerr \"\\006\"\n";

extern char **environ;

/* Of the caller's environment what finds programs, fonts and libraries: locale and GNUPLOT_* change pictures. */
static char **environment_for_gnuplot(void) {
  static const char *const pass[] = {"PATH=", "HOME=", "TMPDIR=", "FONTCONFIG_",
                                     "XDG_",  "LD_",   "ASAN_"};
  static char *const fixed[] = {"LC_ALL=C.UTF-8", "TZ=UTC0", "SOURCE_DATE_EPOCH=0"};
  size_t n = 0, count = 0;
  while (environ && environ[count]) count++;
  char **e = calloc(count + sizeof fixed / sizeof *fixed + 1, sizeof *e);
  if (!e) return NULL;
  for (size_t i = 0; i < count; i++)
    for (size_t p = 0; p < sizeof pass / sizeof *pass; p++)
      if (strncmp(environ[i], pass[p], strlen(pass[p])) == 0) {
        e[n++] = environ[i];
        break;
      }
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) e[n++] = fixed[i];
  return e;
}

int ni_gnuplot_start(struct ni_gnuplot *g, const char *program, const char *directory) {
  int rc, in[2] = {-1, -1}, complaints = -1;
  char *argv[] = {(char *)program, "-d", "-", NULL}; /* -d: no ~/.gnuplot, no /etc/gnuplotrc */
  char **env = NULL;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, defaults;

  /* A socket and not a pipe: send() has MSG_NOSIGNAL and a time limit. */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0) return -errno;
  complaints = memfd_create("gnuplot-stderr", MFD_CLOEXEC);
  if (complaints < 0) {
    rc = -errno;
    goto close_in;
  }
  struct timeval limit = {.tv_sec = NI_GNUPLOT_LIMIT_S};
  if (setsockopt(in[1], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
    rc = -errno;
    goto close_complaints;
  }
  if (!(env = environment_for_gnuplot())) {
    rc = -ENOMEM;
    goto close_complaints;
  }
  if ((rc = -posix_spawn_file_actions_init(&actions))) goto free_env;
  if ((rc = -posix_spawnattr_init(&attr))) goto free_actions;
  sigemptyset(&none);
  sigfillset(&defaults);
  if ((rc = -posix_spawn_file_actions_addchdir_np(&actions, directory)) ||
      (rc = -posix_spawn_file_actions_adddup2(&actions, in[0], 0)) ||
      (rc = -posix_spawn_file_actions_adddup2(&actions, complaints, 2)) ||
      (rc = -posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)) ||
      (rc = -posix_spawnattr_setsigmask(&attr, &none)) || (rc = -posix_spawnattr_setsigdefault(&attr, &defaults)) ||
      (rc = -posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))
    goto free_attr;
  if ((rc = -posix_spawnp(&g->pid, program, &actions, &attr, argv, env))) goto free_attr;
  g->in = in[1];
  g->complaints = complaints;

free_attr:
  posix_spawnattr_destroy(&attr);
free_actions:
  posix_spawn_file_actions_destroy(&actions);
free_env:
  free(env);
close_complaints:
  if (rc) close(complaints);
close_in:
  close(in[0]);
  if (rc) close(in[1]);
  return rc;
}

static int send_all(int fd, const char *text, size_t n) {
  while (n > 0) {
    ssize_t done = send(fd, text, n, MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return -EPIPE;
    text += done;
    n -= (size_t)done;
  }
  return 0;
}

int ni_gnuplot_send(struct ni_gnuplot *g, const char *text, size_t n) {
  int rc = send_all(g->in, text, n);
  return rc ? rc : send_all(g->in, mark_command, sizeof mark_command - 1);
}

/* true when the child ended within the limit. Without pidfd_open (before Linux 5.3) it is polled. */
static bool ended_in_time(pid_t pid) {
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (fd >= 0) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int n;
    while ((n = poll(&p, 1, NI_GNUPLOT_LIMIT_S * 1000)) < 0 && errno == EINTR) continue;
    close(fd);
    return n == 1;
  }
  for (int tries = 0; tries < NI_GNUPLOT_LIMIT_S * 100; tries++) {
    siginfo_t info = {0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == pid) return true;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }
  return false;
}

/*
 * gnuplot echoes the command, points at the error with "^", then says `line 7: message`; of that the message is wanted.
 * Warnings and the echo are passed over. Both sides of the memory file share one offset, hence the rewind.
 */
static size_t read_complaints(int fd, void (*fault)(void *, size_t, const char *), void *context, char *last,
                              size_t size) {
  size_t figure = 0, room = 0;
  bool told = false;
  char *line = NULL;
  ssize_t n;
  last[0] = 0;
  FILE *f = lseek(fd, 0, SEEK_SET) == 0 ? fdopen(fd, "r") : NULL;
  if (!f) {
    close(fd);
    return 0;
  }
  while ((n = getline(&line, &room, f)) > 0) {
    if (line[0] == MARK) {
      figure++;
      told = false;
      continue;
    }
    for (char *c = line; *c; c++)
      if ((unsigned char)*c < 0x20) *c = ' ';
    while (n > 0 && line[n - 1] == ' ') line[--n] = 0;
    const char *text = line + strspn(line, " ");
    if (*text) snprintf(last, size, "%s", text);
    if (told || strncmp(text, "line ", 5) != 0) continue;
    const char *message = strstr(text, ": ");
    if (!message || strncmp(message + 2, "warning:", 8) == 0) continue;
    told = true;
    fault(context, figure, message + 2);
  }
  free(line);
  fclose(f);
  return figure;
}

int ni_gnuplot_end(struct ni_gnuplot *g, size_t *finished, void (*fault)(void *, size_t figure, const char *message),
                   void *context, char *last, size_t size) {
  int rc = 0, status = 0;
  close(g->in);
  if (!ended_in_time(g->pid)) {
    kill(g->pid, SIGKILL);
    rc = -ETIMEDOUT;
  }
  while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR) continue;
  *finished = read_complaints(g->complaints, fault, context, last, size);
  /* After an error in a figure the exit status is 1 too; only higher ones (127 of a wrapper) and signals are ends. */
  if (!rc && (WIFSIGNALED(status) || WEXITSTATUS(status) > 1)) rc = -EIO;
  if (rc == -EIO && WIFSIGNALED(status)) snprintf(last, size, "killed by signal %d", WTERMSIG(status));
  return rc;
}
