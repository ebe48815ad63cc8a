/*
 * The records of one rank in one cell, packed: what the join across ranks reads.
 *
 * Model: a segment is written once, by one thread, record after record, and then read once. Each record is a
 * handful of variable-length differences to the one before (9 bytes for NVIDIA's lines, 18 for ours), in
 * blocks of memory; when the store holds more than its limit, blocks that are full go to a temporary file
 * instead. Records come nearly in order of sn; a segment knows by how much it is out of order (`back`), so
 * that a reader with a small heap hands them out in order: a record may go out once `back` more has been
 * read.
 *
 * Threads: a segment belongs to one thread while it is written and to one while it is read; the store is
 * shared (spill_file.h). Ownership: ni_segment_free(), then ni_spill_close(). Failure: -ENOMEM, -errno of the
 * temporary file. Not promised: anything about the bytes; partial results (partial/partial.h) hold them, with
 * a number of the format.
 */
#ifndef NI_SEGMENT_H
#define NI_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/bytes/wire.h"
#include "exporter/base/spill/spill_file.h"
#include "exporter/input/granules.h"

/* One record, unpacked. */
struct ni_entry {
  uint64_t sn;
  uint64_t exec_ns;
  uint64_t bytes_per_s; /* bus bandwidth; NI_NO_BW: none */
  uint64_t dump_us;
  int64_t start_ns; /* Unix; NI_NO_START: not known */
  /*
   * P2P: ni_entry_message(); collectives: what its kernel waited for its peers, ns + 1; 0: that is not stated
   */
  int64_t peer_or_wait;
  uint64_t tag; /* of the application; 0: none, at most INT64_MAX */
  /*
   * what the last clock line before it in its part of the log stated as offset of the GPU's clock; 0: there
   * was none
   */
  int64_t stated_ns;
  uint8_t timing;  /* below 16 */
  int32_t lead_us; /* from the call to the start of its kernel, rounded down; NI_NO_LEAD: not known */
  bool tail;       /* its time is that of a kernel that another record counts already */
  uint8_t mix;     /* code of algorithm and protocol */
};
#define NI_NO_BW UINT64_MAX
#define NI_NO_LEAD INT32_MAX

/* The peer (-1: not stated) and the number of a message between the two as the log states it, both in
 * peer_or_wait: NI_NO_SN, and numbers that do not fit, are no number. */
static inline int64_t ni_entry_message(int32_t peer, uint64_t pair_sn) {
  return pair_sn < UINT32_MAX - 1 ? (int64_t)((pair_sn + 1) << 32 | (uint32_t)peer) : peer;
}
static inline int32_t ni_entry_peer(const struct ni_entry *e) { return (int32_t)e->peer_or_wait; }
/* NI_NO_SN: the log does not state it. */
static inline uint64_t ni_entry_pair_sn(const struct ni_entry *e) {
  const uint32_t above = (uint32_t)((uint64_t)e->peer_or_wait >> 32);
  return above == 0 || above == UINT32_MAX ? NI_NO_SN : above - 1;
}

struct ni_segment_block {
  uint8_t *at; /* NULL: in the file */
  uint64_t offset;
  uint32_t len, size; /* size: of the memory */
};

struct ni_segment {
  uint64_t n, min_sn, max_sn, back;
  struct ni_segment_block *block;
  size_t n_blocks, cap_blocks;
  struct ni_entry *last; /* while it is written: there may be hundreds of thousands of short ones */
};

int ni_segment_add(struct ni_segment *s, struct ni_spill *st, const struct ni_entry *e);
/*
 * No more records come: gives back what the last block does not use, or puts all that is held into the file.
 */
int ni_segment_end(struct ni_segment *s, struct ni_spill *st);
/* How many records, how many bytes, and these: for ni_segment_decode(). 0 or -errno of the temporary file. */
int ni_segment_encode(const struct ni_segment *s, struct ni_spill *st, struct ni_wire *w);
/*
 * Adds what that has put, one record at least, from another process: -EINVAL where they are not sound. Behind
 * the bytes of w 96 more can be read. mix: what codes become; n_mix: how many codes there are. Then it is
 * ended, as by ni_segment_end().
 */
int ni_segment_decode(struct ni_segment *s, struct ni_spill *st, struct ni_wire *w, const uint8_t *mix,
                      unsigned n_mix);
void ni_segment_free(struct ni_segment *s, struct ni_spill *st);

/* Reads a segment in order of sn; records of equal sn in the order of writing. */
struct ni_segment_reader {
  const struct ni_segment *s;
  struct ni_spill *st;
  size_t block;
  const uint8_t *at, *end;
  uint8_t *buffer; /* of a block from the file */
  uint64_t read, given, high;
  struct ni_entry last;
  struct ni_waiting {
    struct ni_entry e;
    uint64_t order;
  } *heap;
  size_t n_heap, cap_heap;
};

void ni_segment_read(struct ni_segment_reader *r, const struct ni_segment *s, struct ni_spill *st);
/* 1: *e; 0: no more; -errno. */
int ni_segment_next(struct ni_segment_reader *r, struct ni_entry *e);
void ni_segment_read_end(struct ni_segment_reader *r);

#endif
