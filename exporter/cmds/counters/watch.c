/*
 * nccl-inspector counters watch: what NICs and GPUs do at this moment, redrawn; or a line a sample.
 *
 * On a terminal it draws on the other screen, from its upper left corner on, and takes single keys; at the
 * end the terminal is as it was, whatever ended it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "exporter/base/text/amount_text.h"
#include "exporter/base/now.h"
#include "exporter/base/text/time_text.h"
#include "exporter/output/counters/figures.h"
#include "recorder.h"

struct watch {
  struct ni_record_options o;
  bool once, json;
  struct ni_sampling now;
  struct ni_reading *before;
  bool any;
  bool screen; /* drawn on a terminal */
  struct termios as_it_was;
  bool keys;
};

const struct ni_command ni_counters_watch_command = {
    .name = "counters watch",
    .need = NI_NEED_COUNTERS,
    .purpose = "what NICs and GPUs do at this moment",
    .about =
        "Shows what NICs and GPUs of this machine do at this moment: rates, shares of link and time, errors.",
    .opt =
        (const struct ni_opt[]){
            NI_ROWS_SAMPLING(struct watch),
            {"once", 0, NI_OPT_FLAG, NULL, "Two samples, one table, and no more",
             NI_INTO(struct watch, once)},
            {"json", 0, NI_OPT_FLAG, NULL,
             "A JSON object a line for each sample (schema nccl-inspector-counters-watch-1)",
             NI_INTO(struct watch, json)},
            {0}},
    .more =
        "What is unusual comes first, then what is busiest. q or Ctrl-C ends it. Into a pipe or a file it "
        "writes a line a sample.",
    .exits = {{"0", "done"}, {"1", "could not run"}},
    .examples = {{"", "while a job runs on this node"}, {"--once", "one look, for a terminal or a script"}},
    .run = ni_counters_watch_run};

/* Opens everything, also after a driver was loaded anew. */
static int open_all(struct watch *w) {
  int e = ni_sampling_open(&w->now, &w->o);
  if (e < 0)
    return e;
  w->any = false;
  free(w->before);
  w->before = calloc(ni_collector_set(w->now.c)->n_counters + 1, sizeof *w->before);
  return w->before ? 0 : -ENOMEM;
}

/* Writes codes for the terminal past stdout, which counts columns (terminal.h): they take none. */
static void write_codes(const char *codes) {
  (void)fflush(stdout);
  (void)!write(STDOUT_FILENO, codes, strlen(codes));
}

static void show_screen(const struct watch *w, const struct ni_figures *f, size_t n, double seconds) {
  struct winsize size = {.ws_row = 24};
  char when[40];
  size_t gpus = 0;
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  for (size_t i = 0; i < n; i++)
    gpus += f[i].of->source == NI_METRIC_GPU;
  /* Heads of two tables, the first line, and two lines in which a table may say what it has no room for. */
  size_t room = size.ws_row > 8 ? size.ws_row - 6u : 2, most = gpus && gpus < n ? room / 2 : room;
  /* Between the marks of a synchronised update, so that nothing flickers. */
  write_codes("\033[?2026h\033[H\033[2J");
  ni_say(stdout, "%s, %.3g s, %s counters   q ends\n",
         ni_second_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000000000), ' ', true, when), seconds,
         NI_COUNT(ni_collector_set(w->now.c)->n_counters));
  ni_figures_print(f, n, most, stdout);
  write_codes("\033[?2026l");
}

static int print_interval(struct watch *w) {
  const struct ni_set *set = ni_collector_set(w->now.c);
  struct ni_pair p;
  size_t n = 0;
  int e = ni_pair_make(&p, set, w->before, set, w->now.at);
  struct ni_figures *f = e == 0 ? ni_figures_make(&p, &n) : NULL;
  if (!f) {
    if (e == 0)
      ni_pair_free(&p);
    return -ENOMEM;
  }
  if (w->json) {
    struct ni_json j;
    ni_json_open(&j, stdout, "nccl-inspector-counters-watch-1");
    ni_json_u64(&j, "realtime_ns", ni_now_ns(CLOCK_REALTIME));
    ni_json_f64(&j, "seconds", p.seconds);
    ni_figures_json(&j, f, n);
    ni_json_close(&j);
  } else if (w->screen) {
    show_screen(w, f, n, p.seconds);
  } else if (w->once) {
    ni_figures_print(f, n, 0, stdout);
  } else {
    ni_figures_line(f, n, stdout);
  }
  free(f);
  ni_pair_free(&p);
  return fflush(stdout) == 0 ? 0 : -errno;
}

