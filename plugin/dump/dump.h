/*
 * The dump side: from finished operations to bytes on disk. Private to drain.c, judge.c, lines.c, flush.c,
 * dump_session.c, dump_tick.c and dump_thread.c, in the order in which data flows.
 *
 *   done list ─▶ drain.c: record, line ─▶ block (one gzip member) ─▶ flush.c: write() ─▶ slots given back
 *   unknown channel counts, missing children ─▶ judge.c ─▶ drain.c
 *   accounting, clocks, pools ─▶ lines.c ─▶ block
 *
 * Threads: everything here is called by whoever holds the dump role (`role`): the dump thread, or, without one, the
 * thread that finalizes or exits. Only `joining` and the request words are met by others.
 *
 * A slot's way: on the communicator's done list (DONE) ─▶ todo (drained, in order) ─▶ held (its line is in the open
 * block) ─▶ write() has returned ─▶ free list with a new generation; a retired one rests 5 s in between, because a late
 * child may still name it. Todo grows when the disk fails: lines are then not formatted, slots stay taken, and in the end
 * the pools meet their cap and count drops. Nothing is thrown away before that.
 */
#ifndef NI_DUMP_H
#define NI_DUMP_H

#include <errno.h>

#include "detail.h"
#include "format/event_write.h"
#include "plugin/os/gpu_id.h"
#include "plugin/write/gz_writer.h"
#include "plugin/write/out_file.h"
#include "plugin/write/rollup.h"
#include "plugin/slots/state.h"
#include "plugin/drain/gpu_fit.h"

#define NI_MS_NS UINT64_C(1000000)
#define NI_REST_MS 5000u        /* a retired slot rests at least so long */
#define NI_REST_TICKS 50u       /* and so many ticks: a stopped process wakes with the clock far ahead */
#define NI_TICK_MS 10           /* while anything moves */
#define NI_HEARTBEAT_MS 1000u   /* of the black box: the longest pause of a dump thread that is not parked */
#define NI_IDLE_MS 100          /* while nothing does: 10 wake-ups a second are 0.01 % of a core */
#define NI_CLOCK_LINE_MS 60000   /* a clock line at most so often */
#define NI_STATS_MS 10000       /* a dump_stats line at most so often per communicator, unless something was lost */
#define NI_SCAN_MS 1000         /* how often the slots of a communicator are searched for missing children */
#define NI_JUDGE_STEP_MS 200u
#define NI_AWAY_MS 5000u       /* a tick so late means that the process did not run */
#define NI_SETTLE_MS 100u      /* a communicator's last line waits so long for callbacks that are on their way or to come */
#define NI_PATIENCE_MS 100u    /* so long a finished operation waits for its network operations to begin; see ni_drain_format */
#define NI_ROOM_BYTES (128u << 10) /* all control lines that one communicator says at once */
#define NI_EXIT_TEXT (4u << 20) /* text of one block at exit */
#define NI_CWD_BYTES 4096u
#define NI_SMALL_TEXT (32u << 10) /* below 100 ms intervals, less text than this waits until 100 ms have passed */

/* What the next new file begins with. */
enum { NI_HEAD_NONE = 0, NI_HEAD_FIRST, NI_HEAD_LATER };

/* Why this is the last look at a communicator, if it is. */
enum ni_end { NI_END_NONE = 0, NI_END_DESTROY, NI_END_EXIT };

struct ni_side_kind {
  struct ni_chain todo, held, rest;
  struct ni_told *told; /* of the communicator, in the arena */
  uint64_t in_block;    /* operation lines in the open block */
  uint64_t stats_lines, stats_dropped; /* as the last dump_stats line had them */
  uint64_t gap_seen[NI_DROP_OVERWRITTEN + 1];
};

