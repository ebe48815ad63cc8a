#include "foreground.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exporter/base/now.h"

enum { ENDING = 4 };
static const int passed_on[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, /* ENDING: these end us */ SIGUSR1,
                                SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH};

void ni_foreground_begin(struct ni_foreground *f) {
  *f = (struct ni_foreground){.terminal = -1};
  sigemptyset(&f->waited);
  sigaddset(&f->waited, SIGCHLD);
  for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
    sigaddset(&f->waited, passed_on[i]);
  sigset_t blocked = f->waited;
  sigaddset(&blocked, SIGTTOU); /* so that a terminal can be given and taken back, whoever has it */
  sigaddset(&blocked, SIGPIPE); /* whoever reads what we say may go: the command stays */
  sigprocmask(SIG_BLOCK, &blocked, &f->mask);
  /* Where SIGCHLD is ignored, as some launchers leave it, no child's end would ever be seen. */
  sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &f->child_ends);
  getrlimit(RLIMIT_NOFILE, &f->files);
}

int ni_foreground_told_to_end(void) {
  sigset_t set;
  sigemptyset(&set);
  for (size_t i = 0; i < ENDING; i++)
    sigaddset(&set, passed_on[i]);
  int n = sigtimedwait(&set, NULL, &(struct timespec){0});
  struct sigaction how;
  return n > 0 && sigaction(n, NULL, &how) == 0 && how.sa_handler != SIG_IGN ? n : 0;
}

/* The terminal that we are in front of, or -1. */
static int open_terminal(void) {
  int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0 && tcgetpgrp(fd) != getpgrp()) {
    close(fd);
    fd = -1;
  }
  return fd;
}

bool ni_foreground_on_terminal(void) {
  int fd = open_terminal();
  if (fd >= 0)
    close(fd);
  return fd >= 0;
}

void ni_foreground_as_started(const struct ni_foreground *f) {
  setrlimit(RLIMIT_NOFILE, &f->files);
  sigprocmask(SIG_SETMASK, &f->mask, NULL);
}

static _Noreturn void exec_program(const struct ni_foreground *f, char **argv, int tell) {
  if (f->apart)
    setpgid(0, 0);
  sigaction(SIGCHLD, &f->child_ends, NULL);
  ni_foreground_as_started(f);
  execvp(argv[0], argv);
  int e = errno;
  (void)!write(tell, &e, sizeof e);
  _exit(NI_CODE_NOT_RUN);
}

int ni_foreground_start(struct ni_foreground *f, char **argv, bool apart) {
  int tell[2], e = 0;
  if (pipe2(tell, O_CLOEXEC) < 0)
    return -errno;
  f->apart = apart;
  if (apart)
    f->terminal = open_terminal();
  pid_t child = fork();
  if (child == 0)
    exec_program(f, argv, tell[1]);
  e = child < 0 ? errno : 0;
  if (child > 0 && apart)
    (void)setpgid(child, child); /* here, too: it may be sent a signal at once */
  close(tell[1]);
  if (child > 0 && read(tell[0], &e, sizeof e) == sizeof e)
    (void)waitpid(child, NULL, 0);
  close(tell[0]);
  f->child = e ? 0 : child;
  return -e;
}

/* ---- the terminal ---- */

static bool is_in_front(const struct ni_foreground *f) {
  return f->terminal >= 0 && tcgetpgrp(f->terminal) == getpgrp();
}

static void take_terminal_back(struct ni_foreground *f) {
  if (f->lent && f->terminal >= 0 && tcgetpgrp(f->terminal) == f->child)
    (void)tcsetpgrp(f->terminal, getpgrp());
}

/*
 * The command has stopped. Where it has asked for the terminal, and that is ours to give, it has it and goes
 * on; else so do we stop, and whoever started us sees it. What continues us comes to the wait as SIGCONT. But
 * SIGSTOP without a shell in front of which we are is somebody's who knows the command alone (a debugger, a
 * checkpoint): he continues it, and nobody would continue us.
 */
static void handle_stop(struct ni_foreground *f, int by) {
  bool asks = by == SIGTTIN || by == SIGTTOU;
  if (asks && is_in_front(f) && tcsetpgrp(f->terminal, f->child) == 0) {
    f->lent = true;
    (void)kill(-f->child, SIGCONT);
    return;
  }
  take_terminal_back(f);
  if (by == SIGSTOP && !ni_foreground_on_terminal())
    return;
  (void)raise(SIGSTOP);
}

/* ---- what comes ---- */

enum ni_foreground_event ni_foreground_wait(struct ni_foreground *f, uint64_t until_ns, siginfo_t *info) {
  for (;;) {
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC), left = until_ns > now ? until_ns - now : 0;
    struct timespec t = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
    int n = until_ns == UINT64_MAX ? sigwaitinfo(&f->waited, info) : sigtimedwait(&f->waited, info, &t);
    if (n < 0 && errno == EAGAIN)
      return NI_FOREGROUND_TIME;
    if (n == SIGCHLD) {
      pid_t pid = f->child ? waitpid(f->child, &f->status, WNOHANG | WUNTRACED) : 0;
      if (pid != f->child || !f->child)
        return NI_FOREGROUND_OTHER;
      if (WIFSTOPPED(f->status)) {
        handle_stop(f, WSTOPSIG(f->status));
        continue;
      }
      take_terminal_back(f);
      f->child = 0;
      return NI_FOREGROUND_ENDED;
    }
    /* What the terminal sends to our group has reached a command in it, and its own signals do not go back to
     * it. Behind its end they are the caller's. */
    bool has_it = f->child && info->si_code == SI_KERNEL && !f->apart && n != SIGCONT;
    bool is_of_child = f->child && info->si_pid == f->child;
    if (n > 0 && !has_it && (n == SIGCONT || !is_of_child))
      return NI_FOREGROUND_SIGNAL;
  }
}

void ni_foreground_pass(const struct ni_foreground *f, const siginfo_t *info) {
  int n = info->si_signo;
  /* A hangup is sent to whole jobs, by a shell as well. */
  bool to_group = f->apart && (info->si_code == SI_KERNEL || n == SIGCONT || n == SIGHUP);
  if (!f->child)
    return;
  if (n == SIGCONT && f->lent && is_in_front(f))
    (void)tcsetpgrp(f->terminal, f->child);
  (void)kill(to_group ? -f->child : f->child, n);
}

int ni_foreground_code(const struct ni_foreground *f) {
  return WIFSIGNALED(f->status) ? 128 + WTERMSIG(f->status) : WEXITSTATUS(f->status);
}

int ni_foreground_code_of_error(int e) { return e == -ENOENT ? NI_CODE_NOT_FOUND : NI_CODE_NOT_RUN; }
