/*
 * nccl-inspector counters watch: what NICs and GPUs do at this moment, redrawn; or a line a sample.
 *
 * On a terminal it draws on the other screen, from its upper left corner on, and takes single keys; at the end the terminal is as
 * it was, whatever ended it.
 */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/time_text.h"
#include "figures.h"
#include "recorder.h"

struct watch {
  struct ni_record_options o;
  bool once, json;
  const char **patterns;
  struct ni_collector *c;
  struct ni_reading *at[2]; /* this time, the time before */
  bool any;
  bool screen;              /* drawn on a terminal */
  struct termios as_it_was;
  bool keys;
};

const struct ni_command ni_counters_watch_command = {
    .name = "counters watch", .need = NI_NEED_COUNTERS, .purpose = "what NICs and GPUs do at this moment",
    .about = "Shows what NICs and GPUs of this machine do at this moment: rates, shares of link and time, errors.",
    .opt = (const struct ni_opt[]){
        NI_ROWS_SAMPLING(struct watch),
        {"once", 0, NI_OPT_FLAG, NULL, "Two samples, one table, and no more", NI_INTO(struct watch, once)},
        {"json", 0, NI_OPT_FLAG, NULL, "A JSON object a line for each sample (schema nccl-inspector-counters-watch-1)",
         NI_INTO(struct watch, json)},
        {0}},
    .more = "What is unusual comes first, then what is busiest. q or Ctrl-C ends it. Into a pipe or a file it writes a line a sample.",
    .exits = {{"0", "done"}, {"1", "could not run"}},
    .examples = {{"", "while a job runs on this node"}, {"--once", "one look, for a terminal or a script"}},
    .run = ni_counters_watch_run};

/* Anew, where a driver was loaded anew as well. */
static int open_all(struct watch *w) {
  struct ni_collector *c;
  const struct ni_wanted wanted = {.all = w->o.all, .counters = w->patterns};
  int e = ni_collector_open(&c, &wanted);
  if (e < 0) return e;
  size_t n = ni_collector_set(c)->n_counters + 1;
  ni_collector_close(w->c);
  w->c = c;
  w->any = false;
  for (int i = 0; i < 2; i++) {
    free(w->at[i]);
    if (!(w->at[i] = calloc(n, sizeof *w->at[i]))) return -ENOMEM;
  }
  return 0;
}

static void show_line(const struct ni_figures *f, size_t n) {
  static const struct {
    unsigned figure;
    const char *name;
  } shown[] = {{NI_FIG_RX, "rx"}, {NI_FIG_TX, "tx"}, {NI_FIG_PAUSED, "paused"}, {NI_FIG_ERRORS, "errors/s"}, {NI_FIG_BUSY, "busy"},
               {NI_FIG_THROTTLED, "throttled"}};
  char when[40], text[32];
  ni_say(stdout, "%s", ni_utc_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000), 'T', 0, when));
  for (size_t i = 0; i < n; i++) {
    const char *before = " ";
    ni_say(stdout, "  %s", f[i].of->name);
    for (size_t k = 0; k < sizeof shown / sizeof *shown; k++) {
      double v = f[i].at[shown[k].figure];
      if (isnan(v) || (v == 0 && shown[k].figure > NI_FIG_TX)) continue;
      if (shown[k].figure <= NI_FIG_TX) ni_say(stdout, "%s%s %s/s", before, shown[k].name, ni_bytes_text((uint64_t)v, text));
      else if (shown[k].figure == NI_FIG_ERRORS) ni_say(stdout, "%s%s %.3g", before, shown[k].name, v);
      else ni_say(stdout, "%s%s %.1f%%", before, shown[k].name, 100 * v);
      before = ", ";
    }
  }
  ni_say(stdout, "\n");
}

/* Codes for the terminal take no columns, which stdout counts (terminal.h): past it. */
static void steer(const char *codes) {
  (void)fflush(stdout);
  (void)!write(STDOUT_FILENO, codes, strlen(codes));
}

static void show_screen(const struct watch *w, const struct ni_figures *f, size_t n, double seconds) {
  struct winsize size = {.ws_row = 24};
  char when[40];
  size_t gpus = 0;
  (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
  for (size_t i = 0; i < n; i++) gpus += f[i].of->source == NI_METRIC_GPU;
  /* Heads of two tables, the first line, and two lines in which a table may say what it has no room for. */
  size_t room = size.ws_row > 8 ? size.ws_row - 6u : 2, most = gpus && gpus < n ? room / 2 : room;
  /* Between the marks of a synchronised update, so that nothing flickers. */
  steer("\033[?2026h\033[H\033[2J");
  ni_say(stdout, "%s, %.3g s, %zu counters   q ends\n",
         ni_second_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000000000), ' ', true, when), seconds, ni_collector_set(w->c)->n_counters);
  ni_figures_print(f, n, most, stdout);
  steer("\033[?2026l");
}

