/* What is being read of a file of sweeps, in the file's order; ni_sweep_read() lays it out by entity. Private to this folder. */
#ifndef NI_SWEEP_DRAFT_H
#define NI_SWEEP_DRAFT_H

#ifdef __cplusplus
extern "C" {
#endif

#include "exporter/base/index.h"
#include "sweep.h"

struct ni_draft_item {
  const char *name;
  uint32_t entity, next; /* next: of the entity, number + 1; 0: the last one */
  struct ni_reading at[2];
};

struct ni_draft_owner {
  struct ni_entity of;
  uint32_t first, last, n[2]; /* its items, number + 1; how many each sweep has */
  int64_t ahead_ns;           /* CLOCK_MONOTONIC less CLOCK_REALTIME in its readings; 0: not known */
};

struct ni_draft {
  struct ni_sweep *out; /* both; all texts are in the first one's set */
  struct ni_draft_owner *entity;
  struct ni_draft_item *item;
  size_t n_entities, cap_entities, n_items, cap_items;
  struct ni_index entities, items; /* by name */
  int sweeps;
  char *why; /* said already, unless "" */
  size_t why_cap;
};

bool ni_draft_fail(struct ni_draft *d, const char *format, ...) __attribute__((format(printf, 2, 3))); /* false */
/* The number of an entity, old or new; negative: why is said. */
int64_t ni_draft_entity(struct ni_draft *d, unsigned source, const char *name);
/* false: why is said. */
bool ni_draft_add(struct ni_draft *d, uint32_t entity, const char *name, const struct ni_reading at[2]);

/* A whole number of 64 bits, a negative one as int64_t; a time, "sec" or "sec.decimals", in ns. NULL: none; else its end. */
const char *ni_draft_number(const char *t, uint64_t *out);
const char *ni_draft_stamp(const char *t, int64_t *ns);

/* read_json.cc: text has len bytes, and NI_PARSE_PADDING may be read behind them. false: why is said. */
bool ni_draft_json(struct ni_draft *d, char *text, size_t len);

#ifdef __cplusplus
}
#endif
#endif
