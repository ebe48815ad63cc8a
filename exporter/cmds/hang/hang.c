/*
 * nccl-inspector hang: the command line of it. One look, or one after the other.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "exporter/cli/command.h"
#include "exporter/base/now.h"
#include "exporter/base/text/time_text.h"
#include "print.h"
#include "exporter/model/hang/read_dumps.h"
#include "exporter/model/hang/read_logs.h"
#include "ras.h"
#include "say.h"
#include "say_ras.h"
#include "words.h"
#include "exporter/model/hang/verdict.h"
#include "exporter/base/process/as_user.h"
#include "exporter/input/box/sources.h"
#include "exporter/input/box/passed_over.h"

#define APART_NS UINT64_C(10000000000) /* two looks that are to agree lie so far apart */
#define GONE_AFTER 3                   /* questions in a row without an answer: --watch by RAS alone ends */
/* looks of --watch that are older are of no use any more */
#define KEEP_NS UINT64_C(60000000000)

/*
 * ---- whose job is it? Root looks at each user's part with that user's rights, in a child (as_user.h) ----
 */

#define OWNERS_MAX 64 /* users in one look; what is of others is passed over, and said to be */

struct owners {
  uid_t uid[OWNERS_MAX];
  size_t n;
  bool more;
};

/* Adds the owners of the files. */
static void add_owners(struct owners *o, const struct ni_files *f) {
  for (size_t i = 0; i < f->n; i++) {
    size_t k = 0;
    while (k < o->n && o->uid[k] != f->file[i].owner)
      k++;
    if (k < o->n)
      continue;
    if (o->n < OWNERS_MAX)
      o->uid[o->n++] = f->file[i].owner;
    else
      o->more = true;
  }
}

/*
 * Is a box of this owner trusted? It is if he is us, if the box was named and he owns a log beside it, or if
 * there are no logs.
 */
static bool is_trusted(const struct owners *of_logs, const struct ni_box_sources *s, uid_t owner) {
  size_t k = 0;
  if (owner == geteuid())
    return true;
  while (k < of_logs->n && of_logs->uid[k] != owner)
    k++;
  return s->named && (k < of_logs->n || of_logs->n == 0);
}

/*
 * Which of two results for different users counts more: a hang before a dead job, and that before what could
 * not be told.
 */
static int worse_code(int a, int b) {
  static const int order[] = {NI_EXIT_FINDING, NI_EXIT_DEAD, NI_EXIT_INCOMPLETE, NI_EXIT_COULD_NOT_RUN};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++)
    if (a == order[i] || b == order[i])
      return order[i];
  return NI_EXIT_FINE;
}

/*
 * Adds the owners of dumps. If there are dumps and no logs, a box of this machine belongs to another job,
 * whoever owns it.
 */
static void add_dump_owners(struct owners *o, const struct ni_inputs *in) {
  struct ni_files dumps = {.wanted = ni_hang_dump_name};
  if (ni_discover(&dumps, in->path, in->n) == 0)
    add_owners(o, &dumps);
  ni_files_free(&dumps);
  /*
   * Gathered from several users they are of one job: one look, by one who is not root. What he may not read
   * is counted.
   */
  for (size_t i = 0; i < o->n && o->uid[0] == 0; i++)
    o->uid[0] = o->uid[i];
  if (o->n > 1)
    o->n = 1;
}

/*
 * Runs look(arg) for each user who owns logs or boxes of the command line, as that user; once, here, if we
 * are not root. Its exit code; of several users the one that says most. alone: several users are refused.
 */
