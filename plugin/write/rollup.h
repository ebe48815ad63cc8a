/*
 * Roll-ups of one communicator: what its operations came to, by kind, function, size and timing source, until
 * a line says so. They count all operations that are finished, also those whose record is left out by
 * NCCL_INSPECTOR_SAMPLE.
 *
 *   add ─▶ entry of exactly this size, while the communicator has fewer than NI_ROLLUP_EXACT of them
 *      └─▶ entry of the power of two that the size lies in, while it has fewer than NI_ROLLUP_ENTRIES
 *      └─▶ "others": all functions and sizes of that kind, without a histogram; also when there is no memory
 *   next ─▶ the caller writes the line
 *       ─▶ said: the entry is empty; one that stayed empty for a whole period is given back
 *
 * Threads: the dump role alone. Memory: entries come from a pool of the process, NI_ROLLUP_POOL_BYTES at
 * most, which is kept for good; beside it a table of pointers for each communicator in use. No failure:
 * without memory "others" counts.
 */
#ifndef NI_ROLLUP_H
#define NI_ROLLUP_H

#include "format/hist.h"
#include "format/record.h"

#define NI_ROLLUP_EXACT 64u
#define NI_ROLLUP_ENTRIES 192u
#define NI_ROLLUP_POOL_BYTES (4u << 20) /* about 8,000 entries */
/* an entry with so many operations is due: its buckets are 32 bits */
#define NI_ROLLUP_FULL (UINT32_C(1) << 31)

struct ni_rollup_sums {
  uint8_t kind, func; /* func: number of the intern table */
  uint8_t timing;     /* enum ni_timing */
  /* 0: one size; else 1 + log2 of the smallest size of the class (of 0 bytes: 1), or NI_ROLLUP_OTHERS */
  uint8_t cls;
  uint8_t idle;   /* was empty when last looked at */
  uint64_t bytes; /* the size, or the smallest of the class */
  uint64_t count, sum_bytes, sum_ns, min_ns, max_ns;
};
#define NI_ROLLUP_OTHERS 255u

struct ni_rollup_entry {
  struct ni_rollup_sums s;      /* first: entries and "others" are handed out alike */
  struct ni_rollup_entry *next; /* free ones */
  uint32_t hist[NI_HIST_BUCKETS];
};

struct ni_rollup_pool {
  struct ni_rollup_entry *free;
  uint32_t n_slabs;
};

struct ni_rollup {
  struct ni_rollup_entry **slot; /* n_slots places, hashed; NULL: none */
  uint32_t n_slots, n, n_exact;
  uint32_t due;     /* 1: an entry is NI_ROLLUP_FULL */
  uint64_t from_ns; /* Unix ns of the first operation since the last line; 0: none */
  struct ni_rollup_sums others[NI_KIND_COUNT];
};

/* A zeroed struct is an empty one, of the pool, too. */
void ni_rollup_add(struct ni_rollup *r, struct ni_rollup_pool *pool, uint8_t func,
                   const struct ni_record *rec, uint64_t now_ns);

/* The first from *at on that has something to say, or NULL; *at is for the next call, 0 at first. */
struct ni_rollup_sums *ni_rollup_next(struct ni_rollup *r, uint32_t *at);
/* Its histogram; NULL: it has none. */
uint32_t *ni_rollup_hist(struct ni_rollup_sums *s);
/* Largest size of its class; 0: it is of one size. */
uint64_t ni_rollup_last_bytes(const struct ni_rollup_sums *s);
/* Its line is written. */
void ni_rollup_said(struct ni_rollup_sums *s);
/* After all were said: forgets what was not used since the last call. */
void ni_rollup_tidy(struct ni_rollup *r, struct ni_rollup_pool *pool);
/* Gives all entries back to the pool. */
void ni_rollup_free(struct ni_rollup *r, struct ni_rollup_pool *pool);

#endif
