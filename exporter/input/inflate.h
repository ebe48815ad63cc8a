/*
 * One gzip member after the other, by isa-l where it is there and by zlib elsewhere, behind one interface.
 *
 * The caller owns both buffers; the inflater keeps at most its own window. A member is checked against its CRC and
 * length; what follows a member is the caller's business. NI_INFLATE=zlib in the environment forces zlib (tests compare
 * the two). Threads: one inflater belongs to one thread. Failure: -ENOMEM from open; damaged data by cause from step.
 */
#ifndef NI_INFLATE_H
#define NI_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* BLOCKS: zlib, and each step ends where a block of deflate does, for ni_inflater_at_block(). */
enum ni_inflate_engine { NI_INFLATE_AUTO = 0, NI_INFLATE_ISAL, NI_INFLATE_ZLIB, NI_INFLATE_BLOCKS };
#define NI_WINDOW_BYTES 32768u /* what deflate looks back at most */

enum ni_inflate_result {
  NI_INF_MORE = 0,  /* all input consumed or the output is full: go on */
  NI_INF_END,       /* the member is complete and its checksum right; *in stands behind it */
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
enum ni_inflate_result ni_inflater_step(struct ni_inflater *z, const uint8_t **in, size_t *in_len, uint8_t **out,
                                        size_t *out_len);

/*
 * A member is entered in its middle. Engine BLOCKS, after a step: does a block end here that is not the last one? Then *bits of the
 * last byte of the input (0 to 7, its highest) are of the next block, and _window gives the text before it, at most
 * NI_WINDOW_BYTES. _enter, on any engine, before the first step: goes on there; `byte` is that last byte, the input what comes
 * behind it. NI_INF_END then comes before the member's trailer, which nobody checks. 0 or -EBADMSG.
 */
bool ni_inflater_at_block(const struct ni_inflater *z, unsigned *bits);
size_t ni_inflater_window(struct ni_inflater *z, uint8_t window[NI_WINDOW_BYTES]);
int ni_inflater_enter(struct ni_inflater *z, unsigned bits, uint8_t byte, const uint8_t *window, size_t n);

/* CRC-32 as gzip has it, of n bytes behind those whose sum is crc (0: none). Any thread. */
uint32_t ni_crc32(uint32_t crc, const void *bytes, size_t n);
/* The same of what two sums are of, the second of n bytes. */
uint32_t ni_crc32_join(uint32_t crc, uint32_t behind, uint64_t n);

const char *ni_inflate_result_name(enum ni_inflate_result r);

#endif
