/*
 * The black box: the plugin's arena as a file in tmpfs, read by another program, also after the process was
 * killed. docs/blackbox.md says how to read one; this header is the layout. The plugin writes it
 * (plugin/slots/box/box.c), the exporter reads it by this header alone, and takes every number in a file for
 * hostile.
 *
 *   file = memory of the writer: its byte order, its clock. Page p (4096 bytes, whatever the machine's)
 *   lies at p * 4096.
 *
 *   page 0      struct ni_box_header
 *   further     pieces that the header places: arena words, class map, texts, two session blocks
 *   data_page.. pages of communicators and operations; page p is in use when class_map[p] is not 0
 *
 * Self-describing: where a field of an operation or a communicator lies is in the header's field table, so
 * that a reader needs no knowledge of the plugin's structs, and the structs may change without a new version.
 * A field the writer does not have has size 0; fields are only ever added at the end of the list. `version`
 * changes when the meaning of something here changes; a reader refuses a version above its own.
 *
 * Threads: static parts are written before `state` leaves NI_BOX_MAKING. What changes later says by whom it
 * is written. Numbers that change are single aligned words, so a reader sees them old or new, never torn;
 * where several belong together there are two copies and a word that says which one is whole.
 */
#ifndef NI_BOX_H
#define NI_BOX_H

#include <stdint.h>

#define NI_BOX_MAGIC "NIBLKBOX" /* 8 bytes, no terminator */
#define NI_BOX_VERSION 2u       /* 1: no NI_BOX_ORIGIN_API, _CE; the rest is the same */
/* as the writer stores it; reads 0x04030201 on the other kind */
#define NI_BOX_BYTE_ORDER UINT32_C(0x01020304)
#define NI_BOX_PAGE_BYTES 4096u
/* file name: prefix, host, "-pid", pid, "-", 16 hex digits, suffix */
#define NI_BOX_PREFIX "nccl-inspector-"
#define NI_BOX_SUFFIX ".box"
#define NI_BOX_DIR "/dev/shm"
#define NI_BOX_KINDS 2u /* enum ni_kind of format/record.h: 0 collectives, 1 P2P */

enum ni_box_state {
  NI_BOX_MAKING = 0, /* the process was killed while it made the box: nothing had been recorded */
  NI_BOX_LIVE = 1,   /* may hold what the log does not have */
  NI_BOX_EMPTY = 2,  /* no communicator is open, and everything is in the log */
};

/*
 * How the process ended, in its own words. A box that says NOT_YET, and whose process is gone, was left
 * behind by a kill: SIGKILL, a crash, `_exit`. No signal handler says so, the kernel does.
 */
enum ni_box_end {
  NI_BOX_END_UNKNOWN = 0, /* the writer does not say: it is of a release before this word */
  NI_BOX_END_NOT_YET = 1,
  NI_BOX_END_FINALIZED = 2, /* every communicator was closed in order, and everything is in the log */
  NI_BOX_END_EXITED = 3,    /* its exit handler ran, by exit() or by a return from main */
};
#define NI_BOX_NOT_COUNTED UINT64_MAX

/* One relation of the clocks; the conversion is in docs/internals/blackbox.md. */
struct ni_box_clock {
  uint64_t mult;                             /* ns per tick in units of 2^-40 */
  uint64_t ticks, monotonic_ns, realtime_ns; /* the same moment */
};

/* A piece of the file. stride: bytes from one entry to the next, where it has entries. */
struct ni_box_piece {
  uint64_t at, bytes;
  uint32_t stride, entries;
};

/* Where a field lies in its struct. size: of the whole field in bytes, 0: the writer has no such field. */
struct ni_box_field {
  uint16_t at, size;
};

/*
 * Fields, in an order that is never changed; new ones go to the end of the list. X(struct, name, what the
 * plugin calls it, bytes of one element): a field with a larger size is an array (or text), its number of
 * elements is size / bytes.
 *
 * OP: one operation's slot. COMM: one communicator. KIND: one of its NI_BOX_KINDS accounts, at COMM_KIND +
 * kind * kind_stride. CELL: one of its 2 * 64 channel chains, at COMM_CELL + index * cell_stride; index = 2 *
 * channel + (1: Recv, 0: Send or collective). TEXT: one interned string. ANNEX: what only some operations
 * have, in a slot beside the operation's, whose state never has a flag.
 */
