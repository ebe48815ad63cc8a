/*
 * What a reader of logs and black boxes has to say, in one piece: it takes effect as a whole or not at all.
 *
 *   reader (its own process, with the rights of the files' owner) ─▶ batch as bytes through a pipe
 *       ─▶ ni_live_apply()
 *
 * Two kinds. LOGS: what the whole gzip members between two places of one file say; whoever applies it knows
 * the file read to the second place, so each line counts once however often a reader is killed. LOOK: what
 * the boxes of the reader's user say at this moment; it replaces the look before.
 *
 * Bytes from a reader are as hostile as the files that it read: ni_live_decode() checks sizes, ends of texts,
 * ranges. Plain data; any thread. Times: Unix ns, if nothing else is said.
 */
#ifndef NI_LIVE_BATCH_H
#define NI_LIVE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/record.h"

/* Edges of the histograms: bucket i holds what is at most edge[i], the last one what is above all. */
enum { NI_LIVE_TOOK = 14, NI_LIVE_BUS = 12, NI_LIVE_SIZES = 6 };
extern const uint64_t ni_live_took_ns[NI_LIVE_TOOK];    /* 10 us to 60 s */
extern const uint64_t ni_live_bus_bytes_s[NI_LIVE_BUS]; /* 0.1 to 2,000 GB/s */
extern const uint64_t ni_live_size_from[NI_LIVE_SIZES]; /* 0, 4 KiB, 64 KiB, 1 MiB, 16 MiB, 256 MiB */
/* "0-4Ki", "4Ki-64Ki", ...: as labels have them */
extern const char *const ni_live_size_name[NI_LIVE_SIZES];

/*
 * Whose series: a rank in a communicator of a name. Texts end, and are UTF-8; longer ones are cut between
 * characters.
 */
struct ni_live_who {
  char job[64];     /* the batch system's id, else the name of the log's folder */
  char attempt[16]; /* SLURM_RESTART_COUNT, TORCHELASTIC_RESTART_COUNT, else "0" */
  char comm[64];    /* communicator's name; "": none */
  char gpu_pci[16]; /* "0000:1b:00.0", lower case; "": not known */
  int32_t rank;     /* of the job; of the communicator where no launcher says it; -1: not known */
  int32_t gpu;      /* as the process counts them; -1: not known */
};

/* Operations of one function and size class that records tell of: what came on top. */
struct ni_live_counts {
  struct ni_live_who who;
  char func[24];
  uint32_t size_class;               /* 0 .. NI_LIVE_SIZES - 1, of nccl-tests' size, else of the message */
  uint64_t n, bytes;                 /* operations; message bytes */
  uint64_t timed, ns;                /* of those with a kernel time: how many, the sum of their times */
  uint64_t bus_n, bus_bytes, bus_ns; /* of those with a bus bandwidth: bandwidth x time, and the time */
  double bus_sum;                    /* ... and the sum of the bandwidths, bytes/s: for their mean */
  uint64_t late_n,
      late_ns; /* collectives to which it came last of the ranks of this node, and how long the middle one
                                       of them had been waiting by then */
  /* operations and their bytes that roll-ups tell of, with those that have no record */
  uint64_t rolled, rolled_bytes;
  uint32_t took[NI_LIVE_TOOK + 1]; /* of `timed` */
  uint32_t bus[NI_LIVE_BUS + 1];   /* of `bus_n` */
};

/* The same in the form of NVIDIA's Prometheus mode; only where that is asked for. */
struct ni_live_nvidia {
  struct ni_live_who who;
  char func[24], algo_proto[40]; /* "Ring_ll" */
  bool p2p;
  uint32_t size_log2; /* message of 2^k to 2^(k+1) - 1 bytes */
  int32_t n_ranks, nnodes;
  uint64_t n, bus_n;
  double log_bus_gbs, us; /* sums: of the logarithms of bus_n bandwidths; of n times */
};

/*
 * Where the operations of a communicator's life went, as its newest dump_stats line says: whole numbers, not
 * differences.
 */
