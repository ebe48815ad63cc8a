/*
 * Several processes that make one summary together, after each has read a shard: who does what, and what goes
 * from one to another.
 *
 *   tables of all ─▶ rank 0
 *       ─▶ to all: every rank numbers processes, communicators and cells of the result alike (ni_team_tables)
 *   records of a process    : the rank that read its logs goes through them for the judge;
 *                             its tables ─▶ rank 0 (ni_team_blame)
 *   records of an operation : ─▶ the owner of its cell and range of numbers, who joins them (ni_team_spread)
 *   sums of a cell          : added up along a binomial tree, cell after cell,
 *                             ─▶ rank 0 (ni_team_cell, ni_team_sums)
 *
 * All that is summed is whole numbers, lists of the worst by an order without ties, or points chosen by what
 * they are (cell_figures.h), so the order of adding changes nothing and the bytes are those of one process.
 *
 * Who owns what. A cell's numbers, from its least to its largest, are cut into as many equal ranges as its
 * share of all records asks for: four for a rank's share, one per rank at most. The ranges of one cell go to
 * ranks that follow each other, so a rank has one of them, and its rows of the CSV are a part of the cell's
 * file. Not cut: messages, since the k-th Send of a rank meets the k-th Recv of its peer whatever their
 * numbers are (both cells of a size go to one owner), and all cells with --skip-first, which counts.
 *
 * What stays on rank 0: tables of processes, communicators and cells; accounts of logs; the judge's tables,
 * some 10 KB a process; sums of one cell at a time; series of counters; `hang`. None of it grows with the
 * records. Ranks hold their shard and what they own, about 10 bytes a record, of which --memory bounds what
 * is not put aside.
 *
 * Bytes between ranks are of the same program on the same kind of machine, and nothing is checked in them.
 * All functions are called by all ranks in the same order, from the main thread. 0 or -errno; after a failure
 * the others wait in vain, so the caller ends all.
 */
#ifndef NI_TEAM_H
#define NI_TEAM_H

#include "exporter/model/sums/ranks/blame.h"
#include "exporter/model/sums/cell_figures.h"
#include "exporter/model/sums/partial/partial.h"

/* How ranks talk. */
struct ni_team {
  int rank, size;
  /* Bytes of w to a rank, and others from a rank at the same time; -1: to nobody, from nobody. got->at:
   * allocated, 96 bytes behind what there is can be read. 0 or -ENOMEM. */
  int (*swap)(int to, const struct ni_wire *w, int from, struct ni_bytes *got);
  /* What w stores on rank 0 comes to all others as one that loads; *hold is freed by them. 0 or -ENOMEM. */
  int (*share)(struct ni_wire *w, uint8_t **hold);
  void (*sum)(uint64_t *v, size_t n); /* of all ranks, to all */
  void (*least)(uint64_t *v, size_t n);
};

/* What wire stores on rank 0 all others load. */
int ni_team_share(const struct ni_team *t, void (*wire)(struct ni_wire *w, void *arg), void *arg);
/* Sets r->partial->apart; where it is false rank 0 has to take all records as they are. */
int ni_team_tables(struct ni_run *r);
/* Tables of ranks that other ranks filled come to rank 0. */
int ni_team_blame(struct ni_blame *b, bool (*mine)(const void *arg, uint32_t process), const void *arg);
/*
 * What find() says on rank 0, usual_steps and who is to be gone through once more, goes to all. Returns how
 * many, or -errno.
 */
int64_t ni_team_steps(struct ni_blame *b, int64_t (*find)(struct ni_blame *b));
/* By own time or by durations, as rank 0 found. */
int ni_team_agree(const struct ni_run *r, struct ni_summary *s);
/*
 * Records go to their owners; s->cell says what is ours (chunk, chunks). to_root: all go to rank 0, and
 * r->team is NULL then.
 */
int ni_team_spread(struct ni_run *r, struct ni_summary *s, bool to_root);
/* On rank 0 c becomes the sums of all. */
int ni_team_cell(struct ni_cell_sums *c);
int ni_team_sums(struct ni_run *r, struct ni_summary *s, struct ni_sums *t, int64_t *heat_ppm);

/* Nobody goes on before all have come here. */
static inline void ni_team_meet(const struct ni_team *t) { t->sum(&(uint64_t){0}, 1); }
/* To rank 0. */
static inline int ni_team_give(const struct ni_team *t, struct ni_wire *w) {
  return w->bad ? -ENOMEM : t->swap(0, w, -1, NULL);
}

#endif
