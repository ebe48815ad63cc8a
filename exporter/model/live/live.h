/*
 * What a node's jobs do now, and have done since: the state that /metrics, `top` and OTLP are made from.
 *
 *   batches (batch.h) ─▶ ni_live_apply() ─▶ ni_live ─▶ exporter/output/metrics: text, OpenMetrics, OTLP, JSON
 *                                             │ ▲
 *                            checkpoint.h ◀───┘ └─── after a restart
 *
 * Counters only grow; a checkpoint holds them together with the places of the files that they come from, so
 * that what is read again after a kill is read once. Jobs that ended go after NI_LIVE_KEEP_NS (settings:
 * keep-ended), with their files' entries once the files are gone or have been untouched as long.
 *
 * Ages are told by CLOCK_MONOTONIC, which nobody sets; a difference of two such times may be of before this
 * machine began.
 *
 * Texts in it are safe to print (safe_text.h), so what differs only in bytes that are not is one.
 *
 * Bounds: NI_LIVE_JOBS_MAX jobs and so on; what is beyond is left out and counted. A user may take whatever
 * is free. Once it is full, who has an equal share gets more only for a job of his that ended; who has less
 * gets it for the job that ended longest ago, or else for the newest one of the user who has most. Threads:
 * one. Ownership: ni_live_free(). Failure: -ENOMEM, -ESTALE, and then the batch has had no effect.
 */
#ifndef NI_LIVE_H
#define NI_LIVE_H

#include "batch.h"
#include "exporter/base/counts.h"
#include "exporter/base/index.h"
#include "exporter/input/box/box.h"

enum {
  NI_LIVE_JOBS_MAX = 256,
  NI_LIVE_CLASSES_MAX = 8192,
  NI_LIVE_MEMBERS_MAX = 8192,
  NI_LIVE_FUNCS_MAX = 32768,
  NI_LIVE_NVIDIA_MAX = 8192,
  NI_LIVE_LIVES_MAX = 32768,
  NI_LIVE_FILES_MAX = 65536,
  NI_LIVE_USERS_MAX = 1024
};

struct ni_live_job {
  char job[64], attempt[16];
  uint32_t uid;
  /* when anything of it last moved; this and what follows: CLOCK_MONOTONIC */
  uint64_t last_ns;
  /* no process of it lives here, or its logs were quiet for a minute: since when; 0: else */
  uint64_t ended_ns;
  bool looked;                /* boxes tell of it */
  uint32_t alive;             /* processes in the newest looks */
  bool stuck;                 /* some operation of it is beyond the limit */
  struct ni_live_hang hang;   /* job "": none */
  uint64_t told_ns, moved_ns; /* when that was said; when records of operations came last; 0: never */
  uint64_t hang_ns;           /* told_ns, Unix */
};

/* Sums of one function and size class of a job, all ranks of this node together. */
struct ni_live_class {
  uint32_t job;
  char func[24];
  uint32_t size_class;
  uint64_t timed, ns, bus_n, took[NI_LIVE_TOOK + 1], bus[NI_LIVE_BUS + 1];
  double bus_sum;
};

/* Sums of a rank in the communicators of one name. */
struct ni_live_member {
  struct ni_live_who who;
  uint32_t job;
  NI_COUNTS(went, started, written, incomplete, filtered[NI_FILTER_COUNT], dropped[NI_DROP_COUNT]);
};
/* As in struct ni_live_counts; n and bytes: what records or roll-ups tell of, whichever is more. */
#define NI_LIVE_SUMS \
  n, bytes, timed, ns, bus_n, bus_bytes, bus_ns, late_n, late_ns, records, record_bytes, rolled, rolled_bytes
struct ni_live_sums {
  NI_COUNTS(all, NI_LIVE_SUMS);
};
struct ni_live_func {
  uint32_t member;
  char func[24];
  NI_COUNTS(sum, NI_LIVE_SUMS);
  struct ni_live_sums before; /* when the window began; n 0: it was not there */
  struct ni_live_sums window; /* of the last whole window, for rates of now (ni_live_tick) */
  uint64_t window_ns;         /* how long that was; 0: there was none yet */
};