struct ni_live_account {
  struct ni_live_who who;
  uint64_t hash;
  int32_t comm_rank;
  bool begins; /* a new life: all numbers are 0 */
  uint64_t started, written, incomplete, in_flight;
  uint64_t filtered[NI_FILTER_COUNT], dropped[NI_DROP_COUNT];
};

/* Where a reader is in a log, and whose log it is. */
struct ni_live_file {
  /* head_hash: of the first head_bytes of it: an inode's number comes again */
  uint64_t dev, ino, head_hash;
  uint32_t head_bytes, uid;
  /* whole members up to `from` were read before this batch; now up to `to` */
  uint64_t from, to;
  int64_t pid; /* of the file's process line, as the following; 0: none yet */
  uint64_t start_ns;
  char job[64], attempt[16];
  /* where it lies; "": longer, or no UTF-8. For its owner's readers alone */
  char path[384];
  int32_t rank; /* the launcher's; -1 */
  bool ended;   /* the process's last line was there */
};

/* of one batch; in ni_live of all since the state began */
struct ni_live_totals {
  /* bytes: of text; keys: beyond NI_LIVE_KEYS_MAX of a batch */
  uint64_t lines, bad_lines, damages, bytes, keys_left_out;
};
enum { NI_LIVE_KEYS_MAX = 4096, NI_LIVE_BATCH_MAX = 8 << 20, NI_LIVE_LOOKS_MAX = 4096 };

/* A process that has a black box. */
struct ni_live_process {
  char job[64], attempt[16], host[64], exe[16];
  int64_t pid;
  uint64_t start_ns, sign_ns; /* sign_ns: its newest sign of life */
  uint64_t seen_ns;           /* the agent's alone: CLOCK_MONOTONIC of when that was new */
  uint32_t uid;
  int32_t rank, world;
  uint8_t life; /* enum ni_life of exporter/input/box/box.h */
};

/* A communicator of a process: the operation that has been in flight there for longest. */
struct ni_live_open {
  struct ni_live_who who;
  int64_t pid;
  uint64_t hash;
  int32_t comm_rank, n_ranks, nnodes;
  uint64_t started[NI_KIND_COUNT]; /* the next rec_sn: collectives have the same on all ranks */
  uint64_t in_flight, stuck;       /* stuck: of those longer in flight than the limit */
  /* the oldest one; func "": nothing is in flight */
  char func[24];
  uint8_t kind, state; /* enum ni_kind; enum ni_hang_state of exporter/model/hang/model.h */
  uint64_t sn, rec_sn, bytes, since_ns;
  int32_t peer; /* root or peer; -1 */
};

/* A hang's verdict, when there is one: at most once in a look. */
struct ni_live_hang {
  char job[64], attempt[16];
  char sentence[1024];
  char path[512]; /* of the verdict as JSON */
  bool certain;
};

enum ni_live_kind { NI_LIVE_LOGS = 1, NI_LIVE_LOOK };
struct ni_live_batch {
  uint32_t kind;
  struct ni_live_totals totals;
  struct ni_live_file file; /* LOGS */
  uint64_t behind;          /* LOOK: bytes of logs that are not read yet */
  /* LOOK: whose; files followed; boxes read; boxes and logs that cannot be read */
  uint32_t uid, logs, boxes, unread;
  uint32_t n_counts, n_nvidia, n_accounts, n_processes, n_open, n_hangs;
  struct ni_live_counts *counts;
  struct ni_live_nvidia *nvidia;
  struct ni_live_account *accounts;
  struct ni_live_process *processes;
  struct ni_live_open *open;
  struct ni_live_hang *hangs;
};

/*
 * The batch as bytes, for free(); NULL without memory. It begins with its length, a uint32_t that counts
 * itself.
 */
void *ni_live_encode(const struct ni_live_batch *b, size_t *bytes);
/*
 * Of len bytes that begin with a batch: 1 and *b points into them (until they change); 0: more bytes are
 * needed; -EBADMSG: it is no sound batch. *took: its length. bytes must be aligned as malloc()'s are.
 */
int ni_live_decode(struct ni_live_batch *b, void *bytes, size_t len, size_t *took);

#endif
