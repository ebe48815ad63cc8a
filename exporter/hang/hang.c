/*
 * nccl-inspector hang: the command line of it. One look, or one after the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../command.h"
#include "../options.h"
#include "../recover/sources.h"
#include "print.h"
#include "read_boxes.h"
#include "read_logs.h"
#include "say.h"
#include "verdict.h"

#define APART_NS UINT64_C(10000000000) /* two looks that are to agree lie so far apart */
#define KEEP_NS UINT64_C(60000000000)  /* looks of --watch that are older are of no use any more */

struct hang {
  struct ni_inputs inputs;
  const char *box_dir;
  bool json, all, confirm;
  unsigned watch_s;
  uint64_t after_ns;
  int threads;
  struct ni_hang_looks looks; /* of all rounds */
};

/* What one round found. */
struct round {
  struct ni_hang_model base, now, before;
  struct ni_hang_verdict v, earlier;
};

static void free_round(struct round *r) {
  ni_hang_verdict_free(&r->v);
  ni_hang_verdict_free(&r->earlier);
  ni_hang_model_free(&r->base);
  ni_hang_model_free(&r->now);
  ni_hang_model_free(&r->before);
}

/* Reads logs anew, and boxes once more. */
static int read_all(struct hang *h, struct round *r) {
  struct ni_box_sources s = {0};
  size_t looks = h->looks.n;
  int e = ni_box_sources_find(&s, &h->inputs, h->box_dir);
  for (size_t i = 0; e == 0 && s.named && i < s.boxes.n_bad; i++)
    ni_hang_bad_file(&r->base, s.boxes.bad[i].path, strerror(s.boxes.bad[i].error));
  if (e == 0) e = ni_hang_read_logs(&r->base, s.logs.file, s.logs.n, h->threads);
  if (e == 0)
    e = ni_hang_read_boxes(&h->looks, s.boxes.file, s.boxes.n, h->threads, s.named ? NULL : &h->inputs, &r->base);
  /* A folder that boxes name and that is not there: nothing was written yet. */
  bool early = !s.named && h->looks.n > looks;
  for (size_t i = 0; e == 0 && i < s.logs.n_bad; i++)
    if (!early || s.logs.bad[i].error != ENOENT)
      ni_hang_bad_file(&r->base, s.logs.bad[i].path, strerror(s.logs.bad[i].error));
  ni_box_sources_free(&s);
  return e;
}

/* The moment that every process was seen at or after, less the distance two looks must have; 0: there are no looks. */
static uint64_t earlier_than(const struct ni_hang_model *m) {
  uint64_t t = UINT64_MAX;
  for (size_t i = 0; i < m->n_processes; i++)
    if (m->process[i].has_box && m->process[i].look_ns < t) t = m->process[i].look_ns;
  return t == UINT64_MAX || t < APART_NS ? 0 : t - APART_NS;
}

static int judge(struct hang *h, struct round *r) {
  int e = ni_hang_model_at(&r->now, &r->base, &h->looks, UINT64_MAX);
  if (e == 0) e = ni_hang_judge(&r->v, &r->now, h->after_ns);
  if (e < 0 || r->v.answer == NI_HANG_NO_HANG) return e;
  uint64_t until = earlier_than(&r->now);
  if (until) {
    e = ni_hang_model_at(&r->before, &r->base, &h->looks, until);
    if (e == 0) e = ni_hang_judge(&r->earlier, &r->before, h->after_ns);
    r->v.second_look = e == 0 && ni_hang_agree(&r->v, &r->earlier);
  }
  if (r->v.second_look && ni_hang_complete(&r->v)) r->v.answer = NI_HANG_CERTAIN;
  return e;
}

static void forget_old_looks(struct hang *h) {
  uint64_t newest = 0;
  size_t kept = 0;
  for (size_t i = 0; i < h->looks.n; i++)
    if (h->looks.look[i].ns > newest) newest = h->looks.look[i].ns;
  for (size_t i = 0; i < h->looks.n; i++) {
    if (h->looks.look[i].ns + KEEP_NS < newest) ni_hang_model_free(&h->looks.look[i].m);
    else h->looks.look[kept++] = h->looks.look[i];
  }
  h->looks.n = kept;
}

static bool anybody_alive(const struct ni_hang_model *m) {
  for (size_t i = 0; i < m->n_processes; i++)
    if (m->process[i].life != NI_HANG_DEAD && m->process[i].life != NI_HANG_LEFT) return true;
  return false;
}

static int code_of(const struct round *r) {
  if (r->v.answer != NI_HANG_NO_HANG) return NI_EXIT_FINDING;
  return r->now.unreadable ? NI_EXIT_INCOMPLETE : NI_EXIT_FINE;
}

/* A time and the sentence, when it is another than before. */
static void say_change(const struct ni_hang_verdict *v, char **last) {
  char *text = NULL, when[32];
  size_t n = 0;
  time_t t = time(NULL);
  struct tm tm;
  FILE *f = open_memstream(&text, &n);
  if (f) {
    ni_hang_say(f, v);
    fclose(f);
  }
  if (text && (!*last || strcmp(text, *last) != 0)) {
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
    fprintf(stderr, "%s %s\n", when, text);
    free(*last);
    *last = text;
  } else {
    free(text);
  }
}