static int run_as_owners(const char *name, const struct ni_inputs *in, const char *box_dir, bool alone,
                         int (*look)(void *arg), void *arg) {
  struct ni_box_sources s = {0};
  struct owners o = {0};
  char why[256];
  int code = NI_EXIT_FINE;
  if (geteuid() != 0)
    return look(arg);
  if (ni_box_sources_find(&s, in, box_dir, NULL) < 0) {
    ni_say(stderr, "%s: %s\n", name, strerror(ENOMEM));
    ni_box_sources_free(&s);
    return NI_EXIT_COULD_NOT_RUN;
  }
  add_owners(&o, &s.logs);
  if (s.named)
    add_owners(&o, &s.boxes);
  if (o.n == 0)
    add_dump_owners(&o, in);
  if (o.n == 0)
    add_owners(&o, &s.boxes); /* of the machine: perhaps their logs are not there yet */
  ni_box_sources_free(&s);
  if (o.n == 0)
    o.n = 1; /* uid 0: nothing is there, which is said */
  if (o.more)
    ni_say(stderr, "%s: logs and boxes of more than %d users: those of the others are passed over\n", name,
           OWNERS_MAX);
  if (alone && o.n > 1) {
    ni_say(stderr,
           "%s: --watch: logs and boxes of %zu users are here (uid %u, uid %u). Give the folder of one\n",
           name, o.n, o.uid[0], o.uid[1]);
    return NI_EXIT_USAGE;
  }
  for (size_t i = 0; i < o.n; i++) {
    if (o.n > 1)
      ni_say(stderr, "%s: as uid %u:\n", name, o.uid[i]);
    int e = ni_as_owner(o.uid[i], alone ? 0 : NI_AS_USER_LOOK_SECONDS, -1, look, arg, why, sizeof why);
    if (e < 0)
      ni_say(stderr, "%s: %s\n", name, why);
    code = worse_code(code, e < 0 ? NI_EXIT_COULD_NOT_RUN : e);
  }
  return code;
}

/* ---- one look, or one after the other ---- */

/* What --watch has seen hang without a pause. */
struct standing {
  uint64_t hash, sn, since_ns; /* since_ns: CLOCK_MONOTONIC; 0: nothing */
  enum ni_kind kind;
  char func[64];
  char *said; /* the newest sentence */
};

struct hang {
  struct ni_inputs inputs;
  const char *box_dir;
  struct ni_atlas_options index;
  bool json, all, confirm;
  unsigned watch_s, after_s;
  int threads;
  struct ni_progress progress;
  struct ni_passed_over passed_over; /* of `run`: what was there before its job */
  struct ni_hang_looks looks;        /* of all rounds */
  struct standing standing;          /* of --watch */
  struct ni_hang_ras ras;
};

/* What one round found. */
struct round {
  struct ni_box_sources sources;
  struct ni_files dumps;
  struct owners owners; /* of the logs */
  struct ni_runs runs;  /* of the logs */
  struct ni_hang_model base, now, before;
  struct ni_hang_verdict v, earlier;
};

static void free_round(struct round *r) {
  ni_box_sources_free(&r->sources);
  ni_files_free(&r->dumps);
  ni_runs_free(&r->runs);
  ni_hang_verdict_free(&r->v);
  ni_hang_verdict_free(&r->earlier);
  ni_hang_model_free(&r->base);
  ni_hang_model_free(&r->now);
  ni_hang_model_free(&r->before);
}

/*
 * What root reads itself, without a limit, is only its own. Files of other users are read by their children.
 */
static bool is_anothers(const struct ni_file *f, void *arg) { return f->owner != geteuid(); }

/* A box may say whatever its maker wants. */
static bool is_others(const struct ni_file *f, void *arg) {
  struct round *r = arg;
  char why[64];
  if (is_trusted(&r->owners, &r->sources, f->owner))
    return false;
  snprintf(why, sizeof why, "a box of uid %u, who owns no log here", f->owner);
  ni_hang_bad_file(&r->base, f->path, why);
  return true;
}

static bool is_dump(const struct ni_file *f, void *arg) {
  const struct ni_files *dumps = arg;
  size_t i = 0;
  while (i < dumps->n && (dumps->file[i].ino != f->ino || dumps->file[i].dev != f->dev))
    i++;
  return i < dumps->n;
}

/*
 * Is there a saved answer of RAS, perhaps of another machine, and nothing else? Then the boxes of this
 * machine belong to other jobs.
 */
static bool is_saved_answer_alone(const struct hang *h) {
  return h->ras.text[0] && h->inputs.n == 0 && !h->box_dir;
}

static bool is_any(const struct ni_file *f, void *arg) { return true; }

