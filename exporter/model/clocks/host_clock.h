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
 * What lies between is decided by the order of the operations (turn.h): those of one rank and function, of
 * all sizes, which begin one after the other. Where sizes vary each size has few records, far apart, so
 * nobody goes by one size alone. From which number on a stream is behind a step (struct ni_clock_turns) is
 * what readers go by then. Of a time that no stream is known of the middle decides.
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
  int64_t by_ns; /* set forward by; below 0: back */
};

struct ni_host_clock {
  bool aligned;            /* false: nothing in common with the reference; its own clock is used */
  double offset_ns, drift; /* reference = t - (offset_ns + drift * (t - epoch_ns)), behind the steps */
  int64_t epoch_ns;
  /*
   * half of what the matched operations leave open, added up along the way, and the errors of the GPU clocks
   * at both ends
   */
  int64_t error_ns;
  int64_t spread_ns; /* so near to the line most (9 of 10) ends are, added up along the way */
  /* the parts: on the way so far; of its worst GPU, by scatter and by contradictions of its ranks */
  int64_t room_ns, gpu_ns;
  bool contradiction; /* no straight line agrees with all of them; error_ns says by how much */
  uint32_t via;       /* the host it was compared with; itself: the reference; NI_CLOCK_NONE: none */
  /* collectives and messages compared on that way; those that no clock explains */
  uint64_t matched, messages, rejected;
  int64_t first_ns, last_ns;                 /* of what it did, by its own clock */
  struct ni_clock_step step[NI_CLOCK_STEPS]; /* in order of time */
  uint32_t n_steps;
};

/* Of one stream the first number behind each step; UINT64_MAX: it has none. */
struct ni_clock_turns {
  uint64_t sn[NI_CLOCK_STEPS];
};

/* How far the clock is ahead of the reference's at its own time t, which is behind all steps or has none. */
static inline double ni_clock_ahead(const struct ni_host_clock *c, int64_t t) {
  return c->offset_ns + c->drift * (double)(t - c->epoch_ns);
}

enum ni_clock_side { NI_CLOCK_BEFORE, NI_CLOCK_BEHIND, NI_CLOCK_EITHER };

/* What the time alone says; near the borders nothing, as stamps and what is known of a step are not exact. */
static inline enum ni_clock_side ni_clock_side(const struct ni_clock_step *s, int64_t t) {
  const int64_t least = s->before_ns + s->by_ns, most = s->after_ns - s->by_ns;
  const int64_t unsure = (s->by_ns < 0 ? -s->by_ns : s->by_ns) / 8;
  if (most <= least)
    return t > most + (least - most) / 2 ? NI_CLOCK_BEHIND : NI_CLOCK_BEFORE;
  if (t < least - unsure)
    return NI_CLOCK_BEFORE;
  return t > most + unsure ? NI_CLOCK_BEHIND : NI_CLOCK_EITHER;
}

static inline bool ni_clock_is_late(const struct ni_clock_step *s, int64_t t) {
  return t > s->before_ns / 2 + s->after_ns / 2;
}

/* Behind how many steps that operation of a stream is. turns: of the stream; NULL: t alone has to do. */
static inline uint32_t ni_clock_steps_before(const struct ni_host_clock *c,
                                             const struct ni_clock_turns *turns, uint64_t sn, int64_t t) {
  uint32_t k = 0;
  for (; k < c->n_steps; k++) {
    const enum ni_clock_side side = ni_clock_side(&c->step[k], t);
    bool is_behind = side == NI_CLOCK_BEHIND;
    if (side == NI_CLOCK_EITHER)
      is_behind = turns ? sn >= turns->sn[k] : ni_clock_is_late(&c->step[k], t);
    if (!is_behind)
      break;
  }
  return k;
}

/* A time of the host's clock as it would be had nobody set it, of which so many steps were before. */
static inline int64_t ni_clock_unset(const struct ni_host_clock *c, uint32_t steps, int64_t t) {
  for (uint32_t i = 0; i < steps; i++)
    t -= c->step[i].by_ns;
  return t;
}

/* Of a time of the host's clock the one of the reference. turns, sn: of an operation; NULL, 0: of others. */
static inline int64_t ni_clock_right(const struct ni_host_clock *c, const struct ni_clock_turns *turns,
                                     uint64_t sn, int64_t t) {
  t = ni_clock_unset(c, ni_clock_steps_before(c, turns, sn, t), t);
  return t - (int64_t)ni_clock_ahead(c, t);
}

#endif
