/*
 * Samples counters into a time series, in a thread of its own that takes only time that nobody else wants
 * (SCHED_IDLE).
 *
 *   start ─▶ sweep over all counters ─▶ sample, sample, ... ─▶ stop ─▶ sample, sweep over all counters
 *       ─▶ file closed
 *
 * Samples are due at fixed times from the first one on; one that is late is taken, those that were due
 * meanwhile are counted as missed. What is there is looked for anew every 60 samples, and at once where a
 * driver was loaded anew.
 *
 * One caller. The caller waits for `done` where he must know that the thread ended by itself: its file is
 * gone.
 */
#ifndef NI_RECORDER_H
#define NI_RECORDER_H

#include <poll.h>
#include <pthread.h>

#include "exporter/cli/command.h"
#include "exporter/collect/collector.h"
#include "exporter/model/counters/series_write.h"

/* What the commands that sample have in common. */
struct ni_record_options {
  const char *dir;
  uint64_t every_ns;
  bool all, pcie; /* pcie: ni_wanted.pcie */
  struct ni_words counters;
  struct ni_ranks cpus;
};

/* clang-format off */
#define NI_ROWS_SAMPLING(type) \
  {"every", 0, NI_OPT_TAKE, "TIME", "Between samples: 1s, 100ms", NI_INTO(type, o.every_ns), .def = "1s", \
   .take = ni_parse_period, .want = "a time from 10ms to 1h, such as 1s or 100ms"}, \
  {"all", 0, NI_OPT_FLAG, NULL, "All counters each time, not only the short list", NI_INTO(type, o.all)}, \
  {"counters", 0, NI_OPT_NAMES, "PATTERN,...", "These counters as well; # is a number, * anything", \
   NI_INTO(type, o.counters), .want = "names or patterns of counters"}
#define NI_ROW_CPUS(type) \
  {"cpus", 0, NI_OPT_RANKS, "LIST", "Sample on these processors only, such as 0,32-35", \
   NI_INTO(type, o.cpus), .want = "numbers of processors"}
/* clang-format on */

/* "100ms", "1s", "5m", "2h": ns into a uint64_t. For tables of options. */
int ni_parse_period(const struct ni_opt *o, void *into, const char *arg);

/* A collector with readings for it, and when they were taken. Zeros: none. */
struct ni_sampling {
  struct ni_collector *c;
  struct ni_reading *at;
  struct ni_series_sweep when;
};
/*
 * Finds what there is; o NULL: all of it. What was open goes when the new one is there. 0 or -ENOMEM: all is
 * as it was.
 */
int ni_sampling_open(struct ni_sampling *s, const struct ni_record_options *o);
void ni_sampling_read(struct ni_sampling *s, unsigned threads);
void ni_sampling_close(struct ni_sampling *s);
/* After sample number n, from 1 on: looks anew for what there is, where that is due. */
void ni_sampling_look(struct ni_sampling *s, const struct ni_record_options *o, unsigned n);
/*
 * When the sample behind that of *next is due, into *next, by CLOCK_MONOTONIC. How many before it are missed:
 * their time is over.
 */
uint64_t ni_sampling_due(uint64_t *next, uint64_t every_ns);
/*
 * The calling thread samples on these processors (none: on any), and takes only time that nobody else wants,
 * or as others do.
 */
void ni_sampling_idle(const struct ni_ranks *cpus, bool idle);
/* A thread that samples takes time as others do from here on, if the system permits it: whoever told it to
 * end waits for it, and would wait for as long as anybody else wants the processor. */
void ni_sampling_hurry(pthread_t thread);
/* Says which patterns of --counters fit nothing, in who's name. */
void ni_record_unmet(const struct ni_record_options *o, const struct ni_set *s, const char *who);

/* Blocks the signals that end a command which samples, and one more (0: none). Returns a descriptor that has
 * something when one comes. */
int ni_end_signals(int more);
/* Until a time of CLOCK_MONOTONIC, UINT64_MAX: for ever. True before it where a descriptor has something. */
bool ni_wait_until(struct pollfd *p, nfds_t n, uint64_t at);

struct ni_recorder {
  const struct ni_record_options *o;
  const char *who; /* for messages */
  bool quiet;
  struct ni_series_writer *writer;
  struct ni_series_set full, sampled;
  struct ni_sampling now;
  pthread_t thread;
  int stop, done; /* eventfd */
  bool said;      /* that it cannot be written */
  int error;      /* -errno that ended it */
  /* The thread's until it ended. */
  uint64_t samples, missed;
};

/* Opens the file and starts. quiet: say what goes wrong, nothing else. 0; after a message NI_EXIT_INCOMPLETE,
 * there is nothing to sample, or NI_EXIT_COULD_NOT_RUN. */
int ni_recorder_start(struct ni_recorder *r, const struct ni_record_options *o, const char *who, bool quiet);
/*
 * Ends it, with a sentence on stderr: what is in the file. Whether all of it is. Nothing where it was not
 * started.
 */
bool ni_recorder_stop(struct ni_recorder *r);

#endif
