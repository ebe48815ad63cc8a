#include "judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "absent.h"

/*
 * A communicator is identified by its hash and its size. A hash that comes back with another size is another
 * communicator.
 */
static int by_comm(const void *a, const void *b) {
  const struct ni_ledger_member *x = *(struct ni_ledger_member *const *)a,
                                *y = *(struct ni_ledger_member *const *)b;
  int k = NI_BY(x, y, process->file->run, who->hash, who->n_ranks, who->rank);
  if (k == 0)
    k = strcmp(x->process->who->host, y->process->who->host);
  return k ? k : NI_BY(x, y, process->who->pid, process->file, who->init_ns);
}

size_t ni_ledger_group_end(const struct ni_ledger *c, size_t from) {
  size_t i = from + 1;
  while (i < c->n_members && c->member[i]->who->comm == c->member[from]->who->comm)
    i++;
  return i;
}

/* One rank of one communicator on one host and pid. */
static bool is_same_rank(const struct ni_ledger_member *x, const struct ni_ledger_member *y) {
  return x->ours == y->ours && x->who->comm == y->who->comm && x->who->rank == y->who->rank &&
      x->process->who->pid == y->process->who->pid &&
      strcmp(x->process->who->host, y->process->who->host) == 0;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }
static uint64_t difference_of(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

/* A problem of x, a rank of a communicator of c: format is printf text of what is behind its name. */
#define SAY_CODE(code, count, x, format, ...) \
  ni_ledger_problem(c, code, count, "communicator 0x%" PRIx64 " rank %d (%s pid %" PRId64 ")" format, \
                    (x)->who->hash, (x)->who->rank, (x)->process->who->host, (x)->process->who->pid, \
                    ##__VA_ARGS__)
#define SAY(code, ...) SAY_CODE(NI_PROBLEM_##code, __VA_ARGS__)

/*
 * Were its last lines written by recover, or may they have been? What ended before the process has last lines
 * of its own.
 */
static bool is_recovered(const struct ni_ledger_member *x) { return x->killed || x->process->killed; }

static void judge_events(struct ni_ledger *c, struct ni_ledger_member *x) {
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    const struct ni_event_stats *s = &x->events.kind[k];
    if (s->dropped)
      SAY(EVENTS_LOST, s->dropped, x, ": %s", ni_event_names[k]);
    if (!x->final || is_recovered(x))
      continue; /* recover knows nothing of events */
    uint64_t sum = s->written + s->dropped + s->in_flight;
    if (sum != s->started)
      SAY(SUM, difference_of(sum, s->started), x,
          ": %" PRIu64 " %s started, %" PRIu64 " written + dropped + in flight", s->started,
          ni_event_names[k], sum);
    /* Files that went by rotation took event lines along; how many is not counted. */
    if (s->written != x->events_there[k] && !(x->process->files_gone && x->events_there[k] < s->written))
      SAY(EVENTS, difference_of(s->written, x->events_there[k]), x,
          ": %" PRIu64 " %s written, %" PRIu64 " in the files", s->written, ni_event_names[k],
          x->events_there[k]);
  }
  /* Lines, of which one can hold many steps. */
  const bool went_with_files = x->process->files_gone && x->proxy_lines < x->proxy_flushed;
  const bool is_own_end = x->final && !is_recovered(x);
  if (is_own_end && x->proxy_lines != x->proxy_flushed && !went_with_files)
    SAY(STATED, difference_of(x->proxy_lines, x->proxy_flushed), x,
        ": dump_stats lines add up to %" PRIu64 " %s, %" PRIu64 " in the files", x->proxy_flushed,
        ni_plural(x->proxy_flushed, "proxy record", "proxy records"), x->proxy_lines);
}

/*
 * The last line of the process counts what was lost with whole files, whatever communicators the records
 * belonged to.
 */
static bool is_process_account(const struct ni_ledger_member *x) {
  return x->who->hash == 0 && !x->kind[0].started && !x->kind[1].started;
}

static void judge_process(struct ni_ledger *c, struct ni_ledger_member *x) {
  struct ni_ledger_process *p = x->process;
  p->ended = x->final;
  if (x->final)
    p->gone = x->kind[0].dropped + x->kind[1].dropped;
  p->files_gone = p->gone != 0;
  uint64_t expired = x->kind[0].expired + x->kind[1].expired;
  if (p->gone && expired)
    ni_ledger_problem(c, NI_PROBLEM_EXPIRED, expired, "%s pid %" PRId64 ", removed by %s", p->who->host,
                      p->who->pid, ni_expiry_text(p->limits));
  if (p->gone > expired)
    ni_ledger_problem(c, NI_PROBLEM_DROPPED, p->gone - expired,
                      "%s pid %" PRId64 ": in files that somebody deleted", p->who->host, p->who->pid);
}

/* Only the last line has the number of expired records. */
static bool may_have_expired(const struct ni_ledger_member *x) {
  return x->process->limits && !x->process->ended;
}

/* How many of its records were lost with whole files. */
static uint64_t count_records_gone(struct ni_ledger_member *x, const struct ni_ledger_kind *k) {
  uint64_t n = x->final && k->written > k->records ? k->written - k->records : 0;
  if (n > x->process->gone)
    n = x->process->gone;
  x->process->gone -= n;
  return n;
}

/* Do the lines match what was stated? Lines that tell of losses may be lost as well. */
static bool is_accounted_for(const struct ni_ledger_member *x, uint64_t lines, uint64_t stated) {
  return lines == stated || (x->process->files_gone && lines < stated);
}

/*
 * With a final line every number below started has to be there or be accounted for; without one, what is
 * missing below the highest number seen can still be in flight, and what came after it is unknown. Where
 * records are sampled, the newest accounting explains the numbers below its started; of those behind it
 * nothing can be said.
 */
static void judge_numbers(struct ni_ledger *c, struct ni_ledger_member *x, struct ni_ledger_kind *k,
                          const char *what, uint64_t gone) {
  const struct ni_seq_set *s = &k->rec_sn;
  uint64_t explained =
      k->filtered + k->dropped + k->incomplete + gone + (x->final || k->stated ? k->in_flight : 0);
  uint64_t end = s->distinct ? s->highest + 1 : 0;
  if (x->final && k->started > end)
    end = k->started;
  uint64_t counted = x->final || !x->process->sample || k->started > end ? end : k->started;
  uint64_t there = ni_seq_set_below(s, counted), open = counted - there;
  struct ni_seq_range hole;
  k->missing = open > explained ? open - explained : 0;
  c->missing += k->missing;
  k->untold = (end - counted) - (s->distinct - there);
  if (k->untold)
    SAY(UNTOLD, k->untold, x,
        ": %s from rec_sn %" PRIu64 " on, of which NCCL_INSPECTOR_SAMPLE writes 1 in %" PRIu64, what, counted,
        x->process->sample);
  if (!s->distinct)
    return;
  if (x->final && s->highest >= k->started)
    SAY(SUM, s->highest + 1 - k->started, x, ": rec_sn %" PRIu64 ", but only %" PRIu64 " %s started",
        s->highest, k->started, what);
  else if (k->missing && ni_seq_set_first_hole(s, 0, &hole))
    SAY(MISSING, k->missing, x, ": %s, first hole rec_sn %" PRIu64 " to %" PRIu64 "%s%s", what, hole.from,
        hole.to, may_have_expired(x) ? ", may have expired by " : "",
        may_have_expired(x) ? ni_expiry_text(x->process->limits) : "");
  else if (k->missing)
    SAY(MISSING, k->missing, x, ": %s after rec_sn %" PRIu64, what, s->highest);
}

/* A rank without a final line lost what its newest line says. */
static void count_causes(struct ni_ledger *c, const struct ni_ledger_kind *k) {
  for (uint32_t i = 0; i < k->n_causes; i++)
    *(k->cause[i].name < c->dropped_by.n ? &c->dropped_by.item[k->cause[i].name].count
                                         : &c->dropped_by.other) += k->cause[i].count;
}

/* Of a member with a final line: do the sums that it states close? gone: records that no file has now. */
static void judge_final_sums(struct ni_ledger *c, const struct ni_ledger_member *x,
                             const struct ni_ledger_kind *k, const char *what, uint64_t gone) {
  uint64_t sum = k->written + k->filtered + k->dropped + k->incomplete + k->in_flight;
  if (sum != k->started)
    SAY(SUM, difference_of(sum, k->started), x,
        ": %" PRIu64 " %s started, %" PRIu64 " written + %" PRIu64 " filtered + %" PRIu64
        " dropped + %" PRIu64 " incomplete + %" PRIu64 " in flight",
        k->started, what, k->written, k->filtered, k->dropped, k->incomplete, k->in_flight);
  if (k->written != k->records + gone)
    SAY(WRITTEN, difference_of(k->written, k->records), x,
        ": %" PRIu64 " %s written, %" PRIu64 " in the files", k->written, what, k->records);
  else if (!is_accounted_for(x, k->flushed, k->written))
    SAY(STATED, difference_of(k->flushed, k->written), x,
        ": dump_stats lines add up to %" PRIu64 " %s, %" PRIu64 " stated as written", k->flushed, what,
        k->written);
  if (!is_accounted_for(x, k->gap_lines, k->dropped))
    SAY(STATED, difference_of(k->gap_lines, k->dropped), x,
        ": %" PRIu64 " %s dropped, gap lines tell %" PRIu64, k->dropped, what, k->gap_lines);
  uint64_t to_roll = k->written + k->sampled;
  /* Since its last roll-ups, or in a block of them that was not written: the records are there. */
  enum ni_problem_code code =
      x->process->killed && k->rolled < to_roll ? NI_PROBLEM_ROLLUP_CUT : NI_PROBLEM_ROLLUP;
  if (x->process->rollups && k->rolled != to_roll)
    SAY_CODE(code, difference_of(k->rolled, to_roll), x,
             ": roll-ups count %" PRIu64 " %s, %" PRIu64 " written + %" PRIu64 " sampled", k->rolled, what,
             k->written, k->sampled);
  if (!is_accounted_for(x, k->incomplete_lines, k->incomplete))
    SAY(STATED, difference_of(k->incomplete_lines, k->incomplete), x,
        ": %" PRIu64 " %s incomplete, lines about them: %" PRIu64, k->incomplete, what, k->incomplete_lines);
}

static void judge_own_records(struct ni_ledger *c, struct ni_ledger_member *x, int which) {
  struct ni_ledger_kind *k = &x->kind[which];
  const char *what = which == NI_KIND_P2P ? "P2P" : "collectives";
  count_causes(c, k);
  if (k->dropped)
    SAY(DROPPED, k->dropped, x, ": %s", what);
  if (k->incomplete)
    SAY(INCOMPLETE, k->incomplete, x, ": %s", what);
  if (x->final && k->in_flight)
    SAY(IN_FLIGHT, k->in_flight, x, ": %s", what);
  if (k->filtered)
    SAY(FILTERED, k->filtered, x, ": %s", what);
  uint64_t late = k->late > k->late_lines ? k->late : k->late_lines;
  if (late)
    SAY(LATE, late, x, ": %s", what);

  uint64_t gone = count_records_gone(x, k);
  if (x->final)
    judge_final_sums(c, x, k, what, gone);

  /*
   * What a killed process had counted since its last roll-ups is in its records and in what recover says of
   * it.
   */
  uint64_t all = larger(larger(k->rolled, k->rec_sn.distinct), k->stated ? k->written + k->sampled : 0);
  c->rolled += k->rolled;
  c->sampled += k->sampled;
  c->without_record += all - k->rec_sn.distinct;
  c->unrolled += all - k->rolled;

  if (k->rec_sn.doubles)
    SAY(DOUBLE, k->rec_sn.doubles, x, ": %s", what);
  judge_numbers(c, x, k, what, gone);
}

static void judge_nvidia(struct ni_ledger *c, struct ni_ledger_member *x) {
  for (int i = 0; i < NI_KIND_COUNT; i++) {
    if (x->kind[i].nvidia_dropped)
      SAY(DROPPED, x->kind[i].nvidia_dropped, x, "");
    c->nvidia_dropped += x->kind[i].nvidia_dropped;
  }
  for (struct ni_ledger_func *f = x->funcs; f; f = f->next) {
    if (f->sn.doubles)
      SAY(DOUBLE, f->sn.doubles, x, ": %s", f->name);
    /* Counting starts at 0 or 1, by version. */
    uint64_t from = f->sn.lowest <= 1 ? f->sn.lowest : 0, missing = ni_seq_set_missing(&f->sn, from);
    struct ni_seq_range hole;
    c->missing += missing;
    if (missing && ni_seq_set_first_hole(&f->sn, from, &hole))
      SAY(MISSING, missing, x,
          ": %s, first hole coll_sn %" PRIu64 " to %" PRIu64
          " (lost, or below NVIDIA's minimum size: its log does not say)",
          f->name, hole.from, hole.to);
  }
}

/*
 * A rank without a log is missing in every communicator, and is counted once. job_lacks: the job of the run
 * misses some.
 */
static void judge_group(struct ni_ledger *c, size_t from, size_t to, bool headless, bool *job_lacks,
                        struct ni_absent *absent) {
  struct ni_ledger_member *first = c->member[from];
  uint64_t seen = 0, least = UINT64_MAX, most = 0, all_final = 1;
  int64_t missing_first = -1, next = 0;
  for (size_t i = from; i < to; i++) {
    struct ni_ledger_member *x = c->member[i];
    bool again = i > from && c->member[i - 1]->who->rank == x->who->rank;
    if (x->who->rank >= 0 && !again) {
      if (x->who->rank > next && missing_first < 0)
        missing_first = next;
      next = (int64_t)x->who->rank + 1;
      seen++;
    }
    /* A communicator that came and went more than once has no single count per rank. */
    all_final &= x->final && !again;
    if (x->kind[0].started < least)
      least = x->kind[0].started;
    if (x->kind[0].started > most)
      most = x->kind[0].started;
  }
  if (missing_first < 0 && next < first->who->n_ranks)
    missing_first = next;
  char whose[40] = "the job"; /* the processes' own lines: ranks are those of the job */
  if (first->who->hash)
    snprintf(whose, sizeof whose, "communicator 0x%" PRIx64, first->who->hash);
  /* Of a process whose first line is not there nobody knows which rank of the job it is. */
  bool counts = !c->partial && (first->who->hash ? !*job_lacks : !headless);
  bool lacks = counts && first->who->n_ranks > 0 && seen < (uint64_t)first->who->n_ranks;
  uint64_t missing = lacks ? (uint64_t)first->who->n_ranks - seen : 0;
  if (!first->who->hash)
    *job_lacks = lacks;
  if (lacks)
    ni_ledger_problem(c, NI_PROBLEM_RANKS, first->who->hash ? 0 : missing,
                      "%s: %" PRIu64 " of %d ranks %s no log, rank %" PRId64 " is the first", whose, missing,
                      first->who->n_ranks, ni_plural(missing, "has", "have"), missing_first);
  if (first->who->hash && counts)
    ni_absent_add_comm(absent, c->member + from, to - from, missing);
  if (all_final && least != most && to - from > 1)
    ni_ledger_problem(c, NI_PROBLEM_UNEVEN, 1, "%s: %" PRIu64 " to %" PRIu64, whose, least, most);
}

/*
 * Processes whose log lacks their own last line: killed, still running, or on a disk that took nothing more.
 * What they did since their newest line is in no log, so a job with one of them is not complete.
 *
 * The last line is a dump_stats line with `final` true and header id 0x0. The plugin writes it where it
 * writes a process line, `recover` writes it for a process that is gone. NVIDIA's logs have neither.
 */
struct unended {
  uint64_t n;
  const char *host[4]; /* different ones, in the order in which they came */
  size_t n_hosts;
  bool more_hosts;
  /* the folder that holds their logs, but imported ones: these have no black box; NULL: all are imported */
  char *dir;
};

/* Widens dir to the folder that holds it and the file at path. */
static int widen_dir(char **dir, const char *path) {
  const char *slash = strrchr(path, '/');
  size_t n = slash ? (size_t)(slash - path) : 1, same = 0;
  if (!slash)
    path = ".";
  if (!*dir)
    return (*dir = n ? strndup(path, n) : strdup("/")) ? 0 : -ENOMEM;
  while (same < n && (*dir)[same] == path[same])
    same++;
  while (same && ((*dir)[same] && (*dir)[same] != '/'))
    same--; /* not half a name */
  while (same && same < n && path[same] != '/')
    same--;
  if (!same && **dir != '/')
    **dir = '.';
  (*dir)[same ? same : 1] = 0;
  return 0;
}

/* Counts a process that has a process line and no last line; passes over all others. 0 or -ENOMEM. */
static int add_unended(struct unended *u, const struct ni_ledger_process *p) {
  const char *host = p->who->host;
  if (!p->has_line || p->ended)
    return 0;
  u->n++;
  if (p->imported)
    return 0;
  size_t i = 0;
  while (i < u->n_hosts && strcmp(u->host[i], host) != 0)
    i++;
  if (i == sizeof u->host / sizeof *u->host)
    u->more_hosts = true;
  else if (i == u->n_hosts)
    u->host[u->n_hosts++] = host;
  return widen_dir(&u->dir, p->file->path);
}

/* Writes what to do, as a sentence without a full stop. Some have a black box. */
static void write_unended_advice(const struct unended *u, char *out, size_t size) {
  FILE *f = fmemopen(out, size, "w");
  if (!f)
    return;
  ni_say(f, "`nccl-inspector recover %s` on ", u->dir);
  for (size_t i = 0; i < u->n_hosts; i++)
    ni_say(f, "%s%.80s", i == 0 ? "" : i + 1 == u->n_hosts && !u->more_hosts ? " and " : ", ", u->host[i]);
  ni_say(f, "%s adds what their black boxes hold", u->more_hosts ? " and others" : "");
  fclose(f);
  out[size - 1] = 0;
}

static int judge_ends(struct ni_ledger *c) {
  struct unended u = {0};
  char text[1024] = "imported logs end where their sources do";
  int e = 0;
  for (size_t i = 0; e == 0 && i < c->n_members; i++) {
    const struct ni_ledger_process *p = c->member[i]->process;
    if (is_process_account(c->member[i]))
      e = add_unended(&u, p);
  }
  if (e == 0 && u.n) {
    if (u.dir)
      write_unended_advice(&u, text, sizeof text);
    ni_ledger_problem(c, NI_PROBLEM_NO_END, u.n, "%s", text);
  }
  free(u.dir);
  return e;
}

/* Gives places the numbers of their lines, which are final now. */
static int settle_place(struct ni_where *p) {
  char *text;
  if (!p->text || !p->line)
    return 0;
  if (asprintf(&text, "%.*s%" PRIu64 "%s", (int)p->at, p->text, p->line, p->text + p->at) < 0)
    return -ENOMEM;
  free(p->text);
  *p = (struct ni_where){.text = text};
  return 0;
}

static int settle_places(struct ni_ledger *c) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < c->n_samples; i++)
    e = settle_place(&c->sample[i]);
  for (int i = 0; i < NI_PROBLEM_COUNT; i++)
    for (uint64_t k = 0; e == 0 && k < c->problem[i].places && k < NI_LEDGER_WHERES; k++)
      e = settle_place(&c->problem[i].where[k]);
  return e;
}