/* Reads logs and dumps anew, and boxes once more. */
static int read_all_inputs(struct hang *h, struct round *r) {
  struct ni_box_sources *s = &r->sources;
  size_t looks = h->looks.n;
  int e = ni_box_sources_find(s, &h->inputs, h->box_dir, NULL);
  if (is_saved_answer_alone(h))
    ni_files_drop(&s->boxes, is_any, NULL);
  ni_passed_over_drop(&h->passed_over, &s->logs);
  ni_passed_over_drop(&h->passed_over, &s->boxes);
  r->base.box_dir = s->named ? NULL : s->box_dir;
  for (size_t i = 0; e == 0 && s->named && i < s->boxes.n_bad; i++)
    if (ni_box_name(s->boxes.bad[i].path))
      ni_hang_bad_file(&r->base, s->boxes.bad[i].path, ni_unreadable_why(&s->boxes.bad[i]));
  if (geteuid() == 0)
    ni_files_drop(&s->logs, is_anothers, NULL);
  if (geteuid() == 0 && s->named)
    ni_files_drop(&s->boxes, is_anothers, NULL);
  if (e == 0)
    e = ni_hang_find_dumps(&r->dumps, &h->inputs);
  ni_files_drop(&s->logs, is_dump, &r->dumps); /* those that are named */
  add_owners(&r->owners, &s->logs);
  /* Without --run what is over counts as of an earlier run, which the verdict says. */
  if (e == 0 && (s->logs.n || h->inputs.run))
    e = ni_inputs_choose(&h->inputs, "nccl-inspector hang", &s->logs, &r->runs);
  if (e == 0 && s->named)
    ni_files_drop(&s->boxes, is_others, r);
  h->progress.mode = ni_inputs_progress(&h->inputs, false);
  if (e == 0)
    e = ni_hang_read_logs(&r->base, &s->logs, &h->index, "nccl-inspector hang", &h->progress);
  if (e == 0)
    e = ni_hang_read_boxes(&h->looks, s->boxes.file, s->boxes.n, h->threads, s->named ? NULL : &h->inputs,
                           &r->base);
  if (e == 0)
    e = ni_hang_read_dumps(&r->base, &r->dumps, &h->looks);
  /* A folder that boxes name and that is not there: nothing was written yet. */
  bool early = !s->named && h->looks.n > looks;
  for (size_t i = 0; e == 0 && i < s->logs.n_bad; i++)
    if (!early || s->logs.bad[i].error != ENOENT)
      ni_hang_bad_file(&r->base, s->logs.bad[i].path, ni_unreadable_why(&s->logs.bad[i]));
  return e;
}

/*
 * The time at or after which every process was seen, minus the distance that two looks must have; 0: there
 * are no looks.
 */
static uint64_t find_look_limit(const struct ni_hang_model *m) {
  uint64_t t = UINT64_MAX;
  for (size_t i = 0; i < m->n_processes; i++)
    if (m->process[i].has_box && m->process[i].look_ns < t)
      t = m->process[i].look_ns;
  return t == UINT64_MAX || t < APART_NS ? 0 : t - APART_NS;
}

/* The time now. Tests judge synthetic jobs at a given time (docs/testing.md). */
static uint64_t read_now(void) {
  const char *given = getenv("NI_NOW_NS");
  return given && *given ? strtoull(given, NULL, 10) : ni_now_ns(CLOCK_REALTIME);
}

static int judge_round(struct hang *h, struct round *r) {
  uint64_t after_ns = h->after_s * UINT64_C(1000000000), now_ns = read_now();
  int e = ni_hang_model_at(&r->now, &r->base, &h->looks, UINT64_MAX);
  if (e == 0)
    e = ni_hang_judge(&r->v, &r->now, after_ns, now_ns);
  if (e < 0 || !ni_hang_is_hang(&r->v))
    return e;
  uint64_t until = find_look_limit(&r->now);
  if (until) {
    e = ni_hang_model_at(&r->before, &r->base, &h->looks, until);
    if (e == 0)
      e = ni_hang_judge(&r->earlier, &r->before, after_ns, now_ns);
    r->v.second_look = e == 0 && ni_hang_verdicts_agree(&r->v, &r->earlier);
  }
  ni_hang_make_certain(&r->v);
  return e;
}

