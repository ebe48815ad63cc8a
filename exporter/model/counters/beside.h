/*
 * Counters beside the collectives: what a NIC or GPU did while its ranks had collectives in flight, and while
 * they had none.
 *
 *   processes with their covers ───────────┐
 *   samples of a host's series (series.h) ─┴─▶ rows: of each entity and counter, the amount with and
 *                                               without collectives
 *
 * Whose NIC is it? A GPU's counters belong to the process that drives it (by its address on the bus, else its
 * number). A NIC's belong to the processes whose GPUs are nearest to it by PCI, where the series says that,
 * else to all processes of its host. Each row says which (how).
 *
 * Between two samples a counter rose by d, and collectives were in flight for a share f of the time. d * f is
 * counted as `with`. Where f is neither 0 nor 1 nobody knows when within that time the counter rose: `least`
 * and `most` are what is certain, all or nothing of those d. A sample without a number (reset, unreadable, a
 * gap) is counted in `unknown`.
 *
 * Threads: one. Texts belong to the struct.
 */
#ifndef NI_BESIDE_H
#define NI_BESIDE_H

#include "exporter/base/index.h"
#include "exporter/collect/set.h"

/*
 * When a process had a collective in flight: how much of each part of the run's time.
 *
 * Time is cut into bins of a power of two of ns, counted from 1970, so that covers of different processes,
 * files and runs have the same edges and add up in any order. The bins become twice as wide when there would
 * be more than NI_COVER_BINS of them. Operations that overlap count twice, until a bin is full: where two
 * communicators take turns that is right, where they run at once the cover says less than what was in flight.
 *
 * Memory: at most 8 bytes x NI_COVER_BINS. Whole numbers, so the order of what is added changes nothing.
 */
enum { NI_COVER_BINS = 2048 }; /* a power of two */

struct ni_cover {
  /* ns in flight, of NI_COVER_BINS bins; bin b (its time / width) lies at b % NI_COVER_BINS. NULL: none */
  uint64_t *busy;
  uint64_t first, last; /* the bins in use */
  unsigned shift;       /* a bin is 1 << shift ns wide */
};

/*
 * An operation from start to end, Unix ns, within the time of a job (ni_time_of_a_job): else it is passed
 * over. 0, -ENOMEM.
 */
int ni_cover_add(struct ni_cover *c, int64_t start_ns, int64_t end_ns);
/*
 * All that another one has. most: of each bin the larger of both, for processes whose operations are the
 * same. 0, -ENOMEM.
 */
int ni_cover_merge(struct ni_cover *c, const struct ni_cover *other, bool most);
void ni_cover_free(struct ni_cover *c);

struct ni_cover_share {
  double share;   /* of the time between: 0 to 1 */
  bool some, all; /* a part of it was, the whole of it was in flight */
};
struct ni_cover_share ni_cover_between(const struct ni_cover *c, int64_t from_ns, int64_t to_ns);

/*
 * A process of the job that may be beside counters. Texts are the caller's, and stay until ni_beside_end().
 */
struct ni_beside_process {
  const char *host, *gpu_pci; /* NULL: not known */
  int32_t gpu;                /* as the process sees it; -1: not known */
  const struct ni_cover *cover;
};

enum ni_beside_how { NI_BESIDE_OWN = 0, NI_BESIDE_NEAREST, NI_BESIDE_HOST };
extern const char *const ni_beside_hows[]; /* "its GPU", "nearest", "of the host" */

struct ni_beside_entity {
  const char *host, *name, *about; /* about: its pci address or what the series says of it; NULL: nothing */
  uint8_t source, how;
  double link_bytes_s;
  uint32_t *process; /* whose it is: indices into the caller's processes */
  uint32_t n_processes;
  /* of all of these: in each bin the most of one. There while samples of its set come */
  struct ni_cover cover;
  double with_s, without_s;  /* seconds between samples, with and without collectives */
  uint32_t first, n;         /* rows: of the struct's own after ni_beside_end() */
  struct ni_beside_row *row; /* before that */
  size_t cap_rows;
};