void ni_ledger_files(struct ni_ledger *c, const struct ni_files *files) {
  unsigned kinds = (unsigned)__builtin_popcount(files->kinds);
  for (size_t i = 0; i < files->n_bad; i++)
    ni_ledger_problem(c, NI_PROBLEM_UNREADABLE, 1, "%s: %s", files->bad[i].path,
                      ni_unreadable_why(&files->bad[i]));
  if (kinds > 1)
    ni_ledger_problem(c, NI_PROBLEM_MIXED, kinds, "all are read");
}

void ni_ledger_runs(struct ni_ledger *c, const struct ni_runs *runs, const struct ni_files *files) {
  char text[256];
  uint32_t first = 0;
  bool several = false;
  for (size_t i = 0; i < files->n; i++) { /* 0: of no run, as a time series of counters */
    if (!first)
      first = files->file[i].run;
    several |= files->file[i].run && files->file[i].run != first;
  }
  several |= ni_runs_are_doubtful(runs);
  for (size_t i = 0; several && i < runs->n; i++)
    ni_ledger_problem(c, NI_PROBLEM_RUNS, 1, "%s", ni_run_text(runs, i, text));
}

static size_t find_run_end(const struct ni_ledger *c, size_t from) {
  uint32_t run = c->member[from]->process->file->run;
  size_t end = from + 1;
  while (end < c->n_members && c->member[end]->process->file->run == run)
    end++;
  return end;
}