/* the last account of a communicator's life; pid and start_ns: of its process */
struct ni_live_life {
  int64_t pid;
  uint64_t start_ns, hash;
  int32_t comm_rank;
  uint32_t job;
  /* as in struct ni_live_who: for a reader that goes on in the middle of a log */
  int32_t gpu;
  char gpu_pci[16];
  NI_COUNTS(went, started, written, incomplete, filtered[NI_FILTER_COUNT], dropped[NI_DROP_COUNT]);
};

/* A look of one user's reader. */
struct ni_live_looked {
  uint32_t uid;
  uint64_t logs, boxes, unread;
  uint64_t at_ns, behind; /* CLOCK_MONOTONIC */
  struct ni_live_process *process;
  struct ni_live_open *open;
  size_t n_processes, n_open;
};

struct ni_live { /* all 0: empty */
  struct ni_live_job *job;
  struct ni_live_class *class;
  struct ni_live_member *member;
  struct ni_live_func *func;
  struct ni_live_nvidia *nvidia;       /* sums since ni_live_nvidia_turn() */
  struct ni_live_nvidia *nvidia_shown; /* of the turn before: what is to be shown */
  struct ni_live_life *life;
  struct ni_live_file *file; /* from: when it was read last, CLOCK_MONOTONIC */
  struct ni_live_looked *look;
  size_t n_jobs, n_classes, n_members, n_funcs, n_nvidia, n_lives, n_files, n_looks, n_nvidia_shown;
  size_t cap_looks;
  struct ni_index jobs, classes, members, funcs, nvidias, lives, files;
  struct ni_live_totals totals;
  /* jobs, members, functions beyond the bounds, also of batches, counted each time */
  uint64_t left_out;
  /* for tables.h: the table that had no room; bits: where the batch's user has his share */
  unsigned full, sated;
  /* CLOCK_MONOTONIC: when the window of rates and NVIDIA's interval began */
  uint64_t window_ns, nvidia_ns;
  uint64_t began_ns; /* Unix: since when counters count, the checkpoint's first */
};

void ni_live_free(struct ni_live *l);
/*
 * now: this node's Unix ns and CLOCK_MONOTONIC. 0; -ENOMEM; -ESTALE: the state has that file (dev, ino and
 * head) at a place that is not file.from, as when a reader that was begun anew comes twice. A file that it
 * does not have may begin anywhere. The look of a user who has nothing here (no process, log, box) goes.
 */
int ni_live_apply(struct ni_live *l, const struct ni_live_batch *b, uint64_t unix_ns, uint64_t mono_ns);
/* Where to go on with a file; NULL: it was never read. */
const struct ni_live_file *ni_live_file_of(const struct ni_live *l, uint64_t dev, uint64_t ino);
/* May more be in it than was read, though no box tells of it any more? Where it lies is known then. */
static inline bool ni_live_file_open(const struct ni_live_file *f, uint64_t mono_ns) {
  return *f->path && !f->ended && (int64_t)(mono_ns - f->from) < INT64_C(1200000000000);
}
/* The job of these texts; NULL: it is not known. */
struct ni_live_job *ni_live_job_of(const struct ni_live *l, const char *job, const char *attempt,
                                   uint32_t uid);
/*
 * What a job does: a place in ni_live_job_states, "running", "stuck", "ended", "logs_only": no box tells of
 * it, so nobody knows.
 */
enum { NI_LIVE_JOB_STATES = 4 };
extern const char *const ni_live_job_states[NI_LIVE_JOB_STATES];
static inline uint8_t ni_live_job_state(const struct ni_live_job *j) {
  bool hangs = j->stuck || *j->hang.job; /* a wait for the dead is told before any operation is stuck */
  return !j->looked ? 3 : j->ended_ns ? 2 : hangs;
}
/* Has a process that is gone been begun anew? It counts no more then: its box may lie there for days. */
bool ni_live_replaced(const struct ni_live_looked *k, const struct ni_live_process *p);
/* Does it live? One that cannot be judged does while its newest sign of life is less than a minute old. */
static inline bool ni_live_up(const struct ni_live_process *p, uint64_t mono_ns) {
  return p->life == NI_LIFE_ALIVE ||
      (p->life == NI_LIFE_UNKNOWN && (int64_t)(mono_ns - p->seen_ns) < INT64_C(60000000000));
}

#endif