/* What the dump side knows of a store's events. */
struct ni_side_events {
  struct ni_chain todo, wait; /* wait: API calls without an operation yet */
  uint64_t in_block[NI_EVENT_COUNT], written[NI_EVENT_COUNT], lost[NI_EVENT_COUNT];
  uint64_t proxy_lines;                 /* proxy_trace lines so far */
  uint64_t stats_lines, stats_dropped;  /* of these as the last dump_stats line had them */
  uint32_t hold_first, hold_last;       /* operations with steps that wait for their line; 0: none */
  uint64_t n_kept;                      /* steps that do */
};

enum ni_side_stage {
  NI_SIDE_LIVE = 0,
  NI_SIDE_CLOSED,  /* drained, final lines are in the open block */
  NI_SIDE_WRITTEN, /* that block is on disk; retired slots may rest */
};

/* What the dump side knows of a communicator; made by init, owned by the dump role from then on. */
struct ni_side {
  struct ni_side *next;      /* joining list, then list of all */
  struct ni_side *next_busy; /* sides with operations to format, or in the open block */
  struct ni_comm *comm;
  uint32_t index, gen;
  uint8_t has_gpu, in_busy, announced, stage;
  uint8_t identified; /* who it is is known, and stands in the prefix */
  uint8_t stuck_told; /* stuck lines since its last dump_stats line */
  uint8_t poisoned; /* impossible stamps were found; see gpu_believed */
  uint8_t apart_proofs; /* operations whose stamps were older than their launch (ni_apart.h) */
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
  int64_t stated_offset_ns;  /* of the last clock line of this communicator */
  uint8_t offset_stated;
  uint64_t init_ns;
  uint32_t watch;          /* operations with unknown channel count, ours now; linked by watch_next */
  uint64_t last_stats_ms, last_scan_ms, clock_samples;
  struct ni_rollup rollup;
  uint64_t rollup_period;  /* number of the period since 1970 that `rollup` counts for */
  uint8_t in_roll_file;    /* its comm line is in the roll-ups' own file */
  uint8_t why;             /* enum ni_end: why this pass says its last lines; NONE: it does not */
  uint64_t left_ms;        /* when it was first seen finalized with something open, others alive; 0: never */
  uint8_t cut_short;       /* something was open at its end: a callback may be inside it */
  uint64_t closing_ms;     /* when its last lines were first found not to add up, or it was cut short; 0: never */
  uint32_t closing_judge_ms, closing_tick; /* the same by the clock of judgements, and by ticks */
  struct ni_side_kind kind[NI_KIND_COUNT];
  struct ni_side_events ev;
};