#define NI_BOX_FIELDS(X) \
  X(OP, STATE, state, 8)               /* the commit word: NI_BOX_GEN, NI_BOX_FLAGS, NI_BOX_WANT */ \
  X(OP, PROG, prog, 4)                 /* channels started << 16 | stopped */ \
  X(OP, GPU_START_NS, gpu_start_ns, 8) /* earliest start stamp, GPU clock; all ones: none */ \
  X(OP, GPU_STOP_NS, gpu_stop_ns, 8)   /* latest stop stamp; 0: none */ \
  X(OP, TICKS_FIRST, ticks_first, 8)   /* arrival of the first channel's start; 0: none */ \
  X(OP, TICKS_DONE, ticks_done, 8)     /* arrival of the last channel's stop; 0: none */ \
  X(OP, GROUP_ORD, group_ord, 4)       /* ordinal of its Group on the communicator */ \
  X(OP, COMM_PAGE, comm_page, 4) \
  X(OP, KIND, kind, 1) \
  X(OP, DIR, dir, 1) /* 1: Recv */ \
  X(OP, BAD, bad, 1) /* bit i: stamps cannot be true, reason ni_fallback_names[i] */ \
  X(OP, MASK_DOUBT, mask_doubt, \
    1) /* 0: channel events were on; 1: were off at some time; 2: were off at its start */ \
  X(OP, TICKS_START, ticks_start, 8) /* the start callback */ \
  X(OP, TICKS_STOP, ticks_stop, 8)   /* end of the bracket; 0 where it is not needed */ \
  X(OP, SN, sn, 8) \
  X(OP, COUNT, count, 8) /* elements */ \
  X(OP, REC_SN, rec_sn, 8) \
  X(OP, ROOT, root, 4) /* or peer; signed */ \
  X(OP, FUNC, func, 1) /* texts' numbers; 0: "Unknown" */ \
  X(OP, DATATYPE, datatype, 1) \
  X(OP, ALGO, algo, 1) \
  X(OP, PROTO, proto, 1) \
  X(OP, NCHANNELS, nchannels, 1) /* as NCCL gave it; 0 where that cannot be trusted */ \
  X(COMM, STATE, state, 8)       /* generation 32 | phase 8: 0 free, 1 live, 2 being closed */ \
  X(COMM, HASH, hash, 8) \
  X(COMM, RANK, rank, 4) \
  X(COMM, N_RANKS, n_ranks, 4) \
  X(COMM, N_NODES, n_nodes, 4) \
  X(COMM, HAS_NAME, has_name, 1) \
  X(COMM, NAME, name, 1)       /* hostile text, terminated */ \
  X(COMM, INIT_NS, init_ns, 8) /* Unix ns: init_ns of its comm line */ \
  X(COMM, INIT_TICKS, init_ticks, \
    8) /* a slot whose OP_TICKS_START is before it belongs to the page's life before */ \
  X(COMM, GPU_INDEX, gpu.index, 4) /* -1: not known */ \
  X(COMM, GPU_UUID, gpu.uuid, 1)   /* terminated; "": not known */ \
  X(COMM, GPU_PCI, gpu.pci, 1) \
  X(COMM, GROUP_ORD, group_ord, 4)       /* Groups announced */ \
  X(COMM, NEWEST_GROUP, newest_group, 4) /* newest Group seen on the device */ \
  X(COMM, STRAY, stray, 8)               /* by ni_stray_names */ \
  X(COMM, KIND, kind, 1)                 /* where the accounts begin */ \
  X(COMM, CELL, cell, 1)                 /* where the channel chains begin */ \
  X(COMM, FIT_OFFSET_NS, fit_offset_ns, \
    8)                             /* host monotonic - GPU clock, signed; valid when FIT_SAMPLES is not 0 */ \
  X(COMM, FIT_AT_NS, fit_at_ns, 8) /* monotonic: when it was last confirmed */ \
  X(COMM, FIT_SAMPLES, fit_samples, 8) \
  X(COMM, POISONED, poisoned, \
    1) /* 1: "older than the previous work" alone is not believed (format/timing.h) */ \
  X(KIND, STARTED, started, 8)   /* the next rec_sn */ \
  X(KIND, FILTERED, filtered, 8) /* by ni_filter_names; callbacks' part */ \
  X(KIND, DROPPED, dropped, 8)   /* by ni_drop_names; callbacks' part */ \
  X(KIND, LATE, late, 8) \
  X(KIND, WRITTEN, account.written, 8)       /* as the dump thread counted: what it says is in the log */ \
  X(KIND, JUDGED_OUT, account.judged_out, 8) /* dump thread's part of filtered: no_kernel_timing */ \
  X(KIND, INCOMPLETE, account.incomplete, 8) \
  X(KIND, LOST_WRITE, account.lost_write, 8) /* dump thread's part of dropped: write_error */ \
  X(KIND, FALLBACK, account.fallback, 8)     /* by ni_fallback_names, of operations formatted */ \
  X(CELL, OPEN, open, \
    8) /* operation whose channel is between start and stop: slot << 28 | generation 28; 0: none */ \
  X(CELL, START_NS, start_ns, 8)     /* its start stamp, GPU clock */ \
  X(TEXT, READY, ready, 1)           /* 0: not there yet */ \
  X(TEXT, ELEM_BYTES, elem_bytes, 1) /* size if it is a datatype's name; 0 counts as 1 */ \
  X(TEXT, TEXT, text, 1)             /* terminated */ \
  X(OP, CALL_SN, call_sn, 4)         /* low half of its API call's number, with NI_BOX_ORIGIN_CALLED */ \
  X(OP, ORIGIN, origin, 1)           /* NI_BOX_ORIGIN_* */ \
  X(COMM, CALLS, events.calls, 8)    /* API calls: collectives; Send and Recv. The next call_sn */ \
  X(PROXY, STATE, state, 8)          /* as OP_STATE: LIVE, and CLOSED when it has stopped */ \
  X(PROXY, COMM_PAGE, comm_page, 4)  /* 0: served for another process */ \
  X(PROXY, FLAGS, flags, 1)          /* NI_BOX_PROXY_* */ \
  X(PROXY, CHANNEL, channel, 1) \
  X(PROXY, PARENT_KIND, parent_kind, \
    1) /* the operation it is part of, with NI_BOX_PROXY_PARENT: its kind */ \
  X(PROXY, PARENT_REC_SN, parent_rec_sn, 8) /* and rec_sn */ \
  X(PROXY, PEER, peer, 4)                   /* rank of the communicator; signed */ \
  X(PROXY, PHASE, phase, 1)         /* of each transfer under way: what it waits for, NI_BOX_PHASE_* */ \
  X(PROXY, STEP_LAST, step_last, 8) /* and ticks since when */ \
  X(COMM, API_SN, events.api_sn, \
    8)                     /* next OP_SN of NI_BOX_ORIGIN_API and _CE: by enum ni_func of format/names.h */ \
  X(OP, KERNEL, kernel, 1) /* NCCL's name of a symmetric kernel, text's number; 0: none */ \
  X(OP, ANNEX, annex, 4)   /* slot number of its annex, 0: none; the ANNEX fields lie there */ \
  X(ANNEX, USER_TAG, user_tag, 8) /* the application's tag as NCCL gave it; 0: untagged */ \
  X(ANNEX, COMPUTE_FROM_NS, compute_from_ns, \
    8) /* GPU clock: when the last channel began to compute; 0: no phase was told */ \
  X(ANNEX, COMPUTE_TO_NS, compute_to_ns, 8) /* when the last channel had computed */