static void forget_old_looks(struct hang *h) {
  uint64_t newest = 0;
  size_t kept = 0;
  for (size_t i = 0; i < h->looks.n; i++)
    if (h->looks.look[i].ns > newest)
      newest = h->looks.look[i].ns;
  for (size_t i = 0; i < h->looks.n; i++) {
    if (h->looks.look[i].ns + KEEP_NS < newest)
      ni_hang_model_free(&h->looks.look[i].m);
    else
      h->looks.look[kept++] = h->looks.look[i];
  }
  h->looks.n = kept;
}

/* " as of 2026-11-21T08:00:21Z (95 s ago)" */
static const char *skip_as_of(const char *text) {
  if (strncmp(text, " as of ", 7) != 0)
    return text;
  const char *end = strchr(text, ')');
  return end ? end + 1 : text + strlen(text);
}

/*
 * Do the two sentences say the same? Numbers of seconds, minutes, hours and days change with every look, as
 * does the time that is stated; that is nothing new.
 */
static bool is_same_sentence(const char *a, const char *b) {
  for (;;) {
    a = skip_as_of(a);
    b = skip_as_of(b);
    if (!*a || !*b)
      return *a == *b;
    size_t m = strspn(a, "0123456789"), n = strspn(b, "0123456789");
    const bool is_unit = strncmp(a + m, " s", 2) == 0 || strncmp(a + m, " min", 4) == 0;
    bool span = m && n && is_unit;
    if (!span && *a != *b)
      return false;
    a += span ? m : 1;
    b += span ? n : 1;
  }
}

/* Has the plugin left nothing, and RAS answered? */
static bool is_from_ras_alone(const struct hang *h, const struct ni_hang_verdict *v) {
  return h->ras.answered && v->answer == NI_HANG_NO_DATA_AT_ALL;
}

/* Has RAS answered before, and does not now? */
static bool has_ras_gone(const struct hang *h, const struct ni_hang_verdict *v) {
  return h->ras.now.ns && !h->ras.answered && v->answer == NI_HANG_NO_DATA_AT_ALL;
}

/* Prints a time and the sentence, if it differs from the one before. */
static void print_change(struct hang *h, const struct ni_hang_verdict *v) {
  char *text, when[40];
  if (is_from_ras_alone(h, v))
    NI_HANG_SAID(text, ni_hang_ras_say(f, &h->ras));
  else
    NI_HANG_SAID(text, ni_hang_say(f, v));
  if (text && (!h->standing.said || !is_same_sentence(text, h->standing.said))) {
    ni_say(stderr, "%s %s\n", ni_utc_text((int64_t)(ni_now_ns(CLOCK_REALTIME) / 1000), 'T', 0, when), text);
    free(h->standing.said);
    h->standing.said = text;
  } else {
    free(text);
  }
}

/*
 * Has the same operation hung in all looks, over at least the distance that two looks must have? Logs alone
 * cannot tell that by looks at boxes.
 */
static bool hang_lasts(struct standing *s, const struct ni_hang_verdict *v) {
  if (!ni_hang_is_hang(v)) {
    s->since_ns = 0;
    return false;
  }
  const struct ni_hang_knot *k = &v->knot[0];
  const char *func = ni_hang_text(v->model, k->op.func);
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  bool same = s->since_ns && s->hash == k->any->who->hash && s->kind == k->kind && s->sn == k->op.sn &&
      strncmp(s->func, func, sizeof s->func - 1) == 0;
  if (same)
    return now - s->since_ns >= APART_NS;
  s->hash = k->any->who->hash;
  s->kind = k->kind;
  s->sn = k->op.sn;
  s->since_ns = now;
  snprintf(s->func, sizeof s->func, "%s", func);
  return false;
}

/* Reports why there is nothing to judge, and what to do. */
static void report_no_data(const struct hang *h, const struct round *r, const char *name) {
  if (h->ras.n && !h->ras.answered)
    ni_say(stderr, "%s: RAS: %s\n", name, h->ras.why);
  if (h->ras.n && h->inputs.n == 0)
    return; /* nobody asked for logs or boxes */
  ni_box_sources_explain(stderr, name, &r->sources, &h->inputs, &h->looks.passed, true);
  if (r->base.first_bad && !ni_box_sources_bad(&r->sources))
    ni_say(stderr, "%s: %s\n", name, r->base.first_bad);
}

