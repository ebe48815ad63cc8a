/* What is being read of a file of sweeps, in the file's order; build() in sweep.c sorts it by entity. Private to this folder. */
#ifndef NI_SWEEP_DRAFT_H
#define NI_SWEEP_DRAFT_H

#ifdef __cplusplus
extern "C" {
#endif

#include "exporter/base/index.h"
#include "sweep.h"

struct ni_draft_item {
  uint32_t entity;
  const char *name;
  struct ni_reading at[2];
};

struct ni_draft {
  struct ni_set heads; /* entities without counters; all texts */
  struct ni_draft_item *item;
  size_t n, cap;
  struct ni_index entities, items; /* by name */
  struct ni_sweep meta[2];         /* their texts, and in set what could not be read */
  int64_t ahead_ns[NI_SWEEP_ENTITIES]; /* CLOCK_MONOTONIC less CLOCK_REALTIME in an entity's readings; 0: not known */
  int sweeps;
  char *why;                       /* said already, unless "" */
  size_t why_cap;
};

/* The number of an entity, old or new; negative: why is said. */
int64_t ni_draft_entity(struct ni_draft *d, unsigned source, const char *name);
/* false: why is said. */
bool ni_draft_add(struct ni_draft *d, uint32_t entity, const char *name, const struct ni_reading at[2]);
bool ni_draft_fail(struct ni_draft *d, const char *format, ...) __attribute__((format(printf, 2, 3))); /* false */

/* A whole number of 64 bits, a negative one as int64_t; a time, "sec" or "sec.decimals", in ns. NULL: none; else its end. */
const char *ni_draft_number(const char *t, uint64_t *out);
const char *ni_draft_stamp(const char *t, int64_t *ns);

/* read_json.cc: text has len bytes, and NI_PARSE_PADDING may be read behind them. false: why is said. */
bool ni_draft_json(struct ni_draft *d, char *text, size_t len);

#ifdef __cplusplus
}
#endif
#endif