enum ni_box_field_id {
#define NI_BOX_ENUM(of, name, member, bytes) NI_BOX_##of##_##name,
  NI_BOX_FIELDS(NI_BOX_ENUM)
#undef NI_BOX_ENUM
      NI_BOX_FIELD_COUNT
};
#define NI_BOX_FIELD_MAX 256u

/* OP_STATE. A free slot has no flag. DONE is the moment of "finished". */
enum {
  NI_BOX_OP_LIVE = 1 << 0,     /* the descriptor is whole */
  NI_BOX_OP_CLOSED = 1 << 1,   /* the start/stop bracket is over */
  NI_BOX_OP_KDONE = 1 << 2,    /* as many channels stopped as were wanted */
  NI_BOX_OP_DONE = 1 << 3,     /* finished */
  NI_BOX_OP_RETIRED = 1 << 4,  /* the dump thread judged it over: finished, unless GIVEN_UP */
  NI_BOX_OP_GIVEN_UP = 1 << 5, /* with RETIRED: incomplete, never a record */
  NI_BOX_OP_SETTLED = 1 << 6,  /* with RETIRED: its record is written or counted elsewhere; the slot rests */
};
#define NI_BOX_WANT_UNKNOWN 255u
#define NI_BOX_MASK_OFF 2u /* OP_MASK_DOUBT */
#define NI_BOX_GEN(state) ((uint32_t)(state))
#define NI_BOX_FLAGS(state) ((uint32_t)((state) >> 32) & 0xff)
/* channels expected; 255: not known */
#define NI_BOX_WANT(state) ((uint32_t)((state) >> 40) & 0xff)
#define NI_BOX_STARTED(prog) ((uint32_t)(prog) >> 16)
#define NI_BOX_STOPPED(prog) ((uint32_t)(prog) & 0xffff)
#define NI_BOX_COMM_PHASE(state) ((uint32_t)((state) >> 32) & 0xff)
/* slot number: byte offset / slot_bytes */
#define NI_BOX_CELL_SLOT(open) ((uint32_t)((open) >> 28))
#define NI_BOX_CELL_GEN(open) ((uint32_t)(open) & 0xfffffff) /* low 28 bits of the generation */

