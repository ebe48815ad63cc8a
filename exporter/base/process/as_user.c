#include "as_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/now.h"

bool ni_child_ended(pid_t child, unsigned ms) {
  enum { STEP_MS = 10 };
  uint64_t now, until = ni_now_ns(CLOCK_MONOTONIC) + ms * UINT64_C(1000000);
  struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN};
  siginfo_t info = {0};
  bool ended;
  /* Without pidfd_open (before Linux 5.3) it is asked again and again. */
  while (!(ended =
               waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == child) &&
         (now = ni_now_ns(CLOCK_MONOTONIC)) < until) {
    int left = (int)((until - now) / 1000000) + 1;
    (void)poll(&p, p.fd >= 0, p.fd >= 0 || left < STEP_MS ? left : STEP_MS);
  }
  if (p.fd >= 0)
    close(p.fd);
  return ended;
}

#define NOBODY 65534 /* the group of a uid that the machine has no name for */
#define GROUPS_MAX 65536

int ni_plain_open(int dir, const char *path, struct stat *st) {
  int fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  int e = fd < 0 || fstat(fd, st) != 0 ? -errno : S_ISREG(st->st_mode) ? 0 : -EINVAL;
  if (e == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return e;
}

int ni_named_open(const char *path) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  (void)fcntl(fd, F_SETFL, O_RDONLY);
  return fd;
}

bool ni_as_user_needed(uid_t owner) { return geteuid() == 0 && owner != 0; }

static bool here;

bool ni_as_user_here(void) { return here; }

static bool set_groups_of(uid_t uid, gid_t *gid) {
  static gid_t list[GROUPS_MAX];
  int n = GROUPS_MAX;
  const struct passwd *p = getpwuid(uid);
  *gid = p ? p->pw_gid : NOBODY;
  if (p && getgrouplist(p->pw_name, p->pw_gid, list, &n) < 0)
    n = 0;
  return setgroups(p ? (size_t)n : 0, list) == 0;
}

/*
 * For good: neither a saved id nor a capability is left, and setuid(0) proves it. Of our own files nothing is
 * taken.
 */
static bool become_user(uid_t uid) {
  gid_t gid;
  bool is_user = !ni_as_user_needed(uid) ||
      (set_groups_of(uid, &gid) && setresgid(gid, gid, gid) == 0 && setresuid(uid, uid, uid) == 0 &&
       setuid(0) != 0);
  return is_user && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* What root had open is not the child's. */
static void close_files_but(int keep) {
  struct rlimit l;
  unsigned first = STDERR_FILENO + 1, kept = keep < 0 ? first : (unsigned)keep;
  if (syscall(SYS_close_range, kept + (keep >= 0), ~0u, 0) == 0 &&
      (kept == first || syscall(SYS_close_range, first, kept - 1, 0) == 0))
    return;
  /* before Linux 5.9 */
  int end = getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < 65536 ? (int)l.rlim_cur : 65536;
  for (int fd = STDERR_FILENO + 1; fd < end; fd++)
    if (fd != keep)
      close(fd);
}

static void run_child(pid_t parent, uid_t uid, int keep, int (*work)(void *), void *arg) {
  static const struct rlimit none;
  close_files_but(keep);
  (void)setsid(); /* whoever has root's terminal can type for root */
  if (!become_user(uid))
    _exit(NI_CANNOT_BECOME);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* behind the change of rights, which takes it back */
  if (getppid() != parent)
    _exit(NI_CANNOT_BECOME);
  here = true;
  (void)setrlimit(RLIMIT_CORE, &none);
  int code = work(arg);
  fflush(NULL);
  _exit(code);
}

/*
 * Waits for the child, and ends it after that time (0: never). Not by its own alarm(): whoever has its uid
 * can stop it, and a stopped process dies by SIGKILL alone. 1: it was late; 0; -errno.
 */
static int wait_for_child(pid_t child, unsigned seconds, int *status) {
  bool late = seconds && !ni_child_ended(child, seconds * 1000);
  if (late)
    kill(child, SIGKILL);
  while (waitpid(child, status, 0) < 0)
    if (errno != EINTR)
      return -errno;
  return late;
}

pid_t ni_as_owner_start(uid_t uid, int keep, int (*work)(void *arg), void *arg) {
  pid_t parent = getpid();
  fflush(NULL);
  signal(SIGCHLD, SIG_DFL); /* ignored by who started us, it would take the child's end away */
  pid_t child = fork();
  if (child == 0)
    run_child(parent, uid, keep, work, arg);
  return child < 0 ? -errno : child;
}

int ni_as_owner(uid_t uid, unsigned seconds, int keep, int (*work)(void *arg), void *arg, char *why,
                size_t why_bytes) {
  int status;
  *why = 0;
  if (!ni_as_user_needed(uid))
    return work(arg);
  pid_t child = ni_as_owner_start(uid, keep, work, arg);
  if (child < 0) {
    snprintf(why, why_bytes, "no process for the user (uid %u) can be started: %s", uid, strerror(-child));
    return child;
  }
  int late = wait_for_child(child, seconds, &status);
  if (late < 0)
    return late;
  if (!late && WIFEXITED(status) && WEXITSTATUS(status) != NI_CANNOT_BECOME)
    return WEXITSTATUS(status);
  if (!late && WIFEXITED(status)) {
    snprintf(why, why_bytes, "it belongs to uid %u, whose rights cannot be taken here. Run as that user",
             uid);
    return -EPERM;
  }
  bool reader_has_gone = !late && WTERMSIG(status) == SIGPIPE;
  if (reader_has_gone) { /* so do we, as any program does */
    (void)raise(SIGPIPE);
    return -EPIPE;
  }
  if (late)
    snprintf(why, why_bytes, "not done within %u s, the most that root takes for uid %u. Run as that user",
             seconds, uid);
  else
    snprintf(why, why_bytes, "reading it as uid %u ended with signal %d: it is damaged or forged", uid,
             WTERMSIG(status));
  return late ? -ETIMEDOUT : -ECHILD;
}

void *ni_shared(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}
