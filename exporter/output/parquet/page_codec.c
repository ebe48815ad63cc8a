#include "page_codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef NI_HAVE_ZSTD
#include <zstd.h>
#endif
#ifdef NI_HAVE_SNAPPY
#include <snappy-c.h>
#endif

static const struct {
  const char *name;
  int id; /* parquet.thrift, CompressionCodec */
  int level_default, level_min, level_max;
  const char *levels;
} codecs[NI_PQ_CODEC_COUNT] = {
    /* zstd above 1 halves the speed for under a tenth of the size (docs/parquet.md). */
    [NI_PQ_ZSTD] = {"zstd", 6, 1, -7, 19, "-7..19"},
    [NI_PQ_SNAPPY] = {"snappy", 1, 0, 0, 0, "none"},
};

bool ni_pq_codec_available(enum ni_pq_codec codec) {
  switch (codec) {
#ifdef NI_HAVE_ZSTD
    case NI_PQ_ZSTD:
      return true;
#endif
#ifdef NI_HAVE_SNAPPY
    case NI_PQ_SNAPPY:
      return true;
#endif
    default:
      return false;
  }
}

enum ni_pq_codec ni_pq_codec_default(void) {
  return ni_pq_codec_available(NI_PQ_ZSTD) ? NI_PQ_ZSTD : NI_PQ_SNAPPY;
}

const char *ni_pq_codec_name(enum ni_pq_codec codec) {
  return (unsigned)codec < NI_PQ_CODEC_COUNT ? codecs[codec].name : NULL;
}

int ni_page_codec_id(enum ni_pq_codec codec) { return codecs[codec].id; }

const char *ni_page_codec_levels(enum ni_pq_codec codec) { return codecs[codec].levels; }

int ni_page_codec_init(struct ni_page_codec *c, enum ni_pq_codec codec, int level) {
  *c = (struct ni_page_codec){.codec = codec};
  if (!ni_pq_codec_available(codec))
    return -ENOTSUP;
  if (level == 0 || codecs[codec].level_max == 0)
    level = codecs[codec].level_default;
  if (level < codecs[codec].level_min || level > codecs[codec].level_max)
    return -EINVAL;
#ifdef NI_HAVE_ZSTD
  if (codec == NI_PQ_ZSTD) {
    c->state = ZSTD_createCCtx();
    if (!c->state)
      return -ENOMEM;
    if (ZSTD_isError(ZSTD_CCtx_setParameter(c->state, ZSTD_c_compressionLevel, level))) {
      ni_page_codec_free(c);
      return -EINVAL;
    }
  }
#endif
  return 0;
}

void ni_page_codec_free(struct ni_page_codec *c) {
#ifdef NI_HAVE_ZSTD
  if (c->codec == NI_PQ_ZSTD && c->state)
    ZSTD_freeCCtx(c->state);
#endif
  c->state = NULL;
}

size_t ni_page_codec_bound(const struct ni_page_codec *c, size_t n) {
  switch (c->codec) {
#ifdef NI_HAVE_ZSTD
    case NI_PQ_ZSTD:
      return ZSTD_compressBound(n);
#endif
#ifdef NI_HAVE_SNAPPY
    case NI_PQ_SNAPPY:
      return snappy_max_compressed_length(n);
#endif
    default:
      return n;
  }
}

int ni_page_codec_run(struct ni_page_codec *c, uint8_t *dst, size_t room, const uint8_t *src, size_t n,
                      size_t *out_n) {
  switch (c->codec) {
#ifdef NI_HAVE_ZSTD
    case NI_PQ_ZSTD:
      *out_n = ZSTD_compress2(c->state, dst, room, src, n);
      return ZSTD_isError(*out_n) ? -EIO : 0;
#endif
#ifdef NI_HAVE_SNAPPY
    case NI_PQ_SNAPPY:
      *out_n = room;
      return snappy_compress((const char *)src, n, (char *)dst, out_n) == SNAPPY_OK ? 0 : -EIO;
#endif
    default:
      return -ENOTSUP;
  }
}
