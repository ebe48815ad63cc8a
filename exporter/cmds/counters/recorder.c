#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

enum { LOOK_EVERY = 60 }; /* samples */

int ni_parse_period(const struct ni_opt *o, void *into, const char *arg) {
  static const char digits[] = "0123456789.";
  char after[32];
  struct ni_when when;
  int64_t most = INT64_C(3600000000) * (o->def ? 1 : 1000000); /* us: an hour; so many that ns fit */
  size_t n = strlen(arg);
  const bool has_length = n >= 2 && n + 1 < sizeof after;
  if (!has_length || !strchr(digits, arg[0]) || strchr(digits, arg[n - 1]))
    return -EINVAL;
  snprintf(after, sizeof after, "+%s", arg);
  if (ni_parse_when(after, &when) < 0 || when.us < 10000 || when.us > most)
    return -EINVAL;
  memcpy((char *)into + o->at, &(uint64_t){(uint64_t)when.us * 1000}, sizeof(uint64_t));
  return 0;
}

/* ---- sweeps ---- */

int ni_sampling_open(struct ni_sampling *s, const struct ni_record_options *o) {
  struct ni_sampling new = {0};
  size_t n = o ? o->counters.n : 0;
  const char **patterns = calloc(n + 1, sizeof *patterns);
  for (size_t i = 0; patterns && i < n; i++)
    patterns[i] = o->counters.word[i].text;
  const struct ni_wanted wanted = {
      .all = !o || o->all, .pcie = o && o->pcie, .counters = n ? patterns : NULL};
  int e = patterns ? ni_collector_open(&new.c, &wanted) : -ENOMEM;
  free(patterns);
  if (e == 0 && !(new.at = calloc(ni_collector_set(new.c)->n_counters + 1, sizeof *new.at)))
    e = -ENOMEM;
  ni_sampling_close(e == 0 ? s : &new);
  if (e == 0)
    *s = new;
  return e;
}

void ni_sampling_read(struct ni_sampling *s, unsigned threads) {
  s->when.real_ns = (int64_t)ni_now_ns(CLOCK_REALTIME);
  s->when.mono_ns = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  (void)ni_collector_read(s->c, s->at, threads);
  s->when.ns = ni_now_ns(CLOCK_MONOTONIC) - (uint64_t)s->when.mono_ns;
}

void ni_sampling_close(struct ni_sampling *s) {
  ni_collector_close(s->c);
  free(s->at);
  *s = (struct ni_sampling){0};
}

void ni_sampling_look(struct ni_sampling *s, const struct ni_record_options *o, unsigned n) {
  if (n % LOOK_EVERY == 0 || (s->c && ni_collector_changed(s->c)))
    (void)ni_sampling_open(s, o);
}

uint64_t ni_sampling_due(uint64_t *next, uint64_t every_ns) {
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  *next += every_ns;
  uint64_t missed = now > *next ? (now - *next) / every_ns : 0;
  *next += missed * every_ns;
  return missed;
}

int ni_end_signals(int more) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGQUIT);
  if (more)
    sigaddset(&set, more);
  sigprocmask(SIG_BLOCK, &set, NULL);
  return signalfd(-1, &set, SFD_CLOEXEC);
}

bool ni_wait_until(struct pollfd *p, nfds_t n, uint64_t at) {
  for (;;) {
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC), left = at > now ? at - now : 0;
    struct timespec t = {.tv_sec = (time_t)(left / 1000000000), .tv_nsec = (long)(left % 1000000000)};
    if (ppoll(p, n, &t, NULL) > 0)
      return true;
    if (!left)
      return false;
  }
}

/* Flushes the series. A full disk is reported once; a file without a name ends it. */
static void flush_series(struct ni_recorder *r) {
  int e = ni_series_flush(r->writer);
  if (e < 0 && !r->said)
    ni_say(stderr, "%s: %s: %s\n", r->who, ni_series_path(r->writer),
           e == -ESTALE ? "the file is gone, or its folder: recording ends here" : strerror(-e));
  r->said = e < 0;
  if (e == -ESTALE)
    r->error = e;
}

static void write_reading(struct ni_recorder *r, struct ni_series_set *of, const struct ni_sampling *s) {
  int e = ni_series_put(r->writer, of, ni_collector_set(s->c), s->at, &s->when);
  if (e < 0)
    r->error = e;
}

static void record_full_sweep(struct ni_recorder *r) {
  struct ni_sampling all = {0};
  if (r->o->all || ni_sampling_open(&all, NULL) < 0)
    return;
  ni_sampling_read(&all, 1);
  if (ni_collector_set(all.c)->n_counters)
    write_reading(r, &r->full, &all);
  ni_sampling_close(&all);
}

static void record_sample(struct ni_recorder *r, uint64_t missed) {
  ni_sampling_read(&r->now, 1);
  r->now.when.missed = missed;
  write_reading(r, &r->sampled, &r->now);
  r->samples++;
  r->missed += missed;
}