/* ---- the terminal ---- */

static void enter_screen(struct watch *w) {
  w->screen = !w->once && !w->json && isatty(STDOUT_FILENO);
  w->keys = w->screen && tcgetattr(STDIN_FILENO, &w->as_it_was) == 0;
  if (w->keys) {
    struct termios t = w->as_it_was;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
  }
  if (w->screen)
    write_codes("\033[?1049h\033[?25l");
}

static void leave_screen(const struct watch *w) {
  if (w->screen)
    write_codes("\033[?25h\033[?1049l");
  if (w->keys)
    tcsetattr(STDIN_FILENO, TCSANOW, &w->as_it_was);
}

/*
 * Ctrl-Z: restores the terminal for the shell. Like the kernel, does nothing where nobody could continue us.
 */
static void suspend(struct watch *w) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  leave_screen(w);
  (void)raise(SIGTSTP);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  sigprocmask(SIG_BLOCK, &set, NULL);
  enter_screen(w);
}

/* Waits until then. true: the user, or a signal, wants an end. */
static bool wait_until(struct watch *w, int signals, uint64_t at) {
  struct pollfd p[] = {{.fd = signals, .events = POLLIN},
                       {.fd = w->keys ? STDIN_FILENO : -1, .events = POLLIN}};
  struct signalfd_siginfo came;
  char key = 0;
  while (ni_wait_until(p, 2, at)) {
    if (p[0].revents && (read(signals, &came, sizeof came) != sizeof came || came.ssi_signo != SIGTSTP))
      return true;
    if (p[0].revents)
      suspend(w);
    if (p[1].revents) {
      if (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q')
        return true;
    }
  }
  return false;
}

static int watch_counters(struct watch *w, int signals) {
  uint64_t next = ni_now_ns(CLOCK_MONOTONIC);
  for (;;) {
    struct ni_reading *other = w->now.at;
    w->now.at = w->before;
    w->before = other;
    ni_sampling_read(&w->now, 1);
    int e = w->any ? print_interval(w) : 0;
    if (e < 0 || (w->any && w->once))
      return e;
    w->any = true;
    if (ni_collector_changed(w->now.c) && (e = open_all(w)) < 0)
      return e;
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
    next += w->o.every_ns;
    if (next < now)
      next = now;
    if (wait_until(w, signals, next))
      return 0;
  }
}

int ni_counters_watch_run(int argc, char **argv) {
  struct watch w = {0};
  int done, code = ni_words_parse(&ni_counters_watch_command, argc, argv, &w, &done), e;
  if (!done) {
    int signals = ni_end_signals(SIGTSTP);
    ni_collector_raise_limit();
    e = open_all(&w);
    if (e == 0)
      ni_record_unmet(&w.o, ni_collector_set(w.now.c), argv[0]);
    if (e == 0 && !ni_collector_set(w.now.c)->n_counters) {
      ni_say(stderr, "%s: nothing to watch: no counter of a NIC, a GPU or the host can be read here\n",
             argv[0]);
      code = NI_EXIT_COULD_NOT_RUN;
    } else if (e == 0) {
      enter_screen(&w);
      e = watch_counters(&w, signals);
      leave_screen(&w);
    }
    if (e < 0 && e != -EPIPE) {
      ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
      code = NI_EXIT_COULD_NOT_RUN;
    }
    close(signals);
  }
  ni_sampling_close(&w.now);
  free(w.before);
  ni_words_free(&w.o.counters);
  return code;
}