enum {
  NI_BOX_ORIGIN_CALLED = 1 << 0,   /* its API call is known */
  NI_BOX_ORIGIN_REPLAYED = 1 << 1, /* from a CUDA graph */
  NI_BOX_ORIGIN_API = 1 << 2,      /* known by its API call alone, and... */
  /* ... by the copy engine's events: a collective whose kernel NCCL does not show */
  NI_BOX_ORIGIN_CE = 1 << 3,
  NI_BOX_ORIGIN_SYMMETRIC = 1 << 4, /* a symmetric kernel */
  NI_BOX_ORIGIN_FUSED = 1 << 5,     /* with SYMMETRIC: one of several calls in one kernel */
};
enum { NI_BOX_PROXY_SEND = 1 << 3, NI_BOX_PROXY_PARENT = 1 << 5 };
enum {
  NI_BOX_PHASE_NONE = 0, /* no transfer in this place */
  NI_BOX_PHASE_GPU_PRODUCE,
  NI_BOX_PHASE_PEER_CREDIT,
  NI_BOX_PHASE_WIRE,
  NI_BOX_PHASE_FLUSH,
  NI_BOX_PHASE_GPU_CONSUME,
  NI_BOX_PHASE_COUNT
};

/* A session: the log file that is being written. Begins the block; the bytes of dir, file and line follow one
 * another, not terminated. line is the log's process line without LF (docs/format.md). */
struct ni_box_session {
  uint64_t start_ns; /* Unix ns: start_ns of the process line */
  uint32_t dir_bytes, file_bytes, line_bytes, pad;
};
#define NI_BOX_SESSION_BYTES (88u << 10) /* of one block */