/* ---- the thread ---- */

static cpu_set_t cpu_set_of(const struct ni_ranks *cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < cpus->n; i++)
    for (int64_t k = cpus->span[i].from; k <= cpus->span[i].to && k < CPU_SETSIZE; k++)
      CPU_SET((size_t)k, &set);
  return set;
}

void ni_sampling_idle(const struct ni_ranks *cpus, bool idle) {
  cpu_set_t set = cpu_set_of(cpus);
  if (cpus->n)
    (void)sched_setaffinity(0, sizeof set, &set);
  (void)sched_setscheduler(0, idle ? SCHED_IDLE : SCHED_OTHER, &(struct sched_param){0});
}

void ni_sampling_hurry(pthread_t thread) {
  (void)pthread_setschedparam(thread, SCHED_OTHER, &(struct sched_param){0});
}

static void *record_in_thread(void *arg) {
  struct ni_recorder *r = arg;
  uint64_t missed = 0, next;
  ni_sampling_idle(&r->o->cpus, true);
  record_full_sweep(r);
  next = ni_now_ns(CLOCK_MONOTONIC);
  for (unsigned n = 1; !r->error; n++) {
    record_sample(r, missed);
    if (ni_series_due(r->writer))
      flush_series(r);
    ni_sampling_look(&r->now, r->o, n);
    missed = ni_sampling_due(&next, r->o->every_ns);
    if (r->error || ni_wait_until(&(struct pollfd){.fd = r->stop, .events = POLLIN}, 1, next))
      break;
  }
  ni_sampling_idle(&r->o->cpus, false); /* the end is waited for */
  if (r->error != -ESTALE) {
    record_sample(r, missed);
    record_full_sweep(r);
    flush_series(r);
  }
  (void)!write(r->done, &(uint64_t){1}, 8);
  return NULL;
}

static void free_recorder(struct ni_recorder *r) {
  ni_series_set_free(&r->full);
  ni_series_set_free(&r->sampled);
  ni_sampling_close(&r->now);
  (void)ni_series_close(r->writer);
  if (r->stop >= 0)
    close(r->stop);
  if (r->done >= 0)
    close(r->done);
  *r = (struct ni_recorder){0};
}

/* Reports why there is nothing to sample. */
static void report_no_source(const char *who, const struct ni_set *s) {
  ni_say(stderr, "%s: nothing to record: no counter of a NIC, a GPU or the host can be read here\n", who);
  for (size_t i = 0; i < s->n_unread && i < 8; i++)
    ni_say(stderr, "  %s: %s\n", s->unread[i].path, s->unread[i].why);
}

/* Does any of the processors exist that --cpus names? */
static bool has_cpus(const struct ni_ranks *cpus) {
  cpu_set_t set = cpu_set_of(cpus), ours;
  CPU_ZERO(&ours);
  if (!cpus->n || sched_getaffinity(0, sizeof ours, &ours) < 0)
    return true;
  CPU_AND(&set, &set, &ours);
  return CPU_COUNT(&set) > 0;
}

void ni_record_unmet(const struct ni_record_options *o, const struct ni_set *s, const char *who) {
  for (size_t i = 0; i < o->counters.n; i++) {
    size_t k = 0;
    while (k < s->n_counters && !ni_metric_fits(o->counters.word[i].text, s->counter[k].name))
      k++;
    if (k == s->n_counters)
      ni_say(stderr,
             "%s: --counters %s: no counter here has such a name (`counters collect` writes all names)\n",
             who, o->counters.word[i].text);
  }
}

int ni_recorder_start(struct ni_recorder *r, const struct ni_record_options *o, const char *who, bool quiet) {
  char why[512], every[32];
  int code = NI_EXIT_COULD_NOT_RUN;
  *r = (struct ni_recorder){
      .o = o, .who = who, .quiet = quiet, .sampled.interval_ns = o->every_ns, .stop = -1, .done = -1};
  if (!has_cpus(&o->cpus)) {
    ni_say(stderr, "%s: --cpus: none of these processors is one of ours; `taskset -cp $$` says which are\n",
           who);
    return code;
  }
  int e = ni_sampling_open(&r->now, o);
  const struct ni_set *s = e == 0 ? ni_collector_set(r->now.c) : NULL;
  /* the set is the thread's when it runs */
  size_t counters = s ? s->n_counters : 0, entities = s ? s->n_entities : 0;
  if (s)
    ni_record_unmet(o, s, who);
  if (s && !counters) {
    report_no_source(who, s);
    code = NI_EXIT_INCOMPLETE;
  } else if (s && ni_series_create(&r->writer, o->dir, why, sizeof why) < 0) {
    ni_say(stderr, "%s: %s: %s\n", who, o->dir, why);
  } else {
    if (s && ((r->stop = eventfd(0, EFD_CLOEXEC)) < 0 || (r->done = eventfd(0, EFD_CLOEXEC)) < 0))
      e = -errno;
    if (e == 0)
      e = -pthread_create(&r->thread, NULL, record_in_thread, r);
    if (e < 0)
      ni_say(stderr, "%s: %s\n", who, strerror(-e));
    else
      code = NI_EXIT_FINE;
  }
  if (code != NI_EXIT_FINE)
    free_recorder(r);
  else if (!quiet)
    ni_say(stderr, "%s: %s counters of %s %s every %s into %s; whoever kills this loses 10 s at most\n", who,
           NI_COUNT(counters), NI_COUNT(entities), ni_plural(entities, "source", "sources"),
           ni_duration_text((double)o->every_ns / 1e3, every), ni_series_path(r->writer));
  return code;
}