static int show(struct watch *w) {
  const struct ni_set *set = ni_collector_set(w->c);
  struct ni_pair p;
  size_t n = 0;
  int e = ni_pair_make(&p, set, w->at[1], set, w->at[0]);
  struct ni_figures *f = e == 0 ? ni_figures_make(&p, &n) : NULL;
  if (!f) {
    if (e == 0) ni_pair_free(&p);
    return -ENOMEM;
  }
  if (w->json) {
    struct ni_json j;
    ni_json_open(&j, stdout, "nccl-inspector-counters-watch-1");
    ni_json_u64(&j, "realtime_ns", ni_now_ns(CLOCK_REALTIME));
    ni_json_f64(&j, "seconds", p.seconds);
    ni_figures_json(&j, "figures", f, n);
    ni_json_close(&j);
  } else if (w->screen) {
    show_screen(w, f, n, p.seconds);
  } else if (w->once) {
    ni_figures_print(f, n, 0, stdout);
  } else {
    show_line(f, n);
  }
  free(f);
  ni_pair_free(&p);
  return fflush(stdout) == 0 ? 0 : -errno;
}

/* ---- the terminal ---- */

static void enter(struct watch *w) {
  w->screen = !w->once && !w->json && isatty(STDOUT_FILENO);
  w->keys = w->screen && tcgetattr(STDIN_FILENO, &w->as_it_was) == 0;
  if (w->keys) {
    struct termios t = w->as_it_was;
    t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(STDIN_FILENO, TCSANOW, &t);
  }
  if (w->screen) steer("\033[?1049h\033[?25l");
}

static void leave(const struct watch *w) {
  if (w->screen) steer("\033[?25h\033[?1049l");
  if (w->keys) tcsetattr(STDIN_FILENO, TCSANOW, &w->as_it_was);
}

/* Until then: true where the user, or a signal, wants an end. */
static bool wait_until(const struct watch *w, int signals, uint64_t at) {
  struct pollfd p[] = {{.fd = signals, .events = POLLIN}, {.fd = w->keys ? STDIN_FILENO : -1, .events = POLLIN}};
  for (uint64_t now; (now = ni_now_ns(CLOCK_MONOTONIC)) < at;) {
    struct timespec left = {.tv_sec = (time_t)((at - now) / 1000000000), .tv_nsec = (long)((at - now) % 1000000000)};
    char key = 0;
    if (ppoll(p, 2, &left, NULL) <= 0) continue;
    if (p[0].revents) return true;
    if (p[1].revents && (read(STDIN_FILENO, &key, 1) <= 0 || key == 'q' || key == 'Q')) return true;
  }
  return false;
}

static int watch(struct watch *w, int signals) {
  uint64_t next = ni_now_ns(CLOCK_MONOTONIC);
  for (;;) {
    struct ni_reading *other = w->at[0];
    w->at[0] = w->at[1];
    w->at[1] = other;
    (void)ni_collector_read(w->c, w->at[0], 1);
    int e = w->any ? show(w) : 0;
    if (e < 0 || (w->any && w->once)) return e;
    w->any = true;
    if (ni_collector_changed(w->c) && (e = open_all(w)) < 0) return e;
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
    next += w->o.every_ns;
    if (next < now) next = now;
    if (wait_until(w, signals, next)) return 0;
  }
}

int ni_counters_watch_run(int argc, char **argv) {
  struct watch w = {0};
  int done, code = ni_words_parse(&ni_counters_watch_command, argc, argv, &w, &done), e;
  sigset_t set;
  if (!done) {
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int signals = signalfd(-1, &set, SFD_CLOEXEC);
    ni_collector_raise_limit();
    w.patterns = ni_record_patterns(&w.o.counters);
    e = open_all(&w);
    if (e == 0 && !ni_collector_set(w.c)->n_counters) {
      ni_say(stderr, "%s: nothing to watch: no counter of a NIC, a GPU or the host can be read here\n", argv[0]);
      code = NI_EXIT_COULD_NOT_RUN;
    } else if (e == 0) {
      enter(&w);
      e = watch(&w, signals);
      leave(&w);
    }
    if (e < 0 && e != -EPIPE) {
      ni_say(stderr, "%s: %s\n", argv[0], strerror(-e));
      code = NI_EXIT_COULD_NOT_RUN;
    }
    close(signals);
  }
  ni_collector_close(w.c);
  free(w.at[0]);
  free(w.at[1]);
  free(w.patterns);
  ni_words_free(&w.o.counters);
  return code;
}