static void judge_groups(struct ni_ledger *c, bool headless) {
  struct ni_absent absent = {0};
  for (size_t i = 0, end, run; i < c->n_members; i = run) {
    bool lacks = false;
    run = find_run_end(c, i);
    ni_absent_begin(&absent, c->member + i, run - i);
    for (; i < run; i = end)
      judge_group(c, i, end = ni_ledger_group_end(c, i), headless, &lacks, &absent);
    c->problem[NI_PROBLEM_RANKS].count += ni_absent_count(&absent);
  }
}

/* Logs without a line are not all of a job: whoever began to write them has written nothing. */
static void judge_lines(struct ni_ledger *c) {
  const struct ni_problem *empty = &c->problem[NI_PROBLEM_EMPTY];
  if (c->files > 0 && empty->count == c->files)
    ni_ledger_problem(c, NI_PROBLEM_NOTHING, c->files, "%s",
                      empty->where[0].text ? empty->where[0].text : "");
}

int ni_ledger_judge(struct ni_ledger *c) {
  size_t n = c->n_members;
  bool headless = false;
  int e = 0;
  judge_lines(c);
  for (size_t i = 0; i < n; i++)
    c->member[i]->who = &c->who.member[i];
  for (size_t i = 0; i < c->n_processes; i++) {
    c->process[i]->who = &c->who.process[i];
    headless |= c->process[i]->ours && !c->process[i]->has_line;
  }
  if (n > 1)
    qsort(c->member, n, sizeof *c->member, by_comm);
  for (size_t i = 0; e == 0 && i < n; i++) {
    struct ni_ledger_member *x = c->member[i];
    if (!x->ours) {
      /*
       * NVIDIA's logs do not say when a process began: files of another name are other processes, copies
       * among them.
       */
      if (i + 1 < n && is_same_rank(x, c->member[i + 1]))
        e = ni_ledger_merge_funcs(c->member[i + 1], x);
      judge_nvidia(c, x);
      continue;
    }
    if (!x->process->control_lines)
      SAY(NO_ACCOUNTING, 1, x, "");
    /* What a communicator that is over said last may have gone with a file. */
    else if (!x->final && !x->process->files_gone && !is_process_account(x))
      SAY(NO_FINAL, 1, x, "");
    if (is_process_account(x))
      judge_process(c, x); /* sorted before all others */
    else
      for (int k = 0; k < NI_KIND_COUNT; k++)
        judge_own_records(c, x, k);
    judge_events(c, x);
  }
  judge_groups(c, headless);
  if (e == 0)
    e = judge_ends(c);
  ni_ledger_judge_series(c);
  return e == 0 ? settle_places(c) : e;
}

bool ni_ledger_complete(const struct ni_ledger *c) {
  for (int i = 0; i < NI_PROBLEM_FIRST_NOTE; i++)
    if (c->problem[i].places)
      return false;
  return true;
}
