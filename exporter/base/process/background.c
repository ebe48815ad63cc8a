#include "background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"

enum { LOG_BYTES = 4 << 20 };

int ni_background(const char *name) {
  int p[2], code = 1;
  char line[512];
  pid_t child = pipe2(p, O_CLOEXEC) == 0 ? fork() : -1;
  if (child == 0) {
    close(p[0]);
    setsid();
    return p[1];
  }
  if (child < 0) {
    ni_say(stderr, "%s: %s\n", name, strerror(errno));
    exit(code);
  }
  close(p[1]);
  ssize_t n = read(p[0], line, sizeof line);
  if (n > 0) {
    ni_say(stderr, "%.*s\n", (int)n, line);
    exit(0);
  }
  exit(waitpid(child, &code, 0) == child && WIFEXITED(code) ? WEXITSTATUS(code) : 1);
}

void ni_background_done(int waiting, const char *line, int dir, const char *log) {
  int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  char before[64];
  snprintf(before, sizeof before, "%s.1", log);
  (void)renameat(dir, log, dir, before);
  int to =
      openat(dir, log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  (void)ni_write_all(waiting, line, strlen(line), -1);
  for (int fd = 0; fd < 3; fd++)
    (void)dup2(fd && to >= 0 ? to : nothing, fd);
  close(waiting);
  close(to);
  close(nothing);
}

/* Children write to it, too: so it stays, and what is in it goes elsewhere. */
void ni_background_bound(int dir, const char *log) {
  struct stat st;
  char before[64];
  if (fstat(STDERR_FILENO, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < LOG_BYTES)
    return;
  snprintf(before, sizeof before, "%s.1", log);
  int from = openat(dir, log, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  int to = openat(dir, before, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  (void)sendfile(to, from, NULL, (size_t)st.st_size);
  int cut = ftruncate(STDERR_FILENO, 0);
  (void)cut; /* where that fails the next call tries again */
  close(from);
  close(to);
}