struct ni_dump {
  /* met by init, finalize, exit */
  pthread_mutex_t role;          /* held by whoever drains and writes, also during write() */
  _Atomic(struct ni_side *) joining; /* pushed by init (release), taken by the dump role (acquire) */
  _Atomic uint32_t closings;     /* finalize calls not yet looked at */
  _Atomic uint32_t ask, answer;  /* requests to write everything now; futex words. answer catches up with ask */
  _Atomic uint32_t exiting;      /* 1: the process leaves */
  uint64_t leave_by_ns;          /* then: when formatting ends, whatever is left. CLOCK_MONOTONIC */
  _Atomic uint32_t has_thread;
  _Atomic uint32_t waiting;      /* threads inside a request */
  _Atomic uint64_t progress;     /* raised with every record formatted and every block written: shows the waiters that
                                    waiting helps */
  /* dump role */
  struct ni_side *sides;         /* all communicators not yet released */
  struct ni_side *busy;          /* those with operations to format, or in the open block */
  struct ni_side **by_index;     /* registry index -> side */
  uint32_t cap_index;
  uint32_t n_sides, closed_in_block;
  struct ni_gz *gz, *gz_head;    /* the open block; the small member at the head of a new file */
  struct ni_gz *gz_roll;         /* block of the roll-ups' own file; NULL: their lines go to the log */
  struct ni_out roll_out;
  struct ni_rollup_pool roll_pool;
  uint8_t roll_open;
  struct ni_out out;
  struct ni_origin origin;
  struct ni_line_prefix process_prefix;
  char hostname[256], boot_id[64], exe[256];
  char cwd[NI_CWD_BYTES];        /* at the first init, "" unknown: relative folders mean that one, whoever changes it later */
  char dir[NI_CWD_BYTES + NI_DIR_MAX_BYTES + 1]; /* of the log, tokens put in, absolute where that is known */
  char settings[NI_SETTINGS_JSON_BYTES];
  struct ni_job job;
  uint64_t ticks;                /* of the loop */
  uint64_t now_ns;               /* CLOCK_MONOTONIC at the start of this tick */
  uint64_t now_ms;               /* the same in ms */
  uint64_t real_ms;              /* Unix ms at the start of this tick */
  uint64_t sample;               /* one record in so many is written */
  struct ni_detail detail;
  uint64_t detail_gone_started, detail_gone_dropped; /* of communicators that are over */
  uint32_t judge_ms;             /* time that judgements go by: at most NI_JUDGE_STEP_MS a tick, so that a process that
                                    was stopped, or a starved dump thread, does not make operations look quiet */
  uint64_t awake_ns;             /* CLOCK_MONOTONIC: when the process last began to run again after a stop; 0: never stopped */
  uint64_t ts_us;                /* dump_timestamp_us of the open block */
  uint64_t text_max;             /* text at which the open block takes no more: RLIMIT_FSIZE; 0: no limit */
  uint64_t last_flush_ms, last_sample_ms, last_clock_line_ms, block_records;
  uint32_t seen_mark;            /* pages taken from the arena, at the last tick */
  uint64_t start_ns;             /* Unix ns of the file's name */
  _Atomic uint8_t open;          /* a session: a log file is named, records go to it */
  uint8_t awaited;               /* somebody waits for what this tick does */
  uint8_t moved, watching;       /* of this tick: something happened; a communicator has operations to judge */
  uint8_t patient;               /* finished operations wait for their network operations; of this tick */
  uint8_t no_room;               /* a line that is said once did not fit: flush first */
  uint8_t early_told, head_set, comms_changed, ended;
  uint8_t urgent;                /* a line that cannot wait is in the open block */
  uint8_t gave_up;               /* finished operations were left unwritten at exit: the black box has them */
  uint8_t sealed;                /* the process leaves, and every communicator has said its last */
  struct ni_side_events detached; /* of ni_g.detached */
  uint64_t n_kept;               /* steps that wait for their operation's line, of all communicators */
  struct ni_trace trace;         /* of the record that is being formatted */
  struct ni_step_text steps[NI_STEPS_A_LINE]; /* of the line that is being formatted */
  char line[NI_LINE_MAX_BYTES];
};

/* ---- chains (drain.c) ---- */
void ni_chain_append(struct ni_chain *c, uint32_t slot); /* at the end */
uint32_t ni_chain_take(struct ni_chain *c); /* from the front; 0: empty */
void ni_side_busy(struct ni_dump *d, struct ni_side *s);

/* ---- drain.c ---- */

/* Takes communicators in that init has announced. One that finds no memory stays announced for the next tick. */
void ni_drain_join(struct ni_dump *d);
/* The same, and moves what is on the done lists to the sides' todo chains. 1 if anything moved. */
int ni_drain_collect(struct ni_dump *d);
/* Formats todo into the open block until it is empty or the block takes no more. 0, or -EBUSY, -EFBIG, -ENOMEM, and
 * -ETIMEDOUT when the process leaves and its time is over. Nothing is lost on an error: what was not formatted stays in
 * todo. */
int ni_drain_format(struct ni_dump *d);
/* At exit, out of time: what is left in todo counts as lost by write_error. Its slots are not used again. */
void ni_drain_give_up(struct ni_dump *d);
/* The open block is on disk (ok) or given up: settles its records and frees slots and closed communicators. */
void ni_drain_settle(struct ni_dump *d, int ok);
/* A retired operation that leaves no record: rests, then its slot is free. */
void ni_drain_rest(struct ni_dump *d, struct ni_side_kind *k, uint32_t slot);
/* Gives rested slots back and releases communicators that are done with. */
void ni_drain_release(struct ni_dump *d);