struct ni_box_header {
  /* what it is: constant */
  char magic[8];
  uint32_t byte_order, version;
  uint32_t header_bytes; /* sizeof of the writer: what lies beyond is absent, not 0 */
  uint32_t n_fields;     /* NI_BOX_FIELD_COUNT of the writer */
  uint32_t page_bytes, slot_bytes;
  uint32_t comm_pages; /* pages of one communicator */
  uint32_t comm_class; /* class_map value of a communicator's pages, of each of them */
  uint64_t op_classes; /* bit c: pages of class c hold operations, page_bytes / slot_bytes slots each */
  uint32_t data_page;  /* first page of data */
  uint32_t n_pages;    /* pages of the file; what the process kept beyond is not in the box */
  uint32_t kind_stride, cell_stride;
  char producer[32]; /* "nccl-inspector-c 0.1.0", terminated */
  char git_rev[16];
  /* whose it is: constant */
  int64_t pid;                /* as the process sees itself, that is in its pid namespace */
  uint64_t pid_namespace;     /* inode of /proc/self/ns/pid; 0: not known */
  uint64_t start_ticks;       /* field 22 of /proc/self/stat; 0: not known */
  uint32_t uid, clock_source; /* enum ni_clock_source: 0 clock_gettime, 1 tsc, 2 cntvct */
  uint64_t made_ns;           /* Unix ns */
  char boot_id[40];           /* terminated */
  char hostname[256];         /* terminated; hostile text */
  char exe[256];
  int64_t rank, local_rank, world_size; /* of the launcher; -1: not known */
  uint32_t nccl_version, interface;     /* 23007 or 0; N of ncclProfiler_vN */
  /* pieces: constant */
  struct ni_box_piece words; /* private to the plugin, but for the two offsets below */
  /* one byte a page of the file: 0 never taken. Written once, by who takes the page */
  struct ni_box_piece class_map;
  struct ni_box_piece texts;
  struct ni_box_piece session[2];
  uint64_t watermark_at; /* uint32: pages from here on were never taken */
  uint64_t
      outside_at; /* uint32: pages in use outside the file, because it could not grow in time: what lies there
                            was lost with the process */
  /* what moves: written by the dump thread, but for state */
  uint32_t state;           /* enum ni_box_state. Release, after all that it speaks of */
  uint32_t committed_pages; /* the file has memory up to here */
  uint32_t clock_now;       /* 0 or 1: clock[] that is whole; release after it */
  uint32_t session_now;     /* 0 or 1: session[] that is whole; 2: none yet */
  uint64_t heartbeat_ns;    /* CLOCK_MONOTONIC */
  uint64_t heartbeat_unix_ns;
  /* promised; 0: nothing is promised (no communicator open, or no dump thread) */
  uint32_t heartbeat_every_ms;
  uint32_t refused_communicators;
  uint64_t process_stray[16]; /* by ni_stray_names, as of the heartbeat */
  struct ni_box_clock clock[2];
  struct ni_box_field field[NI_BOX_FIELD_MAX];
  /* Network operations, constant. Pages of proxy_class come in chunks of so many, one after the other; in a
   * chunk they lie from its beginning, proxy_bytes each, across borders of pages. 0: the writer has none. */
  uint32_t proxy_class, proxy_bytes, proxy_chunk_pages, pad;
  /* Records that went with files which the session's settings removed, one for each of session[]: of
   * whichever communicator, also of those that are over. Written by the dump thread once a file is gone, so
   * it may lack the file that was removed last. 0 where header_bytes ends before it. */
  uint64_t expired_records[2];
  /* How it ended; 0 where header_bytes ends before it. Written with state, and by the exit handler: the
   * end last (release). */
  uint32_t end;            /* enum ni_box_end */
  int32_t unwritten_error; /* with EXITED: errno of the write that failed last; 0: none did */
  uint64_t end_unix_ns;    /* when that was said */
  /* With EXITED: operations that had finished and are not in the log. NI_BOX_NOT_COUNTED: it was killed
   * before it could count them, or a write that hung kept it from doing so. */
  uint64_t unwritten;
  /* What the process has met so far, by the dump thread; 0: not known. A gap is a time without any start
   * of an operation, from the first init on. An operation's time is from its start to the arrival of its
   * last channel's stop. */
  uint64_t longest_operation_ns, longest_gap_ns;
  /* Constant; 0 where header_bytes ends before them: NCCL, whose stamps are ns. enum ni_library; the GPU
   * clock's ticks in a millisecond, in which OP_GPU_START_NS, OP_GPU_STOP_NS, CELL_START_NS and those of
   * ANNEX are then; enum ni_gpu_trust (format/library.h). */
  uint32_t library, gpu_khz, gpu_clock, pad2;
};
_Static_assert(sizeof(struct ni_box_header) <= NI_BOX_PAGE_BYTES, "page 0");
_Static_assert((unsigned)NI_BOX_FIELD_COUNT <= NI_BOX_FIELD_MAX, "the table holds all fields");

/* Bytes of one element of a field. */
static const uint8_t ni_box_elem_bytes[NI_BOX_FIELD_COUNT] = {
#define NI_BOX_BYTES(of, name, member, bytes) bytes,
    NI_BOX_FIELDS(NI_BOX_BYTES)
#undef NI_BOX_BYTES
};

#endif
