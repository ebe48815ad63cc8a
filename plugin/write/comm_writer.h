/*
 * What the dump side knows of one communicator: what is to be written of it, what its lines have said, how
 * its accounts stand.
 *
 *   LIVE ──its last lines are in the open block──▶ CLOSED ──that is on disk──▶ WRITTEN
 *        ──nothing rests──▶ freed
 *
 * Made by init (plugin/dump/thread.h), owned by the dump role from its joining on.
 */
#ifndef NI_COMM_WRITER_H
#define NI_COMM_WRITER_H

#include "format/line_write.h"
#include "gpu_fit.h"
#include "plugin/slots/chain.h"
#include "plugin/slots/comm.h"
#include "rollup.h"

/* Why this is the last look at a communicator, if it is. */
enum ni_end { NI_END_NONE = 0, NI_END_DESTROY, NI_END_EXIT };

struct ni_kind_writer {
  struct ni_chain todo, held, rest;
  struct ni_account *account;          /* of the communicator, in the arena */
  uint64_t in_block;                   /* operation lines in the open block */
  uint64_t stats_lines, stats_dropped; /* as the last dump_stats line had them */
  uint64_t gap_seen[NI_DROP_OF_CALLBACKS];
  uint64_t prom_dropped; /* of its losses so many are in the totals of prom.h */
};

/* What the dump side knows of a store's events. */
struct ni_event_writer {
  struct ni_chain todo, wait; /* wait: API calls without an operation yet */
  uint64_t in_block[NI_EVENT_COUNT], written[NI_EVENT_COUNT], lost[NI_EVENT_COUNT];
  uint64_t proxy_lines;                /* proxy_trace lines so far */
  uint64_t stats_lines, stats_dropped; /* of these as the last dump_stats line had them */
  uint64_t noted;                      /* ni_event_store.noted at the last look at the cells of calls */
  /* bits: calls that waited then; those that are in `todo` or `wait` now */
  uint32_t open_cells, taken_cells;
};

/* The time of a symmetric kernel that several calls share (plugin/drain/fused.h). */
#define NI_FUSED_SPANS 16u
struct ni_fused_span {
  bool known, gpu_ok, has_kernel;
  uint32_t group; /* ordinal of its Group */
  uint64_t gpu_ns, kernel_cpu_ns;
  int64_t gpu_start_ns; /* GPU start in host time, monotonic; with gpu_ok and a clock fit, else 0 */
};
struct ni_fused_writer {
  struct ni_fused_span span[NI_FUSED_SPANS]; /* the newest */
  uint32_t next;
  bool ended; /* the communicator ends: nobody waits any more */
  struct ni_chain waiting;
};

/* When captured calls without kernel times were last replayed: by call_sn modulo NI_REPLAYS. Two that share a
 * place lose the distance, nothing else. */
#define NI_REPLAYS 4096u
struct ni_graph_replay {
  uint64_t call;                /* call_sn + 1; 0: none */
  uint64_t ticks, ticks_before; /* starts of the newest replay, and of the one before; 0: none */
};

enum ni_writer_stage {
  NI_STAGE_LIVE = 0,
  NI_STAGE_CLOSED,  /* drained, final lines are in the open block */
  NI_STAGE_WRITTEN, /* that block is on disk; retired slots may rest */
};

struct ni_comm_writer {
  struct ni_comm_writer *next;      /* joining list, then list of all */
  struct ni_comm_writer *next_busy; /* those with operations to format, or in the open block */
  struct ni_comm *comm;
  uint32_t index, gen;
  uint8_t has_gpu, in_busy, announced, stage;
  uint8_t identified;   /* who it is is known, and stands in the prefix */
  uint8_t stuck_told;   /* stuck lines since its last dump_stats line */
  uint8_t poisoned;     /* impossible stamps were found; see gpu_believed in plugin/drain/op_record.c */
  uint8_t apart_proofs; /* operations whose stamps were older than their launch (format/apart.h) */
  uint64_t apart_ns;    /* when the last of them was started, monotonic */
  uint8_t plans;        /* how many of `plan` are known */
  struct {
    uint32_t ord;   /* of its Group */
    uint64_t ticks; /* when one of its operations was started */
  } plan[2];        /* the newest that was formatted, and the one before */
  struct ni_gpu_id gpu;
  struct ni_ident ident;
  struct ni_line_prefix prefix;
  struct ni_gpu_fit fit;
  struct ni_gpu_rate rate;  /* asked where the library does not say it (format/library.h) */
  int64_t stated_offset_ns; /* of the last clock line of this communicator */
  uint8_t offset_stated;
  uint64_t init_ns;
  uint32_t watch; /* operations with unknown channel count, ours now; linked by next */
  uint64_t last_stats_ms, last_scan_ms, clock_samples;
  struct ni_rollup rollup;
  uint64_t rollup_period; /* number of the period since 1970 that `rollup` counts for */
  uint8_t in_roll_file;   /* its comm line is in the roll-ups' own file */
  /* enum ni_end: why this pass says its last lines; NONE: it does not */
  uint8_t why;
  /* when it was first seen finalized with something open, others alive; 0: never */
  uint64_t left_ms;
  uint8_t cut_short; /* something was open at its end: a callback may be inside it */
  /* when its last lines were first found not to add up, or it was cut short; 0: never */
  uint64_t closing_ms;
  uint32_t closing_judge_ms, closing_tick; /* the same by the clock of judgements, and by ticks */
  struct ni_kind_writer kind[NI_KIND_COUNT];
  struct ni_fused_writer fused;
  struct ni_graph_replay *replays; /* [NI_REPLAYS], owned; NULL until there is one, or without memory */
  struct ni_event_writer ev;
};

#endif