/* 0, or why nothing more goes into the open block now: -EFBIG, -ETIMEDOUT. */
int ni_drain_check(const struct ni_dump *d);
/* A record of a collective known by its API call or from the copy engine, func its name's number in the intern table.
 * slot: of call_slot.h, taken over; 0: none. Takes its rec_sn, and its coll_sn from *sn. 0, or as ni_lines_room; nothing is
 * counted then, and the slot is as it was. */
int ni_drain_record(struct ni_dump *d, struct ni_side *s, struct ni_record *r, uint8_t func, uint64_t *sn, uint32_t slot);

/* ---- event_dump.c ---- */

/* Takes what callbacks have closed. 1 if anything moved. */
int ni_events_collect(struct ni_dump *d);
/* As ni_drain_format. */
int ni_events_format(struct ni_dump *d);
/* At exit, out of time: what is left counts as dropped. */
void ni_events_give_up(struct ni_dump *d);
/* Looks at API calls that wait for their operation. */
void ni_events_judge(struct ni_dump *d, struct ni_side *s, enum ni_end end);
/* The communicator is over: what never stopped is closed and goes to todo. 1: there was such. */
int ni_events_close(struct ni_event_store *st, struct ni_side_events *ev);
/* proxy_dump.c: steps that have waited long enough for their operation's line, or all, into the block as segments. s NULL:
 * those of no communicator. As ni_drain_format. */
int ni_steps_release(struct ni_dump *d, struct ni_side *s, int all);
void ni_events_settle(struct ni_side_events *ev, int ok);
/* Is a network operation between start and stop, or not yet in the block? A hint. */
int ni_events_in_flight(const struct ni_event_store *st, const struct ni_side_events *ev);
void ni_events_fill_stats(const struct ni_event_store *st, const struct ni_side_events *ev, struct ni_event_count *out);
/* A call's number from its low half. */
uint64_t ni_events_call_sn(const struct ni_side *s, int p2p, uint32_t low);

/* ---- judge.c ---- */

/* Retires what no callback will complete (docs/architecture.md, completion). */
void ni_judge(struct ni_dump *d, struct ni_side *s, enum ni_end end);
/* Slots in flight now, by walking their states. */
uint64_t ni_judge_in_flight(struct ni_side *s, enum ni_kind kind);

/* ---- unfinished.c ---- */

/* What all lines about an operation that has not finished say of it. */
void ni_unfinished_fill(struct ni_dump *d, struct ni_op *op, uint64_t state, uint32_t prog, struct ni_incomplete_line *in);
/* Writes the operation's stuck line if it is time; 1 if so. */
int ni_unfinished_stuck(struct ni_dump *d, struct ni_side *s, struct ni_op *op, uint32_t slot);
/* The process leaves: names what is in flight. */
void ni_unfinished_at_exit(struct ni_dump *d, struct ni_side *s);

/* ---- lines.c ---- */

/* A formatted line of n bytes (0: nothing to do) goes into the open block. 0 or negative errno as ni_gz_append. */
int ni_lines_put(struct ni_dump *d, const char *line, size_t n);
/* 0: all that one communicator says at once will fit into the open block. Errors as ni_gz_append; no_room is set. What
 * is said only once asks before it forgets. */
int ni_lines_room(struct ni_dump *d);
/* Who the communicator is, when that came after init (v1 to v3). force: make an identity up. 1: it is known. */
int ni_side_identify(struct ni_dump *d, struct ni_side *s, int force);
void ni_lines_comm(struct ni_dump *d, struct ni_side *s);
void ni_lines_stats(struct ni_dump *d, struct ni_side *s, int final);
/* count operations are not going to be written, whose numbers lie in from..to. */
void ni_lines_given_up(struct ni_dump *d, struct ni_side *s, int kind, uint64_t count, uint64_t from, uint64_t to);
void ni_lines_gaps(struct ni_dump *d, struct ni_side *s);
/* Everything a communicator says last; its records are in the block already. */
void ni_lines_end(struct ni_dump *d, struct ni_side *s, enum ni_end end);
void ni_lines_clock(struct ni_dump *d);
/* Before a record with GPU times: a clock line when the offset of the GPU's clock in use is not the one last stated, so
 * that readers know which offset each record was written with. 0, or ni_lines_put()'s error: the record must wait, too. */
