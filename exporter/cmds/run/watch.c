#include "watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/terminal.h"
#include "exporter/cli/command.h"
#include "exporter/input/box/sources.h"
#include "exporter/input/box/passed_over.h"

#define SECOND UINT64_C(1000000000)
#define ASKED_NS (10 * SECOND) /* who has pressed Ctrl-C does not wait for longer */
#define AGAIN_NS (5 * SECOND)  /* from one watch to the next */
enum { LOOK_EVERY_S = 15, WORDS = 16 };

static uint64_t now_ns(void) { return ni_now_ns(CLOCK_MONOTONIC); }

/* Begins a run of `hang` over the logs. Its complaints are not shown. every_s: --watch; 0: one look. */
static bool begin_look(struct ni_run_watch *w, struct ni_look *x, unsigned every_s, uint64_t end_ns) {
  const struct ni_inputs *logs = &w->l->logs;
  char *word[WORDS + 2], limit[16], every[16], list[64];
  size_t n = 0;
  if (w->earlier < 0)
    return false;
  if (x->said >= 0)
    close(x->said);
  if ((x->said = memfd_create("hang", MFD_CLOEXEC)) < 0)
    return false;
  snprintf(limit, sizeof limit, "%u", w->limit_s);
  snprintf(every, sizeof every, "%u", every_s);
  word[n++] = "/proc/self/exe";
  word[n++] = "hang";
  if (w->limit_s) {
    word[n++] = "--stuck-after";
    word[n++] = limit;
  }
  if (every_s) {
    word[n++] = "--watch";
    word[n++] = every;
  }
  if (w->l->box_dir) {
    word[n++] = "--box-dir";
    word[n++] = w->l->box_dir;
  }
  snprintf(list, sizeof list, "/proc/%ld/fd/%d", (long)getpid(), w->earlier);
  word[n++] = "--passed-over";
  word[n++] = list;
  word[n++] = "--";
  for (size_t i = 0; i < logs->n && n < WORDS; i++)
    word[n++] = logs->path[i];
  word[n] = NULL;
  return ni_task_begin(&x->task, word, (const int[]){-1, x->said, -1}, 0, false, end_ns);
}

/* The exit code of the look if it has ended; -1: none. */
static bool is_over(struct ni_look *x, int *code) {
  int status;
  if (!x->task.pid || !ni_task_over(&x->task, now_ns(), &status))
    return false;
  *code = status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return true;
}

/*
 * Logs and black boxes that are there before the command starts are of earlier attempts. One of these may
 * have hung, and nothing of this one is there yet: without the list the new job would be told to hang, and be
 * killed by --kill. -1: there is no room for the list, so no look can be trusted.
 */
static int list_earlier(const struct ni_launch *l) {
  struct ni_box_sources s = {0};
  int fd = memfd_create("earlier", MFD_CLOEXEC);
  int e = fd < 0 ? -errno : ni_box_sources_find(&s, &l->logs, l->box_dir, NULL);
  if (e == 0)
    e = ni_passed_over_add(fd, &s.logs);
  if (e == 0)
    e = ni_passed_over_add(fd, &s.boxes);
  ni_box_sources_free(&s);
  if (e < 0 && fd >= 0)
    close(fd);
  return e < 0 ? -1 : fd;
}

void ni_run_watch_begin(struct ni_run_watch *w, const struct ni_launch *l, unsigned limit_s) {
  *w = (struct ni_run_watch){.l = l,
                             .limit_s = limit_s,
                             .earlier = l->part == NI_LAUNCH_SILENT ? -1 : list_earlier(l),
                             .asked.said = -1,
                             .going.said = -1,
                             .state = limit_s ? NI_RUN_WATCH_WATCHING : NI_RUN_WATCH_OFF};
  if (!limit_s || w->earlier >= 0)
    return;
  ni_say(stderr, "%s: --hang-limit: logs of earlier runs cannot be listed (no memory): no look is made\n",
         l->who);
  w->state = NI_RUN_WATCH_OFF;
}

bool ni_run_watch_ask(struct ni_run_watch *w) { return begin_look(w, &w->asked, 0, now_ns() + ASKED_NS); }

/* Prints what the look has said, on standard error. Keeps its first line if it names somebody. */
static void print_said(struct ni_run_watch *w, const struct ni_look *x) {
  static const char *const names[] = {"HANG", "not yet a hang"};
  char text[65536];
  off_t at = 0;
  for (ssize_t n; (n = pread(x->said, text, sizeof text, at)) > 0; at += n) {
    size_t line = 0;
    while (line < (size_t)n && text[line] != '\n')
      line++;
    for (size_t i = 0; at == 0 && i < sizeof names / sizeof *names; i++)
      if (strncmp(text, names[i], strlen(names[i])) == 0)
        snprintf(w->sentence, sizeof w->sentence, "%.*s", (int)line, text);
    (void)ni_terminal_write(STDERR_FILENO, text, (size_t)n);
  }
}

static void start_look(struct ni_run_watch *w) {
  unsigned quarter = w->limit_s / 4,
           every = quarter < 1 ? 1
      : quarter > LOOK_EVERY_S ? LOOK_EVERY_S
                               : quarter;
  w->next_ns = now_ns() + AGAIN_NS;
  (void)begin_look(w, &w->going, w->state == NI_RUN_WATCH_WATCHING ? every : 0, UINT64_MAX);
}

bool ni_run_watch_turn(struct ni_run_watch *w) {
  int code;
  uint64_t now = now_ns();
  if (is_over(&w->asked, &code)) {
    if (isatty(STDERR_FILENO))
      (void)ni_write_all(STDERR_FILENO, "\n", 1, -1); /* behind the ^C that the terminal has written */
    print_said(w, &w->asked);
  }
  if (w->state == NI_RUN_WATCH_OFF)
    return false;
  if (!w->going.task.pid) {
    if (now >= w->next_ns)
      start_look(w);
    return false;
  }
  if (!is_over(&w->going, &code))
    return false;
  bool hangs = code == NI_EXIT_FINDING, was_told = w->state == NI_RUN_WATCH_STANDING;
  w->next_ns = now + (hangs || was_told ? w->limit_s * SECOND : AGAIN_NS);
  if (hangs && !was_told) {
    ni_say(stderr, "%s: the job hangs (--hang-limit %u):\n", w->l->who, w->limit_s);
    print_said(w, &w->going);
  } else if (was_told && code == NI_EXIT_FINE) {
    ni_say(stderr, "%s: the job does not hang any more\n", w->l->who);
    *w->sentence = 0;
  }
  w->state = hangs ? NI_RUN_WATCH_STANDING : NI_RUN_WATCH_WATCHING;
  return hangs && !was_told;
}

uint64_t ni_run_watch_due(const struct ni_run_watch *w) {
  uint64_t due = w->asked.task.pid ? w->asked.task.end_ns + 1 : UINT64_MAX;
  if (w->state != NI_RUN_WATCH_OFF && !w->going.task.pid && w->next_ns < due)
    due = w->next_ns;
  return due;
}

void ni_run_watch_enough(struct ni_run_watch *w) { ni_task_end(&w->asked.task); }

static void end_look(struct ni_look *x) {
  ni_task_end(&x->task);
  if (x->said >= 0)
    close(x->said);
  x->said = -1;
}

void ni_run_watch_end(struct ni_run_watch *w) {
  end_look(&w->asked);
  end_look(&w->going);
  if (w->earlier >= 0)
    close(w->earlier);
  w->earlier = -1;
  w->state = NI_RUN_WATCH_OFF;
}
