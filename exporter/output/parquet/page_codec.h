/*
 * Compression of one page, and its checksum.
 *
 * One ni_page_codec belongs to one writer; it keeps the library's state between pages. The libraries are
 * found at build time (NI_HAVE_ZSTD, NI_HAVE_SNAPPY), one of them at least; a codec that is not there is
 * refused and never silently replaced.
 */
#ifndef NI_PARQUET_PAGE_CODEC_H
#define NI_PARQUET_PAGE_CODEC_H

#include <stddef.h>
#include <stdint.h>

#include "writer.h"

/* Whether this build can write `codec`. */
bool ni_pq_codec_available(enum ni_pq_codec codec);
/* zstd, or snappy in a build without it. */
enum ni_pq_codec ni_pq_codec_default(void);
/* "zstd", "snappy"; NULL when out of range. */
const char *ni_pq_codec_name(enum ni_pq_codec codec);

struct ni_page_codec {
  enum ni_pq_codec codec;
  void *state; /* ZSTD_CCtx; NULL of snappy */
};

/* level 0: the default of the codec. -ENOTSUP not built in, -EINVAL level out of range, -ENOMEM. */
int ni_page_codec_init(struct ni_page_codec *c, enum ni_pq_codec codec, int level);
void ni_page_codec_free(struct ni_page_codec *c);
/* Parquet's number of the codec (CompressionCodec). */
int ni_page_codec_id(enum ni_pq_codec codec);
/* Accepted levels, for messages; "none" for codecs without. */
const char *ni_page_codec_levels(enum ni_pq_codec codec);
/* Room that compressing n bytes can need. */
size_t ni_page_codec_bound(const struct ni_page_codec *c, size_t n);
/* Compresses src to dst (room: the bound of n). Sets *out_n. -EIO when the library fails, -ENOMEM. */
int ni_page_codec_run(struct ni_page_codec *c, uint8_t *dst, size_t room, const uint8_t *src, size_t n,
                      size_t *out_n);

#endif
