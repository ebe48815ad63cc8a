/*
 * A command that is run for the user, who is to notice nothing of us: it has the descriptors, signal mask,
 * limits and working directory that we were started with, gets the signals that are meant for it, and stops
 * and goes on with us.
 *
 *   begin ─▶ start ─▶ wait ─▶ ended
 *                      │ ▲
 *                      ▼ │  a signal for the command: the caller passes it on, at once or after what he
 *                            has to do first
 *
 * Its process group is ours, so what is sent to the group reaches it without us. With `apart` it has one of
 * its own, and what a terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z) reaches us first. Then the terminal is ours
 * until the command asks for it by reading (SIGTTIN) or by changing its modes (SIGTTOU): it has it from there
 * on, with Ctrl-C, until it stops or ends.
 *
 *   terminal is ours ──── the command asks ───▶ terminal is the command's
 *          ▲                                          │
 *          └────────── it stops, or it ends ──────────┘   (continued: it has it again)
 *
 * When it stops, so do we, for the shell that waits for us; but for SIGSTOP without a shell in front of which
 * we are: then we wait on. Whoever reads our standard error may go: that ends neither us nor the command
 * (SIGPIPE is blocked, and the command's mask is as before).
 *
 * One for a process, in its main thread, before there are other threads: these are to have the signals
 * blocked, too. Signals stay blocked until the process ends. Failure: -errno, of start() alone.
 */
#ifndef NI_FOREGROUND_H
#define NI_FOREGROUND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct ni_foreground {
  pid_t child; /* 0: not started, or it has ended */
  bool apart;  /* it has a process group of its own */
  int status;  /* as waitpid()'s, when it has ended */
  /* Its own: how we were started, what is waited for, the terminal. */
  sigset_t mask, waited;
  struct sigaction child_ends; /* SIGCHLD's */
  struct rlimit files;
  int terminal; /* -1: none, or it is not used */
  bool lent;    /* the terminal is the command's */
};

enum ni_foreground_event {
  NI_FOREGROUND_TIME,   /* the time has come */
  NI_FOREGROUND_SIGNAL, /* one for the command, which does not have it yet */
  NI_FOREGROUND_OTHER,  /* another child of ours may have ended */
  NI_FOREGROUND_ENDED,  /* the command has ended: status */
};

/* What a shell says of a command that could not be started. */
enum { NI_CODE_NOT_RUN = 126, NI_CODE_NOT_FOUND = 127 };

/* Blocks the signals. Limits that are raised from here on are not the command's. */
void ni_foreground_begin(struct ni_foreground *f);
/* A signal that ends us and came before there was a command to pass it on to, or 0. */
int ni_foreground_told_to_end(void);
/* Are we in front on a terminal, so that Ctrl-C would come to us? */
bool ni_foreground_on_terminal(void);
/* argv[0] is looked for in PATH. apart: see above. 0, or -errno: of fork(), or of its exec(). */
int ni_foreground_start(struct ni_foreground *f, char **argv, bool apart);
/* For a child that is no such command: restores the signal mask and the limits that we were started with. */
void ni_foreground_as_started(const struct ni_foreground *f);
/*
 * Until something is to be done, or until a time of CLOCK_MONOTONIC (UINT64_MAX: for ever). *info: of a
 * signal.
 */
enum ni_foreground_event ni_foreground_wait(struct ni_foreground *f, uint64_t until_ns, siginfo_t *info);
/*
 * Gives the command a signal that the wait has returned. To it alone, but to its group where the terminal
 * sent it.
 */
void ni_foreground_pass(const struct ni_foreground *f, const siginfo_t *info);
/* The code of a command that has ended: its own, 128 + N where signal N killed it. */
int ni_foreground_code(const struct ni_foreground *f);
/* The exit code for a start that has failed with -errno. */
int ni_foreground_code_of_error(int e);

#endif