struct ni_beside_row {
  uint32_t entity;
  const char *name;
  struct ni_metric what;
  uint64_t samples, unknown; /* differences with and without a number */
  /* Counters: in units. Of gauges with and without are seconds. */
  double with, least, most, without;
  /*
   * Gauges: mean by time, and the extremes while collectives were in flight; NAN: none. bits: all that were
   * set then.
   */
  double level_with, level_without, lowest, highest;
  uint64_t bits;
  struct ni_beside_bin *bin; /* over the run, ni_beside.n_bins of them; NULL: of this row there are none */
};

/*
 * Of a part of the run: counters, what rose in it; gauges, level x seconds. seconds: of samples that lie in
 * it.
 */
struct ni_beside_bin {
  double sum, seconds;
};

struct ni_beside {
  struct ni_beside_entity *entity;
  struct ni_beside_row *row;
  size_t n_entities, cap_entities, n_rows;
  const struct ni_beside_process *process;
  size_t n_processes;
  struct ni_set texts;
  int64_t from_ns, to_ns; /* of the run */
  unsigned n_bins;
  size_t binned; /* rows with bins: those that were met first */
  /* the caller's to set: every row has a line over the run, not only ni_beside_line()'s */
  bool all_lines;
  /* of the set that samples are of now */
  const struct ni_set *set;
  uint32_t *row_of, *entity_of;                /* of its counters, in its entity; of its entities */
  size_t cap_row_of, cap_entity_of, n_covered; /* n_covered: of entity_of, that have covers */
  /* by what they are called; a row's number is the one in its entity */
  struct ni_index entity_at, row_at;
};

/* What has a line over the run: tx_bytes, rx_bytes, tx_held, clock_sm; NULL behind the last. */
const char *ni_beside_line(size_t i);
enum { NI_BESIDE_BINNED = 256, NI_BESIDE_BINNED_OF_ALL = 4096 }; /* rows with bins at most; with all_lines */

/*
 * Processes stay the caller's. Lines over the run have n_bins parts of the time between; 0: none are wanted.
 */
void ni_beside_begin(struct ni_beside *b, const struct ni_beside_process *process, size_t n, int64_t from_ns,
                     int64_t to_ns, unsigned n_bins);
/* What the samples that follow are of; the set stays the caller's until the next one. 0 or -ENOMEM. */
int ni_beside_set(struct ni_beside *b, const char *host, const struct ni_set *set);
/* Two samples of it that follow one another: each pair once, in the order of a file; files in any order. */
void ni_beside_sample(struct ni_beside *b, const struct ni_reading *before, const struct ni_reading *after);
/*
 * All samples are there: rows by host, source, entity as people count, and as their source has them. 0 or
 * -ENOMEM.
 */
int ni_beside_end(struct ni_beside *b);
void ni_beside_free(struct ni_beside *b);

/* The row of an entity that is called so in all sources ("tx_bytes"; metric.h); NULL: it has none. */
const struct ni_beside_row *ni_beside_unified(const struct ni_beside *b, const struct ni_beside_entity *e,
                                              const char *name);

/* What one looks at first of a NIC or GPU while its ranks had collectives in flight. NAN: not known. */
struct ni_beside_figures {
  double tx_bytes_s, rx_bytes_s, of_link;      /* of_link: the larger of both, 0 to 1 */
  double held, holds;                          /* share of the time, 0 to 1 */
  double retries, timeouts;                    /* counts: at most so many */
  double clock_mhz, lowest_mhz, busy, power_w; /* of a GPU; busy: 0 to 1 */
  uint64_t reasons;                            /* throttle reasons seen, bits of NVML's */
  /* more than a tenth of what was sent or received may be of the time without */
  bool unsure;
};
struct ni_beside_figures ni_beside_figures(const struct ni_beside *b, const struct ni_beside_entity *e);

#endif
