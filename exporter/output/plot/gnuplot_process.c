#include "gnuplot_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"

/*
 * What gnuplot writes to its stderr after each script; a control character, so that no data can look like it.
 */
#define MARK '\006'

extern char **environ;

/*
 * Of the caller's environment what finds programs, fonts and libraries: locale and GNUPLOT_* change pictures.
 */
static char **make_environment(void) {
  static const char *const pass[] = {"PATH=", "HOME=", "TMPDIR=", "FONTCONFIG_", "XDG_", "LD_", "ASAN_"};
  static char *const fixed[] = {"LC_ALL=C.UTF-8", "TZ=UTC0", "SOURCE_DATE_EPOCH=0",
                                /*
                                  * Keeps the 2 MB of each picture for the next one: a third of the page
                                  * faults.
                                  */
                                "MALLOC_MMAP_THRESHOLD_=67108864", "MALLOC_TRIM_THRESHOLD_=134217728",
                                "MALLOC_TOP_PAD_=4194304"};
  size_t n = 0, count = 0;
  while (environ && environ[count])
    count++;
  char **e = calloc(count + sizeof fixed / sizeof *fixed + 1, sizeof *e);
  if (!e)
    return NULL;
  for (size_t i = 0; i < count; i++)
    for (size_t p = 0; p < sizeof pass / sizeof *pass; p++)
      if (strncmp(environ[i], pass[p], strlen(pass[p])) == 0) {
        e[n++] = environ[i];
        break;
      }
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    e[n++] = fixed[i];
  return e;
}

static int spawn_gnuplot(struct ni_gnuplot *g, const char *program, int end) {
  char *argv[] = {(char *)program, "-d", "-", NULL}; /* -d: no ~/.gnuplot, no /etc/gnuplotrc */
  char **env = make_environment();
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attr;
  sigset_t none, defaults;
  if (!env)
    return -ENOMEM;
  sigemptyset(&none);
  sigfillset(&defaults);
  posix_spawn_file_actions_init(&actions); /* neither fails in glibc */
  posix_spawnattr_init(&attr);
  int rc = posix_spawn_file_actions_adddup2(&actions, end, 0);
  if (!rc)
    rc = posix_spawn_file_actions_adddup2(&actions, end, 2);
  if (!rc)
    rc = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setsigdefault(&attr, &defaults);
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (!rc)
    rc = posix_spawnp(&g->pid, program, &actions, &attr, argv, env);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  free(env);
  return -rc;
}

/* All of the text, or -EPIPE: gnuplot has ended, or does not read. */
static int send_text(struct ni_gnuplot *g, const char *text, size_t n) {
  for (ssize_t done; n; text += done, n -= (size_t)done) {
    done = send(fileno(g->end), text, n, MSG_NOSIGNAL);
    if (done < 0 && errno != EINTR)
      return -EPIPE;
    if (done < 0)
      done = 0;
  }
  return 0;
}

/*
 * Into the folder by gnuplot's own command: to spawn there takes glibc 2.29. In octal nothing of the name
 * means anything to it. Where this fails, what is loaded next does, and says why. A folder that is named by a
 * descriptor of ours is named by our process for gnuplot, who is another `self`.
 */
static void change_folder(struct ni_gnuplot *g, const char *directory) {
  static const char self[] = "/proc/self/";
  char command[4 * PATH_MAX + 64] = "cd \"";
  size_t n = 4;
  if (strncmp(directory, self, sizeof self - 1) == 0) {
    n += (size_t)sprintf(command + n, "/proc/%d/", (int)getpid());
    directory += sizeof self - 1;
  }
  for (const char *p = directory; *p && n < 4 * PATH_MAX; p++)
    n += (size_t)sprintf(command + n, "\\%03o", (unsigned char)*p);
  memcpy(command + n, "\"\n", 2);
  (void)send_text(g, command, n + 2);
}

int ni_gnuplot_start(struct ni_gnuplot *g, const char *program, const char *directory) {
  struct timeval limit = {.tv_sec = NI_GNUPLOT_LIMIT_S};
  int rc = 0, end[2] = {-1, -1}; /* ours, the child's */
  *g = (struct ni_gnuplot){0};
  /* A socket and not pipes: it has MSG_NOSIGNAL and time limits. */
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end) != 0)
    rc = -errno;
  if (!rc && setsockopt(end[0], SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0)
    rc = -errno;
  if (!rc && setsockopt(end[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0)
    rc = -errno;
  if (!rc && !(g->end = fdopen(end[0], "r")))
    rc = -errno;
  if (!rc)
    rc = spawn_gnuplot(g, program, end[1]);
  if (end[1] >= 0)
    close(end[1]);
  if (!rc)
    change_folder(g, directory);
  if (rc && g->end)
    fclose(g->end);
  else if (rc && end[0] >= 0)
    close(end[0]);
  return rc;
}

int ni_gnuplot_load(struct ni_gnuplot *g, const char *script) {
  char command[600];
  int n = snprintf(command, sizeof command, "load '%s'\nprinterr \"\\006\"\n", script);
  if (n < 0 || (size_t)n >= sizeof command)
    return -ENAMETOOLONG;
  return send_text(g, command, (size_t)n);
}

/*
 * gnuplot echoes the command, points at the error with "^", then says `"script" line 7: message`; of that the
 * message is wanted. Warnings and the echo are passed over. true: this line is the mark.
 */
static bool parse_answer(char *line, size_t n, bool *told, char *message, size_t size) {
  if (memchr(line, MARK, n))
    return true;
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)line[i] < 0x20)
      line[i] = ' ';
  while (n > 0 && line[n - 1] == ' ')
    line[--n] = 0;
  const char *text = line + strspn(line, " "), *at = strstr(text, "line "),
             *says = at ? strstr(at, ": ") : NULL;
  if (*told || !*text)
    return false;
  bool error = says && (at == text || *text == '"') && strncmp(says + 2, "warning:", 8) != 0;
  snprintf(message, size, "%s", error ? says + 2 : text);
  *told = error;
  return false;
}

int ni_gnuplot_wait(struct ni_gnuplot *g, char *message, size_t size) {
  bool told = false;
  *message = 0;
  for (;;) {
    errno = 0;
    ssize_t n = getline(&g->line, &g->room, g->end);
    if (n < 0 && errno == EINTR)
      clearerr(g->end);
    else if (n < 0)
      return errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
    else if (parse_answer(g->line, (size_t)n, &told, message, size))
      break;
  }
  if (!told)
    *message = 0; /* it was a warning, an echo */
  return 0;
}

int ni_gnuplot_end(struct ni_gnuplot *g, int now) {
  int status = 0;
  bool killed = false;
  fclose(g->end);
  free(g->line);
  if (now || !ni_child_ended(g->pid, NI_GNUPLOT_LIMIT_S * 1000))
    killed = kill(g->pid, SIGKILL) == 0;
  while (waitpid(g->pid, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFSIGNALED(status) && !killed ? WTERMSIG(status) : 0;
}