/* Is another look worth while? */
static bool should_look_again(struct hang *h, const struct round *r, unsigned rounds) {
  bool files = h->ras.text[0] != NULL;
  if (is_from_ras_alone(h, &r->v)) {
    bool open = h->ras.v.answer != NI_HANG_LIKELY;
    const bool is_asked = h->watch_s || (h->confirm && rounds == 0);
    return open && !files && is_asked;
  }
  if (has_ras_gone(h, &r->v))
    return h->watch_s && h->ras.failed < GONE_AFTER;
  if (h->watch_s)
    return !hang_lasts(&h->standing, &r->v) && !r->v.second_look && !r->v.fate.over;
  const bool is_open = r->v.answer == NI_HANG_LIKELY && !r->v.second_look && !r->v.fate.over;
  return h->confirm && rounds == 0 && is_open;
}

static int run_looks(void *arg) {
  struct hang *h = arg;
  const char *name = program_invocation_name;
  int code = NI_EXIT_COULD_NOT_RUN;
  bool again = true;
  for (unsigned rounds = 0; again; rounds++) {
    struct round r = {0};
    int e = ni_hang_ras_ask(&h->ras, h->after_s * UINT64_C(1000000000));
    if (e == 0)
      e = read_all_inputs(h, &r);
    if (e == 0)
      e = judge_round(h, &r);
    if (e == 0)
      e = ni_hang_ras_compare(&h->ras, &r.v);
    if (e < 0) {
      ni_say(stderr, "%s: %s\n", name, strerror(-e));
      free_round(&r);
      return NI_EXIT_COULD_NOT_RUN;
    }
    const struct ni_hang_ras *ras = h->ras.n ? &h->ras : NULL;
    code = ni_hang_words_of(ni_hang_answer_of(&r.v, ras))->exit_code;
    again = should_look_again(h, &r, rounds);
    if (r.now.n_processes == 0 && rounds == 0)
      report_no_data(h, &r, name);
    if (!again && has_ras_gone(h, &r.v))
      ni_say(stderr, "%s: RAS answers no more: the job has ended, or its process here (%s)\n", name,
             h->ras.why);
    if (h->watch_s && again && !has_ras_gone(h, &r.v))
      print_change(h, &r.v);
    if (!again && h->json)
      ni_hang_print_json(&r.v, &r.runs, ras);
    else if (!again && (r.now.n_processes || h->ras.answered))
      ni_hang_print(&r.v, &r.runs, ras, h->all);
    free_round(&r);
    if (!again)
      break;
    sleep(h->watch_s ? h->watch_s : APART_NS / 1000000000u);
    forget_old_looks(h);
  }
  return code;
}

static int parse_ras(const struct ni_opt *o, void *into, const char *arg) {
  return ni_hang_ras_add_place(&((struct hang *)into)->ras, arg);
}

static int read_passed_over(const struct ni_opt *o, void *into, const char *arg) {
  return ni_passed_over_read(&((struct hang *)into)->passed_over, arg);
}

/* Of --ras HOST:PORT and --ras FILE the second word would be logs. */
static const char *refuse_hang(void *into) {
  static char why[300];
  const struct hang *h = into;
  const char *last = h->inputs.n ? h->inputs.path[h->inputs.n - 1] : "";
  bool address =
      h->ras.n && !*h->ras.where[0] && strchr(last, ':') && !strchr(last, '/') && access(last, F_OK) != 0;
  for (size_t i = 0; i < h->inputs.n && !address; i++) {
    if (!ni_ras_is_answer(h->inputs.path[i]))
      continue;
    snprintf(why, sizeof why, "%.200s: is an answer of RAS: give it as --ras=FILE", h->inputs.path[i]);
    return why;
  }
  if (!address)
    return NULL;
  snprintf(why, sizeof why, "--ras %.200s: write --ras=%.40s", last, last);
  return why;
}

