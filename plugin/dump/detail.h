/*
 * How much is recorded right now, and who decides: settings at first, then control files, time slices and the budget.
 * State of the dump role, which alone changes it; each change is a `control` line.
 *
 *   asked for (settings, control file) ─▶ less KernelCh outside of its slice ─▶ less what the budget leaves out ─▶ ni_masks_set
 */
#ifndef NI_DETAIL_H
#define NI_DETAIL_H

#include "plugin/settings/budget.h"
#include "plugin/settings/control_file.h"
#include "plugin/settings/control_parse.h"

struct ni_detail {
  uint32_t asked;          /* kinds, by settings or control file */
  uint8_t out_of_slice;    /* KernelCh is off for the rest of its period */
  uint64_t slice_ends_ms;  /* Unix ms */
  struct ni_budget budget;
  uint64_t window_ns;      /* CLOCK_MONOTONIC at which the budget's window began; 0: none yet */
  uint64_t ticks, started, dropped; /* as they were then */
  struct ni_ctl_file file[2]; /* of all ranks; of this process's own */
  char own_name[NI_CTL_NAME_BYTES];
  uint8_t turn;            /* whose look is next */
  uint64_t last_look_ms;
  char text[NI_CTL_FILE_BYTES]; /* of the file that is looked at */
};

struct ni_config;
struct ni_dump;

void ni_detail_init(struct ni_dump *d, const struct ni_config *c); /* with the first init */
void ni_detail_open(struct ni_dump *d, const char *dir);           /* with a session: where control files are */
/* Looks for what is to change, at most one stat a second; says what has changed. */
void ni_detail_tick(struct ni_dump *d);
/* The time to sleep, at most ms, so that a slice ends when it should. */
uint64_t ni_detail_wait_ms(const struct ni_dump *d, uint64_t ms);

#endif
