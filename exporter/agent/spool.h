/*
 * Samples that a head has not acknowledged, on disk: a file of records in the agent's state folder, at most
 * NI_SPOOL_SAMPLES and NI_SPOOL_BYTES. What is beyond goes, the oldest first, and is counted.
 *
 * A record is its length, a checksum, its number, the spool's epoch and the message (messages.h). The file is
 * begun anew when half of it is acknowledged. Where no spool was found, numbers begin at 1 in a new epoch,
 * which the head is told. After a kill: read from its beginning to the first record that is torn; numbers go
 * on behind the last. It is not synced: what the machine itself loses when its power goes is a gap of
 * numbers, which the head counts. Where the disk is full, samples stay in memory, and are lost with the
 * process. One thread at a time: the uplink's lock.
 */
#ifndef NI_SPOOL_H
#define NI_SPOOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NI_SPOOL_SAMPLES = 10000, NI_SPOOL_BYTES = 64 << 20 };

struct ni_spool;
/* dir: an open folder, the caller's. 0 or -errno. */
int ni_spool_open(struct ni_spool **out, int dir);
void ni_spool_close(struct ni_spool *s);
/* What is there: first <= seq < next. */
void ni_spool_range(const struct ni_spool *s, uint64_t *first, uint64_t *next, uint64_t *lost);
/* The epoch of its numbers: random, never 0. It stays as long as the file does. */
uint64_t ni_spool_epoch(const struct ni_spool *s);
/* Takes the next number for a message. */
uint64_t ni_spool_next(const struct ni_spool *s);
/* 0 or -ENOMEM: it is lost, and counted */
int ni_spool_put(struct ni_spool *s, const void *bytes, size_t len);
/* The message of a number, until the next call; NULL: it is not there. */
const void *ni_spool_get(struct ni_spool *s, uint64_t seq, size_t *len);
/* All up to seq may go. */
void ni_spool_drop(struct ni_spool *s, uint64_t seq);

#endif
