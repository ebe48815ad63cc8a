/*
 * What is known of every rank of every communicator: the evidence that `nccl-inspector hang` judges.
 *
 *   logs (read_logs.c), black boxes and copies of them (read_boxes.c), dumps (read_dumps.c) ─▶ model
 *       ─▶ judge.c ─▶ verdict.h
 *
 * Processes and members are those of who.h, whatever their files and runs. Sources add to a member in any
 * order: operations that finished, operations in flight, how many were started, and until when that is known.
 * What is not known stays unknown; silence of a source is never taken for "not called".
 *
 * Times are Unix ns of the host that says them. All numbers come from files that anybody may have written:
 * they are bounded where they are read, and nothing here indexes memory by them.
 *
 * Threads: readers fill a model of their own each (ni_hang_model_merge joins them); afterwards one thread.
 * Ownership: the model owns everything, ni_hang_model_free(). Failure: -ENOMEM only. Memory grows with
 * members and operations in flight, not with records.
 */
#ifndef NI_HANG_MODEL_H
#define NI_HANG_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/counts.h"
#include "exporter/base/seq_set.h"
#include "exporter/model/clocks/hosts.h"
#include "exporter/model/ledger/anchors.h"
#include "exporter/model/who/who.h"
#include "format/record.h"

/* newest finished collectives kept of a member: to name and compare them */
#define NI_HANG_RECENT 16
#define NI_HANG_FUNCS 24       /* functions of one member; NCCL has eight collectives */
#define NI_HANG_COMMS 65536    /* members in one file; what is beyond is counted (left_out) */
#define NI_HANG_MEMBERS 262144 /* of all: 16,384 ranks with 16 communicators each */
#define NI_HANG_NAMES 512      /* different texts; NCCL has some forty */
#define NI_HANG_NONE UINT64_MAX

/* What a rank does in an operation, in the order in which it happens. */
enum ni_hang_state {
  NI_HANG_CALLED = 0, /* the API call was seen, nothing is launched yet */
  NI_HANG_LAUNCHED,   /* bracket seen, no channel has started: the kernel waits in its stream */
  NI_HANG_KERNEL,     /* inside the kernel on channels_open */
  NI_HANG_NETWORK,    /* inside it, and a network operation waits for net_peer on net_channel */
  NI_HANG_FINISHING,  /* every channel has stopped, the call's bracket is open */
  NI_HANG_UNSTATED,   /* in flight, more is not said */
  NI_HANG_REPLAYED,   /* its graph came to it; NCCL does not tell of its kernel (replays.h) */
  NI_HANG_STATE_COUNT
};

/* One operation, in flight or finished. Names are numbers of the model's table (ni_hang_name). */
struct ni_hang_op {
  uint64_t sn, rec_sn, bytes;
  uint64_t call_sn;    /* number of its API call + 1; 0: not known */
  uint64_t enqueue_ns; /* 0: not stated */
  uint64_t timeout_ns; /* after which PyTorch gives it up; 0: not stated */
  uint64_t every_ns;   /* of a replay: since the one before of the same call; 0: not stated */
  uint64_t seen_ns;    /* the source saw it in flight at this time; finished: when it ended, 0 unknown */
  uint64_t channels_open;
  int32_t channels_above;         /* open ones from 64 on */
  int32_t root;                   /* or peer; -1: not stated */
  int32_t want, started, stopped; /* channels; -1: not stated. want 0: its kernel is not shown */
  int32_t net_peer, net_channel;
  uint16_t func, datatype, net_state;
  uint8_t kind;  /* enum ni_kind */
  uint8_t state; /* enum ni_hang_state; of operations in flight */
  bool given_up; /* in flight when its communicator was closed: an `incomplete` line */
  bool replay;   /* a symmetric kernel that a CUDA graph replayed: its end is never told */
};

enum ni_hang_life {
  NI_HANG_LIFE_UNKNOWN = 0,
  NI_HANG_ALIVE,
  NI_HANG_DEAD, /* gone, and it did not say so itself */
  NI_HANG_LEFT, /* its log ends with the process's own last lines */
  NI_HANG_LIFE_COUNT
};

struct ni_hang_process {
  const struct ni_who_process *who; /* by ni_hang_model_settle() */
  char *exe;
  int32_t rank, world;  /* as the launcher gives them, -1 */
  int32_t nccl_version; /* 23102 is 2.31.2; 0: not known */
  char boot_id[40];
  enum ni_hang_life life;
  uint64_t alive_ns; /* newest sign of life */
  uint64_t look_ns;  /* when liveness was asked: of the newest black box; 0: never */
  uint64_t file_ns;  /* newest change of a file of it */
  /* What it had met, of all that are over: the longest operation, from call to end, and the longest pause.
   * 0: not known. By its box: the longest time between two calls; by its log: from an end to the next
   * call. */
  uint64_t longest_operation_ns, longest_gap_ns;
  uint64_t ended_ns; /* of its log: newest end of an operation; 0: none */
  int64_t
      /*
       * by ni_hang_model_settle(): its host's clock was that much ahead. Its times are put right;
       * who->start_ns is not
       */
      skew_ns;
  char *file; /* the newest of them: for messages */
  /* dump: of PyTorch's Flight Recorder. Of that alone: host "", its rank for a pid */
  bool has_box, has_log, has_dump;
  bool boxless; /* its log says that it has no black box */
  bool ours;    /* a line of our plugin, or a box: NVIDIA's and imported logs never tell what is in flight */
  /* of one that left by exit or return: finished operations that are not in its log */
  uint64_t unwritten;
  bool uncounted;          /* the same, but it had no time to count them */
  int32_t unwritten_error; /* errno of the write that failed last; 0 */
  uint32_t run;            /* of its log (who.h); 0: not known */
  int64_t moved_ns;        /* while its log is read: by how much its times were moved, in all */
  uint32_t n_members;
  bool several; /* more than one rank of some communicator in this process (judge.c) */
};

