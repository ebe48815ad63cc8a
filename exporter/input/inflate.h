/*
 * One gzip member after the other, by isa-l where it is there and by zlib elsewhere, behind one interface.
 *
 * The caller owns both buffers; the inflater keeps at most its own window. A member is checked against its
 * CRC and length; what follows a member is the caller's business. NI_INFLATE=zlib in the environment forces
 * zlib (tests compare the two). Threads: one inflater belongs to one thread. Failure: -ENOMEM from open;
 * damaged data by cause from step.
 */
#ifndef NI_INFLATE_H
#define NI_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ni_inflate_engine { NI_INFLATE_AUTO = 0, NI_INFLATE_ISAL, NI_INFLATE_ZLIB };
#define NI_WINDOW_BYTES 32768u /* what deflate looks back at most */

enum ni_inflate_result {
  NI_INF_MORE = 0, /* all input consumed or the output is full: go on */
  NI_INF_END,      /* the member is complete and its checksum right; *in stands behind it */
  NI_INF_BAD_HEADER,
  NI_INF_BAD_DATA,
  NI_INF_BAD_CHECKSUM,
};

struct ni_inflater;

/* 0, -ENOMEM, or -ENOTSUP when isa-l is asked for and was not there when this was built. */
int ni_inflater_open(struct ni_inflater **out, enum ni_inflate_engine engine);
void ni_inflater_free(struct ni_inflater *z);

/* Before the first and between members. */
void ni_inflater_reset(struct ni_inflater *z);

/* Consumes from *in (advanced, *in_len reduced) and writes to *out (advanced, *out_len reduced). */
enum ni_inflate_result ni_inflater_step(struct ni_inflater *z, const uint8_t **in, size_t *in_len,
                                        uint8_t **out, size_t *out_len);

/*
 * A member is entered in its middle. From _seek on, between two steps of a member, steps end where a block of
 * deflate begins: zlib at each one, isa-l at those it can tell, which are most; where depends on the member
 * alone, but for those that begin less than NI_SEEK_BYTES of text behind _seek. _at_block, after a step: does
 * one begin? Then the last *ahead bits of the input are of it, at most NI_SEEK_BITS, all text before it is
 * there, and _window gives the last of that, at most NI_WINDOW_BYTES. _enter, before the first step: goes on
 * there; the upper `bits` of `byte` are the first of the block, the input what comes behind it. NI_INF_END
 * then comes before the member's trailer, which nobody checks. 0 or -EBADMSG.
 */
enum { NI_SEEK_BYTES = 72 << 10, NI_SEEK_BITS = 1024 };
void ni_inflater_seek(struct ni_inflater *z, bool on);
bool ni_inflater_at_block(const struct ni_inflater *z, unsigned *ahead);
size_t ni_inflater_window(struct ni_inflater *z, uint8_t window[NI_WINDOW_BYTES]);
int ni_inflater_enter(struct ni_inflater *z, unsigned bits, uint8_t byte, const uint8_t *window, size_t n);

/* CRC-32 as gzip has it, of n bytes behind those whose sum is crc (0: none). Any thread. */
uint32_t ni_crc32(uint32_t crc, const void *bytes, size_t n);
/* The same of what two sums are of, the second of n bytes. */
uint32_t ni_crc32_join(uint32_t crc, uint32_t behind, uint64_t n);

const char *ni_inflate_result_name(enum ni_inflate_result r);

#endif
