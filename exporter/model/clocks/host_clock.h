/*
 * The clock of one host beside the reference's, as a function of time: a straight line (offset and drift),
 * and steps, by which somebody set it forward or back in the middle of a run.
 *
 * A time of the host becomes one of the reference in two moves: what the steps before it added is taken off,
 * then the line. A step lies between two operations that are known from other hosts, so where a record
 * between these stands has to be told:
 *
 *   set forward   before it no time is above after_ns - by_ns, behind it none below before_ns + by_ns
 *   set back      before it no time is above after_ns - by_ns, behind it none below before_ns + by_ns (by_ns
 *                 < 0: they overlap)
 *
 * What lies between is decided by the record before, in the order of numbers of one rank and function (struct
 * ni_clock_walk): a time that runs back by half a step, or ahead by nearly all of one, is the first behind
 * it. The first record of all is taken to be before a step back, since most begin with the run, and else by
 * the middle; so is a time that nothing is known of. So a stream whose records are further apart than the
 * step may have some on the wrong side.
 *
 * Pure; any thread.
 */
#ifndef NI_HOST_CLOCK_H
#define NI_HOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

enum { NI_CLOCK_STEPS = 8 };
#define NI_CLOCK_NONE UINT32_MAX

struct ni_clock_step {
  /* by the host's clock: the last end known before it, the first known behind it */
  int64_t before_ns, after_ns;
  int64_t by_ns;               /* set forward by; below 0: back */
};

struct ni_host_clock {
  bool aligned;                /* false: nothing in common with the reference; its own clock is used */
  double offset_ns, drift;     /* reference = t - (offset_ns + drift * (t - epoch_ns)), behind the steps */
  int64_t epoch_ns;
  /*
   * half of what the matched operations leave open, added up along the way, and the errors of the GPU clocks
   * at both ends
   */
  int64_t error_ns;
  int64_t spread_ns;           /* so near to the line most (9 of 10) ends are, added up along the way */
  /* the parts: on the way so far; of its worst GPU, by scatter and by contradictions of its ranks */
  int64_t room_ns, gpu_ns;
  bool contradiction;          /* no straight line agrees with all of them; error_ns says by how much */
  uint32_t via;                /* the host it was compared with; itself: the reference; NI_CLOCK_NONE: none */
  /* collectives and messages compared on that way; those that no clock explains */
  uint64_t matched, messages, rejected;
  int64_t first_ns, last_ns;   /* of what it did, by its own clock */
  struct ni_clock_step step[NI_CLOCK_STEPS]; /* in order of time */
  uint32_t n_steps;
};

/* Where the reading of one stream is; all 0: at its beginning. */
struct ni_clock_walk {
  int64_t last_ns;
  uint32_t steps;
  bool any;
};

/* How far the clock is ahead of the reference's at its own time t, which is behind all steps or has none. */
static inline double ni_clock_ahead(const struct ni_host_clock *c, int64_t t) {
  return c->offset_ns + c->drift * (double)(t - c->epoch_ns);
}

/* Is t behind that step? w: of the records before; NULL: not known. */
static inline bool ni_clock_behind(const struct ni_clock_step *s, const struct ni_clock_walk *w, int64_t t) {
  const int64_t least = s->before_ns + s->by_ns, most = s->after_ns - s->by_ns;
  if (most <= least) return t > most + (least - most) / 2;
  if (t < least || t > most) return t > most;
  if (!w || (!w->any && s->by_ns > 0)) return t > least + (most - least) / 2;
  if (!w->any) return false;
  return s->by_ns < 0 ? t - w->last_ns < s->by_ns / 2 : t - w->last_ns > s->by_ns - s->by_ns / 8;
}

/*
 * A time of the host's clock as it would be had nobody set it. w: the walk through one rank's records of one
 * function, by number; NULL: t alone has to do.
 */
static inline int64_t ni_clock_unset(const struct ni_host_clock *c, struct ni_clock_walk *w, int64_t t) {
  uint32_t k = w ? w->steps : 0;
  int64_t added = 0;
  while (k < c->n_steps && ni_clock_behind(&c->step[k], w, t)) k++;
  for (uint32_t i = 0; i < k; i++) added += c->step[i].by_ns;
  if (w) *w = (struct ni_clock_walk){t, k, true};
  return t - added;
}

/* Of a time of the host's clock the one of the reference. */
static inline int64_t ni_clock_right(const struct ni_host_clock *c, struct ni_clock_walk *w, int64_t t) {
  t = ni_clock_unset(c, w, t);
  return t - (int64_t)ni_clock_ahead(c, t);
}

#endif
