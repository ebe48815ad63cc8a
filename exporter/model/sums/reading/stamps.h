/*
 * GPU times of each log put right by all of its clock lines (clocks/gpu_clock.h), as trace does: on a host
 * whose CPU is starved the first of them are off by tens of ms, and ranks that are not late would be.
 *
 *   a clock line ──▶ the range's own table: the point, and what is stated from here on
 *   a record     ──▶ its entry has what was stated before it in the range (packed/segment.h); 0: nothing
 *   end of range ──▶ r->stamps: points of each member, and what was stated last in which part of the input
 *   all is read  ──▶ ni_stamps_find(): a clock for each GPU, or none where times are right as they are
 *   an entry     ──▶ stated: its own, else the last one of the parts before; + (clock there) - stated
 *
 * Segments, tables and partial results hold times as logs have them, with what was stated: shards, ranks of a
 * team and threads read without knowing of each other, and what comes out depends on the logs alone.
 *
 * A GPU's clock is that of all communicators of its process; of processes with several ranks of one
 * communicator, each communicator's own. Before the hosts' clocks: first a stamp becomes a time of its host.
 * The collectives by which these are compared are in the accounts, with their own points (ledger/anchors.h):
 * tables go to all ranks of a team, accounts do not. Not put right: times in the data set, sums of whole logs
 * in the index (--approximate), what --since and --until choose by, and which records were launched late.
 *
 * Threads: a range's table is its thread's; ni_stamps_hand_over() takes the run's lock; ni_stamps_find() by
 * the main thread, read-only then. Memory: gpu_clock.h's for each rank of a communicator, 16 bytes for each
 * part of its logs. Failure: -ENOMEM. ni_stamps_free() frees the run's.
 */
#ifndef NI_SUMMARY_STAMPS_H
#define NI_SUMMARY_STAMPS_H

#include "exporter/model/clocks/gpu_clock.h"

struct ni_run;
struct ni_sum_range;
struct ni_seen_context;
struct ni_piece;
struct ni_entry;
struct ni_scan_part;
struct ni_partial_numbers;
struct ni_clock_line;

struct ni_stamps_part { /* what the last clock line of a part states */
  uint32_t file, range;
  int64_t stated_ns;
};
struct ni_stamps_log { /* of one member: points, and parts with clock lines */
  struct ni_gpu_points points;
  struct ni_stamps_part *part;
  size_t n, cap;
  const struct ni_gpu_clock *clock; /* by which its times are put right; NULL: they are right */
};
struct ni_stamps {
  struct ni_stamps_log *log; /* by member; those beyond n have nothing */
  size_t n, cap;
  struct ni_gpu_units units; /* any: some log's times are not right */
};
struct ni_stamps_seen { /* of a range */
  uint32_t member;
  struct ni_gpu_points points;
  int64_t stated_ns;
};

/* A clock line with a communicator. */
int ni_stamps_take(struct ni_sum_range *x, const struct ni_seen_context *c, const struct ni_clock_line *k);
/* A context is new: which of the range's it is. */
void ni_stamps_of_context(const struct ni_sum_range *x, struct ni_seen_context *c);
/* Notes what is stated now, as what that part of the file ends with. */
int ni_stamps_note(struct ni_sum_range *x, int range);
/* The range is over: it was that part. */
int ni_stamps_hand_over(struct ni_sum_range *x, const struct ni_scan_part *p);
int ni_stamps_find(struct ni_run *r);
/* By which that member's times are put right; NULL: they are right. */
static inline const struct ni_stamps_log *ni_stamps_of(const struct ni_stamps *s, uint32_t member) {
  return member < s->n && s->log[member].clock ? &s->log[member] : NULL;
}
/* Of a member, new where it is met first; NULL: no memory. Under the run's lock, or when all is read. */
struct ni_stamps_log *ni_stamps_log(struct ni_stamps *s, uint32_t member);
/* Makes a GPU time one of its host. p: the piece that has the entry. */
void ni_correct_stamp(const struct ni_stamps_log *l, const struct ni_piece *p, struct ni_entry *e);
/* As a part of the tables of a partial result. */
void ni_stamps_wire(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x);
void ni_stamps_free(struct ni_stamps *s);

#endif