bool ni_recorder_stop(struct ni_recorder *r) {
  char size[32];
  if (!r->writer)
    return true;
  (void)!write(r->stop, &(uint64_t){1}, 8);
  ni_sampling_hurry(r->thread);
  pthread_join(r->thread, NULL);
  struct ni_series_totals t = ni_series_totals(r->writer);
  bool whole = !r->error && !r->said && !t.lost;
  if (whole && r->quiet) {
    free_recorder(r);
    return true;
  }
  ni_say(stderr, "%s: %s %s of %s counters, %s missed", r->who, NI_COUNT(r->samples),
         ni_plural(r->samples, "sample", "samples"), NI_COUNT(ni_collector_set(r->now.c)->n_counters),
         NI_COUNT(r->missed));
  if (!whole)
    ni_say(stderr, "; not all of them are in the file: %s",
           r->error ? strerror(-r->error) : "it could not be written");
  ni_say(stderr, "; %s in %s\n", ni_bytes_text(t.bytes, size), ni_series_path(r->writer));
  free_recorder(r);
  return whole;
}

/*
 * ---- nccl-inspector counters record: a time series of counters, until a signal or for a time ----
 */

struct record {
  struct ni_record_options o;
  uint64_t for_ns; /* 0: until a signal */
};

static int parse_dir(const struct ni_opt *o, void *into, const char *arg) {
  struct record *r = into;
  if (r->o.dir || !*arg)
    return -EINVAL;
  r->o.dir = arg;
  return 0;
}

static const char *refuse_record(void *into) {
  return ((struct record *)into)->o.dir ? NULL
                                        : "where to? give the folder of the job's logs, or another one";
}

const struct ni_command ni_counters_record_command = {
    .name = "counters record",
    .need = NI_NEED_COUNTERS,
    .purpose = "a time series of what NICs, GPUs and the host count",
    .about =
        "Writes what NICs, GPUs and the host count into DIR, as a file beside a job's logs, until it is told "
        "to end.",
    .opt =
        (const struct ni_opt[]){{NULL, 0, NI_OPT_TAKE, "DIR", NULL, .take = parse_dir, .want = "one folder"},
                                NI_ROWS_SAMPLING(struct record),
                                {"for", 0, NI_OPT_TAKE, "TIME",
                                 "End after that time: 30s, 10m, 2h; else by SIGINT, SIGTERM or SIGHUP",
                                 NI_INTO(struct record, for_ns), .take = ni_parse_period,
                                 .want = "a time from 10ms on, such as 30s, 10m or 2h"},
                                NI_ROW_CPUS(struct record),
                                {0}},
    .more =
        "It takes only processor time that nobody else wants. All counters are read at both ends.\n"
        "Whoever kills it with SIGKILL loses the last 10 s at most.",
    .exits = {{"0", "ended as it was told, all is in the file"},
              {"1", "could not run, or not all is in the file"}},
    .examples = {{"logs/ &", "beside a job, from its launcher's prolog"},
                 {"--every 100ms --for 30s /tmp/series", "a close look"}},
    .files = {{"HOST-counters-START.jsonl.gz", "in DIR: lines as docs/format.md has them"}},
    .refuse = refuse_record,
    .run = ni_counters_record_run};

int ni_counters_record_run(int argc, char **argv) {
  struct record r = {0};
  struct ni_recorder recorder = {0};
  int done, code = ni_words_parse(&ni_counters_record_command, argc, argv, &r, &done);
  if (!done) {
    int signals = ni_end_signals(0);
    ni_collector_raise_limit();
    code = ni_recorder_start(&recorder, &r.o, argv[0], false) == NI_EXIT_FINE ? NI_EXIT_FINE
                                                                              : NI_EXIT_COULD_NOT_RUN;
    if (code == NI_EXIT_FINE) {
      struct pollfd p[] = {{.fd = signals, .events = POLLIN}, {.fd = recorder.done, .events = POLLIN}};
      (void)ni_wait_until(p, 2, r.for_ns ? ni_now_ns(CLOCK_MONOTONIC) + r.for_ns : UINT64_MAX);
      if (!ni_recorder_stop(&recorder))
        code = NI_EXIT_COULD_NOT_RUN;
    }
    close(signals);
  }
  ni_words_free(&r.o.counters);
  ni_ranks_free(&r.o.cpus);
  return code;
}