const struct ni_command ni_hang_command = {
    .name = "hang",
    .need = NI_NEED_DURING,
    .purpose = "does the job hang, in what, and which ranks are missing from it?",
    .about = "Does the job hang, in which operation, and which ranks are missing from it?",
    .run = ni_hang_run,
    .opt =
        (const struct ni_opt[]){
            NI_ROW_BOXES(struct hang),
            {"input-dir", 0, NI_OPT_INPUTS, "DIR",
             "Logs, black boxes, copies, Flight Recorder dumps (also as plain argument)",
             NI_INTO(struct hang, inputs)},
            {"stuck-after", 0, NI_OPT_NUMBER, "SECONDS", "An operation that has not moved for so long hangs",
             NI_INTO(struct hang, after_s), .def = NI_HANG_AFTER_S, .want = "a number of seconds", .min = 1,
             .max = 1000000},
            {"confirm", 0, NI_OPT_FLAG, NULL, "When it looks like a hang, look again after 10 s",
             NI_INTO(struct hang, confirm)},
            {"watch", 0, NI_OPT_NUMBER, "SECONDS",
             "Look every so often until it hangs in looks 10 s apart, or no process is left",
             NI_INTO(struct hang, watch_s), .want = "a number of seconds", .min = 1, .max = 86400},
            {"ras", 0, NI_OPT_TAKE, "[=HOST:PORT|FILE]",
             "Ask NCCL's RAS, too (2.28.7 and later), or read what it has answered: "
             "`ncclras -f json >FILE`; two files are two looks. Without a place localhost:28028",
             .take = parse_ras, .want = "one HOST:PORT, or one or two files"},
            {"ras-timeout", 0, NI_OPT_NUMBER, "SECONDS", "RAS has so long for its answer",
             NI_INTO(struct hang, ras.timeout_s), .def = "30", .want = "a number of seconds", .min = 1,
             .max = 600},
            NI_ROW_BOX_DIR(struct hang),
            NI_ROW_RUN(struct hang),
            NI_ROW_PROGRESS(struct hang),
            NI_ROWS_INDEX(struct hang),
            NI_ROW_JSON(struct hang, "hang"),
            /* By `run`, for itself. */
            {"passed-over", 0, NI_OPT_TAKE, "LIST", NULL, .take = read_passed_over,
             .want = "a file with paths, each of which ends with a byte 0"},
            {"all", 0, NI_OPT_FLAG, NULL,
             "Every rank on a line of its own, and every operation that is waited for",
             NI_INTO(struct hang, all)},
            {0}},
    .more =
        "Reads logs and black boxes of all ranks. Where there are no boxes in DIR, those of this machine "
        "whose log lies there; without DIR all boxes of this machine. docs/hang.md says how to read a "
        "verdict.\n"
        "With --ras alone, and no logs or boxes, the answer is of RAS: who lags behind, who is dead. It "
        "never says that all is well because the counts are equal.",
    .exits = {{"0", "it does not hang"},
              {"1", "could not run, or no data"},
              {"2", "nobody can tell: not every rank was seen"},
              {"3", "it hangs"},
              {"4", "it does not, and its processes were killed or crashed"}},
    .examples = {{"logs/", "a job whose processes run on this node"},
                 {"logs/ copies/", "any job, with the copies that snapshot made"},
                 {"--watch 60 logs/", "until it hangs or ends"},
                 {"--ras --confirm", "without the plugin, on a node of the job: two looks at RAS"}},
    .refuse = refuse_hang};

int ni_hang_run(int argc, char **argv) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  struct hang h = {.progress = NI_PROGRESS_INIT, .threads = cpus < 1 ? 1 : cpus > 16 ? 16 : (int)cpus};
  int done, code = ni_words_parse(&ni_hang_command, argc, argv, &h, &done);
  bool loaded = done || ni_hang_ras_load(&h.ras) == 0;
  if (!loaded)
    ni_say(stderr, "%s: --ras: %s\n", argv[0], h.ras.why);
  if (!loaded || (!done && ni_box_dir_check(argv[0], h.box_dir) < 0))
    code = NI_EXIT_COULD_NOT_RUN;
  else if (!done)
    code = run_as_owners(argv[0], &h.inputs, h.box_dir, h.watch_s > 0, run_looks, &h);
  free(h.standing.said);
  ni_hang_looks_free(&h.looks);
  ni_hang_ras_free(&h.ras);
  ni_passed_over_free(&h.passed_over);
  ni_inputs_free(&h.inputs);
  return code;
}
