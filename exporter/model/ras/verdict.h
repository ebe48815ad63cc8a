/*
 * From answers of RAS to a verdict, without a log or a black box.
 *
 * RAS counts per rank, communicator and function how many collectives were LAUNCHED. It tells nothing of
 * sends and receives, of copy engine, RMA and multi-root broadcasts, and of what a CUDA graph captured only
 * where KernelCh events are on; nor what has finished. So what can be said is little, and more is not said:
 *
 *   a rank has launched fewer than the others of its communicator  ─▶ it is *behind*. Never those who are
 *                                                                     ahead, however few they are
 *   the same number, of other functions                            ─▶ the ranks do not agree
 *   missing: dead, unresponsive                                    ─▶ it cannot take part
 *   two looks, and no process of the communicator has launched
 *   anything anywhere, or changed its state                        ─▶ it *stands still* since then
 *
 *   a communicator with one of the first three that stands still
 *   for the limit (--stuck-after)                                  ─▶ NI_HANG_LIKELY, never CERTAIN
 *   ... that stands still for less, and nobody is dead or
 *   unresponsive                                                   ─▶ NI_HANG_NOT_YET
 *   every process has launched something between two looks, and
 *   nobody is missing                                              ─▶ NI_HANG_NO_HANG
 *   anything else: one look; all have launched the same and stand
 *   still (hung or idle: the same to RAS); a dead rank             ─▶ CANNOT_TELL
 *
 * A rank that is behind in one communicator and ahead in another, where others are behind, waits there: the
 * first is a consequence.
 *
 * Threads: one. Ownership: ni_ras_verdict_free(), ni_ras_look_free(); a verdict points into its look.
 * Failure: -ENOMEM.
 */
#ifndef NI_RAS_VERDICT_H
#define NI_RAS_VERDICT_H

#include "exporter/input/ras/ras.h"
#include "exporter/model/hang/verdict.h"

struct ni_ras_look {
  struct ni_ras ras;
  uint64_t ns;           /* when it was answered, by any clock that all looks have */
  uint64_t *still_since; /* by communicator: since which look nothing of it has moved; by ni_ras_judge() */
};

/* A communicator that is not in order. */
struct ni_ras_trouble {
  const struct ni_ras_comm *comm;
  const struct ni_ras_rank
      *most; /* one of those who have launched most, and as most of them have; NULL: nobody is counted */
  uint64_t most_launched;
  size_t here, behind, unlike;  /* unlike: launched as many as `most`, and others */
  size_t in[NI_RAS_HERE_COUNT]; /* ranks, by enum ni_ras_here */
  size_t errors, aborts;        /* ranks with an async error, an abort flag */
  size_t starting;              /* ranks whose init is still in progress */
  /* for so long it has been seen to stand still; 0: it moves, or there was one look */
  uint64_t still_ns;
  bool consequence; /* who is behind in it waits in another */
  bool hangs;
};

struct ni_ras_verdict {
  const struct ni_ras_look *look;
  enum ni_hang_answer
      /* one of five: HANG_LIKELY, NOT_YET, NO_HANG, CANNOT_TELL, and NO_DATA_AT_ALL: no communicator */
      answer;
  struct ni_ras_trouble *trouble; /* what comes first is first */
  size_t n;
  uint64_t limit_ns, apart_ns; /* apart: between the two looks; 0: there was one */
  uint64_t still_ns;           /* all of the job; 0: something moves, or one look */
  size_t comms, odd;           /* sound ones, and those that make no sense */
  size_t processes,
      /* that have answered, one a GPU; those that launched something between the looks */
      moved;
  size_t in[NI_RAS_HERE_COUNT]; /* processes, each where it is worst */
};

/* What is the rank in this trouble? */
bool ni_ras_is_behind(const struct ni_ras_trouble *t, const struct ni_ras_rank *x);
bool ni_ras_is_unlike(const struct ni_ras_trouble *t, const struct ni_ras_rank *x);
uint64_t ni_ras_launched(const struct ni_ras_rank *x);
/* Is it a trouble that a hang can be? Errors and inits are told, and prove nothing. */
static inline bool ni_ras_is_wait(const struct ni_ras_trouble *t) {
  return t->behind || t->unlike || t->in[NI_RAS_DEAD] || t->in[NI_RAS_UNRESPONSIVE];
}

/*
 * before: an earlier look that was judged; NULL: there is none. Sets now->still_since. limit_ns:
 * --stuck-after.
 */
int ni_ras_judge(struct ni_ras_verdict *v, struct ni_ras_look *now, const struct ni_ras_look *before,
                 uint64_t limit_ns);
void ni_ras_verdict_free(struct ni_ras_verdict *v);
void ni_ras_look_free(struct ni_ras_look *look);

#endif
