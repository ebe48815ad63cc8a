/*
 * Collectives as their ranks saw them: when they started and ended on each, of a sample that fits into fixed
 * memory.
 *
 * Model: a table of operations by (communicator, instance, function, number), with one entry for each rank.
 * An operation is in the sample when the hash of its name lies below a bound; when the table is full, the
 * bound is halved and what lies above leaves. So all ranks agree on the sample without knowing of each other,
 * and it is spread over the whole run. Order of adding changes nothing.
 *
 * Threads: one. Memory: 32 bytes an entry, NI_MATCH_ENTRIES of them at most, and 32 more for operations.
 * Failure: -ENOMEM.
 */
#ifndef NI_TRACE_MATCH_H
#define NI_TRACE_MATCH_H

#include <stddef.h>
#include <stdint.h>

#define NI_MATCH_ENTRIES (1u << 18)

struct ni_match_entry {
  int64_t start_ns, end_ns; /* in the clock of the member's host, as logged */
  int64_t stated_ns;        /* offset of the GPU clock that they were written with */
  uint32_t member;
  uint32_t next : 31;    /* index + 1 of the operation's next entry */
  uint32_t receives : 1; /* of a message: the Recv, else the Send */
};

struct ni_match_op {
  uint64_t key;
  uint32_t first, n; /* entries; n 0: free */
};

struct ni_match {
  struct ni_match_entry *entry;
  struct ni_match_op *op;
  uint32_t n_entries, n_ops, mask, most; /* most: entries */
  uint64_t bound;                        /* keys below are in the sample */
};

/* The name of an operation as a number; spread evenly. */
uint64_t ni_match_key(uint64_t comm_hash, uint32_t instance, const char *func, uint64_t sn,
                      uint64_t msg_bytes);

/* entries: for so many, NI_MATCH_ENTRIES at most. */
int ni_match_init(struct ni_match *m, size_t entries);
void ni_match_free(struct ni_match *m);
int ni_match_add(struct ni_match *m, uint64_t key, const struct ni_match_entry *entry);

#endif