int ni_lines_gpu_offset(struct ni_dump *d, struct ni_side *s);
void ni_lines_late(struct ni_dump *d);
void ni_lines_process_end(struct ni_dump *d);
void ni_lines_note(struct ni_dump *d, const char *text);
void ni_lines_control(struct ni_dump *d, const struct ni_control_line *in);
/* The process line and the comm line of a side, in d->line; their length. */
size_t ni_lines_process(struct ni_dump *d);
size_t ni_lines_comm_text(struct ni_dump *d, struct ni_side *s);
/* Prepares what every new file of `out` begins with: the process, and with comms the communicators alive. 0 or -errno. */
int ni_lines_head(struct ni_dump *d, struct ni_out *out, int comms);
/* Operations announced and not yet settled by any counter; negative: counted twice, which never happens. */
int64_t ni_side_unsettled(const struct ni_side *s, int kind);
static inline int ni_side_any_unsettled(const struct ni_side *s) {
  return ni_side_unsettled(s, NI_KIND_COLL) || ni_side_unsettled(s, NI_KIND_P2P);
}
/* Counters of callbacks and dump side together. */
uint64_t ni_side_filtered(const struct ni_side *s, int kind, enum ni_filter f);
uint64_t ni_side_dropped(const struct ni_side *s, int kind, enum ni_drop why);

/* ---- rollup_lines.c: roll-ups as lines, in the log or, where files expire, in a file of their own ---- */

int ni_roll_counted(void); /* are there roll-ups at all? */
int ni_roll_open(struct ni_dump *d, const struct ni_out_options *log); /* with a session. 0 or negative errno */
void ni_roll_close(struct ni_dump *d);
/* Says what a side has counted, when its period is over or now. 0: nothing is left; else as ni_gz_append, and the rest
 * is said by the next call. */
int ni_roll_say(struct ni_dump *d, struct ni_side *s, int now);
/* Writes what was said into the file of their own, if there is one. force: as ni_flush. 0 or negative errno. */
int ni_roll_flush(struct ni_dump *d, int force);

/* ---- detail.c: how much is recorded ---- */

void ni_detail_init(struct ni_dump *d, const struct ni_config *c); /* with the first init */
void ni_detail_open(struct ni_dump *d, const char *dir);           /* with a session: where control files are */
/* Looks for what is to change, at most one stat a second; says what has changed. */
void ni_detail_tick(struct ni_dump *d);
void ni_detail_forget_side(struct ni_dump *d, const struct ni_side *s); /* its communicator is over */
/* The time to sleep, at most ms, so that a slice ends when it should. */
uint64_t ni_detail_wait_ms(const struct ni_dump *d, uint64_t ms);

/* ---- flush.c ---- */

/* Writes the open block if there is one. 0: nothing is pending any more; negative errno: kept for the next try.
 * force: also during the pause after a failure. */
int ni_flush(struct ni_dump *d, int force);

/* ---- dump_session.c: one log file, from the first communicator to the last ---- */

/* Is there a communicator that has still something to say? One whose retired slots merely rest has not. */
int ni_session_wanted(const struct ni_dump *d);
int ni_session_open(struct ni_dump *d); /* 0, or a negative errno: said, and to be tried again */
void ni_session_close(struct ni_dump *d);

/* ---- dump_tick.c ---- */

/* One pass. ask: someone waits, so everything goes out now. Returns 1 when nothing is pending any more: no operation
 * drained but unwritten, no communicator closing. */
int ni_tick(struct ni_dump *d, int ask, enum ni_end end);

#endif
