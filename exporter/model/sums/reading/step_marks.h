/*
 * Marks that somebody set in a running job (nccl-inspector ctl LOGS mark TEXT) as begins of its steps.
 *
 * Each rank logs a mark when it reads it, some time within two seconds; so of all ranks' lines of one mark
 * the first counts, by its host's clock. Marks of one text, or of texts that differ in digits alone, are
 * steps where there are NI_STEP_MARKS_MIN, about evenly apart over half of the run or more. --step-by mark
 * takes all; any other --step-by none. Failure: -ENOMEM. Lines and `at` are freed with the run.
 */
#ifndef NI_SUMMARY_STEP_MARKS_H
#define NI_SUMMARY_STEP_MARKS_H

#include <stddef.h>
#include <stdint.h>

#define NI_STEP_MARKS_MIN 10u
#define NI_STEP_MARKS_LINES (1u << 20) /* what comes beyond is left out */
struct ni_step_mark_line {
  /* what they are sorted by before the time: process and text at first, another one in each phase */
  uint64_t key;
  int64_t ns;
  uint32_t text, times; /* times: so many of it in the process before this one */
};
struct ni_step_marks {
  struct ni_step_mark_line *line; /* in the order of adding */
  size_t n_lines, cap;
  /* Unix ns, rising: begins of steps; the first step also has what lies before it */
  int64_t *at;
  uint32_t n, text; /* n 0: marks are no steps; text: of the first one, a name */
};
struct ni_run;
/* Any thread; takes the run's lock. */
int ni_step_marks_add(struct ni_run *r, uint32_t process, int64_t ns, uint32_t text);
/* After reading, by the main thread: fills `at`. */
int ni_step_marks_find(struct ni_run *r);

#endif
