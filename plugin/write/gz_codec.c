#include "gz_codec.h"

#include <stdint.h>
#include <stdlib.h>

#ifdef NI_HAVE_LIBDEFLATE
#include <libdeflate.h>

/* libdeflate's own object is ours: nothing to add to it. */
struct ni_codec *ni_codec_new(int level) {
  return (struct ni_codec *)libdeflate_alloc_compressor(level < 1 || level > 9 ? 1 : level);
}

void ni_codec_free(struct ni_codec *codec) {
  libdeflate_free_compressor((struct libdeflate_compressor *)codec);
}

const char *ni_codec_name(void) { return "libdeflate"; }

size_t ni_codec_member(struct ni_codec *codec, const void *text, size_t n, void *out, size_t room) {
  return libdeflate_gzip_compress((struct libdeflate_compressor *)codec, text, n, out, room);
}

#else
#include <zlib.h>

/* zlib's own default: 9 gains nothing and is 10 % slower, 7 gains nothing and holds less */
#define MEM_LEVEL 8

struct ni_codec {
  z_stream z;
  int level;
};

/*
 * Our text repeats the line before it nearly byte for byte, so long matches are near and worth looking for,
 * while inserting every byte of a long match into the hash is wasted. Measured (test_gz_writer --measure):
 * against level 3 as it is, 2 to 3 % smaller in the same time; against level 1, 11 to 18 % smaller for 14 %
 * more time. Must be repeated after each deflateReset, which restores the level's own parameters.
 */
static void tune(struct ni_codec *codec) {
  if (codec->level == NI_CODEC_LEVEL)
    deflateTune(&codec->z, 4, 16, 128, 16);
}

struct ni_codec *ni_codec_new(int level) {
  struct ni_codec *codec = calloc(1, sizeof *codec);
  if (!codec)
    return NULL;
  codec->level = level < 1 || level > 9 ? NI_CODEC_LEVEL : level;
  /* windowBits 31: a gzip member of 32 KiB window, the widest that every reader takes. */
  if (deflateInit2(&codec->z, codec->level ? codec->level : 3, Z_DEFLATED, 31, MEM_LEVEL,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    free(codec);
    return NULL;
  }
  tune(codec);
  return codec;
}

void ni_codec_free(struct ni_codec *codec) {
  if (codec)
    deflateEnd(&codec->z);
  free(codec);
}

const char *ni_codec_name(void) { return "zlib"; }

size_t ni_codec_member(struct ni_codec *codec, const void *text, size_t n, void *out, size_t room) {
  /* zlib's older headers lack the const; it does not write there */
  codec->z.next_in = (Bytef *)(uintptr_t)text;
  codec->z.avail_in = (uInt)n;
  codec->z.next_out = out;
  codec->z.avail_out = (uInt)room;
  int whole = deflate(&codec->z, Z_FINISH) == Z_STREAM_END;
  (void)deflateReset(&codec->z);
  tune(codec);
  return whole ? room - codec->z.avail_out : 0;
}

#endif
