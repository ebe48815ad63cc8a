/*
 * One text to one gzip member, by libdeflate where its static library was there at build time, by zlib
 * elsewhere.
 *
 * Measured on made-up records in members of 256 KiB (test_gz_writer --measure, the two in turn on a busy
 * machine, formatting included): a training sequence 1.5 us and 54.9 B a record by libdeflate, 2.4 us and
 * 57.0 B by zlib; everything random 1.7 us and 73.9 B, 3.0 us and 67.6 B.
 *
 * Threads: one codec, one thread at a time. All memory is taken by ni_codec_new.
 */
#ifndef NI_GZ_CODEC_H
#define NI_GZ_CODEC_H

#include <stddef.h>

/* the level that was measured to be best for our text: libdeflate 1, zlib 3 with its search tuned */
#define NI_CODEC_LEVEL 0

struct ni_codec;

/*
 * level: NI_CODEC_LEVEL or 1..9, which measuring uses. NULL: no memory. Freed by ni_codec_free, which accepts
 * NULL.
 */
struct ni_codec *ni_codec_new(int level);
void ni_codec_free(struct ni_codec *codec);

/* "libdeflate" or "zlib" */
const char *ni_codec_name(void);

/* The most that a member of n bytes of text takes. Both store what does not compress in blocks of 5,000 bytes
 * at least, 5 bytes each, and add a header and a trailer of 18 bytes and some padding. */
static inline size_t ni_codec_bound(size_t n) { return n + (n >> 8) + 64; }

/*
 * Writes the member; room: ni_codec_bound(n) at least. Its size, or 0: it does not fit, which the bound rules
 * out.
 */
size_t ni_codec_member(struct ni_codec *codec, const void *text, size_t n, void *out, size_t room);

#endif