struct ni_hang_func {
  uint16_t func;
  uint64_t next; /* highest number seen finished + 1 */
};

struct ni_hang_member {
  const struct ni_who_member *who; /* by ni_hang_model_settle() */
  /* finished */
  struct ni_seq_set recorded[NI_KIND_COUNT]; /* rec_sn of records */
  struct ni_hang_func *fin;                  /* NI_HANG_FUNCS at most */
  uint8_t n_fin;
  struct ni_hang_op *recent; /* the newest of them, in no order: NI_HANG_RECENT at most */
  uint32_t n_recent;
  struct ni_anchors anchors; /* by its log: what tells clocks apart */
  int64_t moved_ns;          /* while its log is read: of its process's moved_ns, how much it was moved by */
  size_t cap_fin, cap_recent;
  /* in flight; from ni_hang_model_settle() on each once, in the order of ni_hang_open_from() */
  struct ni_hang_op *open;
  size_t n_open, cap_open;
  /* how much of it is known */
  uint64_t started[NI_KIND_COUNT];   /* NI_HANG_NONE: not stated */
  uint64_t calls;                    /* API calls of collectives, with started_ns; 0: not known */
  uint64_t started_ns;               /* ... at this time */
  uint64_t open_ns;                  /* `open` is all there is in flight at this time; 0: never known */
  uint64_t active_ns;                /* newest start or end of an operation */
  uint64_t ended_ns;                 /* newest end of an operation; 0: none that says when */
  uint64_t passed_ns[NI_KIND_COUNT]; /* newest call of one that has finished; 0: none */
  uint64_t
      /* in flight, though a later one has finished: their ends were not seen. By ni_hang_model_settle() */
      lost;
  uint64_t log_ns; /* newest line of a log about it */
  uint64_t end_ns; /* destroyed or left; 0 */
  bool destroyed;
  bool dump;          /* a process group of a dump, no communicator of NCCL */
  uint64_t invisible; /* operations of which only the API call was seen: their kernels do not count */
};

struct ni_hang_model {
  struct ni_who who;
  struct ni_hang_process *process; /* by their numbers in who */
  struct ni_hang_member **member;  /* the same */
  size_t n_processes, cap_processes, n_members, cap_members;
  struct ni_clocks clocks; /* by ni_hang_model_settle() */
  char **name;             /* functions, datatypes, states; name[0] is "" */
  size_t n_names, cap_names;
  NI_COUNTS(totals, files, boxes, dumps, lines, bad_lines, unreadable,
            left_out); /* left_out: lines, or members, beyond the most */
  char *first_bad;     /* "file: why" of the first that could not be read */
  /* borrowed: where boxes of this machine were looked for; NULL: they came with the paths */
  const char *box_dir;
  size_t foreign; /* boxes there of other users, and one of those */
  uint32_t foreign_uid;
};

void ni_hang_model_free(struct ni_hang_model *m);

/*
 * Number of a text, 0 for NULL and "". At most NI_HANG_NAMES texts: beyond that 0. -ENOMEM as a negative
 * number.
 */
int ni_hang_name(struct ni_hang_model *m, const char *text);
const char *ni_hang_text(const struct ni_hang_model *m, uint16_t name);

/* As ni_who_process() and ni_who_member(), and who is new has a place here, too. A number, or -ENOMEM. */
int64_t ni_hang_process_of(struct ni_hang_model *m, const char *host, int64_t pid, uint64_t start_ns);
/* -E2BIG: there are NI_HANG_MEMBERS already. */
int64_t ni_hang_member_of(struct ni_hang_model *m, uint32_t process, const struct ni_ident *id,
                          uint64_t init_ns);

/* An operation that finished: drops it from those in flight later on (ni_hang_model_settle). 0 or -ENOMEM. */
int ni_hang_finished(struct ni_hang_member *x, const struct ni_hang_op *op);
/* Adds an operation in flight. If it was seen several times, the newest counts. 0 or -ENOMEM. */
int ni_hang_in_flight(struct ni_hang_member *x, const struct ni_hang_op *op);
/*
 * Keeps the newest of several sights of one operation in flight. The result does not depend on when this is
 * called.
 */
void ni_hang_keep_newest(struct ni_hang_member *x);

/* Adds what b knows to a; into an empty a it is a copy. 0 or -ENOMEM (both can still be freed). */
int ni_hang_model_merge(struct ni_hang_model *a, const struct ni_hang_model *b);

/* Puts those in flight into the order of ni_hang_open_from(). */
void ni_hang_order_open(struct ni_hang_member *x);
/*
 * The first operation in flight, in that order, of a kind, at or after this place: collectives by function
 * and number, sends and receives by peer and function. NULL: none of that kind.
 */
const struct ni_hang_op *ni_hang_open_from(const struct ni_hang_member *x, enum ni_kind kind,
                                           int64_t func_or_peer, uint64_t sn_or_func);

/* The first problem of a source, with its file; more are counted. */
void ni_hang_bad_file(struct ni_hang_model *m, const char *path, const char *why);

static inline bool ni_hang_is(const struct ni_hang_op *op, uint16_t func, uint64_t sn) {
  return op->kind == NI_KIND_COLL && op->func == func && op->sn == sn;
}

/* The newest or largest of what was seen. */
static inline void ni_hang_raise(uint64_t *at, uint64_t value) {
  if (value > *at)
    *at = value;
}

#endif