static int run(struct hang *h, const char *name) {
  char *last = NULL;
  int code = NI_EXIT_COULD_NOT_RUN;
  for (unsigned rounds = 0;; rounds++) {
    struct round r = {0};
    int e = read_all(h, &r);
    if (e == 0) e = judge(h, &r);
    if (e == 0 && r.now.n_processes == 0) {
      fprintf(stderr, "%s: no logs and no black boxes %s%s\n", name,
              h->inputs.n ? "in what was given" : "of this machine",
              r.now.unreadable ? "; there is something that cannot be read, see above" : "");
      if (r.base.first_bad) fprintf(stderr, "%s\n", r.base.first_bad);
      free_round(&r);
      break;
    }
    if (e < 0) {
      fprintf(stderr, "%s: %s\n", name, strerror(-e));
      free_round(&r);
      break;
    }
    code = code_of(&r);
    bool again = h->watch_s ? !r.v.second_look && anybody_alive(&r.now)
                            : h->confirm && rounds == 0 && r.v.answer == NI_HANG_LIKELY && !r.v.second_look;
    if (h->watch_s && again) say_change(&r.v, &last);
    if (!again) {
      if (h->json) ni_hang_print_json(&r.v);
      else ni_hang_print(&r.v, h->all);
    }
    free_round(&r);
    if (!again) break;
    sleep(h->watch_s ? h->watch_s : APART_NS / 1000000000u);
    forget_old_looks(h);
  }
  free(last);
  return code;
}

enum { OPT_AFTER = NI_OPT_OWN, OPT_WATCH, OPT_BOX_DIR, OPT_ALL, OPT_CONFIRM };

static unsigned long number(struct argp_state *state, const char *option, const char *arg, unsigned long min, unsigned long max) {
  char *end;
  errno = 0;
  unsigned long v = strtoul(arg, &end, 10);
  if (errno || *end || *arg < '0' || *arg > '9' || v < min || v > max)
    argp_error(state, "--%s=%s: want a number of seconds from %lu to %lu", option, arg, min, max);
  return v;
}

static error_t parse_option(int key, char *arg, struct argp_state *state) {
  struct hang *h = state->input;
  switch (key) {
    case NI_OPT_INPUT_DIR:
    case ARGP_KEY_ARG: return ni_inputs_add(&h->inputs, arg) < 0 ? ENOMEM : 0;
    case NI_OPT_JSON: h->json = true; return 0;
    case OPT_AFTER: h->after_ns = number(state, "stuck-after", arg, 1, 1000000) * 1000000000u; return 0;
    case OPT_WATCH: h->watch_s = (unsigned)number(state, "watch", arg, 1, 86400); return 0;
    case OPT_BOX_DIR: h->box_dir = arg; return 0;
    case OPT_ALL: h->all = true; return 0;
    case OPT_CONFIRM: h->confirm = true; return 0;
    default: return ARGP_ERR_UNKNOWN;
  }
}

int ni_hang_run(int argc, char **argv) {
  static const struct argp_option options[] = {
      {"input-dir", NI_OPT_INPUT_DIR, "DIR", 0, "Logs, black boxes, copies of boxes (also as plain argument)", 0},
      {"stuck-after", OPT_AFTER, "SECONDS", 0, "An operation that has not moved for so long hangs (default 300)", 0},
      {"confirm", OPT_CONFIRM, NULL, 0, "When it looks like a hang, look again after 10 s", 0},
      {"watch", OPT_WATCH, "SECONDS", 0, "Look every so often until it hangs in two looks, or all processes have ended", 0},
      {"box-dir", OPT_BOX_DIR, "DIR", 0, "Where the black boxes of this machine lie (default " NI_BOX_DIR ")", 0},
      {"json", NI_OPT_JSON, NULL, 0, "JSON on standard output (schema nccl-inspector-hang-1)", 0},
      {"all", OPT_ALL, NULL, 0, "Every rank on a line of its own, and every operation that is waited for", 0},
      {0}};
  static const struct argp argp = {
      options, parse_option, "[DIR|BOX...]",
      "Does the job hang, in which operation, and which ranks are missing from it?"
      "\vReads logs and black boxes of all ranks. Where there are no boxes in DIR, those of this machine whose log lies there; "
      "without DIR all boxes of this machine. Exit codes: 3 it hangs, 0 it does not, 2 it does not as far as it could be read, "
      "1 could not run, 64 wrong usage. docs/hang.md says how to read a verdict.", NULL, NULL, NULL};
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  struct hang h = {.box_dir = NI_BOX_DIR, .after_ns = NI_HANG_AFTER_NS, .threads = cpus < 1 ? 1 : cpus > 16 ? 16 : (int)cpus};
  int done, code = ni_options_parse(&argp, argc, argv, &h, &done);
  if (!done) code = run(&h, argv[0]);
  ni_hang_looks_free(&h.looks);
  ni_inputs_free(&h.inputs);
  return code;
}
