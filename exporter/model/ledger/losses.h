/*
 * What a job lost, as counts and as the first place of each: losses.c works it out, accounts.c makes sentences of it.
 *
 * Main thread, after reading. The places are for a terminal; names in them are as the logs spell them.
 */
#ifndef NI_SUMMARY_LOSSES_H
#define NI_SUMMARY_LOSSES_H

#include "unended.h"
#include "exporter/model/sums/state.h"

struct ni_losses {
  uint64_t gaps;       /* numbers that never came and that nothing explains */
  uint64_t untold;     /* numbers behind the last accounting of a rank that samples (sampling.h) */
  uint64_t dropped;    /* operations lost as the logs say, but for: */
  uint64_t expired;    /* records whose files the job's own settings removed */
  uint64_t unfinished; /* operations given up, or in flight when their log ended */
  uint64_t no_final, refused;
  struct ni_unended unended;
  uint64_t rolled;     /* operations in roll-ups */
  uint64_t no_record, unrolled; /* finished ones that have no record; that are in no roll-up */
  char refused_at[256], gap_at[256], untold_at[256], no_final_at[256], dropped_at[256], unfinished_at[256], expired_at[256]; /* "": nowhere */
};

/* 0 or -ENOMEM. out: zeroed; in any case ni_unended_free() of its part. */
int ni_judge_losses(struct ni_run *r, struct ni_losses *out, struct ni_counts *causes);
/* 0 or -ENOMEM. */
int ni_count_add(struct ni_counts *c, const char *name, uint64_t count);

#endif
